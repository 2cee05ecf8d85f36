//! Threads that read and write files of their own in blocks, after tiobench.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::ebizzy::next_random;
use super::region::PAGE;
use super::scratch;
use super::split_work::{Act, SplitWork, Step, TaskKind};
use super::{Failure, Made, Workload};

/// Size of all files together.
const SIZE: usize = 8 * 1024 * 1024;

/// Which block comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Sequential,
    Random,
}

type Action = fn(&File, &mut [u8], u64) -> io::Result<()>;

struct Tiobench(SplitWork);

impl Workload for Tiobench {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.0.share(Step::Run, operations)
    }
}

fn act(mut file: File, blocks: usize, (order, action): (Order, Action)) -> io::Result<Act> {
    scratch::fill(&mut file, blocks * PAGE)?;
    let mut block = 0;
    let mut state = 1;
    let mut buffer = [1; PAGE];
    Ok(Box::new(move |_, operations| {
        for _ in 0..operations {
            block = match order {
                Order::Sequential => (block + 1) % blocks,
                Order::Random => next_random(&mut state) % blocks,
            };
            action(&file, &mut buffer, (block * PAGE) as u64)?;
        }
        Ok(())
    }))
}

fn tiobench(order: Order, threads: usize, action: Action) -> Made {
    crate::sys::wake_up_politely()?;
    let mut acts = Vec::new();
    for _ in 0..threads {
        let file = scratch::page_cache_file().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                Failure::Unsupported(format!("needs the right to mount a ramfs: {error}"))
            }
            _ => Failure::from(error),
        })?;
        acts.push(act(file, SIZE / PAGE / threads, (order, action))?);
    }
    Ok(Box::new(Tiobench(SplitWork::start(
        TaskKind::Thread,
        acts,
    )?)))
}

/// tio-like-…rd-N: so many threads read.
pub(super) fn read(order: Order, threads: usize) -> Made {
    tiobench(order, threads, |file, buffer, at| {
        file.read_exact_at(buffer, at)
    })
}

/// tio-like-…wr-N: so many threads write.
pub(super) fn write(order: Order, threads: usize) -> Made {
    tiobench(order, threads, |file, buffer, at| {
        file.write_all_at(buffer, at)
    })
}

//! Reclaim on purpose: of file pages beside a working set, and of anonymous pages.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::server::scribble;
use super::swap::{self, Generations};
use crate::workloads::region::{PAGE, Region};
use crate::workloads::{Made, Workload};

/// What is read at a time, and touched of the working set.
const PIECE: usize = 1024 * 1024;
/// Where the disk ends.
const DISK: u64 = 4 << 30;

struct Stream {
    disk: File,
    at: u64,
    set: Region,
    pieces: usize,
    next: usize,
    buffer: Vec<u8>,
}

impl Workload for Stream {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.disk.read_exact_at(&mut self.buffer, self.at)?;
            self.at = (self.at + PIECE as u64) % DISK;
            for offset in (0..PIECE).step_by(PAGE) {
                // SAFETY: `next` is less than `pieces`, so this lies within the region, to which
                // there are no references.
                unsafe {
                    self.set
                        .start()
                        .add(self.next * PIECE + offset)
                        .write_volatile(1);
                };
            }
            self.next = (self.next + 1) % self.pieces;
        }
        Ok(())
    }
}

/// reclaim-file: streams a disk larger than memory beside a working set of a quarter of memory.
pub(in crate::workloads) fn file(generations: Generations) -> Made {
    swap::ours_alone()?;
    generations.set()?;
    swap::on_zram()?;
    let disk = swap::disk()?;
    let pieces = swap::memory()? / 4 / PIECE;
    let set = Region::small_pages(pieces as u64, PIECE)?;
    set.touch(PAGE);
    Ok(Box::new(Stream {
        disk,
        at: 0,
        set,
        pieces,
        next: 0,
        buffer: vec![0; PIECE],
    }))
}

struct Anonymous {
    region: Region,
    pages: usize,
    next: usize,
    state: u64,
}

impl Workload for Anonymous {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            // SAFETY: `next` is less than `pages`, so this page lies within the region, and nobody
            // else has a reference.
            let page = unsafe {
                std::slice::from_raw_parts_mut(self.region.start().add(self.next * PAGE), PAGE)
            };
            scribble(page, &mut self.state);
            self.next = (self.next + 1) % self.pages;
        }
        Ok(())
    }
}

fn over(bytes: usize) -> Made {
    let pages = bytes / PAGE;
    let region = Region::small_pages(pages as u64, PAGE)?;
    let mut workload = Anonymous {
        region,
        pages,
        next: 0,
        state: 1,
    };
    // Once around, so that from now on a page is there when another has gone.
    workload.run(pages as u64)?;
    Ok(Box::new(workload))
}

/// reclaim-anon: writes as much anonymous memory as the guest has, over and over, with swap on
/// zram.
pub(in crate::workloads) fn anonymous(generations: Generations) -> Made {
    swap::ours_alone()?;
    generations.set()?;
    swap::on_zram()?;
    over(swap::memory()?)
}

/// reclaim-slow: writes half as much, with swap on a disk that takes its time and lies in the other
/// half.
pub(in crate::workloads) fn slow(generations: Generations) -> Made {
    swap::ours_alone()?;
    generations.set()?;
    swap::on_slow_disk()?;
    over(swap::memory()? / 2)
}

//! Having the kernel allocate pages and blocks of pages, by what pipes take: buffers of a page
//! each, and rings.

use std::io::{self, Read, Write};
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::region::PAGE;
use super::{Failure, Made, Workload};
use crate::sys::check;

/// Slots that a pipe has from the beginning.
const SLOTS: usize = 16;
/// Bytes of a slot in the ring: struct pipe_buffer of include/linux/pipe_fs_i.h on 64 bits.
const SLOT_BYTES: usize = 40;

/// Makes a pipe in which each write has a buffer of its own.
fn packet_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_DIRECT | libc::O_CLOEXEC) })?;
    // SAFETY: both were just opened, and nobody else owns them.
    let [from, to] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok((from.into(), to.into()))
}

/// Gives a pipe's ring so many slots.
fn set_slots(pipe: &PipeWriter, slots: usize) -> io::Result<()> {
    // SAFETY: the call takes no memory of ours.
    check(unsafe {
        libc::fcntl(
            pipe.as_raw_fd(),
            libc::F_SETPIPE_SZ,
            (slots * PAGE) as libc::c_int,
        )
    })
    .map(|_| ())
}

struct Pages {
    from: PipeReader,
    to: PipeWriter,
    batch: u64,
}

impl Workload for Pages {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut byte = [0];
        let mut left = operations;
        while left > 0 {
            let batch = left.min(self.batch);
            for _ in 0..batch {
                self.to.write_all(&byte)?;
            }
            for _ in 0..batch {
                self.from.read_exact(&mut byte)?;
            }
            left -= batch;
        }
        Ok(())
    }
}

/// pagealloc-0-BATCH: a page for each byte that waits in a pipe.
pub(super) fn pages(batch: usize) -> Made {
    let (from, to) = packet_pipe()?;
    if batch > SLOTS {
        set_slots(&to, batch)?;
    }
    Ok(Box::new(Pages {
        from,
        to,
        batch: batch as u64,
    }))
}

struct Blocks {
    pipes: Vec<(PipeReader, PipeWriter)>,
    slots: usize,
}

impl Workload for Blocks {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut left = operations as usize;
        while left > 0 {
            let batch = left.min(self.pipes.len());
            for slots in [self.slots, 1] {
                self.pipes[..batch]
                    .iter()
                    .try_for_each(|(_, pipe)| set_slots(pipe, slots))?;
            }
            left -= batch;
        }
        Ok(())
    }
}

/// pagealloc-ORDER-BATCH: a block of 2^order pages for the ring of each of so many pipes.
pub(super) fn blocks(order: u32, batch: usize) -> Made {
    // A power of two, as the kernel makes it, and more than half of the block.
    let slots = ((PAGE << order) / SLOT_BYTES + 1).next_power_of_two() / 2;
    let pipes = (0..batch)
        .map(|_| io::pipe())
        .collect::<io::Result<Vec<_>>>()?;
    match pipes
        .iter()
        .try_for_each(|(_, pipe)| set_slots(pipe, slots).and_then(|()| set_slots(pipe, 1)))
    {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Failure::Unsupported(
            format!("needs the right to have large pipes: {error}"),
        )),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(Box::new(Blocks { pipes, slots })),
    }
}

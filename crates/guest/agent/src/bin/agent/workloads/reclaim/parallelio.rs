//! A server that is asked while somebody writes a large file beside it, after parallelio with
//! memcachetest.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use guest::clock::now;
use wire::Clock;

use super::server::Client;
use super::swap::{self, Counts};
use crate::workloads::partner::Partner;
use crate::workloads::{Between, Made, Row, Workload};

/// What is written at a time.
const PIECE: usize = 1024 * 1024;
/// Where the disk ends.
const DISK: u64 = 4 << 30;

struct ParallelIo {
    client: Client,
    disk: File,
    /// How much of the pool is written beside, in percent: the row's name.
    percent: usize,
    bytes: usize,
    at: u64,
    before: Counts,
    io: Option<(Partner, PipeReader)>,
    rows: Vec<Row>,
}

impl Workload for ParallelIo {
    /// The IO goes on meanwhile.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn prepare(&mut self, _: u64) -> io::Result<()> {
        self.before = Counts::now()?;
        let (from, to) = io::pipe()?;
        let (disk, bytes, at) = (self.disk.try_clone()?, self.bytes, self.at);
        // Each time another place: a new file, of which nothing is in memory.
        self.at = (self.at + bytes as u64) % (DISK - bytes as u64) / PIECE as u64 * PIECE as u64;
        self.io = Some((Partner::start(move || write(&disk, at, (bytes, to)))?, from));
        Ok(())
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        (0..operations).try_for_each(|number| self.client.ask(number))
    }

    fn clear(&mut self, _: u64) -> io::Result<()> {
        let mut took = [0; 8];
        if let Some((_writer, mut from)) = self.io.take() {
            from.read_exact(&mut took)
                .map_err(|_| io::Error::other("the background IO ended early"))?;
        }
        let after = Counts::now()?;
        forget(&self.disk)?;
        let swapped_in = after.swapped_in - self.before.swapped_in;
        let major = after.major_faults - self.before.major_faults;
        let row = |name: &str, value| (format!("{name}-{}", self.percent), value);
        self.rows = vec![
            row("io-duration", u64::from_le_bytes(took)),
            row(
                "swaptotal",
                swapped_in + after.swapped_out - self.before.swapped_out,
            ),
            row("swapin", swapped_in),
            row(
                "minorfaults",
                (after.faults - self.before.faults).saturating_sub(major),
            ),
            row("majorfaults", major),
        ];
        Ok(())
    }

    fn rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }
}

/// dd if=/dev/zero bs=1M conv=fdatasync; says how long it took, in nanoseconds.
fn write(disk: &File, at: u64, (bytes, mut to): (usize, impl Write)) -> io::Result<()> {
    let start = now(Clock::Monotonic);
    let zeroes = vec![0; PIECE];
    let mut done = 0;
    while done < bytes {
        let piece = PIECE.min(bytes - done);
        disk.write_all_at(&zeroes[..piece], at + done as u64)?;
        done += piece;
    }
    if bytes > 0 {
        disk.sync_data()?;
    }
    to.write_all(
        &if bytes > 0 {
            now(Clock::Monotonic) - start
        } else {
            0
        }
        .to_le_bytes(),
    )
}

/// Has the kernel forget what it keeps of the disk, as a removed file is forgotten.
fn forget(disk: &File) -> io::Result<()> {
    // SAFETY: the call takes no memory of ours.
    match unsafe { libc::posix_fadvise(disk.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// memcachetest-PERCENT: a pool of four fifths of memory, and IO of so many percent of it beside.
pub(in crate::workloads) fn parallelio(percent: usize) -> Made {
    swap::ours_alone()?;
    swap::on_zram()?;
    let disk = swap::disk()?;
    let pool = swap::memory()? / 5 * 4;
    let bytes = pool / 100 * percent / PIECE * PIECE;
    let client = Client::start(pool)?;
    let (before, rows) = (Counts::default(), Vec::new());
    Ok(Box::new(ParallelIo {
        client,
        disk,
        percent,
        bytes,
        at: 0,
        before,
        io: None,
        rows,
    }))
}

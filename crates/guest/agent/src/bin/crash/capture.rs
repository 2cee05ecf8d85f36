//! The capture kernel's work: run the filter on /proc/vmcore, and copy its result and the whole to
//! disks.
//!
//! A disk that is not there is not written to, so that the host decides what it wants to see.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::disks;
use crate::words::Words;

const VMCORE: &str = "/proc/vmcore";
/// The filter, if the host gave one.
const FILTER: &str = "/marvin-dump";
/// Where the filter writes to, and what it says.
const RESULT: &str = "/tmp/dump";
const SAID: &str = "/tmp/said";
/// Most that is reported of what the filter said, in bytes.
const SAID_MAX: usize = 16 << 10;
/// How much is copied at a time; as much as that is left out where it is zero, so that the host's
/// file stays sparse.
const PIECE: usize = 64 << 10;

/// Does it, and returns a line for each thing done.
pub(crate) fn capture(words: &Words) -> io::Result<String> {
    let mut report = Vec::new();
    if !words.filter.is_empty() {
        report.push(filter(&words.filter)?);
    }
    for (from, serial) in [(RESULT, "dump"), (VMCORE, "vmcore")] {
        // A filter that failed, or was not asked for, has left nothing.
        if Path::new(from).exists()
            && let Some(disk) = disks::open(serial)?
        {
            let start = Instant::now();
            let bytes = copy(from, disk)
                .map_err(|error| io::Error::other(format!("copying {from}: {error}")))?;
            report.push(format!(
                "{serial} {bytes} bytes in {} ms\n",
                start.elapsed().as_millis()
            ));
        }
    }
    Ok(report.concat())
}

/// Runs the filter. That it fails is its own affair: the report has its words, and the vmcore is
/// copied all the same.
fn filter(words: &[String]) -> io::Result<String> {
    let said = File::create(SAID)?;
    let start = Instant::now();
    let mut command = Command::new(FILTER);
    command
        .args(words)
        .args([VMCORE, RESULT])
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said);
    let status = command
        .status()
        .map_err(|error| io::Error::other(format!("starting {FILTER}: {error}")))?;
    let wall_ms = start.elapsed().as_millis();
    // SAFETY: an rusage of zeroes is a valid value of the C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the call.
    guest::sys::check(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) })?;
    let ms = |time: libc::timeval| time.tv_sec * 1000 + time.tv_usec / 1000;
    let (user, system, rss) = (ms(usage.ru_utime), ms(usage.ru_stime), usage.ru_maxrss);
    let text = fs::read(SAID)?;
    let text = String::from_utf8_lossy(&text[..text.len().min(SAID_MAX)]).into_owned();
    Ok(format!(
        "filter {status}, {wall_ms} ms, user {user} ms, system {system} ms, at most {rss} KiB\n{text}\n"
    ))
}

/// Copies a file to a disk of zeroes and returns its length.
fn copy(from: &str, mut disk: File) -> io::Result<u64> {
    let mut from = File::open(from)?;
    let mut piece = vec![0; PIECE];
    let mut copied = 0;
    loop {
        let count = read_fully(&mut from, &mut piece)?;
        if count == 0 {
            break;
        }
        if piece[..count].iter().any(|byte| *byte != 0) {
            disk.seek(SeekFrom::Start(copied))?;
            disk.write_all(&piece[..count])?;
        }
        copied += count as u64;
    }
    disk.sync_all()?;
    Ok(copied)
}

fn read_fully(from: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < piece.len() {
        match from.read(&mut piece[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

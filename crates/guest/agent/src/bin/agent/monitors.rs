//! Monitors: copies of what the kernel counts, around and during a workload. Whole files,
//! uninterpreted.
//!
//! Off unless a job asks: then nothing of this runs. Copies are named `PHASE BEGUN ENDED PATH`: the
//! guest's clock before and after the file was read, in nanoseconds.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::time::Duration;

use guest::clock::now;
use guest::sys::{self, Fork};
use wire::Clock;

/// Largest file that is copied, in bytes; the rest of a larger one is left out.
const SIZE_MAX: usize = 256 * 1024;
/// Most copies of all files while the workload runs; when they are used up it is watched no more
/// until its end.
const ROUNDS_MAX: usize = 200;
/// Where copies wait for the end of the workload: in memory, not on the serial line.
const KEPT: &str = "/monitors";

const FILES: &[&str] = &[
    "/proc/vmstat",
    "/proc/stat",
    "/proc/meminfo",
    "/proc/zoneinfo",
    "/proc/buddyinfo",
    "/proc/diskstats",
    "/proc/slabinfo",
    "/proc/schedstat",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/pressure/irq",
    "/proc/net/dev",
    "/proc/net/snmp",
    "/proc/net/netstat",
    // The workload's processes, once they have ended, are among the children of the first process.
    "/proc/1/stat",
    "/proc/1/schedstat",
];
/// The file that costs more than all others together, for the kernel walks the slabs of every cache
/// to write it (`count_partial` in mm/slub.c). It tells of states and not of events: once in many
/// rounds is enough, a minute at one round a second.
const COSTLY: &str = "/proc/slabinfo";
const COSTLY_EVERY: usize = 60;
/// Threads of the kernel that work for memory management, by the beginning of their names, and the
/// sampler itself.
const THREADS: &[&str] = &["kswapd", "kcompactd", "khugepaged", SAMPLER];
const SAMPLER: &str = "marvin-monitor";

/// A copy: its name and the bytes.
pub(crate) type Copy = (String, Vec<u8>);

/// Monitors that are at work.
pub(crate) struct Monitors {
    copies: Vec<Copy>,
    sampler: Option<libc::pid_t>,
}

impl Monitors {
    /// Makes the first copies, and starts to make others at an interval, where one is given.
    pub(crate) fn start(interval_ms: u64) -> io::Result<Self> {
        let sampler = match interval_ms {
            0 => None,
            interval_ms => Some(start_sampler(interval_ms)?),
        };
        Ok(Self {
            copies: copy("start", &paths()),
            sampler,
        })
    }

    /// Makes the last copies and returns all.
    pub(crate) fn end(self) -> io::Result<Vec<Copy>> {
        let mut all = self.copies;
        let last = copy("end", &paths());
        if let Some(pid) = self.sampler {
            sys::kill_and_wait(pid)?;
            all.extend(read_back(&fs::read(KEPT)?));
        }
        all.extend(last);
        Ok(all)
    }
}

/// Returns what is copied here.
fn paths() -> Vec<String> {
    FILES
        .iter()
        .map(|&path| path.to_owned())
        .chain(threads())
        .collect()
}

fn copy(phase: &str, paths: &[String]) -> Vec<Copy> {
    // One for all files, as large as any: growing one for each costs more than most files do.
    let mut buffer = vec![0; SIZE_MAX];
    let read = |path: &String| {
        let begun = now(Clock::Monotonic);
        // A file that this kernel does not have says something too: it is absent.
        let length = read_into(&mut buffer, path).ok()?;
        let ended = now(Clock::Monotonic);
        Some((
            format!("{phase} {begun} {ended} {path}"),
            buffer[..length].to_vec(),
        ))
    };
    paths.iter().filter_map(read).collect()
}

/// Reads a file up to what the buffer holds, and returns how much that is.
fn read_into(buffer: &mut [u8], path: &str) -> io::Result<usize> {
    let mut file = File::open(path)?;
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Returns the files of threads that are watched, in order of their numbers.
fn threads() -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    let is_watched = |number: &u32| {
        let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        THREADS.iter().any(|start| name.starts_with(start))
    };
    let files = |number| {
        [
            format!("/proc/{number}/stat"),
            format!("/proc/{number}/schedstat"),
        ]
    };
    numbers
        .into_iter()
        .filter(is_watched)
        .flat_map(files)
        .collect()
}

/// Starts the process that makes copies while the workload runs.
fn start_sampler(interval_ms: u64) -> io::Result<libc::pid_t> {
    let samples = File::create(KEPT)?;
    match sys::fork()? {
        Fork::Child => sys::exit_now(i32::from(sample(samples, interval_ms).is_err())),
        Fork::Parent(pid) => Ok(pid),
    }
}

fn sample(mut samples: File, interval_ms: u64) -> io::Result<()> {
    fs::write("/proc/self/comm", SAMPLER)?;
    rounds(&mut samples, (ROUNDS_MAX, interval_ms))?;
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Makes so many copies of all files, so many milliseconds apart.
fn rounds(samples: &mut File, (rounds, interval_ms): (usize, u64)) -> io::Result<()> {
    // Looked for once: to look at every process costs more than all copies, and these threads are
    // there from boot on.
    let paths = paths();
    let cheap: Vec<String> = paths
        .iter()
        .filter(|path| *path != COSTLY)
        .cloned()
        .collect();
    for number in 1..=rounds {
        std::thread::sleep(Duration::from_millis(interval_ms));
        let mut round = Vec::new();
        for (name, bytes) in copy(
            "interval",
            if number % COSTLY_EVERY == 0 {
                &paths
            } else {
                &cheap
            },
        ) {
            round.extend(format!("{name} {}\n", bytes.len()).into_bytes());
            round.extend(bytes);
        }
        // In one piece: the end may come between two, and then the last is whole or is not there.
        samples.write_all(&round)?;
    }
    Ok(())
}

/// Samples here, into a file, and returns the nanoseconds on a processor that it took, to see what
/// sampling costs on a host.
pub(crate) fn cost_ns(file: &str, (number, interval_ms): (usize, u64)) -> io::Result<u64> {
    // Documentation/scheduler/sched-stats.rst: the first number is the time on a processor, in ns.
    let spent = || {
        let text = fs::read_to_string("/proc/self/schedstat")?;
        text.split(' ')
            .next()
            .and_then(|ns| ns.parse::<u64>().ok())
            .ok_or(io::ErrorKind::InvalidData.into())
    };
    let mut samples = File::create(file)?;
    let before: u64 = spent()?;
    rounds(&mut samples, (number.min(ROUNDS_MAX), interval_ms))?;
    let after: io::Result<u64> = spent();
    Ok(after?.saturating_sub(before))
}

/// Reads copies as the sampler keeps them; half a one at the end is left out.
pub(crate) fn read_back(mut bytes: &[u8]) -> Vec<Copy> {
    let mut copies = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let Some((name, length)) = head.rsplit_once(' ') else {
            break;
        };
        let Some(content) = length
            .parse::<usize>()
            .ok()
            .and_then(|length| bytes[end + 1..].get(..length))
        else {
            break;
        };
        copies.push((name.to_owned(), content.to_vec()));
        bytes = &bytes[end + 1 + content.len()..];
    }
    copies
}

#[cfg(test)]
mod tests {
    use super::{copy, paths, read_back};

    #[test]
    fn copies_are_named_by_phase_time_and_path() {
        let copies = copy("start", &paths());
        let names: Vec<Vec<&str>> = copies
            .iter()
            .map(|(name, _)| name.split(' ').collect())
            .collect();
        let time = |text: &str| text.parse::<u64>().unwrap();
        assert!(
            names.iter().all(|name| name[0] == "start"
                && time(name[1]) <= time(name[2])
                && name.len() == 4)
        );
        assert!(names.iter().any(|name| name[3] == "/proc/vmstat"));
    }

    #[test]
    fn half_a_copy_is_left_out() {
        let bytes = b"interval 5 6 /proc/a 3\nx\nyinterval 7 8 /proc/b 10\nhalf";
        assert_eq!(
            read_back(bytes),
            [("interval 5 6 /proc/a".to_owned(), b"x\ny".to_vec())]
        );
        assert!(read_back(b"interval 6").is_empty());
    }
}

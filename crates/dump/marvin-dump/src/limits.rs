//! The limit of the process's address space (`ulimit -v`): what it leaves decides how large windows
//! and tables are, and how many threads work. Mapped windows would otherwise take all of it, and
//! the next small allocation would end the program.

use vmcore::{DumpError, Io, Work};

/// What the program needs beside windows, bits and threads: the kernel's types and symbols, and the
/// tables of a large dump, in bytes.
const FIXED: u64 = 16 << 20;
/// What a thread needs: its stack, buffers, and a compressor.
const THREAD: u64 = 6 << 20;
/// The least for windows and bits.
const LEAST: u64 = 1 << 20;

/// Memory and threads to work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) memory: u64,
    pub(crate) threads: usize,
}

/// Returns how many more bytes the process may map; `None` without a limit, or if /proc does not
/// say.
pub(crate) fn room() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    room_of(&limits, &status)
}

/// Returns how a command works that only reads: with bits in memory, unless a limit leaves too
/// little for them, and mapped windows if `is_mapped`.
///
/// # Errors
/// If the limit is too small.
pub(crate) fn reading_work(threads: usize, is_mapped: bool) -> Result<Work, DumpError> {
    let memory = u64::MAX;
    let Share { memory, threads } = fit(Share { memory, threads }, room())?;
    let io = if is_mapped {
        Io::within(memory, threads)
    } else {
        Io::Read
    };
    Ok(Work {
        threads,
        io,
        memory,
        folder: Some(std::env::temp_dir()),
    })
}

fn room_of(limits: &str, status: &str) -> Option<u64> {
    let limit = number(limits, "Max address space")?;
    let used = number(status, "VmSize:")? << 10;
    Some(limit.saturating_sub(used))
}

/// Returns the first number behind a line's name.
fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Takes less memory and fewer threads than `wanted`, as far as `room` demands it.
///
/// # Errors
/// If the room is too small for one thread.
pub(crate) fn fit(wanted: Share, room: Option<u64>) -> Result<Share, DumpError> {
    let Some(room) = room else {
        return Ok(wanted);
    };
    let least = FIXED + THREAD + LEAST;
    if room < least {
        let missing = (least - room).div_ceil(1 << 20);
        return Err(DumpError::Usage(format!(
            "the limit of the address space (ulimit -v) is {missing} MiB too small: raise it"
        )));
    }
    let free = room - FIXED;
    // Half of it is for threads, at most.
    let most = usize::try_from(free / 2 / THREAD).unwrap_or(usize::MAX);
    let threads = wanted.threads.min(most.max(1));
    let rest = free - threads as u64 * THREAD;
    // Tables of equal and of listed pages have an eighth beside windows and bits.
    let memory = wanted.memory.min(rest / 9 * 8);
    Ok(Share { memory, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Share = Share {
        memory: 64 << 20,
        threads: 2,
    };

    #[test]
    fn limit_less_mapped_memory_is_room() {
        let limits =
            "Limit Soft Hard Units\nMax address space         67108864  unlimited  bytes\n";
        let status = "Name:\tmarvin-dump\nVmPeak:\t9000 kB\nVmSize:\t    8192 kB\n";
        assert_eq!(room_of(limits, status), Some(56 << 20));
        let none = limits.replace("67108864", "unlimited");
        assert_eq!(room_of(&none, status), None);
    }

    #[test]
    fn share_shrinks_with_the_room() {
        assert_eq!(fit(WANTED, None).unwrap(), WANTED);
        assert_eq!(fit(WANTED, Some(1 << 30)).unwrap(), WANTED);
        let mut last = WANTED;
        for room in (24..128).rev() {
            let share = fit(WANTED, Some(room << 20)).unwrap();
            let all = FIXED + share.threads as u64 * THREAD + share.memory / 8 * 9;
            assert!(all <= room << 20, "{room} MiB: {share:?}");
            assert!(share.threads >= 1 && share.threads <= last.threads);
            last = share;
        }
        assert!(last.memory < WANTED.memory && last.threads == 1);
    }

    #[test]
    fn too_little_room_says_what_is_missing() {
        let error = fit(WANTED, Some(20 << 20)).unwrap_err().to_string();
        let missing = (FIXED + THREAD + LEAST - (20 << 20)) >> 20;
        assert!(error.contains(&format!("{missing} MiB")), "{error}");
    }
}

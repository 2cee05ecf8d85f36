//! `/proc/profile`: how often the timer tick found each part of the kernel's text, for kernels
//! without perf events that were booted with `profile=` (kernel/profile.c). The first word is the
//! bytes of text for each counter, then come the counters from `_stext` on; the last one has what
//! lies beyond. The kernel counts all processors, idle ones too, but no user code.
//!
//! A write to the file sets all counters to zero: this happens before each measured iteration, and
//! they are read after it.

use std::fs::{self, File};
use std::io;

use crate::samples::{Samples, Task};
use crate::symbols;

const FILE: &str = "/proc/profile";
/// The symbol at which the counters begin.
const TEXT: &str = "_stext";
/// Largest file that is read (bytes): a counter for each byte of the text of a large kernel.
const SIZE_MAX: u64 = 256 << 20;
const WORD: usize = 4;

/// The counters of a kernel.
#[derive(Debug)]
pub(crate) struct TickProfile {
    text: u64,
    /// Nanoseconds between two ticks.
    pub(crate) period_ns: u64,
}

impl TickProfile {
    /// Finds them; an error if this kernel has none, or does not let us use them.
    pub(crate) fn open() -> io::Result<Self> {
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{FILE}: {error}"));
        if fs::metadata(FILE).map_err(at)?.len() > SIZE_MAX {
            return Err(at(io::Error::other("it is too large")));
        }
        let symbols = symbols::list()?;
        let is_text = |symbol: &str| symbol.split_once(' ').is_some_and(|(_, name)| name == TEXT);
        let text = symbols
            .iter()
            .find(|(_, symbol)| is_text(symbol))
            .map(|(address, _)| *address);
        let text = text
            .ok_or_else(|| io::Error::other(format!("the kernel does not say where {TEXT} is")))?;
        let profile = Self {
            text,
            period_ns: tick_ns()?,
        };
        profile.reset().map_err(at)?;
        Ok(profile)
    }

    /// Sets all counters to zero.
    pub(crate) fn reset(&self) -> io::Result<()> {
        // One byte: a whole word would ask for more ticks (write_profile() of kernel/profile.c).
        fs::write(FILE, b"0")
    }

    /// Adds what was counted since.
    pub(crate) fn read(&self, samples: &mut Samples) -> io::Result<()> {
        use io::Read;
        let mut bytes = Vec::new();
        File::open(FILE)?.take(SIZE_MAX).read_to_end(&mut bytes)?;
        for (address, count) in hits(&bytes, self.text) {
            samples.add_many(Task::Any, &[address], count);
        }
        Ok(())
    }
}

/// Returns the addresses that were hit, and how often; none of a file that makes no sense.
fn hits(bytes: &[u8], text: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut words = bytes
        .chunks_exact(WORD)
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()));
    let step = u64::from(words.next().unwrap_or_default());
    // The last counter has everything beyond the text, as modules.
    let inside = (bytes.len() / WORD).saturating_sub(2);
    let counted = words
        .take(inside)
        .enumerate()
        .filter(move |(_, count)| *count > 0 && step > 0);
    counted.map(move |(place, count)| (text.wrapping_add(place as u64 * step), u64::from(count)))
}

/// Returns the time between two ticks: the resolution of the coarse clock, which they advance.
fn tick_ns() -> io::Result<u64> {
    let mut resolution = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid for the call.
    guest::sys::check(unsafe {
        libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut resolution)
    })?;
    Ok(resolution.tv_nsec.unsigned_abs().max(1))
}

#[cfg(test)]
mod tests {
    use super::{hits, tick_ns};

    fn file(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn counters_become_addresses() {
        let found: Vec<_> = hits(&file(&[16, 0, 3, 0, 1, 9]), 0x1000).collect();
        assert_eq!(
            found,
            [(0x1010, 3), (0x1030, 1)],
            "the last counter is beyond the text"
        );
        for senseless in [&[][..], &[16], &[16, 1], &[0, 1, 1, 1]] {
            assert_eq!(hits(&file(senseless), 0x1000).count(), 0, "{senseless:?}");
        }
        assert_eq!(
            hits(&file(&[4, 1, 1])[..9], u64::MAX).collect::<Vec<_>>(),
            []
        );
    }

    #[test]
    fn tick_is_that_of_a_kernel() {
        // CONFIG_HZ is 100 to 1000.
        assert!(
            (1_000_000..=10_000_000).contains(&tick_ns().unwrap()),
            "{:?}",
            tick_ns()
        );
    }
}

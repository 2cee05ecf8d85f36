//! A processor of the host for each machine, and one only.
//!
//! QEMU's main loop and its processor's thread are only exact together while neither meets the other half-way (see
//! `crates/tracer/src/idle.rs`, which keeps them apart where that is known to matter). Where both share a processor of
//! the host and neither preempts the other when it is woken (SCHED_BATCH), they take turns where they wait, and hardly
//! ever meet at all. A second lock on the same door: with the tracer alone one job in about a thousand still differed on
//! a host with several times more to do than it could.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

/// How many machines of ours sit on each processor.
static TAKEN: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// A seat on a processor, free again when dropped.
#[derive(Debug)]
pub(crate) struct Seat(usize);

impl Seat {
    /// Takes the processor with the fewest machines among those we may use.
    pub(crate) fn take() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let freest = processors(list).into_iter().min_by_key(|cpu| taken.get(cpu).copied().unwrap_or(0)).unwrap_or(0);
        *taken.entry(freest).or_default() += 1;
        Self(freest)
    }

    /// Returns the words that put a program there.
    pub(crate) fn words(&self) -> [String; 6] {
        ["chrt", "--batch", "0", "taskset", "--cpu-list", &self.0.to_string()].map(str::to_owned)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.0) {
            *count = count.saturating_sub(1);
        }
    }
}

/// Reads a list such as `0-1,4`.
fn processors(list: &str) -> Vec<usize> {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(4096))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Seat, processors};

    #[test]
    fn lists_are_read() {
        assert_eq!(processors("\t0-2,5"), [0, 1, 2, 5]);
        assert_eq!(processors("x"), Vec::<usize>::new());
    }

    #[test]
    fn machines_sit_apart_where_there_is_room() {
        let (one, other) = (Seat::take(), Seat::take());
        if std::thread::available_parallelism().unwrap().get() > 1 {
            assert_ne!(one.words(), other.words());
        }
    }
}

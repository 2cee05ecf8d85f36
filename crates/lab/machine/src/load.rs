//! How much a host's other work disturbed a job: what others took of the processors that the job
//! may use, and what the host of a virtual host took away, from the kernel's accounts before and
//! after.
//!
//! Only time as processes count: what interrupts took may be the job's own doing. All figures are
//! in the ticks of /proc/stat and /proc/PID/stat, of which there are a hundred per second and
//! processor, so no clock is needed.

use std::fs;

use wire::{Frame, Stream};

use crate::host::processors;

/// Names of the agent's copies (`load.rs` of the agent).
const COPIES: [&str; 2] = ["load before", "load after"];
/// Fewest ticks that say anything: a tick more or less is a twentieth then.
const TICKS_MIN: u64 = 20;
/// Fields of a processor's line in /proc/stat: user, nice, system, and what the hypervisor took.
const BUSY: [usize; 3] = [0, 1, 2];
const STEAL: usize = 7;
/// Fields after those, which are in the first two again: guest and `guest_nice`.
const FIELDS: usize = 8;
/// Fields of /proc/PID/stat after the name: a process's own time, and that of children which it
/// waited for.
const OWN: std::ops::RangeInclusive<usize> = 11..=14;

/// What disturbed a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disturbance {
    /// Share of the processors' time that other processes took.
    pub others: f64,
    /// Share that the hypervisor below the host took.
    pub steal: f64,
    /// Beyond this sum a job is to be repeated.
    pub limit: f64,
}

impl Disturbance {
    /// Returns whether a job should be repeated for it.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.others + self.steal > self.limit
    }
}

/// The accounts at one moment (ticks).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accounts {
    busy: u64,
    steal: u64,
    total: u64,
    own: u64,
}

impl Accounts {
    /// Reads the accounts of these processors, and of a process that runs there.
    pub(crate) fn of_process(id: u32, used: &[usize]) -> Self {
        Self::read(
            &read_or_empty("/proc/stat"),
            &read_or_empty(&format!("/proc/{id}/stat")),
            used,
        )
    }

    fn read(stat: &str, own: &str, used: &[usize]) -> Self {
        let mut accounts = Self {
            own: own_ticks(own),
            ..Self::default()
        };
        for line in stat.lines() {
            let Some((name, fields)) = line.split_once(' ') else {
                continue;
            };
            let number = name
                .strip_prefix("cpu")
                .and_then(|number| number.parse().ok());
            if !number.is_some_and(|number| used.contains(&number)) {
                continue;
            }
            let ticks: Vec<u64> = fields
                .split_whitespace()
                .take(FIELDS)
                .map(|field| field.parse().unwrap_or(0))
                .collect();
            let tick = |field: usize| ticks.get(field).copied().unwrap_or(0);
            accounts.busy = BUSY
                .into_iter()
                .map(tick)
                .fold(accounts.busy, u64::saturating_add);
            accounts.steal = accounts.steal.saturating_add(tick(STEAL));
            accounts.total = ticks
                .iter()
                .copied()
                .fold(accounts.total, u64::saturating_add);
        }
        accounts
    }

    /// Reads the agent's copy.
    fn from_copy(copy: &str) -> Self {
        let used = copy
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .unwrap_or_default();
        let own = copy
            .lines()
            .find_map(|line| line.strip_prefix("own "))
            .unwrap_or_default();
        Self::read(copy, own, &processors(used))
    }

    /// Returns what happened since; `None` if that was too short to say anything.
    pub(crate) fn since(&self, before: &Self, limit: f64) -> Option<Disturbance> {
        let ticks = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let total = ticks(|accounts| accounts.total);
        if total < TICKS_MIN {
            return None;
        }
        let others = ticks(|accounts| accounts.busy).saturating_sub(ticks(|accounts| accounts.own));
        let share = |ticks: u64| ticks as f64 / total as f64;
        Some(Disturbance {
            others: share(others),
            steal: share(ticks(|accounts| accounts.steal)),
            limit,
        })
    }
}

fn read_or_empty(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Takes the agent's copies out of a stream and returns what disturbed the job.
#[must_use]
pub fn take_disturbance(stream: &mut Stream, limit: f64) -> Option<Disturbance> {
    let mut copies = [const { Vec::new() }; 2];
    stream.frames.retain(|frame| match frame {
        Frame::File { name, bytes }
            if let Some(place) = COPIES.iter().position(|copy| copy == name) =>
        {
            copies[place].extend_from_slice(bytes);
            false
        }
        _ => true,
    });
    let [before, after] = copies.map(|copy| Accounts::from_copy(&String::from_utf8_lossy(&copy)));
    after.since(&before, limit)
}

fn own_ticks(stat: &str) -> u64 {
    // The name in the second field may hold anything.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    OWN.filter_map(|field| fields.get(field)?.parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{Accounts, Disturbance, take_disturbance};
    use wire::{Frame, Stream};

    /// A copy on processor 1 of two; the other one is busy.
    fn copy(user: u64, idle: u64, steal: u64, own: u64) -> String {
        format!(
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {} 0 0 0 0 0 0 0 0 0\ncpu1 {user} 1 2 {idle} 4 50 60 {steal} {user} 0\n\
             Cpus_allowed_list:\t1\nown 7 (a) b) R 1 7 7 0 -1 4 0 0 0 0 {own} 1 2 3 20 0\n",
            user * 9
        )
    }

    fn stream(before: &str, after: &str) -> Stream {
        let file = |name: &str, text: &str| Frame::File {
            name: name.into(),
            bytes: text.into(),
        };
        let half = after.len() / 2;
        let (first, second) = after.split_at(half);
        let frames = vec![
            Frame::Samples(vec![1]),
            file("load before", before),
            file("load after", first),
            file("load after", second),
        ];
        Stream { frames }
    }

    #[test]
    fn other_processes_and_steal_are_told_apart() {
        let mut stream = stream(&copy(100, 1000, 5, 40), &copy(170, 1020, 15, 90));
        let disturbance = take_disturbance(&mut stream, 0.25).unwrap();
        assert_eq!(
            disturbance,
            Disturbance {
                others: 0.2,
                steal: 0.1,
                limit: 0.25
            }
        );
        assert!(disturbance.is_beyond());
        assert_eq!(
            stream.frames,
            [Frame::Samples(vec![1])],
            "the copies are for the machine only"
        );
    }

    #[test]
    fn own_time_is_no_disturbance() {
        let mut quiet = stream(&copy(100, 1000, 5, 40), &copy(200, 1000, 5, 141));
        let disturbance = take_disturbance(&mut quiet, 0.1).unwrap();
        assert_eq!((disturbance.others, disturbance.steal), (0.0, 0.0));
        assert!(!disturbance.is_beyond());
    }

    #[test]
    fn short_or_missing_accounts_say_nothing() {
        assert_eq!(
            take_disturbance(&mut stream(&copy(100, 0, 0, 0), &copy(119, 0, 0, 0)), 0.1),
            None
        );
        assert_eq!(take_disturbance(&mut Stream::default(), 0.1), None);
        assert_eq!(
            take_disturbance(
                &mut stream("cpu1", "own x\ncpu1 18446744073709551615\ncpu1 1"),
                0.1
            ),
            None
        );
    }

    #[test]
    fn busy_loop_on_this_host_is_noticed() {
        let used = crate::host::allowed_processors();
        let begun = Accounts::of_process(std::process::id(), &used);
        // Until the kernel has counted thirty ticks of this very process.
        while Accounts::of_process(std::process::id(), &used).own < begun.own + 30 {}
        let ended = Accounts::of_process(std::process::id(), &used);
        assert!(ended.since(&begun, 0.1).is_some());
        assert!(ended.busy >= begun.busy + 25, "{begun:?} {ended:?}");
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(text: String, ticks: [u64; 3]) {
            let before = Accounts::from_copy(&text);
            let after = Accounts::from_copy(&copy(1, ticks[0], ticks[1], ticks[2]));
            let _disturbances = [after.since(&before, 0.1), before.since(&after, 0.1)];
        }
    }
}

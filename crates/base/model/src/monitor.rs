//! Monitors: kernel files that the agent copies while a workload runs, and the counters in the
//! copies.
//!
//! Marvin stores whole copies and parses them when a report asks (`ingest`), so that newly known
//! counters are found in old runs too. `monitors::counter_dictionary` says what counters mean and
//! which can be compared.

use std::collections::BTreeMap;

/// A file that monitors copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MonitorFile {
    /// Events and states of memory management.
    Vmstat,
    /// Time of processors, in ticks of 10 ms, and counts of the whole machine.
    Stat,
    /// Memory by use, in KiB.
    Meminfo,
    /// Counters of zones and nodes.
    Zoneinfo,
    /// Free blocks by order.
    Buddyinfo,
    /// Requests to block devices.
    Diskstats,
    /// Caches of the slab allocator.
    Slabinfo,
    /// Counters of the scheduler for each processor.
    Schedstat,
    /// Interrupts by line and processor.
    Interrupts,
    /// Softirqs by kind and processor.
    Softirqs,
    /// Stalls due to CPU contention.
    PressureCpu,
    /// Stalls on block devices.
    PressureIo,
    /// Stalls due to lack of memory.
    PressureMemory,
    /// Time in which tasks waited for interrupts.
    PressureIrq,
    /// Bytes and packets of network devices.
    NetDev,
    /// Counts of the network protocols.
    NetSnmp,
    /// More counts of the network protocols.
    NetNetstat,
    /// A thread: faults, times, state.
    ThreadStat,
    /// A thread: time on a processor and time of waiting for one.
    ThreadSchedstat,
    /// A process: memory by kind.
    Status,
}

/// Files with one fixed path.
const PATHS: [(MonitorFile, &str); 17] = [
    (MonitorFile::Vmstat, "/proc/vmstat"),
    (MonitorFile::Stat, "/proc/stat"),
    (MonitorFile::Meminfo, "/proc/meminfo"),
    (MonitorFile::Zoneinfo, "/proc/zoneinfo"),
    (MonitorFile::Buddyinfo, "/proc/buddyinfo"),
    (MonitorFile::Diskstats, "/proc/diskstats"),
    (MonitorFile::Slabinfo, "/proc/slabinfo"),
    (MonitorFile::Schedstat, "/proc/schedstat"),
    (MonitorFile::Interrupts, "/proc/interrupts"),
    (MonitorFile::Softirqs, "/proc/softirqs"),
    (MonitorFile::PressureCpu, "/proc/pressure/cpu"),
    (MonitorFile::PressureIo, "/proc/pressure/io"),
    (MonitorFile::PressureMemory, "/proc/pressure/memory"),
    (MonitorFile::PressureIrq, "/proc/pressure/irq"),
    (MonitorFile::NetDev, "/proc/net/dev"),
    (MonitorFile::NetSnmp, "/proc/net/snmp"),
    (MonitorFile::NetNetstat, "/proc/net/netstat"),
];

impl MonitorFile {
    /// Returns the file for a path, including `/proc/45/stat` and `/proc/45/task/46/schedstat`;
    /// `None` if no monitor copies it.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        if let Some((file, _)) = PATHS.iter().find(|(_, fixed)| *fixed == path) {
            return Some(*file);
        }
        thread_of(path)?;
        match path.rsplit('/').next()? {
            "stat" => Some(Self::ThreadStat),
            "schedstat" => Some(Self::ThreadSchedstat),
            "status" => Some(Self::Status),
            _ => None,
        }
    }

    /// Returns the path; `None` for files of threads, which have many.
    #[must_use]
    pub fn path(self) -> Option<&'static str> {
        PATHS
            .iter()
            .find(|(file, _)| *file == self)
            .map(|(_, path)| *path)
    }
}

/// Returns the thread id in a path of /proc: `46` in `/proc/45/task/46/stat`.
#[must_use]
pub fn thread_of(path: &str) -> Option<u32> {
    let mut parts = path.strip_prefix("/proc/")?.split('/');
    let process = parts.next()?.parse().ok()?;
    match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        ("task", Some(thread), Some(_), None) => thread.parse().ok(),
        (_, None, None, None) => Some(process),
        _ => None,
    }
}

/// When a copy was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Right before the workload.
    Start,
    /// A copy while the workload ran.
    Interval,
    /// The copy right after the workload.
    End,
}

/// A monitor's copy of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorCopy {
    /// The file's path in the guest.
    pub path: String,
    /// The machine's clock before it was read, in ns.
    pub begun_ns: u64,
    /// The machine's clock after it was read, in ns.
    pub ended_ns: u64,
    /// When the copy was made, against the workload.
    pub phase: Phase,
    /// The file's content.
    pub bytes: Vec<u8>,
}

/// Counters by kernel name, including unknown ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Returns the value of a counter, if the kernel has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.get(key).copied()
    }

    /// Sets a counter; the last value of a key counts.
    pub fn put(&mut self, key: &str, value: u64) {
        self.0.insert(key.to_owned(), value);
    }

    /// Returns all of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(key, value)| (key.as_str(), *value))
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the growth of each counter since an earlier copy. It omits counters that fell,
    /// because they were reset, wrapped or are no counters, and counters in only one of the
    /// copies.
    #[must_use]
    pub fn since(&self, start: &Self) -> Self {
        let grew =
            |(key, end): (&String, &u64)| Some((key.clone(), end.checked_sub(start.get(key)?)?));
        Self(self.0.iter().filter_map(grew).collect())
    }
}

impl FromIterator<(String, u64)> for Counters {
    fn from_iter<T: IntoIterator<Item = (String, u64)>>(counters: T) -> Self {
        Self(counters.into_iter().collect())
    }
}

/// The content of a copy: counters in groups, such as one per disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    groups: BTreeMap<String, Counters>,
    /// Lines that are invalid or beyond the limit.
    pub unread_lines: usize,
}

impl Reading {
    /// The group of counters of the whole machine.
    pub const WHOLE: &'static str = "all";

    /// Sets a counter of a group.
    pub fn put(&mut self, group: &str, key: &str, value: u64) {
        match self.groups.get_mut(group) {
            Some(counters) => counters.put(key, value),
            None => self
                .groups
                .entry(group.to_owned())
                .or_default()
                .put(key, value),
        }
    }

    /// Returns the counters of a group: a device, a zone, a cache.
    #[must_use]
    pub fn group(&self, group: &str) -> Option<&Counters> {
        self.groups.get(group)
    }

    /// Returns the counters of the whole machine.
    #[must_use]
    pub fn whole(&self) -> Option<&Counters> {
        self.group(Self::WHOLE)
    }

    /// Returns all groups, by name.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &Counters)> {
        self.groups
            .iter()
            .map(|(name, counters)| (name.as_str(), counters))
    }

    /// Returns how many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// The content of a copy, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedReading {
    /// The file that was copied.
    pub file: MonitorFile,
    /// The machine's clock, in ns: the middle of the copying.
    pub at_ns: u64,
    /// When the copy was made, against the workload.
    pub phase: Phase,
    /// The counters that the copy has.
    pub reading: Reading,
}

/// All that monitors saw of one workload in one run, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// All copies, in time order for each file.
    pub readings: Vec<TimedReading>,
}

impl Observation {
    /// Returns the readings of a file in the order of time.
    pub fn copies_of(&self, file: MonitorFile) -> impl Iterator<Item = &TimedReading> {
        self.readings.iter().filter(move |timed| timed.file == file)
    }

    /// Returns the first and the last reading of a file that has two at least.
    #[must_use]
    pub fn ends(&self, file: MonitorFile) -> Option<(&TimedReading, &TimedReading)> {
        let first = self.copies_of(file).next()?;
        let last = self.copies_of(file).last()?;
        (last.at_ns > first.at_ns).then_some((first, last))
    }

    /// Returns by how much a group's counters grew from the first to the last reading of a file
    /// that has the group: files of threads are many, and disks come and go.
    #[must_use]
    pub fn growth(&self, file: MonitorFile, group: &str) -> Option<Counters> {
        let mut having = self
            .copies_of(file)
            .filter(|timed| timed.reading.group(group).is_some());
        let first = having.next()?;
        let last = having.last().filter(|last| last.at_ns > first.at_ns)?;
        Some(
            last.reading
                .group(group)?
                .since(first.reading.group(group)?),
        )
    }

    /// Returns the seconds from the first reading of a file to its last.
    #[must_use]
    pub fn seconds(&self, file: MonitorFile) -> Option<f64> {
        let (first, last) = self.ends(file)?;
        Some((last.at_ns - first.at_ns) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Counters, MonitorFile, Observation, PATHS, Phase, Reading, TimedReading, thread_of,
    };

    fn counters(of: &[(&str, u64)]) -> Counters {
        of.iter()
            .map(|(key, value)| ((*key).to_owned(), *value))
            .collect()
    }

    #[test]
    fn a_path_and_its_file_are_one() {
        for (file, path) in PATHS {
            assert_eq!(
                (MonitorFile::of_path(path), file.path()),
                (Some(file), Some(path))
            );
        }
        assert_eq!(
            MonitorFile::of_path("/proc/45/stat"),
            Some(MonitorFile::ThreadStat)
        );
        assert_eq!(
            MonitorFile::of_path("/proc/45/task/46/schedstat"),
            Some(MonitorFile::ThreadSchedstat)
        );
        assert_eq!(
            MonitorFile::of_path("/proc/1/status"),
            Some(MonitorFile::Status)
        );
        assert_eq!(
            (
                thread_of("/proc/45/stat"),
                thread_of("/proc/45/task/46/stat")
            ),
            (Some(45), Some(46))
        );
        for other in [
            "",
            "/proc/45",
            "/proc/45/mem",
            "/proc/x/stat",
            "/proc/1/task/2/3/stat",
            "/etc/stat",
            "/proc/-1/stat",
        ] {
            assert_eq!(MonitorFile::of_path(other), None, "{other}");
        }
    }

    #[test]
    fn growth_omits_falling_and_one_sided_counters() {
        let grew = counters(&[("a", 7), ("fell", 1), ("new", 1)]).since(&counters(&[
            ("a", 5),
            ("fell", 2),
            ("old", 1),
        ]));
        assert_eq!(grew, counters(&[("a", 2)]));
    }

    #[test]
    fn growth_of_one_reading_is_none() {
        let at = |at_ns, value| {
            let mut reading = Reading::default();
            reading.put(Reading::WHOLE, "pgfault", value);
            TimedReading {
                file: MonitorFile::Vmstat,
                at_ns,
                phase: Phase::Interval,
                reading,
            }
        };
        let seen = |readings: Vec<TimedReading>| Observation { readings };
        let growth = |o: &Observation| {
            o.growth(MonitorFile::Vmstat, Reading::WHOLE)
                .and_then(|c| c.get("pgfault"))
        };
        let two = seen(vec![at(1_000_000_000, 5), at(3_500_000_000, 9)]);
        assert_eq!(
            (growth(&two), two.seconds(MonitorFile::Vmstat)),
            (Some(4), Some(2.5))
        );
        let mut other = at(9_000_000_000, 0);
        other.reading = Reading::default();
        let two = seen(vec![
            two.readings[0].clone(),
            two.readings[1].clone(),
            other,
        ]);
        assert_eq!(growth(&two), Some(4));
        for none in [
            seen(vec![]),
            seen(vec![at(1, 5)]),
            seen(vec![at(1, 5), at(1, 9)]),
        ] {
            assert_eq!(
                (growth(&none), none.seconds(MonitorFile::Vmstat)),
                (None, None)
            );
        }
    }
}

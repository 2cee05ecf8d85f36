//! Parses copies of the kernel's counters: /proc/vmstat, diskstats and others, from 2.5 to 6.18.
//!
//! Total: any bytes give a reading, which counts its invalid lines. Keys keep the kernel's names,
//! known or not; columns without a name get that of the kernel's documentation, and `fieldN` beyond
//! it. `monitors` interprets the counters.

mod devices;
mod memory;
mod processors;
mod words;

use model::{MonitorCopy, MonitorFile, Observation, Phase, Reading, TimedReading, thread_of};
use wire::{Frame, Stream};

/// Limit of a copy, in bytes: /proc/interrupts with some thousand processors is smaller.
const BYTES_MAX: usize = 16 << 20;
/// Most counters of a copy.
const COUNTERS_MAX: usize = 200_000;
/// Longest name of a counter or a group, in bytes.
const NAME_MAX: usize = 96;

/// Returns the copies in a job's stream, in order. The agent names them `PHASE BEGUN ENDED PATH`.
#[must_use]
pub fn copies(stream: &Stream) -> Vec<MonitorCopy> {
    let mut all: Vec<MonitorCopy> = Vec::new();
    let mut last = "";
    for frame in &stream.frames {
        let Frame::File { name, bytes } = frame else {
            continue;
        };
        match all.last_mut().filter(|_| last == name) {
            // The next piece of the same copy.
            Some(copy) => copy.bytes.extend(
                bytes
                    .iter()
                    .take(BYTES_MAX.saturating_sub(copy.bytes.len())),
            ),
            None => all.extend(copy(name, bytes)),
        }
        last = name;
    }
    all
}

fn copy(name: &str, bytes: &[u8]) -> Option<MonitorCopy> {
    let mut columns = name.splitn(4, ' ');
    let phase = match columns.next()? {
        "start" => Phase::Start,
        "interval" => Phase::Interval,
        "end" => Phase::End,
        _ => return None,
    };
    let begun_ns = columns.next()?.parse().ok()?;
    let ended_ns = columns.next()?.parse().ok()?;
    Some(MonitorCopy {
        path: columns.next()?.to_owned(),
        begun_ns,
        ended_ns,
        phase,
        bytes: bytes.to_vec(),
    })
}

/// Parses copies; skips files that no monitor reads.
#[must_use]
pub fn observation(copies: &[MonitorCopy]) -> Observation {
    let timed = |copy: &MonitorCopy| {
        Some(TimedReading {
            file: MonitorFile::of_path(&copy.path)?,
            at_ns: copy.begun_ns.midpoint(copy.ended_ns),
            phase: copy.phase,
            reading: reading(&copy.path, &copy.bytes)?,
        })
    };
    let mut readings: Vec<TimedReading> = copies.iter().filter_map(timed).collect();
    readings.sort_by_key(|timed| timed.at_ns);
    Observation { readings }
}

/// Parses a copy of the file at `path`; `None` for a file that no monitor reads.
#[must_use]
pub fn reading(path: &str, bytes: &[u8]) -> Option<Reading> {
    let file = MonitorFile::of_path(path)?;
    let text = String::from_utf8_lossy(bytes.get(..BYTES_MAX).unwrap_or(bytes));
    let thread = thread_of(path).unwrap_or_default().to_string();
    let mut taken = Taken::default();
    match file {
        MonitorFile::Vmstat => words::pairs(&text, &mut taken),
        MonitorFile::Meminfo => words::fields(&text, Reading::WHOLE, &mut taken),
        MonitorFile::Status => words::fields(&text, &thread, &mut taken),
        MonitorFile::PressureCpu
        | MonitorFile::PressureIo
        | MonitorFile::PressureMemory
        | MonitorFile::PressureIrq => {
            words::pressure(&text, &mut taken);
        }
        MonitorFile::Stat => processors::stat(&text, &mut taken),
        MonitorFile::Schedstat => processors::schedstat(&text, &mut taken),
        MonitorFile::Interrupts | MonitorFile::Softirqs => {
            processors::interrupts(&text, &mut taken);
        }
        MonitorFile::ThreadStat => processors::thread(&text, &mut taken),
        MonitorFile::ThreadSchedstat => processors::thread_schedstat(&text, &thread, &mut taken),
        MonitorFile::Zoneinfo => memory::zoneinfo(&text, &mut taken),
        MonitorFile::Buddyinfo => memory::buddyinfo(&text, &mut taken),
        MonitorFile::Slabinfo => memory::slabinfo(&text, &mut taken),
        MonitorFile::Diskstats => devices::diskstats(&text, &mut taken),
        MonitorFile::NetDev => devices::net_dev(&text, &mut taken),
        MonitorFile::NetSnmp | MonitorFile::NetNetstat => devices::protocols(&text, &mut taken),
    }
    Some(taken.reading)
}

/// A reading while it is collected, within limits.
#[derive(Debug, Default)]
struct Taken {
    reading: Reading,
    counters: usize,
}

impl Taken {
    /// Sets a counter; one beyond the limit, or with an impossible name, counts as an invalid line.
    fn put(&mut self, group: &str, key: &str, value: u64) {
        if self.counters >= COUNTERS_MAX || !is_valid_name(group) || !is_valid_name(key) {
            return self.unread();
        }
        self.counters += 1;
        self.reading.put(group, key, value);
    }

    /// Sets the counters of a row with known names; further columns are named by position, from 1.
    fn put_row(&mut self, group: &str, names: &[&str], values: &[u64]) {
        for (place, value) in values.iter().enumerate() {
            match names.get(place) {
                Some(name) => self.put(group, name, *value),
                None => self.put(group, &format!("field{}", place + 1), *value),
            }
        }
    }

    /// Counts an invalid line.
    fn unread(&mut self) {
        self.reading.unread_lines += 1;
    }
}

fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && !name.chars().any(char::is_control)
}

/// Returns all words as numbers, if all are numbers.
fn numbers<'a>(columns: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    columns.map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests;

//! The system calls of a program that mostly waits, each of them, by the kernel's tracepoints: samples
//! of its few moments on a processor tell nothing.
//!
//! Tracepoints cost each call some hundred nanoseconds, so that a program that works has none.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use explain::facts::{Traced, TracedCall};
use perf_event::data::Record;
use perf_event::events::Tracepoint;
use perf_event::{Builder, SampleFlag, Sampler};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::arguments::path;
use crate::calls;

/// Where the kernel tells the numbers of tracepoints.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// How long it has to wait until they are attached (s), and the most that it may run meanwhile, of the
/// time.
const WAITING_S: f64 = 0.6;
const WORK: f64 = 0.1;
/// Threads that are traced, and events for them and the processors.
const THREADS_MAX: usize = 32;
const EVENTS_MAX: usize = 256;
/// The ring buffer of an event (bytes), and records of a round from which on it is no program that
/// waits.
const BUFFER: usize = 64 << 10;
const RECORDS_MAX: u64 = 4096;
/// Where records have the call's number, its arguments and its result
/// (events/raw_syscalls/{sys_enter,sys_exit}/format).
const NUMBER: usize = 8;
const ARGUMENTS: usize = 16;
const RESULT: usize = 16;
/// Paths that are looked up, and how many are kept of a call.
const LOOKED_UP: u32 = 500;
const KEPT: usize = 64;
/// The largest number of an error (`MAX_ERRNO`).
const ERROR_MAX: i64 = 4095;

/// What is known of the calls of a number.
#[derive(Debug, Default)]
struct Counted {
    count: u64,
    errors: BTreeMap<i64, u64>,
    files: BTreeMap<String, u64>,
}

/// Whether calls are traced.
#[derive(Default)]
enum State {
    #[default]
    NotYet,
    On(Vec<(bool, Sampler)>),
    /// They cannot be, or are no longer.
    Off,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::NotYet => "NotYet",
            Self::On(_) => "On",
            Self::Off => "Off",
        })
    }
}

/// The traced calls of a program.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    state: State,
    /// Since when it waits, and how long it had run by then (s).
    waits_since_s: f64,
    had_run_s: f64,
    /// Since when it is traced, and until when (s).
    since_s: f64,
    until_s: f64,
    calls: BTreeMap<u64, Counted>,
    looked_up: u32,
}

impl Tracing {
    /// Begins to trace a program that mostly waited so far, or takes what the buffers have.
    pub(crate) fn look(&mut self, now_s: f64, ran_s: f64, threads: &[u32], processors: usize) {
        if matches!(self.state, State::NotYet) {
            let seconds = now_s - self.waits_since_s;
            if seconds < WAITING_S {
                return;
            }
            let has_waited = ran_s - self.had_run_s < WORK * seconds;
            if has_waited && cfg!(target_arch = "x86_64") {
                self.state = open(threads, processors).map_or(State::Off, State::On);
            }
            (self.waits_since_s, self.had_run_s, self.since_s) = (now_s, ran_s, now_s);
        }
        self.until_s = now_s;
        self.drain();
    }

    fn drain(&mut self) {
        let State::On(samplers) = &mut self.state else {
            return;
        };
        let mut taken = Vec::new();
        let mut lost = 0;
        for (is_entry, sampler) in samplers {
            while let Some(record) = sampler.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => {
                        let process = sample.pid().unwrap_or_default();
                        let raw = sample.raw().unwrap_or_default().to_vec();
                        taken.push((*is_entry, process, raw));
                    }
                    Ok(Record::Lost(record)) => lost += record.lost,
                    _ => {}
                }
            }
        }
        let is_busy = taken.len() as u64 + lost > RECORDS_MAX;
        for (is_entry, process, raw) in taken {
            self.count(is_entry, process, &raw);
        }
        if is_busy {
            self.state = State::Off;
        }
    }

    fn count(&mut self, is_entry: bool, process: u32, raw: &[u8]) {
        let word = |at: usize| {
            let bytes = raw.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let Some(number) = word(NUMBER) else { return };
        let counted = self.calls.entry(number).or_default();
        if !is_entry {
            let result = word(RESULT).unwrap_or_default().cast_signed();
            counted.count += 1;
            if (-ERROR_MAX..0).contains(&result) {
                *counted.errors.entry(-result).or_default() += 1;
            }
            return;
        }
        let Some(argument) = calls::path_argument(number).filter(|_| self.looked_up < LOOKED_UP)
        else {
            return;
        };
        self.looked_up += 1;
        let path = word(ARGUMENTS + 8 * argument).and_then(|at| path(process, at, 0, &[]));
        if let Some(path) = path
            && counted.files.len() < KEPT
        {
            *counted.files.entry(path).or_default() += 1;
        }
    }

    /// Returns the calls, most frequent first; `None` if they were not traced.
    pub(crate) fn finish(self) -> Option<Traced> {
        let seconds = self.until_s - self.since_s;
        if !matches!(self.state, State::On(_)) || seconds <= 0.0 {
            return None;
        }
        let most = |counts: &BTreeMap<String, u64>| {
            let most = counts.iter().max_by_key(|(_, count)| **count);
            most.map(|(file, _)| file.clone()).unwrap_or_default()
        };
        let call = |(number, counted): (&u64, &Counted)| {
            let error = counted.errors.iter().max_by_key(|(_, count)| **count);
            TracedCall {
                call: calls::name(*number),
                count: counted.count,
                failed: error.map_or(0, |(_, count)| *count),
                error: error.map_or(0, |(error, _)| *error),
                file: most(&counted.files),
            }
        };
        let mut calls: Vec<TracedCall> = self.calls.iter().map(call).collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.count));
        Some(Traced { seconds, calls })
    }
}

/// Opens the tracepoints for threads and what they create from now on; whether they are of entries
/// stands beside them.
fn open(threads: &[u32], processors: usize) -> io::Result<Vec<(bool, Sampler)>> {
    if threads.len() > THREADS_MAX || 2 * threads.len() * processors > EVENTS_MAX {
        return Err(io::Error::other("too many threads"));
    }
    let mut samplers = Vec::new();
    for (is_entry, name) in [(true, "sys_enter"), (false, "sys_exit")] {
        let number = number(name)?;
        for thread in threads {
            for processor in 0..processors {
                let mut builder = Builder::new(Tracepoint::with_id(number));
                builder
                    .observe_pid(i32::try_from(*thread).unwrap_or(i32::MAX))
                    .one_cpu(processor)
                    .inherit(true)
                    .enabled(true)
                    // They are in the kernel.
                    .exclude_kernel(false)
                    .sample(SampleFlag::TID)
                    .sample(SampleFlag::RAW)
                    .sample_period(1);
                // A thread that ended has none.
                if let Ok(counter) = builder.build() {
                    samplers.push((is_entry, counter.sampled(BUFFER)?));
                }
            }
        }
    }
    Ok(samplers)
}

/// Returns the number of a tracepoint.
fn number(name: &str) -> io::Result<u64> {
    let file = format!("events/raw_syscalls/{name}/id");
    for folder in FOLDERS {
        if let Ok(text) = fs::read_to_string(format!("{folder}/{file}")) {
            return text.trim().parse().map_err(io::Error::other);
        }
    }
    let mut text = String::new();
    let file = openat(mount()?, &*file, OFlags::CLOEXEC, Mode::empty())?;
    fs::File::from(file).read_to_string(&mut text)?;
    text.trim().parse().map_err(io::Error::other)
}

/// Mounts tracefs where nothing else sees it, on hosts that have it nowhere; it ends with its
/// descriptor.
fn mount() -> io::Result<OwnedFd> {
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mount = fsmount(&filesystem, flags, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    Ok(mount)
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped check says why")]
mod tests {
    use super::*;

    #[test]
    fn tracepoint_is_found_without_mounted_tracefs() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root may mount tracefs");
            return;
        }
        match mount() {
            Ok(mount) => {
                let format = "events/raw_syscalls/sys_enter/format";
                assert!(openat(&mount, format, OFlags::CLOEXEC, Mode::empty()).is_ok());
                assert!(number("sys_enter").is_ok_and(|number| number > 0));
            }
            Err(error) => println!("skipped: this host has no tracefs ({error})"),
        }
    }

    #[test]
    fn records_are_counted_with_their_errors() {
        let record = |number: u64, word: i64| {
            let mut raw = vec![0; 8];
            raw.extend(number.to_le_bytes());
            raw.extend(word.to_le_bytes());
            raw
        };
        let mut tracing = Tracing {
            state: State::On(Vec::new()),
            until_s: 2.0,
            ..Tracing::default()
        };
        for result in [-17, -17, 0] {
            tracing.count(false, 1, &record(83, result));
        }
        // One that is cut off counts for nothing.
        tracing.count(false, 1, &[0; 9]);
        let traced = tracing.finish().unwrap();
        let expected = TracedCall {
            call: "mkdir".into(),
            count: 3,
            failed: 2,
            error: 17,
            file: String::new(),
        };
        assert_eq!((traced.seconds, traced.calls), (2.0, vec![expected]));
    }
}

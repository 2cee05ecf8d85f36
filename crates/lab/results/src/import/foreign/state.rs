//! Files that MMTests writes around its tests: `tests-timestamp`, `tests-sysstate` (copies of files
//! of /proc at the start and the end of each test), and `MONITOR-TEST` (copies of one such file,
//! each after a line `time: SECONDS`).
//!
//! Before 2018 the copies were in `tests-timestamp`; the lines are the same.

use model::{MonitorCopy, MonitorFile, Phase, UnixTime};

use super::mmtests::Durations;
use super::{Foreign, LeftOut, RUN_VALUES_MAX, Rows, TESTS_MAX, lines, shown};

/// Most copies of one monitor's file.
const COPIES_MAX: usize = 10_000;
/// Nanoseconds of a second.
const NS: u64 = 1_000_000_000;

/// Monitors of MMTests that copy a file of /proc unchanged, and the file.
const COPIED: [(&str, &str); 9] = [
    ("proc-vmstat", "/proc/vmstat"),
    ("proc-zoneinfo", "/proc/zoneinfo"),
    ("proc-meminfo", "/proc/meminfo"),
    ("proc-buddyinfo", "/proc/buddyinfo"),
    ("proc-stat", "/proc/stat"),
    ("proc-interrupts", "/proc/interrupts"),
    ("proc-schedstat", "/proc/schedstat"),
    ("proc-net-dev", "/proc/net/dev"),
    ("slabinfo", "/proc/slabinfo"),
];

/// Returns the file of /proc that a monitor copies.
pub(super) fn find_copied(monitor: &str) -> Option<&'static str> {
    COPIED
        .iter()
        .find(|(name, _)| *name == monitor)
        .map(|(_, path)| *path)
}

#[derive(Debug, Default)]
struct Test {
    name: String,
    begun: u64,
    started: Vec<MonitorCopy>,
    ended: Vec<MonitorCopy>,
    /// The current copy is from the end of the test.
    at_end: bool,
    copying: bool,
}

/// Parses one of both files; takes durations only from `tests-timestamp`, so that each counts once.
pub(super) fn tests(text: &str, foreign: &mut Foreign, durations: Option<&mut Durations>) {
    let mut test = Test::default();
    let mut durations = durations;
    let mut begun = 0;
    for line in lines(text) {
        if let Some(rest) = line.strip_prefix("start :: ") {
            let started = rest.trim().parse().ok().map(UnixTime::new);
            foreign.started_unix = foreign.started_unix.or(started);
        } else if let Some(rest) = line.strip_prefix("test begin :: ") {
            close(&mut test, None, foreign);
            begun += 1;
            if begun > TESTS_MAX {
                let name = if durations.is_some() {
                    "tests-timestamp"
                } else {
                    "tests-sysstate"
                };
                foreign.left_out.push(LeftOut::new(
                    name,
                    format!("tests beyond the first {TESTS_MAX} not read"),
                ));
                return;
            }
            let (name, begun) = rest.trim().rsplit_once(' ').unwrap_or((rest.trim(), "0"));
            test = Test {
                name: name.to_owned(),
                begun: begun.parse().unwrap_or_default(),
                ..Test::default()
            };
        } else if let Some(rest) = line.strip_prefix("test end :: ") {
            end(rest, &mut test, foreign, durations.is_some());
        } else if let (Some(rest), Some(rows)) =
            (line.strip_prefix("time :: "), durations.as_deref_mut())
        {
            time(rest, rows);
        } else if let Some((path, at_end)) = file(line) {
            begin_copy(path, at_end, &mut test);
        } else if test.copying && !line.contains(" :: ") {
            let copies = if test.at_end {
                &mut test.ended
            } else {
                &mut test.started
            };
            if let Some(copy) = copies.last_mut() {
                copy.bytes.extend(line.as_bytes());
                copy.bytes.push(b'\n');
            }
        }
    }
    close(&mut test, None, foreign);
}

/// Returns the path and whether it is the end, of `file start :: /proc/vmstat`.
fn file(line: &str) -> Option<(&str, bool)> {
    let rest = line.strip_prefix("file ")?;
    let start = rest.strip_prefix("start :: ").map(|path| (path, false));
    start
        .or_else(|| rest.strip_prefix("end :: ").map(|path| (path, true)))
        .map(|(path, end)| (path.trim(), end))
}

fn begin_copy(path: &str, at_end: bool, test: &mut Test) {
    test.at_end = at_end;
    let known = MonitorFile::of_path(path).is_some();
    let (copies, phase) = if at_end {
        (&mut test.ended, Phase::End)
    } else {
        (&mut test.started, Phase::Start)
    };
    // Old versions append meminfo once more, without a line before it.
    test.copying = known && !test.name.is_empty() && copies.iter().all(|copy| copy.path != path);
    if test.copying {
        let begun_ns = 0;
        let ended_ns = 0;
        copies.push(MonitorCopy {
            path: path.to_owned(),
            begun_ns,
            ended_ns,
            phase,
            bytes: Vec::new(),
        });
    }
}

/// Parses `TEST SECONDS CODE`; old versions have no code. Only one of the two files reports that a
/// test failed.
fn end(rest: &str, test: &mut Test, foreign: &mut Foreign, tell: bool) {
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let (Some(name), Some(seconds)) = (
        fields.first(),
        fields.get(1).and_then(|word| word.parse().ok()),
    ) else {
        return;
    };
    if let (Some(code), true) = (fields.get(2).filter(|code| **code != "0"), tell) {
        foreign.left_out.push(LeftOut::new(
            name,
            format!("ended with exit code {}", shown(code)),
        ));
    }
    if *name == test.name {
        close(test, Some(seconds), foreign);
    }
}

/// Adds the copies of a test. Without an end there is no growth.
fn close(test: &mut Test, ended: Option<u64>, foreign: &mut Foreign) {
    let done = std::mem::take(test);
    if done.name.is_empty() {
        return;
    }
    let Some(ended) = ended else {
        foreign.left_out.push(LeftOut::new(
            &done.name,
            "it began and has no `test end`: it was cut short",
        ));
        return;
    };
    let at = |copies: Vec<MonitorCopy>, seconds: u64| {
        let ns = seconds.saturating_mul(NS);
        copies.into_iter().map(move |copy| MonitorCopy {
            begun_ns: ns,
            ended_ns: ns,
            ..copy
        })
    };
    if !done.started.is_empty() && !done.ended.is_empty() {
        let copies = at(done.started, done.begun).chain(at(done.ended, ended));
        foreign
            .monitors
            .entry(done.name)
            .or_default()
            .extend(copies);
    }
}

/// Parses `TEST 1.2 user 0.3 system 4.5 elapsed`.
fn time(rest: &str, durations: &mut Durations) {
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let [test, user, "user", system, "system", elapsed, "elapsed", ..] = fields.as_slice() else {
        return;
    };
    if durations.len() >= TESTS_MAX && !durations.contains_key(*test) {
        return;
    }
    let rows = durations
        .entry((*test).to_owned())
        .or_insert_with(|| Rows::new(test, RUN_VALUES_MAX));
    for (row, value) in [
        ("duration-user", user),
        ("duration-system", system),
        ("duration-elapsed", elapsed),
    ] {
        rows.put(row, value, "tests-timestamp");
    }
}

/// Parses copies of one file, each after `time: SECONDS`.
pub(super) fn monitor(path: &str, text: &str) -> Vec<MonitorCopy> {
    let mut copies: Vec<MonitorCopy> = Vec::new();
    for line in lines(text) {
        if let Some(seconds) = line
            .strip_prefix("time: ")
            .and_then(|seconds| seconds.trim().parse::<u64>().ok())
        {
            if copies.len() >= COPIES_MAX {
                break;
            }
            let ns = seconds.saturating_mul(NS);
            let phase = Phase::Interval;
            copies.push(MonitorCopy {
                path: path.to_owned(),
                begun_ns: ns,
                ended_ns: ns,
                phase,
                bytes: Vec::new(),
            });
        } else if let Some(copy) = copies.last_mut() {
            copy.bytes.extend(line.as_bytes());
            copy.bytes.push(b'\n');
        }
    }
    copies
}

/// Returns whether a file beside the tests belongs to a monitor that copies a file of /proc.
pub(super) fn is_copied(name: &str) -> bool {
    COPIED.iter().any(|(monitor, _)| {
        name.strip_prefix(monitor)
            .is_some_and(|rest| rest.starts_with('-'))
    })
}

//! One iteration of a run of MMTests: the files below `work/log/RUNNAME/iter-N`, `TEST/logs/…` and
//! those beside them.

use std::collections::BTreeMap;

use config::{Format, ResultFile, read_as};
use model::{Declared, IMPORTED_MARGIN_PERCENT};

use super::readers::{Log, reader};
use super::{Foreign, LeftOut, MONITORS_MAX, RUN_VALUES_MAX, Rows, TESTS_MAX, lines, shown, state};

/// Files beside the tests that the parser reads.
const NOTES: [&str; 6] = [
    "tests-timestamp",
    "tests-sysstate",
    "kernel.version",
    "lscpu",
    "lscpu.txt",
    "numactl.txt",
];

/// Files of a run, by test.
type Tests<'a> = BTreeMap<&'a str, Vec<usize>>;

/// Durations of tests, by test.
pub(super) type Durations = BTreeMap<String, Rows>;

/// Parses an iteration of a run of MMTests.
///
/// `paths` are those below the run's directory, parts separated by `/`, without the suffix of a
/// compression. `formats` read the tests that have no reader here. `open` reads the file of a path, or says why it cannot; only files with results are
/// opened, each once.
pub fn mmtests(
    paths: &[String],
    formats: &[Format],
    open: &mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
) -> Foreign {
    let mut run = Iteration {
        paths,
        formats,
        open,
        foreign: Foreign::default(),
        monitors: 0,
        numactl: String::new(),
    };
    let mut sorted: Vec<usize> = (0..paths.len()).collect();
    sorted.sort_by_cached_key(|file| natural(&paths[*file]));
    let mut tests = Tests::new();
    let mut beside = Vec::new();
    for file in sorted {
        match paths[file].split_once('/') {
            Some((test, _)) => tests.entry(test).or_default().push(file),
            None => beside.push(file),
        }
    }
    let mut durations = Durations::new();
    run.beside(&beside, &tests, &mut durations);
    let mut most = RUN_VALUES_MAX;
    for (number, (test, own)) in tests.iter().enumerate() {
        if number >= TESTS_MAX {
            let why = format!(
                "tests beyond the first {TESTS_MAX}: {} not read",
                tests.len() - TESTS_MAX
            );
            run.foreign.left_out.push(LeftOut::new(test, why));
            break;
        }
        let rows = run.logs(test, own, most);
        most -= rows.seen.min(most);
        rows.into(&mut run.foreign);
        if let Some(rows) = durations.remove(*test) {
            rows.into(&mut run.foreign);
        }
    }
    durations
        .into_values()
        .for_each(|rows| rows.into(&mut run.foreign));
    run.foreign
}

/// An iteration while it is parsed.
struct Iteration<'a> {
    paths: &'a [String],
    formats: &'a [Format],
    open: &'a mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
    foreign: Foreign,
    /// Bytes of the copies of monitors.
    monitors: usize,
    numactl: String,
}

impl<'a> Iteration<'a> {
    /// Opens a file; bytes that are no text are replaced.
    fn read(&mut self, file: usize) -> Option<String> {
        match (self.open)(file) {
            Ok(bytes) => Some(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
            Err(why) => {
                self.foreign
                    .left_out
                    .push(LeftOut::new(&self.paths[file], shown(&why)));
                None
            }
        }
    }

    fn name_of(&self, file: usize) -> &'a str {
        self.paths[file].rsplit('/').next().unwrap_or_default()
    }

    /// Parses the files of all tests, and the monitors.
    fn beside(&mut self, files: &[usize], tests: &Tests<'_>, durations: &mut Durations) {
        // Monitors whose output is no file of /proc, by name.
        let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
        for &file in files {
            let name = self.paths[file].as_str();
            if !(NOTES.contains(&name) || state::is_copied(name)) {
                if let Some((monitor, _)) = monitor_of(name, tests) {
                    *unread.entry(monitor).or_default() += 1;
                }
                continue;
            }
            let Some(text) = self.read(file) else {
                continue;
            };
            match name {
                "tests-timestamp" => state::tests(&text, &mut self.foreign, Some(durations)),
                "tests-sysstate" => {
                    state::tests(&text, &mut self.foreign, None);
                    self.limit_monitors(name);
                }
                "kernel.version" => kernel_version(&text, &mut self.foreign),
                "numactl.txt" => self.numactl = text,
                "lscpu" | "lscpu.txt" => processor(&text, &mut self.foreign),
                _ => self.monitor(name, &text, tests),
            }
        }
        for (monitor, count) in unread {
            let why = format!("Marvin has no parser for this monitor (files: {count})");
            self.foreign
                .left_out
                .push(LeftOut::new(&format!("monitor {monitor}"), why));
        }
    }

    /// Keeps the copies of a monitor, as far as there is room.
    fn monitor(&mut self, name: &str, text: &str, tests: &Tests<'_>) {
        let Some((monitor, test)) = monitor_of(name, tests) else {
            self.foreign
                .left_out
                .push(LeftOut::new(name, "a monitor of no test that is there"));
            return;
        };
        if self.monitors + text.len() > MONITORS_MAX {
            let why = format!(
                "the monitors of this run hold more than {} MiB",
                MONITORS_MAX >> 20
            );
            self.foreign.left_out.push(LeftOut::new(name, why));
            return;
        }
        self.monitors += text.len();
        let copies = state::find_copied(monitor)
            .map(|path| state::monitor(path, text))
            .unwrap_or_default();
        self.foreign
            .monitors
            .entry(test.to_owned())
            .or_default()
            .extend(copies);
    }

    /// Counts the bytes of the copies of tests' starts and ends, which come before those of
    /// monitors.
    fn limit_monitors(&mut self, name: &str) {
        let copies = self.foreign.monitors.values().flatten();
        self.monitors = copies.map(|copy| copy.bytes.len()).sum();
        if self.monitors > MONITORS_MAX {
            self.foreign.monitors.clear();
            self.monitors = 0;
            let why = format!(
                "its copies of /proc hold more than {} MiB",
                MONITORS_MAX >> 20
            );
            self.foreign.left_out.push(LeftOut::new(name, why));
        }
    }

    /// Parses the logs of a test into at most so many values.
    fn logs(&mut self, test: &str, files: &[usize], most: usize) -> Rows {
        let mut rows = Rows::new(test, most);
        let reader = reader(test);
        let of_test = self.formats.iter();
        let format = of_test
            .filter_map(|format| Some((format.known_of_test(test)?, format)))
            .max_by_key(|(known, _)| *known)
            .map(|(_, format)| format);
        let mut silent: Vec<String> = Vec::new();
        let beside: Vec<&str> = files.iter().map(|file| self.name_of(*file)).collect();
        for (file, name) in files.iter().zip(&beside) {
            if *name == "kernel.version" {
                if let Some(text) = self.read(*file) {
                    kernel_version(&text, &mut self.foreign);
                }
                continue;
            }
            if reader.is_none() && format.is_none() {
                continue;
            }
            let Some(text) = self.read(*file) else {
                continue;
            };
            let before = rows.seen();
            match (reader, format) {
                (Some(reader), _) => reader(
                    Log {
                        name,
                        text: &text,
                        beside: &beside,
                        numactl: &self.numactl,
                    },
                    &mut rows,
                ),
                (None, Some(format)) => self.by_format(format, *file, &text, &mut rows),
                (None, None) => {}
            }
            if rows.seen() == before {
                silent.push(shown(name));
            }
        }
        let why = if reader.is_none() && format.is_none() {
            format!(
                "Marvin has no parser for this test (files: {})",
                files.len()
            )
        } else if rows.seen() == 0 {
            format!("no results in its files ({})", files.len())
        } else if !silent.is_empty() {
            let few = silent
                .iter()
                .take(3)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if silent.len() > 3 { ", …" } else { "" };
            format!("files without results: {} ({few}{more})", silent.len())
        } else {
            return rows;
        };
        self.foreign.left_out.push(LeftOut::new(test, why));
        rows
    }
}

impl Iteration<'_> {
    /// Parses a file by a manifest. Factors that a test does not have are `_` in names of files.
    fn by_format(&mut self, format: &Format, file: usize, text: &str, rows: &mut Rows) {
        let path = &self.paths[file];
        let content =
            match ResultFile::new(path, text.as_bytes()).and_then(|file| read_as(format, &file)) {
                Ok(Some(content)) => content,
                Ok(None) => return,
                Err(why) => {
                    self.foreign.left_out.push(LeftOut::new(path, why));
                    return;
                }
            };
        for row in content.rows {
            let name = row.name.split_once('/').map_or("", |(_, name)| name);
            let name = name.replace("-_", "");
            let declared = Declared {
                unit: row.unit.into(),
                direction: row.direction,
                margin_percent: IMPORTED_MARGIN_PERCENT,
            };
            rows.put_declared(&name, &row.samples, &declared);
        }
        for (what, why) in content.left_out {
            self.foreign
                .left_out
                .push(LeftOut::new(&format!("{path}: {what}"), why));
        }
    }
}

/// Returns monitor and test of `proc-vmstat-kernbench`; the longest matching test counts.
fn monitor_of<'a>(name: &'a str, tests: &Tests<'_>) -> Option<(&'a str, &'a str)> {
    let mut splits = name
        .match_indices('-')
        .map(|(at, _)| (&name[..at], &name[at + 1..]));
    splits.find(|(_, test)| tests.contains_key(test))
}

/// Parses the output of `uname -a`: `Linux HOST RELEASE …`.
fn kernel_version(text: &str, foreign: &mut Foreign) {
    let fields: Vec<&str> = lines(text)
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    if let ["Linux", host, release, ..] = fields.as_slice() {
        note("host", host, foreign);
        note("kernel", release, foreign);
    }
}

/// Parses the output of lscpu.
fn processor(text: &str, foreign: &mut Foreign) {
    for (field, name) in [
        ("Model name", "cpu"),
        ("CPU(s)", "processors"),
        ("Architecture", "architecture"),
    ] {
        let value = lines(text).find_map(|line| {
            line.trim()
                .strip_prefix(field)?
                .trim_start()
                .strip_prefix(':')
        });
        if let Some(value) = value {
            note(name, value.trim(), foreign);
        }
    }
}

fn note(name: &str, value: &str, foreign: &mut Foreign) {
    if !foreign.environment.iter().any(|(known, _)| known == name) {
        foreign.environment.push((name.to_owned(), shown(value)));
    }
}

/// Returns a sort key for names with numbers: iteration 10 after 9.
fn natural(path: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let word = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let digits = rest[word..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |length| word + length);
        key.push((
            rest[..word].to_owned(),
            rest[word..digits].parse().unwrap_or(u64::MAX),
        ));
        rest = &rest[digits..];
    }
    key
}

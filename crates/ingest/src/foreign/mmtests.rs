//! One iteration of a run of MMTests: the files below `work/log/RUNNAME/iter-N`, `TEST/logs/…` and those beside them.

use std::collections::BTreeMap;

use super::readers::{Log, reader};
use super::{Content, Foreign, LeftOut, Rows, TreeFile, shown, state};

/// Files beside the tests that the parser reads.
const NOTES: [&str; 5] = ["tests-timestamp", "tests-sysstate", "kernel.version", "lscpu", "lscpu.txt"];

/// Returns whether [`mmtests`] reads a file; the caller need not open others. `path` is without the suffix of a
/// compression.
#[must_use]
pub fn mmtests_reads(path: &str) -> bool {
    match path.split_once('/') {
        Some((test, rest)) => reader(test).is_some() || rest.ends_with("kernel.version"),
        None => NOTES.contains(&path) || state::is_copied(path),
    }
}

/// Parses an iteration of a run of MMTests.
#[must_use]
pub fn mmtests(files: &[TreeFile]) -> Foreign {
    let mut foreign = Foreign::default();
    let mut sorted: Vec<&TreeFile> = files.iter().collect();
    sorted.sort_by_cached_key(|file| natural(&file.path));
    let mut tests = Tests::new();
    for file in &sorted {
        if let Some((test, _)) = file.path.split_once('/') {
            tests.entry(test).or_default().push(file);
        }
    }
    for file in &sorted {
        if let Content::Damaged(why) = &file.content {
            foreign.left_out.push(LeftOut::new(&file.path, shown(why)));
        }
    }
    let mut durations: BTreeMap<String, Rows> = BTreeMap::new();
    beside(&sorted, &tests, &mut foreign, &mut durations);
    for (test, own) in &tests {
        logs(test, own, &mut foreign);
        if let Some(rows) = durations.remove(*test) {
            rows.into(&mut foreign);
        }
    }
    durations.into_values().for_each(|rows| rows.into(&mut foreign));
    foreign
}

/// Returns the text of a file that was read; bytes that are no text are replaced.
fn text(file: &TreeFile) -> Option<std::borrow::Cow<'_, str>> {
    match &file.content {
        Content::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
        Content::Closed | Content::Damaged(_) => None,
    }
}

/// Files by test.
type Tests<'a> = BTreeMap<&'a str, Vec<&'a TreeFile>>;

/// Parses the files of all tests, and the monitors.
fn beside(files: &[&TreeFile], tests: &Tests<'_>, foreign: &mut Foreign, durations: &mut BTreeMap<String, Rows>) {
    // Monitors whose output is no file of /proc, by name.
    let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let name = name_of(file);
        let of_test = file.path.contains('/');
        let Some(text) = text(file) else {
            if let (false, Some((monitor, _))) = (of_test, monitor_of(&file.path, tests)) {
                *unread.entry(monitor).or_default() += usize::from(file.content == Content::Closed);
            }
            continue;
        };
        match name {
            "tests-timestamp" if !of_test => state::tests(&text, foreign, Some(durations)),
            "tests-sysstate" if !of_test => state::tests(&text, foreign, None),
            "kernel.version" => kernel_version(&text, foreign),
            "lscpu" | "lscpu.txt" if !of_test => processor(&text, foreign),
            _ if of_test => {}
            _ => match monitor_of(&file.path, tests) {
                Some((monitor, test)) => {
                    let copies =
                        state::find_copied(monitor).map(|path| state::monitor(path, &text)).unwrap_or_default();
                    foreign.monitors.entry(test.to_owned()).or_default().extend(copies);
                }
                None => foreign.left_out.push(LeftOut::new(&file.path, "a monitor of no test that is there")),
            },
        }
    }
    for (monitor, count) in unread.into_iter().filter(|(_, count)| *count > 0) {
        let why = format!("output of a tool and no copy of /proc: {count} not read");
        foreign.left_out.push(LeftOut::new(&format!("monitor {monitor}"), why));
    }
}

/// Returns monitor and test of `proc-vmstat-kernbench`; the longest matching test counts.
fn monitor_of<'a>(name: &'a str, tests: &Tests<'_>) -> Option<(&'a str, &'a str)> {
    let mut splits = name.match_indices('-').map(|(at, _)| (&name[..at], &name[at + 1..]));
    splits.find(|(_, test)| tests.contains_key(test))
}

/// Parses the output of `uname -a`: `Linux HOST RELEASE …`.
fn kernel_version(text: &str, foreign: &mut Foreign) {
    let words: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    if let ["Linux", host, release, ..] = words.as_slice() {
        note("host", host, foreign);
        note("kernel", release, foreign);
    }
}

/// Parses the output of lscpu.
fn processor(text: &str, foreign: &mut Foreign) {
    for (field, name) in [("Model name", "cpu"), ("CPU(s)", "processors"), ("Architecture", "architecture")] {
        let value = text.lines().find_map(|line| line.trim().strip_prefix(field)?.trim_start().strip_prefix(':'));
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

fn name_of(file: &TreeFile) -> &str {
    file.path.rsplit('/').next().unwrap_or_default()
}

/// Parses the logs of a test.
fn logs(test: &str, files: &[&TreeFile], foreign: &mut Foreign) {
    let Some(reader) = reader(test) else {
        foreign.left_out.push(LeftOut::new(test, format!("no reader for this test: {} files", files.len())));
        return;
    };
    let mut rows = Rows::new(test);
    let mut silent: Vec<String> = Vec::new();
    let beside: Vec<&str> =
        files.iter().filter(|file| matches!(file.content, Content::Bytes(_))).map(|file| name_of(file)).collect();
    for file in files {
        let Some(text) = text(file) else { continue };
        let name = name_of(file);
        let before = rows.seen();
        reader(Log { name, text: &text, beside: &beside }, &mut rows);
        if rows.seen() == before && name != "kernel.version" {
            silent.push(shown(name));
        }
    }
    if rows.seen() == 0 {
        foreign.left_out.push(LeftOut::new(test, format!("no results in its {} files", files.len())));
    } else if !silent.is_empty() {
        let few = silent.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let more = if silent.len() > 3 { ", …" } else { "" };
        foreign.left_out.push(LeftOut::new(test, format!("files without results: {} ({few}{more})", silent.len())));
    }
    rows.into(foreign);
}

/// Returns a sort key for names with numbers: iteration 10 after 9.
fn natural(path: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let word = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[word..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |length| word + length);
        key.push((rest[..word].to_owned(), rest[word..digits].parse().unwrap_or(u64::MAX)));
        rest = &rest[digits..];
    }
    key
}

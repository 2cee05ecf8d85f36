//! Tables that no manifest describes: CSV, TSV and JSON lines, by their headings.
//!
//! A column of values with a column of names is a long table; else each column of numbers is a
//! metric, and the other columns tell its rows apart. Units come from a column or from the heading,
//! as in `latency (ms)` and `latency_ms`. A unit of time or of work for each second has a
//! direction; of all other metrics the user says it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::collect::{Collector, Conversion, FileContent, RowHead};
use super::document::{cells, json_lines, lines, text_of};
use super::number::{UNMEASURED, direction_of_unit, direction_of_word, parse_number};
use super::read::ResultFile;

/// Most columns of a table.
const COLUMNS_MAX: usize = 500;

/// What a column is, by its heading in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Kernel,
    Host,
    Started,
    /// A part of the row's name.
    Name,
    Value,
    Unit,
    Better,
    /// A boot or run of its own.
    Run,
    /// The number of a sample.
    Sample,
    /// A parameter, although it is a number.
    Parameter,
    /// A metric if all its cells are numbers, else a parameter.
    Other,
}

const ROLES: &[(Role, &[&str])] = &[
    (
        Role::Kernel,
        &[
            "kernel",
            "release",
            "kernel_version",
            "kernel version",
            "uname",
        ],
    ),
    (Role::Host, &["host", "hostname", "machine"]),
    (
        Role::Started,
        &["timestamp", "date", "started", "start_time"],
    ),
    (
        Role::Name,
        &[
            "benchmark",
            "test",
            "name",
            "workload",
            "case",
            "metric",
            "testcase",
            "bench",
        ],
    ),
    (Role::Value, &["value", "result", "score"]),
    (Role::Unit, &["unit", "units"]),
    (Role::Better, &["better", "direction", "higher_is_better"]),
    (Role::Run, &["run", "boot"]),
    (
        Role::Sample,
        &[
            "iteration",
            "iter",
            "rep",
            "repeat",
            "repetition",
            "trial",
            "sample",
            "seed",
        ],
    ),
    (
        Role::Parameter,
        &[
            "threads",
            "clients",
            "jobs",
            "size",
            "bs",
            "block_size",
            "blocksize",
            "depth",
            "iodepth",
            "cpu",
            "cpus",
            "procs",
            "processes",
            "groups",
            "nr",
            "tasks",
        ],
    ),
];

fn role(heading: &str) -> Role {
    let heading = heading.trim().to_lowercase();
    ROLES
        .iter()
        .find(|(_, names)| names.contains(&heading.as_str()))
        .map_or(Role::Other, |(role, _)| *role)
}

/// Returns the unit in a heading, and the heading without it.
fn split_unit(heading: &str) -> (&str, &str) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((name, unit)) = heading
            .trim()
            .strip_suffix(close)
            .and_then(|text| text.rsplit_once(open))
        {
            return (name.trim(), unit.trim());
        }
    }
    match heading.rsplit_once(['_', ' ']) {
        Some((_, unit)) if direction_of_unit(unit).is_some() => (heading, unit),
        _ if direction_of_unit(heading).is_some() => (heading, heading),
        _ => (heading, ""),
    }
}

/// Returns the content of a table; `None` if the file is none.
pub(super) fn read_table(file: &ResultFile<'_>) -> Option<FileContent> {
    let mut rows = Collector::default();
    let (names, records) =
        records_of_json(file, &mut rows).or_else(|| records_of_lines(file, &mut rows))?;
    let roles: Vec<Role> = names.iter().map(|name| role(name)).collect();
    let is_long = roles.contains(&Role::Value);
    // A table has a value, or a column of numbers; a list of words is none.
    let is_number = |at: usize| {
        let mut cells = records.iter().map(|cells| cells[at].as_str());
        cells.clone().any(|cell| parse_number(cell).is_ok()) && cells.all(is_number_or_unmeasured)
    };
    let numbers: BTreeSet<usize> = (0..names.len())
        .filter(|at| match roles[*at] {
            Role::Value => true,
            Role::Other => !is_long && is_number(*at),
            _ => false,
        })
        .collect();
    if numbers.is_empty() || records.is_empty() {
        return None;
    }
    let mut facts = BTreeMap::new();
    for cells in &records {
        let of = |wanted: Role| {
            let at = roles.iter().position(|role| *role == wanted)?;
            Some(cells[at].clone()).filter(|text| !text.is_empty())
        };
        for (role, fact) in [(Role::Host, "host"), (Role::Started, "started")] {
            if let Some(text) = of(role) {
                facts.entry(fact.to_owned()).or_insert(text);
            }
        }
        let parts = roles.iter().enumerate().filter(|(at, role)| {
            matches!(role, Role::Name | Role::Parameter | Role::Other) && !numbers.contains(at)
        });
        let parts: Vec<String> = parts
            .filter(|(at, _)| !cells[*at].is_empty())
            .map(|(at, role)| match role {
                Role::Parameter => format!("{}={}", names[at], cells[at]),
                _ => cells[at].replace('/', "-"),
            })
            .collect();
        for at in &numbers {
            let (metric, heading_unit) = split_unit(&names[*at]);
            let unit = of(Role::Unit).unwrap_or_else(|| heading_unit.to_owned());
            let mut path = vec!["table".to_owned()];
            path.extend(parts.iter().cloned());
            if roles[*at] != Role::Value || parts.is_empty() {
                path.push(metric.replace('/', "-"));
            }
            let direction = of(Role::Better)
                .and_then(|word| direction_of_word(&word))
                .or_else(|| direction_of_unit(&unit));
            let head = RowHead {
                kernel: of(Role::Kernel),
                run: of(Role::Run),
                name: path.join("/"),
                unit,
                direction,
                are_units_rows: false,
                part: None,
            };
            rows.put(&head, &cells[*at], Conversion::PLAIN);
        }
    }
    Some(rows.finish(facts))
}

/// Returns whether a cell may stand in a column of numbers.
fn is_number_or_unmeasured(cell: &str) -> bool {
    match parse_number(cell) {
        Ok(_) => true,
        Err(why) => why == UNMEASURED,
    }
}

type Records = (Vec<String>, Vec<Vec<String>>);

/// Returns headings and cells of JSON lines: the members of flat objects.
fn records_of_json(file: &ResultFile<'_>, rows: &mut Collector) -> Option<Records> {
    if !file.text().trim_start().starts_with('{') {
        return None;
    }
    let (tree, others) = json_lines(file.text());
    let documents: Vec<_> = tree
        .as_array()?
        .iter()
        .filter_map(Value::as_object)
        .collect();
    if documents.is_empty() {
        return None;
    }
    if others > 0 {
        rows.leave_out("lines", format!("{others} are no JSON objects"));
    }
    // Descriptions beside results have texts alone, in which digits are names.
    let has_number = |document: &&serde_json::Map<String, Value>| {
        let mut members = document.iter();
        members.any(|(name, value)| value.is_number() || role(name) == Role::Value)
    };
    if !documents.iter().any(has_number) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for name in documents.iter().flat_map(|document| document.keys()) {
        if !names.contains(name) && names.len() < COLUMNS_MAX {
            names.push(name.clone());
        }
    }
    let records = documents.iter().map(|document| {
        let is_flat = |value: &&Value| !value.is_array() && !value.is_object();
        let cell = |name: &String| document.get(name).filter(is_flat).and_then(text_of);
        let cells = names.iter().map(cell);
        cells.map(Option::unwrap_or_default).collect()
    });
    let records = records.collect();
    Some((names, records))
}

/// Returns headings and cells of CSV or TSV.
fn records_of_lines(file: &ResultFile<'_>, rows: &mut Collector) -> Option<Records> {
    let mut lines = lines(file.text())
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with("##"));
    let (_, first) = lines.next()?;
    let first = first.trim_start_matches(['#', ' ']);
    let counts = ['\t', ',', ';', '|'].map(|letter| (cells(first, Some(letter)).len(), letter));
    // Of equal counts the first separator wins.
    let (count, separator) = counts.into_iter().rev().max_by_key(|(count, _)| *count)?;
    if !(2..=COLUMNS_MAX).contains(&count) {
        return None;
    }
    let names = cells(first, Some(separator));
    if names
        .iter()
        .any(|name| parse_number(name).is_ok() || name.is_empty())
    {
        return None;
    }
    let mut records = Vec::new();
    for (at, line) in lines.filter(|(_, line)| !line.starts_with('#')) {
        let cells = cells(line, Some(separator));
        if cells.len() == count {
            records.push(cells);
        } else {
            let why = format!("{} cells, {count} headings", cells.len());
            rows.leave_out(&format!("line {}", at + 1), why);
        }
    }
    Some((names, records))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::collect::FileContent;
    use super::{ResultFile, read_table};

    fn table(text: &str) -> Option<FileContent> {
        read_table(&ResultFile::new("a.csv", text.as_bytes()).unwrap())
    }

    fn shown(text: &str) -> String {
        let content = table(text).unwrap();
        let rows = content.rows.iter().map(|row| {
            format!(
                "{:?} {:?} {} {} {:?} {:?}\n",
                row.kernel, row.run, row.name, row.unit, row.direction, row.samples
            )
        });
        let left = content.left_out.iter().map(|left| format!("{left:?}\n"));
        rows.chain(left).collect()
    }

    #[test]
    fn long_table_has_names_units_and_kernels() {
        let text = "kernel,benchmark,threads,iteration,value,unit,better\n\
            6.1,sched,4,1,12.5,ms,\n6.1,sched,4,2,12.7,ms,\n6.12,sched,4,1,11,ms,\n\
            6.12,index,4,1,7,points,higher\n6.12,index,4,1,nan,points,higher\n6.12,short\n";
        insta::assert_snapshot!(shown(text), @r#"
        Some("6.1") None table/sched/threads=4 ms Some(LowerIsBetter) [12.5, 12.7]
        Some("6.12") None table/sched/threads=4 ms Some(LowerIsBetter) [11.0]
        Some("6.12") None table/index/threads=4 points Some(HigherIsBetter) [7.0]
        ("line 7", "2 cells, 7 headings")
        ("table/index/threads=4", "not measured")
        "#);
    }

    #[test]
    fn wide_table_has_a_metric_a_column() {
        let text = "test\tlatency (us)\trps\tfaults\tcomment\na\t3\t100\t5\tx\nb\t4\t\t6\ty\n";
        insta::assert_snapshot!(shown(text), @r#"
        None None table/a/x/latency us Some(LowerIsBetter) [3.0]
        None None table/a/x/rps rps Some(HigherIsBetter) [100.0]
        None None table/a/x/faults  None [5.0]
        None None table/b/y/latency us Some(LowerIsBetter) [4.0]
        None None table/b/y/faults  None [6.0]
        ("table/b/y/rps", "not measured")
        "#);
    }

    #[test]
    fn json_lines_are_a_table() {
        let text = "{\"name\": \"a\", \"value\": 3, \"unit\": \"ns\"}\n{\"name\": \"a\", \"value\": 4, \"unit\": \"ns\"}\nx\n";
        insta::assert_snapshot!(shown(text), @r#"
        None None table/a ns Some(LowerIsBetter) [3.0, 4.0]
        ("lines", "1 are no JSON objects")
        "#);
    }

    #[test]
    fn text_and_empty_tables_are_none() {
        for text in [
            "a b\nc d\n",
            "a,b\n",
            "BUILD NAME\nltccip8\n",
            "name,comment\nx,y\n",
            "1,2\n3,4\n",
            "{\"a\": {\"b\": 1}}\n",
            "{\"mode\": \"x\", \"times\": [1, 2]}\n",
        ] {
            assert_eq!(table(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_table_or_none(text in "[a-z0-9,;\\n\\t\"{}:. ]{1,80}") {
            if !text.trim().is_empty() {
                let rows = table(&text).map_or(0, |content| content.rows.len());
                prop_assert!(rows <= text.len());
            }
        }
    }
}

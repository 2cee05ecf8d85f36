//! Stored results as tables for notebooks: columns with types and units, one row for each run,
//! result or sample.
//!
//! `docs/export.md` documents the columns; a test compares it with them.

mod lines;
mod parquet;

pub use lines::{csv, json_lines};
pub use parquet::parquet;

use std::collections::HashSet;

use compare::{Scale, run_value, value_unit};
use model::{Direction, MachineKind, Outcome, Region, Run, WorkloadResult};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Text,
    /// 64 bits with sign.
    Whole,
    /// 64 bits without sign.
    Unsigned,
    Number,
}

impl ColumnType {
    /// Returns the type's name.
    #[cfg(test)]
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "integer",
            Self::Unsigned => "unsigned integer",
            Self::Number => "double",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnType,
    /// Whether every row has a value.
    pub is_required: bool,
    /// The unit of its values, or their meaning.
    pub unit: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CellValue {
    None,
    Text(String),
    Whole(i64),
    /// A whole number without sign.
    Unsigned(u64),
    Number(f64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
    /// The rows, each with a value for each column.
    pub rows: Vec<Vec<CellValue>>,
}

/// The content of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Runs,
    /// A workload of a run.
    Results,
    /// An iteration of a workload.
    Samples,
}

/// A run with its kernel and machine.
#[derive(Debug)]
pub struct Exported {
    pub run: Run,
    pub kernel: String,
    pub version: String,
    pub machine_kind: MachineKind,
}

const fn column(name: &'static str, kind: ColumnType, unit: &'static str) -> Column {
    Column {
        name,
        kind,
        is_required: true,
        unit,
    }
}

const fn optional(name: &'static str, kind: ColumnType, unit: &'static str) -> Column {
    Column {
        name,
        kind,
        is_required: false,
        unit,
    }
}

const RUN: &[Column] = &[
    column("run", ColumnType::Text, "id of the run"),
    column("kernel", ColumnType::Text, "last name used for the kernel"),
    column("version", ColumnType::Text, "version of the kernel"),
    column(
        "build",
        ColumnType::Text,
        "id of the build: SHA-256 of its image",
    ),
    column("machine", ColumnType::Text, "id of the machine"),
    column("machine_kind", ColumnType::Text, "exact or imported"),
    column("suite", ColumnType::Text, "name of the suite"),
    column("seed", ColumnType::Unsigned, "seed of boot and run"),
    optional(
        "started_unix",
        ColumnType::Whole,
        "seconds since 1970-01-01 UTC; none if not known",
    ),
];

const RUN_ONLY: &[Column] = &[
    column("completed", ColumnType::Whole, "workloads"),
    column("unsupported", ColumnType::Whole, "workloads"),
    column("failed", ColumnType::Whole, "workloads"),
];

const RESULT: &[Column] = &[
    column("workload", ColumnType::Text, "name of the workload"),
    column(
        "operations",
        ColumnType::Unsigned,
        "operations in one iteration",
    ),
    column(
        "counts",
        ColumnType::Whole,
        "1 if reports use it; 0 if a later run of the same build, machine, suite and seed has this workload",
    ),
];

const RESULT_ONLY: &[Column] = &[
    column(
        "outcome",
        ColumnType::Text,
        "completed, unsupported or failed",
    ),
    optional(
        "stage",
        ColumnType::Text,
        "stage at which the kernel failed",
    ),
    optional(
        "reason",
        ColumnType::Text,
        "reason of the failure, or what is not supported",
    ),
    column(
        "iterations",
        ColumnType::Whole,
        "samples, warm-ups included",
    ),
    optional(
        "value",
        ColumnType::Number,
        "the compared value, per operation",
    ),
    optional("unit", ColumnType::Text, "unit of the value"),
    optional(
        "better",
        ColumnType::Text,
        "the good direction of the value, lower or higher; none if not known",
    ),
    optional(
        "value_of",
        ColumnType::Text,
        "counts, or reported: guest time or a number from the workload",
    ),
];

const SAMPLE: &[Column] = &[
    column("iteration", ColumnType::Whole, "from 0, warm-ups included"),
    column(
        "sample",
        ColumnType::Number,
        "per operation: instructions by the guest's clock on the exact machine; the suite's unit where imported",
    ),
    optional(
        "counted_kernel",
        ColumnType::Unsigned,
        "instructions of the whole iteration: the kernel's for the workload",
    ),
    optional(
        "counted_user",
        ColumnType::Unsigned,
        "the same: its user code's",
    ),
    optional(
        "counted_interrupt",
        ColumnType::Unsigned,
        "the same: of interrupts",
    ),
    optional(
        "counted_other",
        ColumnType::Unsigned,
        "the same: of other tasks",
    ),
];

/// Returns the columns of a table.
pub fn columns(rows: Rows) -> Vec<Column> {
    let parts: &[&[Column]] = match rows {
        Rows::Runs => &[RUN, RUN_ONLY],
        Rows::Results => &[RUN, RESULT, RESULT_ONLY],
        Rows::Samples => &[RUN, RESULT, SAMPLE],
    };
    parts.concat()
}

/// Makes a table of runs, oldest first, with the workloads that `fits` accepts.
pub fn table(runs: &[Exported], rows: Rows, fits: impl Fn(&str) -> bool) -> Table {
    let mut table = Table {
        columns: columns(rows),
        rows: Vec::new(),
    };
    let fits = &fits;
    let superseded = superseded(runs);
    for (place, exported) in runs.iter().enumerate() {
        let counts =
            |result: &WorkloadResult| !superseded.contains(&(place, result.workload.as_str()));
        let results = || {
            exported
                .run
                .results
                .iter()
                .filter(move |result| fits(&result.workload))
        };
        match rows {
            Rows::Runs => {
                let count = |is: fn(&Outcome) -> bool| {
                    let number = results().filter(|result| is(&result.outcome)).count();
                    CellValue::Whole(i64::try_from(number).unwrap_or(i64::MAX))
                };
                let counts = [
                    count(|outcome| matches!(outcome, Outcome::Completed)),
                    count(|outcome| matches!(outcome, Outcome::Unsupported(_))),
                    count(|outcome| matches!(outcome, Outcome::Failed(_))),
                ];
                table
                    .rows
                    .push(of_run(exported).into_iter().chain(counts).collect());
            }
            Rows::Results => table.rows.extend(results().map(|result| {
                of_run(exported)
                    .into_iter()
                    .chain(of_workload(result, counts(result)))
                    .chain(of_result(result, exported.machine_kind))
                    .collect()
            })),
            Rows::Samples => {
                for result in results() {
                    table.rows.extend((0..result.samples.len()).map(|n| {
                        of_run(exported)
                            .into_iter()
                            .chain(of_workload(result, counts(result)))
                            .chain(of_sample(result, n))
                            .collect()
                    }));
                }
            }
        }
    }
    table
}

fn of_run(exported: &Exported) -> Vec<CellValue> {
    let Exported {
        run,
        kernel,
        version,
        machine_kind,
    } = exported;
    vec![
        CellValue::Text(run.id.to_string()),
        CellValue::Text(kernel.clone()),
        CellValue::Text(version.clone()),
        CellValue::Text(run.build.to_string()),
        CellValue::Text(run.machine.to_string()),
        CellValue::Text(machine_kind.to_string()),
        CellValue::Text(run.suite.clone()),
        CellValue::Unsigned(run.seed),
        Run::known_start(run.started_unix)
            .map_or(CellValue::None, |start| CellValue::Whole(start.seconds())),
    ]
}

/// Returns the results, by the place of their run, that one of a later run replaces, as reports
/// choose: of its own suite.
fn superseded(runs: &[Exported]) -> HashSet<(usize, &str)> {
    let mut known = HashSet::new();
    let mut superseded = HashSet::new();
    for (place, Exported { run, .. }) in runs.iter().enumerate().rev() {
        for result in &run.results {
            let workload = result.workload.as_str();
            if !known.insert((&run.build, &run.machine, &run.suite, run.seed, workload)) {
                superseded.insert((place, workload));
            }
        }
    }
    superseded
}

fn of_workload(result: &WorkloadResult, counts: bool) -> [CellValue; 3] {
    [
        CellValue::Text(result.workload.clone()),
        CellValue::Unsigned(result.operations),
        CellValue::Whole(counts.into()),
    ]
}

fn of_result(result: &WorkloadResult, machine: MachineKind) -> [CellValue; 8] {
    let (outcome, stage, reason) = match &result.outcome {
        Outcome::Completed => ("completed", CellValue::None, CellValue::None),
        Outcome::Unsupported(what) => ("unsupported", CellValue::None, text_value(what)),
        Outcome::Failed(failure) => (
            "failed",
            text_value(&failure.stage),
            text_value(&failure.reason),
        ),
    };
    let iterations = i64::try_from(result.samples.len()).unwrap_or(i64::MAX);
    let capabilities = machine.capabilities();
    let value = run_value(result, capabilities).ok();
    let unit = value.and_then(|value| value_unit(result, value.scale, capabilities.clock));
    let direction = result.declared.as_ref().and_then(|then| then.direction);
    let better = direction.map(|direction| match direction {
        Direction::LowerIsBetter => "lower",
        Direction::HigherIsBetter => "higher",
    });
    let scale = value.map(|value| {
        if value.scale == Scale::Counted {
            "counts"
        } else {
            "reported"
        }
    });
    [
        CellValue::Text(outcome.to_owned()),
        stage,
        reason,
        CellValue::Whole(iterations),
        value.map_or(CellValue::None, |value| CellValue::Number(value.value)),
        unit.map_or(CellValue::None, |unit| CellValue::Text(unit.into_owned())),
        better.map_or(CellValue::None, |word| CellValue::Text(word.to_owned())),
        scale.map_or(CellValue::None, |scale| CellValue::Text(scale.to_owned())),
    ]
}

fn text_value(text: &dyn std::fmt::Display) -> CellValue {
    CellValue::Text(text.to_string())
}

fn of_sample(result: &WorkloadResult, iteration: usize) -> [CellValue; 6] {
    let counted = result.counted.get(iteration);
    let count = |of: fn(&Region) -> u64| {
        counted.map_or(CellValue::None, |region| CellValue::Unsigned(of(region)))
    };
    [
        CellValue::Whole(i64::try_from(iteration).unwrap_or(i64::MAX)),
        CellValue::Number(result.samples[iteration]),
        count(|region| region.kernel),
        count(|region| region.user),
        count(|region| region.interrupt),
        count(|region| region.other),
    ]
}

#[cfg(test)]
mod tests {
    use model::{
        BuildId, FailureReason, MachineId, Outcome, Region, Run, RunId, Stage, SubjectFailure,
        UnixTime, WorkloadResult,
    };

    use super::{CellValue, Exported, Rows, Table, columns, csv, json_lines, table};

    /// Two runs with values that are hard to write.
    pub(super) fn runs() -> Vec<Exported> {
        let result = |workload: &str, outcome, samples: Vec<f64>| WorkloadResult {
            workload: workload.to_owned(),
            operations: 20_000,
            declared: None,
            counted: if samples.is_empty() {
                vec![]
            } else {
                vec![
                    Region {
                        user: 10_000,
                        kernel: 20_000,
                        interrupt: 3,
                        other: 4,
                        ..model::Region::default()
                    };
                    samples.len()
                ]
            },
            outcome,
            samples,
        };
        let failure = SubjectFailure {
            stage: Stage::Workload,
            reason: FailureReason::WorkloadFailed("a \"b\",\nc".to_owned()),
            console_tail: String::new(),
        };
        let results = vec![
            result("getppid", Outcome::Completed, vec![100.5, f64::NAN]),
            result("mmap", Outcome::Completed, vec![100.5, 99.0]),
            result(
                "io,uring",
                Outcome::Unsupported("=io_uring".to_owned()),
                vec![],
            ),
            result("größe\u{1b}", Outcome::Failed(failure), vec![]),
        ];
        let run = |hex: &str, results| Run {
            id: RunId::from_hex(hex).unwrap(),
            build: BuildId::from_hex("aa").unwrap(),
            machine: MachineId::from_hex("ee").unwrap(),
            suite: "micro".to_owned(),
            seed: u64::MAX,
            started_unix: UnixTime::new(-1),
            environment: vec![],
            results,
        };
        let exported = |run| Exported {
            run,
            kernel: "deb:6.12".to_owned(),
            version: "6.12.117".to_owned(),
            machine_kind: "exact".parse().unwrap(),
        };
        vec![exported(run("01", results)), exported(run("02", vec![]))]
    }

    fn all(rows: Rows) -> Table {
        table(&runs(), rows, |_| true)
    }

    #[test]
    fn tables_as_csv() {
        insta::assert_snapshot!("runs.csv", csv(&all(Rows::Runs)));
        insta::assert_snapshot!("results.csv", csv(&all(Rows::Results)));
        insta::assert_snapshot!("samples.csv", csv(&all(Rows::Samples)));
    }

    #[test]
    fn tables_as_json_lines() {
        for rows in [Rows::Runs, Rows::Results, Rows::Samples] {
            let table = all(rows);
            let text = json_lines(&table);
            assert_eq!(text.lines().count(), table.rows.len());
            for line in text.lines() {
                let object: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(object.as_object().unwrap().len(), table.columns.len());
            }
        }
        insta::assert_snapshot!("samples.jsonl", json_lines(&all(Rows::Samples)));
    }

    #[test]
    fn newest_result_of_a_seed_counts() {
        let mut runs = runs();
        let again = runs[0].run.results[1].clone();
        runs[1].run.results.push(again);
        let table = table(&runs, Rows::Results, |_| true);
        let at = |name: &str| {
            table
                .columns
                .iter()
                .position(|column| column.name == name)
                .unwrap()
        };
        let found: Vec<_> = table
            .rows
            .iter()
            .map(|row| (&row[at("workload")], &row[at("counts")]))
            .collect();
        let mmap = |counts| (CellValue::Text("mmap".to_owned()), CellValue::Whole(counts));
        assert_eq!(
            found
                .iter()
                .filter(|(_, counts)| **counts == CellValue::Whole(0))
                .count(),
            1
        );
        assert_eq!(
            [found[1], found[4]],
            [(&mmap(0).0, &mmap(0).1), (&mmap(1).0, &mmap(1).1)]
        );
    }

    #[test]
    fn result_of_another_suite_replaces_none() {
        let mut runs = runs();
        let again = runs[0].run.results[1].clone();
        runs[1].run.results.push(again);
        runs[1].run.suite = "unixbench".to_owned();
        let table = table(&runs, Rows::Results, |_| true);
        let at = table
            .columns
            .iter()
            .position(|column| column.name == "counts")
            .unwrap();
        assert!(table.rows.iter().all(|row| row[at] == CellValue::Whole(1)));
    }

    #[test]
    fn unmatched_workloads_are_omitted() {
        assert_eq!(
            table(&runs(), Rows::Results, |name| name == "getppid")
                .rows
                .len(),
            1
        );
        assert!(table(&[], Rows::Samples, |_| true).rows.is_empty());
    }

    #[test]
    fn every_row_is_as_wide_as_its_table() {
        for rows in [Rows::Runs, Rows::Results, Rows::Samples] {
            let table = all(rows);
            assert!(
                !table.rows.is_empty()
                    && table
                        .rows
                        .iter()
                        .all(|row| row.len() == table.columns.len())
            );
        }
    }

    #[test]
    fn document_lists_every_column_with_type() {
        let document = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/export.md"
        ))
        .unwrap();
        for rows in [Rows::Runs, Rows::Results, Rows::Samples] {
            for column in columns(rows) {
                let nullable = if column.is_required {
                    ""
                } else {
                    ", or nothing"
                };
                let line = format!(
                    "| `{}` | {}{nullable} | {} |",
                    column.name,
                    column.kind.name(),
                    column.unit
                );
                assert!(document.contains(&line), "docs/export.md lacks: {line}");
            }
        }
    }
}

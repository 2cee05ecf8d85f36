//! Results of other suites: logs of MMTests, result matrices of LKP-tests. Files in, results out, together with a list
//! of everything that could not be read.
//!
//! The caller reads directories and unpacks files; these functions get paths and bytes. `model::imported_metric` has
//! units and directions of the rows.

mod lkp;
mod mmtests;
mod readers;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{Environment, MonitorCopy, Outcome, WorkloadResult};

pub use lkp::{LkpResultPath, lkp_columns, lkp_run};
pub use mmtests::{mmtests, mmtests_reads};

/// Most rows of a run; a machine with some thousand processors gives some thousand.
const ROWS_MAX: usize = 20_000;
/// Most values of a row.
const VALUES_MAX: usize = 100_000;
/// Longest name of a row, its test included, in bytes.
const NAME_MAX: usize = 160;

/// A file of a foreign result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Its path below the run's directory, parts separated by `/`, without the suffix of a compression that was undone.
    pub path: String,
    /// Its content.
    pub content: Content,
}

/// The content of a file of a foreign result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// None: no parser reads such a file, so it was not opened.
    Closed,
    /// None: it could not be read; the text says why.
    Damaged(String),
}

/// A skipped part of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// What: a test, a row, a file. Printable.
    pub what: String,
    /// Why. Printable.
    pub why: String,
}

impl LeftOut {
    fn new(what: &str, why: impl Into<String>) -> Self {
        Self { what: shown(what), why: why.into() }
    }
}

/// The content of a run of a foreign suite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Foreign {
    /// Its rows, each a completed workload with one sample per value, of one operation.
    pub results: Vec<WorkloadResult>,
    /// Facts about host and kernel: `kernel`, `host`, `cpu`, `processors`.
    pub environment: Environment,
    /// When it began, in seconds since 1970-01-01 UTC, if known.
    pub started_unix: Option<i64>,
    /// Copies of files of /proc by test.
    pub monitors: BTreeMap<String, Vec<MonitorCopy>>,
    /// The skipped parts.
    pub left_out: Vec<LeftOut>,
}

/// Rows of one test while they are collected.
#[derive(Debug, Default)]
struct Rows {
    test: String,
    rows: Vec<(String, Vec<f64>)>,
    places: BTreeMap<String, usize>,
    /// Number of values of all rows.
    values: usize,
    /// Rows with an invalid value, and the first such value.
    bad: BTreeMap<String, String>,
    /// Values beyond a limit.
    beyond: usize,
    /// Files whose values are in another file too.
    passed_over: usize,
}

impl Rows {
    fn new(test: &str) -> Self {
        Self { test: test.to_owned(), ..Self::default() }
    }

    /// Adds a value; `place` describes its position.
    fn put(&mut self, row: &str, text: &str, place: &str) {
        match number(text) {
            Ok(value) => self.put_number(row, value),
            Err(why) => {
                self.bad.entry(row.to_owned()).or_insert_with(|| format!("{}: {why}", shown(place)));
            }
        }
    }

    fn put_number(&mut self, row: &str, value: f64) {
        let place = match self.places.get(row) {
            Some(place) => *place,
            None if self.rows.len() >= ROWS_MAX => {
                self.beyond += 1;
                return;
            }
            None => {
                self.rows.push((row.to_owned(), Vec::new()));
                self.places.insert(row.to_owned(), self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        match &mut self.rows[place].1 {
            values if values.len() < VALUES_MAX => {
                values.push(value);
                self.values += 1;
            }
            _ => self.beyond += 1,
        }
    }

    /// Notes a file whose values are in another file too.
    fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// Returns the number of values and faults, to see whether a file contributed any.
    fn seen(&self) -> usize {
        self.values + self.bad.len() + self.passed_over
    }

    /// Returns the rows. A row with an invalid value is skipped as a whole: the other values would misrepresent it.
    fn into(self, foreign: &mut Foreign) {
        for (row, samples) in self.rows {
            let workload = format!("{}/{row}", self.test);
            if self.bad.contains_key(&row) {
                continue;
            }
            if !is_name(&workload) {
                foreign.left_out.push(LeftOut::new(&workload, "its name is not fit to be one"));
                continue;
            }
            let (operations, outcome, counted) = (1, Outcome::Completed, Vec::new());
            // The suite is not known here.
            let declared = None;
            foreign.results.push(WorkloadResult { workload, operations, declared, outcome, samples, counted });
        }
        for (row, why) in self.bad {
            foreign.left_out.push(LeftOut::new(&format!("{}/{row}", self.test), why));
        }
        if self.beyond > 0 {
            let why = format!("{} values beyond {ROWS_MAX} rows of {VALUES_MAX} values", self.beyond);
            foreign.left_out.push(LeftOut::new(&self.test, why));
        }
    }
}

/// Parses a value: a finite number that is not negative.
fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        Ok(value) if value < 0.0 => Err(format!("`{}` is negative", shown(text.trim()))),
        _ => Err(format!("`{}` is not a number", shown(text.trim()))),
    }
}

/// Returns whether a name fits tables, file names and commands: printable ASCII without spaces, no `..`.
fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`\\<>&,".contains(&byte))
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Returns foreign text in printable form: escaped, and of at most 80 characters.
fn shown(text: &str) -> String {
    let escaped: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() { escaped + "…" } else { escaped }
}

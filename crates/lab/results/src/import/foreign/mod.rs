//! Results of other suites: logs of MMTests, result matrices of LKP-tests. Files in, results out,
//! together with a list of everything that could not be read.
//!
//! The caller reads directories and unpacks files; these functions get paths and bytes.
//! `model::imported_metric` has units and directions of the rows.
//!
//! These parsers keep at most: `ROWS_MAX` rows of a test or a document, `VALUES_MAX` values of
//! a row, `RUN_VALUES_MAX` of a run or a document, `TESTS_MAX` tests and `MONITORS_MAX` bytes
//! of monitors of a run, `COLUMNS_MAX` runs of a matrix. They count what is beyond, and name it
//! as skipped. They hold the text of one file at a time.

mod computed;
mod lkp;
mod mmtests;
mod readers;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{Declared, Environment, MonitorCopy, Outcome, UnixTime, WorkloadResult};

pub use lkp::{LkpResultPath, lkp_columns, lkp_run, lkp_started};
pub use mmtests::mmtests;

/// Most rows of a test; a machine with some thousand processors gives some thousand.
const ROWS_MAX: usize = 20_000;
/// Most values of a row.
const VALUES_MAX: usize = 100_000;
/// Most values of a run of MMTests, or of a document of LKP-tests.
const RUN_VALUES_MAX: usize = 2_000_000;
/// Most tests of a run.
const TESTS_MAX: usize = 1_000;
/// Most runs of a matrix; LKP-tests keeps 100 (`MAX_MATRIX_COLS` in its `lib/matrix.rb`).
const COLUMNS_MAX: usize = 1_000;
/// Most bytes of the copies of /proc of a run.
const MONITORS_MAX: usize = 64 << 20;
/// Longest line with results, in bytes; parsers ignore longer ones.
const LINE_MAX: usize = 64 << 10;
/// Longest name of a row, its test included, in bytes.
const NAME_MAX: usize = 160;

/// A skipped part of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// What: a test, a row, a file. Printable.
    pub what: String,
    pub why: String,
}

impl LeftOut {
    fn new(what: &str, why: impl Into<String>) -> Self {
        Self {
            what: shown(what),
            why: why.into(),
        }
    }
}

/// The content of a run of a foreign suite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Foreign {
    /// Its rows, each a completed workload with one sample per value, of one operation.
    pub results: Vec<WorkloadResult>,
    /// Facts about host and kernel: `kernel`, `host`, `cpu`, `processors`.
    pub environment: Environment,
    /// When it began, if known.
    pub started_unix: Option<UnixTime>,
    /// Copies of files of /proc by test.
    pub monitors: BTreeMap<String, Vec<MonitorCopy>>,
    /// Stats of monitors that the suite computed itself, by name.
    pub stats: BTreeMap<String, Option<f64>>,
    pub left_out: Vec<LeftOut>,
}

/// A row while it is collected.
#[derive(Debug)]
struct Row {
    name: String,
    values: Vec<f64>,
    /// Position and text of the first invalid value.
    fault: Option<String>,
    /// Its unit and direction, if its reader knows them.
    declared: Option<Declared>,
}

/// Rows of one test while they are collected.
#[derive(Debug)]
struct Rows {
    test: String,
    rows: Vec<Row>,
    places: BTreeMap<String, usize>,
    /// Number of values and faults of all rows, and the most of them.
    seen: usize,
    most: usize,
    /// Values beyond a limit.
    beyond: usize,
    /// Files whose values are in another file too.
    passed_over: usize,
    /// What a file says of the rows of a later one.
    note: String,
}

impl Rows {
    /// Makes rows of a test that hold at most so many values.
    fn new(test: &str, most: usize) -> Self {
        let rows = Vec::new();
        let places = BTreeMap::new();
        Self {
            test: test.to_owned(),
            rows,
            places,
            seen: 0,
            most,
            beyond: 0,
            passed_over: 0,
            note: String::new(),
        }
    }

    /// Adds a value; `place` describes its position.
    fn put(&mut self, row: &str, text: &str, place: &str) {
        match number(text) {
            Ok(value) => self.put_number(row, value),
            Err(why) => self.put_fault(row, format!("{}: {why}", shown(place))),
        }
    }

    fn put_number(&mut self, row: &str, value: f64) {
        if let Some(row) = self.row(row).filter(|row| row.values.len() < VALUES_MAX) {
            row.values.push(value);
            self.seen += 1;
        } else {
            self.beyond += 1;
        }
    }

    /// Adds values of a row whose unit and direction are known.
    fn put_declared(&mut self, row: &str, values: &[f64], declared: &Declared) {
        for value in values {
            self.put_number(row, *value);
        }
        if let Some(row) = self.row(row) {
            row.declared.get_or_insert_with(|| declared.clone());
        }
    }

    fn put_fault(&mut self, row: &str, why: String) {
        if let Some(row) = self.row(row) {
            row.fault.get_or_insert(why);
            self.seen += 1;
        } else {
            self.beyond += 1;
        }
    }

    /// Returns a row, a new one if need be; `None` beyond the limits of rows and values.
    fn row(&mut self, name: &str) -> Option<&mut Row> {
        if self.seen >= self.most {
            return None;
        }
        let place = match self.places.get(name) {
            Some(place) => *place,
            None if self.rows.len() >= ROWS_MAX || name.len() > NAME_MAX => return None,
            None => {
                self.rows.push(Row {
                    name: name.to_owned(),
                    values: Vec::new(),
                    fault: None,
                    declared: None,
                });
                self.places.insert(name.to_owned(), self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        self.rows.get_mut(place)
    }

    /// Notes a file whose values are in another file too.
    fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// Returns the number of values and faults, to see whether a file contributed any.
    fn seen(&self) -> usize {
        self.seen + self.passed_over
    }

    /// Returns the rows. A row with an invalid value is skipped as a whole: the other values would
    /// misrepresent it.
    fn into(self, foreign: &mut Foreign) {
        let mut faults = Vec::new();
        for Row {
            name,
            values: samples,
            fault,
            declared,
        } in self.rows
        {
            let workload = format!("{}/{name}", self.test);
            if let Some(why) = fault {
                faults.push(LeftOut::new(&workload, why));
                continue;
            }
            if !is_name(&workload) {
                foreign
                    .left_out
                    .push(LeftOut::new(&workload, "its name is not fit to be one"));
                continue;
            }
            let operations = 1;
            let outcome = Outcome::Completed;
            let counted = Vec::new();
            foreign.results.push(WorkloadResult {
                workload,
                operations,
                declared,
                outcome,
                samples,
                counted,
            });
        }
        faults.sort();
        foreign.left_out.extend(faults);
        if self.beyond > 0 {
            let why = format!(
                "values beyond the limits: {} (Marvin keeps {ROWS_MAX} rows of a test, {VALUES_MAX} values of a row, \
                 {RUN_VALUES_MAX} of a run)",
                self.beyond
            );
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

/// Returns the lines that may have results.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.len() <= LINE_MAX)
}

/// Returns whether a name fits tables, file names and commands: printable ASCII without spaces, no
/// `..`.
fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"'`\\<>&,".contains(&byte))
        && name
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Returns foreign text in printable form: escaped, and of at most 80 characters.
fn shown(text: &str) -> String {
    let escaped: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        escaped + "…"
    } else {
        escaped
    }
}

//! The answer of a gate: which workloads fit the budgets of a tree after a change.

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::{Limit, sanitize_line};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

pub use crate::budget_fit::{Fit, fit};

/// Files and edits that are named.
const SHOWN: usize = 6;

/// A row of a budget that a change touches.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRow {
    /// The workload.
    pub workload: String,
    /// The name of the budget.
    pub budget: String,
    /// Its limit before the change; `None` if it had none.
    pub limit_before: Option<Limit>,
    /// Its limit after the change; `None` if the change removes it.
    pub limit: Option<Limit>,
    /// What was measured; `None` for equal images.
    pub measured: Option<GateMeasured>,
}

/// The measurement of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct GateMeasured {
    /// The value before the change, in the row's unit.
    pub before: Option<f64>,
    /// The value after the change.
    pub after: Option<f64>,
    /// The difference in percent; positive is better.
    pub difference_percent: Option<f64>,
    /// Whether it differs by more than the metric's margin, or may.
    pub moved: bool,
    /// How it fits the limit before the change; `None` if it had none.
    pub fit_before: Option<Fit>,
    /// How it fits the limit after the change.
    pub fit: Option<Fit>,
}

/// What a gate says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowVerdict {
    /// It fits its budget.
    Holds,
    /// It exceeds the budget before the change, and the change edits that.
    Edited,
    /// It is above its count as before.
    AboveBefore,
    /// The measurements do not decide.
    Undecided,
    /// It exceeds its budget.
    Exceeds,
}

impl RowVerdict {
    /// Returns its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Edited => "edited",
            Self::AboveBefore => "above as before",
            Self::Undecided => "undecided",
            Self::Exceeds => "exceeds",
        }
    }
}

impl GateRow {
    /// Returns what the gate says of it.
    #[must_use]
    pub fn verdict(&self) -> RowVerdict {
        let Some(measured) = &self.measured else {
            return RowVerdict::Holds;
        };
        let is_edited = self.limit_before.is_some() && self.limit_before != self.limit;
        match (&measured.fit, &measured.fit_before) {
            (Some(Fit::Exceeds), _) => RowVerdict::Exceeds,
            (Some(Fit::Undecided(_)), _) => RowVerdict::Undecided,
            (_, Some(Fit::Exceeds | Fit::Undecided(_))) if is_edited => RowVerdict::Edited,
            (Some(Fit::AboveBefore), _) => RowVerdict::AboveBefore,
            _ => RowVerdict::Holds,
        }
    }

    fn moved(&self) -> bool {
        self.measured
            .as_ref()
            .is_some_and(|measured| measured.moved)
    }

    /// Returns its limit, and the one before if the change edits it.
    fn describe_limit(&self) -> String {
        match (self.limit_before, self.limit) {
            (Some(before), Some(after)) if before != after => format!("{before} -> {after}"),
            (_, Some(limit)) => limit.to_string(),
            (Some(before), None) => format!("{before} -> none"),
            (None, None) => "none".to_owned(),
        }
    }
}

/// The answer of a gate.
#[derive(Debug, Clone)]
pub struct GateAnswer {
    /// What was measured, in a line.
    pub title: String,
    /// Where the budgets are from.
    pub source: String,
    /// The files that the change touches.
    pub files: Vec<String>,
    /// The names of the budgets that are about some of them, and who answers for them.
    pub touched: Vec<(String, Vec<String>)>,
    /// The rows of these budgets.
    pub rows: Vec<GateRow>,
    /// Whether both images are the same.
    pub equal_images: bool,
    /// Code that the change touches and that the config does not compile.
    pub not_compiled: Vec<String>,
    /// How many functions that it changes are entered by a row.
    pub entered: usize,
    /// Functions that it changes, that have code and that no row enters.
    pub not_entered: Vec<String>,
    /// Why the change has no kernel; `None` if it has.
    pub failure: Option<String>,
    /// What the change edits in budgets, in words that begin with a verb.
    pub edits: Vec<String>,
    /// The command that measures the rows commit by commit.
    pub details: String,
}

/// What a gate says of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// No budget is about its files.
    NotTouched,
    /// All rows fit.
    Holds,
    /// Rows that would exceed their budget have an edited one.
    Edited,
    /// The measurements do not decide, the config does not compile the change, or no row enters it.
    Undecided,
    /// A row exceeds its budget.
    Exceeds,
    /// It does not apply, build or boot.
    Failed,
}

impl GateVerdict {
    /// Returns its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NotTouched => "not touched",
            Self::Holds => "holds",
            Self::Edited => "edited",
            Self::Undecided => "undecided",
            Self::Exceeds => "exceeds",
            Self::Failed => "failed",
        }
    }
}

impl GateAnswer {
    /// Returns what the gate says of the change.
    #[must_use]
    pub fn verdict(&self) -> GateVerdict {
        let any = |wanted| self.rows.iter().any(|row| row.verdict() == wanted);
        if self.failure.is_some() {
            GateVerdict::Failed
        } else if self.touched.is_empty() {
            GateVerdict::NotTouched
        } else if any(RowVerdict::Exceeds) {
            GateVerdict::Exceeds
        } else if any(RowVerdict::Undecided)
            || !self.not_compiled.is_empty()
            || self.is_not_entered()
        {
            GateVerdict::Undecided
        } else if any(RowVerdict::Edited) {
            GateVerdict::Edited
        } else {
            GateVerdict::Holds
        }
    }

    /// Tells whether no row enters any function that the change touches.
    fn is_not_entered(&self) -> bool {
        self.entered == 0 && !self.not_entered.is_empty()
    }

    /// Returns the text: one line if nothing moved.
    #[must_use]
    pub fn text(&self) -> String {
        let edits = self.edits.iter().take(SHOWN);
        let mut lines: Vec<String> = edits.map(|edit| format!("the change {edit}\n")).collect();
        if self.edits.len() > SHOWN {
            let more = self.edits.len() - SHOWN;
            lines.push(format!("{more} more edits of budgets\n"));
        }
        self.body() + &lines.concat()
    }

    fn body(&self) -> String {
        let Self { title, source, .. } = self;
        if let Some(why) = &self.failure {
            return format!("failed: {title}: {why}\n");
        }
        if self.touched.is_empty() {
            let files = document::number::count(self.files.len(), "file");
            let named = if self.files.is_empty() {
                String::new()
            } else {
                format!(" ({})", shorten(&self.files))
            };
            return format!(
                "not touched: no budget is about the {files} of {title}{named}; {source}\n"
            );
        }
        let names: Vec<&str> = self.touched.iter().map(|(name, _)| &**name).collect();
        let names = names.join(", ");
        let rows = document::number::count(self.rows.len(), "row");
        if self.equal_images && self.not_compiled.is_empty() {
            return format!(
                "holds: {title}: the same image, so {rows} of {names} hold; {source}\n"
            );
        }
        if self.equal_images {
            return format!(
                "undecided: {title}: this config does not compile {}, so {rows} of {names} are not measured; {source}\n",
                shorten(&self.not_compiled)
            );
        }
        let silent = |row: &&GateRow| row.verdict() == RowVerdict::Holds && !row.moved();
        let silent = self.rows.iter().filter(silent).count();
        if silent == self.rows.len() && self.not_compiled.is_empty() {
            let not_entered = shorten(&self.not_entered);
            if self.is_not_entered() {
                return format!(
                    "undecided: {title}: no row enters {not_entered}, and none of {rows} of {names} moved; {source}\n"
                );
            }
            let but = match not_entered.is_empty() {
                true => String::new(),
                false => format!(" (no row enters {not_entered})"),
            };
            return format!(
                "holds: {title}: {rows} of {names} hold and none moved{but}; {source}\n"
            );
        }
        format!(
            "{title}: {names}\n{source}\n\n{}\n{}",
            self.table(),
            self.ending(silent)
        )
    }

    /// The rows that moved or do not hold.
    fn table(&self) -> String {
        let head = [
            "row",
            "budget",
            "before",
            "after",
            "difference",
            "limit",
            "",
        ];
        let mut lines = vec![head.map(str::to_owned)];
        let told = |row: &&GateRow| row.verdict() != RowVerdict::Holds || row.moved();
        for row in self.rows.iter().filter(told) {
            let measured = row.measured.as_ref();
            let value = |of: fn(&GateMeasured) -> Option<f64>| {
                measured
                    .and_then(of)
                    .map_or("-".to_owned(), |value| format!("{value:.2}"))
            };
            let difference = measured.and_then(|measured| measured.difference_percent);
            lines.push([
                row.workload.clone(),
                row.budget.clone(),
                value(|measured| measured.before),
                value(|measured| measured.after),
                difference.map_or("-".to_owned(), |percent| format!("{percent:+.2} %")),
                row.describe_limit(),
                row.verdict().word().to_owned(),
            ]);
        }
        if lines.len() == 1 {
            return String::new();
        }
        let mut widths = [0; 7];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        let show = |line: &[String; 7]| {
            let cells = line.iter().zip(widths).enumerate();
            let cells = cells.map(|(place, (cell, width))| match place {
                2..=5 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        lines.iter().map(show).collect()
    }

    /// What follows from the rows, in a few lines.
    fn ending(&self, silent: usize) -> String {
        let mut lines = Vec::new();
        if silent > 0 {
            let rows = document::number::count(silent, "other row");
            let verb = if silent == 1 { "holds" } else { "hold" };
            lines.push(format!("{rows} {verb} and did not move"));
        }
        for row in &self.rows {
            let measured = row.measured.as_ref();
            if let Some(Fit::Undecided(why)) = measured.and_then(|measured| measured.fit.as_ref()) {
                lines.push(format!("undecided: {}: {why}", row.workload));
            }
        }
        if !self.not_compiled.is_empty() {
            let files = shorten(&self.not_compiled);
            lines.push(format!("undecided: this config does not compile {files}"));
        }
        if !self.not_entered.is_empty() {
            let word = if self.is_not_entered() {
                "undecided: "
            } else {
                ""
            };
            let functions = shorten(&self.not_entered);
            lines.push(format!("{word}no row enters {functions}"));
        }
        let edited = self.rows_with(RowVerdict::Edited);
        if !edited.is_empty() {
            lines.push(format!(
                "accepted, as the same change edits the budget: {}{}",
                shorten(&edited),
                self.owners_of(RowVerdict::Edited)
            ));
        }
        let exceeding = self.rows_with(RowVerdict::Exceeds);
        if !exceeding.is_empty() {
            lines.push(format!(
                "refused: over the budget: {}{}",
                shorten(&exceeding),
                self.owners_of(RowVerdict::Exceeds)
            ));
            lines.push(format!("which commit: {}", self.details));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Names the rows with a verdict.
    fn rows_with(&self, verdict: RowVerdict) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row.verdict() == verdict);
        rows.map(|row| format!("{} ({})", row.workload, row.budget))
            .collect()
    }

    /// Names who answers for the budgets of rows with a verdict.
    fn owners_of(&self, verdict: RowVerdict) -> String {
        let budgets: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| row.verdict() == verdict)
            .map(|row| &*row.budget)
            .collect();
        let mut owners: Vec<String> = Vec::new();
        for (name, of_budget) in &self.touched {
            if budgets.contains(&&**name) {
                let new = of_budget.iter().map(|owner| sanitize_line(owner));
                owners.extend(
                    new.filter(|owner| !owners.contains(owner))
                        .collect::<Vec<_>>(),
                );
            }
        }
        if owners.is_empty() {
            return String::new();
        }
        format!("; owners: {}", shorten(&owners))
    }

    /// Returns the JSON document.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn json(&self) -> Result<String, RenderError> {
        write_json(&GateDocument {
            schema_version: SCHEMA_VERSION,
            kind: "gate",
            verdict: self.verdict().word(),
            title: self.title.clone(),
            budgets_from: self.source.clone(),
            files: self.files.iter().map(|file| sanitize_line(file)).collect(),
            touched: self
                .touched
                .iter()
                .map(|(name, owners)| TouchedDocument {
                    budget: name.clone(),
                    owners: owners.iter().map(|owner| sanitize_line(owner)).collect(),
                })
                .collect(),
            equal_images: self.equal_images,
            not_compiled: self.not_compiled.clone(),
            not_entered: self.not_entered.clone(),
            failure: self.failure.clone(),
            edits: self.edits.clone(),
            rows: self.rows.iter().map(row_document).collect(),
            details: self.details.clone(),
        })
    }
}

fn row_document(row: &GateRow) -> GateRowDocument {
    let measured = row.measured.as_ref();
    let undecided = match measured.and_then(|measured| measured.fit.as_ref()) {
        Some(Fit::Undecided(why)) => Some(why.clone()),
        _ => None,
    };
    GateRowDocument {
        workload: row.workload.clone(),
        budget: row.budget.clone(),
        limit_before: row.limit_before.map(|limit| limit.to_string()),
        limit: row.limit.map(|limit| limit.to_string()),
        verdict: row.verdict().word(),
        moved: row.moved(),
        before: measured.and_then(|measured| measured.before),
        after: measured.and_then(|measured| measured.after),
        difference_percent: measured.and_then(|measured| measured.difference_percent),
        undecided,
    }
}

/// Names a few, and counts the rest.
fn shorten(all: &[String]) -> String {
    let shown = all.iter().take(SHOWN).map(|one| sanitize_line(one));
    let shown: Vec<String> = shown.collect();
    match all.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether a change fits the budgets of its tree.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// not touched, holds, edited, undecided, exceeds, or failed.
    verdict: &'static str,
    /// What was measured, in a line.
    title: String,
    /// Where the budgets are from.
    budgets_from: String,
    /// The files that the change touches.
    files: Vec<String>,
    /// The budgets that are about some of them.
    touched: Vec<TouchedDocument>,
    /// Whether the image after the change is the one before it: then no row is measured.
    equal_images: bool,
    /// Code that the change touches and that the config does not compile.
    not_compiled: Vec<String>,
    /// Functions that the change touches, that have code and that no row enters.
    not_entered: Vec<String>,
    /// Why the change has no kernel; null if it has.
    failure: Option<String>,
    /// What the change edits in budgets, in words that begin with a verb.
    edits: Vec<String>,
    /// The rows of the touched budgets.
    rows: Vec<GateRowDocument>,
    /// The command that measures the rows commit by commit.
    details: String,
}

/// A budget that a change touches.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct TouchedDocument {
    /// Its name.
    budget: String,
    /// Who answers for it.
    owners: Vec<String>,
}

/// A row of a budget.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct GateRowDocument {
    /// The workload.
    workload: String,
    /// The budget's name.
    budget: String,
    /// Its limit before the change, as the file has it; null if it had none.
    limit_before: Option<String>,
    /// Its limit after the change; null if the change removes it.
    limit: Option<String>,
    /// holds, edited, above as before, undecided, or exceeds.
    verdict: &'static str,
    /// Whether it differs by more than the metric's margin, or may.
    moved: bool,
    /// The value before the change, in instructions per operation; null if it is not measured.
    before: Option<f64>,
    /// The value after the change.
    after: Option<f64>,
    /// The difference in percent; positive is better.
    difference_percent: Option<f64>,
    /// Why it is undecided.
    undecided: Option<String>,
}

/// Returns the schema of the JSON document.
#[must_use]
pub fn gate_schema() -> Schema {
    schema_of::<GateDocument>("marvin gate")
}

#[cfg(test)]
mod tests {
    use super::{Fit, GateAnswer, GateMeasured, GateRow, GateVerdict, RowVerdict};
    use model::Limit;

    fn row(workload: &str, difference: f64, fit: Fit) -> GateRow {
        GateRow {
            workload: workload.to_owned(),
            budget: "mm".to_owned(),
            limit_before: Some(Limit::Percent(1.0)),
            limit: Some(Limit::Percent(1.0)),
            measured: Some(GateMeasured {
                before: Some(100.0),
                after: Some(100.0 - difference),
                difference_percent: Some(difference),
                moved: difference.abs() > 0.0,
                fit_before: Some(fit.clone()),
                fit: Some(fit),
            }),
        }
    }

    fn answer(rows: Vec<GateRow>) -> GateAnswer {
        GateAnswer {
            title: "0123..4567, 2 commits".to_owned(),
            source: "budgets of .marvin.toml at 4567".to_owned(),
            files: vec!["mm/memory.c".to_owned()],
            touched: vec![("mm".to_owned(), vec!["linux-mm@example.org".to_owned()])],
            rows,
            equal_images: false,
            not_compiled: Vec::new(),
            entered: 1,
            not_entered: Vec::new(),
            failure: None,
            edits: Vec::new(),
            details: "marvin series 0123..4567 --workload fork-exit".to_owned(),
        }
    }

    #[test]
    fn one_line_says_that_nothing_moved() {
        let mut held = answer(vec![row("fork-exit", 0.0, Fit::Within)]);
        assert_eq!(held.verdict(), GateVerdict::Holds);
        let mut lines = held.text();
        held.equal_images = true;
        lines.push_str(&held.text());
        held.not_compiled.push("mm/x.c (needs CONFIG_X)".to_owned());
        lines.push_str(&held.text());
        assert_eq!(held.verdict(), GateVerdict::Undecided);
        held.touched.clear();
        lines.push_str(&held.text());
        assert_eq!(held.verdict(), GateVerdict::NotTouched);
        insta::assert_snapshot!("gate_lines", lines);
    }

    #[test]
    fn exceeding_row_is_refused_unless_edited() {
        let exceeding = row("fork-exit", -6.5, Fit::Exceeds);
        let rows = vec![
            exceeding.clone(),
            row("fault-anon", 0.0, Fit::Within),
            row("mem-mmap", 12.0, Fit::Within),
            row("mem-brk", -1.0, Fit::Undecided("seeds disagree".to_owned())),
        ];
        let refused = answer(rows);
        assert_eq!(refused.verdict(), GateVerdict::Exceeds);
        insta::assert_snapshot!("gate_refused", refused.text());

        let mut edited = exceeding;
        edited.limit = Some(Limit::Percent(7.0));
        if let Some(measured) = &mut edited.measured {
            measured.fit = Some(Fit::Within);
        }
        let mut removed = edited.clone();
        removed.limit = None;
        if let Some(measured) = &mut removed.measured {
            measured.fit = None;
        }
        assert_eq!(removed.verdict(), RowVerdict::Edited);
        let mut accepted = answer(vec![edited, removed]);
        accepted.edits = vec!["edits the budget mm: fork-exit 1 % -> 7 %".to_owned()];
        assert_eq!(accepted.verdict(), GateVerdict::Edited);
        insta::assert_snapshot!("gate_accepted", accepted.text());
    }
}

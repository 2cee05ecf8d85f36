//! Whether the rows on the path of a published report agree with it.
//!
//! A row speaks if it is beyond its margin: by what it counts, or, where that is within the margin,
//! by the lock that is held longest, by a lock that a function of the commit takes, by the work that
//! it defers or by all of its estimate. More rows
//! are more chances to agree by accident. So all rows but the first have to have a function of
//! the mail or of the commit in what differs, and where a row has, those without say nothing.

use ::compare::{Comparison, LockBeside};
use document::layout::Page;
use model::{Uncertainty, Verdict, declared_transfers};
use results::published::PublishedReport;

use crate::commands::compare::RowFunctions;
use crate::exit::Exit;

/// Smaller changes of a function's share are not named, in points.
const POINTS_LEAST: f64 = 0.3;
/// Most functions that are named.
const FUNCTIONS: usize = 6;

/// What a row says to a report, or all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    Agrees,
    Disagrees,
    /// No difference beyond the margin.
    NotSeen,
    /// Unclear, mixed, or rows of both directions.
    Undecided,
}

impl Agreement {
    fn exit(self) -> Exit {
        match self {
            Self::Agrees => Exit::Fine,
            Self::Disagrees | Self::NotSeen | Self::Undecided => Exit::Unclear,
        }
    }
}

/// By what a row is beyond its margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Count,
    Lock,
    LockBeside,
    DeferredWork,
    Estimate,
}

impl By {
    fn words(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Lock => " by a lock",
            Self::LockBeside => " by a lock beside others",
            Self::DeferredWork => " by deferred work",
            Self::Estimate => " by estimated cycles alone",
        }
    }
}

/// What was measured of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeasuredRow {
    name: String,
    margin_percent: f64,
    difference_percent: Option<f64>,
    /// The least and the most of the estimate's.
    cycles_percent: Option<[f64; 2]>,
    verdict: Verdict,
    /// The sentence on where the difference comes from; empty without one.
    origin: String,
    functions: RowFunctions,
}

impl MeasuredRow {
    /// Reads a comparison of one row.
    pub(super) fn of(comparison: &Comparison, functions: &[RowFunctions]) -> Option<Self> {
        let row = comparison.rows.first()?;
        let compared = &row.cells.first()?.compared;
        let name = row.workload.name.to_string();
        let functions = functions.iter().find(|one| one.workload == name);
        Some(Self {
            margin_percent: row.margin_percent,
            difference_percent: compared.difference_percent,
            cycles_percent: compared.cycles_percent.map(|ends| [ends.min, ends.max]),
            verdict: compared.verdict.clone(),
            origin: comparison.origins.join(" "),
            functions: functions.cloned().unwrap_or_default(),
            name,
        })
    }

    fn counts_transfers(&self) -> bool {
        declared_transfers(&self.name).is_some()
    }

    /// Returns whether it is worse or better beyond its margin, and by what.
    fn direction(&self) -> Option<(bool, By)> {
        let is_within = |percent: f64| percent.abs() <= self.margin_percent;
        match &self.verdict {
            Verdict::Worse => Some((true, By::Count)),
            Verdict::Better => Some((false, By::Count)),
            Verdict::Unclear(Uncertainty::Held {
                held_percent,
                lock,
                is_alone: true,
                ..
            }) if self.may_speak(lock) => Some((held_percent[1] < 0.0, By::Lock)),
            Verdict::Unclear(Uncertainty::Deferred {
                counted_percent,
                with_deferred_percent,
                ..
            }) if is_within(*counted_percent) => {
                Some((*with_deferred_percent < 0.0, By::DeferredWork))
            }
            Verdict::Unclear(Uncertainty::Mixed {
                counted_percent,
                cycles_percent,
                ..
            }) if is_within(*counted_percent) => Some((cycles_percent[1] < 0.0, By::Estimate)),
            Verdict::Same => {
                let [old, new] = self.lock_of_commit()?.ns;
                Some((new > old, By::LockBeside))
            }
            Verdict::Unclear(_) => None,
        }
    }

    /// Returns the locks that are held for longer or shorter, and that a function of the commit
    /// takes, or one of the kernels alone.
    fn locks_of_commit(&self) -> impl Iterator<Item = &LockBeside> {
        let functions = &self.functions;
        functions.locks.iter().filter(|lock| match &lock.function {
            Some(function) => functions.changed.contains(function),
            None => functions.is_of_one_commit,
        })
    }

    /// Returns the largest of them, if it is large.
    fn lock_of_commit(&self) -> Option<&LockBeside> {
        self.locks_of_commit().find(|lock| lock.is_large)
    }

    /// Returns whether a lock may speak that is held longest: one in an object only if a function
    /// of the commit takes it, as its time depends on who comes first.
    fn may_speak(&self, lock: &str) -> bool {
        lock.split_once(model::TAKEN_IN)
            .is_none_or(|(_, function)| self.functions.changed.contains(function))
    }

    /// Says why a row speaks that is within its margin.
    fn because(&self) -> String {
        match (&self.verdict, self.lock_of_commit()) {
            (Verdict::Unclear(why), _) => format!("; {why}"),
            (
                Verdict::Same,
                Some(LockBeside {
                    lock,
                    ns: [old, new],
                    ..
                }),
            ) => {
                format!("; {lock} takes {old:.0} -> {new:.0} ns an operation with handing it over")
            }
            _ => String::new(),
        }
    }

    fn agreement(&self, report: &PublishedReport) -> Agreement {
        match (self.direction(), &self.verdict) {
            (Some((is_worse, _)), _) if is_worse == report.is_regression => Agreement::Agrees,
            (Some(_), _) => Agreement::Disagrees,
            (None, Verdict::Same) => Agreement::NotSeen,
            (None, _) => Agreement::Undecided,
        }
    }

    /// Returns a function of the mail, or else of the commit, that differs in the row, and which of
    /// both it is.
    fn link(&self, report: &PublishedReport) -> Option<(String, &'static str)> {
        let differing = &self.functions.differing;
        let of_mail = names_of(report)
            .into_iter()
            .map(|(function, _)| model::without_suffix(function))
            .find(|function| differing.contains(*function));
        if let Some(function) = of_mail {
            return Some((function.to_owned(), "mail"));
        }
        let mut changed = self.functions.changed.iter();
        let of_commit = changed
            .find(|function| differing.contains(*function))
            .cloned();
        let of_lock = || {
            let lock = self.locks_of_commit().next()?;
            Some(lock.function.as_ref().unwrap_or(&lock.lock).clone())
        };
        Some((of_commit.or_else(of_lock)?, "commit"))
    }

    /// Says in one line what was measured.
    fn line(&self, report: &PublishedReport) -> String {
        let mut parts = vec![format!("{} {}", self.name, self.verdict.name())];
        if let Some(percent) = self.difference_percent {
            let what = if self.counts_transfers() {
                "transfers of lines"
            } else {
                "instructions"
            };
            parts.push(format!("{percent:+.2}% by {what}"));
        }
        if let Some([least, most]) = self.cycles_percent {
            // Without the sign of a rounded zero.
            let [least, most] = [least, most].map(|end| (end * 10.0).round() / 10.0 + 0.0);
            parts.push(format!("{least:+.1} to {most:+.1}% by estimated cycles"));
        }
        let mut text = parts.join(", ");
        if let Some(leading) = &self.functions.leading {
            text = format!("{text}; leads {leading}");
        }
        if let Some((function, of)) = self.link(report) {
            text = format!("{text}; of the {of}: {function}");
        }
        text
    }
}

/// Says what Marvin measured, and whether it agrees.
pub(super) fn judge(report: &PublishedReport, rows: &[MeasuredRow], page: &mut Page) -> Exit {
    let Some(first) = rows.first() else {
        page.line("Nothing was measured.");
        return Exit::Unclear;
    };
    for (place, row) in rows.iter().enumerate() {
        let title = if place == 0 {
            "Measured:  "
        } else {
            "           "
        };
        page.hanging(title, &row.line(report));
    }
    let linked: Vec<&MeasuredRow> = rows
        .iter()
        .filter(|row| row.link(report).is_some())
        .collect();
    let counted = if linked.is_empty() {
        vec![first]
    } else {
        linked
    };
    let agreement = conclude(report, &counted);
    let deciding = counted
        .iter()
        .find(|row| row.agreement(report) == agreement)
        .unwrap_or(&counted[0]);
    if !deciding.origin.is_empty() {
        page.hanging("Because:   ", &deciding.origin);
    }
    let mut text = reason(report, agreement, &counted, deciding);
    if rows.len() > 1 {
        let which = counted_words(report, &counted, rows.len());
        text = format!("{text}; {which}");
    }
    let of_function = of_function(report, deciding);
    page.hanging("Verdict:   ", &format!("{text}{of_function}"));
    agreement.exit()
}

/// Returns the names of the rows that say this.
fn saying<'a>(report: &PublishedReport, rows: &[&'a MeasuredRow], what: Agreement) -> Vec<&'a str> {
    let rows = rows.iter().filter(|row| row.agreement(report) == what);
    rows.map(|row| row.name.as_str()).collect()
}

/// Returns what the rows that count say together: one direction, unless others have the opposite.
fn conclude(report: &PublishedReport, counted: &[&MeasuredRow]) -> Agreement {
    let says = |what: Agreement| !saying(report, counted, what).is_empty();
    match (says(Agreement::Agrees), says(Agreement::Disagrees)) {
        (true, true) => Agreement::Undecided,
        (true, false) => Agreement::Agrees,
        (false, true) => Agreement::Disagrees,
        (false, false) if says(Agreement::Undecided) => Agreement::Undecided,
        (false, false) => Agreement::NotSeen,
    }
}

/// Says which rows count.
fn counted_words(report: &PublishedReport, counted: &[&MeasuredRow], all: usize) -> String {
    let has_link = counted.iter().any(|row| row.link(report).is_some());
    match counted.len() {
        _ if !has_link => format!(
            "counted: the first of {all} rows, as none has a function of the mail or commit"
        ),
        some if some == all => format!("counted: all {all} rows"),
        some => {
            format!("counted: {some} of {all} rows, with a function of the mail or commit")
        }
    }
}

/// Says the verdict, and why.
fn reason(
    report: &PublishedReport,
    agreement: Agreement,
    counted: &[&MeasuredRow],
    deciding: &MeasuredRow,
) -> String {
    let row = format!(" ({})", deciding.name);
    let words = deciding.direction().map_or("", |(_, by)| by.words());
    let agreeing = saying(report, counted, Agreement::Agrees).join(", ");
    match (agreement, &deciding.verdict) {
        (Agreement::Agrees, _) => format!("agrees{words}{row}{}", deciding.because()),
        (Agreement::Disagrees, _) => format!(
            "disagrees{words}{row}: the other direction{}",
            deciding.because()
        ),
        (Agreement::NotSeen, _) => not_seen(counted).to_owned(),
        (Agreement::Undecided, _) if !agreeing.is_empty() => {
            let others = saying(report, counted, Agreement::Disagrees).join(", ");
            format!("undecided: {agreeing} agrees, {others} has the other direction")
        }
        (Agreement::Undecided, Verdict::Unclear(why)) => format!("undecided{row}: {why}"),
        (Agreement::Undecided, _) => format!("undecided{row}"),
    }
}

fn not_seen(counted: &[&MeasuredRow]) -> &'static str {
    let is_equal =
        |row: &&MeasuredRow| row.difference_percent == Some(0.0) && !row.counts_transfers();
    if counted.iter().all(is_equal) {
        "not seen: the same to the instruction, so the row does not execute what changed; choose another with --workload"
    } else {
        "not seen: within the margin"
    }
}

/// Says which function of the report the row's sentence has.
fn of_function(report: &PublishedReport, row: &MeasuredRow) -> String {
    let functions = names_of(report);
    let named = functions
        .iter()
        .map(|(function, _)| *function)
        .find(|function| names(&row.origin, function));
    match named {
        Some(function) => format!("; both name {function}"),
        None if functions.is_empty() || row.origin.is_empty() => String::new(),
        // Where an operation becomes shorter, the shares of all others grow.
        None if !functions
            .iter()
            .any(|(_, points)| (*points > 0.0) == report.is_regression) =>
        {
            let change = if report.is_regression { "more" } else { "less" };
            format!("; the report names no function that does {change}")
        }
        None => "; no function of the report is named".to_owned(),
    }
}

/// Returns the functions that a check looks for, with their points.
pub(super) fn names_of(report: &PublishedReport) -> Vec<(&str, f64)> {
    let all = report.functions().into_iter();
    all.filter(|(_, points)| points.abs() >= POINTS_LEAST)
        .take(FUNCTIONS)
        .collect()
}

/// Tells whether a sentence has a function as a word of its own.
fn names(sentence: &str, function: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || "_.".contains(character);
    let mut words = sentence.split(|character| !is_word(character));
    words.any(|word| word == function || word.split('.').next() == Some(function))
}

#[cfg(test)]
mod tests;

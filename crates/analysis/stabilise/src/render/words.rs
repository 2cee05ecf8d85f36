//! Names, percentages and failures in words.

use document::number::percent;
use model::sanitize_line;

use super::{NamedCommit, Report};
use crate::outcome::Effect;
use crate::world::{Change, Failure};

/// Characters of an abbreviated commit, as the kernel's documentation asks for
/// (process/submitting-patches.rst).
const COMMIT: usize = 12;
/// Characters of a percentage without its sign.
const PERCENT: usize = 8;
/// Files in conflict that are named.
const FILES_MAX: usize = 3;
/// Characters of a subject in a sentence, and of an error.
const SUBJECT: usize = 50;
const ERROR: usize = 200;

pub(super) fn short(commit: &str) -> String {
    commit.chars().take(COMMIT).collect()
}

/// Makes text plain and cuts its end.
pub(super) fn cut(text: &str, width: usize) -> String {
    let text = sanitize_line(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// Formats a percentage with its sign: `+3.10`.
pub(super) fn signed(number: f64) -> String {
    let text = percent(number, PERCENT);
    if number > 0.0 && text != "0.00" {
        format!("+{text}")
    } else {
        text
    }
}

/// Formats what an effect amounts to: `3.10%`.
pub(super) fn amount(number: f64) -> String {
    format!("{}%", percent(number.abs(), PERCENT))
}

pub(super) fn count_patches(number: usize) -> String {
    if number == 1 {
        "1 patch".to_owned()
    } else {
        format!("{number} patches")
    }
}

/// Joins words: `a`, `a and b`, `a, b and c`.
pub(super) fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Returns what a row had, if it is among effects.
pub(super) fn effect_on(effects: &[Effect], row: usize) -> Option<f64> {
    effects
        .iter()
        .find(|effect| effect.row == row)
        .map(|effect| effect.percent)
}

/// Formats the effect on a row for a table, without a sign of percent; a dash if the row did not
/// change.
pub(super) fn effect_cell(effects: &[Effect], row: usize) -> String {
    effect_on(effects, row).map_or_else(|| "-".to_owned(), signed)
}

/// Names a commit or patch for a table: commit and subject.
pub(super) fn title_of(named: &NamedCommit) -> String {
    format!("{} {}", short(&named.commit), named.subject)
        .trim()
        .to_owned()
}

impl Report<'_> {
    /// Returns the name of a row.
    pub(super) fn row(&self, row: usize) -> String {
        self.rows
            .get(row)
            .map_or_else(|| format!("row {row}"), |named| sanitize_line(&named.name))
    }

    /// Returns the commit of a point of the history, and its subject.
    pub(super) fn point(&self, point: usize) -> NamedCommit {
        let named = point
            .checked_sub(1)
            .and_then(|place| self.points.get(place))
            .cloned();
        named.unwrap_or_else(|| NamedCommit {
            commit: String::new(),
            subject: format!("point {point}"),
        })
    }

    /// Returns the commit and the subject of a candidate, or of the commit that is reverted.
    pub(super) fn named(&self, change: Change) -> NamedCommit {
        match change {
            Change::Revert(point) => self.point(point),
            Change::Apply(number) => match self.candidates.get(number) {
                Some(candidate) => candidate.named.clone(),
                None => NamedCommit {
                    commit: String::new(),
                    subject: format!("candidate {number}"),
                },
            },
        }
    }

    /// Names a change for a table: commit and subject.
    pub(super) fn title(&self, change: Change) -> String {
        let title = title_of(&self.named(change));
        match change {
            Change::Revert(_) => format!("revert of {title}"),
            Change::Apply(_) => title,
        }
    }

    /// Names a commit of the series by its subject, as its hash is not that of the original.
    pub(super) fn subject(&self, change: Change) -> String {
        let subject = sanitize_line(self.named(change).subject.trim());
        match change {
            Change::Revert(_) => format!("\"Revert \"{subject}\"\""),
            Change::Apply(_) => format!("\"{subject}\""),
        }
    }

    /// Names a change for a sentence: its commit, or its subject.
    pub(super) fn name(&self, change: Change) -> String {
        let named = self.named(change);
        let name = match named.commit.is_empty() {
            true => format!("\"{}\"", cut(&named.subject, SUBJECT)),
            false => short(&named.commit),
        };
        match change {
            Change::Revert(_) => format!("the revert of {name}"),
            Change::Apply(_) => name,
        }
    }

    /// Describes why there is no kernel with a change; with a verb, for the change as the subject.
    pub(super) fn failure(&self, failure: &Failure, of: Option<Change>) -> String {
        match failure {
            Failure::Conflict { change, .. } if of.is_some_and(|of| of != *change) => {
                format!(
                    "needs {}, which {}",
                    self.name(*change),
                    failure_words(failure)
                )
            }
            _ => failure_words(failure),
        }
    }

    /// Lists effects in a sentence: `fault-anon +3.10%, fork -1.00%`.
    pub(super) fn effects(&self, effects: &[Effect]) -> String {
        let texts = effects
            .iter()
            .map(|effect| format!("{} {}%", self.row(effect.row), signed(effect.percent)));
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// Describes a failure, with a verb.
pub(super) fn failure_words(failure: &Failure) -> String {
    match failure {
        Failure::Conflict { files, .. } if files.is_empty() => "does not apply".to_owned(),
        Failure::Conflict { files, .. } => {
            let (shown, more) = files.split_at(files.len().min(FILES_MAX));
            let more = if more.is_empty() {
                String::new()
            } else {
                format!(" and {} more", more.len())
            };
            format!("conflicts in {}{more}", shown.join(", "))
        }
        Failure::DoesNotBuild(error) => format!("does not build: {}", cut(error, ERROR)),
        Failure::DoesNotRun(error) => format!("does not run: {}", cut(error, ERROR)),
    }
}

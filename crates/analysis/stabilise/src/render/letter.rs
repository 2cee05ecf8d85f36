//! What goes with the series to a mailing list: its cover letter, and the note at the end of each
//! commit's message.

use document::layout::{command_lines, wrap};
use document::number::{count, seed_list};

use super::Report;
use super::tables::numbers;
use super::view::Repayment;
use super::words::{cut, effect_cell, effect_on, join, signed, title_of};
use crate::outcome::{Cause, Effect};
use crate::world::Change;

/// Columns of a letter: quoted once or twice, it still fits a mail.
const LETTER: usize = 76;
/// Columns of a commit's message (process/submitting-patches.rst has 75).
const MESSAGE: usize = 72;
/// Columns of a row's name and of a percentage.
const NAME: usize = 34;
const PERCENT: usize = 12;
/// Columns of the note's percentages, and of its names of rows.
const NOTE_PERCENT: usize = 10;
const NOTE_NAME: usize = 40;

/// A letter while it is written.
#[derive(Default)]
struct Letter {
    lines: Vec<String>,
}

/// Writes the cover letter of a series as plain text: its subject, an empty line, and the text.
#[must_use]
pub fn cover_letter(report: &Report<'_>) -> String {
    let outcome = report.outcome;
    let mut letter = Letter::default();
    letter.line(&cut(&subject(report), LETTER));
    letter.blank();
    letter.paragraph("", &opening(report));
    letter.blank();
    letter.debts(report);
    if !outcome.series.is_empty() {
        letter.blank();
        letter.paragraph(
            "",
            "The patches, with what each brings on its own and, in brackets, what the whole series loses without it:",
        );
        letter.blank();
        for (number, change) in (1..).zip(&outcome.series) {
            letter.patch(report, number, *change);
        }
    }
    letter.causes(report);
    let unpaid = report.unpaid();
    if !unpaid.is_empty() {
        letter.blank();
        letter.paragraph("", "Not recovered:");
        unpaid.iter().for_each(|debt| letter.paragraph("  ", debt));
        if report.parted_at.is_some() {
            let [baseline, new] = [&report.baseline.name, &report.new.name];
            letter.paragraph(
                "",
                &format!("{baseline} is no ancestor of {new}: patches that only {baseline} has may be missing."),
            );
        }
    }
    if !outcome.worse.is_empty() {
        letter.blank();
        letter.paragraph(
            "",
            &format!(
                "The series makes these worse: {}.",
                report.effects(&outcome.worse)
            ),
        );
    }
    if !outcome.broken_steps.is_empty() {
        let steps: Vec<usize> = outcome.broken_steps.keys().copied().collect();
        letter.blank();
        letter.paragraph(
            "",
            &format!(
                "Not bisectable: there is no working kernel after {}.",
                numbers(&steps)
            ),
        );
    }
    letter.measurement(report);
    letter.finish()
}

/// Returns the subject of the letter, without `[PATCH 0/n]`.
fn subject(report: &Report<'_>) -> String {
    let of = count(report.outcome.debts.len(), "performance regression");
    let fixes = match report.count_repaid(Repayment::Repaid) {
        0 => format!("reduce {}", report.count_repaid(Repayment::Partly)),
        repaid => format!("fix {repaid}"),
    };
    format!(
        "{}: {fixes} of {of} since {}",
        report.new.name, report.baseline.name
    )
}

fn opening(report: &Report<'_>) -> String {
    let debts = report.outcome.debts.len();
    let rows = count(report.rows.len(), "benchmark");
    let mut text = format!(
        "{} is slower than {} in {debts} of {rows} of the suite {}.",
        report.new, report.baseline, report.measuring.suite
    );
    let series = &report.outcome.series;
    if !series.is_empty() {
        let [repaid, partly] =
            [Repayment::Repaid, Repayment::Partly].map(|like| report.count_repaid(like));
        let partly = if partly == 0 {
            String::new()
        } else {
            format!(" and {partly} in part")
        };
        let with = if series.len() == 1 {
            "this patch".to_owned()
        } else {
            format!("these {} patches", series.len())
        };
        text = format!("{text} With {with}, {repaid} of them recover{partly}.");
    }
    if report.outcome.is_cut {
        text.push_str(" The search ended early, so there may be more to recover.");
    }
    text
}

impl Letter {
    fn line(&mut self, line: &str) {
        self.lines.push(line.trim_end().to_owned());
    }

    fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    /// Writes a paragraph, each line indented.
    fn paragraph(&mut self, indent: &str, text: &str) {
        for line in wrap(text, LETTER - indent.len()) {
            self.line(&format!("{indent}{line}"));
        }
    }

    /// Writes the table of what was slow.
    fn debts(&mut self, report: &Report<'_>) {
        self.paragraph(
            "",
            &format!(
                "Difference from {} in percent, negative is worse:",
                report.baseline.name
            ),
        );
        self.blank();
        self.row("", "now", "with series");
        for debt in &report.outcome.debts {
            let left = debt.left_percent.map_or_else(|| "-".to_owned(), signed);
            self.row(&report.row(debt.row), &signed(debt.percent), &left);
        }
    }

    fn row(&mut self, name: &str, now: &str, then: &str) {
        self.line(&format!(
            "  {:<NAME$}{now:>PERCENT$}{then:>PERCENT$}",
            cut(name, NAME)
        ));
    }

    /// Writes a patch of the series with one line of effect.
    fn patch(&mut self, report: &Report<'_>, number: usize, change: Change) {
        self.line(&cut(
            &format!("  {number:>2} {}", report.title(change)),
            LETTER,
        ));
        let mut effects = Vec::new();
        for row in report.rows_moved(change) {
            let unit = report.unit_in_series(change);
            let alone = unit.and_then(|unit| effect_on(unit.effects_alone(), row));
            let in_series = unit.and_then(|unit| effect_on(&unit.in_series, row));
            let text = match (alone, in_series) {
                (Some(alone), Some(in_series)) => {
                    format!("{}% ({}%)", signed(alone), signed(in_series))
                }
                (Some(alone), None) => format!("{}%", signed(alone)),
                (None, Some(in_series)) => format!("({}%)", signed(in_series)),
                (None, None) => continue,
            };
            effects.push(format!("{} {text}", report.row(row)));
        }
        let needed_by = report.needed_by(change);
        if !needed_by.is_empty() {
            effects.push(format!("needed by {}", numbers(&needed_by)));
        }
        if !effects.is_empty() {
            self.paragraph("     ", &effects.join(", "));
        }
    }

    /// Writes the commits that made rows worse.
    fn causes(&mut self, report: &Report<'_>) {
        if report.outcome.causes.is_empty() {
            return;
        }
        self.blank();
        self.paragraph("", "The regressions come from:");
        self.blank();
        for Cause { point, effects, .. } in &report.outcome.causes {
            let title = title_of(&report.point(*point));
            self.line(&cut(&format!("  {title}"), LETTER));
            self.paragraph("     ", &report.effects(effects));
        }
    }

    /// Writes how it was measured, and how to do that again.
    fn measurement(&mut self, report: &Report<'_>) {
        let measuring = &report.measuring;
        let seeds = seed_list(&measuring.seeds);
        self.blank();
        let text = format!(
            "Measured by Marvin on {}, kernel config {}, {seeds}. Marvin built and measured {} with candidates \
             from {}.",
            measuring.machine,
            measuring.config,
            count(report.cost.kernels, "kernel"),
            report.source
        );
        self.paragraph("", &text);
        self.paragraph("", "To reproduce:");
        self.blank();
        for line in command_lines(&report.command, LETTER - 2) {
            self.line(&format!("  {line}"));
        }
    }

    fn finish(mut self) -> String {
        self.lines.push(String::new());
        self.lines.join("\n")
    }
}

/// Writes the lines at the end of a picked commit's message: what it does in which row, and on what
/// that was measured. They are in brackets, as the notes of those who backport a commit are.
#[must_use]
pub fn effect_note(report: &Report<'_>, change: Change) -> String {
    let rows = report.rows_moved(change);
    let mut lines = Vec::new();
    if !rows.is_empty() {
        let head = "alone";
        lines.push(format!(
            "{:<NOTE_NAME$}{head:>NOTE_PERCENT$}{:>NOTE_PERCENT$}",
            "Percent, positive is better:", "in series"
        ));
        let unit = report.unit_in_series(change);
        let alone = unit.map_or(&[][..], |unit| unit.effects_alone());
        let in_series = unit.map_or(&[][..], |unit| &unit.in_series);
        for row in rows {
            let cells = [alone, in_series].map(|effects: &[Effect]| effect_cell(effects, row));
            let name = cut(&report.row(row), NOTE_NAME - 3);
            lines.push(format!(
                "  {name:<0$}{1:>NOTE_PERCENT$}{2:>NOTE_PERCENT$}",
                NOTE_NAME - 2,
                cells[0],
                cells[1]
            ));
        }
    }
    let mut needed_by: Vec<String> = Vec::new();
    for number in report.needed_by(change) {
        let other = report.outcome.series.get(number - 1);
        needed_by.extend(other.map(|other| report.subject(*other)));
    }
    if !needed_by.is_empty() {
        lines.extend(wrap(
            &format!("Needed by {}.", join(&needed_by)),
            MESSAGE - 4,
        ));
    }
    if lines.is_empty() {
        lines.push("No effect of its own was measured.".to_owned());
    }
    let seeds = seed_list(&report.measuring.seeds);
    lines.extend(wrap(
        &format!(
            "On {}, {}, {seeds}. ]",
            report.new, report.measuring.machine
        ),
        MESSAGE - 2,
    ));
    let lines = lines.into_iter().enumerate().map(|(number, line)| {
        let indent = if number == 0 { "[ " } else { "  " };
        format!("{indent}{line}\n")
    });
    lines.collect()
}

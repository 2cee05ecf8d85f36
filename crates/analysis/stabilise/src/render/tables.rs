//! The tables of the document: debts, causes by row, patches by row, what was not taken.

use document::layout::{WIDTH, wrap};
use document::{Block, Column, ColumnKind, Details, Table, TableRow, Weight, Width};
use model::Availability;

use super::view::{NotTaken, WhyNot};
use super::words::{cut, effect_cell, effect_on, join, short, signed, title_of};
use super::{NamedCommit, Report};
use crate::outcome::{Cause, Effect};
use crate::world::Change;

/// Causes of a debt that are named in its line.
const CAUSES_MAX: usize = 2;
/// Width of each column of numbers beside the names of rows below a patch.
const NUMBER: usize = 11;
/// Width of the text of a change below its title.
const INDENT: usize = 4;
/// Changes that were not taken in the text; JSON has all.
const NOT_TAKEN_MAX: usize = 24;

/// Returns the table of debts: those with the same main cause together.
pub(super) fn debts(report: &Report<'_>) -> Table {
    let columns = vec![
        Column::new("row", ColumnKind::Name, Width::Whole(24)),
        Column::new("worse %", ColumnKind::Number, Width::Fixed(9)),
        Column::new("explained", ColumnKind::Number, Width::Fixed(10)),
        Column::new("left %", ColumnKind::Number, Width::Fixed(8)),
        Column::new("causes", ColumnKind::Words, Width::Fit(28)),
    ];
    let mut rows = Vec::new();
    for debt in report.debts_by_cause() {
        let cells = [
            cut(&report.row(debt.row), WIDTH),
            signed(debt.percent),
            format!("{:.0}%", debt.explained_percent),
            debt.left_percent.map_or_else(|| "-".to_owned(), signed),
            hashes(report, &report.causes_of(debt.row)),
        ];
        rows.push(TableRow::new(Weight::Normal, cells));
    }
    Table {
        columns,
        rows,
        ..Table::default()
    }
}

/// Names as many causes as fit.
fn hashes(report: &Report<'_>, causes: &[&Cause]) -> String {
    if causes.is_empty() {
        return "not found".to_owned();
    }
    let (shown, more) = causes.split_at(causes.len().min(CAUSES_MAX));
    let mut names: Vec<String> = shown
        .iter()
        .map(|cause| hash(&report.point(cause.point)))
        .collect();
    if !more.is_empty() {
        names.push(format!("+{}", more.len()));
    }
    names.join(" ")
}

/// Returns the abbreviated commit, or what there is instead.
fn hash(named: &NamedCommit) -> String {
    if named.commit.is_empty() {
        cut(&named.subject, 12)
    } else {
        short(&named.commit)
    }
}

/// Returns the table of causes: the rows that each moved, and what its revert brings.
pub(super) fn causes(report: &Report<'_>) -> Table {
    let layout = Layout { numbers: 2 };
    let mut rows = Vec::new();
    for cause in &report.outcome.causes {
        rows.push(layout.title(&title_of(&report.point(cause.point)), Weight::Normal));
        if cause.first < cause.point {
            let count = document::number::count(cause.point - cause.first, "commit");
            let first = short(&report.point(cause.first).commit);
            let text = format!(
                "or one of {count} before it, from {first} on: Marvin cannot measure kernels between them"
            );
            rows.extend(layout.lines(&text));
        }
        let reverted = match &cause.reverted {
            Some(Availability::Available(effects)) => effects.as_slice(),
            _ => &[],
        };
        for row in rows_of(&cause.effects, reverted) {
            let brings = if cause.reverted.is_some() {
                effect_cell(reverted, row)
            } else {
                String::new()
            };
            rows.push(layout.row(&report.row(row), [effect_cell(&cause.effects, row), brings]));
        }
        match &cause.reverted {
            Some(Availability::Unavailable(failure)) => {
                let why = report.failure(failure, Some(Change::Revert(cause.point)));
                rows.extend(layout.lines(&format!("its revert {why}")));
            }
            Some(Availability::Available(effects)) if effects.is_empty() => {
                rows.extend(layout.lines("its revert moves no row"));
            }
            Some(Availability::Available(_)) => {}
            None => rows.extend(layout.lines("its revert was not tried")),
        }
    }
    Table {
        columns: layout.columns("commit, row", &["effect %", "revert %"]),
        rows,
        ..Table::default()
    }
}

/// Returns the table of the series: each patch with the rows that it moves, alone and in the
/// series.
pub(super) fn series(report: &Report<'_>) -> Table {
    let layout = Layout { numbers: 2 };
    let mut rows = Vec::new();
    for (number, change) in (1..).zip(&report.outcome.series) {
        let weight = if report.is_only_needed(*change) {
            Weight::Faint
        } else {
            Weight::Normal
        };
        rows.push(layout.title(&format!("{number:>2} {}", report.title(*change)), weight));
        let needed_by = report.needed_by(*change);
        if !needed_by.is_empty() {
            rows.extend(layout.lines(&format!("needed by {}", numbers(&needed_by))));
        }
        let Some(unit) = report.unit_in_series(*change) else {
            continue;
        };
        let needs = report.needs(*change);
        if !needs.is_empty() && !report.rows_moved(*change).is_empty() {
            rows.extend(layout.lines(&format!("needs {}", numbers(&needs))));
        }
        if let Availability::Unavailable(failure) = &unit.alone {
            rows.extend(layout.lines(&format!(
                "alone it {}",
                report.failure(failure, Some(*change))
            )));
        }
        let alone = unit.effects_alone();
        for row in report.rows_moved(*change) {
            let mut name = report.row(row);
            if !report.is_debt(row) {
                name.push_str(", no debt");
            }
            rows.push(layout.row(
                &name,
                [effect_cell(alone, row), effect_cell(&unit.in_series, row)],
            ));
        }
    }
    Table {
        columns: layout.columns("patch, row", &["alone %", "series %"]),
        rows,
        ..Table::default()
    }
}

/// Numbers of patches in a sentence: `3`, `3 and 5`.
pub(super) fn numbers(numbers: &[usize]) -> String {
    join(
        &numbers
            .iter()
            .map(|number| format!("#{number}"))
            .collect::<Vec<_>>(),
    )
}

/// Returns what was tried and not taken: a table, and for pages those that move no row.
pub(super) fn not_taken(report: &Report<'_>) -> Vec<Block> {
    let all = report.not_taken();
    if all.is_empty() {
        return Vec::new();
    }
    let (idle, effective): (Vec<&NotTaken<'_>>, Vec<&NotTaken<'_>>) = all
        .iter()
        .partition(|not_taken| not_taken.why == WhyNot::NoEffect);
    let mut blocks = vec![Block::Heading("Tried and not taken".to_owned())];
    let (shown, more) = effective.split_at(effective.len().min(NOT_TAKEN_MAX));
    if !shown.is_empty() {
        blocks.push(Block::Table(not_taken_table(report, shown)));
    }
    if !more.is_empty() {
        blocks.push(Block::Paragraph(format!(
            "{} others were not taken; --json lists them.",
            more.len()
        )));
        blocks.push(folded(report, &format!("{} others", more.len()), more));
    }
    if !idle.is_empty() {
        let moves = match idle.len() {
            1 => "1 change was tried alone and moves no row.".to_owned(),
            many => format!("{many} changes were tried alone and move no row."),
        };
        blocks.push(Block::Paragraph(moves));
        blocks.push(folded(
            report,
            &format!("{} without effect", idle.len()),
            &idle,
        ));
    }
    blocks
}

fn folded(report: &Report<'_>, summary: &str, changes: &[&NotTaken<'_>]) -> Block {
    let titles = changes
        .iter()
        .map(|not_taken| report.title(not_taken.change))
        .collect();
    Block::Details(Details {
        summary: summary.to_owned(),
        blocks: vec![Block::List(titles)],
        pages_only: false,
    })
}

fn not_taken_table(report: &Report<'_>, shown: &[&NotTaken<'_>]) -> Table {
    let layout = Layout { numbers: 1 };
    let mut rows = Vec::new();
    for not_taken in shown {
        rows.push(layout.title(&report.title(not_taken.change), Weight::Normal));
        rows.extend(layout.lines(&report.why_not_taken(not_taken)));
        for effect in not_taken
            .unit
            .into_iter()
            .flat_map(|unit| unit.effects_alone().iter())
        {
            rows.push(layout.row(&report.row(effect.row), [signed(effect.percent)]));
        }
    }
    Table {
        columns: layout.columns("change, row", &["alone %"]),
        rows,
        ..Table::default()
    }
}

/// The layout of tables with the rows of the suite below each commit or patch.
#[derive(Clone, Copy)]
struct Layout {
    numbers: usize,
}

impl Layout {
    fn columns(self, name: &str, heads: &[&str]) -> Vec<Column> {
        let name = Column::new(name, ColumnKind::Name, Width::Fixed(self.name()));
        let numbers = heads
            .iter()
            .map(|head| Column::new(head, ColumnKind::Number, Width::Fixed(NUMBER)));
        std::iter::once(name).chain(numbers).collect()
    }

    /// Returns the width of names beside numbers.
    fn name(self) -> usize {
        WIDTH - self.numbers * NUMBER
    }

    /// Returns the line of a commit or patch, as wide as the table.
    fn title(self, title: &str, weight: Weight) -> TableRow {
        let empty = std::iter::repeat_n(String::new(), self.numbers);
        TableRow::new(weight, std::iter::once(cut(title, WIDTH)).chain(empty))
    }

    /// Returns the line of a row of the suite, below a patch.
    fn row(self, name: &str, numbers: impl IntoIterator<Item = String>) -> TableRow {
        let name = format!("{:INDENT$}{}", "", cut(name, self.name() - INDENT));
        TableRow::new(Weight::Normal, std::iter::once(name).chain(numbers))
    }

    /// Returns words below a patch, as wide as the table.
    fn lines(self, text: &str) -> Vec<TableRow> {
        let mut lines = Vec::new();
        for line in wrap(text, WIDTH - INDENT) {
            lines.push(self.title(&format!("{:INDENT$}{line}", ""), Weight::Faint));
        }
        lines
    }
}

/// Returns the rows of two lists of effects: first those of the first list.
fn rows_of(first: &[Effect], second: &[Effect]) -> Vec<usize> {
    let others = second
        .iter()
        .map(|effect| effect.row)
        .filter(|row| effect_on(first, *row).is_none());
    first
        .iter()
        .map(|effect| effect.row)
        .chain(others)
        .collect()
}

impl Report<'_> {
    /// Describes why a change was not taken.
    pub(super) fn why_not_taken(&self, not_taken: &NotTaken<'_>) -> String {
        let why = match &not_taken.why {
            WhyNot::Harms(effects) => {
                let rows: Vec<String> = effects.iter().map(|effect| self.row(effect.row)).collect();
                format!("makes {} worse", join(&rows))
            }
            WhyNot::NoMore => "brings nothing beyond the series".to_owned(),
            WhyNot::Budget => {
                "brings nothing beyond the series, or the budget ended before that was tried"
                    .to_owned()
            }
            WhyNot::BettersNoDebt => "betters no row with a debt".to_owned(),
            WhyNot::NoEffect => "moves no row".to_owned(),
            WhyNot::Failed(failure) => self.failure(failure, Some(not_taken.change)),
        };
        let mut with = Vec::new();
        if let Some(unit) = not_taken.unit {
            let others = unit.changes.iter().filter(|other| **other != unit.change);
            with.extend(others.map(|other| self.name(*other)));
        }
        if with.is_empty() {
            why
        } else {
            format!("{why} (with {}, which it needs)", join(&with))
        }
    }
}

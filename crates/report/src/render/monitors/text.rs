//! What monitors saw as text: two or three kernels in 80 columns, as mails have them.

use super::super::style::Style;
use super::grid::{Cell, Grid, GridRow, grids, of_samples};
use crate::label::cut_middle;
use crate::monitors::{Monitored, SampleRow, SampleTable, title};
use crate::plain::plain;
use crate::render::Styles;
use crate::render::layout::{Page, WIDTH};

/// The narrowest and the widest column of counters.
const COLUMN: (usize, usize) = (13, 19);
/// What is around a percentage: ` (%)`, or ` *%*`.
const BRACKETS: usize = 4;
/// The widest column of labels.
const LABEL_MAX: usize = 36;

/// Renders what monitors saw as text, in a style.
#[must_use]
pub fn text(monitored: &Monitored, style: Style, styles: &Styles) -> String {
    let mut page = Page::default();
    for grid in grids(monitored, style) {
        page.blank();
        table(&mut page, &grid, (&monitored.heads, style), styles);
    }
    page.finish()
}

/// Adds a table of samples to a page.
pub(crate) fn sample_table(
    page: &mut Page,
    samples: &SampleTable,
    (heads, style): (&[[String; 2]], Style),
    styles: &Styles,
) {
    table(page, &of_samples(samples, style), (heads, style), styles);
}

/// Renders samples in percent of the base, a kernel a line: how results of SDET are given, which may not be published
/// as they are.
#[must_use]
pub fn relative_text(row: &SampleRow, heads: &[[String; 2]]) -> String {
    let mut page = Page::default();
    page.line(plain(&row.name));
    page.line(format!("{:<30}{:>12}{:>11}", "", "Throughput", "Std. Dev"));
    for (head, relative) in heads.iter().zip(row.relative()) {
        let numbers = relative.map_or_else(
            || format!("{:>12}{:>11}", "-", "-"),
            |of| format!("{:>11.1}%{:>10.1}%", of.percent, of.deviation_percent),
        );
        page.line(format!("{:<30}{numbers}", cut_middle(&plain(&title(head)), 30)));
    }
    page.finish()
}

fn table(page: &mut Page, grid: &Grid, (heads, style): (&[[String; 2]], Style), styles: &Styles) {
    let widest = grid.rows.iter().map(|row| row.label.trim_end().chars().count()).max().unwrap_or(0);
    let title = if style == Style::Marvin { grid.title.chars().count() } else { 0 };
    let columns = Columns::new(grid, (widest.max(title).min(LABEL_MAX), heads.len()), style);
    // Ours have their title beside the kernels; MMTests writes what is compared above, and of counters nothing.
    let title = match style {
        Style::Marvin => cut_middle(&grid.title, columns.label),
        Style::Y2013 | Style::Mmtests => {
            if grid.compared {
                page.line(styles.strong(&grid.title));
            }
            String::new()
        }
    };
    for number in 0..=usize::from(heads.iter().any(|head| !head[1].is_empty())) {
        let label = if number == 0 { title.as_str() } else { "" };
        let heads = heads.iter().map(|head| columns.head(&plain(&head[number])));
        let line = std::iter::once(format!("{label:<0$}", columns.label)).chain(heads).collect::<String>();
        page.line(styles.strong(line.trim_end()));
    }
    for row in &grid.rows {
        page.line(columns.row(row, style).trim_end());
    }
    for note in &grid.notes {
        page.words(0, note);
    }
}

/// How wide columns are.
struct Columns {
    label: usize,
    value: usize,
    /// Percent with its brackets; 0 for counters.
    change: usize,
}

impl Columns {
    fn new(grid: &Grid, (label, kernels): (usize, usize), style: Style) -> Self {
        let percents = grid.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.change.as_ref());
        let percent = percents.map(|change| change.percent.len()).max().unwrap_or(0);
        let change = match style {
            _ if !grid.compared => 0,
            Style::Mmtests => percent.max("-99.99".len() + 1) + BRACKETS,
            Style::Y2013 | Style::Marvin => percent.max("-99.99".len()) + BRACKETS,
        };
        let room = WIDTH.saturating_sub(label) / kernels.max(1);
        let value = match style {
            _ if !grid.compared => room.clamp(COLUMN.0, COLUMN.1),
            Style::Mmtests => room.saturating_sub(change).clamp(9, 18),
            Style::Y2013 | Style::Marvin => room.saturating_sub(change).clamp(9, 12),
        };
        // A number is never cut: what is wider widens the column.
        let widest = grid.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.value.len() + 1).max().unwrap_or(0);
        Self { label, value: value.max(widest), change }
    }

    fn head(&self, head: &str) -> String {
        let width = self.value + self.change;
        format!("{:>width$}", cut_middle(head, width - 1))
    }

    fn row(&self, row: &GridRow, style: Style) -> String {
        let mut line = format!("{:<1$}", cut_middle(&row.label, self.label), self.label);
        for Cell { value, change } in &row.cells {
            let value = format!("{value:>0$}", self.value);
            line.push_str(&value);
            if self.change == 0 {
                continue;
            }
            let width = self.change - BRACKETS;
            let change = match change {
                Some(change) if change.starred && style == Style::Mmtests => format!(" *{:>width$}%*", change.percent),
                Some(change) => format!(" ({:>width$}%)", change.percent),
                None => " ".repeat(self.change),
            };
            line.push_str(&change);
        }
        line
    }
}

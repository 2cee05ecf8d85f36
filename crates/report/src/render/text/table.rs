//! The table of a comparison, in the style of MMTests: one column per kernel, the base first and at 0.00%.
//!
//! For two kernels a row has at most 80 columns: 18 for the name, 22 per kernel, 16 for the interval, 2 for the letter.
//! With several seeds the interval replaces the ratio, which repeats the percentage.

use model::Workload;

use crate::comparison::{Cell, Comparison, Measured};
use crate::label::{cut_middle, distinct_width};
use crate::render::layout::Page;
use crate::render::number::{interval, percent, ratio, value};
use crate::render::styles::Styles;
use crate::render::words::{Section, caption, sections};

const NAME: usize = 18;
/// For workloads of other suites, whose names are longer; a mail could not fit all anyway.
const FOREIGN_NAME: usize = 40;
const VALUE: usize = 10;
const PERCENT: usize = 7;
/// A value, a space and a percentage in parentheses.
const COLUMN: usize = VALUE + 1 + PERCENT + 3;
const INTERVAL: usize = 15;
const RATIO: usize = 6;

/// The part after the percentage.
#[derive(Debug, Clone, Copy)]
enum Extra {
    /// The ratio: one seed has no interval.
    Ratio,
    /// The smallest and the largest difference over the seeds.
    Interval,
}

impl Extra {
    fn width(self) -> usize {
        match self {
            Self::Ratio => RATIO,
            Self::Interval => INTERVAL,
        }
    }

    fn head(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Interval => "min..max %",
        }
    }
    fn explain(self, imported: bool) -> &'static str {
        match self {
            _ if imported => "values: geometric means over the runs; difference: positive is better",
            Self::Ratio => "difference: positive is better; ratio: above 1 is better",
            Self::Interval => "difference: of the medians, positive is better; min..max: over the seeds",
        }
    }

    fn text(self, cell: &Cell) -> String {
        let text = match self {
            Self::Ratio => cell.compared.ratio.map(|r| ratio(r, RATIO)),
            Self::Interval => cell.compared.spread_percent.map(|s| interval(s, INTERVAL)),
        };
        text.unwrap_or_default()
    }
}

/// Adds the sections' tables, each with its caption and head. The legend of the columns comes once.
pub(super) fn tables(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    let imported = comparison.is_imported();
    let extra = if comparison.seeds.len() > 1 || imported { Extra::Interval } else { Extra::Ratio };
    for (number, section) in sections(comparison).iter().enumerate() {
        page.blank();
        page.words(0, &caption(section));
        if number == 0 {
            page.words(0, extra.explain(imported));
        }
        page.blank();
        table(page, comparison, extra, section, styles);
    }
}

fn table(page: &mut Page, comparison: &Comparison, extra: Extra, section: &Section<'_>, styles: &Styles) {
    let imported = comparison.is_imported();
    let foreign = distinct_width(section.rows.iter().map(|row| &*row.workload.name), FOREIGN_NAME);
    let name = |workload: &Workload| {
        let name = if imported { cut_middle(&workload.name, foreign) } else { workload.name.to_string() };
        // If cut, metrics of one tool look alike: put the numbers on the next line.
        let is_long = !imported && name.chars().count() > NAME;
        (name, is_long)
    };
    let beside = section.rows.iter().map(|row| name(&row.workload)).filter(|(_, is_long)| !is_long);
    let widest = beside.map(|(name, _)| name.chars().count()).max().unwrap_or(NAME);
    for line in head(comparison, widest, extra) {
        page.line(styles.strong(&line));
    }
    for row in &section.rows {
        let (mut name, is_long) = name(&row.workload);
        if is_long {
            page.line(std::mem::take(&mut name));
        }
        let mut cells = vec![format!("{name:<widest$}"), base(&row.base)];
        cells.extend(row.cells.iter().map(|c| self::cell(c, extra, styles)));
        page.line(cells.join(" "));
    }
}

/// Returns the head: the versions, and a second line if one of them needs it.
fn head(comparison: &Comparison, widest: usize, extra: Extra) -> Vec<String> {
    let line = |number: usize| {
        let mut cells = vec![" ".repeat(widest)];
        for (position, kernel) in comparison.kernels().enumerate() {
            cells.push(format!("{:>COLUMN$}", kernel.head[number]));
            if position > 0 {
                let head = if number == 0 { extra.head() } else { "" };
                cells.push(format!("{head:>0$} ", extra.width() + 1));
            }
        }
        cells.join(" ").trim_end().to_owned()
    };
    let second = comparison.kernels().any(|k| !k.head[1].is_empty());
    (0..=usize::from(second)).map(line).collect()
}

fn base(measured: &Measured) -> String {
    match measured.value {
        Some(median) => format!("{:>VALUE$} ({:>PERCENT$}%)", value(median, VALUE), "0.00"),
        None => format!("{:<COLUMN$}", format!("{:>VALUE$}", "-")),
    }
}

fn cell(cell: &Cell, extra: Extra, styles: &Styles) -> String {
    let median = cell.measured.value;
    let value = median.map_or_else(|| "-".to_owned(), |m| self::value(m, VALUE));
    let difference = match cell.compared.difference_percent {
        Some(d) => format!("({:>PERCENT$}%)", percent(d, PERCENT)),
        None => " ".repeat(PERCENT + 3),
    };
    let letter = cell.compared.verdict.letter().to_string();
    format!(
        "{value:>VALUE$} {} {:>width$} {}",
        styles.verdict(&cell.compared.verdict, &difference),
        extra.text(cell),
        styles.verdict(&cell.compared.verdict, &letter),
        width = extra.width(),
    )
}

//! The rows of the page's tables, grouped as the workloads are.

use std::collections::HashMap;

use model::{Verdict, Workload, group_of};

use crate::comparison::{Absent, Cell, Comparison, Images, Measured, Row};
use crate::render::number::{interval, margin, percent, ratio, signed_percent, value};
use crate::render::scale::{Bar, Scale};
use crate::render::words::{Section, caption, sections};

/// Wide enough for any number; a page wraps by itself.
const WIDE: usize = 16;

/// Rows of one unit and direction.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) base: [String; 2],
    pub(super) others: Vec<[String; 2]>,
    pub(super) ticks: [String; 3],
    pub(super) columns: Columns,
    /// How many columns there are.
    pub(super) width: usize,
    pub(super) groups: Vec<Group>,
}

/// Which columns a kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// Value, difference, ratio, verdict, bar: one other kernel, one seed.
    Ratio,
    /// The same and the interval over the seeds: one other kernel, several seeds.
    Interval,
    /// Value, difference, letter and bar: several kernels, which are to stand side by side. What is left out here is in
    /// the titles of the cells.
    Compact,
}

impl Columns {
    fn new(comparison: &Comparison) -> Self {
        if comparison.others.len() > 1 {
            Self::Compact
        } else if comparison.seeds.len() > 1 {
            Self::Interval
        } else {
            Self::Ratio
        }
    }

    fn count(self) -> usize {
        match self {
            Self::Ratio => 5,
            Self::Interval => 6,
            Self::Compact => 4,
        }
    }
}

/// Workloads that belong together.
#[derive(Debug)]
pub(super) struct Group {
    /// Its name; nothing for a workload that is alone.
    pub(super) name: Option<String>,
    pub(super) rows: Vec<RowView>,
}

/// One workload.
#[derive(Debug)]
pub(super) struct RowView {
    pub(super) anchor: String,
    pub(super) name: String,
    pub(super) stresses: String,
    pub(super) operation: String,
    pub(super) margin: String,
    pub(super) base: String,
    pub(super) cells: Vec<CellView>,
}

/// One workload on one kernel.
#[derive(Debug)]
pub(super) struct CellView {
    pub(super) value: String,
    pub(super) difference: String,
    pub(super) interval: String,
    pub(super) ratio: String,
    pub(super) letter: char,
    pub(super) word: &'static str,
    /// Why it is unclear.
    pub(super) reason: String,
    /// What the bar shows, for those who cannot see it.
    pub(super) aria: String,
    pub(super) bar: Option<Bar>,
}

/// The values of one workload, kernel by kernel and seed by seed.
#[derive(Debug)]
pub(super) struct SeedRow {
    pub(super) name: String,
    pub(super) anchor: String,
    pub(super) kernels: Vec<(String, Vec<String>)>,
}

/// Returns the id of a row, made of its workload's name; of its number where that is no name for an id.
pub(super) fn anchor(workload: &Workload, number: usize) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !workload.name.is_empty() && workload.name.chars().all(fine) {
        format!("row-{}", workload.name)
    } else {
        format!("row-number-{number}")
    }
}

/// Returns the tables of a page.
pub(super) fn tables(comparison: &Comparison) -> Vec<Table> {
    let scale = Scale::new(comparison);
    let columns = Columns::new(comparison);
    let numbers: HashMap<&str, usize> =
        comparison.rows.iter().enumerate().map(|(number, row)| (&*row.workload.name, number)).collect();
    sections(comparison)
        .iter()
        .map(|section| Table {
            caption: caption(section),
            base: comparison.base.head.clone(),
            others: comparison.others.iter().map(|o| o.kernel.head.clone()).collect(),
            ticks: scale.ticks(),
            columns,
            width: 2 + comparison.others.len() * columns.count(),
            groups: groups(comparison, section, scale, &numbers),
        })
        .collect()
}

fn groups(comparison: &Comparison, section: &Section<'_>, scale: Scale, numbers: &HashMap<&str, usize>) -> Vec<Group> {
    let chunks: Vec<&[&Row]> = section.rows.chunk_by(|a, b| group_of(&a.workload) == group_of(&b.workload)).collect();
    // A group that is the whole table has the table's name.
    let is_named = |rows: &[&Row]| rows.len() > 1 && chunks.len() > 1;
    chunks
        .iter()
        .map(|rows| Group {
            name: is_named(rows).then(|| group_of(&rows[0].workload).to_owned()),
            rows: rows
                .iter()
                .map(|row| RowView {
                    anchor: anchor(&row.workload, numbers[&*row.workload.name]),
                    name: row.workload.name.to_string(),
                    stresses: row.workload.stresses.to_string(),
                    operation: row.workload.operation.to_string(),
                    margin: margin(row.margin_percent),
                    base: median(&row.base),
                    cells: cells(comparison, row, scale),
                })
                .collect(),
        })
        .collect()
}

fn median(measured: &Measured) -> String {
    measured.median.map_or_else(|| "–".to_owned(), |m| value(m, WIDE))
}

fn cells(comparison: &Comparison, row: &Row, scale: Scale) -> Vec<CellView> {
    row.cells
        .iter()
        .zip(&comparison.others)
        .map(|(cell, other)| CellView {
            value: median(&cell.measured),
            difference: cell.compared.difference_percent.map_or_else(String::new, |d| format!("{}%", percent(d, WIDE))),
            interval: cell.compared.spread_percent.map_or_else(String::new, |s| interval(s, WIDE * 2)),
            ratio: cell.compared.ratio.map_or_else(String::new, |r| ratio(r, WIDE)),
            letter: cell.compared.verdict.letter(),
            word: cell.compared.verdict.word(),
            reason: match &cell.compared.verdict {
                Verdict::Unclear(why) => why.to_string(),
                Verdict::Same if other.images == Images::EqualWithoutRuns => {
                    "the base's image: no run needed".to_owned()
                }
                Verdict::Better | Verdict::Worse | Verdict::Same => String::new(),
            },
            aria: aria(cell),
            bar: scale.bar(cell, row.workload.metric.direction, row.margin_percent),
        })
        .collect()
}

fn aria(cell: &Cell) -> String {
    let Some(difference) = cell.compared.difference_percent else {
        return String::new();
    };
    let spread = match cell.compared.spread_percent {
        Some(spread) if cell.compared.differences.len() > 1 => {
            format!(", {} over the seeds", interval(spread, WIDE * 2))
        }
        _ => String::new(),
    };
    format!("{} {}{spread}", cell.compared.verdict.word(), signed_percent(difference))
}

/// Returns every value there is, for those who want to see all.
pub(super) fn seed_rows(comparison: &Comparison) -> Vec<SeedRow> {
    let titles: Vec<&str> = comparison.kernels().map(|k| k.title.as_str()).collect();
    comparison
        .rows
        .iter()
        .enumerate()
        .map(|(number, row)| {
            let measured = std::iter::once(&row.base).chain(row.cells.iter().map(|c| &c.measured));
            let values = |measured: &Measured| measured.seeds.iter().map(|s| seed(&s.value)).collect();
            SeedRow {
                name: row.workload.name.to_string(),
                anchor: anchor(&row.workload, number),
                kernels: titles.iter().zip(measured).map(|(title, of)| ((*title).to_owned(), values(of))).collect(),
            }
        })
        .collect()
}

fn seed(value: &Result<crate::comparison::Sampled, Absent>) -> String {
    match value {
        Ok(sampled) => self::value(sampled.median, WIDE),
        Err(Absent::NoRun) => "no run".to_owned(),
        Err(Absent::NoResult) => "no result".to_owned(),
        Err(Absent::Unsupported(_)) => "not supported".to_owned(),
        Err(Absent::Failed(_)) => "failed".to_owned(),
        Err(Absent::TooFewSamples(_)) => "too few".to_owned(),
        Err(Absent::NotANumber) => "no number".to_owned(),
        Err(Absent::NotCounted(_)) => "not counted".to_owned(),
    }
}

//! The table of a noisy comparison's ratios: intervals, replicates, and how many more would decide.

use model::{Uncertainty, Verdict};
use stats::Spread;

use super::table::{name_column, select};
use crate::comparison::{self, Comparison};
use crate::render::words;
use document::number::{ratio, ratio_interval};
use document::{Block, Column, ColumnKind, Group, Table, TableCell, TableRow, View, Width};

const RATIO: usize = 6;
const INTERVAL: usize = 14;
const COUNT: usize = 7;

/// Returns the table of ratios with its heading; nothing if no row was rated.
pub(crate) fn ratios(machine: Option<&str>, comparison: &Comparison, view: &View) -> Vec<Block> {
    let rated: Vec<&comparison::ComparisonRow> = comparison
        .rows
        .iter()
        .filter(|row| row.cells.iter().any(|cell| cell.rated.is_some()))
        .collect();
    let rated = select(&rated, view, |row| row.cells.iter().collect());
    if rated.is_empty() {
        return Vec::new();
    }
    let replicates = words::replicate(comparison);
    let heading = match machine {
        Some(machine) => format!("{machine}: ratios over {replicates}s"),
        None => format!("ratios over {replicates}s"),
    };
    vec![
        Block::Heading(heading),
        Block::Paragraph(legend(comparison)),
        Block::Table(table(comparison, &rated)),
    ]
}

pub(super) fn legend(comparison: &Comparison) -> String {
    let more = comparison
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .any(|cell| !more(cell).is_empty());
    let more = match more {
        true => {
            let replicates = words::replicate(comparison);
            format!(
                "; more: {replicates}s of each kernel that would probably decide an unclear row"
            )
        }
        false => String::new(),
    };
    format!("ratio: above 1 is better; 95%: confidence interval of the ratio{more}")
}

/// Returns the columns of a kernel's numbers.
pub(super) fn columns(comparison: &Comparison) -> Vec<Column> {
    let replicates = format!("{}s", words::replicate(comparison));
    let heads = [
        ("ratio", RATIO + 2),
        ("95%", INTERVAL + 2),
        (&replicates, COUNT),
        ("more", COUNT),
    ];
    let number =
        |(head, width): (&str, usize)| Column::new(head, ColumnKind::Number, Width::Fixed(width));
    heads.into_iter().map(number).collect()
}

fn table(comparison: &Comparison, rows: &[&comparison::ComparisonRow]) -> Table {
    let mut all = vec![name_column([comparison])];
    for other in &comparison.others {
        let mut own = columns(comparison);
        own.push(Column::new("verdict", ColumnKind::Verdict, Width::Fixed(1)));
        if comparison.others.len() > 1 {
            let group = Group {
                name: other.kernel.title.clone(),
                about: String::new(),
            };
            own.iter_mut()
                .for_each(|column| column.group = Some(group.clone()));
        }
        all.extend(own);
    }
    let mut lines = Vec::new();
    for row in rows {
        let mut own = vec![TableCell::new(row.workload.name.to_string())];
        own.extend(row.cells.iter().flat_map(cells));
        lines.push(TableRow {
            cells: own,
            ..TableRow::default()
        });
    }
    Table {
        columns: all,
        rows: lines,
        fixed: 1,
        ..Table::default()
    }
}

fn cells(cell: &comparison::ComparisonCell) -> Vec<TableCell> {
    let verdict = &cell.compared.verdict;
    let letter = TableCell {
        tone: verdict.tone(),
        ..TableCell::new(format!("{} {}", verdict.letter(), verdict.name()))
    };
    numbers(cell).into_iter().chain([letter]).collect()
}

/// Returns a kernel's numbers: ratio, interval, replicates, and how many more would decide.
pub(super) fn numbers(cell: &comparison::ComparisonCell) -> Vec<TableCell> {
    let ends = interval(cell)
        .map(|ends| ratio_interval(ends, INTERVAL))
        .unwrap_or_default();
    let boots = cell
        .rated
        .map(|rated| format!("{}+{}", rated.rating.groups.0, rated.rating.groups.1));
    let ratio = cell
        .compared
        .ratio
        .map(|r| ratio(r, RATIO))
        .unwrap_or_default();
    [ratio, ends, boots.unwrap_or_default(), more(cell)]
        .into_iter()
        .map(TableCell::new)
        .collect()
}

/// Returns the interval that contains the true ratio with a probability of 95 %.
pub(crate) fn interval(cell: &comparison::ComparisonCell) -> Option<Spread> {
    let ends = cell.rated?.rating.interval()?;
    Some(Spread {
        min: ends.low,
        max: ends.high,
    })
}

/// Returns how many more replicates of each kernel would probably decide an unclear row.
fn more(cell: &comparison::ComparisonCell) -> String {
    match &cell.compared.verdict {
        Verdict::Unclear(Uncertainty::Noise {
            more_runs: Some(more),
        }) => format!("+{more}"),
        Verdict::Unclear(Uncertainty::NearMargin | Uncertainty::TooNoisy) => ">50".to_owned(),
        Verdict::Unclear(_) | Verdict::Better | Verdict::Worse | Verdict::Same => String::new(),
    }
}

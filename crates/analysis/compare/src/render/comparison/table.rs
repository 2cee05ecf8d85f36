//! The tables of a comparison: rows with verdicts, the parts of changes, and every value.
//!
//! One column per kernel, like MMTests, base first. For two kernels a row fits 80 columns; pages
//! add a bar.

use std::collections::HashMap;

use model::{Verdict, Workload, group_of};

use super::ratios;

use crate::comparison::{self, Absent, Against, Comparison, Images, Measured};
use crate::render::counted;
use crate::render::scale::{Beyond, Scale, WIDTH_PERCENT};
use crate::render::words::{self, Section, caption, sections};
use document::number::{interval, margin, percent, ratio, signed_percent, value};
use document::{
    Block, Change, Column, ColumnKind, Only, Sort, Table, TableCell, TableRow, View, Weight, Width,
};

const NAME: usize = 18;
/// Workloads of other suites have longer names; a mail could not fit all anyway.
const FOREIGN_NAME: usize = 40;
const VALUE: usize = 10;
const PERCENT: usize = 7;
const INTERVAL: usize = 15;
const RATIO: usize = 6;
/// Width of the kinds of costly instructions that changed.
const KINDS: usize = 36;
/// As wide as a line of 80 leaves beside one seed's ratio; with an interval none is left.
const CYCLES: usize = 11;

/// The legend of bars, for pages.
pub(crate) const ABOUT_BARS: &str = "<p class=\"small\">Bars: the ratio on a logarithmic scale, worse to the left, better \
    to the right of 1; line: smallest to largest over the seeds, or the 95% interval of noisy runs, where wide enough to be \
    seen; grey band: the margin; arrow: beyond the scale.</p>\n";

/// The part after the percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// None: one seed has no interval.
    Ratio,
    /// The smallest and the largest difference over the seeds.
    Interval,
    /// The ratio with its interval, and how many boots there are and would decide, instead of the
    /// difference.
    Boots,
    /// Three kernels side by side: pages show it in a tooltip.
    Hint,
    /// More kernels: a matrix, with colours instead of bars.
    Matrix,
}

impl Extra {
    fn new(comparison: &Comparison) -> Self {
        match comparison.others.len() {
            3.. => Self::Matrix,
            2 => Self::Hint,
            _ if comparison.is_noisy() && !comparison.is_imported() => Self::Boots,
            _ if comparison.seeds.len() > 1 || comparison.is_noisy() => Self::Interval,
            _ => Self::Ratio,
        }
    }

    /// Returns whether the interval is in a tooltip.
    fn is_hidden(self) -> bool {
        matches!(self, Self::Hint | Self::Matrix)
    }

    /// Returns the columns between a kernel's value and its verdict.
    fn columns(self, comparison: &Comparison) -> Vec<Column> {
        match self {
            Self::Ratio => vec![number_column("ratio", RATIO)],
            Self::Interval => vec![number_column("min..max %", INTERVAL)],
            Self::Boots => ratios::columns(comparison),
            Self::Hint | Self::Matrix => Vec::new(),
        }
    }

    fn cells(self, cell: &comparison::ComparisonCell) -> Vec<TableCell> {
        let text = match self {
            Self::Ratio => cell.compared.ratio.map(|r| ratio(r, RATIO)),
            Self::Interval => cell.compared.spread_percent.map(|s| interval(s, INTERVAL)),
            Self::Boots => return ratios::numbers(cell),
            Self::Hint | Self::Matrix => return Vec::new(),
        };
        vec![TableCell::new(text.unwrap_or_default())]
    }

    fn explain(self, comparison: &Comparison) -> String {
        match self {
            Self::Boots => format!(
                "values: {}; {}",
                words::means(comparison),
                ratios::legend(comparison)
            ),
            _ if comparison.is_noisy() => {
                format!(
                    "values: {}; difference: positive is better",
                    words::means(comparison)
                )
            }
            Self::Ratio => "difference: positive is better; ratio: above 1 is better".to_owned(),
            Self::Interval => {
                "difference: of the medians, positive is better; min..max: over the seeds"
                    .to_owned()
            }
            Self::Hint | Self::Matrix => "difference from the base: positive is better".to_owned(),
        }
    }
}

/// What the column of estimated cycles is.
const ABOUT_CYCLES: &str =
    "; est cycles: estimated from the kinds of instructions, caches left out";

/// Returns whether rows have bars.
pub(super) fn has_bars(comparison: &Comparison) -> bool {
    Extra::new(comparison) != Extra::Matrix
}

/// Returns the tables, each with a caption of its values. The legend of the columns comes once.
pub(super) fn tables(comparison: &Comparison, view: &View) -> Vec<Block> {
    let extra = Extra::new(comparison);
    let mut blocks = Vec::new();
    for (number, section) in sections(comparison).into_iter().enumerate() {
        let section = Section {
            rows: select_rows(&section.rows, view),
            ..section
        };
        blocks.push(Block::Heading(caption(comparison, &section)));
        if number == 0 {
            let cycles = if has_column_of_cycles(comparison) {
                ABOUT_CYCLES
            } else {
                ""
            };
            let about = extra.explain(comparison);
            blocks.push(Block::Paragraph(format!("{about}{cycles}")));
        }
        blocks.push(match section.rows.is_empty() {
            true => Block::Note("No row of the verdict that was asked for.".to_owned()),
            false => Block::Table(table(comparison, &section, extra, view)),
        });
    }
    blocks
}

/// Returns the selected rows in the selected order.
fn select_rows<'a>(
    rows: &[&'a comparison::ComparisonRow],
    view: &View,
) -> Vec<&'a comparison::ComparisonRow> {
    select(rows, view, |row| row.cells.iter().collect())
}

/// Returns the selected items in the selected order, from the cells of each.
pub(crate) fn select<'a, T: Copy>(
    items: &[T],
    view: &View,
    cells: impl Fn(T) -> Vec<&'a comparison::ComparisonCell>,
) -> Vec<T> {
    let mut chosen: Vec<T> = items.to_vec();
    if let Some(only) = view.only {
        chosen.retain(|item| {
            let cells = cells(*item);
            cells.iter().any(|cell| match cell.compared.verdict {
                Verdict::Worse => matches!(only, Only::Worse | Only::Changed),
                Verdict::Better => matches!(only, Only::Better | Only::Changed),
                Verdict::Same | Verdict::Unclear(_) => false,
            })
        });
    }
    if view.sort == Sort::Effect {
        // With several kernels, the worst difference decides. Rows without one come last.
        let worst = |item: T| {
            cells(item)
                .iter()
                .filter_map(|cell| cell.compared.difference_percent)
                .fold(f64::INFINITY, f64::min)
        };
        chosen.sort_by(|a, b| worst(*a).total_cmp(&worst(*b)));
    }
    chosen
}

fn table(comparison: &Comparison, section: &Section<'_>, extra: Extra, view: &View) -> Table {
    let scale = Scale::new(comparison);
    let numbers: HashMap<&str, usize> = comparison
        .rows
        .iter()
        .enumerate()
        .map(|(number, row)| (&*row.workload.name, number))
        .collect();
    let workloads: Vec<&Workload> = section.rows.iter().map(|row| &*row.workload).collect();
    let firsts = firsts_of_groups(&workloads, view);
    let look = Look {
        extra,
        scale,
        width: VALUE,
        has_cycles: has_column_of_cycles(comparison),
    };
    let mut rows = Vec::new();
    for row in &section.rows {
        let workload = &row.workload;
        let mut cells = vec![TableCell::new(workload.name.to_string())];
        cells.extend(look.cells(row, comparison));
        rows.push(TableRow {
            cells,
            anchor: anchor(workload, numbers[&*workload.name]),
            group: firsts
                .get(&*workload.name)
                .copied()
                .unwrap_or_default()
                .to_owned(),
            about: format!(
                "{}; one operation: {}; margin {}",
                workload.stresses,
                workload.operation,
                margin(row.margin_percent)
            ),
            ..TableRow::default()
        });
    }
    Table {
        columns: std::iter::once(name_column([comparison]))
            .chain(look.columns(comparison))
            .collect(),
        rows,
        fixed: 2,
        ..Table::default()
    }
}

/// Returns the headings above rows, by the name of the first row of each group. A group that is the
/// whole table has the table's name; sorted rows are not grouped.
pub(crate) fn firsts_of_groups<'a>(
    workloads: &[&'a Workload],
    view: &View,
) -> HashMap<&'a str, &'a str> {
    let groups = workloads.chunk_by(|a, b| group_of(a) == group_of(b));
    if view.sort != Sort::Suite || groups.clone().count() < 2 {
        return HashMap::new();
    }
    groups
        .filter(|rows| rows.len() > 1)
        .map(|rows| (&*rows[0].name, group_of(rows[0])))
        .collect()
}

/// Returns the column of the rows' names.
pub(crate) fn name_column<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Column {
    let is_imported = comparisons.into_iter().any(Comparison::is_imported);
    Column::new(
        "",
        ColumnKind::Name,
        if is_imported {
            Width::Fit(FOREIGN_NAME)
        } else {
            Width::Whole(NAME)
        },
    )
}

/// How the numbers of a table look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) extra: Extra,
    pub(crate) scale: Scale,
    pub(crate) width: usize,
    /// Whether a column has the estimate of cycles.
    pub(crate) has_cycles: bool,
}

impl Look {
    /// Returns the columns of a comparison's kernels.
    pub(crate) fn columns(&self, comparison: &Comparison) -> Vec<Column> {
        let kernel = |head: &[String; 2]| Column {
            head: head.clone(),
            // Where the effect is in the column of ratios, a kernel's column sorts by its values.
            starts: self.extra != Extra::Boots,
            ..Column::new("", ColumnKind::Number, Width::Fixed(self.width + 1))
        };
        let mut columns = vec![kernel(&comparison.base.head)];
        let [low, middle, high] = self.scale.ticks();
        let axis = format!(
            "<div class=\"axis\"><span>{low}</span> <span>{middle}</span> <span>{high}</span></div>"
        );
        for other in &comparison.others {
            columns.push(kernel(&other.kernel.head));
            columns.extend(self.extra.columns(comparison));
            columns.extend(
                self.has_cycles
                    .then(|| number_column("est cycles%", CYCLES)),
            );
            let is_matrix = self.extra == Extra::Matrix;
            columns.push(Column::new(
                if is_matrix { "" } else { "verdict" },
                ColumnKind::Verdict,
                Width::Fixed(1),
            ));
            columns.extend(
                (!is_matrix).then(|| Column::new(&axis, ColumnKind::Drawing, Width::Fixed(0))),
            );
        }
        columns
    }

    /// Returns a row's cells for these columns.
    pub(crate) fn cells(
        &self,
        row: &comparison::ComparisonRow,
        comparison: &Comparison,
    ) -> Vec<TableCell> {
        let others = row.cells.iter().zip(&comparison.others);
        let cells = others.flat_map(|(cell, other)| cells(cell, other, row, *self));
        std::iter::once(base(&row.base, *self))
            .chain(cells)
            .collect()
    }
}

fn base(measured: &Measured, look: Look) -> TableCell {
    let has_change =
        !look.extra.is_hidden() && look.extra != Extra::Boots && measured.value.is_some();
    let change = has_change.then(|| Change {
        percent: percent(0.0, PERCENT),
        starred: false,
        word: "",
    });
    TableCell {
        change,
        ..TableCell::new(median(measured, look.width))
    }
}

fn cells(
    cell: &comparison::ComparisonCell,
    other: &Against,
    row: &comparison::ComparisonRow,
    look: Look,
) -> Vec<TableCell> {
    let Look {
        extra,
        scale,
        width,
        has_cycles,
    } = look;
    let verdict = &cell.compared.verdict;
    let (tone, name) = (verdict.tone(), verdict.name());
    let number = TableCell {
        change: cell
            .compared
            .difference_percent
            .filter(|_| extra != Extra::Boots)
            .map(|difference| Change {
                percent: percent(difference, PERCENT),
                starred: false,
                word: tone,
            }),
        hint: if extra.is_hidden() || extra == Extra::Boots {
            describe(cell)
        } else {
            String::new()
        },
        tone: if extra == Extra::Matrix { tone } else { "" },
        ..TableCell::new(median(&cell.measured, width))
    };
    let hint = match verdict {
        Verdict::Unclear(why) => why.to_string(),
        Verdict::Same if other.images == Images::EqualWithoutRuns => {
            "the base's image: no run needed".to_owned()
        }
        Verdict::Better | Verdict::Worse | Verdict::Same => String::new(),
    };
    let word = if extra.is_hidden() {
        String::new()
    } else {
        format!(" {name}")
    };
    let verdict = TableCell {
        tone,
        hint,
        ..TableCell::new(format!("{}{word}", verdict.letter()))
    };
    let bar =
        (extra != Extra::Matrix).then(|| TableCell::new(bar(cell, row, scale).unwrap_or_default()));
    std::iter::once(number)
        .chain(extra.cells(cell))
        .chain(has_cycles.then(|| TableCell::new(cycles(cell))))
        .chain([verdict])
        .chain(bar)
        .collect()
}

/// Returns whether the estimate of cycles has a column.
fn has_column_of_cycles(comparison: &Comparison) -> bool {
    Extra::new(comparison) == Extra::Ratio && has_cycles(comparison)
}

/// Returns the estimates of cycles of the rows that changed or are mixed, where no column has them.
pub(super) fn cycles_of_changes(comparison: &Comparison) -> Vec<Block> {
    if has_column_of_cycles(comparison) || !has_cycles(comparison) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for row in &comparison.rows {
        for (cell, other) in row.cells.iter().zip(&comparison.others) {
            let compared = &cell.compared;
            let has_changed = compared.verdict != Verdict::Same;
            let (Some(ends), true) = (compared.cycles_percent, has_changed) else {
                continue;
            };
            let of = if comparison.others.len() > 1 {
                format!(", {}", other.kernel.title)
            } else {
                String::new()
            };
            let counted = compared.difference_percent;
            rows.push(TableRow::new(
                Weight::Normal,
                [
                    format!("{}{of}", row.workload.name),
                    counted.map_or_else(String::new, |counted| percent(counted, PERCENT)),
                    interval(ends, INTERVAL),
                    crate::cycles::changed_costly_within(&row.base, &cell.measured, KINDS),
                ],
            ));
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::new("", ColumnKind::Name, Width::Fit(FOREIGN_NAME)),
        Column::new("counted", ColumnKind::Number, Width::Fixed(PERCENT + 1)),
        Column::new(
            "est. cycles %",
            ColumnKind::Number,
            Width::Fixed(INTERVAL + 1),
        ),
        Column::new(
            "costly instructions",
            ColumnKind::Words,
            Width::Fixed(KINDS),
        ),
    ];
    vec![
        Block::Heading("estimated cycles of the rows that changed".to_owned()),
        Block::Paragraph(
            "from the kinds of instructions, caches left out; positive is better".to_owned(),
        ),
        Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        }),
    ]
}

/// Returns whether a row has an estimate of cycles.
fn has_cycles(comparison: &Comparison) -> bool {
    let mut cells = comparison.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| cell.compared.cycles_percent.is_some())
}

fn cycles(cell: &comparison::ComparisonCell) -> String {
    let ends = cell.compared.cycles_percent;
    ends.map_or_else(String::new, |ends| interval(ends, CYCLES))
}

fn median(measured: &Measured, width: usize) -> String {
    measured
        .value
        .map_or_else(|| "-".to_owned(), |m| value(m, width))
}

/// Describes a bar in words.
fn describe(cell: &comparison::ComparisonCell) -> String {
    let Some(difference) = cell.compared.difference_percent else {
        return String::new();
    };
    let spread = match cell.compared.spread_percent {
        Some(spread) if cell.rated.is_some() => {
            format!(", 95%: {}", interval(spread, INTERVAL * 2))
        }
        Some(spread) if cell.compared.differences.len() > 1 => {
            format!(", {} over the seeds", interval(spread, INTERVAL * 2))
        }
        _ => String::new(),
    };
    format!(
        "{} {}{spread}",
        cell.compared.verdict.name(),
        signed_percent(difference)
    )
}

/// Draws a bar. Positions are shares of the width, so that it needs neither a size nor a path; the
/// style sheet has the heights.
fn bar(
    cell: &comparison::ComparisonCell,
    row: &comparison::ComparisonRow,
    scale: Scale,
) -> Option<String> {
    let bar = scale.bar(cell, row.workload.metric.direction, row.margin_percent)?;
    let mut drawn = rectangle("band", bar.band, bar.band_width);
    if bar.width > 0 {
        drawn.push_str(&rectangle(cell.compared.verdict.tone(), bar.x, bar.width));
    }
    if let Some((from, to)) = bar.whisker {
        drawn.push_str(&rectangle("whisker", from, to - from));
    }
    drawn.push_str(match bar.beyond {
        Some(Beyond::Worse) => "<text>◂</text>",
        Some(Beyond::Better) => "<text x=\"100%\" text-anchor=\"end\">▸</text>",
        None => "",
    });
    Some(format!("<svg aria-hidden=\"true\">{drawn}</svg>"))
}

/// Returns a rectangle of a bar, in tenths of a percent of its width.
fn rectangle(class: &str, x: i32, width: i32) -> String {
    let x = f64::from(x) / WIDTH_PERCENT;
    let width = f64::from(width) / WIDTH_PERCENT;
    format!("<rect class=\"{class}\" x=\"{x}%\" width=\"{width}%\"/>")
}

/// Returns the id of a row: its workload's name if that is a valid id, else its number.
pub(crate) fn anchor(workload: &Workload, number: usize) -> String {
    let mut chars = workload.name.chars();
    let fits_an_address = chars.all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !workload.name.is_empty() && fits_an_address {
        format!("row-{}", workload.name)
    } else {
        format!("row-number-{number}")
    }
}

/// Returns the parts of the changed rows, and the cross-check by guest time.
pub(crate) fn apart(comparison: &Comparison) -> Vec<Block> {
    let heads = ["kernel", "", "user code", "", "ticks, others", ""];
    let mut rows: Vec<TableRow> = Vec::new();
    for apart in counted::apart(comparison) {
        let numbers = [apart.kernel, apart.user, apart.deferred]
            .into_iter()
            .flatten();
        let numbers = numbers.map(|number| value(number, VALUE));
        rows.push(TableRow::new(
            Weight::Normal,
            std::iter::once(apart.name.clone()).chain(numbers),
        ));
    }
    let columns = std::iter::once(Column::new("", ColumnKind::Name, Width::Fit(14)))
        .chain(heads.map(|head| number_column(head, VALUE)))
        .collect();
    let table = (!rows.is_empty()).then(|| {
        Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        })
    });
    table
        .into_iter()
        .chain(counted::cross_check(comparison).map(Block::Note))
        .collect()
}

/// Returns the table of all values.
pub(crate) fn values(comparison: &Comparison) -> Vec<Block> {
    let mut columns = vec![
        Column::new("workload", ColumnKind::Name, Width::Whole(NAME)),
        Column::new("kernel", ColumnKind::Words, Width::Fit(NAME)),
    ];
    for seed in &comparison.seeds {
        columns.push(number_column(&format!("seed {seed}"), VALUE));
    }
    let mut rows = Vec::new();
    for row in &comparison.rows {
        let measured =
            std::iter::once(&row.base).chain(row.cells.iter().map(|cell| &cell.measured));
        for (kernel, measured) in comparison.kernels().zip(measured) {
            let seeds = measured.seeds.iter().map(|seed| self::seed(&seed.value));
            let names = [row.workload.name.to_string(), kernel.title.clone()];
            rows.push(TableRow::new(
                Weight::Normal,
                names.into_iter().chain(seeds),
            ));
        }
    }
    if rows.is_empty() {
        Vec::new()
    } else {
        vec![Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        })]
    }
}

/// Returns a column of numbers, with a space before them.
fn number_column(head: &str, width: usize) -> Column {
    Column::new(head, ColumnKind::Number, Width::Fixed(width + 1))
}

fn seed(value: &Result<comparison::Sampled, Absent>) -> String {
    match value {
        Ok(sampled) => self::value(sampled.value, VALUE),
        Err(Absent::NoRun) => "no run".to_owned(),
        Err(Absent::NoResult) => "no result".to_owned(),
        Err(Absent::Unsupported(_)) => "not supported".to_owned(),
        Err(Absent::Failed(_)) => "failed".to_owned(),
        Err(Absent::TooFewSamples(_)) => "too few".to_owned(),
        Err(Absent::NotANumber) => "no number".to_owned(),
        Err(Absent::NotCounted(_)) => "not counted".to_owned(),
    }
}

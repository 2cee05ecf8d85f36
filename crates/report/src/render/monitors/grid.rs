//! Blocks and samples as grids of texts, in one of the styles; what comes from outside is made plain here.

use model::Direction;

use super::super::style::Style;
use crate::monitors::{Block, BlockRow, Form, Monitored, SampleRow, SampleTable, Value, difference_percent};
use crate::plain::plain;

/// A table of texts.
#[derive(Debug)]
pub(crate) struct Grid {
    /// What it is about.
    pub(crate) title: String,
    /// Whether the title has a line of its own: what is compared, rather than counters.
    pub(crate) compared: bool,
    pub(crate) rows: Vec<GridRow>,
    pub(crate) notes: Vec<String>,
}

/// A row of texts.
#[derive(Debug)]
pub(crate) struct GridRow {
    pub(crate) label: String,
    pub(crate) cells: Vec<Cell>,
}

/// A value, and how much better it is.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) value: String,
    pub(crate) change: Option<Change>,
}

/// How much better a value is than the base's.
#[derive(Debug)]
pub(crate) struct Change {
    /// Percent with two decimals, without the sign of percent.
    pub(crate) percent: String,
    /// Whether MMTests would put stars.
    pub(crate) starred: bool,
    /// `better` or `worse` of a change that has stars, else nothing: a colour is a judgement.
    pub(crate) word: &'static str,
}

const STARS: &str = "Stars, by MMTests' rule: the means are further apart than 1.96 standard deviations of both. \
                     More samples do not make it finer.";
const MEDIANS: &str = "Medians; percent of the base, positive is better. No verdict: that takes seeds and margins.";
const POSITIVE: &str = "Percent of the base, positive is better.";

/// Returns all tables, in the order of a report.
pub(super) fn grids(monitored: &Monitored, style: Style) -> Vec<Grid> {
    let samples = monitored.tables.iter().map(|table| of_samples(table, style));
    samples.chain(monitored.blocks.iter().map(|block| of_block(block, style))).collect()
}

fn of_block(block: &Block, style: Style) -> Grid {
    let shown = |row: &&BlockRow| match style {
        Style::Y2013 => row.original,
        Style::Mmtests | Style::Marvin => row.is_counted(),
    };
    let row = |row: &BlockRow| GridRow {
        label: plain(&block_label(block, row, style)),
        cells: row.values.iter().map(|value| Cell { value: written(*value, row, style), change: None }).collect(),
    };
    let mark = if style == Style::Marvin { "~ " } else { "" };
    let notes: Vec<String> = block.notes.iter().map(|note| format!("{mark}{}", plain(note))).collect();
    let rows = block.rows.iter().filter(shown).map(row).collect();
    Grid { title: block.title.to_owned(), compared: false, rows, notes }
}

fn block_label(block: &Block, row: &BlockRow, style: Style) -> String {
    let name = match style {
        Style::Y2013 => row.name.replace("-avgqu-sz", "-avgqz"),
        Style::Mmtests => row.name.replace("-avgqu-sz", "-avgqusz"),
        Style::Marvin if row.comparable => return row.name.clone(),
        Style::Marvin => return format!("{} ~", row.name),
    };
    // The tables of 2013 have a word before Duration only.
    let word = if style == Style::Mmtests || block.word == "Duration" { block.word } else { "" };
    let percent =
        if style == Style::Mmtests && row.form == Form::Percent && !name.contains("ercent") { " %" } else { "" };
    format!("{word} {name}{percent}").trim_start().to_owned()
}

/// Returns a value as a style writes it.
fn written(value: Value, row: &BlockRow, style: Style) -> String {
    let number = match (value, style) {
        (Value::Number(number), _) => number,
        // Their convention: nothing of nothing is all of it. Ours is to say that there is no such number.
        (Value::OfNothing, Style::Y2013 | Style::Mmtests) if row.of_nothing.is_some() => row.of_nothing.unwrap_or(0.0),
        _ => return "-".to_owned(),
    };
    match (style, row.form) {
        // Cut, not rounded, as Perl's `%d` did: 66.98 is 66 in the table of 2013-06-26.
        (Style::Y2013, Form::Percent) => format!("{}%", number.trunc()),
        (Style::Y2013, Form::PerSecond) => format!("{number:.3}"),
        (Style::Y2013 | Style::Marvin, Form::Count) => format!("{number:.0}"),
        (Style::Y2013, Form::Kib) => format!("{number:.0}"),
        (Style::Y2013 | Style::Mmtests, _) | (Style::Marvin, Form::Mean) => two(number),
        (Style::Marvin, Form::Kib) => format!("{number:.0} KiB"),
        (Style::Marvin, Form::Percent | Form::Share | Form::PerSecond) => format!("{}{}", two(number), row.form.unit()),
        (Style::Marvin, _) => format!("{} {}", two(number), row.form.unit()),
    }
}

/// Returns a number with two decimals, and no minus before a zero.
pub(super) fn two(number: f64) -> String {
    let text = format!("{number:.2}");
    if text == "-0.00" { "0.00".to_owned() } else { text }
}

/// Returns a table of samples.
pub(super) fn of_samples(table: &SampleTable, style: Style) -> Grid {
    let mut rows = Vec::new();
    match style {
        Style::Mmtests => by_statistic(table, &mut rows),
        Style::Y2013 => table.rows.iter().for_each(|row| of_2013(row, &mut rows)),
        Style::Marvin => rows.extend(table.rows.iter().map(|row| {
            let medians: Vec<_> = row.samples.iter().map(|samples| stats::median(samples)).collect();
            compared((row.name.clone(), row.direction), &medians, style)
        })),
    }
    let single = table.rows.iter().all(SampleRow::is_single);
    let notes = match style {
        Style::Mmtests if !single => vec![STARS.to_owned()],
        Style::Marvin if single => vec![POSITIVE.to_owned()],
        Style::Marvin => vec![MEDIANS.to_owned()],
        Style::Y2013 | Style::Mmtests => Vec::new(),
    };
    Grid { title: plain(&table.title), compared: true, rows, notes }
}

/// A statistic of samples.
type Statistic = fn(&SampleRow, &[f64]) -> Option<f64>;

fn smallest(_: &SampleRow, samples: &[f64]) -> Option<f64> {
    stats::spread(samples).map(|spread| spread.min)
}

fn largest(_: &SampleRow, samples: &[f64]) -> Option<f64> {
    stats::spread(samples).map(|spread| spread.max)
}

/// The rows of 2013: an operation's statistics one below the other, arithmetic for all.
fn of_2013(row: &SampleRow, rows: &mut Vec<GridRow>) {
    const STATISTICS: [(&str, Statistic); 5] = [
        ("min", smallest),
        ("mean", |_, samples| crate::monitors::amean(samples)),
        ("stddev", |_, samples| crate::monitors::stddev(samples)),
        ("max", largest),
        ("range", |_, samples| stats::spread(samples).map(|spread| spread.max - spread.min)),
    ];
    if row.is_single() {
        let values: Vec<_> = row.samples.iter().map(|samples| samples.first().copied()).collect();
        rows.push(compared((format!("Ops {}", row.name), row.direction), &values, Style::Y2013));
        return;
    }
    for (name, statistic) in STATISTICS {
        let values: Vec<_> = row.samples.iter().map(|samples| statistic(row, samples)).collect();
        let direction = if matches!(name, "stddev" | "range") { Direction::LowerIsBetter } else { row.direction };
        rows.push(compared((format!("{} {name}", row.name), direction), &values, Style::Y2013));
    }
}

/// The rows of today: all operations of a statistic one below the other.
fn by_statistic(table: &SampleTable, rows: &mut Vec<GridRow>) {
    const STATISTICS: [(&str, Statistic); 6] = [
        ("Min", smallest),
        ("mean", SampleRow::mean),
        ("Stddev", SampleRow::deviation),
        ("CoeffVar", |row, samples| Some(100.0 * row.deviation(samples)? / row.mean(samples)?)),
        ("Max", largest),
        ("Bmean", SampleRow::best_mean),
    ];
    let operation = table.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    if table.rows.iter().all(SampleRow::is_single) {
        for row in &table.rows {
            let values: Vec<_> = row.samples.iter().map(|samples| samples.first().copied()).collect();
            rows.push(compared((format!("Ops {}", row.name), row.direction), &values, Style::Mmtests));
        }
        return;
    }
    for (name, statistic) in STATISTICS {
        for row in &table.rows {
            let values: Vec<_> = row.samples.iter().map(|samples| statistic(row, samples)).collect();
            let (harmonic, lower) = (row.direction == Direction::HigherIsBetter, Direction::LowerIsBetter);
            let (word, direction) = match name {
                "mean" if harmonic => ("Hmean", row.direction),
                "mean" => ("Amean", row.direction),
                "Bmean" if harmonic => ("BHmean.95", row.direction),
                "Bmean" => ("BAmean.95", row.direction),
                "Stddev" | "CoeffVar" => (name, lower),
                _ => (name, row.direction),
            };
            let label = format!("{word:<9} {:<operation$}", row.name);
            let mut line = compared((label, direction), &values, Style::Mmtests);
            if name == "mean" {
                stars(row, &mut line);
            }
            rows.push(line);
        }
    }
}

/// Marks means that MMTests calls significant: `cidiff` of `bin/lib/MMTests/Compare.pm`, with its interval of 1.96
/// standard deviations, which does not shrink with more samples.
fn stars(row: &SampleRow, line: &mut GridRow) {
    let half = |samples: &[f64]| Some((row.mean(samples)?, 1.96 * row.deviation(samples)?));
    let Some((base, width)) = row.samples.first().and_then(|samples| half(samples)) else { return };
    for (samples, cell) in row.samples.iter().zip(&mut line.cells).skip(1) {
        let Some((mean, (new_width, change))) =
            half(samples).and_then(|(mean, new_width)| Some((mean, (new_width, cell.change.as_mut()?))))
        else {
            continue;
        };
        change.starred = (mean - base).abs() > width + new_width;
        if change.starred {
            let better = (mean > base) == (row.direction == Direction::HigherIsBetter);
            change.word = if better { "better" } else { "worse" };
        }
    }
}

/// Returns a row of values with how much better than the base they are.
fn compared((label, direction): (String, Direction), values: &[Option<f64>], style: Style) -> GridRow {
    // A deviation of nothing around nothing is no number.
    let values: Vec<Option<f64>> = values.iter().map(|value| value.filter(|value| value.is_finite())).collect();
    let base = values.first().copied().flatten();
    let cell = |(place, value): (usize, &Option<f64>)| Cell {
        value: value.map_or_else(|| "-".to_owned(), two),
        change: value.zip(base).and_then(|(value, base)| {
            let difference = if place == 0 { Some(0.0) } else { percent(direction, (base, value), style) };
            Some(Change { percent: two(difference?), starred: false, word: "" })
        }),
    };
    GridRow { label: plain(&label), cells: values.iter().enumerate().map(cell).collect() }
}

/// Returns how much better, in percent. Of nothing there are no percent; MMTests writes -99 for what is worse then and
/// 100 for what is better, and so do its styles here.
fn percent(direction: Direction, (base, new): (f64, f64), style: Style) -> Option<f64> {
    let percent = difference_percent(direction, base, new);
    match (percent, style, direction) {
        (Some(percent), ..) => Some(percent),
        (None, Style::Marvin, _) => None,
        (None, _, Direction::LowerIsBetter) => Some(-99.0),
        (None, _, Direction::HigherIsBetter) => Some(100.0),
    }
}

//! Monitor data as a document in one of the styles, and as JSON.

mod dictionary;
mod json;
mod moved;
#[cfg(test)]
mod tests;

use model::Direction;

use crate::{
    Block as Counters, BlockRow, Form, MonitorValue, Monitored, SampleRow, SampleTable,
    difference_percent, title,
};
use document::{
    Block, Change, Chart, Column, ColumnKind, Curve, Document, Plot, Scale, Style, Styles, Table,
    TableCell, TableRow, View, Weight, Width, short, text_of,
};

pub use dictionary::dictionary;
pub use json::{MonitorsDocument, document as json_document, json, schema};

const STARS: &str = "Stars, by MMTests' rule: the means are further apart than 1.96 standard deviations of both. \
                     More samples do not make it finer.";
const MEDIANS: &str =
    "Medians; percent of the base, positive is better. No verdict: that takes seeds and margins.";
const POSITIVE: &str = "Percent of the base, positive is better.";

/// The widest column of labels.
const LABEL_MAX: usize = 36;

/// Returns the document of monitor data, with tables in the view's style.
#[must_use]
pub fn document(monitored: &Monitored, view: &View) -> Document {
    let kernels = monitored
        .heads
        .iter()
        .map(title)
        .collect::<Vec<_>>()
        .join(", ");
    let title = match monitored.subject.as_str() {
        "" => format!("What monitors saw: {kernels}"),
        subject => subject.to_owned(),
    };
    Document {
        title,
        blocks: blocks(monitored, view),
        ..Document::default()
    }
}

/// Returns all blocks but the title, in the order of a report. Marvin's style begins with the
/// largest changes, and shows rows of zeros only on request.
#[must_use]
pub fn blocks(monitored: &Monitored, view: &View) -> Vec<Block> {
    let heads = &monitored.heads;
    let style = view.style;
    let charts = monitored
        .plots
        .iter()
        .filter_map(|plot| chart(plot, heads))
        .collect();
    let samples = monitored
        .tables
        .iter()
        .flat_map(|table| of_samples(table, heads, style));
    let is_shown = |row: &BlockRow| match style {
        Style::Y2013 => row.original,
        Style::Mmtests => row.is_counted(),
        Style::Marvin => row.is_counted() && (view.verbose || row.has_news()),
    };
    let counters = monitored
        .blocks
        .iter()
        .map(|block| of_block(block, heads, style, &is_shown));
    let counters = counters
        .filter(|table| style != Style::Marvin || !table.rows.is_empty())
        .map(Block::Table);
    let plot = Block::Plot(Plot {
        key: heads.iter().map(title).collect(),
        charts,
    });
    let first = (style == Style::Marvin)
        .then(|| moved::moved(monitored))
        .flatten();
    let about = (style == Style::Marvin)
        .then(|| explained(monitored, view))
        .flatten();
    first
        .into_iter()
        .chain(about)
        .chain([plot])
        .chain(samples)
        .chain(counters)
        .collect()
}

/// Explains the percentages of counters, and counts hidden rows.
fn explained(monitored: &Monitored, view: &View) -> Option<Block> {
    let counted = monitored
        .blocks
        .iter()
        .flat_map(|block| &block.rows)
        .filter(|row| row.is_counted());
    let hidden = counted
        .filter(|row| !view.verbose && !row.has_news())
        .count();
    let mut remarks = Vec::new();
    if moved::moved(monitored).is_some() {
        remarks.push(
            "Percent of counters: more (+) or less (-) than the base; neither is better."
                .to_owned(),
        );
    }
    match hidden {
        0 => {}
        1 => remarks.push("1 row of zeros is hidden: -v shows it.".to_owned()),
        _ => remarks.push(format!("{hidden} rows of zeros are hidden: -v shows them.")),
    }
    (!remarks.is_empty()).then(|| Block::Note(remarks.join(" ")))
}

/// Renders it as text.
#[must_use]
pub fn text(monitored: &Monitored, style: Style, styles: &Styles) -> String {
    text_of(
        &blocks(
            monitored,
            &View {
                style,
                ..View::default()
            },
        ),
        styles,
    )
}

fn chart(plot: &crate::Plot, heads: &[[String; 2]]) -> Option<Chart> {
    let mut curves = Vec::new();
    let mut largest = Vec::new();
    for line in &plot.lines {
        let high = line.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        let kernel = heads.get(line.kernel).map(title).unwrap_or_default();
        largest.push(format!("{kernel} up to {}", short(high)));
        curves.push(Curve {
            colour: line.kernel,
            name: None,
            points: line.points.clone(),
        });
    }
    let far = plot
        .lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|(x, _)| *x)
        .fold(0.0, f64::max);
    let description = format!(
        "{} over {} s: {}",
        plot.title,
        short(far),
        largest.join(", ")
    );
    let unit = if plot.unit.is_empty() {
        String::new()
    } else {
        format!(" ({})", plot.unit)
    };
    Chart::new(
        format!("{}{unit}", plot.title),
        description,
        "s",
        Scale::Linear,
        &curves,
    )
}

/// Returns a column of labels, and one for each kernel.
#[must_use]
pub fn columns(title: &str, heads: &[[String; 2]], width: Width) -> Vec<Column> {
    let mut columns = vec![Column::new(title, ColumnKind::Name, Width::Fit(LABEL_MAX))];
    for (place, head) in heads.iter().enumerate() {
        columns.push(Column {
            head: head.clone(),
            starts: place > 0,
            ..Column::new("", ColumnKind::Number, width)
        });
    }
    columns
}

fn of_block(
    block: &Counters,
    heads: &[[String; 2]],
    style: Style,
    is_shown: &dyn Fn(&BlockRow) -> bool,
) -> Table {
    let mut rows = Vec::new();
    for row in block.rows.iter().filter(|row| is_shown(row)) {
        let label = block_label(block, row, style);
        let values = row.values.iter().map(|value| written(*value, row, style));
        rows.push(match style {
            Style::Marvin => moved::of_row(label, row),
            Style::Y2013 | Style::Mmtests => {
                TableRow::new(Weight::Normal, std::iter::once(label).chain(values))
            }
        });
    }
    // Ours have their title beside the kernels; MMTests writes nothing over counters, and does not
    // cut its tables.
    let (title, mark, least, fixed) = if style == Style::Marvin {
        (block.title, "~ ", 9, 2)
    } else {
        ("", "", 13, 0)
    };
    Table {
        columns: columns(title, heads, Width::Share(least, 19)),
        rows,
        notes: block
            .notes
            .iter()
            .map(|note| format!("{mark}{note}"))
            .collect(),
        fixed,
    }
}

fn block_label(block: &Counters, row: &BlockRow, style: Style) -> String {
    let name = match style {
        Style::Y2013 => row.name.replace("-avgqu-sz", "-avgqz"),
        Style::Mmtests => row.name.replace("-avgqu-sz", "-avgqusz"),
        Style::Marvin if row.comparable => return row.name.clone(),
        Style::Marvin => return format!("{} ~", row.name),
    };
    // The tables of 2013 have a word before Duration only.
    let word = if style == Style::Mmtests || block.word == "Duration" {
        block.word
    } else {
        ""
    };
    let percent =
        if style == Style::Mmtests && row.form == Form::Percent && !name.contains("ercent") {
            " %"
        } else {
            ""
        };
    format!("{word} {name}{percent}").trim_start().to_owned()
}

/// Formats a value in a style.
fn written(value: MonitorValue, row: &BlockRow, style: Style) -> String {
    let number = match (value, style) {
        (MonitorValue::Number(number), _) => number,
        // MMTests prints 100 % for a share of zero; Marvin prints that there is no such number.
        (MonitorValue::OfNothing, Style::Y2013 | Style::Mmtests) if row.of_nothing.is_some() => {
            row.of_nothing.unwrap_or(0.0)
        }
        _ => return "-".to_owned(),
    };
    match (style, row.form) {
        // Truncated, not rounded, like Perl's `%d`: 66.98 is 66 in the table of 2013-06-26.
        (Style::Y2013, Form::Percent) => format!("{}%", number.trunc()),
        (Style::Y2013, Form::PerSecond) => format!("{number:.3}"),
        (Style::Y2013 | Style::Marvin, Form::Count) => format!("{number:.0}"),
        (Style::Y2013, Form::Kib) => format!("{number:.0}"),
        (Style::Y2013 | Style::Mmtests, _) | (Style::Marvin, Form::Mean) => two(number),
        (Style::Marvin, Form::Kib) => format!("{number:.0} KiB"),
        (Style::Marvin, Form::Percent | Form::Share | Form::PerSecond) => {
            format!("{}{}", two(number), row.form.unit())
        }
        (Style::Marvin, _) => format!("{} {}", two(number), row.form.unit()),
    }
}

/// Formats a number with two decimals, without a minus before zero.
fn two(number: f64) -> String {
    let text = format!("{number:.2}");
    if text == "-0.00" {
        "0.00".to_owned()
    } else {
        text
    }
}

/// Returns a table of samples, below its title if the table has no space for it.
#[must_use]
pub fn of_samples(table: &SampleTable, heads: &[[String; 2]], style: Style) -> Vec<Block> {
    let mut rows = Vec::new();
    match style {
        Style::Mmtests => by_statistic(table, &mut rows),
        Style::Y2013 => table.rows.iter().for_each(|row| of_2013(row, &mut rows)),
        Style::Marvin => rows.extend(table.rows.iter().map(|row| {
            let medians: Vec<_> = row
                .samples
                .iter()
                .map(|samples| stats::median(samples))
                .collect();
            compared(row.name.clone(), row.direction, &medians, style)
        })),
    }
    let single = table.rows.iter().all(SampleRow::is_single);
    let notes = match style {
        Style::Mmtests if !single => vec![STARS.to_owned()],
        Style::Marvin if single => vec![POSITIVE.to_owned()],
        Style::Marvin => vec![MEDIANS.to_owned()],
        Style::Y2013 | Style::Mmtests => Vec::new(),
    };
    let (above, beside) = if style == Style::Marvin {
        ("", &*table.title)
    } else {
        (&*table.title, "")
    };
    let above = (!above.is_empty()).then(|| Block::Subheading(above.to_owned()));
    let table = Table {
        columns: columns(beside, heads, Width::Share(9, 12)),
        rows,
        notes,
        ..Table::default()
    };
    above.into_iter().chain([Block::Table(table)]).collect()
}

/// A statistic of samples.
type Statistic = fn(&SampleRow, &[f64]) -> Option<f64>;

fn smallest(_: &SampleRow, samples: &[f64]) -> Option<f64> {
    stats::spread(samples).map(|spread| spread.min)
}

fn largest(_: &SampleRow, samples: &[f64]) -> Option<f64> {
    stats::spread(samples).map(|spread| spread.max)
}

/// The rows of 2013: the statistics of one operation together, with arithmetic means.
fn of_2013(row: &SampleRow, rows: &mut Vec<TableRow>) {
    const STATISTICS: [(&str, Statistic); 5] = [
        ("min", smallest),
        ("mean", |_, samples| crate::amean(samples)),
        ("stddev", |_, samples| crate::stddev(samples)),
        ("max", largest),
        ("range", |_, samples| {
            stats::spread(samples).map(|spread| spread.max - spread.min)
        }),
    ];
    if row.is_single() {
        let values: Vec<_> = row
            .samples
            .iter()
            .map(|samples| samples.first().copied())
            .collect();
        rows.push(compared(
            format!("Ops {}", row.name),
            row.direction,
            &values,
            Style::Y2013,
        ));
        return;
    }
    for (name, statistic) in STATISTICS {
        let values: Vec<_> = row
            .samples
            .iter()
            .map(|samples| statistic(row, samples))
            .collect();
        let direction = if matches!(name, "stddev" | "range") {
            Direction::LowerIsBetter
        } else {
            row.direction
        };
        rows.push(compared(
            format!("{} {name}", row.name),
            direction,
            &values,
            Style::Y2013,
        ));
    }
}

/// The rows of current MMTests: all operations of one statistic together.
fn by_statistic(table: &SampleTable, rows: &mut Vec<TableRow>) {
    const STATISTICS: [(&str, Statistic); 6] = [
        ("Min", smallest),
        ("mean", SampleRow::mean),
        ("Stddev", SampleRow::deviation),
        ("CoeffVar", |row, samples| {
            Some(100.0 * row.deviation(samples)? / row.mean(samples)?)
        }),
        ("Max", largest),
        ("Bmean", SampleRow::best_mean),
    ];
    let operation = table
        .rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0);
    if table.rows.iter().all(SampleRow::is_single) {
        for row in &table.rows {
            let values: Vec<_> = row
                .samples
                .iter()
                .map(|samples| samples.first().copied())
                .collect();
            rows.push(compared(
                format!("Ops {}", row.name),
                row.direction,
                &values,
                Style::Mmtests,
            ));
        }
        return;
    }
    for (name, statistic) in STATISTICS {
        for row in &table.rows {
            let values: Vec<_> = row
                .samples
                .iter()
                .map(|samples| statistic(row, samples))
                .collect();
            let harmonic = row.direction == Direction::HigherIsBetter;
            let lower = Direction::LowerIsBetter;
            let (word, direction) = match name {
                "mean" if harmonic => ("Hmean", row.direction),
                "mean" => ("Amean", row.direction),
                "Bmean" if harmonic => ("BHmean.95", row.direction),
                "Bmean" => ("BAmean.95", row.direction),
                // Of rates, MMTests' own tables head the deviation around the harmonic mean with
                // the plain name (`bin/lib/MMTests/Compare.pm`); here the head says
                // which of both it is.
                "Stddev" if harmonic => ("HStddev", lower),
                "CoeffVar" if harmonic => ("HCoeffVar", lower),
                "Stddev" | "CoeffVar" => (name, lower),
                _ => (name, row.direction),
            };
            let label = format!("{word:<9} {:<operation$}", row.name);
            let mut line = compared(label, direction, &values, Style::Mmtests);
            if name == "mean" {
                stars(row, &mut line);
            }
            rows.push(line);
        }
    }
}

/// Marks means that MMTests calls significant: `cidiff` of `bin/lib/MMTests/Compare.pm`, with its
/// interval of 1.96 standard deviations, which does not shrink with more samples.
fn stars(row: &SampleRow, line: &mut TableRow) {
    let half = |samples: &[f64]| Some((row.mean(samples)?, 1.96 * row.deviation(samples)?));
    let Some((base, width)) = row.samples.first().and_then(|samples| half(samples)) else {
        return;
    };
    for (samples, cell) in row
        .samples
        .iter()
        .zip(line.cells.iter_mut().skip(1))
        .skip(1)
    {
        let Some((mean, (new_width, change))) = half(samples)
            .and_then(|(mean, new_width)| Some((mean, (new_width, cell.change.as_mut()?))))
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

/// Returns a row of values with their improvement over the base.
fn compared(label: String, direction: Direction, values: &[Option<f64>], style: Style) -> TableRow {
    // A deviation of zero around zero is no number.
    let values: Vec<Option<f64>> = values
        .iter()
        .map(|value| value.filter(|value| value.is_finite()))
        .collect();
    let base = values.first().copied().flatten();
    let mut cells = vec![TableCell::new(label)];
    for (place, value) in values.iter().enumerate() {
        let change = value.zip(base).and_then(|(value, base)| {
            let difference = if place == 0 {
                Some(0.0)
            } else {
                percent(direction, base, value, style)
            };
            Some(Change {
                percent: two(difference?),
                starred: false,
                word: "",
            })
        });
        cells.push(TableCell {
            text: value.map_or_else(|| "-".to_owned(), two),
            change,
            ..TableCell::default()
        });
    }
    TableRow {
        cells,
        ..TableRow::default()
    }
}

/// Returns the improvement, in percent. A value of zero has no percentage; MMTests then prints -99
/// for worse and 100 for better, and so do its styles here.
fn percent(direction: Direction, base: f64, new: f64, style: Style) -> Option<f64> {
    let percent = difference_percent(direction, base, new);
    match (percent, style, direction) {
        (Some(percent), ..) => Some(percent),
        (None, Style::Marvin, _) => None,
        (None, _, Direction::LowerIsBetter) => Some(-99.0),
        (None, _, Direction::HigherIsBetter) => Some(100.0),
    }
}

/// Returns samples in percent of the base, one kernel per line: the form for results of SDET, whose
/// absolute values may not be published.
#[must_use]
pub fn relative(row: &SampleRow, heads: &[[String; 2]]) -> Table {
    let mut rows = Vec::new();
    for (head, relative) in heads.iter().zip(row.relative()) {
        let numbers = match relative {
            Some(relative) => [
                format!("{:.1}%", relative.percent),
                format!("{:.1}%", relative.deviation_percent),
            ],
            None => ["-", "-"].map(str::to_owned),
        };
        rows.push(TableRow::new(
            Weight::Normal,
            std::iter::once(title(head)).chain(numbers),
        ));
    }
    Table {
        columns: vec![
            Column::new(&row.name, ColumnKind::Name, Width::Fixed(30)),
            Column::new("Throughput", ColumnKind::Number, Width::Fixed(12)),
            Column::new("Std. Dev", ColumnKind::Number, Width::Fixed(11)),
        ],
        rows,
        ..Table::default()
    }
}

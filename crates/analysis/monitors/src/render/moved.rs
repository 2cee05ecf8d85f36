//! The counters that changed most from one kernel to another. Counters have no good direction, so
//! there is no verdict.

use super::columns;
use crate::{BlockRow, Form, Monitored};
use document::{Block, Change, Style, Table, TableCell, TableRow, Width};

/// How many counters a reader sees first.
const MOST: usize = 5;

/// Returns the counters with the largest changes on any kernel; `None` if there are no changes.
pub(super) fn moved(monitored: &Monitored) -> Option<Block> {
    // Stats of another suite are ranked already, and by more than their means.
    let counters = monitored.blocks.iter();
    let rows = counters
        .filter(|block| block.title != crate::stats::TITLE)
        .flat_map(|block| block.rows.iter().map(move |row| (block, row)));
    let mut found: Vec<(f64, &crate::Block, &BlockRow)> = rows
        .filter(|(_, row)| row.comparable)
        .filter_map(|(block, row)| Some((distance(row)?, block, row)))
        .collect();
    // A stable sort: counters that moved alike keep the order of the blocks.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows: Vec<TableRow> = found
        .into_iter()
        .take(MOST)
        .map(|(_, block, row)| of_row(label(block, row), row))
        .collect();
    let columns = columns("Moved most", &monitored.heads, Width::Share(9, 19));
    (!rows.is_empty()).then_some(Block::Table(Table {
        columns,
        rows,
        fixed: 2,
        ..Table::default()
    }))
}

/// Returns a row of a counter: each value, and how much more it is than the base's.
pub(super) fn of_row(label: String, row: &BlockRow) -> TableRow {
    let base = row.values.first().and_then(|value| value.number());
    let mut cells = vec![TableCell::new(label)];
    for (place, value) in row.values.iter().enumerate() {
        let change = base
            .zip(value.number())
            .filter(|_| place > 0 && row.comparable);
        cells.push(TableCell {
            change: change.and_then(|(base, new)| more_percent(base, new)),
            ..TableCell::new(super::written(*value, row, Style::Marvin))
        });
    }
    TableRow {
        cells,
        ..TableRow::default()
    }
}

fn more_percent(base: f64, new: f64) -> Option<Change> {
    let percent = 100.0 * (new - base) / base;
    let text = match percent.abs() {
        size if !size.is_finite() => return None,
        size if size < 0.005 => return None,
        size if size < 1000.0 => format!("{percent:+.2}"),
        // Of a few there is no percentage worth reading.
        _ => ">1000".to_owned(),
    };
    Some(Change {
        percent: text,
        starred: false,
        word: "",
    })
}

fn label(block: &crate::Block, row: &BlockRow) -> String {
    let whole = format!("{}: {}", block.title, row.name);
    if whole.chars().count() <= super::LABEL_MAX {
        whole
    } else {
        row.name.clone()
    }
}

/// Returns how far the farthest kernel is from the base, as a logarithm of the ratio; small numbers
/// weigh little, and zero can be left.
fn distance(row: &BlockRow) -> Option<f64> {
    let small = match row.form {
        Form::Count => 10.0,
        Form::Kib => 64.0,
        Form::Percent | Form::Share | Form::PerSecond | Form::Milliseconds => 1.0,
        Form::Seconds | Form::Mean => 0.1,
    };
    let (base, others) = row.values.split_first()?;
    let base = base.number()?.abs() + small;
    let far = others
        .iter()
        .filter_map(|value| Some(((value.number()?.abs() + small) / base).ln().abs()));
    far.reduce(f64::max).filter(|distance| *distance > 0.0)
}

#[cfg(test)]
mod tests {
    use super::{distance, moved};
    use crate::fixtures::newer;
    use crate::{BlockRow, Form, MonitorValue};
    use document::Block;

    fn row(form: Form, values: &[f64]) -> BlockRow {
        BlockRow {
            name: "x".to_owned(),
            form,
            comparable: true,
            values: values
                .iter()
                .map(|number| MonitorValue::Number(*number))
                .collect(),
            of_nothing: None,
            original: true,
        }
    }

    #[test]
    fn small_counts_move_less_than_large_ones() {
        let moved = |values: &[f64]| distance(&row(Form::Count, values));
        assert!(moved(&[1.0, 2.0]) < moved(&[1000.0, 1200.0]));
        assert!(
            moved(&[0.0, 1000.0]) > moved(&[500.0, 1000.0]),
            "what was zero can move"
        );
        assert_eq!(
            moved(&[100.0, 300.0]),
            moved(&[100.0, 100.0, 300.0]),
            "the farthest kernel counts"
        );
        assert_eq!((moved(&[7.0, 7.0]), moved(&[7.0])), (None, None));
    }

    #[test]
    fn change_of_a_few_to_many_stays_short() {
        let percent = |base, new| super::more_percent(base, new).map(|change| change.percent);
        assert_eq!(percent(4.0, 278_632.0).as_deref(), Some(">1000"));
        assert_eq!(percent(400.0, 300.0).as_deref(), Some("-25.00"));
        assert_eq!((percent(0.0, 5.0), percent(5.0, 5.0)), (None, None));
    }

    #[test]
    fn counters_that_cannot_be_compared_are_left_out() {
        let mut monitored = newer();
        let Some(Block::Table(table)) = moved(&monitored) else {
            panic!("nothing moved")
        };
        assert_eq!(table.rows.len(), super::MOST);
        monitored
            .blocks
            .iter_mut()
            .flat_map(|block| &mut block.rows)
            .for_each(|row| row.comparable = false);
        assert!(moved(&monitored).is_none());
    }
}

//! The table: a column group for each machine.
//!
//! Two machines with two kernels fit 80 columns: 18 for the name, 31 for each machine. Of more,
//! text puts the groups below each other.

use model::{Direction, Unit, Workload};

use super::machines;
use crate::comparison;
use crate::render::comparison::table::{
    Extra, Look, anchor, firsts_of_groups, name_column, select,
};
use crate::render::scale::Scale;
use crate::render::words::{self, Section, caption};
use crate::side_by_side::{MatchedRow, SideBySide};
use document::number::margin;
use document::{Block, Group, Table, TableCell, TableRow, View, Width};

/// The widest value: two groups fit beside the widest name.
const VALUE: usize = 8;
/// Most kernels, over all machines, with bars on pages; more are a matrix.
const WITH_BARS: usize = 4;

/// Rows of one block, of one direction, and of one unit on each machine.
struct MatchedSection<'a> {
    title: &'a str,
    direction: Direction,
    units: Vec<Option<&'a Unit>>,
    rows: Vec<&'a MatchedRow>,
}

/// Returns whether rows have bars.
pub(super) fn has_bars(side_by_side: &SideBySide) -> bool {
    machines(side_by_side)
        .map(|(_, comparison)| comparison.others.len())
        .sum::<usize>()
        <= WITH_BARS
}

/// Returns the tables, each with captions of its values.
pub(super) fn tables(side_by_side: &SideBySide, view: &View) -> Vec<Block> {
    let extra = if has_bars(side_by_side) {
        Extra::Hint
    } else {
        Extra::Matrix
    };
    let scale = Scale::for_comparisons(machines(side_by_side).map(|(_, comparison)| comparison));
    let look = Look {
        extra,
        scale,
        width: VALUE,
        has_cycles: false,
    };
    let mut blocks = Vec::new();
    for (number, section) in sections(side_by_side).into_iter().enumerate() {
        blocks.push(Block::Heading(format!(
            "{}: {}",
            section.title, section.direction
        )));
        if number == 0 {
            blocks.push(Block::Paragraph(
                "difference from the base: positive is better".to_owned(),
            ));
        }
        blocks.push(Block::List(captions(side_by_side, &section)));
        let rows = chosen(side_by_side, &section, view);
        blocks.push(match rows.is_empty() {
            true => Block::Note("No row of the verdict that was asked for.".to_owned()),
            false => Block::Table(table(
                side_by_side,
                &MatchedSection { rows, ..section },
                look,
                view,
            )),
        });
    }
    blocks
}

/// Returns the sections, in the order of their first rows.
fn sections(side_by_side: &SideBySide) -> Vec<MatchedSection<'_>> {
    let mut sections: Vec<MatchedSection<'_>> = Vec::new();
    if machines(side_by_side).all(|(_, comparison)| words::no_run_needed(comparison)) {
        return sections;
    }
    for row in side_by_side.rows() {
        let units: Vec<Option<&Unit>> = (0..side_by_side.columns().len())
            .map(|machine| Some(&side_by_side.row(row, machine)?.unit))
            .collect();
        let title = machines(side_by_side)
            .enumerate()
            .find_map(|(place, (_, comparison))| {
                Some(comparison.block(side_by_side.row(row, place)?))
            });
        let title = title.unwrap_or_default();
        let direction = row.workload.metric.direction;
        let fitting = sections.iter_mut().find(|section| {
            let mut pairs = section.units.iter().zip(&units);
            section.title == title
                && section.direction == direction
                // A machine without the row fits every unit.
                && pairs.all(|(known, unit)| known.is_none() || unit.is_none() || known == unit)
        });
        match fitting {
            Some(section) => {
                section.rows.push(row);
                section
                    .units
                    .iter_mut()
                    .zip(units)
                    .for_each(|(known, unit)| *known = known.or(unit));
            }
            None => sections.push(MatchedSection {
                title,
                direction,
                units,
                rows: vec![row],
            }),
        }
    }
    sections
}

/// Returns what each machine's values are: `exact: median instructions/op of 15 iterations, lower
/// is better`.
fn captions(side_by_side: &SideBySide, section: &MatchedSection<'_>) -> Vec<String> {
    let mut captions = Vec::new();
    for (place, (machine, comparison)) in machines(side_by_side).enumerate() {
        let Some(unit) = section.units[place].cloned() else {
            continue;
        };
        let rows: Vec<&comparison::ComparisonRow> = section
            .rows
            .iter()
            .filter_map(|row| side_by_side.row(row, place))
            .collect();
        let mut caption = caption(
            comparison,
            &Section {
                title: machine,
                unit,
                direction: section.direction,
                rows,
            },
        );
        if comparison.is_noisy() {
            caption = format!("{caption}; {}", words::means(comparison));
        }
        captions.push(caption);
    }
    captions
}

fn chosen<'a>(
    side_by_side: &'a SideBySide,
    section: &MatchedSection<'a>,
    view: &View,
) -> Vec<&'a MatchedRow> {
    let places = 0..side_by_side.columns().len();
    select(&section.rows, view, |row| {
        places
            .clone()
            .filter_map(|place| side_by_side.row(row, place))
            .flat_map(|row| &row.cells)
            .collect()
    })
}

fn table(
    side_by_side: &SideBySide,
    section: &MatchedSection<'_>,
    look: Look,
    view: &View,
) -> Table {
    let mut columns = vec![name_column(
        machines(side_by_side).map(|(_, comparison)| comparison),
    )];
    let mut widths = Vec::new();
    for ((machine, comparison), unit) in machines(side_by_side).zip(&section.units) {
        let about = unit.map(ToString::to_string).unwrap_or_default();
        let group = Group {
            name: machine.to_owned(),
            about,
        };
        let mut own = look.columns(comparison);
        own.iter_mut()
            .for_each(|column| column.group = Some(group.clone()));
        // A space more before each group.
        own.iter_mut()
            .take(1)
            .for_each(|column| column.width = Width::Fixed(VALUE + 2));
        widths.push(own.len());
        columns.extend(own);
    }
    let workloads: Vec<&Workload> = section.rows.iter().map(|row| &*row.workload).collect();
    let firsts = firsts_of_groups(&workloads, view);
    let mut rows = Vec::new();
    for row in &section.rows {
        let mut cells = vec![TableCell::new(row.workload.name.to_string())];
        for (place, (_, comparison)) in machines(side_by_side).enumerate() {
            match side_by_side.row(row, place) {
                Some(own) => cells.extend(look.cells(own, comparison)),
                None => cells.extend((0..widths[place]).map(|_| TableCell::default())),
            }
        }
        let number = side_by_side
            .rows()
            .iter()
            .position(|known| std::ptr::eq(known, *row))
            .unwrap_or_default();
        rows.push(TableRow {
            cells,
            anchor: anchor(&row.workload, number),
            group: firsts
                .get(&*row.workload.name)
                .copied()
                .unwrap_or_default()
                .to_owned(),
            about: about(side_by_side, row),
            ..TableRow::default()
        });
    }
    Table {
        columns,
        rows,
        fixed: 1,
        ..Table::default()
    }
}

/// Describes a row's workload, with the margins.
fn about(side_by_side: &SideBySide, row: &MatchedRow) -> String {
    let mut margins: Vec<String> = Vec::new();
    let mut on: Vec<String> = Vec::new();
    for (place, (machine, _)) in machines(side_by_side).enumerate() {
        let Some(own) = side_by_side.row(row, place) else {
            continue;
        };
        margins.push(margin(own.margin_percent));
        on.push(format!("{} on {machine}", margin(own.margin_percent)));
    }
    margins.dedup();
    let margins = if let [one] = margins.as_slice() {
        one.clone()
    } else {
        on.join(", ")
    };
    format!(
        "{}; one operation: {}; margin {margins}",
        row.workload.stresses, row.workload.operation
    )
}

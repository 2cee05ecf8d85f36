//! The experiment as text, in 80 columns.

use super::tables::{CaseTables, LEGEND, Row, Space, Table, cases};
use crate::label::cut_middle;
use crate::plain::plain;
use crate::render::Styles;
use crate::render::layout::{Page, WIDTH};
use crate::render::number::seed_list;
use crate::rmap::Rmap;

/// The columns of processes and of the kernel's name.
const PROCESSES: usize = 7;
const NAME: usize = 18;
/// The narrowest and the widest column of numbers.
const COLUMN: (usize, usize) = (9, 11);
/// The column of what takes space.
const LABEL: usize = 32;

/// Renders the experiment as text.
#[must_use]
pub fn text(rmap: &Rmap, styles: &Styles) -> String {
    let mut page = Page::default();
    let kernels: Vec<String> = rmap.kernels.iter().map(|kernel| plain(kernel)).collect();
    page.words(0, &format!("Reverse mappings: {}", kernels.join(" against ")));
    page.words(0, &format!("{}; {}", rmap.machine, seed_list(&[rmap.seed])));
    for CaseTables { case, about, tables, space, notes } in cases(rmap) {
        page.blank();
        page.line(styles.strong(&format!("== {case} ==")));
        page.words(0, about);
        for table in &tables {
            page.blank();
            self::table(&mut page, table, styles);
        }
        if let Some(space) = &space {
            page.blank();
            of_space(&mut page, space, (&kernels, styles));
        }
        if !notes.is_empty() {
            page.blank();
            notes.iter().for_each(|note| page.hanging("  ", note));
        }
    }
    page.blank();
    page.words(0, LEGEND);
    page.blank();
    page.words(0, &format!("Again: {}", rmap.command));
    page.finish()
}

fn table(page: &mut Page, table: &Table, styles: &Styles) {
    let room = (WIDTH - PROCESSES - NAME) / table.heads.len().max(1);
    let column = room.clamp(COLUMN.0, COLUMN.1);
    let row = |head: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>column$}")).collect();
        format!("{head:<0$}{cells}", PROCESSES + NAME).trim_end().to_owned()
    };
    page.line(styles.strong(&row(&table.title, &table.heads)));
    for Row { processes, name, cells, is_change } in &table.rows {
        if *is_change && cells.iter().all(String::is_empty) {
            continue;
        }
        let line = row(&format!("{processes:<PROCESSES$}{}", cut_middle(name, NAME)), cells);
        page.line(if *is_change { styles.faint(&line) } else { line });
    }
    table.laws.iter().for_each(|law| page.hanging("  ~ ", law));
}

fn of_space(page: &mut Page, space: &Space, (kernels, styles): (&[String], &Styles)) {
    let column = ((WIDTH - LABEL) / kernels.len().max(1)).clamp(12, 20);
    let row = |head: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("{:>column$}", cut_middle(cell, column - 1))).collect();
        format!("{head:<LABEL$}{cells}")
    };
    page.line(styles.strong(&row(&space.title, kernels)));
    space.rows.iter().for_each(|(name, cells)| page.line(row(name, cells)));
}

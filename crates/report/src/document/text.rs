//! Documents as text: 80 columns, for terminals and mails.

use super::{Block, Column, Kind, Row, Table, Weight, Width};
use crate::label::cut_middle;
use crate::plain::plain;
use crate::render::Styles;
use crate::render::layout::{Page, WIDTH, wrap};

/// What is around a percentage: ` (%)`, or ` *%*`.
const BRACKETS: usize = 4;
/// Between a number and words beside it.
const GAP: usize = 2;

/// Writes blocks.
pub(crate) fn text_of(blocks: &[Block], styles: &Styles) -> String {
    let mut page = Page::default();
    write_text(&mut page, blocks, styles);
    page.finish()
}

/// Writes blocks below what a page has already.
pub(crate) fn write_text(page: &mut Page, blocks: &[Block], styles: &Styles) {
    // The title of a page is followed at once by what it is about.
    let title = Block::Heading(String::new());
    let mut before = (!page.is_empty()).then_some(&title);
    for block in blocks.iter().filter(|block| !matches!(block, Block::Plot(_) | Block::Drawing(_))) {
        let belongs = match (before, block) {
            (Some(Block::Heading(_)), Block::Paragraph(_)) | (Some(Block::Note(_)), Block::Note(_)) => true,
            (Some(Block::Subheading(_)), _) => true,
            (Some(Block::Paragraph(words)), _) => words.ends_with(':'),
            _ => false,
        };
        if !belongs {
            page.blank();
        }
        match block {
            Block::Heading(words) => strong(page, &format!("== {words} =="), styles),
            Block::Subheading(words) => strong(page, words, styles),
            Block::Paragraph(words) | Block::Note(words) => page.words(0, words),
            Block::List(items) => items.iter().for_each(|item| page.hanging("  ", item)),
            Block::Facts(facts) => {
                let widest = facts.iter().map(|fact| fact.name.len() + 1).max().unwrap_or(0);
                facts.iter().for_each(|fact| {
                    page.hanging(&format!("{:<widest$} ", format!("{}:", fact.name)), &fact.value);
                });
            }
            Block::Table(table) => Lines::new(table).write(page, styles),
            Block::Plot(_) | Block::Drawing(_) => {}
        }
        before = Some(block);
    }
}

fn strong(page: &mut Page, words: &str, styles: &Styles) {
    wrap(words, WIDTH).iter().for_each(|line| page.line(styles.strong(line)));
}

/// A table that is cut into columns.
struct Lines<'a> {
    table: &'a Table,
    /// Of each column, without changes.
    widths: Vec<usize>,
    /// How wide percentages are, with their brackets; 0 where there are none.
    change: usize,
}

impl<'a> Lines<'a> {
    fn new(table: &'a Table) -> Self {
        let changes = table.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.change.as_ref());
        let change = changes.map(|change| change.percent.len().max("-99.99".len()) + BRACKETS).max().unwrap_or(0);
        let widest = |at: usize, head: usize| {
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
            cells.map(|cell| plain(cell.text.trim_end()).chars().count()).fold(head, usize::max)
        };
        let own = |(at, column): (usize, &Column)| match column.width {
            Width::Fixed(width) => width,
            Width::Fit(most) => widest(at, plain(&column.head[0]).chars().count()).min(most),
            Width::Share(..) => 0,
        };
        let mut widths: Vec<usize> = table.columns.iter().enumerate().map(own).collect();
        let shares = table.columns.iter().filter(|column| matches!(column.width, Width::Share(..))).count();
        let room = WIDTH.saturating_sub(widths.iter().sum()) / shares.max(1);
        for (at, column) in table.columns.iter().enumerate() {
            if let Width::Share(least, most) = column.width {
                widths[at] = room.saturating_sub(change).clamp(least, most).max(widest(at, 0) + 1);
            }
        }
        Self { table, widths, change }
    }

    fn write(&self, page: &mut Page, styles: &Styles) {
        let columns = &self.table.columns;
        for line in 0..=usize::from(columns.iter().any(|column| !column.head[1].is_empty())) {
            let heads: Vec<String> = columns.iter().map(|column| plain(&column.head[line])).collect();
            page.line(styles.strong(self.line(&heads, true).trim_end()));
        }
        let mut has_line = false;
        for row in &self.table.rows {
            if row.weight == Weight::Total && !has_line {
                page.line(styles.faint(&"-".repeat(WIDTH)));
                has_line = true;
            }
            let line = self.line(&self.cells(row), false);
            page.line(if row.weight == Weight::Faint { styles.faint(line.trim_end()) } else { line.trim_end().into() });
        }
        self.table.notes.iter().for_each(|note| page.hanging("  ", note));
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let width = self.change.saturating_sub(BRACKETS);
        let cells = row.cells.iter().zip(&self.table.columns).map(|(cell, column)| match &cell.change {
            _ if column.kind != Kind::Number || self.change == 0 => plain(&cell.text),
            Some(change) if change.starred => format!("{} *{:>width$}%*", plain(&cell.text), change.percent),
            Some(change) => format!("{} ({:>width$}%)", plain(&cell.text), change.percent),
            None => format!("{}{}", plain(&cell.text), " ".repeat(self.change)),
        });
        cells.collect()
    }

    /// Puts cells where their columns are. A name goes on over cells that are empty.
    fn line(&self, cells: &[String], is_head: bool) -> String {
        let (mut line, mut length, mut end) = (String::new(), 0, 0);
        for (at, (cell, column)) in cells.iter().zip(&self.table.columns).enumerate() {
            let is_number = column.kind == Kind::Number;
            let is_beside = at > 0 && !is_number && self.table.columns[at - 1].kind == Kind::Number;
            let start = end + if is_beside { GAP } else { 0 };
            let is_changed = is_number && self.change > 0 && matches!(column.width, Width::Share(..));
            let width = self.widths[at] + if is_changed { self.change } else { 0 };
            end = start + width;
            let cell = match column.kind {
                Kind::Number if is_head => cut_middle(cell, width.saturating_sub(1)),
                Kind::Number => cell.clone(),
                _ if cells.get(at + 1).is_some_and(String::is_empty) => cell.clone(),
                _ => cut_middle(cell, width),
            };
            let long = cell.chars().count();
            let from = if is_number { end.saturating_sub(long) } else { start };
            line.push_str(&" ".repeat(from.saturating_sub(length)));
            line.push_str(&cell);
            length = length.max(from) + long;
        }
        line
    }
}

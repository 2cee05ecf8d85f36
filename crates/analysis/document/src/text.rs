//! Documents as text: 80 columns, for terminals and mails.

use super::{Block, Column, ColumnKind, Fact, Group, Table, TableRow, Weight, Width};
use crate::layout::{Page, WIDTH, break_line, command_lines, wrap};
use crate::{Styles, cut_middle, distinct_width};
use model::sanitize_line;

/// The brackets of a percentage: ` (%)`, or ` *%*`.
const BRACKETS: usize = 4;
/// The space between a number and words beside it.
const GAP: usize = 2;
/// Most console lines in text; a page has all stored ones.
const CONSOLE_LINES: usize = 16;

/// Returns the blocks as text, at most 80 columns wide.
pub fn text_of(blocks: &[Block], styles: &Styles) -> String {
    let mut page = Page::default();
    write_text(&mut page, blocks, styles);
    page.finish()
}

/// Writes blocks below existing ones.
pub fn write_text(page: &mut Page, blocks: &[Block], styles: &Styles) {
    // No blank line between the title of a page and its subject.
    let title = Block::Heading(String::new());
    let mut before = (!page.is_empty()).then_some(&title);
    for block in blocks.iter().filter(|block| {
        !matches!(
            block,
            Block::Plot(_) | Block::Drawing(_) | Block::Details(_)
        )
    }) {
        let belongs = match (before, block) {
            (Some(Block::Heading(_)), Block::Paragraph(_))
            | (Some(Block::Note(_)), Block::Note(_)) => true,
            (Some(Block::Facts(_)), Block::Command(_)) | (Some(_), Block::Console(_)) => true,
            (Some(Block::Subheading(_)), _) => true,
            (Some(Block::Paragraph(text)), _) => text.ends_with(':'),
            _ => false,
        };
        if !belongs {
            page.blank();
        }
        match block {
            Block::Heading(text) => strong(page, &format!("== {text} =="), styles),
            Block::Subheading(text) => strong(page, text, styles),
            Block::Paragraph(text) | Block::Note(text) => page.paragraph(0, text),
            Block::List(items) => items.iter().for_each(|item| page.hanging("  ", item)),
            Block::Facts(facts) => {
                let widest = widest(facts);
                facts.iter().for_each(|fact| {
                    page.hanging(
                        &format!("{:<widest$} ", format!("{}:", sanitize_line(&fact.name))),
                        &fact.value,
                    );
                });
            }
            Block::Table(table) => {
                for (number, part) in parts(table).into_iter().enumerate() {
                    if number > 0 {
                        page.blank();
                    }
                    part.write(page, styles);
                }
                table.notes.iter().for_each(|note| page.hanging("  ", note));
            }
            Block::Console(lines) => console(page, lines, styles),
            Block::Command(command) => {
                let room = if let Some(Block::Facts(facts)) = before {
                    widest(facts)
                } else {
                    0
                };
                let mut mark = format!("{:<room$} ", "Reproduce:");
                for line in command_lines(command, WIDTH - mark.len()) {
                    page.line(format!("{mark}{line}"));
                    mark = " ".repeat(mark.len());
                }
            }
            Block::Plot(_) | Block::Drawing(_) | Block::Details(_) => {}
        }
        before = Some(block);
    }
}

fn widest(facts: &[Fact]) -> usize {
    facts
        .iter()
        .map(|fact| sanitize_line(&fact.name).chars().count() + 1)
        .max()
        .unwrap_or(0)
}

fn strong(page: &mut Page, text: &str, styles: &Styles) {
    wrap(text, WIDTH)
        .iter()
        .for_each(|line| page.line(styles.strong(line)));
}

fn console(page: &mut Page, lines: &[String], styles: &Styles) {
    for line in &lines[lines.len().saturating_sub(CONSOLE_LINES)..] {
        let mut mark = "    | ";
        for piece in break_line(line, WIDTH - mark.len()) {
            page.line(styles.faint(format!("{mark}{piece}").trim_end()));
            mark = "      ";
        }
    }
}

/// Cuts a table into parts that fit, where cuts are allowed.
fn parts(table: &Table) -> Vec<Lines<'_>> {
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|at| table.columns[*at].kind != ColumnKind::Drawing)
        .collect();
    let whole = Lines::new(table, shown.clone());
    if table.fixed == 0 || whole.width() <= WIDTH {
        return vec![whole];
    }
    let (fixed, rest) = shown.split_at(table.fixed);
    let fits =
        |part: &[usize], more: &[usize]| Lines::new(table, [part, more].concat()).width() <= WIDTH;
    let groups =
        rest.chunk_by(|before, at| table.columns[*before].group == table.columns[*at].group);
    let pieces = groups.flat_map(|group| match fits(fixed, group) {
        true => vec![group],
        false => group.chunk_by(|_, at| !table.columns[*at].starts).collect(),
    });
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for piece in pieces {
        match parts.last_mut() {
            Some(part) if fits(part, piece) => part.extend(piece),
            _ => parts.push([fixed, piece].concat()),
        }
    }
    parts
        .into_iter()
        .map(|part| Lines::new(table, part))
        .collect()
}

/// Columns of a table, side by side.
struct Lines<'a> {
    table: &'a Table,
    shown: Vec<usize>,
    /// Their widths, with the space for changes.
    widths: Vec<usize>,
    /// The width of percentages, with their brackets; 0 if there are none.
    change: usize,
}

/// A cell in plain and in coloured form.
struct Shown {
    text: String,
    styled: String,
}

impl<'a> Lines<'a> {
    fn new(table: &'a Table, shown: Vec<usize>) -> Self {
        let changes = table
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .filter_map(|cell| cell.change.as_ref());
        let change = changes
            .map(|change| change.percent.len().max("-99.99".len()) + BRACKETS)
            .max()
            .unwrap_or(0);
        let own = |at: &usize| {
            let column = &table.columns[*at];
            let cells = || table.rows.iter().filter_map(|row| row.cells.get(*at));
            let long = |text: &str| sanitize_line(text.trim_end()).chars().count();
            match column.width {
                Width::Fixed(width) => width,
                Width::Fit(most) => {
                    let texts: Vec<String> = cells()
                        .map(|cell| sanitize_line(cell.text.trim_end()))
                        .collect();
                    let widest = cells()
                        .map(|cell| long(&cell.text))
                        .fold(long(&column.head[0]), usize::max)
                        .min(most);
                    // Names that look the same after cutting are worse than a wide table.
                    let is_name = column.kind == ColumnKind::Name;
                    if is_name {
                        distinct_width(texts.iter().map(String::as_str), widest)
                    } else {
                        widest
                    }
                }
                Width::Whole(most) => {
                    let fitting = cells()
                        .map(|cell| long(&cell.text))
                        .filter(|long| *long <= most)
                        .max();
                    fitting.unwrap_or(most).max(long(&column.head[0]))
                }
                Width::Share(..) => 0,
            }
        };
        let mut widths: Vec<usize> = shown.iter().map(own).collect();
        let shares = shown
            .iter()
            .filter(|at| matches!(table.columns[**at].width, Width::Share(..)))
            .count();
        let room = WIDTH.saturating_sub(widths.iter().sum()) / shares.max(1);
        let mut lines = Self {
            table,
            shown,
            widths: Vec::new(),
            change,
        };
        for (width, at) in widths.iter_mut().zip(&lines.shown) {
            let change = if lines.has_changes(*at) { change } else { 0 };
            if let Width::Share(least, most) = table.columns[*at].width {
                let cells = table.rows.iter().filter_map(|row| row.cells.get(*at));
                let widest = cells
                    .map(|cell| sanitize_line(cell.text.trim_end()).chars().count())
                    .max()
                    .unwrap_or(0);
                *width = room
                    .saturating_sub(change)
                    .clamp(least, most)
                    .max(widest + 1);
            }
            *width += change;
        }
        lines.widths = widths;
        lines
    }

    /// Returns whether a column has space for changes beside its numbers.
    fn has_changes(&self, at: usize) -> bool {
        let column = &self.table.columns[at];
        let mut cells = self.table.rows.iter().filter_map(|row| row.cells.get(at));
        self.change > 0
            && column.kind == ColumnKind::Number
            && cells.any(|cell| cell.change.is_some())
    }

    /// Returns the width of the widest line.
    fn width(&self) -> usize {
        (0..self.shown.len())
            .map(|place| self.gap(place) + self.widths[place])
            .sum()
    }

    /// Returns the space between a column and the one before.
    fn gap(&self, place: usize) -> usize {
        let kind = |place: usize| self.table.columns[self.shown[place]].kind;
        match kind(place) {
            ColumnKind::Verdict => 1,
            ColumnKind::Name | ColumnKind::Words
                if place > 0 && kind(place - 1) == ColumnKind::Number =>
            {
                GAP
            }
            _ => 0,
        }
    }

    fn write(&self, page: &mut Page, styles: &Styles) {
        let columns = || self.shown.iter().map(|at| &self.table.columns[*at]);
        if columns().any(|column| column.group.is_some()) {
            page.line(styles.strong(self.groups().trim_end()));
        }
        for line in 0..=usize::from(columns().any(|column| !column.head[1].is_empty())) {
            let head = |column: &Column| {
                if column.kind == ColumnKind::Verdict {
                    String::new()
                } else {
                    sanitize_line(&column.head[line])
                }
            };
            let heads: Vec<Shown> = columns().map(|column| Shown::plain(head(column))).collect();
            page.line(styles.strong(self.line(&heads, true).trim_end()));
        }
        let mut has_line = false;
        for row in &self.table.rows {
            if row.weight == Weight::Total && !has_line {
                page.line(styles.faint(&"-".repeat(WIDTH)));
                has_line = true;
            }
            let mut cells = self.cells(row, styles);
            if let (Some(Width::Whole(most)), Some(name)) =
                (columns().next().map(|first| first.width), cells.first_mut())
                && name.text.chars().count() > most
            {
                page.line(std::mem::replace(name, Shown::plain(String::new())).styled);
            }
            let line = self.line(&cells, false);
            page.line(if row.weight == Weight::Faint {
                styles.faint(line.trim_end())
            } else {
                line.trim_end().into()
            });
        }
    }

    /// Returns the line above the heads: the name of each group, centred over its columns.
    fn groups(&self) -> String {
        let group = |place: usize| self.table.columns[self.shown[place]].group.as_ref();
        let mut line = String::new();
        let mut end = 0;
        let places: Vec<usize> = (0..self.shown.len()).collect();
        for places in places.chunk_by(|before, place| group(*before) == group(*place)) {
            let width: usize = places
                .iter()
                .map(|place| self.gap(*place) + self.widths[*place])
                .sum();
            if let Some(Group { name, about }) = group(places[0]) {
                // Two spaces stay free before each group.
                let room = width.saturating_sub(GAP);
                let label = [name, about].map(|label| sanitize_line(label)).join(": ");
                let label = cut_middle(label.trim_end_matches(": "), room.saturating_sub(2));
                let from = end + width - room;
                let label = format!(" {label} ");
                line = format!("{line:<from$}{label:-^room$}");
            }
            end += width;
        }
        line
    }

    fn cells(&self, row: &TableRow, styles: &Styles) -> Vec<Shown> {
        let width = self.change.saturating_sub(BRACKETS);
        let shown = |at: &usize| {
            let cell = row.cells.get(*at)?;
            let kind = self.table.columns[*at].kind;
            let text = sanitize_line(&cell.text);
            Some(match &cell.change {
                _ if kind == ColumnKind::Verdict => {
                    let letter: String = text.chars().take(1).collect();
                    Shown {
                        styled: styles.tone(cell.tone, &letter),
                        text: letter,
                    }
                }
                _ if !self.has_changes(*at) => Shown::plain(text),
                Some(change) => {
                    let percent = match change.starred {
                        true => format!("*{:>width$}%*", change.percent),
                        false => format!("({:>width$}%)", change.percent),
                    };
                    let styled = format!("{text} {}", styles.tone(change.word, &percent));
                    Shown {
                        text: format!("{text} {percent}"),
                        styled,
                    }
                }
                None => Shown::plain(format!("{text}{}", " ".repeat(self.change))),
            })
        };
        self.shown.iter().filter_map(shown).collect()
    }

    /// Places cells in their columns. A name extends over empty cells.
    fn line(&self, cells: &[Shown], is_head: bool) -> String {
        let mut line = String::new();
        let mut length = 0;
        let mut end = 0;
        for (place, cell) in cells.iter().enumerate() {
            let kind = self.table.columns[self.shown[place]].kind;
            let width = self.widths[place];
            let start = end + self.gap(place);
            end = start + width;
            let is_number = kind == ColumnKind::Number;
            let fitted = match kind {
                ColumnKind::Number if is_head => {
                    Some(cut_middle(&cell.text, width.saturating_sub(1)))
                }
                ColumnKind::Number | ColumnKind::Verdict => None,
                _ if cells
                    .get(place + 1)
                    .is_some_and(|next| next.text.is_empty()) =>
                {
                    None
                }
                _ => Some(cut_middle(&cell.text, width)),
            };
            let long = fitted.as_ref().unwrap_or(&cell.text).chars().count();
            let from = if is_number {
                end.saturating_sub(long)
            } else {
                start
            };
            line.push_str(&" ".repeat(from.saturating_sub(length)));
            line.push_str(fitted.as_ref().unwrap_or(&cell.styled));
            length = length.max(from) + long;
        }
        line
    }
}

impl Shown {
    fn plain(text: String) -> Self {
        Self {
            styled: text.clone(),
            text,
        }
    }
}

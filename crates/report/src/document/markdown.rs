//! Documents as GitHub's markdown: for issues and merge requests.

use super::{Block, Cell, Column, Kind, Row, Table, Weight};
use crate::plain::plain;

/// Writes blocks; the text ends in one line break.
pub(crate) fn markdown_of(blocks: &[Block]) -> String {
    let list = |items: Vec<String>| items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n");
    let block = |block: &Block| match block {
        Block::Heading(words) => Some(format!("## {}", escaped(words))),
        Block::Subheading(words) => Some(format!("### {}", escaped(words))),
        Block::Paragraph(words) | Block::Note(words) => Some(escaped(words)),
        Block::List(items) => Some(list(items.iter().map(|item| escaped(item)).collect())),
        Block::Facts(facts) => {
            Some(list(facts.iter().map(|fact| format!("{}: {}", fact.name, code(&fact.value))).collect()))
        }
        Block::Table(table) => Some(of_table(table)),
        Block::Plot(_) | Block::Drawing(_) => None,
    };
    blocks.iter().filter_map(block).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn of_table(Table { columns, rows, notes }: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let rule = |column: &Column| if column.kind == Kind::Number { "---:" } else { "---" }.to_owned();
    let mut lines = vec![
        line(columns.iter().map(|column| escaped(&column.title())).collect()),
        line(columns.iter().map(rule).collect()),
    ];
    let cells = |row: &Row| columns.iter().zip(&row.cells).map(|(column, of)| cell(column, of, row.weight)).collect();
    lines.extend(rows.iter().map(|row| line(cells(row))));
    for (place, note) in notes.iter().enumerate() {
        lines.push(format!("{}- {}", if place == 0 { "\n" } else { "" }, escaped(note)));
    }
    lines.join("\n")
}

fn cell(column: &Column, Cell { text, change }: &Cell, weight: Weight) -> String {
    let text = match column.kind {
        Kind::Name if weight != Weight::Faint && !text.is_empty() => code(text.trim_end()),
        _ => escaped(text),
    };
    match change {
        Some(change) if change.starred => format!("{text} (**{}%**)", change.percent),
        Some(change) => format!("{text} ({}%)", change.percent),
        None => text,
    }
}

/// Returns text that markdown shows as it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Code, so that nothing in it is markup; a bar would end a table's cell even there.
fn code(text: &str) -> String {
    format!("`{}`", plain(text).replace('`', "'").replace('|', "\\|"))
}

//! Documents as GitHub's markdown: for issues and merge requests.

use super::{Block, Column, ColumnKind, Details, Table, TableCell, Weight};
use model::sanitize_line;

/// Writes blocks; the text ends with one newline.
pub fn markdown_of(blocks: &[Block]) -> String {
    let block = |block: &Block| match block {
        Block::Heading(text) => Some(format!("## {}", escaped(text))),
        Block::Subheading(text) => Some(format!("### {}", escaped(text))),
        Block::Paragraph(text) | Block::Note(text) => Some(escaped(text)),
        Block::List(items) => Some(list(items.iter().map(|item| escaped(item)))),
        Block::Facts(facts) => {
            Some(list(facts.iter().map(|fact| {
                format!("{}: {}", escaped(&fact.name), escaped(&fact.value))
            })))
        }
        Block::Table(table) => Some(of_table(table)),
        Block::Console(lines) => (!lines.is_empty()).then(|| fence(lines)),
        Block::Command(command) => Some(format!(
            "Reproduce:\n\n{}",
            fence(&[sanitize_line(command)])
        )),
        Block::Details(Details {
            pages_only: true, ..
        }) => None,
        Block::Details(Details {
            summary, blocks, ..
        }) => Some(format!(
            "<details>\n<summary>{}</summary>\n\n{}\n</details>",
            escaped(summary),
            markdown_of(blocks)
        )),
        Block::Plot(_) | Block::Drawing(_) => None,
    };
    blocks
        .iter()
        .filter_map(block)
        .collect::<Vec<_>>()
        .join("\n\n")
        + "\n"
}

fn of_table(
    Table {
        columns,
        rows,
        notes,
        ..
    }: &Table,
) -> String {
    let shown: Vec<&Column> = columns
        .iter()
        .filter(|column| column.kind != ColumnKind::Drawing)
        .collect();
    let rules = shown.iter().map(|column| match column.kind {
        ColumnKind::Number => "---:".to_owned(),
        _ => "---".to_owned(),
    });
    let mut lines = vec![
        table_line(shown.iter().map(|column| escaped(&column.title()))),
        table_line(rules),
    ];
    for row in rows {
        let cells = columns
            .iter()
            .zip(&row.cells)
            .filter(|(column, _)| column.kind != ColumnKind::Drawing);
        lines.push(table_line(
            cells.map(|(column, content)| cell(column, content, row.weight)),
        ));
    }
    for (place, note) in notes.iter().enumerate() {
        lines.push(format!(
            "{}- {}",
            if place == 0 { "\n" } else { "" },
            escaped(note)
        ));
    }
    lines.join("\n")
}

fn table_line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items = items.map(|item| format!("- {item}"));
    items.collect::<Vec<_>>().join("\n")
}

fn cell(column: &Column, TableCell { text, change, .. }: &TableCell, weight: Weight) -> String {
    let text = match column.kind {
        ColumnKind::Name if weight != Weight::Faint && !text.is_empty() => code(text.trim_end()),
        _ => escaped(text),
    };
    match change {
        Some(change) if change.starred => format!("{text} (**{}%**)", change.percent),
        Some(change) => format!("{text} ({}%)", change.percent),
        None => text,
    }
}

/// Escapes text so that markdown shows it unchanged.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize_line(text).chars() {
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

/// Formats code, so that no part of it is markup; a bar would end a table's cell even there.
fn code(text: &str) -> String {
    format!(
        "`{}`",
        sanitize_line(text).replace('`', "'").replace('|', "\\|")
    )
}

/// Returns lines in a fence that is longer than any run of backticks in them.
fn fence(lines: &[String]) -> String {
    let longest = lines
        .iter()
        .flat_map(|line| line.split(|c| c != '`'))
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{escaped, fence};

    const HOSTILE: &str = "<script>alert('x')</script>|`\x1b[31m*_&amp;";

    #[test]
    fn hostile_words_are_escaped_in_markdown() {
        assert_eq!(
            escaped(HOSTILE),
            "&lt;script&gt;alert('x')&lt;/script&gt;\\|\\`\u{fffd}\\[31m\\*\\_&amp;amp;"
        );
        assert_eq!(escaped("a\n# b"), "a \\# b");
    }

    #[test]
    fn a_fence_cannot_be_closed_from_within() {
        assert_eq!(fence(&["```".to_owned()]), "````text\n```\n````");
        assert_eq!(fence(&["x".to_owned()]), "```text\nx\n```");
    }
}

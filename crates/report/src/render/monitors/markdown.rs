//! What monitors saw as markdown, for issue trackers.

use super::super::style::Style;
use super::grid::{Cell, Grid, grids};
use crate::monitors::{Monitored, title};
use crate::plain::plain;

/// Renders what monitors saw as markdown, in a style.
#[must_use]
pub fn markdown(monitored: &Monitored, style: Style) -> String {
    let mut lines = Vec::new();
    for Grid { title: about, rows, notes, .. } in grids(monitored, style) {
        let heads: Vec<String> = monitored.heads.iter().map(|head| code(&title(head))).collect();
        lines.push(format!("## {}\n", plain(&about).replace('|', "\\|")));
        lines.push(format!("| | {} |", heads.join(" | ")));
        lines.push(format!("|---|{}", "---:|".repeat(heads.len())));
        for row in rows {
            let cells: Vec<String> = row.cells.iter().map(cell).collect();
            lines.push(format!("| {} | {} |", code(row.label.trim_end()), cells.join(" | ")));
        }
        lines.push(String::new());
        lines.extend(notes.iter().map(|note| format!("{}\n", note_of(note))));
    }
    lines.join("\n")
}

fn cell(Cell { value, change }: &Cell) -> String {
    match change {
        Some(change) if change.starred => format!("{value} (**{}%**)", change.percent),
        Some(change) => format!("{value} ({}%)", change.percent),
        None => value.clone(),
    }
}

/// Notes name kernels and counters, with underscores in them.
fn note_of(note: &str) -> String {
    plain(note).chars().flat_map(|c| if "_*`|<>[]\\".contains(c) { vec!['\\', c] } else { vec![c] }).collect()
}

/// Code, so that nothing in it is markup; a bar would end a table's cell even there.
fn code(text: &str) -> String {
    format!("`{}`", plain(text).replace('`', "'").replace('|', "\\|"))
}

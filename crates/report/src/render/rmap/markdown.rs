//! The experiment as markdown, for issue trackers.

use super::tables::{CaseTables, LEGEND, Row, cases};
use crate::plain::plain;
use crate::render::number::seed_list;
use crate::rmap::Rmap;

/// Renders the experiment as markdown.
#[must_use]
pub fn markdown(rmap: &Rmap) -> String {
    let kernels: Vec<String> = rmap.kernels.iter().map(|kernel| code(kernel)).collect();
    let mut lines = vec![format!("# Reverse mappings: {}\n", kernels.join(" against "))];
    lines.push(format!("{}; {}\n", escaped(&rmap.machine), seed_list(&[rmap.seed])));
    for CaseTables { case, about, tables, space, notes } in cases(rmap) {
        lines.push(format!("## {case}\n\n{about}\n", about = escaped(about)));
        for table in tables {
            lines.push(format!("| {} | | {} |", table.title, table.heads.join(" | ")));
            lines.push(format!("|---|---|{}", "---:|".repeat(table.heads.len())));
            for Row { processes, name, cells, is_change } in &table.rows {
                let name = if *is_change { "better by".to_owned() } else { code(name) };
                lines.push(format!("| {processes} | {name} | {} |", cells.join(" | ")));
            }
            lines.push(String::new());
            lines.extend(table.laws.iter().map(|law| format!("- {}", code(law))));
            lines.push(String::new());
        }
        if let Some(space) = space {
            lines.push(format!("| {} | {} |", space.title, kernels.join(" | ")));
            lines.push(format!("|---|{}", "---:|".repeat(kernels.len())));
            lines.extend(space.rows.iter().map(|(name, cells)| format!("| {} | {} |", code(name), cells.join(" | "))));
            lines.push(String::new());
        }
        lines.extend(notes.iter().map(|note| format!("- {}", escaped(note))));
        lines.push(String::new());
    }
    lines.push(format!("{LEGEND}\n\n{}\n", code(&rmap.command)));
    lines.join("\n")
}

fn escaped(text: &str) -> String {
    plain(text).chars().flat_map(|c| if "_*`|<>[]\\".contains(c) { vec!['\\', c] } else { vec![c] }).collect()
}

/// Code, so that nothing in it is markup; a bar would end a table's cell even there.
fn code(text: &str) -> String {
    format!("`{}`", plain(text).replace('`', "'").replace('|', "\\|"))
}

//! Ledgers as markdown, for issue trackers.

use super::{LEGEND, Profiled, calls, rows, signed, suggestions, totals};
use crate::plain::plain;

/// Renders the profiles of two kernels.
#[must_use]
pub fn markdown(profiled: &Profiled) -> String {
    let mut lines = vec![format!("# Profile: {} against {}", code(&profiled.new.0), code(&profiled.base.0))];
    for ledger in &profiled.ledgers {
        let head = ["", "| function | base | new | added | ratio | calls/op | |", "|---|---:|---:|---:|---:|---:|---|"];
        lines.push(format!("\n## {}\n\n{}", plain(&ledger.workload), plain(&ledger.sentence())));
        lines.extend(head.map(str::to_owned));
        let (rows, others) = rows(ledger, profiled.lines_max);
        for row in rows.iter().chain(&others).chain(&totals(ledger)) {
            lines.push(format!(
                "| {} | {:.2} | {:.2} | {} | {} | {} | {} |",
                code(&row.name),
                row.base,
                row.new,
                signed(row.added),
                row.ratio,
                calls(row),
                row.note
            ));
        }
        let pairs = suggestions(ledger, 8);
        if !pairs.is_empty() {
            lines.push("\nPerhaps the same under another name, or inlined (nothing is merged):\n".to_owned());
            lines.extend(pairs.iter().map(|pair| format!("- {}", code(pair))));
        }
    }
    if !profiled.missing.is_empty() {
        lines.push("\nWithout a profile:\n".to_owned());
        lines.extend(profiled.missing.iter().map(|(workload, why)| format!("- {}: {}", code(workload), code(why))));
    }
    lines.push(format!("\n{LEGEND}\n"));
    let seeds = crate::render::number::seed_list(&profiled.seeds);
    lines.push(format!("{}; {seeds}; `{}`", plain(&profiled.machine), plain(&profiled.command)));
    lines.join("\n") + "\n"
}

/// Code, so that nothing in it is markup; a bar would end a table's cell even there.
fn code(text: &str) -> String {
    format!("`{}`", plain(text).replace('`', "'").replace('|', "\\|"))
}

//! Ledgers as markdown, for issue trackers.

use super::modelled::{self, ModelCells};
use super::{EXPANDED, LEGEND, Profiled, TableRow, calls, entries, folders, rows, shifts, signed, suggestions, totals};
use crate::calls::CallDifference;
use crate::modelled::ModelDifference;
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
        if let Some(expanded) = profiled.expanded_of(ledger) {
            let (rows, others) = super::rows(expanded, profiled.lines_max);
            lines.push(format!("\n{EXPANDED}:"));
            lines.extend(roll_up("function, inlined or not", &rows.into_iter().chain(others).collect::<Vec<_>>()));
        }
        lines.extend(roll_up("by source folder", &folders(ledger, &profiled.sources)));
        lines.extend(profiled.calls_of(&ledger.workload).into_iter().flat_map(of_calls));
        lines.extend(profiled.modelled_of(&ledger.workload).into_iter().flat_map(of_model));
    }
    for (what, workloads) in profiled.lacking() {
        lines.push(format!("\n{what}:\n"));
        lines.extend(workloads.iter().map(|(workload, why)| format!("- {}: {}", code(workload), code(why))));
    }
    lines.push(format!("\n{LEGEND}\n"));
    lines.extend(profiled.model.iter().map(|model| format!("{}\n\nThe model: {model}\n", modelled::NOTE)));
    let seeds = crate::render::number::seed_list(&profiled.seeds);
    lines.push(format!("{}; {seeds}; `{}`", plain(&profiled.machine), plain(&profiled.command)));
    lines.join("\n") + "\n"
}

/// What the call tree says: entry points, and work that moved.
fn of_calls(calls: &CallDifference) -> Vec<String> {
    let mut lines = roll_up("by entry point", &entries(calls));
    let shifts = shifts(calls);
    if !shifts.is_empty() {
        lines.push("\nCost shifts, from one call to another below the same function:\n".to_owned());
        lines.extend(shifts.iter().map(|shift| format!("- {}", code(shift))));
    }
    lines
}

/// What the model says.
fn of_model(difference: &ModelDifference) -> Vec<String> {
    let table = |head: &str, rows: Vec<ModelCells>| {
        let row = |ModelCells { name, base, new, ratio, finding }: ModelCells| {
            format!("| {} | {base} | {new} | {ratio} | {finding} |", code(&name))
        };
        let head = [format!("| {head} | base | new | ratio | over seeds |"), "|---|---:|---:|---:|---|".to_owned()];
        head.into_iter().chain(rows.into_iter().map(row)).collect::<Vec<_>>()
    };
    let mut lines = vec![format!("\n{}\n", modelled::HEAD)];
    lines.extend(table("", modelled::figures(difference)));
    let functions = modelled::functions(difference);
    if !functions.is_empty() {
        lines.push(String::new());
        lines.extend(table(modelled::BY_FUNCTION, functions));
    }
    lines
}

/// A smaller table, of what functions belong to.
fn roll_up(what: &str, rows: &[TableRow]) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let head =
        [String::new(), format!("| {what} | base | new | added | ratio |"), "|---|---:|---:|---:|---:|".to_owned()];
    let row = |row: &TableRow| {
        let (base, new) = (row.base, row.new);
        format!("| {} | {base:.2} | {new:.2} | {} | {} |", code(&row.name), signed(row.added), row.ratio)
    };
    head.into_iter().chain(rows.iter().map(row)).collect()
}

/// Code, so that nothing in it is markup; a bar would end a table's cell even there.
fn code(text: &str) -> String {
    format!("`{}`", plain(text).replace('`', "'").replace('|', "\\|"))
}

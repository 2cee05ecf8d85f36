//! Ledgers as text: 80 columns, for terminals and mails.

use std::fmt::Write as _;

use super::modelled::{self, ModelCells};
use super::{EXPANDED, LEGEND, Profiled, TableRow, calls, entries, folders, rows, shifts, signed, suggestions, totals};
use crate::calls::CallDifference;
use crate::ledger::Ledger;
use crate::plain::plain;
use crate::render::Styles;
use crate::render::layout::Page;

/// Columns of a function's name.
const NAME: usize = 30;

/// Renders the profiles of two kernels.
#[must_use]
pub fn text(profiled: &Profiled, styles: &Styles) -> String {
    let mut page = Page::default();
    page.words(0, &format!("Profile: {} against {}", profiled.new.0, profiled.base.0));
    for ledger in &profiled.ledgers {
        page.blank();
        one(&mut page, ledger, profiled, styles);
    }
    for (what, workloads) in profiled.lacking() {
        page.blank();
        page.line(format!("{what}:"));
        for (workload, why) in workloads {
            page.hanging("  ", &format!("{workload}: {why}"));
        }
    }
    page.blank();
    page.words(0, LEGEND);
    if profiled.model.is_some() {
        page.words(0, modelled::NOTE);
    }
    page.blank();
    for (title, origin) in [&profiled.base, &profiled.new] {
        page.hanging("Kernel:    ", &format!("{title}, {origin}"));
    }
    page.hanging("Machine:   ", &profiled.machine);
    if let Some(model) = &profiled.model {
        page.hanging("Model:     ", &model.to_string());
    }
    page.hanging("Seeds:     ", &crate::render::number::seed_list(&profiled.seeds));
    page.hanging("Reproduce: ", &profiled.command);
    page.finish()
}

/// Renders one ledger for a report on something else, in 80 columns: its sentence, the functions and what they add up to.
#[must_use]
pub fn brief(ledger: &Ledger, lines_max: usize) -> String {
    let mut page = Page::default();
    page.words(0, &ledger.sentence());
    if !ledger.is_unchanged() {
        page.blank();
        summed_up(&mut page, ledger, lines_max, &Styles::plain());
    }
    page.finish()
}

fn one(page: &mut Page, ledger: &Ledger, profiled: &Profiled, styles: &Styles) {
    for line in crate::render::layout::wrap(&ledger.sentence(), 80) {
        page.line(styles.strong(&line));
    }
    if ledger.is_unchanged() {
        model_says(page, profiled, &ledger.workload, styles);
        return;
    }
    page.blank();
    summed_up(page, ledger, profiled.lines_max, styles);
    let pairs = suggestions(ledger, 8);
    if !pairs.is_empty() {
        page.blank();
        page.words(0, "Perhaps the same under another name, or inlined (suggested, never merged):");
        pairs.iter().for_each(|pair| page.hanging("  ", pair));
    }
    if let Some(expanded) = profiled.expanded_of(ledger) {
        page.blank();
        page.words(0, &format!("{EXPANDED}:"));
        functions(page, expanded, (profiled.lines_max, "function, inlined or not"), styles);
    }
    roll_up(page, "by source folder", &folders(ledger, &profiled.sources), styles);
    if let Some(calls) = profiled.calls_of(&ledger.workload) {
        roll_up(page, "by entry point", &entries(calls), styles);
        cost_shifts(page, calls);
    }
    model_says(page, profiled, &ledger.workload, styles);
}

/// The functions, and all of them together.
fn summed_up(page: &mut Page, ledger: &Ledger, lines_max: usize, styles: &Styles) {
    functions(page, ledger, (lines_max, "function"), styles);
    page.line(styles.faint(&"-".repeat(80)));
    for row in totals(ledger) {
        page.line(line(&row));
    }
}

/// What the model says, where there is one.
fn model_says(page: &mut Page, profiled: &Profiled, workload: &str, styles: &Styles) {
    let Some(difference) = profiled.modelled_of(workload) else { return };
    page.blank();
    page.words(0, modelled::HEAD);
    let row = |ModelCells { name, base, new, ratio, finding }: &ModelCells| {
        format!("{:NAME$} {base:>10} {new:>10} {ratio:>6}  {finding}", shortened(&plain(name))).trim_end().to_owned()
    };
    let table = |page: &mut Page, head: &str, rows: &[ModelCells]| {
        let head = format!("{head:NAME$} {:>10} {:>10} {:>6}  {}", "base", "new", "ratio", "over seeds");
        page.line(styles.faint(&head));
        rows.iter().for_each(|cells| page.line(row(cells)));
    };
    table(page, "", &modelled::figures(difference));
    let functions = modelled::functions(difference);
    if !functions.is_empty() {
        page.blank();
        table(page, modelled::BY_FUNCTION, &functions);
    }
}

/// The table of functions.
fn functions(page: &mut Page, ledger: &Ledger, (max, head): (usize, &str), styles: &Styles) {
    let (rows, others) = rows(ledger, max);
    let head = format!("{head:NAME$} {:>10} {:>10} {:>10} {:>6} {:>9}", "base", "new", "added", "ratio", "calls");
    page.line(styles.faint(head.trim_end()));
    for row in rows.iter().chain(&others) {
        page.line(line(row));
    }
}

/// A smaller table, of what functions belong to.
fn roll_up(page: &mut Page, what: &str, rows: &[TableRow], styles: &Styles) {
    if rows.is_empty() {
        return;
    }
    page.blank();
    let head = format!("{what:NAME$} {:>10} {:>10} {:>10} {:>6}", "base", "new", "added", "ratio");
    page.line(styles.faint(&head));
    rows.iter().for_each(|row| page.line(line(row)));
}

fn cost_shifts(page: &mut Page, calls: &CallDifference) {
    let shifts = shifts(calls);
    if !shifts.is_empty() {
        page.blank();
        page.words(0, "Cost shifts, from one call to another below the same function:");
        shifts.iter().for_each(|shift| page.hanging("  ", shift));
    }
}

fn line(row: &TableRow) -> String {
    let name = shortened(&plain(&row.name));
    let calls = calls(row);
    let ratio = if row.ratio.is_empty() { row.note } else { row.ratio.as_str() };
    let mut line = String::new();
    let (base, new) = (row.base, row.new);
    let added = signed(row.added);
    write!(line, "{name:NAME$} {base:>10.2} {new:>10.2} {added:>10} {ratio:>6} {calls:>9}").unwrap_or_default();
    line.trim_end().to_owned()
}

/// Returns a name that fits its column. The end of a name tells functions apart as well as the beginning.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        return name.to_owned();
    }
    let begin: String = name.chars().take(NAME / 2).collect();
    let end: String = name.chars().skip(length - (NAME - NAME / 2 - 1)).collect();
    format!("{begin}…{end}")
}

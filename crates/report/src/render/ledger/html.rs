//! Ledgers as one HTML page: a butterfly chart of the lines that changed most, a flame graph, the table, what may be one
//! under two names. One small script enlarges a part of a flame graph; without it the page says the same. No network.

use askama::Template;

use super::flame::{Flame, flame};
use super::modelled::{self, ModelCells};
use super::{LEGEND, Profiled, TableRow, calls, entries, folders, rows, shifts, signed, suggestions, totals};
use crate::ledger::Ledger;
use crate::render::RenderError;

/// Lines of a chart.
const BARS: usize = 20;
/// Half of the chart's width for bars, and the height of a line, in pixels.
const HALF: f64 = 230.0;
const LINE: usize = 22;

#[derive(Template)]
#[template(path = "profile.html")]
struct PageOfProfiles<'a> {
    title: String,
    base: &'a (String, String),
    new: &'a (String, String),
    machine: &'a str,
    seeds: String,
    command: &'a str,
    legend: &'static str,
    sections: Vec<Section>,
    model: Option<String>,
    lacking: Vec<(&'static str, &'a [(String, String)])>,
    model_head: &'static str,
    model_note: &'static str,
    by_function: &'static str,
}

struct Section {
    workload: String,
    sentence: String,
    height: usize,
    bars: Vec<Bar>,
    rows: Vec<Cells>,
    totals: Vec<Cells>,
    pairs: Vec<String>,
    roll_ups: Vec<(&'static str, Vec<Cells>)>,
    shifts: Vec<String>,
    flame: Option<Flame>,
    /// What the model says, and the functions that it finds.
    figures: Vec<ModelCells>,
    model_functions: Vec<ModelCells>,
}

/// One line of the chart: how much the base and the new kernel execute, side by side from the middle.
struct Bar {
    name: String,
    y: usize,
    middle: usize,
    /// Where the base's bar begins, and how wide both are.
    base_x: String,
    base_width: String,
    new_width: String,
    added: String,
    more: bool,
}

struct Cells {
    name: String,
    base: String,
    new: String,
    added: String,
    ratio: String,
    calls: String,
    note: &'static str,
}

/// Renders the profiles of two kernels as a self-contained HTML page.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn html(profiled: &Profiled) -> Result<String, RenderError> {
    let page = PageOfProfiles {
        title: format!("Profile: {} against {}", profiled.new.0, profiled.base.0),
        base: &profiled.base,
        new: &profiled.new,
        machine: &profiled.machine,
        seeds: crate::render::number::seed_list(&profiled.seeds),
        command: &profiled.command,
        legend: LEGEND,
        sections: profiled.ledgers.iter().map(|ledger| section(ledger, profiled)).collect(),
        model: profiled.model.as_ref().map(ToString::to_string),
        lacking: profiled.lacking().collect(),
        model_head: modelled::HEAD,
        model_note: modelled::NOTE,
        by_function: modelled::BY_FUNCTION,
    };
    Ok(page.render()?)
}

fn section(ledger: &Ledger, profiled: &Profiled) -> Section {
    let (shown, others) = rows(ledger, profiled.lines_max);
    let calls_of = profiled.calls_of(&ledger.workload);
    let of_model = profiled.modelled_of(&ledger.workload);
    let roll_up = |rows: Vec<TableRow>| rows.iter().map(cells).collect();
    let expanded = profiled.expanded_of(ledger).map(|expanded| {
        let (shown, others) = super::rows(expanded, profiled.lines_max);
        shown.into_iter().chain(others).collect()
    });
    let roll_ups: [(&str, Vec<Cells>); 3] = [
        ("with inlined functions apart", roll_up(expanded.unwrap_or_default())),
        ("by source folder", roll_up(folders(ledger, &profiled.sources))),
        ("by entry point", roll_up(calls_of.map(entries).unwrap_or_default())),
    ];
    let widest = shown.iter().take(BARS).flat_map(|row| [row.base, row.new]).fold(0.0, f64::max).max(1e-9);
    let bars: Vec<Bar> = shown.iter().take(BARS).enumerate().map(|(place, row)| bar(row, place, widest)).collect();
    Section {
        workload: ledger.workload.clone(),
        sentence: ledger.sentence(),
        height: bars.len() * LINE + 4,
        bars,
        rows: shown.iter().chain(&others).map(cells).collect(),
        totals: totals(ledger).iter().map(cells).collect(),
        pairs: suggestions(ledger, 20),
        roll_ups: roll_ups.into_iter().filter(|(_, rows)| !rows.is_empty()).collect(),
        shifts: calls_of.map(shifts).unwrap_or_default(),
        flame: calls_of.filter(|_| !ledger.is_unchanged()).map(flame),
        figures: of_model.map(modelled::figures).unwrap_or_default(),
        model_functions: of_model.map(modelled::functions).unwrap_or_default(),
    }
}

fn bar(row: &TableRow, place: usize, widest: f64) -> Bar {
    let width = |value: f64| HALF * value / widest;
    Bar {
        name: row.name.clone(),
        y: place * LINE + 4,
        middle: place * LINE + 16,
        base_x: format!("{:.1}", HALF - width(row.base)),
        base_width: format!("{:.1}", width(row.base)),
        new_width: format!("{:.1}", width(row.new)),
        added: format!("{:+.1}", row.added),
        more: row.added > 0.0,
    }
}

fn cells(row: &TableRow) -> Cells {
    Cells {
        name: row.name.clone(),
        base: format!("{:.2}", row.base),
        new: format!("{:.2}", row.new),
        added: signed(row.added),
        ratio: row.ratio.clone(),
        calls: calls(row).replace('>', " \u{2192} "),
        note: row.note,
    }
}

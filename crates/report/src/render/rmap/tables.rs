//! The experiment's tables as texts; what comes from outside is made plain here.

use std::collections::BTreeSet;

use model::{Direction, RmapCase, RmapCell, RmapMeasured, RmapOperation, RmapOutcome, RmapSlab, RmapSpace};
use stats::PowerLaw;

use crate::monitors::difference_percent;
use crate::plain::plain;
use crate::render::number;
use crate::rmap::{Laws, Rmap, Value, is_poor};

/// What a number is written with.
const WIDTH: usize = 8;
/// Caches that have a row of their own; the others are one row.
const CACHES: [&str; 5] = ["vm_area_struct", "vma_lock", "anon_vma", "anon_vma_chain", "maple_node"];

/// What is said under all tables.
pub(super) const LEGEND: &str = "Costs are guest nanoseconds, which are instructions on this machine: those of all \
    processes together, divided by the page-table entries in use (n times m), or by pages of the object where an operation \
    takes these. Percent of the base, positive is better. A law is a least-squares fit of the logarithms; R² is the part of \
    their variance that it explains.";

/// A case.
pub(super) struct CaseTables {
    pub(super) case: RmapCase,
    pub(super) about: &'static str,
    pub(super) tables: Vec<Table>,
    pub(super) space: Option<Space>,
    pub(super) notes: Vec<String>,
}

/// An operation over the grid.
pub(super) struct Table {
    /// What it is, and of what its cost is.
    pub(super) title: String,
    /// Numbers of mappings.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Row>,
    /// A law for each kernel that has one.
    pub(super) laws: Vec<String>,
}

/// A kernel's costs with so many processes.
pub(super) struct Row {
    /// `n=10`; empty where the row before has said so.
    pub(super) processes: String,
    /// The kernel, or what is compared with the base.
    pub(super) name: String,
    pub(super) cells: Vec<String>,
    /// Whether these are percent of the base.
    pub(super) is_change: bool,
}

/// What mappings take, kernel beside kernel.
pub(super) struct Space {
    pub(super) title: String,
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// Returns the tables of all cases.
pub(super) fn cases(rmap: &Rmap) -> Vec<CaseTables> {
    rmap.cases.iter().map(|case| case_tables(rmap, *case)).collect()
}

fn case_tables(rmap: &Rmap, case: RmapCase) -> CaseTables {
    let operations = RmapOperation::ALL.into_iter().filter(|operation| operation.is_of(case));
    CaseTables {
        case,
        about: case.about(),
        tables: operations.filter_map(|operation| table(rmap, case, operation)).collect(),
        space: space(rmap, case),
        notes: notes(rmap, case),
    }
}

/// Returns the table of an operation; nothing where no cell of any kernel has a cost.
fn table(rmap: &Rmap, case: RmapCase, operation: RmapOperation) -> Option<Table> {
    let mut rows = Vec::new();
    for processes in &rmap.processes {
        let cells = |kernel: usize| -> Vec<Value<'_>> {
            let cell = |mappings: &u32| RmapCell { case, processes: *processes, mappings: *mappings };
            rmap.mappings.iter().map(|mappings| rmap.value(kernel, cell(mappings), operation)).collect()
        };
        let base = cells(0);
        for (kernel, name) in rmap.kernels.iter().enumerate() {
            let values = if kernel == 0 { base.clone() } else { cells(kernel) };
            let label = if kernel == 0 { format!("n={processes}") } else { String::new() };
            let texts = values.iter().map(|value| written(*value)).collect();
            rows.push(Row { processes: label, name: plain(name), cells: texts, is_change: false });
            if kernel > 0 {
                let change = |(base, new): (&Value<'_>, &Value<'_>)| {
                    let percent = difference_percent(Direction::LowerIsBetter, base.cost()?, new.cost()?);
                    Some(number::signed_percent(percent?))
                };
                let cells = base.iter().zip(&values).map(|pair| change(pair).unwrap_or_default()).collect();
                rows.push(Row { processes: String::new(), name: String::new(), cells, is_change: true });
            }
        }
    }
    let has_cost = rmap
        .cells(case)
        .any(|cell| (0..rmap.kernels.len()).any(|kernel| rmap.value(kernel, cell, operation).cost().is_some()));
    let law = |(kernel, name): (usize, &String)| {
        rmap.laws(kernel, case, operation).map(|laws| format!("{}: {}", plain(name), law(&laws)))
    };
    has_cost.then(|| Table {
        title: format!("{operation}, ns per {}", operation.per()),
        heads: rmap.mappings.iter().map(|mappings| format!("m={mappings}")).collect(),
        rows,
        laws: rmap.kernels.iter().enumerate().filter_map(law).collect(),
    })
}

fn written(value: Value<'_>) -> String {
    match value {
        // Digits behind the point of thousands are no news.
        Value::Cost(cost) if cost >= 1000.0 => format!("{cost:.0}"),
        Value::Cost(cost) => number::value(cost, WIDTH),
        Value::NoRoom => "no room".to_owned(),
        Value::Unsupported(_) => "-".to_owned(),
        Value::Failed(_) => "failed".to_owned(),
        Value::Missing => String::new(),
    }
}

/// Returns a law in words: `n^0.98 m^-0.02, R² 0.999`.
fn law(Laws { all, large }: &Laws) -> String {
    let off = if is_poor(all) { format!("; poor: a cell is {:.2} times off", all.worst_ratio) } else { String::new() };
    let large = large.as_ref().map_or_else(String::new, |large| {
        let off = if is_poor(large) { format!(" ({:.2} times off)", large.worst_ratio) } else { String::new() };
        format!("; without the fewest: {}{off}", powers(large))
    });
    format!("{}{off}{large}", powers(all))
}

fn powers(law: &PowerLaw) -> String {
    // No minus before a zero.
    let power = |exponent: f64| if exponent.abs() < 0.005 { 0.0 } else { exponent };
    let names = ["n", "m"].into_iter().zip(law.exponents);
    let powers: Vec<String> =
        names.filter_map(|(name, exponent)| Some(format!("{name}^{:.2}", power(exponent?)))).collect();
    format!("{}, R² {:.3}", powers.join(" "), law.r_squared)
}

fn space(rmap: &Rmap, case: RmapCase) -> Option<Space> {
    let (cell, spaces) = rmap.space(case)?;
    let mut rows = Vec::new();
    let mut row = |name: String, of: &dyn Fn(&RmapSpace) -> Option<String>| {
        let cells: Vec<Option<String>> = spaces.iter().map(|space| of(space)).collect();
        if cells.iter().any(Option::is_some) {
            rows.push((name, cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect()));
        }
    };
    for name in CACHES {
        let slab =
            |space: &RmapSpace| -> Option<RmapSlab> { space.slabs.iter().find(|slab| slab.name == name).cloned() };
        row(name.to_owned(), &|space| slab(space).map(|slab| slab.objects.to_string()));
        row(format!("{name}, KiB"), &|space| slab(space).map(|slab| kib(slab.bytes())));
    }
    row("other slab caches, KiB".to_owned(), &|space| Some(kib(others(space))));
    row("page tables".to_owned(), &|space| Some((space.tables_kib / 4).to_string()));
    row("page tables, KiB".to_owned(), &|space| Some(space.tables_kib.to_string()));
    row("page-table entries in use".to_owned(), &|space| Some(space.entries.to_string()));
    row("entries per page table".to_owned(), &|space| Some(number::value(space.entries_per_table()?, WIDTH)));
    row("utilisation of page tables".to_owned(), &|space| {
        Some(format!("{}%", number::value(space.utilisation_percent()?, WIDTH)))
    });
    let all = f64::from(cell.processes) * f64::from(cell.mappings);
    row("bytes per mapping, all in all".to_owned(), &|space| {
        let slabs: i64 = space.slabs.iter().map(RmapSlab::bytes).sum();
        Some(number::value((slabs as f64 + space.tables_kib as f64 * 1024.0) / all, WIDTH))
    });
    Some(Space { title: format!("Space of {} x {} mappings", cell.processes, cell.mappings), rows })
}

/// Returns the bytes of the caches that have no row.
fn others(space: &RmapSpace) -> i64 {
    space.slabs.iter().filter(|slab| !CACHES.contains(&slab.name.as_str())).map(RmapSlab::bytes).sum()
}

fn kib(bytes: i64) -> String {
    (bytes / 1024).to_string()
}

/// Returns why there are cells without numbers, each reason once.
fn notes(rmap: &Rmap, case: RmapCase) -> Vec<String> {
    let mut notes = Vec::new();
    let mut said = BTreeSet::new();
    let mut note = |text: String| {
        if said.insert(text.clone()) {
            notes.push(text);
        }
    };
    for cell in rmap.cells(case) {
        let size = format!("{} x {}", cell.processes, cell.mappings);
        for (kernel, name) in rmap.kernels.iter().enumerate() {
            match rmap.outcomes.get(&(kernel, cell)) {
                Some(RmapOutcome::DoesNotFit { needed_kib, available_kib }) => note(format!(
                    "no room: {size} would take about {} MiB on {}, and the guest has {}",
                    needed_kib / 1024,
                    plain(name),
                    available_kib / 1024
                )),
                Some(RmapOutcome::Failed(how)) => note(format!("failed: {size} on {}: {}", plain(name), plain(how))),
                Some(RmapOutcome::Unsupported(why)) => note(format!("-: on {}: {}", plain(name), plain(why))),
                Some(RmapOutcome::Measured(measured)) => {
                    unsupported(measured).for_each(|(operation, why)| {
                        note(format!("{operation}: on {}: {}", plain(name), plain(why)));
                    });
                }
                None => {}
            }
        }
    }
    notes
}

fn unsupported(measured: &RmapMeasured) -> impl Iterator<Item = (RmapOperation, &String)> {
    measured.costs.iter().filter_map(|(operation, cost)| Some((*operation, cost.as_ref().err()?)))
}

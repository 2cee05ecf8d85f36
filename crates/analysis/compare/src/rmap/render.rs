//! The experiment on reverse mappings as a document.

use std::collections::BTreeSet;

use crate::rmap::PowerLaw;
use model::{
    Direction, RmapCase, RmapCell, RmapMeasured, RmapOperation, RmapOutcome, RmapSlab, RmapSpace,
};

use crate::rmap::{CellCost, Laws, Rmap, is_poor};
use document::{
    Block, Chart, Column, ColumnKind, Curve, Document, Plot, Scale, Table, TableRow, Weight, Width,
    number,
};
use model::sanitize_line;
use monitors::difference_percent;

/// Digits of a number.
const WIDTH: usize = 8;
/// Most caches with a separate row; one row sums up the others.
const CACHES: [&str; 5] = [
    "vm_area_struct",
    "vma_lock",
    "anon_vma",
    "anon_vma_chain",
    "maple_node",
];

/// The note under all tables.
const LEGEND: &str = "Costs are guest nanoseconds, which are instructions on this machine: those of all \
    processes together, divided by the page-table entries in use (n times m), or by pages of the object where an operation \
    takes these. Percent of the base, positive is better. A law is a least-squares fit of the logarithms; R² is the part of \
    their variance that it explains.";

/// Returns the document of the experiment.
#[must_use]
pub fn document(rmap: &Rmap) -> Document {
    let mut blocks = vec![Block::Paragraph(format!(
        "{}; {}",
        rmap.machine,
        number::seed_list(&[rmap.seed])
    ))];
    for case in &rmap.cases {
        let operations = RmapOperation::ALL
            .into_iter()
            .filter(|operation| operation.is_of(*case));
        blocks.push(Block::Heading(case.to_string()));
        blocks.push(Block::Paragraph(case.about().to_owned()));
        let charts = operations
            .clone()
            .filter_map(|operation| chart(rmap, *case, operation))
            .collect();
        blocks.push(Block::Plot(Plot {
            key: rmap.kernels.clone(),
            charts,
        }));
        blocks.extend(
            operations
                .filter_map(|operation| table(rmap, *case, operation))
                .map(Block::Table),
        );
        blocks.extend(space(rmap, *case).map(Block::Table));
        let notes = notes(rmap, *case);
        blocks.extend((!notes.is_empty()).then_some(Block::List(notes)));
    }
    blocks.push(Block::Note(LEGEND.to_owned()));
    blocks.push(Block::Command(rmap.command.clone()));
    Document {
        title: format!("Reverse mappings: {}", rmap.kernels.join(" against ")),
        blocks,
        ..Document::default()
    }
}

/// Draws costs per entry over mappings, and costs per page over processes.
fn chart(rmap: &Rmap, case: RmapCase, operation: RmapOperation) -> Option<Chart> {
    let over_mappings = operation.per() == "entry";
    let (along, others, [axis, word]) = match over_mappings {
        true => (&rmap.mappings, &rmap.processes, ["m", "n"]),
        false => (&rmap.processes, &rmap.mappings, ["n", "m"]),
    };
    let mut curves = Vec::new();
    let mut descriptions = Vec::new();
    for (colour, kernel) in rmap.kernels.iter().enumerate() {
        for other in others {
            let mut points: Vec<(f64, f64)> = Vec::new();
            for position in along {
                let (processes, mappings) = if over_mappings {
                    (*other, *position)
                } else {
                    (*position, *other)
                };
                let cell = RmapCell {
                    case,
                    processes,
                    mappings,
                };
                let cost = rmap.value(colour, cell, operation).cost();
                if let Some(cost) = cost.filter(|cost| *cost > 0.0) {
                    points.push((f64::from(*position), cost));
                }
            }
            if let [first, .., last] = points[..] {
                descriptions.push(format!(
                    "{kernel} {word}={other} from {:.0} to {:.0}",
                    first.1, last.1
                ));
                curves.push(Curve {
                    colour,
                    name: (colour == 0).then(|| format!("{word}={other}")),
                    points,
                });
            }
        }
    }
    let title = format!("{operation}, ns per {}", operation.per());
    Chart::new(
        title,
        format!("{operation}: {}", descriptions.join(", ")),
        axis,
        Scale::Logarithmic,
        &curves,
    )
}

/// Returns the table of an operation; `None` if no cell of any kernel has a cost.
fn table(rmap: &Rmap, case: RmapCase, operation: RmapOperation) -> Option<Table> {
    let mut rows = Vec::new();
    let mut has_cost = false;
    for processes in &rmap.processes {
        let cells = |kernel: usize| -> Vec<CellCost<'_>> {
            let cell = |mappings: &u32| RmapCell {
                case,
                processes: *processes,
                mappings: *mappings,
            };
            rmap.mappings
                .iter()
                .map(|mappings| rmap.value(kernel, cell(mappings), operation))
                .collect()
        };
        let base = cells(0);
        for (kernel, name) in rmap.kernels.iter().enumerate() {
            let values = cells(kernel);
            has_cost |= values.iter().any(|value| value.cost().is_some());
            let label = if kernel == 0 {
                format!("n={processes}")
            } else {
                String::new()
            };
            let texts = values.iter().map(|value| written(*value));
            rows.push(TableRow::new(
                Weight::Normal,
                [label, name.clone()].into_iter().chain(texts),
            ));
            let mut changes: Vec<Option<String>> = Vec::new();
            for (base, new) in base.iter().zip(&values) {
                let costs = base.cost().zip(new.cost());
                let percent = costs.and_then(|(base, new)| {
                    difference_percent(Direction::LowerIsBetter, base, new)
                });
                changes.push(percent.map(number::signed_percent));
            }
            if kernel > 0 && changes.iter().any(Option::is_some) {
                let changes = changes.into_iter().map(Option::unwrap_or_default);
                rows.push(TableRow::new(
                    Weight::Faint,
                    [String::new(), "better by".to_owned()]
                        .into_iter()
                        .chain(changes),
                ));
            }
        }
    }
    let mut notes = Vec::new();
    for (kernel, name) in rmap.kernels.iter().enumerate() {
        if let Some(laws) = rmap.laws(kernel, case, operation) {
            notes.push(format!("{}: {}", sanitize_line(name), law(&laws)));
        }
    }
    let title = format!("{operation}, ns per {}", operation.per());
    let names = [
        Column::new(&title, ColumnKind::Words, Width::Fixed(7)),
        Column::new("", ColumnKind::Name, Width::Fixed(18)),
    ];
    let mappings = rmap
        .mappings
        .iter()
        .map(|m| Column::new(&format!("m={m}"), ColumnKind::Number, Width::Share(9, 11)));
    has_cost.then(|| Table {
        columns: names.into_iter().chain(mappings).collect(),
        rows,
        notes,
        ..Table::default()
    })
}

fn written(value: CellCost<'_>) -> String {
    match value {
        // Decimals of thousands are irrelevant.
        CellCost::Cost(cost) if cost >= 1000.0 => format!("{cost:.0}"),
        CellCost::Cost(cost) => number::value(cost, WIDTH),
        CellCost::NoRoom => "no room".to_owned(),
        CellCost::Unsupported(_) => "-".to_owned(),
        CellCost::Failed(_) => "failed".to_owned(),
        CellCost::Missing => String::new(),
    }
}

/// Returns a law in words: `n^0.98 m^-0.02, R² 0.999`.
fn law(Laws { all, large }: &Laws) -> String {
    let off = if is_poor(all) {
        format!("; poor: a cell is {:.2} times off", all.worst_ratio)
    } else {
        String::new()
    };
    let large = large.as_ref().map_or_else(String::new, |large| {
        let off = if is_poor(large) {
            format!(" ({:.2} times off)", large.worst_ratio)
        } else {
            String::new()
        };
        format!("; without the fewest: {}{off}", powers(large))
    });
    format!("{}{off}{large}", powers(all))
}

fn powers(law: &PowerLaw) -> String {
    let names = ["n", "m"].into_iter().zip(law.exponents);
    let powers: Vec<String> = names
        .filter_map(|(name, exponent)| {
            // No minus before zero.
            let exponent = exponent.map(|exponent| {
                if exponent.abs() < 0.005 {
                    0.0
                } else {
                    exponent
                }
            });
            Some(format!("{name}^{:.2}", exponent?))
        })
        .collect();
    format!("{}, R² {:.3}", powers.join(" "), law.r_squared)
}

fn space(rmap: &Rmap, case: RmapCase) -> Option<Table> {
    let (cell, spaces) = rmap.space(case)?;
    let mut rows = Vec::new();
    let mut row = |name: String, of: &dyn Fn(&RmapSpace) -> Option<String>| {
        let cells: Vec<Option<String>> = spaces.iter().map(|space| of(space)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells
                .into_iter()
                .map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            rows.push(TableRow::new(
                Weight::Normal,
                std::iter::once(name).chain(cells),
            ));
        }
    };
    for name in CACHES {
        let slab = |space: &RmapSpace| -> Option<RmapSlab> {
            space.slabs.iter().find(|slab| slab.name == name).cloned()
        };
        row(name.to_owned(), &|space| {
            slab(space).map(|slab| slab.objects.to_string())
        });
        row(format!("{name}, KiB"), &|space| {
            slab(space).map(|slab| kib(slab.bytes()))
        });
    }
    row("other slab caches, KiB".to_owned(), &|space| {
        Some(kib(others(space)))
    });
    row("page tables".to_owned(), &|space| {
        Some((space.tables_kib / 4).to_string())
    });
    row("page tables, KiB".to_owned(), &|space| {
        Some(space.tables_kib.to_string())
    });
    row("page-table entries in use".to_owned(), &|space| {
        Some(space.entries.to_string())
    });
    row("entries per page table".to_owned(), &|space| {
        Some(number::value(space.entries_per_table()?, WIDTH))
    });
    row("utilisation of page tables".to_owned(), &|space| {
        Some(format!(
            "{}%",
            number::value(space.utilisation_percent()?, WIDTH)
        ))
    });
    let all = f64::from(cell.processes) * f64::from(cell.mappings);
    row("bytes per mapping, all in all".to_owned(), &|space| {
        let slabs: i64 = space.slabs.iter().map(RmapSlab::bytes).sum();
        Some(number::value(
            (slabs as f64 + space.tables_kib as f64 * 1024.0) / all,
            WIDTH,
        ))
    });
    let title = format!("Space of {} x {} mappings", cell.processes, cell.mappings);
    let kernels = rmap
        .kernels
        .iter()
        .map(|kernel| Column::new(kernel, ColumnKind::Number, Width::Share(12, 20)));
    let columns = std::iter::once(Column::new(&title, ColumnKind::Name, Width::Fixed(32)))
        .chain(kernels)
        .collect();
    Some(Table {
        columns,
        rows,
        ..Table::default()
    })
}

/// Returns the bytes of the caches without a separate row.
fn others(space: &RmapSpace) -> i64 {
    space
        .slabs
        .iter()
        .filter(|slab| !CACHES.contains(&slab.name.as_str()))
        .map(RmapSlab::bytes)
        .sum()
}

fn kib(bytes: i64) -> String {
    (bytes / 1024).to_string()
}

/// Returns why cells have no numbers, each reason once.
fn notes(rmap: &Rmap, case: RmapCase) -> Vec<String> {
    let mut notes = Vec::new();
    for cell in rmap.cells(case) {
        let size = format!("{} x {}", cell.processes, cell.mappings);
        for (kernel, name) in rmap.kernels.iter().enumerate() {
            match rmap.outcomes.get(&(kernel, cell)) {
                Some(RmapOutcome::DoesNotFit {
                    needed_kib,
                    available_kib,
                }) => notes.push(format!(
                    "no room: {size} would take about {} MiB on {}, and the guest has {}",
                    needed_kib / 1024,
                    sanitize_line(name),
                    available_kib / 1024
                )),
                Some(RmapOutcome::Failed(how)) => {
                    notes.push(format!(
                        "failed: {size} on {}: {}",
                        sanitize_line(name),
                        sanitize_line(how)
                    ));
                }
                Some(RmapOutcome::Unsupported(why)) => {
                    notes.push(format!(
                        "-: on {}: {}",
                        sanitize_line(name),
                        sanitize_line(why)
                    ));
                }
                Some(RmapOutcome::Measured(measured)) => {
                    for (operation, why) in unsupported(measured) {
                        notes.push(format!(
                            "{operation}: on {}: {}",
                            sanitize_line(name),
                            sanitize_line(why)
                        ));
                    }
                }
                None => {}
            }
        }
    }
    let mut known = BTreeSet::new();
    notes.retain(|note| known.insert(note.clone()));
    notes
}

fn unsupported(measured: &RmapMeasured) -> impl Iterator<Item = (RmapOperation, &String)> {
    measured
        .costs
        .iter()
        .filter_map(|(operation, cost)| Some((*operation, cost.as_ref().err()?)))
}

//! The experiment as JSON: all cells with raw numbers, all laws, all space.

use crate::rmap::PowerLaw;
use model::{RmapCase, RmapCell, RmapCost, RmapOperation, RmapOutcome, RmapSpace};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rmap::Rmap;
use document::RenderError;

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    kind: &'static str,
    /// The base first; `kernel` is an index into it.
    kernels: &'a [String],
    machine: &'a str,
    seed: u64,
    command: &'a str,
    cells: Vec<CellDocument<'a>>,
    laws: Vec<LawDocument>,
}

#[derive(Serialize, JsonSchema)]
struct CellDocument<'a> {
    case: &'static str,
    processes: u32,
    mappings: u32,
    kernel: usize,
    outcome: &'static str,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_kib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_kib: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    costs: Vec<CostDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<SpaceDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct CostDocument<'a> {
    operation: &'static str,
    /// The unit of the cost: `entry` or `page`.
    per: &'static str,
    ns_all: Option<u64>,
    count: Option<u64>,
    ns_each: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct SpaceDocument<'a> {
    slabs: Vec<SlabDocument<'a>>,
    page_tables_kib: u64,
    entries: u64,
    entries_per_table: Option<f64>,
    utilisation_percent: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct SlabDocument<'a> {
    name: &'a str,
    objects: i64,
    object_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct LawDocument {
    case: &'static str,
    operation: &'static str,
    kernel: usize,
    /// `all`, or `large`: without the fewest processes and the fewest mappings.
    cells: &'static str,
    ns_at_one: f64,
    exponent_processes: Option<f64>,
    exponent_mappings: Option<f64>,
    r_squared: f64,
    worst_ratio: f64,
    points: usize,
}

/// Returns the document's JSON schema.
#[must_use]
pub fn schema() -> schemars::Schema {
    document::schema_of::<Document<'_>>("marvin experiment rmap")
}

/// Renders the experiment as a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn json(rmap: &Rmap) -> Result<String, RenderError> {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        kind: "rmap",
        kernels: &rmap.kernels,
        machine: &rmap.machine,
        seed: rmap.seed,
        command: &rmap.command,
        cells: cells(rmap),
        laws: laws(rmap),
    };
    document::write_json(&document)
}

fn cells(rmap: &Rmap) -> Vec<CellDocument<'_>> {
    rmap.outcomes
        .iter()
        .map(|((kernel, cell), outcome)| document(*kernel, *cell, outcome))
        .collect()
}

fn document(kernel: usize, cell: RmapCell, outcome: &RmapOutcome) -> CellDocument<'_> {
    let mut document = CellDocument {
        case: cell.case.name(),
        processes: cell.processes,
        mappings: cell.mappings,
        kernel,
        outcome: "measured",
        why: None,
        needed_kib: None,
        available_kib: None,
        costs: Vec::new(),
        space: None,
    };
    match outcome {
        RmapOutcome::Measured(measured) => {
            document.costs = measured
                .costs
                .iter()
                .map(|(operation, cost)| of_cost(*operation, cost))
                .collect();
            document.space = Some(space(&measured.space));
        }
        RmapOutcome::DoesNotFit {
            needed_kib,
            available_kib,
        } => {
            document.outcome = "does_not_fit";
            (document.needed_kib, document.available_kib) =
                (Some(*needed_kib), Some(*available_kib));
        }
        RmapOutcome::Unsupported(why) => {
            (document.outcome, document.why) = ("unsupported", Some(why.as_str()));
        }
        RmapOutcome::Failed(how) => {
            (document.outcome, document.why) = ("failed", Some(how.as_str()));
        }
    }
    document
}

fn of_cost(operation: RmapOperation, cost: &Result<RmapCost, String>) -> CostDocument<'_> {
    let known = cost.as_ref().ok();
    CostDocument {
        operation: operation.name(),
        per: operation.per(),
        ns_all: known.map(|cost| cost.ticks),
        count: known.map(|cost| cost.count),
        ns_each: known.and_then(|cost| cost.each()),
        unsupported: cost.as_ref().err().map(String::as_str),
    }
}

fn space(space: &RmapSpace) -> SpaceDocument<'_> {
    let slabs = space.slabs.iter().map(|slab| SlabDocument {
        name: &slab.name,
        objects: slab.objects,
        object_bytes: slab.object_bytes,
    });
    SpaceDocument {
        slabs: slabs.collect(),
        page_tables_kib: space.tables_kib,
        entries: space.entries,
        entries_per_table: space.entries_per_table(),
        utilisation_percent: space.utilisation_percent(),
    }
}

fn laws(rmap: &Rmap) -> Vec<LawDocument> {
    let mut documents = Vec::new();
    for case in &rmap.cases {
        for operation in RmapOperation::ALL {
            for kernel in 0..rmap.kernels.len() {
                let Some(laws) = rmap.laws(kernel, *case, operation) else {
                    continue;
                };
                documents.push(law_document(*case, operation, kernel, "all", laws.all));
                if let Some(large) = laws.large {
                    documents.push(law_document(*case, operation, kernel, "large", large));
                }
            }
        }
    }
    documents
}

fn law_document(
    case: RmapCase,
    operation: RmapOperation,
    kernel: usize,
    cells: &'static str,
    law: PowerLaw,
) -> LawDocument {
    LawDocument {
        case: case.name(),
        operation: operation.name(),
        kernel,
        cells,
        ns_at_one: law.factor,
        exponent_processes: law.exponents[0],
        exponent_mappings: law.exponents[1],
        r_squared: law.r_squared,
        worst_ratio: law.worst_ratio,
        points: law.points,
    }
}

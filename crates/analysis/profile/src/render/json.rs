//! Ledgers as JSON: every line with its raw counts, and the operations that they belong to.

use schemars::JsonSchema;
use serde::Serialize;

use super::Profiled;
use crate::calls::{CallDifference, CallNode};
use crate::ledger::{Ledger, LedgerLine, Sources, share_words};
use crate::modelled::{ModelDifference, ModelRow};
use document::RenderError;

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    kind: &'static str,
    unit: &'static str,
    base: Kernel<'a>,
    new: Kernel<'a>,
    machine: &'a str,
    seeds: &'a [u64],
    command: &'a str,
    workloads: Vec<Workload<'a>>,
    missing: Vec<Missing<'a>>,
    without_calls: Vec<Missing<'a>>,
    /// The cost model's name and parameters, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_model: Vec<Missing<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Kernel<'a> {
    title: &'a str,
    origin: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct Missing<'a> {
    workload: &'a str,
    reason: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct Workload<'a> {
    workload: &'a str,
    summary: String,
    base_operations: u64,
    new_operations: u64,
    base_instructions: u64,
    new_instructions: u64,
    added_per_operation: f64,
    /// The values of the comparison's row, and the gap to the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<OfRow>,
    lines: Vec<Line<'a>>,
    suggestions: Vec<Suggestion<'a>>,
    /// Kinds of costly instructions of kernel and user code that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    costly_instructions: Vec<CostlyKind<'a>>,
    /// The lines with inlined functions separate, if both kernels have debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_with_inlined_apart: Option<Vec<Line<'a>>>,
    /// If calls were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Calls<'a>>,
    /// Cost model results: simulated, not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    modelled: Option<OfModel<'a>>,
}

/// Executions per operation, and the function whose executions differ most.
#[derive(Serialize, JsonSchema)]
struct CostlyKind<'a> {
    kind: &'static str,
    base: f64,
    new: f64,
    function: &'a str,
    added_in_function: f64,
}

/// Per operation: kernel and user code, the median of the iterations without the first. The lines
/// are the mean of all.
#[derive(Serialize, JsonSchema)]
struct OfRow {
    base: f64,
    new: f64,
    added: f64,
    iterations: usize,
    base_iterations_differ: f64,
    new_iterations_differ: f64,
}

#[derive(Serialize, JsonSchema)]
struct OfModel<'a> {
    seeds: usize,
    per_operation: Vec<Figures<'a>>,
    estimated_cycles_by_function: Vec<Figures<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Figures<'a> {
    name: &'a str,
    /// Mean, smallest and largest over the seeds.
    base: [f64; 3],
    new: [f64; 3],
    finding: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Calls<'a> {
    entry_points: Vec<EntryPoint>,
    moved: Vec<String>,
    tree: Node<'a>,
}

#[derive(Serialize, JsonSchema)]
struct EntryPoint {
    name: String,
    base_instructions: u64,
    new_instructions: u64,
    added_per_operation: f64,
}

/// A node of the call tree: `[base, new]` each.
#[derive(Serialize, JsonSchema)]
struct Node<'a> {
    function: &'a str,
    own_instructions: [u64; 2],
    all_instructions: [u64; 2],
    calls: [u64; 2],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Node<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Line<'a> {
    share: &'static str,
    function: &'a str,
    #[serde(rename = "match")]
    matched: &'static str,
    base: Counts,
    new: Counts,
    added_per_operation: f64,
    /// base / new, as in comparisons: above 1 is better; null if one is zero.
    ratio: Option<f64>,
    /// `FILE:LINE`, from debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Counts {
    instructions: u64,
    of_these_repeated: u64,
    calls: u64,
}

#[derive(Serialize, JsonSchema)]
struct Suggestion<'a> {
    gone: &'a str,
    new: &'a str,
    net_per_operation: f64,
}

/// Returns the document's JSON schema.
#[must_use]
pub fn schema() -> schemars::Schema {
    document::schema_of::<Document<'_>>("marvin profile")
}

/// Renders the profiles of two kernels.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn json(profiled: &Profiled) -> Result<String, RenderError> {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        kind: "profile",
        unit: "instructions; added: new minus base, positive is more work",
        base: Kernel {
            title: &profiled.base.0,
            origin: &profiled.base.1,
        },
        new: Kernel {
            title: &profiled.new.0,
            origin: &profiled.new.1,
        },
        machine: &profiled.machine,
        seeds: &profiled.seeds,
        command: &profiled.command,
        workloads: profiled
            .ledgers
            .iter()
            .map(|ledger| workload(profiled, ledger))
            .collect(),
        missing: missing(&profiled.missing),
        without_calls: missing(&profiled.without_calls),
        model: profiled.model.as_ref().map(ToString::to_string),
        without_model: missing(&profiled.without_model),
    };
    document::write_json(&document)
}

fn missing(workloads: &[(String, String)]) -> Vec<Missing<'_>> {
    workloads
        .iter()
        .map(|(workload, reason)| Missing { workload, reason })
        .collect()
}

fn workload<'a>(profiled: &'a Profiled, ledger: &'a Ledger) -> Workload<'a> {
    let (base, new) = ledger.total(None);
    let mut suggestions = Vec::new();
    for pair in &ledger.pairs {
        let gone = &ledger.lines[pair.gone];
        let new = &ledger.lines[pair.new];
        suggestions.push(Suggestion {
            gone: &gone.function,
            new: &new.function,
            net_per_operation: ledger.line_added(gone) + ledger.line_added(new),
        });
    }
    let mut costly_instructions = Vec::new();
    for line in &ledger.costly {
        costly_instructions.push(CostlyKind {
            kind: line.kind.name(),
            base: line.counts[0],
            new: line.counts[1],
            function: &line.function.0,
            added_in_function: line.function.1,
        });
    }
    Workload {
        workload: &ledger.workload,
        summary: ledger.sentence(),
        base_operations: ledger.operations[0],
        new_operations: ledger.operations[1],
        base_instructions: base.instructions,
        new_instructions: new.instructions,
        added_per_operation: ledger.added(base, new),
        row: of_row(ledger),
        lines: ledger
            .lines
            .iter()
            .map(|each| line(ledger, each, &profiled.sources))
            .collect(),
        suggestions,
        costly_instructions,
        lines_with_inlined_apart: profiled
            .expanded
            .iter()
            .find(|expanded| expanded.workload == ledger.workload)
            .map(|expanded| {
                expanded
                    .lines
                    .iter()
                    .map(|each| line(expanded, each, &profiled.sources))
                    .collect()
            }),
        calls: profiled.calls_of(&ledger.workload).map(calls),
        modelled: profiled.modelled_of(&ledger.workload).map(of_model),
    }
}

fn of_row(ledger: &Ledger) -> Option<OfRow> {
    let row = ledger.row?;
    let [base_iterations_differ, new_iterations_differ] = ledger.iterations_differ()?;
    let [base, new] = row.values;
    let added = row.added();
    Some(OfRow {
        base,
        new,
        added,
        iterations: row.iterations,
        base_iterations_differ,
        new_iterations_differ,
    })
}

fn of_model(difference: &ModelDifference) -> OfModel<'_> {
    OfModel {
        seeds: difference.seeds,
        per_operation: difference.rows.iter().map(figures).collect(),
        estimated_cycles_by_function: difference.functions.iter().map(figures).collect(),
    }
}

fn figures(row: &ModelRow) -> Figures<'_> {
    let [base, new] = row
        .figures
        .map(|figure| [figure.mean, figure.least, figure.most]);
    Figures {
        name: &row.name,
        base,
        new,
        finding: row.finding.name(),
    }
}

fn calls(calls: &CallDifference) -> Calls<'_> {
    let entries = calls.entries().into_iter().map(|entry| EntryPoint {
        name: entry.name,
        base_instructions: entry.all[0],
        new_instructions: entry.all[1],
        added_per_operation: calls.added(entry.all),
    });
    Calls {
        entry_points: entries.collect(),
        moved: calls
            .shifts()
            .iter()
            .map(crate::calls::Shift::sentence)
            .collect(),
        tree: node(&calls.root),
    }
}

fn node(call: &CallNode) -> Node<'_> {
    Node {
        function: &call.function,
        own_instructions: call.own,
        all_instructions: call.all,
        calls: call.calls,
        children: call.children.iter().map(node).collect(),
    }
}

fn line<'a>(ledger: &Ledger, line: &'a LedgerLine, sources: &Sources) -> Line<'a> {
    let [base, new] = [line.base, line.new].map(|count| Counts {
        instructions: count.instructions,
        of_these_repeated: count.repeated,
        calls: count.calls,
    });
    let per = [(0, line.base), (1, line.new)]
        .map(|(side, count)| ledger.per_operation(side, count.instructions));
    Line {
        share: share_words(line.share),
        function: &line.function,
        matched: line.matched.name(),
        base,
        new,
        added_per_operation: ledger.line_added(line),
        ratio: (per[0] > 0.0 && per[1] > 0.0).then(|| per[0] / per[1]),
        source: sources
            .place(line)
            .map(|place| format!("{}:{}", place.file, place.line)),
    }
}

//! A chain as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::Chain;
use document::RenderError;

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    kind: &'static str,
    /// What all differences are.
    difference: &'static str,
    /// Oldest first, both ends included.
    releases: Vec<ReleaseDocument<'a>>,
    rows: Vec<RowDocument<'a>>,
    machine: &'a str,
    seeds: &'a [u64],
    command: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct ReleaseDocument<'a> {
    version: &'a str,
    name: &'a str,
    measured: bool,
    /// Why it cannot be had.
    missing: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct RowDocument<'a> {
    workload: &'a str,
    margin_percent: f64,
    /// Null if an end has no value.
    difference_percent: Option<f64>,
    steps: Vec<StepDocument<'a>>,
    /// What is left of the difference beside the steps.
    rest: Option<f64>,
    values: Vec<ValueDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct StepDocument<'a> {
    after: &'a str,
    release: &'a str,
    points: f64,
    function: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct ValueDocument<'a> {
    release: &'a str,
    /// Against the base; null if the release has no value.
    difference_percent: Option<f64>,
}

/// Returns the document's JSON schema.
#[must_use]
pub fn schema() -> schemars::Schema {
    document::schema_of::<Document<'_>>("marvin compare --chain")
}

/// Renders a chain whose steps were found.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn json(chain: &Chain) -> Result<String, RenderError> {
    let measured = chain.measured();
    let mut releases = Vec::new();
    for (place, link) in chain.links.iter().enumerate() {
        releases.push(ReleaseDocument {
            version: &link.version,
            name: &link.name,
            measured: measured.contains(&place),
            missing: link.missing.as_deref(),
        });
    }
    let version = |place: usize| chain.links[place].version.as_str();
    let mut rows = Vec::new();
    for (row, steps) in chain.rows.iter().zip(&chain.steps) {
        let sum: f64 = steps.iter().map(|step| step.points).sum();
        let steps = steps.iter().map(|step| StepDocument {
            after: version(step.ends[0]),
            release: version(step.ends[1]),
            points: step.points,
            function: step.function.as_deref(),
        });
        let values = row.percent.iter().map(|(place, percent)| ValueDocument {
            release: version(*place),
            difference_percent: *percent,
        });
        rows.push(RowDocument {
            workload: &row.workload,
            margin_percent: row.margin_percent,
            difference_percent: row.total(),
            steps: steps.collect(),
            rest: row.total().map(|total| total - sum),
            values: values.collect(),
        });
    }
    document::write_json(&Document {
        schema_version: SCHEMA_VERSION,
        kind: "chain",
        difference: "percent of the base; positive is better",
        releases,
        rows,
        machine: &chain.machine,
        seeds: &chain.seeds,
        command: &chain.command,
    })
}

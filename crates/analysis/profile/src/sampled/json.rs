//! Sampled profiles as JSON: every function with its samples and costs.

use schemars::JsonSchema;
use serde::Serialize;
use stats::RateDifference;

use crate::ledger::share_words;
use document::{RenderError, schema_of, write_json};

use crate::sampled::{Counted, Lines, SampledDifference, SampledLine, SampledProfiles};

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    kind: &'static str,
    base: Kernel<'a>,
    new: Kernel<'a>,
    machine: &'a str,
    command: &'a str,
    workloads: Vec<Workload<'a>>,
    missing: Vec<Missing<'a>>,
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

/// Arrays of two have the base first.
#[derive(Serialize, JsonSchema)]
struct Workload<'a> {
    workload: &'a str,
    summary: String,
    event: &'static str,
    scope: &'static str,
    period: u64,
    /// Of the period and of the costs.
    unit: &'static str,
    boots: [usize; 2],
    samples: [u64; 2],
    idle: [u64; 2],
    lost: [u64; 2],
    throttled: [u64; 2],
    total: Cost,
    functions: Vec<Line<'a>>,
    entry_points: Vec<Line<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Line<'a> {
    share: &'static str,
    name: &'a str,
    samples: [u64; 2],
    cost: Cost,
    /// The false discovery rate among the lines; null if there are too few samples or boots to
    /// test.
    q: Option<f64>,
    significant: bool,
    /// Instructions that the exact machine counted more on the new kernel; null if it counted
    /// none, or was not asked.
    exact_added_per_operation: Option<f64>,
}

/// Costs per operation.
#[derive(Serialize, JsonSchema)]
struct Cost {
    per_operation: [f64; 2],
    /// New minus base; positive is more work.
    added_per_operation: f64,
    /// Half the interval of 95 % of the difference.
    half_interval: Option<f64>,
    /// How many times more than chance alone the boots scatter.
    dispersion: f64,
}

/// Returns the document's JSON schema.
#[must_use]
pub fn schema() -> schemars::Schema {
    schema_of::<Document<'_>>("marvin profile, sampled")
}

/// Renders the sampled profiles of two kernels.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn json(profiles: &SampledProfiles) -> Result<String, RenderError> {
    write_json(&Document {
        schema_version: SCHEMA_VERSION,
        kind: "sampled-profile",
        base: Kernel {
            title: &profiles.base.0,
            origin: &profiles.base.1,
        },
        new: Kernel {
            title: &profiles.new.0,
            origin: &profiles.new.1,
        },
        machine: &profiles.machine,
        command: &profiles.command,
        workloads: profiles.differences.iter().map(workload).collect(),
        missing: profiles
            .missing
            .iter()
            .map(|(workload, reason)| Missing { workload, reason })
            .collect(),
    })
}

fn workload(difference: &SampledDifference) -> Workload<'_> {
    let sampling = difference.sampling;
    Workload {
        workload: &difference.workload,
        summary: difference.sentence(),
        event: sampling.event.name(),
        scope: sampling.scope.name(),
        period: sampling.period,
        unit: sampling.event.unit(),
        boots: difference.boots,
        samples: difference.samples,
        idle: difference.idle,
        lost: difference.lost,
        throttled: difference.throttled,
        total: cost(&difference.total),
        functions: lines(&difference.functions, difference.counted.as_ref()),
        entry_points: lines(&difference.entries, None),
    }
}

fn lines<'a>(lines: &'a Lines, counted: Option<&Counted>) -> Vec<Line<'a>> {
    lines.all.iter().map(|of| line(of, counted)).collect()
}

fn line<'a>(line: &'a SampledLine, counted: Option<&Counted>) -> Line<'a> {
    Line {
        share: share_words(line.share),
        name: &line.function,
        samples: line.samples,
        cost: cost(&line.cost),
        q: line.q.map(rounded),
        significant: line.is_significant(),
        exact_added_per_operation: counted.and_then(|counted| counted.added(line)),
    }
}

fn cost(cost: &RateDifference) -> Cost {
    Cost {
        per_operation: cost.rates,
        added_per_operation: cost.difference(),
        half_interval: cost.half,
        dispersion: cost.dispersion,
    }
}

/// Rounds to six digits: further ones depend on how the program was compiled.
fn rounded(q: f64) -> f64 {
    format!("{q:.5e}").parse().unwrap_or(q)
}

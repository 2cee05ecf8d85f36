//! One run: `marvin show --format json`. The report crate renders the text.

use compare::render::{Shown, result_unit};
use compare::{run_value, samples};
use model::{Outcome, Run, UnixTime, WorkloadResult};
use schemars::JsonSchema;
use serde::Serialize;

use super::SCHEMA_VERSION;

/// One stored run in full.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RunDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// Run id.
    id: String,
    /// Kernel name that the build was last asked for by.
    kernel: String,
    /// Version of the build.
    version: String,
    /// Build id.
    build: String,
    /// Origin: package, or commit and compiler.
    origin: String,
    /// Machine.
    machine: ListedMachine,
    /// Suite.
    suite: String,
    /// Seed.
    seed: u64,
    /// Start of the run (seconds since 1970-01-01 UTC); null if not known.
    started_unix: Option<i64>,
    /// What the guest said of itself.
    environment: Vec<Pair>,
    /// Results, in the order of the suite.
    results: Vec<ListedResult>,
    /// Artifacts with memory dumps.
    dumps: Vec<String>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedMachine {
    /// Machine id.
    id: String,
    /// Kind: exact or imported.
    kind: String,
    /// Description.
    summary: String,
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Pair {
    /// Name.
    name: String,
    /// Value.
    value: String,
}

/// A result of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedResult {
    /// Workload.
    workload: String,
    /// `completed`, `unsupported` or `failed`.
    outcome: &'static str,
    /// Why it did not complete, or has no value.
    reason: Option<String>,
    /// Stage of a failure.
    stage: Option<String>,
    /// End of the console after a failure.
    console_tail: Option<String>,
    /// Operations per iteration.
    operations: u64,
    /// The run's value: what comparisons use.
    value: Option<f64>,
    /// Unit of value and samples.
    unit: String,
    /// One sample per iteration.
    samples: Vec<f64>,
    /// Number of first samples that the value omits.
    samples_omitted: usize,
}

impl RunDocument {
    /// Returns the document of a run.
    pub(crate) fn new(shown: &Shown<'_>) -> Self {
        let Shown {
            run,
            build,
            machine,
            dumps,
            ..
        } = shown;
        let environment = run.environment.iter().map(|(name, value)| Pair {
            name: name.clone(),
            value: value.clone(),
        });
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "run",
            id: run.id.to_string(),
            kernel: build.name.to_string(),
            version: build.version.clone(),
            build: build.id.to_string(),
            origin: build.origin.to_string(),
            machine: ListedMachine {
                id: machine.id.to_string(),
                kind: machine.kind.to_string(),
                summary: machine.summary.clone(),
            },
            suite: run.suite.clone(),
            seed: run.seed,
            started_unix: Run::known_start(run.started_unix).map(UnixTime::seconds),
            environment: environment.collect(),
            results: run
                .results
                .iter()
                .map(|result| listed(shown, result))
                .collect(),
            dumps: dumps.to_vec(),
        }
    }
}

fn listed(shown: &Shown<'_>, result: &WorkloadResult) -> ListedResult {
    let value = run_value(result, shown.machine.capabilities());
    let scale = value
        .as_ref()
        .map_or(compare::Scale::Reported, |value| value.scale);
    let (outcome, failure) = match &result.outcome {
        Outcome::Completed => ("completed", None),
        Outcome::Unsupported(_) => ("unsupported", None),
        Outcome::Failed(failure) => ("failed", Some(failure)),
    };
    let reason = match &result.outcome {
        Outcome::Completed => value.as_ref().err().map(ToString::to_string),
        Outcome::Unsupported(what) => Some(what.clone()),
        Outcome::Failed(failure) => Some(failure.reason.to_string()),
    };
    ListedResult {
        workload: result.workload.clone(),
        outcome,
        reason,
        stage: failure.map(|failure| failure.stage.to_string()),
        console_tail: failure.map(|failure| failure.console_tail.clone()),
        operations: result.operations,
        value: value.as_ref().ok().map(|value| value.value),
        unit: result_unit(shown, result, scale),
        samples: samples(result, scale).to_vec(),
        samples_omitted: value.as_ref().map_or(0, |value| value.left_out),
    }
}

//! The structs of the JSON document, separate from the model so that the model can change.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{Build, Costly, Cycles, Direction, Machine, Uncertainty, UnixTime, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::comparison::{
    Absent, Against, Comparison, ComparisonCell, ComparisonRow, Counted, Failure, Images, Kernel,
    Measured,
};
use crate::environment::Difference;
use crate::render::words;
use document::SCHEMA_VERSION;
use monitors::render::MonitorsDocument;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    schema_version: u32,
    kind: &'static str,
    headlines: Vec<String>,
    conclusion: &'static str,
    warnings: Vec<String>,
    suite: &'a str,
    command: &'a str,
    seeds: &'a [u64],
    difference: &'static str,
    ratio: &'static str,
    base: KernelDocument<'a>,
    others: Vec<AgainstDocument<'a>>,
    rows: Vec<RowDocument<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    origins: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    monitors: Vec<MonitorsDocument<'a>>,
    failures: Vec<FailureDocument<'a>>,
    environment_differences: Vec<DifferenceDocument<'a>>,
    environment_unknown_of_kernels: &'a [usize],
    provenance: Provenance,
}

#[derive(Debug, Serialize, JsonSchema)]
struct KernelDocument<'a> {
    title: &'a str,
    version: &'a str,
    name: String,
    origin: String,
    build: String,
    image_sha256: &'a str,
    boot_file_sha256: &'a str,
    config_sha256: Option<&'a str>,
    machine: MachineDocument<'a>,
    /// The same machine with other guest configs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<MachineDocument<'a>>,
    environment: Vec<Pair<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MachineDocument<'a> {
    id: String,
    kind: String,
    summary: &'a str,
    /// The version of its QEMU if its numbers are not those of the reference machine.
    another_qemu: Option<&'a str>,
    fingerprint: Vec<Pair<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AgainstDocument<'a> {
    kernel: KernelDocument<'a>,
    images: &'static str,
    better: usize,
    worse: usize,
    same: usize,
    unclear: usize,
    geometric_mean_ratio: Option<f64>,
    geometric_mean_rows: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RowDocument<'a> {
    workload: &'a str,
    metric: &'a str,
    unit: Cow<'static, str>,
    direction: &'static str,
    margin_percent: f64,
    stresses: &'a str,
    operation: &'a str,
    base: MeasuredDocument<'a>,
    others: Vec<CellDocument<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MeasuredDocument<'a> {
    /// The median over the seeds; of noisy runs the geometric mean without runs that went wrong.
    value: Option<f64>,
    seeds: Vec<SeedDocument<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SeedDocument<'a> {
    seed: u64,
    value: Option<f64>,
    operations: Option<u64>,
    samples: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<CountedDocument>,
    absent: Option<AbsentDocument<'a>>,
}

/// Medians without the first iteration, per operation; of interrupts and other tasks the mean.
#[derive(Debug, Serialize, JsonSchema)]
struct CountedDocument {
    kernel: f64,
    user: f64,
    interrupts_and_other_tasks: f64,
    guest_time: f64,
    /// Of kernel and user, per operation, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    costly_instructions: BTreeMap<&'static str, f64>,
    /// Per operation: on each processor with costly instructions at their cheapest and the others
    /// at their dearest, and the reverse.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_cycles: Option<Cycles>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AbsentDocument<'a> {
    word: &'static str,
    detail: Option<&'a str>,
    failure: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CellDocument<'a> {
    verdict: &'static str,
    reason: Option<String>,
    difference_percent: Option<f64>,
    difference_percent_min: Option<f64>,
    difference_percent_max: Option<f64>,
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest_time_difference_percent: Option<f64>,
    /// The least difference of estimated cycles over all assumptions; positive is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_cycles_difference_percent_min: Option<f64>,
    /// The most.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_cycles_difference_percent_max: Option<f64>,
    /// With instructions of interrupts and other tasks; positive is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_deferred_difference_percent: Option<f64>,
    seeds_better: Option<usize>,
    seeds_worse: Option<usize>,
    seeds_same: Option<usize>,
    differences: Vec<SeedDifferenceDocument>,
    measured: MeasuredDocument<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SeedDifferenceDocument {
    seed: u64,
    percent: f64,
    ratio: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FailureDocument<'a> {
    kernel: usize,
    stage: String,
    reason: String,
    occurrences: Vec<OccurrenceDocument<'a>>,
    console_tail: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OccurrenceDocument<'a> {
    workload: &'a str,
    seed: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DifferenceDocument<'a> {
    name: &'a str,
    values: &'a [Option<String>],
}

#[derive(Debug, Serialize, JsonSchema)]
struct Provenance {
    created: Option<String>,
    runs: Vec<RunDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RunDocument {
    id: String,
    kernel: usize,
    seed: u64,
    started: Option<String>,
}

/// Returns the document of a comparison.
pub(crate) fn document(comparison: &Comparison) -> Document<'_> {
    Document {
        schema_version: SCHEMA_VERSION,
        kind: "comparison",
        headlines: words::headlines(comparison),
        conclusion: comparison.conclusion().name(),
        warnings: comparison.warnings.iter().map(words::warning).collect(),
        suite: &comparison.suite,
        command: &comparison.command,
        seeds: &comparison.seeds,
        difference: "percent of the base; positive is better",
        ratio: "above 1 is better",
        base: kernel(&comparison.base),
        others: comparison.others.iter().map(against).collect(),
        rows: comparison.rows.iter().map(row).collect(),
        origins: &comparison.origins,
        monitors: comparison
            .monitors
            .iter()
            .map(monitors::render::json_document)
            .collect(),
        failures: comparison.failures.iter().map(failure).collect(),
        environment_differences: comparison
            .environment
            .differences
            .iter()
            .map(|Difference { name, values }| DifferenceDocument { name, values })
            .collect(),
        environment_unknown_of_kernels: &comparison.environment.silent,
        provenance: provenance(comparison),
    }
}

fn kernel(kernel: &Kernel) -> KernelDocument<'_> {
    let Build {
        version, origin, ..
    } = &kernel.build;
    KernelDocument {
        title: &kernel.title,
        version,
        name: kernel.build.name.to_string(),
        origin: origin.to_string(),
        build: kernel.build.id.to_string(),
        image_sha256: &kernel.build.image.sha256,
        boot_file_sha256: &kernel.build.boot_file().sha256,
        config_sha256: kernel.build.config.as_ref().map(|c| c.sha256.as_str()),
        machine: machine(&kernel.machine),
        also: kernel.also.iter().map(machine).collect(),
        environment: pairs(&kernel.environment),
    }
}

fn machine(machine: &Machine) -> MachineDocument<'_> {
    MachineDocument {
        id: machine.id.to_string(),
        kind: machine.kind.to_string(),
        summary: &machine.summary,
        another_qemu: machine.another_qemu(),
        fingerprint: pairs(&machine.fingerprint),
    }
}

fn pairs(pairs: &[(String, String)]) -> Vec<Pair<'_>> {
    pairs
        .iter()
        .map(|(name, value)| Pair { name, value })
        .collect()
}

fn against(other: &Against) -> AgainstDocument<'_> {
    AgainstDocument {
        kernel: kernel(&other.kernel),
        images: match other.images {
            Images::Different => "different",
            Images::Equal => "equal",
            Images::EqualWithoutRuns => "equal, no run needed",
        },
        better: other.counts.better,
        worse: other.counts.worse,
        same: other.counts.same,
        unclear: other.counts.unclear,
        geometric_mean_ratio: other.geometric_mean.map(|mean| mean.ratio),
        geometric_mean_rows: other.geometric_mean.map_or(0, |mean| mean.rows),
    }
}

fn row(row: &ComparisonRow) -> RowDocument<'_> {
    RowDocument {
        workload: &row.workload.name,
        metric: &row.workload.metric.name,
        unit: row.unit.name(),
        direction: match row.workload.metric.direction {
            Direction::LowerIsBetter => "lower is better",
            Direction::HigherIsBetter => "higher is better",
        },
        margin_percent: row.margin_percent,
        stresses: &row.workload.stresses,
        operation: &row.workload.operation,
        base: measured(&row.base),
        others: row.cells.iter().map(cell).collect(),
    }
}

fn measured(measured: &Measured) -> MeasuredDocument<'_> {
    MeasuredDocument {
        value: measured.value,
        seeds: measured
            .seeds
            .iter()
            .map(|seed| {
                let value = seed.value.as_ref();
                SeedDocument {
                    seed: seed.seed,
                    value: value.ok().map(|v| v.value),
                    operations: value.ok().map(|v| v.operations),
                    samples: value.map_or(&[], |v| &v.samples),
                    counted: value.ok().and_then(|v| v.counted).map(counted),
                    absent: value.err().map(absent),
                }
            })
            .collect(),
    }
}

fn counted(counted: Counted) -> CountedDocument {
    let Counted {
        kernel,
        user,
        deferred,
        time,
        costly,
        cycles,
    } = counted;
    CountedDocument {
        kernel,
        user,
        interrupts_and_other_tasks: deferred,
        guest_time: time,
        costly_instructions: Costly::ALL
            .into_iter()
            .zip(costly)
            .filter(|(_, count)| *count > 0.0)
            .map(|(kind, count)| (kind.name(), count))
            .collect(),
        estimated_cycles: cycles,
    }
}

fn absent(absent: &Absent) -> AbsentDocument<'_> {
    let (word, detail, failure) = match absent {
        Absent::NoRun => ("no run", None, None),
        Absent::NoResult => ("no result", None, None),
        Absent::Unsupported(what) => ("unsupported", Some(what.as_str()), None),
        Absent::Failed(place) => ("failed", None, Some(*place)),
        Absent::TooFewSamples(_) => ("too few samples", None, None),
        Absent::NotANumber => ("not a number", None, None),
        Absent::NotCounted(why) => ("not counted", Some(why.as_str()), None),
    };
    AbsentDocument {
        word,
        detail,
        failure,
    }
}

fn cell(cell: &ComparisonCell) -> CellDocument<'_> {
    let (reason, votes) = match &cell.compared.verdict {
        Verdict::Unclear(why) => (Some(why.to_string()), votes(why)),
        Verdict::Better | Verdict::Worse | Verdict::Same => (None, None),
    };
    CellDocument {
        verdict: cell.compared.verdict.name(),
        reason,
        difference_percent: cell.compared.difference_percent,
        difference_percent_min: cell.compared.spread_percent.map(|s| s.min),
        difference_percent_max: cell.compared.spread_percent.map(|s| s.max),
        ratio: cell.compared.ratio,
        guest_time_difference_percent: cell.time_percent,
        estimated_cycles_difference_percent_min: cell.compared.cycles_percent.map(|s| s.min),
        estimated_cycles_difference_percent_max: cell.compared.cycles_percent.map(|s| s.max),
        with_deferred_difference_percent: cell.compared.with_deferred_percent,
        seeds_better: votes.map(|v| v.0),
        seeds_worse: votes.map(|v| v.1),
        seeds_same: votes.map(|v| v.2),
        differences: cell
            .compared
            .differences
            .iter()
            .map(|d| SeedDifferenceDocument {
                seed: d.seed,
                percent: d.percent,
                ratio: d.ratio,
            })
            .collect(),
        measured: measured(&cell.measured),
    }
}

fn votes(why: &Uncertainty) -> Option<(usize, usize, usize)> {
    match why {
        Uncertainty::SeedsDisagree {
            better,
            worse,
            same,
        } => Some((*better, *worse, *same)),
        Uncertainty::Missing(_)
        | Uncertainty::Noise { .. }
        | Uncertainty::NearMargin
        | Uncertainty::NoisyHistory
        | Uncertainty::TooNoisy
        | Uncertainty::TooCoarse
        | Uncertainty::BelowFloor { .. }
        | Uncertainty::Layouts { .. }
        | Uncertainty::Mixed { .. }
        | Uncertainty::Deferred { .. }
        | Uncertainty::Held { .. }
        | Uncertainty::WithinRun(_)
        | Uncertainty::Contradicted { .. } => None,
    }
}

fn failure(failure: &Failure) -> FailureDocument<'_> {
    FailureDocument {
        kernel: failure.kernel,
        stage: failure.stage.to_string(),
        reason: failure.reason.to_string(),
        occurrences: failure
            .occurrences
            .iter()
            .map(|o| OccurrenceDocument {
                workload: &o.workload,
                seed: o.seed,
            })
            .collect(),
        console_tail: &failure.console_tail,
    }
}

fn provenance(comparison: &Comparison) -> Provenance {
    Provenance {
        created: comparison.created_unix.map(UnixTime::date),
        runs: comparison
            .kernels()
            .enumerate()
            .flat_map(|(position, kernel)| {
                kernel.runs.iter().map(move |run| RunDocument {
                    id: run.id.to_string(),
                    kernel: position,
                    seed: run.seed,
                    started: model::Run::known_start(run.started_unix).map(UnixTime::date),
                })
            })
            .collect(),
    }
}

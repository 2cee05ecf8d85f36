//! The JSON documents: the pages' contents for programs. Their schemas are stable; `openapi.rs`
//! describes them.

use document::SCHEMA_VERSION;
use history::{History, Key, Overview, alerts_document, history_document};
use model::{ReleaseLine, UnixTime};
use serde::Serialize;
use store::RunSummary;

use crate::address::Query;
use crate::openapi;
use crate::site::Refusal;
use results::HistorySnapshot;

/// Limit on values in one answer of a server: about 5 MB. Files have no limit.
pub(crate) const VALUES_MAX: usize = 250_000;

/// Two kernels compared in all workloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct OverviewDocument {
    pub(crate) schema_version: u32,
    pub(crate) base: String,
    pub(crate) target: String,
    pub(crate) counts: CountsDocument,
    pub(crate) geometric_mean: Option<f64>,
    pub(crate) cells: Vec<CellDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CountsDocument {
    pub(crate) worse: usize,
    pub(crate) better: usize,
    pub(crate) same: usize,
    pub(crate) unclear: usize,
    pub(crate) unrated: usize,
    pub(crate) failed: usize,
    pub(crate) missing: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CellDocument {
    pub(crate) workload: String,
    pub(crate) subsystem: String,
    pub(crate) machine: String,
    pub(crate) state: String,
    pub(crate) ratio: Option<f64>,
    pub(crate) difference_percent: Option<f64>,
    pub(crate) seeds: usize,
}

/// All kernels, in the order of their releases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct KernelsDocument {
    pub(crate) schema_version: u32,
    pub(crate) kernels: Vec<KernelDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct KernelDocument {
    pub(crate) title: String,
    pub(crate) build: String,
    pub(crate) version: String,
    pub(crate) track: String,
    pub(crate) origin: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MachinesDocument {
    pub(crate) schema_version: u32,
    pub(crate) machines: Vec<MachineDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MachineDocument {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) summary: String,
    pub(crate) results_again: usize,
    pub(crate) results_agree: usize,
    pub(crate) results_apart: usize,
    /// Comparisons of a kernel with itself in the last 90 days.
    pub(crate) self_comparisons: usize,
    /// Those of them that were false alarms.
    pub(crate) false_alarms: usize,
    pub(crate) same_as: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunsDocument {
    pub(crate) schema_version: u32,
    pub(crate) runs: Vec<RunDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunDocument {
    pub(crate) id: String,
    pub(crate) build: String,
    pub(crate) version: String,
    pub(crate) machine: String,
    pub(crate) suite: String,
    pub(crate) seed: u64,
    pub(crate) started_unix: Option<i64>,
    pub(crate) completed: usize,
    pub(crate) unsupported: usize,
    pub(crate) failed: usize,
}

pub(crate) type Document = Result<String, serde_json::Error>;

/// Returns a document that takes no query; `None` for an unknown name.
pub(crate) fn document(snapshot: &HistorySnapshot, name: &str) -> Result<Option<String>, Refusal> {
    let history = &snapshot.history;
    Ok(Some(match name {
        "openapi.json" => serde_json::to_string_pretty(&openapi::document())?,
        "alerts.json" => serde_json::to_string(&alerts_document(history, &snapshot.alerts))?,
        "kernels.json" => serde_json::to_string(&kernels(history))?,
        "machines.json" => serde_json::to_string(&machines(history))?,
        _ => return Ok(None),
    }))
}

/// Returns the document of an overview.
pub(crate) fn overview(history: &History, seen: &Overview) -> Document {
    let counts = &seen.counts;
    let rows = seen
        .groups
        .iter()
        .flat_map(|group| group.rows.iter().map(move |row| (group, row)));
    let cells = rows.flat_map(|(group, row)| {
        row.cells.iter().map(move |cell| CellDocument {
            workload: row.workload.to_string(),
            subsystem: group.name.clone(),
            machine: history.machine(cell.machine).id.to_string(),
            state: cell.pair.state.name().to_owned(),
            ratio: cell.pair.compared.ratio,
            difference_percent: cell.pair.compared.difference_percent,
            seeds: cell.pair.compared.differences.len(),
        })
    });
    serde_json::to_string(&OverviewDocument {
        schema_version: SCHEMA_VERSION,
        base: history.kernel(seen.base).title.clone(),
        target: history.kernel(seen.target).title.clone(),
        counts: CountsDocument {
            worse: counts.worse,
            better: counts.better,
            same: counts.same,
            unclear: counts.unclear,
            unrated: counts.unrated,
            failed: counts.failed,
            missing: counts.missing,
        },
        geometric_mean: seen.mean.map(|mean| mean.ratio),
        cells: cells.collect(),
    })
}

/// Returns the series that a query selects, with at most this many values.
pub(crate) fn series(
    history: &History,
    question: &Query,
    values_max: usize,
) -> Result<String, Refusal> {
    let line: ReleaseLine = question
        .get("line")
        .map_or(Ok(ReleaseLine::All), str::parse)
        .map_err(|error: model::LineError| Refusal::NotFound(error.to_string()))?;
    Ok(serde_json::to_string(&history_document(
        history,
        line,
        values_max,
        |key: &Key| {
            let machine = history.machine(key.machine).id.to_string();
            question.allows("workload", &key.workload)
                && question.allows("track", &key.track)
                && question.allows("machine", &machine)
        },
    ))?)
}

/// Returns the document of runs.
pub(crate) fn runs(newest: &[RunSummary]) -> Document {
    let runs = newest.iter().map(|run| RunDocument {
        id: run.id.to_string(),
        build: run.build.to_string(),
        version: run.version.clone(),
        machine: run.machine.to_string(),
        suite: run.suite.clone(),
        seed: run.seed,
        started_unix: model::Run::known_start(run.started_unix).map(UnixTime::seconds),
        completed: run.completed,
        unsupported: run.unsupported,
        failed: run.failed,
    });
    serde_json::to_string(&RunsDocument {
        schema_version: SCHEMA_VERSION,
        runs: runs.collect(),
    })
}

fn kernels(history: &History) -> KernelsDocument {
    let kernels = history.order().iter().map(|number| {
        let kernel = history.kernel(*number);
        KernelDocument {
            title: kernel.title.clone(),
            build: kernel.build.id.to_string(),
            version: kernel.build.version.clone(),
            track: kernel.track.clone(),
            origin: kernel.build.origin.to_string(),
        }
    });
    KernelsDocument {
        schema_version: SCHEMA_VERSION,
        kernels: kernels.collect(),
    }
}

fn machines(history: &History) -> MachinesDocument {
    let mut machines = Vec::new();
    for (index, repeats) in history.machine_indexes().zip(history.repeats()) {
        let machine = history.machine(index);
        let trust = history.trust(&[index]);
        machines.push(MachineDocument {
            id: machine.id.to_string(),
            kind: machine.kind.to_string(),
            summary: machine.summary.clone(),
            results_again: repeats.again,
            results_agree: repeats.agree,
            results_apart: repeats.apart,
            self_comparisons: trust.compared,
            false_alarms: trust.alarms,
            same_as: history.machine(history.first_kin(index)).id.to_string(),
        });
    }
    MachinesDocument {
        schema_version: SCHEMA_VERSION,
        machines,
    }
}

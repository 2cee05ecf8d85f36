//! JSON documents. This crate guarantees their shape, as `compare` does for comparisons.

use std::collections::BTreeMap;

use compare::Scale;
use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::{ReleaseLine, UnixTime};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::{
    Basis, BisectHint, Change, History, KernelIx, Key, Point, Series, Triaged, bisect_hint,
};

/// Debian's sources in a data directory, without the directory's path.
const DEBIAN: &str = "HOME/workshop/debian";

/// Several series. Names that many values share stand once: values refer to them by number.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistoryDocument {
    /// The version of the document's shape.
    pub schema_version: u32,
    /// Whether all matching series are here; the dashboard omits series beyond its limit.
    pub complete: bool,
    /// The kernels of all series.
    pub kernels: Vec<KernelNameDocument>,
    /// The lists of runs that gave values; series measured in the same runs share a list.
    pub runs: Vec<RunListDocument>,
    /// The series, by workload, machine and track.
    pub series: Vec<SeriesDocument>,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KernelNameDocument {
    /// The kernel's title.
    pub title: String,
    /// Its build's id.
    pub build: String,
}

/// Runs, kernel by kernel in release order; one item of each list for each run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunListDocument {
    /// The kernel's place in `kernels`.
    pub kernels: Vec<usize>,
    /// The seed.
    pub seeds: Vec<u64>,
    /// The run's id.
    pub ids: Vec<String>,
}

/// A series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SeriesDocument {
    /// The workload.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The good direction.
    pub direction: String,
    /// The margin: a difference up to this many percent counts as same.
    pub margin_percent: f64,
    /// The machine's id.
    pub machine: String,
    /// The track.
    pub track: String,
    /// Whether instructions were counted; else values are guest time.
    pub counted: bool,
    /// The place of its list in `runs`.
    pub runs: usize,
    /// One value for each run of the list; null if there is none.
    pub values: Vec<Option<f64>>,
    /// The median over the seeds, one for each kernel of the list, in its order.
    pub medians: Vec<Option<f64>>,
    /// Why values are missing.
    pub absent: Vec<AbsentDocument>,
    /// The changes of level.
    pub changes: Vec<ChangeDocument>,
}

/// Why a kernel has no value with a seed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AbsentDocument {
    /// The kernel's title.
    pub kernel: String,
    /// The reason.
    pub why: String,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangeDocument {
    /// The last kernel that certainly lacks it.
    pub after: String,
    /// The first kernel that certainly has it.
    pub at: String,
    /// Better or worse; unclear if a twin, a workload that does the same operation, contradicts
    /// it.
    pub verdict: String,
    /// The difference; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// Its evidence: `every-seed` or `levels`; `no-boot` or `fails` for a failure.
    pub basis: String,
    /// How many seeds agree.
    pub seeds: Option<usize>,
    /// The probability of such levels without a change.
    pub p: Option<f64>,
    /// The kernel at which the old level returned.
    pub went_away: Option<String>,
}

/// Alerts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AlertsDocument {
    /// Version of the schema.
    pub schema_version: u32,
    /// The alerts, newest kernel first.
    pub alerts: Vec<AlertDocument>,
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AlertDocument {
    /// Its name.
    pub name: String,
    /// The track.
    pub track: String,
    /// The last kernel without any of its changes.
    pub after: String,
    /// The first kernel with all of them.
    pub at: String,
    /// Whether it is open.
    pub open: bool,
    /// How many series are worse.
    pub worse: usize,
    /// How many are better.
    pub better: usize,
    /// How many changes were undone.
    pub gone: usize,
    /// The commands that find the commit, in order; none if a bisection cannot find it, or there
    /// is no regression.
    pub bisection: Vec<String>,
    /// The series, worst first.
    pub members: Vec<MemberDocument>,
    /// The decision.
    pub triage: Option<TriageDocument>,
    /// Its notices, a row for each channel, oldest first.
    pub told: Vec<ToldDocument>,
}

/// A notice about an alert on one channel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToldDocument {
    /// The `[[notify]]` of marvin.toml; `None` for no channel: it was open before this lab reported
    /// regressions.
    pub channel: Option<String>,
    /// Whether it went to those in charge of the code.
    pub is_report: bool,
    /// When it was raised (seconds since 1970-01-01 UTC).
    pub raised_unix: i64,
    /// When the channel took it; `None` if it has not yet.
    pub delivered_unix: Option<i64>,
}

/// A series of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemberDocument {
    /// The workload.
    pub workload: String,
    /// The machine's id.
    pub machine: String,
    /// Better or worse; unclear if a twin, a workload that does the same operation, contradicts
    /// it.
    pub verdict: String,
    /// The last kernel that was measured without its change: it may be older than the alert's.
    pub after: String,
    /// The first kernel that was measured with it.
    pub at: String,
    /// The difference; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// Its evidence, as with a change.
    pub basis: String,
    /// The kernel at which the old level returned.
    pub went_away: Option<String>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriageDocument {
    /// The outcome.
    pub outcome: String,
    /// Why.
    pub note: String,
    /// When, in seconds since 1970-01-01 UTC.
    pub decided_unix: i64,
    /// How many series became worse since.
    pub worse_since: usize,
}

/// Returns the document of the matching series over the kernels of a line, with at most this many
/// values.
#[must_use]
pub fn history_document(
    history: &History,
    line: ReleaseLine,
    values_max: usize,
    fits: impl Fn(&Key) -> bool,
) -> HistoryDocument {
    let mut document = HistoryDocument {
        schema_version: SCHEMA_VERSION,
        complete: true,
        kernels: Vec::new(),
        runs: Vec::new(),
        series: Vec::new(),
    };
    let mut tables = Tables::default();
    let mut left = values_max;
    for (key, series) in history.series().filter(|(key, _)| fits(key)) {
        let series = series.of_line(line, |kernel| &history.kernel(kernel).release);
        let count = series.points.iter().map(|point| point.seeds.len()).sum();
        let Some(rest) = left.checked_sub(count) else {
            document.complete = false;
            break;
        };
        left = rest;
        let runs = tables.number_of_runs(history, &series, &mut document);
        document
            .series
            .push(series_document(history, key, &series, runs));
    }
    document
}

/// The numbers of what stands once in a document.
#[derive(Default)]
struct Tables {
    /// By the history's number of a kernel.
    kernels: BTreeMap<KernelIx, usize>,
    /// By kernel, seed and the history's number of a run.
    runs: BTreeMap<Vec<(KernelIx, u64, usize)>, usize>,
}

impl Tables {
    /// Returns the number of the list of a series' runs, and adds the list if it is new.
    fn number_of_runs(
        &mut self,
        history: &History,
        series: &Series,
        document: &mut HistoryDocument,
    ) -> usize {
        let seen = series
            .points
            .iter()
            .flat_map(|point| point.seeds.iter().map(|seen| (point.kernel, seen)));
        let runs: Vec<(KernelIx, u64, usize)> = seen
            .map(|(kernel, seen)| (kernel, seen.seed, seen.run))
            .collect();
        if let Some(number) = self.runs.get(&runs) {
            return *number;
        }
        let mut list = RunListDocument::default();
        for (kernel, seed, run) in &runs {
            let number = *self.kernels.entry(*kernel).or_insert_with(|| {
                let kernel = history.kernel(*kernel);
                let title = kernel.title.clone();
                let build = kernel.build.id.to_string();
                document.kernels.push(KernelNameDocument { title, build });
                document.kernels.len() - 1
            });
            list.kernels.push(number);
            list.seeds.push(*seed);
            list.ids.push(history.run(*run).id.to_string());
        }
        document.runs.push(list);
        self.runs.insert(runs, document.runs.len() - 1);
        document.runs.len() - 1
    }
}

fn series_document(history: &History, key: &Key, series: &Series, runs: usize) -> SeriesDocument {
    let machine = history.machine(key.machine);
    let mut absent = Vec::new();
    for point in &series.points {
        if let Some(why) = point.absent() {
            absent.push(AbsentDocument {
                kernel: history.title(point.kernel).to_owned(),
                why: why.to_owned(),
            });
        }
    }
    SeriesDocument {
        workload: key.workload.to_string(),
        metric: series.metric.name.to_string(),
        unit: series
            .scale
            .unit(&series.metric, machine.capabilities().clock)
            .to_string(),
        direction: series.metric.direction.to_string(),
        margin_percent: series.metric.margin_percent,
        machine: machine.id.to_string(),
        track: key.track.to_string(),
        counted: series.scale == Scale::Counted,
        runs,
        values: series
            .points
            .iter()
            .flat_map(|point| &point.seeds)
            .map(|seen| series.value(seen))
            .collect(),
        medians: series.points.iter().map(|point| point.value).collect(),
        absent,
        changes: series
            .changes
            .iter()
            .map(|found| change(history, key, series, found))
            .collect(),
    }
}

fn basis_word(basis: Basis) -> String {
    let word = match basis {
        Basis::EverySeed { .. } => "every-seed",
        Basis::Levels { .. } => "levels",
        Basis::Creep { .. } => "creep",
        Basis::NoBoot => "no-boot",
        Basis::Fails => "fails",
    };
    word.to_owned()
}

fn change(history: &History, key: &Key, series: &Series, change: &Change) -> ChangeDocument {
    let title = |point: &Point| history.title(point.kernel).to_owned();
    let (seeds, p) = match change.basis {
        Basis::EverySeed { seeds } => (Some(seeds), None),
        Basis::Levels { p } | Basis::Creep { p } => (None, Some(p)),
        Basis::NoBoot | Basis::Fails => (None, None),
    };
    ChangeDocument {
        after: title(series.before(change)),
        at: title(&series.points[change.at]),
        verdict: history.qualified(key, series, change).name().to_owned(),
        difference_percent: change.difference_percent,
        basis: basis_word(change.basis),
        seeds,
        p,
        went_away: change.went_away.map(|at| title(&series.points[at])),
    }
}

/// Returns the JSON schemas of this crate's documents, by name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("alerts", schema_of::<AlertsDocument>("marvin alerts")),
        ("history", schema_of::<HistoryDocument>("marvin history")),
    ]
}

/// Returns the document of alerts, in the order given.
#[must_use]
pub fn alerts_document(history: &History, alerts: &[Triaged]) -> AlertsDocument {
    let alerts = alerts
        .iter()
        .map(|alert| alert_document(history, alert))
        .collect();
    AlertsDocument {
        schema_version: SCHEMA_VERSION,
        alerts,
    }
}

/// Returns the document of an alert.
#[must_use]
pub fn alert_document(history: &History, triaged: &Triaged) -> AlertDocument {
    let alert = &triaged.alert;
    let title = |kernel: KernelIx| history.title(kernel).to_owned();
    let (worse, better, gone) = alert.counts();
    AlertDocument {
        name: alert.name.clone(),
        track: alert.track.clone(),
        after: title(alert.after),
        at: title(alert.at),
        open: triaged.is_open(),
        worse,
        better,
        gone,
        bisection: match bisect_hint(history, alert, DEBIAN) {
            Some(BisectHint::Command(command)) => vec![command],
            Some(BisectHint::First { commands, .. }) => commands,
            Some(BisectHint::Impossible(_)) | None => Vec::new(),
        },
        members: alert
            .members
            .iter()
            .map(|member| MemberDocument {
                workload: member.key.workload.to_string(),
                machine: history.machine(member.key.machine).id.to_string(),
                verdict: member.verdict.name().to_owned(),
                after: title(member.range.0),
                at: title(member.range.1),
                difference_percent: member.difference_percent,
                basis: basis_word(member.basis),
                went_away: member.gone.map(title),
            })
            .collect(),
        triage: triaged.decided.as_ref().map(|decided| TriageDocument {
            outcome: decided.triage.name().to_owned(),
            note: decided.note.clone(),
            decided_unix: decided.decided_unix.seconds(),
            worse_since: triaged.more_since(),
        }),
        told: triaged
            .told
            .iter()
            .map(|told| ToldDocument {
                channel: told.channel.clone(),
                is_report: told.is_report,
                raised_unix: told.raised_unix.seconds(),
                delivered_unix: told.delivered_unix.map(UnixTime::seconds),
            })
            .collect(),
    }
}

/// Renders series as a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn history_json(document: &impl Serialize) -> Result<String, RenderError> {
    write_json(document)
}

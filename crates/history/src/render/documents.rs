//! JSON documents. This crate guarantees their shape, as `report` does for comparisons.

use model::Line;
use report::Scale;
use report::render::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::{Basis, BisectHint, Change, History, Key, Point, Series, Triaged, bisect_hint};

/// Debian's sources in a data directory, without the directory's path.
const DEBIAN: &str = "HOME/workshop/debian";

/// Several series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistoryDocument {
    /// The version of the document's shape.
    pub schema_version: u32,
    /// The series, by workload, machine and track.
    pub series: Vec<SeriesDocument>,
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
    /// In release order.
    pub points: Vec<PointDocument>,
    /// The changes of level.
    pub changes: Vec<ChangeDocument>,
}

/// The measurements of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PointDocument {
    /// The kernel's title.
    pub kernel: String,
    /// Its build's id.
    pub build: String,
    /// The median over the seeds.
    pub value: Option<f64>,
    /// Why there is none.
    pub absent: Option<String>,
    /// The value of each seed.
    pub seeds: Vec<SeedDocument>,
}

/// The value of a seed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SeedDocument {
    /// The seed.
    pub seed: u64,
    /// The value.
    pub value: Option<f64>,
    /// The run's id.
    pub run: String,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangeDocument {
    /// The last kernel that certainly lacks it.
    pub after: String,
    /// The first kernel that certainly has it.
    pub at: String,
    /// Better or worse.
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
    /// The commands that find the commit, in order; none if a bisection cannot find it, or there is no regression.
    pub bisection: Vec<String>,
    /// The series, worst first.
    pub members: Vec<MemberDocument>,
    /// The decision.
    pub triage: Option<TriageDocument>,
}

/// A series of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemberDocument {
    /// The workload.
    pub workload: String,
    /// The machine's id.
    pub machine: String,
    /// Better or worse.
    pub verdict: String,
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

/// Returns the documents of all matching series, over the kernels of a line.
#[must_use]
pub fn documents(history: &History, line: Line, fits: impl Fn(&Key) -> bool) -> HistoryDocument {
    let chosen = history.series().filter(|(key, _)| fits(key));
    let series = chosen.map(|(key, series)| series_document(history, key, series, line)).collect();
    HistoryDocument { schema_version: SCHEMA_VERSION, series }
}

/// Returns the document of a series over the kernels of a line.
#[must_use]
pub fn series_document(history: &History, key: &Key, series: &Series, line: Line) -> SeriesDocument {
    let machine = &history.machines()[key.machine];
    let series = &series.of_line(line, |kernel| &history.kernel(kernel).release);
    SeriesDocument {
        workload: key.workload.to_string(),
        metric: series.metric.name.to_string(),
        unit: series.scale.unit(&series.metric, machine.capabilities().clock).to_string(),
        direction: series.metric.direction.to_string(),
        margin_percent: series.metric.margin_percent,
        machine: machine.id.to_string(),
        track: key.track.to_string(),
        counted: series.scale == Scale::Counted,
        points: series.points.iter().map(|point| self::point(history, series, point)).collect(),
        changes: series.changes.iter().map(|found| change(history, series, found)).collect(),
    }
}

fn point(history: &History, series: &Series, point: &Point) -> PointDocument {
    let kernel = history.kernel(point.kernel);
    PointDocument {
        kernel: kernel.title.clone(),
        build: kernel.build.id.to_string(),
        value: point.value,
        absent: point.absent().map(str::to_owned),
        seeds: point
            .seeds
            .iter()
            .map(|seen| SeedDocument {
                seed: seen.seed,
                value: series.value(seen),
                run: history.run(seen.run).id.to_string(),
            })
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

fn change(history: &History, series: &Series, change: &Change) -> ChangeDocument {
    let title = |point: &Point| history.kernel(point.kernel).title.clone();
    let (seeds, p) = match change.basis {
        Basis::EverySeed { seeds } => (Some(seeds), None),
        Basis::Levels { p } | Basis::Creep { p } => (None, Some(p)),
        Basis::NoBoot | Basis::Fails => (None, None),
    };
    ChangeDocument {
        after: title(series.before(change)),
        at: title(&series.points[change.at]),
        verdict: change.verdict.word().to_owned(),
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
    let alerts = alerts.iter().map(|alert| alert_document(history, alert)).collect();
    AlertsDocument { schema_version: SCHEMA_VERSION, alerts }
}

/// Returns the document of an alert.
#[must_use]
pub fn alert_document(history: &History, triaged: &Triaged) -> AlertDocument {
    let alert = &triaged.alert;
    let title = |kernel: usize| history.kernel(kernel).title.clone();
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
                machine: history.machines()[member.key.machine].id.to_string(),
                verdict: member.verdict.word().to_owned(),
                difference_percent: member.difference_percent,
                basis: basis_word(member.basis),
                went_away: member.gone.map(title),
            })
            .collect(),
        triage: triaged.decided.as_ref().map(|decided| TriageDocument {
            outcome: decided.triage.word().to_owned(),
            note: decided.note.clone(),
            decided_unix: decided.decided_unix,
            worse_since: triaged.more_since(),
        }),
    }
}

/// Renders series as a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn history_json(document: &impl Serialize) -> Result<String, RenderError> {
    write_json(document)
}

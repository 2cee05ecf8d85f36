//! One series: a workload's metric on a machine, over the kernels of one track in release order.

use std::sync::Arc;

use compare::{Given, NoValue, Replicate, RunValue, Scale, centre, run_value, samples, scores};
use model::{
    Capabilities, Declared, Floor, Metric, Release, ReleaseLine, Stage, UnixTime, WorkloadResult,
    floor,
};
use stats::{GroupMean, Scores};

use super::changes::{Change, find};
use super::index::{KernelIx, MachineIx};
use super::noise::SelfComparisons;

/// The key of a series: machines by number, tracks by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The workload's name.
    pub workload: Arc<str>,
    /// Where the kernels were measured.
    pub machine: MachineIx,
    /// The track of its kernels.
    pub track: Arc<str>,
}

/// [`Cycles`](model::Cycles) with as many digits as differences need: histories keep many.
pub type EstimatedCycles = [f32; model::PROCESSORS.len() * 2];

/// What the samples of one run say by themselves.
pub type WithinMean = GroupMean;

/// A run's value of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedValue {
    /// The value, on `scale`.
    pub value: f64,
    /// What one unit of it is: a count, or what the workload reported.
    pub scale: Scale,
    /// The estimate of cycles per operation; zeros without one.
    pub(super) cycles: EstimatedCycles,
    /// Deferred work per operation beside a counted value, else zero.
    pub(super) deferred: f32,
    /// A hash that identifies a list of samples.
    pub(super) mark: u64,
    /// What the samples of another suite's run say by themselves, where there are enough.
    pub(super) within: Option<Arc<WithinMean>>,
}

/// The kind of reason for a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKind {
    /// The kernel lacks a feature that the workload needs.
    Unsupported,
    /// The kernel did not boot.
    NotBooted,
    /// The workload ended without samples.
    Failed,
    /// The samples give no value.
    NoValue,
}

/// The reason for a missing value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The kind, for decisions.
    pub missing: MissingKind,
    /// A phrase for people.
    pub why: Arc<str>,
}

impl SeedValue {
    /// Computes it from a result, or returns the reason for its absence.
    pub(super) fn measure(
        result: &WorkloadResult,
        machine: Capabilities,
    ) -> Result<Self, (MissingKind, String)> {
        let RunValue {
            value,
            scale,
            cycles,
            deferred,
            ..
        } = run_value(result, machine).map_err(|none| match none {
            NoValue::Unsupported(_) => (MissingKind::Unsupported, none.to_string()),
            NoValue::Failed(failure) => {
                let is_early = matches!(failure.stage, Stage::Boot | Stage::Settle);
                (
                    if is_early {
                        MissingKind::NotBooted
                    } else {
                        MissingKind::Failed
                    },
                    format!("failed: {none}"),
                )
            }
            _ => (MissingKind::NoValue, none.to_string()),
        })?;
        Ok(Self {
            value,
            scale,
            cycles: cycles.unwrap_or_default().map(|one| one as f32),
            deferred: deferred as f32,
            mark: mark(&result.samples),
            within: machine
                .foreign
                .then(|| GroupMean::compute(&samples(result, scale)).map(Arc::new))
                .flatten(),
        })
    }
}

/// Returns the FNV-1a hash of the samples' bits: equal lists have equal marks.
fn mark(samples: &[f64]) -> u64 {
    let bytes = samples
        .iter()
        .flat_map(|sample| sample.to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The result of one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedResult {
    /// The seed of the run's memory layout.
    pub seed: u64,
    /// The history's number of the run.
    pub run: usize,
    /// Operations in one iteration.
    pub operations: u64,
    /// The metric's declaration at that time, which most results share.
    pub declared: Arc<Declared>,
    /// The value, or the reason for its absence.
    pub value: Result<SeedValue, Absent>,
}

/// The results of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The kernel that was measured.
    pub kernel: KernelIx,
    /// One for each seed, ascending.
    pub seeds: Vec<SeedResult>,
    /// The median over the seeds that have a value, on the series' scale; of noisy runs the value
    /// that ratings compare.
    pub value: Option<f64>,
}

impl SeedResult {
    /// Returns it as one side of a comparison with this name.
    pub(super) fn replicate(&self, side: &str) -> Replicate {
        let given = match &self.value {
            Ok(SeedValue {
                value,
                scale,
                cycles,
                deferred,
                ..
            }) => Given::Value {
                value: *value,
                scale: *scale,
                operations: self.operations,
                cycles: cycles
                    .iter()
                    .all(|one| *one > 0.0)
                    .then(|| cycles.map(f64::from)),
                deferred: f64::from(*deferred),
            },
            Err(absent) => Given::Unusable(format!("{side}: {}", absent.why)),
        };
        Replicate {
            seed: self.seed,
            given,
        }
    }
}

impl Point {
    /// Returns why there is no value despite results.
    #[must_use]
    pub fn absent(&self) -> Option<&str> {
        self.seeds
            .iter()
            .find_map(|seen| seen.value.as_ref().err())
            .map(|absent| absent.why.as_ref())
    }

    /// Returns whether it has a value with another scale.
    #[must_use]
    pub fn is_off(&self, scale: Scale) -> bool {
        self.seeds
            .iter()
            .any(|seen| seen.value.as_ref().is_ok_and(|value| value.scale != scale))
    }

    /// Returns how the kernel failed with a seed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&Absent> {
        let mut failures = self
            .seeds
            .iter()
            .filter_map(|seen| seen.value.as_ref().err());
        failures
            .find(|absent| matches!(absent.missing, MissingKind::NotBooted | MissingKind::Failed))
    }
}

/// The values of one workload on one machine, kernel by kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The metric of its values.
    pub metric: Metric,
    /// The scale of its values; results with another scale are no part of it.
    pub scale: Scale,
    /// How far seeds of one build lie apart, if known.
    pub floor: Option<Floor>,
    /// The declaration of its values: that of the newest run. Results with another one are no part
    /// of it.
    pub declared: Declared,
    /// Whether boots are noisy, so that seeds pair nothing.
    pub scatters: bool,
    /// One for each kernel with results, in release order.
    pub points: Vec<Point>,
    /// Its changes of level, in order.
    pub changes: Vec<Change>,
    /// Operations per iteration: those of the newest run. Results with other numbers are another
    /// experiment.
    pub operations: u64,
    /// Comparisons of its kernels with themselves, from the first use on.
    pub(super) self_comparisons: SelfComparisons,
}

impl Series {
    pub(super) fn new(declared: Declared, machine: Capabilities) -> Self {
        Self {
            metric: Metric::COST,
            declared,
            scatters: !machine.deterministic,
            scale: Scale::Reported,
            floor: None,
            points: Vec::new(),
            changes: Vec::new(),
            operations: 0,
            self_comparisons: SelfComparisons::default(),
        }
    }

    /// Returns the point of a kernel.
    #[must_use]
    pub fn point(&self, kernel: KernelIx) -> Option<&Point> {
        self.points.iter().find(|point| point.kernel == kernel)
    }

    /// Returns the value of a seed, on the series' scale.
    #[must_use]
    pub fn value(&self, seen: &SeedResult) -> Option<f64> {
        let value = seen
            .value
            .as_ref()
            .ok()
            .filter(|value| self.is_of(seen) && value.scale == self.scale)?;
        Some(value.value)
    }

    /// Returns the values of a kernel's seeds, on the series' scale.
    #[must_use]
    pub fn values(&self, point: &Point) -> Vec<f64> {
        point
            .seeds
            .iter()
            .filter_map(|seen| self.value(seen))
            .collect()
    }

    /// Returns whether a result belongs to this series: same operations, unit and direction.
    #[must_use]
    pub fn is_of(&self, seen: &SeedResult) -> bool {
        seen.operations == self.operations && self.declared.agrees(&seen.declared)
    }

    /// Returns the results of the same name with another unit or direction, kernel by kernel, which
    /// are kept but not compared.
    pub fn aside(&self) -> impl Iterator<Item = (KernelIx, &SeedResult)> {
        let seen = self
            .points
            .iter()
            .flat_map(|point| point.seeds.iter().map(move |seen| (point.kernel, seen)));
        seen.filter(|(_, seen)| seen.value.is_ok() && !self.declared.agrees(&seen.declared))
    }

    /// Returns the noise between runs of one kernel, over all kernels but some; it supports the
    /// rating of these.
    #[must_use]
    pub fn scatter(&self, but: &[KernelIx]) -> stats::History {
        let mut history = stats::History::default();
        for point in self
            .points
            .iter()
            .filter(|point| !but.contains(&point.kernel))
        {
            if let Some(scores) = self.scores(point) {
                history.add(&scores);
            }
        }
        history
    }

    /// Returns whether kernels have one run of another suite each, whose samples a report rates.
    /// That says nothing of levels: how much boots differ is not known.
    pub(super) fn has_single_foreign_runs(&self) -> bool {
        let mut points = self.points.iter().filter(|point| point.value.is_some());
        points.all(|point| {
            let mut values = point
                .seeds
                .iter()
                .filter_map(|seen| seen.value.as_ref().ok());
            values.all(|value| value.within.is_some()) && self.values(point).len() == 1
        })
    }

    /// Returns the scores of a kernel's runs; `None` if there is no value, or one of zero.
    #[must_use]
    pub fn scores(&self, point: &Point) -> Option<Scores> {
        scores(&self.values(point), self.metric.direction).ok()
    }

    /// Returns the series for the kernels of a line only, with its changes there.
    #[must_use]
    pub fn of_line<'a>(
        &self,
        line: ReleaseLine,
        release: impl Fn(KernelIx) -> &'a Release,
    ) -> Self {
        let mut series = self.clone();
        if line != ReleaseLine::All {
            series
                .points
                .retain(|point| line.has(release(point.kernel)));
            series.self_comparisons = SelfComparisons::default();
            series.changes = find(&series);
        }
        series
    }

    /// Computes scale, values and changes; `started` returns the start and number of a run,
    /// `metric` the metric of a declaration.
    pub(super) fn recompute(
        &mut self,
        workload: &str,
        started: impl Fn(usize) -> (UnixTime, usize),
        metric: impl Fn(&Declared) -> Metric,
    ) {
        self.self_comparisons = SelfComparisons::default();
        let seeds: Vec<&SeedResult> = self.points.iter().flat_map(|point| &point.seeds).collect();
        let newest = seeds.iter().max_by_key(|seen| started(seen.run));
        let (operations, declared) = newest.map_or((0, &self.declared), |seen| {
            (seen.operations, &*seen.declared)
        });
        self.metric = metric(declared);
        (self.operations, self.declared) = (operations, declared.clone());
        self.floor = floor(workload);
        let seeds = self.points.iter().flat_map(|point| &point.seeds);
        let values = seeds
            .filter(|seen| self.is_of(seen))
            .filter_map(|seen| seen.value.as_ref().ok());
        self.scale = Scale::common(values.map(|value| value.scale));
        for n in 0..self.points.len() {
            let values = self.values(&self.points[n]);
            let rated = self.scores(&self.points[n]).filter(|_| self.scatters);
            let centre = rated.map(|scores| centre(&scores, self.metric.direction));
            self.points[n].value = centre.or_else(|| stats::median(&values));
        }
        self.changes = find(self);
    }
}

//! One series: a workload's metric on a machine, over the kernels of one track in the order of their releases.

use std::sync::Arc;

use model::{Capabilities, Declared, Line, Metric, Release, Stage, WorkloadResult, floor_percent};
use report::{Given, NoValue, Replicate, RunValue, Scale, run_value, scores};
use stats::Scores;

use super::changes::{Change, find};

/// Which series: machines are numbered as a history met them, tracks are named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The workload's name.
    pub workload: Arc<str>,
    /// The machine.
    pub machine: usize,
    /// Whose kernels follow each other.
    pub track: Arc<str>,
}

/// A run's value of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The value.
    pub value: f64,
    /// What it is made of.
    pub scale: Scale,
    /// Tells one list of samples from another.
    pub(super) mark: u64,
}

/// What kind of reason there is for a result without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The kernel does not have what the workload needs.
    Unsupported,
    /// The kernel did not boot.
    NotBooted,
    /// The workload failed.
    Failed,
    /// The samples make no value.
    NoValue,
}

/// Why a result has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// What kind of reason.
    pub lack: Lack,
    /// The reason in words.
    pub why: Arc<str>,
}

impl Value {
    /// Reads it from a result, or says why there is none.
    pub(super) fn of(result: &WorkloadResult, machine: Capabilities) -> Result<Self, (Lack, String)> {
        let RunValue { value, scale, .. } = run_value(result, machine).map_err(|none| match none {
            NoValue::Unsupported(_) => (Lack::Unsupported, none.to_string()),
            NoValue::Failed(failure) => {
                let is_early = matches!(failure.stage, Stage::Boot | Stage::Settle);
                (if is_early { Lack::NotBooted } else { Lack::Failed }, format!("failed: {none}"))
            }
            _ => (Lack::NoValue, none.to_string()),
        })?;
        Ok(Self { value, scale, mark: mark(&result.samples) })
    }
}

/// Returns the FNV-1a hash of the samples' bits: two lists that agree to the last bit have one mark.
fn mark(samples: &[f64]) -> u64 {
    let bytes = samples.iter().flat_map(|sample| sample.to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What was seen with one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The seed.
    pub seed: u64,
    /// Which of the history's runs.
    pub run: usize,
    /// Operations in one iteration.
    pub operations: u64,
    /// What its metric was declared to be then.
    pub declared: Declared,
    /// The value, or why there is none.
    pub value: Result<Value, Absent>,
}

/// What was seen of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Which of the history's kernels.
    pub kernel: usize,
    /// One for each seed, in rising order.
    pub seeds: Vec<Seen>,
    /// The median over the seeds that have a value, on the series' scale.
    pub value: Option<f64>,
}

impl Seen {
    /// Returns it as one side of a comparison, which is called so.
    pub(super) fn replicate(&self, side: &str) -> Replicate {
        let given = match &self.value {
            Ok(Value { value, scale, .. }) => {
                Given::Value { value: *value, scale: *scale, operations: self.operations }
            }
            Err(absent) => Given::Unusable(format!("{side}: {}", absent.why)),
        };
        Replicate { seed: self.seed, given }
    }
}

impl Point {
    /// Returns why there is no value, where something was measured and gave none.
    #[must_use]
    pub fn absent(&self) -> Option<&str> {
        self.seeds.iter().find_map(|seen| seen.value.as_ref().err()).map(|absent| absent.why.as_ref())
    }

    /// Returns whether it has a value that is not on a scale.
    #[must_use]
    pub fn is_off(&self, scale: Scale) -> bool {
        self.seeds.iter().any(|seen| seen.value.as_ref().is_ok_and(|value| value.scale != scale))
    }

    /// Returns how the kernel failed with a seed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&Absent> {
        let failed = |absent: &&Absent| matches!(absent.lack, Lack::NotBooted | Lack::Failed);
        self.seeds.iter().filter_map(|seen| seen.value.as_ref().err()).find(failed)
    }
}

/// A series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What is measured.
    pub metric: Metric,
    /// What its values are made of; what was measured on another scale is no part of it.
    pub scale: Scale,
    /// How far seeds of one build lie apart, in percent, if that is known.
    pub floor_percent: Option<f64>,
    /// What its values are: what the newest run was declared to measure. Others' are no part of it.
    pub declared: Declared,
    /// Whether values scatter from boot to boot, so that seeds pair nothing.
    pub scatters: bool,
    /// In the order of releases.
    pub points: Vec<Point>,
    /// Where its level changes, in order.
    pub changes: Vec<Change>,
    /// Operations in one iteration: those of the newest run. What was measured with others is another experiment.
    pub operations: u64,
}

impl Series {
    pub(super) fn new(declared: Declared, machine: Capabilities) -> Self {
        Self {
            metric: Metric::COST,
            declared,
            scatters: !machine.deterministic,
            scale: Scale::Reported,
            floor_percent: None,
            points: Vec::new(),
            changes: Vec::new(),
            operations: 0,
        }
    }

    /// Returns the point of a kernel.
    #[must_use]
    pub fn point(&self, kernel: usize) -> Option<&Point> {
        self.points.iter().find(|point| point.kernel == kernel)
    }

    /// Returns what a seed gave, on the series' scale.
    #[must_use]
    pub fn value(&self, seen: &Seen) -> Option<f64> {
        let value = seen.value.as_ref().ok().filter(|value| self.is_of(seen) && value.scale == self.scale)?;
        Some(value.value)
    }

    /// Returns whether what was seen is of this series: measured with as many operations, in its unit, good in its way.
    #[must_use]
    pub fn is_of(&self, seen: &Seen) -> bool {
        seen.operations == self.operations && self.declared.agrees(&seen.declared)
    }

    /// Returns what was measured under the same name in another unit or is good in another way, kernel by kernel: it is kept,
    /// and held against nothing.
    pub fn aside(&self) -> impl Iterator<Item = (usize, &Seen)> {
        let seen = self.points.iter().flat_map(|point| point.seeds.iter().map(move |seen| (point.kernel, seen)));
        seen.filter(|(_, seen)| seen.value.is_ok() && !self.declared.agrees(&seen.declared))
    }

    /// Returns how far runs of one kernel lay apart, over all kernels but some: what a rating of these may lean on.
    #[must_use]
    pub fn scatter(&self, but: &[usize]) -> stats::History {
        let mut history = stats::History::default();
        for point in self.points.iter().filter(|point| !but.contains(&point.kernel)) {
            if let Some(scores) = self.scores(point) {
                history.add(&scores);
            }
        }
        history
    }

    /// Returns the scores of a kernel's runs; `None` if there is no value, or one of zero.
    #[must_use]
    pub fn scores(&self, point: &Point) -> Option<Scores> {
        let values: Vec<f64> = point.seeds.iter().filter_map(|seen| self.value(seen)).collect();
        scores(&values, self.metric.direction).ok()
    }

    /// Returns the series over the kernels of a line only, with the changes that it has then.
    #[must_use]
    pub fn of_line<'a>(&self, line: Line, release: impl Fn(usize) -> &'a Release) -> Self {
        let mut series = self.clone();
        if line != Line::All {
            series.points.retain(|point| line.has(release(point.kernel)));
            series.changes = find(&series);
        }
        series
    }

    /// Works out scale, values and changes; `started` says when a run began, and its number, and `metric` what the metric is that
    /// was declared so.
    pub(super) fn settle(
        &mut self,
        workload: &str,
        started: impl Fn(usize) -> (i64, usize),
        metric: impl Fn(&Declared) -> Metric,
    ) {
        let all = || self.points.iter().flat_map(|point| &point.seeds);
        let newest = all().max_by_key(|seen| started(seen.run));
        let (operations, declared) = newest.map_or((0, &self.declared), |seen| (seen.operations, &seen.declared));
        self.metric = metric(declared);
        (self.operations, self.declared) = (operations, declared.clone());
        self.floor_percent = floor_percent(workload);
        let of_it = all().filter(|seen| self.is_of(seen)).filter_map(|seen| seen.value.as_ref().ok());
        self.scale = Scale::of(of_it.map(|value| value.scale));
        for n in 0..self.points.len() {
            let values: Vec<f64> = self.points[n].seeds.iter().filter_map(|seen| self.value(seen)).collect();
            self.points[n].value = stats::median(&values);
        }
        self.changes = find(self);
    }
}

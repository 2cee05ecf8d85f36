//! A comparison in the making: rows and cells from indexed results. Checking the question is `checks.rs`' work.

use model::{Direction, MachineKind, Outcome, Region, SubjectFailure, Uncertainty, Verdict, Workload, WorkloadResult};

use crate::comparison::{
    Absent, Against, Cell, Counted, Counts, GeometricMean, Images, Kernel, Measured, Occurrence, Row, RunMark, Sampled,
    SeedDifference, SeedValue, Warning,
};
use crate::difference::{difference_percent, ratio};
use crate::failures::Failures;
use crate::index::Index;
use crate::label::Label;
use crate::missing::Missing;
use crate::plain::plain;
use crate::question::{Question, Side};
use crate::render::number;
use crate::verdict::verdict;

/// A comparison in the making.
pub(crate) struct Answer<'a> {
    pub(crate) question: &'a Question,
    pub(crate) sides: &'a [&'a Side<'a>],
    pub(crate) labels: &'a [Label],
    pub(crate) indices: &'a [Index<'a>],
    pub(crate) seeds: &'a [u64],
    pub(crate) failures: Failures,
}

impl Answer<'_> {
    pub(crate) fn row(&mut self, workload: &'static Workload) -> Row {
        let margin_percent = self.question.margin_percent.unwrap_or(workload.metric.margin_percent);
        let counted = self.is_counted(workload);
        let base = self.measured(0, workload, counted);
        let cells = (1..self.sides.len())
            .map(|kernel| {
                let measured = self.measured(kernel, workload, counted);
                let place = Place { kernel, direction: workload.metric.direction, margin_percent };
                self.cell(&place, &base, measured)
            })
            .collect();
        Row { workload, unit: workload.metric.unit(self.sides[0].machine.kind), margin_percent, base, cells }
    }

    /// Tells whether the instructions of all results of a row were counted. If not, the row is of guest time.
    fn is_counted(&self, workload: &'static Workload) -> bool {
        let results =
            self.indices.iter().flat_map(|index| self.seeds.iter().map(|&seed| index.result(workload.name, seed)));
        let mut completed = results.flatten().filter(|result| result.outcome == Outcome::Completed).peekable();
        completed.peek().is_some()
            && completed.all(|result| !result.counted.is_empty() && result.counted.len() == result.samples.len())
    }

    fn measured(&mut self, kernel: usize, workload: &'static Workload, counted: bool) -> Measured {
        let seeds: Vec<SeedValue> = self
            .seeds
            .iter()
            .map(|&seed| {
                let index = &self.indices[kernel];
                let value = match index.result(workload.name, seed) {
                    Some(result) => {
                        let place = Occurrence { workload: workload.name, seed };
                        let (kind, of) = (self.sides[kernel].machine.kind, result);
                        sampled((of, kind), counted, |failure| self.failures.note(kernel, failure, place))
                    }
                    None if index.has_run(seed) => Err(Absent::NoResult),
                    None => Err(Absent::NoRun),
                };
                SeedValue { seed, value }
            })
            .collect();
        let medians: Vec<f64> = seeds.iter().filter_map(|s| s.value.as_ref().ok()).map(|s| s.median).collect();
        Measured { seeds, median: stats::median(&medians), noise: None }
    }

    fn cell(&self, place: &Place, base: &Measured, measured: Measured) -> Cell {
        let Paired { differences, missing } = self.paired(place, base, &measured);
        let percents: Vec<f64> = differences.iter().map(|d| d.percent).collect();
        let ratios: Vec<f64> = differences.iter().filter_map(|d| d.ratio).collect();
        let times = times(place.direction, base, &measured);
        let verdict = if self.images(place.kernel) == Images::EqualWithoutRuns {
            Verdict::Same
        } else if let Some(why) = missing.text(self.seeds.len()) {
            Verdict::Unclear(Uncertainty::Missing(why))
        } else {
            verdict(&percents, place.margin_percent)
        };
        Cell {
            measured,
            difference_percent: stats::median(&percents),
            spread_percent: stats::spread(&percents),
            // A ratio of some seeds only would not be the row's.
            ratio: stats::median(&ratios).filter(|_| ratios.len() == differences.len()),
            time_percent: stats::median(&times),
            differences,
            verdict,
            rated: None,
        }
    }

    fn paired(&self, place: &Place, base: &Measured, new: &Measured) -> Paired {
        let mut paired = Paired::default();
        if self.seeds.is_empty() {
            paired.missing.add("no run".to_owned(), None);
        }
        for (old, new) in base.seeds.iter().zip(&new.seeds) {
            match (&old.value, &new.value) {
                (Ok(a), Ok(b)) => match difference(old.seed, place.direction, a, b) {
                    Ok(difference) => paired.differences.push(difference),
                    Err(why) => paired.missing.add(why, Some(old.seed)),
                },
                (a, b) => {
                    for (position, value) in [(0, a), (place.kernel, b)] {
                        if let Err(absent) = value {
                            let why = self.absent(position, absent);
                            paired.missing.add(why, Some(old.seed));
                        }
                    }
                }
            }
        }
        paired
    }

    fn absent(&self, kernel: usize, absent: &Absent) -> String {
        let title = &self.labels[kernel].title;
        match absent {
            Absent::NoRun => format!("{title}: no run"),
            Absent::NoResult => format!("{title}: the run has no result"),
            Absent::Unsupported(what) => format!("{title}: not supported: {}", plain(what)),
            Absent::Failed(place) => {
                let failure = &self.failures.all[*place];
                let reason = plain(&failure.reason.to_string());
                format!("{title}: {reason} ({} stage)", failure.stage)
            }
            Absent::TooFewSamples(count) => {
                format!("{title}: {}, none left without the first", number::count(*count, "iteration"))
            }
            Absent::NotANumber => format!("{title}: an iteration's value is not a number"),
        }
    }

    pub(crate) fn images(&self, kernel: usize) -> Images {
        let (base, other) = (self.sides[0], self.sides[kernel]);
        if base.build.id != other.build.id {
            Images::Different
        } else if self.indices[kernel].runs.is_empty() && base.machine.id == other.machine.id {
            Images::EqualWithoutRuns
        } else {
            Images::Equal
        }
    }

    pub(crate) fn against(&self, kernel: usize, rows: &[Row]) -> Against {
        let cells = rows.iter().map(|row| &row.cells[kernel - 1]);
        let mut counts = Counts::default();
        cells.clone().for_each(|cell| counts.add(&cell.verdict));
        let ratios: Vec<f64> = cells.filter_map(|cell| cell.ratio).collect();
        Against {
            kernel: self.kernel(kernel),
            images: self.images(kernel),
            counts,
            geometric_mean: stats::geometric_mean(&ratios).map(|ratio| GeometricMean {
                ratio,
                rows: ratios.len(),
                ends: None,
            }),
        }
    }

    pub(crate) fn kernel(&self, kernel: usize) -> Kernel {
        let runs = &self.indices[kernel].runs;
        Kernel {
            title: self.labels[kernel].title.clone(),
            head: self.labels[kernel].head.clone(),
            build: self.sides[kernel].build.clone(),
            machine: self.sides[kernel].machine.clone(),
            also: self.sides[kernel].also.iter().map(|machine| (*machine).clone()).collect(),
            runs: runs
                .iter()
                .map(|run| RunMark { id: run.id.clone(), seed: run.seed, started_unix: run.started_unix })
                .collect(),
            environment: runs
                .iter()
                .map(|run| &run.environment)
                .find(|environment| !environment.is_empty())
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// Returns the rows of which the guest's clock tells something else than the counts.
    pub(crate) fn clock_disagrees(&self, rows: &[Row]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for row in rows {
            for (cell, label) in row.cells.iter().zip(&self.labels[1..]) {
                let decided = matches!(cell.verdict, Verdict::Better | Verdict::Worse | Verdict::Same);
                if let (Some(time_percent), Some(counted_percent)) = (cell.time_percent, cell.difference_percent)
                    && decided
                    && verdict(&[time_percent], row.margin_percent) != verdict(&[counted_percent], row.margin_percent)
                {
                    let (kernel, workload) = (label.title.clone(), row.workload.name);
                    warnings.push(Warning::ClockDisagrees { kernel, workload, counted_percent, time_percent });
                }
            }
        }
        warnings
    }

    pub(crate) fn not_repeated(&self, workloads: &[&'static Workload]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (index, label) in self.indices.iter().zip(self.labels) {
            for workload in workloads {
                for &seed in self.seeds {
                    if index.disagrees(workload.name, seed) {
                        warnings.push(Warning::NotRepeated {
                            kernel: label.title.clone(),
                            workload: workload.name,
                            seed,
                        });
                    }
                }
            }
        }
        warnings
    }
}

/// Where in the table a cell stands, and what decides about it.
#[derive(Debug, Clone, Copy)]
struct Place {
    kernel: usize,
    direction: Direction,
    margin_percent: f64,
}

/// The seeds of one cell: those with a value on both sides, and why the others have none.
#[derive(Debug, Default)]
struct Paired {
    differences: Vec<SeedDifference>,
    missing: Missing,
}

fn difference(seed: u64, direction: Direction, base: &Sampled, new: &Sampled) -> Result<SeedDifference, String> {
    if base.operations != new.operations {
        // The cost of one operation depends on how many share the fixed costs of an iteration.
        return Err(format!(
            "asked for {} operations on one side and {} on the other",
            base.operations, new.operations
        ));
    }
    let percent =
        difference_percent(direction, base.median, new.median).ok_or_else(|| "no percentage exists".to_owned())?;
    Ok(SeedDifference { seed, percent, ratio: ratio(direction, base.median, new.median) })
}

/// Reads a run's value from a result; `note` takes in a failure and returns its place.
fn sampled(
    (result, kind): (&WorkloadResult, MachineKind),
    is_counted: bool,
    note: impl FnOnce(&SubjectFailure) -> usize,
) -> Result<Sampled, Absent> {
    let samples: Vec<f64> =
        if is_counted { per_operation(result, |region| region.kernel + region.user) } else { result.samples.clone() };
    match &result.outcome {
        Outcome::Unsupported(what) => Err(Absent::Unsupported(what.clone())),
        Outcome::Failed(failure) => Err(Absent::Failed(note(failure))),
        Outcome::Completed if result.samples.iter().any(|s| !(s.is_finite() && *s >= 0.0)) => Err(Absent::NotANumber),
        Outcome::Completed => {
            let (count, operations) = (samples.len(), result.operations);
            let counted = counted(result).filter(|_| is_counted);
            // The first iteration of our own workloads pays for what later ones find done. Other suites warm up themselves.
            let (median, left_out) = match kind {
                MachineKind::Exact => (stats::median_without_first(&samples), 1),
                MachineKind::Imported => (stats::median(&samples), 0),
            };
            median
                .map(|median| Sampled { median, samples, left_out, operations, counted })
                .ok_or(Absent::TooFewSamples(count))
        }
    }
}

fn per_operation(result: &WorkloadResult, count: fn(&Region) -> u64) -> Vec<f64> {
    result.counted.iter().map(|region| count(region) as f64 / result.operations.max(1) as f64).collect()
}

fn counted(result: &WorkloadResult) -> Option<Counted> {
    let median = |count| stats::median_without_first(&per_operation(result, count));
    Some(Counted {
        kernel: median(|region| region.kernel)?,
        user: median(|region| region.user)?,
        elsewhere: median(|region| region.interrupt + region.other)?,
        time: stats::median_without_first(&result.samples)?,
    })
}

/// Returns the differences in guest time of the seeds that were counted on both sides.
fn times(direction: Direction, base: &Measured, new: &Measured) -> Vec<f64> {
    let time = |value: &SeedValue| value.value.as_ref().ok().and_then(|sampled| Some(sampled.counted?.time));
    let pairs = base.seeds.iter().zip(&new.seeds).filter_map(|(old, new)| Some((time(old)?, time(new)?)));
    pairs.filter_map(|(old, new)| difference_percent(direction, old, new)).collect()
}

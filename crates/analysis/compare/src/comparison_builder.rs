//! Builds a comparison: rows and cells from indexed results. `checks.rs` checks the question.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Cycles, Direction, SubjectFailure, Uncertainty, Verdict, Workload, WorkloadResult,
    disturbed_workload, floor,
};

use crate::comparison::{
    Absent, Against, ComparisonCell, ComparisonRow, Counted, Counts, GeometricMean, Images, Kernel,
    Measured, Occurrence, RunMark, Sampled, SeedValue, Warning,
};
use crate::cycles;
use crate::difference::difference_percent;
use crate::failures::Failures;
use crate::index::Index;
use crate::pairing::{Given, Replicate, Rule, Seeds, compare_sides};
use crate::question::{Question, Side};
use crate::value::{NOT_COUNTED, NoValue, Scale, deferred_work, per_operation, run_value, samples};
use crate::verdict::verdict_by_agreement;
use document::label::Label;
use model::sanitize_line;

/// A comparison while it is built.
pub(crate) struct ComparisonBuilder<'a> {
    pub(crate) question: &'a Question,
    pub(crate) sides: &'a [&'a Side<'a>],
    pub(crate) labels: &'a [Label],
    pub(crate) indices: &'a [Index<'a>],
    pub(crate) seeds: &'a [u64],
    pub(crate) failures: Failures,
}

impl ComparisonBuilder<'_> {
    pub(crate) fn row(&mut self, workload: &Arc<Workload>) -> ComparisonRow {
        let margin_percent = self
            .question
            .margin_percent
            .unwrap_or(workload.metric.margin_percent);
        let mut all: Vec<Measured> = (0..self.sides.len())
            .map(|kernel| self.measure(kernel, workload))
            .collect();
        let values = all
            .iter()
            .flat_map(|measured| &measured.seeds)
            .filter_map(|seed| seed.value.as_ref().ok());
        let scale = Scale::common(values.map(|sampled| sampled.scale));
        all.iter_mut()
            .for_each(|measured| on_scale(measured, scale));
        let mut all = all.into_iter();
        let base = all.next().unwrap_or_default();
        let rule = Rule {
            direction: workload.metric.direction,
            margin_percent,
            floor: floor(&workload.name),
            seeds: if self.question.seeds.is_empty() {
                Seeds::OnBoth
            } else {
                Seeds::All
            },
        };
        let cells = all
            .zip(1..)
            .map(|(measured, kernel)| self.cell(kernel, &rule, &base, measured))
            .collect();
        let unit = scale.unit(&workload.metric, self.sides[0].machine.capabilities().clock);
        ComparisonRow {
            workload: Arc::clone(workload),
            unit,
            margin_percent,
            base,
            cells,
        }
    }

    fn measure(&mut self, kernel: usize, workload: &Workload) -> Measured {
        let index = &self.indices[kernel];
        let side = self.sides[kernel];
        let mut seeds = Vec::new();
        for &seed in self.seeds {
            let value = match index.result(&workload.name, seed) {
                Some(result) => {
                    let place = Occurrence {
                        workload: workload.name.to_string(),
                        seed,
                    };
                    read_value(result, side, |failure| {
                        self.failures.note(kernel, failure, place)
                    })
                }
                None if index.has_run(seed) => Err(Absent::NoResult),
                None => Err(Absent::NoRun),
            };
            seeds.push(SeedValue { seed, value });
        }
        Measured {
            seeds,
            value: None,
            noise: None,
        }
    }

    fn cell(
        &self,
        kernel: usize,
        rule: &Rule,
        base: &Measured,
        measured: Measured,
    ) -> ComparisonCell {
        let mut compared = compare_sides(
            &self.replicates(0, base),
            &self.replicates(kernel, &measured),
            rule,
        );
        if self.images(kernel) == Images::EqualWithoutRuns {
            compared.verdict = Verdict::Same;
        }
        if let Verdict::Unclear(Uncertainty::Mixed { costly, .. }) = &mut compared.verdict {
            *costly = cycles::changed_costly(base, &measured);
        }
        let times = times(rule.direction, base, &measured);
        ComparisonCell {
            compared,
            time_percent: stats::median(&times),
            measured,
            rated: None,
        }
    }

    fn replicates(&self, kernel: usize, measured: &Measured) -> Vec<Replicate> {
        let mut replicates = Vec::new();
        for SeedValue { seed, value } in &measured.seeds {
            let given = match value {
                Ok(sampled) => Given::Value {
                    value: sampled.value,
                    scale: sampled.scale,
                    operations: sampled.operations,
                    cycles: sampled.counted.and_then(|counted| counted.cycles),
                    deferred: sampled.counted.map_or(0.0, |counted| counted.deferred),
                },
                Err(absent @ (Absent::NoRun | Absent::NoResult)) => {
                    Given::NotMeasured(self.absent(kernel, absent))
                }
                Err(absent) => Given::Unusable(self.absent(kernel, absent)),
            };
            replicates.push(Replicate { seed: *seed, given });
        }
        replicates
    }

    fn absent(&self, kernel: usize, absent: &Absent) -> String {
        let title = &self.labels[kernel].title;
        match absent {
            Absent::NoRun => format!("{title}: no run"),
            Absent::NoResult => format!("{title}: the run has no result"),
            Absent::Unsupported(what) => format!("{title}: {}", NoValue::Unsupported(what)),
            Absent::Failed(place) => {
                let failure = &self.failures.all[*place];
                format!(
                    "{title}: {} ({} stage)",
                    sanitize_line(&failure.reason.to_string()),
                    failure.stage
                )
            }
            Absent::TooFewSamples(count) => {
                format!("{title}: {}", NoValue::TooFewIterations(*count))
            }
            Absent::NotANumber => format!("{title}: {}", NoValue::NotANumber),
            Absent::NotCounted(why) => format!("{title}: {why}"),
        }
    }

    pub(crate) fn images(&self, kernel: usize) -> Images {
        let base = self.sides[0];
        let other = self.sides[kernel];
        if base.build.id != other.build.id {
            Images::Different
        } else if self.indices[kernel].runs.is_empty() && base.machine.id == other.machine.id {
            Images::EqualWithoutRuns
        } else {
            Images::Equal
        }
    }

    pub(crate) fn against(&self, kernel: usize, rows: &[ComparisonRow]) -> Against {
        let cells = rows.iter().map(|row| &row.cells[kernel - 1]);
        let mut counts = Counts::default();
        cells.for_each(|cell| counts.add(&cell.compared.verdict));
        let ratios: Vec<f64> = common(rows, kernel - 1)
            .iter()
            .filter_map(|row| row.cells[kernel - 1].compared.ratio)
            .collect();
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
            also: self.sides[kernel]
                .also
                .iter()
                .map(|machine| (*machine).clone())
                .collect(),
            runs: runs
                .iter()
                .map(|run| RunMark {
                    id: run.id.clone(),
                    seed: run.seed,
                    started_unix: run.started_unix,
                })
                .collect(),
            environment: runs
                .iter()
                .map(|run| &run.environment)
                .find(|environment| !environment.is_empty())
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// Returns the rows with different verdicts from the guest's clock and from the counts.
    pub(crate) fn clock_disagrees(&self, rows: &[ComparisonRow]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for row in rows {
            for (cell, label) in row.cells.iter().zip(&self.labels[1..]) {
                let decided = matches!(
                    cell.compared.verdict,
                    Verdict::Better | Verdict::Worse | Verdict::Same
                );
                if let (Some(time_percent), Some(counted_percent)) =
                    (cell.time_percent, cell.compared.difference_percent)
                    && decided
                    && verdict_by_agreement(&[time_percent], row.margin_percent, None)
                        != verdict_by_agreement(&[counted_percent], row.margin_percent, None)
                {
                    let kernel = label.title.clone();
                    let workload = row.workload.name.to_string();
                    warnings.push(Warning::ClockDisagrees {
                        kernel,
                        workload,
                        counted_percent,
                        time_percent,
                    });
                }
            }
        }
        warnings
    }

    /// Returns the kernels that were built by another compiler than the base.
    pub(crate) fn built_differently(&self) -> Vec<Warning> {
        let Some(base) = self.sides[0].build.origin.compiler() else {
            return Vec::new();
        };
        (1..self.sides.len())
            // An equal image has no difference to explain.
            .filter(|kernel| self.images(*kernel) == Images::Different)
            .filter_map(|kernel| {
                let origin = &self.sides[kernel].build.origin;
                let compiler = origin.compiler().filter(|own| *own != base)?;
                Some(Warning::BuiltDifferently {
                    kernel: self.labels[kernel].title.clone(),
                    compiler: compiler.to_owned(),
                    base: base.to_owned(),
                })
            })
            .collect()
    }

    /// Returns the seeds that a kernel or the base lacks.
    pub(crate) fn left_out(&self, rows: &[ComparisonRow]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (place, label) in self.labels[1..].iter().enumerate() {
            let seeds: BTreeSet<u64> = rows
                .iter()
                .flat_map(|row| &row.cells[place].compared.left_out)
                .copied()
                .collect();
            if !seeds.is_empty() {
                warnings.push(Warning::SeedsLeftOut {
                    kernel: label.title.clone(),
                    seeds: seeds.into_iter().collect(),
                });
            }
        }
        warnings
    }

    /// Returns the imported runs that newer ones replace: a user may have taken them for further
    /// runs. Runs of Marvin's own machines are repeated only where a user asked for it.
    pub(crate) fn superseded(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for ((side, label), index) in self.sides.iter().zip(self.labels).zip(self.indices) {
            let runs = index.superseded();
            if side.machine.capabilities().foreign && runs > 0 {
                warnings.push(Warning::Superseded {
                    kernel: label.title.clone(),
                    runs,
                });
            }
        }
        warnings
    }

    /// Returns which of the rows other work on the host disturbed.
    pub(crate) fn disturbed(&self, rows: &[ComparisonRow]) -> Vec<Warning> {
        let is_row = |name: &str| rows.iter().any(|row| row.workload.job_name() == name);
        let mut warnings = Vec::new();
        for (index, label) in self.indices.iter().zip(self.labels) {
            let mut names = BTreeSet::new();
            let mut boots = 0;
            for run in &index.runs {
                if !self.seeds.contains(&run.seed) {
                    continue;
                }
                let disturbed: Vec<&str> = run
                    .environment
                    .iter()
                    .filter_map(|(name, _)| disturbed_workload(name))
                    .filter(|name| is_row(name))
                    .collect();
                boots += usize::from(!disturbed.is_empty());
                names.extend(disturbed);
            }
            if boots > 0 {
                warnings.push(Warning::Disturbed {
                    kernel: label.title.clone(),
                    workloads: names.into_iter().map(str::to_owned).collect(),
                    boots,
                });
            }
        }
        warnings
    }

    pub(crate) fn find_unrepeated(&self, workloads: &[Arc<Workload>]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (index, label) in self.indices.iter().zip(self.labels) {
            for workload in workloads {
                for &seed in self.seeds {
                    if index.disagrees(&workload.name, seed) {
                        warnings.push(Warning::NotRepeated {
                            kernel: label.title.clone(),
                            workload: workload.name.to_string(),
                            seed,
                        });
                    }
                }
            }
        }
        warnings
    }
}

/// Returns the rows of a kernel's geometric mean: those with a ratio for every kernel, so that all
/// means are over the same workloads. A kernel without any ratio, such as one that does not boot,
/// excludes no row.
pub(crate) fn common(rows: &[ComparisonRow], kernel: usize) -> Vec<&ComparisonRow> {
    let has = |row: &ComparisonRow, kernel: usize| row.cells[kernel].compared.ratio.is_some();
    let measured: Vec<usize> = (0..rows.first().map_or(0, |row| row.cells.len()))
        .filter(|other| *other == kernel || rows.iter().any(|row| has(row, *other)))
        .collect();
    rows.iter()
        .filter(|row| measured.iter().all(|other| has(row, *other)))
        .collect()
}

/// Computes a run's value from a result; `note` records a failure and returns its index.
fn read_value(
    result: &WorkloadResult,
    side: &Side<'_>,
    note: impl FnOnce(&SubjectFailure) -> usize,
) -> Result<Sampled, Absent> {
    let value = run_value(result, side.machine.capabilities()).map_err(|none| match none {
        NoValue::Unsupported(what) => Absent::Unsupported(what.to_owned()),
        NoValue::Failed(failure) => Absent::Failed(note(failure)),
        NoValue::TooFewIterations(count) => Absent::TooFewSamples(count),
        NoValue::NotANumber => Absent::NotANumber,
        NoValue::PartlyCounted { .. } => Absent::NotCounted(none.to_string()),
    })?;
    Ok(Sampled {
        value: value.value,
        scale: value.scale,
        samples: samples(result, value.scale).into_owned(),
        left_out: value.left_out,
        operations: result.operations,
        counted: read_counts(result, value.cycles).filter(|_| value.scale == Scale::Counted),
    })
}

/// Keeps only values of one scale, and computes their median.
fn on_scale(measured: &mut Measured, scale: Scale) {
    for seed in &mut measured.seeds {
        if seed
            .value
            .as_ref()
            .is_ok_and(|sampled| sampled.scale != scale)
        {
            seed.value = Err(Absent::NotCounted(NOT_COUNTED.to_owned()));
        }
    }
    let values: Vec<f64> = measured
        .seeds
        .iter()
        .filter_map(|seed| Some(seed.value.as_ref().ok()?.value))
        .collect();
    measured.value = stats::median(&values);
}

fn read_counts(result: &WorkloadResult, estimate: Option<Cycles>) -> Option<Counted> {
    let median = |count| {
        stats::median_without_first(&per_operation(&result.counted, result.operations, count))
    };
    Some(Counted {
        kernel: median(|region| region.kernel)?,
        user: median(|region| region.user)?,
        deferred: deferred_work(result),
        time: stats::median_without_first(&result.samples)?,
        costly: cycles::costly_of_result(result)?,
        cycles: estimate,
    })
}

/// Returns the differences in guest time of the seeds that were counted on both sides.
fn times(direction: Direction, base: &Measured, new: &Measured) -> Vec<f64> {
    let pairs = base.seeds.iter().zip(&new.seeds);
    pairs
        .filter_map(|(old, new)| difference_percent(direction, time_of(old)?, time_of(new)?))
        .collect()
}

/// Returns the time per operation beside a counted value, if the run has both.
fn time_of(seed: &SeedValue) -> Option<f64> {
    Some(seed.value.as_ref().ok()?.counted?.time)
}

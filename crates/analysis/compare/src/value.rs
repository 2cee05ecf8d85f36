//! The value of a run: one function computes it, for every table, page, document, alert and
//! bisection.

use std::borrow::Cow;
use std::fmt;

use model::{
    Capabilities, Clock, Cycles, Metric, Outcome, Region, SubjectFailure, Unit, WorkloadResult,
};
use stats::{Better, Scores};

use crate::cycles;
use document::number;
use model::sanitize_line;

/// The scale of values. Values of different scales are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Counted instructions of the kernel and of user code for the workload.
    Counted,
    /// Values of the guest's clock or of the workload itself.
    Reported,
}

impl Scale {
    /// Returns the common scale of values: counted if one of them is, or if there is none. Values
    /// on the other scale then do not count.
    #[must_use]
    pub fn common(scales: impl IntoIterator<Item = Self>) -> Self {
        let mut scales = scales.into_iter().peekable();
        let is_counted = scales.peek().is_none() || scales.any(|scale| scale == Self::Counted);
        if is_counted {
            Self::Counted
        } else {
            Self::Reported
        }
    }

    /// Returns the unit of a metric's values on this scale: guest time is never called
    /// instructions.
    #[must_use]
    pub fn unit(self, metric: &Metric, clock: Clock) -> Unit {
        match (metric.unit(clock), self) {
            (Unit::InstructionsPerOperation, Self::Reported) => Unit::GuestTimePerOperation,
            (unit, _) => unit,
        }
    }
}

/// A run's value of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunValue {
    /// The value, per operation.
    pub value: f64,
    /// What one unit of it is.
    pub scale: Scale,
    /// How many first iterations it leaves out.
    pub left_out: usize,
    /// The estimate of cycles per operation, if costly instructions were counted.
    pub cycles: Option<Cycles>,
    /// Deferred work ([`deferred_work`]) beside a counted value, else zero.
    pub deferred: f64,
}

/// How the value of a run is computed from its iterations. Every heading over such values takes its
/// word from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// On a deterministic machine: the first iteration pays the warm-up, and is left out.
    MedianWithoutFirst,
    /// Of noisy runs: the trimmed geometric mean of all samples ([`stats::Scores`]), or the median
    /// if one sample is zero.
    TrimmedMean,
}

impl Estimator {
    /// Returns the estimator of a machine.
    #[must_use]
    pub fn for_machine(machine: Capabilities) -> Self {
        if machine.deterministic {
            Self::MedianWithoutFirst
        } else {
            Self::TrimmedMean
        }
    }

    /// Returns the word over a column of values.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::MedianWithoutFirst => "median",
            Self::TrimmedMean => "mean",
        }
    }

    /// Returns how many first iterations it leaves out.
    #[must_use]
    pub fn left_out(self) -> usize {
        match self {
            Self::MedianWithoutFirst => 1,
            Self::TrimmedMean => 0,
        }
    }

    /// Returns whether it leaves out samples at both ends of so many.
    pub(crate) fn is_trimmed(self, samples: usize) -> bool {
        self == Self::TrimmedMean && Scores::is_trimmed(samples)
    }

    /// Returns the value of iterations; `None` if there are too few.
    fn value(self, samples: &[f64]) -> Option<f64> {
        match self {
            Self::MedianWithoutFirst => stats::median_without_first(samples),
            Self::TrimmedMean => {
                let score = Scores::new(&[samples], Better::Higher)
                    .ok()
                    .map(|scores| scores.as_slice()[0].exp());
                score.or_else(|| stats::median(samples))
            }
        }
    }
}

/// Says what the values are: `median of the iterations without the first`.
impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MedianWithoutFirst => "median of the iterations without the first",
            Self::TrimmedMean => {
                "geometric mean of all iterations, the first among them; of five or more without a fifth at each end; the \
                 median if one is zero"
            }
        })
    }
}

/// Why a result has no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoValue<'a> {
    /// The kernel lacks a feature that the workload needs; the text names it.
    Unsupported(&'a str),
    /// The kernel or the workload failed: how.
    Failed(&'a SubjectFailure),
    /// No iteration is left without the first.
    TooFewIterations(usize),
    /// An iteration's value is negative or not a number.
    NotANumber,
    /// Only some iterations were counted.
    PartlyCounted {
        /// Iterations that were counted.
        counted: usize,
        /// Iterations that the result has, the first among them.
        iterations: usize,
    },
}

/// Why there is no value on the counted scale.
pub const NOT_COUNTED: &str = "not counted: only guest time is known";

impl fmt::Display for NoValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => write!(f, "not supported: {}", sanitize_line(what)),
            Self::Failed(failure) => {
                write!(
                    f,
                    "{} ({} stage)",
                    sanitize_line(&failure.reason.to_string()),
                    failure.stage
                )
            }
            Self::TooFewIterations(count) => {
                write!(
                    f,
                    "{}, none left without the first",
                    number::count(*count, "iteration")
                )
            }
            Self::NotANumber => f.write_str("an iteration's value is not a number"),
            Self::PartlyCounted {
                counted,
                iterations,
            } => {
                write!(
                    f,
                    "the instructions of {counted} of {iterations} iterations were counted"
                )
            }
        }
    }
}

/// Returns the value of a run's result, or why there is none.
///
/// Counted instructions of the kernel and of user code if available, else the value of the guest's
/// clock or of the workload itself, by the machine's [`Estimator`].
///
/// # Errors
/// If the kernel failed or lacks a feature, or if the samples give no value.
pub fn run_value(result: &WorkloadResult, machine: Capabilities) -> Result<RunValue, NoValue<'_>> {
    match &result.outcome {
        Outcome::Unsupported(what) => return Err(NoValue::Unsupported(what)),
        Outcome::Failed(failure) => return Err(NoValue::Failed(failure)),
        Outcome::Completed => {}
    }
    if result
        .samples
        .iter()
        .any(|sample| !(sample.is_finite() && *sample >= 0.0))
    {
        return Err(NoValue::NotANumber);
    }
    let counted = result.counted.len();
    let iterations = result.samples.len();
    let scale = match counted {
        0 => Scale::Reported,
        _ if counted == iterations => Scale::Counted,
        _ => {
            return Err(NoValue::PartlyCounted {
                counted,
                iterations,
            });
        }
    };
    let samples = samples(result, scale);
    let estimator = Estimator::for_machine(machine);
    let value = estimator
        .value(&samples)
        .ok_or(NoValue::TooFewIterations(iterations))?;
    Ok(RunValue {
        value,
        scale,
        left_out: estimator.left_out(),
        cycles: match scale {
            Scale::Counted => cycles::of_result(result),
            Scale::Reported => None,
        },
        deferred: match scale {
            Scale::Counted => deferred_work(result),
            Scale::Reported => 0.0,
        },
    })
}

/// Returns the instructions of interrupts and other tasks per operation: the mean over the
/// iterations without the first, as work that the row defers is done in batches, such as those of
/// RCU, and a batch of an earlier iteration stands for one that comes after the last.
#[must_use]
pub fn deferred_work(result: &WorkloadResult) -> f64 {
    let iterations = result.counted.get(1..).unwrap_or_default();
    let instructions: u64 = iterations
        .iter()
        .map(|region| region.interrupt + region.other)
        .sum();
    let operations = result.operations.max(1) * (iterations.len().max(1) as u64);
    instructions as f64 / operations as f64
}

/// Returns all iterations of a result on a scale, per operation, the first included.
#[must_use]
pub fn samples(result: &WorkloadResult, scale: Scale) -> Cow<'_, [f64]> {
    match scale {
        Scale::Counted => Cow::Owned(per_operation(
            &result.counted,
            result.operations,
            count_work,
        )),
        Scale::Reported => Cow::Borrowed(&result.samples),
    }
}

/// Returns the unit of a result's value on a scale, from its declaration; `None` if it has none.
#[must_use]
pub fn value_unit(
    result: &WorkloadResult,
    scale: Scale,
    clock: Clock,
) -> Option<Cow<'static, str>> {
    let cost = Metric::COST.unit(clock).name();
    let declared = result
        .declared
        .as_ref()
        .map_or(cost, |declared| declared.unit.clone());
    let is_cost = declared == Unit::InstructionsPerOperation.name() && scale == Scale::Reported;
    let unit = if is_cost {
        Unit::GuestTimePerOperation.name()
    } else {
        declared
    };
    (!unit.is_empty()).then_some(unit)
}

/// Returns the counted part of an iteration: without interrupts and other tasks.
#[must_use]
pub fn count_work(region: &Region) -> u64 {
    region.kernel + region.user
}

/// Returns a number of each iteration per operation.
#[must_use]
pub fn per_operation(regions: &[Region], operations: u64, count: fn(&Region) -> u64) -> Vec<f64> {
    regions
        .iter()
        .map(|region| count(region) as f64 / operations.max(1) as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use model::{Capabilities, Clock, MachineKind, Metric, Outcome, Region, Unit, WorkloadResult};

    use super::{Estimator, NoValue, RunValue, Scale, run_value};

    fn capabilities(kind: &str) -> Capabilities {
        kind.parse::<MachineKind>().unwrap().capabilities()
    }

    /// A result of 10 operations with unrelated guest time and counts.
    fn result(samples: &[f64], kernel: &[u64]) -> WorkloadResult {
        let regions = kernel.iter().map(|kernel| Region {
            kernel: *kernel,
            user: 10,
            interrupt: 900,
            other: 9000,
            ..Region::default()
        });
        WorkloadResult {
            workload: "getppid".to_owned(),
            operations: 10,
            declared: None,
            outcome: Outcome::Completed,
            samples: samples.to_vec(),
            counted: regions.collect(),
        }
    }

    #[test]
    fn instruction_counts_take_precedence_over_guest_time() {
        let exact = capabilities("exact");
        let value = |value, scale, left_out| {
            Ok(RunValue {
                value,
                scale,
                cycles: None,
                left_out,
                deferred: match scale {
                    Scale::Counted => 990.0,
                    Scale::Reported => 0.0,
                },
            })
        };
        assert_eq!(
            run_value(&result(&[1.0, 2.0, 3.0], &[990, 90, 110]), exact),
            value(11.0, Scale::Counted, 1)
        );
        assert_eq!(
            run_value(&result(&[9.0, 2.0, 3.0], &[]), exact),
            value(2.5, Scale::Reported, 1)
        );
        let imported = capabilities("imported");
        assert_eq!(
            run_value(&result(&[0.0, 2.0, 3.0], &[]), imported),
            value(2.0, Scale::Reported, 0)
        );
    }

    #[test]
    fn heading_names_how_the_value_is_computed() {
        let samples = [
            400.0, 100.0, 100.0, 100.0, 100.0, 200.0, 200.0, 200.0, 200.0, 100.0,
        ];
        for (kind, heading, phrase, value) in [
            ("exact", "median", "without the first", 100.0),
            (
                "vm",
                "mean",
                "all iterations, the first among them",
                141.421,
            ),
            (
                "local",
                "mean",
                "all iterations, the first among them",
                141.421,
            ),
            (
                "imported",
                "mean",
                "all iterations, the first among them",
                141.421,
            ),
        ] {
            let estimator = Estimator::for_machine(capabilities(kind));
            assert_eq!(estimator.heading(), heading, "{kind}");
            assert!(
                estimator.to_string().contains(phrase),
                "{kind}: {estimator}"
            );
            let found = run_value(&result(&samples, &[]), capabilities(kind)).unwrap();
            assert!((found.value - value).abs() < 0.01, "{kind}: {found:?}");
            assert_eq!(found.left_out, estimator.left_out());
        }
    }

    #[test]
    fn partly_counted_results_have_no_value() {
        let exact = capabilities("exact");
        let partly = NoValue::PartlyCounted {
            counted: 1,
            iterations: 2,
        };
        assert_eq!(run_value(&result(&[1.0, 2.0], &[9]), exact), Err(partly));
        assert_eq!(
            run_value(&result(&[1.0], &[9]), exact),
            Err(NoValue::TooFewIterations(1))
        );
        assert_eq!(
            run_value(&result(&[1.0, f64::NAN], &[]), exact),
            Err(NoValue::NotANumber)
        );
    }

    #[test]
    fn guest_time_has_another_unit_than_counts() {
        let unit = |scale: Scale, clock| scale.unit(&Metric::COST, clock);
        assert_eq!(
            unit(Scale::Counted, Clock::Instructions),
            Unit::InstructionsPerOperation
        );
        assert_eq!(
            unit(Scale::Reported, Clock::Instructions).name(),
            "guest ns/op"
        );
        assert_eq!(
            unit(Scale::Reported, Clock::Seconds),
            Unit::NanosecondsPerOperation
        );
    }
}

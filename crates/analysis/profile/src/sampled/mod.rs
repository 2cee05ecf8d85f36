//! Sampled profiles of two kernels, several boots each: the functions whose cost per operation
//! differs by more than the boots of one kernel differ. The lines add up to the total.
//!
//! The cost of a function is its samples times their period, over the operations of all boots;
//! `stats::Exposures` says how sure a difference is, and Benjamini and Hochberg's q holds for all
//! functions of a workload together.

mod files;
mod json;
mod render;
#[cfg(test)]
#[expect(clippy::print_stdout, reason = "rates for --nocapture")]
mod simulation;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;

use std::collections::BTreeMap;

use model::{CallPath, CallTree, SampledProfile, Sampling, Share};
use stats::{CommonScatter, Exposures, RateDifference};

use crate::calls::CallDifference;
use crate::ledger::{Ledger, LedgerLine, names};
use compare::Q_MAX;

pub use files::{FileDifference, FileSide, files_schema};
pub use json::{json, schema};
pub use render::{SampledProfiles, document};

/// A function with fewer samples on both sides together is not tested.
const SAMPLES_MIN: u64 = 10;
/// The line of samples whose stacks were not kept.
const UNKEPT: &str = "[too many stacks]";

/// A function of one share on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledLine {
    /// Whose code it is.
    pub share: Share,
    /// The function's name without suffixes.
    pub function: String,
    /// Samples of the base and of the new kernel.
    pub samples: [u64; 2],
    /// Its costs per operation, in the event's unit.
    pub cost: RateDifference,
    /// The false discovery rate among the workload's functions; `None` if it has too few samples
    /// to test.
    pub q: Option<f64>,
}

impl SampledLine {
    /// Returns whether the difference is more than chance.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.q.is_some_and(|q| q <= Q_MAX)
    }

    /// Returns the end of the difference's interval that is nearer to none: the change that is
    /// sure.
    fn sure(&self) -> f64 {
        self.cost.difference().abs() - self.cost.half.unwrap_or(f64::INFINITY)
    }

    /// Returns what lines are sorted by among those that are as significant.
    fn rank(&self) -> f64 {
        if self.is_significant() {
            self.sure()
        } else {
            self.cost.rates[0].max(self.cost.rates[1])
        }
    }
}

/// Lines that add up to a total.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// Significant ones first, the surest change first, then the others by cost.
    pub all: Vec<SampledLine>,
    /// Those that are not significant, together.
    pub rest: RateDifference,
    /// All of them together.
    pub total: RateDifference,
}

impl Lines {
    fn compute(merged: Merged, exposures: &Exposures, common: &CommonScatter) -> Self {
        let counts: Vec<[Vec<u64>; 2]> = merged.values().cloned().collect();
        let costs = exposures.differences(&counts, common);
        let lines = merged.into_keys().zip(&counts).zip(costs);
        let mut all: Vec<SampledLine> = lines
            .map(|(((share, function), counts), cost)| {
                let samples = counts.each_ref().map(|side| side.iter().sum::<u64>());
                SampledLine {
                    share,
                    function,
                    samples,
                    cost,
                    q: None,
                }
            })
            .collect();
        if exposures.groups().iter().all(|groups| *groups > 1) {
            test(&mut all);
        }
        let sum = |is_meant: &dyn Fn(&SampledLine) -> bool| {
            let mut sum = exposures.groups().map(|groups| vec![0; groups]);
            for (_, counts) in all.iter().zip(&counts).filter(|(line, _)| is_meant(line)) {
                sum.iter_mut()
                    .flatten()
                    .zip(counts.iter().flatten())
                    .for_each(|(sum, count)| *sum += count);
            }
            sum
        };
        let sums = exposures.differences(
            &[sum(&|_| true), sum(&|line| !line.is_significant())],
            common,
        );
        all.sort_by(|one, other| {
            let order = other.is_significant().cmp(&one.is_significant());
            order.then(other.rank().total_cmp(&one.rank()))
        });
        Self {
            all,
            rest: sums[1],
            total: sums[0],
        }
    }

    /// Returns those that differ significantly.
    #[must_use]
    pub fn significant(&self) -> &[SampledLine] {
        &self.all[..self
            .all
            .iter()
            .take_while(|line| line.is_significant())
            .count()]
    }
}

/// A workload's sampled profile on two kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledDifference {
    /// The workload that both kernels executed.
    pub workload: String,
    /// How both sides were sampled.
    pub sampling: Sampling,
    /// Boots of the base and of the new kernel.
    pub boots: [usize; 2],
    /// The functions that were executed when a sample was taken.
    pub functions: Lines,
    /// Entries to the kernel: system calls, faults, interrupts. They add up to the same total.
    pub entries: Lines,
    /// All of them together.
    pub total: RateDifference,
    /// Samples of work on each side.
    pub samples: [u64; 2],
    /// Samples of idle processors, which are no cost.
    pub idle: [u64; 2],
    /// Samples that the kernel had no room for.
    pub lost: [u64; 2],
    /// How often the kernel paused.
    pub throttled: [u64; 2],
    /// The stacks of both sides merged; costs in the event's unit.
    pub calls: CallDifference,
    /// What the exact machine counted for the same kernels, if that is known.
    pub counted: Option<Counted>,
}

/// Instructions that the new kernel executes more per operation on the exact machine, by function.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    added: BTreeMap<(Share, String), f64>,
    total: f64,
}

impl Counted {
    /// Returns those of a ledger.
    #[must_use]
    pub fn from_ledger(ledger: &Ledger) -> Self {
        let line =
            |line: &LedgerLine| ((line.share, line.function.clone()), ledger.line_added(line));
        let (base, new) = ledger.total(None);
        Self {
            added: ledger.lines.iter().map(line).collect(),
            total: ledger.added(base, new),
        }
    }

    /// Returns those of a sampled function; `None` if the exact machine did not execute it.
    fn added(&self, line: &SampledLine) -> Option<f64> {
        self.added
            .get(&(line.share, line.function.clone()))
            .copied()
    }
}

impl SampledDifference {
    /// Compares the profiles of the boots of both sides.
    ///
    /// # Errors
    /// If a side has none, or they were not sampled alike; the text says which.
    pub fn new(
        workload: &str,
        base: &[SampledProfile],
        new: &[SampledProfile],
    ) -> Result<Self, String> {
        let sides = [base, new];
        let sampling = base
            .first()
            .or(new.first())
            .ok_or("no boot of either kernel was sampled")?
            .sampling;
        if let Some(other) = sides
            .into_iter()
            .flatten()
            .find(|profile| profile.sampling != sampling)
        {
            return Err(format!(
                "boots were sampled by {} and by {}",
                describe_sampling(sampling),
                describe_sampling(other.sampling)
            ));
        }
        let exposures = sides.map(|side| {
            let exposures = side
                .iter()
                .map(|profile| profile.operations as f64 / sampling.period as f64);
            exposures.collect()
        });
        let exposures =
            Exposures::new(exposures).ok_or("one of the kernels has no sampled boot")?;
        let trees = sides.map(|side| side.iter().map(tree).collect::<Vec<CallTree>>());
        let functions = by_function(sides);
        // Functions are many and small: they tell best how boots scatter.
        let common = exposures.common_scatter(&functions.values().cloned().collect::<Vec<_>>());
        let functions = Lines::compute(functions, &exposures, &common);
        let entries = Lines::compute(by_entry(&trees, sampling.period), &exposures, &common);
        let sum =
            |part: fn(&SampledProfile) -> u64| sides.map(|side| side.iter().map(part).sum::<u64>());
        let calls = CallDifference::new(workload, &trees[0], &trees[1])
            .ok_or("no operations were sampled")?;
        Ok(Self {
            workload: workload.to_owned(),
            sampling,
            boots: sides.map(<[SampledProfile]>::len),
            total: functions.total,
            functions,
            entries,
            samples: sum(SampledProfile::samples),
            idle: sum(|profile| profile.idle),
            lost: sum(|profile| profile.lost),
            throttled: sum(|profile| profile.throttled),
            calls: CallDifference {
                unit: sampling.event.unit(),
                ..calls
            },
            counted: None,
        })
    }

    /// Returns whether there are enough boots to tell differences from noise.
    #[must_use]
    pub fn is_tested(&self) -> bool {
        self.boots.iter().all(|boots| *boots > 1)
    }

    /// Returns one sentence: the whole difference, and the functions that it is in.
    #[must_use]
    pub fn sentence(&self) -> String {
        let unit = self.sampling.event.unit();
        let [base, _] = self.total.rates;
        // As a comparison shows it: positive is better.
        let percent = |value: f64| 100.0 * value / base.max(f64::MIN_POSITIVE);
        let added = self.total.difference();
        let whole = match self.total.half {
            Some(half) => {
                format!(
                    "{added:+.1} ±{half:.1} {unit} per operation ({:+.1} ±{:.1}%, + is better)",
                    percent(0.0 - added),
                    percent(half)
                )
            }
            None => format!(
                "{added:+.1} {unit} per operation ({:+.1}%, + is better)",
                percent(0.0 - added)
            ),
        };
        let tested = self
            .functions
            .all
            .iter()
            .filter(|line| line.q.is_some())
            .count();
        let first = self.functions.significant();
        let finding = if !self.is_tested() {
            "one boot cannot tell a difference from noise: give --boots 5".to_owned()
        } else if first.is_empty() {
            format!("none of {tested} functions differs by more than the boots do")
        } else {
            let named = first
                .iter()
                .take(3)
                .map(|line| format!("{} {:+.1}", label(line), line.cost.difference()));
            let named: Vec<String> = named.collect();
            let count = first.len();
            let verb = if count == 1 {
                "function differs"
            } else {
                "functions differ"
            };
            format!(
                "{count} of {tested} {verb}; most surely {}",
                named.join(", ")
            )
        };
        format!("{}: {whole}; {finding}", self.workload)
    }
}

/// Describes how samples were taken.
pub(crate) fn describe_sampling(sampling: Sampling) -> String {
    let Sampling {
        event,
        scope,
        period,
    } = sampling;
    let scope = match scope {
        model::SamplingScope::System => "all processors",
        model::SamplingScope::Processes => "the workload's processes",
    };
    format!(
        "{} every {period} {} on {scope}",
        event.name(),
        event.unit()
    )
}

/// Returns a line's name for people, with the share unless it is the kernel's work for the
/// workload.
pub(crate) fn label(line: &SampledLine) -> String {
    match line.share {
        Share::Kernel | Share::User => line.function.clone(),
        Share::Interrupt => format!("{} (irq)", line.function),
        Share::Other => format!("{} (other)", line.function),
    }
}

/// The samples of each boot of both sides, by share and name.
type Merged = BTreeMap<(Share, String), [Vec<u64>; 2]>;

fn by_function(sides: [&[SampledProfile]; 2]) -> Merged {
    let leaves = sides.map(|side| side.iter().map(leaves).collect::<Vec<_>>());
    let plain = names::Plain::new(
        leaves
            .iter()
            .flatten()
            .flatten()
            .map(|(_, symbol, _)| symbol.as_str()),
    );
    let mut merged = Merged::new();
    for (side, boots) in leaves.iter().enumerate() {
        for (boot, (share, symbol, samples)) in boots
            .iter()
            .enumerate()
            .flat_map(|(n, boot)| boot.iter().map(move |l| (n, l)))
        {
            let key = (*share, names::key(plain.displayed_name(symbol)));
            let counts = merged
                .entry(key)
                .or_insert_with(|| sides.map(|side| vec![0; side.len()]));
            counts[side][boot] += samples;
        }
    }
    merged
}

/// Returns the functions that a boot's samples were taken in, and how many in each.
fn leaves(profile: &SampledProfile) -> Vec<(Share, String, u64)> {
    let mut leaves = Vec::new();
    for stack in &profile.stacks {
        if let Some(function) = stack.functions.last() {
            leaves.push((stack.share, function.clone(), stack.samples));
        }
    }
    if profile.unkept > 0 {
        leaves.push((Share::Other, UNKEPT.to_owned(), profile.unkept));
    }
    leaves
}

/// Returns the samples below each entry to the kernel. A boot is merged with itself, which gives
/// its chains their names.
fn by_entry(trees: &[Vec<CallTree>; 2], period: u64) -> Merged {
    let mut merged = Merged::new();
    for (side, boots) in trees.iter().enumerate() {
        for (boot, tree) in boots.iter().enumerate() {
            let tree = std::slice::from_ref(tree);
            let entries = CallDifference::new("", tree, tree)
                .map(|calls| calls.entries())
                .unwrap_or_default();
            for entry in entries {
                let counts = merged
                    .entry((Share::Kernel, entry.name))
                    .or_insert_with(|| trees.each_ref().map(|side| vec![0; side.len()]));
                counts[side][boot] += entry.all[0] / period;
            }
        }
    }
    merged
}

/// Gives each function with enough samples its q.
fn test(lines: &mut [SampledLine]) {
    let mut tested: Vec<&mut SampledLine> = lines
        .iter_mut()
        .filter(|line| line.samples.iter().sum::<u64>() >= SAMPLES_MIN)
        .collect();
    let p: Vec<f64> = tested.iter().map(|line| line.cost.p).collect();
    for (line, q) in tested
        .iter_mut()
        .zip(stats::benjamini_hochberg(&p).unwrap_or_default())
    {
        line.q = Some(q);
    }
}

/// Returns the stacks of a boot as a call tree whose instructions are costs.
fn tree(profile: &SampledProfile) -> CallTree {
    let mut paths = Vec::new();
    for stack in &profile.stacks {
        paths.push((stack.share, stack.functions.clone(), stack.samples));
    }
    if profile.unkept > 0 {
        paths.push((Share::Other, vec![UNKEPT.to_owned()], profile.unkept));
    }
    let paths = paths
        .into_iter()
        .map(|(share, functions, samples)| CallPath {
            share,
            functions,
            instructions: samples.saturating_mul(profile.sampling.period),
            calls: 0,
        });
    CallTree {
        operations: profile.operations,
        paths: paths.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::SampledDifference;
    use model::SamplingEvent;

    use crate::sampled::synthetic::boot;

    #[test]
    fn lines_add_up_to_the_total() {
        let base = [
            boot(&[("a;f", 100), ("a;g.isra.0", 50), ("[user]", 7)]),
            boot(&[("a;f", 110), ("a;g", 52)]),
        ];
        let mut new = [
            boot(&[("a;f", 90), ("a;h", 55)]),
            boot(&[("b;f", 99), ("a;h", 45)]),
        ];
        new[0].unkept = 3;
        let found = SampledDifference::new("w", &base, &new).unwrap();
        for side in 0..2 {
            let sum: f64 = found
                .functions
                .all
                .iter()
                .map(|line| line.cost.rates[side])
                .sum();
            assert!((sum - found.total.rates[side]).abs() < 1e-9);
            let sum: f64 = found
                .entries
                .all
                .iter()
                .map(|line| line.cost.rates[side])
                .sum();
            assert!(
                (sum - found.total.rates[side]).abs() < 1e-9,
                "{:?}",
                found.entries
            );
            assert_eq!(found.calls.root.all[side], found.samples[side] * 1000);
        }
        assert_eq!(found.samples, [319, 292]);
        let names: Vec<&str> = found
            .functions
            .all
            .iter()
            .map(|line| line.function.as_str())
            .collect();
        assert_eq!(
            names.len(),
            5,
            "{names:?}: g with and without suffix is one"
        );
    }

    #[test]
    fn single_boots_test_nothing() {
        let found =
            SampledDifference::new("w", &[boot(&[("f", 10)])], &[boot(&[("f", 10_000)])]).unwrap();
        assert!(found.functions.significant().is_empty() && !found.is_tested());
        assert!(
            found.sentence().contains("one boot cannot tell"),
            "{}",
            found.sentence()
        );
    }

    #[test]
    fn boots_sampled_differently_are_not_compared() {
        let mut other = boot(&[("f", 10)]);
        other.sampling.event = SamplingEvent::Cycles;
        let why = SampledDifference::new("w", &[boot(&[("f", 10)])], &[other]).unwrap_err();
        assert!(why.contains("cpu-clock") && why.contains("cycles"), "{why}");
        assert_eq!(
            SampledDifference::new("w", &[boot(&[("f", 1)])], &[]).unwrap_err(),
            "one of the kernels has no sampled boot"
        );
    }
}

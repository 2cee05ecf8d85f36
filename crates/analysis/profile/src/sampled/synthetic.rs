//! Make-believe boots that are sampled, for tests and benches: how often a kernel against itself
//! shows a function, and whether a slower function comes first.

use model::{SampledProfile, SampledStack, Sampling, SamplingEvent, SamplingScope, Share};
use stats::synthetic::Chance;

use crate::sampled::SampledDifference;

const BOOTS: usize = 5;
/// Functions, the largest with a fifth of all samples.
const FUNCTIONS: usize = 150;
/// Samples of a boot (3 s at 4 kHz), and how far a boot as a whole and each of its functions
/// scatter beyond chance.
const SAMPLES: f64 = 12_000.0;
const OF_BOOT: f64 = 0.03;
const OF_FUNCTION: f64 = 0.02;

/// One boot, with one function slower.
fn make_believe(chance: &mut Chance, slower: Option<(usize, f64)>) -> SampledProfile {
    let whole = (OF_BOOT * chance.normal()).exp();
    let names: Vec<String> = (0..FUNCTIONS)
        .map(|n| format!("entry;function_{n}"))
        .collect();
    let counts: Vec<u64> = (0..FUNCTIONS)
        .map(|n| {
            let share = share(n);
            let factor =
                slower.map_or(1.0, |(which, factor)| if which == n { factor } else { 1.0 });
            let mean = SAMPLES * share * factor * whole * (OF_FUNCTION * chance.normal()).exp();
            poisson(chance, mean)
        })
        .collect();
    let stacks: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(counts).collect();
    boot(&stacks)
}

fn poisson(chance: &mut Chance, mean: f64) -> u64 {
    if mean > 50.0 {
        return (mean + mean.sqrt() * chance.normal()).round().max(0.0) as u64;
    }
    let mut count = 0;
    let mut product = chance.uniform();
    while product > (-mean).exp() {
        count += 1;
        product *= chance.uniform();
    }
    count
}

fn side(chance: &mut Chance, slower: Option<(usize, f64)>) -> Vec<SampledProfile> {
    (0..BOOTS).map(|_| make_believe(chance, slower)).collect()
}

/// Returns a function's share of the samples.
fn share(which: usize) -> f64 {
    0.2 / (1.0 + which as f64).powf(1.1)
}

/// Returns a function's share of the samples, in percent.
#[must_use]
pub fn share_percent(which: usize) -> f64 {
    100.0 * share(which)
}

fn compared(base: &[SampledProfile], new: &[SampledProfile]) -> Vec<String> {
    let Ok(found) = SampledDifference::new("w", base, new) else {
        return Vec::new();
    };
    let significant = found.functions.significant().iter();
    significant.map(|line| line.function.clone()).collect()
}

/// Returns how many of these comparisons of a kernel with itself show a function.
#[must_use]
pub fn equal_pairs_that_differ(pairs: u64) -> u64 {
    let mut count = 0;
    for seed in 0..pairs {
        let mut chance = Chance::new(seed);
        let base = side(&mut chance, None);
        let new = side(&mut chance, None);
        count += u64::from(!compared(&base, &new).is_empty());
    }
    count
}

/// Returns in how many comparisons a function comes first that takes 20 % longer; the functions are
/// ordered by their share.
#[must_use]
pub fn pairs_with_slower_first(which: usize, pairs: u64) -> u64 {
    let mut count = 0;
    for seed in 0..pairs {
        let mut chance = Chance::new(1000 + seed);
        let base = side(&mut chance, None);
        let new = side(&mut chance, Some((which, 1.2)));
        let is_first = compared(&base, &new).first() == Some(&format!("function_{which}"));
        count += u64::from(is_first);
    }
    count
}

/// Returns a boot of 10,000 operations, sampled each microsecond: chains separated by `;`, and
/// samples.
#[must_use]
pub fn boot(stacks: &[(&str, u64)]) -> SampledProfile {
    let stacks = stacks.iter().map(|&(chain, samples)| SampledStack {
        share: if chain == "[user]" {
            Share::User
        } else {
            Share::Kernel
        },
        functions: chain.split(';').map(str::to_owned).collect(),
        samples,
    });
    SampledProfile {
        sampling: Sampling {
            event: SamplingEvent::Timer,
            scope: SamplingScope::System,
            period: 1000,
        },
        processors: 2,
        operations: 10_000,
        idle: 100,
        lost: 0,
        throttled: 0,
        unkept: 0,
        stacks: stacks.collect(),
    }
}

//! How often a sampled profile of one kernel against itself shows a function, and whether it finds a slower one: with
//! make-believe boots, and with real samples of one program (`data/aa_counts.txt`: functions, and the samples of 12 runs of
//! A, of B, which is the same, and of C, which also calls getppid once in 20 faults).

use crate::SampledDifference;
use crate::tests::boot;
use model::SampledProfile;
use stats::synthetic::Chance;

const PAIRS: u64 = 200;
const BOOTS: usize = 5;
/// Functions, the largest with a fifth of all samples.
const FUNCTIONS: usize = 150;
/// Samples of a boot (3 s at 4 kHz), and how far a boot as a whole and each of its functions scatter beyond chance.
const SAMPLES: f64 = 12_000.0;
const OF_BOOT: f64 = 0.03;
const OF_FUNCTION: f64 = 0.02;

/// One boot, with one function slower.
fn make_believe(chance: &mut Chance, slower: Option<(usize, f64)>) -> SampledProfile {
    let whole = (OF_BOOT * chance.normal()).exp();
    let names: Vec<String> = (0..FUNCTIONS).map(|n| format!("entry;function_{n}")).collect();
    let counts: Vec<u64> = (0..FUNCTIONS)
        .map(|n| {
            let share = 0.2 / (1.0 + n as f64).powf(1.1);
            let factor = slower.map_or(1.0, |(which, factor)| if which == n { factor } else { 1.0 });
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
    let (mut count, mut product) = (0, chance.uniform());
    while product > (-mean).exp() {
        count += 1;
        product *= chance.uniform();
    }
    count
}

fn side(chance: &mut Chance, slower: Option<(usize, f64)>) -> Vec<SampledProfile> {
    (0..BOOTS).map(|_| make_believe(chance, slower)).collect()
}

#[test]
fn kernel_against_itself_rarely_shows_a_function() {
    let shown = (0..PAIRS).filter(|seed| {
        let mut chance = Chance::new(*seed);
        let (base, new) = (side(&mut chance, None), side(&mut chance, None));
        !SampledDifference::new("w", &base, &new).unwrap().functions.significant().is_empty()
    });
    let shown = shown.count();
    println!("{shown} of {PAIRS} pairs of one kernel show a function");
    assert!(shown * 20 <= PAIRS as usize, "{shown}");
}

#[test]
fn slower_function_comes_first() {
    let pairs = PAIRS / 4;
    for which in [0, 2, 5, 10] {
        let mut first = 0;
        for seed in 0..pairs {
            let mut chance = Chance::new(1000 + seed);
            let (base, new) = (side(&mut chance, None), side(&mut chance, Some((which, 1.2))));
            let found = SampledDifference::new("w", &base, &new).unwrap();
            let name = found.functions.significant().first().map(|line| line.function.clone());
            first += u64::from(name == Some(format!("function_{which}")));
        }
        let share = 20.0 / (1.0 + which as f64).powf(1.1);
        println!("function with {share:.1} % of the samples, 20 % slower: first in {first} of {pairs} pairs");
        assert!(which > 2 || first * 10 >= pairs * 8, "{which}: {first}");
    }
}

/// The runs of a letter, as boots.
fn real(letter: usize) -> Vec<SampledProfile> {
    let text = include_str!("data/aa_counts.txt");
    let rows: Vec<(&str, Vec<u64>)> = text
        .lines()
        .map(|line| {
            let (name, counts) = line.split_once('\t').unwrap();
            (name, counts.split(' ').map(|count| count.parse().unwrap()).collect())
        })
        .collect();
    (12 * letter..12 * (letter + 1))
        .map(|run| boot(&rows.iter().map(|(name, counts)| (*name, counts[run])).collect::<Vec<_>>()))
        .collect()
}

/// Takes some runs by chance, and leaves the others.
fn split(chance: &mut Chance, mut runs: Vec<SampledProfile>, count: usize) -> [Vec<SampledProfile>; 2] {
    let taken = (0..count).map(|_| runs.swap_remove(chance.below(runs.len()))).collect();
    [taken, runs]
}

#[test]
fn real_samples_of_one_program_agree() {
    let same: Vec<SampledProfile> = real(0).into_iter().chain(real(1)).collect();
    let cause = ["getppid", "pid", "syscall", "SYSCALL"];
    for count in [5, 8] {
        let (mut shown, mut named) = (0, 0);
        for seed in 0..PAIRS {
            let mut chance = Chance::new(seed);
            let [base, rest] = split(&mut chance, same.clone(), count);
            let [new, _] = split(&mut chance, rest, count);
            shown += u64::from(!SampledDifference::new("w", &base, &new).unwrap().functions.significant().is_empty());
            if seed % 8 > 0 {
                continue;
            }
            let [other, _] = split(&mut chance, real(2), count);
            let found = SampledDifference::new("w", &base, &other).unwrap();
            let is_cause = |name: &str| cause.iter().any(|part| name.contains(part));
            named += u64::from(found.functions.significant().iter().take(5).any(|line| is_cause(&line.function)));
        }
        println!(
            "{count} runs a side: {shown} of {PAIRS} equal pairs show a function, {named} of {} others name the cause",
            PAIRS / 8
        );
        assert!(shown * 20 <= PAIRS, "{count} runs: {shown}");
    }
}

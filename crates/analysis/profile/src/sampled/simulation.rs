//! How often a sampled profile of one kernel against itself shows a function, and whether it finds
//! a slower one: with the boots of `synthetic`, and with real samples of one program
//! (`data/aa_counts.txt`: functions, and the samples of 12 runs of A, of B, which is the same, and
//! of C, which also calls getppid once in 20 faults).

use crate::sampled::SampledDifference;
use crate::sampled::synthetic::{
    boot, equal_pairs_that_differ, pairs_with_slower_first, share_percent,
};
use model::SampledProfile;
use stats::synthetic::Chance;

const PAIRS: u64 = 200;

#[test]
fn kernel_against_itself_rarely_shows_a_function() {
    let shown = equal_pairs_that_differ(PAIRS);
    assert!(shown * 20 <= PAIRS, "{shown} of {PAIRS}");
}

#[test]
fn slower_function_comes_first() {
    let pairs = PAIRS / 4;
    for which in [0, 2, 5, 10] {
        let first = pairs_with_slower_first(which, pairs);
        let share = share_percent(which);
        println!(
            "function with {share:.1} % of the samples, 20 % slower: first in {first} of {pairs} pairs"
        );
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
            (
                name,
                counts
                    .split(' ')
                    .map(|count| count.parse().unwrap())
                    .collect(),
            )
        })
        .collect();
    (12 * letter..12 * (letter + 1))
        .map(|run| {
            boot(
                &rows
                    .iter()
                    .map(|(name, counts)| (*name, counts[run]))
                    .collect::<Vec<_>>(),
            )
        })
        .collect()
}

/// Takes some runs by chance, and leaves the others.
fn split(
    chance: &mut Chance,
    mut runs: Vec<SampledProfile>,
    count: usize,
) -> [Vec<SampledProfile>; 2] {
    let taken = (0..count)
        .map(|_| runs.swap_remove(chance.below(runs.len())))
        .collect();
    [taken, runs]
}

#[test]
fn real_samples_of_one_program_agree() {
    let same: Vec<SampledProfile> = real(0).into_iter().chain(real(1)).collect();
    let cause = ["getppid", "pid", "syscall", "SYSCALL"];
    for count in [5, 8] {
        let mut shown = 0;
        let mut named = 0;
        for seed in 0..PAIRS {
            let mut chance = Chance::new(seed);
            let [base, rest] = split(&mut chance, same.clone(), count);
            let [new, _] = split(&mut chance, rest, count);
            shown += u64::from(
                !SampledDifference::new("w", &base, &new)
                    .unwrap()
                    .functions
                    .significant()
                    .is_empty(),
            );
            if seed % 8 > 0 {
                continue;
            }
            let [other, _] = split(&mut chance, real(2), count);
            let found = SampledDifference::new("w", &base, &other).unwrap();
            let mut first = found.functions.significant().iter().take(5);
            named +=
                u64::from(first.any(|line| cause.iter().any(|part| line.function.contains(part))));
        }
        println!(
            "{count} runs a side: {shown} of {PAIRS} equal pairs show a function, {named} of {} others name the cause",
            PAIRS / 8
        );
        assert!(shown * 20 <= PAIRS, "{count} runs: {shown}");
    }
}

//! How often paired differences are judged wrong where chance arranges both sides, and that more
//! pairs find more.
#![expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the table"
)]

use stats::synthetic::{Layouts, PairRule};

const TRIALS: usize = 4000;
const SEED: u64 = 45;
/// The most that any cell may be wrong by.
const MOST: f64 = 0.065;

#[test]
fn arrangements_by_chance_rarely_raise_false_alarms() {
    let error = (MOST * (1.0 - MOST) / TRIALS as f64).sqrt();
    let mut faults = Vec::new();
    for layouts in Layouts::ALL {
        for pairs in [1, 2, 3, 5, 10, 20] {
            let seen = layouts.measure(pairs, PairRule::CHOSEN, TRIALS, SEED);
            let line = format!("{:<12} {pairs:>2} pairs: {seen:?}", layouts.name());
            println!("{line}");
            let most = seen.false_alarms.max(seen.beyond).max(seen.false_same);
            if most > MOST + 2.0 * error {
                faults.push(line);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn more_pairs_find_more_by_moderated_rule_alone() {
    for layouts in Layouts::ALL {
        let found = |rule, pairs| layouts.measure(pairs, rule, TRIALS, SEED).found;
        let moderated = [2, 5, 10, 20].map(|pairs| found(PairRule::CHOSEN, pairs));
        let unanimous = [5, 10, 20].map(|pairs| found(PairRule::Unanimous, pairs));
        println!("{:<12} {moderated:?} {unanimous:?}", layouts.name());
        assert!(moderated.windows(2).all(|pair| pair[0] + 0.05 < pair[1]));
        assert!(moderated[3] > 0.7);
        // What it replaced.
        assert!(unanimous[0] > unanimous[1] && unanimous[1] > unanimous[2]);
    }
}

#[test]
fn one_unanimous_pair_is_wrong_half_the_time() {
    let seen = Layouts::Normal.measure(1, PairRule::Unanimous, TRIALS, SEED);
    assert!(seen.false_alarms > 0.4, "{seen:?}");
}

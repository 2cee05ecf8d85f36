//! How often sides that take turns are called different without a difference, and how often they
//! are with one, for many kinds of noise.
#![expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the table"
)]

use stats::Sequential;
use stats::synthetic::{Disturbed, Peer};

const TRIALS: usize = 1500;
const SEED: u64 = 45;
/// Trials of plans of looks: each takes as long as its looks.
const PLANS: usize = 500;

/// Returns the most that a share may show that should be at most so large: two standard errors more.
fn most(share: f64, trials: usize) -> f64 {
    share + 2.0 * (share * (1.0 - share) / trials as f64).sqrt()
}

/// Interference of a fixed period meets one side more often than chance does.
fn is_periodic(kind: Disturbed) -> bool {
    matches!(kind, Disturbed::PeriodFour | Disturbed::Sawtooth)
}

#[test]
fn no_kind_of_noise_raises_false_alarms() {
    let mut faults = Vec::new();
    for kind in Disturbed::ALL {
        for groups in [3, 5, 10, 20] {
            let alarms = |peer: Peer| kind.measure(peer, groups, 0.0, TRIALS, SEED);
            let found = |peer: Peer| kind.measure(peer, groups, 1.0, TRIALS, SEED);
            let ours = alarms(Peer::Ours);
            let neighbours = alarms(Peer::Neighbours);
            let line = format!(
                "{:<17} {groups:>2} groups: {ours:.4} {:.3}, neighbours {neighbours:.4} {:.3}",
                kind.name(),
                found(Peer::Ours),
                found(Peer::Neighbours),
            );
            println!("{line}");
            let of_all = if is_periodic(kind) { 0.085 } else { 0.065 };
            if neighbours > most(0.065, TRIALS) || ours > most(of_all, TRIALS) {
                faults.push(line);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn looks_at_neighbours_raise_few_false_alarms() {
    let mut faults = Vec::new();
    for kind in Disturbed::ALL {
        for groups in [10, 20] {
            let plan = Sequential::new(groups);
            let alarms = kind.measure_looks(&plan, true, 0.0, PLANS, SEED);
            let line = format!("{:<17} up to {groups:>2} groups: {alarms:.4}", kind.name());
            println!("{line}");
            let share = if is_periodic(kind) { 0.085 } else { 0.065 };
            if alarms > most(share, PLANS) {
                faults.push(line);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_neighbours_share_hides_no_difference() {
    for (kind, least) in [
        (Disturbed::Common, 0.40),
        (Disturbed::Thermal, 0.40),
        (Disturbed::DayShift, 0.40),
        (Disturbed::MemoryNine, 0.30),
    ] {
        let found = |peer: Peer| kind.measure(peer, 10, 1.0, TRIALS, SEED);
        let ours = found(Peer::Ours);
        let neighbours = found(Peer::Neighbours);
        println!("{:<17} {ours:.3}, neighbours {neighbours:.3}", kind.name());
        assert!(neighbours >= least && neighbours > ours, "{kind:?}");
    }
}

#[test]
fn half_of_the_kinds_are_kept_back() {
    let kept: Vec<_> = Disturbed::ALL
        .iter()
        .filter(|kind| kind.is_kept_back())
        .map(|kind| kind.name())
        .collect();
    println!("{kept:?}");
    assert!((7..=12).contains(&kept.len()), "{kept:?}");
}

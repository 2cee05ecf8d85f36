//! How often sides that take turns are called different without a difference, for many kinds of
//! noise.
#![expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the table"
)]

use stats::synthetic::{Disturbed, Peer};

const TRIALS: usize = 1500;
const SEED: u64 = 45;

#[test]
fn no_kind_of_noise_raises_false_alarms() {
    let most = 0.065 + 2.0 * (0.065_f64 * 0.935 / TRIALS as f64).sqrt();
    let mut faults = Vec::new();
    for kind in Disturbed::ALL {
        for groups in [10, 20] {
            let [ours, neighbours] = [Peer::Ours, Peer::Neighbours]
                .map(|peer| kind.measure(peer, groups, 0.0, TRIALS, SEED));
            let [found, by_neighbours] = [Peer::Ours, Peer::Neighbours]
                .map(|peer| kind.measure(peer, groups, 1.0, TRIALS, SEED));
            let line = format!(
                "{:<17} {groups:>2} groups: {ours:.4} {found:.3}, neighbours {neighbours:.4} {by_neighbours:.3}",
                kind.name()
            );
            println!("{line}");
            if neighbours > most {
                faults.push(line);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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

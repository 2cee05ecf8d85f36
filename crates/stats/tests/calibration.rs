//! How often ratings are wrong, measured on seeded noise: no more often than they claim.
#![expect(clippy::print_stdout, reason = "who reads the test's output reads the table")]

use stats::synthetic::{Calibration, Design, Kind};

/// More trials show smaller faults and take longer.
const TRIALS: usize = 4000;
const SEED: u64 = 6;

const DESIGNS: [Design; 4] = [
    Design { groups: 5, values: 10, history: 0 },
    Design { groups: 3, values: 10, history: 10 },
    Design { groups: 5, values: 10, history: 30 },
    Design { groups: 1, values: 10, history: 30 },
];

fn all() -> impl Iterator<Item = (Kind, Design, Calibration)> {
    let cells = DESIGNS.into_iter().flat_map(|design| Kind::ALL.map(|kind| (kind, design)));
    cells.map(|(kind, design)| (kind, design, Calibration::measure(kind, design, TRIALS, SEED)))
}

#[test]
fn ratings_are_as_sure_as_they_say() {
    println!("kind            groups values history  false alarms  coverage  power  false same  same");
    let mut faults = Vec::new();
    for (kind, design, measured) in all() {
        let Design { groups, values, history } = design;
        let Calibration { false_alarms, coverage, power, false_same, same, .. } = measured;
        let line = format!(
            "{:<15} {groups:>6} {values:>6} {history:>7} {false_alarms:>13.4} {coverage:>9.4} {power:>6.3} {false_same:>11.4} {same:>5.3}",
            kind.name()
        );
        println!("{line}");
        let most = 0.05 + 2.0 * measured.error();
        if false_alarms > most || false_same > most || !(0.93..=0.97).contains(&coverage) {
            faults.push(line);
        }
    }
    assert!(faults.is_empty(), "wrong more often than they say:\n{}", faults.join("\n"));
}

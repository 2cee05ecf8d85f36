//! How well change points are found, measured on seeded noise.
#![expect(clippy::print_stdout, reason = "who reads the test's output reads the table")]

use stats::synthetic::{Noise, Quality, Trials};
use stats::{Criteria, changes};

const SEED: u64 = 2;

fn measure(noise: Noise, step: f64, count: usize) -> Quality {
    let trials = Trials::of(noise, step, count, SEED);
    let places = |points: &Vec<f64>| {
        let found = changes(points, &Criteria::default()).unwrap_or_default();
        found.iter().map(|change| change.at).collect::<Vec<_>>()
    };
    Quality::of(&trials, &trials.series.iter().map(places).collect::<Vec<_>>())
}

#[test]
fn steps_are_found_and_nothing_else() {
    let mut faults = Vec::new();
    for noise in Noise::ALL {
        let (none, step) = (measure(noise, 0.0, 3000), measure(noise, 2.0, 2000));
        let line = format!(
            "{:<14} false alarms {:.4}, recall {:.3}, precision {:.3}",
            noise.name(),
            none.found,
            step.recall,
            step.precision
        );
        println!("{line}");
        if none.found > 0.01 || step.recall < 0.85 || step.precision < 0.85 {
            faults.push(line);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

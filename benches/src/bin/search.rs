//! Prints figures of searches for steps: how often they are right on seeded noise, and for how many runs.
//!
//! But for the seconds, each run prints the same. Like the other benches it fails only when it cannot print.

use std::io::Write;
use std::process::ExitCode;

use stats::synthetic::{Line, PLACES, Severals, Singles, Start};

const SEED: u64 = 20_261_122;
const TRIALS: usize = 1000;
/// Bisections of pure noise.
const NOISE: usize = 200;

fn main() -> ExitCode {
    match figures() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With nobody to tell, the exit code still does.
            writeln!(std::io::stderr(), "benches: {error:#}").ok();
            ExitCode::FAILURE
        }
    }
}

fn figures() -> anyhow::Result<()> {
    singles()?;
    severals()
}

/// What is asked of a search for one step: share that is right, and runs.
const GOALS: [(f64, f64, &str); 5] = [
    (0.5, 0.0, ""),
    (1.0, 0.0, "97 % in 210 runs"),
    (2.0, 0.0, "97 % in 70 runs"),
    (4.0, 0.0, "97 % in 30 runs"),
    (4.0, 1.0, "95 %"),
];

fn singles() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "One step among {PLACES} places, {TRIALS} searches each; deviation of a run is 1, a place costs 5 runs, ends included"
    )?;
    writeln!(
        out,
        "{:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}  goal",
        "height", "bias", "right", "claimed", "refused", "runs", "places"
    )?;
    for (height, bias, goal) in GOALS {
        let line = Line { height, bias, start: Start::EachRun };
        let Singles { trials, right, claimed, refused, runs, places } = Singles::play(line, TRIALS, SEED);
        let (of, answered) = (trials as f64, (trials - refused).max(1) as f64);
        writeln!(
            out,
            "{height:>6} {bias:>6} {:>8.3} {:>8.3} {refused:>8} {:>8.1} {:>8.1}  {goal}",
            right as f64 / of,
            claimed / answered,
            runs as f64 / of,
            places as f64 / of
        )?;
    }
    let noise = Singles::play(Line { height: 0.0, bias: 0.0, start: Start::EachRun }, NOISE, SEED);
    writeln!(out, "pure noise refused: {} of {}  goal 199", noise.refused, noise.trials)?;
    Ok(())
}

fn severals() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nSeveral steps of +4, +6 or -4 among {PLACES} places, {TRIALS} searches each")?;
    writeln!(out, "{:>6} {:>8} {:>10} {:>8} {:>8}  goal", "steps", "recall", "precision", "runs", "places")?;
    for (count, goal) in [(1, ""), (2, "90 % at 97 %"), (3, "88 % at 97 %"), (5, "80 % at 97 %")] {
        let played = Severals::play(count, TRIALS, SEED);
        let each = |sum: usize| sum as f64 / played.trials as f64;
        writeln!(
            out,
            "{count:>6} {:>8.3} {:>10.3} {:>8.1} {:>8.1}  {goal}",
            played.recall(),
            played.precision(),
            each(played.runs),
            each(played.places)
        )?;
    }
    Ok(())
}

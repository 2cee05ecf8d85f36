//! How often searches for steps are right on seeded noise, and for how many runs: the small form of
//! what `make bench` prints.
#![expect(
    clippy::print_stdout,
    reason = "who reads the test's output reads the table"
)]

use stats::synthetic::{By, Line, Severals, Singles, Start};

const SEED: u64 = 7;
const TRIALS: usize = 100;

/// Lets a share lie two standard errors below what the many trials of the bench must show.
fn floor(share: f64, count: usize) -> f64 {
    share - 2.0 * (share * (1.0 - share) / count as f64).sqrt()
}

fn line(height: f64, bias: f64) -> Line {
    Line {
        height,
        bias,
        start: Start::EachRun,
    }
}

#[test]
fn one_step_is_found_with_few_runs() {
    let mut faults = Vec::new();
    for (height, bias, right_min, runs_max) in [
        (1.0, 0.0, 0.97, 210.0),
        (2.0, 0.0, 0.97, 70.0),
        (4.0, 0.0, 0.97, 30.0),
        (4.0, 1.0, 0.95, f64::INFINITY),
    ] {
        let Singles {
            trials,
            right,
            claimed,
            refused,
            runs,
            places,
        } = Singles::play(line(height, bias), TRIALS, SEED);
        let runs = runs as f64 / trials as f64;
        let places = places as f64 / trials as f64;
        let text = format!(
            "step {height}, bias {bias}: {right} of {trials} right, {refused} refused, {runs:.1} runs, {places:.1} places"
        );
        println!("{text}");
        // What was claimed is no more than what came true.
        let answered = trials - refused;
        let honest =
            right as f64 >= floor(claimed / answered.max(1) as f64, answered) * answered as f64;
        if (right as f64) < floor(right_min, trials) * trials as f64 || runs > runs_max || !honest {
            faults.push(text);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn search_unaware_of_bias_claims_too_much() {
    // The control: these trials do show it where a search is wrong.
    let blind = Singles::play(
        Line {
            height: 4.0,
            bias: 1.0,
            start: Start::OnceUntold,
        },
        TRIALS,
        SEED,
    );
    println!("{blind:?}");
    assert!(
        (blind.right as f64) < floor(0.95, TRIALS) * TRIALS as f64,
        "{blind:?}"
    );
}

#[test]
fn half_a_deviation_is_seldom_placed_wrongly() {
    let played = Singles::play(line(0.5, 0.0), TRIALS / 5, SEED);
    println!("{played:?}");
    let answered = played.trials - played.refused;
    assert!(
        answered > 0 && played.right as f64 >= floor(0.92, answered) * answered as f64,
        "{played:?}"
    );
}

#[test]
fn pure_noise_is_refused() {
    let played = Singles::play(line(0.0, 0.0), 200, SEED);
    println!("{played:?}");
    assert!(played.refused >= 199, "{played:?}");
}

/// A step in a line whose places have a bias of their own.
fn once(height: f64) -> Line {
    Line {
        height,
        bias: 1.0,
        start: Start::Once,
    }
}

#[test]
fn single_biased_place_is_not_believed() {
    let noise = Singles::play(once(0.0), 50, SEED);
    assert_eq!(noise.refused, 50);
    // A step that such a bias cannot hide.
    let played = Singles::play(once(12.0), 30, SEED);
    println!("{played:?}");
    assert!(played.right >= 28, "{played:?}");
}

#[test]
fn several_steps_are_found_and_nothing_else() {
    let mut faults = Vec::new();
    let counts = [(2, 0.90), (3, 0.88), (5, 0.80)];
    for ((count, recall_min), by) in counts
        .into_iter()
        .flat_map(|of| [(of, By::Halves), (of, By::Posterior)])
    {
        let played = Severals::play(count, by, TRIALS, SEED);
        let recall = played.recall();
        let precision = played.precision();
        let trials = played.trials as f64;
        let text = format!(
            "{count} steps, {by:?}: recall {recall:.3}, precision {precision:.3}, {:.0} runs, {:.0} places",
            played.runs as f64 / trials,
            played.places as f64 / trials
        );
        println!("{text}");
        if recall < floor(recall_min, played.steps) || precision < floor(0.97, played.named) {
            faults.push(text);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

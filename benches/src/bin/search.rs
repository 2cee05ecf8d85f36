//! Prints figures of searches for steps: their success rate on seeded noise, their number of runs,
//! and how fast the next commit of a large history is chosen.
//!
//! Except for the seconds, each run prints the same. Like the other benches it fails only if it
//! cannot print. `search 200` runs fewer searches; beside each share is its lower bound.

use std::hint::black_box;
use std::io::Write;

use anyhow::Context;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use kernel::{Commit, CommitGraph};
use lab::RebuildCost;
use stats::synthetic::{By, Line, PLACES, Severals, Singles, Start};
use stats::{ExactSearch, Pair, SearchCost, Wanted};

const SEED: u64 = 20_261_122;
/// Default number of searches of each kind.
const TRIALS: usize = 1000;
/// Largest number of searches.
const TRIALS_MAX: usize = 100_000;
/// Tolerance below a share, in standard errors: in 95 of 100 cases (one side).
const ERRORS: f64 = 1.645;
/// Bisections of pure noise.
const NOISE: usize = 200;

fn main() -> anyhow::Result<()> {
    let trials = trials()?;
    selection()?;
    severals(trials)?;
    singles(trials)
}

fn trials() -> anyhow::Result<usize> {
    let Some(asked) = std::env::args().nth(1) else {
        return Ok(TRIALS);
    };
    let number = asked
        .parse()
        .ok()
        .filter(|number| (1..=TRIALS_MAX).contains(number));
    number.with_context(|| format!("`{asked}` is no number of searches from 1 to {TRIALS_MAX}"))
}

/// Returns the lower bound of a share seen in so many trials (Wilson 1927).
fn at_least(share: f64, trials: usize) -> f64 {
    let count = trials.max(1) as f64;
    let square = ERRORS * ERRORS;
    let middle = share + square / (2.0 * count);
    let spread = ERRORS * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
    ((middle - spread) / (1.0 + square / count)).max(0.0)
}

/// Commits of the history for choosing the next one.
const COMMITS: usize = 10_000;
/// One in so many trunk commits is a merge.
const MERGE_EVERY: usize = 2;
/// Commits on the side of each merge.
const SIDE: usize = 2;

/// A history like a kernel's: on the trunk every second commit merges a side of two.
fn history() -> Option<CommitGraph> {
    let name = |number: usize| format!("{number:040x}");
    let mut commits: Vec<Commit> = Vec::new();
    let mut trunk = name(0);
    let mut turn = 0;
    while commits.len() < COMMITS {
        let mut parents = vec![trunk.clone()];
        if turn % MERGE_EVERY == 1 {
            let mut side = trunk.clone();
            for _ in 0..SIDE {
                let id = name(commits.len() + 1);
                commits.push(Commit {
                    id: id.clone(),
                    parents: vec![side],
                });
                side = id;
            }
            parents.push(side);
        }
        turn += 1;
        trunk = name(commits.len() + 1);
        commits.push(Commit {
            id: trunk.clone(),
            parents,
        });
    }
    CommitGraph::new(&name(0), commits)
}

/// Chooses the first commit in a parsed history: computes the trunk, each point's commits and cost,
/// and the point with the most information per cost.
fn choose(history: &CommitGraph) -> Option<Wanted> {
    let trunk = history.trunk();
    let weights: Vec<f64> = std::iter::once(0.0)
        .chain(trunk.iter().map(|place| place.brings.len() as f64))
        .collect();
    let mut steps = ExactSearch::new(&weights, 1)?;
    let last = weights.len() - 1;
    let rebuild_cost = RebuildCost::everything(history.count());
    let brings: Vec<&[usize]> = std::iter::once(&[][..])
        .chain(trunk.iter().map(|place| &place.brings[..]))
        .collect();
    let cost = SearchCost {
        place: rebuild_cost.costs(&brings, last),
        run: 0.01,
    };
    [0, last].into_iter().for_each(|end| steps.measured(end));
    Some(steps.next(&cost, &|_, _| Pair::Differs))
}

fn selection() -> anyhow::Result<()> {
    let history = history().context("no history")?;
    let mut best = f64::MAX;
    for _ in 0..20 {
        let start = cpu::own_s()?;
        black_box(choose(&history));
        best = best.min(cpu::own_s()? - start);
    }
    let mut figures = Figures;
    let name = format!(
        "next of {} commits, {} merges, chosen",
        history.count(),
        history.merges()
    );
    figures.print(&Figure {
        name,
        value: best * 1e3,
        unit: "ms CPU",
        against: Against::Goal(20.0),
    })?;
    Ok(())
}

/// The goal of a search for one step: success rate, and runs.
const GOALS: [(f64, f64, &str); 5] = [
    (0.5, 0.0, ""),
    (1.0, 0.0, "97 % in 210 runs"),
    (2.0, 0.0, "97 % in 70 runs"),
    (4.0, 0.0, "97 % in 30 runs"),
    (4.0, 1.0, "95 %"),
];

fn singles(trials: usize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nOne step among {PLACES} places, {trials} searches each; deviation of a run is 1, a place costs 5 runs, ends included"
    )?;
    writeln!(
        out,
        "{:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  goal",
        "height", "bias", "right", "at least", "claimed", "refused", "runs", "places"
    )?;
    // The lowest step takes longest.
    for (height, bias, goal) in GOALS.into_iter().rev() {
        let line = Line {
            height,
            bias,
            start: Start::EachRun,
        };
        let Singles {
            right,
            claimed,
            refused,
            runs,
            places,
            ..
        } = Singles::play(line, trials, SEED);
        let of = trials as f64;
        let answered = (trials - refused).max(1) as f64;
        let share = right as f64 / of;
        writeln!(
            out,
            "{height:>6} {bias:>6} {share:>8.3} {:>8.3} {:>8.3} {refused:>8} {:>8.1} {:>8.1}  {goal}",
            at_least(share, trials),
            claimed / answered,
            runs as f64 / of,
            places as f64 / of
        )?;
    }
    let noise = Singles::play(
        Line {
            height: 0.0,
            bias: 0.0,
            start: Start::EachRun,
        },
        NOISE,
        SEED,
    );
    writeln!(
        out,
        "pure noise refused: {} of {}  goal 199",
        noise.refused, noise.trials
    )?;
    Ok(())
}

fn severals(trials: usize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nSeveral steps of +4, +6 or -4 among {PLACES} places, {trials} searches each"
    )?;
    writeln!(
        out,
        "{:>6} {:>10} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8}  goal",
        "steps", "by", "recall", "at least", "precision", "at least", "runs", "places"
    )?;
    let goals = [
        (1, ""),
        (2, "90 % at 97 %"),
        (3, "88 % at 97 %"),
        (5, "80 % at 97 %"),
    ];
    for ((count, goal), by) in goals
        .into_iter()
        .flat_map(|of| [(of, By::Halves), (of, By::Posterior)])
    {
        let played = Severals::play(count, by, trials, SEED);
        let each = |sum: usize| sum as f64 / played.trials as f64;
        writeln!(
            out,
            "{count:>6} {:>10} {:>8.3} {:>8.3} {:>10.3} {:>8.3} {:>8.1} {:>8.1}  {goal}",
            format!("{by:?}").to_lowercase(),
            played.recall(),
            at_least(played.recall(), played.steps),
            played.precision(),
            at_least(played.precision(), played.named),
            each(played.runs),
            each(played.places)
        )?;
    }
    Ok(())
}

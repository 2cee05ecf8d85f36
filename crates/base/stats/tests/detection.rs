//! How well change points are found, measured on seeded noise.
#![expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the table"
)]

use stats::synthetic::{Chance, Noise, Quality, Short, Trials};
use stats::{
    Better, Criteria, History, KnownScatter, Scores, changes, changes_beside, estimate_ratio,
    median,
};

const SEED: u64 = 2;

fn places(trials: &Trials) -> Vec<Vec<usize>> {
    let series = trials.series.iter();
    series
        .map(|points| {
            let found = changes(points, &Criteria::default()).unwrap_or_default();
            found.iter().map(|change| change.at).collect()
        })
        .collect()
}

fn measure(noise: Noise, step: f64, count: usize) -> Quality {
    let trials = Trials::generate(noise, step, count, SEED);
    Quality::judge(&trials, &places(&trials))
}

/// Of 30 points of 3 repeats, with a step of -5 % that has so many after it.
fn measure_short(noise: Short, after: usize, count: usize) -> Quality {
    let trials = Trials::short(noise, after, count, SEED);
    Quality::within(&trials, &places(&trials), 1)
}

#[test]
fn steps_of_newest_points_are_found() {
    let noise = Short::Repeats(Noise::Normal);
    let wanted = [
        (1, 0.60),
        (2, 0.85),
        (3, 0.95),
        (4, 0.95),
        (5, 0.95),
        (10, 0.95),
        (15, 0.95),
        (26, 0.95),
        (28, 0.95),
    ];
    for (after, least) in wanted {
        let recall = measure_short(noise, after, 1000).recall;
        println!("{after:>2} points after the step: {recall:.3} of the steps found");
        assert!(recall >= least, "{after} {recall}");
    }
}

#[test]
fn two_newest_points_show_a_step() {
    let known = KnownScatter {
        variance: 1.0,
        degrees: 20.0,
    };
    for (before, height) in [(4, 20.0), (4, 50.0), (6, 50.0)] {
        let is_found = |seed: &u64| {
            let mut chance = Chance::new(*seed);
            let mut points: Vec<f64> = (0..before + 2).map(|_| chance.normal()).collect();
            points[before..]
                .iter_mut()
                .for_each(|point| *point += height);
            let found = changes_beside(&points, Some(known), &Criteria::default()).unwrap();
            found.iter().map(|change| change.at).eq([before])
        };
        let found = (0..500).filter(is_found).count();
        assert!(found >= 475, "{before} points before {height}: {found}");
    }
}

#[test]
fn short_levels_that_ended_are_found() {
    for (length, least) in [
        (3, 0.95),
        (4, 0.97),
        (5, 0.98),
        (6, 0.98),
        (8, 0.96),
        (12, 0.96),
    ] {
        let trials = Trials::visits(Short::Repeats(Noise::Normal), length, 1000, SEED);
        let found = places(&trials);
        let recall = Quality::within(&trials, &found, 1).recall;
        let back = Trials {
            steps: trials.steps.iter().map(|from| from + length).collect(),
            ..trials
        };
        let returned = Quality::within(&back, &found, 1).recall;
        println!(
            "{length:>2} points of a level that ended: {recall:.3} begins found, {returned:.3} ends"
        );
        assert!(
            recall >= least && returned >= least,
            "{length} {recall} {returned}"
        );
    }
}

/// Returns at how many ends of a series a level was searched for after it had been found once, and
/// at how many of them it was not found.
fn count_losses(length: usize, depth: f64, seed: u64) -> (usize, usize) {
    let mut trials = Trials::visits(Short::Repeats(Noise::Normal), length, 1, seed);
    let mut points = trials.series.swap_remove(0);
    let from = trials.steps[0];
    // It lies 5 % lower so far.
    points[from..from + length]
        .iter_mut()
        .for_each(|point| *point += 0.05 + depth);
    let mut is_known = false;
    let mut searches = 0;
    let mut losses = 0;
    for end in from + 3..=points.len() {
        let found = changes(&points[..end], &Criteria::default()).unwrap_or_default();
        let is_found = found
            .iter()
            .any(|change| change.at.abs_diff(from) <= 1 && change.after < change.before);
        searches += usize::from(is_known);
        losses += usize::from(is_known && !is_found);
        is_known |= is_found;
    }
    (searches, losses)
}

#[test]
fn level_once_found_stays_found_after_it_ended() {
    for (length, most) in [(3, 0.0), (4, 0.0005), (5, 0.005), (8, 0.01)] {
        for depth in [-0.10, -0.20] {
            let mut searches = 0;
            let mut losses = 0;
            for seed in 0..200 {
                let (more, lost) = count_losses(length, depth, seed);
                searches += more;
                losses += lost;
            }
            let share = losses as f64 / searches as f64;
            println!("{length} points, {depth}: not found again in {losses} of {searches}");
            assert!(share <= most, "{length} {depth} {share}");
        }
    }
}

#[test]
fn short_series_without_steps_raise_few_alarms() {
    for (noise, most) in Short::ALL
        .into_iter()
        .zip([0.01, 0.01, 0.01, 0.02, 0.03, 0.03])
    {
        let alarms = measure_short(noise, 0, 3000).found;
        println!("{:<14} {alarms:.4} false alarms in a series", noise.name());
        assert!(alarms <= most, "{noise:?} {alarms}");
    }
}

#[test]
fn steps_are_found_and_nothing_else() {
    let mut faults = Vec::new();
    for noise in Noise::ALL {
        let none = measure(noise, 0.0, 3000);
        let step = measure(noise, 2.0, 2000);
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

/// Repeats of each of some points, three of each, with a deviation of 1 %.
struct Points(Vec<Vec<f64>>);

impl Points {
    /// The repeats of a point share so many deviations of their own, which remember so much of those
    /// of the point before.
    fn draw(count: usize, day: f64, memory: f64, chance: &mut Chance) -> Self {
        let mut last = chance.normal();
        let mut points = Vec::with_capacity(count);
        for _ in 0..count {
            let repeats = (0..3).map(|_| 0.01 * (chance.normal() + day * last));
            points.push(repeats.collect());
            last = memory * last + (1.0 - memory * memory).sqrt() * chance.normal();
        }
        Self(points)
    }

    fn step(&mut self, at: usize, height: f64) {
        for repeat in self.0[at..].iter_mut().flatten() {
            *repeat += height;
        }
    }

    fn scores(&self, point: usize) -> Option<Scores> {
        let repeats: Vec<[f64; 1]> = self.0[point].iter().map(|log| [log.exp()]).collect();
        Scores::new(&repeats, Better::Higher).ok()
    }

    /// Returns the scatter of all points but some.
    fn history(&self, but: &[usize]) -> History {
        let mut history = History::default();
        for point in (0..self.0.len()).filter(|point| !but.contains(point)) {
            if let Some(scores) = self.scores(point) {
                history.add(&scores);
            }
        }
        history
    }

    fn changes(&self) -> Option<Vec<usize>> {
        let medians: Vec<f64> = self
            .0
            .iter()
            .filter_map(|repeats| median(repeats))
            .collect();
        let known = self.history(&[]).scatter_of_medians(3);
        let found = changes_beside(&medians, known, &Criteria::default())?;
        Some(found.iter().map(|change| change.at).collect())
    }
}

#[test]
fn ten_points_show_steps_that_pairs_show() {
    const TRIALS: usize = 500;
    let mut chance = Chance::new(SEED);
    for at in [2, 5, 7, 8, 9] {
        let mut worse = 0;
        let mut found = 0;
        for _ in 0..TRIALS {
            let mut points = Points::draw(10, 0.0, 0.0, &mut chance);
            points.step(at, 0.92_f64.ln());
            let history = points.history(&[at - 1, at]);
            let base = points.scores(at - 1).unwrap();
            let new = points.scores(at).unwrap();
            if estimate_ratio(&base, &new, &history, 0.02).p() <= 0.05 {
                worse += 1;
                let changes = points.changes().unwrap();
                found += usize::from(changes.iter().any(|n| n.abs_diff(at) <= 1));
            }
        }
        println!("-8 % at point {at} of 10: worse in {worse}, found in {found} of them");
        assert!(found * 100 >= worse * 94 && worse > TRIALS / 2, "{at}");
    }
}

#[test]
fn points_that_share_days_raise_few_alarms() {
    const TRIALS: usize = 1500;
    let mut chance = Chance::new(SEED);
    for memory in [0.0, 0.7, 0.9] {
        for day in [0.5, 1.0, 2.0] {
            let mut alarms = 0;
            for _ in 0..TRIALS {
                let points = Points::draw(10, day, memory, &mut chance);
                alarms += usize::from(!points.changes().unwrap().is_empty());
            }
            let share = alarms as f64 / TRIALS as f64;
            println!("days of {day} that remember {memory}: {share:.4} false alarms");
            assert!(share <= 0.03, "{memory} {day} {share}");
        }
    }
}

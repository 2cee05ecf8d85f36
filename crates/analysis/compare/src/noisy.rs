//! Rows of noisy runs, which other suites measured. Seeds pair nothing there, so the runs of one
//! side are rated against the runs of the other (`stats::estimate_ratio`), with one correction for
//! all rows of a comparison.

use std::collections::BTreeMap;

use model::{Direction, Uncertainty, Verdict, WithinRun};
use stats::{
    Better, GroupMean, History, RatioEstimate, Scores, Sequential, Spread, WithinEstimate,
    estimate_neighbours, estimate_within,
};

use crate::comparison::{Against, ComparisonRow, Measured, Rated};
use crate::comparison_builder::common;
use crate::pairing::SideComparison;
use crate::question::Question;

/// False discovery rate on noisy machines.
pub const Q_MAX: f64 = 0.05;

/// The rating of a cell: its position, the sides' scores, and the rating.
struct RatedCell {
    row: usize,
    kernel: usize,
    sides: (Scores, Scores),
    rating: RatioEstimate,
    /// What the samples within one run of each side say, where nothing else does.
    within: Option<WithinEstimate>,
}

/// Adds ratings to rows, instead of differences seed by seed. A cell with a side without any value
/// keeps its reason.
///
/// The rows of one test on one kernel are a family, and all families one question
/// (`stats::families`). `neighbours` says of each kernel whether its boots took turns with those of
/// the base ([`are_neighbours`](crate::neighbours::are_neighbours)).
/// `is_foreign` says that other suites measured all runs: where each side has one, its samples are
/// rated.
pub(crate) fn rate(
    rows: &mut [ComparisonRow],
    question: &Question,
    neighbours: &[bool],
    is_foreign: bool,
) {
    let plan = question.looks_max.map(Sequential::new);
    let mut all: Vec<RatedCell> = Vec::new();
    for (place, row) in rows.iter_mut().enumerate() {
        let direction = row.workload.metric.direction;
        let history = question
            .scatters
            .get(&*row.workload.name)
            .cloned()
            .unwrap_or_default();
        let base = values(&row.base);
        row.base.noise = stats::noise_profile(&base);
        let base_scores = scores(&base, direction);
        row.base.value = base_scores
            .as_ref()
            .ok()
            .map(|scores| centre(scores, direction))
            .or(row.base.value);
        for (kernel, cell) in row.cells.iter_mut().enumerate() {
            let new = values(&cell.measured);
            cell.measured.noise = stats::noise_profile(&new);
            let new_scores = scores(&new, direction);
            cell.measured.value = new_scores
                .as_ref()
                .ok()
                .map(|scores| centre(scores, direction))
                .or(cell.measured.value);
            if base.is_empty() || new.is_empty() {
                cell.compared = SideComparison {
                    verdict: cell.compared.verdict.clone(),
                    ..SideComparison::nothing("")
                };
                continue;
            }
            match (&base_scores, new_scores) {
                (Ok(base), Ok(new)) => {
                    let margin = row.margin_percent / 100.0;
                    let are_pairs = neighbours[kernel] && has_all(&row.base, &cell.measured);
                    let rating = match &plan {
                        Some(plan) if are_pairs => {
                            plan.look_at_neighbours(base, &new, margin).rating
                        }
                        Some(plan) => plan.look(base, &new, margin).rating,
                        None if are_pairs => estimate_neighbours(base, &new, margin),
                        None => stats::estimate_ratio(base, &new, &history, margin),
                    };
                    let samples = one_run(&row.base).zip(one_run(&cell.measured));
                    let within = samples.filter(|_| is_foreign).and_then(|(base, new)| {
                        estimate_within(
                            &rating,
                            &GroupMean::compute(base)?,
                            &GroupMean::compute(new)?,
                            margin,
                        )
                    });
                    all.push(RatedCell {
                        row: place,
                        kernel,
                        sides: (base.clone(), new),
                        rating,
                        within,
                    });
                }
                (Err(why), _) => cell.compared = SideComparison::nothing(why),
                (_, Err(why)) => cell.compared = SideComparison::nothing(&why),
            }
        }
    }
    let between = |found: &RatedCell| found.rating.precision.map(|_| found.rating.p());
    let within = |found: &RatedCell| found.within.map(|within| within.p_margin);
    let q = compute_q(rows, &all, &between);
    let q_within = compute_q(rows, &all, &within);
    for ((found, q), q_within) in all.iter().zip(q).zip(q_within) {
        let RatedCell {
            row,
            kernel,
            sides: (base, new),
            rating,
            within,
        } = found;
        let row = &mut rows[*row];
        let cell = &mut row.cells[*kernel];
        cell.compared = SideComparison::rated(rating, row.workload.metric.direction, q);
        if let Some(shown) = within.and_then(|within| within_verdict(&within, q_within)) {
            cell.compared.verdict = shown;
        }
        cell.rated = Some(Rated {
            rating: *rating,
            q,
            // Ranks of all boots do not see what pairs share.
            ranks: stats::cross_check(base, new, rating).filter(|_| !is_by_pairs(rating)),
        });
    }
}

/// Returns whether both sides have a value of each replicate, so that places pair them.
fn has_all(base: &Measured, new: &Measured) -> bool {
    let seeds = |side: &Measured| -> Option<Vec<u64>> {
        let all = side.seeds.iter();
        all.map(|one| one.value.as_ref().ok().map(|_| one.seed))
            .collect()
    };
    seeds(base).is_some_and(|base| Some(base) == seeds(new))
}

fn is_by_pairs(rating: &RatioEstimate) -> bool {
    rating
        .precision
        .is_some_and(|found| found.basis == stats::Basis::Neighbours)
}

/// Returns the samples of a side with one run.
fn one_run(measured: &Measured) -> Option<&[f64]> {
    let mut found = measured
        .seeds
        .iter()
        .filter_map(|seed| seed.value.as_ref().ok());
    let only = found.next()?;
    found.next().is_none().then_some(&only.samples)
}

/// Returns the verdict within one run of each side, with its false discovery rate among the rows of
/// the same question; `None` where samples do not decide. Reports and histories share it.
#[must_use]
pub fn within_verdict(within: &WithinEstimate, q: f64) -> Option<Verdict> {
    let shown = match within.verdict(q)? {
        stats::Verdict::Better => WithinRun::Better,
        stats::Verdict::Worse => WithinRun::Worse,
        stats::Verdict::Same => WithinRun::Same,
        stats::Verdict::Unclear(_) => return None,
    };
    Some(Verdict::Unclear(Uncertainty::WithinRun(shown)))
}

/// Returns the false discovery rate of each among all that have a chance `p_of`. The others, such as
/// ratings without a precision, do not need one.
fn compute_q(
    rows: &[ComparisonRow],
    all: &[RatedCell],
    p_of: &dyn Fn(&RatedCell) -> Option<f64>,
) -> Vec<f64> {
    let mut families: BTreeMap<(&str, usize), Vec<(usize, f64)>> = BTreeMap::new();
    for (place, found) in all.iter().enumerate() {
        if let Some(p) = p_of(found) {
            let test = test_of(&rows[found.row].workload.name);
            families
                .entry((test, found.kernel))
                .or_default()
                .push((place, p));
        }
    }
    let p: Vec<Vec<f64>> = families
        .values()
        .map(|family| family.iter().map(|(_, p)| *p).collect())
        .collect();
    let mut q = vec![1.0; all.len()];
    for (family, found) in families
        .values()
        .zip(stats::families(&p, Q_MAX).unwrap_or_default())
    {
        for ((place, _), member) in family.iter().zip(found.members) {
            q[*place] = member;
        }
    }
    q
}

/// Adds intervals to the geometric means of noisy runs: first the mean over the rows of each run,
/// since rows of one run share its boot, then like any other value. Runs that lack a row are left
/// out.
pub(crate) fn means(others: &mut [Against], rows: &[ComparisonRow]) {
    for (kernel, other) in others.iter_mut().enumerate() {
        let Some(mean) = &mut other.geometric_mean else {
            continue;
        };
        let rated: Vec<&ComparisonRow> = common(rows, kernel)
            .into_iter()
            .filter(|row| row.cells[kernel].rated.is_some())
            .collect();
        let direction = |row: &ComparisonRow| row.workload.metric.direction;
        let base: Vec<_> = rated
            .iter()
            .map(|row| (&row.base, direction(row)))
            .collect();
        let new: Vec<_> = rated
            .iter()
            .map(|row| (&row.cells[kernel].measured, direction(row)))
            .collect();
        let scores = scores_together(&base).zip(scores_together(&new));
        if let Some((base, new)) = scores {
            let ends = stats::estimate_ratio(&base, &new, &History::default(), 0.0).interval();
            mean.ends = ends.map(|ends| Spread {
                min: ends.low,
                max: ends.high,
            });
        }
    }
}

/// Returns the scores of a kernel over several rows, of those boots that have all of them.
fn scores_together(rows: &[(&Measured, Direction)]) -> Option<Scores> {
    let (first, _) = rows.first()?;
    let seeds: Vec<u64> = first
        .seeds
        .iter()
        .map(|one| one.seed)
        .filter(|seed| rows.iter().all(|(row, _)| value(row, *seed).is_some()))
        .collect();
    let mut all = Vec::new();
    for (row, direction) in rows {
        let values: Vec<f64> = seeds.iter().filter_map(|seed| value(row, *seed)).collect();
        all.push(scores(&values, *direction).ok()?);
    }
    Scores::together(&all).ok()
}

/// Returns the value of a run, by its number.
fn value(measured: &Measured, seed: u64) -> Option<f64> {
    let found = measured.seeds.iter().find(|one| one.seed == seed)?;
    found.value.as_ref().ok().map(|sampled| sampled.value)
}

/// Returns the value of each run that has one.
fn values(measured: &Measured) -> Vec<f64> {
    measured
        .seeds
        .iter()
        .filter_map(|seed| Some(seed.value.as_ref().ok()?.value))
        .collect()
}

/// Returns the test of a row: its name up to the first slash.
#[must_use]
pub fn test_of(workload: &str) -> &str {
    workload.split_once('/').map_or(workload, |(test, _)| test)
}

/// Scores runs by their values.
///
/// # Errors
/// If there is no value, or one has no ratio to others; the text says which.
pub fn scores(values: &[f64], direction: Direction) -> Result<Scores, String> {
    let runs: Vec<[f64; 1]> = values.iter().map(|value| [*value]).collect();
    Scores::new(&runs, better(direction)).map_err(|fault| fault.to_string().replace("group", "run"))
}

/// Returns the value of a side: the one whose ratio to the other side's a rating rates.
#[must_use]
pub fn centre(scores: &Scores, direction: Direction) -> f64 {
    scores.centre(better(direction))
}

fn better(direction: Direction) -> Better {
    match direction {
        Direction::LowerIsBetter => Better::Lower,
        Direction::HigherIsBetter => Better::Higher,
    }
}

#[cfg(test)]
mod tests {
    use model::{Uncertainty, Verdict, WithinRun};

    use crate::comparison::Comparison;
    use crate::difference::difference_percent;
    use crate::fixtures::{Ending, Subject, build, machine, on_noisy_looked, question};

    /// Compares two kernels by runs of other suites, each run with these values.
    fn compared(base: &[&[f64]], new: &[&[f64]]) -> Comparison {
        let base = imported_side("deb:6.1", "6.1", base);
        let new = imported_side("deb:6.12", "6.12", new);
        let mut question = question(&[]);
        question.workloads.truncate(1);
        crate::compare(&base.side(), &[new.side()], &question).unwrap()
    }

    /// Returns a kernel with these values, a list for each run.
    fn imported_side(name: &str, version: &str, runs: &[&[f64]]) -> Subject {
        let mut subject = Subject::new(build(name, version), &[], &[]);
        for (number, values) in (0..).zip(runs) {
            subject.add_run(number, &[("getppid", Ending::Samples(values.to_vec()))]);
        }
        let mut machine = machine();
        machine.kind = "imported".parse().unwrap();
        subject.on(machine)
    }

    fn verdict(base: &[&[f64]], new: &[&[f64]]) -> Verdict {
        compared(base, new).rows[0].cells[0]
            .compared
            .verdict
            .clone()
    }

    #[test]
    fn one_run_per_side_has_its_own_verdict() {
        let values: Vec<f64> = (0..100).map(|n| 100.0 + f64::from(n % 3)).collect();
        let half: Vec<f64> = values.iter().map(|value| value / 2.0).collect();
        let comparison = compared(&[&values], &[&half]);
        let cell = &comparison.rows[0].cells[0];
        let verdict = &cell.compared.verdict;
        assert_eq!(
            verdict,
            &Verdict::Unclear(Uncertainty::WithinRun(WithinRun::Better))
        );
        assert_eq!(
            (verdict.letter(), verdict.name()),
            ('b', "better within one run")
        );
        assert!((cell.compared.difference_percent.unwrap() - 50.0).abs() < 1e-9);
        assert_eq!(
            comparison.others[0].counts.unclear, 1,
            "it counts as unclear"
        );
    }

    #[test]
    fn single_samples_within_runs_stay_unrated() {
        assert_eq!(
            verdict(&[&[100.0]], &[&[50.0]]),
            Verdict::Unclear(Uncertainty::Noise { more_runs: None })
        );
    }

    #[test]
    fn difference_is_shown_only_when_runs_agree() {
        let base: [&[f64]; 4] = [&[100.0], &[101.0], &[99.5], &[100.5]];
        assert_eq!(
            verdict(&base, &[&[120.0], &[121.0], &[119.0]]),
            Verdict::Worse
        );
        assert_eq!(
            verdict(&base, &[&[80.0], &[81.0], &[80.5]]),
            Verdict::Better
        );
        assert_eq!(
            verdict(&base, &[&[100.1], &[100.9], &[99.6], &[100.4]]),
            Verdict::Same
        );
        let wild = verdict(&base, &[&[60.0], &[140.0], &[200.0]]);
        assert!(
            matches!(wild, Verdict::Unclear(Uncertainty::TooNoisy)),
            "{wild:?}"
        );
    }

    #[test]
    fn sides_with_unequal_run_counts_are_compared() {
        let comparison = compared(&[&[9.0, 10.0, 11.0]], &[&[10.0], &[10.0]]);
        let geometric_mean = (9.0_f64 * 10.0 * 11.0).cbrt();
        assert!((comparison.rows[0].base.value.unwrap() - geometric_mean).abs() < 1e-9);
        assert!(
            comparison.rows[0].cells[0]
                .compared
                .difference_percent
                .unwrap()
                .abs()
                < 1.0
        );
    }

    #[test]
    fn printed_values_give_the_printed_percentage() {
        // tbench4 of 2026-11-22: 53.37 -> 59.52 beside -29.20 %, as one was of medians and the
        // other of means.
        let low = 20.0;
        let high = 59.52;
        for seed in 0..4000_u64 {
            let mut state = seed;
            let mut boot = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                if state >> 62 == 0 {
                    low
                } else {
                    high + (state >> 40) as f64 / 1e7
                }
            };
            let mut side =
                |boots: usize| -> Vec<Vec<f64>> { (0..boots).map(|_| vec![boot()]).collect() };
            let sides = [side(3 + seed as usize % 8), side(5)];
            let [base, new] = sides
                .each_ref()
                .map(|side| side.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let comparison = compared(&base, &new);
            let row = &comparison.rows[0];
            let cell = &row.cells[0];
            let of_values = difference_percent(
                row.workload.metric.direction,
                row.base.value.unwrap(),
                cell.measured.value.unwrap(),
            );
            let printed = cell.compared.difference_percent.unwrap();
            assert!(
                (of_values.unwrap() - printed).abs() < 1e-9,
                "{sides:?}: {printed}"
            );
        }
    }

    #[test]
    fn zero_has_no_ratio_and_says_so() {
        let Verdict::Unclear(why) = verdict(&[&[0.0], &[0.0]], &[&[1.0], &[1.0]]) else {
            panic!("a verdict")
        };
        assert_eq!(
            why.to_string(),
            "no value: run 1 has a value that is not above zero: no ratio exists"
        );
    }

    #[test]
    fn looks_decide_later_and_with_wider_intervals() {
        let once = on_noisy_looked(3, 1.0, None);
        let early = on_noisy_looked(3, 1.0, Some(30));
        assert!(
            count_decided(&early) < count_decided(&once),
            "{} of {}",
            count_decided(&early),
            count_decided(&once)
        );
        assert!(interval_width(&early) > interval_width(&once));
        // The last look has most of the chance.
        let last = on_noisy_looked(30, 1.0, Some(30));
        assert!(count_decided(&last) > count_decided(&early));
    }

    fn count_decided(comparison: &Comparison) -> usize {
        let rows = comparison.rows.iter();
        rows.filter(|row| !matches!(row.cells[0].compared.verdict, Verdict::Unclear(_)))
            .count()
    }

    /// Returns the width of the first row's confidence interval of the ratio.
    fn interval_width(comparison: &Comparison) -> f64 {
        let rated = comparison.rows[0].cells[0].rated.as_ref().unwrap();
        let ends = rated.rating.interval().unwrap();
        ends.high - ends.low
    }
}

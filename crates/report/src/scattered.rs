//! Rows of runs that scatter: those that other suites measured. Seeds pair nothing there, so the runs of one side stand against
//! the runs of the other (`stats::rate`), all rows of a comparison together as far as chance is concerned.

use model::{Direction, Uncertainty, Verdict};
use stats::{Better, History, Rating, Scores, Spread};

use crate::comparison::{Measured, Row};
use crate::verdict::scattered_verdict;

/// Level of the interval that is shown.
const LEVEL: f64 = 0.95;

/// Puts ratings into rows, in place of differences seed by seed. A cell with a side that has no value at all keeps its reason.
pub(crate) fn rate(rows: &mut [Row]) {
    let mut ratings: Vec<(usize, usize, Rating)> = Vec::new();
    for (place, row) in rows.iter_mut().enumerate() {
        let direction = row.workload.metric.direction;
        let base = groups(&row.base);
        for (kernel, cell) in row.cells.iter_mut().enumerate() {
            cell.differences.clear();
            (cell.difference_percent, cell.spread_percent, cell.ratio) = (None, None, None);
            let new = groups(&cell.measured);
            if base.is_empty() || new.is_empty() {
                continue;
            }
            match (scores(&base, direction), scores(&new, direction)) {
                (Ok(base), Ok(new)) => {
                    ratings.push((place, kernel, stats::rate(&base, &new, &History::default())));
                }
                (Err(why), _) | (_, Err(why)) => cell.verdict = Verdict::Unclear(Uncertainty::Missing(why)),
            }
        }
    }
    let p: Vec<f64> = ratings.iter().filter_map(|(.., rating)| Some(rating.precision?.p)).collect();
    let mut q = stats::benjamini_hochberg(&p).unwrap_or(p).into_iter();
    for (place, kernel, rating) in ratings {
        // Without a precision there is no chance to weigh, and the verdict does not ask for it.
        let q = rating.precision.and_then(|_| q.next()).unwrap_or(1.0);
        let row = &mut rows[place];
        let (direction, margin) = (row.workload.metric.direction, row.margin_percent);
        let cell = &mut row.cells[kernel];
        cell.ratio = Some(rating.ratio());
        cell.difference_percent = Some(percent(direction, rating.ratio()));
        cell.spread_percent = rating
            .interval(LEVEL)
            .map(|ends| Spread { min: percent(direction, ends.low), max: percent(direction, ends.high) });
        cell.verdict = scattered_verdict(&rating, margin, q);
    }
}

/// Returns the values of each run that has any.
fn groups(measured: &Measured) -> Vec<Vec<f64>> {
    let values = measured.seeds.iter().filter_map(|seed| seed.value.as_ref().ok());
    values.map(|sampled| sampled.samples[sampled.left_out.min(sampled.samples.len())..].to_vec()).collect()
}

fn scores(groups: &[Vec<f64>], direction: Direction) -> Result<Scores, String> {
    let better = match direction {
        Direction::LowerIsBetter => Better::Lower,
        Direction::HigherIsBetter => Better::Higher,
    };
    Scores::of(groups, better).map_err(|fault| fault.to_string().replace("group", "run"))
}

/// Returns a ratio, above 1 is better, as a difference of the metric in percent of the base, above 0 is better.
fn percent(direction: Direction, ratio: f64) -> f64 {
    match direction {
        Direction::LowerIsBetter => (1.0 - 1.0 / ratio) * 100.0,
        Direction::HigherIsBetter => (ratio - 1.0) * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use model::{MachineKind, Uncertainty, Verdict};

    use crate::comparison::Comparison;
    use crate::fixtures::{Ending, Subject, build, machine, question};

    /// Compares two kernels by runs of other suites, each run with these values.
    fn compared(base: &[&[f64]], new: &[&[f64]]) -> Comparison {
        let side = |name: &str, version: &str, runs: &[&[f64]]| {
            let mut subject = Subject::new(build(name, version), &[], &[]);
            for (number, values) in (0..).zip(runs) {
                subject.add_run(number, &[("getppid", Ending::Samples(values.to_vec()))]);
            }
            let mut machine = machine();
            machine.kind = MachineKind::Imported;
            subject.on(machine)
        };
        let (base, new) = (side("deb:6.1", "6.1", base), side("deb:6.12", "6.12", new));
        let mut question = question(&[]);
        question.workloads.truncate(1);
        crate::compare(&base.side(), &[new.side()], &question).unwrap()
    }

    fn verdict(base: &[&[f64]], new: &[&[f64]]) -> Verdict {
        compared(base, new).rows[0].cells[0].verdict.clone()
    }

    #[test]
    fn one_run_on_each_side_is_never_a_verdict_however_many_values_it_has() {
        let values: Vec<f64> = (0..100).map(|n| 100.0 + f64::from(n % 3)).collect();
        let half: Vec<f64> = values.iter().map(|value| value / 2.0).collect();
        let comparison = compared(&[&values], &[&half]);
        let cell = &comparison.rows[0].cells[0];
        assert_eq!(cell.verdict, Verdict::Unclear(Uncertainty::Noise { more_runs: None }));
        assert!((cell.difference_percent.unwrap() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn runs_that_agree_show_a_difference_and_runs_that_scatter_do_not() {
        let base: [&[f64]; 4] = [&[100.0], &[101.0], &[99.5], &[100.5]];
        assert_eq!(verdict(&base, &[&[120.0], &[121.0], &[119.0]]), Verdict::Worse);
        assert_eq!(verdict(&base, &[&[80.0], &[81.0], &[80.5]]), Verdict::Better);
        assert_eq!(verdict(&base, &[&[100.1], &[100.9], &[99.6], &[100.4]]), Verdict::Same);
        let wild = verdict(&base, &[&[60.0], &[140.0], &[200.0]]);
        assert!(matches!(wild, Verdict::Unclear(Uncertainty::Noise { more_runs: Some(1..) })), "{wild:?}");
    }

    #[test]
    fn all_values_of_a_run_count_and_sides_need_not_have_as_many_runs() {
        let comparison = compared(&[&[9.0, 10.0, 11.0]], &[&[10.0], &[10.0]]);
        assert_eq!(comparison.rows[0].base.median, Some(10.0));
        assert!(comparison.rows[0].cells[0].difference_percent.unwrap().abs() < 1.0);
    }

    #[test]
    fn zero_has_no_ratio_and_says_so() {
        let Verdict::Unclear(why) = verdict(&[&[0.0], &[0.0]], &[&[1.0], &[1.0]]) else { panic!("a verdict") };
        assert_eq!(why.to_string(), "no value: run 0 has a value that is not above zero: no ratio exists");
    }
}

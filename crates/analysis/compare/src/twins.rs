//! What twins, workloads of other suites that do the same operation, say to a row.

use model::{Uncertainty, Verdict};

use crate::comparison::{Comparison, ComparisonRow};

/// The effect of a kernel on a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The ratio; above one is better.
    pub ratio: f64,
    /// The margin of its metric, in percent.
    pub margin_percent: f64,
}

impl Effect {
    /// Returns whether another workload shows this effect: as far as both margins allow, or half of
    /// it at least.
    fn is_shown_by(self, other: Self) -> bool {
        let own = self.ratio.ln();
        let seen = other.ratio.ln();
        let margins = [self, other]
            .map(|effect| (effect.margin_percent / 100.0).ln_1p())
            .iter()
            .sum::<f64>();
        (own - seen).abs() <= margins || (own * seen > 0.0 && seen.abs() >= own.abs() / 2.0)
    }
}

/// Returns why an effect is unclear: twins of the workload were measured, and none of them shows
/// it. `twins` are their names, differences in percent and effects.
#[must_use]
pub fn contradiction(own: Effect, twins: &[(String, f64, Effect)]) -> Option<Uncertainty> {
    let is_sound = |effect: &Effect| effect.ratio > 0.0 && effect.ratio.is_finite();
    let known: Vec<&(String, f64, Effect)> = twins
        .iter()
        .filter(|(_, _, effect)| is_sound(effect))
        .collect();
    if !is_sound(&own) || known.iter().any(|(_, _, effect)| own.is_shown_by(*effect)) {
        return None;
    }
    let (twin, difference_percent, _) = known.first()?;
    Some(Uncertainty::Contradicted {
        twin: twin.clone(),
        difference_percent: *difference_percent,
    })
}

impl Comparison {
    /// Returns the twins of its rows that are better or worse.
    #[must_use]
    pub fn twins_wanted(&self) -> Vec<&'static str> {
        let mut wanted = Vec::new();
        for row in &self.rows {
            let mut verdicts = row.cells.iter().map(|cell| &cell.compared.verdict);
            if verdicts.any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse)) {
                wanted.extend(model::twins(&row.workload.name));
            }
        }
        wanted
    }

    /// Makes rows unclear that their twins contradict, in this comparison or in others of the same
    /// kernels.
    pub fn doubt(&mut self, others: &[Self]) {
        let rows: Vec<&ComparisonRow> = self
            .rows
            .iter()
            .chain(others.iter().flat_map(|other| &other.rows))
            .collect();
        let is_exact = self.base.machine.capabilities().deterministic;
        let mut doubts = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (place, cell) in row.cells.iter().enumerate() {
                if !matches!(cell.compared.verdict, Verdict::Better | Verdict::Worse) {
                    continue;
                }
                let Some(ratio) = cell.compared.ratio else {
                    continue;
                };
                let own = Effect {
                    ratio,
                    margin_percent: row.margin_percent,
                };
                let twins: Vec<&str> = model::twins(&row.workload.name).collect();
                let mut seen = Vec::new();
                for twin in &rows {
                    if twins.contains(&&*twin.workload.name) {
                        seen.extend(twin_effect(twin, place, is_exact));
                    }
                }
                doubts.extend(contradiction(own, &seen).map(|why| (number, place, why)));
            }
        }
        for (number, place, why) in doubts {
            let verdict = &mut self.rows[number].cells[place].compared.verdict;
            let counts = &mut self.others[place].counts;
            *(if *verdict == Verdict::Worse {
                &mut counts.worse
            } else {
                &mut counts.better
            }) -= 1;
            counts.unclear += 1;
            *verdict = Verdict::Unclear(why);
        }
    }
}

/// Returns the name, difference and effect of a twin's row in one column, if it is known.
fn twin_effect(
    twin: &ComparisonRow,
    place: usize,
    is_exact: bool,
) -> Option<(String, f64, Effect)> {
    let compared = &twin.cells.get(place)?.compared;
    let is_known = is_exact || !matches!(compared.verdict, Verdict::Unclear(_));
    let effect = Effect {
        ratio: compared.ratio?,
        margin_percent: twin.margin_percent,
    };
    let name = twin.workload.name.to_string();
    is_known.then_some((name, compared.difference_percent?, effect))
}

#[cfg(test)]
mod tests {
    use model::{Uncertainty, Verdict};

    use super::{Effect, contradiction};
    use crate::compare::compare;
    use crate::comparison::{Comparison, Conclusion};
    use crate::fixtures::{Ending, Subject, build, question};
    use crate::question::Question;

    fn contradicts(own: f64, twins: &[f64]) -> Option<Uncertainty> {
        let effect = |percent: f64| Effect {
            ratio: 1.0 + percent / 100.0,
            margin_percent: 1.0,
        };
        let twins: Vec<_> = twins
            .iter()
            .map(|percent| (format!("twin{percent}"), *percent, effect(*percent)))
            .collect();
        contradiction(effect(own), &twins)
    }

    #[test]
    fn layout_state_is_contradicted_by_its_twin() {
        let why = contradicts(-89.84, &[-1.75]).unwrap();
        assert_eq!(
            why,
            Uncertainty::Contradicted {
                twin: "twin-1.75".into(),
                difference_percent: -1.75
            }
        );
        assert!(contradicts(20.0, &[-3.0]).is_some() && contradicts(-4.0, &[0.0]).is_some());
        // The twin's own row is not: the other one shows as much and more.
        assert_eq!(contradicts(-1.75, &[-89.84]), None);
    }

    #[test]
    fn effect_that_a_twin_shows_stands() {
        for (own, twins) in [
            (-20.0, &[-12.0][..]),
            (-20.0, &[0.0, -18.0]),
            (-2.5, &[-0.6]),
            (-20.0, &[]),
            (0.0, &[0.1]),
        ] {
            assert_eq!(contradicts(own, twins), None, "{own} {twins:?}");
        }
        assert_eq!(contradicts(f64::NAN, &[1.0]), None);
    }

    /// Compares two kernels, of which the newer costs so many times as much.
    fn compared(workloads: &[(&'static str, f64)]) -> Comparison {
        let old = kernel("6.12.1", workloads, |_| 1.0);
        let new = kernel("6.16.1", workloads, |ratio| ratio);
        let declared = workloads
            .iter()
            .map(|(name, _)| model::find_workload(name).unwrap());
        let question = Question {
            workloads: declared.collect(),
            ..question(&[1, 2])
        };
        compare(&old.side(), &[new.side()], &question).unwrap()
    }

    /// Returns a kernel whose costs are 100 times a factor of a workload's ratio.
    fn kernel(version: &str, workloads: &[(&'static str, f64)], factor: fn(f64) -> f64) -> Subject {
        let endings: Vec<(&str, Ending)> = workloads
            .iter()
            .map(|(name, ratio)| (*name, Ending::Cost(100.0 * factor(*ratio), 0.0)))
            .collect();
        Subject::new(build("deb:6.12", version), &[1, 2], &endings)
    }

    #[test]
    fn twin_of_another_suite_makes_a_row_unclear() {
        let mut micro = compared(&[("mem-mmap", 1.8984), ("getppid", 1.2)]);
        assert_eq!(
            (micro.others[0].counts.worse, micro.twins_wanted()),
            (2, vec!["mmap-thr-1", "mmap-proc-1"])
        );
        micro.doubt(&[compared(&[("mmap-thr-1", 1.0175)])]);
        assert_eq!(
            (micro.others[0].counts.worse, micro.others[0].counts.unclear),
            (1, 1)
        );
        let Verdict::Unclear(why) = &micro.rows[0].cells[0].compared.verdict else {
            panic!("{:?}", micro.rows[0])
        };
        assert!(
            why.to_string()
                .starts_with("its twin mmap-thr-1, which does the same operation, says -1.75%"),
            "{why}"
        );
    }

    #[test]
    fn twin_in_the_same_comparison_counts() {
        let both = compared(&[("mem-mmap", 1.8984), ("mmap-thr-1", 1.0)]);
        let counts = both.others[0].counts;
        assert_eq!((counts.worse, counts.unclear, counts.same), (0, 1, 1));
        assert_eq!(both.conclusion(), Conclusion::Unclear);
    }
}

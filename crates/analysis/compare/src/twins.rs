//! What twins, workloads of other suites that do the same operation, say to a row.

use model::{Uncertainty, Verdict};

use crate::comparison::{Comparison, ComparisonCell, ComparisonRow};

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
        let is_clear = |cell: &ComparisonCell| {
            matches!(cell.compared.verdict, Verdict::Better | Verdict::Worse)
        };
        let rows = self
            .rows
            .iter()
            .filter(|row| row.cells.iter().any(is_clear));
        rows.flat_map(|row| model::twins(&row.workload.name))
            .collect()
    }

    /// Makes rows unclear that their twins contradict, in this comparison or in others of the same
    /// kernels.
    pub fn doubt(&mut self, others: &[Self]) {
        let rows = || {
            self.rows
                .iter()
                .chain(others.iter().flat_map(|other| &other.rows))
        };
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
                let seen = |twin: &ComparisonRow| {
                    let compared = &twin.cells.get(place)?.compared;
                    let is_known = is_exact || !matches!(compared.verdict, Verdict::Unclear(_));
                    let effect = Effect {
                        ratio: compared.ratio?,
                        margin_percent: twin.margin_percent,
                    };
                    is_known.then_some((
                        twin.workload.name.to_string(),
                        compared.difference_percent?,
                        effect,
                    ))
                };
                let seen: Vec<_> = rows()
                    .filter(|twin| twins.contains(&&*twin.workload.name))
                    .filter_map(seen)
                    .collect();
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

#[cfg(test)]
mod tests {
    use model::{Uncertainty, Verdict};

    use super::{Effect, contradiction};
    use crate::compare::compare;
    use crate::comparison::{Comparison, Conclusion};
    use crate::fixtures::{Ending, Subject, build, question};
    use crate::question::Question;

    fn of(own: f64, twins: &[f64]) -> Option<Uncertainty> {
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
        let why = of(-89.84, &[-1.75]).unwrap();
        assert_eq!(
            why,
            Uncertainty::Contradicted {
                twin: "twin-1.75".into(),
                difference_percent: -1.75
            }
        );
        assert!(of(20.0, &[-3.0]).is_some() && of(-4.0, &[0.0]).is_some());
        // The twin's own row is not: the other one shows as much and more.
        assert_eq!(of(-1.75, &[-89.84]), None);
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
            assert_eq!(of(own, twins), None, "{own} {twins:?}");
        }
        assert_eq!(of(f64::NAN, &[1.0]), None);
    }

    /// Compares two kernels, of which the newer costs so many times as much.
    fn compared(workloads: &[(&'static str, f64)]) -> Comparison {
        let kernel = |version: &str, is_new: bool| {
            let cost = |ratio: f64| Ending::Cost(if is_new { 100.0 * ratio } else { 100.0 }, 0.0);
            let endings: Vec<(&str, Ending)> = workloads
                .iter()
                .map(|(name, ratio)| (*name, cost(*ratio)))
                .collect();
            Subject::new(build("deb:6.12", version), &[1, 2], &endings)
        };
        let old = kernel("6.12.1", false);
        let new = kernel("6.16.1", true);
        let declared = workloads
            .iter()
            .map(|(name, _)| model::find_workload(name).unwrap());
        let question = Question {
            workloads: declared.collect(),
            ..question(&[1, 2])
        };
        compare(&old.side(), &[new.side()], &question).unwrap()
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

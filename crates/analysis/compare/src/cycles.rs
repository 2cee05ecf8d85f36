//! The estimate of cycles beside counted values: of a run, of a difference, and what it makes of a
//! verdict. What instructions cost is `model::estimate_cycles`'s.

use model::{
    Costly, Cycles, Direction, PROCESSORS, Region, Uncertainty, Verdict, WorkloadResult,
    estimate_cycles,
};
use stats::Spread;

use crate::comparison::Measured;
use crate::difference::difference_percent;
use crate::value::count_work;
use crate::verdict::is_contradicted;

/// Returns the estimate of cycles per operation, for each assumption the median of the iterations
/// without the first; `None` if costly instructions were not counted.
pub(crate) fn of_result(result: &WorkloadResult) -> Option<Cycles> {
    let is_known = |region: &Region| region.costly.iter().any(|count| *count > 0);
    if !result.counted.iter().all(is_known) || result.operations == 0 {
        return None;
    }
    let iterations: Vec<Cycles> = result
        .counted
        .iter()
        .map(|region| estimate_cycles(count_work(region), &region.costly))
        .collect();
    let mut cycles = Cycles::default();
    for (place, median) in cycles.iter_mut().enumerate() {
        let of_one: Vec<f64> = iterations.iter().map(|one| one[place]).collect();
        *median = stats::median_without_first(&of_one)? / result.operations as f64;
    }
    Some(cycles)
}

/// Returns the costly instructions of a result by kind, per operation: the medians of the
/// iterations without the first.
pub(crate) fn costly_of_result(result: &WorkloadResult) -> Option<[f64; Costly::ALL.len()]> {
    let mut costly = [0.0; Costly::ALL.len()];
    for (kind, median) in costly.iter_mut().enumerate() {
        let counts: Vec<f64> = result
            .counted
            .iter()
            .map(|region| region.costly[kind] as f64 / result.operations as f64)
            .collect();
        *median = stats::median_without_first(&counts)?;
    }
    Some(costly)
}

/// Returns the least and the most difference of estimated cycles over the assumptions, from the
/// estimates of each seed; `None` unless every seed has them.
pub(crate) fn differences(seeds: &[Option<(Cycles, Cycles)>]) -> Option<Spread> {
    let seeds = seeds.iter().copied().collect::<Option<Vec<_>>>()?;
    let mut percents = Vec::new();
    for place in 0..Cycles::default().len() {
        let of_seeds: Option<Vec<f64>> = seeds
            .iter()
            .map(|(old, new)| difference_percent(Direction::LowerIsBetter, old[place], new[place]))
            .collect();
        percents.push(stats::median(&of_seeds?)?);
    }
    stats::spread(&percents)
}

/// Returns the verdict with what the estimate of cycles says to it. It is mixed if the middle of the
/// assumptions says the opposite of better or worse, or if all say more than the margin of what is
/// the same.
pub(crate) fn weigh(
    verdict: Verdict,
    counted_percent: Option<f64>,
    cycles_percent: Option<Spread>,
    margin_percent: f64,
) -> Verdict {
    let (Some(counted_percent), Some(cycles)) = (counted_percent, cycles_percent) else {
        return verdict;
    };
    if !is_contradicted(&verdict, cycles, margin_percent) {
        return verdict;
    }
    Verdict::Unclear(Uncertainty::Mixed {
        counted_percent,
        cycles_percent: [cycles.min, cycles.max],
        costly: String::new(),
    })
}

/// Most kinds of costly instructions that a reason names.
const COSTLY_NAMED: usize = 3;
/// Fewer of a kind per operation are none.
const COSTLY_LEAST: f64 = 0.005;

/// A kind of costly instruction that changed: executions per operation on both sides.
struct ChangedKind {
    kind: Costly,
    counts: [f64; 2],
}

/// Returns the kinds that changed, those first whose change costs most.
fn changed_kinds(base: &Measured, new: &Measured) -> Vec<ChangedKind> {
    let of = |side: &Measured, kind: usize| {
        let counts = side
            .seeds
            .iter()
            .filter_map(|seed| Some(seed.value.as_ref().ok()?.counted?.costly[kind]));
        stats::median(&counts.collect::<Vec<f64>>()).unwrap_or_default()
    };
    let mut changed = Vec::new();
    for (number, kind) in Costly::ALL.into_iter().enumerate() {
        let counts = [of(base, number), of(new, number)];
        if (counts[1] - counts[0]).abs() >= COSTLY_LEAST {
            changed.push(ChangedKind { kind, counts });
        }
    }
    let cost = |changed: &ChangedKind| {
        let [old, new] = changed.counts;
        PROCESSORS[0].costly[changed.kind as usize][1] * (new - old).abs()
    };
    changed.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    changed
}

/// Names the costly instructions that changed most by what they cost, per operation: `RDTSC 1.00 ->
/// 0.00`.
pub(crate) fn changed_costly(base: &Measured, new: &Measured) -> String {
    let named: Vec<String> = changed_kinds(base, new)
        .into_iter()
        .take(COSTLY_NAMED)
        .map(|ChangedKind { kind, counts }| {
            format!("{} {:.2} -> {:.2}", kind.title(), counts[0], counts[1])
        })
        .collect();
    named.join(", ")
}

/// The same in so many characters, by the words of JSON: `clock 1.0>0.0`.
pub(crate) fn changed_costly_within(base: &Measured, new: &Measured, width: usize) -> String {
    let mut text = String::new();
    for ChangedKind { kind, counts } in changed_kinds(base, new) {
        let gap = if text.is_empty() { "" } else { ", " };
        let next = format!("{gap}{} {:.1}>{:.1}", kind.name(), counts[0], counts[1]);
        if text.len() + next.len() > width {
            break;
        }
        text += &next;
    }
    text
}

#[cfg(test)]
mod tests {
    use model::{Costly, Region, Verdict};
    use stats::Spread;

    use super::weigh;
    use crate::compare::compare;
    use crate::comparison::{Comparison, Conclusion};
    use crate::fixtures::{Ending, Subject, build, question};

    #[test]
    fn estimate_whose_middle_disagrees_makes_a_row_mixed() {
        let weighed = |verdict: Verdict, counted: f64, min: f64, max: f64| {
            weigh(verdict, Some(counted), Some(Spread { min, max }), 1.0).letter()
        };
        assert_eq!(weighed(Verdict::Worse, -13.0, 0.5, 4.0), 'M');
        assert_eq!(
            weighed(Verdict::Worse, -13.0, -3.5, 4.0),
            'W',
            "within doubt"
        );
        // RDTSC or 40 cheap instructions, of 7.1: -10.7 % by count, +7.7 % published.
        assert_eq!(weighed(Verdict::Worse, -10.7, -1.6, 5.8), 'M');
        assert_eq!(weighed(Verdict::Better, 2.0, -2.0, 0.4), 'B');
        assert_eq!(weighed(Verdict::Better, 2.0, -9.0, -3.0), 'M');
        assert_eq!(weighed(Verdict::Same, 0.2, -9.0, -3.0), 'M');
        assert_eq!(weighed(Verdict::Same, 0.2, -9.0, -0.3), '=');
        assert_eq!(weighed(Verdict::Same, 0.2, 1.1, 3.0), 'M');
    }

    /// Returns a kernel with so many instructions per operation, of which so many are locked and
    /// read the clock.
    fn subject(version: &str, instructions: u64, [locked, clocks]: [u64; 2]) -> Subject {
        let mut subject = Subject::new(
            build(&format!("deb:{version}"), version),
            &[1],
            &[("getppid", Ending::Cost(instructions as f64, 0.0))],
        );
        for result in subject.runs.iter_mut().flat_map(|run| &mut run.results) {
            let mut region = Region {
                kernel: instructions * result.operations,
                ..Region::default()
            };
            region.costly[Costly::Entry as usize] = 2 * result.operations;
            region.costly[Costly::Locked as usize] = locked * result.operations;
            region.costly[Costly::Clock as usize] = clocks * result.operations;
            result.counted = vec![region; result.samples.len()];
        }
        subject
    }

    fn compared(base: &Subject, new: &Subject) -> Comparison {
        let mut question = question(&[1]);
        question.workloads.truncate(1);
        compare(&base.side(), &[new.side()], &question).unwrap()
    }

    #[test]
    fn cheap_instructions_for_a_dear_one_are_mixed() {
        // As a random offset of the kernel's stack by a generator instead of RDTSC.
        let comparison = compared(&subject("7.0", 300, [0, 1]), &subject("7.1", 320, [0, 0]));
        let compared = &comparison.rows[0].cells[0].compared;
        assert_eq!(compared.verdict.name(), "mixed");
        assert_eq!(comparison.others[0].counts.unclear, 1);
        assert_eq!(comparison.conclusion(), Conclusion::Unclear);
        let Verdict::Unclear(why) = &compared.verdict else {
            panic!("{compared:?}")
        };
        insta::assert_snapshot!(
            why.to_string(),
            @"mixed: -6.67% by instructions, +2.4 to +10.4% by estimated cycles: RDTSC 1.00 -> 0.00"
        );
    }

    #[test]
    fn locked_instructions_alone_are_mixed() {
        let comparison = compared(&subject("6.12", 300, [2, 1]), &subject("6.13", 300, [4, 1]));
        let compared = &comparison.rows[0].cells[0].compared;
        assert_eq!(compared.difference_percent, Some(0.0));
        assert_eq!(compared.verdict.letter(), 'M');
    }

    #[test]
    fn results_without_costly_instructions_have_no_estimate() {
        let mut old = subject("6.12", 300, [2, 1]);
        for result in old.runs.iter_mut().flat_map(|run| &mut run.results) {
            for region in &mut result.counted {
                region.costly = Default::default();
            }
        }
        let comparison = compared(&old, &subject("6.13", 300, [9, 1]));
        let compared = &comparison.rows[0].cells[0].compared;
        assert_eq!(
            (compared.cycles_percent, &compared.verdict),
            (None, &Verdict::Same)
        );
    }
}

//! Checks of the made-up worlds themselves: a world that is wrong proves nothing of a search.

use std::collections::BTreeSet;
use std::convert::Infallible;

use stabilise::{Change, Failure, Kernel, Trial, World};

use crate::made_up::invent::{invent, invent_with_drift};
use crate::made_up::plan::{Effect, Lie, Part, Plan};
use crate::made_up::small::small;
use crate::made_up::truth::{Truth, in_order};
use crate::made_up::world::{MARGIN_PERCENT, MadeUp};

/// Seeds of the checks; those of the search are among them.
const WORLDS: u64 = 200;

fn value(world: &mut MadeUp, kernel: &Kernel, row: usize) -> f64 {
    match world.trial(kernel, &[row]) {
        Ok(Trial::Measured { values, .. }) => values[&row][0],
        Ok(Trial::Failed(failure)) => panic!("{kernel:?}: {failure:?}"),
    }
}

#[test]
fn equal_seeds_make_equal_worlds() {
    assert_eq!(invent(7), invent(7));
    assert_ne!(invent(7), invent(8));
    assert_eq!(Truth::compute(&invent(7)), Truth::compute(&invent(7)));
}

#[test]
fn right_series_has_the_effect_it_claims() {
    for seed in 0..WORLDS {
        let plan = invent(seed);
        let truth = Truth::compute(&plan);
        assert_eq!(
            truth.check_series(&plan, &truth.series),
            Ok(()),
            "seed {seed}"
        );
        let mut world = MadeUp::new(plan);
        let series = Kernel::With(truth.series.clone());
        for (row, goal) in truth.debts.iter().zip(&truth.goal) {
            let old = value(&mut world, &Kernel::With(Vec::new()), *row);
            let new = value(&mut world, &series, *row);
            let percent = (old - new) / old * 100.0;
            assert!(
                (percent - goal).abs() < 0.1,
                "seed {seed}, row {row}: {percent} instead of {goal}"
            );
        }
        for row in 0..world.plan.rows.len() {
            let old = value(&mut world, &Kernel::With(Vec::new()), row);
            let new = value(&mut world, &series, row);
            assert!(
                (new - old) / old * 100.0 < MARGIN_PERCENT + 0.1,
                "seed {seed}: row {row} is worse"
            );
        }
    }
}

/// Without a member the series loses something, or is no kernel; and no other change can be added
/// for a gain.
#[test]
fn right_series_is_minimal_and_complete() {
    for seed in 0..WORLDS {
        let plan = invent(seed);
        let truth = Truth::compute(&plan);
        for left_out in &truth.series {
            let less: Vec<Change> = truth
                .series
                .iter()
                .copied()
                .filter(|change| change != left_out)
                .collect();
            assert!(
                truth.check_series(&plan, &less).is_err(),
                "seed {seed}: {left_out:?} is not needed"
            );
        }
        let judged = |changes: &BTreeSet<Change>| {
            let kernel = Kernel::With(in_order(changes));
            let content = plan.content(&kernel);
            (plan.failure(&kernel, &content).is_none(), content)
        };
        let new = plan.content(&Kernel::With(Vec::new()));
        let (_, best) = judged(&truth.series.iter().copied().collect());
        for candidate in 0..plan.candidates.len() {
            let mut more: BTreeSet<Change> = truth.series.iter().copied().collect();
            more.insert(Change::Apply(candidate));
            let (is_kernel, content) = judged(&more);
            let is_allowed = (0..plan.rows.len())
                .all(|row| plan.percent(&new, &content, row) >= -MARGIN_PERCENT);
            let is_better = is_kernel
                && is_allowed
                && (truth.debts.iter())
                    .any(|row| plan.percent(&best, &content, *row) > MARGIN_PERCENT);
            assert!(!is_better, "seed {seed}: candidate {candidate} is missing");
        }
    }
}

fn harms_by_candidate(effect: &Effect) -> bool {
    let mut parts = effect.needs.iter();
    effect.instructions > 0 && parts.any(|part| matches!(part, Part::Candidate(_)))
}

/// The variety that the file of the inventor promises: no kind of world is rare.
#[test]
fn worlds_have_every_kind_of_difficulty() {
    let mut kinds = vec![
        ("causes", 0),
        ("five visible causes", 0),
        ("reverts", 0),
        ("misled repairs", 0),
        ("unseen prerequisites", 0),
        ("harm", 0),
        ("unequal baselines", 0),
        ("broken points", 0),
    ];
    for seed in 0..WORLDS {
        let plan = invent(seed);
        let truth = Truth::compute(&plan);
        let mut candidates = plan.candidates.iter().enumerate();
        let hides_member = candidates.any(|(at, it)| {
            truth.series.contains(&Change::Apply(at)) && it.patch.lie == Some(Lie::Hidden)
        });
        let unseen = plan
            .effects
            .iter()
            .flat_map(|effect| &effect.repairs)
            .any(|repair| !repair.with.is_empty());
        let is_unshown = plan
            .candidates
            .iter()
            .any(|it| it.builds_with.iter().any(|other| !it.shown.contains(other)));
        let holds = [
            (3..=5).contains(&truth.causes.len())
                && truth.causes.iter().all(|cause| plan.causes.contains(cause)),
            truth.causes.len() == 5,
            !truth.reverts.is_empty(),
            hides_member,
            unseen || is_unshown,
            plan.effects.iter().any(harms_by_candidate),
            plan.side.is_some(),
            !plan.breaks.is_empty(),
        ];
        for (kind, holds) in kinds.iter_mut().zip(holds) {
            kind.1 += u64::from(holds);
        }
        assert!(
            (10..=40).contains(&truth.oracle),
            "seed {seed}: an oracle builds {}",
            truth.oracle
        );
        assert_eq!(plan.commits.len() + plan.candidates.len(), 300);
    }
    println!("{kinds:?} of {WORLDS}");
    assert_eq!(kinds[0].1, WORLDS, "causes are those that were invented");
    assert!(
        kinds.iter().all(|(_, count)| *count >= WORLDS / 20),
        "{kinds:?}"
    );
}

#[test]
fn evidence_misleads_for_a_fifth() {
    let mut lies = 0;
    let mut all = 0;
    for seed in 0..WORLDS {
        let plan = invent(seed);
        lies += plan
            .candidates
            .iter()
            .filter(|candidate| candidate.patch.lie.is_some())
            .count();
        all += plan.candidates.len();
    }
    let share = lies as f64 / all as f64;
    assert!((0.18..0.22).contains(&share), "{share}");
}

fn conflict(change: Change) -> Result<Trial, Infallible> {
    Ok(Trial::Failed(Failure::Conflict {
        change,
        files: vec![],
    }))
}

fn without_files(answer: Result<Trial, Infallible>) -> Result<Trial, Infallible> {
    match answer {
        Ok(Trial::Failed(Failure::Conflict { change, .. })) => conflict(change),
        other => other,
    }
}

#[test]
fn kernels_are_built_once_and_conflicts_never() {
    let mut plan = small(2, 4, 3).cause(2, 0, 500, &[&[1]]);
    plan.commits[1].below = Some(4);
    plan.candidates[1].applies_on.push(0);
    let mut world = MadeUp::new(plan);
    let revert = without_files(world.trial(&Kernel::With(vec![Change::Revert(2)]), &[0]));
    assert_eq!(revert, conflict(Change::Revert(2)));
    let apply = without_files(world.trial(&Kernel::With(vec![Change::Apply(1)]), &[0]));
    assert_eq!((apply, world.builds()), (conflict(Change::Apply(1)), 0));
    let new = Kernel::Point(4);
    assert!(world.cost_s(&new) >= 0.5);
    assert_eq!(
        (
            value(&mut world, &new, 0),
            value(&mut world, &Kernel::With(vec![]), 1)
        ),
        (10_500.0, 10_000.0)
    );
    assert_eq!(
        (world.builds(), world.cost_s(&new)),
        (1, 0.0),
        "one kernel by two names"
    );
    let both = Kernel::With(vec![Change::Apply(0), Change::Apply(1)]);
    assert_eq!((value(&mut world, &both, 0), world.builds()), (10_000.0, 2));
}

#[test]
fn uncompiled_changes_keep_the_image() {
    let mut plan = small(1, 2, 2);
    plan.commits[0].patch.is_compiled = false;
    plan.candidates[0].patch.is_compiled = false;
    let image = |kernel: &Kernel| plan.image(&plan.content(kernel));
    assert_eq!(image(&Kernel::Baseline), image(&Kernel::Point(1)));
    assert_ne!(image(&Kernel::Point(1)), image(&Kernel::Point(2)));
    assert_eq!(
        image(&Kernel::Point(2)),
        image(&Kernel::With(vec![Change::Revert(1), Change::Apply(0)]))
    );
    assert_ne!(
        image(&Kernel::Point(2)),
        image(&Kernel::With(vec![Change::Apply(1)]))
    );
}

/// Drift does not change which series is right.
#[test]
fn drift_keeps_the_right_series() {
    for seed in 0..60 {
        let plain = invent(seed);
        let drifting = invent_with_drift(seed);
        assert!(plain.effects.len() < drifting.effects.len());
        let right = Truth::compute(&plain);
        let with_drift = Truth::compute(&drifting);
        assert_eq!(right.debts, with_drift.debts, "seed {seed}");
        assert_eq!(
            (right.causes, right.reverts),
            (with_drift.causes, with_drift.reverts),
            "seed {seed}"
        );
        assert_eq!(right.series.len(), with_drift.series.len(), "seed {seed}");
    }
}

/// Two alternatives for one cause: two ends, the revert, each repair, and the series, which is one
/// of these.
#[test]
fn oracle_counts_equal_kernels_once() {
    let plan: Plan = small(1, 5, 3).cause(3, 0, 400, &[&[0], &[2]]);
    let truth = Truth::compute(&plan);
    assert_eq!((truth.oracle, truth.causes.as_slice()), (5, [3].as_slice()));
    assert_eq!(truth.check_series(&plan, &[Change::Apply(0)]), Ok(()));
    assert_eq!(truth.check_series(&plan, &[Change::Apply(2)]), Ok(()));
    for wrong in [
        &[Change::Apply(1)][..],
        &[Change::Apply(0), Change::Apply(2)],
        &[Change::Revert(3)],
        &[],
    ] {
        assert!(truth.check_series(&plan, wrong).is_err(), "{wrong:?}");
    }
}

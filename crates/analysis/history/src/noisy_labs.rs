//! Whole labs of noisy machines: alerts show what came with the newest kernels, and nothing else.

use std::collections::BTreeSet;

use compare::fixtures::{Ending, Subject, build};
use model::{Decision, MMTESTS, ReleaseLine, Triage, UnixTime, Verdict, imported_metric};
use stats::synthetic::{Chance, Kind};

use super::index::{KernelIx, KernelPair};
use super::noisy_tests::{host, imported};
use super::tests::taken;
use super::{Alert, Card, alerts, overview, triage_alerts};

const KERNELS: usize = 20;
const BOOTS: usize = 5;

/// Returns the alerts of a lab with noise of 0.5 %; `factor` is what a workload costs on a kernel,
/// in parts of its level.
fn lab(workloads: usize, seed: u64, factor: impl Fn(usize, usize) -> f64) -> Vec<Alert> {
    lab_of(workloads, seed, |workload, kernel, chance| {
        factor(workload, kernel) * (0.005 * chance.normal()).exp()
    })
}

/// Returns the alerts of a lab of workloads over 20 kernels of 5 boots each; `boot` is what a
/// workload costs in a boot of a kernel, in parts of its level.
fn lab_of(
    workloads: usize,
    seed: u64,
    boot: impl Fn(usize, usize, &mut Chance) -> f64,
) -> Vec<Alert> {
    let mut chance = Chance::new(seed);
    let kernel = |kernel: usize| {
        let mut subject = Subject::new(
            build("imported:mmtests/x", &format!("6.1.{kernel}")),
            &[],
            &[],
        );
        for number in 0..BOOTS {
            let value = |workload: usize, chance: &mut Chance| {
                (
                    format!("kernbench{workload}/Elapsed-4"),
                    100.0 * boot(workload, kernel, chance),
                )
            };
            let values: Vec<(String, f64)> = (0..workloads)
                .map(|workload| value(workload, &mut chance))
                .collect();
            let endings: Vec<(&str, Ending)> = values
                .iter()
                .map(|(name, value)| (name.as_str(), Ending::Samples(vec![*value])))
                .collect();
            subject.add_run(number as u64, &endings);
        }
        for run in &mut subject.runs {
            MMTESTS.clone_into(&mut run.suite);
            for result in &mut run.results {
                result.operations = 1;
                result.declared = Some(imported_metric(MMTESTS, &result.workload));
            }
        }
        subject.on(host())
    };
    alerts(
        &taken(&(0..KERNELS).map(kernel).collect::<Vec<_>>()),
        ReleaseLine::All,
    )
}

#[test]
fn regressions_of_newest_kernels_are_all_alerts() {
    // Workload 0 is worse since the newest kernel, workload 4 since the fifth newest; the others
    // never.
    let found = lab(800, 1, |workload, kernel| {
        if workload < 5 && kernel + workload + 1 >= KERNELS {
            1.1
        } else {
            1.0
        }
    });
    let members: BTreeSet<(String, String)> = found
        .iter()
        .flat_map(|alert| {
            alert
                .members
                .iter()
                .map(|member| (alert.name.clone(), member.key.workload.to_string()))
        })
        .collect();
    let at = |kernel: usize, workload: usize| {
        (
            format!("imported@6.1.{kernel}"),
            format!("kernbench{workload}/Elapsed-4"),
        )
    };
    assert_eq!(
        members,
        (0..5)
            .map(|workload| at(KERNELS - 1 - workload, workload))
            .collect()
    );
    assert!(
        found
            .iter()
            .flat_map(|alert| &alert.members)
            .all(|member| member.verdict == Verdict::Worse)
    );
    // The first screen shows all of them: the newest kernel against the one before, and what is
    // open since earlier ones.
    let kernels: Vec<_> = (0..KERNELS)
        .map(|kernel| imported(&format!("6.1.{kernel}"), "stream/copy", &[&[1.0]]))
        .collect();
    let history = taken(&kernels);
    let all = triage_alerts(&history, found, &[], &[]);
    let newest = KernelPair {
        base: KernelIx(KERNELS - 2),
        target: KernelIx(KERNELS - 1),
    };
    let screen = overview(&history, newest, &all);
    let shown: BTreeSet<usize> = screen
        .cards
        .iter()
        .filter_map(|card| {
            if let Card::Alert(number) = card {
                Some(*number)
            } else {
                None
            }
        })
        .chain(screen.earlier.iter().copied())
        .collect();
    assert_eq!((shown.len(), screen.earlier.len()), (5, 4), "{screen:?}");
}

#[test]
fn labs_without_changes_have_no_alerts() {
    for seed in 0..10 {
        assert!(lab(40, seed, |_, _| 1.0).is_empty(), "seed {seed}");
    }
}

#[test]
fn fixed_regression_of_few_kernels_stays_listed() {
    for length in 3..=5 {
        let bad = 10..10 + length;
        let slow = |workload: usize, kernel: usize| workload == 3 && bad.contains(&kernel);
        let found = lab(
            40,
            7,
            |workload, kernel| if slow(workload, kernel) { 1.25 } else { 1.0 },
        );
        let described: Vec<_> = found
            .iter()
            .map(|alert| (alert.name.as_str(), alert.counts()))
            .collect();
        assert_eq!(
            described,
            [("imported@6.1.10", (0, 0, 1))],
            "{length} kernels: {found:?}"
        );
        let member = &found[0].members[0];
        assert!(
            member.gone.is_some() && (-26.0..-24.0).contains(&member.difference_percent.unwrap()),
            "{member:?}"
        );
    }
}

/// Kinds of noise between boots, one for each workload in turn.
const KINDS: [Kind; 6] = [
    Kind::Between,
    Kind::HeavyBetween,
    Kind::ModesBetween,
    Kind::Skewed,
    Kind::Steps(1.0),
    Kind::Steps(10.0),
];

#[test]
#[expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the figure"
)]
fn large_labs_without_changes_have_no_alerts() {
    let labs = if std::env::var_os("MARVIN_FULL").is_some() {
        200
    } else {
        2
    };
    let mut false_alerts = Vec::new();
    for seed in 0..labs {
        let found = lab_of(800, 1000 + seed, |workload, _, chance| {
            KINDS[workload % KINDS.len()].value(chance)
        });
        for member in found.iter().flat_map(|alert| &alert.members) {
            false_alerts.push(format!(
                "lab {seed}: {} {:?}",
                member.key.workload, member.basis
            ));
        }
    }
    println!(
        "{labs} labs of 800 series without changes: {} series in alerts",
        false_alerts.len()
    );
    assert!(false_alerts.is_empty(), "{false_alerts:#?}");
}

#[test]
fn slow_drift_is_one_alert() {
    let drift = |_: usize, kernel: usize| 1.0 + 0.004 * kernel as f64;
    let found = lab(3, 2, |workload, kernel| {
        if workload == 0 {
            drift(workload, kernel)
        } else {
            1.0
        }
    });
    let names: Vec<&str> = found.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(names, ["imported@creep-since-6.1.0"], "{found:?}");
    let version = |kernel: usize| format!("6.1.{kernel}");
    let decision = Decision {
        track: found[0].decision_track(),
        after: version(0),
        at: version(12),
        triage: Triage::Apparent,
        note: String::new(),
        worse: 1,
        decided_unix: UnixTime::new(0),
    };
    let history = taken(&[
        imported(&version(0), "stream/copy", &[&[1.0]]),
        imported(&version(19), "stream/copy", &[&[1.0]]),
    ]);
    let again = Alert {
        at: KernelIx(1),
        ..found[0].clone()
    };
    assert!(
        !triage_alerts(&history, vec![again], &[decision], &[])[0].is_open(),
        "a decision holds as kernels follow"
    );
    let drift = found[0].members[0].difference_percent.unwrap();
    assert!((-9.0..-6.0).contains(&drift), "{drift}");
}

//! Results of earlier runs: which are reused, and which measured again.

use std::sync::Arc;

use lab::{Dumps, Event, Plan, Reuse};
use model::{Clock, FailureReason, GuestConfig, Outcome, Stage, Workload};

use crate::{Does, Story, build, declared, open, plan, samples, steady, story, story_on};

/// Measures a build with these workloads and replicates; returns the numbers of planned jobs and of
/// reused results.
fn ask(story: &Story, names: &[&str], replicates: &[u64]) -> (usize, usize) {
    story
        .execute(&plan(&[&build("6.1")], names, replicates))
        .planned()
}

#[test]
fn stored_results_are_not_measured_again() {
    let story = story_on(steady());
    assert_eq!(ask(&story, &["getppid", "signal"], &[1, 2]), (6, 0));
    let before = story.machine.log();
    assert_eq!(ask(&story, &["getppid", "signal"], &[1, 2]), (0, 4));
    assert_eq!(story.machine.log(), before);
}

#[test]
fn stored_runs_are_reduced_to_the_plan() {
    let story = story_on(steady());
    ask(&story, &["getppid", "signal"], &[1, 2]);
    let runs = story
        .execute(&plan(&[&build("6.1")], &["signal"], &[2]))
        .runs
        .unwrap();
    let found: Vec<(u64, &str)> = runs[0]
        .iter()
        .flat_map(|run| run.results.iter().map(|r| (run.seed, r.workload.as_str())))
        .collect();
    assert_eq!(found, [(2, "signal")]);
}

#[test]
fn only_missing_workloads_are_measured() {
    let story = story_on(steady());
    ask(&story, &["getppid"], &[1]);
    assert_eq!(ask(&story, &["getppid", "signal"], &[1]), (2, 1));
    assert_eq!(
        (
            story.count_requests("6.1 #1 getppid"),
            story.count_requests("6.1 #1 signal")
        ),
        (1, 1)
    );
}

#[test]
fn only_missing_replicates_are_measured() {
    let story = story_on(steady());
    ask(&story, &["getppid"], &[1, 3]);
    assert_eq!(ask(&story, &["getppid"], &[1, 2, 3]), (2, 2));
    assert_eq!(story.count_requests("boot 6.1 #2"), 1);
}

#[test]
fn only_the_missing_side_is_measured() {
    let story = story_on(steady());
    ask(&story, &["getppid"], &[1]);
    let message = story.execute(&plan(&[&build("6.1"), &build("6.12")], &["getppid"], &[1]));
    assert_eq!(
        (
            message.planned(),
            story.count_requests("boot 6.1 "),
            story.count_requests("boot 6.12 ")
        ),
        ((2, 1), 1, 1)
    );
}

#[test]
fn force_measures_everything_again() {
    let story = story_on(steady());
    ask(&story, &["getppid"], &[1]);
    let kernel = build("6.1");
    let message = story.execute(&Plan {
        reuse: Reuse::Nothing,
        ..plan(&[&kernel], &["getppid"], &[1])
    });
    assert_eq!(
        (message.planned(), story.count_requests("6.1 #1 getppid")),
        ((2, 0), 2)
    );
}

#[test]
fn newer_of_two_results_is_used() {
    let story = story(|request| Does::Takes(100 + request.times as u64));
    ask(&story, &["getppid"], &[1]);
    // Runs of the same second have no order.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let kernel = build("6.1");
    story
        .execute(&Plan {
            reuse: Reuse::Nothing,
            ..plan(&[&kernel], &["getppid"], &[1])
        })
        .runs
        .unwrap();
    let runs = story
        .execute(&plan(&[&kernel], &["getppid"], &[1]))
        .runs
        .unwrap();
    assert!((samples(&runs[0][0], "getppid")[0] - 101.0).abs() < 1e-9);
}

/// Measures `getppid`, then a changed one; returns how often it ran.
fn changed(story: &Story, change: impl FnOnce(&mut Workload)) -> usize {
    ask(story, &["getppid"], &[1]);
    let mut workload = (**declared("getppid")).clone();
    change(&mut workload);
    let kernel = build("6.1");
    story
        .execute(&Plan {
            workloads: vec![Arc::new(workload)],
            ..plan(&[&kernel], &[], &[1])
        })
        .runs
        .unwrap();
    story.count_requests("6.1 #1 getppid")
}

#[test]
fn other_operations_are_measured_again() {
    assert_eq!(
        changed(&story_on(steady()), |workload| workload.operations /= 2),
        2
    );
}

#[test]
fn other_iterations_are_measured_again() {
    assert_eq!(
        changed(&story_on(steady()), |workload| workload.iterations += 1),
        2
    );
}

#[test]
fn other_guest_config_is_measured_again() {
    assert_eq!(
        changed(&story_on(steady()), |workload| workload.guest_config =
            GuestConfig::with_memory(512)),
        2
    );
}

#[test]
fn other_margin_reuses_results() {
    assert_eq!(
        changed(&story_on(steady()), |workload| workload
            .metric
            .margin_percent = 5.0),
        1
    );
}

#[test]
fn values_by_another_clock_are_not_used() {
    let mut story = story_on(steady());
    ask(&story, &["getppid"], &[1]);
    let machine = std::sync::Arc::new(steady().that_can(|can| can.clock = Clock::Seconds));
    drop(story.lab);
    story.lab = open(story.home.path(), &machine);
    story.machine = machine;
    assert_eq!(ask(&story, &["getppid"], &[1]), (2, 0));
}

#[test]
fn results_outlive_their_lab() {
    let mut story = story_on(steady());
    ask(&story, &["getppid"], &[1]);
    drop(story.lab);
    story.lab = open(story.home.path(), &story.machine);
    assert_eq!(ask(&story, &["getppid"], &[1]), (0, 1));
}

/// A machine on which `getppid` fails for this reason.
fn failing(reason: FailureReason) -> Story {
    story(move |request| match request.job {
        Some("getppid") => Does::Fails(Stage::Workload, reason.clone()),
        _ => Does::Takes(1),
    })
}

#[test]
fn stored_failure_is_reused() {
    let story = failing(FailureReason::Hung);
    ask(&story, &["getppid"], &[1]);
    assert_eq!(ask(&story, &["getppid"], &[1]), (0, 1));
}

#[test]
fn stored_unsupported_outcome_is_reused() {
    let story = story(|request| match request.job {
        Some("getppid") => Does::Says(vec![wire::Frame::Unsupported("no such call".into())]),
        _ => Does::Takes(1),
    });
    ask(&story, &["getppid"], &[1]);
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    assert_eq!(message.planned(), (0, 1));
    assert_eq!(
        message.runs.unwrap()[0][0].results[0].outcome,
        Outcome::Unsupported("no such call".into())
    );
}

#[test]
fn stored_boot_failure_is_reused() {
    let story = story(|_| Does::Fails(Stage::Boot, FailureReason::DidNotBoot));
    ask(&story, &["getppid"], &[1]);
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1, 2, 3]));
    assert_eq!(message.count(|event| *event == Event::JobSkipped), 4);
    assert_eq!(story.count_requests("boot"), 1);
}

#[test]
fn death_without_dump_is_measured_again() {
    let story = failing(FailureReason::Panicked);
    ask(&story, &["getppid"], &[1]);
    let kernel = build("6.1");
    let message = story.execute(&Plan {
        dumps: Dumps::Keep,
        ..plan(&[&kernel], &["getppid"], &[1])
    });
    assert_eq!(message.planned(), (2, 0));
}

#[test]
fn second_estimate_uses_the_first_run() {
    let known = |message: crate::PlanResult| {
        let estimate = message.events.into_iter().find_map(|event| match event {
            Event::Estimated(estimate) => Some(estimate),
            _ => None,
        });
        estimate.map(|estimate| (estimate.known, estimate.guessed))
    };
    let story = story_on(steady());
    let kernel = build("6.1");
    assert_eq!(
        known(story.execute(&plan(&[&kernel], &["getppid"], &[1]))),
        Some((0, 3))
    );
    assert_eq!(
        known(story.execute(&plan(&[&kernel], &["getppid", "signal"], &[2]))),
        Some((3, 1))
    );
    assert_eq!(
        known(story.execute(&plan(&[&kernel], &["getppid"], &[1]))),
        None,
        "nothing is to be done"
    );
}

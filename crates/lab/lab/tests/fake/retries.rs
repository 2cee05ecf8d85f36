//! A lab that fails: what it retries, how often, and what it stores when it gives up.

use lab::LabError;
use machine::{FakeRequest, MachineError};
use model::Fault;

use crate::{Does, Story, build, lost, plan, story};

/// A test in which the lab fails `times` times at this job, or at the boot for `None`.
fn breaks(times: usize, job: Option<&'static str>) -> Story {
    story(move |request: &FakeRequest<'_>| {
        if request.job == job && request.times < times {
            lost()
        } else {
            Does::Takes(1)
        }
    })
}

#[test]
fn boot_failing_twice_is_retried() {
    let story = breaks(2, None);
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    assert_eq!((message.retries(), story.count_requests("boot")), (2, 3));
    assert_eq!(
        message.runs.unwrap()[0][0].results[0].outcome,
        model::Outcome::Completed
    );
}

#[test]
fn boot_failing_three_times_ends_the_plan() {
    let story = breaks(3, None);
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    let error = message.runs.as_ref().unwrap_err();
    assert!(
        matches!(error, LabError::GaveUp { tries: 3, .. }),
        "{error}"
    );
    assert_eq!(
        (
            error.fault(),
            message.retries(),
            story.count_requests("6.1")
        ),
        (Fault::Lab, 2, 0)
    );
}

#[test]
fn job_failing_once_is_retried() {
    let story = breaks(1, Some("getppid"));
    assert_eq!(story.outcomes("6.1", &["getppid"]), ["completed"]);
    assert_eq!(
        (
            story.count_requests("boot"),
            story.count_requests("6.1 #1 getppid")
        ),
        (1, 2),
        "the boot is still good"
    );
}

#[test]
fn failed_environment_job_is_retried() {
    let story = breaks(2, Some("environment"));
    let runs = story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
        .runs
        .unwrap();
    assert_eq!(runs[0][0].environment.len(), 1);
}

#[test]
fn failed_symbols_job_is_retried() {
    let story = breaks(1, Some("symbols"));
    let runs = story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
        .runs
        .unwrap();
    assert!(!runs[0][0].results[0].counted.is_empty());
}

#[test]
fn each_job_has_its_own_retries() {
    let story = story(|request| {
        if request.times < 2 {
            lost()
        } else {
            Does::Takes(1)
        }
    });
    let message = story.execute(&plan(&[&build("6.1")], &["getppid", "signal"], &[1]));
    // Boot, environment, symbols and two workloads.
    assert_eq!(message.retries(), 10);
    assert_eq!(message.runs.unwrap()[0][0].results.len(), 2);
}

#[test]
fn permanent_failure_is_not_retried() {
    let story = story(move |request| {
        if request.job == Some("getppid") {
            Does::Breaks(MachineError::Refused {
                command: "cont".into(),
                answer: "no".into(),
            })
        } else {
            Does::Takes(1)
        }
    });
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    let error = message.runs.as_ref().unwrap_err();
    assert!(
        matches!(error, LabError::Machine(MachineError::Refused { .. })),
        "{error}"
    );
    assert_eq!(
        (message.retries(), story.count_requests("6.1 #1 getppid")),
        (0, 1)
    );
}

#[test]
fn kernel_failure_is_not_retried() {
    let story = story(|request: &FakeRequest<'_>| match request.job {
        Some("getppid") => Does::Fails(model::Stage::Workload, model::FailureReason::Panicked),
        _ => Does::Takes(1),
    });
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    assert_eq!(
        (message.retries(), story.count_requests("6.1 #1 getppid")),
        (0, 1)
    );
}

#[test]
fn run_without_results_is_not_stored() {
    let story = breaks(3, Some("getppid"));
    story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
        .runs
        .unwrap_err();
    assert_eq!(
        story
            .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
            .planned(),
        (2, 0)
    );
}

#[test]
fn results_before_a_lab_failure_are_stored() {
    let story = breaks(3, Some("signal"));
    let question =
        |story: &Story| story.execute(&plan(&[&build("6.1")], &["getppid", "signal"], &[1]));
    question(&story).runs.unwrap_err();
    let message = question(&story);
    assert_eq!(
        message.planned(),
        (2, 1),
        "the environment again, and the workload that is missing"
    );
    assert_eq!(story.count_requests("6.1 #1 getppid"), 1);
    assert_eq!(
        message.runs.unwrap()[0]
            .iter()
            .flat_map(|run| &run.results)
            .count(),
        2
    );
}

#[test]
fn no_item_starts_after_a_lab_failure() {
    let story = breaks(3, None);
    story
        .execute(&plan(
            &[&build("6.1"), &build("6.12")],
            &["getppid"],
            &[1, 2],
        ))
        .runs
        .unwrap_err();
    assert_eq!(story.machine.log(), ["boot 6.1 #1"; 3]);
}

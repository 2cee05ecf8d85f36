//! Kernels that fail at each stage: each failure is a result, and the rest of the plan continues.

use lab::{Dumps, Event, Plan};
use model::{FailureReason, Stage};
use wire::Frame;

use crate::{Does, build, outcome_text, plan, samples, story};

fn panics(request: &machine::FakeRequest<'_>, version: &str, job: Option<&str>) -> Does {
    if request.version == version && request.job == job {
        let stage = if job.is_some() {
            Stage::Workload
        } else {
            Stage::Boot
        };
        return Does::Fails(stage, FailureReason::Panicked);
    }
    Does::Takes(100)
}

#[test]
fn unbootable_kernel_fails_all_workloads() {
    let story = story(|request| panics(request, "6.1", None));
    assert_eq!(
        story.outcomes("6.1", &["getppid", "signal"]),
        ["panicked (boot)", "panicked (boot)"]
    );
    assert_eq!(story.count_requests("6.1"), 0, "nothing runs on it");
}

#[test]
fn each_boot_stage_is_reported() {
    for (stage, reason) in [
        (Stage::Boot, FailureReason::DidNotBoot),
        (Stage::Settle, FailureReason::OutOfMemory),
        (Stage::Restore, FailureReason::Oopsed),
    ] {
        let expected = format!("{reason} ({stage})");
        let story = story(move |_| Does::Fails(stage, reason.clone()));
        assert_eq!(story.outcomes("6.1", &["getppid"]), [expected]);
    }
}

#[test]
fn hanging_boot_is_the_kernels_failure() {
    let story = story(|request| {
        if request.job.is_none() {
            Does::Hangs(Stage::Settle)
        } else {
            Does::Takes(1)
        }
    });
    assert_eq!(story.outcomes("6.1", &["getppid"]), ["hung (settle)"]);
    assert_eq!(story.count_requests("boot"), 1, "the same boot hangs again");
}

#[test]
fn unbootable_kernel_skips_other_replicates() {
    let story = story(|request| panics(request, "6.1", None));
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1, 2, 3]));
    assert_eq!(message.count(|event| *event == Event::JobSkipped), 4);
    assert_eq!(
        (message.runs.unwrap()[0].len(), story.count_requests("boot")),
        (1, 1)
    );
}

#[test]
fn failed_side_leaves_the_other_measured() {
    let story = story(|request| panics(request, "6.1", None));
    let runs = story
        .execute(&plan(
            &[&build("6.1"), &build("6.12")],
            &["getppid"],
            &[1, 2],
        ))
        .runs
        .unwrap();
    assert_eq!((runs[0].len(), runs[1].len()), (1, 2));
    assert!(
        runs[1]
            .iter()
            .all(|run| !samples(run, "getppid").is_empty())
    );
}

#[test]
fn panicking_workload_leaves_others_alone() {
    let story = story(|request| panics(request, "6.1", Some("signal")));
    let found = story.outcomes("6.1", &["getppid", "signal", "fork-exit"]);
    assert_eq!(found, ["completed", "panicked (workload)", "completed"]);
}

#[test]
fn hanging_workload_is_the_kernels_failure() {
    assert_eq!(
        story(|request: &machine::FakeRequest<'_>| match request.job {
            Some("signal") => Does::Hangs(Stage::Workload),
            _ => Does::Takes(1),
        })
        .outcomes("6.1", &["signal", "getppid"]),
        ["hung (workload)", "completed"]
    );
}

#[test]
fn failed_restore_fails_only_its_job() {
    assert_eq!(
        story(|request: &machine::FakeRequest<'_>| match request.job {
            Some("signal") => Does::Fails(Stage::Restore, FailureReason::Hung),
            _ => Does::Takes(1),
        })
        .outcomes("6.1", &["signal", "getppid"]),
        ["hung (restore)", "completed"]
    );
}

/// Returns the outcome of `getppid` if the agent sends these frames.
fn outcome_of_frames(frames: Vec<Frame>) -> String {
    story(
        move |request: &machine::FakeRequest<'_>| match request.job {
            Some("getppid") => Does::Says(frames.clone()),
            _ => Does::Takes(1),
        },
    )
    .outcomes("6.1", &["getppid"])
    .remove(0)
}

#[test]
fn agent_report_becomes_the_outcome() {
    assert_eq!(
        outcome_of_frames(vec![Frame::Unsupported("no pipes".into())]),
        "unsupported: no pipes"
    );
    assert_eq!(
        outcome_of_frames(vec![Frame::Failed("fork: EAGAIN".into())]),
        "workload failed: fork: EAGAIN (workload)"
    );
    assert_eq!(
        outcome_of_frames(vec![Frame::Died("signal 11".into())]),
        "agent died: signal 11 (workload)"
    );
}

#[test]
fn invalid_results_are_a_damaged_stream() {
    let nothing =
        "result stream damaged: the agent said nothing of how the workload ended (results)";
    assert_eq!(outcome_of_frames(vec![]), nothing);
    let few = outcome_of_frames(vec![Frame::Samples(vec![1, 2])]);
    assert!(
        few.starts_with("result stream damaged: 2 iterations came"),
        "{few}"
    );
}

#[test]
fn kernel_without_environment_is_measured() {
    let story = story(|request| panics(request, "6.1", Some("environment")));
    let runs = story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
        .runs
        .unwrap();
    assert!(runs[0][0].environment.is_empty());
    assert!(!samples(&runs[0][0], "getppid").is_empty());
}

#[test]
fn kernel_without_symbols_is_measured_without_counts() {
    let story = story(|request| panics(request, "6.1", Some("symbols")));
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    assert_eq!(
        message.count(|event| matches!(event, Event::NoProfile { why, .. } if why == "panicked")),
        1
    );
    let run = &message.runs.unwrap()[0][0];
    assert!(run.results[0].counted.is_empty() && !run.results[0].samples.is_empty());
}

#[test]
fn consoles_of_jobs_and_failed_boots_are_stored() {
    let story = story(|request| panics(request, "6.1", None));
    let runs = story
        .execute(&plan(&[&build("6.1"), &build("6.12")], &["getppid"], &[1]))
        .runs
        .unwrap();
    let console = |run: &model::Run, name: &str| story.lab.artifact(&run.id, name).ok();
    assert_eq!(
        console(&runs[0][0], "boot.console").as_deref(),
        Some(&b"the console\n"[..])
    );
    assert_eq!(
        console(&runs[1][0], "getppid.console").as_deref(),
        Some(&b"the console\n"[..])
    );
    assert_eq!(console(&runs[1][0], "boot.console"), None);
}

/// Measures with dumps, and returns the events about them.
fn dumps(reason: FailureReason) -> Vec<(String, String)> {
    let story = story(move |request| match request.job {
        Some("getppid") => Does::Fails(Stage::Workload, reason.clone()),
        _ => Does::Takes(1),
    });
    let kernel = build("6.1");
    let message = story.execute(&Plan {
        dumps: Dumps::Keep,
        ..plan(&[&kernel], &["getppid", "signal"], &[1])
    });
    assert_ne!(
        outcome_text(&message.runs.as_ref().unwrap()[0][0].results[0].outcome),
        "completed"
    );
    let dumped = message.events.into_iter().filter_map(|event| match event {
        Event::Dumped { of, bytes, .. } => Some((of, bytes.unwrap_err())),
        _ => None,
    });
    dumped.collect()
}

#[test]
fn missing_memory_dump_changes_no_result() {
    assert_eq!(
        dumps(FailureReason::Panicked),
        [(
            "getppid".to_owned(),
            "it did not die when repeated".to_owned()
        )]
    );
}

#[test]
fn living_kernels_are_not_dumped() {
    assert_eq!(dumps(FailureReason::Hung), []);
}

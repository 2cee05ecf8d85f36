//! Profiles, calls and monitors of stored runs: only on a machine that repeats a run exactly, and
//! never for a build that does not boot.

use lab::{Event, Measurement, Plan, Sampled};
use machine::Fake;
use model::{CostModel, FailureReason, Outcome, Stage};
use probes::Probe;
use wire::{Frame, Task};

use crate::{Does, Story, build, declared, plan, steady, story, story_on};

const REFUSED: &str = "this machine cannot repeat a run exactly";

/// Measures `getppid` and asks for its calls.
fn follow(story: &Story) -> Result<lab::Followed, String> {
    let kernel = build("6.1");
    let runs = story
        .execute(&plan(&[&kernel], &["getppid"], &[1]))
        .runs
        .unwrap();
    let profile = story
        .lab
        .profile(&runs[0][0].id, "getppid")
        .unwrap()
        .unwrap();
    let measurement = Measurement {
        build: &kernel,
        workload: declared("getppid"),
        replicate: 1,
    };
    story
        .lab
        .follow_calls(measurement, &profile)
        .unwrap()
        .into_result()
}

#[test]
fn calls_need_a_capable_machine() {
    assert_eq!(
        follow(&story_on(steady().that_can(|can| can.calls = false))).unwrap_err(),
        REFUSED
    );
}

#[test]
fn calls_need_a_deterministic_machine() {
    assert_eq!(
        follow(&story_on(
            steady().that_can(|can| can.deterministic = false)
        ))
        .unwrap_err(),
        REFUSED
    );
}

#[test]
fn simulation_needs_a_capable_machine() {
    let story = story_on(steady().that_can(|can| can.cost_model = false));
    let kernel = build("6.1");
    let runs = story
        .execute(&plan(&[&kernel], &["getppid"], &[1]))
        .runs
        .unwrap();
    let profile = story
        .lab
        .profile(&runs[0][0].id, "getppid")
        .unwrap()
        .unwrap();
    let measurement = Measurement {
        build: &kernel,
        workload: declared("getppid"),
        replicate: 1,
    };
    assert_eq!(
        story
            .lab
            .simulate(measurement, &profile, &CostModel::default())
            .unwrap()
            .into_result()
            .unwrap_err(),
        REFUSED
    );
}

#[test]
fn path_without_a_recorder_is_refused() {
    let unable = steady().that_can(|can| can.calls = false);
    for (machine, expected) in [
        (unable, REFUSED),
        (steady(), "the order of instructions is cut"),
    ] {
        let story = story_on(machine);
        let kernel = build("6.1");
        let runs = story
            .execute(&plan(&[&kernel], &["getppid"], &[1]))
            .runs
            .unwrap();
        let profile = story
            .lab
            .profile(&runs[0][0].id, "getppid")
            .unwrap()
            .unwrap();
        let measurement = Measurement {
            build: &kernel,
            workload: declared("getppid"),
            replicate: 1,
        };
        let refused = story
            .lab
            .follow_path(measurement, &profile, 1)
            .unwrap()
            .into_result()
            .unwrap_err();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn monitors_are_stored_with_the_run() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let run = story
        .execute(&plan(&[&kernel], &["getppid"], &[1]))
        .runs
        .unwrap()
        .remove(0)
        .remove(0);
    let measurement = Measurement {
        build: &kernel,
        workload: declared("getppid"),
        replicate: 1,
    };
    let first = story
        .lab
        .observe_stored(&run.id, measurement, 0)
        .unwrap()
        .into_result()
        .unwrap();
    let request = story.machine.log().len();
    assert_eq!(
        story
            .lab
            .observe_stored(&run.id, measurement, 0)
            .unwrap()
            .into_result()
            .unwrap(),
        first
    );
    assert_eq!(story.machine.log().len(), request, "nothing was run again");
    story
        .lab
        .observe_stored(&run.id, measurement, 50)
        .unwrap()
        .into_result()
        .unwrap();
    assert!(
        story.machine.log().len() > request,
        "another interval is another job"
    );
}

#[test]
fn unbootable_kernel_has_no_observation() {
    let story = story(|_| Does::Fails(Stage::Boot, FailureReason::DidNotBoot));
    let measurement = Measurement {
        build: &build("6.1"),
        workload: declared("getppid"),
        replicate: 1,
    };
    assert_eq!(
        story
            .lab
            .observe(measurement, 0)
            .unwrap()
            .into_result()
            .unwrap_err(),
        "it does not boot"
    );
}

#[test]
fn failing_workload_has_no_observation() {
    let story = story(|request| match request.job {
        Some(_) => Does::Fails(Stage::Workload, FailureReason::Oopsed),
        None => Does::Takes(1),
    });
    let measurement = Measurement {
        build: &build("6.1"),
        workload: declared("getppid"),
        replicate: 1,
    };
    assert_eq!(
        story
            .lab
            .observe(measurement, 0)
            .unwrap()
            .into_result()
            .unwrap_err(),
        "oopsed"
    );
}

#[test]
fn observing_releases_the_machine() {
    let story = story_on(steady());
    let measurement = Measurement {
        build: &build("6.1"),
        workload: declared("getppid"),
        replicate: 1,
    };
    story
        .lab
        .observe(measurement, 0)
        .unwrap()
        .into_result()
        .unwrap();
    story
        .lab
        .probe(measurement.build, measurement.workload)
        .unwrap();
    assert_eq!(
        (
            story.count_requests("boot"),
            story.count_requests("release"),
            story.machine.booted().0
        ),
        (2, 2, 0)
    );
}

#[test]
fn sampled_profile_is_stored_and_reused() {
    let story = story_on(steady().that_can(|can| can.sampling = true));
    let kernel = build("6.1");
    let unsampled = plan(&[&kernel], &["getppid"], &[1, 2]);
    story.execute(&unsampled).runs.unwrap();
    let plan = Plan {
        sampled: Sampled::Yes,
        ..unsampled
    };
    let first = story.execute(&plan);
    assert_eq!(
        first.planned(),
        (4, 0),
        "runs without samples are measured again"
    );
    let runs = first.runs.unwrap();
    let profile = story
        .lab
        .sampled(&runs[0][0].id, declared("getppid"))
        .unwrap()
        .unwrap();
    assert_eq!(profile.stacks.len(), 1);
    assert_eq!(profile.stacks[0].functions, ["vfs_read"]);
    assert_eq!(story.execute(&plan).planned(), (0, 2));
}

#[test]
fn machine_without_sampling_is_not_asked() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let plan = Plan {
        sampled: Sampled::Yes,
        ..plan(&[&kernel], &["getppid"], &[1])
    };
    let message = story.execute(&plan);
    assert_eq!(story.count_requests("6.1 #1 getppid"), 1);
    let runs = message.runs.unwrap();
    assert_eq!(
        story
            .lab
            .sampled(&runs[0][0].id, declared("getppid"))
            .unwrap(),
        None
    );
    assert_eq!(story.execute(&plan).planned(), (0, 1));
}

#[test]
fn refused_sampling_leaves_the_result() {
    let story = story_on(
        Fake::new(|request| match request.whole.map(|job| &job.task) {
            Some(Task::Workload {
                sampling: Some(_), ..
            }) => Does::Says(vec![Frame::Unsupported("perf".into())]),
            _ => Does::Takes(100),
        })
        .that_can(|can| can.sampling = true),
    );
    let kernel = build("6.1");
    let message = story.execute(&Plan {
        sampled: Sampled::Yes,
        ..plan(&[&kernel], &["getppid"], &[1])
    });
    assert_eq!(
        message.count(|event| matches!(event, Event::NoProfile { why, .. } if why == "perf")),
        1
    );
    assert_eq!(
        message.runs.unwrap()[0][0].results[0].outcome,
        Outcome::Completed
    );
}

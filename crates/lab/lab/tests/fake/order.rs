//! The order of sides, replicates and jobs, and how many builds are booted at the same time.

use lab::Plan;

use crate::{Does, build, lost, plan, steady, story, story_on};

/// Returns the log without requests that are made once per build.
fn log(story: &crate::Story) -> Vec<String> {
    story
        .machine
        .log()
        .into_iter()
        .filter(|line| !(line.ends_with("symbols") || line.ends_with("environment")))
        .collect()
}

#[test]
fn sides_alternate_job_by_job() {
    let story = story_on(steady());
    story
        .execute(&plan(
            &[&build("6.1"), &build("6.12")],
            &["getppid", "signal"],
            &[1],
        ))
        .runs
        .unwrap();
    let jobs: Vec<String> = log(&story)
        .into_iter()
        .filter(|line| line.starts_with('6'))
        .collect();
    assert_eq!(
        jobs,
        [
            "6.1 #1 getppid",
            "6.12 #1 getppid",
            "6.1 #1 signal",
            "6.12 #1 signal"
        ]
    );
}

#[test]
fn environment_is_read_before_all_workloads() {
    let story = story_on(steady());
    story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
        .runs
        .unwrap();
    let log = story.machine.log();
    assert_eq!(log[..2], ["boot 6.1 #1", "6.1 #1 environment"]);
}

#[test]
fn a_replicate_is_done_before_the_next_begins() {
    let story = story_on(steady());
    story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[3, 1, 2]))
        .runs
        .unwrap();
    let boots: Vec<String> = log(&story)
        .into_iter()
        .filter(|line| line.starts_with("boot"))
        .collect();
    assert_eq!(boots, ["boot 6.1 #3", "boot 6.1 #1", "boot 6.1 #2"]);
}

#[test]
fn single_boots_alternate_in_both_directions() {
    let story = story_on(steady().that_can(|can| can.boots_at_once = 1));
    story
        .execute(&plan(
            &[&build("6.1"), &build("6.12")],
            &["getppid"],
            &[1, 2],
        ))
        .runs
        .unwrap();
    let boots: Vec<String> = log(&story)
        .into_iter()
        .filter(|line| !line.starts_with('6'))
        .collect();
    // Which of both is first is drawn from their names.
    let there = [
        "boot 6.1 #1",
        "release 6.1 #1",
        "boot 6.12 #1",
        "release 6.12 #1",
    ];
    let back = [
        "boot 6.12 #2",
        "release 6.12 #2",
        "boot 6.1 #2",
        "release 6.1 #2",
    ];
    assert_eq!(boots, [there, back].concat());
}

#[test]
fn boots_stay_within_the_machines_limit() {
    for most in [1, 2, 3] {
        let story = story_on(steady().that_can(|can| can.boots_at_once = most));
        let old = build("6.1");
        let new = build("6.12");
        let plan = Plan {
            machines: 4,
            ..plan(&[&old, &new], &["getppid", "signal"], &[1, 2, 3])
        };
        story.execute(&plan).runs.unwrap();
        assert!(
            story.machine.booted().1 <= most,
            "{most}: {:?}",
            story.machine.booted()
        );
        assert_eq!(story.count_requests("boot "), 6);
    }
}

#[test]
fn several_workers_measure_the_same_as_one() {
    let measured = |machines| {
        let story = story(|request| {
            Does::Takes(100 + request.replicate + request.job.map_or(0, str::len) as u64)
        });
        let old = build("6.1");
        let new = build("6.12");
        let plan = Plan {
            machines,
            ..plan(&[&old, &new], &["getppid", "signal", "fork-exit"], &[1, 2])
        };
        let mut runs = story.execute(&plan).runs.unwrap();
        runs.iter_mut()
            .for_each(|side| side.sort_by_key(|run| run.seed));
        runs.into_iter()
            .flatten()
            .map(|run| run.results)
            .collect::<Vec<_>>()
    };
    assert_eq!(measured(1), measured(8));
}

#[test]
fn every_boot_is_released() {
    let story = story_on(steady());
    story
        .execute(&plan(
            &[&build("6.1"), &build("6.12")],
            &["getppid"],
            &[1, 2],
        ))
        .runs
        .unwrap();
    assert_eq!(
        (
            story.count_requests("boot"),
            story.count_requests("release"),
            story.machine.booted().0
        ),
        (4, 4, 0)
    );
}

#[test]
fn boots_are_released_when_the_lab_fails() {
    let story = story(|request| {
        if request.job == Some("signal") {
            lost()
        } else {
            Does::Takes(1)
        }
    });
    story
        .execute(&plan(
            &[&build("6.1"), &build("6.12")],
            &["getppid", "signal"],
            &[1],
        ))
        .runs
        .unwrap_err();
    assert_eq!(
        (story.count_requests("release"), story.machine.booted().0),
        (2, 0)
    );
}

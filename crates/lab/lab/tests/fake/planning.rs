//! What a plan contains, and what its execution returns.

use std::sync::Arc;

use lab::Plan;
use model::{Fault, GuestConfig, Outcome, RECLAIM, Workload};
use wire::Frame;

use crate::{Does, build, declared, outcome_text, plan, steady, story, story_on};

#[test]
fn each_side_is_measured_with_each_replicate() {
    let story = story_on(steady());
    let old = build("6.1");
    let new = build("6.12");
    let runs = story
        .execute(&plan(&[&old, &new], &["getppid", "signal"], &[1, 2, 3]))
        .runs
        .unwrap();
    let shape: Vec<Vec<(u64, usize)>> = runs
        .iter()
        .map(|side| {
            side.iter()
                .map(|run| (run.seed, run.results.len()))
                .collect()
        })
        .collect();
    assert_eq!(shape, [[(1, 2), (2, 2), (3, 2)], [(1, 2), (2, 2), (3, 2)]]);
    assert!(
        runs[0].iter().all(|run| run.build == old.id)
            && runs[1].iter().all(|run| run.build == new.id)
    );
}

#[test]
fn empty_plans_are_refused() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let message = |plan| story.execute(&plan).runs.unwrap_err().to_string();
    assert_eq!(
        message(plan(&[], &["getppid"], &[1])),
        "nothing to do: the plan has no kernel"
    );
    assert_eq!(
        message(plan(&[&kernel], &[], &[1])),
        "nothing to do: the plan has no workload"
    );
    assert_eq!(
        message(plan(&[&kernel], &["getppid"], &[])),
        "nothing to do: the plan has no seed"
    );
    assert!(story.machine.log().is_empty());
}

#[test]
fn tasks_beyond_the_processors_are_refused() {
    let kernel = build("6.1");
    let two = model::find_workload("fault-thr-2").unwrap();
    let with = |processors| {
        let story = story_on(steady().that_can(|can| can.processors = processors));
        let plan = Plan {
            workloads: vec![Arc::clone(&two)],
            ..plan(&[&kernel], &["getppid"], &[1])
        };
        let runs = story
            .execute(&plan)
            .runs
            .map(|runs| runs[0][0].results[0].workload.clone());
        (runs, story.machine.log())
    };
    let (refused, request) = with(1);
    let error = refused.unwrap_err();
    assert_eq!((error.fault(), request.len()), (Fault::User, 0));
    insta::assert_snapshot!(error, @"exact cannot run fault-thr-2: it needs 2 processors, and exact has 1");
    let (measured, request) = with(2);
    assert_eq!(measured.unwrap(), "fault-thr-2");
    assert!(
        request.contains(&"6.1 #1 fault-thr-2".to_owned()),
        "{request:?}"
    );
}

#[test]
fn disks_are_unsupported_where_there_are_none() {
    let kernel = build("6.1");
    let outcome = |disks| {
        let story = story_on(steady().that_can(|can| can.disks = disks));
        let plan = plan(&[&kernel], &["ext4-read"], &[1]);
        outcome_text(&story.execute(&plan).runs.unwrap()[0][0].results[0].outcome)
    };
    assert_eq!(
        outcome(false),
        "unsupported: it needs a scratch disk with ext4: measure it on vm"
    );
    assert_eq!(outcome(true), "completed");
}

#[test]
fn jobs_are_announced_before_the_first_ends() {
    let story = story_on(steady());
    let messages = story.execute(&plan(
        &[&build("6.1"), &build("6.12")],
        &["getppid", "signal"],
        &[1, 2],
    ));
    // Each run has the environment's job beside those of its workloads.
    assert_eq!(
        (messages.planned(), &messages.events[0]),
        (
            (12, 0),
            &lab::Event::Planned {
                jobs: 12,
                reused: 0
            }
        )
    );
    assert_eq!(
        messages.count(|event| matches!(event, lab::Event::Done { .. })),
        12
    );
}

#[test]
fn all_jobs_of_a_replicate_share_one_boot() {
    let story = story_on(steady());
    story
        .execute(&plan(
            &[&build("6.1")],
            &["getppid", "signal", "fork-exit"],
            &[1, 2],
        ))
        .runs
        .unwrap();
    assert_eq!(story.count_requests("boot "), 2);
}

#[test]
fn the_same_side_twice_is_measured_twice() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let runs = story
        .execute(&plan(&[&kernel, &kernel], &["getppid"], &[1]))
        .runs
        .unwrap();
    assert_ne!(runs[0][0].id, runs[1][0].id);
    assert_eq!(story.count_requests("6.1 #1 getppid"), 2);
}

#[test]
fn results_come_in_the_order_asked_for() {
    let story = story_on(steady());
    let names = ["signal", "getppid", "fork-exit"];
    let runs = story
        .execute(&plan(&[&build("6.1")], &names, &[1]))
        .runs
        .unwrap();
    let found: Vec<&str> = runs[0][0]
        .results
        .iter()
        .map(|result| result.workload.as_str())
        .collect();
    assert_eq!(found, names);
}

#[test]
fn guest_environment_is_stored() {
    let story = story_on(steady());
    let runs = story
        .execute(&plan(&[&build("6.1")], &["getppid"], &[1]))
        .runs
        .unwrap();
    assert_eq!(
        runs[0][0].environment,
        [("command line".to_owned(), "quiet".to_owned())]
    );
}

#[test]
fn each_guest_config_boots_separately() {
    let story = story_on(steady());
    let large = Arc::new(Workload {
        guest_config: GuestConfig::with_memory(512),
        ..(**declared("signal")).clone()
    });
    let kernel = build("6.1");
    let mut plan = plan(&[&kernel], &["getppid"], &[1]);
    plan.workloads.push(large);
    let runs = story.execute(&plan).runs.unwrap().remove(0);
    let machines = story.lab.machines(&plan.workloads).unwrap();
    let ids: Vec<_> = runs.iter().map(|run| &run.machine).collect();
    assert_eq!(ids, [&machines[0].id, &machines[1].id]);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(story.count_requests("boot "), 2);
}

/// Two rows of one job in the reclaim suite, and the name of the job.
fn rows() -> (Vec<Arc<Workload>>, String) {
    let row = RECLAIM
        .workloads
        .iter()
        .find(|workload| workload.row_of.is_some())
        .unwrap();
    (
        vec![Arc::clone(declared(row.job_name())), Arc::clone(row)],
        row.job_name().to_owned(),
    )
}

#[test]
fn one_job_measures_all_its_rows() {
    let (workloads, job) = rows();
    let row = workloads[1].name.clone();
    let iterations = workloads[0].iterations as usize;
    let asked_job = job.clone();
    let numbers = vec!["7"; iterations].join(",");
    let story = story(move |request| match request.job {
        Some(name) if name == asked_job => Does::Says(vec![
            Frame::File {
                name: format!("row {row}"),
                bytes: numbers.clone().into_bytes(),
            },
            Frame::Samples(vec![1_000_000; iterations]),
        ]),
        _ => Does::Takes(1),
    });
    let kernel = build("6.1");
    let runs = story
        .execute(&lab::Plan {
            workloads,
            ..plan(&[&kernel], &[], &[1])
        })
        .runs
        .unwrap();
    let results = &runs[0][0].results;
    assert_eq!(
        results
            .iter()
            .map(|result| &result.outcome)
            .collect::<Vec<_>>(),
        [&Outcome::Completed; 2]
    );
    assert_eq!(
        (
            results[1].samples.len(),
            story.count_requests(&format!("6.1 #1 {job}"))
        ),
        (iterations, 1)
    );
}

#[test]
fn missing_row_is_a_damaged_stream() {
    let (workloads, _) = rows();
    let row = workloads[1].name.clone();
    let story = story_on(steady());
    let kernel = build("6.1");
    let runs = story
        .execute(&lab::Plan {
            workloads,
            ..plan(&[&kernel], &[], &[1])
        })
        .runs
        .unwrap();
    let results = &runs[0][0].results;
    assert_eq!(results[0].outcome, Outcome::Completed);
    assert_eq!(
        outcome_text(&results[1].outcome),
        format!("result stream damaged: no row {row} (results)")
    );
}

//! From the agent's ticks to values: by the machine's clock, and counted where the machine can
//! count.

use std::sync::{Arc, Mutex};

use lab::Event;
use machine::Fake;
use model::Clock;
use wire::Perturbation;

use crate::{Does, build, plan, samples, steady, story, story_on};

fn measured(machine: Fake) -> (crate::Story, model::Run, Vec<Event>) {
    let story = story_on(machine);
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    (
        story,
        message.runs.unwrap().remove(0).remove(0),
        message.events,
    )
}

#[test]
fn ticks_of_instructions_are_instructions_per_operation() {
    let (_, run, _) = measured(steady());
    assert!(
        samples(&run, "getppid")
            .iter()
            .all(|sample| (sample - 100.0).abs() < 1e-9)
    );
    assert_eq!(
        run.results[0].declared.as_ref().unwrap().unit,
        "instructions/op"
    );
}

#[test]
fn ticks_of_a_clock_are_nanoseconds_per_operation() {
    let (_, run, _) = measured(steady().that_can(|can| can.clock = Clock::Seconds));
    assert!(
        samples(&run, "getppid")
            .iter()
            .all(|sample| (sample - 100.0).abs() < 1e-9)
    );
    assert_eq!(run.results[0].declared.as_ref().unwrap().unit, "ns/op");
}

#[test]
fn each_iteration_has_counted_instructions() {
    let (story, run, _) = measured(steady());
    let result = &run.results[0];
    assert_eq!(result.counted.len(), result.samples.len());
    assert!(
        result
            .counted
            .iter()
            .all(|region| region.total() == 100 * result.operations)
    );
    let profile = story.lab.profile(&run.id, "getppid").unwrap().unwrap();
    assert_eq!(
        (profile.lines.len(), &*profile.lines[0].symbol),
        (1, "vfs_read")
    );
}

#[test]
fn missing_counts_are_reported_once() {
    let story = story_on(steady().that_can(|can| can.counts = false));
    let message = story.execute(&plan(&[&build("6.1")], &["getppid", "signal"], &[1, 2]));
    assert_eq!(
        message.count(|event| matches!(event, Event::NoProfile { .. })),
        1
    );
    let runs = message.runs.unwrap();
    assert!(
        runs[0]
            .iter()
            .flat_map(|run| &run.results)
            .all(|r| r.counted.is_empty() && !r.samples.is_empty())
    );
}

#[test]
fn noisy_values_are_stored_unchanged() {
    let (_, run, _) =
        measured(Fake::new(|_| Does::Around(100, 5.0)).that_can(|can| can.deterministic = false));
    let found = samples(&run, "getppid");
    assert!(
        found.iter().all(|sample| (95.0..=105.0).contains(sample)),
        "{found:?}"
    );
    assert!(
        found.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.1),
        "{found:?}"
    );
}

/// The jobs of `getppid` with these replicates.
fn jobs(deterministic: bool, replicates: &[u64]) -> Vec<wire::Job> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let machine = Fake::new(move |request| {
        if let (Some("getppid"), Some(job)) = (request.job, request.whole) {
            log.lock().unwrap().push(job.clone());
        }
        Does::Takes(1)
    });
    let clock = if deterministic {
        Clock::Instructions
    } else {
        Clock::Seconds
    };
    let story =
        story_on(machine.that_can(|can| (can.deterministic, can.clock) = (deterministic, clock)));
    story
        .execute(&plan(&[&build("6.1")], &["getppid"], replicates))
        .runs
        .unwrap();
    seen.lock().unwrap().clone()
}

#[test]
fn replicates_perturb_only_deterministic_machines() {
    let exact = jobs(true, &[1, 2]);
    assert_ne!(exact[0].perturbation, exact[1].perturbation);
    let noisy = jobs(false, &[1, 2]);
    assert!(
        noisy
            .iter()
            .all(|job| job.perturbation == Perturbation::default())
    );
}

#[test]
fn jobs_read_the_machines_clock() {
    assert_eq!(jobs(true, &[1])[0].clock, wire::Clock::Tsc);
    assert_eq!(jobs(false, &[1])[0].clock, wire::Clock::Monotonic);
}

#[test]
fn equal_jobs_have_equal_bytes() {
    assert_eq!(jobs(true, &[7]), jobs(true, &[7]));
    let two = jobs(true, &[7, 8]);
    assert_ne!(two[0].id, two[1].id);
}

#[test]
fn boot_remark_is_not_in_the_result() {
    let story = story(|_| Does::Takes(1));
    let message = story.execute(&plan(&[&build("6.1")], &["getppid"], &[1]));
    assert_eq!(
        message.count(|event| matches!(event, Event::Ready { remark: None, .. })),
        1
    );
}

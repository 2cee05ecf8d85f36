//! A host that does other work: which jobs are repeated, and what their run says.

use lab::Event;
use machine::{Fake, FakeRequest};

use crate::{Does, PlanResult, Story, build, measures_time, plan, samples, story_on};

/// A machine that measures time, on a host that disturbs `getppid` the first `times` times after
/// its calibration.
fn busy(times: usize) -> Story {
    story_on(
        Fake::new(
            move |request: &FakeRequest<'_>| match (request.job, request.times) {
                (Some("getppid"), tried) if (1..=times).contains(&tried) => {
                    Does::Disturbed(900, 0.4)
                }
                (Some("getppid"), _) => Does::Disturbed(100, 0.04),
                _ => Does::Takes(100),
            },
        )
        .that_can(measures_time),
    )
}

fn measured(story: &Story) -> PlanResult {
    story.execute(&plan(&[&build("6.1")], &["getppid", "signal"], &[1]))
}

fn repeated(result: &PlanResult) -> usize {
    result
        .count(|event| matches!(event, Event::Disturbed { workload, .. } if workload == "getppid"))
}

fn marks(result: &PlanResult) -> Vec<(String, String)> {
    let environment = &result.runs.as_ref().unwrap()[0][0].environment;
    environment
        .iter()
        .filter(|(name, _)| name.starts_with("disturbed"))
        .cloned()
        .collect()
}

#[test]
fn disturbed_job_is_repeated_until_it_is_not() {
    for times in [1, 2] {
        let story = busy(times);
        let result = measured(&story);
        assert_eq!(
            (repeated(&result), story.count_requests("6.1 #1 getppid")),
            (times, times + 2)
        );
        assert_eq!(
            samples(&result.runs.as_ref().unwrap()[0][0], "getppid")[..1],
            [100.0]
        );
        assert!(marks(&result).is_empty());
    }
}

#[test]
fn job_disturbed_three_times_is_marked() {
    let story = busy(9);
    let result = measured(&story);
    assert_eq!(
        (repeated(&result), story.count_requests("6.1 #1 getppid")),
        (2, 4)
    );
    let run = &result.runs.as_ref().unwrap()[0][0];
    assert_eq!(
        (&samples(run, "getppid")[..1], &samples(run, "signal")[..1]),
        (&[900.0][..], &[100.0][..])
    );
    let text = "others took 40% of the host's processors, its hypervisor 0%";
    assert_eq!(
        marks(&result),
        [("disturbed getppid".to_owned(), text.to_owned())]
    );
    let stored = String::from_utf8(story.lab.artifact(&run.id, "load").unwrap()).unwrap();
    assert_eq!(stored, "getppid 0.4000 0.0000\n".repeat(3));
}

#[test]
fn undisturbed_machine_keeps_no_load() {
    let story = story_on(crate::steady());
    let result = measured(&story);
    assert!(marks(&result).is_empty() && repeated(&result) == 0);
    assert!(
        story
            .lab
            .artifact(&result.runs.unwrap()[0][0].id, "load")
            .is_err()
    );
}

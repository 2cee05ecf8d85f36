//! Profiles, calls and monitors of stored runs: only on a machine that repeats a run exactly, and never for a build
//! that does not boot.

use lab::Measurement;
use model::{CostModel, FailureReason, Stage};
use probes::Probe;

use crate::{Does, Story, build, declared, plan, steady, story, story_on};

const REFUSED: &str = "this machine cannot do what it did once more and look closer";

/// Measures `getppid` and asks for its calls.
fn follow(story: &Story) -> Result<lab::Followed, String> {
    let kernel = build("6.1");
    let runs = story.carry_out(&plan(&[&kernel], &["getppid"], &[1])).runs.unwrap();
    let profile = story.lab.profile(&runs[0][0].id, "getppid").unwrap().unwrap();
    let of = Measurement { build: &kernel, workload: declared("getppid"), replicate: 1 };
    story.lab.follow_calls(of, &profile).unwrap()
}

#[test]
fn calls_are_followed_only_where_the_machine_can() {
    assert_eq!(follow(&story_on(steady().that_can(|can| can.calls = false))).unwrap_err(), REFUSED);
}

#[test]
fn calls_are_followed_only_where_the_same_comes_again() {
    assert_eq!(follow(&story_on(steady().that_can(|can| can.deterministic = false))).unwrap_err(), REFUSED);
}

#[test]
fn a_processor_is_simulated_only_where_the_machine_can() {
    let story = story_on(steady().that_can(|can| can.cost_model = false));
    let kernel = build("6.1");
    let runs = story.carry_out(&plan(&[&kernel], &["getppid"], &[1])).runs.unwrap();
    let profile = story.lab.profile(&runs[0][0].id, "getppid").unwrap().unwrap();
    let of = Measurement { build: &kernel, workload: declared("getppid"), replicate: 1 };
    assert_eq!(story.lab.simulate(of, &profile, &CostModel::default()).unwrap().unwrap_err(), REFUSED);
}

#[test]
fn what_was_watched_once_is_kept_with_the_run() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let run = story.carry_out(&plan(&[&kernel], &["getppid"], &[1])).runs.unwrap().remove(0).remove(0);
    let of = Measurement { build: &kernel, workload: declared("getppid"), replicate: 1 };
    let first = story.lab.watch(&run.id, of, 0).unwrap().unwrap();
    let asked = story.machine.log().len();
    assert_eq!(story.lab.watch(&run.id, of, 0).unwrap().unwrap(), first);
    assert_eq!(story.machine.log().len(), asked, "nothing was run again");
    story.lab.watch(&run.id, of, 50).unwrap().unwrap();
    assert!(story.machine.log().len() > asked, "another interval is another job");
}

#[test]
fn nothing_is_seen_of_a_kernel_that_does_not_boot() {
    let story = story(|_| Does::Fails(Stage::Boot, FailureReason::DidNotBoot));
    let of = Measurement { build: &build("6.1"), workload: declared("getppid"), replicate: 1 };
    assert_eq!(story.lab.observe(of, 0).unwrap().unwrap_err(), "it does not boot");
}

#[test]
fn nothing_is_seen_of_a_workload_that_fails() {
    let story = story(|asked| match asked.job {
        Some(_) => Does::Fails(Stage::Workload, FailureReason::Oopsed),
        None => Does::Takes(1),
    });
    let of = Measurement { build: &build("6.1"), workload: declared("getppid"), replicate: 1 };
    assert_eq!(story.lab.observe(of, 0).unwrap().unwrap_err(), "oopsed");
}

#[test]
fn whoever_looks_gives_the_machine_back() {
    let story = story_on(steady());
    let of = Measurement { build: &build("6.1"), workload: declared("getppid"), replicate: 1 };
    story.lab.observe(of, 0).unwrap().unwrap();
    story.lab.probe(of.build, of.workload).unwrap();
    assert_eq!((story.asked("boot"), story.asked("release"), story.machine.booted().0), (2, 2, 0));
}

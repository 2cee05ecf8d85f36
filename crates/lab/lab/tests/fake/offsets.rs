//! Executed instructions of functions: kept by a measurement that is asked to, else found out by a
//! repetition that executes the same.

use std::collections::BTreeSet;

use lab::Measurement;
use model::Availability;

use crate::{build, declared, plan, steady, story_on};

fn watched(name: &str) -> BTreeSet<String> {
    [name.to_owned()].into()
}

/// The only function of the fake kernel.
const FUNCTION: &str = "vfs_read";

#[test]
fn watched_functions_are_kept_with_their_run() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let plan = plan(&[&kernel], &["getppid"], &[1, 2]);
    let functions = watched(FUNCTION);
    let runs = story
        .lab
        .execute_watching(&plan, &functions, &|_| {})
        .unwrap();
    let measurement = Measurement {
        build: &kernel,
        workload: declared("getppid"),
        replicate: 1,
    };
    let requests = story.machine.log().len();
    let run = &runs[0][0].id;
    let found = story.lab.offsets(run, measurement, &functions).unwrap();
    let Some(Availability::Available(offsets)) = found else {
        panic!("{found:?}");
    };
    assert_eq!(offsets.functions.keys().collect::<Vec<_>>(), [FUNCTION]);
    assert_eq!(story.machine.log().len(), requests, "nothing was run again");
    let second = story.lab.artifact(&runs[0][1].id, "getppid.offsets");
    assert!(second.is_err(), "one seed is enough");
    let none = story.lab.offsets(run, measurement, &watched("do_exit"));
    assert_eq!(none.unwrap(), None);
}

#[test]
fn earlier_runs_are_repeated_once() {
    let story = story_on(steady());
    let kernel = build("6.1");
    let plan = plan(&[&kernel], &["getppid"], &[1]);
    let runs = story.execute(&plan).runs.unwrap();
    let run = &runs[0][0].id;
    let measurement = Measurement {
        build: &kernel,
        workload: declared("getppid"),
        replicate: 1,
    };
    let mut requests = vec![story.machine.log().len()];
    let mut found = Vec::new();
    for _ in 0..2 {
        let offsets = story.lab.offsets(run, measurement, &watched(FUNCTION));
        found.push(offsets.unwrap().unwrap().into_result().unwrap());
        requests.push(story.machine.log().len());
    }
    assert_eq!(found[0], found[1]);
    assert!(requests[1] > requests[0]);
    assert_eq!(requests[2], requests[1], "they are kept");
}

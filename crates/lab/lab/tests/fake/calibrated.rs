//! Operations of workloads on machines that measure time: found once for machine and workload.

use machine::{Fake, FakeRequest};
use model::{FailureReason, Outcome, Run, Stage};

use crate::{Does, Story, build, measures_time, open, plan, samples, steady, story_on};

/// Nanoseconds of one getppid, of which an iteration has 20,000.
const GETPPID_NS: u64 = 100;

fn timed(script: impl Fn(&FakeRequest<'_>) -> Does + Send + Sync + 'static) -> Story {
    story_on(Fake::new(script).that_can(measures_time))
}

fn runs(story: &Story, versions: &[&str], replicates: &[u64]) -> Vec<Run> {
    let builds: Vec<_> = versions.iter().map(|version| build(version)).collect();
    let sides: Vec<_> = builds.iter().collect();
    story
        .execute(&plan(&sides, &["getppid"], replicates))
        .runs
        .unwrap()
        .concat()
}

#[test]
fn iteration_takes_about_the_target_time() {
    // The second kernel is twice as fast; it gets the same job.
    let story = timed(|request| {
        Does::Takes(if request.version == "6.1" {
            GETPPID_NS
        } else {
            GETPPID_NS / 2
        })
    });
    let runs = runs(&story, &["6.1", "6.12"], &[1, 2]);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        // 25 rounds of 2 ms are 50 ms.
        assert_eq!(
            (run.results[0].operations, run.results[0].samples.len()),
            (25 * 20_000, 16)
        );
    }
    let costs = [GETPPID_NS as f64, GETPPID_NS as f64 / 2.0];
    assert!(
        runs.iter()
            .all(|run| costs.contains(&samples(run, "getppid")[0])),
        "costs are per operation"
    );
    assert_eq!(
        (
            story.count_requests("6.1 #1 getppid"),
            story.count_requests("6.12 #1 getppid")
        ),
        (2, 1)
    );
}

#[test]
fn calibrated_results_are_reused() {
    let mut story = timed(|_| Does::Takes(GETPPID_NS));
    let first = runs(&story, &["6.1"], &[1]);
    assert_eq!(runs(&story, &["6.1"], &[1]), first);
    let home = story.home.path().to_owned();
    drop(story.lab);
    story.lab = open(&home, &story.machine);
    assert_eq!(runs(&story, &["6.1"], &[1]), first);
    assert_eq!(story.count_requests("6.1 #1 getppid"), 2);
}

#[test]
fn long_iterations_need_one_round() {
    let story = timed(|_| Does::Takes(GETPPID_NS * 100));
    assert_eq!(
        runs(&story, &["6.1"], &[1])[0].results[0].operations,
        20_000
    );
    assert_eq!(
        story.count_requests("6.1 #1 getppid"),
        1,
        "the job that calibrates is the result"
    );
}

#[test]
fn failing_workload_calibrates_nothing() {
    let story = timed(|request| match request.job {
        Some("getppid") if request.version == "6.1" => {
            Does::Fails(Stage::Workload, FailureReason::Panicked)
        }
        _ => Does::Takes(GETPPID_NS),
    });
    let runs = runs(&story, &["6.1", "6.12"], &[1]);
    assert!(matches!(runs[0].results[0].outcome, Outcome::Failed(_)));
    assert_eq!(
        (
            story.count_requests("6.1 #1 getppid"),
            runs[1].results[0].operations
        ),
        (1, 500_000)
    );
}

#[test]
fn exact_machine_keeps_declared_operations() {
    let story = story_on(steady());
    assert_eq!(
        runs(&story, &["6.1"], &[1])[0].results[0].operations,
        20_000
    );
    assert_eq!(story.count_requests("6.1 #1 getppid"), 1);
}

//! Tests of runs: reading back, refused saves, and leftovers of killed processes.

use std::cell::Cell;
use std::fs;

use model::{
    Declared, Direction, FailureReason, Fault, Outcome, Region, Run, RunId, Stage, SubjectFailure,
    UnixTime, WorkloadResult, unit_named,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

use crate::testing::{New, again, build, contract, parents, run, saved, sqlite, store};
use crate::{Artifact, Store, StoreError, VersionError};

const CONSOLE: Artifact<'_> = Artifact {
    name: "console",
    bytes: b"Linux version 6.12",
};

fn a_reason() -> impl Strategy<Value = FailureReason> {
    let text = || any::<String>();
    prop_oneof![
        Just(FailureReason::DidNotBoot),
        text().prop_map(FailureReason::Lacks),
        Just(FailureReason::Panicked),
        Just(FailureReason::Oopsed),
        Just(FailureReason::Hung),
        Just(FailureReason::OutOfMemory),
        text().prop_map(FailureReason::AgentDied),
        text().prop_map(FailureReason::WorkloadFailed),
        Just(FailureReason::TooMuchOutput),
        text().prop_map(FailureReason::BadStream),
    ]
}

fn a_stage() -> impl Strategy<Value = Stage> {
    prop_oneof![
        Just(Stage::Boot),
        Just(Stage::Settle),
        Just(Stage::Restore),
        Just(Stage::Workload),
        Just(Stage::Results),
    ]
}

fn an_outcome() -> impl Strategy<Value = Outcome> {
    let failure =
        (a_stage(), a_reason(), any::<String>()).prop_map(|(stage, reason, console_tail)| {
            SubjectFailure {
                stage,
                reason,
                console_tail,
            }
        });
    prop_oneof![
        Just(Outcome::Completed),
        any::<String>().prop_map(Outcome::Unsupported),
        failure.prop_map(Outcome::Failed),
    ]
}

fn a_declaration() -> impl Strategy<Value = Declared> {
    let direction = option::of(prop_oneof![
        Just(Direction::LowerIsBetter),
        Just(Direction::HigherIsBetter)
    ]);
    ("[ -~µ]{0,12}", direction, 0.0..100.0).prop_map(|(unit, direction, margin_percent)| Declared {
        unit: unit_named(&unit),
        direction,
        margin_percent,
    })
}

fn a_result() -> impl Strategy<Value = WorkloadResult> {
    let samples = vec(
        proptest::num::f64::POSITIVE | proptest::num::f64::NEGATIVE,
        0..40,
    );
    let count = 0_u64..1 << 53;
    let region = (count.clone(), count.clone(), count.clone(), count).prop_map(
        |(user, kernel, interrupt, other)| Region {
            user,
            kernel,
            interrupt,
            other,
            ..Region::default()
        },
    );
    (
        (any::<String>(), any::<u64>(), option::of(a_declaration())),
        an_outcome(),
        samples,
        vec(region, 0..40),
    )
        .prop_map(
            |((workload, operations, declared), outcome, samples, counted)| WorkloadResult {
                workload,
                operations,
                declared,
                outcome,
                samples,
                counted,
            },
        )
}

fn a_run() -> impl Strategy<Value = Run> {
    let environment = vec((any::<String>(), any::<String>()), 0..6);
    let numbers = (any::<u64>(), any::<i64>());
    let suite = option::of(any::<String>());
    (numbers, suite, environment, vec(a_result(), 0..20)).prop_map(
        |((seed, started_unix), suite, environment, results)| Run {
            started_unix: UnixTime::new(started_unix),
            suite: suite.unwrap_or_else(|| "micro".into()),
            environment,
            results,
            ..run("aa", "01", seed)
        },
    )
}

contract!(
    a_run_comes_back_as_it_was,
    a_run_is_never_changed,
    a_run_of_an_unknown_build_is_refused_and_leaves_no_file,
    runs_are_listed_newest_first_with_their_outcomes_counted,
    only_the_runs_asked_for_are_returned,
    runs_are_found_by_a_beginning_of_their_id,
    not_more_than_some_candidates_are_named,
    two_writers_take_turns,
    reader_cannot_write,
);

fn a_run_comes_back_as_it_was(new: New<'_>) {
    let (_home, store) = new();
    let number = Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 64,
        ..Config::default()
    });
    let done = runner.run(&a_run(), |run| {
        number.set(number.get() + 1);
        // One per build, so that it can be selected alone.
        let id = format!("{:04x}", number.get());
        let run = Run {
            id: RunId::from_hex(&id).unwrap(),
            build: build(&id).id,
            ..run
        };
        saved(&store, &run);
        assert_eq!(store.run(&run.id).unwrap(), run);
        let found = store.runs_of(&run.build, &run.machine, &run.suite).unwrap();
        assert_eq!(found, [run]);
        Ok(())
    });
    done.unwrap();
}

fn a_run_is_never_changed(new: New<'_>) {
    let (_home, store) = new();
    let first = run("aa", "01", 1);
    parents(&store, &first);
    store.save_run(&first, &[CONSOLE]).unwrap();
    let error = store.save_run(&run("aa", "01", 2), &[]).unwrap_err();
    assert_eq!(error.fault(), Fault::Lab);
    insta::assert_snapshot!(error, @"run_01 is stored already, and runs never change");
    assert_eq!(store.run(&first.id).unwrap(), first);
    assert_eq!(store.artifact(&first.id, "console").unwrap(), CONSOLE.bytes);
    for change in [
        "UPDATE runs SET seed = 3",
        "UPDATE results SET workload = 'x'",
    ] {
        let error = store
            .with(|database| database.execute(change, &[]))
            .unwrap_err();
        assert!(
            error.to_string().contains("a run is never changed"),
            "{error}"
        );
    }
}

fn a_run_of_an_unknown_build_is_refused_and_leaves_no_file(new: New<'_>) {
    let (home, store) = new();
    let run = run("aa", "01", 1);
    let error = store.save_run(&run, &[CONSOLE]).unwrap_err();
    insta::assert_snapshot!(error, @"run_01 refers to a build or machine that was not saved before it (a bug in the caller)");
    for folder in ["artefacts", "incoming"] {
        // A server store has no such directory.
        assert!(!home.path().join(folder).exists() || files(&home, folder).is_empty());
    }
    assert!(store.artifact_names(&run.id).is_err());
}

fn runs_are_listed_newest_first_with_their_outcomes_counted(new: New<'_>) {
    let (_home, store) = new();
    for (hex, started_unix) in [("01", 10), ("02", 30), ("03", 20), ("04", 30)] {
        saved(
            &store,
            &Run {
                started_unix: UnixTime::new(started_unix),
                ..run("aa", hex, u64::MAX)
            },
        );
    }
    let listed = store.runs(3).unwrap();
    let ids: Vec<_> = listed.iter().map(|run| run.id.hex()).collect();
    assert_eq!(ids, ["04", "02", "03"]);
    let newest = &listed[0];
    assert_eq!(
        (newest.completed, newest.unsupported, newest.failed),
        (1, 1, 1)
    );
    assert_eq!(
        (newest.seed, newest.kernel.to_string()),
        (u64::MAX, "deb:6.12".into())
    );
    assert_eq!(newest.version, build("aa").version);
}

fn only_the_runs_asked_for_are_returned(new: New<'_>) {
    let (_home, store) = new();
    let wanted = [run("aa", "01", 1), run("aa", "03", 3)];
    saved(&store, &wanted[0]);
    saved(&store, &run("bb", "02", 1));
    saved(&store, &wanted[1]);
    let runs_of = |suite: &str| {
        store
            .runs_of(&wanted[0].build, &wanted[0].machine, suite)
            .unwrap()
    };
    assert_eq!(runs_of("micro"), wanted);
    assert!(runs_of("macro").is_empty());
}

fn runs_are_found_by_a_beginning_of_their_id(new: New<'_>) {
    let (_home, store) = new();
    let long = "7f3a00112233445566778899aabbccdd";
    let other = "7f3a00112233ffff";
    for (seed, hex) in (0..).zip([long, other, "9000", "90", "01"]) {
        saved(&store, &run("aa", hex, seed));
    }
    let found = |text: &str| store.find_run(text).unwrap().hex().to_owned();
    assert_eq!(found("run_0"), "01");
    assert_eq!(found("90"), "90", "a whole id wins over a beginning");
    assert_eq!(found("7f3a001122334"), long);
    let error_of = |text: &str| {
        let error = store.find_run(text).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        error.to_string()
    };
    insta::assert_snapshot!(error_of("9"), @"`run_9` matches several ids, add digits: run_90, run_9000");
    insta::assert_snapshot!(error_of("7f"), @"`run_7f` matches several ids, add digits: run_7f3a00112233445566778899aabbccdd, run_7f3a00112233ffff");
    insta::assert_snapshot!(error_of("run_ee"), @"no run `run_ee`: `marvin runs` lists stored runs");
    insta::assert_snapshot!(error_of("latest"), @"`latest` is not a run id: expected hexadecimal digits, with or without `run_`");
    let missing = RunId::from_hex("7f").unwrap();
    insta::assert_snapshot!(store.run(&missing).unwrap_err(), @"no run `run_7f`: `marvin runs` lists stored runs");
}

fn not_more_than_some_candidates_are_named(new: New<'_>) {
    let (_home, store) = new();
    for number in 0..30_u64 {
        saved(&store, &run("aa", &format!("5{number:02x}"), number));
    }
    insta::assert_snapshot!(store.find_run("5").unwrap_err(), @"`run_5` matches several ids, add digits: run_500, run_501, run_502, run_503, run_504, run_505, run_506, run_507, …");
}

fn two_writers_take_turns(new: New<'_>) {
    let (_home, store) = new();
    parents(&store, &run("aa", "00", 0));
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let other = again(&store);
            scope.spawn(move || {
                for n in 0..5 {
                    let seed = writer * 16 + n;
                    other
                        .save_run(&run("aa", &format!("{seed:02x}"), seed), &[CONSOLE])
                        .unwrap();
                }
            });
        }
    });
    let numbers: Vec<i64> = store
        .runs_after(0, 100)
        .unwrap()
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(
        store
            .artifact(&RunId::from_hex("34").unwrap(), "console")
            .unwrap(),
        CONSOLE.bytes
    );
}

fn reader_cannot_write(new: New<'_>) {
    let (_home, store) = new();
    saved(&store, &run("aa", "01", 1));
    let reader = Store::open_read_only(store.location()).unwrap();
    assert_eq!(reader.runs(10).unwrap().len(), 1);
    assert!(reader.save_build(&build("bb")).is_err());
    assert!(reader.save_run(&run("aa", "02", 1), &[CONSOLE]).is_err());
    assert!(
        reader
            .add_artifact(&run("aa", "01", 1).id, CONSOLE)
            .is_err()
    );
    assert_eq!(
        reader.run(&run("aa", "01", 1).id).unwrap(),
        run("aa", "01", 1)
    );
}

#[test]
fn unknown_stored_word_is_an_error() {
    let (home, store) = store();
    saved(&store, &run("aa", "01", 1));
    let error_of = |column: &str, outcome: &str| {
        // As a newer program would have saved it.
        let changed = sqlite(&store)
            .execute_batch(&format!(
                "SAVEPOINT future; DROP TRIGGER results_are_never_changed;
                 UPDATE results SET {column} = 'teleported' WHERE outcome = '{outcome}'"
            ))
            .map(|()| store.run(&RunId::from_hex("01").unwrap()).unwrap_err());
        sqlite(&store)
            .execute_batch("ROLLBACK TO future; RELEASE future")
            .unwrap();
        let error = changed.unwrap();
        assert!(
            matches!(error, StoreError::Version(VersionError::UnknownCode { .. })),
            "{error:?}"
        );
        error
            .to_string()
            .replace(home.path().to_str().unwrap(), "HOME")
    };
    insta::assert_snapshot!(error_of("outcome", "completed"), @"HOME/marvin.db was written by a newer Marvin (it has the outcome `teleported`, which this one does not know): use the newer one");
    insta::assert_snapshot!(error_of("stage", "failed"), @"HOME/marvin.db was written by a newer Marvin (it has the stage `teleported`, which this one does not know): use the newer one");
    insta::assert_snapshot!(error_of("reason", "failed"), @"HOME/marvin.db was written by a newer Marvin (it has the reason of a failure `teleported`, which this one does not know): use the newer one");
}

#[test]
fn files_of_writer_killed_before_commit_are_swept() {
    let (home, store) = store();
    let run = run("aa", "01", 1);
    parents(&store, &run);
    // Killed while it wrote files, and killed after they were moved into place.
    fs::create_dir_all(home.path().join("incoming/02/files")).unwrap();
    fs::write(home.path().join("incoming/02/files/console.zst"), "half").unwrap();
    fs::create_dir_all(home.path().join("incoming/01")).unwrap();
    fs::create_dir_all(home.path().join("artefacts/01")).unwrap();
    fs::write(home.path().join("artefacts/01/console.zst"), "half").unwrap();
    fs::write(home.path().join("incoming/notes"), "of the user").unwrap();

    // A reader removes nothing, and does not see it either.
    let reader = Store::open_read_only(home.path()).unwrap();
    assert!(reader.run(&run.id).is_err());
    assert_eq!(files(&home, "incoming").len(), 3);

    // Saving it again, in a process that opened the store before the other was killed.
    store.save_run(&run, &[CONSOLE]).unwrap();
    assert_eq!(store.artifact(&run.id, "console").unwrap(), CONSOLE.bytes);

    drop(Store::open(home.path()).unwrap());
    assert_eq!(files(&home, "incoming"), ["notes"]);
    assert_eq!(files(&home, "artefacts"), ["01"]);
}

#[test]
fn writer_killed_after_commit_loses_no_run() {
    let (home, store) = store();
    let run = run("aa", "01", 1);
    parents(&store, &run);
    store.save_run(&run, &[CONSOLE]).unwrap();
    fs::create_dir(home.path().join("incoming/01")).unwrap();
    let store = Store::open(home.path()).unwrap();
    assert!(files(&home, "incoming").is_empty());
    assert_eq!(store.artifact(&run.id, "console").unwrap(), CONSOLE.bytes);
}

#[test]
fn run_with_unwritable_files_is_not_saved() {
    let (home, store) = store();
    let run = run("aa", "01", 1);
    parents(&store, &run);
    fs::remove_dir(home.path().join("artefacts")).unwrap();
    fs::write(home.path().join("artefacts"), "").unwrap();
    assert!(store.save_run(&run, &[CONSOLE]).is_err());
    assert!(store.runs(10).unwrap().is_empty());
}

fn files(home: &tempfile::TempDir, folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(home.path().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

//! Tests with a second process: the lock's holder, reading during saves, and kills at any moment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use model::RunId;

use crate::testing::{parents, run};
use crate::{Artifact, HomeLock, InUse, Store, StoreError};

/// Tells a test process that it is the second one, and where to save.
const HOME: &str = "MARVIN_STORE_TEST_HOME";

/// The number of its first run.
const FIRST: &str = "MARVIN_STORE_TEST_FIRST";

/// Ends a second process that survives its test.
const MOST_RUNS: u64 = 2_000;

/// Incompressible bytes that identify their run.
fn content(seed: u64) -> Vec<u8> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(100_000)
    .collect()
}

/// No test: the work of the second process. Does nothing when run as a test.
#[test]
fn second_process() {
    let Some(home) = std::env::var_os(HOME).map(PathBuf::from) else {
        return;
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let _lock = HomeLock::acquire(&home).unwrap();
    let store = Store::open(&home).unwrap();
    for seed in first..first + MOST_RUNS {
        let run = run("aa", &format!("{seed:08x}"), seed);
        parents(&store, &run);
        let bytes = &content(seed)[..];
        let artifacts = ["console", "stream"].map(|name| Artifact { name, bytes });
        store.save_run(&run, &artifacts).unwrap();
    }
}

fn start(home: &Path, first: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::second_process"])
        .env(HOME, home)
        .env(FIRST, first.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until something is there, up to a limit.
fn wait<T>(mut what: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = what() {
            return found;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("nothing came in half a minute");
}

fn saved(home: &Path) -> Vec<RunId> {
    Store::open_read_only(home)
        .and_then(|store| store.runs(usize::MAX))
        .map(|runs| runs.into_iter().map(|run| run.id).collect())
        .unwrap_or_default()
}

fn assert_whole(store: &Store, id: &RunId) {
    let seed = u64::from_str_radix(id.hex(), 16).unwrap();
    assert_eq!(store.run(id).unwrap(), run("aa", id.hex(), seed));
    for name in ["console", "stream"] {
        assert!(store.artifact(id, name).unwrap() == content(seed), "{id}");
    }
}

#[test]
fn killed_writer_leaves_whole_runs_and_free_lock() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..6_u64 {
        let before = saved(home.path()).len();
        let mut child = start(home.path(), round * MOST_RUNS);
        wait(|| (saved(home.path()).len() > before).then_some(()));
        match HomeLock::acquire(home.path()).unwrap_err() {
            StoreError::InUse(InUse::Locked { pid, .. }) => assert_eq!(pid, Some(child.id())),
            other => panic!("{other}"),
        }
        sleep(Duration::from_millis(round * 7));
        child.kill().unwrap();
        child.wait().unwrap();

        let _lock = HomeLock::acquire(home.path()).unwrap();
        let reader = Store::open_read_only(home.path()).unwrap();
        let runs = saved(home.path());
        assert!(runs.len() > before);
        runs.iter().for_each(|id| assert_whole(&reader, id));

        drop(Store::open(home.path()).unwrap());
        let on_disk: BTreeSet<String> = fs::read_dir(home.path().join("artefacts"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(on_disk, runs.iter().map(|id| id.hex().to_owned()).collect());
        let incoming = fs::read_dir(home.path().join("incoming")).unwrap();
        assert_eq!(incoming.count(), 0);
    }
}

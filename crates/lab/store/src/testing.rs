//! Test data and stores for the tests of this crate.

use std::io::Write;
use std::sync::OnceLock;

use model::{
    Build, BuildFile, BuildId, Clock, Decision, Declared, FailureReason, Machine, MachineId,
    Metric, Outcome, Run, RunId, Stage, SubjectFailure, Triage, UnixTime, WorkloadResult,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::cluster::{Cluster, Durability};
use crate::database::Database;
use crate::{Location, Store};

/// A store in a new data directory, which lasts as long as its handle.
pub(crate) fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

/// Makes new stores of one kind.
pub(crate) type New<'a> = &'a dyn Fn() -> (TempDir, Store);

/// Makes a test of each body for each kind of store, as both make the same promises.
macro_rules! contract {
    ($($body:ident),+ $(,)?) => {
        mod in_a_home {
            $(#[test] fn $body() {
                insta::allow_duplicates! { super::$body(&crate::testing::store) }
            })+
        }
        mod on_a_server {
            $(#[test] fn $body() {
                let Some(cluster) = crate::testing::cluster() else { return };
                insta::allow_duplicates! { super::$body(&|| crate::testing::store_in(cluster)) }
            })+
        }
    };
}
pub(crate) use contract;

/// The server that all tests of this process share; `None`, with a message, if none can be started.
pub(crate) fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Cluster::start(Durability::Hasty).unwrap());
    if cluster.is_none() {
        let text = "not tested with PostgreSQL, which is not installed: scripts/needs.sh test\n";
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    }
    cluster.as_ref()
}

/// A store in a new schema of a server; the directory stays empty.
pub(crate) fn store_in(cluster: &Cluster) -> (TempDir, Store) {
    let location = Location::server(&cluster.place().unwrap(), None).unwrap();
    (tempfile::tempdir().unwrap(), Store::open(location).unwrap())
}

/// The same store, opened once more for writing.
pub(crate) fn again(store: &Store) -> Store {
    Store::open(store.location()).unwrap()
}

/// The connection of a store in a data directory.
pub(crate) fn sqlite(store: &Store) -> &Connection {
    match &store.database {
        Database::Sqlite(connection) => connection,
        Database::Server(_) => panic!("a store on a server"),
    }
}

pub(crate) fn build(hex: &str) -> Build {
    Build {
        id: BuildId::from_hex(hex).unwrap(),
        name: "deb:6.12".parse().unwrap(),
        version: "6.12.117".into(),
        origin: model::Origin::Package {
            name: "linux-image-6.12.117".into(),
            version: "6.12.117-1".into(),
        },
        image: BuildFile {
            path: format!("/cache/{hex}/vmlinuz").into(),
            sha256: "00ff".into(),
        },
        vmlinux: None,
        config: Some(BuildFile {
            path: format!("/cache/{hex}/config").into(),
            sha256: "11".into(),
        }),
        symbols: None,
        modules: None,
    }
}

pub(crate) fn machine(hex: &str) -> Machine {
    Machine {
        id: MachineId::from_hex(hex).unwrap(),
        kind: "exact".parse().unwrap(),
        summary: "QEMU 10.0.2, qemu64, 512 MiB".into(),
        fingerprint: vec![
            ("cpu".into(), "qemu64".into()),
            ("memory".into(), "512".into()),
        ],
    }
}

/// A run with one result of each outcome.
pub(crate) fn run(build: &str, hex: &str, seed: u64) -> Run {
    let result = |workload: &str, outcome, samples| WorkloadResult {
        workload: workload.into(),
        operations: 20_000,
        declared: Some(Declared::from_metric(&Metric::COST, Clock::Instructions)),
        outcome,
        samples,
        counted: vec![],
    };
    let failure = SubjectFailure {
        stage: Stage::Workload,
        reason: FailureReason::AgentDied("signal 9".into()),
        console_tail: "Killed\n".into(),
    };
    Run {
        id: RunId::from_hex(hex).unwrap(),
        build: BuildId::from_hex(build).unwrap(),
        machine: MachineId::from_hex("ee").unwrap(),
        suite: "micro".into(),
        seed,
        started_unix: UnixTime::new(1_760_000_000),
        environment: vec![("release".into(), "6.12.117".into())],
        results: vec![
            result("getppid", Outcome::Completed, vec![100.5, 100.25]),
            result("io-uring", Outcome::Unsupported("io_uring".into()), vec![]),
            result("fork", Outcome::Failed(failure), vec![]),
        ],
    }
}

/// Saves the build and the machine of a run.
pub(crate) fn parents(store: &Store, run: &Run) {
    store.save_build(&build(run.build.hex())).unwrap();
    store.save_machine(&machine(run.machine.hex())).unwrap();
}

/// Saves a run with its build and machine.
pub(crate) fn saved(store: &Store, run: &Run) {
    parents(store, run);
    store.save_run(run, &[]).unwrap();
}

/// A job of the exact machine.
pub(crate) fn new_job(kernel: &str) -> model::NewJob {
    model::NewJob {
        work: model::Work {
            kernel: kernel.parse().unwrap(),
            tree: String::new(),
            config: "default".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into()],
            seeds: 1,
            machine: model::USUAL_MACHINE.into(),
        },
        plan: String::new(),
        priority: 0,
        rank: 0,
        attempts_max: 2,
        deadline_s: 100,
    }
}

pub(crate) fn decision(at: &str, triage: Triage) -> Decision {
    Decision {
        track: "cloud-amd64".into(),
        after: "6.1.192".into(),
        at: at.into(),
        triage,
        note: "seen by two".into(),
        worse: 3,
        decided_unix: UnixTime::new(1_760_000_000),
    }
}

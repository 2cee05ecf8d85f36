//! Things to save, for the tests of this crate.

use model::{
    Build, BuildFile, BuildId, Decision, FailureReason, Machine, MachineId, MachineKind, Outcome, Run, RunId, Stage,
    SubjectFailure, Triage, WorkloadResult,
};
use tempfile::TempDir;

use crate::Store;

/// A store in a new home, which lasts as long as the folder is held.
pub(crate) fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

pub(crate) fn build(hex: &str) -> Build {
    Build {
        id: BuildId::from_hex(hex).unwrap(),
        name: "deb:6.12".parse().unwrap(),
        version: "6.12.117".into(),
        origin: "linux-image-6.12.117 6.12.117-1".into(),
        image: BuildFile { path: format!("/cache/{hex}/vmlinuz").into(), sha256: "00ff".into() },
        vmlinux: None,
        config: Some(BuildFile { path: format!("/cache/{hex}/config").into(), sha256: "11".into() }),
        symbols: None,
        modules: None,
    }
}

pub(crate) fn machine(hex: &str) -> Machine {
    Machine {
        id: MachineId::from_hex(hex).unwrap(),
        kind: MachineKind::Exact,
        summary: "QEMU 10.0.2, qemu64, 512 MiB".into(),
        fingerprint: vec![("cpu".into(), "qemu64".into()), ("memory".into(), "512".into())],
    }
}

/// A run with one result of each outcome.
pub(crate) fn run(build: &str, hex: &str, seed: u64) -> Run {
    let result = |workload: &str, outcome, samples| WorkloadResult {
        workload: workload.into(),
        operations: 20_000,
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
        started_unix: 1_760_000_000,
        environment: vec![("release".into(), "6.12.117".into())],
        results: vec![
            result("getppid", Outcome::Completed, vec![100.5, 100.25]),
            result("io-uring", Outcome::Unsupported("io_uring".into()), vec![]),
            result("fork", Outcome::Failed(failure), vec![]),
        ],
    }
}

/// Saves the build and the machine that a run needs.
pub(crate) fn parents(store: &Store, run: &Run) {
    store.save_build(&build(run.build.hex())).unwrap();
    store.save_machine(&machine(run.machine.hex())).unwrap();
}

/// Saves a run and what it needs.
pub(crate) fn saved(store: &Store, run: &Run) {
    parents(store, run);
    store.save_run(run, &[]).unwrap();
}

/// What somebody thought of an alert.
pub(crate) fn decision(at: &str, triage: Triage) -> Decision {
    Decision {
        track: "cloud-amd64".into(),
        after: "6.1.192".into(),
        at: at.into(),
        triage,
        note: "seen by two".into(),
        worse: 3,
        decided_unix: 1_760_000_000,
    }
}

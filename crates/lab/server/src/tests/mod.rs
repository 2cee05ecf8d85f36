//! Tests of servers with a make-believe one: how they boot, die, come back and change.

mod connections;
mod fake_server;
mod identity;
mod idle;
mod image;
mod kernels;
mod permitted;
mod programs;
mod scripts;

use std::path::PathBuf;
use std::sync::Arc;

use machine::{Backend, BootOutcome, Guest, Observe};
use model::{Build, BuildFile, BuildId, FailureReason, KernelName, Outcome, SubjectFailure};
use tempfile::TempDir;
use wire::{Clock, Job, Perturbation, Task};

pub(crate) use self::fake_server::settings_of;
use self::fake_server::{Does, Fake};
use crate::boot::ServerMachine;

fn build(folder: &TempDir) -> Build {
    let path = folder.path().join("vmlinuz");
    std::fs::write(&path, crate::boot::build_id::tests::image(&[0xab, 0xcd])).unwrap();
    let modules = folder.path().join("modules/6.1");
    std::fs::create_dir_all(&modules).unwrap();
    Build {
        id: BuildId::from_hex(&"a".repeat(64)).unwrap(),
        name: KernelName::Path(PathBuf::from("vmlinuz")),
        version: "6.1".into(),
        origin: model::Origin::Described("vmlinuz".into()),
        image: BuildFile {
            path,
            sha256: "b".repeat(64),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: Some(modules),
    }
}

fn job() -> Job {
    Job {
        id: 7,
        clock: Clock::Monotonic,
        perturbation: Perturbation::default(),
        task: Task::Environment,
    }
}

/// Boots a build and runs a job; returns how they ended.
fn boot_and_run(fake: &Fake) -> (Result<Outcome, String>, Arc<ServerMachine>) {
    let home = tempfile::tempdir().unwrap();
    boot_and_run_on(fake.open(&home).unwrap(), &home)
}

fn boot_and_run_on(
    server: Arc<ServerMachine>,
    home: &TempDir,
) -> (Result<Outcome, String>, Arc<ServerMachine>) {
    let build = build(home);
    let boot = Arc::clone(&server).boot(
        &Guest {
            build: &build,
            modules: &[],
        },
        1,
    );
    let failed = |failure: SubjectFailure| Ok(Outcome::Failed(failure));
    let end = match boot {
        Err(error) => Err(error.to_string()),
        Ok(BootOutcome::KernelFailed { failure, .. }) => failed(failure),
        Ok(BootOutcome::Unsupported(why)) => Err(why),
        Ok(BootOutcome::Ready(booted)) => match booted.run(&job(), Observe::Nothing) {
            Err(error) => Err(error.to_string()),
            Ok(end) => end.stream.map(|_| Outcome::Completed).or_else(failed),
        },
    };
    (end, server)
}

fn reason(end: Result<Outcome, String>) -> FailureReason {
    match end {
        Ok(Outcome::Failed(failure)) => failure.reason,
        other => panic!("{other:?}"),
    }
}

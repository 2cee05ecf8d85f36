//! Marvin measures only the kernel and the machine that it means to measure.

use machine::{Backend, BootOutcome, Guest, Observe};
use model::FailureReason;

use super::{Does, Fake, boot_and_run, build, job};
use crate::{ServerState, server_state};

#[test]
fn no_job_runs_on_another_kernel() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Boots);
    let server = fake.open(&home).unwrap();
    let build = build(&home);
    let BootOutcome::Ready(booted) = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap()
    else {
        panic!()
    };
    let run = || {
        booted
            .run(&job(), Observe::Nothing)
            .unwrap()
            .stream
            .unwrap_err()
            .reason
    };
    let dead = FailureReason::AgentDied("agent: no such workload".into());
    assert_eq!(run(), dead);
    // A reset: the server runs its own kernel.
    {
        let mut state = fake.state();
        (state.boots, state.running) = (state.boots + 1, None);
    }
    let restarted = FailureReason::AgentDied("the server restarted".into());
    assert_eq!(run(), restarted, "the job was not run");
    assert_eq!(run(), dead, "the build was booted again");
    assert_eq!(
        fake.log(),
        "describe, install, boot, restore, prepare, describe, job, boot, restore, prepare, describe, job"
    );
}

#[test]
fn other_build_of_a_release_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Boots);
    fake.state().build_id = "ef01";
    let server = fake.open(&home).unwrap();
    let build = build(&home);
    let error = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err();
    insta::assert_snapshot!(error, @"testbox cannot boot the kernel: it runs the build with id ef01 and not abcd");
    assert_eq!(fake.state().running, None, "it runs its own kernel again");
}

#[test]
fn return_to_a_third_kernel_is_reported() {
    let fake = Fake::new(Does::Boots);
    let (_, server) = boot_and_run(&fake);
    fake.state().own = "6.5-other";
    insta::assert_snapshot!(server.close().unwrap_err());
    // Also if a kernel dies, and the boot loader starts another one than before.
    let fake = Fake::new(Does::DiesInJob);
    let home = tempfile::tempdir().unwrap();
    let build_home = tempfile::tempdir().unwrap();
    let server = fake.open(&home).unwrap();
    let build = build(&build_home);
    let BootOutcome::Ready(booted) = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap()
    else {
        panic!()
    };
    fake.state().own = "6.5-other";
    let error = booted
        .run(&job(), Observe::Nothing)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("testbox came back with kernel 6.5-other and not with its own, 6.1-own"),
        "{error}"
    );
}

#[test]
fn lost_and_changed_servers_are_remembered() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Hangs);
    fake.state().has_power = false;
    let server = fake.open(&home).unwrap();
    let build = build(&home);
    server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err();
    let state = || server_state("testbox", home.path());
    assert!(
        matches!(state(), Some(ServerState::Lost(why)) if why.starts_with("testbox is lost: after the boot"))
    );
    {
        let mut state = fake.state();
        (state.answers, state.does) = (true, Does::Boots);
    }
    let server = fake.open(&home).unwrap();
    assert_eq!(state(), None);
    fake.state().memory_mib = 500;
    server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err();
    let changes = "machine testbox changed: host.memory 1000 MiB -> 500 MiB";
    assert_eq!(state(), Some(ServerState::Quarantined(changes.into())));
}

#[test]
fn machine_that_changed_between_boots_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Boots);
    let server = fake.open(&home).unwrap();
    let build = build(&home);
    fake.state().memory_mib = 500;
    let error = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err()
        .to_string();
    assert!(error.contains("host.memory 1000 MiB -> 500 MiB"), "{error}");
    assert_eq!(fake.state().running, None, "it runs its own kernel again");
}

#[test]
fn killed_marvins_kernel_is_left_at_opening() {
    let fake = Fake::new(Does::Boots);
    fake.state().running = Some("0123456789ab".into());
    let home = tempfile::tempdir().unwrap();
    fake.open(&home).unwrap();
    assert_eq!(fake.log(), "reboot, describe, leave");
}

#[test]
fn changed_machine_is_refused() {
    let fake = Fake::new(Does::Boots);
    let home = tempfile::tempdir().unwrap();
    fake.open(&home).unwrap();
    fake.state().memory_mib = 500;
    let error = fake.open(&home).unwrap_err().to_string();
    assert!(error.contains("host.memory 1000 MiB -> 500 MiB"), "{error}");
    assert_eq!(
        fake.log(),
        "describe, leave, describe, leave",
        "others may use it"
    );
}

#[test]
fn unfit_servers_are_refused_before_any_change() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Boots);
    fake.state().user = "lab";
    let user = fake.open(&home).unwrap_err().to_string();
    let fake = Fake::new(Does::Boots);
    fake.state().free_kib = 512;
    let (full, _) = boot_and_run(&fake);
    insta::assert_snapshot!(format!("{user}\n{}", full.unwrap_err()), @r#"
    testbox boots kernels only for root, not for user lab: set host = "root@..." in its [[machine]]
    testbox has 0 MiB left in /var/lib/marvin; the kernel needs 1 MiB: free some there
    "#);
    assert_eq!(fake.log(), "describe, leave");
}

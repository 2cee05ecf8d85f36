//! What becomes of kernels under test: each one that fails is blamed for what it did.

use machine::{Backend, BootOutcome, Guest, Observe};
use model::{FailureReason, Outcome};

use super::{Does, Fake, boot_and_run, build, job, reason};

#[test]
fn server_boots_measures_and_returns() {
    let fake = Fake::new(Does::Boots);
    let (end, server) = boot_and_run(&fake);
    assert_eq!(
        reason(end),
        FailureReason::AgentDied("agent: no such workload".into())
    );
    server.close().unwrap();
    server.close().unwrap();
    assert_eq!(
        fake.log(),
        "describe, install, boot, restore, prepare, describe, job, reboot, leave"
    );
    assert_eq!(fake.state().running, None);
}

#[test]
fn kernel_that_dies_at_boot_is_its_failure() {
    let fake = Fake::new(Does::Dies);
    let (end, server) = boot_and_run(&fake);
    assert_eq!(reason(end), FailureReason::Panicked, "as its console says");
    server.close().unwrap();
    assert_eq!(
        fake.log(),
        "describe, install, boot, leave",
        "it runs its own kernel already"
    );
}

#[test]
fn server_that_never_restarts_fails_the_lab() {
    for has_power in [true, false] {
        let fake = Fake::new(Does::IsNotBooted);
        fake.state().has_power = has_power;
        let (end, _) = boot_and_run(&fake);
        assert_eq!(
            end.unwrap_err(),
            "testbox cannot restart: it still answered in the same boot after 30 s"
        );
    }
}

#[test]
fn hung_kernel_is_ended_by_power_control() {
    for (does, log) in [
        (Does::Hangs, "describe, install, boot, power, leave"),
        (
            Does::HangsInJob,
            "describe, install, boot, restore, prepare, describe, job, power, leave",
        ),
    ] {
        let fake = Fake::new(does);
        let (end, server) = boot_and_run(&fake);
        assert_eq!(reason(end), FailureReason::Hung);
        server.close().unwrap();
        assert_eq!(fake.log(), log);
    }
}

#[test]
fn hung_kernel_is_asked_why_before_power() {
    let run = |does| {
        let fake = Fake::new(does);
        fake.state().takes_sysrq = true;
        let (end, _) = boot_and_run(&fake);
        let Ok(Outcome::Failed(failure)) = end else {
            panic!("{end:?}")
        };
        (fake.log(), failure)
    };
    let (log, hung) = run(Does::Hangs);
    assert!(log.contains("boot, sysrq 8wl, power"), "{log}");
    assert!(
        hung.console_tail.contains("Show Blocked State"),
        "{}",
        hung.console_tail
    );
    assert_eq!(hung.reason, FailureReason::Hung);
    let (log, hung) = run(Does::HangsInJob);
    assert!(
        log.contains("job, sysrq 8wl, power") && hung.reason == FailureReason::Hung,
        "{log}"
    );
    // One that died says no more.
    assert!(!run(Does::DiesForGood).0.contains("sysrq"));
}

#[test]
fn dead_kernel_on_console_ends_waiting_early() {
    let looks = |does, has_power| {
        let fake = Fake::new(does);
        (fake.state().boot_s, fake.state().has_power) = (1_800, has_power);
        let (end, _) = boot_and_run(&fake);
        let looks = fake.state().looks;
        (end.ok().map(|end| reason(Ok(end))), looks)
    };
    let (dead, soon) = looks(Does::DiesForGood, true);
    let (hung, late) = looks(Does::Hangs, true);
    assert_eq!(
        (dead, hung),
        (Some(FailureReason::Panicked), Some(FailureReason::Hung))
    );
    assert!(soon < 30 && late > 250, "{soon} {late}");
    // Without power control it may still come back.
    assert!(looks(Does::DiesForGood, false).1 > 250);
}

#[test]
fn server_without_power_control_is_lost() {
    let fake = Fake::new(Does::Hangs);
    fake.state().has_power = false;
    let (end, _) = boot_and_run(&fake);
    insta::assert_snapshot!(end.unwrap_err(), @"testbox is lost: after the boot it did not answer for 30 s, and its [[machine]] has no power control; its own kernel is the default of the next start");
}

#[test]
fn kernel_that_dies_in_a_job_fails_it() {
    let fake = Fake::new(Does::DiesInJob);
    let restarted = FailureReason::AgentDied("the server restarted".into());
    assert_eq!(
        reason(boot_and_run(&fake).0),
        restarted,
        "without a console"
    );
}

#[test]
fn memory_of_a_dead_kernel_is_brought_home() {
    for (memory, expected) in [
        (b"pages".to_vec(), "pages"),
        (
            Vec::new(),
            "testbox cannot save the memory of the kernel: no space",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::new(Does::DiesInJob);
        fake.state().memory = Some(memory);
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
        let failure = booted
            .run(&job(), Observe::Nothing)
            .unwrap()
            .stream
            .unwrap_err();
        let dead = booted.run_to_death(&job());
        let found = dead.map(|dead| std::fs::read_to_string(dead.unwrap().file).unwrap());
        assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected);
        assert_eq!(
            failure.reason == FailureReason::Panicked,
            expected == "pages",
            "without a console"
        );
        assert!(booted.run_to_death(&job()).unwrap().is_none());
        assert!(
            fake.log()
                .starts_with("describe, install, boot, load, restore, prepare"),
            "{}",
            fake.log()
        );
    }
}

#[test]
fn kernel_that_dies_before_the_first_job_fails() {
    let fake = Fake::new(Does::DiesInPreparation);
    fake.state().console = b"Kernel panic - not syncing: before the boot\n".to_vec();
    let (end, server) = boot_and_run(&fake);
    assert_eq!(
        reason(end),
        FailureReason::AgentDied("the server restarted".into())
    );
    server.close().unwrap();
    assert_eq!(
        fake.log(),
        "describe, install, boot, restore, prepare, leave"
    );
}

#[test]
fn console_of_a_boot_is_kept() {
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
    assert_eq!(booted.boot_console(), b"Linux version 6.1\n");
}

#[test]
fn stale_breakpoint_of_an_emulator_is_retried() {
    for does in [Does::MeetsBreakpoint, Does::MeetsBreakpointInJob] {
        let fake = Fake::new(does);
        assert!(
            matches!(boot_and_run(&fake).0, Ok(Outcome::Failed(_))),
            "hardware does no such thing"
        );
        let fake = Fake::new(does);
        fake.state().processor = "QEMU Virtual CPU version 2.5+";
        let (end, server) = boot_and_run(&fake);
        assert!(end.unwrap_err().starts_with("QEMU executed a breakpoint"));
        server.close().unwrap();
        assert!(fake.log().ends_with("leave") && fake.state().running.is_none());
    }
}

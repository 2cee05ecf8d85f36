//! A connection that is cut is never the kernel's fault.

use std::sync::Arc;

use machine::{Backend, BootOutcome, Guest};
use model::FailureReason;

use super::{Does, Fake, boot_and_run, build, reason};

#[test]
fn cut_connection_is_the_labs_failure() {
    let fake = Fake::new(Does::IsCutInJob);
    let (end, _) = boot_and_run(&fake);
    assert_eq!(
        end.unwrap_err(),
        "the connection to testbox was cut while the kernel ran on"
    );
}

#[test]
fn connection_cut_in_any_step_is_mended() {
    let tail = "restore, prepare, describe, job, reboot";
    for (does, steps) in [
        (
            Does::IsCutInInstall,
            format!("install, install, boot, {tail}, leave"),
        ),
        (
            Does::IsCutAfterBoot,
            format!("install, boot, {tail}, leave"),
        ),
        (
            Does::IsCutBeforeReturn,
            format!("install, boot, {tail}, reboot, leave"),
        ),
        (
            Does::IsCutAfterReturn,
            format!("install, boot, {tail}, leave"),
        ),
    ] {
        let fake = Fake::new(does);
        let (end, server) = boot_and_run(&fake);
        assert_eq!(
            reason(end),
            FailureReason::AgentDied("agent: no such workload".into()),
            "{does:?}"
        );
        server.close().unwrap();
        assert_eq!(fake.log(), format!("describe, {steps}"), "{does:?}");
        assert_eq!(fake.state().running, None);
    }
    // The lab tries such a boot again.
    let fake = Fake::new(Does::IsCutBeforeBoot);
    let home = tempfile::tempdir().unwrap();
    let server = fake.open(&tempfile::tempdir().unwrap()).unwrap();
    let build = build(&home);
    let boot = || {
        Arc::clone(&server).boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
    };
    assert!(boot().unwrap_err().is_passing());
    assert!(matches!(boot().unwrap(), BootOutcome::Ready(_)));
}

//! The workloads that misbehave do so, and only those that harm nobody else do it outside of a
//! guest.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

const AGENT: &str = env!("CARGO_BIN_EXE_marvin-agent");

fn agent(words: &[&str]) -> Output {
    Command::new(AGENT).args(words).output().unwrap()
}

fn message_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn they_are_not_listed() {
    assert!(!message_of(&agent(&["list"])).contains("misbehave"));
}

#[test]
fn each_fails_in_its_own_way() {
    let failed = agent(&["run", "misbehave-fail", "1"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(message_of(&failed), "misbehave-fail: failed on purpose\n");

    let unsupported = message_of(&agent(&["run", "misbehave-unsupported", "1"]));
    assert_eq!(
        unsupported,
        "misbehave-unsupported: not supported: lacking on purpose\n"
    );

    let exited = agent(&["run", "misbehave-exit", "1"]);
    assert_eq!(
        (exited.status.code(), message_of(&exited).as_str()),
        (Some(0), "")
    );

    let killed = agent(&["run", "misbehave-segv", "1"]);
    assert_eq!(killed.status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn printing_is_refused_outside_of_a_guest() {
    let refused = message_of(&agent(&["run", "misbehave-garble", "1"]));
    assert!(
        refused.contains("not supported: only in a guest"),
        "{refused}"
    );
}

#[test]
fn an_unknown_workload_is_not_supported() {
    let unknown = agent(&["run", "no-such-workload", "1"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(message_of(&unknown).contains("this agent has no workload `no-such-workload`"));
}

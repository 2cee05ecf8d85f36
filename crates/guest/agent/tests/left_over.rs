//! A workload leaves nothing behind: no process, no file, no mount.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const AGENT: &str = env!("CARGO_BIN_EXE_marvin-agent");

/// Starts the agent as the first of a process group, so that its children are known by it.
fn start(name: &str, operations: &str) -> Child {
    Command::new(AGENT)
        .args(["run", name, operations])
        .process_group(0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Counts the processes of a group.
fn group_size(group: u32) -> usize {
    let field = |stat: String| stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| field(stat.clone()) == Some(group))
        .count()
}

fn until(what: &str, reached: impl Fn() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_workload_that_ends_leaves_nothing_behind() {
    let names = Command::new(AGENT).arg("list").output().unwrap();
    for name in String::from_utf8(names.stdout).unwrap().lines() {
        let mut child = start(name, "4");
        child.wait().unwrap();
        let folder = std::env::temp_dir()
            .join(format!("marvin-{:010}", child.id()))
            .display()
            .to_string();
        assert!(!fs::exists(&folder).unwrap(), "{name} left {folder}");
        assert!(
            !fs::read_to_string("/proc/self/mounts")
                .unwrap()
                .contains(&folder),
            "{name} left a mount"
        );
        assert_eq!(group_size(child.id()), 0, "{name} left a process");
    }
}

#[test]
fn a_workload_that_is_killed_leaves_no_process_behind() {
    for (name, processes) in [
        ("pipe-pingpong", 2),
        ("switch-yield", 2),
        ("udp-rr", 2),
        ("hackbench-pipe", 21),
    ] {
        let mut child = start(name, "1000000000");
        until("the peers are there", || {
            group_size(child.id()) == processes
        });
        // A peer asks to be ended with its parent as the first thing it does.
        sleep(Duration::from_millis(50));
        child.kill().unwrap();
        child.wait().unwrap();
        until("the peers are gone", || group_size(child.id()) == 0);
    }
}

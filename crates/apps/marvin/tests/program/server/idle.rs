//! A server is switched off while it is idle, and on when a job needs it.

use std::fs::File;
use std::process::Child;

use super::Lab;
use crate::{is_left_to_full, marvin};

/// A worker, which ends with the test.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}

#[test]
fn idle_server_is_off_until_a_job_comes() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("idle-home", None);
    lab.settings("idle_off = \"1m\"");
    let log = lab.home.join("worker.log");
    let mut command = marvin(&lab.home);
    let worker = command
        .args(["work", "--on", "testbox"])
        .stderr(File::create(&log).unwrap());
    let _worker = Worker(worker.spawn().unwrap());
    let output = || std::fs::read_to_string(&log).unwrap();
    let is_off = |times: usize| {
        let line = "testbox was idle: it is off until a measurement needs it\n";
        lab.wait(&|| output().matches(line).count() == times);
        assert!(!lab.server.is_on().unwrap(), "{}", output());
        // It shut itself down.
        assert_eq!(
            lab.server.console().matches("reboot: Power down").count(),
            times,
            "{}",
            lab.server.console()
        );
    };
    is_off(1);
    let listed = lab.marvin(&["machines"]);
    assert!(listed.contains(" off "), "{listed}");
    lab.marvin(&[
        "queue",
        "add",
        "deb:6.12",
        "--on",
        "testbox",
        "--seeds",
        "1",
        "--workload",
        "getppid",
    ]);
    lab.wait(&|| output().contains("job 1 is done\n"));
    lab.assert_own_kernel();
    is_off(2);
    println!("{}", output());
}

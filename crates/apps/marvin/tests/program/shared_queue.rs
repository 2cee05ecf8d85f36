//! Several hosts, one queue on a PostgreSQL server: each job is executed once, also if workers are
//! killed. The hosts are data directories of this one. With `MARVIN_FULL` a worker also stalls
//! until it loses its job, and the server is killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use store::cluster::{Cluster, Durability};
use store::{Location, Store};

use crate::fresh::fresh;
use crate::interrupted::until;
use crate::{format_output, images, is_left_to_full, marvin};

/// How often a host looks for the job, every ten seconds: a failed one waits for a minute.
const TRIES: usize = 12;

/// Data directories with one queue on a server.
struct Hosts {
    cluster: Cluster,
    address: String,
    image: PathBuf,
}

impl Hosts {
    fn new() -> Option<Self> {
        let Some(cluster) = Cluster::start(Durability::Durable).unwrap() else {
            println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
            return None;
        };
        let address = cluster.place().unwrap();
        Some(Self {
            cluster,
            address,
            image: images().1[1].clone(),
        })
    }

    fn command(&self, host: &Path, arguments: &[&str]) -> Command {
        let mut command = marvin(host);
        command.env("MARVIN_STORE", &self.address).args(arguments);
        command
    }

    fn output(&self, host: &Path, arguments: &[&str]) -> String {
        format_output(&self.command(host, arguments).output().unwrap(), host)
    }

    fn add(&self, host: &Path, workload: &str, seeds: u32) {
        let kernel = format!("path:{}", self.image.display());
        let added = self.output(
            host,
            &[
                "queue",
                "add",
                &kernel,
                "--workload",
                workload,
                "--seeds",
                &seeds.to_string(),
            ],
        );
        assert!(added.starts_with("exit 0"), "{added}");
    }

    fn worker(&self, host: &Path) -> Child {
        self.command(host, &["work", "--once"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until a worker of this host has a job.
    fn wait_for_job(&self, host: &Path) {
        let holder = format!(":{} since ", host.display());
        until("a job runs", || {
            let listed = self.command(host, &["queue", "list"]).output().unwrap();
            String::from_utf8_lossy(&listed.stdout).contains(&holder)
        });
    }

    fn count_runs(&self) -> usize {
        Store::open_read_only(Location::server(&self.address, None).unwrap())
            .unwrap()
            .runs(usize::MAX)
            .unwrap()
            .len()
    }
}

fn read_output(worker: Child) -> String {
    String::from_utf8(worker.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn hosts_share_a_queue_despite_kills() {
    let Some(hosts) = Hosts::new() else { return };
    let [anna, ben] = ["shared-queue-anna", "shared-queue-ben"].map(fresh);
    hosts.add(&anna, "fork", 1);
    hosts.add(&ben, "getppid", 1);
    let mut killed = hosts.worker(&anna);
    hosts.wait_for_job(&anna);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Another host cannot know that yet, and does what is free.
    let other = hosts.output(&ben, &["work", "--once"]);
    assert!(
        other.starts_with("exit 0") && other.contains("done 1, failed 0"),
        "{other}"
    );
    // The same host's next worker does, and goes on at once.
    let again = hosts.output(&anna, &["work", "--once"]);
    assert!(
        again.contains("its worker died; the job is waiting") && again.contains("done 1, failed 0"),
        "{again}"
    );
    let all = hosts.output(&ben, &["queue", "list", "--all"]);
    assert_eq!(all.matches(" done ").count(), 2, "{all}");
    assert_eq!(hosts.count_runs(), 2);
    let here = format_output(
        &marvin(&ben).args(["queue", "list"]).output().unwrap(),
        &ben,
    );
    assert!(
        here.starts_with("exit 2"),
        "without the server's address the data directory has no queue: {here}"
    );
}

#[test]
fn stalled_worker_loses_its_job() {
    if is_left_to_full("a lease lasts two minutes") {
        return;
    }
    let Some(mut hosts) = Hosts::new() else {
        return;
    };
    let [anna, ben] = ["stalled-queue-anna", "stalled-queue-ben"].map(fresh);
    hosts.add(&anna, "fork", 40);
    let stalled = hosts.worker(&anna);
    hosts.wait_for_job(&anna);
    let signal = |signal: &str| {
        let sent = Command::new("kill")
            .args([signal, &stalled.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(model::LEASE_S + 5));
    let taken = hosts.worker(&ben);
    hosts.wait_for_job(&ben);
    signal("-CONT");
    // The server dies and comes back while the job runs.
    hosts.cluster.pause().unwrap();
    hosts.cluster.resume().unwrap();
    assert!(read_output(stalled).contains("done 0, failed 0"));
    // A job that cannot save a run because the server is gone is a failure of the lab: it is tried
    // again after a minute.
    drop(read_output(taken));
    let mut output = String::new();
    for _ in 0..TRIES {
        std::thread::sleep(Duration::from_secs(10));
        output = hosts.output(&ben, &["work", "--once"]);
        if hosts
            .output(&ben, &["queue", "list", "--all"])
            .contains(" done ")
        {
            return;
        }
    }
    panic!(
        "{output}\n{}",
        hosts.output(&ben, &["queue", "list", "--all"])
    );
}

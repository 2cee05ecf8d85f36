//! Jobs of the queue through a real Slurm of three nodes, which are data directories of this host,
//! with the queue on a real PostgreSQL. With `MARVIN_FULL` a node and the controller are killed
//! under their jobs, and a bisection uses the nodes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rack::Slurm;
use store::cluster::{Cluster, Durability};
use store::{Location, Store};

use crate::bisected::regressed;
use crate::fresh::{Fresh, fresh};
use crate::interrupted::until;
use crate::{format_output, images, is_full, is_left_to_full, marvin};

const NODES: [&str; 3] = ["bm1", "bm2", "vm1"];

/// A site with Slurm.
struct Grid {
    slurm: Slurm,
    /// Ends when this is dropped.
    _cluster: Cluster,
    address: String,
    home: Fresh,
    images: Vec<PathBuf>,
}

impl Grid {
    fn new(name: &str) -> Option<Self> {
        let Some(slurm) = Slurm::start(&NODES).unwrap() else {
            println!("not tested with Slurm, which is not installed: scripts/needs.sh test");
            return None;
        };
        let Some(cluster) = Cluster::start(Durability::Durable).unwrap() else {
            println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
            return None;
        };
        let address = cluster.place().unwrap();
        let home = fresh(name);
        let nodes = home.join("%N");
        fs::create_dir_all(&home).unwrap();
        let text = format!(
            "[work]\nbuilds = \"shared\"\ndeadline = \"30m\"\n[slurm]\noptions = [\"--nice=5\"]\nhome = \"{}\"\n",
            nodes.display()
        );
        fs::write(home.join("marvin.toml"), text).unwrap();
        Some(Self {
            slurm,
            _cluster: cluster,
            address,
            home,
            images: images().1,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = marvin(&self.home);
        command
            .env("MARVIN_STORE", &self.address)
            .env("SLURM_CONF", self.slurm.configuration())
            .args(arguments);
        command
    }

    fn output(&self, arguments: &[&str]) -> String {
        format_output(&self.command(arguments).output().unwrap(), &self.home)
    }

    fn kernel(&self, place: usize) -> String {
        format!("path:{}", self.images[place].display())
    }

    fn add(&self, place: usize, workload: &str, seeds: &str) {
        let added = self.output(&[
            "queue",
            "add",
            &self.kernel(place),
            "--workload",
            workload,
            "--seeds",
            seeds,
        ]);
        assert!(added.starts_with("exit 0"), "{added}");
    }

    fn dispatcher(&self) -> Child {
        let mut command = self.command(&["work", "--via", "slurm", "--once"]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn squeue(&self) -> String {
        self.slurm
            .run("squeue", &["-h", "--states=all", "-o", "%j %T %N"])
            .unwrap()
    }

    fn count_runs(&self) -> usize {
        Store::open_read_only(Location::server(&self.address, None).unwrap())
            .unwrap()
            .runs(usize::MAX)
            .unwrap()
            .len()
    }
}

fn read_output(dispatcher: Child, home: &Path) -> String {
    format_output(&dispatcher.wait_with_output().unwrap(), home)
}

#[test]
fn slurm_runs_queued_jobs_on_several_nodes() {
    let Some(grid) = Grid::new("slurm-jobs") else {
        return;
    };
    grid.add(0, "getppid", "1");
    grid.add(1, "getppid", "1");
    grid.add(1, "fork", "1");
    assert!(grid.output(&["queue", "cancel", "3"]).starts_with("exit 0"));
    let mut dispatcher = grid.dispatcher();
    until("both jobs are sent", || grid.squeue().lines().count() == 2);
    // What was sent goes on without its dispatcher, and the next one sends nothing twice.
    dispatcher.kill().unwrap();
    dispatcher.wait().unwrap();
    until("a job runs", || {
        grid.output(&["queue", "list"]).contains(":slurm-")
    });
    let why = grid.output(&["queue", "why", "1"]);
    assert!(why.contains("batch      Slurm job "), "{why}");
    let output = read_output(grid.dispatcher(), &grid.home);
    assert!(
        output.starts_with("exit 0") && output.contains("done 2, failed 0"),
        "{output}"
    );
    let jobs = grid.squeue();
    assert_eq!(jobs.matches(" COMPLETED ").count(), 2, "{jobs}");
    assert_eq!(
        NODES.iter().filter(|node| jobs.contains(*node)).count(),
        2,
        "two nodes: {jobs}"
    );
    assert_eq!(grid.count_runs(), 2);
}

#[test]
fn spread_comparison_equals_that_of_one_host() {
    let Some(grid) = Grid::new("slurm-compare") else {
        return;
    };
    let [old, new] = [0, 1].map(|place| grid.kernel(place));
    // Two jobs; with two seeds each, four on three nodes.
    let seeds = if is_full() { "2" } else { "1" };
    let comparison = [
        "compare",
        &old,
        &new,
        "--seeds",
        seeds,
        "--workload",
        "getppid,fork",
        "--format",
        "json",
    ];
    let numbers = |output: std::process::Output, home: &Path| {
        assert_eq!(
            output.status.code(),
            Some(1),
            "{}",
            format_output(&output, home)
        );
        let mut document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            document
                .as_object_mut()
                .unwrap()
                .remove("provenance")
                .is_some(),
            "ids and dates"
        );
        document.to_string()
    };
    let spread = grid
        .command(&comparison)
        .args(["--via", "slurm"])
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&spread.stderr).into_owned();
    let all = if is_full() {
        "4 of 4 jobs ended, 0 run"
    } else {
        "2 of 2 jobs ended, 0 run"
    };
    assert!(
        answer.contains(all) && !answer.contains("brought no result"),
        "{answer}"
    );
    let jobs = grid.squeue();
    assert_eq!(
        NODES.iter().filter(|node| jobs.contains(**node)).count(),
        if is_full() { 3 } else { 2 },
        "{jobs}"
    );
    let alone = fresh("slurm-compare-alone");
    let of_one_host = numbers(marvin(&alone).args(comparison).output().unwrap(), &alone);
    assert_eq!(numbers(spread, &grid.home), of_one_host);
}

#[test]
fn bisection_on_nodes_equals_that_of_one_host() {
    if is_left_to_full("boots kernels for more than a minute") {
        return;
    }
    let Some(grid) = Grid::new("slurm-bisect") else {
        return;
    };
    let (tree, guilty) = regressed("slurm-bisect-tree");
    let bisection = [
        "bisect",
        "good",
        "main",
        "--tree",
        &tree.name(),
        "--workload",
        "fault-anon",
        "--seeds",
        "1",
    ];
    let spread = || {
        let mut command = grid.command(&bisection);
        command
            .args(["--via", "slurm", "--nodes", "3"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    // Killed when both ends are on their way: the next attempt finds the job of the other end.
    let mut first = spread();
    until("a commit is sent", || {
        grid.squeue().contains("marvin-bisect-")
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let output = spread().wait_with_output().unwrap();
    let answer = format_output(&output, &grid.home);
    assert!(
        answer.contains(&guilty[..12])
            && answer.contains("with 3 nodes: about 2 rounds instead of 4"),
        "{answer}"
    );
    let jobs = grid.squeue();
    let names: BTreeSet<&str> = jobs
        .split_whitespace()
        .filter(|word| word.starts_with("marvin-"))
        .collect();
    assert_eq!(
        names.len(),
        jobs.lines().count(),
        "each commit once: {jobs}"
    );
    assert!(
        jobs.contains(" COMPLETED ") && !jobs.contains(" RUNNING ") && !jobs.contains(" PENDING "),
        "{jobs}"
    );
    let alone = fresh("slurm-bisect-alone");
    let of_one_host = marvin(&alone).args(bisection).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(of_one_host.stdout).unwrap(),
        "{answer}"
    );
}

fn node_of_job(grid: &Grid) -> Option<&'static str> {
    let listed = grid.output(&["queue", "list"]);
    let at = listed.find(":slurm-")?;
    NODES.into_iter().find(|node| listed[..at].ends_with(node))
}

#[test]
fn jobs_survive_dead_nodes_and_controllers() {
    if is_left_to_full("Slurm holds a requeued job for two minutes") {
        return;
    }
    let Some(mut grid) = Grid::new("slurm-failures") else {
        return;
    };
    grid.add(0, "fork", "30");
    let dispatcher = grid.dispatcher();
    until("the job runs", || node_of_job(&grid).is_some());
    let node = node_of_job(&grid).unwrap();
    grid.slurm.kill_node(node).unwrap();
    grid.slurm.kill_controller().unwrap();
    until("Slurm is silent", || {
        grid.output(&["queue", "why", "1"])
            .contains("Slurm does not answer")
    });
    grid.slurm.start_controller().unwrap();
    // The lease ends, and Slurm requeues the job elsewhere, or to the node when it is back.
    std::thread::sleep(std::time::Duration::from_secs(model::LEASE_S));
    grid.slurm.start_node(node).unwrap();
    let output = read_output(dispatcher, &grid.home);
    assert!(
        output.starts_with("exit 0") && output.contains("done 1, failed 0"),
        "{output}"
    );
    // Claimed, taken back from the dead worker by whichever Marvin noticed it first, and claimed
    // again.
    let store = Store::open_read_only(Location::server(&grid.address, None).unwrap()).unwrap();
    let job = store.queued_job(1).unwrap();
    assert!(job.fence >= 3 && job.attempts == 1, "{job:?}");
    assert_eq!(grid.count_runs(), 30);
}

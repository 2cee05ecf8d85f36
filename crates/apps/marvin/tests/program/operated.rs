//! What an operator does: stops services by SIGTERM, backs up and restores.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::{JobState, QueuedJob};
use store::Store;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::interrupted::until;
use crate::{marvin, output_of};

/// Never ends to build.
const ENDLESS: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\nvmlinux:\n\t@sleep 600\n";
/// Longer than any service takes to stop (s).
const STOP_MAX: u64 = 30;

/// A tree with one release that takes for ever to build, and a plan for it.
fn lab(home: &Path, tree: &Tree) {
    tree.file("Makefile", ENDLESS);
    tree.file("Kbuild", "");
    tree.commit("choice", "");
    tree.git(&["tag", "v6.12"]);
    fs::create_dir_all(home).unwrap();
    let text = format!(
        "[[tree]]\nname = \"linux\"\ngit = \"{}\"\n\n[[plan]]\nname = \"quick\"\nworkloads = [\"getppid\"]\nseeds = 1\n",
        tree.name()
    );
    fs::write(home.join("marvin.toml"), text).unwrap();
    let watched = output_of(home, &["watch"]);
    assert!(watched.contains("queued 1"), "{watched}");
}

fn start(home: &Path, arguments: &[&str]) -> Child {
    let mut command = marvin(home);
    command.args(arguments).stdout(Stdio::null());
    let log = fs::File::create(home.join("log")).unwrap();
    command.stderr(log).spawn().unwrap()
}

/// Sends SIGTERM, and returns the exit code and what the service said.
fn stop(home: &Path, service: &mut Child) -> (Option<i32>, String) {
    let begun = Instant::now();
    let sent = Command::new("kill")
        .args(["-TERM", &service.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let code = service.wait().unwrap().code();
    let time = begun.elapsed();
    assert!(time < Duration::from_secs(STOP_MAX), "{time:?}");
    (code, fs::read_to_string(home.join("log")).unwrap())
}

/// Returns job 1, which waits again as if it had not begun.
fn given_back(home: &Path) -> QueuedJob {
    let job = Store::open_read_only(home).unwrap().queued_job(1).unwrap();
    assert!(matches!(job.state, JobState::Waiting { .. }), "{job:?}");
    assert_eq!((job.attempts, job.kills), (0, 0));
    job
}

#[test]
fn stopped_services_exit_fine_and_lose_nothing() {
    let tree = Tree::new("stopped-tree");
    let home = fresh("stopped-home");
    lab(&home, &tree);
    // More often than a job may be attempted or its workers be killed.
    for _ in 0..4 {
        let mut worker = start(&home, &["work"]);
        until("the job runs", || {
            output_of(&home, &["queue", "list"]).contains(" running ")
        });
        let (code, log) = stop(&home, &mut worker);
        assert_eq!(code, Some(0), "{log}");
        assert!(
            log.contains("job 1 is waiting: its worker was stopped"),
            "{log}"
        );
        let job = given_back(&home);
        assert!(job.started_unix >= Some(job.queued_unix));
    }
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["watch", "--every", "1h"],
    ] {
        let mut service = start(&home, arguments);
        let is_up = || {
            let log = fs::read_to_string(home.join("log")).unwrap();
            log.contains("serving http") || log.contains("linux: releases 1")
        };
        until("the service is up", is_up);
        let (code, log) = stop(&home, &mut service);
        assert_eq!(code, Some(0), "{log}");
    }
}

#[test]
fn stopped_batch_worker_gives_its_job_back() {
    let tree = Tree::new("batch-stopped-tree");
    let home = fresh("batch-stopped-home");
    lab(&home, &tree);
    let mut worker = start(&home, &["work", "--take", "1"]);
    // `queue list` knows workers of this data directory only.
    until("the job runs", || {
        let job = Store::open_read_only(&*home).unwrap().queued_job(1);
        matches!(job.unwrap().state, JobState::Running { .. })
    });
    let (code, log) = stop(&home, &mut worker);
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains(" WARN job 1 is waiting: its worker was stopped job=1 machine=\"exact\""),
        "{log}"
    );
    given_back(&home);
}

#[test]
fn stopped_recorder_keeps_every_line() {
    let home = fresh("stopped-recorder");
    fs::create_dir_all(&home).unwrap();
    let text = "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\n[machine.console]\n\
                command = [\"sh\", \"-c\", \"while :; do n=$((n+1)); echo line $n; sleep 0.01; done\"]\n";
    fs::write(home.join("marvin.toml"), text).unwrap();
    let mut recorder = start(&home, &["console", "--record"]);
    let recorded = || output_of(&home, &["console", "testbox", "--since", "1h"]);
    until("lines are recorded", || recorded().contains("line 100\n"));
    let (code, log) = stop(&home, &mut recorder);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("INFO stopped, as asked by a signal"), "{log}");
    let record = recorded();
    // Notes of the recorder begin with two hyphens.
    let printed = record.lines().filter(|line| !line.contains(" -- "));
    let lines = printed.filter_map(|line| line.split_once(" line "));
    let numbers: Vec<u64> = lines.map(|(_, number)| number.parse().unwrap()).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn worker_logs_json_with_job_and_machine() {
    let tree = Tree::new("logged-tree");
    let home = fresh("logged-home");
    lab(&home, &tree);
    let mut worker = start(&home, &["work", "--log", "json"]);
    until("the job runs", || {
        output_of(&home, &["queue", "list"]).contains(" running ")
    });
    let (code, log) = stop(&home, &mut worker);
    assert_eq!(code, Some(0), "{log}");
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_job: Vec<_> = events.iter().filter(|event| event["job"] == 1).collect();
    assert_eq!(of_job.len(), 2, "begun and stopped: {log}");
    for event in &events {
        let time = event["timestamp"].as_str().unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    }
    for (event, level) in of_job.iter().zip(["INFO", "WARN"]) {
        assert_eq!(event["machine"], "exact");
        assert_eq!(event["level"], level);
    }
    // What a person types has plain lines, and a log on request.
    tree.file("Makefile", "vmlinux tinyconfig olddefconfig:\n\t@false\n");
    tree.commit("choice", "broken");
    tree.git(&["tag", "--force", "v6.12"]);
    let plain = output_of(&home, &["watch"]);
    assert!(plain.contains("\nlinux: releases 1"), "{plain}");
    let logged = output_of(&home, &["watch", "--log-level", "info"]);
    assert!(logged.contains("Z  INFO linux: releases 1"), "{logged}");
    let silent = output_of(&home, &["watch", "--log-level", "error"]);
    assert!(!silent.contains("linux: releases 1"), "{silent}");
}

#[test]
fn silent_tree_is_logged_once_and_at_end() {
    let tree = Tree::new("silent-tree");
    let home = fresh("silent-home");
    lab(&home, &tree);
    let away = format!("{}-away", tree.name());
    fs::rename(tree.name(), &away).unwrap();
    let mut watcher = start(&home, &["watch", "--every", "1s"]);
    let log = || fs::read_to_string(home.join("log")).unwrap();
    until("the tree is silent", || log().contains(" WARN linux: "));
    std::thread::sleep(Duration::from_secs(4));
    fs::rename(&away, tree.name()).unwrap();
    until("the tree answers", || {
        log().contains("the tree linux answers again, after ")
    });
    std::thread::sleep(Duration::from_secs(3));
    let (code, log) = stop(&home, &mut watcher);
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches(" WARN linux: ").count(), 1, "{log}");
    assert_eq!(log.matches("linux: releases 1").count(), 1, "{log}");
}

#[test]
fn backup_is_restored_with_queue_and_settings() {
    let tree = Tree::new("kept-tree");
    let home = fresh("kept-lab-home");
    lab(&home, &tree);
    let mut worker = start(&home, &["work"]);
    until("the job runs", || {
        output_of(&home, &["queue", "list"]).contains(" running ")
    });
    let place = fresh("kept-lab-backup");
    let to = place.display().to_string();
    let written = output_of(&home, &["backup", &to]).replace(&to, "BACKUP");
    assert!(
        written.starts_with("exit 0\n-- out\nwrote BACKUP: runs 0, files 2, "),
        "{written}"
    );
    let inside = home.join("backup").display().to_string();
    let refused = output_of(&home, &["backup", &inside]);
    assert!(
        refused.starts_with("exit 2") && refused.contains("it is in the data directory"),
        "{refused}"
    );
    assert_eq!(stop(&home, &mut worker).0, Some(0));
    let sums = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&place)
        .status();
    assert!(sums.unwrap().success());

    let other = fresh("kept-lab-restored");
    let restored = output_of(&other, &["restore", &to]);
    assert!(
        restored.starts_with("exit 0") && restored.contains("runs 0, artifacts 0, damaged 0"),
        "{restored}"
    );
    // As it was when it was backed up: its worker is gone, and its lease will end.
    let job = Store::open_read_only(&*other)
        .unwrap()
        .queued_job(1)
        .unwrap();
    assert!(matches!(job.state, JobState::Running { .. }), "{job:?}");
    assert_eq!(
        fs::read(home.join("marvin.toml")).unwrap(),
        fs::read(other.join("marvin.toml")).unwrap()
    );
    let again = output_of(&other, &["restore", &to]);
    assert!(
        again.starts_with("exit 2") && again.contains("it is not empty"),
        "{again}"
    );
}

#[test]
fn status_names_settings_trees_and_lost_store() {
    let home = fresh("operated-status");
    let tree = Tree::new("operated-status-tree");
    lab(&home, &tree);
    let status = || output_of(&home, &["status"]);
    let lines = status();
    assert!(
        lines.contains("settings ok      marvin.toml is valid\n"),
        "{lines}"
    );
    assert!(lines.contains("trees    ok      checked "), "{lines}");
    fs::remove_file(home.join("watch.checked")).unwrap();
    assert!(status().contains("trees    NOT OK  never checked"));
    fs::write(home.join("marvin.toml"), "[work]\nattemps = 1\n").unwrap();
    let wrong = status();
    assert!(wrong.starts_with("exit 5"), "{wrong}");
    assert!(
        wrong.contains("settings NOT OK") && wrong.contains("attemps"),
        "{wrong}"
    );
    // A service ends at its start with wrong settings.
    let watch = output_of(&home, &["watch", "--every", "1h"]);
    assert!(watch.starts_with("exit 2"), "{watch}");
    for file in fs::read_dir(&home).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("marvin.db") {
            fs::remove_file(&file).unwrap();
        }
    }
    let lost = status();
    assert!(lost.starts_with("exit 5"), "{lost}");
    assert!(lost.contains("results  NOT OK"), "{lost}");
}

#[test]
fn absent_qemu_is_no_attempt_of_a_job() {
    let home = fresh("operated-qemu");
    let tree = Tree::new("operated-qemu-tree");
    lab(&home, &tree);
    let mut work = marvin(&home);
    work.args(["work", "--once"])
        .env("MARVIN_QEMU", home.join("none"));
    assert!(work.output().unwrap().status.success());
    let why = output_of(&home, &["queue", "why", "1"]);
    assert!(
        why.contains("QEMU not found") && why.contains("attempts   0 of 3"),
        "{why}"
    );
}

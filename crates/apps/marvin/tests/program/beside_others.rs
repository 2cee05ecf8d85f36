//! Stored results beside another process that measures, and on a read-only file system.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use store::HomeLock;

use crate::fresh::fresh;
use crate::{format_output, marvin, names, output_of};

/// Returns the path of a file of SQLite beside the database.
fn beside_database(home: &Path, suffix: &str) -> std::path::PathBuf {
    home.join(format!("marvin.db{suffix}"))
}

/// Runs commands in a namespace where the data directory is mounted read-only; `None` if this host
/// does not permit one.
fn on_read_only(home: &Path, commands: &[Vec<&str>]) -> Option<Vec<String>> {
    let mount =
        "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && cd \"$0\" && exec \"$@\"";
    let begin = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--map-root-user", "sh", "-c", mount])
            .arg(home)
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("MARVIN_HOME", home);
        command.output().unwrap()
    };
    let touched = begin("sh", &["-c", "! touch file 2>/dev/null"]);
    if !touched.status.success() {
        println!("skipped: no read-only mount: {touched:?}");
        return None;
    }
    let run = |arguments: &Vec<&str>| {
        let output = begin(env!("CARGO_BIN_EXE_marvin"), arguments);
        format_output(&output, home)
    };
    Some(commands.iter().map(run).collect())
}

#[test]
fn stored_results_need_neither_lock_nor_writing() {
    let home = fresh("beside-others");
    let [old, new] = names();
    let choice = ["--workload", "getppid", "--seeds", "1"];
    let compare = [&["compare", &old, &new], &choice[..]].concat();
    let first = output_of(&home, &compare);
    assert!(first.starts_with("exit 0"), "{first}");
    let answer = |output: &str| {
        let (answer, _) = output.split_once("-- err\n").unwrap();
        let is_kept = |line: &&str| !line.starts_with("Compared: ");
        answer
            .lines()
            .filter(is_kept)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let reading: Vec<Vec<&str>> = vec![
        compare.clone(),
        [&["run", &old], &choice[..]].concat(),
        vec!["history", "getppid"],
        vec!["alerts"],
        vec!["runs"],
        vec!["report", &old, &new],
        vec!["queue", "list"],
        vec!["gc", "--dry-run"],
    ];
    let missing = ["run", &old, "--workload", "fault", "--seeds", "1"];

    let held = HomeLock::acquire(&home).unwrap();
    for arguments in &reading {
        let output = output_of(&home, arguments);
        assert!(output.starts_with("exit 0"), "{arguments:?}: {output}");
    }
    assert_eq!(answer(&output_of(&home, &compare)), answer(&first));
    // A call tree is measured anew, and the profile is shown without it.
    let profile = output_of(&home, &["profile", &old, &new, "--workload", "getppid"]);
    assert!(
        profile.starts_with("exit 0") && profile.contains("is measuring in"),
        "{profile}"
    );
    for arguments in [&missing[..], &["gc"]] {
        let output = output_of(&home, arguments);
        assert!(output.starts_with("exit 5"), "{arguments:?}: {output}");
        assert!(output.contains("wait for it with --wait"), "{output}");
    }
    let waiting = marvin(&home).args(["gc", "--wait=60s"]).spawn().unwrap();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    drop(held);
    let ended = waiting.wait_with_output().unwrap();
    assert!(ended.status.success() && begun.elapsed() >= Duration::from_secs(1));

    // With the files of a writer beside the database, and without.
    for is_closed in [false, true] {
        if is_closed {
            for suffix in ["-wal", "-shm"] {
                fs::remove_file(beside_database(&home, suffix)).ok();
            }
        }
        let Some(outputs) = on_read_only(&home, &reading) else {
            return;
        };
        for (arguments, output) in reading.iter().zip(&outputs) {
            assert!(
                output.starts_with("exit 0"),
                "{is_closed} {arguments:?}: {output}"
            );
        }
        assert_eq!(answer(&outputs[0]), answer(&first));
    }
    let outputs = on_read_only(&home, &[missing.to_vec()]).unwrap_or_default();
    assert!(
        outputs[0].contains("cannot use HOME/lock: the file system is read-only"),
        "{outputs:?}"
    );
}

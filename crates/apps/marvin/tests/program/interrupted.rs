//! Killed at any moment: complete runs are stored, the next call continues from there, and no
//! process survives.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use crate::fresh::fresh;
use crate::{format_output, marvin, names, output_of};

/// Polls until a condition holds, and fails after a deadline.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not within five minutes: {what}");
}

/// Counts the running machines of a data directory: QEMU's working directory is a scratch directory
/// there.
pub(crate) fn machines_of(home: &std::path::Path) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("cwd")).ok())
        .filter(|folder| folder.starts_with(home.join("scratch")))
        .count()
}

#[test]
fn killed_comparison_continues() {
    let home = fresh("killed-home");
    let [old, new] = names();
    let arguments = [
        "compare",
        &old,
        &new,
        "--seeds",
        "2",
        "--workload",
        "getppid,signal",
        "--jobs",
        "1",
    ];
    let mut first = marvin(&home)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a run is stored", || {
        output_of(&home, &["runs"]).contains("2/2")
    });
    until("a machine works", || machines_of(&home) > 0);
    first.kill().unwrap();
    first.wait().unwrap();
    until("its machines are gone", || machines_of(&home) == 0);
    let output = marvin(&home).args(arguments).output().unwrap();
    let answer = format_output(&output, &home);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{answer}");
    let reused = answer
        .lines()
        .find(|line| line.ends_with("results exist already"))
        .unwrap_or_else(|| panic!("{answer}"));
    let numbers: Vec<usize> = reused
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(numbers[0] < 12 && numbers[1] >= 2, "{reused}");
    let again = marvin(&home).args(arguments).output().unwrap();
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("all 8 results exist already"),
        "{}",
        format_output(&again, &home)
    );
}

#[test]
fn interrupted_comparison_keeps_printed_results() {
    let home = fresh("interrupted-home");
    let log = fresh("interrupted-log");
    let [old, new] = names();
    let arguments = [
        "compare",
        &old,
        &new,
        "--quick",
        "--workload",
        "getppid,signal,fork-exit",
        "--jobs",
        "1",
    ];
    let output = std::fs::File::create(&log).unwrap();
    let mut first = marvin(&home)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(output)
        .process_group(0)
        .spawn()
        .unwrap();
    let printed = |text: &str| {
        text.lines()
            .filter(|line| line.ends_with("  seed 1"))
            .count()
    };
    until("a row is printed", || {
        printed(&std::fs::read_to_string(&log).unwrap()) > 0
    });
    // Ctrl-C, which a terminal sends to the machines too, and 3 s later SIGTERM, if Marvin is still
    // there.
    let pid = first.id().to_string();
    std::process::Command::new("kill")
        .args(["-INT", "--", &format!("-{pid}")])
        .status()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let rows = printed(&std::fs::read_to_string(&log).unwrap());
    until("its machines are gone", || machines_of(&home) == 0);
    let answer = format_output(&marvin(&home).args(arguments).output().unwrap(), &home);
    let reused = answer
        .lines()
        .find(|line| line.ends_with("results exist already"))
        .unwrap_or_else(|| panic!("{answer}"));
    let numbers: Vec<usize> = reused
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(
        numbers[1] >= 2 * rows,
        "{rows} rows of two kernels: {reused}"
    );
}

#[test]
fn data_directory_has_one_writer_many_readers() {
    let home = fresh("busy-home");
    let name = &names()[1];
    let mut first = marvin(&home);
    let first = first.args(["run", name, "--seeds", "3", "--workload", "getppid"]);
    let mut first = first
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a machine works", || machines_of(&home) > 0);
    let second = output_of(&home, &["run", name, "--quiet"]);
    let pid = first.id().to_string();
    insta::assert_snapshot!(second.replace(&pid, "PID"), @"
    exit 5
    -- out
    -- err
    error: another marvin (pid PID) is measuring in HOME: wait for it with --wait, or name another directory with --home
    ");
    assert!(output_of(&home, &["runs"]).starts_with("exit 0"));
    assert!(first.wait().unwrap().success());
}

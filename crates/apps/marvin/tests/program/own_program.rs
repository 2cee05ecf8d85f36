//! Programs that a user brings, in guests: the row, its numbers, its ledger, and how they fail.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::compiled::compile_text;
use crate::fresh::fresh;
use crate::{format_output, marvin, names};

/// Forks, and prints two numbers.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) _exit(0);
        wait(0);
    }
    printf("20 forks/s, lat= 7us, %d words\n", count);
    return 0;
}
"#;

fn compile(folder: &Path, name: &str, text: &str) {
    compile_text(text, &folder.join(name), &["-O2"]);
}

fn script(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs Marvin in a directory.
fn run_in(folder: &Path, home: &Path, arguments: &[&str]) -> String {
    let output = marvin(home)
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    format_output(&output, home)
}

#[test]
fn own_program_is_compared_and_taken_apart() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-program");
    compile(folder.path(), "forks", PROGRAM);
    let [older, newer] = names();
    let program = ["--", "./forks", "a b"];
    let values = [
        "--value",
        r"(\d+) forks/s",
        "--value",
        r"lat= *(?<lat>\d+)us",
    ];
    let compare = [
        &["compare", &older, &newer, "--quick", "-q"][..],
        &values,
        &program,
    ]
    .concat();
    let text = run_in(folder.path(), &home, &compare);
    assert!(text.starts_with("exit "), "{text}");
    for expected in [
        "forks.value",
        "forks.lat",
        "higher is better",
        r"--value '(\d+) forks/s' --value",
        "-- ./forks 'a b'",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        text.contains("0 unclear"),
        "every row has a verdict: {text}"
    );
    let again = run_in(folder.path(), &home, &[&compare[..], &["x"]].concat());
    assert!(again.contains("forks"), "{again}");
    let profile = [
        &["profile", &older, &newer, "-q", "--no-calls"][..],
        &program,
    ]
    .concat();
    let ledger = run_in(folder.path(), &home, &profile);
    assert!(
        ledger.starts_with("exit 0") && ledger.contains("ledger: mean of 4 iterations"),
        "{ledger}"
    );
}

#[test]
fn scripts_bring_tools_and_mark_parts() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-script");
    script(
        folder.path(),
        "bench",
        "#!/bin/sh\nseq 2000 | sort -rn >sorted\nmarvin-mark begin\ncat - >copy\nmarvin-mark end\n\
         awk '{s+=$1} END {print \"sum \" s}' sorted\nexit 3\n",
    );
    std::fs::write(folder.path().join("input"), "some text\n").unwrap();
    let [_, newer] = names();
    let run = |more: &[&str]| {
        let words = [
            &["run", &newer, "-q", "--quick", "--accept-status", "3"][..],
            &["--stdin", "input", "--value", r"sum (\d+)"],
            more,
            &["--", "./bench"],
        ]
        .concat();
        run_in(folder.path(), &home, &words)
    };
    let row = |text: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with("bench "));
        let words = line.unwrap_or_else(|| panic!("{text}")).split_whitespace();
        words.skip(1).find_map(|word| word.parse().ok()).unwrap()
    };
    let whole = run(&[]);
    assert!(whole.contains("2001000"), "{whole}");
    let part = run(&["--marks"]);
    assert!(row(&part) < row(&whole) / 2.0, "{part}{whole}");
}

#[test]
fn failing_programs_say_how() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-failures");
    script(
        folder.path(),
        "fails",
        "#!/bin/sh\ncase $1 in\ncrash) kill -SEGV $$ ;;\nhang) sleep 100 ;;\nmuch) yes ;;\ntty) test -t 1 || { echo no terminal >&2; exit 4; } ;;\n\
         lost) ./not-brought ;;\nesac\n",
    );
    let [_, newer] = names();
    for (word, expected) in [
        ("crash", "killed by signal 11"),
        ("hang", "no end within 2 s of the guest"),
        ("much", "it printed more than 8 MiB"),
        ("tty", "exit status 4: no terminal"),
        ("lost", "exit status 127"),
    ] {
        let words = [
            "run",
            &newer,
            "-q",
            "--quick",
            "--time-limit",
            "2s",
            "--",
            "./fails",
            word,
        ];
        let text = run_in(folder.path(), &home, &words);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.starts_with("exit 4") && flat.contains(expected),
            "{text}"
        );
    }
}

#[test]
fn mistakes_in_own_programs_are_named() {
    let home = fresh("own-mistakes");
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &[&str]| {
        let command = [&["run", "deb:6.12", "-q"][..], words].concat();
        run_in(folder.path(), &home, &command).replace(&folder.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!("program-not-in-path", refused(&["--", "nonesuch"]));
    insta::assert_snapshot!(
        "value-without-group",
        refused(&["--value", "x", "--", "true"])
    );
    insta::assert_snapshot!(
        "absent-file-to-bring",
        refused(&["--with", "none", "--", "true"])
    );
    insta::assert_snapshot!(
        "program-and-workloads",
        refused(&["--workload", "fork", "--", "true"])
    );
    insta::assert_snapshot!("no-program-behind-the-dashes", refused(&["--"]));
    insta::assert_snapshot!(
        "whole-host-to-bring",
        refused(&["--with", "/", "--", "true"])
    );
    insta::assert_snapshot!("marks-without-program", refused(&["--marks"]));
}

/// Two threads that write one line in turn.
const TWO_THREADS: &str = r"
#include <pthread.h>
#include <stdatomic.h>
static atomic_long shared;
static void *count(void *nothing) {
    for (long i = 0; i < 2000; i++) shared++;
    return nothing;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";

#[test]
fn own_program_on_two_processors_yields_transfers() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-threads");
    compile(folder.path(), "threads", TWO_THREADS);
    let [older, newer] = names();
    let profile = ["profile", &older, &newer, "--on", "exact-smp", "-q"];
    let profile = [&profile[..], &["--format", "json", "--", "./threads"]].concat();
    let text = run_in(folder.path(), &home, &profile);
    let json = text.split("-- out\n").nth(1).unwrap();
    let json = json.split("-- err").next();
    let profile: serde_json::Value = serde_json::from_str(json.unwrap()).unwrap();
    let lines = &profile["workloads"][0];
    assert_eq!(lines["workload"], "threads", "{text}");
    // Not the instructions, which are a hundred times as many.
    let run = [
        "compare",
        &older,
        &newer,
        "--on",
        "exact-smp",
        "-q",
        "--quick",
    ];
    let run = [&run[..], &["--", "./threads"]].concat();
    let table = run_in(folder.path(), &home, &run);
    assert!(table.contains("transfers/op"), "{table}");
    let row = table.lines().find(|line| line.starts_with("threads "));
    let base: f64 = row
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!((1000.0..60_000.0).contains(&base), "{table}");
}

#[test]
fn dump_of_a_programs_crash_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-crash");
    let [_, newer] = names();
    let crash = ["sh", "-c", "echo c >/proc/sysrq-trigger"];
    let run = [
        "run",
        &newer,
        "-q",
        "--quick",
        "--keep-dump",
        "--no-snapshots",
        "--",
    ];
    let text = run_in(folder.path(), &home, &[&run[..], &crash].concat());
    assert!(
        text.starts_with("exit 4") && text.contains("panicked"),
        "{text}"
    );
    let runs = std::fs::read_dir(home.join("artefacts")).unwrap();
    let files: Vec<_> = runs
        .flat_map(|run| std::fs::read_dir(run.unwrap().path()).unwrap())
        .map(|file| file.unwrap().file_name())
        .collect();
    assert!(
        files.iter().any(|file| file == "sh.vmcore.zst"),
        "{files:?}"
    );
}

#[test]
fn names_with_line_breaks_stay_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-program-names");
    let name = "no\nrun_0123: better \u{1b}[2J";
    let with = format!("{name}=/x");
    for arguments in [
        ["run", "deb:6.12", "--", name, ""],
        ["run", "deb:6.12", "--with", &with, "--setup=true"],
    ] {
        let tail: &[&str] = if arguments[2] == "--" {
            &[]
        } else {
            &["--", "true"]
        };
        let words: Vec<&str> = arguments.iter().chain(tail).copied().collect();
        let printed = run_in(folder.path(), &home, &words);
        assert!(
            printed.starts_with("exit 2") && printed.contains("no run_0123: better \u{fffd}[2J"),
            "{printed}"
        );
    }
}

#[test]
fn unwritable_data_directory_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("own-program-full");
    std::fs::create_dir_all(&home).unwrap();
    // Root may write everywhere, but not below a file.
    std::fs::write(home.join("images"), "").unwrap();
    let printed = run_in(folder.path(), &home, &["run", "deb:6.12", "--", "true"]);
    assert!(
        printed.starts_with("exit 5")
            && printed.contains("error: cannot write ")
            && printed.contains("/images"),
        "{printed}"
    );
}

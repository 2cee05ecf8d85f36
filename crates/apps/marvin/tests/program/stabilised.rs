//! Stabilisations from the command line to the branch: with fake sources that yield two real
//! kernels, and, if `MARVIN_FULL` is set, on two synthetic upstreams of a real source and on real
//! releases of Debian.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::bisected::{Tree, regressed};
use crate::fresh::fresh;
use crate::interrupted::{machines_of, until};
use crate::upstream::{Upstream, imported, upstream};
use crate::{folder, format_output, is_left_to_full, marvin, output_of};

/// A tree with a regression at `main`, and candidates up to `fixes`: one that is not compiled, one
/// without effect, and the repair.
fn repairable(name: &str) -> (Tree, String) {
    let (tree, _) = regressed(name);
    tree.git(&["tag", "bad"]);
    let old = tree.git(&["show", "good:choice"]);
    tree.commit("Documentation/more.rst", "words\n");
    tree.commit("mm/memory.c", "// a candidate\n");
    let repair = tree.commit("choice", &old);
    tree.git(&["branch", "fixes"]);
    (tree, repair)
}

#[test]
fn regression_is_repaired_by_one_candidate() {
    let (tree, repair) = repairable("stabilised-tree");
    let home = fresh("stabilised-home");
    let patches = fresh("stabilised-patches");
    let name = tree.name();
    let few = ["--workload", "fault-anon", "--seeds", "1"];
    let range = [
        "stabilise",
        "good",
        "bad",
        "--tree",
        &name,
        "--candidates",
        "bad..fixes",
    ];
    let command = [&range[..], &few[..]].concat();
    let plan = output_of(&home, &[&command[..], &["--dry-run"]].concat());
    assert!(
        plan.starts_with("exit 0") && plan.contains("9 commits") && plan.contains("3 candidates"),
        "{plan}"
    );
    // Killed during the first measurement: the next attempt goes on.
    let mut first = marvin(&home)
        .args(&command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a machine runs", || machines_of(&home) > 0);
    first.kill().unwrap();
    first.wait().unwrap();
    until("its machines are gone", || machines_of(&home) == 0);
    let output = output_of(
        &home,
        &[&command[..], &["--patches", &patches.display().to_string()]].concat(),
    );
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(
        output.contains("1 of 1 row is worse") || output.contains("1 row is worse"),
        "{output}"
    );
    assert!(
        output.contains(&repair[..12]) && output.contains("choice: change it"),
        "{output}"
    );
    let letter = fs::read_to_string(patches.join("0000-cover-letter.patch")).unwrap();
    assert!(
        letter.starts_with("Subject: [PATCH 0/1] ") && letter.contains("fault-anon"),
        "{letter}"
    );
    let mails: Vec<_> = fs::read_dir(&*patches)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(mails.len(), 2, "{mails:?}");
    // The branch has the picked commit with its measured effect, and its tree is that of the
    // repaired kernel.
    let word_after = |name: &str| {
        output
            .split(name)
            .nth(1)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
    };
    let repository = word_after("\nRepository:").replace("HOME", &home.display().to_string());
    tree.git(&["fetch", "-q", &repository, word_after("\nBranch:")]);
    let log = tree.git(&["log", "--format=%an %s%n%b", "bad..FETCH_HEAD"]);
    assert!(
        log.starts_with("Ada choice: change it") && log.contains("cherry picked from commit"),
        "{log}"
    );
    assert!(
        log.contains("fault-anon") && log.contains("Percent"),
        "{log}"
    );
    assert_eq!(
        tree.git(&["show", "FETCH_HEAD:choice"]),
        tree.git(&["show", "good:choice"])
    );
    // Nothing is built or measured again, and the answer is the same.
    let again = output_of(&home, &command);
    assert!(
        !again.contains("booting") && !again.contains("building"),
        "{again}"
    );
    assert_eq!(without_cost(&again), without_cost(&output));
}

/// Returns what a command printed, without the line that differs between equal searches.
fn without_cost(text: &str) -> Vec<&str> {
    let output = text.split("-- err").next().unwrap();
    let lines = output.lines();
    lines.filter(|line| !line.starts_with("Cost:")).collect()
}

#[test]
fn queue_of_patches_is_checked_once() {
    let (tree, _) = repairable("checked-tree");
    let home = fresh("checked-home");
    let queue = fresh("checked-queue");
    let mail = fresh("checked-mail");
    let name = tree.name();
    fs::create_dir_all(&queue).unwrap();
    tree.git(&[
        "format-patch",
        "-q",
        "-o",
        &queue.display().to_string(),
        "bad..fixes",
    ]);
    let source = queue.display().to_string();
    let range = [
        "stabilise",
        "good",
        "bad",
        "--tree",
        &name,
        "--candidates",
        &source,
    ];
    let check = [
        "--workload",
        "fault-anon",
        "--seeds",
        "1",
        "--check",
        "--mail",
        &mail.display().to_string(),
    ]
    .map(str::to_owned);
    let arguments: Vec<&str> = range
        .iter()
        .copied()
        .chain(check.iter().map(String::as_str))
        .collect();
    let output = output_of(&home, &arguments);
    assert!(
        output.starts_with("exit 0")
            && output.contains("choice: change it")
            && output.contains("fault-anon"),
        "{output}"
    );
    let text = fs::read_to_string(&*mail).unwrap();
    assert!(
        text.starts_with("Subject: ") && text.contains("choice: change it"),
        "{text}"
    );
    let again = output_of(&home, &arguments);
    assert!(
        again.starts_with("exit 0") && !again.contains("choice: change it"),
        "{again}"
    );
}

#[test]
fn stabilisations_of_missing_things_fail_clearly() {
    let home = fresh("no-stabilisation-home");
    let (tree, _) = repairable("no-stabilisation-tree");
    let name = tree.name();
    let range = ["stabilise", "good", "bad", "--tree", &name];
    let run = |more: &[&str]| output_of(&home, &[&range[..], more].concat()).replace(&name, "TREE");
    let some = ["--candidates", "bad..fixes"];
    insta::assert_snapshot!(
        "stabilise-on-vm",
        run(&[&some[..], &["--on", "vm"]].concat())
    );
    insta::assert_snapshot!(
        "stabilise-no-candidates",
        run(&["--candidates", "nothing-of-this-name"])
    );
    insta::assert_snapshot!(
        "stabilise-unknown-range",
        run(&["--candidates", "bad..none"])
    );
    insta::assert_snapshot!(
        "stabilise-wrong-budget",
        run(&[&some[..], &["--budget", "8"]].concat())
    );
    insta::assert_snapshot!(
        "stabilise-one-debian-end",
        output_of(
            &home,
            &["stabilise", "deb-src:6.12", "bad", "--candidates", "x"]
        )
    );
}

/// Runs a stabilisation and returns its JSON, printing what it cost.
fn stabilise(home: &Path, arguments: &[&str]) -> Value {
    let begun = Instant::now();
    let output = marvin(home)
        .args(arguments)
        .args(["--format", "json"])
        .output()
        .unwrap();
    let text = format_output(&output, home);
    assert!(
        ["exit 0", "exit 1"]
            .iter()
            .any(|exit| text.starts_with(exit)),
        "{text}"
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!(
        "{:<44} {:.1} min, {}",
        arguments[1..3].join(" "),
        begun.elapsed().as_secs_f64() / 60.0,
        answer["cost"]
    );
    answer
}

fn commits(list: &Value, part: &str) -> BTreeSet<String> {
    let commits = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one[part]["commit"].as_str());
    commits.map(|commit| commit[..12].to_owned()).collect()
}

/// Stabilises a synthetic upstream, and compares the answer with the truth.
fn stabilise_upstream(seed: u64, home: &Path, upstream: &Upstream) {
    let name = upstream.tree.name();
    let arguments = [
        "stabilise",
        "baseline",
        "new",
        "--tree",
        &name,
        "--candidates",
        "new..main",
        "--seeds",
        "1",
    ];
    let answer = stabilise(home, &arguments);
    let short = |commit: &String| commit[..12].to_owned();
    let found = commits(&answer["causes"], "commit");
    let causes: BTreeSet<String> = upstream
        .truth
        .causes
        .iter()
        .map(|cause| short(&cause.commit))
        .collect();
    let series = commits(&answer["series"], "change");
    let minimal: BTreeSet<String> = upstream.truth.minimal.iter().map(short).collect();
    // Which of the two is taken along is a matter of taste: the conflict is a comment.
    let cosmetic = short(&upstream.truth.cosmetic);
    let series: BTreeSet<String> = series
        .into_iter()
        .filter(|commit| *commit != cosmetic)
        .collect();
    // Both ends, each cause reverted, each repair alone with its prerequisites, the set, the set
    // less each member.
    let oracle = 2 + causes.len() + upstream.truth.repairs.len() + 1 + upstream.truth.repairs.len();
    println!(
        "seed {seed}: causes {} of {}; oracle {oracle} builds",
        found.intersection(&causes).count(),
        causes.len()
    );
    assert_eq!(found, causes, "{answer:#}");
    assert_eq!(series, minimal, "{answer:#}");
    let kernels = answer["cost"]["kernels"].as_u64().unwrap();
    assert!(
        kernels as f64 <= 2.5 * oracle as f64,
        "{kernels} builds, and an oracle needs {oracle}"
    );
    // A resumed run repeats no build and no measurement.
    let again = output_of(home, &arguments);
    assert!(
        !again.contains("booting") && !again.contains(": building"),
        "{again}"
    );
}

#[test]
fn synthetic_upstreams_are_stabilised_on_real_sources() {
    if is_left_to_full("real kernels are built") {
        return;
    }
    let (home, debian) = imported();
    for seed in [1, 2] {
        stabilise_upstream(seed, &home, &upstream(seed, &debian));
    }
}

#[test]
fn releases_that_brought_and_repaid_debts_are_named() {
    if is_left_to_full("real kernels are built") {
        return;
    }
    let home = folder("upstream-home");
    let madison = Command::new("apt-cache")
        .args(["madison", "linux-source-6.12"])
        .output()
        .unwrap();
    let mut versions: Vec<String> = Vec::new();
    for line in String::from_utf8(madison.stdout).unwrap().lines() {
        let version = line
            .split('|')
            .nth(1)
            .unwrap()
            .trim()
            .split('-')
            .next()
            .unwrap()
            .to_owned();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions.sort_by_key(|version| {
        version
            .split('.')
            .map(|part| part.parse::<u64>().unwrap_or(0))
            .collect::<Vec<_>>()
    });
    if versions.len() < 3 {
        println!(
            "skipped: the archive has {} releases of 6.12, and three are needed",
            versions.len()
        );
        return;
    }
    let last = versions.len() - 1;
    let name = |place: usize| format!("deb-src:{}", versions[place]);
    let range = format!("{}..{}", name(last - 1), name(last));
    let arguments = [
        "stabilise",
        &name(last - 2),
        &name(last - 1),
        "--candidates",
        &range,
        "--seeds",
        "1",
    ];
    let answer = stabilise(&home, &arguments);
    println!("{}", answer["result"]);
    for cause in answer["causes"].as_array().unwrap() {
        println!("brought: {}", cause["commit"]["subject"]);
    }
}

//! A workload's numbers are its own: whatever else runs, in whatever order, or is added to the agent; with a snapshot or
//! without.

use std::path::Path;
use std::process::Command;

use lab::{Lab, Options};
use machine::SnapshotUse;
use model::{MICRO, Workload};

use crate::{build, declared, folder, lab, measure, same_build, samples};

#[test]
fn order_and_company_do_not_matter() {
    let build = build("deb:6.1");
    let names = ["fault-anon", "fork-exit", "pipe-pingpong", "mem-mmap", "tcp-rr"].map(declared);
    let mut reversed = names;
    reversed.reverse();
    let forwards = measure(lab(), &build, &names);
    let mut backwards = measure(lab(), &build, &reversed);
    backwards.reverse();
    for (n, name) in names.iter().enumerate() {
        let alone = measure(lab(), &build, &[name]);
        assert_eq!(samples(&forwards[n]), samples(&backwards[n]), "{}", name.name);
        assert_eq!(samples(&forwards[n]), samples(&alone[0]), "{}", name.name);
    }
}

#[test]
fn a_plain_boot_gives_the_numbers_of_a_snapshot() {
    for kernel in ["deb:6.1", "deb:6.12"] {
        let build = build(kernel);
        let workloads = ["getppid", "pipe-pingpong"].map(declared);
        let saved = measure(lab(), &build, &workloads);
        let home = folder(&format!("plain-home-{}", &kernel[4..]));
        let plain = Lab::open(Options { snapshots: SnapshotUse::Never, ..Options::new(home) }).unwrap();
        let booted = measure(&plain, &same_build(&plain, &build), &workloads);
        for (saved, booted) in saved.iter().zip(&booted) {
            assert_eq!(samples(saved), samples(booted), "{kernel} {}", saved.workload);
        }
    }
}

#[test]
fn a_workload_added_to_the_agent_leaves_the_others_alone() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = folder("one-more");
    let agent_of = |features: &[&str]| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "-p", "agent", "--profile", "agent"])
            .args(["--target", "x86_64-unknown-linux-gnu", "--target-dir"])
            .arg(&target)
            .args(features)
            .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\u{1f}-Crelocation-model=static")
            .current_dir(&workspace)
            .status()
            .unwrap();
        assert!(built.success());
        std::fs::read(target.join("x86_64-unknown-linux-gnu/agent/marvin-agent")).unwrap()
    };
    let build = build("deb:6.12");
    let all: Vec<&'static Workload> = MICRO.workloads.iter().collect();
    let measured = |agent: Vec<u8>| {
        let lab = Lab::open(Options { agent, ..Options::new(folder("one-more-home")) }).unwrap();
        measure(&lab, &same_build(&lab, &build), &all)
    };
    let (before, after) = (agent_of(&[]), agent_of(&["--features", "one-more"]));
    assert_ne!(before, after, "the feature changed nothing");
    let (before, after) = (measured(before), measured(after));
    let changed: Vec<String> = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| samples(before) != samples(after))
        .map(|(before, after)| {
            let median = |result| stats::median_without_first(samples(result)).unwrap();
            format!("{}: {:.3} became {:.3}", before.workload, median(before), median(after))
        })
        .collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

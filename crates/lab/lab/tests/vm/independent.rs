//! A workload's numbers do not depend on other workloads, their order, additions to the agent, or
//! the snapshot.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use lab::{Dumps, Event, Lab, LabOptions, Plan, Reuse, Sampled};
use machine::{Programs, SnapshotUse};
use model::MICRO;

use crate::fresh::fresh;
use crate::{build, declared, is_left_to_full, kernels, lab, measure, same_build, samples};

#[test]
fn order_and_other_workloads_do_not_matter() {
    let build = build("deb:6.1");
    let names = [
        "fault-anon",
        "fork-exit",
        "pipe-pingpong",
        "mem-mmap",
        "tcp-rr",
    ]
    .map(|name| Arc::clone(declared(name)));
    let mut reversed = names.clone();
    reversed.reverse();
    let forwards = measure(lab(), &build, &names);
    let mut backwards = measure(lab(), &build, &reversed);
    backwards.reverse();
    for (n, name) in names.iter().enumerate() {
        let alone = measure(lab(), &build, std::slice::from_ref(name));
        assert_eq!(
            samples(&forwards[n]),
            samples(&backwards[n]),
            "{}",
            name.name
        );
        assert_eq!(samples(&forwards[n]), samples(&alone[0]), "{}", name.name);
    }
}

#[test]
fn plain_boot_gives_snapshot_numbers() {
    for kernel in kernels() {
        let build = build(kernel);
        let workloads = ["getppid", "pipe-pingpong"].map(|name| Arc::clone(declared(name)));
        let saved = measure(lab(), &build, &workloads);
        let home = fresh("plain-home");
        let plain = Lab::open(
            &home,
            LabOptions {
                snapshots: SnapshotUse::Never,
                ..LabOptions::default()
            },
        )
        .unwrap();
        let booted = measure(&plain, &same_build(&plain, &build), &workloads);
        for (saved, booted) in saved.iter().zip(&booted) {
            assert_eq!(
                samples(saved),
                samples(booted),
                "{kernel} {}",
                saved.workload
            );
        }
    }
}

#[test]
fn each_job_starts_from_a_saved_snapshot() {
    let home = fresh("saved-home");
    let lab = Lab::open(&home, LabOptions::default()).unwrap();
    let build = same_build(&lab, &build("deb:6.1"));
    let plan = Plan {
        sides: vec![&build],
        suite: &MICRO,
        workloads: ["getppid", "fork-exit"]
            .map(|name| Arc::clone(declared(name)))
            .to_vec(),
        replicates: vec![1],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let remarks = Mutex::new(Vec::new());
    lab.execute(&plan, &|event| {
        if let Event::Ready { remark, .. } = event {
            remarks.lock().unwrap().push(remark);
        }
    })
    .unwrap();
    assert_eq!(remarks.into_inner().unwrap(), [None]);
    // QEMU was given the snapshot and accepted it, else it would have been removed.
    let seals = std::fs::read_dir(home.join("snapshots")).unwrap().flatten();
    assert_eq!(
        seals
            .filter(|entry| entry.path().join("seal").is_file())
            .count(),
        1
    );
}

/// How far a median may move when the agent gains a workload: the margin. Another agent needs some
/// instructions more or less to start; only workloads whose memory RCU frees later notice.
const TOLERANCE: f64 = 0.01;

/// Builds the guest's programs from a copy of their sources, with `more` inserted before all other
/// workloads.
fn programs_with(more: &str) -> Programs {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let copy = fresh("one-more");
    for name in ["crates/guest/agent", "crates/base/wire", "Cargo.lock"] {
        let to = copy.join(name).parent().unwrap().to_owned();
        std::fs::create_dir_all(&to).unwrap();
        assert!(
            Command::new("cp")
                .arg("-r")
                .arg(workspace.join(name))
                .arg(to)
                .status()
                .unwrap()
                .success()
        );
    }
    let manifest = std::fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
    let (head, members) = manifest.split_once("members = [").unwrap();
    let rest = members.split_once(']').unwrap().1;
    let members = "members = [\"crates/guest/agent\", \"crates/base/wire\"]";
    std::fs::write(copy.join("Cargo.toml"), format!("{head}{members}{rest}")).unwrap();
    let table = copy.join("crates/guest/agent/src/bin/agent/workloads/mod.rs");
    let first = "    (\"getppid\", syscall::getppid),\n";
    let text = std::fs::read_to_string(&table).unwrap();
    assert!(text.contains(first));
    std::fs::write(&table, text.replace(first, &format!("{more}{first}"))).unwrap();
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--offline",
            "-p",
            "agent",
            "--profile",
            "agent",
        ])
        .args([
            "--target",
            "x86_64-unknown-linux-gnu",
            "--target-dir",
            "target",
        ])
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            "-Ctarget-feature=+crt-static\u{1f}-Crelocation-model=static",
        )
        .current_dir(&copy)
        .status()
        .unwrap();
    assert!(built.success());
    let read = |name| {
        std::fs::read(
            copy.join("target/x86_64-unknown-linux-gnu/agent")
                .join(name),
        )
        .unwrap()
    };
    Programs {
        init: read("marvin-init"),
        agent: read("marvin-agent"),
    }
}

#[test]
fn added_workload_leaves_others_alone() {
    if is_left_to_full("the agent is built twice, and the suite measured with both") {
        return;
    }
    let before = programs_with("");
    let after = programs_with("    (\"one-more\", process::pipe_pingpong),\n");
    assert!(before.agent != after.agent, "the agent did not change");
    assert!(
        before.init == after.init,
        "the first program holds no workload and must not change"
    );
    let build = build("deb:6.12");
    let all = &MICRO.workloads;
    let measured = |programs: Programs| {
        let home = fresh("one-more-home");
        let lab = Lab::open(
            &home,
            LabOptions {
                programs,
                ..LabOptions::default()
            },
        )
        .unwrap();
        measure(&lab, &same_build(&lab, &build), all)
    };
    let before = measured(before);
    let after = measured(after);
    let mut equal = 0;
    let mut moved = Vec::new();
    for (before, after) in before.iter().zip(&after) {
        let median = |result| stats::median_without_first(samples(result)).unwrap();
        let was = median(before);
        let is = median(after);
        println!("{:<20} {:+.5} %", before.workload, 100.0 * (is / was - 1.0));
        equal += usize::from(samples(before) == samples(after));
        if (is / was - 1.0).abs() > TOLERANCE {
            moved.push(format!("{}: {was:.3} became {is:.3}", before.workload));
        }
    }
    println!(
        "{equal} of {} workloads are equal in every sample",
        before.len()
    );
    assert!(moved.is_empty(), "{}", moved.join("\n"));
    assert!(
        equal * 2 > before.len(),
        "only {equal} workloads are equal in every sample"
    );
}

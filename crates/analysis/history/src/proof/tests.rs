//! Documents from anywhere, and replays that differ.

use proptest::prelude::{any, proptest};

use super::{
    KernelHere, Measured, Proof, ProofCounts, ProofFact, ProofImage, ProofKernel, ProofMachine,
    ProofWorkload, Replay, ReplayConclusion,
};

fn counts(seed: u64, kernel: u64) -> ProofCounts {
    ProofCounts {
        workload: "fork-exit".to_owned(),
        seed,
        outcome: "completed".to_owned(),
        counted: vec![[kernel, 50, 3, 2], [kernel, 50, 3, 2]],
        guest_time: Vec::new(),
    }
}

fn fact(name: &str, value: &str) -> ProofFact {
    ProofFact {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn machine() -> ProofMachine {
    let pairs = [
        ("qemu.version", "7.2.22"),
        ("initrd.sha256", "ab"),
        ("memory_mib", "256"),
    ];
    ProofMachine {
        id: "0".repeat(64),
        kind: "exact".to_owned(),
        summary: "QEMU 7.2.22, 256 MiB".to_owned(),
        fingerprint: pairs.map(|(name, value)| fact(name, value)).into(),
    }
}

/// A base and a patch.
fn proof() -> Proof {
    let mut proof = Proof::new(
        "0.1.0",
        "1 patch of a.mbox on 111111111111",
        &"1".repeat(40),
    );
    proof.suite = "micro".to_owned();
    proof.seeds = vec![1, 2];
    proof.machines = vec![machine()];
    proof.workloads = vec![ProofWorkload {
        name: "fork-exit".to_owned(),
        operations: 10,
        machine: 0,
    }];
    for (image, label) in ["111111111111", "1/1"].iter().enumerate() {
        proof.kernels.push(ProofKernel {
            label: (*label).to_owned(),
            subject: "a subject".to_owned(),
            failure: None,
            patch: None,
            source: Some("2".repeat(40)),
            configuration: Some("default".to_owned()),
            config: Some("3".repeat(64)),
            compiler: Some("gcc 12.2, ld 2.40".to_owned()),
            image: Some(image),
        });
        proof.images.push(ProofImage {
            sha256: ["a", "b"][image].repeat(64),
            bytes: 1000,
            in_file: false,
            counts: vec![counts(1, 1000), counts(2, 1001)],
        });
    }
    proof
}

/// A replay that equals the proof.
fn replay(proof: &Proof) -> Replay<'_> {
    let built = |kernel: &ProofKernel| KernelHere {
        source: kernel.source.clone(),
        config: kernel.config.clone(),
        compiler: kernel.compiler.clone(),
        image: Some(proof.images[kernel.image.unwrap()].sha256.clone()),
        failure: None,
    };
    Replay {
        proof,
        workloads: vec![0],
        machines: vec![(0, machine())],
        kernels: proof.kernels.iter().map(built).collect(),
        measured: (0..2)
            .map(|image| Measured {
                image,
                counts: proof.images[image].counts.clone(),
            })
            .collect(),
        other_operations: Vec::new(),
        not_compared: Vec::new(),
    }
}

#[test]
fn equal_replay_is_equal_to_the_last_instruction() {
    let proof = proof();
    let replay = replay(&proof);
    assert_eq!(replay.conclusion(), ReplayConclusion::Equal);
    insta::assert_snapshot!("equal", replay.text());
}

#[test]
fn first_part_that_differs_is_named() {
    let proof = proof();
    let mut other = replay(&proof);
    other.measured[1].counts[1].counted[1][2] += 1;
    assert_eq!(other.conclusion(), ReplayConclusion::Differs);
    insta::assert_snapshot!("count", other.text());
    other.kernels[1].image = Some("c".repeat(64));
    other.kernels[1].compiler = Some("gcc 14.1, ld 2.42".to_owned());
    let facts = &mut other.machines[0].1.fingerprint;
    facts[0] = fact("qemu.version", "8.2.1");
    facts[1] = fact("initrd.sha256", "cd");
    insta::assert_snapshot!("emulator", other.text());
    // The counts decide nothing about what was not built.
    let mut failed = replay(&proof);
    failed.kernels[1] = KernelHere {
        failure: Some("does not build: mm/memory.c:1:1: error: x".to_owned()),
        ..KernelHere::default()
    };
    failed.measured.pop();
    assert_eq!(failed.conclusion(), ReplayConclusion::Failed);
    insta::assert_snapshot!("failed", failed.text());
}

#[test]
fn missing_modules_leave_rows_out() {
    let proof = proof();
    let mut without = replay(&proof);
    for counts in without.measured.iter_mut().flat_map(|one| &mut one.counts) {
        counts.outcome = "not supported: no module zram".to_owned();
        counts.counted.clear();
    }
    without.set_aside_unsupported();
    assert_eq!(without.conclusion(), ReplayConclusion::Differs);
    insta::assert_snapshot!("not-compared", without.text());
}

#[test]
fn proofs_are_read_as_they_are_written() {
    let proof = proof();
    let text = proof.json().unwrap();
    assert_eq!(Proof::parse(text.as_bytes()), Ok(proof));
    let version = text.replacen("\"schema_version\": 1", "\"schema_version\": 9", 1);
    let error = Proof::parse(version.as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains("version 9") && error.ends_with("0.1.0"),
        "{error}"
    );
    for (old, new) in [
        ("\"kind\": \"exact\"", "\"kind\": \"vm\""),
        ("\"seed\": 2", "\"seed\": 3"),
        ("\"seed\": 2", "\"seed\": 1"),
        ("[1, 2]", "[0, 2]"),
        ("\"image\": 1", "\"image\": 2"),
        ("aaaa", "/../"),
    ] {
        let other = text.replacen(old, new, 1);
        assert!(
            other != text && Proof::parse(other.as_bytes()).is_err(),
            "{new}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), cut in 0_usize..3000) {
        drop(Proof::parse(text.as_bytes()));
        let whole = proof().json().unwrap();
        // Without its last line break it is whole.
        let part = whole.trim_end().as_bytes();
        let part = &part[..cut.min(part.len() - 1)];
        assert!(Proof::parse(part).is_err());
    }
}

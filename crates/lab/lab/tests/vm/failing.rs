//! Kernels that fail, each in its own way: the outcome says where and why, and the lab continues.

use std::path::Path;
use std::sync::Arc;

use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled};
use machine::{Limits, Programs};
use model::{MICRO, Metric, Outcome, Workload, WorkloadResult};

use crate::fresh::fresh;
use crate::{build, measure, same_build};

/// A lab with short deadlines.
fn impatient(home: &Path) -> Lab {
    let limits = Limits {
        job_instructions: 2_000_000_000,
        console_bytes: 1 << 20,
        ..Limits::default()
    };
    Lab::open(
        home,
        LabOptions {
            limits,
            ..LabOptions::default()
        },
    )
    .unwrap()
}

pub(crate) fn misbehaving(name: &'static str) -> Arc<Workload> {
    Arc::new(Workload {
        name: name.into(),
        stresses: "the lab".into(),
        operation: "misbehaving".into(),
        operations: 1,
        iterations: 16,
        warm_up: 0,
        exercises: &[],
        guest_config: model::GuestConfig::PLAIN,
        steadiness: model::Steadiness::Steady,
        tasks: None,
        processors: model::Processors::One,
        row_of: None,
        metric: Metric::COST,
        source: "".into(),
    })
}

#[test]
fn each_misbehaviour_has_its_own_reason() {
    let home = fresh("failing-home");
    let lab = impatient(&home);
    let build = same_build(&lab, &build("deb:6.12"));
    let expected = [
        ("misbehave-panic", "panicked (workload)"),
        ("misbehave-hang", "hung (workload)"),
        (
            "misbehave-exit",
            "agent died: the workload left without a word (workload)",
        ),
        (
            "misbehave-segv",
            "agent died: killed by signal 11 (workload)",
        ),
        ("misbehave-oom", "ran out of memory (workload)"),
        (
            "misbehave-print",
            "printed more than the console may hold (workload)",
        ),
        (
            "misbehave-garble",
            "result stream damaged: frame 0 is garbled or belongs to another job (results)",
        ),
        ("misbehave-unsupported", "unsupported"),
        ("no-such-workload", "unsupported"),
        ("getppid", "completed"),
    ];
    let workloads = expected.map(|(name, _)| misbehaving(name));
    let found = outcomes(&measure(&lab, &build, &workloads));
    assert_eq!(found, expected.map(|(_, outcome)| outcome.to_owned()));
}

/// Returns the outcome of each result in words.
pub(crate) fn outcomes(results: &[WorkloadResult]) -> Vec<String> {
    results
        .iter()
        .map(|result| match &result.outcome {
            Outcome::Completed => "completed".to_owned(),
            Outcome::Unsupported(_) => "unsupported".to_owned(),
            Outcome::Failed(failure) => format!("{} ({})", failure.reason, failure.stage),
        })
        .collect()
}

#[test]
fn panic_leaves_console_and_dump() {
    let home = fresh("last-words-home");
    let lab = impatient(&home);
    let build = same_build(&lab, &build("deb:6.1"));
    let plan = Plan {
        sides: vec![&build],
        suite: &MICRO,
        workloads: vec![misbehaving("misbehave-panic"), misbehaving("getppid")],
        replicates: vec![1],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Keep,
        sampled: Sampled::No,
    };
    let run = lab.execute(&plan, &|_| {}).unwrap().remove(0).remove(0);
    // Only of the workload whose kernel died.
    assert_eq!(lab.dumps(&run.id).unwrap(), ["misbehave-panic.vmcore"]);
    let stored = home.join("misbehave-panic.vmcore");
    std::fs::write(
        &stored,
        lab.artifact(&run.id, "misbehave-panic.vmcore").unwrap(),
    )
    .unwrap();
    let dump = vmcore::Dump::open(std::slice::from_ref(&stored)).unwrap();
    assert!(!dump.incomplete());
    let log = vmcore::log(
        &mut vmcore::Reader::new(&dump, vmcore::Io::Read),
        vmcore::LogPart::All,
    )
    .unwrap();
    assert!(
        log.contains("Kernel panic - not syncing: sysrq triggered crash"),
        "{log}"
    );
    let result = run
        .results
        .iter()
        .find(|result| result.workload == "misbehave-panic")
        .unwrap()
        .clone();
    let Outcome::Failed(failure) = result.outcome else {
        panic!("{:?}", result.outcome)
    };
    assert!(
        failure
            .console_tail
            .contains("Kernel panic - not syncing: sysrq triggered crash"),
        "{failure:?}"
    );
    assert!(failure.console_tail.lines().count() <= 40);
}

/// A 64-bit ELF with a PVH note whose 32-bit entry is this code: a kernel only to QEMU.
fn not_quite_a_kernel(code: &[u8]) -> Vec<u8> {
    const BASE: u32 = 0x10_0000;
    let mut elf = Vec::new();
    elf.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    elf.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    elf.extend(u64::from(BASE + 0x1000).to_le_bytes());
    elf.extend(64u64.to_le_bytes());
    elf.extend([0; 12]);
    elf.extend([64, 0, 56, 0, 2, 0, 64, 0, 0, 0, 0, 0]);
    let mut header = |kind: u32, offset: u64, size: u64| {
        elf.extend(kind.to_le_bytes());
        elf.extend(7u32.to_le_bytes());
        for field in [
            offset,
            u64::from(BASE) + offset,
            u64::from(BASE) + offset,
            size,
            size,
            4,
        ] {
            elf.extend(field.to_le_bytes());
        }
    };
    header(1, 0, 0x2000);
    header(4, 0x800, 20);
    elf.resize(0x800, 0);
    for field in [4u32, 4, 18, u32::from_le_bytes(*b"Xen\0"), BASE + 0x1000] {
        elf.extend(field.to_le_bytes());
    }
    elf.resize(0x1000, 0);
    elf.extend(code);
    elf.resize(0x2000, 0);
    elf
}

fn boot_outcome(name: &str, code: &[u8]) -> String {
    let limits = Limits {
        boot_instructions: 500_000_000,
        ..Limits::default()
    };
    let home = fresh(name);
    let lab = Lab::open(
        &home,
        LabOptions {
            limits,
            ..LabOptions::default()
        },
    )
    .unwrap();
    let file = home.join("vmlinux");
    std::fs::write(&file, not_quite_a_kernel(code)).unwrap();
    let build = lab
        .build(
            &format!("path:{}", file.display()).parse().unwrap(),
            &|_| {},
        )
        .unwrap();
    match measure(
        &lab,
        &build,
        std::slice::from_ref(crate::declared("getppid")),
    )
    .remove(0)
    .outcome
    {
        Outcome::Failed(failure) => format!("{} ({})", failure.reason, failure.stage),
        other => panic!("{other:?}"),
    }
}

#[test]
fn silent_kernels_have_distinct_reasons() {
    // ud2 without a handler resets the machine; cli, hlt stops it for ever; jmp to itself spins.
    assert_eq!(
        boot_outcome("reset-home", b"\x0f\x0b"),
        "did not boot (boot)"
    );
    assert_eq!(
        boot_outcome("halt-home", b"\xfa\xf4\xeb\xfd"),
        "hung (boot)"
    );
    assert_eq!(boot_outcome("spin-home", b"\xeb\xfe"), "hung (boot)");
    // The watchdog stops a machine that printed nothing: what a kernel without a serial console
    // looks like.
    let silent = b"\xb0\x0f\x66\xba\x43\x04\xee\xeb\xfe";
    assert_eq!(
        boot_outcome("silent-home", silent),
        "lacks a serial console (CONFIG_SERIAL_8250_CONSOLE) (boot)"
    );
}

#[test]
fn job_ending_beyond_its_limit_has_hung() {
    let home = fresh("limit-home");
    let limits = Limits {
        job_instructions: 1_000_000,
        ..Limits::default()
    };
    let lab = Lab::open(
        &home,
        LabOptions {
            limits,
            ..LabOptions::default()
        },
    )
    .unwrap();
    let build = same_build(&lab, &build("deb:6.12"));
    let outcome = measure(
        &lab,
        &build,
        std::slice::from_ref(crate::declared("getppid")),
    )
    .remove(0)
    .outcome;
    let Outcome::Failed(failure) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        format!("{} ({})", failure.reason, failure.stage),
        "hung (workload)"
    );
}

#[test]
fn unstartable_init_is_the_kernels_failure() {
    let home = fresh("no-init-home");
    let programs = Programs {
        init: b"this is no program".to_vec(),
        agent: vec![],
    };
    let lab = Lab::open(
        &home,
        LabOptions {
            programs,
            ..LabOptions::default()
        },
    )
    .unwrap();
    let build = same_build(&lab, &build("deb:6.12"));
    let outcome = measure(
        &lab,
        &build,
        std::slice::from_ref(crate::declared("getppid")),
    )
    .remove(0)
    .outcome;
    let Outcome::Failed(failure) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        failure.reason.to_string(),
        "lacks support for static ELF programs (CONFIG_BINFMT_ELF, x86-64)"
    );
}

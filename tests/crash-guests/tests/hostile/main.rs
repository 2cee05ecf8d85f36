//! A guest that attacks QEMU: it writes to every port and device page at random. Each seed ends
//! with a named outcome, and nothing is left of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "figures for --nocapture")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use lab::{Lab, LabOptions};
use machine::qemu::{Budget, CONSOLE, CONTROL, Process, Qemu, Scratch};
use machine::{InitrdFile, MachineError, initrd_of};

/// Those of the exact machine that make devices.
const ARGUMENTS: &str = "-nodefaults -no-user-config -display none -no-reboot -M microvm -cpu max -m 256 \
    -accel tcg,thread=single,tb-size=64 -icount shift=0,sleep=off -device ib700 -action watchdog=pause \
    -kernel kernel -initrd initrd -fw_cfg name=opt/marvin/job,file=job";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The guest's program, compiled.
fn poke() -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/poke.c");
    let program = folder("poke");
    let status = Command::new("cc")
        .args(["-static", "-O1", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::read(program).unwrap()
}

/// Boots a guest with this seed for some seconds, and returns how it ended and whether it poked.
fn outcome(qemu: &Qemu, kernel: &Path, initrd: &[u8], seed: u64, wall_s: u64) -> (String, bool) {
    let scratch = Scratch::new(&folder("poked-scratch")).unwrap();
    scratch.link("kernel", kernel).unwrap();
    scratch.write("initrd", initrd).unwrap();
    scratch.write("job", &[0; 4096]).unwrap();
    let mut arguments: Vec<String> = ARGUMENTS
        .split_whitespace()
        .chain(CONTROL.split(' '))
        .map(Into::into)
        .collect();
    arguments.extend([
        "-serial".into(),
        format!("file:{CONSOLE}"),
        "-append".into(),
    ]);
    arguments.push(format!(
        "console=ttyS0 quiet panic=-1 reboot=t iomem=relaxed pokeseed={seed}"
    ));
    let mut process = Process::start(qemu, &arguments, &scratch).unwrap();
    let budget = Budget {
        until: None,
        is_fast: false,
        wall_s,
        console_bytes: 16 << 20,
    };
    let ended = match process.wait_for_end(&budget) {
        Ok(ended) => format!("{ended:?}"),
        Err(MachineError::Overloaded { .. }) => "still poking at the deadline".to_owned(),
        Err(error @ MachineError::QemuDied { .. }) => error.to_string(),
        Err(error) => panic!("seed {seed}: {error}"),
    };
    drop(process);
    let begun = String::from_utf8_lossy(&scratch.console()).contains("poke: begins");
    (ended, begun)
}

#[test]
fn hostile_guests_end_with_a_named_outcome() {
    let (seeds, wall_s) = if std::env::var_os("MARVIN_FULL").is_some() {
        (50, 75)
    } else {
        (1, 45)
    };
    let lab = Lab::open(&folder("poked-home"), LabOptions::default()).unwrap();
    let build = lab.build(&"deb:6.12".parse().unwrap(), &|_| {}).unwrap();
    let qemu = Qemu::find(None, std::path::Path::new("/nonexistent")).unwrap();
    let program = poke();
    let initrd = initrd_of(&[InitrdFile {
        path: "init".into(),
        bytes: program,
    }]);
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    let mut begun = 0;
    for seed in 1..=seeds {
        let start = Instant::now();
        let (ended, has_begun) = outcome(&qemu, &build.boot_file().path, &initrd, seed, wall_s);
        println!(
            "seed {seed}: {:.0} s, poked: {has_begun}, {ended}",
            start.elapsed().as_secs_f64()
        );
        *outcomes.entry(ended).or_default() += 1;
        begun += u32::from(has_begun);
    }
    println!("{seeds} seeds, {begun} of which poked: {outcomes:#?}");
    assert!(begun > 0, "no guest came to poke");
    let scratch = folder("poked-scratch");
    let works = |process: std::fs::DirEntry| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&scratch))
    };
    assert!(!std::fs::read_dir("/proc").unwrap().flatten().any(works));
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}

//! Tests of vmcores: guests with memory of every kind are captured in every way, filtered, and read
//! by other programs. They take minutes: `make test-full` runs them, `cargo test` alone does not.
//!
//! MARVIN_DUMP names another filter to compare with makedumpfile, MARVIN_DUMP_ARM64 the same for
//! 64-bit Arm, MAKEDUMPFILE another makedumpfile than the one in PATH, DRGN a Python with drgn,
//! CRASH a crash program, and DRGN_VMLINUX a kernel with debug information for both. The tests
//! print what they skip without them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::print_stdout,
    reason = "says what was seen, and what could not be checked"
)]

mod arm64;
mod bitmaps;
mod live;
mod log;
mod readers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crash_guests::{
    CrashError, CrashGuests, CrashPlan, Crashed, DUMP_DISK, Ending, Filter, Paging, Placement,
    VMCORE_DISK,
};
use lab::{Lab, LabOptions};
use machine::qemu::VmcoreFormat;
use model::Build;

use crate::bitmaps::Bitmap;
use crate::readers::{LEVELS, Program};
use crash_guests::elf::{self, Elf};
use crash_guests::pages;

/// Memory of every kind, for a guest of 512 MiB.
const FILL: [(&str, u32); 12] = [
    ("anon", 48),
    ("holes", 8),
    ("thp", 40),
    ("huge", 24),
    ("same", 4),
    ("shm", 24),
    ("shmhuge", 16),
    ("cache", 24),
    ("disk", 24),
    ("freed", 60),
    ("files", 10_000),
    ("poison", 2),
];
/// The same for Debian's 6.1, which is built without CONFIG_MEMORY_FAILURE.
const WITHOUT_POISON: &[(&str, u32)] = FILL.split_at(FILL.len() - 1).0;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The location of the kernels.
fn lab() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    LAB.get_or_init(|| Lab::open(&folder("dumps-home"), LabOptions::default()).unwrap())
}

fn crash(build: &Build, plan: &CrashPlan<'_>) -> Result<Crashed, CrashError> {
    // Opening the lab empties its scratch directory, where a killed test may have left guests.
    static GUESTS: OnceLock<CrashGuests> = OnceLock::new();
    GUESTS
        .get_or_init(|| CrashGuests::open(&folder("dumps-home/scratch")).unwrap())
        .crash(build, plan)
}

fn build(name: &str) -> Build {
    lab().build(&name.parse().unwrap(), &|_| {}).unwrap()
}

fn plan<'a>(paging: Paging, placement: Placement, ending: Ending) -> CrashPlan<'a> {
    CrashPlan {
        memory_mib: 512,
        paging,
        placement,
        fill: &FILL,
        ending,
    }
}

/// Memory of a kind in /proc/meminfo, in pages.
fn pages_reported(crashed: &Crashed, name: &str) -> u64 {
    let told = &crashed.reports[0]["meminfo"];
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 4
}

/// Captures a stopped guest in both formats, and returns QEMU's ELF, its kdump and the one like
/// /proc/vmcore.
fn captured(crashed: &mut Crashed, folder: &Path) -> [PathBuf; 3] {
    let files = ["qemu.elf", "qemu.kdump", "vmcore"].map(|name| folder.join(name));
    crashed
        .guest
        .write_vmcore(VmcoreFormat::Elf, &files[0])
        .unwrap();
    crashed
        .guest
        .write_vmcore(VmcoreFormat::KdumpZlib, &files[1])
        .unwrap();
    assert!(
        std::fs::read(&files[1])
            .unwrap()
            .starts_with(b"makedumpfile\0"),
        "QEMU's kdump is flattened"
    );
    elf::rewrite(&Elf::open(&files[0]), &files[2]);
    files
}

/// Filters a vmcore with makedumpfile at each level, and checks properties of any guest.
fn filtered(vmcore: &Path, folder: &Path) -> Option<BTreeMap<u32, Bitmap>> {
    let makedumpfile = Program::makedumpfile()?;
    let dumped = |level| {
        (
            level,
            readers::dumped(
                &makedumpfile,
                level,
                vmcore,
                &folder.join(format!("m{level}")),
            )
            .0,
        )
    };
    let bitmaps: BTreeMap<u32, Bitmap> = LEVELS.into_iter().map(dumped).collect();
    assert!(
        bitmaps[&30].is_within(&bitmaps[&16]),
        "a level that excludes more keeps less"
    );
    // Zero pages are in the second bitmap if they are stored once, so 31 keeps no more than 30.
    assert!(bitmaps[&31].is_within(&bitmaps[&30]));
    Some(bitmaps)
}

/// Compares the tested filter with makedumpfile, on each file of the same memory.
fn compared(files: &[&Path], expected: &BTreeMap<u32, Bitmap>, folder: &Path) {
    let release = &Elf::open(files[0]).vmcoreinfo["OSRELEASE"];
    let (Some(filter), Some(makedumpfile)) = (Program::marvin_dump(), Program::makedumpfile())
    else {
        return;
    };
    let knows = readers::knows(&makedumpfile, files[0], &folder.join("known"));
    let mut same = true;
    for file in files {
        for (level, expected) in expected {
            let dump = folder.join(format!("f{level}"));
            let (found, listed) = readers::dumped(&filter, *level, file, &dump);
            let difference = found.difference(expected);
            println!(
                "{} -d {level}: {difference}; {listed} on lists of processors",
                file.display()
            );
            assert_eq!(
                listed > 0,
                *level >= 16,
                "free pages are dropped from 16 on"
            );
            same &= difference.is_less_by(listed);
            if *level == 31 {
                readers::walk(&dump, release);
                // Not of the file itself: drgn does not read QEMU's flattened one.
                if let Some(counted) = readers::listed(files[0], release) {
                    assert_eq!(listed, counted, "as drgn counts them");
                }
            }
        }
    }
    assert!(
        !knows || same,
        "makedumpfile knows this kernel, and leaves out other pages: see what was printed"
    );
}

fn story(name: &str, kernel: &str, plan: &CrashPlan<'_>) {
    let build = build(kernel);
    let folder = folder(name);
    let mut crashed = crash(&build, plan).unwrap();
    println!(
        "{name}: {}",
        crashed.reports[0]["filled"].trim().replace('\n', ", ")
    );
    let [elf, kdump, vmcore] = captured(&mut crashed, &folder);
    let opened = Elf::open(&elf);
    let release = &opened.vmcoreinfo["OSRELEASE"];
    assert!(
        release.starts_with(&build.version.rsplit_once('.').unwrap().0.to_owned()),
        "{release}"
    );
    assert_eq!(
        pages::has_five_levels(&opened),
        plan.paging == Paging::FiveLevels
    );
    assert_eq!(
        opened.vmcoreinfo["KERNELOFFSET"] == "0",
        plan.placement == Placement::Fixed
    );
    if let Some(bitmaps) = filtered(&vmcore, &folder) {
        let total = u64::from(plan.memory_mib) * 256;
        if plan.ending == Ending::Stop {
            let free = pages_reported(&crashed, "MemFree");
            let kept = bitmaps[&16].count();
            println!(
                "{name}: {total} pages, {free} were free, {kept} kept at -d 16, {} at -d 31",
                bitmaps[&31].count()
            );
            assert!(
                kept + free * 9 / 10 < total,
                "what the guest called free is left out"
            );
        }
        compared(&[&vmcore, &elf, &kdump], &bitmaps, &folder);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn cleared_log_is_left_out() {
    let folder = folder("cleared-log");
    let plan = CrashPlan {
        fill: &[],
        ..plan(Paging::FiveLevels, Placement::Random, Ending::Stop)
    };
    let mut crashed = crash(&build("deb:6.12"), &plan).unwrap();
    let [_, _, vmcore] = captured(&mut crashed, &folder);
    log::story(&vmcore, &folder);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn killed_writers_leave_tasks_and_slabs() {
    let Some(filter) = Program::marvin_dump() else {
        return;
    };
    let folder = folder("killed");
    let fill = &[("anon", 100), ("files", 20_000)];
    let plan = CrashPlan {
        memory_mib: 1024,
        fill,
        ..plan(Paging::FiveLevels, Placement::Random, Ending::Stop)
    };
    let mut crashed = crash(&build("deb:6.12"), &plan).unwrap();
    let [_, _, vmcore] = captured(&mut crashed, &folder);
    let release = Elf::open(&vmcore).vmcoreinfo["OSRELEASE"].clone();
    readers::walk_cut(&filter, &vmcore, &folder, &release);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn v61_with_four_levels_at_random() {
    let plan = plan(Paging::FourLevels, Placement::Random, Ending::Stop);
    story(
        "v61",
        "deb:6.1",
        &CrashPlan {
            fill: WITHOUT_POISON,
            ..plan
        },
    );
}

#[test]
fn v612_with_five_levels_at_random() {
    story(
        "v612",
        "deb:6.12",
        &plan(Paging::FiveLevels, Placement::Random, Ending::Stop),
    );
}

#[test]
fn a_kernel_from_elsewhere() {
    // Newer kernels than Debian 12 offers: MARVIN_CRASH_KERNEL=path:/elsewhere/boot/vmlinuz-7.2.
    match std::env::var("MARVIN_CRASH_KERNEL") {
        Ok(kernel) => story(
            "elsewhere",
            &kernel,
            &plan(Paging::FiveLevels, Placement::Random, Ending::Stop),
        ),
        Err(_) => println!("skipped: MARVIN_CRASH_KERNEL names no kernel"),
    }
}

#[test]
fn v612_always_in_the_same_place() {
    story(
        "v612-fixed",
        "deb:6.12",
        &plan(Paging::FourLevels, Placement::Fixed, Ending::Stop),
    );
}

#[test]
fn a_kernel_that_panics_leaves_its_memory() {
    story(
        "v612-panic",
        "deb:6.12",
        &plan(Paging::FiveLevels, Placement::Random, Ending::Panic),
    );
}

#[test]
fn a_guest_that_cannot_be_filled_says_why() {
    let fill = &[("anon", 300), ("shm", 300)];
    let plan = CrashPlan {
        fill,
        ..plan(Paging::FiveLevels, Placement::Random, Ending::Stop)
    };
    let error = crash(&build("deb:6.12"), &plan).unwrap_err().to_string();
    let first = error.lines().next().unwrap();
    // Each one is killed in favour of the other.
    assert!(
        first.starts_with("the crash guest failed: crash: "),
        "{error}"
    );
    assert!(
        first.ends_with("killed: there is too little memory"),
        "{error}"
    );
}

/// Lets a crash kernel capture the panicked one, and checks its output.
fn kdump_story(name: &str, kernel: &str, fill: &[(&str, u32)]) {
    let folder = folder(name);
    let words = ["-d", "31"].map(str::to_owned).to_vec();
    let program = Program::marvin_dump().map(|filter| std::fs::read(filter.path).unwrap());
    let filter = program.map(|program| Filter { program, words });
    let filters = filter.is_some();
    let ending = Ending::Kdump(320, filter);
    let plan = CrashPlan {
        memory_mib: 896,
        fill,
        ..plan(Paging::FiveLevels, Placement::Random, ending)
    };
    let crashed = crash(&build(kernel), &plan).unwrap();
    let report = &crashed.reports[1]["captured"];
    println!("{name}: {}", report.trim().replace('\n', ", "));
    let bytes = |name: &str| {
        report
            .lines()
            .find_map(|line| line.strip_prefix(name)?.split(' ').nth(1)?.parse().ok())
    };
    let vmcore = folder.join("vmcore");
    let dump = folder.join("dump");
    let mut disks = vec![(&VMCORE_DISK, bytes("vmcore").unwrap(), vmcore.clone())];
    if filters {
        disks.push((&DUMP_DISK, bytes("dump").unwrap(), dump.clone()));
    }
    crashed.guest.keep_disks(&disks).unwrap();
    let vmcoreinfo = Elf::open(&vmcore).vmcoreinfo;
    assert!(vmcoreinfo.contains_key("CRASHTIME"));
    if let Some(bitmaps) = filtered(&vmcore, &folder) {
        if filters {
            let makedumpfile = Program::makedumpfile().unwrap();
            let (outside, listed) = readers::dumped(
                &Program::marvin_dump().unwrap(),
                31,
                &vmcore,
                &folder.join("outside"),
            );
            let difference = Bitmap::of(&dump).difference(&bitmaps[&31]);
            println!(
                "{name}: -d 31 in the capture kernel: {difference}; {listed} on lists of processors"
            );
            assert!(
                Bitmap::of(&dump).difference(&outside).is_none(),
                "the same in the capture kernel and outside"
            );
            assert!(
                !readers::knows(&makedumpfile, &vmcore, &folder.join("known"))
                    || difference.is_less_by(listed)
            );
            readers::walk(&dump, &vmcoreinfo["OSRELEASE"]);
        }
        compared(&[&vmcore], &bitmaps, &folder);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn crash_kernel_61_saves_the_vmcore() {
    kdump_story("kd61", "deb:6.1", WITHOUT_POISON);
}

#[test]
fn crash_kernel_612_saves_the_vmcore() {
    kdump_story("kd612", "deb:6.12", &FILL);
}

#[test]
fn running_guest_is_filtered_and_resumed() {
    live::story("live-q35", "deb:6.12", "q35");
}

#[test]
fn running_small_pc_is_filtered_and_resumed() {
    live::story("live-microvm", "deb:6.1", "microvm");
}

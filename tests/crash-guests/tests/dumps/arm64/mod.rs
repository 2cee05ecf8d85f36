//! 64-bit Arm: Debian's kernels with pages of 4 and 16 KiB panic in QEMU's virt machine, on
//! processors with and without addresses of 52 bits (FEAT_LPA2).
//!
//! The guest marks its pages, so what a level excludes is checked without another filter:
//! makedumpfile 1.7.9 does not find page tables of 52 bits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use machine::qemu::{Budget, CONSOLE, CONTROL, Ended, Process, Qemu, Scratch, VmcoreFormat};
use machine::{InitrdFile, initrd_of};
use vmcore::{Dump, Filter, Io, Level, LogPart, Plan, Reader, Work, log, memory_file};

use self::apt::output;
use crate::{folder, readers};

mod apt;

const QEMU: &str = "qemu-system-aarch64";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Memory of the guest, in MiB.
const MEMORY_MIB: u32 = 512;
/// What the guest writes into each page of a kind, before the kind.
const MARK: &[u8] = b"marvin-mark ";
/// The kinds of marked pages, and the level that excludes each: none excludes the kernel's own.
const KINDS: [(&str, u8); 5] = [
    ("anon", 8),
    ("thp", 8),
    ("cache", 2),
    ("freed", 16),
    ("pipe", 0),
];

/// Held while a kernel is fetched.
static TURN: Mutex<()> = Mutex::new(());

/// A kernel: its image, the driver that gives VMCOREINFO to QEMU, and the first program.
struct Kernel {
    image: PathBuf,
    driver: Vec<u8>,
    first: Vec<u8>,
}

/// Gets the kernel that a package of Debian's stands for.
fn kernel(package: &str) -> Kernel {
    let apt::Unpacked { name, root } = apt::fetch(&folder("arm64"), package);
    let driver = root.join(format!(
        "usr/lib/modules/{name}/kernel/drivers/firmware/qemu_fw_cfg.ko.xz"
    ));
    let driver = Command::new("xz")
        .arg("-dc")
        .arg(driver)
        .output()
        .unwrap()
        .stdout;
    Kernel {
        image: root.join(format!("boot/vmlinuz-{name}")),
        driver,
        first: first_program(),
    }
}

/// Compiles the first program.
fn first_program() -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps/arm64/init.c");
    let program = folder("arm64").join("init");
    output(
        Command::new(COMPILER)
            .args(["-static", "-O1", "-Wall", "-o"])
            .args([&program, &source]),
    );
    fs::read(program).unwrap()
}

/// Boots a kernel until it panics; returns QEMU's ELF and kdump files, the file of its memory, and
/// what the guest marked.
fn crash(kernel: &Kernel, processor: &str, folder: &Path) -> ([PathBuf; 3], BTreeMap<String, u64>) {
    let qemu = Qemu::find(Some(Path::new(QEMU)), Path::new("/nonexistent")).unwrap();
    let scratch = Scratch::new(folder).unwrap();
    let file = |path: &str, bytes: &[u8]| InitrdFile {
        path: path.into(),
        bytes: bytes.to_vec(),
    };
    scratch.link("kernel", &kernel.image).unwrap();
    let files = [
        file("init", &kernel.first),
        file("modules/qemu_fw_cfg.ko", &kernel.driver),
    ];
    scratch.write("initrd", &initrd_of(&files)).unwrap();
    // With SVE, QEMU 7.2 may write other notes than it has counted, and then memory is not where
    // the headers say.
    let words = format!(
        "-nodefaults -no-user-config -display none -no-reboot -nic none -M virt,memory-backend=ram -accel \
        tcg,thread=multi -smp 2 -cpu {processor},sve=off -m {MEMORY_MIB} -object \
        memory-backend-file,id=ram,size={MEMORY_MIB}M,mem-path=ram,share=on -device vmcoreinfo -action shutdown=pause \
        -kernel kernel -initrd initrd {CONTROL} -serial file:{CONSOLE}"
    );
    let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    words.extend(["-append", "console=ttyAMA0 panic=-1"].map(str::to_owned));
    let mut process = Process::start(&qemu, &words, &scratch).unwrap();
    let budget = Budget {
        until: None,
        is_fast: false,
        wall_s: 600,
        console_bytes: 1 << 20,
    };
    let ended = process.wait_for_end(&budget).unwrap();
    let console = String::from_utf8_lossy(&scratch.console()).into_owned();
    assert!(
        matches!(ended, Ended::Stopped | Ended::PoweredOff) && console.contains("sysrq triggered"),
        "{console}"
    );
    let marked = console
        .lines()
        .filter_map(|line| line.trim().strip_prefix("marked ")?.split_once(' '));
    let marked = marked
        .map(|(kind, count)| (kind.to_owned(), count.parse().unwrap()))
        .collect();
    for (name, format) in [
        ("elf", VmcoreFormat::Elf),
        ("kdump", VmcoreFormat::KdumpZlib),
    ] {
        process.write_memory(format, name, MEMORY_MIB).unwrap();
    }
    let files = ["elf", "kdump", "ram"].map(|name| {
        fs::rename(scratch.path(name), folder.join(name)).unwrap();
        folder.join(name)
    });
    (files, marked)
}

/// Returns the kind of each marked page, found in memory and not in the kernel's records.
fn marks(dump: &Dump) -> BTreeMap<u64, String> {
    let mut reader = Reader::new(dump, Io::Map);
    let mut kind = |page: u64| {
        let bytes = reader
            .bytes(page * dump.page_size(), 64)
            .ok()?
            .strip_prefix(MARK)?;
        let word = bytes.split(|byte| *byte == b' ').next()?;
        Some((page, String::from_utf8_lossy(word).into_owned()))
    };
    (0..dump.pages()).filter_map(&mut kind).collect()
}

/// Returns the pages that a level keeps.
fn kept_pages(dump: &Dump, level: u8) -> Vec<u64> {
    let filter =
        Filter::for_level(&mut Reader::new(dump, Io::Map), Level::new(level).unwrap()).unwrap();
    let work = Work {
        threads: 1,
        io: Io::Map,
        memory: 64 << 20,
        folder: None,
    };
    let plan = Plan::make(dump, filter.as_ref(), &work).unwrap();
    assert_eq!(plan.counts().unknown, 0, "each record is readable");
    plan.kept_pages().unwrap()
}

/// Counts the marked pages of each kind that a level keeps.
fn kept(dump: &Dump, level: u8, marks: &BTreeMap<u64, String>) -> BTreeMap<String, u64> {
    let mut kept = BTreeMap::new();
    for kind in kept_pages(dump, level)
        .iter()
        .filter_map(|page| marks.get(page))
    {
        *kept.entry(kind.clone()).or_default() += 1;
    }
    kept
}

/// Returns the file of a guest's memory as a part.
fn part(path: &Path) -> memory_file::Part {
    path.display().to_string().parse().unwrap()
}

fn story(package: &str, page: u64, processor: &str) {
    if [QEMU, COMPILER]
        .iter()
        .any(|program| Command::new(program).arg("--version").output().is_err())
    {
        println!("skipped: {QEMU} or {COMPILER} is missing (scripts/needs.sh test-full)");
        return;
    }
    let kernel = {
        // apt and the compiler have one directory for all tests.
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        kernel(package)
    };
    let folder = folder(&format!("arm64/{package}-{processor}"));
    let ([elf, kdump, memory], marked) = crash(&kernel, processor, &folder);
    let dump = Dump::open(std::slice::from_ref(&elf)).unwrap();
    let release = dump.info().text("OSRELEASE").unwrap().to_owned();
    println!("{release}, {processor}: {marked:?}");
    assert_eq!(dump.page_size(), page);
    let text = log(&mut Reader::new(&dump, Io::Map), LogPart::All).unwrap();
    assert!(text.contains("sysrq: Trigger a crash"));
    let all = marks(&dump);
    for level in [1, 2, 8, 16, 31] {
        let kept = kept(&dump, level, &all);
        println!("-d {level}: {kept:?}");
        for (kind, dropped_by) in KINDS {
            let kept = kept.get(kind).copied().unwrap_or_default();
            let marked = marked[kind];
            let is_dropped = level & dropped_by != 0;
            // The kernel may have given some of the freed pages to others, which did not overwrite
            // the mark.
            let stale = if kind == "freed" { marked / 20 } else { 0 };
            assert!(
                if is_dropped {
                    kept <= stale
                } else {
                    kept >= marked - stale
                },
                "{kind} at -d {level}: {kept}"
            );
        }
    }
    let all = kept_pages(&dump, 31);
    let others = [
        Dump::open(std::slice::from_ref(&kdump)).unwrap(),
        memory_file::open(&[part(&memory)], None).unwrap(),
    ];
    // QEMU's kdump file names no machine, and has blocks of 64 KiB; the memory has no headers at
    // all.
    assert!(
        others.iter().all(|other| kept_pages(other, 31) == all),
        "the same in each format"
    );
    check_readers([&elf, &kdump], &folder, &release);
    fs::remove_dir_all(&folder).unwrap();
}

/// Compares the filter's file with the one that it writes as a program of Arm.
fn check_native(filter: &readers::Program, elf: &Path, folder: &Path) {
    let Some(native) = std::env::var_os("MARVIN_DUMP_ARM64") else {
        println!("not checked: the filter on 64-bit Arm, for MARVIN_DUMP_ARM64 names none");
        return;
    };
    for codec in ["zstd", "lzo", "none"] {
        let mut commands = [Command::new(&filter.path), Command::new("qemu-aarch64")];
        commands[1].arg(&native);
        let files = ["x86", "arm"].map(|name| folder.join(name));
        for (command, file) in commands.iter_mut().zip(&files) {
            output(
                command
                    .args(["-d", "31", "-f", "--threads", "1", "--compress", codec])
                    .arg(elf)
                    .arg(file),
            );
        }
        let [one, other] = files.map(|file| fs::read(file).unwrap());
        assert!(one == other, "{codec}: the same file on both");
    }
}

/// Lets drgn read what the filter leaves.
fn check_readers([elf, kdump]: [&PathBuf; 2], folder: &Path, release: &str) {
    let Some(filter) = readers::Program::marvin_dump() else {
        return;
    };
    let (_, listed) = readers::dumped(&filter, 31, elf, &folder.join("dump"));
    let (_, again) = readers::dumped(&filter, 31, kdump, &folder.join("again"));
    assert_eq!(listed, again);
    check_native(&filter, elf, folder);
    readers::walk(&folder.join("dump"), release);
    readers::walk(&folder.join("again"), release);
    if let Some(counted) = readers::listed(elf, release) {
        assert_eq!(listed, counted, "as drgn counts them");
    }
}

#[test]
fn arm64_with_small_pages_keeps_own_memory() {
    story("linux-image-cloud-arm64", 4 << 10, "max,lpa2=off");
}

#[test]
fn arm64_with_small_pages_and_wide_addresses() {
    story("linux-image-cloud-arm64", 4 << 10, "max");
}

#[test]
fn arm64_with_larger_pages_keeps_own_memory() {
    story("linux-image-arm64-16k", 16 << 10, "max,lpa2=off");
}

#[test]
fn arm64_with_larger_pages_and_wide_addresses() {
    story("linux-image-arm64-16k", 16 << 10, "max");
}

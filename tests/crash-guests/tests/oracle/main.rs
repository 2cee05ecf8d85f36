//! The oracle: a guest says what each of its frames is, by `/proc/kpageflags`, and each page that a
//! level keeps or drops is judged by that. Another filter's opinion does not count here.
//!
//! `cargo test` has one kernel; with MARVIN_FULL it has all of [`KERNELS`], or those that
//! MARVIN_ORACLE_KERNELS names (with commas between them), and pages of 1 GiB; the sample has all
//! shapes, and others have those that MARVIN_ORACLE_SHAPES names. A kernel that Debian does not
//! serve any more is skipped with a line that says so. The rows of the matrix in `docs/dump.md` are
//! printed with `--nocapture`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the matrix, for --nocapture")]

#[path = "../dumps/arm64/apt.rs"]
mod apt;
mod arm64;
mod broken;
mod judge;
mod row;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Instant;

use lab::{Lab, LabOptions};
use machine::qemu::{Budget, CONSOLE, CONTROL, Ended, Process, Qemu, Scratch, VmcoreFormat};
use machine::{InitrdFile, initrd_of};
use model::Build;
use vmcore::{Dump, DumpError, Filter, Io, Level, Plan, Reader, Work, memory_file};

use crate::broken::BROKEN;
use crate::judge::{Judgement, Kind, Testimony, judge};
use crate::row::Row;
use crate::shape::{GIANT, PLAIN, SHAPES, Shape};

/// The newest kernel of each series that Debian serves, and of some flavours.
const KERNELS: [&str; 15] = [
    "deb:6.1",
    "deb:6.12",
    "deb:6.1+amd64",
    "deb:6.12+amd64",
    "deb:6.12+rt-amd64",
    "deb:trixie/6.12",
    "deb:trixie-backports/6.16",
    "deb:trixie-backports/6.17",
    "deb:trixie-backports/6.18",
    "deb:trixie-backports/6.19",
    "deb:trixie-backports/7.0",
    "deb:trixie-backports/7.1",
    "deb:trixie-backports/7.2",
    "deb:trixie-backports/7.3",
    arm64::NAME,
];
/// The one that each test run has.
const SAMPLE: &str = KERNELS[1];
const LEVELS: [u8; 6] = [1, 2, 4, 8, 16, 31];
/// What programs marked: the level that drops it, 0 if none does.
const MARKED: [(&str, u8); 13] = [
    ("anon", 8),
    ("thp", 8),
    ("mthp", 8),
    ("huge", 8),
    ("giant", 8),
    ("swapped", 8),
    ("shm", 2),
    ("cache", 2),
    ("secret", 2),
    ("disk", 4),
    ("pipe", 0),
    ("bpf", 0),
    ("dax", 0),
];
/// The drivers of the guest's disks.
const MODULES: [&str; 3] = ["virtio_pci", "virtio_blk", "virtio_balloon"];
/// A page in so many may be on its way to a list when the guest stops, such as one in a batch for
/// the LRU: it is no user's and no free page yet.
const IN_FLIGHT: u64 = 1 << 8;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The guest's program, compiled.
fn init(compiler: &str) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/init.c");
    let program = folder("oracle").join(format!("init-{compiler}"));
    let status = Command::new(compiler)
        .args(["-static", "-O1", "-Wall", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::read(program).unwrap()
}

/// Boots a build until it resets its machine, and returns the file of its memory.
fn memory_of(build: &Build, shape: &Shape, folder: &Path) -> PathBuf {
    let qemu = Qemu::find(None, Path::new("/nonexistent")).unwrap();
    let scratch = Scratch::new(folder).unwrap();
    scratch.link("kernel", &build.image.path).unwrap();
    let names = [&MODULES, shape.modules].concat();
    let modules = kernel::modules(build, &names).unwrap();
    let modules = modules
        .into_iter()
        .enumerate()
        .map(|(at, module)| InitrdFile {
            path: format!("modules/{at:02}-{}.ko", module.name),
            bytes: module.bytes,
        });
    let first = InitrdFile {
        path: "init".into(),
        bytes: init("cc"),
    };
    let files: Vec<InitrdFile> = modules.chain([first]).collect();
    scratch.write("initrd", &initrd_of(&files)).unwrap();
    for disk in ["disk", "swap"] {
        let file = std::fs::File::create(scratch.path(disk)).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    shape.format_device(&scratch.path("ram"));
    let frames = shape.frames();
    let words = format!(
        "-nodefaults -no-user-config -display none -no-reboot -nic none {} \
        -accel tcg,thread=multi,tb-size=256 -cpu max -action shutdown=pause \
        -drive if=none,id=disk,file=disk,format=raw,cache=unsafe -device virtio-blk-pci,drive=disk \
        -drive if=none,id=swap,file=swap,format=raw,cache=unsafe -device virtio-blk-pci,drive=swap \
        -kernel kernel -initrd initrd {CONTROL} -serial file:{CONSOLE} {}",
        shape.machine(),
        shape.devices
    );
    let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    words.extend([
        "-append".into(),
        format!(
            "console=ttyS0 panic=-1 movablecore=448M cma=32M secretmem.enable=1 frames={frames} {}",
            shape.command_line
        ),
    ]);
    let mut process = Process::start(&qemu, &words, &scratch).unwrap();
    shape.inflate(scratch.folder());
    let budget = Budget {
        until: None,
        is_fast: false,
        wall_s: 300,
        console_bytes: 1 << 20,
    };
    let ended = process.wait_for_end(&budget).unwrap();
    let console = String::from_utf8_lossy(&scratch.console()).into_owned();
    assert!(
        matches!(ended, Ended::Stopped | Ended::PoweredOff) && !console.contains("oracle: "),
        "{ended:?}\n{console}"
    );
    let name = if shape.is_written_by_qemu() {
        let mib = u32::try_from(shape.memory_mib + shape.added_mib).unwrap();
        let format = VmcoreFormat::Elf;
        process.write_memory(format, "vmcore", mib).unwrap();
        "vmcore"
    } else {
        "ram"
    };
    drop(process);
    let memory = folder.join("memory");
    std::fs::rename(scratch.path(name), &memory).unwrap();
    memory
}

/// Opens a guest's memory, or the dump that QEMU wrote, with a note or the one in it.
fn open(memory: &Path, shape: &Shape, note: Option<&str>) -> Dump {
    if !shape.is_written_by_qemu() {
        let part = memory.display().to_string().parse().unwrap();
        return memory_file::open(&[part], note.map(str::as_bytes)).unwrap();
    }
    let dump = Dump::open(&[memory.to_owned()]).unwrap();
    match note {
        Some(note) => dump.with_info(note.as_bytes()),
        None => dump.with_found_info(),
    }
}

/// What a level does with a dump.
struct Filtered {
    kept: BTreeSet<u64>,
    /// Pages that it found on lists of processors.
    listed: u64,
    /// Pages with records that it could not read.
    unknown: u64,
}

fn work() -> Work {
    Work {
        threads: 1,
        io: Io::Map,
        memory: 64 << 20,
        folder: None,
    }
}

fn filtered(dump: &Dump, level: u8) -> Result<Filtered, DumpError> {
    let level = Level::new(level).unwrap();
    let filter = Filter::for_level(&mut Reader::new(dump, Io::Map), level)?;
    let plan = Plan::make(dump, filter.as_ref(), &work())?;
    Ok(Filtered {
        kept: plan.kept_pages()?.into_iter().collect(),
        listed: plan.counts().listed,
        unknown: plan.counts().unknown,
    })
}

/// Describes pages by kind: their number, and the first.
fn describe(pages: &BTreeMap<Kind, BTreeSet<u64>>) -> String {
    let one = |(kind, pages): (&Kind, &BTreeSet<u64>)| {
        format!(
            "{kind:?} {} (first {:#x})",
            pages.len(),
            pages.first().unwrap()
        )
    };
    let all: Vec<String> = pages.iter().map(one).collect();
    if all.is_empty() {
        "none".into()
    } else {
        all.join(", ")
    }
}

/// Checks the marked pages against a level; returns what is wrong.
fn check_marks(testimony: &Testimony, level: u8, kept: &BTreeSet<u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (kind, dropped_by) in MARKED {
        let Some(marked) = testimony.marks.get(kind) else {
            continue;
        };
        // Copies of a mark elsewhere, as in a page that was free before, have another kind.
        let is_whole = |page: &&u64| {
            let kind = testimony.kinds[usize::try_from(**page).unwrap()];
            match dropped_by {
                // The kernel says nothing of memory that is a device.
                0 => [Kind::Unnamed, Kind::NoRecord].contains(&kind),
                _ => kind.is_dropped_at(dropped_by),
            }
        };
        let pages: Vec<&u64> = marked.iter().filter(is_whole).collect();
        let found = pages.iter().filter(|page| kept.contains(page)).count();
        let is_dropped = level & dropped_by != 0 || dropped_by == 2 && level & 4 != 0;
        let expected = if is_dropped { 0 } else { pages.len() };
        if pages.is_empty() || found != expected {
            let all = pages.len();
            wrong.push(format!(
                "{kind} at -d {level}: {found} of {all} marked pages kept, not {expected}"
            ));
        }
    }
    wrong
}

/// Checks a judgement: nothing is lost, and what stays was on its way to a list. Returns what is
/// wrong.
fn check(level: u8, judged: &Judgement, listed: u64, listed_by_kernel: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    if !judged.lost.is_empty() {
        wrong.push(format!(
            "-d {level} drops needed pages: {}",
            describe(&judged.lost)
        ));
    }
    for (kind, pages) in &judged.stayed {
        let all = judged.all[kind];
        let allowed = match kind {
            Kind::Cache | Kind::PrivateCache | Kind::Anonymous => all / IN_FLIGHT,
            _ => 0,
        };
        if pages.len() as u64 > allowed {
            let count = pages.len();
            wrong.push(format!(
                "-d {level} keeps {count} of {all} pages that are {kind:?}"
            ));
        }
    }
    if level & 16 != 0 && (judged.listed.len() as u64 > listed || listed > listed_by_kernel) {
        let unnamed = judged.listed.len();
        wrong.push(format!(
            "-d {level} drops {unnamed} pages without a name and {listed} on lists; the kernel counts {listed_by_kernel}"
        ));
    }
    wrong
}

/// A kernel that has judged the filter.
struct Story {
    /// What is wrong with the filter.
    wrong: Vec<String>,
    /// Filters that were broken on purpose, and that the kernel found nothing wrong with.
    uncaught: Vec<String>,
}

/// A guest that has stopped, and what it says of its frames.
struct Witness {
    name: String,
    dump: Dump,
    testimony: Testimony,
    /// All pages of its memory.
    memory: BTreeSet<u64>,
    listed_by_kernel: u64,
}

impl Witness {
    fn new(name: String, dump: Dump) -> Self {
        let testimony = Testimony::find(&dump);
        let plan = Plan::make(&dump, None, &work()).unwrap();
        let memory = plan.kept_pages().unwrap().into_iter().collect();
        let listed_by_kernel = testimony.number("listed").unwrap();
        Self {
            name,
            dump,
            testimony,
            memory,
            listed_by_kernel,
        }
    }

    fn judge(&self, level: u8, kept: &BTreeSet<u64>) -> Judgement {
        judge(&self.testimony, level, &self.memory, kept)
    }

    /// Returns what is wrong with a level.
    fn check(&self, level: u8, filtered: &Filtered, judged: &Judgement) -> Vec<String> {
        let mut wrong = check(level, judged, filtered.listed, self.listed_by_kernel);
        wrong.extend(check_marks(&self.testimony, level, &filtered.kept));
        if filtered.unknown > 0 {
            wrong.push(format!("-d {level}: {} unreadable", filtered.unknown));
        }
        wrong
    }

    /// Judges all levels of the filter as it is; returns what is wrong.
    fn judge_filter(&self, row: &mut Row) -> Vec<String> {
        let mut wrong = Vec::new();
        for level in LEVELS {
            let filtered = filtered(&self.dump, level).unwrap();
            let judged = self.judge(level, &filtered.kept);
            println!(
                "  -d {level}: {} of {} pages kept; lost: {}; stayed: {}; on lists: {}, the kernel says {}",
                filtered.kept.len(),
                self.memory.len(),
                describe(&judged.lost),
                describe(&judged.stayed),
                filtered.listed,
                self.listed_by_kernel
            );
            wrong.extend(self.check(level, &filtered, &judged));
            row.add(&judged, filtered.listed);
        }
        wrong
    }

    /// Judges filters that are broken on purpose; returns those that nothing is wrong with.
    fn judge_broken(&self, shape: &Shape, row: &mut Row) -> Vec<String> {
        let mut uncaught = Vec::new();
        let text = vmcore::vmcoreinfo::of_dump(&self.dump).unwrap();
        let text = String::from_utf8(text).unwrap();
        for broken in &BROKEN {
            let is_idle = |mark| !self.testimony.marks.contains_key(mark);
            if broken.needs.is_some_and(is_idle) {
                continue;
            }
            let Some(note) = broken.note(&text) else {
                println!("  broken: {}: not in this kernel's note", broken.name);
                continue;
            };
            let dump = open(self.dump.path(), shape, Some(&note));
            let mut filtered = filtered(&dump, broken.level).unwrap();
            filtered.kept = broken.pages(&filtered.kept, &self.memory);
            let judged = self.judge(broken.level, &filtered.kept);
            let wrong = self.check(broken.level, &filtered, &judged);
            let first = wrong.first().map_or("nothing wrong", String::as_str);
            println!("  broken: {}: {first}", broken.name);
            row.add_broken(!wrong.is_empty());
            if wrong.is_empty() {
                uncaught.push(format!("{}: {}", self.name, broken.name));
            }
        }
        uncaught
    }

    fn print_frames(&self) {
        let said: Vec<String> = self
            .testimony
            .report
            .iter()
            .filter(|(word, _)| word != "block")
            .map(|(word, rest)| format!("{word} {rest}"))
            .collect();
        println!("{}: {}", self.name, said.join(", "));
        let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
        for kind in &self.testimony.kinds {
            *kinds.entry(*kind).or_default() += 1;
        }
        println!("  frames: {kinds:?}");
    }
}

/// Lets a kernel judge each level and each broken filter; `None` if Debian does not serve it.
fn story(name: &str, shape: &Shape) -> Option<Story> {
    if name == arm64::NAME {
        let folder = folder(&format!("oracle/arm64-{}", shape.name));
        let (version, memory) = arm64::memory(shape, &folder);
        return Some(judge_memory(name, &version, shape, &folder, &memory));
    }
    let lab = Lab::open(&folder("kernels"), LabOptions::default()).unwrap();
    let build = match lab.build(&name.parse().unwrap(), &|_| {}) {
        Ok(build) => build,
        Err(error) if name != SAMPLE => {
            println!("{name}: skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let folder = folder(&format!("oracle/{}-{}", build.version, shape.name));
    let memory = memory_of(&build, shape, &folder);
    Some(judge_memory(name, &build.version, shape, &folder, &memory))
}

/// Judges the memory of a guest, which is in `folder`, and removes it.
fn judge_memory(name: &str, version: &str, shape: &Shape, folder: &Path, memory: &Path) -> Story {
    let start = Instant::now();
    let dump = open(memory, shape, None);
    let title = format!("{name} {version}, {}", shape.name);
    let witness = Witness::new(title, dump);
    witness.print_frames();
    let mut row = Row::new(name, version, shape, &witness.testimony);
    let wrong = witness.judge_filter(&mut row);
    let uncaught = witness.judge_broken(shape, &mut row);
    println!("  judged in {:.0} s", start.elapsed().as_secs_f64());
    println!("{}", row.line(witness.listed_by_kernel));
    std::fs::remove_dir_all(folder).unwrap();
    let wrong = wrong
        .iter()
        .map(|wrong| format!("{}: {wrong}", witness.name))
        .collect();
    Story { wrong, uncaught }
}

/// All kernels of this run: each boots once, for all tests.
static STORIES: LazyLock<Vec<Story>> = LazyLock::new(|| {
    println!("{}", row::HEAD);
    if std::env::var_os("MARVIN_FULL").is_none() {
        return story(SAMPLE, &PLAIN).into_iter().collect();
    }
    let chosen = std::env::var("MARVIN_ORACLE_KERNELS").unwrap_or(KERNELS.join(","));
    let mut stories = Vec::new();
    let shapes = std::env::var("MARVIN_ORACLE_SHAPES");
    for name in chosen.split(',') {
        let is_wanted = |shape: &&Shape| match &shapes {
            Ok(shapes) => shapes.split(',').any(|wanted| wanted == shape.name),
            Err(_) if name == arm64::NAME => shape.name == PLAIN.name,
            Err(_) => name == SAMPLE || [PLAIN.name, GIANT.name].contains(&shape.name),
        };
        let shapes = SHAPES.iter().filter(is_wanted);
        stories.extend(shapes.filter_map(|shape| story(name, shape)));
    }
    stories
});

#[test]
fn kernels_flags_confirm_kept_and_dropped_pages() {
    let wrong: Vec<&str> = STORIES
        .iter()
        .flat_map(|story| story.wrong.iter().map(String::as_str))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kernels_flags_catch_broken_filters() {
    assert!(!STORIES.is_empty(), "a kernel judged");
    let uncaught: Vec<&str> = STORIES
        .iter()
        .flat_map(|story| story.uncaught.iter().map(String::as_str))
        .collect();
    assert!(uncaught.is_empty(), "{}", uncaught.join("\n"));
}

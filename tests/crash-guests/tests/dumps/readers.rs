//! The programs around a dump: makedumpfile, the tested filter, and drgn, which reads their output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::bitmaps::Bitmap;

/// Levels to compare: all, all but zero pages, free pages only, zero pages only.
pub(crate) const LEVELS: [u32; 4] = [31, 30, 16, 1];
/// Time limit of a program, in seconds.
const PATIENCE_S: &str = "600";

/// A script that walks all tasks and slab caches, and prints their numbers.
const WALK: &str = "
import drgn, sys
from drgn.helpers.linux.pid import for_each_task
from drgn.helpers.linux.slab import for_each_slab_cache
program = drgn.Program()
program.set_core_dump(sys.argv[1])
program.load_debug_info([sys.argv[2]])
tasks = sum(1 for task in for_each_task(program) if task.comm.string_())
print(tasks, 'tasks,', sum(1 for _ in for_each_slab_cache(program)), 'slab caches')
";

/// A script that counts the free pages on the lists of all processors.
const LISTED: &str = "
import drgn, sys
from drgn.helpers.linux.cpumask import for_each_possible_cpu
from drgn.helpers.linux.list import list_for_each
from drgn.helpers.linux.mmzone import for_each_online_pgdat
from drgn.helpers.linux.percpu import per_cpu_ptr
program = drgn.Program()
program.set_core_dump(sys.argv[1])
program.load_debug_info([sys.argv[2]])
pages = 0
# Of a huge page, which one entry of the level above the last maps.
huge = int(program['PAGE_SHIFT']) - 3
for node in for_each_online_pgdat(program):
    for zone in node.node_zones:
        for cpu in for_each_possible_cpu(program):
            for n, head in enumerate(per_cpu_ptr(zone.per_cpu_pageset, cpu).lists):
                order = n // 3 if n < 12 else huge
                pages += sum(1 << order for _ in list_for_each(head.address_of_()))
print(pages)
";

/// A program that filters a vmcore.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    words: &'static [&'static str],
}

impl Program {
    /// Finds makedumpfile; prints if there is none.
    pub(crate) fn makedumpfile() -> Option<Self> {
        let path = std::env::var_os("MAKEDUMPFILE")
            .map_or_else(|| PathBuf::from("makedumpfile"), PathBuf::from);
        let there = Command::new(&path).arg("-v").output().is_ok();
        if !there {
            println!(
                "not checked: what is left out, for there is no makedumpfile (apt-get install makedumpfile)"
            );
        }
        there.then_some(Self {
            path,
            words: &["-l", "-f", "--message-level", "31"],
        })
    }

    /// Finds the filter to test; prints if none was named.
    pub(crate) fn marvin_dump() -> Option<Self> {
        let path = std::env::var_os("MARVIN_DUMP").map(PathBuf::from);
        if path.is_none() {
            println!("not checked: our own filter, for MARVIN_DUMP names none");
        }
        path.map(|path| Self {
            path,
            words: &["-f", "--json"],
        })
    }

    fn run(&self, level: u32, from: &Path, to: &Path) -> Output {
        let mut command = Command::new("timeout");
        command
            .arg(PATIENCE_S)
            .arg(&self.path)
            .args(self.words)
            .args(["-d", &level.to_string()])
            .args([from, to]);
        command.stdin(Stdio::null()).output().unwrap()
    }
}

/// Filters a vmcore and returns the remaining pages, and how many pages on per-processor lists
/// Marvin's filter found, which makedumpfile ignores.
pub(crate) fn dumped(program: &Program, level: u32, from: &Path, to: &Path) -> (Bitmap, u64) {
    let output = program.run(level, from, to);
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{} -d {level} {}: {said}",
        program.path.display(),
        from.display()
    );
    let listed = said.lines().find_map(|line| {
        line.trim()
            .strip_prefix("\"free_listed\": ")?
            .trim_end_matches(',')
            .parse()
            .ok()
    });
    (Bitmap::of(to), listed.unwrap_or_default())
}

/// Returns whether makedumpfile supports the kernel by its own account. For others it drops too
/// much or too little: 1.7.2 drops slab pages of 6.12, and keeps the tails of its huge pages.
pub(crate) fn knows(makedumpfile: &Program, vmcore: &Path, scratch: &Path) -> bool {
    let output = makedumpfile.run(31, vmcore, scratch);
    let said = [output.stdout, output.stderr].concat();
    let knows = !String::from_utf8_lossy(&said).contains("The kernel version is not supported");
    if !knows {
        println!(
            "differences are shown and allowed: this makedumpfile does not know the kernel (MAKEDUMPFILE=newer)"
        );
    }
    knows
}

/// Lets drgn walk a dump, if drgn and the kernel's debug information are there.
pub(crate) fn walk(dump: &Path, release: &str) {
    let Some(said) = drgn(WALK, dump, release) else {
        return;
    };
    println!("{}: {}", dump.display(), said.trim());
    let tasks: u32 = said.split(' ').next().unwrap().parse().unwrap();
    // The processes that hold memory, and the kernel's own.
    assert!(tasks > 20, "{said}");
}

/// Has drgn walk dumps whose writer was killed when its file had these parts of its size (percent).
pub(crate) fn walk_cut(filter: &Program, vmcore: &Path, folder: &Path, release: &str) {
    let whole = folder.join("whole");
    let cut = folder.join("cut");
    assert!(filter.run(31, vmcore, &whole).status.success());
    let size = std::fs::metadata(&whole).unwrap().len();
    let Some(expected) = drgn(WALK, &whole, release) else {
        return;
    };
    let tasks = crash_tasks(&whole, release);
    println!("whole: {}, {tasks:?} tasks of crash", expected.trim());
    for part in [75, 50] {
        // The kernel kills a program that writes beyond the limit.
        let limited = format!(
            "ulimit -f {}; exec \"$0\" --threads 1 -f -d 31 \"$1\" \"$2\"",
            size * part / 100 / 1024
        );
        let mut command = Command::new("bash");
        let ended = command
            .args(["-c", &limited])
            .arg(&filter.path)
            .args([vmcore, &cut])
            .output()
            .unwrap();
        assert!(!ended.status.success(), "it was killed");
        let found = drgn(WALK, &cut, release).unwrap();
        println!("killed at {part} %: {}", found.trim());
        assert_eq!(found, expected, "at {part} %");
        assert_eq!(crash_tasks(&cut, release), tasks, "of crash at {part} %");
    }
}

/// Lets crash list the tasks of a dump, which may be incomplete, and returns their number; prints
/// why not.
fn crash_tasks(dump: &Path, release: &str) -> Option<usize> {
    let (Some(crash), Some(vmlinux)) = (std::env::var_os("CRASH"), vmlinux(release)) else {
        println!("not checked: reading with crash, for CRASH names no program");
        return None;
    };
    let script = "printf 'ps\\nquit\\n' | timeout $0 \"$1\" --zero_excluded \"$2\" \"$3\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, PATIENCE_S])
        .args([crash, vmlinux])
        .arg(dump);
    let said = command.output().unwrap().stdout;
    let is_task = |line: &&str| {
        let mut words = line.trim_start_matches('>').split_whitespace();
        (0..3).all(|_| words.next().is_some_and(|word| word.parse::<u32>().is_ok()))
    };
    Some(
        String::from_utf8_lossy(&said)
            .lines()
            .filter(is_task)
            .count(),
    )
    .filter(|tasks| *tasks > 20)
}

/// Lets drgn count the free pages on per-processor lists of a vmcore.
pub(crate) fn listed(vmcore: &Path, release: &str) -> Option<u64> {
    drgn(LISTED, vmcore, release).map(|said| said.trim().parse().unwrap())
}

/// Runs a script with drgn, or prints why not.
fn drgn(script: &str, dump: &Path, release: &str) -> Option<String> {
    let python = std::env::var_os("DRGN").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let vmlinux = vmlinux(release)?;
    let mut command = Command::new("timeout");
    let output = command
        .arg(PATIENCE_S)
        .arg(python)
        .args(["-c", script])
        .arg(dump)
        .arg(vmlinux)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "drgn {}: {}",
        dump.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the kernel's debug information, or prints why not.
fn vmlinux(release: &str) -> Option<OsString> {
    let Some(vmlinux) = std::env::var_os("DRGN_VMLINUX") else {
        println!(
            "not checked: reading with drgn and crash, for DRGN_VMLINUX names no vmlinux with debug information"
        );
        return None;
    };
    if !vmlinux.to_string_lossy().ends_with(release) {
        println!(
            "not checked: reading with drgn and crash, for the vmlinux that DRGN_VMLINUX names is not called vmlinux-{release}"
        );
        return None;
    }
    Some(vmlinux)
}

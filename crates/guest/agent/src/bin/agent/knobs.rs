//! `marvin-agent prepare` and `restore`: turn the knobs of a machine for measuring, and turn them
//! back.
//!
//! Turned: the governor of the processors' frequency (performance) and turbo (off), because both
//! make a cost depend on what ran before and on the temperature. Dropped: caches. Left as they are,
//! and written down: huge pages, swap, idle states, hyperthreads and the layout's randomization,
//! because they are the kernel's and the machine's own behaviour; and the watchdog by NMI, because
//! it is what notices a kernel under test that hangs with interrupts off, and an interrupt
//! every few seconds costs less than any difference that can be measured.
//!
//! `prepare` plays back what an earlier one has left, reads all knobs, has them on the disk in the
//! undo file, and only then turns the first. So whenever it is killed, `restore` sets back
//! everything. No knob outlives a reboot, so the file of an earlier boot is removed and sets
//! nothing.

use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::undo::{self, Undo};

const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const GOVERNOR: &str = "scaling_governor";
/// What the kernel may change with the governor or with turbo; set back after them.
const FOLLOWERS: [&str; 3] = [
    "energy_performance_preference",
    "scaling_max_freq",
    "scaling_setspeed",
];
/// Knobs that are left as they are.
const LEFT: [(&str, &str); 6] = [
    ("aslr", "/proc/sys/kernel/randomize_va_space"),
    ("hyperthreads", "/sys/devices/system/cpu/smt/control"),
    (
        "idle_governor",
        "/sys/devices/system/cpu/cpuidle/current_governor_ro",
    ),
    ("nmi_watchdog", "/proc/sys/kernel/nmi_watchdog"),
    ("swappiness", "/proc/sys/vm/swappiness"),
    (
        "transparent_hugepage",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ),
];
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// What a knob says that has no meaning at present.
const UNSUPPORTED: &str = "<unsupported>";

/// The files of the machine: `/`, or a make-believe one in tests.
pub(crate) struct Tree {
    root: PathBuf,
    /// How many more changes happen; tests use it to stop between any two.
    changes_left: Cell<usize>,
}

/// A knob to be turned, or set back.
struct Knob {
    path: String,
    before: String,
    /// What it shall say; none for a knob that only follows another.
    wanted: Option<&'static str>,
}

impl Tree {
    pub(crate) fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            changes_left: Cell::new(usize::MAX),
        }
    }

    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the first line of a file, without spaces around it; nothing if it has none.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        let text = fs::read(self.place(path)).ok()?;
        let text = String::from_utf8_lossy(&text);
        Some(text.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
    }

    /// Returns the names in a folder that begin so, sorted by their number.
    pub(crate) fn names(&self, folder: &str, start: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(folder)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        names
    }

    /// Changes something, unless a test says that the process is dead by now.
    fn change(&self, action: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let left = self
            .changes_left
            .get()
            .checked_sub(1)
            .ok_or_else(|| io::Error::other("dead"))?;
        self.changes_left.set(left);
        action()
    }

    fn turn(&self, path: &str, value: &str) -> io::Result<()> {
        self.change(|| {
            let mut file = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(self.place(path))?;
            file.write_all(value.as_bytes())
        })
    }
}

/// Prepares the machine and returns a line for each knob.
pub(crate) fn prepare(tree: &Tree, file: &Path) -> io::Result<Vec<String>> {
    restore(tree, file)?;
    let knobs = knobs(tree);
    let values = knobs
        .iter()
        .map(|knob| (knob.path.clone(), knob.before.clone()))
        .collect();
    let undo = Undo {
        boot: boot(tree),
        values,
    };
    tree.change(|| undo.write_beside(file))?;
    tree.change(|| undo::put(file))?;
    let mut lines: Vec<String> = LEFT
        .iter()
        .filter_map(|(name, path)| {
            tree.line(path)
                .map(|value| line(name, &chosen(&value), &chosen(&value)))
        })
        .collect();
    let mut turned: Vec<(String, Vec<String>)> = Vec::new();
    for knob in &knobs {
        let Some(wanted) = knob.wanted else { continue };
        let result = if knob.before == wanted {
            Ok(())
        } else {
            tree.turn(&knob.path, wanted)
        };
        let after = match result {
            Ok(()) => tree.line(&knob.path).unwrap_or_default(),
            Err(error) => format!("refused: {error}"),
        };
        let text = line(kind(&knob.path), &knob.before, &after);
        match turned.iter_mut().find(|(known, _)| *known == text) {
            Some((_, policies)) => policies.push(policy(&knob.path)),
            None => turned.push((text, vec![policy(&knob.path)])),
        }
    }
    // Policies that are alike share a line; it names them where they differ.
    let groups = |start: &str| {
        turned
            .iter()
            .filter(|(text, _)| text.starts_with(start))
            .count()
    };
    let several = groups("knob governor ") > 1;
    lines.extend(turned.iter().map(
        |(text, policies)| match text.strip_prefix("knob governor ") {
            Some(rest) if several => format!("knob governor.{} {rest}", policies.join(",")),
            _ => text.clone(),
        },
    ));
    lines.push(match drop_caches(tree) {
        Ok(()) => line("caches", "kept", "dropped"),
        Err(error) => line("caches", "kept", &format!("refused: {error}")),
    });
    Ok(lines)
}

/// Sets everything back, removes the undo file, and returns a line for each knob that was turned.
pub(crate) fn restore(tree: &Tree, file: &Path) -> io::Result<Vec<String>> {
    let Some(undo) = Undo::read(file)? else {
        return Ok(Vec::new());
    };
    if let Some((path, _)) = undo.values.iter().find(|(path, _)| !is_knob(path)) {
        return Err(io::Error::other(format!(
            "{}: {path} is no knob; no knob was turned",
            file.display()
        )));
    }
    let (mut lines, mut refused) = (Vec::new(), Vec::new());
    // After a reboot every knob is what the kernel makes of it.
    let values = if undo.boot == boot(tree) {
        undo.values.as_slice()
    } else {
        &[]
    };
    for (path, before) in values.iter().rev() {
        // A knob that is gone, as that of a processor that was switched off, needs nothing.
        let Some(now) = tree.line(path).filter(|now| now != before) else {
            continue;
        };
        match tree.turn(path, before) {
            Ok(()) => lines.push(line(
                &format!("{}.{}", kind(path), policy(path)),
                &now,
                before,
            )),
            Err(error) => refused.push(format!("{path} from {now} to {before}: {error}")),
        }
    }
    if !refused.is_empty() {
        return Err(io::Error::other(format!(
            "cannot set back {}",
            refused.join("; ")
        )));
    }
    tree.change(|| undo::remove(file))?;
    Ok(lines)
}

/// Returns what is to be turned, each after those that follow it.
fn knobs(tree: &Tree) -> Vec<Knob> {
    let mut knobs = Vec::new();
    let mut add = |path: String, wanted: Option<&'static str>| {
        if let Some(before) = tree.line(&path).filter(|before| before != UNSUPPORTED) {
            knobs.push(Knob {
                path,
                before,
                wanted,
            });
        }
    };
    let policies = tree.names(CPUFREQ, "policy");
    for policy in &policies {
        FOLLOWERS
            .iter()
            .for_each(|name| add(format!("{CPUFREQ}/{policy}/{name}"), None));
    }
    if tree.line(NO_TURBO).is_some() {
        add(NO_TURBO.to_owned(), Some("1"));
    } else {
        add(BOOST.to_owned(), Some("0"));
    }
    for policy in &policies {
        add(
            format!("{CPUFREQ}/{policy}/{GOVERNOR}"),
            Some("performance"),
        );
    }
    knobs
}

/// Returns whether `prepare` may have turned this: an undo file sets nothing else.
fn is_knob(path: &str) -> bool {
    let of_policy = |rest: &str| {
        let (number, name) = rest.split_once('/')?;
        number.parse::<u32>().ok()?;
        (name == GOVERNOR || FOLLOWERS.contains(&name)).then_some(())
    };
    let policy = path
        .strip_prefix(CPUFREQ)
        .and_then(|rest| rest.strip_prefix("/policy"));
    [NO_TURBO, BOOST].contains(&path) || policy.and_then(of_policy).is_some()
}

/// Returns the name of a knob for people: turbo has two paths, and either says whether it is on in
/// its own way.
fn kind(path: &str) -> &str {
    match path {
        NO_TURBO => "no_turbo",
        path if path.ends_with(GOVERNOR) => "governor",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}

fn policy(path: &str) -> String {
    let policy = path
        .strip_prefix(CPUFREQ)
        .and_then(|rest| rest.strip_prefix('/')?.split_once('/'));
    policy.map_or("all", |(policy, _)| policy).to_owned()
}

fn line(name: &str, before: &str, after: &str) -> String {
    format!("knob {name} {} {after}", before.replace(' ', "_"))
}

/// Returns the choice in brackets, or else the whole.
fn chosen(value: &str) -> String {
    let choice = value
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    choice.map_or(value, |(choice, _)| choice).replace(' ', "_")
}

fn boot(tree: &Tree) -> String {
    tree.line(BOOT_ID).unwrap_or_default()
}

fn drop_caches(tree: &Tree) -> io::Result<()> {
    if tree.root == Path::new("/") {
        // SAFETY: sync takes nothing. Only clean pages can be dropped.
        unsafe { libc::sync() };
    }
    tree.turn(DROP_CACHES, "3")
}

#[cfg(test)]
pub(crate) mod tests;

//! Knobs of make-believe machines: what is turned, and that `restore` sets back everything wherever
//! `prepare` dies.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{BOOT_ID, Tree, prepare, restore};

/// A machine's files in a folder that goes with it.
pub(crate) struct MakeBelieve {
    folder: PathBuf,
}

impl MakeBelieve {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "marvin-knobs-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let made = Self {
            folder: std::env::temp_dir().join(name),
        };
        fs::create_dir_all(made.folder.join("root")).unwrap();
        files.iter().for_each(|(path, text)| made.set(path, text));
        made
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::below(&self.folder.join("root"))
    }

    fn set(&self, path: &str, text: &str) {
        let place = self.tree().place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    fn undo(&self) -> PathBuf {
        self.folder.join("undo")
    }

    /// Returns all files but the one that says only what was done.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        fn walk(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, files);
                } else if !path.ends_with("drop_caches") {
                    files.insert(path.clone(), fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(&self.folder.join("root"), &mut files);
        files
    }
}

impl Drop for MakeBelieve {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

const POLICY: &str = "/sys/devices/system/cpu/cpufreq/policy";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A laptop with two processors of unlike governors.
fn laptop() -> MakeBelieve {
    let of = |number: u32, name: &str| format!("{POLICY}{number}/{name}");
    let files = [
        (of(0, "scaling_governor"), "powersave"),
        (of(0, "energy_performance_preference"), "balance_power"),
        (of(0, "scaling_max_freq"), "3500000"),
        (of(0, "scaling_setspeed"), "<unsupported>"),
        (of(1, "scaling_governor"), "schedutil"),
        (NO_TURBO.to_owned(), "0"),
        (THP.to_owned(), "always [madvise] never"),
        (BOOT_ID.to_owned(), "boot-1"),
        ("/proc/sys/vm/drop_caches".to_owned(), ""),
    ];
    MakeBelieve::new(&files.each_ref().map(|(path, text)| (path.as_str(), *text)))
}

#[test]
fn prepared_machine_is_set_and_set_back() {
    let machine = laptop();
    let before = machine.files();
    let lines = prepare(&machine.tree(), &machine.undo()).unwrap();
    let expected = [
        "knob transparent_hugepage madvise madvise",
        "knob no_turbo 0 1",
        "knob governor.policy0 powersave performance",
        "knob governor.policy1 schedutil performance",
        "knob caches kept dropped",
    ];
    assert_eq!(lines, expected);
    assert_ne!(machine.files(), before);
    let lines = restore(&machine.tree(), &machine.undo()).unwrap();
    let expected = [
        "knob governor.policy1 performance schedutil",
        "knob governor.policy0 performance powersave",
        "knob no_turbo.all 1 0",
    ];
    assert_eq!(lines, expected);
    assert_eq!(machine.files(), before);
    assert!(!machine.undo().exists());
    assert!(
        restore(&machine.tree(), &machine.undo())
            .unwrap()
            .is_empty(),
        "there is nothing left to do"
    );
}

#[test]
fn policies_that_are_alike_share_a_line() {
    let machine = laptop();
    machine.set(&format!("{POLICY}1/scaling_governor"), "powersave");
    let lines = prepare(&machine.tree(), &machine.undo()).unwrap();
    assert!(
        lines.contains(&"knob governor powersave performance".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn followers_are_set_back_after_their_governor() {
    let machine = laptop();
    prepare(&machine.tree(), &machine.undo()).unwrap();
    // What a driver does by itself when its governor changes.
    machine.set(
        &format!("{POLICY}0/energy_performance_preference"),
        "performance",
    );
    machine.set(&format!("{POLICY}0/scaling_max_freq"), "2100000");
    let lines = restore(&machine.tree(), &machine.undo()).unwrap();
    let expected = [
        "knob scaling_max_freq.policy0 2100000 3500000",
        "knob energy_performance_preference.policy0 performance balance_power",
    ];
    assert_eq!(lines[3..], expected, "{lines:?}");
}

#[test]
fn death_at_any_step_is_undone() {
    for twice in [false, true] {
        let mut steps = 0;
        loop {
            let machine = laptop();
            let before = machine.files();
            if twice {
                prepare(&machine.tree(), &machine.undo()).unwrap();
            }
            let dying = Tree {
                changes_left: Cell::new(steps),
                ..machine.tree()
            };
            let ended = prepare(&dying, &machine.undo());
            let is_done = dying.changes_left.get() > 0;
            assert!(ended.is_ok() || !is_done);
            // The one that sets back may die as well.
            for steps in 0..3 {
                let dying = Tree {
                    changes_left: Cell::new(steps),
                    ..machine.tree()
                };
                drop(restore(&dying, &machine.undo()));
            }
            restore(&machine.tree(), &machine.undo()).unwrap();
            assert_eq!(machine.files(), before, "died after {steps} steps");
            assert!(!machine.undo().exists());
            if is_done {
                break;
            }
            steps += 1;
        }
        assert!(steps >= 6, "{steps}");
    }
}

#[test]
fn undo_of_an_earlier_boot_sets_nothing() {
    let machine = laptop();
    prepare(&machine.tree(), &machine.undo()).unwrap();
    machine.set(BOOT_ID, "boot-2");
    machine.set(&format!("{POLICY}0/scaling_governor"), "ondemand");
    let after = machine.files();
    assert!(
        restore(&machine.tree(), &machine.undo())
            .unwrap()
            .is_empty()
    );
    assert_eq!(machine.files(), after);
    assert!(!machine.undo().exists());
}

#[test]
fn damaged_undo_file_sets_nothing() {
    let machine = laptop();
    prepare(&machine.tree(), &machine.undo()).unwrap();
    let (after, text) = (machine.files(), fs::read_to_string(machine.undo()).unwrap());
    for damaged in [
        text[..text.len() / 2].to_owned(),
        text.replace("powersave", "powersafe"),
        String::new(),
    ] {
        fs::write(machine.undo(), damaged).unwrap();
        let error = restore(&machine.tree(), &machine.undo())
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("undo: the undo file is damaged; no knob was turned"),
            "{error}"
        );
        assert!(prepare(&machine.tree(), &machine.undo()).is_err());
        assert_eq!(machine.files(), after);
    }
}

#[test]
fn undo_file_sets_nothing_but_knobs() {
    let machine = laptop();
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/sys/devices/system/cpu/cpufreq/policy0/../x/scaling_governor",
    ] {
        let values = vec![(path.to_owned(), "|/bin/evil".to_owned())];
        let undo = crate::undo::Undo {
            boot: "boot-1".into(),
            values,
        };
        fs::write(machine.undo(), undo.to_text()).unwrap();
        let error = restore(&machine.tree(), &machine.undo())
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with(&format!("{path} is no knob; no knob was turned")),
            "{error}"
        );
    }
}

#[test]
fn refused_knob_says_why() {
    let machine = laptop();
    // Not even root can write to a folder.
    let place = machine.tree().place("/proc/sys/vm/drop_caches");
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    let lines = prepare(&machine.tree(), &machine.undo()).unwrap();
    let line = lines.last().unwrap();
    assert!(
        line.starts_with("knob caches kept refused: Is a directory"),
        "{line}"
    );
}

#[test]
fn machine_without_knobs_is_prepared() {
    let machine = MakeBelieve::new(&[(BOOT_ID, "boot-1")]);
    let lines = prepare(&machine.tree(), &machine.undo()).unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        restore(&machine.tree(), &machine.undo())
            .unwrap()
            .is_empty()
    );
}

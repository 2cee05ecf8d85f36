//! The QEMU of `marvin setup`: the same machine as this host's own, to the last instruction.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::fresh::{fresh, remove};
use crate::{folder, format_output, marvin, names};

/// Returns a directory with all programs of PATH but QEMU.
fn path_without_qemu() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for entry in std::env::split_paths(&path)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten()
    {
        let place = folder.path().join(entry.file_name());
        let is_qemu = entry.file_name().to_string_lossy().starts_with("qemu-");
        // The first of a name is the one that PATH means.
        if !is_qemu && place.symlink_metadata().is_err() {
            symlink(entry.path(), place).unwrap();
        }
    }
    folder
}

/// What a data directory holds: the machines' ids, and all samples.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Samples {
    machines: Vec<String>,
    samples: Vec<String>,
}

/// Has the program, which knows its data directory, export what it measured.
pub(crate) fn read_samples(program: &mut Command) -> Samples {
    let exported = program
        .args(["export", "--format", "csv"])
        .output()
        .unwrap();
    let table = String::from_utf8(exported.stdout).unwrap();
    let mut samples = Vec::new();
    let mut machines = Vec::new();
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|one| *one == name).unwrap();
    let (machine, value) = (column("machine"), column("sample"));
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        machines.push(cells[machine].to_owned());
        samples.push(cells[value].to_owned());
    }
    machines.sort_unstable();
    machines.dedup();
    samples.sort_unstable();
    assert!(samples.len() >= 60, "{table}");
    Samples { machines, samples }
}

/// Returns whether `marvin setup` found neither today's packages nor a snapshot service; says so.
pub(crate) fn archive_moved_on(text: &str) -> bool {
    let moved =
        text.starts_with("exit 5") && text.contains("cannot fetch http://snapshot.debian.org/");
    if moved {
        println!("skipped: the archive has newer packages, and no snapshot service is reachable");
    }
    moved
}

/// Measures the two kernels with the programs of a PATH.
fn measure(home: &Path, path: &Path) -> Samples {
    let [older, newer] = names();
    let output = marvin(home)
        .env("PATH", path)
        .args(["compare", &older, &newer, "--quick", "-q"])
        .args(["--workload", "getppid,fork-exit"])
        .output()
        .unwrap();
    let text = format_output(&output, home);
    assert!(text.contains("fork-exit "), "{text}");
    read_samples(&mut marvin(home))
}

#[test]
fn qemu_of_setup_is_the_same_machine() {
    // It stays from one time to the next: 27 MB.
    let home = folder("setup-home");
    for entry in std::fs::read_dir(&home).into_iter().flatten().flatten() {
        if entry.file_name() != "qemu" {
            remove(&entry.path());
        }
    }
    let set_up = marvin(&home)
        .args(["setup", "--force", "-q"])
        .output()
        .unwrap();
    let text = format_output(&set_up, &home);
    if archive_moved_on(&text) {
        return;
    }
    assert!(
        text.starts_with("exit 0") && text.contains("gives the reference numbers: QEMU 7.2"),
        "{text}"
    );
    // Another one that is named overrules it; it itself does not.
    let again = |qemu: &Path| {
        let output = marvin(&home)
            .env("MARVIN_QEMU", qemu)
            .args(["setup", "--force", "-q"])
            .output()
            .unwrap();
        format_output(&output, &home)
    };
    let overruled = again(Path::new("/no/qemu"));
    assert!(
        overruled.contains("it is not used: MARVIN_QEMU names /no/qemu, which Marvin uses instead"),
        "{overruled}"
    );
    let itself = again(&home.join("qemu/debian-7.2.22/bin/qemu-system-x86_64"));
    assert!(!itself.contains("not used"), "{itself}");
    let without = path_without_qemu();
    let bundled = measure(&home, without.path());
    let usual_path = std::env::var_os("PATH").unwrap();
    let usual = measure(&fresh("setup-usual-home"), Path::new(&usual_path));
    assert_eq!(bundled, usual);
}

//! The walls around QEMU and around builds: what is behind them sees nothing of this host, and no
//! number changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::interrupted::until;
use crate::{is_left_to_full, marvin, names, output_of};

/// Returns the QEMU processes whose scratch directory is in this data directory.
fn qemu_of(home: &Path) -> Vec<PathBuf> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|process| {
            let name = fs::read_to_string(process.join("comm"));
            let cwd = fs::read_link(process.join("cwd"));
            name.is_ok_and(|name| name.starts_with("qemu-system"))
                && cwd.is_ok_and(|cwd| cwd.starts_with(home.join("scratch")))
        })
        .collect()
}

/// Returns the permissions of a file.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn qemu_behind_walls_gives_the_same_samples() {
    if is_left_to_full("make bench compares whole suites, too") {
        return;
    }
    let name = &names()[1];
    let samples = |home: &str, arguments: &[&str]| {
        let home = fresh(home);
        let run = [
            &[
                "run",
                name,
                "--workload",
                "getppid,fork-exit",
                "--seeds",
                "1",
                "-q",
            ],
            arguments,
        ]
        .concat();
        assert!(output_of(&home, &run).starts_with("exit 0"));
        let rows = fresh("walled-rows");
        let other = fresh("walled-other");
        let export = [
            "export",
            "--rows",
            "samples",
            "--format",
            "csv",
            "--output",
            &rows.display().to_string(),
        ];
        assert!(output_of(&home, &export).starts_with("exit 0"));
        fs::write(&other, "").unwrap();
        assert_eq!(
            mode(&rows),
            mode(&other),
            "the permissions of the user's umask"
        );
        let rows = fs::read_to_string(&rows).unwrap();
        // The run and its time come first.
        let values: Vec<String> = rows
            .lines()
            .filter(|line| line.starts_with("run_"))
            .filter_map(|line| line.splitn(10, ',').nth(9).map(str::to_owned))
            .collect();
        assert!(values.len() == 32, "{rows}");
        values
    };
    let walled = samples("walled-home", &[]);
    let open = samples("open-home", &["--no-sandbox"]);
    assert!(walled == open, "{walled:?}\n{open:?}");
}

#[test]
fn qemu_has_no_rights_and_no_secrets() {
    let home = fresh("rights-home");
    let name = &names()[1];
    let mut run = marvin(&home);
    let run = run
        .args(["run", name, "--workload", "getppid", "--seeds", "2"])
        .env("PGPASSWORD", "sesame");
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a machine works", || {
        qemu_of(&home)
            .iter()
            .any(|qemu| fs::read_to_string(qemu.join("status")).is_ok())
    });
    let mut seen = 0;
    while run.try_wait().unwrap().is_none() {
        for qemu in qemu_of(&home) {
            let [status, environment] = ["status", "environ"]
                .map(|file| fs::read_to_string(qemu.join(file)).unwrap_or_default());
            // It installs its filter during its start.
            if !status.contains("Seccomp:\t2") {
                continue;
            }
            assert!(
                status.contains("CapEff:\t0000000000000000")
                    && status.contains("CapBnd:\t0000000000000000"),
                "{status}"
            );
            assert!(status.contains("NoNewPrivs:\t1"), "{status}");
            let names: Vec<&str> = environment
                .split('\0')
                .filter_map(|line| Some(line.split_once('=')?.0))
                .collect();
            assert!(
                names
                    .iter()
                    .all(|name| ["PATH", "PWD", "OLDPWD"].contains(name)),
                "{names:?}"
            );
            let sees = |path: &str| {
                qemu.join("root")
                    .join(path.trim_start_matches('/'))
                    .exists()
            };
            if !sees("/usr/bin") {
                // It has just ended.
                continue;
            }
            seen += 1;
            assert!(!sees("/root") && !sees("/home") && !sees("/etc/passwd"));
            assert!(!sees(&home.join("marvin.db").display().to_string()));
            // Empty if it has just ended; otherwise only its own loopback.
            let network = fs::read_to_string(qemu.join("net/dev")).unwrap_or_default();
            assert!(network.matches(':').count() <= 1, "{network}");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(seen > 0);
}

#[test]
fn data_directory_is_private() {
    let home = fresh("private-home");
    assert!(
        output_of(&home, &["queue", "add", "deb:6.1", "--workload", "getppid"])
            .starts_with("exit 0")
    );
    assert_eq!(mode(&home), 0o700);
    for entry in fs::read_dir(&home).unwrap().flatten() {
        assert_eq!(mode(&entry.path()) & 0o077, 0, "{entry:?}");
    }
}

/// Reads variables and files, writes beside its directory, asks the network, and leaves links and a
/// process behind.
const HOSTILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@env | grep -q PGPASSWORD= && echo 'error: read a password' >&2 || true\n\
    \t@test ! -e $(SECRET) || echo 'error: read a file' >&2\n\
    \t@touch $(CURDIR)/written 2>/dev/null && echo 'error: wrote the source' >&2 || true\n\
    \t@touch $(O)/../written 2>/dev/null; setsid sleep 77.$(OWN) & true\n\
    \t@ln -s $(SECRET) $(O)/vmlinux; echo finished >&2\n";

#[test]
fn hostile_makefile_sees_no_secret_and_escapes_nowhere() {
    let home = fresh("hostile-home");
    let tree = Tree::new("hostile-tree");
    let secret = fresh("hostile-secret");
    fs::write(&secret, "sesame").unwrap();
    // Another run of this test may have one, too.
    let own = std::process::id().to_string();
    tree.file(
        "Makefile",
        &HOSTILE
            .replace("$(SECRET)", &secret.display().to_string())
            .replace("$(OWN)", &own),
    );
    tree.file("Kbuild", "");
    tree.commit("file", "");
    let mut build = marvin(&home);
    let build = build
        .args(["build", "git:main", "--tree", &tree.name()])
        .env("PGPASSWORD", "sesame");
    let output = crate::format_output(&build.output().unwrap(), &home);
    assert!(
        output.contains("vmlinux is no file")
            && !output.contains("error: read")
            && !output.contains("error: wrote"),
        "{output}"
    );
    let objects = fs::read_dir(home.join("workshop"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let objects = objects
        .filter(|path| path.display().to_string().contains("objects-"))
        .collect::<Vec<_>>();
    let log = fs::read_to_string(objects[0].join("marvin.log")).unwrap();
    assert_eq!(log, "finished\n");
    assert!(!objects[0].join("written").exists());
    let words_left = format!("sleep\x0077.{own}\0");
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let command_line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(command_line != words_left.as_bytes(), "{process:?}");
    }
}

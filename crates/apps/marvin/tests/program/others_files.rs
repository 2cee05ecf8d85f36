//! Files that others can write or name: a data directory of another user, a marvin.toml that every
//! user may change, a kernel of the queue that is a folder of the worker's host; and a file system
//! that has no locks.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use crate::compiled::compile_text;
use crate::fresh::fresh;
use crate::mistakes::is_root;
use crate::{format_output, marvin, output_of};

/// Another user than root.
const OTHER: u32 = 65_534;

#[test]
fn root_trusts_no_data_directory_of_others() {
    if !is_root() {
        println!("skipped: only root can give a directory to another user");
        return;
    }
    let folder = fresh("others-home");
    let [home, target] = ["home", "target"].map(|name| folder.join(name));
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(&target).unwrap();
    fs::write(target.join("precious"), "precious\n").unwrap();
    // Marvin empties `scratch`, and writes to `jobs`.
    for name in ["scratch", "jobs", "incoming"] {
        symlink(&target, home.join(name)).unwrap();
    }
    let is_refused = |why: &str| {
        for arguments in [
            &["runs"][..],
            &["gc"],
            &["work", "--once"],
            &["queue", "add", "deb:6.12"],
            &["explain", "--seconds", "1", "--verify", "--", "true"],
        ] {
            let output = output_of(&home, arguments);
            assert!(
                output.starts_with("exit 2") && output.contains(why),
                "{arguments:?} {output}"
            );
        }
        let found = fs::read_dir(&target).unwrap().count();
        assert_eq!(found, 1);
    };
    chown(&home, Some(OTHER), None).unwrap();
    is_refused("cannot trust HOME: it belongs to user 65534\nhint: run marvin as that user");
    chown(&home, Some(0), None).unwrap();
    // As lchown does.
    std::os::unix::fs::lchown(home.join("scratch"), Some(OTHER), None).unwrap();
    is_refused("cannot trust HOME/scratch: it belongs to user 65534");
    fs::remove_file(home.join("scratch")).unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
    is_refused("cannot trust HOME: every user may write to it");
    fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(home.join("machines"))
        .status();
    assert!(made.unwrap().success());
    is_refused("cannot trust HOME/machines: it is a pipe or a device");
    fs::remove_file(home.join("machines")).unwrap();
    // What root itself linked is root's decision.
    let output = output_of(&home, &["queue", "list"]);
    assert!(!output.contains("cannot trust"), "{output}");
}

#[test]
fn settings_that_everybody_may_write_are_refused() {
    let home = fresh("others-toml");
    fs::create_dir_all(&home).unwrap();
    let file = home.join("marvin.toml");
    fs::write(&file, "[[notify]]\nname = \"us\"\ncommand = [\"true\"]\n").unwrap();
    let check = || {
        output_of(
            Path::new("/nonexistent"),
            &["config", "check", "--config-file", file.to_str().unwrap()],
        )
    };
    assert!(check().starts_with("exit 0"), "{}", check());
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    assert!(
        check().starts_with("exit 2") && check().contains("every user may write to it"),
        "{}",
        check()
    );
}

#[test]
fn restricted_worker_builds_no_folder_of_its_host() {
    let home = fresh("others-tree");
    let tree = home.join("tree");
    fs::create_dir_all(&tree).unwrap();
    let touched = home.join("touched");
    let makefile = format!("$(shell touch {})\nall:\n", touched.display());
    fs::write(tree.join("Makefile"), makefile).unwrap();
    fs::write(tree.join("Kconfig"), "").unwrap();
    let settings = "[work]\nonly_named_trees = true\nattempts = 1\n";
    fs::write(home.join("marvin.toml"), settings).unwrap();
    let kernel = format!("tree:{}", tree.display());
    for kernel in [kernel.as_str(), "kernel.org:6.12@cc:other-cc"] {
        let added = output_of(&home, &["queue", "add", kernel, "--workload", "getppid"]);
        assert!(added.starts_with("exit 0"), "{added}");
    }
    let worked = output_of(&home, &["--no-sandbox", "work", "--once"]);
    assert!(worked.contains("done 0, failed 2"), "{worked}");
    assert!(!touched.exists());
    for job in ["1", "2"] {
        let why = output_of(&home, &["queue", "why", job]);
        assert!(why.contains("only_named_trees"), "{why}");
    }
}

/// A file system without locks, as NFS without its lock daemon.
const NO_LOCKS: &str = r"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
int flock(int file, int what) { errno = ENOLCK; return -1; }
static int control(int file, int what, long value) {
    if (what == F_SETLK || what == F_SETLKW || what == F_GETLK) { errno = ENOLCK; return -1; }
    return syscall(SYS_fcntl, file, what, value);
}
int fcntl(int file, int what, ...) {
    va_list rest; va_start(rest, what); long value = va_arg(rest, long); va_end(rest);
    return control(file, what, value);
}
int fcntl64(int file, int what, ...) {
    va_list rest; va_start(rest, what); long value = va_arg(rest, long); va_end(rest);
    return control(file, what, value);
}
";

#[test]
fn file_system_without_locks_is_named() {
    let home = fresh("no-locks");
    drop(store::Store::open(&*home).unwrap());
    let library = home.join("locks.so");
    compile_text(NO_LOCKS, &library, &["-shared", "-fPIC"]);
    // A reader waits for SQLite's lock first, for half a minute.
    for arguments in [&["runs"][..], &["work", "--once"]] {
        let mut program = marvin(&home);
        program.env("LD_PRELOAD", &library).args(arguments);
        let output = format_output(&program.output().unwrap(), &home);
        assert!(
            output.starts_with("exit 2") && output.contains("its file system has no locks"),
            "{arguments:?} {output}"
        );
        assert!(!output.contains("another"), "{output}");
    }
}

//! Completions, asked for as shells ask: the variable COMPLETE and the words of the line.

use std::path::Path;
use std::process::Command;

use model::UnixTime;
use store::Store;

use crate::bisected::Tree;
use crate::fresh::{Fresh, fresh};
use crate::{folder, images, marvin, output_of};

/// Attempts for candidates from the store, which have a deadline that a busy host may miss.
const ATTEMPTS: usize = 50;

fn home(name: &str) -> Fresh {
    let home = fresh(name);
    std::fs::create_dir_all(&home).unwrap();
    let store = Store::open(&*home).unwrap();
    crate::history::fill(&store);
    let build = store.runs(1).unwrap().remove(0).build;
    store
        .remember_kernel("deb:6.12", &build, UnixTime::new(1))
        .unwrap();
    home
}

/// Asks as bash does for the last of these words.
fn candidates(home: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = marvin(home);
    command
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", arguments.len().to_string());
    let output = command
        .args(["--", "marvin"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{arguments:?}: {output:?}"
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn names_of_each_kind_are_completed() {
    let home = home("completion-home");
    output_of(
        &home,
        &["queue", "add", "path:/dev/null", "--workload", "getppid"],
    );
    for (arguments, expected) in [
        (&["rep"][..], "report"),
        (&["compare", "deb:"], "deb:6.12"),
        (&["compare", "deb:6.12", "d"], "deb:6.12"),
        (&["run", "tr"], "tree:"),
        (&["run", "path:/etc/passw"], "path:/etc/passwd"),
        (&["report", "6.1."], "6.1.192"),
        (&["report", "6.1.192", "run_"], "run_000000000000"),
        (&["show", ""], "run_000000000000"),
        (&["run", "deb:6.12", "--suite", "sm"], "smoke"),
        (
            &["run", "deb:6.12", "--workload", "getppid,fault-a"],
            "getppid,fault-anon",
        ),
        (
            &["run", "deb:6.12", "--suite", "net", "--workload", "get"],
            "",
        ),
        (
            &["compare", "a", "b", "--workload", "tool:sysbench-c"],
            "tool:sysbench-cpu",
        ),
        (&["history", "fault-an"], "fault-anon"),
        (&["triage", ""], "cloud-amd64@6.12.100"),
        (&["alerts", "cloud"], "cloud-amd64@6.12.100"),
        (&["queue", "why", ""], "1"),
    ] {
        let mut attempts = (0..ATTEMPTS).map(|_| candidates(&home, arguments));
        let is_there = |found: &Vec<String>| found.iter().any(|one| one == expected);
        if expected.is_empty() {
            assert_eq!(
                attempts.next().unwrap(),
                Vec::<String>::new(),
                "{arguments:?}"
            );
        } else {
            assert!(
                attempts.any(|found| is_there(&found)),
                "{arguments:?}: {:?}",
                candidates(&home, arguments)
            );
        }
    }
}

/// Asks until a candidate is there, as candidates have a deadline.
fn check(home: &Path, arguments: &[&str], expected: &str) {
    let mut found = Vec::new();
    for _ in 0..ATTEMPTS {
        found = candidates(home, arguments);
        if found.iter().any(|one| one == expected) {
            return;
        }
    }
    panic!("{arguments:?}: {expected} is not in {found:?}");
}

#[test]
fn machines_and_configs_are_completed() {
    let home = home("completion-machines-home");
    let server = "[[machine]]\nname = \"testbox\"\nkind = \"ssh\"\nhost = \"testbox\"\n";
    std::fs::write(home.join("marvin.toml"), server).unwrap();
    for (arguments, expected) in [
        (&["run", "deb:6.12", "--on", "exact-"][..], "exact-smp"),
        (&["run", "deb:6.12", "--on", "exact,te"], "exact,testbox"),
        (&["queue", "add", "deb:6.12", "--on", "te"], "testbox"),
        (&["power", "te"], "testbox"),
        (&["build", "git:HEAD", "--config", "ti"], "tiny"),
        (
            &["build", "git:HEAD", "--config", "tiny+/etc/passw"],
            "tiny+/etc/passwd",
        ),
        (&["config", "in"], "init"),
    ] {
        check(&home, arguments, expected);
    }
}

#[test]
fn revisions_of_the_tree_are_completed() {
    let home = home("completion-revisions-home");
    let tree = Tree::new("completion-tree");
    tree.commit("Kbuild", "");
    tree.git(&["tag", "v6.12-good"]);
    let name = tree.name();
    for (arguments, expected) in [
        (&["run", "--tree", &name, "git:v6"][..], "git:v6.12-good"),
        (&["bisect", "--tree", &name, "v6"], "v6.12-good"),
        (
            &["series", "--tree", &name, "v6.12-good..ma"],
            "v6.12-good..main",
        ),
    ] {
        check(&home, arguments, expected);
    }
}

#[test]
fn packages_of_fetched_lists_are_completed() {
    let (home, _) = images();
    check(&home, &["run", "deb:6.1"], "deb:6.12");
    check(&home, &["run", "deb:6.12+am"], "deb:6.12+amd64");
}

#[test]
fn unusable_stores_give_no_candidates_silently() {
    let damaged = fresh("completion-damaged");
    std::fs::create_dir_all(&damaged).unwrap();
    std::fs::write(damaged.join("marvin.db"), "no database").unwrap();
    for home in [Path::new("/nonexistent"), Path::new("/dev/null"), &damaged] {
        for arguments in [
            &["show", "run_"][..],
            &["triage", "c"],
            &["report", "6"],
            &["queue", "why", "1"],
        ] {
            assert_eq!(
                candidates(home, arguments),
                Vec::<String>::new(),
                "{arguments:?}"
            );
        }
        assert_eq!(candidates(home, &["run", "gi"]), ["git:"]);
    }
    assert!(!Path::new("/nonexistent").exists());
}

/// Completes in a bash that has read the script.
#[test]
fn bash_keeps_words_with_colons_whole() {
    let home = home("completion-bash-home");
    let bin = folder("completion-bin");
    std::fs::create_dir_all(&bin).unwrap();
    drop(std::fs::remove_file(bin.join("marvin")));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_marvin"), bin.join("marvin")).unwrap();
    // As readline does: words split at colons and equal signs, and the last of them as second
    // argument.
    let script = r#"
        source <(marvin completions bash)
        ask() {
            COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9; shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            for _ in {1..50}; do
                _marvin_complete marvin "${COMP_WORDS[COMP_CWORD]}"
                [[ ${#COMPREPLY[@]} -gt 0 ]] && break
            done
            echo "${COMPREPLY[*]}"
        }
        ask 'marvin compare deb:6' marvin compare deb : 6
        ask 'marvin compare deb:' marvin compare deb :
        ask 'marvin run --suite=sm' marvin run --suite = sm
        ask 'marvin show run_0000000000000000 --for' marvin show run_0000000000000000 --art
        ask 'marvin triage cloud-amd64@6' marvin triage cloud-amd64@6
    "#;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command
        .args(["--norc", "-c", script])
        .env_clear()
        .env("PATH", path)
        .env("MARVIN_HOME", &*home);
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let expected = "6.12\n6.12\nsmoke\n--artifact\ncloud-amd64@6.12.100\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

//! Names and texts from outside that try to control a terminal, a mail, or a program for tables:
//! none leaves the program as it came.

use std::fs;
use std::path::Path;

use model::{FailureReason, Outcome, Stage, SubjectFailure, is_hostile};
use store::{Artifact, Store};

use crate::bisected::Tree;
use crate::fresh::{Fresh, fresh};
use crate::{images, is_left_to_full, marvin, stored};

/// Clears a screen, sets a title, returns to the start of a line, turns letters around, and is not
/// seen.
const EVIL: &str =
    "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}1m\u{7f}\u{202e}\u{2066}\u{200b}\u{feff}\u{61c}\u{2028}";

/// A source whose kernels do not build; the compiler's words are hostile too.
const MAKEFILE: &str =
    "tinyconfig olddefconfig:\n\t@touch $(O)/.config\nvmlinux:\n\t@cat fails >&2; exit 1\n";

/// A data directory in which every name is hostile.
fn lab(name: &str) -> Fresh {
    let home = fresh(name);
    fs::create_dir_all(&home).unwrap();
    let store = Store::open(&*home).unwrap();
    store.save_machine(&stored::machine()).unwrap();
    for (number, cost) in [(0, 100.0), (1, 130.0)] {
        stored::save_build(&store, number, &format!("6.{number}{EVIL}"));
        let failure = SubjectFailure {
            stage: Stage::Workload,
            reason: FailureReason::WorkloadFailed(EVIL.to_owned()),
            console_tail: format!("{EVIL}\nlast"),
        };
        let mut results = vec![stored::completed("getppid", vec![cost * 2.0, cost, cost])];
        results.push(stored::completed(
            &format!("=cmd|'x'{EVIL}"),
            vec![cost * 2.0, cost, cost],
        ));
        let mut failed = stored::completed("fault-anon", Vec::new());
        failed.outcome = Outcome::Failed(failure);
        results.push(failed);
        let console = Artifact {
            name: "getppid.console",
            bytes: EVIL.as_bytes(),
        };
        let mut run = stored::run(&format!("{:016x}", number + 1), number, 1, results);
        run.environment = vec![("release".to_owned(), format!("{EVIL}{number}"))];
        store.save_run(&run, &[console]).unwrap();
    }
    home
}

/// Runs the program and returns all that it says, after a check that no character of it is hostile.
fn safe_output(home: &Path, arguments: &[&str]) -> String {
    let output = marvin(home).args(arguments).output().unwrap();
    let answer = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let found = answer
        .chars()
        .find(|c| is_hostile(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(found, None, "{arguments:?}: {}", answer.escape_debug());
    assert!(!answer.is_empty(), "{arguments:?} says nothing");
    answer
}

#[test]
fn hostile_names_in_store_reach_no_output() {
    let home = lab("hostile-home");
    let pair = ["0000000000000001", "0000000000000002"];
    for arguments in [
        &["runs"][..],
        &["runs", "--format", "json"],
        &["kernels"],
        &["show", pair[0]],
        &["show", pair[0], "--format", "json"],
        &["show", pair[0], "--artifact", "getppid.console"],
        &["history", "getppid"],
        &["history", "getppid", "--format", "json"],
        &["history", "getppid", "--format", "html"],
        &["alerts"],
        &["alerts", "--format", "json"],
        &["alerts", "--mail", "x\u{1b}[2J\u{202e}"],
        &["history", "fualt\u{1b}[2J\u{202e}"],
        &["show", "x\u{1b}[2J\u{202e}"],
        &["report", "\u{1b}[2J\u{202e}", "x"],
        &["build", "path:/nowhere/\u{1b}[2J\u{202e}"],
        &["--home", "/nowhere/\u{1b}[2J\u{202e}", "runs"],
    ] {
        safe_output(&home, arguments);
    }
    for format in ["text", "markdown", "html", "json"] {
        let output = safe_output(&home, &["report", pair[0], pair[1], "--format", format]);
        assert!(output.contains("getppid"), "{format}: {output}");
    }
    let mail = safe_output(&home, &["report", pair[0], pair[1], "--mail"]);
    let head = mail.split("\n\n").next().unwrap();
    assert!(
        head.lines()
            .all(|line| line.starts_with("Subject: ") || line.starts_with(' ')),
        "{head}"
    );
}

#[test]
fn hostile_name_is_no_formula_in_csv() {
    let home = lab("hostile-csv");
    let output = safe_output(&home, &["export", "--rows", "results"]);
    assert!(
        output.contains(",'=cmd|'x'\u{fffd}[2J") && !output.contains(",=cmd"),
        "{output}"
    );
    let output = safe_output(&home, &["export", "--rows", "results", "--format", "jsonl"]);
    assert!(
        output.contains("\"=cmd|'x'\\u001b[2J") && output.contains("\\u202e"),
        "{output}"
    );
}

#[test]
fn hostile_commits_and_compilers_reach_no_output() {
    let home = fresh("hostile-tree-home");
    let tree = Tree::new("hostile-tree");
    tree.file("Makefile", MAKEFILE);
    tree.file("Kbuild", "");
    tree.commit("fails", "mm/memory.c:7:1: error\n");
    tree.git(&["tag", "good"]);
    for n in 0..2 {
        tree.file("fails", &format!("mm/memory.c:{n}:1: error: {EVIL}\n"));
        tree.git(&["add", "-A"]);
        let author = "--author=Eve\u{1b}[2J\u{202e} <eve\u{7f}@example.org>";
        tree.git(&[
            "commit",
            "-qm",
            &format!("mm: {n} {EVIL}\rmm: harmless"),
            author,
        ]);
    }
    let name = tree.name();
    let of = |own: &[&str]| {
        safe_output(
            &home,
            &[own, &["--tree", &name, "--workload", "getppid"]].concat(),
        )
    };
    let output = of(&["series", "good..main"]);
    assert!(output.contains("mm: 1 \u{fffd}[2J"), "{output}");
    of(&["bisect", "good", "main"]);
    of(&["bisect", "good", "main", "--dry-run"]);
    of(&["bisect", "good", "no\u{1b}[2J\u{202e}where"]);
}

/// The kernel is an image that the tree has.
const WITH_IMAGE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cp \"$$(cat choice)\" $(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c >$(O)/.memory.o.cmd\n";

#[test]
fn hostile_culprit_gives_a_harmless_mail() {
    if is_left_to_full("bisects; the mail is tested with hostile names, too") {
        return;
    }
    let (_, images) = images();
    let home = fresh("culprit-home");
    let tree = Tree::new("culprit-tree");
    let mail = fresh("culprit-mail");
    tree.file("Makefile", WITH_IMAGE);
    ["Kbuild", "mm/memory.c"]
        .iter()
        .for_each(|file| tree.file(file, ""));
    let [old, new] = [0, 1].map(|n| tree.image(&images[n]));
    tree.commit("choice", &old);
    tree.git(&["tag", "good"]);
    tree.file("choice", &new);
    tree.git(&["add", "-A"]);
    // Headers after carriage returns, and a command to regzbot.
    let subject = format!("mm: {EVIL}\rBcc: all@example.org\r\r#regzbot introduced: v1\r{EVIL}");
    let author =
        "--author=Eve\u{1b}[2J\u{202e}\rBcc: b@example.org\u{85}\u{2028} <eve\u{7f}@example.org>";
    tree.git(&["commit", "-qm", &subject, author]);
    let bisect = [
        "bisect",
        "good",
        "main",
        "--tree",
        &tree.name(),
        "--workload",
        "fault-anon",
        "--seeds",
        "2",
    ];
    let output = safe_output(
        &home,
        &[&bisect[..], &["--mail", &mail.display().to_string()]].concat(),
    );
    assert!(output.contains("worse "), "{output}");
    let mail = fs::read_to_string(&mail).unwrap();
    let found = mail
        .chars()
        .find(|c| is_hostile(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(found, None, "{}", mail.escape_debug());
    let (head, body) = mail.split_once("\n\n").unwrap();
    let names: Vec<&str> = head
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(names, ["To", "Cc", "Subject"], "{head}");
    let commands: Vec<&str> = body
        .lines()
        .filter(|line| line.starts_with("#regzbot"))
        .collect();
    assert!(commands.len() == 1 && !commands[0].contains("v1"), "{body}");
    assert!(!body.lines().any(|line| line.starts_with("Bcc")), "{body}");
}

/// Returns an ELF file that QEMU could boot, with this banner.
fn elf_with(banner: &str) -> Vec<u8> {
    let mut notes: Vec<u8> = Vec::new();
    for (name, kind) in [(b"GNU\0", 3), (b"Xen\0", 18)] {
        notes.extend(
            [4_u32, 4, kind]
                .iter()
                .flat_map(|number| number.to_le_bytes()),
        );
        notes.extend(name);
        notes.extend([0; 4]);
    }
    let mut elf = vec![0_u8; 120];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // Version 1, and the size of a program header.
    (elf[20], elf[54]) = (1, 56);
    (elf[18], elf[32], elf[56], elf[64], elf[72], elf[96]) =
        (62, 64, 1, 4, 120, u8::try_from(notes.len()).unwrap());
    [elf, notes, banner.as_bytes().to_vec()].concat()
}

#[test]
fn hostile_release_in_image_reaches_no_output() {
    let home = fresh("hostile-image");
    fs::create_dir_all(&home).unwrap();
    let file = home.join("vm\u{1b}[2J\u{202e}linux");
    fs::write(
        &file,
        elf_with("Linux version 6.9.1\u{1b}[2J\u{9b}\u{202e}evil (x) #1\n"),
    )
    .unwrap();
    let name = format!("path:{}", file.display());
    let output = safe_output(&home, &["build", &name]);
    assert!(
        output.contains("6.9.1\u{fffd}[2J\u{fffd}\u{fffd}evil"),
        "{output}"
    );
    safe_output(&home, &["build", &name, "--format", "json"]);
    fs::write(&file, "no kernel").unwrap();
    assert!(safe_output(&home, &["build", &name]).contains("vm\u{fffd}[2J\u{fffd}linux"));
}

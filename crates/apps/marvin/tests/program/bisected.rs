//! Bisections from the command line to the report, with fake sources that yield two real kernels;
//! `real_source` has a real one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fresh::{Fresh, fresh};
use crate::interrupted::{machines_of, until};
use crate::{format_output, images, marvin, output_of};

/// A tree whose kernels are existing images: `choice` names one, a file of the tree.
pub(crate) const MAKEFILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cp \"$$(cat choice)\" $(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c >$(O)/.memory.o.cmd\n";

pub(crate) struct Tree {
    pub(crate) folder: Fresh,
}

impl Tree {
    pub(crate) fn new(name: &str) -> Self {
        let tree = Self {
            folder: fresh(name),
        };
        fs::create_dir_all(&tree.folder).unwrap();
        tree.git(&["init", "-q", "-b", "main"]);
        tree
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=Ada",
                "-c",
                "user.email=ada@example.org",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .env("GIT_AUTHOR_DATE", "1577836800 +0000")
            .env("GIT_COMMITTER_DATE", "1577836800 +0000")
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn commit(&self, file: &str, content: &str) -> String {
        self.file(file, content);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", &format!("{file}: change it")]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Copies an image into the tree and returns its name there, which is no property of the image:
    /// commits have the name in them, and an archive's kernels change.
    pub(crate) fn image(&self, image: &Path) -> String {
        let entries = fs::read_dir(&self.folder).unwrap();
        let is_image = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("image-");
        let number = entries
            .filter(|entry| is_image(&entry.as_ref().unwrap().file_name()))
            .count();
        let name = format!("image-{number}");
        fs::copy(image, self.folder.join(&name)).unwrap();
        name
    }

    /// Writes a file without committing it.
    pub(crate) fn file(&self, file: &str, content: &str) {
        let path = self.folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn name(&self) -> String {
        self.folder.display().to_string()
    }
}

/// Returns how many commits the bisection logs of a data directory have.
fn count_measured(home: &Path) -> usize {
    let logs = fs::read_dir(home.join("bisections")).into_iter().flatten();
    let texts = logs.map(|log| fs::read_to_string(log.unwrap().path()).unwrap_or_default());
    let has_value = |line: &&str| line.starts_with("measured ") || line.starts_with("counted ");
    texts
        .map(|text| text.lines().filter(has_value).count())
        .sum()
}

/// Returns a tree whose kernel becomes another one between `good` and `main`, and the commit that
/// changes it.
pub(crate) fn regressed(name: &str) -> (Tree, String) {
    let (_, images) = images();
    let tree = Tree::new(name);
    fs::write(tree.folder.join("Makefile"), MAKEFILE).unwrap();
    fs::write(tree.folder.join("Kbuild"), "").unwrap();
    let [old, new] = [0, 1].map(|n| tree.image(&images[n]));
    tree.commit("choice", &old);
    tree.git(&["tag", "good"]);
    for n in 0..3 {
        tree.commit("mm/memory.c", &format!("// {n}\n"));
        tree.commit("Documentation/mm.rst", &format!("{n}\n"));
    }
    let guilty = tree.commit("choice", &new);
    tree.commit("mm/memory.c", "// after\n");
    tree.commit("mm/unused.c", "// after\n");
    (tree, guilty)
}

#[test]
fn regression_is_bisected_up_to_the_mail() {
    let (tree, guilty) = regressed("bisected-tree");
    let home = fresh("bisected-home");
    let mail = fresh("bisected-mail");
    let bisect = [
        "bisect",
        "good",
        "main",
        "--tree",
        &tree.name(),
        "--workload",
        "fault-anon",
        "--seeds",
        "1",
    ];
    let plan = output_of(&home, &[&bisect[..], &["--dry-run"]].concat());
    assert!(
        plan.starts_with("exit 0") && plan.contains("9 commits, 0 of them merges; 9 on the trunk"),
        "{plan}"
    );
    // Killed after the first measurement: the next attempt continues from there.
    let mut first = marvin(&home)
        .args(bisect)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a commit is measured", || count_measured(&home) > 0);
    first.kill().unwrap();
    first.wait().unwrap();
    until("its machines are gone", || machines_of(&home) == 0);
    let output = marvin(&home)
        .args(bisect)
        .arg("--mail")
        .arg(&mail)
        .output()
        .unwrap();
    let text = format_output(&output, &home);
    assert!(
        text.starts_with("exit 0") && text.contains(" measured before; --force measures again"),
        "{text}"
    );
    let short = &guilty[..12];
    assert!(
        text.contains(&format!("worse   {short} (\"choice: change it\")")),
        "{text}"
    );
    assert!(
        text.contains("explained: 100.0 %") && text.contains("9 commits, 5 of which can change"),
        "{text}"
    );
    assert!(
        text.contains("that of 1"),
        "equal images are marked: {text}"
    );
    assert!(
        text.contains(", function by function:") && text.contains("handle_mm_fault"),
        "{text}"
    );
    let mail = fs::read_to_string(&mail).unwrap();
    // One seed: a draft without addresses and without a command to regzbot.
    assert!(
        mail.starts_with("Subject: fault-anon: ") && mail.contains("draft that addresses no list"),
        "{mail}"
    );
    assert!(
        !mail.contains("ada@example.org") && !mail.contains("#regzbot"),
        "{mail}"
    );
    // Known commits are not measured again, and the answer is the same.
    let again = output_of(&home, &bisect);
    assert!(
        again.contains("commits were measured before") && !again.contains("next is"),
        "{again}"
    );
    assert_eq!(again.split("-- err").next(), text.split("-- err").next());

    wrong_ends_are_refused(&home, &tree, short);
}

/// Bisects between equal, swapped and alike ends.
fn wrong_ends_are_refused(home: &Path, tree: &Tree, culprit: &str) {
    let refused = output_of(
        home,
        &[
            "bisect",
            "good",
            "good~0",
            "--tree",
            &tree.name(),
            "--workload",
            "getppid",
        ],
    );
    assert!(
        refused.starts_with("exit 2") && refused.contains("are the same commit"),
        "{refused}"
    );
    let swapped = output_of(
        home,
        &[
            "bisect",
            "main",
            "good",
            "--tree",
            &tree.name(),
            "--workload",
            "getppid",
        ],
    );
    assert!(
        swapped.starts_with("exit 2") && swapped.contains("the ends are swapped"),
        "{swapped}"
    );
    let same = output_of(
        home,
        &[
            "bisect",
            "good",
            &format!("{culprit}~1"),
            "--tree",
            &tree.name(),
            "--workload",
            "fault-anon",
            "-q",
        ],
    );
    assert!(
        same.starts_with("exit 3") && same.contains("the ends do not differ"),
        "{same}"
    );
}

#[test]
fn bisections_of_missing_things_fail_clearly() {
    let home = fresh("no-bisection-home");
    insta::assert_snapshot!(
        "bisect-without-tree",
        output_of(&home, &["bisect", "v1", "v2", "--workload", "getppid"])
    );
    insta::assert_snapshot!(
        "bisect-of-several-workloads",
        output_of(
            &home,
            &["bisect", "v1", "v2", "--workload", "fault", "--tree", "/"]
        )
    );
    insta::assert_snapshot!(
        "bisect-tree-is-no-repository",
        output_of(
            &home,
            &[
                "bisect",
                "v1",
                "v2",
                "--workload",
                "getppid",
                "--tree",
                "/proc"
            ]
        )
    );
    insta::assert_snapshot!("build-without-tree", output_of(&home, &["build", "git:v1"]));
    insta::assert_snapshot!(
        "build-with-unknown-config",
        output_of(&home, &["build", "git:v1", "--config", "mikro"])
    );
    insta::assert_snapshot!(
        "build-of-incomplete-version",
        output_of(&home, &["build", "deb-src:6"])
    );
}

#[test]
fn repository_without_kernel_is_refused_before_planning() {
    let home = fresh("no-kernel-home");
    let tree = Tree::new("no-kernel-tree");
    for content in ["1", "2"] {
        tree.commit("README", content);
    }
    let bisect = [
        "bisect",
        "HEAD~1",
        "HEAD",
        "--workload",
        "getppid",
        "--tree",
        &tree.name(),
    ];
    let planned =
        output_of(&home, &[&bisect[..], &["--dry-run"]].concat()).replace(&tree.name(), "TREE");
    assert_eq!(
        output_of(&home, &bisect).replace(&tree.name(), "TREE"),
        planned
    );
    insta::assert_snapshot!(planned);
}

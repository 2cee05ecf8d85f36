//! Unusable sources and ranges: one message each, which says what, where and what to do, and no
//! result is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::{format_output, images, marvin, output_of};

/// A source that does not build: `fails` has the reason.
const MAKEFILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cat fails >&2; exit 1\n";

fn source(name: &str) -> Tree {
    let tree = Tree::new(name);
    fs::write(tree.folder.join("Makefile"), MAKEFILE).unwrap();
    fs::write(tree.folder.join("Kbuild"), "").unwrap();
    tree.commit("fails", "mm/memory.c:7:1: error: expected ';'\n");
    tree.git(&["tag", "good"]);
    tree
}

/// Runs a command, and removes the tree's path from the output.
fn run_in_tree(home: &Path, tree: &Tree, arguments: &[&str]) -> String {
    let name = tree.name();
    output_of(home, &[arguments, &["--tree", &name]].concat()).replace(&name, "TREE")
}

#[test]
fn impossible_ranges_fail_clearly() {
    let home = fresh("ranges-home");
    let tree = source("ranges-tree");
    tree.git(&["checkout", "-q", "-b", "side"]);
    tree.commit("side", "1\n");
    tree.git(&["checkout", "-q", "main"]);
    for n in 0..3 {
        tree.commit("mm/memory.c", &format!("// {n}\n"));
    }
    tree.git(&["tag", "no-version"]);
    let bisect = |good: &str, bad: &str| {
        run_in_tree(
            &home,
            &tree,
            &["bisect", good, bad, "--workload", "getppid", "-q"],
        )
    };
    insta::assert_snapshot!("unknown-revision", bisect("good", "v9.9"));
    insta::assert_snapshot!("not-an-ancestor", bisect("side", "main"));
    insta::assert_snapshot!("swapped", bisect("main", "good"));
    insta::assert_snapshot!("same", bisect("good", "good~0"));
    // A tag is a commit, whatever its name.
    insta::assert_snapshot!("nothing-builds", bisect("good", "no-version"));
    tree.commit("fails", "ld: final link failed: No space left on device\n");
    tree.git(&["tag", "full"]);
    tree.commit(
        "fails",
        "ld: final link failed: No space left on device, again\n",
    );
    // The directory's name contains the host's compiler.
    let output = bisect("full", "main");
    let (before, folder) = output.split_once("/objects-").unwrap();
    insta::assert_snapshot!(
        "disk-full",
        format!("{before}/objects-KEY{}", &folder[12..])
    );
    let clone = Tree {
        folder: fresh("ranges-shallow"),
    };
    let from = format!("file://{}", tree.name());
    tree.git(&["clone", "-q", "--depth", "2", &from, &clone.name()]);
    clone.git(&["fetch", "-q", "--depth", "1", "origin", "tag", "good"]);
    insta::assert_snapshot!(
        "shallow",
        run_in_tree(
            &home,
            &clone,
            &["bisect", "good", "main", "--workload", "getppid", "-q"]
        )
    );
    let output = output_of(
        &home,
        &[
            "bisect",
            "good",
            "main",
            "--tree",
            "/",
            "--workload",
            "getppid",
            "-q",
        ],
    );
    insta::assert_snapshot!("no-repository", output);
}

#[test]
fn inside_a_kernel_tree_names_need_no_source() {
    let home = fresh("inside-home");
    let tree = source("inside-tree");
    tree.commit("mm/memory.c", "// 1\n");
    fs::create_dir_all(tree.folder.join("mm")).unwrap();
    let inside = |arguments: &[&str]| {
        let output = marvin(&home)
            .args(arguments)
            .current_dir(tree.folder.join("mm"))
            .output()
            .unwrap();
        let answer = format_output(&output, &home);
        let commits =
            ["HEAD", "HEAD~1"].map(|name| tree.git(&["rev-parse", name])[..12].to_owned());
        answer
            .replace(&tree.name(), "TREE")
            .replace(&commits[0], "NEW")
            .replace(&commits[1], "OLD")
    };
    // The directory's name contains the host's compiler.
    let answer = inside(&["compare", "HEAD~1", "HEAD", "-q"]);
    let (before, folder) = answer.split_once("/objects-").unwrap();
    insta::assert_snapshot!(
        "inside-compare",
        format!("{before}/objects-KEY{}", &folder[12..])
    );
    assert_eq!(
        inside(&["compare", "HEAD~1..HEAD", "-q"]),
        inside(&["compare", "git:HEAD~1..HEAD", "-q"])
    );
    insta::assert_snapshot!("inside-series", inside(&["series", "HEAD~1..HEAD", "-q"]));
    insta::assert_snapshot!(
        "inside-bare-version",
        inside(&["compare", "6.1", "6.12", "-q"])
    );
    insta::assert_snapshot!(
        "outside-bare-version",
        output_of(&home, &["compare", "6.1", "HEAD", "-q"])
    );
    insta::assert_snapshot!(
        "outside-bare-revision",
        output_of(&home, &["compare", "HEAD~1", "HEAD", "-q"])
    );
    // `.` is the tree as it stands.
    let answer = inside(&["compare", "HEAD", "..", "-q"]);
    assert!(
        answer.contains("cannot get the kernel git:HEAD"),
        "{answer}"
    );
    let answer = inside(&["build", "..", "-q"]);
    assert!(answer.contains("cannot get the kernel tree:.."), "{answer}");
    let named = output_of(&home, &["build", "good", "-q", "--tree", &tree.name()]);
    assert!(named.contains("cannot get the kernel git:good"), "{named}");
    fs::write(tree.folder.join("mm/bzImage"), "no image").unwrap();
    insta::assert_snapshot!(
        "bare-file",
        inside(&["compare", "bzImage", "bzImage", "-q"])
    );
}

#[test]
fn kernels_without_a_name_are_all() {
    let home = fresh("all-kernels-home");
    let all = output_of(&home, &["kernels"]);
    let some = output_of(&home, &["kernels", "deb:6.12"]);
    let names: Vec<&str> = some.lines().filter(|line| line.contains(" deb:")).collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| all.contains(name)),
        "{some}"
    );
    assert!(all.matches(" deb:").count() > names.len(), "{all}");
}

#[test]
fn invalid_series_and_patches_fail_clearly() {
    let home = fresh("patches-home");
    let tree = source("patches-tree");
    let patch = tree.folder.join("fix.patch");
    fs::write(
        &patch,
        "--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1 +1 @@\n-before\n+after\n",
    )
    .unwrap();
    let of = |revision: &str| format!("patch:{}@{revision}", patch.display());
    let build = |name: &str| run_in_tree(&home, &tree, &["build", name, "-q"]);
    insta::assert_snapshot!(
        "patch-does-not-apply",
        build(&of("good")).replace(&tree.git(&["rev-parse", "good"])[..12], "GOOD")
    );
    insta::assert_snapshot!("patch-of-nothing", build(&of("v9.9")));
    insta::assert_snapshot!(
        "patch-is-absent",
        build("patch:nonesuch.patch@good").replace(env!("CARGO_MANIFEST_DIR"), "HERE")
    );
    insta::assert_snapshot!("patch-is-empty", build("patch:"));
    insta::assert_snapshot!(
        "series-is-none",
        run_in_tree(&home, &tree, &["series", "good", "-q"])
    );
    insta::assert_snapshot!(
        "series-is-empty",
        run_in_tree(&home, &tree, &["series", "good..main", "-q"])
    );
    insta::assert_snapshot!(
        "series-without-tree",
        output_of(&home, &["series", "good..main", "-q"])
    );
    insta::assert_snapshot!(
        "compare-of-one",
        output_of(&home, &["compare", "git:good", "-q"])
    );
    tree.commit("mm/memory.c", "// 1\n");
    insta::assert_snapshot!(
        "series-does-not-build",
        run_in_tree(&home, &tree, &["series", "main^..main", "-q"])
    );
}

#[test]
fn compiler_change_never_mixes_a_bisection() {
    let home = fresh("compiler-home");
    let tree = source("compiler-tree");
    tree.commit("mm/memory.c", "// 1\n");
    let tools = fresh("compiler-tools");
    fs::create_dir_all(&tools).unwrap();
    // Prints another version at each call.
    let script =
        "#!/bin/sh\necho x >>\"$0.calls\"\necho \"gcc (make-believe) $(wc -l <\"$0.calls\")\"\n";
    fs::write(tools.join("gcc"), script).unwrap();
    fs::set_permissions(tools.join("gcc"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let name = tree.name();
    let arguments = [
        "bisect",
        "good",
        "main",
        "--tree",
        &name,
        "--workload",
        "getppid",
        "-q",
    ];
    let output = format_output(
        &marvin(&home)
            .args(arguments)
            .env("PATH", path)
            .output()
            .unwrap(),
        &home,
    );
    let linker = Command::new("ld").arg("--version").output().unwrap();
    let linker = String::from_utf8(linker.stdout).unwrap();
    insta::assert_snapshot!(
        "compiler-changed",
        output.replace(linker.lines().next().unwrap(), "LINKER")
    );
}

#[test]
fn changed_config_file_starts_another_bisection() {
    let home = fresh("config-home");
    let tree = source("config-tree");
    tree.commit("mm/memory.c", "// 1\n");
    let config = tree.folder.join("my.config");
    let name = tree.name();
    let file = config.display().to_string();
    let asked_with = |lines: &str| {
        fs::write(&config, lines).unwrap();
        output_of(
            &home,
            &[
                "bisect",
                "good",
                "main",
                "--tree",
                &name,
                "--workload",
                "getppid",
                "--config",
                &file,
            ],
        )
    };
    let remembers = |output: &str| output.contains("1 commit was measured before");
    assert!(!remembers(&asked_with("CONFIG_A=y\n")));
    assert!(remembers(&asked_with("# the same\nCONFIG_A=y\n")));
    assert!(!remembers(&asked_with("CONFIG_A=n\n")));
}

#[test]
fn tree_is_named_or_the_only_directory() {
    let home = fresh("named-home");
    let tree = source("named-tree");
    tree.commit("mm/memory.c", "// 1\n");
    fs::create_dir_all(&home).unwrap();
    let trees = format!(
        "[[tree]]\nname = \"linux\"\ngit = \"{}\"\nconfig = \"small\"\n\n[[tree]]\nname = \"stable\"\n\
         git = \"https://git.invalid/stable.git\"\n\n[[tree]]\nname = \"debian\"\ndebian = [\"6.1\"]\n",
        tree.name()
    );
    fs::write(home.join("marvin.toml"), trees).unwrap();
    let bisect = ["bisect", "good", "main", "--workload", "getppid", "-q"];
    let with = |arguments: &[&str]| {
        output_of(&home, &[&bisect, arguments].concat()).replace(&tree.name(), "TREE")
    };
    for arguments in [&["--dry-run"][..], &["--dry-run", "--tree", "linux"]] {
        let plan = with(arguments);
        assert!(
            plan.starts_with("exit 0") && plan.contains(": 1 commit, 0 of them merges"),
            "{plan}"
        );
    }
    let all: String = ["linus", "stable", "debian"]
        .map(|name| with(&["--tree", name]))
        .concat();
    insta::assert_snapshot!("trees-that-are-none", all);
    let built = output_of(&home, &["build", "git:good", "--tree", "linux"]);
    assert!(
        built.contains("tree, small\n"),
        "as it is configured: {built}"
    );
    let built = output_of(
        &home,
        &[
            "build", "git:good", "--tree", "linux", "--config", "default",
        ],
    );
    assert!(built.contains("tree, default\n"), "{built}");
}

/// Builds what `choice` names.
const COPIES: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cp \"$$(cat choice)\" $(O)/vmlinux\n\t@echo $(CURDIR)/Kbuild >$(O)/.x.o.cmd\n";

#[test]
fn data_directory_survives_a_full_disk() {
    let (_, images) = images();
    let tree = Tree::new("full-tree");
    tree.file("Makefile", COPIES);
    tree.file("Kbuild", "");
    // The image is elsewhere: behind walls the build would not see it.
    tree.commit("choice", &images[1].display().to_string());
    // A separate disk, visible only to this program and its children, with a limited number of free
    // KiB.
    let script = "mkdir -p \"$home\" && mount -t tmpfs -o size=256m,mode=700 marvin \"$home\" || { echo no disk; exit 0; }\n\
        for free in 64 1024 8192; do\n\
        dd if=/dev/zero of=\"$home/ballast\" bs=1024 count=$((262144 - free)) 2>/dev/null || true\n\
        \"$@\" 2>&1; echo \"exit $? with $free KiB\"; rm \"$home/ballast\"\n\
        done\n\"$@\" 2>&1; echo \"exit $? in the end\"\n";
    let home = fresh("full-builds-home");
    let mut shell = Command::new("unshare");
    shell.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_marvin"),
    ]);
    shell.args([
        "build",
        "git:main",
        "-q",
        "--no-sandbox",
        "--tree",
        &tree.name(),
    ]);
    let output = shell
        .env("home", &*home)
        .env("MARVIN_HOME", &*home)
        .output()
        .unwrap();
    let answer =
        String::from_utf8_lossy(&output.stdout).replace(&home.display().to_string(), "HOME");
    if !output.status.success() || answer.starts_with("no disk") {
        println!(
            "skipped: this host does not allow user mounts: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let refused = "error: cannot get the kernel git:main\n  because: no space left on the device of HOME: free disk space there \
                   and try again\n";
    for free in [64, 1024, 8192] {
        assert!(
            answer.contains(&format!("{refused}exit 5 with {free} KiB\n")),
            "{answer}"
        );
    }
    assert!(
        answer.ends_with("exit 0 in the end\n") && answer.contains("\nbuild    build_"),
        "{answer}"
    );
}

/// A tree in which one commit changes code that is not compiled, the next only words, and the last
/// a compiled file.
#[test]
fn uncompiled_code_is_not_called_equal() {
    let home = fresh("uncompiled-home");
    let tree = Tree::new("uncompiled-tree");
    // Like Kconfig, make drops an option that nothing selects.
    let drops = "olddefconfig:\n\t@test ! -e $(O)/.config || sed -i /CONFIG_NEVER/d $(O)/.config\n\t@touch $(O)/.config\n";
    let makefile = crate::bisected::MAKEFILE.replace(
        "tinyconfig olddefconfig:\n",
        &format!("{drops}tinyconfig:\n"),
    );
    tree.file("Makefile", &makefile);
    tree.file("Kbuild", "obj-y += mm/\n");
    tree.file(
        "mm/Makefile",
        "obj-y := memory.o\nobj-$(CONFIG_NEVER) += memcontrol.o\n",
    );
    tree.file("mm/memory.c", "1\n");
    tree.commit("choice", &tree.image(&images().1[0]));
    tree.git(&["tag", "base"]);
    tree.commit("mm/memcontrol.c", "1\n");
    tree.git(&["tag", "unseen"]);
    tree.commit("Documentation/mm.rst", "1\n");
    tree.commit("mm/memory.c", "2\n");
    let series = |range: &str| {
        run_in_tree(
            &home,
            &tree,
            &["series", range, "-q", "--workload", "getppid"],
        )
    };
    let unseen = series("base..unseen");
    assert!(unseen.starts_with("exit 3"), "{unseen}");
    assert!(
        unseen.contains("not measured: the same image")
            && unseen.contains("mm/memcontrol.c (needs CONFIG_NEVER)")
    );
    let equal = series("unseen..main");
    assert!(
        equal.starts_with("exit 0") && equal.matches("equal: the same image").count() == 2,
        "{equal}"
    );
    let compare = |sides: [&str; 2]| {
        let arguments = ["compare", sides[0], sides[1], "-q", "--workload", "getppid"];
        run_in_tree(&home, &tree, &arguments)
    };
    let unseen = compare(["git:base", "git:unseen"]);
    assert!(
        unseen.starts_with("exit 3")
            && unseen.contains("Not measured: ")
            && unseen.contains("CONFIG_NEVER"),
        "{unseen}"
    );
    let arguments = [
        "compare",
        "git:base",
        "git:unseen",
        "-q",
        "--workload",
        "getppid",
        "--on",
        "vm",
        "--until-clear",
    ];
    let unseen = run_in_tree(&home, &tree, &arguments);
    assert!(
        unseen.starts_with("exit 3") && unseen.contains("Not measured: "),
        "{unseen}"
    );
    let equal = compare(["git:unseen", "git:main"]);
    assert!(
        equal.starts_with("exit 0") && equal.contains("no run is needed"),
        "{equal}"
    );
}

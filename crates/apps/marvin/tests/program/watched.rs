//! Continuous operation: Marvin watches a tree with tags and queues its kernels; a worker executes
//! the jobs, is killed, and continues; each failure is reported once. The tree's kernels are fake:
//! one is an existing image, one does not build.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::interrupted::until;
use crate::{format_output, images, is_left_to_full, marvin, output_of};

/// Builds what `choice` names, if anything; otherwise takes long.
const MAKEFILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@test -s choice || { sleep 3; echo 'mm/memory.c:7: error: make-believe' >&2; exit 1; }\n\
    \t@cp \"$$(cat choice)\" $(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c >$(O)/.memory.o.cmd\n";

/// Writes marvin.toml for a tree, with a command that appends notices to a file.
fn site(home: &Path, tree: &Tree, notices: &Path) {
    fs::create_dir_all(home).unwrap();
    let text = format!(
        "[[tree]]\nname = \"linux\"\ngit = \"{}\"\n\n[[plan]]\nname = \"quick\"\nworkloads = [\"getppid\"]\nseeds = 1\n\n\
         [[notify]]\nname = \"us\"\ncommand = [\"sh\", \"-c\", \"cat >>'{}'\"]\n",
        tree.name(),
        notices.display()
    );
    fs::write(home.join("marvin.toml"), text).unwrap();
}

fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn sample_is_valid_and_never_overwrites() {
    let home = fresh("config-init-home");
    let written = output_of(&home, &["config", "init"]);
    insta::assert_snapshot!(written, @"
    exit 0
    -- out
    wrote HOME/marvin.toml: edit it, then run `marvin config check`, `marvin watch` and `marvin work`
    -- err
    ");
    let checked = output_of(&home, &["config", "check"]);
    assert!(checked.starts_with("exit 0"), "{checked}");
    insta::assert_snapshot!(output_of(&home, &["config", "init"]), @"
    exit 2
    -- out
    -- err
    error: cannot write a sample to HOME/marvin.toml: the file exists
    hint: edit it (`marvin config show` lists its settings), or write the sample elsewhere with --config-file FILE
    ");
}

#[test]
fn watched_tree_is_measured_despite_kills() {
    let (_, images) = images();
    let tree = Tree::new("watched-tree");
    tree.file("Makefile", MAKEFILE);
    tree.file("Kbuild", "");
    tree.file("mm/memory.c", "");
    let image = tree.image(&images[1]);
    tree.commit("choice", &image);
    ["v6.12", "v6.13-rc1", "junk"]
        .iter()
        .for_each(|tag| drop(tree.git(&["tag", tag])));
    tree.commit("choice", "");
    tree.git(&["tag", "v6.13"]);
    let home = fresh("watched-home");
    let notes = fresh("watched-notes");
    site(&home, &tree, &notes);

    let first = output_of(&home, &["watch"]);
    assert!(
        first.starts_with("exit 0") && first.contains("kernels 2, queued 2"),
        "{first}"
    );
    assert!(
        first.contains("ignored tags that are not versions, 1: junk"),
        "{first}"
    );
    let second = output_of(&home, &["watch"]);
    assert!(
        second.contains("kernels 2, queued 0")
            && second.contains("selected 2, nothing queued: all are queued or measured")
            && !second.contains("junk"),
        "{second}"
    );

    let mut worker = marvin(&home);
    let worker = worker
        .args(["work", "--once"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut worker = worker.spawn().unwrap();
    until("a job runs", || {
        output_of(&home, &["queue", "list"]).contains(" running ")
    });
    let other = output_of(&home, &["work", "--once"]).replace(&worker.id().to_string(), "PID");
    insta::assert_snapshot!(other, @"
    exit 5
    -- out
    -- err
    error: another worker (pid PID) already runs the jobs of HOME, and one per host is allowed: `marvin queue list` shows its job
    ");
    worker.kill().unwrap();
    worker.wait().unwrap();

    let rest = output_of(&home, &["work", "--once"]);
    assert!(
        rest.starts_with("exit 4") && rest.contains("done 2, failed 0"),
        "{rest}"
    );
    assert!(
        rest.contains("its worker died; the job is waiting"),
        "{rest}"
    );
    let all = output_of(&home, &["queue", "list", "--all"]);
    assert!(!all.contains(" waiting "), "{all}");
    let broken = [1, 2]
        .map(|job| output_of(&home, &["queue", "why", &job.to_string()]))
        .concat();
    assert_eq!(
        broken.matches("mm/memory.c:7: error: make-believe").count(),
        1,
        "{broken}"
    );
    assert_eq!(all.matches(" done ").count(), 2, "{all}");
    let runs = output_of(&home, &["runs"]);
    assert!(
        runs.contains("1/1") && runs.matches("run_").count() == 1,
        "{runs}"
    );
    let notices = lines(&notes);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].contains("\"headline\":\"git:v6.13 of linux does not build or boot\""),
        "{notices:?}"
    );

    // Nothing is repeated; a missing tree is reported once.
    assert!(output_of(&home, &["work", "--once"]).contains("done 0, failed 0"));
    fs::rename(tree.name(), format!("{}-away", tree.name())).unwrap();
    for _ in 0..2 {
        let gone = output_of(&home, &["watch", "-q"]);
        assert!(
            gone.starts_with("exit 5") && gone.contains("silent trees 1"),
            "{gone}"
        );
    }
    fs::rename(format!("{}-away", tree.name()), tree.name()).unwrap();
    assert!(output_of(&home, &["watch"]).contains("the tree linux answers again"));
    let notices = lines(&notes);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[1].contains("\"subject\":\"tree:linux\""),
        "{notices:?}"
    );
}

#[test]
fn invalid_watches_jobs_and_settings_fail_clearly() {
    let home = fresh("no-watch-home");
    insta::assert_snapshot!(
        "check-without-settings",
        output_of(&home, &["config", "check"])
    );
    insta::assert_snapshot!("watch-without-settings", output_of(&home, &["watch"]));
    insta::assert_snapshot!(
        "watch-period-without-unit",
        output_of(&home, &["watch", "--every", "1"])
    );
    insta::assert_snapshot!("list-without-home", output_of(&home, &["queue", "list"]));
    insta::assert_snapshot!(
        "cancel-without-home",
        output_of(&home, &["queue", "cancel", "7"])
    );
    insta::assert_snapshot!(
        "add-without-tree",
        output_of(&home, &["queue", "add", "git:v6.12"])
    );
    assert!(!home.exists(), "nothing was worth making a home for");
    fs::create_dir_all(&home).unwrap();
    let file = home.join("marvin.toml");
    fs::write(&file, "[[tree]]\nname = \"linux\"\ngti = \"linux\"\n").unwrap();
    insta::assert_snapshot!(
        "settings-with-misspelled-key",
        output_of(&home, &["config", "check"])
    );
    fs::write(
        &file,
        "[[tree]]\nname = \"linux\"\ngit = \"linux\"\nconfig = \"mikro\"\n",
    )
    .unwrap();
    insta::assert_snapshot!(
        "settings-with-unknown-config",
        output_of(&home, &["config", "check"])
    );
    insta::assert_snapshot!(
        "add-from-unknown-tree",
        output_of(&home, &["queue", "add", "git:v6.12", "--tree", "linus"])
    );
    insta::assert_snapshot!(
        "check-of-missing-file",
        output_of(
            &home,
            &[
                "config",
                "check",
                "--config-file",
                "/nonexistent/marvin.toml"
            ]
        )
    );
    insta::assert_snapshot!(
        "add-of-missing-file",
        output_of(&home, &["queue", "add", "path:/nonexistent/vmlinux"])
    );
}

#[test]
fn unreadable_marvin_toml_fails_clearly() {
    let home = fresh("bad-toml-home");
    fs::create_dir_all(&home).unwrap();
    let deep = format!("tree = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let table = "[[tree]]\nname = \"a\"\ngit = \"x\"\n";
    let secret = "[[notify]]\nname = \"us\"\nmail = [\"a@b.org\"]\nfrom = \"c@d.org\"\nsmtp = \"smtps://mail\"\nuser = \"me\"\n\
                  password = \"file:no-such-file\"\n";
    let bad: [(&str, &[u8]); 8] = [
        ("huge", &[b'#'; (256 << 10) + 1]),
        ("binary", b"\x7fELF\0\0\x01"),
        ("latin1", b"# M\xfcnchen\n"),
        ("deep", deep.as_bytes()),
        ("twice", b"[work]\nattempts = 1\nattempts = 2\n"),
        ("types", b"tree = \"linux\"\n"),
        ("dotted", b"work.deadline.hours = 2\n"),
        ("secret", secret.as_bytes()),
    ];
    let check = |file: &Path| {
        output_of(
            &home,
            &[
                "config",
                "check",
                "--config-file",
                &file.display().to_string(),
            ],
        )
    };
    let mut all = String::new();
    for (name, bytes) in bad {
        let file = home.join(name);
        fs::write(&file, bytes).unwrap();
        all += &check(&file);
    }
    all += &check(&home);
    all += &check(Path::new("/dev/zero"));
    let file = home.join("marvin.toml");
    fs::write(
        &file,
        format!("{table}[[plan]]\nname = \"p\"\nworkloads = [\"tool:sysbnch-cpu\"]\n"),
    )
    .unwrap();
    for arguments in [
        &["config", "show"][..],
        &["watch"],
        &["work", "--once"],
        &["queue", "add", "deb:6.1"],
    ] {
        all += &output_of(&home, arguments);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn plan_names_tools_like_the_command_line() {
    let home = fresh("tool-plan-home");
    fs::create_dir_all(&home).unwrap();
    let text = "[[tree]]\nname = \"a\"\ngit = \"x\"\n[[plan]]\nname = \"p\"\nworkloads = [\"tool:sysbench-cpu\", \"fork\"]\n";
    fs::write(home.join("marvin.toml"), text).unwrap();
    let shown = output_of(&home, &["config", "show"]);
    assert!(
        shown.contains("suite micro;") && shown.contains("tool:sysbench-cpu"),
        "{shown}"
    );
    let added = output_of(
        &home,
        &[
            "queue",
            "add",
            "deb:6.1",
            "--workload",
            "tool:sysbench-cpu",
            "--seeds",
            "1",
        ],
    );
    assert!(added.contains(", tools: "), "{added}");
    let why = output_of(&home, &["queue", "why", "1"]);
    assert!(why.contains("suite      tools: tool:sysbench-cpu"), "{why}");
}

#[test]
fn queue_is_changed_by_hand() {
    let home = fresh("queue-home");
    let add = |kernel: &str| {
        output_of(
            &home,
            &[
                "queue",
                "add",
                kernel,
                "--workload",
                "getppid",
                "--seeds",
                "1",
            ],
        )
    };
    insta::assert_snapshot!("job-is-added", add("deb:6.1"));
    insta::assert_snapshot!("same-job-is-added-once", add("deb:6.1"));
    add("deb:6.12");
    insta::assert_snapshot!(
        "job-moves-first",
        output_of(&home, &["queue", "move", "2", "first"])
    );
    insta::assert_snapshot!(
        "misspelled-move",
        output_of(&home, &["queue", "move", "2", "up"])
    );
    let why = output_of(&home, &["queue", "why", "1"]);
    assert!(
        why.contains("why        1 job comes first; no worker runs: start `marvin work`"),
        "{why}"
    );
    insta::assert_snapshot!(
        "job-is-cancelled",
        output_of(&home, &["queue", "cancel", "1"])
    );
    insta::assert_snapshot!(
        "cancelled-job-is-cancelled",
        output_of(&home, &["queue", "cancel", "1"])
    );
    insta::assert_snapshot!(
        "cancelled-job-moves",
        output_of(&home, &["queue", "move", "1", "first"])
    );
    insta::assert_snapshot!("cancelled-job-is-added", add("deb:6.1"));
    insta::assert_snapshot!("unknown-job", output_of(&home, &["queue", "why", "99"]));
    let list = output_of(&home, &["queue", "list"]);
    assert!(list.find("deb:6.12 ") < list.find("deb:6.1 "), "{list}");
}

#[test]
fn schema_and_samples_match_the_program() {
    let home = fresh("schema-home");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let schema = Command::new(env!("CARGO_BIN_EXE_marvin"))
        .args(["config", "schema"])
        .output()
        .unwrap();
    assert!(schema.stdout == fs::read(docs.join("marvin.schema.json")).unwrap());
    for sample in ["small.toml", "full.toml"] {
        let file = docs.join("samples").join(sample).display().to_string();
        let shown = marvin(&home)
            .args(["config", "show", "--config-file", &file])
            .output()
            .unwrap();
        assert!(shown.status.success(), "{}", shown_text(&shown.stderr));
        let mut check = marvin(&home);
        let check = check
            .args(["config", "check", "--config-file", &file])
            .env("MARVIN_MAIL_PASSWORD", "sesame");
        let checked = check.output().unwrap();
        assert!(checked.status.success(), "{}", shown_text(&checked.stderr));
        insta::assert_snapshot!(
            format!("settings-of-{sample}"),
            shown_text(&shown.stdout).replace(&docs.display().to_string(), "DOCS")
        );
    }
}

fn shown_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn worker_measures_manually_queued_jobs() {
    if is_left_to_full("more than one small job is measured") {
        return;
    }
    let home = fresh("by-hand-home");
    for name in crate::names() {
        let added = output_of(
            &home,
            &[
                "queue",
                "add",
                &name,
                "--workload",
                "getppid,fork-exit",
                "--seeds",
                "2",
            ],
        );
        assert!(added.starts_with("exit 0"), "{added}");
    }
    let output = marvin(&home).args(["work", "--once"]).output().unwrap();
    let answer = format_output(&output, &home);
    assert!(
        answer.starts_with("exit 0") && answer.contains("done 2, failed 0"),
        "{answer}"
    );
    assert_eq!(output_of(&home, &["runs"]).matches("2/2").count(), 4);
}

#[test]
fn notify_test_says_which_channel_fails() {
    let home = fresh("notify-test-home");
    let notices = fresh("notify-test-notices");
    fs::create_dir_all(&home).unwrap();
    let none = output_of(&home, &["notify", "test"]);
    assert!(none.starts_with("exit 2"), "{none}");
    let text = format!(
        "[[notify]]\nname = \"us\"\ncommand = [\"sh\", \"-c\", \"cat >>'{}'\"]\n\
         [[notify]]\nname = \"down\"\ncommand = [\"sh\", \"-c\", \"echo no route >&2; exit 1\"]\n",
        notices.display()
    );
    fs::write(home.join("marvin.toml"), text).unwrap();
    let all = output_of(&home, &["notify", "test"]);
    assert!(
        all.starts_with("exit 5")
            && all.contains("us: sent")
            && all.contains("down: cannot send: ")
            && all.contains("no route"),
        "{all}"
    );
    let one = output_of(&home, &["notify", "test", "us"]);
    assert!(one.starts_with("exit 0"), "{one}");
    let received = lines(&notices);
    assert_eq!(received.len(), 2, "{received:?}");
    assert!(
        received[0].contains("test of the notifications of"),
        "{received:?}"
    );
    let wrong = output_of(&home, &["notify", "test", "uss"]);
    assert!(wrong.starts_with("exit 2"), "{wrong}");
}

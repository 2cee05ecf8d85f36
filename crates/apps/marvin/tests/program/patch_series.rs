//! `marvin series` of patches: mailboxes, standard input, links of a public-inbox, patches that do
//! not apply; and of the branch without a word.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bisected::{Tree, regressed};
use crate::fresh::fresh;
use crate::released::serve;
use crate::{format_output, images, is_left_to_full, marvin};

/// A tree on `good`, and a mailbox of the commits up to `main`.
pub(crate) fn tree_and_thread(name: &str, base: &[&str]) -> (Tree, String) {
    let (tree, _) = regressed(name);
    let format = ["format-patch", "--stdout", "--cover-letter"];
    let mails = tree.git(&[&format[..], base, &["good..main~1"]].concat());
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    (tree, format!("{mails}\n"))
}

/// Runs `marvin series` in the tree, and removes what differs from run to run.
pub(crate) fn series(home: &Path, tree: &Tree, arguments: &[&str], input: &str) -> String {
    let mut child = marvin(home)
        .arg("series")
        .args(arguments)
        .args(["--workload", "getppid,fork-exit", "--quick", "-q"])
        .current_dir(&*tree.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let mut text = format_output(&output, home).replace(&tree.name(), "TREE");
    for (revision, name) in [("good", "GOOD........"), ("main", "MAIN........")] {
        text = text.replace(&tree.git(&["rev-parse", revision])[..12], name);
    }
    text
}

#[test]
fn threads_are_measured_patch_by_patch() {
    let home = fresh("patch-series-home");
    let (tree, thread) = tree_and_thread("patch-series-tree", &["--base=good"]);
    let mail = fresh("patch-series-mail");
    fs::create_dir_all(&mail).unwrap();
    let file = mail.join("thread.mbox");
    fs::write(&file, &thread).unwrap();
    let name = file.display().to_string();
    let before = tree.git(&["status", "--porcelain=v2", "--branch"]);
    let text = series(&home, &tree, &[&name], "").replace(&name, "THREAD");
    insta::assert_snapshot!("thread", text);
    // Only the command that gives the same answer differs.
    let text = text.replace("series THREAD", "series INPUT");
    let piped = series(&home, &tree, &["-"], &thread).replace("series -", "series INPUT");
    assert_eq!(piped.replace("standard input", "THREAD"), text);
    // A public-inbox packs it.
    fs::create_dir_all(mail.join("inbox/1@example.org")).unwrap();
    let packed = mail.join("inbox/1@example.org/t.mbox.gz");
    let status = Command::new("sh")
        .args(["-c", "gzip -c < \"$1\" > \"$2\"", "sh", &name])
        .arg(&packed)
        .status();
    assert!(status.unwrap().success());
    let address = serve(mail.to_path_buf(), 100)
        .trim_end_matches('/')
        .to_owned();
    let link = format!("{address}/inbox/1@example.org/T/#u");
    let fetched = series(&home, &tree, &[&link], "");
    let fetched = fetched.replace(&link, "THREAD");
    assert_eq!(fetched.replace("series THREAD", "series INPUT"), text);
    let absent = series(
        &home,
        &tree,
        &[&format!("{address}/inbox/2@example.org/")],
        "",
    );
    insta::assert_snapshot!("thread-is-absent", absent.replace(&address, "SERVER"));
    let after = tree.git(&["status", "--porcelain=v2", "--branch"]);
    assert_eq!(after, before, "neither tree nor branch of the user changes");
}

#[test]
fn patches_that_do_not_apply_are_answers() {
    let home = fresh("refused-patches-home");
    let (tree, thread) = tree_and_thread("refused-patches-tree", &[]);
    // The third patch was made on a file that is not there, the first is applied already.
    let thread = thread.replacen("\n-// 0\n+// 1\n", "\n-// another\n+// 1\n", 1);
    tree.commit("mm/memory.c", "// 0\n");
    insta::assert_snapshot!(
        "refused",
        series(&home, &tree, &["-", "--base", "HEAD"], &thread)
    );
    let unknown = series(&home, &tree, &["-", "--base", "v9.9"], &thread);
    insta::assert_snapshot!("base-is-unknown", unknown);
}

#[test]
fn tree_is_compared_with_its_last_commit() {
    let home = fresh("working-tree-home");
    let (tree, _) = regressed("working-tree");
    let words = ["--workload", "getppid,fork-exit", "--quick", "-q"];
    let compare = |folder: &Path| {
        let output = marvin(&home)
            .arg("compare")
            .args(words)
            .current_dir(folder)
            .output();
        format_output(&output.unwrap(), &home)
    };
    let equal = compare(&tree.folder);
    assert!(equal.starts_with("exit 0"), "{equal}");
    // The image before the slower one, and uncommitted.
    tree.file("choice", &tree.git(&["show", "good:choice"]));
    let better = compare(&tree.folder.join("mm"));
    assert!(better.starts_with("exit 0"), "{better}");
    let row = better.lines().find(|line| line.starts_with("fork-exit"));
    assert!(row.is_some_and(|row| row.ends_with('B')), "{better}");
    let outside = compare(&home);
    assert!(
        outside.starts_with("exit 2") && outside.contains("inside a kernel tree none means HEAD"),
        "{outside}"
    );
}

#[test]
fn branch_is_measured_without_a_word() {
    let home = fresh("branch-series-home");
    let (tree, _) = regressed("branch-series-tree");
    insta::assert_snapshot!("no-upstream", series(&home, &tree, &[], ""));
    tree.git(&["update-ref", "refs/remotes/origin/HEAD", "main~3"]);
    let branch = series(&home, &tree, &[], "");
    assert!(branch.contains("MAIN........), 3 commits"), "{branch}");
    assert!(branch.contains("\norigin/HEAD.. ("), "{branch}");
    // Only the title has the words that were typed.
    let untitled = |text: &str| text.split_once(", 3 commits").unwrap().1.to_owned();
    for words in ["3", "HEAD~3", "main~3...HEAD", "origin/HEAD.."] {
        let text = series(&home, &tree, &[words], "");
        assert_eq!(untitled(&text), untitled(&branch), "{words}");
    }
    // b4's cover letter is a commit without a change.
    tree.git(&["checkout", "-q", "-b", "b4/x", "main~3"]);
    let cover =
        "x: faster\n\nIt is.\n\n--- b4-submit-tracking ---\n{\"series\": {\"revision\": 1}}";
    tree.git(&["commit", "-q", "--allow-empty", "-m", cover]);
    tree.git(&["cherry-pick", "main~3..main~1"]);
    let of_b4 = series(&home, &tree, &[], "");
    assert!(of_b4.contains(", 2 commits"), "{of_b4}");
    tree.git(&["checkout", "-q", "main"]);
    insta::assert_snapshot!("no-such-series", series(&home, &tree, &["nonesuch"], ""));
}

/// A file with two functions that kernels have.
pub(crate) fn source_of(exit: u32, getppid: u32) -> String {
    [("do_exit", exit), ("__x64_sys_getppid", getppid)]
        .map(|(function, number)| {
            format!("int {function}(int a)\n{{\n\tint b = a;\n\tint c;\n\n\n\n\treturn b + {number};\n}}\n")
        })
        .concat()
}

#[test]
fn patched_functions_are_looked_for_in_workloads() {
    let home = fresh("entered-home");
    let tree = Tree::new("entered-tree");
    tree.file("Makefile", crate::bisected::MAKEFILE);
    tree.file("Kbuild", "");
    let [old, new] = [0, 1].map(|number| tree.image(&images().1[number]));
    tree.file("choice", &old);
    tree.commit("mm/memory.c", &source_of(1, 1));
    tree.git(&["tag", "base"]);
    tree.file("choice", &new);
    tree.commit("mm/memory.c", &source_of(2, 1));
    tree.git(&["tag", "never"]);
    tree.file("choice", &old);
    tree.commit("mm/memory.c", &source_of(2, 2));
    let run = |range: &str, format: &str| {
        let output = marvin(&home)
            .args(["series", range, "--format", format, "--tree", &tree.name()])
            .args(["--workload", "getppid", "--quick", "-q"])
            .output();
        format_output(&output.unwrap(), &home)
    };
    let never = run("base..never", "text");
    assert!(never.starts_with("exit 3"), "{never}");
    insta::assert_snapshot!("entered", run("base..main", "text"));
    insta::assert_snapshot!("entered-note", run("base..main", "note"));
    let json = run("base..main", "json");
    let json = &json[json.find('{').unwrap()..json.find("-- err").unwrap()];
    let schemas = crate::documents::schemas(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas"
    )));
    let document = serde_json::from_str(json).unwrap();
    let mistakes = document::fixtures::mistakes(&schemas["series"], &document);
    assert_eq!(mistakes, Vec::<String>::new());
}

#[test]
fn hunks_of_commits_are_measured_in_order() {
    let home = fresh("hunks-home");
    let (tree, _) = regressed("hunks-tree");
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    tree.commit("mm/memory.c", &source_of(1, 1));
    let new = tree.git(&["show", "main:choice"]);
    tree.file("choice", &new);
    tree.commit("mm/memory.c", &source_of(2, 1));
    let hunks = |words: &[&str]| {
        let text = series(&home, &tree, words, "");
        let base = tree.git(&["rev-parse", "HEAD~1"]);
        let head = tree.git(&["rev-parse", "HEAD"]);
        text.replace(&base[..12], "BASE........")
            .replace(&head[..12], "HEAD........")
            .replace(&head[..8], "HEAD....")
    };
    insta::assert_snapshot!("hunks", hunks(&["1", "--hunks"]));
    let note = hunks(&["1", "--hunks", "--format", "note"]);
    assert!(
        note.contains("marvin series BASE..........HEAD........ --hunks"),
        "{note}"
    );
    tree.git(&[
        "merge", "-q", "--no-ff", "-m", "merged", "main~1", "-X", "theirs",
    ]);
    insta::assert_snapshot!("hunks-of-merges", hunks(&["good..HEAD", "--hunks"]));
}

/// A mail that replaces or creates a file of this name.
fn hostile_mail(number: usize, file: &str, mode: &str) -> String {
    format!(
        "From a Thu Jan  1 00:00:00 1970\nFrom: a\x1b[31m <a@example.org>\nMessage-Id: <{number}@example.org>\n\
         Subject: [PATCH {number}/4] evil\x1b]0;title\x07 $(touch pwned)\n\n---\ndiff --git a/{file} b/{file}\n\
         new file mode {mode}\nindex 0000000..1111111\n--- /dev/null\n+++ b/{file}\n@@ -0,0 +1 @@\n+../../outside\n\
         \\ No newline at end of file\n-- \n2.40\n\n"
    )
}

#[test]
fn hostile_patches_reach_nothing_outside() {
    let home = fresh("hostile-patches-home");
    let (tree, _) = regressed("hostile-patches-tree");
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    let mails = [
        hostile_mail(1, "../../../outside", "100644"),
        hostile_mail(2, ".git/hooks/post-checkout", "100755"),
        hostile_mail(3, "mm/link", "120000"),
        // Through the link of the patch before.
        hostile_mail(4, "mm/link/through", "100644"),
    ];
    let text = series(&home, &tree, &["-", "--base", "good"], &mails.concat());
    assert!(text.starts_with("exit 4"), "{text}");
    assert_eq!(text.matches("does not apply:").count(), 3, "{text}");
    assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text}");
    assert!(!tree.folder.join(".git/hooks/post-checkout").exists());
    assert!(!tree.folder.join("pwned").exists() && !tree.folder.join("mm/link").exists());
    let device = series(&home, &tree, &["/dev/zero"], "");
    assert!(device.starts_with("exit 2"), "{device}");
    let many: String = (1..=501)
        .map(|number| hostile_mail(number, &format!("mm/{number}.c"), "100644"))
        .map(|mail| mail.replacen("/4] evil", "/501] evil", 1))
        .collect();
    let text = series(&home, &tree, &["-", "--base", "good"], &many);
    assert!(
        text.starts_with("exit 2") && text.contains("at most 500"),
        "{text}"
    );
}

#[test]
fn three_way_merge_applies_patches_of_older_files() {
    let home = fresh("three-way-home");
    let (tree, _) = regressed("three-way-tree");
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    let lines = |changed: &[usize]| -> String {
        (1..40)
            .map(|line| {
                format!(
                    "{line}{}\n",
                    if changed.contains(&line) { " new" } else { "" }
                )
            })
            .collect()
    };
    tree.commit("mm/long.c", &lines(&[]));
    tree.commit("mm/long.c", &lines(&[25]));
    let patch = tree.git(&["format-patch", "--stdout", "-1"]) + "\n";
    tree.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let fits = tree.git(&["rev-parse", "HEAD"]);
    tree.commit("mm/memory.c", "// another file\n");
    // A line of the patch's context changes.
    tree.commit("mm/long.c", &lines(&[22]));
    let refused = series(&home, &tree, &["-", "--base", "HEAD"], &patch);
    assert!(refused.starts_with("exit 4"), "{refused}");
    let merged = series(&home, &tree, &["-", "--base", "HEAD", "--3way"], &patch);
    assert!(!merged.contains("does not apply"), "{merged}");
    let found = series(&home, &tree, &["-"], &patch);
    let expected = format!("on {}, the newest that left its files so", &fits[..12]);
    assert!(found.contains(&expected), "{found}");
}

#[test]
fn patches_behind_a_broken_one_are_measured() {
    let home = fresh("broken-patch-home");
    let (tree, _) = regressed("broken-patch-tree");
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    let makefile = crate::bisected::MAKEFILE;
    let fails = "vmlinux:\n\t@! test -e mm/broken.c || { echo 'mm/broken.c:1:1: error: broken' >&2; exit 1; }\n";
    tree.commit("Makefile", &makefile.replacen("vmlinux:\n", fails, 1));
    let base = tree.git(&["rev-parse", "HEAD"]);
    tree.commit("mm/broken.c", "1\n");
    let slower = tree.git(&["show", "main:choice"]);
    tree.commit("choice", &slower);
    let measured = |words: &[&str], input: &str| {
        let mut text = series(&home, &tree, words, input);
        for (number, revision) in ["HEAD~2", "HEAD~1", "HEAD"].into_iter().enumerate() {
            let hash = tree.git(&["rev-parse", revision]);
            text = text.replace(&hash[..12], &format!("COMMIT{number}....."));
        }
        text
    };
    insta::assert_snapshot!("broken-commit", measured(&["2"], ""));
    let mails = tree.git(&["format-patch", "--stdout", &format!("{base}..HEAD")]);
    let proof = home.join("broken.proof").display().to_string();
    let words = ["-", "--base", &base, "--proof", &proof];
    let patches = measured(&words, &mails);
    assert!(patches.contains("those behind it are applied"), "{patches}");
    let replay = marvin(&home)
        .args(["replay", &proof, "-q", "--tree", &tree.name()])
        .output();
    let replay = format_output(&replay.unwrap(), &home);
    assert!(replay.starts_with("exit 0"), "{replay}");
    // A series that is repaired by a later commit is measured as it is.
    tree.commit("mm/broken.c", "2\n");
    tree.git(&["rm", "-q", "mm/broken.c"]);
    tree.git(&["commit", "-qm", "repaired"]);
    tree.git(&["tag", "-f", "base", &base]);
    let repaired = series(&home, &tree, &["base..HEAD"], "");
    assert!(
        repaired.contains("repaired") && !repaired.contains("same error"),
        "{repaired}"
    );
}

/// Makes a public-inbox of mails, and serves it. Returns the server and the inbox's address.
fn serve_inbox(folder: &Path, mails: &str) -> (Child, String) {
    let inbox = folder.join("inbox");
    let run = |program: &str, arguments: &[&str], input: &str| {
        let mut child = Command::new(program)
            .args(arguments)
            .env("HOME", folder)
            .env("PI_CONFIG", folder.join("config"))
            .env("ORIGINAL_RECIPIENT", "list@example.org")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success(), "{program}");
    };
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let address = format!("http://127.0.0.1:{port}/list");
    let place = inbox.display().to_string();
    run(
        "public-inbox-init",
        &["-V2", "list", &place, &address, "list@example.org"],
        "",
    );
    let no_check = "[publicinboxmda]\n\tspamcheck = none\n";
    let config = fs::read_to_string(folder.join("config")).unwrap();
    fs::write(folder.join("config"), config + no_check).unwrap();
    for mail in mails.split("\nFrom ").filter(|mail| mail.contains('\n')) {
        let (_, mail) = mail.split_once('\n').unwrap();
        run("public-inbox-mda", &["--no-precheck"], mail);
    }
    let server = Command::new("public-inbox-httpd")
        .args(["-l", &format!("http://127.0.0.1:{port}")])
        .env("HOME", folder)
        .env("PI_CONFIG", folder.join("config"))
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    (server, address)
}

/// Lets b4 ask a server in place of lore.kernel.org.
fn configure_b4(folder: &Path, address: &str) {
    let config =
        format!("[b4]\n\tmidmask = {address}/%s\n\tsearchmask = \"{address}/?x=m&t=1&q=%s\"\n");
    fs::write(folder.join(".gitconfig"), config).unwrap();
}

#[test]
fn threads_of_a_public_inbox_are_mailboxes() {
    if is_left_to_full("a public-inbox; links are tested with a file server, too") {
        return;
    }
    let home = fresh("public-inbox-home");
    let to = ["--base=good", "--to=list@example.org", "--thread"];
    let (tree, thread) = tree_and_thread("public-inbox-tree", &to);
    let first = thread.split("Message-Id: <").nth(1).unwrap();
    let id = first.split('>').next().unwrap().to_owned();
    let answers = format!("--in-reply-to={id}");
    tree.git(&["checkout", "-q", "main"]);
    let version = |words: &[&str], range: &str, number: &str| {
        let format = ["format-patch", "--stdout", "--cover-letter", "-v", number];
        let mails = tree.git(&[&format[..], words, &to, &[range]].concat());
        // Git makes ids of commits and the second.
        mails.replace("Message-Id: <", &format!("Message-Id: <v{number}."))
    };
    // The second version answers the first; the third is a thread of its own.
    let newer = version(&[&answers], "good..main~2", "2");
    let newest = version(&[], "good..main~3", "3");
    let newest = newest
        .replace("Reply-To: <", "Reply-To: <v3.")
        .replace("References: <", "References: <v3.");
    tree.git(&["checkout", "-q", "work"]);
    let subject = |mails: &str| mails.replace("*** SUBJECT HERE ***", "memory: change it all");
    let [thread, newer, newest] = [&thread, &newer, &newest].map(|mails| subject(mails));
    let folder = fresh("public-inbox");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("thread.mbox");
    fs::write(&file, format!("{thread}{newer}\n")).unwrap();
    let (mut server, address) = serve_inbox(&folder, &format!("\n{thread}{newer}\n{newest}\n"));
    let link = format!("{address}/{id}/T/#t");
    let fetched = series(&home, &tree, &[&link], "").replace(&link, "PLACE");
    let name = file.display().to_string();
    let read = series(&home, &tree, &[&name], "").replace(&name, "PLACE");
    configure_b4(&folder, &address);
    let of_b4 = marvin(&home)
        .args(["series", &format!("lore:{id}"), "--workload", "getppid"])
        .args(["--quick", "--tree", &tree.name()])
        .env("HOME", &*folder)
        .output();
    let of_b4 = format_output(&of_b4.unwrap(), &home);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(read.contains("7 patches of PLACE"), "the newest: {read}");
    assert_eq!(fetched, read);
    assert!(of_b4.contains("6 patches of lore:"), "{of_b4}");
}

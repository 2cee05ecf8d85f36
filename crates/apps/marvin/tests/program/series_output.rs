//! `marvin series` for others: a page, a mail that answers the thread, exit codes for
//! `git bisect run`.

use crate::bisected::regressed;
use crate::fresh::fresh;
use crate::patch_series::{series, tree_and_thread};
use crate::{format_output, is_left_to_full, marvin, output_of};

/// Returns what the program wrote to standard output.
fn written(text: &str) -> &str {
    let start = text.find("\n-- out\n").map_or(0, |at| at + 8);
    let end = text.find("-- err").unwrap_or(text.len());
    &text[start..end]
}

#[test]
fn thread_is_answered_by_mail() {
    let home = fresh("answered-thread-home");
    let recipients = [
        "--thread",
        "--to=linux-mm@example.org",
        "--cc=B <b@example.org>",
        "--base=good",
    ];
    let (tree, thread) = tree_and_thread("answered-thread-tree", &recipients);
    let id = thread
        .lines()
        .find_map(|line| line.strip_prefix("Message-Id: "))
        .or_else(|| {
            thread
                .lines()
                .find_map(|line| line.strip_prefix("Message-ID: "))
        })
        .unwrap()
        .to_owned();
    let answer = |format: &str| series(&home, &tree, &["-", "--format", format], &thread);
    let mail = answer("mail").replace(&id, "<COVER>");
    insta::assert_snapshot!("answer-as-mail", mail);
    assert!(
        !mail.contains("linux-mm@"),
        "one seed makes a draft: {mail}"
    );
    let page = answer("html");
    let page = written(&page);
    assert!(page.contains("<!DOCTYPE html>"), "{page}");
    assert!(
        page.contains("worse") && page.contains("fork-exit"),
        "{page}"
    );
    assert!(
        !page.contains("http://") && !page.contains("src=\""),
        "it loads nothing"
    );
}

#[test]
fn git_bisect_run_finds_the_commit() {
    let home = fresh("bisect-run-home");
    let (tree, guilty) = regressed("bisect-run-tree");
    tree.git(&["bisect", "start", "main", "good"]);
    let variable = format!("MARVIN_HOME={}", home.display());
    let run = [
        &[
            "bisect",
            "run",
            "env",
            &variable,
            env!("CARGO_BIN_EXE_marvin"),
        ][..],
        &["compare", "good", "HEAD", "--workload", "fork-exit"],
        &["--quick", "--bisect-run", "-q"],
    ];
    let log = tree.git(&run.concat());
    let found = format!("{guilty} is the first bad commit");
    assert!(log.contains(&found), "{log}");
    tree.git(&["bisect", "reset"]);
    // What is no answer skips the commit: 1 to 127 are bad, and more end the search.
    let skipped = |words: &[&str]| output_of(&home, &[words, &["--bisect-run"]].concat());
    for words in [
        &["compare", "--nonesuch"][..],
        &["compare", "deb:6.1"],
        &["series", "--tree", "/nonesuch"],
    ] {
        let text = skipped(words);
        assert!(text.starts_with("exit 125"), "{words:?}: {text}");
    }
    tree.git(&["checkout", "-q", "main"]);
    tree.file("choice", "no-such-image\n");
    let words = ["compare", "good", ".", "--workload", "fork-exit", "--quick"];
    let output = marvin(&home)
        .args(words)
        .args(["--bisect-run", "-q"])
        .current_dir(&*tree.folder)
        .output();
    let broken = format_output(&output.unwrap(), &home);
    assert!(broken.starts_with("exit 125"), "{broken}");
}

#[test]
fn machines_share_a_table() {
    let home = fresh("two-machines-home");
    let (tree, _) = regressed("two-machines-tree");
    let on = |machines: &str, more: &[&str]| {
        let words = [&["good..main~1", "--on", machines][..], more].concat();
        series(&home, &tree, &words, "")
    };
    let both = on("exact,exact-smp", &[]);
    insta::assert_snapshot!("two-machines", both);
    assert!(both.contains("--on exact,exact-smp"), "{both}");
    let refused = ["vm", "local", "exact-smp", "moon"].map(|name| on(name, &[]));
    insta::assert_snapshot!("machines-are-refused", refused.join("\n"));
    let unnamed = [
        "series",
        "good..main~1",
        "--on",
        "exact,vm",
        "--tree",
        &tree.name(),
    ];
    let unnamed = output_of(&home, &unnamed);
    assert!(unnamed.contains("name the workloads"), "{unnamed}");
    let alone = on("exact", &["--cpus", "2"]);
    assert!(alone.starts_with("exit 2"), "{alone}");
    if is_left_to_full("time on a virtual machine") {
        return;
    }
    let timed = on("exact,vm", &["--boots", "2"]);
    let has = |word: &str| timed.contains(word);
    assert!(
        has("8 commits; vm: time, 2 boots") && has("--on exact,vm --boots 2"),
        "{timed}"
    );
    assert!(timed.contains("         vm"), "{timed}");
}

#[test]
fn ci_systems_get_their_formats() {
    let home = fresh("ci-formats-home");
    let (tree, thread) = tree_and_thread("ci-formats-tree", &["--thread", "--base=good"]);
    let answer = |words: &[&str], input: &str| {
        let text = series(&home, &tree, words, input);
        // Ids have the time and the host.
        let lines = text
            .lines()
            .map(|line| match line.split_once("\"msgid\": \"") {
                Some((before, _)) => format!("{before}\"msgid\": \"ID\","),
                None => line.to_owned(),
            });
        lines.collect::<Vec<_>>().join("\n")
    };
    for format in ["github", "gitlab", "comment", "note", "trailers", "b4"] {
        let name = format!("ci-{format}");
        insta::assert_snapshot!(name, answer(&["-", "--format", format], &thread));
    }
    let words = [
        "--format",
        "patchwork",
        "--target-url",
        "https://ci.example.org/42",
    ];
    let patchwork = answer(&[&["-"][..], &words].concat(), &thread);
    insta::assert_snapshot!("ci-patchwork", patchwork);
    // One line if nothing moved.
    let quiet = answer(&["good~0..good~0", "--format", "comment"], "");
    assert!(quiet.starts_with("exit 2"), "{quiet}");
    let quiet = answer(&["good..main~6", "--format", "comment"], "");
    assert_eq!(written(&quiet).trim().lines().count(), 2, "{quiet}");
    assert!(
        quiet.contains("Marvin: no change in 2 workloads"),
        "{quiet}"
    );
}

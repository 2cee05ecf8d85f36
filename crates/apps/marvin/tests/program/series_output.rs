//! `marvin series` for others: a page, and a mail that answers the thread.

use crate::fresh::fresh;
use crate::patch_series::{series, tree_and_thread};

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

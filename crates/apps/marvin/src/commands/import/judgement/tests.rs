//! Answers to a regression of which the mail names two functions, with rows that were measured.

use compare::LockBeside;
use document::layout::Page;
use model::{Uncertainty, Verdict};
use results::published::PublishedReport;

use super::{MeasuredRow, judge, names};
use crate::commands::compare::RowFunctions;
use crate::exit::Exit;

/// A row on one processor with this verdict and difference, and the functions that differ in it.
fn row(name: &str, verdict: Verdict, percent: f64, differing: &[&str]) -> MeasuredRow {
    MeasuredRow {
        name: name.to_owned(),
        margin_percent: 1.0,
        difference_percent: Some(percent),
        cycles_percent: Some([percent - 0.5, percent + 0.5]),
        verdict,
        origin: differing
            .first()
            .map(|function| format!("{name}: most in {function} +9.0"))
            .unwrap_or_default(),
        functions: RowFunctions {
            workload: name.to_owned(),
            leading: differing.first().map(|function| format!("{function} +9.0")),
            differing: differing
                .iter()
                .map(|&function| function.to_owned())
                .collect(),
            changed: ["charge".to_owned()].into(),
            is_of_one_commit: true,
            locks: Vec::new(),
        },
    }
}

/// What the command says to these rows.
fn answer(rows: &[MeasuredRow]) -> String {
    let report = PublishedReport::read(
        "noticed a -7.7% regression of will-it-scale.per_thread_ops on:\n\n\
         commit: a96ef5848cb0 (\"mm: a change\")\n\ntestcase: will-it-scale\n\
         parameters:\n\n\ttest: page_fault1\n\n\
         %stddev     %change         %stddev\n\n\
         10.00   +4.0   14.00   perf-profile.self.cycles-pp.mas_walk\n\
         10.00   -4.0    6.00   perf-profile.self.cycles-pp.clear_page\n",
    )
    .unwrap();
    let mut page = Page::default();
    let exit = judge(&report, rows, &mut page);
    format!("{}fine: {}\n\n", page.finish(), exit == Exit::Fine)
}

fn deferred(counted_percent: f64, with_deferred_percent: f64) -> Verdict {
    Verdict::Unclear(Uncertainty::Deferred {
        counted_percent,
        with_deferred_percent,
        deferred: [100.0, 150.0],
    })
}

fn held(held_percent: [f64; 2]) -> Verdict {
    Verdict::Unclear(Uncertainty::Held {
        counted_percent: 0.5,
        lock: "tasklist_lock".to_owned(),
        ns: [1000.0, 1500.0],
        held_percent,
        is_alone: true,
    })
}

#[test]
fn one_row_answers_by_verdict_and_functions() {
    let missing = Verdict::Unclear(Uncertainty::Missing("it failed".to_owned()));
    let mut all = String::new();
    for only in [
        row("fault-anon", Verdict::Worse, -10.0, &["mas_walk"]),
        row("fault-anon", Verdict::Same, 0.0, &[]),
        row("fault-anon", Verdict::Better, 20.0, &["fget"]),
        row("fault-anon", missing, 0.0, &[]),
        row("share-fault", held([-60.0, -40.0]), 0.5, &["charge"]),
    ] {
        all += &answer(&[only]);
    }
    all += &answer(&[]);
    insta::assert_snapshot!(all);
}

#[test]
fn rows_without_functions_do_not_count() {
    let first = || row("tcp-stream", Verdict::Same, 0.0, &["memcpy"]);
    let better = |differing: &[&str]| row("tcp-rr", Verdict::Better, 5.0, differing);
    let worse = |differing: &[&str]| row("memcg-fault", Verdict::Worse, -3.0, differing);
    let mut all = String::new();
    for rows in [
        // Of the commit, of none, of both in both directions.
        [first(), better(&["fget"]), worse(&["charge"])],
        [first(), better(&["fget"]), worse(&["fget"])],
        [first(), better(&["clear_page"]), worse(&["charge"])],
        [first(), better(&["charge"]), first()],
    ] {
        all += &answer(&rows);
    }
    insta::assert_snapshot!(all);
}

/// A lock that is held for longer: of a function, or of one side alone.
fn lock(function: Option<&str>, is_large: bool) -> LockBeside {
    LockBeside {
        lock: "unix_gc_lock".to_owned(),
        function: function.map(str::to_owned),
        ns: [0.0, 111.0],
        is_large,
    }
}

#[test]
fn lock_of_the_commit_decides_within_the_margin() {
    let mut all = String::new();
    for lock in [
        lock(Some("charge"), true),
        lock(Some("fget"), true),
        lock(None, true),
        lock(None, false),
    ] {
        let mut only = row("share-fault", Verdict::Same, 0.5, &["memcpy"]);
        only.functions.locks.push(lock);
        all += &answer(&[only]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn deferred_work_decides_within_the_margin() {
    let mut all = String::new();
    for verdict in [
        deferred(0.8, -2.5),
        deferred(-0.8, 2.5),
        deferred(2.0, -2.5),
    ] {
        let count = match &verdict {
            Verdict::Unclear(Uncertainty::Deferred {
                counted_percent, ..
            }) => *counted_percent,
            _ => 0.0,
        };
        let other = row("file-create", Verdict::Same, 0.3, &["charge"]);
        all += &answer(&[row("file-sync", verdict, count, &["charge"]), other]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn function_is_named_as_whole_word() {
    let sentence = "most in do_pollfd.isra.0 +4.0, fget -2.0";
    assert!(names(sentence, "do_pollfd") && names(sentence, "fget"));
    assert!(!names(sentence, "do_poll") && !names(sentence, "get"));
}

//! Tests of causes, and of the sentence that names them.

use std::collections::{BTreeMap, BTreeSet};

use model::{Profile, Share};

use super::CallersOfSides;
use crate::ledger::tests::profile;
use crate::ledger::{Ledger, scaled};

fn ledger(base: Profile, new: Profile) -> Ledger {
    Ledger::new("w", &[base], &[new]).unwrap()
}

fn causes(ledger: &Ledger) -> Vec<String> {
    let causes = ledger.causes();
    causes
        .iter()
        .map(|cause| ledger.cause_words(cause))
        .collect()
}

fn callers(known: [&[(&str, &[&str])]; 2]) -> CallersOfSides {
    known.map(|side| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (function, callers) in side {
            let callers = callers.iter().map(|caller| (*caller).to_owned());
            all.insert((*function).to_owned(), callers.collect());
        }
        all
    })
}

#[test]
fn renamed_function_with_equal_calls_is_netted() {
    let base = profile(1, &[("pipe_write", 500, 2), ("vfs_write", 100, 2)]);
    let new = profile(1, &[("anon_pipe_write", 520, 2), ("vfs_write", 130, 2)]);
    let netted = causes(&ledger(base, new));
    assert_eq!(
        netted,
        ["vfs_write +30.0", "anon_pipe_write +20.0 (with pipe_write)"]
    );
}

#[test]
fn names_alone_net_nothing() {
    let base = profile(1, &[("pipe_write", 500, 2)]);
    let other_calls = profile(1, &[("anon_pipe_write", 520, 3)]);
    let netted = causes(&ledger(base.clone(), other_calls));
    assert_eq!(netted, ["anon_pipe_write +520.0", "pipe_write -500.0"]);
    let other_size = profile(1, &[("anon_pipe_write", 900, 2)]);
    let netted = causes(&ledger(base, other_size));
    assert_eq!(netted, ["anon_pipe_write +900.0", "pipe_write -500.0"]);
}

#[test]
fn common_callers_decide_beside_alike_names() {
    let base = profile(
        1,
        &[
            ("__fget_light", 136, 4),
            ("vfs_read", 10, 4),
            ("idle", 5, 1),
        ],
    );
    let new = profile(
        1,
        &[("fdget_pos", 148, 4), ("vfs_read", 10, 4), ("idle", 5, 1)],
    );
    let mut ledger = ledger(base, new);
    assert_eq!(causes(&ledger).len(), 2, "nothing speaks for a pair");
    ledger.callers = callers([
        &[("__fget_light", &["vfs_read"])],
        &[("fdget_pos", &["vfs_read"])],
    ]);
    assert_eq!(causes(&ledger), ["fdget_pos +12.0 (with __fget_light)"]);
    ledger.callers = callers([
        &[("__fget_light", &["vfs_read"])],
        &[("fdget_pos", &["idle"])],
    ]);
    assert_eq!(causes(&ledger).len(), 2, "others call it");
}

#[test]
fn renamed_callers_in_between_are_passed_over() {
    let base = profile(
        1,
        &[
            ("fget_light", 140, 4),
            ("fdget_raw", 20, 4),
            ("read", 10, 4),
        ],
    );
    let new = profile(1, &[("fdget_position", 150, 4), ("read", 10, 4)]);
    let mut ledger = ledger(base, new);
    ledger.callers = callers([
        &[("fget_light", &["fdget_raw"]), ("fdget_raw", &["read"])],
        &[("fdget_position", &["read"])],
    ]);
    assert_eq!(
        causes(&ledger),
        ["fdget_raw -20.0", "fdget_position +10.0 (with fget_light)"]
    );
}

#[test]
fn inlined_function_is_netted_with_its_caller() {
    let base = profile(
        1,
        &[("enqueue_entity", 250, 2), ("enqueue_task_fair", 100, 2)],
    );
    let new = profile(
        1,
        &[("enqueue_task_fair", 330, 2), ("enqueue_entity", 1, 0)],
    );
    let mut inlined = ledger(base.clone(), new);
    assert_eq!(causes(&inlined).len(), 2, "no caller is known");
    inlined.callers = callers([&[("enqueue_entity", &["enqueue_task_fair"])], &[]]);
    assert_eq!(
        causes(&inlined),
        ["enqueue_task_fair -19.0 (with enqueue_entity)"]
    );
    // A caller that did not grow did not take it in: the function is gone.
    let gone = profile(1, &[("enqueue_task_fair", 110, 2)]);
    let mut gone = ledger(base, gone);
    gone.callers = inlined.callers;
    assert_eq!(
        causes(&gone),
        ["enqueue_entity -250.0", "enqueue_task_fair +10.0"]
    );
}

#[test]
fn clearing_inlined_elsewhere_is_still_clearing() {
    let mut base = profile(1, &[("clear_page_rep", 5, 1), ("fault", 300, 1)]);
    base.lines[0].repeated = 512;
    let mut new = profile(1, &[("kernel_init_pages", 0, 0), ("fault", 340, 1)]);
    new.lines[1].repeated = 512;
    let netted = ledger(base, new);
    assert_eq!(
        causes(&netted),
        ["fault +40.0", "clearing and copying -5.0 (clear_page_rep)"]
    );
}

#[test]
fn helpers_do_not_lead_unless_they_are_most() {
    let base = profile(
        1,
        &[
            ("memset_orig", 100, 1),
            ("walk", 100, 1),
            ("__x86_return_thunk", 10, 1),
        ],
    );
    let some = profile(
        1,
        &[
            ("memset_orig", 150, 1),
            ("walk", 140, 1),
            ("__x86_return_thunk", 55, 1),
        ],
    );
    let sentence = ledger(base.clone(), some).sentence();
    assert!(
        sentence
            .contains("most in walk +40.0, clearing and copying +50.0 (memset_orig), thunks +45.0 (__x86_return_thunk)"),
        "{sentence}"
    );
    let most = profile(
        1,
        &[
            ("memset_orig", 190, 1),
            ("walk", 140, 1),
            ("__x86_return_thunk", 10, 1),
        ],
    );
    let sentence = ledger(base, most).sentence();
    assert!(
        sentence.contains("most in clearing and copying +90.0"),
        "{sentence}"
    );
}

#[test]
fn larger_change_against_the_difference_is_named() {
    let base = profile(1, &[("walk", 100, 1), ("charge", 200, 1), ("lock", 50, 1)]);
    let new = profile(1, &[("walk", 190, 1), ("charge", 100, 1), ("lock", 80, 1)]);
    insta::assert_snapshot!(
        ledger(base, new).sentence(),
        @"w: +20.0 instructions per operation (-5.71%, + is better); most in walk +90.0, lock +30.0: together +120.0, others make up for it; against it charge -100.0"
    );
}

/// Returns the ledger of recorded counts; the head of the file says of how many operations.
fn recorded(text: &str) -> Ledger {
    let (_, head) = text.split_once("over ").unwrap();
    let operations = head.split(' ').next().unwrap().parse().unwrap();
    let mut sides = [profile(operations, &[]), profile(operations, &[])];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let counts: Vec<u64> = words[words.len() - 6..]
            .iter()
            .map(|word| word.parse().unwrap())
            .collect();
        let symbol = words[..words.len() - 6].join(" ");
        for (side, counts) in sides.iter_mut().zip(counts.chunks(3)) {
            let mut added = profile(operations, &[(&symbol, counts[0] - counts[1], counts[2])]);
            added.lines[0].repeated = counts[1];
            let is_executed = counts[0] > 0;
            side.lines
                .extend(added.lines.into_iter().filter(|_| is_executed));
        }
    }
    let [base, new] = sides;
    ledger(base, new)
}

#[test]
fn copying_of_real_kernels_does_not_lead() {
    let text = include_str!("../data/file-write-4k.txt");
    let ledger = recorded(text);
    let copies = ["rep_movs_alternative", "copy_user_generic_string"];
    let first: Vec<&str> = ledger.lines[..2]
        .iter()
        .map(|line| &*line.function)
        .collect();
    assert_eq!(first, copies, "the largest lines");
    let sentence = ledger.sentence();
    assert!(
        copies.iter().all(|copy| !sentence.contains(copy)),
        "{sentence}"
    );
    let causes = causes(&ledger);
    let renamed = "file_remove_privs_flags +1.0 (with __file_remove_privs)";
    assert!(causes.iter().any(|cause| cause == renamed), "{causes:#?}");
}

#[test]
fn caller_of_real_kernels_takes_over_its_callee() {
    let text = include_str!("../data/fault-anon.txt");
    let mut ledger = recorded(text);
    // By the calls in the new image.
    ledger.callers = callers([&[], &[("do_anonymous_page", &["__handle_mm_fault"])]]);
    let causes = causes(&ledger);
    for netted in [
        "__handle_mm_fault +24.0 (with do_anonymous_page)",
        "mas_walk +26.0 (with mtree_range_walk)",
    ] {
        assert!(causes.iter().any(|cause| cause == netted), "{causes:#?}");
    }
}

/// Returns a profile of functions by number; a part of their instructions is repeated.
fn numbered(counts: &[(u64, u64, usize)]) -> Profile {
    const NAMES: [&str; 8] = [
        "clear_page_rep",
        "kernel_init_pages",
        "__x86_return_thunk",
        "walk",
        "mas_walk",
        "pipe_write",
        "anon_pipe_write",
        "[user]",
    ];
    let lines: Vec<(&str, u64, u64)> = counts
        .iter()
        .map(|(instructions, _, name)| (NAMES[*name], *instructions, 1))
        .collect();
    let mut profile = profile(1, &lines);
    for (line, (_, repeated, _)) in profile.lines.iter_mut().zip(counts) {
        line.repeated = *repeated;
    }
    profile
}

proptest::proptest! {
    #[test]
    fn causes_add_up_for_any_numbers(
        base in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 40, 0_usize..8), 0..20),
        new in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 40, 0_usize..8), 0..20),
    ) {
        let base = numbered(&base);
        let new = numbered(&new);
        let whole = scaled([1, 1], base.total(), new.total());
        let mut ledger = ledger(base, new);
        ledger.callers = callers([&[("walk", &["mas_walk"])], &[("mas_walk", &["walk"])]]);
        let causes: i128 = ledger.causes().iter().map(|cause| cause.scaled).sum();
        proptest::prop_assert_eq!(causes, whole);
        for cause in ledger.causes() {
            proptest::prop_assert!(cause.share == Share::Kernel || cause.is_on_path());
        }
    }
}

//! Which commits are built, and what becomes of those that do not build.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use kernel::Compiled;
use lab::{BisectionEvent, BisectionLog, Reuse, bisect};

use super::{FakeProber, NOISY, QUESTION, Tree, culprits, found};

/// Returns the files that each object is compiled from.
fn compiled<'a>(objects: impl IntoIterator<Item = &'a [String]>) -> Compiled {
    let home = tempfile::tempdir().unwrap();
    for (number, files) in objects.into_iter().enumerate() {
        let paths: Vec<String> = files.iter().map(|file| format!("/src/{file}")).collect();
        fs::write(
            home.path().join(format!(".{number}.o.cmd")),
            paths.join(" "),
        )
        .unwrap();
    }
    Compiled::of_build(home.path(), Path::new("/src")).unwrap()
}

#[test]
fn widely_used_header_is_rebuilt_rarely() {
    let tree = Tree::new();
    tree.noise(24, "a");
    let header = tree.commit("costs/header", "0");
    tree.noise(5, "b");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(9, "c");
    let history = tree.history();
    let number = |commit: &str| (0..history.count()).find(|number| history.id(*number) == commit);
    let crossed = |objects: usize| {
        let mut prober = FakeProber::new(&tree);
        let file = ["costs/header".to_owned()];
        prober.compiled = compiled(std::iter::repeat_n(&file[..], objects));
        assert_eq!(
            culprits(&found(tree.bisect(&QUESTION, &mut prober))),
            [&*guilty]
        );
        assert!(prober.builds() <= 6 + 2, "{}", prober.builds());
        let after: Vec<bool> = prober
            .probed
            .iter()
            .map(|commit| number(commit) >= number(&header))
            .collect();
        after.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    assert_eq!((crossed(1), crossed(100)), (3, 1));
}

#[test]
fn uncompiled_commits_are_skipped_unless_guilty() {
    let tree = Tree::new();
    let mut used = vec!["costs/base".to_owned()];
    let mut guilty = String::new();
    for n in 0..64 {
        let file = format!("costs/f{n}.c");
        let commit = tree.commit(&file, if n == 40 { "100" } else { "0" });
        if n % 8 == 0 {
            used.push(file);
        }
        if n == 40 {
            guilty = commit;
        }
    }
    let mut prober = FakeProber::new(&tree);
    prober.compiled = compiled([&*used]);
    let findings = found(tree.bisect(&QUESTION, &mut prober));
    assert_eq!(culprits(&findings), [&*guilty]);
    assert_eq!((findings.commits, findings.commits_kept), (64, 8));
    assert!(
        prober.builds() <= 3 + 2 + 1,
        "ends, three steps among eight, the culprit's parent: {}",
        prober.builds()
    );

    // The file list lacks the culprit: its neighbour must not be blamed.
    let mut prober = FakeProber::new(&tree);
    used.retain(|file| !file.ends_with("f40.c"));
    prober.compiled = compiled([&*used]);
    let unpruned = RefCell::new(0);
    let count = |event: BisectionEvent<'_>| {
        if matches!(event, BisectionEvent::Unpruned(_)) {
            *unpruned.borrow_mut() += 1;
        }
    };
    let bisected = bisect(
        &tree.history(),
        &QUESTION,
        &mut prober,
        &mut BisectionLog::nowhere(),
        &count,
    )
    .unwrap();
    assert_eq!(culprits(&found(bisected)), [&*guilty]);
    assert_eq!(unpruned.into_inner(), 1);
}

#[test]
fn failed_build_stays_a_candidate() {
    let tree = Tree::new();
    tree.noise(10, "a");
    let broken = tree.commit("costs/broken", "x");
    let guilty = tree.commit("costs/slow", "100");
    let mended = tree.commit("costs/broken", "0");
    tree.noise(10, "b");
    let findings = found(tree.bisect(&QUESTION, &mut FakeProber::new(&tree)));
    assert_eq!(findings.culprits.len(), 1);
    assert_eq!(findings.culprits[0].candidates, [broken, guilty, mended]);
}

#[test]
fn interrupted_bisection_continues() {
    let tree = Tree::new();
    tree.noise(20, "a");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(20, "b");
    let home = tempfile::tempdir().unwrap();
    let mut whole = FakeProber::new(&tree);
    tree.bisect(&QUESTION, &mut whole);
    let mut all = 0;
    for turn in 0.. {
        let mut prober = FakeProber {
            fails_after: 2,
            ..FakeProber::new(&tree)
        };
        let mut log = BisectionLog::open(home.path(), "good..HEAD", Reuse::Stored).unwrap();
        assert!(log.resumed_count() <= 2 * turn && (turn == 0 || log.resumed_count() > 0));
        let end = bisect(&tree.history(), &QUESTION, &mut prober, &mut log, &|_| {});
        all += prober.probed.len();
        if let Ok(end) = end {
            assert_eq!(culprits(&found(end)), [&*guilty]);
            // Known measurements may shorten the search.
            assert!(log.entries().len() <= whole.builds());
            break;
        }
    }
    assert!(
        all <= whole.probed.len() + 1,
        "{all} {}",
        whole.probed.len()
    );
}

#[test]
fn range_without_builds_gives_one_answer() {
    let tree = Tree::new();
    let mut all = vec![tree.commit("costs/broken", "x")];
    all.extend((0..6).map(|n| tree.commit(&format!("costs/n{n}"), "0")));
    tree.commit("costs/slow", "100");
    all.push(tree.git(&["rev-parse", "HEAD"]));
    all.push(tree.commit("costs/broken", "0"));
    for question in [QUESTION, NOISY] {
        let findings = found(tree.bisect(&question, &mut FakeProber::new(&tree)));
        assert_eq!(findings.culprits.len(), 1);
        assert_eq!(findings.culprits[0].candidates, all);
        assert!(
            (findings.explained_percent() - 100.0).abs() < 5.0,
            "{}",
            findings.explained_percent()
        );
    }
}

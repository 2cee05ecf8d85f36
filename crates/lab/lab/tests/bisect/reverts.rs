//! A culprit is confirmed by its revert.

use lab::{BisectionLog, BisectionQuestion, Confirm, Reverted, Stands, bisect};

use super::{FakeProber, QUESTION, Tree, found};

#[test]
fn culprit_is_reverted_on_top_of_bad() {
    let tree = Tree::new();
    tree.noise(10, "a");
    let slow = tree.commit("costs/slow", "100");
    tree.noise(5, "b");
    let question = BisectionQuestion {
        confirm: Confirm::Revert,
        ..QUESTION
    };
    let reverted = |tree: &Tree| {
        let mut log = BisectionLog::nowhere();
        let ended = bisect(
            &tree.history(),
            &question,
            &mut FakeProber::new(tree),
            &mut log,
            &|_| {},
        )
        .unwrap();
        let mut findings = found(ended);
        (
            findings.culprits.remove(0).reverted.unwrap(),
            log.entries().last().unwrap().clone(),
        )
    };
    let (undone, last) = reverted(&tree);
    let Reverted::Undone(change) = undone else {
        panic!("{undone:?}")
    };
    assert_eq!((change.before, change.after), (1101.5, 1001.5));
    assert_eq!((last.of, last.stands), (slow, Stands::Without));
    // A later commit builds on it.
    tree.commit("costs/slow", "120");
    assert_eq!(reverted(&tree).0, Reverted::Conflicts);
}

#[test]
fn ambiguous_culprits_are_not_reverted() {
    let tree = Tree::new();
    tree.noise(3, "a");
    tree.commit("costs/slow", "100");
    tree.commit("costs/needs-slow", "x");
    let guilty = tree.commit("costs/needs-slow", "300");
    let question = BisectionQuestion {
        confirm: Confirm::Revert,
        margin_percent: Some(1.0),
        ..QUESTION
    };
    let findings = found(tree.bisect(&question, &mut FakeProber::new(&tree)));
    let last = findings.culprits.last().unwrap();
    assert_eq!(last.candidates.last(), Some(&guilty));
    assert_eq!(last.reverted, None, "the culprit is ambiguous");
    assert!(matches!(
        findings.culprits[0].reverted,
        Some(Reverted::Undone(_))
    ));
}

//! Ranges and ends that cannot be searched.

use kernel::Repository;
use lab::{Bisected, BisectionQuestion, Refused};

use super::{FakeProber, QUESTION, Tree};

#[test]
fn equal_or_unbuildable_ends_are_refused() {
    let tree = Tree::new();
    tree.noise(10, "a");
    tree.commit("costs/little", "1");
    let mut prober = FakeProber::new(&tree);
    assert!(matches!(
        tree.bisect(
            &BisectionQuestion {
                margin_percent: Some(1.0),
                ..QUESTION
            },
            &mut prober
        ),
        Bisected::Refused(Refused::NoDifference { .. })
    ));
    assert_eq!(prober.probed.len(), 2);
    let broken = tree.commit("costs/broken", "x");
    let refused = tree.bisect(&QUESTION, &mut FakeProber::new(&tree));
    assert!(matches!(refused, Bisected::Refused(Refused::End { commit, .. }) if commit == broken));
}

#[test]
fn invalid_ranges_are_refused_with_a_hint() {
    let tree = Tree::new();
    tree.noise(3, "a");
    tree.git(&["checkout", "-qb", "side", "good"]);
    tree.noise(2, "s");
    tree.git(&["checkout", "-q", "--orphan", "alone"]);
    tree.commit("costs/base", "7");
    let repository = tree.repository();
    let short = |text: String| text.replace(&repository.folder().display().to_string(), "TREE");
    let error =
        |good: &str, bad: &str| short(repository.history(good, bad).unwrap_err().to_string());
    let mut message: Vec<String> = [
        ("main", "good"),
        ("main", "side"),
        ("good", "alone"),
        ("good", "v9.9"),
        ("good", "--all"),
        ("good", "good"),
    ]
    .map(|(good, bad)| error(good, bad))
    .to_vec();
    let clone = tempfile::tempdir().unwrap();
    let from = format!("file://{}", tree.folder.path().display());
    let depth = [
        "clone",
        "-q",
        "--depth",
        "2",
        "--branch",
        "main",
        &from,
        clone.path().to_str().unwrap(),
    ];
    tree.git(&depth);
    let shallow = Repository::open(clone.path()).unwrap();
    assert_eq!(
        shallow.history("HEAD~1", "HEAD").unwrap().count(),
        1,
        "what is there can be searched"
    );
    let error = shallow
        .history("HEAD", &shallow.commit("HEAD").unwrap())
        .unwrap_err();
    assert!(error.to_string().contains("are the same commit"), "{error}");
    let nowhere = tempfile::tempdir().unwrap();
    let error = Repository::open(nowhere.path()).unwrap_err().to_string();
    message.push(error.replace(
        &nowhere.path().canonicalize().unwrap().display().to_string(),
        "FOLDER",
    ));
    insta::assert_snapshot!(message.join("\n"));
}

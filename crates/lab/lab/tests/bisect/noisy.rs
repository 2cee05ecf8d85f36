//! Machines with noise: steps with probabilities.

use lab::{
    Bisected, BisectionLog, BisectionQuestion, Confirm, Noise, Refused, Reuse, Reverted, bisect,
};

use super::{DEVIATION, FakeProber, NOISY, Tree, culprits, found};

#[test]
fn noisy_steps_are_found_with_probabilities() {
    let tree = Tree::new();
    let mut guilty = Vec::new();
    for (n, cost) in ["240", "-150", "200"].into_iter().enumerate() {
        tree.noise(12, &format!("n{n}-"));
        guilty.push(tree.commit(&format!("costs/step{n}"), cost));
    }
    tree.noise(12, "z");
    let mut prober = FakeProber {
        deviation: Some(DEVIATION),
        ..FakeProber::new(&tree)
    };
    let question = BisectionQuestion {
        confirm: Confirm::Revert,
        intervals: 4,
        margin_percent: Some(8.0),
        ..NOISY
    };
    let mut log = BisectionLog::nowhere();
    let findings =
        found(bisect(&tree.history(), &question, &mut prober, &mut log, &|_| {}).unwrap());
    assert_eq!(culprits(&findings), guilty);
    for (culprit, height) in findings.culprits.iter().zip([240.0, -150.0, 200.0]) {
        let certainty = culprit.certainty.unwrap();
        assert!(
            certainty.chance > 0.97 && certainty.error_percent > 0.0,
            "{culprit:?}"
        );
        assert!(
            (culprit.change.after - culprit.change.before - height).abs() < 3.0 * DEVIATION,
            "{culprit:?}"
        );
        assert!(
            matches!(culprit.reverted, Some(Reverted::Undone(_))),
            "{culprit:?}"
        );
    }
    let explained = findings.explained_percent();
    assert!((70.0..130.0).contains(&explained), "{explained}");
    assert!(prober.runs < 400, "{}", prober.runs);
}

#[test]
fn noisy_equal_ends_are_refused() {
    let tree = Tree::new();
    tree.noise(10, "a");
    let mut prober = FakeProber {
        deviation: Some(DEVIATION),
        ..FakeProber::new(&tree)
    };
    let Bisected::Refused(Refused::NotSeen {
        runs,
        error_percent,
        ..
    }) = tree.bisect(&NOISY, &mut prober)
    else {
        panic!("noise is no difference")
    };
    assert!(runs as u64 == prober.runs && error_percent > 0.0, "{runs}");
}

#[test]
fn noisy_equal_images_are_measured_as_one() {
    let tree = Tree::new();
    tree.noise(30, "a");
    let guilty = tree.commit("costs/slow", "300");
    tree.noise(30, "b");
    let mut prober = FakeProber {
        deviation: Some(DEVIATION),
        ..FakeProber::new(&tree)
    };
    // Where builds scatter, more runs of two builds never show that they are equal.
    let question = BisectionQuestion {
        noise: Noise::Runs {
            bias: 0.5,
            runs_max: 2000,
        },
        ..NOISY
    };
    let findings = found(tree.bisect(&question, &mut prober));
    assert_eq!(culprits(&findings), [&*guilty]);
    assert!(prober.runs < 40, "{}", prober.runs);
}

#[test]
fn interrupted_noisy_bisection_continues() {
    let tree = Tree::new();
    tree.noise(20, "a");
    let guilty = tree.commit("costs/slow", "90");
    tree.noise(20, "b");
    let noisy = || FakeProber {
        deviation: Some(DEVIATION),
        ..FakeProber::new(&tree)
    };
    let mut whole = noisy();
    assert_eq!(
        culprits(&found(tree.bisect(&NOISY, &mut whole))),
        [&*guilty]
    );
    let home = tempfile::tempdir().unwrap();
    let mut runs = 0;
    for _ in 0..whole.probed.len() {
        let mut prober = FakeProber {
            fails_after: 2,
            ..noisy()
        };
        let mut log = BisectionLog::open(home.path(), "good..HEAD", Reuse::Stored).unwrap();
        let end = bisect(&tree.history(), &NOISY, &mut prober, &mut log, &|_| {});
        runs += prober.runs;
        if let Ok(end) = end {
            assert_eq!(culprits(&found(end)), [&*guilty]);
            break;
        }
    }
    assert_eq!(runs, whole.runs, "the same runs, none twice");
}

#[test]
fn noisy_guilty_merge_is_searched() {
    let tree = Tree::new();
    tree.noise(5, "a");
    tree.git(&["checkout", "-qb", "side", "good"]);
    tree.noise(6, "s");
    let guilty = tree.commit("costs/slow", "300");
    tree.noise(3, "t");
    tree.git(&["checkout", "-q", "main"]);
    tree.git(&["merge", "-q", "--no-ff", "-m", "merge the side", "side"]);
    tree.noise(5, "b");
    let mut prober = FakeProber {
        deviation: Some(DEVIATION),
        ..FakeProber::new(&tree)
    };
    let findings = found(tree.bisect(&NOISY, &mut prober));
    assert_eq!(culprits(&findings), [&*guilty]);
    assert!(findings.culprits[0].merge.is_some());
}

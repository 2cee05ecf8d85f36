//! Steps are found, however many there are and whatever the two clocks say.

use compare::Scale;
use lab::{Bisected, BisectionQuestion, Noise, Refused, values_of};
use model::{
    BuildId, MachineId, MachineKind, Outcome, Region, Run, RunId, UnixTime, WorkloadResult,
};

use super::{FIRST_SEED, FakeProber, QUESTION, Tree, culprits, found};

#[test]
fn commit_is_found_in_logarithmic_builds() {
    let tree = Tree::new();
    tree.noise(20, "a");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(42, "b");
    let mut prober = FakeProber::new(&tree);
    let findings = found(tree.bisect(&QUESTION, &mut prober));
    assert_eq!(culprits(&findings), [guilty]);
    assert!(prober.builds() <= 6 + 2, "{}", prober.builds());
    assert_eq!(
        prober.runs as usize,
        prober.builds() + 2 + 2,
        "both seeds of the ends, the culprit and its parent"
    );
    let change = &findings.culprits[0].change;
    assert_eq!((change.before, change.after), (1001.5, 1101.5));
    assert!(
        (change.percent().unwrap() + 9.985).abs() < 0.01,
        "{change:?}"
    );
    assert!((findings.explained_percent() - 100.0).abs() < 1e-9);
    assert_eq!((findings.commits, findings.commits_kept), (63, 63));
}

#[test]
fn counts_are_searched_if_guest_time_disagrees() {
    let result = |samples: f64, kernel: u64| WorkloadResult {
        workload: "getppid".to_owned(),
        operations: 10,
        declared: None,
        outcome: Outcome::Completed,
        samples: vec![samples; 3],
        counted: vec![
            Region {
                kernel,
                user: 0,
                interrupt: 7,
                other: 9,
                ..model::Region::default()
            };
            3
        ],
    };
    let run = |seed: u64, result: WorkloadResult| Run {
        id: RunId::from_hex("01").unwrap(),
        build: BuildId::from_hex("aa").unwrap(),
        machine: MachineId::from_hex("ee").unwrap(),
        suite: "micro".to_owned(),
        seed,
        started_unix: UnixTime::new(0),
        environment: Vec::new(),
        results: vec![result],
    };
    let exact = "exact".parse::<MachineKind>().unwrap().capabilities();
    let values = |results: [WorkloadResult; 2]| {
        values_of(
            &[1, 2].map(|seed| run(seed, results[seed as usize - 1].clone())),
            1..=2,
            "getppid",
            exact,
        )
    };
    // Guest time falls from 100 to 90, and the counts rise from 100 to 110.
    let before = (result(100.0, 1000), result(100.0, 1000));
    let after = (result(90.0, 1100), result(90.0, 1100));
    assert_eq!(
        values(before.into()),
        Ok((vec![100.0, 100.0], Scale::Counted))
    );
    assert_eq!(
        values(after.into()),
        Ok((vec![110.0, 110.0], Scale::Counted))
    );
    let timed = WorkloadResult {
        counted: Vec::new(),
        ..result(90.0, 0)
    };
    assert!(
        values([result(90.0, 1100), timed])
            .unwrap_err()
            .contains("not counted")
    );
}

#[test]
fn timed_commits_are_never_compared_with_counts() {
    let tree = Tree::new();
    tree.noise(3, "a");
    let timed = tree.commit("costs/timed", "500");
    tree.commit("costs/timed", "0");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(3, "b");
    let mut prober = FakeProber::new(&tree);
    prober.timed.insert(timed.clone());
    assert_eq!(
        culprits(&found(tree.bisect(&QUESTION, &mut prober))),
        [guilty]
    );
    prober.timed.insert(tree.git(&["rev-parse", "HEAD"]));
    let Bisected::Refused(Refused::End { why, .. }) = tree.bisect(&QUESTION, &mut prober) else {
        panic!("an answer")
    };
    assert!(
        why.contains("has counted instructions and other commits have none"),
        "{why}"
    );
}

#[test]
fn ends_below_the_floor_need_five_seeds() {
    let tree = Tree::new();
    tree.noise(3, "a");
    let guilty = tree.commit("costs/slow", "2");
    tree.noise(3, "b");
    let question = BisectionQuestion {
        floor: Some(model::Floor::Range(0.5)),
        ..QUESTION
    };
    let Bisected::Refused(Refused::NoDifference {
        reason: Some(reason),
        ..
    }) = tree.bisect(&question, &mut FakeProber::new(&tree))
    else {
        panic!("an answer")
    };
    assert!(reason.starts_with("below the floor"), "{reason}");
    let question = BisectionQuestion {
        noise: Noise::Seeds(5),
        ..question
    };
    assert_eq!(
        culprits(&found(tree.bisect(&question, &mut FakeProber::new(&tree)))),
        [guilty]
    );
}

#[test]
fn difference_in_one_seed_is_no_step() {
    let tree = Tree::new();
    tree.noise(8, "a");
    tree.commit(FIRST_SEED, "300");
    tree.noise(8, "b");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(8, "c");
    let findings = found(tree.bisect(&QUESTION, &mut FakeProber::new(&tree)));
    assert_eq!(culprits(&findings), [guilty]);
    assert_eq!(findings.culprits[0].change.differences_percent.len(), 2);
}

#[test]
fn several_steps_are_found_with_the_remainder() {
    let tree = Tree::new();
    let mut guilty = Vec::new();
    for (n, cost) in ["300", "-80", "200"].into_iter().enumerate() {
        tree.noise(9, &format!("n{n}-"));
        guilty.push(tree.commit(&format!("costs/step{n}"), cost));
    }
    tree.commit("costs/little", "5");
    let margin = BisectionQuestion {
        margin_percent: Some(1.0),
        ..QUESTION
    };
    let findings = found(tree.bisect(&margin, &mut FakeProber::new(&tree)));
    assert_eq!(culprits(&findings), guilty);
    assert!((findings.explained_percent() - 100.0 * 420.0 / 425.0).abs() < 1e-9);
}

#[test]
fn canceling_steps_are_found_with_more_intervals() {
    let tree = Tree::new();
    let mut guilty = Vec::new();
    for (n, cost) in ["300", "-300", "40"].into_iter().enumerate() {
        tree.noise(15, &format!("n{n}-"));
        guilty.push(tree.commit(&format!("costs/step{n}"), cost));
    }
    let findings = found(tree.bisect(
        &BisectionQuestion {
            intervals: 4,
            ..QUESTION
        },
        &mut FakeProber::new(&tree),
    ));
    assert_eq!(culprits(&findings), guilty);
}

#[test]
fn guilty_merge_is_searched_on_the_trunk() {
    let tree = Tree::new();
    tree.noise(5, "a");
    tree.git(&["checkout", "-qb", "side", "good"]);
    tree.noise(6, "s");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(3, "t");
    tree.git(&["checkout", "-q", "main"]);
    // The trunk changes a file that the side lacks: both contain the step only once merged.
    tree.commit("costs/fast", "-400");
    tree.git(&["merge", "-q", "--no-ff", "-m", "merge the side", "side"]);
    let merge = tree.git(&["rev-parse", "HEAD"]);
    tree.noise(5, "b");
    let findings = found(tree.bisect(&QUESTION, &mut FakeProber::new(&tree)));
    let slow = findings
        .culprits
        .iter()
        .find(|culprit| culprit.commit == guilty)
        .unwrap();
    assert_eq!(slow.merge, Some(merge));
    assert_eq!((slow.change.before, slow.change.after), (601.5, 701.5));
    assert_eq!(findings.culprits.len(), 2, "{:?}", culprits(&findings));
}

#[test]
fn merge_guilty_by_itself_is_named() {
    let tree = Tree::new();
    tree.git(&["checkout", "-qb", "side", "good"]);
    tree.noise(3, "s");
    tree.git(&["checkout", "-q", "main"]);
    tree.noise(3, "a");
    tree.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    let merge = tree.commit("costs/evil", "100");
    tree.noise(3, "b");
    let findings = found(tree.bisect(&QUESTION, &mut FakeProber::new(&tree)));
    assert_eq!(culprits(&findings), [merge]);
    assert_eq!(findings.culprits[0].merge, None);
}

//! Bisections over real git histories with a fake builder: the value of a commit follows from its
//! files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use kernel::{CommitGraph, Compiled, Repository};
use lab::{
    Bisected, BisectionEvent, BisectionLog, BisectionQuestion, Confirm, Findings, LabError, Noise,
    Probe, Prober, RebuildCost, Refused, Reuse, Reverted, Stands, bisect, values_of,
};
use model::{BuildId, MachineId, MachineKind, Metric, Outcome, Region, Run, RunId, WorkloadResult};
use report::Scale;

const QUESTION: BisectionQuestion = BisectionQuestion {
    metric: Metric::COST,
    floor_percent: None,
    margin_percent: None,
    intervals: 1,
    noise: Noise::Seeds(2),
    seeds_first: 1,
    confirm: Confirm::Nothing,
};
/// Each seed is a run.
const NOISY: BisectionQuestion = BisectionQuestion {
    noise: Noise::Runs {
        bias: 0.0,
        runs_max: 2000,
    },
    ..QUESTION
};
/// A file whose cost applies to the first seed only.
const FIRST_SEED: &str = "costs/of-first-seed";
/// Standard deviation of a run with noise.
const DEVIATION: f64 = 30.0;

/// A repository in which `costs/NAME` holds the cost that NAME adds; other files cost nothing.
struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        tree.git(&["init", "-q", "-b", "main"]);
        tree.commit("costs/base", "1000");
        tree.git(&["tag", "good"]);
        tree
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.com",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_DATE", "1577836800 +0000")
            .env("GIT_COMMITTER_DATE", "1577836800 +0000")
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, file: &str, content: &str) -> String {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", &format!("{file} is {content}")]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn noise(&self, count: usize, name: &str) {
        (0..count).for_each(|n| drop(self.commit(&format!("costs/{name}{n}"), "0")));
    }

    fn history(&self) -> CommitGraph {
        self.repository().history("good", "HEAD").unwrap()
    }

    fn repository(&self) -> Repository {
        Repository::open(self.folder.path()).unwrap()
    }

    fn bisect(&self, question: &BisectionQuestion, prober: &mut FakeProber<'_>) -> Bisected {
        bisect(
            &self.history(),
            question,
            prober,
            &mut BisectionLog::nowhere(),
            &|_| {},
        )
        .unwrap()
    }
}

struct FakeProber<'a> {
    tree: &'a Tree,
    compiled: Compiled,
    probed: Vec<String>,
    /// Number of builds before the lab fails.
    fails_after: usize,
    /// Standard deviation of a run; without it, seeds differ equally in each commit.
    deviation: Option<f64>,
    /// Commits without counted instructions.
    timed: BTreeSet<String>,
    runs: u64,
}

impl<'a> FakeProber<'a> {
    fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            compiled: Compiled::default(),
            probed: Vec::new(),
            fails_after: usize::MAX,
            deviation: None,
            timed: BTreeSet::new(),
            runs: 0,
        }
    }
}

/// Returns a normally distributed number that depends only on commit and seed.
fn normal(commit: &str, seed: u64) -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    commit
        .bytes()
        .for_each(|byte| state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

impl FakeProber<'_> {
    /// Returns how many commits were measured, with any number of seeds.
    fn builds(&self) -> usize {
        self.probed.iter().collect::<BTreeSet<_>>().len()
    }

    /// Returns the files of a merge of two commits.
    fn merged(&self, ours: &str, theirs: &str) -> Option<String> {
        let git = Command::new("git")
            .args(["merge-tree", "--write-tree", ours, theirs])
            .current_dir(self.tree.folder.path())
            .output()
            .unwrap();
        let tree = String::from_utf8(git.stdout).unwrap();
        git.status
            .success()
            .then(|| tree.lines().next().unwrap().to_owned())
    }
}

impl Prober for FakeProber<'_> {
    fn probe(&mut self, commit: &str, seeds: RangeInclusive<u64>) -> Result<Probe, LabError> {
        if self.probed.len() >= self.fails_after {
            return Err(LabError::Empty("electricity"));
        }
        self.probed.push(commit.to_owned());
        let (mut cost, mut of_first_seed) = (0.0, 0.0);
        for file in self
            .tree
            .git(&["ls-tree", "--name-only", commit, "costs/"])
            .lines()
        {
            match self
                .tree
                .git(&["show", &format!("{commit}:{file}")])
                .parse::<f64>()
            {
                Ok(more) if file.ends_with(FIRST_SEED) => of_first_seed += more,
                Ok(more) => cost += more,
                Err(_) => return Ok(Probe::Failed("does not build: error: no number".to_owned())),
            }
        }
        self.runs += seeds.clone().count() as u64;
        let value = |seed: u64| match self.deviation {
            // Seeds differ by layout, equally in each commit.
            None if seed == 1 => cost + of_first_seed,
            None => cost + 3.0 * (seed - 1) as f64,
            Some(deviation) => cost + deviation * normal(commit, seed),
        };
        let scale = if self.timed.contains(commit) {
            Scale::Reported
        } else {
            Scale::Counted
        };
        Ok(Probe::Measured {
            build: format!("build_{cost}"),
            values: seeds.map(value).collect(),
            scale,
        })
    }

    fn merge(&mut self, ours: &str, theirs: &str) -> Result<Option<String>, LabError> {
        let tree = self.merged(ours, theirs);
        Ok(tree.map(|tree| {
            self.tree.git(&[
                "commit-tree",
                &tree,
                "-p",
                ours,
                "-p",
                theirs,
                "-m",
                "between",
            ])
        }))
    }

    fn revert(&mut self, tip: &str, commit: &str) -> Result<Option<String>, LabError> {
        let undone = self.tree.git(&[
            "commit-tree",
            &format!("{commit}^1^{{tree}}"),
            "-p",
            commit,
            "-m",
            "as before",
        ]);
        let tree = self.merged(tip, &undone);
        Ok(tree.map(|tree| {
            self.tree
                .git(&["commit-tree", &tree, "-p", tip, "-m", "taken back"])
        }))
    }

    fn rebuild_cost(&mut self, history: &CommitGraph) -> Result<RebuildCost, LabError> {
        if self.compiled.count() == 0 {
            return Ok(RebuildCost::everything(history.count()));
        }
        Ok(RebuildCost::of(
            history,
            &self.tree.repository().changed_files(history)?,
            &self.compiled,
        ))
    }
}

fn found(bisected: Bisected) -> Findings {
    match bisected {
        Bisected::Found(findings) => findings,
        Bisected::Refused(why) => panic!("{why:?}"),
    }
}

fn culprits(findings: &Findings) -> Vec<&str> {
    findings
        .culprits
        .iter()
        .map(|culprit| &*culprit.commit)
        .collect()
}

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
                other: 9
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
        started_unix: 0,
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
    let (before, after) = (
        (result(100.0, 1000), result(100.0, 1000)),
        (result(90.0, 1100), result(90.0, 1100)),
    );
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
        floor_percent: Some(0.5),
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

/// Returns the files that each object is compiled from.
fn compiled<'a>(objects: impl IntoIterator<Item = &'a [String]>) -> Compiled {
    let home = tempfile::tempdir().unwrap();
    for (number, files) in objects.into_iter().enumerate() {
        let words: Vec<String> = files.iter().map(|file| format!("/src/{file}")).collect();
        fs::write(
            home.path().join(format!(".{number}.o.cmd")),
            words.join(" "),
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
fn interrupted_bisection_continues() {
    let tree = Tree::new();
    tree.noise(20, "a");
    let guilty = tree.commit("costs/slow", "100");
    tree.noise(20, "b");
    let home = tempfile::tempdir().unwrap();
    let open = || BisectionLog::open(home.path(), "good..HEAD", Reuse::Stored).unwrap();
    let mut whole = FakeProber::new(&tree);
    tree.bisect(&QUESTION, &mut whole);
    let mut all = 0;
    for turn in 0.. {
        let mut prober = FakeProber {
            fails_after: 2,
            ..FakeProber::new(&tree)
        };
        let mut log = open();
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
    let mut said: Vec<String> = [
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
    said.push(error.replace(
        &nowhere.path().canonicalize().unwrap().display().to_string(),
        "FOLDER",
    ));
    insta::assert_snapshot!(said.join("\n"));
}

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

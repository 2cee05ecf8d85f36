//! Bisections over real git histories with a fake builder: the value of a commit follows from its
//! files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod builds;
mod noisy;
mod refusals;
mod reverts;
mod steps;

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::process::Command;

use compare::Scale;
use kernel::{CommitGraph, Compiled, Repository};
use lab::{
    Bisected, BisectionLog, BisectionQuestion, Confirm, Findings, LabError, Noise, Probe, Prober,
    RebuildCost, bisect,
};
use model::Metric;

const QUESTION: BisectionQuestion = BisectionQuestion {
    metric: Metric::COST,
    floor: None,
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
        let mut cost = 0.0;
        let mut of_first_seed = 0.0;
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
        let scale = if self.timed.contains(commit) {
            Scale::Reported
        } else {
            Scale::Counted
        };
        Ok(Probe::Measured {
            build: format!("build_{cost}"),
            values: seeds
                .map(|seed: u64| match self.deviation {
                    // Seeds differ by layout, equally in each commit.
                    None if seed == 1 => cost + of_first_seed,
                    None => cost + 3.0 * (seed - 1) as f64,
                    Some(deviation) => cost + deviation * normal(commit, seed),
                })
                .collect(),
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
        Ok(RebuildCost::estimate(
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

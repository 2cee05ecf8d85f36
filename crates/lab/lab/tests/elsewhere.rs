//! Bisections with make-believe hosts: in each round this host and the others measure one commit
//! each.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use compare::Scale;
use kernel::{Commit, CommitGraph};
use lab::{
    Bisected, BisectionLog, BisectionQuestion, Confirm, Entry, LabError, Noise, Probe, Prober,
    RebuildCost, Rounds, bisect,
};
use model::Metric;

const COMMITS: usize = 64;
const QUESTION: BisectionQuestion = BisectionQuestion {
    metric: Metric::COST,
    floor: None,
    margin_percent: None,
    intervals: 1,
    noise: Noise::Seeds(2),
    seeds_first: 2,
    confirm: Confirm::Nothing,
};

fn name(commit: usize) -> String {
    format!("{commit:040x}")
}

fn history() -> CommitGraph {
    CommitGraph::new(
        &name(0),
        (1..=COMMITS)
            .map(|number: usize| Commit {
                id: name(number),
                parents: vec![name(number - 1)],
            })
            .collect(),
    )
    .unwrap()
}

/// This host and others.
#[derive(Default)]
struct Site {
    /// The first commit with the step, and one that does not build.
    guilty: usize,
    broken: usize,
    hosts: usize,
    round: usize,
    /// In which round other hosts began to measure commits.
    begun: BTreeMap<String, usize>,
    /// Commits that they began, and commits that they left.
    measured: usize,
    left: usize,
}

impl Site {
    fn find(
        guilty: usize,
        broken: usize,
        hosts: usize,
        log: &mut BisectionLog,
    ) -> (Self, Vec<String>) {
        let mut site = Self {
            guilty,
            broken,
            hosts,
            ..Self::default()
        };
        let Bisected::Found(found) =
            bisect(&history(), &QUESTION, &mut site, log, &|_| {}).unwrap()
        else {
            panic!()
        };
        assert!(
            site.begun.values().all(|begun| *begun < site.round),
            "no host measures what is not wanted"
        );
        (
            site,
            found
                .culprits
                .into_iter()
                .map(|culprit| culprit.commit)
                .collect(),
        )
    }
}

impl Prober for Site {
    fn probe(&mut self, commit: &str, seeds: RangeInclusive<u64>) -> Result<Probe, LabError> {
        // A commit takes one round, here and elsewhere.
        let ready = self
            .begun
            .get(commit)
            .map_or(self.round + 1, |begun| begun + 1);
        self.round = self.round.max(ready);
        let number = usize::from_str_radix(commit, 16).unwrap();
        if number == self.broken {
            return Ok(Probe::Failed("does not build".to_owned()));
        }
        let value = if number >= self.guilty {
            1100.0
        } else {
            1000.0
        };
        let values = seeds.map(|seed| value + seed as f64).collect();
        Ok(Probe::Measured {
            build: format!("build_{value}"),
            values,
            scale: Scale::Counted,
        })
    }

    fn merge(&mut self, _: &str, _: &str) -> Result<Option<String>, LabError> {
        Ok(None)
    }

    fn revert(&mut self, _: &str, _: &str) -> Result<Option<String>, LabError> {
        Ok(None)
    }

    fn rebuild_cost(&mut self, history: &CommitGraph) -> Result<RebuildCost, LabError> {
        Ok(RebuildCost::everything(history.count()))
    }

    fn hosts(&self, _: usize) -> usize {
        self.hosts
    }

    fn foresee(&mut self, commits: &[String]) {
        let round = self.round;
        let before = self.begun.len();
        self.begun
            .retain(|commit, begun| *begun < round || commits.contains(commit));
        self.left += before - self.begun.len();
        for commit in commits.iter().skip(1) {
            let busy = self.begun.values().filter(|begun| **begun == round).count();
            if busy < self.hosts && !self.begun.contains_key(commit) {
                self.begun.insert(commit.clone(), round);
                self.measured += 1;
            }
        }
    }
}

fn entries(log: &BisectionLog) -> Vec<Entry> {
    log.entries().to_vec()
}

#[test]
fn more_hosts_need_fewer_rounds() {
    let mean_rounds = |hosts: usize| {
        let rounds: usize = (1..=COMMITS)
            .map(|guilty| {
                let mut log = BisectionLog::nowhere();
                let mut of_one = BisectionLog::nowhere();
                let (site, culprits) = Site::find(guilty, 0x7fff, hosts, &mut log);
                assert_eq!(culprits, [name(guilty)]);
                Site::find(guilty, 0x7fff, 0, &mut of_one);
                assert_eq!(
                    entries(&log),
                    entries(&of_one),
                    "steps and answers are those of one host"
                );
                site.round
            })
            .sum();
        rounds as f64 / COMMITS as f64
    };
    let rounds = [0, 1, 2, 6].map(mean_rounds);
    // Two ends in one round with other hosts, in two without.
    for (mean, hosts) in rounds.into_iter().zip([0, 1, 2, 6]) {
        let ends = if hosts == 0 { 2 } else { 1 };
        let expected = (ends + Rounds::plan(COMMITS, hosts).together) as f64;
        assert!(
            (mean - expected).abs() <= 1.0,
            "{hosts} hosts: {mean} rounds, {expected} expected"
        );
    }
    assert!(
        rounds.windows(2).all(|pair| pair[1] < pair[0]),
        "{rounds:?}"
    );
}

#[test]
fn broken_commits_change_no_answer() {
    for broken in 1..COMMITS {
        let guilty = 33;
        let mut log = BisectionLog::nowhere();
        let mut of_one = BisectionLog::nowhere();
        let (site, culprits) = Site::find(guilty, broken, 3, &mut log);
        let (_, expected) = Site::find(guilty, broken, 0, &mut of_one);
        assert_eq!((culprits, entries(&log)), (expected, entries(&of_one)));
        assert!(site.measured > 0);
    }
}

#[test]
fn known_commits_are_sent_nowhere() {
    let mut log = BisectionLog::nowhere();
    let (site, _) = Site::find(40, 0x7fff, 3, &mut log);
    assert!(site.round > 0 && site.measured > 0);
    let (again, culprits) = Site::find(40, 0x7fff, 3, &mut log);
    assert_eq!(
        (again.round, again.measured, culprits),
        (0, 0, vec![name(40)])
    );
}

//! Other hosts that measure commits for a bisection before it asks for them, and when that pays.
//!
//! The search asks for one commit after the other, and its steps depend on nothing else. It says
//! which commits it will ask for ([`stats::ExactSearch::ahead`]); other hosts measure those at the
//! same time, and their results are in the store when it asks.

use document::number::count;
use kernel::BuildSeconds;

/// What a commit on another host takes longer than here (s): the batch system starts it, and
/// notices its end.
const SEND_S: f64 = 5.0;

/// Other hosts, with results in the same store and builds in the same directory.
pub trait Elsewhere {
    /// Returns how many commits they measure at once, for a search among so many commits: 0 if that
    /// does not pay.
    fn hosts(&self, commits: usize) -> usize;

    /// Has them measure these commits, the most wanted first, and nothing else. This host measures
    /// the first one, unless one of them measures it already. What fails there is measured
    /// here.
    fn measure(&self, commits: &[String]);

    /// Waits for a commit that one of them measures. One that only waits for a host is withdrawn.
    fn wait(&self, commit: &str);
}

/// The number of rounds of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds of this host alone: one commit in each.
    pub alone: usize,
    /// Rounds of this host and others: one commit for each in each.
    pub together: usize,
}

impl Rounds {
    /// Returns the rounds of a search for one step among so many commits: each round divides them
    /// by one more than it measures.
    #[must_use]
    pub fn plan(commits: usize, hosts: usize) -> Self {
        let rounds = |parts: usize| {
            let mut left = std::iter::successors(Some(commits), |left| Some(left.div_ceil(parts)));
            left.position(|left| left <= 1).unwrap_or(0)
        };
        Self {
            alone: rounds(2),
            together: rounds(hosts.saturating_add(2)),
        }
    }
}

/// How long parts of a search take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Builds here, of which the longest stands for the first one of another host; `None` if not
    /// known.
    pub builds: Option<BuildSeconds>,
    /// Measuring a commit (s).
    pub measuring_s: f64,
}

impl Pace {
    /// Returns how long a search takes on this host alone and together with others (s); `None` if
    /// not known.
    #[must_use]
    pub fn seconds(&self, rounds: Rounds) -> Option<[f64; 2]> {
        let BuildSeconds { last, longest } = self.builds?;
        let round = last as f64 + self.measuring_s;
        let first = longest.saturating_sub(last) as f64;
        Some([
            rounds.alone as f64 * round,
            rounds.together as f64 * (round + SEND_S) + first,
        ])
    }

    /// Returns whether other hosts make a search shorter; if nothing is known, by the number of
    /// rounds.
    #[must_use]
    pub fn pays(&self, rounds: Rounds) -> bool {
        match self.seconds(rounds) {
            Some([alone, together]) => together < alone,
            None => rounds.together < rounds.alone,
        }
    }
}

/// How many other hosts may measure at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes {
    pub count: usize,
    /// Whether the user asked for so many: then they are used in any case.
    pub is_asked_for: bool,
}

impl Nodes {
    /// Returns whether a search among so many commits uses them, and a line that says so; `span`
    /// formats seconds.
    #[must_use]
    pub fn decide(
        self,
        pace: Pace,
        commits: usize,
        span: &dyn Fn(f64) -> String,
    ) -> (bool, String) {
        let rounds = Rounds::plan(commits, self.count);
        let is_worth_it = self.is_asked_for || pace.pays(rounds);
        let Rounds { alone, together } = rounds;
        let nodes = count(self.count, "node");
        let but = if is_worth_it { "" } else { " but" };
        let durations = pace.seconds(rounds).map(|seconds| seconds.map(span));
        let durations = durations.map_or_else(String::new, |[alone, together]| {
            format!(",{but} {together} instead of {alone}")
        });
        let decision = if is_worth_it {
            ""
        } else {
            ": this host searches alone"
        };
        let rounds = count(together, "round");
        (
            is_worth_it,
            format!("with {nodes}: about {rounds} instead of {alone}{durations}{decision}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use kernel::BuildSeconds;

    use super::{Nodes, Pace, Rounds};

    #[test]
    fn rounds_fall_with_each_host() {
        let together = |commits, hosts| Rounds::plan(commits, hosts).together;
        assert_eq!(
            Rounds::plan(64, 0),
            Rounds {
                alone: 6,
                together: 6
            }
        );
        assert_eq!([1, 2, 6].map(|hosts| together(64, hosts)), [4, 3, 2]);
        assert_eq!(
            [0, 1, 2, 3].map(|commits| together(commits, 1)),
            [0, 0, 1, 1]
        );
        assert_eq!(together(27, 1), 3);
        assert_eq!(together(usize::MAX, usize::MAX), 1);
    }

    #[test]
    fn hosts_pay_where_builds_are_long() {
        let pace = |last, longest| Pace {
            builds: Some(BuildSeconds { last, longest }),
            measuring_s: 3.0,
        };
        let rounds = Rounds::plan(16_000, 6);
        assert!(
            pace(120, 600).pays(rounds),
            "{:?}",
            pace(120, 600).seconds(rounds)
        );
        assert!(
            !pace(6, 175).pays(rounds),
            "the first build there is not worth it"
        );
        let unknown = Pace {
            builds: None,
            measuring_s: 3.0,
        };
        assert!(unknown.pays(rounds) && !unknown.pays(Rounds::plan(2, 6)));
    }

    #[test]
    fn decision_says_rounds_and_durations() {
        let decide = |builds, is_asked_for| {
            let nodes = Nodes {
                count: 6,
                is_asked_for,
            };
            nodes.decide(
                Pace {
                    builds,
                    measuring_s: 3.0,
                },
                64,
                &|seconds| format!("{seconds:.0} s"),
            )
        };
        let builds = Some(BuildSeconds {
            last: 6,
            longest: 175,
        });
        assert_eq!(
            decide(None, false),
            (true, "with 6 nodes: about 2 rounds instead of 6".to_owned())
        );
        let (is_worth_it, text) = decide(builds, false);
        let alone = "with 6 nodes: about 2 rounds instead of 6, but 197 s instead of 54 s: this host searches alone";
        assert_eq!((is_worth_it, text.as_str()), (false, alone));
        assert!(decide(builds, true).0);
    }
}

//! The commits of a range as a graph, and the lines to search in it: the trunk first, then the
//! sides of a merge.
//!
//! Pure: `git` reads the graph once.

use std::collections::HashMap;

/// A commit in git's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    /// Hashes of its parents, first parent first.
    pub parents: Vec<String>,
}

/// All commits that BAD has and GOOD does not.
#[derive(Debug, Clone)]
pub struct CommitGraph {
    good: String,
    ids: Vec<String>,
    /// Parents within the range, without GOOD.
    parents: Vec<Vec<Parent>>,
    /// Whether GOOD is among its ancestors.
    holds_good: Vec<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Good,
    /// Its index in the list.
    Within(usize),
    /// An ancestor of GOOD.
    Older,
}

/// One point of a line to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePoint {
    /// The commit's number in the graph.
    pub commit: usize,
    /// Numbers of all commits that are new here, including this one.
    pub brings: Vec<usize>,
}

impl CommitGraph {
    /// Makes the graph of a range; commits come after their parents and the last one is BAD.
    ///
    /// `None` if BAD does not descend from GOOD, or a parent comes after its child.
    #[must_use]
    pub fn new(good: &str, commits: Vec<Commit>) -> Option<Self> {
        let mut numbers: HashMap<String, usize> = HashMap::with_capacity(commits.len());
        let mut ids = Vec::new();
        let mut parents = Vec::new();
        let mut holds_good = Vec::new();
        for (number, commit) in commits.into_iter().enumerate() {
            let own_parents: Vec<Parent> = commit
                .parents
                .iter()
                .map(|id: &String| match numbers.get(id) {
                    _ if id == good => Parent::Good,
                    Some(parent) => Parent::Within(*parent),
                    None => Parent::Older,
                })
                .collect();
            let holds = own_parents.iter().any(|parent| match parent {
                Parent::Good => true,
                Parent::Within(parent) => holds_good[*parent],
                Parent::Older => false,
            });
            numbers.insert(commit.id.clone(), number);
            ids.push(commit.id);
            parents.push(own_parents);
            holds_good.push(holds);
        }
        holds_good.last().filter(|holds| **holds)?;
        Some(Self {
            good: good.to_owned(),
            ids,
            parents,
            holds_good,
        })
    }

    /// Returns the hash of GOOD.
    #[must_use]
    pub fn good(&self) -> &str {
        &self.good
    }

    /// Returns the hash of BAD.
    #[must_use]
    pub fn bad(&self) -> &str {
        self.ids.last().map_or("", String::as_str)
    }

    /// Returns the hash of a commit by its number.
    #[must_use]
    pub fn id(&self, commit: usize) -> &str {
        self.ids.get(commit).map_or("", String::as_str)
    }

    /// Returns the number of commits.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the number of merges.
    #[must_use]
    pub fn merges(&self) -> usize {
        self.parents
            .iter()
            .filter(|parents| parents.len() > 1)
            .count()
    }

    /// Returns the trunk, oldest first: from BAD along first parents back to GOOD. If another
    /// parent of a merge leads to GOOD, the trunk follows that one, so that each point contains
    /// the one before.
    #[must_use]
    pub fn trunk(&self) -> Vec<LinePoint> {
        let mut line = Vec::new();
        let mut index = self.ids.len().checked_sub(1);
        while let Some(commit) = index {
            line.push(commit);
            index = self.parents[commit]
                .iter()
                .find_map(|parent| match parent {
                    Parent::Good => Some(None),
                    Parent::Within(parent) if self.holds_good[*parent] => Some(Some(*parent)),
                    Parent::Within(_) | Parent::Older => None,
                })
                .flatten();
        }
        line.reverse();
        let mut seen = vec![false; self.ids.len()];
        line.into_iter()
            .map(|commit| self.place(commit, &mut seen))
            .collect()
    }

    /// Returns the sides of a merge: for each other parent its line of first parents, oldest first.
    /// They contain all commits that are new at the point, except the merge.
    #[must_use]
    pub fn sides(&self, place: &LinePoint) -> Vec<Vec<LinePoint>> {
        let mut seen = vec![true; self.ids.len()];
        place.brings.iter().for_each(|commit| seen[*commit] = false);
        let mut sides = Vec::new();
        for parent in &self.parents[place.commit] {
            let mut side = Vec::new();
            let mut index = *parent;
            while let Parent::Within(commit) = index {
                if seen[commit] {
                    break;
                }
                side.push(commit);
                index = self.parents[commit]
                    .first()
                    .copied()
                    .unwrap_or(Parent::Older);
            }
            side.reverse();
            let line: Vec<LinePoint> = side
                .into_iter()
                .map(|commit| self.place(commit, &mut seen))
                .collect();
            sides.extend((!line.is_empty()).then_some(line));
        }
        sides
    }

    /// Marks the unseen ancestors of a commit.
    fn place(&self, commit: usize, seen: &mut [bool]) -> LinePoint {
        let mut brings = Vec::new();
        let mut open = vec![commit];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            brings.push(at);
            for parent in &self.parents[at] {
                if let Parent::Within(parent) = parent {
                    open.push(*parent);
                }
            }
        }
        LinePoint { commit, brings }
    }
}

impl LinePoint {
    /// Returns whether other commits came in here, too.
    #[must_use]
    pub fn is_merge(&self) -> bool {
        self.brings.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, prop_assert_eq, proptest};

    use super::{Commit, CommitGraph, LinePoint};

    fn history(good: &str, commits: &[(&str, &[&str])]) -> Option<CommitGraph> {
        CommitGraph::new(
            good,
            commits
                .iter()
                .map(|(id, parents): &(&str, &[&str])| Commit {
                    id: (*id).to_owned(),
                    parents: parents.iter().map(|parent| (*parent).to_owned()).collect(),
                })
                .collect(),
        )
    }

    fn line_names(history: &CommitGraph, line: &[LinePoint]) -> Vec<String> {
        line.iter()
            .map(|place: &LinePoint| {
                let mut brings: Vec<&str> = place
                    .brings
                    .iter()
                    .map(|commit| history.id(*commit))
                    .collect();
                brings.sort_unstable();
                format!("{}: {}", history.id(place.commit), brings.join(" "))
            })
            .collect()
    }

    #[test]
    fn trunk_follows_first_parents_with_merged_sides() {
        let all = history(
            "g",
            &[
                ("a", &["g"]),
                ("x", &["old"]),
                ("y", &["x"]),
                ("b", &["a"]),
                ("m", &["b", "y"]),
                ("c", &["m"]),
            ],
        );
        let all = all.unwrap();
        assert_eq!(
            (all.count(), all.merges(), all.good(), all.bad()),
            (6, 1, "g", "c")
        );
        let trunk = all.trunk();
        assert_eq!(
            line_names(&all, &trunk),
            ["a: a", "b: b", "m: m x y", "c: c"]
        );
        assert!(trunk[2].is_merge() && !trunk[3].is_merge());
        assert_eq!(
            line_names(&all, &all.sides(&trunk[2]).concat()),
            ["x: x", "y: y"]
        );
        assert!(all.sides(&trunk[0]).is_empty());
    }

    #[test]
    fn merged_side_with_good_commit_is_the_trunk() {
        let all = history(
            "g",
            &[
                ("t", &["old"]),
                ("s", &["g"]),
                ("m", &["t", "s"]),
                ("c", &["m"]),
            ],
        )
        .unwrap();
        let trunk = all.trunk();
        assert_eq!(line_names(&all, &trunk), ["s: s", "m: m t", "c: c"]);
        assert_eq!(line_names(&all, &all.sides(&trunk[1]).concat()), ["t: t"]);
    }

    #[test]
    fn merges_within_sides_and_octopuses_are_followed() {
        let all = history(
            "g",
            &[
                ("a", &["g"]),
                ("x", &["g"]),
                ("z", &["g"]),
                ("y", &["x", "z"]),
                ("w", &["g"]),
                ("m", &["a", "y", "w"]),
            ],
        );
        let all = all.unwrap();
        let trunk = all.trunk();
        assert_eq!(line_names(&all, &trunk), ["a: a", "m: m w x y z"]);
        let sides = all.sides(&trunk[1]);
        assert_eq!(line_names(&all, &sides[0]), ["x: x", "y: y z"]);
        assert_eq!(line_names(&all, &sides[1]), ["w: w"]);
        assert_eq!(
            line_names(&all, &all.sides(&sides[0][1]).concat()),
            ["z: z"]
        );
    }

    #[test]
    fn bad_commit_not_descending_from_good_is_refused() {
        assert!(history("g", &[]).is_none());
        assert!(history("g", &[("a", &["old"])]).is_none());
        assert!(
            history("g", &[("a", &["b"]), ("b", &["g"]), ("c", &["a"])]).is_none(),
            "a child before its parent"
        );
    }

    /// Commits with any earlier ones as parents; the last one joins all heads.
    fn graphs() -> impl Strategy<Value = Vec<Commit>> {
        prop::collection::vec(prop::collection::vec(0..40_usize, 1..4), 1..40).prop_map(|all| {
            let mut commits: Vec<Commit> = Vec::new();
            for (number, parents) in all.iter().enumerate() {
                let parents = parents
                    .iter()
                    .map(|parent| commit_name(parent % (number + 1)))
                    .collect();
                commits.push(Commit {
                    id: commit_name(number + 1),
                    parents,
                });
            }
            let has_child = |id: &String| commits.iter().any(|commit| commit.parents.contains(id));
            let ends = commits
                .iter()
                .map(|commit| commit.id.clone())
                .filter(|id| !has_child(id))
                .collect();
            commits.push(Commit {
                id: "bad".to_owned(),
                parents: ends,
            });
            commits
        })
    }

    fn commit_name(number: usize) -> String {
        if number == 0 {
            "g".to_owned()
        } else {
            format!("c{number}")
        }
    }

    proptest! {
        #[test]
        fn every_commit_is_brought_once(commits in graphs()) {
            let count = commits.len();
            let history = CommitGraph::new("g", commits).unwrap();
            let trunk = history.trunk();
            let mut brought: Vec<usize> = trunk
                .iter()
                .flat_map(|place| place.brings.clone())
                .collect();
            brought.sort_unstable();
            prop_assert_eq!(brought, (0..count).collect::<Vec<_>>());
            for place in &trunk {
                let mut sides: Vec<usize> = history
                    .sides(place)
                    .concat()
                    .iter()
                    .flat_map(|side| side.brings.clone())
                    .collect();
                sides.push(place.commit);
                sides.sort_unstable();
                let mut all = place.brings.clone();
                all.sort_unstable();
                prop_assert_eq!(sides, all);
            }
        }
    }
}

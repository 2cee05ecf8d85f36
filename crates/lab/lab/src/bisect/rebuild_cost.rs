//! How much each commit of a history makes the build compile: nothing, a few objects, or all that
//! include a header.
//!
//! The cost counts objects, not seconds, so that the search takes the same steps on any host.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel::{CommitGraph, Compiled};

/// Linking takes about as long as compiling this many objects of `micro`; saving fewer is not worth
/// a detour.
const LINK: f64 = 20.0;

/// The changed files of each commit that the kernel config may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildCost {
    /// Per commit, by its number: indices into `objects`.
    files: Vec<Vec<usize>>,
    /// Objects that each file is compiled into.
    objects: Vec<usize>,
    /// Objects of a full build.
    whole: usize,
}

impl RebuildCost {
    /// Assumes that each commit changes one object of its own.
    #[must_use]
    pub fn everything(commits: usize) -> Self {
        Self {
            files: (0..commits).map(|commit| vec![commit]).collect(),
            objects: vec![1; commits],
            whole: commits,
        }
    }

    /// Uses the files that each commit changed and the files that the builds read.
    #[must_use]
    pub fn estimate(
        history: &CommitGraph,
        changed: &BTreeMap<String, Vec<String>>,
        compiled: &Compiled,
    ) -> Self {
        let mut rebuild_cost = Self {
            files: Vec::with_capacity(history.count()),
            objects: Vec::new(),
            whole: compiled.objects(),
        };
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for commit in 0..history.count() {
            let id = history.id(commit);
            // git listed no files for this commit: keep it, with its id as its file.
            let unlisted = !changed.contains_key(id);
            let files = changed.get(id).into_iter().flatten().map(String::as_str);
            let used = files
                .filter(|file| compiled.may_use(file))
                .chain(unlisted.then_some(id));
            let of_commit: BTreeSet<usize> = used
                .map(|file| {
                    *numbers.entry(file).or_insert_with(|| {
                        rebuild_cost.objects.push(compiled.uses(file).max(1));
                        rebuild_cost.objects.len() - 1
                    })
                })
                .collect();
            rebuild_cost.files.push(of_commit.into_iter().collect());
        }
        rebuild_cost
    }

    /// Returns whether a commit can change the image.
    #[must_use]
    pub fn matters(&self, commit: usize) -> bool {
        self.files.get(commit).is_none_or(|files| !files.is_empty())
    }

    /// Returns the build cost of each position of a line, in links, if position `built` was built
    /// last; `brings` lists the new commits of each position.
    #[must_use]
    pub fn costs(&self, brings: &[&[usize]], built: usize) -> Vec<f64> {
        let built = built.min(brings.len().saturating_sub(1));
        let mut costs = vec![1.0; brings.len()];
        let mut after = Objects::new(self);
        for place in built + 1..brings.len() {
            costs[place] = after.add(brings[place]);
        }
        let mut before = Objects::new(self);
        for place in (0..built).rev() {
            costs[place] = before.add(brings[place + 1]);
        }
        costs
    }
}

/// Objects to compile again; grows along the line.
struct Objects<'a> {
    rebuild_cost: &'a RebuildCost,
    seen: Vec<bool>,
    count: usize,
}

impl<'a> Objects<'a> {
    fn new(rebuild_cost: &'a RebuildCost) -> Self {
        Self {
            rebuild_cost,
            seen: vec![false; rebuild_cost.objects.len()],
            count: 0,
        }
    }

    /// Adds commits and returns the cost of the objects: an upper limit, as several files may share
    /// an object.
    fn add(&mut self, commits: &[usize]) -> f64 {
        for file in commits
            .iter()
            .filter_map(|commit| self.rebuild_cost.files.get(*commit))
            .flatten()
        {
            if !std::mem::replace(&mut self.seen[*file], true) {
                self.count += self.rebuild_cost.objects[*file];
            }
        }
        (self.count.min(self.rebuild_cost.whole) as f64 / LINK).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kernel::{Commit, CommitGraph, Compiled};

    use super::{LINK, RebuildCost};

    /// Fifty objects include a header, one of them is compiled from `a.c`.
    fn compiled() -> Compiled {
        let home = tempfile::tempdir().unwrap();
        for object in 0..50 {
            let file = if object == 0 {
                "a".to_owned()
            } else {
                format!("b{object}")
            };
            std::fs::write(
                home.path().join(format!(".{file}.o.cmd")),
                format!("/src/{file}.c /src/x.h"),
            )
            .unwrap();
        }
        Compiled::of_build(home.path(), "/src".as_ref()).unwrap()
    }

    fn rebuild_cost() -> RebuildCost {
        let files = ["a.c", "x.h", "unused.c", "a.c"];
        let history = CommitGraph::new(
            &commit_name(0),
            (1..=5)
                .map(|number: usize| Commit {
                    id: commit_name(number),
                    parents: vec![commit_name(number - 1)],
                })
                .collect(),
        )
        .unwrap();
        // The last commit is not listed.
        let changed: BTreeMap<_, _> = files
            .iter()
            .enumerate()
            .map(|(at, file)| (commit_name(at + 1), vec![(*file).to_owned()]))
            .collect();
        RebuildCost::estimate(&history, &changed, &compiled())
    }

    fn commit_name(number: usize) -> String {
        format!("{number:040x}")
    }

    #[test]
    fn uncompiled_files_do_not_matter() {
        let matters: Vec<bool> = (0..6)
            .map(|commit| rebuild_cost().matters(commit))
            .collect();
        assert_eq!(
            matters,
            [true, true, false, true, true, true],
            "what is unknown may matter"
        );
    }

    #[test]
    fn position_costs_objects_since_the_last_build() {
        let brings: [&[usize]; 6] = [&[], &[0], &[1], &[2], &[3], &[4]];
        let objects = |built| {
            let costs = rebuild_cost().costs(&brings, built);
            costs
                .into_iter()
                .map(|cost| (cost * LINK).round() as usize)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            objects(5),
            [50, 50, 20, 20, 20, 20],
            "a.c counts once, and the header for all"
        );
        assert_eq!(
            objects(0),
            [20, 20, 50, 50, 50, 50],
            "no more than all there are"
        );
        assert_eq!(objects(2), [50, 50, 20, 20, 20, 20]);
        assert_eq!(
            RebuildCost::everything(3).costs(&[&[], &[0], &[1, 2]], 9),
            [1.0; 3]
        );
    }
}

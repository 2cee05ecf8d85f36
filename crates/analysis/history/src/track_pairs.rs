//! The newest comparable kernels of each track, tree and machine: what there is to look at, side by
//! side. `overview.rs` compares two kernels.

use std::collections::{BTreeMap, BTreeSet};

use super::gather::History;
use super::index::{KernelIx, KernelPair, MachineIx};
use super::kernels::tree_of;

/// The newest comparable kernels of a track and tree, on the machines on which they are the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackPair {
    /// The track of the new kernel.
    pub track: String,
    /// The directory of the new kernel's git tree, if it is a commit of one.
    pub tree: Option<String>,
    /// Each the first of those that differ only by the guest config, in the order of first runs.
    pub machines: Vec<MachineIx>,
    /// The kernels.
    pub kernels: KernelPair,
}

impl History {
    /// Returns the newest comparable kernels of each track, tree and machine, newest first: the new
    /// kernel has a workload in common with an earlier one there.
    #[must_use]
    pub fn track_pairs(&self) -> Vec<TrackPair> {
        let mut newest: BTreeMap<(&str, Option<&str>, MachineIx), KernelIx> = BTreeMap::new();
        for (key, series) in self.series() {
            let mut seen: BTreeSet<Option<&str>> = BTreeSet::new();
            for point in series.points.iter().skip(1).rev() {
                let tree = tree_of(&self.kernel(point.kernel).build);
                if seen.insert(tree) {
                    let machine = self.first_kin(key.machine);
                    let known = newest
                        .entry((&key.track, tree, machine))
                        .or_insert(point.kernel);
                    if self.rank(*known) < self.rank(point.kernel) {
                        *known = point.kernel;
                    }
                }
            }
        }
        let mut pairs: Vec<TrackPair> = Vec::new();
        for ((track, tree, machine), target) in newest {
            let Some(base) = self.comparable_base(target, Some(machine)) else {
                continue;
            };
            let kernels = KernelPair { base, target };
            match pairs.iter_mut().find(|pair| pair.kernels == kernels) {
                Some(pair) => pair.machines.push(machine),
                None => pairs.push(TrackPair {
                    track: track.to_owned(),
                    tree: tree.map(str::to_owned),
                    machines: vec![machine],
                    kernels,
                }),
            }
        }
        pairs.sort_by_key(|pair| std::cmp::Reverse(self.rank(pair.kernels.target)));
        pairs
    }

    /// Returns the last kernel before this one that a workload compares it with, on a machine or on
    /// any: of its own tree and another release series (6.1.190 for 6.12.117), or else of its own
    /// tree, or else of its track.
    pub(super) fn comparable_base(
        &self,
        target: KernelIx,
        machine: Option<MachineIx>,
    ) -> Option<KernelIx> {
        let kernel = self.kernel(target);
        let mut ranks: BTreeSet<usize> = BTreeSet::new();
        for (key, series) in self.series() {
            let is_here = machine.is_none_or(|machine| self.first_kin(key.machine) == machine);
            if is_here && *key.track == *kernel.track && series.point(target).is_some() {
                let points = series.points.iter().map(|point| self.rank(point.kernel));
                ranks.extend(points.filter(|rank| *rank < self.rank(target)));
            }
        }
        let tree = tree_of(&kernel.build);
        let earlier = ranks.iter().rev().map(|rank| self.order()[*rank]);
        let mut of_tree = earlier
            .clone()
            .filter(|other| tree_of(&self.kernel(*other).build) == tree)
            .peekable();
        let chosen: Vec<KernelIx> = if of_tree.peek().is_some() {
            of_tree.collect()
        } else {
            earlier.collect()
        };
        let mut newest_first = chosen.iter().copied();
        newest_first
            .find(|other| self.kernel(*other).release.series() != kernel.release.series())
            .or_else(|| chosen.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use compare::fixtures::{Ending, Subject, build, machine};
    use model::{Machine, MachineId, Origin};

    use super::super::tests::taken;
    use super::{History, TrackPair};

    fn measured(name: &str, version: &str, on: &str, workload: &str) -> Subject {
        let cost = [(workload, Ending::Cost(100.0, 0.0))];
        Subject::new(build(name, version), &[1, 2], &cost).on(Machine {
            id: MachineId::from_hex(&format!("{on:0<16}")).unwrap(),
            fingerprint: vec![("cpu".to_owned(), on.to_owned())],
            ..machine()
        })
    }

    /// A commit of a tree.
    fn commit(tree: &str, hash: &str, day: u32) -> Subject {
        let mut subject = measured("git:HEAD", &format!("6.12.0-g{hash}"), "aa", "getppid");
        let line = format!(
            "commit {hash} of {tree}, micro, gcc 12.2, committed 2026-11-{day:02}T00:00:00Z"
        );
        subject.build.origin = Origin::of_line(&line, &subject.build.name);
        subject
    }

    fn described(history: &History, pair: &TrackPair) -> String {
        let [base, target] = [pair.kernels.base, pair.kernels.target]
            .map(|kernel| history.kernel(kernel).release.to_string());
        format!("{} {base} {target}", pair.track)
    }

    fn pairs(subjects: &[Subject]) -> Vec<String> {
        let history = taken(subjects);
        let pairs = history.track_pairs();
        pairs.iter().map(|pair| described(&history, pair)).collect()
    }

    #[test]
    fn each_tree_is_compared_with_itself() {
        let found = pairs(&[
            commit("/src/linux", "1111111aaaaa", 1),
            commit("/src/next", "2222222aaaaa", 2),
            commit("/src/linux", "3333333aaaaa", 3),
            commit("/src/next", "4444444aaaaa", 4),
        ]);
        assert_eq!(
            found,
            [
                "git:next 6.12.0-g2222222aaaaa 6.12.0-g4444444aaaaa",
                "git 6.12.0-g1111111aaaaa 6.12.0-g3333333aaaaa"
            ]
        );
    }

    #[test]
    fn kernel_without_common_workload_hides_no_pair() {
        let found = pairs(&[
            measured("deb:6.1", "6.1.190", "aa", "getppid"),
            measured("deb:6.12", "6.12.117", "aa", "getppid"),
            measured("deb:6.18", "6.18.1", "aa", "fork-exit"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(" 6.1.190 6.12.117"), "{found:?}");
    }

    #[test]
    fn machine_with_older_kernels_keeps_its_pair() {
        let found = pairs(&[
            measured("deb:6.1", "6.1.190", "aa", "getppid"),
            measured("deb:6.12", "6.12.117", "aa", "getppid"),
            measured("deb:6.12", "6.12.117", "bb", "getppid"),
            measured("deb:6.18", "6.18.1", "bb", "getppid"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].ends_with(" 6.12.117 6.18.1"), "{found:?}");
        assert!(found[1].ends_with(" 6.1.190 6.12.117"), "{found:?}");
    }
}

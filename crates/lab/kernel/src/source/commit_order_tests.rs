//! The order of builds of real histories: what git calls an ancestor comes first, whatever hashes
//! and clocks say. `model` orders the dates, `git.rs` finds them.

use std::path::{Path, PathBuf};

use model::Release;
use tempfile::TempDir;

use super::Repository;
use super::git::{AUTHOR, git};

/// A day [s].
const DAY: i64 = 86_400;
/// When the trees begin.
const START: i64 = 1_730_000_000;

/// A tree whose commits have versions like kernels.
struct Tree {
    folder: PathBuf,
}

/// A commit as a build of it is ordered.
#[derive(Debug, Clone)]
struct Ordered {
    commit: String,
    release: Release,
}

impl Tree {
    fn create(folder: &Path) -> Self {
        let tree = Self {
            folder: folder.to_owned(),
        };
        std::fs::create_dir(folder).unwrap();
        tree.git(0, &["init", "--quiet", "-b", "main", "."]);
        tree
    }

    fn git(&self, day: i64, arguments: &[&str]) -> String {
        let date = format!("@{} +0000", START + day * DAY);
        let program = git(&self.folder)
            .variable("GIT_COMMITTER_DATE", &date)
            .variable("GIT_AUTHOR_DATE", &date);
        program.args(AUTHOR).args(arguments).run().unwrap()
    }

    /// Commits a change of a file on a day.
    fn commit(&self, day: i64, file: &str) {
        let path = self.folder.join(file);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, format!("{before}{day}\n")).unwrap();
        self.git(day, &["add", "."]);
        self.git(day, &["commit", "--quiet", "-m", file]);
    }

    /// Commits a version and tags it.
    fn release(&self, day: i64, version: &str) {
        std::fs::write(self.folder.join("Makefile"), version).unwrap();
        self.git(day, &["add", "."]);
        self.git(day, &["commit", "--quiet", "-m", version]);
        self.git(day, &["tag", version]);
    }

    fn branch(&self, name: &str, from: &str) {
        self.git(0, &["checkout", "--quiet", "-b", name, from]);
    }

    fn switch(&self, name: &str) {
        self.git(0, &["checkout", "--quiet", name]);
    }

    fn merge(&self, day: i64, name: &str) {
        let words = ["merge", "--quiet", "--no-ff", "-m", "merge", name];
        self.git(day, &words);
    }

    /// Returns all commits of all branches, as builds of them are ordered.
    fn ordered(&self) -> Vec<Ordered> {
        let repository = Repository::open(&self.folder).unwrap();
        let all = self.git(0, &["rev-list", "--all"]);
        let mut ordered = Vec::new();
        for commit in all.lines() {
            let version = self.git(0, &["show", &format!("{commit}:Makefile")]);
            let release = Release::parse(&format!("{}-g{}", version.trim(), &commit[..12]));
            ordered.push(Ordered {
                commit: commit.to_owned(),
                release: release.dated(repository.committed_unix(commit)),
            });
        }
        ordered.sort_by(|one, other| one.release.cmp(&other.release));
        ordered
    }

    /// Returns the places of revisions in the order of a list of commits.
    fn places(&self, ordered: &[Ordered], revisions: &[&str]) -> Vec<usize> {
        let place = |revision: &&str| {
            let commit = self.git(0, &["rev-parse", &format!("{revision}^{{commit}}")]);
            let is_it = |one: &Ordered| one.commit == commit.trim();
            ordered.iter().position(is_it).unwrap()
        };
        revisions.iter().map(place).collect()
    }

    /// Asserts that each commit comes after all that git lists as its ancestors.
    fn assert_ancestry(&self, ordered: &[Ordered]) {
        for (place, one) in ordered.iter().enumerate() {
            let ancestors = self.git(0, &["rev-list", &one.commit]);
            for ancestor in ancestors.lines() {
                let before = ordered.iter().position(|other| other.commit == ancestor);
                assert!(before.unwrap() <= place, "{ancestor} after {one:?}");
            }
        }
    }
}

/// A mainline from 6.12-rc1 to 6.13-rc1 with topics of an old base, one by a clock that is a year
/// ahead, merged in the merge window. Two of them have the same commits: hashes are of contents and
/// dates.
fn mainline(folder: &TempDir, name: &str) -> Tree {
    let tree = Tree::create(&folder.path().join(name));
    tree.release(0, "6.12.0-rc1");
    tree.branch("topic", "main");
    tree.commit(3, "mm");
    tree.commit(370, "mm");
    tree.switch("main");
    tree.release(7, "6.12.0-rc2");
    tree.commit(8, "net");
    tree.release(14, "6.12.0");
    tree.commit(15, "fs");
    tree.merge(15, "topic");
    tree.git(0, &["tag", "merged"]);
    tree.commit(15, "sched");
    tree.commit(16, "sched");
    tree.release(28, "6.13.0-rc1");
    tree
}

#[test]
fn merged_topics_come_before_their_merge() {
    let folder = tempfile::tempdir().unwrap();
    let tree = mainline(&folder, "linux");
    let ordered = tree.ordered();
    tree.assert_ancestry(&ordered);
    let tags = ["6.12.0-rc1", "topic", "6.12.0", "merged", "6.13.0-rc1"];
    let places = tree.places(&ordered, &tags);
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(places[4], ordered.len() - 1);
}

#[test]
fn stable_releases_come_before_next_mainline() {
    let folder = tempfile::tempdir().unwrap();
    let tree = mainline(&folder, "linux");
    tree.branch("linux-6.12.y", "6.12.0");
    tree.commit(60, "fix");
    tree.release(61, "6.12.1");
    tree.commit(90, "fix");
    tree.release(91, "6.12.2");
    let ordered = tree.ordered();
    tree.assert_ancestry(&ordered);
    let tags = ["6.12.0", "6.12.1", "6.12.2", "6.13.0-rc1"];
    let places = tree.places(&ordered, &tags);
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn rebased_commits_come_after_new_base() {
    let folder = tempfile::tempdir().unwrap();
    let tree = mainline(&folder, "linux");
    tree.branch("next", "6.12.0");
    for _ in 0..3 {
        tree.commit(17, "next");
    }
    tree.git(0, &["tag", "before"]);
    // A rebase keeps the dates of authors; git takes that of the committer from the clock.
    tree.git(29, &["rebase", "--quiet", "main"]);
    let ordered = tree.ordered();
    tree.assert_ancestry(&ordered);
    let revisions = ["before", "6.13.0-rc1", "next~2", "next~1", "next"];
    let places = tree.places(&ordered, &revisions);
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn commits_of_two_trees_keep_ancestry() {
    let folder = tempfile::tempdir().unwrap();
    let [linus, other] = ["linux", "other"].map(|name| mainline(&folder, name));
    for day in [17, 5, 29] {
        other.commit(day, "mine");
        linus.commit(day, "theirs");
    }
    let [mut all, theirs] = [linus.ordered(), other.ordered()];
    let known: Vec<String> = all.iter().map(|one| one.commit.clone()).collect();
    all.extend(
        theirs
            .into_iter()
            .filter(|one| !known.contains(&one.commit)),
    );
    all.sort_by(|one, other| one.release.cmp(&other.release));
    for (tree, other_branch) in [(&linus, &other), (&other, &linus)] {
        let theirs = other_branch.git(0, &["rev-list", "6.13.0-rc1..main"]);
        let mut own = all.clone();
        own.retain(|one| !theirs.contains(&one.commit));
        tree.assert_ancestry(&own);
    }
    let by_tree = [
        linus.places(&all, &["main~2", "main~1", "main"]),
        other.places(&all, &["main~2", "main~1", "main"]),
    ];
    assert!(
        by_tree.iter().all(|places| places.is_sorted()),
        "{by_tree:?}"
    );
}

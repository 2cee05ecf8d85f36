//! Reads a tree's history with the git program: revisions, ranges, changed files, new merges.
//!
//! `commit_graph` chooses the commits to look at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use model::UnixTime;

use super::cherry_pick::Authorship;
use super::commit_graph::{Commit, CommitGraph};
use super::program::{Ended, Program};
use super::{RangeError, SourceError, TreeError};
use crate::KernelError;

/// The line of a cover letter above what b4 keeps in it.
const B4_MARK: &str = "--- b4-submit-tracking ---";
/// Most patches of a branch of b4.
const B4_PATCHES_MAX: usize = 500;

/// A user's git repository. Marvin reads it and never writes to it.
#[derive(Debug, Clone)]
pub struct Repository {
    folder: PathBuf,
    git: PathBuf,
}

/// Commits behind one whose dates count: a commit is dated later than these, even if clocks were
/// wrong or a script made many in one second.
const DATED_MAX: usize = 2000;

/// The headline of a commit, each part one safe line: anyone may have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    pub subject: String,
    pub author: String,
}

/// Runs git with settings that make its answers reproducible, and without the caller's hooks.
pub(crate) fn git(folder: &Path) -> Program {
    let fixed = [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.quotePath=true",
        "log.showSignature=false",
    ];
    Program::new("git", folder)
        .args(fixed.iter().flat_map(|setting| ["-c", setting]))
        .variable("GIT_OPTIONAL_LOCKS", "0")
        .variable("GIT_TERMINAL_PROMPT", "0")
        // Both: a git older than 2.39.4 would fetch missing objects by programs that the repository
        // names.
        .variable("GIT_NO_LAZY_FETCH", "1")
        .variable("GIT_ALLOW_PROTOCOL", "none")
        .variable("GIT_NO_REPLACE_OBJECTS", "1")
}

fn is_hash(text: &str) -> bool {
    (40..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn no_repository(folder: &Path, detail: &dyn Display) -> KernelError {
    SourceError::Tree(TreeError::NotARepository {
        folder: folder.to_owned(),
        detail: detail.to_string(),
    })
    .into()
}

impl Repository {
    /// Opens the repository that contains a directory.
    ///
    /// # Errors
    /// If it is in none, or git is missing.
    pub fn open(folder: &Path) -> Result<Self, KernelError> {
        let named = folder;
        let folder = fs::canonicalize(named).map_err(|error| no_repository(named, &error))?;
        if !folder.is_dir() {
            return Err(no_repository(named, &"it is not a folder"));
        }
        let ended = git(&folder)
            .args(["rev-parse", "--absolute-git-dir"])
            .end()?;
        if ended.code != Some(0) {
            let detail = ended.reason();
            return Err(no_repository(named, &detail.trim_start_matches("fatal: ")));
        }
        let git = PathBuf::from(ended.text().trim_end_matches('\n'));
        Ok(Self { folder, git })
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns its object directory.
    pub(crate) fn objects(&self) -> Result<PathBuf, KernelError> {
        let path = git(&self.folder)
            .args(["rev-parse", "--git-path", "objects"])
            .run()?;
        Ok(self.folder.join(path.trim_end_matches('\n')))
    }

    /// Returns the index of its work tree, if it has one.
    pub(crate) fn index(&self) -> PathBuf {
        self.git.join("index")
    }

    /// Returns the names of tags and branches that begin so, newest first.
    ///
    /// # Errors
    /// If git fails.
    pub fn references(&self, begin: &str, max: usize) -> Result<Vec<String>, KernelError> {
        let text = git(&self.folder)
            .args([
                "for-each-ref",
                "--format=%(refname:short)",
                "--sort=-creatordate",
                "refs/heads",
                "refs/tags",
                "refs/remotes",
            ])
            .run()?;
        let names = text.lines().filter(|name| name.starts_with(begin));
        Ok(names.take(max).map(str::to_owned).collect())
    }

    /// Returns the commit of a revision.
    ///
    /// # Errors
    /// If there is no such revision.
    pub fn commit(&self, revision: &str) -> Result<String, KernelError> {
        self.object(revision, "commit")
    }

    /// Returns the tree object of a revision.
    ///
    /// # Errors
    /// If there is no such revision.
    pub fn tree(&self, revision: &str) -> Result<String, KernelError> {
        self.object(revision, "tree")
    }

    fn object(&self, revision: &str, kind: &str) -> Result<String, KernelError> {
        if revision.is_empty() || revision.starts_with('-') || revision.contains(['\n', '\0']) {
            return Err(self.unknown(revision));
        }
        let name = format!("{revision}^{{{kind}}}");
        let ended = git(&self.folder)
            .args([
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ])
            .end()?;
        let text = ended.text();
        let hash = text.lines().last().unwrap_or_default();
        if ended.code == Some(0) && is_hash(hash) {
            Ok(hash.to_owned())
        } else {
            Err(self.unknown(revision))
        }
    }

    fn unknown(&self, revision: &str) -> KernelError {
        SourceError::Tree(TreeError::UnknownRevision {
            revision: revision.to_owned(),
            folder: self.folder.clone(),
        })
        .into()
    }

    /// Checks that a revision contains a kernel source.
    ///
    /// # Errors
    /// If it does not, or there is no such revision.
    pub fn check_linux(&self, revision: &str) -> Result<(), KernelError> {
        let kbuild = format!("{}:Kbuild", self.commit(revision)?);
        if git(&self.folder)
            .args(["cat-file", "-e", &kbuild])
            .end()?
            .code
            == Some(0)
        {
            return Ok(());
        }
        let what = format!("{revision} of {}", self.folder.display());
        Err(SourceError::Tree(TreeError::NotLinux { what }).into())
    }

    /// Reads the commits after GOOD up to BAD, once.
    ///
    /// # Errors
    /// If BAD does not descend from GOOD: swapped ends, other branches, a shallow clone.
    pub fn history(&self, good: &str, bad: &str) -> Result<CommitGraph, KernelError> {
        let from = self.commit(good)?;
        let to = self.commit(bad)?;
        let good = good.to_owned();
        let bad = bad.to_owned();
        if from == to {
            return Err(SourceError::Range(RangeError::SameCommit { good, bad }).into());
        }
        if !self.is_ancestor(&from, &to)? {
            return Err(self.no_way(good, &from, bad, &to)?);
        }
        let except = format!("^{from}");
        let list = [
            "rev-list",
            "--topo-order",
            "--reverse",
            "--parents",
            &to,
            &except,
            "--",
        ];
        let text = git(&self.folder).args(list).run()?;
        let commits: Vec<Commit> = text.lines().filter_map(commit).collect();
        let shallow = self.shallow()?;
        if commits.iter().any(|commit| shallow.contains(&commit.id)) {
            return Err(SourceError::Range(RangeError::Shallow {
                folder: self.folder.clone(),
            })
            .into());
        }
        CommitGraph::new(&from, commits).ok_or_else(|| {
            SourceError::Program {
                command: "git rev-list".into(),
                detail: "what it printed is no history".into(),
            }
            .into()
        })
    }

    /// Parses a range `OLDER..NEWER` into its ends; the older end of `A^..B` is A's parent. The
    /// newer end defaults to the checked-out commit.
    ///
    /// # Errors
    /// If it is no range, or names an unknown revision.
    pub fn range(&self, text: &str) -> Result<(String, String), KernelError> {
        let parts = text
            .split_once("..")
            .filter(|(older, newer)| !older.is_empty() && !newer.starts_with('.'));
        let (older, newer) =
            parts.ok_or_else(|| SourceError::Range(RangeError::NoRange(text.to_owned())))?;
        let newer = if newer.is_empty() { "HEAD" } else { newer };
        Ok((self.commit(older)?, self.commit(newer)?))
    }

    /// Returns the newest commit that two commits descend from, or are.
    ///
    /// # Errors
    /// If they share no history, or git fails.
    pub fn fork_point(&self, one: &str, other: &str) -> Result<String, KernelError> {
        let ended = git(&self.folder).args(["merge-base", one, other]).end()?;
        match ended.text().lines().next() {
            Some(base) if is_hash(base) => Ok(base.to_owned()),
            _ => Err(self.no_way(one.to_owned(), one, other.to_owned(), other)?),
        }
    }

    /// Returns the commit with the cover letter of a branch of b4, before its first patch (b4's
    /// docs/contributor/prep.rst, cover-strategy `commit`); `None` if the last commits have none.
    ///
    /// # Errors
    /// If git fails.
    pub fn b4_cover(&self, tip: &str) -> Result<Option<String>, KernelError> {
        let many = format!("-{B4_PATCHES_MAX}");
        let arguments = ["log", "--first-parent", &many, "-z", "--format=%H%n%B", tip];
        let log = git(&self.folder).args(arguments).run()?;
        let cover = log.split('\0').find_map(|commit| {
            let (hash, message) = commit.split_once('\n')?;
            let is_cover = message.lines().any(|line| line == B4_MARK);
            (is_cover && is_hash(hash)).then(|| hash.to_owned())
        });
        Ok(cover.filter(|cover| cover != tip))
    }

    /// Returns which commits after `older` up to `newer` another one does not have.
    ///
    /// # Errors
    /// If git fails.
    pub fn commits_without(
        &self,
        older: &str,
        newer: &str,
        other: &str,
    ) -> Result<BTreeSet<String>, KernelError> {
        let older = format!("^{older}");
        let other = format!("^{other}");
        let text = git(&self.folder)
            .args(["rev-list", newer, &older, &other, "--"])
            .run()?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns whether one commit is another one, or an ancestor of it; false if there is no such
    /// commit.
    ///
    /// # Errors
    /// If git is missing.
    pub fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, KernelError> {
        Ok(git(&self.folder)
            .args(["merge-base", "--is-ancestor", old, new])
            .end()?
            .code
            == Some(0))
    }

    fn no_way(
        &self,
        good: String,
        from: &str,
        bad: String,
        to: &str,
    ) -> Result<KernelError, KernelError> {
        if self.is_ancestor(to, from)? {
            return Ok(SourceError::Range(RangeError::Swapped { good, bad }).into());
        }
        if !self.shallow()?.is_empty() {
            return Ok(SourceError::Range(RangeError::Shallow {
                folder: self.folder.clone(),
            })
            .into());
        }
        let ended = git(&self.folder).args(["merge-base", from, to]).end()?;
        let base = ended.text().trim().to_owned();
        if base.is_empty() {
            return Ok(SourceError::Range(RangeError::Unrelated { good, bad }).into());
        }
        Ok(SourceError::Range(RangeError::NotAncestor {
            good,
            bad,
            base: base.chars().take(12).collect(),
        })
        .into())
    }

    /// Returns the commits at which a shallow clone ends.
    fn shallow(&self) -> Result<BTreeSet<String>, KernelError> {
        let path = git(&self.folder)
            .args(["rev-parse", "--git-path", "shallow"])
            .run()?;
        let text =
            fs::read_to_string(self.folder.join(path.trim_end_matches('\n'))).unwrap_or_default();
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns the files that each commit of a range changed; for a merge, those that differ from
    /// all parents.
    ///
    /// # Errors
    /// If git fails.
    pub fn changed_files(
        &self,
        history: &CommitGraph,
    ) -> Result<BTreeMap<String, Vec<String>>, KernelError> {
        let except = format!("^{}", history.good());
        let list = [
            "log",
            "--format=%x01%H",
            "--name-only",
            "-c",
            "--no-renames",
            "--no-color",
            history.bad(),
            &except,
            "--",
        ];
        let text = git(&self.folder).args(list).run()?;
        Ok(parse_changed(&text))
    }

    /// Returns when a commit was committed, and later than all that it descends from, as far as the
    /// newest of these show: dates sort commits of one branch as ancestry does. `None` if git
    /// cannot list them.
    pub(crate) fn committed_unix(&self, commit: &str) -> Option<UnixTime> {
        let count = format!("--max-count={DATED_MAX}");
        let log = [
            "log",
            &count,
            "--no-color",
            "--format=%ct %H %P",
            commit,
            "--",
        ];
        corrected_date(commit, &git(&self.folder).args(log).run().ok()?)
    }

    /// Returns the author and the message of a commit, as they are.
    ///
    /// # Errors
    /// If there is no such commit.
    pub fn authorship(&self, commit: &str) -> Result<Authorship, KernelError> {
        let format = "--format=%an%n%ae%n%ad%n%B";
        let text = git(&self.folder)
            .args([
                "show",
                "-s",
                "--no-color",
                "--date=raw",
                format,
                commit,
                "--",
            ])
            .run()?;
        let mut parts = text.splitn(4, '\n').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Ok(Authorship {
            name: next(),
            address: next(),
            date: next(),
            message: next(),
        })
    }

    /// Returns the headline of a commit.
    ///
    /// # Errors
    /// If there is no such commit.
    pub fn headline(&self, commit: &str) -> Result<Headline, KernelError> {
        let text = git(&self.folder)
            .args([
                "show",
                "-s",
                "--no-color",
                "--format=%s%n%an <%ae>",
                commit,
                "--",
            ])
            .run()?;
        let mut lines = text.lines().map(model::sanitize_line);
        Ok(Headline {
            subject: lines.next().unwrap_or_default(),
            author: lines.next().unwrap_or_default(),
        })
    }
}

/// Parses a line of a date, a commit and its parents.
fn dated_commit(line: &str) -> Option<(UnixTime, Commit)> {
    let (date, commits) = line.split_once(' ')?;
    let date = UnixTime::new(date.parse().ok()?);
    Some((date, commit(commits.trim_end())?))
}

/// Returns the date of a commit, at least a second after the dates of its parents, which are
/// corrected likewise: what git calls the corrected commit date. The lines are commits with their
/// dates and parents, the newest first as a rule.
fn corrected_date(commit: &str, lines: &str) -> Option<UnixTime> {
    let commits: Vec<(UnixTime, Commit)> = lines.lines().rev().filter_map(dated_commit).collect();
    let mut dates: BTreeMap<&str, UnixTime> = commits
        .iter()
        .map(|(date, commit)| (&*commit.id, *date))
        .collect();
    // One pass, unless a wrong clock had git list a commit behind its parent.
    for _ in 0..commits.len() {
        let mut is_done = true;
        for (_, commit) in &commits {
            let after = commit
                .parents
                .iter()
                .filter_map(|parent| dates.get(&**parent))
                .max()
                .map(|date| date.plus_seconds(1));
            if let Some(date) = dates.get_mut(&*commit.id)
                && after.is_some_and(|after| after > *date)
            {
                *date = after.unwrap_or(*date);
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    dates.get(commit).copied()
}

/// Parses a line of `rev-list --parents`.
fn commit(line: &str) -> Option<Commit> {
    let mut hashes = line.split(' ').map(str::to_owned);
    let id = hashes.next().filter(|id| is_hash(id))?;
    Some(Commit {
        id,
        parents: hashes.collect(),
    })
}

/// Parses the output of `log --name-only`; names that git quotes do not occur in kernels and are
/// kept as they are.
fn parse_changed(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(id) = line.strip_prefix('\u{1}') {
            current = Some(files.entry(id.to_owned()).or_default());
        } else if let Some(files) = current.as_mut().filter(|_| !line.is_empty()) {
            files.push(line.to_owned());
        }
    }
    files
}

/// Runs git for a test, with an author for commits.
#[cfg(test)]
pub(crate) fn run_git(folder: &Path, arguments: &[&str]) -> String {
    git(folder).args(AUTHOR).args(arguments).run().unwrap()
}

#[cfg(test)]
pub(super) const AUTHOR: [&str; 6] = [
    "-c",
    "user.name=t",
    "-c",
    "user.email=t@example.com",
    "-c",
    "commit.gpgsign=false",
];

/// Returns whether a new merge succeeded.
pub(crate) fn parse_merge(ended: &Ended) -> Option<String> {
    let text = ended.text();
    let tree = text.lines().next().unwrap_or_default();
    (ended.code == Some(0) && is_hash(tree)).then(|| tree.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::UnixTime;

    use super::{AUTHOR, Repository, git, run_git};

    /// Two branches that are merged, all in one second, but for one commit by a wrong clock; then
    /// 40 commits in one second.
    #[test]
    fn dates_of_commits_follow_ancestry() {
        let folder = tempfile::tempdir().unwrap();
        let run = |date: i64, arguments: &[&str]| {
            let date = format!("@{date} +0000");
            let program = git(folder.path())
                .variable("GIT_COMMITTER_DATE", &date)
                .variable("GIT_AUTHOR_DATE", &date);
            program.args(AUTHOR).args(arguments).run().unwrap()
        };
        let commit = |date: i64, subject: &str| {
            run(date, &["commit", "--quiet", "--allow-empty", "-m", subject]);
            run(0, &["tag", subject]);
        };
        run(0, &["init", "--quiet", "-b", "main", "."]);
        commit(1_000_000_000, "root");
        run(0, &["checkout", "--quiet", "-b", "topic"]);
        commit(1_000_000_000, "topic-1");
        commit(900_000_000, "topic-2");
        run(0, &["checkout", "--quiet", "main"]);
        commit(1_000_000_000, "main-1");
        run(
            1_000_000_000,
            &["merge", "--quiet", "--no-ff", "-m", "merge", "topic"],
        );
        run(0, &["tag", "merge"]);
        (0..40).for_each(|n| commit(1_000_000_000, &format!("later-{n}")));
        let repository = Repository::open(folder.path()).unwrap();
        let date = |tag: &str| {
            repository
                .committed_unix(&repository.commit(tag).unwrap())
                .unwrap()
        };
        let later: Vec<String> = (0..40).map(|n| format!("later-{n}")).collect();
        for branch in [
            ["root", "topic-1", "topic-2", "merge"],
            ["root", "main-1", "main-1", "merge"],
        ] {
            let tags = branch.into_iter().chain(later.iter().map(String::as_str));
            let mut tags: Vec<&str> = tags.collect();
            tags.dedup();
            assert!(
                tags.is_sorted_by(|old, new| date(old) < date(new)),
                "{tags:?}"
            );
        }
        assert_eq!(
            [date("root"), date("topic-2")].map(UnixTime::seconds),
            [1_000_000_000, 1_000_000_002]
        );
        assert_eq!(repository.committed_unix(&"1".repeat(40)), None);
    }

    #[test]
    fn partial_clone_runs_no_program_of_its_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let ran = folder.path().join("ran");
        run_git(folder.path(), &["init", "--quiet", "."]);
        let address = format!("ext::sh -c touch% {}", ran.display());
        let settings = [
            ("remote.origin.url", address.as_str()),
            ("remote.origin.promisor", "true"),
            ("extensions.partialClone", "origin"),
            ("core.repositoryFormatVersion", "1"),
            ("protocol.ext.allow", "always"),
        ];
        for (name, value) in settings {
            run_git(folder.path(), &["config", name, value]);
        }
        let missing = "1".repeat(40);
        let repository = Repository::open(folder.path()).unwrap();
        assert!(repository.commit(&missing).is_err());
        // As a git that does not know the switch.
        let old = git(folder.path())
            .variable("GIT_NO_LAZY_FETCH", "0")
            .args(["cat-file", "-e", &missing]);
        assert_ne!(old.end().unwrap().code, Some(0));
        assert!(!ran.exists());
        // The test can fail.
        let open = git(folder.path())
            .variable("GIT_NO_LAZY_FETCH", "0")
            .variable("GIT_ALLOW_PROTOCOL", "ext");
        drop(open.args(["cat-file", "-e", &missing]).end());
        assert!(fs::exists(&ran).unwrap());
    }
}

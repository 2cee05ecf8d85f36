//! Cherry-picks in the workshop: without a work tree, three-way, as `git cherry-pick` and `git am
//! -3` do.
//!
//! The commits exist only in the workshop, until a branch of the workshop names them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::git::parse_merge;
use super::program::Ended;
use super::{SourceError, WorkTree};
use crate::KernelError;

/// Date of commits whose own date git cannot read.
const DATE: &str = "@1577836800 +0000";

/// The result of applying a change to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Picked {
    /// A commit of the workshop.
    Commit(String),
    /// The commit has the change already.
    Nothing,
    Conflict(Vec<String>),
}

/// The author and the message of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorship {
    pub name: String,
    pub address: String,
    /// Date, in a form that git reads.
    pub date: String,
    pub message: String,
}

impl WorkTree {
    /// Returns `onto` with a commit cherry-picked.
    pub(crate) fn pick(&self, onto: &str, commit: &str) -> Result<Picked, KernelError> {
        let Ok(parent) = self.resolve(&format!("{commit}^1")) else {
            // A root, or where a shallow clone ends.
            return Ok(Picked::Conflict(Vec::new()));
        };
        let tree = self.tree_of(onto)?;
        // A child of the commit's parent with the tree of `onto`: the parent is then the merge
        // base.
        let ours = self.commit_tree(&tree, &[&parent], "to pick onto")?;
        let merge = [
            "merge-tree",
            "--write-tree",
            "--no-messages",
            "--name-only",
            &ours,
            commit,
        ];
        let ended = self.git(&self.source()).args(merge).end()?;
        match parse_merge(&ended) {
            Some(merged) if merged == tree => Ok(Picked::Nothing),
            Some(merged) => self
                .commit_tree(&merged, &[onto], "picked to look at it")
                .map(Picked::Commit),
            None if ended.code == Some(1) => {
                let files: BTreeSet<String> = ended
                    .text()
                    .lines()
                    .skip(1)
                    .map(model::sanitize_line)
                    .collect();
                Ok(Picked::Conflict(
                    files.into_iter().filter(|file| !file.is_empty()).collect(),
                ))
            }
            None => Err(SourceError::Program {
                command: "git merge-tree".into(),
                detail: ended.reason(),
            }
            .into()),
        }
    }

    /// Returns a commit with the change of a diff whose parent has the files that the diff names,
    /// as `git am -3` makes it; `None` if the tree does not have these versions of the files.
    pub(crate) fn commit_of_diff(&self, diff: &[u8]) -> Result<Option<String>, KernelError> {
        let file = self.patch_file(diff)?;
        let index = self.repository().join("picked.index");
        drop(fs::remove_file(&index));
        let fake = format!("--build-fake-ancestor={}", index.display());
        let ended = self
            .git_with_index(&self.source(), &index)
            .args(["apply", &fake, "--"])
            .args([&file])
            .end()?;
        if ended.code != Some(0) || !index.exists() {
            return Ok(None);
        }
        let before = self.written_tree(&index)?;
        if self.apply_to(&index, &file)?.code != Some(0) {
            return Ok(None);
        }
        let after = self.written_tree(&index)?;
        let parent = self.commit_tree(&before, &[], "before a patch")?;
        self.commit_tree(&after, &[&parent], "a patch").map(Some)
    }

    /// Returns whether a commit has the change of a diff already: it can be taken back.
    pub(crate) fn has_change(&self, commit: &str, diff: &[u8]) -> Result<bool, KernelError> {
        let file = self.patch_file(diff)?;
        let index = self.repository().join("picked.index");
        drop(fs::remove_file(&index));
        let source = self.source();
        self.git_with_index(&source, &index)
            .args(["read-tree", &self.tree_of(commit)?])
            .run()?;
        let ended = self
            .git_with_index(&source, &index)
            .args(["apply", "--cached", "--check", "--reverse", "--"])
            .args([&file])
            .end()?;
        Ok(ended.code == Some(0))
    }

    /// Returns `onto` with a diff applied, whose context must be the same.
    pub(crate) fn apply_diff(&self, onto: &str, diff: &[u8]) -> Result<Picked, KernelError> {
        let file = self.patch_file(diff)?;
        let index = self.repository().join("picked.index");
        drop(fs::remove_file(&index));
        let tree = self.tree_of(onto)?;
        self.git_with_index(&self.source(), &index)
            .args(["read-tree", &tree])
            .run()?;
        let ended = self.apply_to(&index, &file)?;
        if ended.code != Some(0) {
            return Ok(Picked::Conflict(refused_files(&ended.stderr)));
        }
        let merged = self.written_tree(&index)?;
        if merged == tree {
            return Ok(Picked::Nothing);
        }
        self.commit_tree(&merged, &[onto], "picked to look at it")
            .map(Picked::Commit)
    }

    fn apply_to(&self, index: &Path, diff: &Path) -> Result<Ended, KernelError> {
        self.git_with_index(&self.source(), index)
            .args(["apply", "--cached", "--whitespace=nowarn", "--"])
            .args([diff])
            .end()
    }

    /// Writes an index as a tree object.
    fn written_tree(&self, index: &Path) -> Result<String, KernelError> {
        let tree = self
            .git_with_index(&self.source(), index)
            .args(["write-tree"])
            .run()?;
        Ok(tree.trim().to_owned())
    }

    /// Returns a commit with the tree of another one, an author and a message.
    pub(crate) fn commit_as(
        &self,
        tree_of: &str,
        parent: &str,
        of: &Authorship,
    ) -> Result<String, KernelError> {
        let tree = self.tree_of(tree_of)?;
        let message = self.repository().join("picked.message");
        fs::write(&message, &of.message).map_err(KernelError::io(&message))?;
        let create = ["commit-tree", &tree, "-p", parent, "-F"];
        // Mails have dates and names of any form, and git refuses some.
        for (author, date) in [(&*of.name, &*of.date), ("unknown", DATE)] {
            let mut commit = self.git(&self.source()).args(create).args([&message]);
            for (name, value) in [
                ("GIT_AUTHOR_NAME", author),
                ("GIT_AUTHOR_EMAIL", &*of.address),
                ("GIT_AUTHOR_DATE", date),
                ("GIT_COMMITTER_NAME", "marvin"),
                ("GIT_COMMITTER_EMAIL", "marvin@localhost"),
                // The author's: equal series are equal commits.
                ("GIT_COMMITTER_DATE", date),
            ] {
                commit = commit.variable(name, value);
            }
            let ended = commit.end()?;
            if ended.code == Some(0) {
                return Ok(ended.text().trim().to_owned());
            }
            if date == DATE {
                return Err(SourceError::Program {
                    command: "git commit-tree".into(),
                    detail: ended.reason(),
                }
                .into());
            }
        }
        Ok(parent.to_owned())
    }

    /// Names a commit by a branch of the workshop, from which users fetch it.
    pub(crate) fn set_branch(&self, name: &str, commit: &str) -> Result<PathBuf, KernelError> {
        let name = format!("refs/heads/{name}");
        self.git(&self.source())
            .args(["update-ref", &name, commit])
            .run()?;
        Ok(self.repository())
    }

    /// Writes the commits after `base` up to `tip` as mails.
    pub(crate) fn format_patches(
        &self,
        base: &str,
        tip: &str,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, KernelError> {
        let range = format!("{base}..{tip}");
        let format = [
            "format-patch",
            "--quiet",
            "--no-signature",
            "--numbered",
            "--output-directory",
        ];
        let files = self
            .git(&self.source())
            .args(format)
            .args([folder])
            .args([&range]);
        files.run()?;
        let mut written = Vec::new();
        for entry in fs::read_dir(folder).map_err(KernelError::io(folder))? {
            let path = entry.map_err(KernelError::io(folder))?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "patch")
            {
                written.push(path);
            }
        }
        written.sort();
        Ok(written)
    }

    /// Returns commits after `base` that made the lines around the changes of a commit; newest
    /// first.
    pub(crate) fn commits_below(
        &self,
        base: &str,
        commit: &str,
    ) -> Result<Vec<String>, KernelError> {
        let parent = self.resolve(&format!("{commit}^1"))?;
        let diff = [
            "diff-tree",
            "-p",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            &parent,
            commit,
        ];
        let diff = self.git(&self.source()).args(diff).run()?;
        let range = format!("{base}..{parent}");
        let mut found = BTreeSet::new();
        for (file, ranges) in old_lines(&diff) {
            let mut blame = vec!["blame".to_owned(), "-s".to_owned(), "-l".to_owned()];
            blame.extend(
                ranges
                    .iter()
                    .flat_map(|(first, last)| ["-L".to_owned(), format!("{first},{last}")]),
            );
            blame.extend([range.clone(), "--".to_owned(), file]);
            let ended = self.git(&self.source()).args(blame).end()?;
            // A boundary line begins with a caret.
            let hashes = ended.text();
            found.extend(
                hashes
                    .lines()
                    .filter(|line| !line.starts_with('^'))
                    .filter_map(|line| line.split_whitespace().next().map(str::to_owned)),
            );
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let rev_list = ["rev-list", "--topo-order", "--no-walk=sorted"];
        let list = self.git(&self.source()).args(rev_list).args(&found).run()?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// Returns the hash of a revision, which may exist only in the workshop.
    fn resolve(&self, revision: &str) -> Result<String, KernelError> {
        let name = format!("{revision}^{{commit}}");
        Ok(self
            .git(&self.source())
            .args(["rev-parse", "--verify", "--end-of-options", &name])
            .run()?
            .trim()
            .to_owned())
    }

    fn patch_file(&self, diff: &[u8]) -> Result<PathBuf, KernelError> {
        let file = self.repository().join("picked.patch");
        fs::write(&file, diff).map_err(KernelError::io(&file))?;
        Ok(file)
    }
}

/// Returns the lines of each old file that the hunks of a diff cover, context included.
fn old_lines(diff: &str) -> BTreeMap<String, Vec<(usize, usize)>> {
    let mut ranges: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    let mut file = None;
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("--- ") {
            file = name.strip_prefix("a/").map(str::to_owned);
        } else if let (Some(hunk), Some(file)) = (line.strip_prefix("@@ -"), &file) {
            let old = hunk.split(' ').next().unwrap_or_default();
            let (first, count) = old.split_once(',').unwrap_or((old, "1"));
            if let (Ok(first), Ok(count)) = (first.parse::<usize>(), count.parse::<usize>())
                && count > 0
            {
                ranges
                    .entry(file.clone())
                    .or_default()
                    .push((first, first + count - 1));
            }
        }
    }
    ranges
}

/// Returns the files that `git apply` refuses: `error: mm/memory.c: patch does not apply`.
fn refused_files(stderr: &str) -> Vec<String> {
    let mut files = BTreeSet::new();
    for line in stderr
        .lines()
        .filter_map(|line| line.strip_prefix("error: "))
    {
        let file = line
            .strip_prefix("patch failed: ")
            .unwrap_or(line)
            .split(':')
            .next()
            .unwrap_or_default();
        if file.contains('/') || file.contains('.') {
            files.insert(model::sanitize_line(file));
        }
    }
    files.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::git::{Repository, run_git};
    use super::{Authorship, Picked, WorkTree};
    use crate::source::program;
    use std::fs;

    struct Tree {
        home: tempfile::TempDir,
        folder: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            let tree = Self {
                home: tempfile::tempdir().unwrap(),
                folder: tempfile::tempdir().unwrap(),
            };
            tree.git(&["init", "-q", "-b", "main"]);
            tree
        }

        fn git(&self, arguments: &[&str]) -> String {
            run_git(self.folder.path(), arguments).trim().to_owned()
        }

        fn commit(&self, lines: &[&str], subject: &str) -> String {
            fs::write(self.folder.path().join("mm.c"), lines.join("\n") + "\n").unwrap();
            self.git(&["add", "-A"]);
            self.git(&["commit", "-qm", subject]);
            self.git(&["rev-parse", "HEAD"])
        }

        fn workshop(&self) -> WorkTree {
            let workshop = WorkTree::open(self.home.path()).unwrap();
            workshop
                .borrow(&Repository::open(self.folder.path()).unwrap())
                .unwrap();
            workshop
        }
    }

    fn file_of(workshop: &WorkTree, picked: &Picked) -> String {
        let Picked::Commit(commit) = picked else {
            panic!("{picked:?}")
        };
        workshop
            .file(&workshop.tree_of(commit).unwrap(), "mm.c")
            .unwrap()
            .replace('\n', " ")
    }

    #[test]
    fn commits_are_picked_three_way() {
        let tree = Tree::new();
        let base = tree.commit(&["a", "b", "c", "d", "e", "f", "g", "h"], "base");
        let first = tree.commit(&["A", "b", "c", "d", "e", "f", "g", "h"], "first");
        let second = tree.commit(&["A", "b", "c", "d", "e", "f", "g", "H"], "second");
        let third = tree.commit(&["AA", "b", "c", "d", "e", "f", "g", "H"], "third");
        let workshop = tree.workshop();
        let picked = workshop.pick(&base, &second).unwrap();
        assert_eq!(file_of(&workshop, &picked), "a b c d e f g H ");
        assert_eq!(
            workshop.pick(&base, &third).unwrap(),
            Picked::Conflict(vec!["mm.c".to_owned()])
        );
        assert_eq!(workshop.pick(&third, &second).unwrap(), Picked::Nothing);
        assert_eq!(
            workshop.commits_below(&base, &third).unwrap(),
            [&*first],
            "git blame shows what it needs"
        );
        let with_first = workshop.pick(&base, &first).unwrap();
        let Picked::Commit(with_first) = with_first else {
            panic!("{with_first:?}")
        };
        assert_eq!(
            file_of(&workshop, &workshop.pick(&with_first, &third).unwrap()),
            "AA b c d e f g h "
        );
    }

    #[test]
    fn diffs_become_commits_if_their_files_are_known() {
        let tree = Tree::new();
        let base = tree.commit(&["a", "b", "c", "d", "e", "f", "g", "h"], "base");
        let other = tree.commit(&["a", "b", "c", "d", "X", "f", "g", "h"], "other");
        let last = tree.commit(&["a", "b", "c", "d", "X", "f", "G", "h"], "last");
        let diff = tree.git(&["diff", "--full-index", &other, &last]) + "\n";
        let workshop = tree.workshop();
        let Picked::Conflict(files) = workshop.apply_diff(&base, diff.as_bytes()).unwrap() else {
            panic!("context differs")
        };
        assert_eq!(files, ["mm.c"]);
        assert_eq!(
            file_of(
                &workshop,
                &workshop.apply_diff(&other, diff.as_bytes()).unwrap()
            ),
            "a b c d X f G h "
        );
        let unknown = diff.replacen("index ", "index 1", 1);
        assert_eq!(workshop.commit_of_diff(unknown.as_bytes()).unwrap(), None);
        let commit = workshop.commit_of_diff(diff.as_bytes()).unwrap().unwrap();
        assert_eq!(
            file_of(&workshop, &workshop.pick(&other, &commit).unwrap()),
            "a b c d X f G h "
        );
    }

    #[test]
    fn branches_have_authors_and_messages() {
        let tree = Tree::new();
        let base = tree.commit(&["a"], "base");
        let next = tree.commit(&["b"], "next");
        let workshop = tree.workshop();
        let authorship = Authorship {
            name: "Ada".to_owned(),
            address: "ada@example.org".to_owned(),
            date: "1577836800 +0000".to_owned(),
            message: "mm: faster\n\nMeasured.\n".to_owned(),
        };
        let commit = workshop.commit_as(&next, &base, &authorship).unwrap();
        let repository = workshop.set_branch("stabilise/x", &commit).unwrap();
        let log = program(&repository)
            .args(["log", "-1", "--format=%an %s%n%b", "stabilise/x"])
            .run()
            .unwrap();
        assert_eq!(log.trim(), "Ada mm: faster\nMeasured.");
        let folder = tempfile::tempdir().unwrap();
        let files = workshop
            .format_patches(&base, &commit, folder.path())
            .unwrap();
        assert_eq!(files.len(), 1);
        assert!(
            fs::read_to_string(&files[0])
                .unwrap()
                .contains("Subject: [PATCH 1/1] mm: faster")
        );
    }
}

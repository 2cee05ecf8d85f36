//! The workshop of a data directory: one work tree that changes from source to source, so that only
//! changes are rebuilt.
//!
//! Users' trees are read, never written to: the workshop has a separate repository that borrows
//! their objects. One process works here at a time. `make` builds the work tree.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::git::{Repository, git, parse_merge};
use super::program::Program;
use super::{SourceError, TreeError};
use crate::{KernelError, scratch};

/// Author and date of commits that exist only in the workshop: constant, so that their hashes are
/// reproducible.
const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "marvin"),
    ("GIT_AUTHOR_EMAIL", "marvin@localhost"),
    ("GIT_AUTHOR_DATE", "1577836800 +0000"),
    ("GIT_COMMITTER_NAME", "marvin"),
    ("GIT_COMMITTER_EMAIL", "marvin@localhost"),
    ("GIT_COMMITTER_DATE", "1577836800 +0000"),
];

/// Deepest directory of a tree; kernels need fewer than half of it.
const DEPTH_MAX: usize = 32;
const PATCH_BYTES_MAX: u64 = 64 << 20;

/// Files that make leaves in a source if it was called without an output directory.
const LEFT_BEHIND: [&str; 8] = [
    "**/*.o",
    "**/*.a",
    "**/*.cmd",
    ".config",
    "vmlinux",
    "include/config/**",
    "include/generated/**",
    "arch/*/include/generated/**",
];

/// The workshop, locked until dropped.
#[derive(Debug)]
pub(crate) struct WorkTree {
    folder: PathBuf,
    _lock: File,
}

impl WorkTree {
    /// Opens the workshop of a data directory; waits while another process uses it.
    pub(crate) fn open(home: &Path) -> Result<Self, KernelError> {
        Self::open_telling(home, &|| ())
    }

    /// The same; calls `tell` before it waits.
    pub(crate) fn open_telling(home: &Path, tell: &dyn Fn()) -> Result<Self, KernelError> {
        let folder = home.join("workshop");
        fs::create_dir_all(folder.join("linux")).map_err(KernelError::io(&folder))?;
        // make records these paths.
        let folder = fs::canonicalize(&folder).map_err(KernelError::io(&folder))?;
        let lock = match scratch::try_lock(&folder) {
            Some(lock) => lock,
            None => {
                tell();
                scratch::lock(&folder)?
            }
        };
        Self::of_locked(folder, lock)
    }

    /// Opens the workshop, unless another process uses it, or it cannot be written.
    pub(crate) fn open_if_free(home: &Path) -> Result<Option<Self>, KernelError> {
        let Ok(folder) = fs::canonicalize(home.join("workshop")) else {
            return Ok(None);
        };
        let lock = scratch::try_lock(&folder);
        lock.map(|lock| Self::of_locked(folder, lock)).transpose()
    }

    fn of_locked(folder: PathBuf, lock: File) -> Result<Self, KernelError> {
        let workshop = Self {
            _lock: lock,
            folder,
        };
        workshop.make_repository()?;
        // No other process works here: a leftover lock belongs to a killed process.
        for left in [
            "index.lock",
            "snapshot.index.lock",
            "picked.index.lock",
            "HEAD.lock",
        ] {
            drop(fs::remove_file(workshop.repository().join(left)));
        }
        Ok(workshop)
    }

    /// Makes the repository, unless it exists: complete or not at all, even if killed.
    fn make_repository(&self) -> Result<(), KernelError> {
        let repository = self.repository();
        // git makes this directory last.
        if repository.join("objects/info").is_dir() {
            return Ok(());
        }
        let unfinished = self.folder.join("repository.unfinished");
        for left in [&repository, &unfinished] {
            drop(fs::remove_dir_all(left));
        }
        self.git(&self.source())
            .variable("GIT_DIR", &unfinished)
            .args(["init", "--quiet"])
            .run()?;
        fs::rename(&unfinished, &repository).map_err(KernelError::io(&repository))
    }

    /// Returns the work tree.
    pub(crate) fn source(&self) -> PathBuf {
        self.folder.join("linux")
    }

    /// Returns the directory of the compiler's cache, which all builds share.
    pub(crate) fn compiler_cache(&self) -> PathBuf {
        self.folder.join("ccache")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Returns git for the workshop's repository and any work tree.
    pub(crate) fn git(&self, tree: &Path) -> Program {
        let settings = [
            "core.autocrlf=false",
            "core.splitIndex=false",
            "core.untrackedCache=false",
            "gc.auto=0",
        ];
        git(tree)
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .variable("GIT_DIR", self.repository())
            .variable("GIT_WORK_TREE", tree)
            .deadline_s(1800)
    }

    /// Lets the workshop use the objects of a repository.
    pub(crate) fn borrow(&self, from: &Repository) -> Result<(), KernelError> {
        let line = format!("{}\n", from.objects()?.display());
        let file = self.repository().join("objects/info/alternates");
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        if !text.contains(&line) {
            text.push_str(&line);
            fs::write(&file, text).map_err(KernelError::io(&file))?;
        }
        Ok(())
    }

    /// Returns the tree object of a directory as it is, uncommitted files included. In a
    /// repository, git's ignore rules apply; in other directories, files that make leaves are
    /// skipped, because Debian's sources make git ignore all upstream files.
    ///
    /// git asks repositories in the directory for their state, by programs that their configuration
    /// names (`filter.NAME.clean`): they are refused before git sees them.
    pub(crate) fn snapshot(&self, folder: &Path) -> Result<String, KernelError> {
        refuse_repositories_in(folder, DEPTH_MAX)?;
        let index = self.repository().join("snapshot.index");
        drop(fs::remove_file(&index));
        let known = match Repository::open(folder) {
            Ok(repository) if folder.join(".git").exists() => {
                self.borrow(&repository)?;
                // The index saves reading unchanged files, and includes its files even if git
                // ignores them.
                let add = self
                    .git_with_index(folder, &index)
                    .args(["add", "--all", "."]);
                fs::copy(repository.index(), &index).is_ok() && add.run().is_ok()
            }
            _ => false,
        };
        if !known {
            // Its index may have a format that cannot be used here.
            drop(fs::remove_file(&index));
            let excluded = LEFT_BEHIND.map(|left| format!(":(exclude,glob){left}"));
            self.git_with_index(folder, &index)
                .args(["add", "--all", "--force", "."])
                .args(excluded)
                .run()?;
        }
        let tree = self
            .git_with_index(folder, &index)
            .args(["write-tree"])
            .run()?;
        Ok(tree.trim().to_owned())
    }

    /// Makes the work tree equal to a tree object. Unchanged files keep their times.
    pub(crate) fn check_out(&self, tree: &str, what: &str) -> Result<(), KernelError> {
        let has = git(&self.source())
            .variable("GIT_DIR", self.repository())
            .args(["cat-file", "-e", &format!("{tree}:Kbuild")]);
        if has.end()?.code != Some(0) {
            return Err(SourceError::Tree(TreeError::NotLinux {
                what: what.to_owned(),
            })
            .into());
        }
        let mark = self.folder.join("checking-out");
        let source = self.source();
        if mark.exists() {
            // Interrupted: the files may belong to any tree.
            fs::remove_dir_all(&source)
                .and_then(|()| fs::create_dir(&source))
                .map_err(KernelError::io(&source))?;
            drop(fs::remove_file(self.repository().join("index")));
        }
        fs::write(&mark, tree).map_err(KernelError::io(&mark))?;
        self.git(&source)
            .args(["read-tree", "--reset", "-u", tree])
            .run()?;
        fs::remove_file(&mark).map_err(KernelError::io(&mark))
    }

    /// Removes the files that a Makefile left in the work tree beside its sources.
    pub(crate) fn remove_untracked(&self) -> Result<(), KernelError> {
        let source = self.source();
        // All of them: Debian's sources make git ignore upstream's files.
        let clean = ["clean", "-ffdxq"];
        self.git(&source).args(clean).run().map(drop)
    }

    /// Returns the files of a tree object, with the hashes of their contents.
    pub(crate) fn list(&self, tree: &str) -> Result<String, KernelError> {
        self.git(&self.source()).args(["ls-tree", "-r", tree]).run()
    }

    /// Returns the paths of the files that differ between two tree objects.
    pub(crate) fn changed_between(&self, old: &str, new: &str) -> Result<Vec<String>, KernelError> {
        let text = self
            .git(&self.source())
            .args(["diff-tree", "-r", "--name-only", "--no-renames", old, new])
            .run()?;
        Ok(text
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// Returns a file of a tree object; `None` if it has none.
    pub(crate) fn file(&self, tree: &str, path: &str) -> Option<String> {
        let ended = self
            .git(&self.source())
            .args(["cat-file", "blob", &format!("{tree}:{path}")])
            .end()
            .ok()?;
        (ended.code == Some(0)).then(|| ended.text())
    }

    /// Returns the merge of two commits, which exists only in the workshop; `None` if they
    /// conflict.
    pub(crate) fn merge(&self, ours: &str, theirs: &str) -> Result<Option<String>, KernelError> {
        let Some(tree) = self.merged_tree(ours, theirs)? else {
            return Ok(None);
        };
        self.commit_tree(&tree, &[ours, theirs], "merged to look between")
            .map(Some)
    }

    /// Returns a commit with another one reverted, which exists only in the workshop; `None` if
    /// later commits conflict. For a merge, all that it brought in is reverted.
    pub(crate) fn revert(&self, tip: &str, commit: &str) -> Result<Option<String>, KernelError> {
        // Merge a child of the commit that has its parent's tree: the commit is then the merge
        // base.
        let before = self.tree_of(&format!("{commit}^1"))?;
        let undone = self.commit_tree(&before, &[commit], "as before")?;
        let Some(tree) = self.merged_tree(tip, &undone)? else {
            return Ok(None);
        };
        self.commit_tree(&tree, &[tip], "taken back to look at the rest")
            .map(Some)
    }

    /// Returns the tree object of a merge of two commits; `None` if they conflict.
    fn merged_tree(&self, ours: &str, theirs: &str) -> Result<Option<String>, KernelError> {
        let ended = self
            .git(&self.source())
            .args(["merge-tree", "--write-tree", ours, theirs])
            .end()?;
        Ok(parse_merge(&ended))
    }

    pub(super) fn commit_tree(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
    ) -> Result<String, KernelError> {
        let mut commit = self
            .git(&self.source())
            .args(["commit-tree", tree, "-m", message]);
        for (name, value) in IDENTITY {
            commit = commit.variable(name, value);
        }
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        Ok(commit.args(parents).run()?.trim().to_owned())
    }

    /// Returns the tree object of a commit, which may exist only in the workshop.
    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, KernelError> {
        let name = format!("{commit}^{{tree}}");
        let ended = self
            .git(&self.source())
            .args([
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ])
            .end()?;
        if ended.code == Some(0) {
            return Ok(ended.text().trim().to_owned());
        }
        let commit = commit.chars().take(12).collect();
        Err(SourceError::Tree(TreeError::Gone {
            commit,
            folder: self.folder.clone(),
        })
        .into())
    }

    /// Returns a tree object with a patch applied, which may be several in a row, as mails or
    /// diffs.
    pub(crate) fn apply_patch(
        &self,
        tree: &str,
        file: &Path,
        what: &str,
    ) -> Result<String, KernelError> {
        let refuse = |detail: String| SourceError::Patch {
            file: file.to_owned(),
            what: what.to_owned(),
            detail,
        };
        let patch = fs::canonicalize(file).map_err(|error| refuse(error.to_string()))?;
        let found = fs::metadata(&patch).map_err(|error| refuse(error.to_string()))?;
        if !found.is_file() || found.len() > PATCH_BYTES_MAX {
            return Err(refuse(format!(
                "it is no file of at most {} MiB",
                PATCH_BYTES_MAX >> 20
            ))
            .into());
        }
        let index = self.repository().join("snapshot.index");
        drop(fs::remove_file(&index));
        let source = self.source();
        self.git_with_index(&source, &index)
            .args(["read-tree", tree])
            .run()?;
        let ended = self
            .git_with_index(&source, &index)
            .args(["apply", "--cached", "--whitespace=nowarn", "--"])
            .args([&patch])
            .end()?;
        if ended.code != Some(0) {
            return Err(refuse(
                ended
                    .stderr
                    .lines()
                    .next()
                    .unwrap_or("git says nothing")
                    .to_owned(),
            )
            .into());
        }
        let tree = self
            .git_with_index(&source, &index)
            .args(["write-tree"])
            .run()?;
        Ok(tree.trim().to_owned())
    }

    /// Returns git with an index of its own, so that the tree's stays as it is.
    pub(super) fn git_with_index(&self, folder: &Path, index: &Path) -> Program {
        self.git(folder).variable("GIT_INDEX_FILE", index)
    }
}

/// Refuses a directory that has a repository below its top.
fn refuse_repositories_in(folder: &Path, depth: usize) -> Result<(), KernelError> {
    for entry in fs::read_dir(folder).map_err(KernelError::io(folder))? {
        let entry = entry.map_err(KernelError::io(folder))?;
        let path = entry.path();
        // The top's own repository is none of them.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || entry.file_name() == ".git" {
            continue;
        }
        // Links count too: git follows them to the configuration.
        if fs::symlink_metadata(path.join(".git")).is_ok() || depth == 0 {
            return Err(SourceError::Tree(TreeError::NestedRepository { folder: path }).into());
        }
        refuse_repositories_in(&path, depth - 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::WorkTree;
    use crate::source::git::run_git;

    #[test]
    fn repository_inside_a_tree_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let tree = tempfile::tempdir().unwrap();
        let ran = home.path().join("ran");
        let inner = tree.path().join("drivers/inner");
        fs::create_dir_all(&inner).unwrap();
        run_git(&inner, &["init", "--quiet", "."]);
        fs::write(inner.join("file"), "one").unwrap();
        run_git(&inner, &["add", "."]);
        run_git(&inner, &["commit", "--quiet", "-m", "one"]);
        let filter = format!("touch {}; cat", ran.display());
        run_git(&inner, &["config", "filter.x.clean", &filter]);
        fs::write(inner.join(".gitattributes"), "* filter=x\n").unwrap();
        fs::write(inner.join("file"), "two").unwrap();
        let workshop = WorkTree::open(home.path()).unwrap();
        let error = workshop.snapshot(tree.path()).unwrap_err().to_string();
        assert!(
            error.contains("drivers/inner is a repository inside the tree") && !ran.exists(),
            "{error}"
        );
    }

    #[test]
    fn interrupted_repository_creation_is_repeated() {
        let home = tempfile::tempdir().unwrap();
        let repository = home.path().join("workshop/repository");
        let list = || {
            let workshop = WorkTree::open(home.path()).unwrap();
            fs::write(workshop.source().join("Kbuild"), "").unwrap();
            let tree = workshop.snapshot(&workshop.source()).unwrap();
            workshop.list(&tree).unwrap()
        };
        let whole = list();
        assert!(whole.ends_with("\tKbuild\n"), "{whole}");
        // The state after a kill: git writes HEAD first and makes the object directory last.
        fs::remove_dir_all(repository.join("objects")).unwrap();
        fs::create_dir(home.path().join("workshop/repository.unfinished")).unwrap();
        assert_eq!(list(), whole);
        assert!(!home.path().join("workshop/repository.unfinished").exists());
    }
}

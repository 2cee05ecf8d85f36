//! Cherry-picks on commits of a user's tree: results are commits that exist only in the workshop,
//! or a branch of it.

use std::path::{Path, PathBuf};

use crate::source::{Authorship, Picked, WorkTree};
use crate::{KernelError, Sources};

impl Sources {
    /// Returns `onto` with a commit cherry-picked; both may exist only in the workshop.
    ///
    /// # Errors
    /// If git fails. A conflict is a result.
    pub fn pick(&self, onto: &str, commit: &str) -> Result<Picked, KernelError> {
        self.workshop()?.pick(onto, commit)
    }

    /// Returns `onto` with a diff applied.
    ///
    /// # Errors
    /// If git fails. A diff that does not apply is a result.
    pub fn apply_diff(&self, onto: &str, diff: &[u8]) -> Result<Picked, KernelError> {
        self.workshop()?.apply_diff(onto, diff)
    }

    /// Returns a commit with the change of a diff, which can be cherry-picked three-way; `None` if
    /// the tree does not have the versions of the files that the diff was made from.
    ///
    /// # Errors
    /// If git fails.
    pub fn commit_of_diff(&self, diff: &[u8]) -> Result<Option<String>, KernelError> {
        self.workshop()?.commit_of_diff(diff)
    }

    /// Returns the source tree of a commit, which identifies what is built.
    ///
    /// # Errors
    /// If there is no such commit.
    pub fn source_id(&self, commit: &str) -> Result<String, KernelError> {
        self.workshop()?.tree_of(commit)
    }

    /// Returns whether a commit has the change of a diff already.
    pub(crate) fn has_change(&self, commit: &str, diff: &[u8]) -> Result<bool, KernelError> {
        self.workshop()?.has_change(commit, diff)
    }

    /// Returns a commit with the source of another one, and an author and a message.
    pub(crate) fn commit_as(
        &self,
        source: &str,
        parent: &str,
        of: &Authorship,
    ) -> Result<String, KernelError> {
        self.workshop()?.commit_as(source, parent, of)
    }

    /// Makes a branch of the workshop on `base`: one commit for each source, with its author and
    /// message. Its name begins with `name` and ends with its last commit. Returns the
    /// repository to fetch it from, its name and that commit.
    ///
    /// # Errors
    /// If git fails.
    pub fn make_branch(
        &self,
        name: &str,
        base: &str,
        commits: &[(String, Authorship)],
    ) -> Result<(PathBuf, String, String), KernelError> {
        let workshop = self.workshop()?;
        let mut tip = base.to_owned();
        for (source, of) in commits {
            tip = workshop.commit_as(source, &tip, of)?;
        }
        let name = format!("{name}-{}", tip.chars().take(12).collect::<String>());
        Ok((workshop.set_branch(&name, &tip)?, name, tip))
    }

    /// Writes the commits after `base` up to `tip` as mails into a directory, with numbers, as `git
    /// format-patch` does.
    ///
    /// # Errors
    /// If git fails.
    pub fn format_patches(
        &self,
        base: &str,
        tip: &str,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, KernelError> {
        self.workshop()?.format_patches(base, tip, folder)
    }

    /// Returns commits after `base` that made the lines around the changes of a commit, as `git
    /// blame` shows; newest first.
    ///
    /// # Errors
    /// If git fails.
    pub fn commits_below(&self, base: &str, commit: &str) -> Result<Vec<String>, KernelError> {
        self.workshop()?.commits_below(base, commit)
    }

    pub(crate) fn workshop(&self) -> Result<WorkTree, KernelError> {
        let workshop = WorkTree::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        Ok(workshop)
    }
}

//! Applies a series of patches to a commit, a commit for each, and finds the commit that it was
//! made on.
//!
//! As `git am` does it, but in the workshop: neither the work tree nor a branch of the user
//! changes. `patches` reads the mails and says what they state.

use std::collections::BTreeMap;

use crate::patches::Patch;
use crate::source::{Picked, program};
use crate::{KernelError, Repository, Sources};

/// Most commits that may be the base of a series, besides the one that is checked out.
const CANDIDATES_MAX: usize = 2000;

/// Most files of a series by which its base is looked for.
const FILES_MAX: usize = 100;

/// The commit that a series is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesBase {
    pub commit: String,
    pub how: BaseHow,
    /// The commit that the series states and that the tree does not have.
    pub stated_elsewhere: Option<String>,
}

/// How the base of a series was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseHow {
    /// The series states it.
    Stated,
    /// The commit that is checked out has the files that the diffs were made from.
    CheckedOutFits,
    /// The newest commit that changed one of the files and left all as the diffs were made from.
    FilesFit,
    /// The commit that is checked out: the diffs say nothing, or no commit fits.
    CheckedOut,
}

impl Repository {
    /// Returns the commit that a series was made on: the one that it states, else the checked-out
    /// commit or the newest one that has the very files that its diffs name by their hashes, else
    /// the checked-out commit.
    ///
    /// # Errors
    /// If git fails, or nothing is checked out.
    pub fn find_base(&self, patches: &[Patch]) -> Result<SeriesBase, KernelError> {
        let stated = patches.iter().find_map(|patch| patch.base.clone());
        if let Some(stated) = &stated
            && let Ok(commit) = self.commit(stated)
        {
            return Ok(SeriesBase {
                commit,
                how: BaseHow::Stated,
                stated_elsewhere: None,
            });
        }
        let checked_out = self.commit("HEAD")?;
        let before = files_before(patches);
        let mut candidates = vec![checked_out.clone()];
        if !before.is_empty() {
            candidates.extend(self.commits_changing(before.keys())?);
        }
        let fitting = self.first_fitting(&candidates, &before)?;
        let how = match &fitting {
            None => BaseHow::CheckedOut,
            Some(commit) if *commit == checked_out => BaseHow::CheckedOutFits,
            Some(_) => BaseHow::FilesFit,
        };
        Ok(SeriesBase {
            commit: fitting.unwrap_or(checked_out),
            how,
            stated_elsewhere: stated,
        })
    }

    /// Returns the newest commits of all branches and tags that changed one of these files.
    fn commits_changing<'a>(
        &self,
        files: impl Iterator<Item = &'a String>,
    ) -> Result<Vec<String>, KernelError> {
        let most = format!("--max-count={CANDIDATES_MAX}");
        let text = program(self.folder())
            .variable("GIT_LITERAL_PATHSPECS", "1")
            .args(["rev-list", "--all", &most, "HEAD", "--"])
            .args(files)
            .run()?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns the first of the commits whose files have these hashes.
    fn first_fitting(
        &self,
        candidates: &[String],
        before: &BTreeMap<String, String>,
    ) -> Result<Option<String>, KernelError> {
        if before.is_empty() {
            return Ok(None);
        }
        let ended = program(self.folder())
            .args(["cat-file", "--batch-check=%(objectname)"])
            .fed(|input| {
                for commit in candidates {
                    for file in before.keys() {
                        // git closes its end if it fails, and then says why.
                        if writeln!(input, "{commit}:{file}").is_err() {
                            return Ok(());
                        }
                    }
                }
                Ok(())
            })?;
        let text = ended.text();
        let mut found = text.lines();
        for commit in candidates {
            let mut fits = true;
            for hash in before.values() {
                fits &= found.next().is_some_and(|line| line.starts_with(hash));
            }
            if fits {
                return Ok(Some(commit.clone()));
            }
        }
        Ok(None)
    }
}

/// Returns the abbreviated hashes of the files that the diffs of a series were made from, as far as
/// the diffs state them.
fn files_before(patches: &[Patch]) -> BTreeMap<String, String> {
    let mut before = BTreeMap::new();
    let mut touched: Vec<&str> = Vec::new();
    for patch in patches {
        let hashes = hashes_before(&patch.diff);
        for file in &patch.files {
            let (Some(old), false) = (&file.old, touched.contains(&file.name())) else {
                touched.push(file.name());
                continue;
            };
            // A later patch of the series sees what an earlier one made.
            touched.push(file.name());
            if let Some(hash) = hashes.get(old.as_str())
                && !old.contains('\n')
                && before.len() < FILES_MAX
            {
                before.insert(old.clone(), hash.clone());
            }
        }
    }
    before
}

/// Returns the hash in the line `index OLD..NEW` of each file of a diff, by the name before.
fn hashes_before(diff: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut hash: Option<String> = None;
    for line in diff.split(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            hash = None;
        } else if let Some(rest) = line.strip_prefix(b"index ") {
            let old = String::from_utf8_lossy(rest);
            let old = old.split("..").next().unwrap_or_default().to_owned();
            let is_hash = old.len() >= 7 && old.bytes().all(|byte| byte.is_ascii_hexdigit());
            hash = (is_hash && old.bytes().any(|byte| byte != b'0')).then_some(old);
        } else if let Some(name) = line.strip_prefix(b"--- a/")
            && let Some(hash) = hash.take()
        {
            let name = String::from_utf8_lossy(name);
            found.insert(name.trim_end_matches(['\t', '\r']).to_owned(), hash);
        }
    }
    found
}

impl Sources {
    /// Applies patches one after the other and returns what became of each: a commit of the
    /// workshop, nothing, or the files that refuse it. Those behind a refused one are applied
    /// without it. With `three_way`, a patch that does not fit is merged, if the tree has the files
    /// that it was made from.
    ///
    /// # Errors
    /// If git fails.
    pub fn apply_series(
        &self,
        base: &str,
        patches: &[Patch],
        three_way: bool,
    ) -> Result<Vec<Picked>, KernelError> {
        let mut onto = base.to_owned();
        let mut results = Vec::with_capacity(patches.len());
        for patch in patches {
            let mut picked = self.apply_diff(&onto, &patch.diff)?;
            if three_way
                && matches!(picked, Picked::Conflict(_))
                && let Some(commit) = self.commit_of_diff(&patch.diff)?
            {
                picked = self.pick(&onto, &commit)?;
            }
            if matches!(picked, Picked::Conflict(_)) && self.has_change(&onto, &patch.diff)? {
                picked = Picked::Nothing;
            }
            if let Picked::Commit(commit) = picked {
                onto = self.commit_as(&commit, &onto, &patch.authorship())?;
                picked = Picked::Commit(onto.clone());
            }
            results.push(picked);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{BaseHow, hashes_before};
    use crate::Repository;
    use crate::source::run_git;
    use crate::{Patch, read_patches};

    const SERIES: &str = "\
From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: A Developer <a@example.org>
Date: Mon, 2 Nov 2026 10:00:00 +0000
Subject: [PATCH 1/2] first
Message-Id: <1@example.org>

---
diff --git a/mm/x.c b/mm/x.c
index HASH..2222222 100644
--- a/mm/x.c
+++ b/mm/x.c
@@ -1 +1 @@
-one
+two
-- 
2.40.1

";

    fn patches_in(folder: &Path, hash: &str, base: &str) -> Vec<Patch> {
        let file = folder.join("series.mbox");
        let text = SERIES.replace("HASH", hash);
        std::fs::write(&file, format!("{text}{base}\n")).unwrap();
        read_patches(&file, &folder.join("scratch")).unwrap()
    }

    fn commit(tree: &Path, text: &str) -> (String, String) {
        std::fs::create_dir_all(tree.join("mm")).unwrap();
        std::fs::write(tree.join("mm/x.c"), text).unwrap();
        run_git(tree, &["add", "."]);
        run_git(tree, &["commit", "-qm", text.trim()]);
        let head = run_git(tree, &["rev-parse", "HEAD"]).trim().to_owned();
        let blob = run_git(tree, &["rev-parse", "HEAD:mm/x.c"]);
        (head, blob.trim()[..9].to_owned())
    }

    #[test]
    fn base_is_stated_or_found_by_files() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        run_git(&tree, &["init", "-q"]);
        let (one, blob) = commit(&tree, "one\n");
        let (other, other_blob) = commit(&tree, "another\n");
        let (head, _) = commit(&tree, "a third\n");
        let repository = Repository::open(&tree).unwrap();
        let found = |hash: &str, base: &str| {
            let patches = patches_in(folder.path(), hash, base);
            let base = repository.find_base(&patches).unwrap();
            (base.commit, base.how, base.stated_elsewhere)
        };
        assert_eq!(found(&blob, ""), (one, BaseHow::FilesFit, None));
        let stated = format!("base-commit: {other}");
        assert_eq!(
            found(&blob, &stated),
            (other.clone(), BaseHow::Stated, None)
        );
        let unknown = "3".repeat(40);
        assert_eq!(
            found("4444444", &format!("base-commit: {unknown}")),
            (head.clone(), BaseHow::CheckedOut, Some(unknown))
        );
        run_git(&tree, &["reset", "-q", "--hard", &other]);
        let expected = (other, BaseHow::CheckedOutFits, None);
        assert_eq!(found(&other_blob, ""), expected);
    }

    #[test]
    fn hash_belongs_to_the_file_below_it() {
        let diff = b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\ndiff --git a/new b/new\nnew file mode 100644\nindex 0000000..1234567\n--- /dev/null\n+++ b/new\ndiff --git a/y b/y\nindex abcdef0..1234567 100644\n--- a/y\n+++ b/y\n";
        let found = hashes_before(diff);
        assert_eq!(found.len(), 1);
        assert_eq!(found["y"], "abcdef0");
    }
}

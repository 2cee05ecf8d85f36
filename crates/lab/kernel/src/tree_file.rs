//! A file of a commit by its name, and the files that differ between two commits.

use crate::{KernelError, SourceError, Sources};

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeFile {
    /// The commit has none.
    Absent,
    /// Its text.
    Text(String),
    /// Why it is not read.
    Refused(String),
}

impl Sources {
    /// Returns a small file of a commit, which may exist only in the workshop. A commit's links are
    /// not followed.
    ///
    /// # Errors
    /// If there is no such commit or git fails.
    pub fn file_of(
        &self,
        commit: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<TreeFile, KernelError> {
        let workshop = self.workshop()?;
        let source = workshop.source();
        let list = ["ls-tree", "-l", "-z", commit, "--", path];
        let listed = workshop.git(&source).args(list).run()?;
        let entry = listed.split('\0').next().unwrap_or_default();
        let words: Vec<&str> = entry.split_whitespace().collect();
        let [mode, kind, hash, size, ..] = words[..] else {
            return Ok(TreeFile::Absent);
        };
        if kind != "blob" || !mode.starts_with("100") {
            return Ok(TreeFile::Refused("it is no regular file".to_owned()));
        }
        if size.parse::<usize>().map_or(true, |size| size > bytes_max) {
            let why = format!("it has {size} bytes; at most {bytes_max} are read");
            return Ok(TreeFile::Refused(why));
        }
        let read = workshop
            .git(&source)
            .args(["cat-file", "blob", hash])
            .end()?;
        if read.code != Some(0) {
            let command = format!("git cat-file blob {hash}");
            let detail = read.reason();
            return Err(SourceError::Program { command, detail }.into());
        }
        match String::from_utf8(read.output) {
            Ok(text) => Ok(TreeFile::Text(text)),
            Err(_) => Ok(TreeFile::Refused("it is not UTF-8".to_owned())),
        }
    }

    /// Returns the files that differ between two commits, which may exist only in the workshop.
    /// Names that are not UTF-8 have replacement characters.
    ///
    /// # Errors
    /// If there is no such commit or git fails.
    pub fn files_between(&self, older: &str, newer: &str) -> Result<Vec<String>, KernelError> {
        let workshop = self.workshop()?;
        // Without -z git quotes unusual names, and they would belong to no directory.
        let diff = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            older,
            newer,
            "--",
        ];
        let text = workshop.git(&workshop.source()).args(diff).run()?;
        let names = text.split('\0').filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }
}

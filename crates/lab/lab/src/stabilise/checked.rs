//! The candidates of earlier checks on the same question, in a file of the data directory.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use subprocess::replace_file;

use super::Candidate;
use crate::LabError;

/// Candidates of earlier checks.
#[derive(Debug)]
pub struct CheckedBefore {
    file: PathBuf,
    ids: BTreeSet<String>,
}

impl CheckedBefore {
    /// Opens the candidates that were checked before with a question.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(home: &Path, question: &str) -> Result<Self, LabError> {
        let folder = home.join("stabilisations");
        let file = folder.join(format!("{}.checked", &hash(question.as_bytes())[..16]));
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let ids = match fs::read_to_string(&file) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(failed(&file)(error)),
        };
        Ok(Self { file, ids })
    }

    /// Returns whether a candidate was checked before.
    #[must_use]
    pub fn has(&self, candidate: &Candidate) -> bool {
        self.ids.contains(&identity(candidate))
    }

    /// Adds candidates.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep<'a>(
        mut self,
        candidates: impl Iterator<Item = &'a Candidate>,
    ) -> Result<(), LabError> {
        self.ids.extend(candidates.map(identity));
        let text: String = self.ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
        let new = self.file.with_extension("new");
        replace_file(&self.file, &new, text).map_err(failed(&self.file))
    }
}

/// Returns what identifies a candidate: its diff, or its commit.
fn identity(candidate: &Candidate) -> String {
    match (&candidate.diff, &candidate.commit) {
        (Some(diff), _) => hash(diff),
        (None, commit) => hash(commit.as_deref().unwrap_or_default().as_bytes()),
    }
}

fn hash(content: &[u8]) -> String {
    model::hexadecimal(&Sha256::digest(content))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LabError {
    move |error| LabError::Stabilisation {
        file: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::CheckedBefore;
    use crate::stabilise::Candidate;

    #[test]
    fn checked_candidates_are_remembered_per_question() {
        let home = tempfile::tempdir().unwrap();
        let commit = Candidate {
            commit: Some("a".repeat(40)),
            ..Candidate::default()
        };
        let patch = Candidate {
            diff: Some(b"--- a".to_vec()),
            ..Candidate::default()
        };
        let before = CheckedBefore::open(home.path(), "one").unwrap();
        assert!(!before.has(&commit));
        before.keep([&commit].into_iter()).unwrap();
        let again = CheckedBefore::open(home.path(), "one").unwrap();
        assert!(again.has(&commit) && !again.has(&patch));
        assert!(
            !CheckedBefore::open(home.path(), "two")
                .unwrap()
                .has(&commit)
        );
    }
}

//! The result as a branch of the workshop: the picked commits with their authors, and what each of
//! them brings in its message.

use std::path::PathBuf;

use kernel::{Authorship, Sources};
use model::Availability;
use stabilise::{Change, Kernel};

use super::Subject;
use super::kernels::Kernels;
use crate::LabError;

/// A branch of the workshop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The repository to fetch it from.
    pub repository: PathBuf,
    pub name: String,
    pub tip: String,
}

impl Subject {
    /// Makes a branch on NEW of a series that applies, with a text about the effect of each change.
    ///
    /// # Errors
    /// If git fails.
    pub fn branch(
        &self,
        sources: &Sources,
        name: &str,
        series: &[Change],
        effects: &[String],
    ) -> Result<Option<Branch>, LabError> {
        let mut kernels = Kernels::default();
        let mut commits = Vec::new();
        for (end, effect) in (1..=series.len()).zip(effects) {
            let kernel = Kernel::With(series[..end].to_vec());
            let Availability::Available(source) = kernels.commit_of(sources, self, &kernel)? else {
                return Ok(None);
            };
            let mut of = self.authorship(sources, series[end - 1])?;
            of.message = format!("{}\n\n{effect}", of.message.trim_end());
            commits.push((source, of));
        }
        let (repository, name, tip) = sources.make_branch(name, self.new_commit(), &commits)?;
        Ok(Some(Branch {
            repository,
            name,
            tip,
        }))
    }

    /// Returns the author and the message of a change.
    fn authorship(&self, sources: &Sources, change: Change) -> Result<Authorship, LabError> {
        Ok(match change {
            Change::Revert(point) => {
                let commit = self.point(point);
                let of = sources.repository().authorship(commit)?;
                let subject = of.message.lines().next().unwrap_or_default();
                let message = format!("Revert \"{subject}\"\n\nThis reverts commit {commit}.");
                Authorship {
                    name: "marvin".to_owned(),
                    address: "marvin@localhost".to_owned(),
                    date: of.date,
                    message,
                }
            }
            Change::Apply(number) => {
                let candidate = &self.candidates[number];
                match (&candidate.authorship, &candidate.commit) {
                    (Some(of), _) => of.clone(),
                    (None, Some(commit)) => {
                        let of = sources.repository().authorship(commit)?;
                        let message = format!(
                            "{}\n\n(cherry picked from commit {commit})",
                            of.message.trim_end()
                        );
                        Authorship { message, ..of }
                    }
                    (None, None) => Authorship {
                        name: "unknown".to_owned(),
                        address: "unknown@localhost".to_owned(),
                        date: "2020-01-01T00:00:00+0000".to_owned(),
                        message: candidate.subject.clone(),
                    },
                }
            }
        })
    }
}

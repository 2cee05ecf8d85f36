//! From the kernels of a search to commits: NEW with reverts and candidates, made in the workshop
//! without a work tree.

use std::collections::BTreeMap;

use kernel::{Picked, Sources};
use model::Availability;
use stabilise::{Change, Failure, Kernel};

use super::Subject;
use crate::LabError;

/// Most prerequisites of one candidate.
const PREREQUISITES_MAX: usize = 8;

/// Commits that were made: changes share those of the changes that come before.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    made: BTreeMap<Vec<Change>, Availability<String, Failure>>,
}

impl Kernels {
    /// Returns the commit of a kernel, which conflicts make unavailable.
    pub(super) fn commit_of(
        &mut self,
        sources: &Sources,
        subject: &Subject,
        kernel: &Kernel,
    ) -> Result<Availability<String, Failure>, LabError> {
        let changes = match kernel {
            Kernel::Baseline => return Ok(Availability::Available(subject.baseline.clone())),
            Kernel::Point(point) => {
                return Ok(Availability::Available(subject.point(*point).to_owned()));
            }
            Kernel::With(changes) => changes,
        };
        let mut commit = subject.new_commit().to_owned();
        for end in 1..=changes.len() {
            if let Some(made) = self.made.get(&changes[..end]) {
                match made {
                    Availability::Available(made) => commit.clone_from(made),
                    Availability::Unavailable(failure) => {
                        return Ok(Availability::Unavailable(failure.clone()));
                    }
                }
                continue;
            }
            let made = make(sources, subject, &commit, changes[end - 1])?;
            self.made.insert(changes[..end].to_vec(), made.clone());
            match made {
                Availability::Available(made) => commit = made,
                Availability::Unavailable(failure) => {
                    return Ok(Availability::Unavailable(failure));
                }
            }
        }
        Ok(Availability::Available(commit))
    }
}

/// Makes one change on a commit.
fn make(
    sources: &Sources,
    subject: &Subject,
    onto: &str,
    change: Change,
) -> Result<Availability<String, Failure>, LabError> {
    let picked = match change {
        Change::Revert(point) => match sources.revert(onto, subject.point(point))? {
            Some(commit) => Picked::Commit(commit),
            None => Picked::Conflict(Vec::new()),
        },
        Change::Apply(number) => {
            let candidate = &subject.candidates[number];
            match (&candidate.commit, &candidate.diff) {
                (Some(commit), _) => sources.pick(onto, commit)?,
                (None, Some(diff)) => sources.apply_diff(onto, diff)?,
                (None, None) => Picked::Nothing,
            }
        }
    };
    Ok(match picked {
        Picked::Commit(commit) => Availability::Available(commit),
        // The kernel has it already: it is no part of a series.
        Picked::Nothing => Availability::Unavailable(Failure::Conflict {
            change,
            files: Vec::new(),
        }),
        Picked::Conflict(files) => Availability::Unavailable(Failure::Conflict { change, files }),
    })
}

/// Returns earlier candidates that a candidate needs: those that made the lines around its changes,
/// or those that add the names that the compiler does not know.
pub(super) fn prerequisites(
    sources: &Sources,
    subject: &Subject,
    candidate: usize,
    failure: &Failure,
) -> Result<Vec<usize>, LabError> {
    let this = &subject.candidates[candidate];
    let earlier = || (0..candidate).rev();
    let found: Vec<usize> = match failure {
        Failure::Conflict { files, .. } => match (&this.commit, &this.diff) {
            (Some(commit), None) => {
                let below = sources.commits_below(subject.new_commit(), commit)?;
                earlier()
                    .filter(|number: &usize| {
                        subject.candidates[*number]
                            .commit
                            .as_ref()
                            .is_some_and(|id| below.contains(id))
                    })
                    .collect()
            }
            _ => earlier()
                .filter(|number| shares_place(subject, *number, candidate, files))
                .collect(),
        },
        Failure::DoesNotBuild(error) => {
            let names = quoted(error);
            let header = missing_file(error);
            earlier()
                .filter(|number: &usize| {
                    let earlier = &subject.candidates[*number];
                    let has_header =
                        |header: &str| earlier.files.iter().any(|file| file.ends_with(header));
                    header.is_some_and(has_header)
                        || names.iter().any(|name| earlier.adds.contains(*name))
                })
                .collect()
        }
        Failure::DoesNotRun(_) => Vec::new(),
    };
    Ok(found.into_iter().take(PREREQUISITES_MAX).collect())
}

/// Returns whether an earlier candidate changes a function that another one changes, in the files
/// in conflict, or the same such file if neither changes functions.
fn shares_place(subject: &Subject, earlier: usize, later: usize, files: &[String]) -> bool {
    let earlier = &subject.candidates[earlier];
    let later = &subject.candidates[later];
    let shares_file = files
        .iter()
        .any(|file| earlier.files.contains(file) && later.files.contains(file));
    let functions = (&earlier.facts.functions, &later.facts.functions);
    shares_file
        && (functions.0.is_empty()
            || functions.1.is_empty()
            || !functions.0.is_disjoint(functions.1))
}

/// Returns the names that gcc quotes in an error: `implicit declaration of function ‘foo’`.
fn quoted(error: &str) -> Vec<&str> {
    let pieces = error.split(['‘', '’', '\'', '"', '`']).skip(1).step_by(2);
    pieces
        .map(|word| word.split(['(', ' ', '.']).next().unwrap_or(word))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the file that an error misses: `fatal error: linux/foo.h: No such file or directory`.
fn missing_file(error: &str) -> Option<&str> {
    let (before, _) = error.split_once(": No such file")?;
    before
        .rsplit([' ', ':'])
        .next()
        .filter(|file| !file.is_empty())
}

/// Returns the last change of a kernel that touches the file of a failed build's first error.
pub(super) fn at_fault(subject: &Subject, kernel: &Kernel, failure: &Failure) -> Option<Change> {
    let (Kernel::With(changes), Failure::DoesNotBuild(error)) = (kernel, failure) else {
        return None;
    };
    let file = error.split(':').next()?.trim_start_matches("../");
    changes
        .iter()
        .rev()
        .find(|change: &&Change| match change {
            Change::Apply(number) => subject.candidates[*number].files.contains(file),
            Change::Revert(_) => false,
        })
        .copied()
}

#[cfg(test)]
mod tests {
    use super::{missing_file, quoted};

    #[test]
    fn names_of_compiler_errors_are_found() {
        let error = "../mm/memory.c:7:2: error: implicit declaration of function ‘folio_add’; did you mean ‘folio_put’?";
        assert_eq!(quoted(error), ["folio_add", "folio_put"]);
        assert_eq!(quoted("ld: mm.o: undefined reference to `walk'"), ["walk"]);
        assert!(quoted("error: no quotes").is_empty());
        let error = "mm/memory.c:9:10: fatal error: linux/foo.h: No such file or directory";
        assert_eq!(missing_file(error), Some("linux/foo.h"));
        assert_eq!(missing_file("error: other"), None);
    }
}

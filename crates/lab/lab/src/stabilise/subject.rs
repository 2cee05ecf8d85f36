//! From names to the subject of a stabilisation: the commits of the history and the candidates,
//! with what is known of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::{
    CommitGraph, KernelError, LinePoint, Patch, PatchesError, RangeError, SourceError, Sources,
    read_patches,
};
use stabilise::evidence::ChangeFacts;

use super::{Candidate, Subject};
use crate::LabError;

/// Where candidates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateSource {
    /// Commits OLDER..NEWER of the tree.
    Range(String),
    /// A patch, a mailbox, or a folder of patches.
    File(PathBuf),
}

/// A subject, and how its ends are related.
#[derive(Debug)]
pub struct FoundSubject {
    pub subject: Subject,
    /// Whether NEW descends from BASELINE; else the history begins where they part.
    pub is_ancestor: bool,
    /// Candidates that NEW has already.
    pub in_new: usize,
}

/// Finds the commits and patches. `scratch` is a directory for the mails of mailboxes.
///
/// # Errors
/// If there is no such commit or file, the ends share no history, or git fails.
pub fn find_subject(
    sources: &Sources,
    baseline: &str,
    new: &str,
    candidates: &[CandidateSource],
    scratch: &Path,
) -> Result<FoundSubject, LabError> {
    let repository = sources.repository();
    for end in [baseline, new] {
        repository.check_linux(end)?;
    }
    let baseline = repository.commit(baseline)?;
    let new = repository.commit(new)?;
    let fork = repository.fork_point(&baseline, &new)?;
    if fork == new && baseline != new {
        return Err(KernelError::from(SourceError::Range(RangeError::Swapped {
            good: baseline,
            bad: new,
        }))
        .into());
    }
    let history = repository.history(&fork, &new)?;
    let patches = patches_or_none(sources, &fork, &new)?;
    let trunk = history.trunk();
    let points = points_of(&history, &trunk, &patches);
    let mut backported = backports(&patches);
    let mut found = Vec::new();
    let mut in_new = 0;
    for source in candidates {
        let all = match source {
            CandidateSource::Range(range) => {
                let (older, newer) = repository.range(range)?;
                // NEW may have backports from before BASELINE, too.
                let parted = repository.fork_point(&new, &newer)?;
                if parted != fork && parted != new {
                    backported.extend(backports(&patches_or_none(sources, &parted, &new)?));
                }
                let missing = repository.commits_without(&older, &newer, &new)?;
                let all = repository.patches(&older, &newer)?;
                let count = all.len();
                let all: Vec<Candidate> = all
                    .into_iter()
                    .filter(|(commit, patch)| missing.contains(commit) && !patch.files.is_empty())
                    .map(|(commit, patch)| candidate(&patch, Some(commit)))
                    .collect();
                in_new += count - missing.len().min(count);
                all
            }
            CandidateSource::File(path) => {
                let mut all = Vec::new();
                for patch in read_patches(path, scratch)? {
                    all.push(candidate(&patch, None));
                }
                all
            }
        };
        for mut candidate in all {
            let is_in_new = match &candidate.facts.commit {
                Some(commit) if candidate.diff.is_some() => repository.is_ancestor(commit, &new)?,
                _ => false,
            };
            if is_in_new
                || candidate
                    .facts
                    .commit
                    .as_ref()
                    .is_some_and(|commit: &String| {
                        backported.iter().any(|known| is_same(known, commit))
                    })
            {
                in_new += 1;
                continue;
            }
            if let Some(diff) = &candidate.diff {
                candidate.commit = sources.commit_of_diff(diff)?;
            }
            found.push(candidate);
        }
    }
    let is_ancestor = fork == baseline;
    let subject = Subject {
        baseline,
        history,
        trunk,
        points,
        candidates: found,
    };
    Ok(FoundSubject {
        subject,
        is_ancestor,
        in_new,
    })
}

/// Returns what is known of each point: of all commits that it brings.
fn points_of(
    history: &CommitGraph,
    trunk: &[LinePoint],
    patches: &BTreeMap<String, Patch>,
) -> Vec<ChangeFacts> {
    let mut points = Vec::new();
    for place in trunk {
        let mut facts = ChangeFacts::default();
        for commit in &place.brings {
            if let Some(patch) = patches.get(history.id(*commit)) {
                join(&mut facts, &facts_of(patch));
            }
        }
        facts.commit = Some(history.id(place.commit).to_owned());
        points.push(facts);
    }
    points
}

/// Returns the patches of a range; none if it is too long. Evidence only orders the search, which
/// works without it.
fn patches_or_none(
    sources: &Sources,
    older: &str,
    newer: &str,
) -> Result<BTreeMap<String, Patch>, LabError> {
    match sources.repository().patches(older, newer) {
        Ok(patches) => Ok(patches.into_iter().collect()),
        Err(PatchesError::TooMuch { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the upstream commits that patches name as theirs, without those that a later one
/// reverts.
fn backports(patches: &BTreeMap<String, Patch>) -> BTreeSet<String> {
    let reverted: Vec<&String> = patches.values().flat_map(|patch| &patch.reverts).collect();
    let mut found = BTreeSet::new();
    for (commit, patch) in patches {
        if !reverted.iter().any(|reverted| is_same(reverted, commit)) {
            found.extend(patch.upstream.iter().cloned());
        }
    }
    found
}

/// Returns whether two commits are the same; one may be abbreviated.
fn is_same(one: &str, other: &str) -> bool {
    one.len().min(other.len()) >= 8 && (one.starts_with(other) || other.starts_with(one))
}

/// Returns a candidate of a patch: a commit of the tree, or else the patch itself.
fn candidate(patch: &Patch, commit: Option<String>) -> Candidate {
    let mut facts = facts_of(patch);
    facts.commit = commit
        .clone()
        .or_else(|| patch.upstream.first().cloned())
        .or_else(|| patch.commit.clone());
    let diff = if commit.is_none() {
        Some(patch.diff.clone())
    } else {
        None
    };
    let authorship = if commit.is_none() {
        Some(patch.authorship())
    } else {
        None
    };
    let names = patch
        .files
        .iter()
        .flat_map(|file| [&file.old, &file.new])
        .flatten()
        .cloned();
    let adds = patch
        .files
        .iter()
        .flat_map(|file| &file.identifiers.defined)
        .cloned();
    Candidate {
        commit,
        diff,
        subject: patch.subject.clone(),
        files: names.collect(),
        creates_header: patch
            .files
            .iter()
            .any(|file| file.old.is_none() && file.name().ends_with(".h")),
        adds: adds.collect(),
        facts,
        authorship,
    }
}

fn facts_of(patch: &Patch) -> ChangeFacts {
    let mut repairs: Vec<String> = patch
        .fixes
        .iter()
        .map(|fixes| fixes.commit.clone())
        .collect();
    repairs.extend(patch.reverts.iter().cloned());
    ChangeFacts {
        commit: None,
        is_compiled: true,
        functions: patch.functions().map(str::to_owned).collect(),
        is_beyond_functions: patch.files.iter().any(|file| file.outside > 0),
        repairs,
        speaks_of_performance: !patch.performance.is_empty(),
    }
}

/// Adds a commit to those of a point.
fn join(facts: &mut ChangeFacts, other: &ChangeFacts) {
    facts.functions.extend(other.functions.iter().cloned());
    facts.is_beyond_functions |= other.is_beyond_functions;
    facts.repairs.extend(other.repairs.iter().cloned());
    facts.speaks_of_performance |= other.speaks_of_performance;
}

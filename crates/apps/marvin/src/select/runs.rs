//! Finds stored runs by run ids and kernel names, for `marvin report`, `marvin profile` and the
//! command that `marvin import` prints.

use std::collections::BTreeSet;

use model::{BuildId, Machine, RunId};
use store::{LookupError, RunSummary, SeenKernel, Store, StoreError};

use super::did_you_mean;
use crate::exit::WrongInput;

/// Most names that an error lists.
const SHOWN: usize = 8;

/// Filter on the stored runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunChoice<'a> {
    /// Only runs of this suite.
    pub(crate) suite: Option<&'a str>,
    /// Whether kernels may be of different machines.
    pub(crate) mixed_machines: bool,
}

/// Runs that words name.
#[derive(Debug)]
pub(crate) struct NamedRuns {
    pub(crate) runs: Vec<RunId>,
    /// The same words with full short ids, for the command that repeats the report.
    pub(crate) terms: Vec<String>,
}

/// All stored runs, and the kernel names that users gave.
struct Stored {
    runs: Vec<RunSummary>,
    names: Vec<SeenKernel>,
}

/// Returns the runs in the order of the words. A kernel stands for all its runs of one suite on one
/// machine that all words share; of several such machines Marvin takes the one with the newest run.
///
/// # Errors
/// Errors if a word names no run and no kernel, or if the words share no suite or several.
pub(crate) fn find_runs(
    store: &Store,
    terms: &[String],
    choice: RunChoice<'_>,
) -> anyhow::Result<NamedRuns> {
    let stored = Stored {
        runs: store.runs(usize::MAX)?,
        names: store.kernels()?,
    };
    let mut named = Vec::new();
    let mut again = terms.to_vec();
    let mut kernels: Vec<(&BuildId, &str)> = Vec::new();
    for (word, again) in terms.iter().zip(&mut again) {
        let Some(build) = stored.kernel(store, word)? else {
            let id = find_run(store, word).map_err(|error| {
                if is_id(word) {
                    error
                } else {
                    stored.unknown_kernel_error(word)
                }
            })?;
            *again = id.short();
            named.push(
                stored
                    .runs
                    .iter()
                    .filter(|run| run.id == id)
                    .collect::<Vec<_>>(),
            );
            continue;
        };
        if let Some((_, same)) = kernels.iter().find(|(known, _)| *known == build) {
            let text = format!(
                "`{same}` and `{word}` are the same kernel ({}): name two",
                build.short()
            );
            return Err(WrongInput(text).into());
        }
        kernels.push((build, word));
        named.push(
            stored
                .runs
                .iter()
                .filter(|run| run.build == *build)
                .collect(),
        );
    }
    // Ids are exact; the comparison itself refuses runs that do not fit.
    if !kernels.is_empty() {
        let suite = suite(terms, &named, choice.suite)?;
        named
            .iter_mut()
            .for_each(|runs| runs.retain(|run| run.suite == suite));
        keep_machine(store, &mut named, choice.mixed_machines)?;
        if let ([(_, only)], [_]) = (&*kernels, &*named) {
            return Err(WrongInput(format!(
                "no kernel to compare {only} with: name one after it"
            ))
            .into());
        }
    }
    // Oldest first; of two that began at once, the one that was saved later comes first and counts,
    // as in the history.
    named
        .iter_mut()
        .for_each(|runs| runs.sort_by_key(|run| run.started_unix));
    let runs = named
        .into_iter()
        .flatten()
        .map(|run| run.id.clone())
        .collect();
    Ok(NamedRuns { runs, terms: again })
}

/// Returns the shortest word that finds each build: its version, if no other build has it.
pub(crate) fn shortest_names(store: &Store, builds: &[BuildId]) -> anyhow::Result<Vec<String>> {
    let stored = Stored {
        runs: store.runs(usize::MAX)?,
        names: store.kernels()?,
    };
    Ok(builds
        .iter()
        .map(|build| stored.shortest_word(store, build))
        .collect())
}

impl Stored {
    fn shortest_word(&self, store: &Store, build: &BuildId) -> String {
        let run = self.runs.iter().find(|run| run.build == *build);
        let names = run.map_or_else(Vec::new, |run| {
            vec![run.version.clone(), run.kernel.to_string()]
        });
        names
            .into_iter()
            .find(|word| matches!(self.kernel(store, word), Ok(Some(found)) if found == build))
            .unwrap_or_else(|| build.to_string())
    }

    /// Returns a build if one of the runs measured it.
    fn measured(&self, build: &BuildId) -> Option<&BuildId> {
        let mut known = self.runs.iter().map(|run| &run.build);
        known.find(|known| *known == build)
    }

    /// Finds the build of a word: its kernel name, version, beginning of a version, or build id.
    /// Returns None if no build matches.
    fn kernel(&self, store: &Store, word: &str) -> anyhow::Result<Option<&BuildId>> {
        if word.starts_with("build_") {
            let build = store.find_build(word)?;
            return self
                .measured(&build)
                .map(Some)
                .ok_or_else(|| self.unknown_kernel_error(word));
        }
        // A name such as deb:6.12 moves to newer builds; the store lists the newest first.
        let seen = self
            .names
            .iter()
            .filter(|seen| seen.name == word)
            .find_map(|seen| self.measured(&seen.build));
        if seen.is_some() {
            return Ok(seen);
        }
        let by: [&dyn Fn(&RunSummary) -> bool; 3] = [
            &|run| run.kernel.to_string() == word,
            &|run| run.version == word,
            &|run| {
                run.version
                    .strip_prefix(word)
                    .is_some_and(|rest| rest.starts_with(['.', '-']))
            },
        ];
        for is_meant in by {
            let meant: BTreeSet<&BuildId> = self
                .runs
                .iter()
                .filter(|run| is_meant(run))
                .map(|run| &run.build)
                .collect();
            match meant.len() {
                0 => {}
                1 => return Ok(meant.into_iter().next()),
                _ => return Err(self.ambiguous(word, &meant)),
            }
        }
        Ok(None)
    }

    fn ambiguous(&self, word: &str, meant: &BTreeSet<&BuildId>) -> anyhow::Error {
        let names: Vec<String> = meant
            .iter()
            .take(SHOWN)
            .map(|build| {
                let run = self.runs.iter().find(|run| run.build == **build);
                run.map_or_else(String::new, |run| {
                    format!("{} ({}, {})", build.short(), run.version, run.kernel)
                })
            })
            .collect();
        WrongInput(format!(
            "`{word}` may be several kernels: {}; name one by its id",
            names.join(", ")
        ))
        .into()
    }

    fn unknown_kernel_error(&self, word: &str) -> anyhow::Error {
        if self.runs.is_empty() {
            return WrongInput(format!("no stored run of `{word}`: there are no runs")).into();
        }
        let mut versions: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !versions.contains(&&*run.version) {
                versions.push(&run.version);
            }
        }
        let meant = did_you_mean(versions.iter().copied(), word);
        versions.truncate(SHOWN);
        let text = format!(
            "no stored run of `{word}`{meant}: measured kernels are {}; `marvin runs` lists their runs",
            versions.join(", ")
        );
        WrongInput(text).into()
    }
}

/// Tells whether a word looks like a run id.
fn is_id(word: &str) -> bool {
    word.starts_with("run_") || word.parse::<RunId>().is_ok()
}

/// Returns the suite that all words share.
fn suite(
    terms: &[String],
    named: &[Vec<&RunSummary>],
    wanted: Option<&str>,
) -> anyhow::Result<String> {
    let each: Vec<BTreeSet<String>> = named
        .iter()
        .map(|runs| runs.iter().map(|run| run.suite.clone()).collect())
        .collect();
    let mut common = each
        .iter()
        .skip(1)
        .fold(each.first().cloned().unwrap_or_default(), |all, one| {
            &all & one
        });
    if let Some(wanted) = wanted {
        common.retain(|suite| suite == wanted);
    }
    let mut common = common.into_iter();
    match (common.next(), common.next()) {
        (Some(suite), None) => Ok(suite),
        (Some(first), Some(second)) => {
            let all: Vec<String> = [first, second].into_iter().chain(common).collect();
            let text = format!(
                "these were measured with several suites ({}): choose one with --suite",
                all.join(", ")
            );
            Err(WrongInput(text).into())
        }
        (None, _) => {
            let has: Vec<String> = terms
                .iter()
                .zip(&each)
                .map(|(word, suites)| {
                    let suites: Vec<&str> = suites.iter().map(String::as_str).collect();
                    format!("{word} has {}", suites.join(", "))
                })
                .collect();
            let what = wanted.map_or_else(
                || "no suite in common".to_owned(),
                |suite| format!("no runs of {suite}"),
            );
            Err(WrongInput(format!("{what}: {}", has.join("; "))).into())
        }
    }
}

/// Keeps the runs on one machine, in any guest config: a machine that all words share, if there is
/// one.
fn keep_machine(store: &Store, named: &mut [Vec<&RunSummary>], mixed: bool) -> anyhow::Result<()> {
    let mut machines: Vec<Machine> = Vec::new();
    for run in named.iter().flatten() {
        if !machines.iter().any(|known| known.id == run.machine) {
            machines.push(store.machine(&run.machine)?);
        }
    }
    let is_on = |run: &RunSummary, on: &Machine| {
        machines
            .iter()
            .find(|machine| machine.id == run.machine)
            .is_some_and(|machine| machine.is_kin(on))
    };
    let newest = |runs: &[&RunSummary], fits: &dyn Fn(&Machine) -> bool| {
        let newest = runs
            .iter()
            .filter(|run| machines.iter().any(|m| m.id == run.machine && fits(m)));
        let id = newest
            .max_by_key(|run| run.started_unix)
            .map(|run| &run.machine);
        machines.iter().find(|machine| Some(&machine.id) == id)
    };
    let everywhere = |on: &Machine| {
        named
            .iter()
            .all(|runs| runs.iter().any(|run| is_on(run, on)))
    };
    let all: Vec<&RunSummary> = named.iter().flatten().copied().collect();
    let common = newest(&all, &everywhere).filter(|_| !mixed);
    let chosen: Vec<Option<&Machine>> = named
        .iter()
        .map(|runs| common.or_else(|| newest(runs, &|_| true)))
        .collect();
    for (runs, machine) in named.iter_mut().zip(chosen) {
        runs.retain(|run| machine.is_some_and(|machine| is_on(run, machine)));
    }
    Ok(())
}

/// Finds a run by the beginning of its id.
pub(crate) fn find_run(store: &Store, text: &str) -> anyhow::Result<RunId> {
    store.find_run(text).map_err(|error| match error {
        StoreError::Lookup(LookupError::BadId(why)) => {
            WrongInput(format!("{why}; `marvin runs` lists the runs")).into()
        }
        other => other.into(),
    })
}

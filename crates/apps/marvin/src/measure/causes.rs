//! Names causes of a difference from stored runs: functions of its ledger, and differing settings.

use ::explain::{Setting, WorkloadExplained, differing_settings};
use kernel::config_options;
use model::{Build, Run};
use store::Store;

use super::stored_ledger;

/// Explains a workload on two kernels as far as their stored runs go: its ledger and settings whose
/// functions differ, as sentences. None without stored profiles.
pub(crate) fn explain_stored(
    store: &Store,
    builds: &[Build],
    workload: &str,
) -> anyhow::Result<Vec<String>> {
    let Some((ledger, runs)) = stored_ledger(store, builds, workload)? else {
        return Ok(Vec::new());
    };
    let mut explained = WorkloadExplained::new(&ledger, None, false);
    explained.suspect(&find_differing_settings(builds, &runs).0);
    let hypotheses = explained
        .hypotheses
        .iter()
        .map(|text| format!("{workload}: {text}"));
    Ok(std::iter::once(explained.sentence.clone())
        .chain(hypotheses)
        .collect())
}

/// The same for a page, which has no place for an error.
pub(crate) fn explain_stored_or_none(
    store: &Store,
    builds: &[Build; 2],
    workload: &str,
) -> Vec<String> {
    explain_stored(store, builds, workload).unwrap_or_else(|_| {
        vec![format!(
            "{workload}: the stored profile cannot be read; marvin alerts ALERT --mail prints the reason"
        )]
    })
}

/// Returns the settings in which both kernels differ, and how many other options of the config do.
pub(crate) fn find_differing_settings(
    builds: &[Build],
    runs: &[Vec<Run>],
) -> (Vec<Setting>, usize) {
    let environments = [0, 1].map(|side| {
        runs.get(side)
            .and_then(|runs| runs.first())
            .map_or(&[][..], |run| &run.environment)
    });
    let options = [0, 1].map(|side| {
        let file = builds.get(side).and_then(|build| build.config.as_ref());
        file.map(|file| config_options(&std::fs::read_to_string(&file.path).unwrap_or_default()))
            .unwrap_or_default()
    });
    differing_settings(environments, options)
}

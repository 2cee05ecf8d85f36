//! Which instructions of functions a workload executes: kept by measurements that are asked to, and
//! found out by a repetition for runs that did not.

use std::collections::BTreeSet;

use ingest::{offsets_from_text, offsets_to_text};
use model::{Availability, Offsets, Profile, Run, RunId};
use store::Artifact;

use crate::execute::execute;
use crate::job::{BootedBuild, Measured, counts};
use crate::lab::check_same;
use crate::symbols::Named;
use crate::{Event, Lab, LabError, Measurement, Plan};

/// Returns the name of the artifact of a workload.
fn artifact(workload: &str) -> String {
    format!("{workload}.offsets")
}

/// The functions whose executed instructions a plan keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// By symbol, with what compilers append.
    functions: BTreeSet<String>,
    /// The replicate of which they are kept.
    replicate: u64,
}

impl Watched {
    /// Returns the executed instructions of a measured workload that enters a watched function, as
    /// an artifact.
    pub(crate) fn keep(
        &self,
        on: BootedBuild<'_>,
        workload: &str,
        measured: &Measured,
        named: Option<&Named>,
    ) -> Option<(String, Vec<u8>)> {
        if self.functions.is_empty() || on.replicate != self.replicate {
            return None;
        }
        let profile = measured.profile.as_ref()?.as_ref().ok()?;
        let profile = ingest::profile_from_text(profile)?;
        if !enters(&profile, &self.functions) {
            return None;
        }
        let offsets = ingest::offsets(&measured.counts, &named?.symbols, profile.operations);
        Some((artifact(workload), offsets_to_text(&offsets).into_bytes()))
    }
}

/// Returns whether a profile has a function of these symbols.
fn enters(profile: &Profile, functions: &BTreeSet<String>) -> bool {
    let mut symbols = profile.lines.iter().map(|line| plain(&line.symbol));
    symbols.any(|symbol| functions.contains(symbol))
}

/// Returns a symbol without the module or the file behind it.
fn plain(symbol: &str) -> &str {
    symbol.split(' ').next().unwrap_or(symbol)
}

impl Lab {
    /// Executes a plan, and keeps which instructions of these functions (by symbol) the workloads
    /// execute with the plan's first replicate.
    ///
    /// # Errors
    /// As [`Lab::execute`].
    pub fn execute_watching(
        &self,
        plan: &Plan<'_>,
        functions: &BTreeSet<String>,
        notify: &(dyn Fn(Event) + Sync),
    ) -> Result<Vec<Vec<Run>>, LabError> {
        let mut context = self.context(notify);
        context.watched = Watched {
            functions: functions.clone(),
            replicate: plan.replicates.first().copied().unwrap_or_default(),
        };
        execute(plan, &context)
    }

    /// Returns the executed instructions of a workload in a run that has its profile; `None` if it
    /// enters none of these functions. A run without them is repeated once, and keeps them then.
    ///
    /// # Errors
    /// If the lab fails, or what is stored is damaged.
    pub fn offsets(
        &self,
        run: &RunId,
        measurement: Measurement<'_>,
        functions: &BTreeSet<String>,
    ) -> Result<Option<Availability<Offsets>>, LabError> {
        let workload = measurement.workload;
        let stored = self.profile(run, &workload.name)?;
        let Some(profile) = stored.filter(|profile| enters(profile, functions)) else {
            return Ok(None);
        };
        let name = artifact(&workload.name);
        if self.store.lock().artifact_names(run)?.contains(&name) {
            let text = self.artifact(run, &name)?;
            let read = offsets_from_text(&String::from_utf8_lossy(&text));
            return match read {
                Some(offsets) => Ok(Some(Availability::Available(offsets))),
                None => Err(LabError::BadProfile {
                    run: run.clone(),
                    name,
                }),
            };
        }
        let counted = self.again(
            measurement,
            |can| can.counts,
            |on, named| counts(on, workload, named),
        )?;
        let found = counted.and_then(|(repeated, offsets)| {
            check_same(&repeated, &profile)?;
            Ok(offsets)
        });
        if let Availability::Available(offsets) = &found {
            let bytes = offsets_to_text(offsets).into_bytes();
            let bytes = &bytes;
            self.store
                .lock()
                .add_artifact(run, Artifact { name: &name, bytes })?;
        }
        Ok(Some(found))
    }
}

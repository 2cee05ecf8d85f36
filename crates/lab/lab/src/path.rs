//! Executed paths: a run of its own that follows the kernel instructions of one iteration in their
//! order, and where these lie in the source.

use std::collections::BTreeMap;

use machine::{MachineError, Observe};
use model::{Availability, Build, ExecutedPath, Profile, SourceLocation, Workload};

use crate::job::BootedBuild;
use crate::lab::check_same;
use crate::symbols::{ANCHORS, Named};
use crate::{Lab, LabError, Measurement};

/// What a run that follows an iteration has.
struct Followed {
    /// The same profile as that of the measurement.
    profile: Profile,
    path: ExecutedPath,
}

/// Runs one workload and follows one iteration; the guest repeats what it did during the
/// measurement.
fn follow(
    on: BootedBuild<'_>,
    workload: &Workload,
    named: &Named,
    iteration: u64,
) -> Result<Availability<Followed>, MachineError> {
    let observe = Observe::Path(&named.marks, iteration);
    let end = on.booted.run(&on.job_of(workload), observe)?;
    if let Err(failure) = end.stream {
        return Ok(Availability::Unavailable(failure.reason.to_string()));
    }
    let counts = end.counts.unwrap_or_default();
    let profile = ingest::profile(&counts, &named.symbols, workload.operations);
    Ok(profile
        .map_err(|error| error.to_string())
        .and_then(|profile| {
            let path = ingest::executed_path(&end.path.unwrap_or_default(), &named.symbols);
            path.map(|path| Followed { profile, path })
                .map_err(|error| error.to_string())
        })
        .into())
}

impl Lab {
    /// Runs a workload again and follows the kernel instructions of the iteration of this number,
    /// from 0; stores nothing. Refuses a profile that differs from the stored one.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn follow_path(
        &self,
        measurement: Measurement<'_>,
        stored: &Profile,
        iteration: u64,
    ) -> Result<Availability<ExecutedPath>, LabError> {
        let followed = self.again(
            measurement,
            |can| can.calls,
            |on, named| follow(on, measurement.workload, named, iteration),
        )?;
        Ok(followed.and_then(|Followed { profile, path }| {
            check_same(&profile, stored)?;
            Ok(path)
        }))
    }

    /// Returns the source lines of instructions by their addresses; empty without debug
    /// information.
    #[must_use]
    pub fn source_lines(&self, build: &Build, addresses: &[u64]) -> BTreeMap<u64, SourceLocation> {
        let Some(symbols) = self.stored_symbols(build) else {
            return BTreeMap::new();
        };
        // Names of files are relative to the folder that all of them share.
        let anchors = ANCHORS.iter().filter_map(|name| symbols.address(name));
        let all: Vec<u64> = addresses.iter().copied().chain(anchors).collect();
        let places = kernel::source_places(&build.boot_file().path, &all);
        let known = addresses.iter().copied().zip(places);
        known
            .filter_map(|(address, place)| Some((address, place?)))
            .collect()
    }
}

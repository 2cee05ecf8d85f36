//! Sampled profiles: the job that repeats a workload after its measurement and samples it, and what
//! is stored of it.

use machine::{MachineError, Observe};
use model::{Availability, Outcome, RunId, SampledProfile, Workload, WorkloadResult};
use store::Store;
use wire::{Stream, Task};

use crate::job::BootedBuild;
use crate::symbols::Named;
use crate::{Lab, LabError};

/// Nanoseconds between two samples of a processor: 4 kHz, and a prime, so that nothing regular is
/// always or never hit.
const PERIOD_NS: u64 = 250_007;
/// How long the sampled iterations shall take, as the measurement foretells.
const SAMPLED_NS: f64 = 3e9;
const ITERATIONS_MAX: u32 = 2000;

/// Returns the name of the artifact with a workload's sampled profile.
pub(crate) fn sampled_artifact(job: &str) -> String {
    format!("{job}.samples")
}

/// Runs a measured workload again and samples it.
pub(crate) fn sample(
    on: BootedBuild<'_>,
    workload: &Workload,
    measured: &WorkloadResult,
) -> Result<Availability<SampledProfile>, MachineError> {
    let mut job = on.job_of(workload);
    let repeats = iterations(workload, measured);
    if let Task::Workload {
        sampling,
        iterations,
        ..
    } = &mut job.task
    {
        (*sampling, *iterations) = (Some(PERIOD_NS), repeats);
    }
    let stream = match on.booted.run(&job, Observe::Nothing)?.stream {
        Ok(stream) => stream,
        Err(failure) => return Ok(Availability::Unavailable(failure.reason.to_string())),
    };
    let why = match ingest::outcome(&stream, workload.operations, repeats) {
        Ok((Outcome::Completed, _)) => {
            let operations = workload.operations * u64::from(repeats);
            return Ok(profile(&stream, on, operations).into());
        }
        Ok((Outcome::Unsupported(why), _)) => why,
        Ok((Outcome::Failed(failure), _)) => failure.reason.to_string(),
        Err(error) => error.to_string(),
    };
    Ok(Availability::Unavailable(why))
}

/// Returns how many iterations to sample: as many as declared, or more where they are short.
fn iterations(workload: &Workload, measured: &WorkloadResult) -> u32 {
    let ns = stats::median(&measured.samples).unwrap_or_default() * workload.operations as f64;
    let fitting = (SAMPLED_NS / ns.max(1.0)).ceil() as u32;
    fitting.min(ITERATIONS_MAX).max(workload.iterations)
}

fn profile(
    stream: &Stream,
    on: BootedBuild<'_>,
    operations: u64,
) -> Result<SampledProfile, String> {
    let file = |name: &str| ingest::sent_file(stream, name).unwrap_or_default();
    let named = Named::parse(&file("symbols"), on.build)?;
    ingest::sampled(&file("samples"), &named.symbols, operations).map_err(|error| error.to_string())
}

impl Lab {
    /// Returns the sampled profile of a workload in a run, if it was sampled.
    ///
    /// # Errors
    /// If the stored profile is damaged, or of another version.
    pub fn sampled(
        &self,
        run: &RunId,
        workload: &Workload,
    ) -> Result<Option<SampledProfile>, LabError> {
        sampled_profile(&self.store.lock(), run, workload)
    }
}

/// Returns the sampled profile of a workload in a stored run, if it was sampled.
///
/// # Errors
/// If the stored profile is damaged, or of another version.
pub fn sampled_profile(
    store: &Store,
    run: &RunId,
    workload: &Workload,
) -> Result<Option<SampledProfile>, LabError> {
    let name = sampled_artifact(workload.job_name());
    if !store.artifact_names(run)?.contains(&name) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&store.artifact(run, &name)?).into_owned();
    ingest::sampled_from_text(&text)
        .map(Some)
        .ok_or_else(|| LabError::BadProfile {
            run: run.clone(),
            name,
        })
}

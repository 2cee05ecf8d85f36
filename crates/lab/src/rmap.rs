//! The experiment on reverse mappings: one cell of its grid on a build. Nothing is stored.

use machine::{Boot, Trace};
use model::{Build, FailureReason, RmapCell, RmapOutcome};
use wire::{Clock, Job, Task};

use crate::job::with_retries;
use crate::perturb::perturbation;
use crate::unit::job_id;
use crate::{Lab, LabError};

impl Lab {
    /// Does one cell of the experiment on reverse mappings, with a seed.
    ///
    /// # Errors
    /// When the lab fails. What a kernel fails at is a result.
    pub fn rmap(&self, build: &Build, seed: u64, cell: RmapCell) -> Result<RmapOutcome, LabError> {
        let start = match self.exact().boot(build, seed)? {
            Boot::Ready(start) => start,
            Boot::Failed(failure, _) => return Ok(RmapOutcome::Failed(failure.reason.to_string())),
        };
        let RmapCell { case, processes, mappings } = cell;
        let name = format!("rmap {case} {processes} {mappings}");
        let job = Job {
            id: job_id((&build.id, &self.machine().id, seed), &name),
            clock: Clock::Tsc,
            perturbation: perturbation(seed),
            task: Task::Rmap { case: case.word().to_owned(), processes, mappings },
        };
        let end = with_retries(&|_| {}, || self.exact().run(&start, &job, Trace::Nothing))?;
        let failed = |reason: FailureReason| RmapOutcome::Failed(reason.to_string());
        Ok(match end.stream {
            Err(failure) => failed(failure.reason),
            Ok(stream) => match (ingest::rmap(&stream), machine::reason_in(&end.console)) {
                // The agent only knows that somebody was killed; the console may know why.
                (RmapOutcome::Failed(_), Some(reason)) => failed(reason),
                (outcome, _) => outcome,
            },
        })
    }
}

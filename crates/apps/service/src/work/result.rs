//! The result of a job, in the line that its process prints and the worker reads.

use model::{Outcome, Run, Stage};

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobResult {
    Done,
    /// Who uses data directory or machine, or what the host lacks, so that the job cannot run now.
    Busy(String),
    /// Why the kernel cannot be measured.
    NoKernel(String),
    /// Why the machine failed.
    MachineFailed(String),
    /// Workloads that failed, and why.
    WorkloadsFailed(String),
}

impl JobResult {
    /// Sums up the runs of a kernel: one that does not boot cannot be measured.
    #[must_use]
    pub fn of_runs(version: &str, runs: &[Run]) -> Self {
        let failures = runs
            .iter()
            .flat_map(|run| &run.results)
            .filter_map(|result| match &result.outcome {
                Outcome::Failed(failure) => Some((&result.workload, failure)),
                _ => None,
            });
        let mut failed = Vec::new();
        for (workload, failure) in failures {
            if matches!(failure.stage, Stage::Boot | Stage::Settle) {
                let why = format!(
                    "{version} does not boot: {} ({} stage)",
                    failure.reason, failure.stage
                );
                return Self::NoKernel(why);
            }
            failed.push(format!("{workload}: {}", failure.reason));
        }
        failed.sort();
        failed.dedup();
        if failed.is_empty() {
            Self::Done
        } else {
            Self::WorkloadsFailed(format!("failed: {}", failed.join("; ")))
        }
    }

    #[must_use]
    pub fn line(&self) -> String {
        let (word, why) = match self {
            Self::Done => ("done", ""),
            Self::Busy(who) => ("busy", &**who),
            Self::NoKernel(why) => ("kernel", &**why),
            Self::MachineFailed(why) => ("machine", &**why),
            Self::WorkloadsFailed(why) => ("workloads", &**why),
        };
        format!(
            "{}\n",
            format!("{word} {why}").trim_end().replace('\n', " ")
        )
    }

    /// Reads its line; `None` for other texts.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (word, why) = line.split_once(' ').unwrap_or((line, ""));
        let why = super::short(why);
        Some(match word {
            "done" => Self::Done,
            "busy" => Self::Busy(why),
            "kernel" => Self::NoKernel(why),
            "machine" => Self::MachineFailed(why),
            "workloads" => Self::WorkloadsFailed(why),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::JobResult;

    #[test]
    fn job_result_survives_its_line() {
        let why = || "testbox is lost".to_owned();
        let failures = [
            JobResult::Busy,
            JobResult::NoKernel,
            JobResult::MachineFailed,
            JobResult::WorkloadsFailed,
        ];
        for result in failures
            .map(|failure| failure(why()))
            .into_iter()
            .chain([JobResult::Done])
        {
            assert_eq!(JobResult::read(result.line().trim()), Some(result));
        }
        assert_eq!(JobResult::Busy("a\nb".into()).line(), "busy a b\n");
        assert_eq!(JobResult::read("fine"), None);
    }
}

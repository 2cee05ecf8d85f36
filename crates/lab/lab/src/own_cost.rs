//! What the lab itself takes of a processor while it measures: the agent beside the workload's
//! processes, and the thread of Marvin that waits for it.

use std::fs;
use std::ops::AddAssign;

use machine::{JobEnd, MachineError, Observe};
use wire::{Job, OWN_COST};

use crate::job::BootedBuild;

const NS_PER_S: f64 = 1e9;

/// The processor time of the lab in jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OwnCost {
    own_ns: u64,
    /// How long the jobs took (ns).
    jobs_ns: u64,
}

impl AddAssign for OwnCost {
    fn add_assign(&mut self, other: Self) {
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.jobs_ns = self.jobs_ns.saturating_add(other.jobs_ns);
    }
}

impl OwnCost {
    /// Reads what the agent says; `None` if it says nothing, as on the exact machine.
    fn parse(answer: &str) -> Option<Self> {
        let (own, jobs) = answer.trim().split_once(' ')?;
        Some(Self {
            own_ns: own.parse().ok()?,
            jobs_ns: jobs.parse().ok().filter(|&jobs_ns| jobs_ns > 0)?,
        })
    }

    /// Describes it for people; `None` without jobs.
    pub(crate) fn describe(&self) -> Option<String> {
        if self.jobs_ns == 0 {
            return None;
        }
        let percent = self.own_ns as f64 / self.jobs_ns as f64 * 100.0;
        Some(format!(
            "{percent:.3}% of a processor in {:.1} s of jobs",
            self.jobs_ns as f64 / NS_PER_S
        ))
    }
}

/// Executes a job of a workload, and says what the lab took meanwhile, if the agent says its part.
pub(crate) fn run(
    on: BootedBuild<'_>,
    job: &Job,
    observe: Observe<'_>,
) -> Result<(JobEnd, Option<OwnCost>), MachineError> {
    let before = thread_ns();
    let end = on.booted.run(job, observe)?;
    let waiting = OwnCost {
        own_ns: thread_ns().saturating_sub(before),
        jobs_ns: 0,
    };
    let answer = end
        .stream
        .as_ref()
        .ok()
        .and_then(|stream| ingest::sent_file(stream, OWN_COST));
    let cost = answer.and_then(|answer| OwnCost::parse(&answer));
    let cost = cost.map(|mut cost| {
        cost += waiting;
        cost
    });
    Ok((end, cost))
}

/// Returns how long this thread has run (ns; Documentation/scheduler/sched-stats.rst); 0 on kernels
/// that do not say.
fn thread_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::OwnCost;

    #[test]
    fn cost_is_a_share_of_the_jobs() {
        let mut cost = OwnCost::default();
        assert_eq!(cost.describe(), None);
        cost += OwnCost::parse("1000000 2000000000\n").unwrap();
        cost += OwnCost::parse("0 500000000").unwrap();
        insta::assert_snapshot!(cost.describe().unwrap(), @"0.040% of a processor in 2.5 s of jobs");
        for wrong in ["", "1", "x 1", "1 x", "1 0", "-1 2"] {
            assert_eq!(OwnCost::parse(wrong), None, "{wrong}");
        }
    }
}

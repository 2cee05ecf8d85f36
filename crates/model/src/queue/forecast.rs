//! When queued jobs will begin and end, by what equal work on other kernels took. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::mem::{Discriminant, discriminant};

use super::order::place;
use super::{JobState, QueuedJob, Work};
use crate::KernelName;

/// When a job will begin and end, as far as earlier jobs tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forecast {
    /// When it will begin, if a worker is at it from now on; `None` if that is not known, and of one that has begun.
    pub begins_unix: Option<i64>,
    /// When it will end.
    pub ends_unix: Option<i64>,
}

/// What jobs that take about equally long have in common: all but the kernel itself.
type Alike<'a> = (Discriminant<KernelName>, [&'a str; 3], &'a [String], u64);

fn alike(work: &Work) -> Alike<'_> {
    let Work { kernel, tree, config, suite, workloads, seeds } = work;
    (discriminant(kernel), [tree, config, suite], workloads, *seeds)
}

/// Says of each job that is not over when it will begin and end. `jobs` are all, also those that are over: what these took is
/// what the others are expected to take. Each worker that has a job now goes on; where none has, there is one from now on.
#[must_use]
pub fn forecast(jobs: &[QueuedJob], now_unix: i64) -> HashMap<u64, Forecast> {
    let took = took(jobs);
    let expected = |job: &QueuedJob| took.get(&alike(&job.new.work)).copied();
    let mut all = HashMap::new();
    let mut workers = BinaryHeap::new();
    let (mut ready, mut later) = (BinaryHeap::new(), BinaryHeap::new());
    let mut is_worked = false;
    for (at, job) in jobs.iter().enumerate() {
        match job.state {
            JobState::Running { .. } => {
                is_worked = true;
                let begun = job.started_unix.unwrap_or(now_unix);
                let ends_unix = expected(job).map(|took| begun.saturating_add_unsigned(took).max(now_unix));
                workers.extend(ends_unix.map(Reverse));
                all.insert(job.number, Forecast { begins_unix: None, ends_unix });
            }
            JobState::Waiting { from_unix } => later.push(Reverse((from_unix, place(job), at))),
            _ => {}
        }
    }
    if !is_worked {
        workers.push(Reverse(now_unix));
    }
    while let Some(Reverse(mut free)) = workers.pop() {
        loop {
            match later.peek() {
                Some(Reverse((from, ..))) if *from <= free => {}
                Some(Reverse((from, ..))) if ready.is_empty() => free = *from,
                _ => break,
            }
            ready.extend(later.pop().map(|Reverse((_, place, at))| Reverse((place, at))));
        }
        let Some(job) = ready.pop().and_then(|Reverse((_, at))| jobs.get(at)) else { break };
        let ends_unix = expected(job).map(|took| free.saturating_add_unsigned(took));
        workers.extend(ends_unix.map(Reverse));
        all.insert(job.number, Forecast { begins_unix: Some(free), ends_unix });
    }
    all
}

/// Returns the median of what jobs took, in seconds, that were done at the first try and whose kernels bore it: others were
/// shorter than what they asked for.
fn took(jobs: &[QueuedJob]) -> HashMap<Alike<'_>, u64> {
    let mut all: HashMap<Alike<'_>, Vec<u64>> = HashMap::new();
    for job in jobs.iter().filter(|job| job.state == JobState::Done && job.attempts == 1 && job.reason.is_empty()) {
        if let (Some(begun), Some(ended)) = (job.started_unix, job.ended_unix) {
            all.entry(alike(&job.new.work)).or_default().push(u64::try_from(ended.saturating_sub(begun)).unwrap_or(0));
        }
    }
    let median = |mut seconds: Vec<u64>| {
        seconds.sort_unstable();
        seconds[seconds.len() / 2]
    };
    all.into_iter().map(|(alike, seconds)| (alike, median(seconds))).collect()
}

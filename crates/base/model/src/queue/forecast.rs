//! The expected times of queued jobs, from the durations of equal work on other kernels. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::mem::{Discriminant, discriminant};

use super::order::QueuePosition;
use super::{JobState, QueuedJob, Work};
use crate::{KernelName, UnixTime};

/// Fewest equal jobs, and the number of the newest that are looked at.
const JOBS_MIN: usize = 3;
const NEWEST: usize = 10;
/// Largest ratio of the longest and the shortest of them.
const RATIO_MAX: u64 = 2;

/// The expected times of a job, as far as earlier jobs allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forecast {
    /// When it will begin if a worker runs from now on; `None` if unknown or already begun.
    pub begins_unix: Option<UnixTime>,
    /// When it will end.
    pub ends_unix: Option<UnixTime>,
}

/// The work of jobs that take equally long: everything but the kernel, of which only the kind of
/// name matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct EqualWork<'a> {
    kernel: Discriminant<KernelName>,
    tree: &'a str,
    config: &'a str,
    suite: &'a str,
    machine: &'a str,
    workloads: &'a [String],
    seeds: u64,
}

impl<'a> EqualWork<'a> {
    fn new(work: &'a Work) -> Self {
        Self {
            kernel: discriminant(&work.kernel),
            tree: &work.tree,
            config: &work.config,
            suite: &work.suite,
            machine: &work.machine,
            workloads: &work.workloads,
            seeds: work.seeds,
        }
    }
}

/// Forecasts each unfinished job. `jobs` are all jobs; the finished ones give the expected
/// durations. Workers that have a job go on; for a machine without one, the forecast assumes a
/// worker from now on.
#[must_use]
pub fn forecast(jobs: &[QueuedJob], now_unix: UnixTime) -> HashMap<u64, Forecast> {
    let durations = steady_durations(jobs);
    let mut machines: HashMap<&str, Vec<&QueuedJob>> = HashMap::new();
    for job in jobs {
        machines.entry(&job.new.work.machine).or_default().push(job);
    }
    machines
        .into_values()
        .flat_map(|jobs| forecast_machine(&jobs, &durations, now_unix))
        .collect()
}

fn forecast_machine(
    jobs: &[&QueuedJob],
    durations: &HashMap<EqualWork<'_>, u64>,
    now_unix: UnixTime,
) -> HashMap<u64, Forecast> {
    let expected = |job: &QueuedJob| durations.get(&EqualWork::new(&job.new.work)).copied();
    let mut all = HashMap::new();
    let mut workers = BinaryHeap::new();
    let mut ready = BinaryHeap::new();
    let mut later = BinaryHeap::new();
    let mut is_worked = false;
    for (at, job) in jobs.iter().enumerate() {
        match job.state {
            JobState::Running { .. } => {
                is_worked = true;
                let begun = job.started_unix.unwrap_or(now_unix);
                let ends_unix = expected(job).map(|took| begun.plus_seconds(took).max(now_unix));
                workers.extend(ends_unix.map(Reverse));
                all.insert(
                    job.number,
                    Forecast {
                        begins_unix: None,
                        ends_unix,
                    },
                );
            }
            JobState::Waiting { from_unix } => {
                later.push(Reverse((from_unix, QueuePosition::of_job(job), at)));
            }
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
            ready.extend(
                later
                    .pop()
                    .map(|Reverse((_, position, at))| Reverse((position, at))),
            );
        }
        let Some(job) = ready.pop().and_then(|Reverse((_, at))| jobs.get(at)) else {
            break;
        };
        let ends_unix = expected(job).map(|took| free.plus_seconds(took));
        workers.extend(ends_unix.map(Reverse));
        all.insert(
            job.number,
            Forecast {
                begins_unix: Some(free),
                ends_unix,
            },
        );
    }
    all
}

/// Returns the duration, in seconds, of work that took about as long each time: the median of the
/// newest jobs that succeeded at the first attempt without a kernel failure, as others did less
/// work. A time that is off by more than a factor of two is worse than none, so there is one only
/// after several that agree within it.
fn steady_durations(jobs: &[QueuedJob]) -> HashMap<EqualWork<'_>, u64> {
    let mut all: HashMap<EqualWork<'_>, Vec<(UnixTime, u64)>> = HashMap::new();
    for job in jobs
        .iter()
        .filter(|job| job.state == JobState::Done && job.attempts == 1 && job.reason.is_empty())
    {
        if let (Some(begun), Some(ended)) = (job.started_unix, job.ended_unix) {
            let took_s = ended.seconds_since(begun).unwrap_or(0);
            let of_work = all.entry(EqualWork::new(&job.new.work)).or_default();
            of_work.push((ended, took_s));
        }
    }
    let mut steady = HashMap::new();
    for (work, mut ended) in all {
        ended.sort_unstable();
        let newest = ended.iter().rev().take(NEWEST);
        let mut seconds: Vec<u64> = newest.map(|(_, took_s)| *took_s).collect();
        seconds.sort_unstable();
        if let [least, .., most] = seconds[..]
            && seconds.len() >= JOBS_MIN
            && most <= RATIO_MAX * least
        {
            steady.insert(work, seconds[seconds.len() / 2]);
        }
    }
    steady
}

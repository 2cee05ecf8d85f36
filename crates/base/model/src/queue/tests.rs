//! The queue under random sequences of events.

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::order::QueuePosition;
use super::{
    Ending, Forecast, JobState, LEASE_S, NewJob, QueuedJob, USUAL_MACHINE, Why, Work, forecast,
    retry_after_s, why,
};
use crate::UnixTime;

/// A job that differs by this number from others.
pub(super) fn new(n: u64) -> NewJob {
    let work = Work {
        kernel: "deb:6.12".parse().unwrap(),
        tree: String::new(),
        config: "micro".into(),
        suite: "micro".into(),
        workloads: vec!["getppid".into()],
        seeds: n,
        machine: USUAL_MACHINE.to_owned(),
    };
    NewJob {
        work,
        plan: String::new(),
        priority: 0,
        rank: 0,
        attempts_max: 3,
        deadline_s: 100,
    }
}

fn queue(n: u64) -> Vec<QueuedJob> {
    (1..=n)
        .map(|number| QueuedJob::queued(number, new(number), UnixTime::new(0)))
        .collect()
}

/// The job that a worker takes next.
fn next_job(jobs: &[QueuedJob], now_unix: UnixTime) -> Option<&QueuedJob> {
    jobs.iter()
        .filter(|job| job.is_free(now_unix))
        .min_by_key(|job| QueuePosition::of_job(job))
}

/// Jobs with equal work on different kernels; the first one, and others behind the last one, took
/// this many seconds.
fn alike(n: u64, took: [i64; 3]) -> Vec<QueuedJob> {
    let mut jobs = queue(n);
    for job in &mut jobs {
        job.new.work.seeds = 1;
        job.new.work.kernel = format!("deb:6.{}", job.number).parse().unwrap();
    }
    let waiting = jobs[0].clone();
    for (number, took) in (n + 1..).zip(&took[1..]) {
        let mut job = waiting.clone();
        job.number = number;
        end(&mut job, *took);
        jobs.push(job);
    }
    end(&mut jobs[0], took[0]);
    jobs
}

fn end(job: &mut QueuedJob, took: i64) {
    job.claim("a", UnixTime::new(0)).unwrap();
    job.end(1, Ending::Done(String::new()), UnixTime::new(took))
        .unwrap();
}

#[test]
fn job_estimate_sums_times_of_equal_jobs() {
    let mut jobs = alike(5, [60, 50, 90]);
    let at = |begins: i64, ends: i64| Forecast {
        begins_unix: Some(UnixTime::new(begins)),
        ends_unix: Some(UnixTime::new(ends)),
    };
    let forecasts = |jobs: &[QueuedJob]| {
        let all = forecast(jobs, UnixTime::new(1_000));
        [2, 3, 4, 5].map(|number| all.get(&number).copied().unwrap())
    };
    assert_eq!(
        forecasts(&jobs),
        [
            at(1_000, 1_060),
            at(1_060, 1_120),
            at(1_120, 1_180),
            at(1_180, 1_240)
        ]
    );
    // A running job does not begin again, an overdue one ends now, and one that waits for a time
    // lets others pass.
    jobs[1].claim("a", UnixTime::new(900)).unwrap();
    jobs[2].state = JobState::Waiting {
        from_unix: UnixTime::new(1_500),
    };
    jobs[4].new.priority = 1;
    let running = Forecast {
        begins_unix: None,
        ends_unix: Some(UnixTime::new(1_000)),
    };
    assert_eq!(
        forecasts(&jobs),
        [
            running,
            at(1_500, 1_560),
            at(1_060, 1_120),
            at(1_000, 1_060)
        ]
    );
    // A job behind one of unknown length has no forecast.
    jobs[4].new.work.suite = "mm".into();
    let open = Forecast {
        begins_unix: Some(UnixTime::new(1_000)),
        ends_unix: None,
    };
    let all = forecast(&jobs, UnixTime::new(1_000));
    assert_eq!(
        (all.get(&5), all.get(&4), all.get(&3)),
        (Some(&open), None, None)
    );
    assert!(!forecast(&queue(3), UnixTime::new(0)).contains_key(&2));
}

#[test]
fn scattered_retried_and_failed_jobs_give_no_estimate() {
    let steady = alike(3, [60, 50, 90]);
    assert_ne!(forecast(&steady, UnixTime::new(0))[&2].ends_unix, None);
    let scattered = alike(3, [60, 50, 101]);
    assert_eq!(forecast(&scattered, UnixTime::new(0))[&2].ends_unix, None);
    let mut jobs = alike(3, [60, 50, 90]);
    jobs[0].attempts = 2;
    assert_eq!(forecast(&jobs, UnixTime::new(0))[&2].ends_unix, None);
    let mut jobs = alike(3, [60, 50, 90]);
    jobs[0].reason = "does not boot".into();
    assert_eq!(forecast(&jobs, UnixTime::new(0))[&2].ends_unix, None);
}

/// An event in a queue of four jobs and two workers.
#[derive(Debug, Clone)]
enum Happens {
    Time(u32),
    Renew(usize),
    Claim(usize),
    End(usize, Ending),
    Dies(usize),
    Cancel(usize),
    Again(usize),
    Move(usize, i8),
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Done(String::new())),
        Just(Ending::Wrong("wrong".into())),
        Just(Ending::Lab("no network".into())),
        Just(Ending::Overran),
        Just(Ending::Busy("ben has it".into())),
    ]
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (1..500_u32).prop_map(Happens::Time),
        (0..2_usize).prop_map(Happens::Claim),
        (0..2_usize).prop_map(Happens::Renew),
        (0..2_usize, ending()).prop_map(|(worker, ending)| Happens::End(worker, ending)),
        (0..2_usize).prop_map(Happens::Dies),
        (0..4_usize).prop_map(Happens::Cancel),
        (0..4_usize).prop_map(Happens::Again),
        (0..4_usize, any::<i8>()).prop_map(|(job, priority)| Happens::Move(job, priority)),
    ]
}

/// What a worker believes that it holds: job and fence.
type Held = [Option<(u64, u64)>; 2];

/// Requeues jobs without a holder.
fn reap(jobs: &mut [QueuedJob], now: UnixTime) {
    for job in jobs.iter_mut().filter(|job| job.is_stale(now)) {
        assert!(job.take_back(now));
    }
}

fn play(jobs: &mut [QueuedJob], held: &mut Held, now: &mut UnixTime, what: &Happens) {
    let find = |number: u64| usize::try_from(number - 1).unwrap();
    match what {
        Happens::Time(seconds) => *now = now.plus_seconds(u64::from(*seconds)),
        Happens::Claim(worker) if held[*worker].is_none() => {
            reap(jobs, *now);
            if let Some(number) = next_job(jobs, *now).map(|job| job.number) {
                let job = &mut jobs[find(number)];
                if job.claim(&worker.to_string(), *now).is_ok() {
                    held[*worker] = Some((number, job.fence));
                }
            }
        }
        Happens::End(worker, ending) => {
            if let Some((number, fence)) = held[*worker].take() {
                drop(jobs[find(number)].end(fence, ending.clone(), *now));
            }
        }
        Happens::Renew(worker) => {
            if let Some((number, fence)) = held[*worker] {
                drop(jobs[find(number)].renew(fence, *now));
            }
        }
        Happens::Dies(worker) => held[*worker] = None,
        Happens::Claim(_) => {}
        Happens::Cancel(job) => drop(jobs[*job].cancel(*now)),
        Happens::Again(job) => drop(jobs[*job].again(new(*job as u64 + 1), *now)),
        Happens::Move(job, priority) => drop(jobs[*job].reprioritise(i64::from(*priority))),
    }
}

proptest! {
    #[test]
    fn no_job_is_lost_or_held_twice(story in proptest::collection::vec(happens(), 0..200)) {
        let mut jobs = queue(4);
        let mut held: Held = [None; 2];
        let mut now = UnixTime::default();
        for what in &story {
            play(&mut jobs, &mut held, &mut now, what);
            for job in &jobs {
                prop_assert!(job.attempts <= job.new.attempts_max, "{job:?}");
                prop_assert_eq!(job.state.is_over(), job.ended_unix.is_some());
                // The worker with the job's fence is its only holder.
                let holders = held
                    .iter()
                    .flatten()
                    .filter(|holds| **holds == (job.number, job.fence))
                    .count();
                prop_assert!(holders <= 1);
                if holders == 1 {
                    let running = matches!(job.state, JobState::Running { .. });
                    prop_assert!(running, "{job:?}");
                }
            }
        }
        // After any events, one undisturbed worker completes all jobs.
        for _ in 0..20 {
            now = now.plus_seconds(100_000);
            reap(&mut jobs, now);
            let Some(number) = next_job(&jobs, now).map(|job| job.number) else {
                continue;
            };
            let job = &mut jobs[usize::try_from(number - 1).unwrap()];
            job.claim("last", now).unwrap();
            let fence = job.fence;
            job.end(fence, Ending::Done(String::new()), now).unwrap();
        }
        prop_assert!(jobs.iter().all(|job| job.state.is_over()), "{jobs:?}");
    }

    #[test]
    fn each_waiting_job_says_how_many_come_first(
        priorities in proptest::collection::vec(any::<i64>(), 1..20),
    ) {
        let mut jobs = queue(priorities.len() as u64);
        for (job, priority) in jobs.iter_mut().zip(&priorities) {
            job.reprioritise(*priority).unwrap();
        }
        let mut places: Vec<usize> = jobs
            .iter()
            .map(|job| match why(job, &jobs, UnixTime::new(0)) {
                Why::Next => 0,
                Why::Behind {
                    waiting,
                    running: 0,
                } => waiting,
                other => panic!("{other:?}"),
            })
            .collect();
        places.sort_unstable();
        prop_assert_eq!(places, (0..jobs.len()).collect::<Vec<_>>());
    }
}

#[test]
fn late_worker_is_refused() {
    let mut job = queue(1).remove(0);
    job.claim("a", UnixTime::new(0)).unwrap();
    let old = job.fence;
    assert!(job.claim("b", UnixTime::new(100)).is_err() && !job.is_stale(UnixTime::new(100)));
    job.renew(old, UnixTime::new(100)).unwrap();
    let silent = 100 + i64::try_from(LEASE_S).unwrap();
    assert!(
        !job.is_stale(UnixTime::new(silent - 1)) && job.is_stale(UnixTime::new(silent)),
        "{job:?}"
    );
    assert!(job.take_back(UnixTime::new(1_000)));
    assert_eq!(job.reason, "its worker was killed");
    let JobState::Waiting { from_unix } = job.state else {
        panic!("{job:?}")
    };
    job.claim("b", from_unix).unwrap();
    assert!(job.renew(old, from_unix).is_err());
    let error = job
        .end(old, Ending::Done(String::new()), UnixTime::new(1_100))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "job 1 is no longer this worker's: its lease ended, or it was cancelled"
    );
    job.cancel(UnixTime::new(1_200)).unwrap();
    assert!(
        job.end(job.fence, Ending::Done(String::new()), UnixTime::new(1_300))
            .is_err()
    );
    let error = job.cancel(UnixTime::new(1_400)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "job 1 is cancelled: there is nothing to cancel"
    );
    assert_eq!(job.again(new(1), UnixTime::new(1_500)), Ok(()));
    assert_eq!(
        job.again(new(1), UnixTime::new(1_500))
            .unwrap_err()
            .to_string(),
        "job 1 is waiting: it is in the queue already"
    );
}

#[test]
fn job_is_retried_up_to_its_limit() {
    let mut job = queue(1).remove(0);
    let mut now = UnixTime::default();
    for attempt in 1..=3 {
        job.claim("a", now).unwrap();
        let fence = job.fence;
        job.end(fence, Ending::Lab("no network".into()), now)
            .unwrap();
        assert_eq!(job.attempts, attempt);
        now = now.plus_seconds(100_000);
    }
    assert_eq!(
        (&job.state, job.reason.as_str()),
        (&JobState::Failed, "no network (tried 3 times)")
    );
    assert_eq!([1, 2, 3, 99].map(retry_after_s), [60, 240, 960, 21_600]);
    let mut busy = queue(1).remove(0);
    for now in 0..50 {
        let now = UnixTime::new(now * 1_000);
        busy.claim("a", now).unwrap();
        let fence = busy.fence;
        busy.end(fence, Ending::Busy("ben has it".into()), now)
            .unwrap();
    }
    assert_eq!(busy.attempts, 0, "waiting for a person is no attempt");
}

#[test]
fn killed_workers_delay_and_never_fail_jobs() {
    let mut jobs = queue(2);
    let mut now = UnixTime::default();
    let mut waits = Vec::new();
    for _ in 0..8 {
        jobs[0].claim("a", now).unwrap();
        assert!(jobs[0].take_back(now));
        let JobState::Waiting { from_unix } = jobs[0].state else {
            panic!("{jobs:?}")
        };
        let next = next_job(&jobs, now).map(|job| job.number);
        assert_eq!(
            next,
            Some(if from_unix > now { 2 } else { 1 }),
            "others pass while it waits"
        );
        waits.push(from_unix.seconds_since(now).unwrap());
        now = from_unix;
    }
    assert_eq!(waits, [0, 0, 60, 240, 960, 3600, 3600, 3600]);
    assert_eq!(
        (jobs[0].attempts, jobs[0].reason.as_str()),
        (0, "its workers were killed, 8 in a row")
    );
    jobs[0].hurry(now.minus_seconds(1000));
    jobs[0].claim("a", now.minus_seconds(1000)).unwrap();
    let fence = jobs[0].fence;
    jobs[0]
        .end(fence, Ending::Lab("no network".into()), now)
        .unwrap();
    jobs[0].hurry(now);
    jobs[0].claim("a", now).unwrap();
    assert!(jobs[0].take_back(now));
    assert_eq!(
        jobs[0].state,
        JobState::Waiting { from_unix: now },
        "an attempt ended in between"
    );
}

#[test]
fn why_a_job_waits() {
    let mut jobs = queue(3);
    jobs[0].claim("a", UnixTime::new(0)).unwrap();
    assert_eq!(why(&jobs[0], &jobs, UnixTime::new(0)), Why::Running);
    assert_eq!(
        why(&jobs[2], &jobs, UnixTime::new(0)),
        Why::Behind {
            waiting: 1,
            running: 1
        }
    );
    let fence = jobs[0].fence;
    jobs[0]
        .end(fence, Ending::Overran, UnixTime::new(100))
        .unwrap();
    assert_eq!(
        why(&jobs[0], &jobs, UnixTime::new(100)),
        Why::Later {
            from_unix: UnixTime::new(160)
        }
    );
    assert_eq!(jobs[0].reason, "did not end within 100 s");
    assert_eq!(why(&jobs[1], &jobs, UnixTime::new(100)), Why::Next);
    jobs[1].cancel(UnixTime::new(100)).unwrap();
    assert_eq!(why(&jobs[1], &jobs, UnixTime::new(100)), Why::Over);
    assert_eq!(
        jobs[2].new.work.to_string(),
        "deb:6.12, micro: 1 workload, 3 seeds"
    );
}

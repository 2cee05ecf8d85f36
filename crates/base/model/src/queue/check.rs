//! When a server is checked by a job: a kernel that it measured before, again.

use super::{JobState, NewJob, QueuedJob, Work};
use crate::UnixTime;

/// The plan of jobs that check servers.
pub const CHECK_PLAN: &str = "health";
/// What such a job measures: a workload of a second.
const SUITE: &str = "micro";
const WORKLOAD: &str = "getppid";
const BOOTS: u64 = 2;
/// Jobs of users and plans have zero and more.
const PRIORITY: i64 = -1;

/// Returns the job that checks a server, if it has no open job and none was completed, and no check
/// ended, within so many seconds. It measures the kernel of the last job there that ended well,
/// with the attempts and the deadline of that job; without one there is none. `jobs` are all of the
/// queue.
#[must_use]
pub fn check_job(
    machine: &str,
    every_s: u64,
    jobs: &[QueuedJob],
    now_unix: UnixTime,
) -> Option<NewJob> {
    let mut last: Option<&QueuedJob> = None;
    for job in jobs.iter().filter(|job| job.new.work.machine == machine) {
        let counts = job.state == JobState::Done || job.new.plan == CHECK_PLAN;
        let is_late = job
            .ended_unix
            .is_none_or(|ended| now_unix.minus_seconds(every_s) >= ended);
        if !job.state.is_over() || (counts && !is_late) {
            return None;
        }
        let is_well = job.state == JobState::Done && job.reason.is_empty();
        if is_well && last.is_none_or(|last| last.ended_unix < job.ended_unix) {
            last = Some(job);
        }
    }
    let last = &last?.new;
    let suite = SUITE.to_owned();
    let workloads = vec![WORKLOAD.to_owned()];
    let work = Work {
        suite,
        workloads,
        seeds: BOOTS,
        ..last.work.clone()
    };
    Some(NewJob {
        work,
        plan: CHECK_PLAN.to_owned(),
        priority: PRIORITY,
        rank: 0,
        ..*last
    })
}

#[cfg(test)]
mod tests {
    use super::{CHECK_PLAN, check_job};
    use crate::{JobState, NewJob, QueuedJob, UnixTime, Work};

    fn job(number: u64, kernel: &str, state: JobState, ended: Option<i64>) -> QueuedJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: "stable".into(),
            config: "micro".into(),
            suite: "net".into(),
            workloads: vec!["tcp-rr".into()],
            seeds: 5,
            machine: "testbox".into(),
        };
        let new = NewJob {
            work,
            plan: "quick".into(),
            priority: 100,
            rank: 3,
            attempts_max: 2,
            deadline_s: 100,
        };
        QueuedJob {
            state,
            ended_unix: ended.map(UnixTime::new),
            ..QueuedJob::queued(number, new, UnixTime::default())
        }
    }

    fn checked(jobs: &[QueuedJob], now: i64) -> Option<String> {
        let new = check_job("testbox", 100, jobs, UnixTime::new(now))?;
        Some(format!(
            "{} {} {} {}",
            new.work.kernel,
            new.work.suite,
            new.work.workloads.join(","),
            new.work.seeds
        ))
    }

    #[test]
    fn server_without_recent_job_is_checked() {
        let one = job(1, "git:v6.1", JobState::Done, Some(50));
        let two = QueuedJob {
            reason: "does not boot".into(),
            ..job(2, "git:v6.2", JobState::Done, Some(60))
        };
        let jobs = [two, one];
        assert_eq!(checked(&jobs, 159), None, "a job was done");
        assert_eq!(
            checked(&jobs, 160).as_deref(),
            Some("git:v6.1 micro getppid 2"),
            "the last kernel that is well"
        );
        assert_eq!(check_job("other", 100, &jobs, UnixTime::new(160)), None);
        assert_eq!(checked(&[], 160), None, "no kernel is known");
    }

    #[test]
    fn open_jobs_and_late_checks_count() {
        let one = job(1, "git:v6.1", JobState::Done, Some(0));
        let open = job(
            2,
            "git:v6.2",
            JobState::Waiting {
                from_unix: UnixTime::default(),
            },
            None,
        );
        assert_eq!(checked(&[one.clone(), open], 1000), None);
        // A check that failed is repeated in time, and not at once.
        let mut failed = job(3, "git:v6.1", JobState::Failed, Some(950));
        failed.new.plan = CHECK_PLAN.into();
        assert_eq!(checked(&[one.clone(), failed.clone()], 1000), None);
        assert!(checked(&[one, failed], 1050).is_some());
    }
}

//! What a dispatcher does next. Pure: queue, batch system and time are arguments.

use model::{JobState, QueuedJob, UnixTime};

use super::{BatchJob, BatchState, batch_name_prefix};

/// What there is to decide about.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// Waiting and running jobs, in the order of execution.
    pub(super) open: &'a [QueuedJob],
    /// Marvin's jobs in the batch system.
    pub(super) batch: &'a [BatchJob],
    /// The machines whose jobs may be sent now.
    pub(super) machines: &'a [String],
    /// The quarantined ones among them: each tries one job.
    pub(super) trying: &'a [String],
    /// The most jobs in the batch system at once.
    pub(super) jobs_max: usize,
    /// The time.
    pub(super) now_unix: UnixTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this job of the queue.
    Submit(u64),
    /// Count an attempt of this job as failed: its batch job ended and did not take it.
    Fail(u64, String),
    /// Report that the batch job of this job is held.
    Report(u64, BatchJob),
}

/// Returns the name of the batch job for the next attempt at a job. A claim changes the fence, so a
/// batch job whose name has the present fence has not claimed it.
pub(super) fn next_name(job: &QueuedJob) -> String {
    format!("{}{}", batch_name_prefix(job), job.fence)
}

/// Decides what to do now.
pub(super) fn decide(view: View<'_>) -> Vec<Step> {
    let mut live = view
        .batch
        .iter()
        .filter(|one| one.state != BatchState::Ended)
        .count();
    let mut tried: Vec<&str> = Vec::new();
    let mut steps = Vec::new();
    for job in view.open {
        let own: Vec<&BatchJob> = view.batch.iter().filter(|one| one.is_for(job)).collect();
        let machine = job.new.work.machine.as_str();
        let is_trying = view.trying.iter().any(|name| name == machine);
        if let Some(one) = own.iter().find(|one| one.state != BatchState::Ended) {
            if one.state == BatchState::Held {
                steps.push(Step::Report(job.number, (*one).clone()));
            }
            tried.push(machine);
            continue;
        }
        if matches!(job.state, JobState::Running { .. }) {
            tried.push(machine);
        }
        let waits_for_machine = !view.machines.iter().any(|name| name == machine)
            || (is_trying && tried.contains(&machine));
        if !job.is_free(view.now_unix) || waits_for_machine {
            continue;
        }
        let name = next_name(job);
        if let Some(one) = own.iter().find(|one| one.name == name) {
            steps.push(Step::Fail(
                job.number,
                format!("batch job {} ended without it: {}", one.id, one.about),
            ));
        } else if live < view.jobs_max {
            live += 1;
            tried.push(machine);
            steps.push(Step::Submit(job.number));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use model::{Ending, NewJob, QueuedJob, UnixTime, Work};

    use super::{BatchJob, BatchState, Step, View, decide, next_name};

    fn job(number: u64, machine: &str) -> QueuedJob {
        let work = Work {
            kernel: "deb:6.12".parse().unwrap(),
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec![],
            seeds: 1,
            machine: machine.to_owned(),
        };
        let new = NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 2,
            deadline_s: 60,
        };
        QueuedJob::queued(number, new, UnixTime::new(100))
    }

    fn batch(name: String, state: BatchState) -> BatchJob {
        BatchJob {
            id: "17".into(),
            name,
            state,
            about: "why".into(),
        }
    }

    fn steps(open: &[QueuedJob], batch: &[BatchJob]) -> Vec<Step> {
        let machines = ["exact".to_owned(), "testbox".to_owned()];
        decide(View {
            open,
            batch,
            machines: &machines,
            trying: &machines[1..],
            jobs_max: 3,
            now_unix: UnixTime::new(200),
        })
    }

    #[test]
    fn free_jobs_are_sent_up_to_the_limit() {
        let open = [1, 2, 3, 4, 5].map(|number| job(number, "exact"));
        assert_eq!(
            steps(&open, &[]),
            [Step::Submit(1), Step::Submit(2), Step::Submit(3)]
        );
        let sent = [
            batch(next_name(&open[0]), BatchState::Waits),
            batch("marvin-run-x".into(), BatchState::Runs),
        ];
        assert_eq!(steps(&open, &sent), [Step::Submit(2)]);
        let mut other = job(1, "exact");
        other.queued_unix = other.queued_unix.plus_seconds(1);
        assert_eq!(
            steps(&[other], &sent),
            [Step::Submit(1)],
            "a batch job of an earlier request"
        );
        assert!(steps(&[job(1, "unknown")], &[]).is_empty());
    }

    #[test]
    fn batch_job_that_took_nothing_counts_once() {
        let mut one = job(1, "exact");
        let ended = [batch(next_name(&one), BatchState::Ended)];
        assert_eq!(
            steps(&[one.clone()], &ended),
            [Step::Fail(1, "batch job 17 ended without it: why".into())]
        );
        one.claim("slurm", UnixTime::new(200)).unwrap();
        assert!(steps(&[one.clone()], &ended).is_empty(), "it runs");
        one.end(1, Ending::Lab("why".into()), UnixTime::new(200))
            .unwrap();
        assert!(
            steps(&[one.clone()], &ended).is_empty(),
            "it waits for its next attempt"
        );
        one.hurry(UnixTime::new(200));
        assert_eq!(steps(&[one], &ended), [Step::Submit(1)]);
    }

    #[test]
    fn requeued_batch_job_keeps_its_job() {
        let mut one = job(1, "exact");
        let requeued = [batch(next_name(&one), BatchState::Waits)];
        one.claim("bm1", UnixTime::new(120)).unwrap();
        assert!(one.take_back(UnixTime::new(200)));
        assert!(steps(&[one.clone()], &requeued).is_empty());
        let held = [BatchJob {
            state: BatchState::Held,
            ..requeued[0].clone()
        }];
        assert_eq!(steps(&[one], &held), [Step::Report(1, held[0].clone())]);
    }

    #[test]
    fn quarantined_machine_tries_one_job() {
        let open = [1, 2].map(|number| job(number, "testbox"));
        assert_eq!(steps(&open, &[]), [Step::Submit(1)]);
        assert!(steps(&open, &[batch(next_name(&open[0]), BatchState::Runs)]).is_empty());
        let mut running = job(3, "testbox");
        running.claim("bm1", UnixTime::new(150)).unwrap();
        assert!(steps(&[running, job(4, "testbox")], &[]).is_empty());
    }
}

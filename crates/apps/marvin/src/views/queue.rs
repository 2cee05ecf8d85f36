//! The queue: one line per job with notes below it, and a single job in full with the reason of its
//! state.

use std::collections::HashMap;

use model::{Forecast, Health, JobState, QueuedJob, USUAL_MACHINE, UnixTime, Why, quarantine_of};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::number::{count, duration};
use model::sanitize_line;

const WIDTH: usize = 80;
/// Widest kernel name with its tree: longer ones are cut.
const KERNEL_MAX: usize = 26;
const RIGHT: [usize; 4] = [0, 2, 5, 6];
/// State of a job whose worker died.
const STOPPED: &str = "stopped";

/// The queue at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueView<'a> {
    pub(crate) jobs: &'a [QueuedJob],
    /// Expected start and end of all jobs.
    pub(crate) forecast: &'a HashMap<u64, Forecast>,
    /// The time (seconds since 1970-01-01 UTC).
    pub(crate) now_unix: UnixTime,
    /// Whether a worker takes jobs.
    pub(crate) has_worker: bool,
    /// What is known of the machines' health.
    pub(crate) health: &'a [Health],
}

/// Queued jobs, in the order of execution.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct QueueDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// Time of this document (seconds since 1970-01-01 UTC).
    now_unix: i64,
    /// Whether a worker takes jobs.
    has_worker: bool,
    /// The jobs.
    jobs: Vec<ListedJob>,
}

/// One queued job, and the reason for its position.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct JobDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// Time of this document (seconds since 1970-01-01 UTC).
    now_unix: i64,
    /// Reason for its position.
    why: String,
    /// What the batch system does with it: its number there, its state and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    /// The job.
    job: ListedJob,
}

/// A queued job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedJob {
    /// Job number.
    number: u64,
    /// `waiting`, `running`, `stopped` (its worker died), `done`, `failed`, `cancelled` or
    /// `replaced`.
    state: &'static str,
    /// Kernel name.
    kernel: String,
    /// Tree of marvin.toml; empty for none.
    tree: String,
    /// Kernel config.
    config: String,
    /// Suite.
    suite: String,
    /// Workloads.
    workloads: Vec<String>,
    /// Number of seeds, or of boots on a server.
    seeds: u64,
    /// Machine: `exact`, or a server of marvin.toml.
    machine: String,
    /// Plan of marvin.toml that queued it; empty for a user.
    plan: String,
    /// Priority: higher runs first.
    priority: i64,
    /// Order within the priority: lower runs first.
    rank: u64,
    /// Number of attempts so far.
    attempts: u32,
    /// Limit on attempts.
    attempts_max: u32,
    /// Limit on the duration of an attempt (seconds).
    deadline_s: u64,
    /// Worker that runs it.
    worker: Option<String>,
    /// End of the worker's lease (seconds since 1970-01-01 UTC).
    lease_until_unix: Option<i64>,
    /// Earliest next attempt (seconds since 1970-01-01 UTC).
    not_before_unix: Option<i64>,
    /// Time of queueing (seconds since 1970-01-01 UTC).
    queued_unix: i64,
    /// Start of the last attempt (seconds since 1970-01-01 UTC).
    started_unix: Option<i64>,
    /// End of the job (seconds since 1970-01-01 UTC).
    ended_unix: Option<i64>,
    /// Expected start (seconds since 1970-01-01 UTC).
    begins_unix: Option<i64>,
    /// Expected end (seconds since 1970-01-01 UTC).
    ends_unix: Option<i64>,
    /// Reason of the last failure; empty for none.
    reason: String,
}

impl QueueDocument {
    /// Returns the document of jobs, in the order given.
    pub(crate) fn new(view: QueueView<'_>) -> Self {
        let QueueView {
            jobs,
            now_unix,
            has_worker,
            ..
        } = view;
        let jobs = jobs.iter().map(|job| listed(job, view)).collect();
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "queue",
            now_unix: now_unix.seconds(),
            has_worker,
            jobs,
        }
    }
}

impl JobDocument {
    /// Returns the document of one job.
    pub(crate) fn new(job: &QueuedJob, why: &Why, view: QueueView<'_>) -> Self {
        let why = because(job, why, view);
        let now_unix = view.now_unix.seconds();
        let job = listed(job, view);
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "job",
            now_unix,
            why,
            batch: None,
            job,
        }
    }

    /// Adds what the batch system does with the job.
    pub(crate) fn with_batch(self, batch: Option<String>) -> Self {
        Self { batch, ..self }
    }
}

fn listed(job: &QueuedJob, view: QueueView<'_>) -> ListedJob {
    let new = &job.new;
    let work = &job.new.work;
    let (worker, lease_until_unix) = match &job.state {
        JobState::Running { worker, until_unix } => {
            (Some(worker.clone()), Some(until_unix.seconds()))
        }
        _ => (None, None),
    };
    let is_stopped = worker.is_some() && (!view.has_worker || job.is_stale(view.now_unix));
    let is_expected = !is_stopped && !job.state.is_over();
    let forecast = view
        .forecast
        .get(&job.number)
        .filter(|_| is_expected)
        .copied()
        .unwrap_or_default();
    ListedJob {
        number: job.number,
        state: if is_stopped {
            STOPPED
        } else {
            job.state.name()
        },
        kernel: work.kernel.to_string(),
        tree: work.tree.clone(),
        config: work.config.clone(),
        suite: work.suite.clone(),
        workloads: work.workloads.clone(),
        seeds: work.seeds,
        machine: work.machine.clone(),
        plan: new.plan.clone(),
        priority: new.priority,
        rank: new.rank,
        attempts: job.attempts,
        attempts_max: new.attempts_max,
        deadline_s: new.deadline_s,
        worker,
        lease_until_unix,
        not_before_unix: if let JobState::Waiting { from_unix } = job.state {
            Some(from_unix.seconds())
        } else {
            None
        },
        queued_unix: job.queued_unix.seconds(),
        started_unix: job.started_unix.map(UnixTime::seconds),
        ended_unix: job.ended_unix.map(UnixTime::seconds),
        begins_unix: forecast.begins_unix.map(UnixTime::seconds),
        ends_unix: forecast.ends_unix.map(UnixTime::seconds),
        reason: job.reason.clone(),
    }
}

impl ListedJob {
    fn is_open(&self) -> bool {
        ["waiting", "running", STOPPED].contains(&self.state)
    }
}

impl Listing for QueueDocument {
    fn text(&self, _: &Styles) -> String {
        if self.jobs.is_empty() {
            return "the queue is empty\n".into();
        }
        let head = ["job", "state", "prio", "kernel", "what", "begins", "ends"].map(str::to_owned);
        let rows: Vec<[String; 7]> = std::iter::once(head)
            .chain(self.jobs.iter().map(|job| row(job, self.now_unix)))
            .collect();
        let widths: [usize; 7] = std::array::from_fn(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        });
        let mut lines = Vec::new();
        for (row, job) in rows
            .iter()
            .zip(std::iter::once(None).chain(self.jobs.iter().map(Some)))
        {
            let cells = row
                .iter()
                .zip(widths)
                .enumerate()
                .map(|(column, (cell, width))| {
                    if RIGHT.contains(&column) {
                        format!("{cell:>width$}")
                    } else {
                        format!("{cell:<width$}")
                    }
                });
            lines.push(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned());
            let indent = " ".repeat(widths[0] + 2);
            lines.extend(
                job.and_then(more)
                    .map(|more| cut(&format!("{indent}{more}"), WIDTH)),
            );
        }
        if self.jobs.iter().any(ListedJob::is_open) {
            lines.push("begins, ends: from now, estimated from equal jobs".to_owned());
            if !self.has_worker {
                lines.push("no worker runs: start `marvin work`".to_owned());
            }
        }
        lines.join("\n") + "\n"
    }
}

fn row(job: &ListedJob, now_unix: i64) -> [String; 7] {
    let of_tree = if job.tree.is_empty() {
        String::new()
    } else {
        format!(" of {}", job.tree)
    };
    let on = if job.machine == USUAL_MACHINE {
        String::new()
    } else {
        format!(" on {}", job.machine)
    };
    let [begins, ends] = if ["waiting", "running"].contains(&job.state) {
        [
            if job.state == "running" {
                "-".to_owned()
            } else {
                until_known(job.begins_unix, now_unix)
            },
            until_known(job.ends_unix, now_unix),
        ]
    } else {
        ["-".to_owned(), "-".to_owned()]
    };
    [
        job.number.to_string(),
        job.state.to_owned(),
        job.priority.to_string(),
        cut(
            &sanitize_line(&format!("{}{of_tree}", job.kernel)),
            KERNEL_MAX,
        ),
        cut(
            &sanitize_line(&format!(
                "{} {}x{}{on}",
                job.suite,
                job.workloads.len(),
                job.seeds
            )),
            KERNEL_MAX,
        ),
        begins,
        ends,
    ]
}

/// Returns the notes on a job: since when it runs and where, or how it ended.
fn more(job: &ListedJob) -> Option<String> {
    let why = if job.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", sanitize_line(&job.reason))
    };
    let worker = sanitize_line(job.worker.as_deref().unwrap_or_default());
    match job.state {
        "waiting" => {
            let again = date(job.not_before_unix.unwrap_or_default());
            (!why.is_empty()).then(|| {
                format!(
                    "attempt {} of {}, next at {again}{why}",
                    job.attempts, job.attempts_max
                )
            })
        }
        STOPPED => Some(format!(
            "the worker on {worker} died; the next one requeues the job"
        )),
        "running" => Some(format!(
            "on {worker} since {}",
            date(job.started_unix.unwrap_or_default())
        )),
        _ => Some(format!("{}{why}", date(job.ended_unix.unwrap_or_default()))),
    }
}

fn date(seconds: i64) -> String {
    UnixTime::new(seconds).date()
}

/// Formats the duration until a time, in at most two units: `2h10m`.
fn until(time_unix: UnixTime, now_unix: UnixTime) -> String {
    match time_unix.seconds_since(now_unix) {
        None | Some(0) => "now".to_owned(),
        Some(seconds) => duration(seconds),
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

impl Listing for JobDocument {
    fn text(&self, _: &Styles) -> String {
        let job = &self.job;
        let mut lines = vec![
            format!("job        {}, {}", job.number, job.state),
            format!("kernel     {}", sanitize_line(&job.kernel)),
        ];
        if !job.tree.is_empty() {
            lines.push(format!(
                "tree       {}, kernel config {}",
                sanitize_line(&job.tree),
                sanitize_line(&job.config)
            ));
        }
        lines.push(format!(
            "suite      {}: {}",
            job.suite,
            sanitize_line(&job.workloads.join(", "))
        ));
        let runs = if job.machine == USUAL_MACHINE {
            "seeds"
        } else {
            "boots"
        };
        lines.push(format!("machine    {}", sanitize_line(&job.machine)));
        lines.push(format!("{runs}      {}", job.seeds));
        let origin = if job.plan.is_empty() {
            "by hand".to_owned()
        } else {
            format!("by the plan {}", sanitize_line(&job.plan))
        };
        lines.push(format!("queued     {}, {origin}", date(job.queued_unix)));
        lines.push(format!("priority   {}, rank {}", job.priority, job.rank));
        lines.push(format!(
            "attempts   {} of {}, each at most {} s",
            job.attempts, job.attempts_max, job.deadline_s
        ));
        let times = [
            ("begun     ", job.started_unix),
            ("ended     ", job.ended_unix),
        ];
        lines.extend(
            times
                .into_iter()
                .filter_map(|(word, time)| Some(format!("{word} {}", date(time?)))),
        );
        if !job.reason.is_empty() {
            lines.push(format!("reason     {}", sanitize_line(&job.reason)));
        }
        lines.push(format!("why        {}", self.why));
        lines.extend(
            self.batch
                .iter()
                .map(|batch| format!("batch      {}", sanitize_line(batch))),
        );
        if ["waiting", "running"].contains(&job.state) {
            lines.push(format!("ends       {}", when(job, self.now_unix)));
        }
        lines.join("\n") + "\n"
    }
}

fn until_known(time_unix: Option<i64>, now_unix: i64) -> String {
    time_unix.map_or_else(
        || "unknown".to_owned(),
        |time| until(UnixTime::new(time), UnixTime::new(now_unix)),
    )
}

fn describe_time(time_unix: i64, now_unix: i64) -> String {
    let time = UnixTime::new(time_unix);
    match until(time, UnixTime::new(now_unix)).as_str() {
        "now" => "now".to_owned(),
        left => format!("in about {left}, at {}", time.date()),
    }
}

fn when(job: &ListedJob, now_unix: i64) -> String {
    match (job.begins_unix, job.ends_unix) {
        (None, Some(ends)) => describe_time(ends, now_unix),
        (Some(begins), Some(ends)) => format!(
            "{}; begins {}",
            describe_time(ends, now_unix),
            describe_time(begins, now_unix)
        ),
        (Some(begins), None) => format!(
            "unknown until three equal jobs took about as long; begins {}",
            describe_time(begins, now_unix)
        ),
        (None, None) if job.state == "running" => {
            "unknown until three equal jobs took about as long".to_owned()
        }
        (None, None) => {
            "unknown until three jobs equal to each before it took about as long".to_owned()
        }
    }
}

fn because(job: &QueuedJob, why: &Why, view: QueueView<'_>) -> String {
    let started = if view.has_worker {
        ""
    } else {
        "; no worker runs: start `marvin work`"
    };
    match (why, &job.state) {
        (Why::Running, JobState::Running { worker, .. })
            if !view.has_worker || job.is_stale(view.now_unix) =>
        {
            format!(
                "its worker on {} died{started}; it continues",
                sanitize_line(worker)
            )
        }
        (Why::Running, JobState::Running { worker, until_unix }) => {
            format!(
                "{} executes it; others may take it after {}",
                sanitize_line(worker),
                until_unix.date()
            )
        }
        (Why::Later { from_unix }, _) => {
            let last = if job.kills > 0 {
                &job.reason
            } else {
                "the last attempt failed"
            };
            format!(
                "{}; the next is not before {}{started}",
                sanitize_line(last),
                from_unix.date()
            )
        }
        (Why::Behind { .. }, _) if let Some(ill) = quarantine(job, view) => ill,
        (
            Why::Behind {
                waiting: 0,
                running,
            },
            _,
        ) => {
            format!(
                "{} running; it is next{started}",
                jobs(*running, "is", "are")
            )
        }
        (Why::Behind { waiting, running }, _) => {
            let running = if *running == 0 {
                String::new()
            } else {
                format!(", and {} running", jobs(*running, "is", "are"))
            };
            format!(
                "{} first{running}{started}",
                jobs(*waiting, "comes", "come")
            )
        }
        (Why::Next, _) if let Some(ill) = quarantine(job, view) => ill,
        (Why::Next, _) => format!("it is next{started}"),
        (Why::Over | Why::Running, _) => {
            "it has ended; `marvin queue add` queues it again".to_owned()
        }
    }
}

/// Says that a job's machine is quarantined, if it is.
fn quarantine(job: &QueuedJob, view: QueueView<'_>) -> Option<String> {
    let name = &job.new.work.machine;
    let ill = quarantine_of(name, view.health)?;
    let name = sanitize_line(name);
    let reason = sanitize_line(&ill.reason);
    Some(format!(
        "{name} is quarantined: {reason}; it tries a job again after {}",
        ill.next_unix.date()
    ))
}

fn jobs(number: usize, one: &str, several: &str) -> String {
    format!(
        "{} {}",
        count(number, "job"),
        if number == 1 { one } else { several }
    )
}

#[cfg(test)]
mod tests {
    use model::{Ending, NewJob, QueuedJob, UnixTime, Work, forecast, why};

    use super::{JobDocument, QueueDocument, QueueView, until};
    use crate::views::Listing as _;
    use document::Styles;

    fn queue(view: QueueView<'_>) -> String {
        QueueDocument::new(view).text(&Styles::plain())
    }

    fn queued_job(job: &QueuedJob, why: &model::Why, view: QueueView<'_>) -> String {
        JobDocument::new(job, why, view).text(&Styles::plain())
    }

    fn job(number: u64, kernel: &str, plan: &str) -> QueuedJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: if kernel.starts_with("git:") {
                "stable".into()
            } else {
                String::new()
            },
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into(), "fork".into()],
            seeds: 5,
            machine: model::USUAL_MACHINE.to_owned(),
        };
        let new = NewJob {
            work,
            plan: plan.into(),
            priority: 100,
            rank: 0,
            attempts_max: 3,
            deadline_s: 60,
        };
        QueuedJob::queued(number, new, NOW.minus_seconds(10_000))
    }

    const NOW: UnixTime = UnixTime::new(1_760_000_100);

    fn jobs() -> Vec<QueuedJob> {
        let mut jobs = vec![
            job(1, "git:v6.12.3", "quick"),
            job(
                2,
                "deb:linux-image-6.12.117+deb12-with-a-very-long-flavour-amd64",
                "whole",
            ),
            job(3, "git:v6.1\u{1b}[2J", ""),
            job(1004, "git:v6.13", "quick"),
            job(5, "deb:6.1", ""),
            job(6, "git:v6.12", "quick"),
        ];
        jobs[0].claim("farm", NOW.minus_seconds(600)).unwrap();
        jobs[0].renew(1, NOW.minus_seconds(30)).unwrap();
        jobs[1].claim("farm", NOW).unwrap();
        let why = "cannot get the kernel: no network\nas it seems, for the name of the server has no address";
        jobs[1].end(1, Ending::Lab(why.into()), NOW).unwrap();
        jobs[4].cancel(NOW).unwrap();
        jobs[5].claim("farm", NOW.minus_seconds(9_000)).unwrap();
        jobs[5]
            .end(1, Ending::Done(String::new()), NOW.minus_seconds(1_000))
            .unwrap();
        jobs
    }

    /// With the last job done three times, which makes a forecast of equal ones.
    fn repeated(jobs: &[QueuedJob]) -> Vec<QueuedJob> {
        let mut all = jobs.to_vec();
        for number in [2001, 2002] {
            let mut again = jobs[5].clone();
            again.number = number;
            all.push(again);
        }
        all
    }

    #[test]
    fn the_queue_is_listed_in_eighty_columns() {
        let jobs = jobs();
        let all = forecast(&repeated(&jobs), NOW);
        let listed = queue(QueueView {
            jobs: &jobs,
            forecast: &all,
            now_unix: NOW,
            has_worker: true,
            health: &[],
        });
        assert!(
            listed.lines().all(|line| line.chars().count() <= 80) && !listed.contains('\u{1b}'),
            "{listed}"
        );
        insta::assert_snapshot!(listed);
        let stopped = queue(QueueView {
            jobs: &jobs[..1],
            forecast: &all,
            now_unix: NOW,
            has_worker: false,
            health: &[],
        });
        assert!(!stopped.contains("running"), "{stopped}");
        insta::assert_snapshot!("the_queue_of_a_dead_worker", stopped);
        let waiting = queue(QueueView {
            jobs: &jobs[3..5],
            forecast: &all,
            now_unix: NOW,
            has_worker: false,
            health: &[],
        });
        assert!(
            waiting.ends_with("no worker runs: start `marvin work`\n"),
            "{waiting}"
        );
        assert_eq!(
            queue(QueueView {
                jobs: &[],
                forecast: &all,
                now_unix: NOW,
                has_worker: true,
                health: &[]
            }),
            "the queue is empty\n"
        );
    }

    #[test]
    fn each_job_is_explained() {
        let jobs = jobs();
        let all = forecast(&repeated(&jobs), NOW);
        let view = QueueView {
            jobs: &jobs,
            forecast: &all,
            now_unix: NOW,
            has_worker: true,
            health: &[],
        };
        let lines: Vec<String> = jobs
            .iter()
            .map(|job| queued_job(job, &why(job, &jobs, NOW), view))
            .collect();
        insta::assert_snapshot!("jobs-with-a-worker", lines.join("\n"));
        let alone = QueueView {
            has_worker: false,
            ..view
        };
        let lines: Vec<String> = jobs
            .iter()
            .map(|job| super::because(job, &why(job, &jobs, NOW), alone))
            .collect();
        insta::assert_snapshot!("jobs-without-a-worker", lines.join("\n"));
        let nothing = forecast(&jobs[..3], NOW);
        let view = QueueView {
            forecast: &nothing,
            ..view
        };
        let lines = [0, 2].map(|n| queued_job(&jobs[n], &why(&jobs[n], &jobs, NOW), view));
        for (line, end) in lines.iter().zip([
            "until three equal jobs took about as long\n",
            "until three jobs equal to each before it took about as long\n",
        ]) {
            assert!(line.ends_with(end), "{line}");
        }
    }

    #[test]
    fn times_to_come_are_short() {
        let lengths = [-5, 0, 59, 60, 3_599, 3_600, 86_399, 90_000, i64::MAX]
            .map(|seconds| until(UnixTime::new(seconds), UnixTime::new(0)));
        assert_eq!(
            lengths[..8],
            ["now", "now", "59s", "1m", "59m", "1h00m", "23h59m", "1d01h"]
        );
    }
}

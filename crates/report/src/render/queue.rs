//! The queue as text: one line per job with notes below it, and a single job in full with the reason of its state.

use std::collections::HashMap;

use model::{Forecast, JobState, QueuedJob, Why, Work};

use crate::plain::plain;
use crate::render::number::{count, date};

/// Widest line.
const WIDTH: usize = 80;
/// Widest kernel name with its tree: longer ones are cut.
const KERNEL_MAX: usize = 26;
/// Right-aligned columns.
const RIGHT: [usize; 4] = [0, 2, 5, 6];

/// The queue at one time.
#[derive(Debug, Clone, Copy)]
pub struct QueueView<'a> {
    /// Its jobs, in display order.
    pub jobs: &'a [QueuedJob],
    /// Their expected times.
    pub forecast: &'a HashMap<u64, Forecast>,
    /// The time, in seconds since 1970-01-01 UTC.
    pub now_unix: i64,
    /// Whether a worker takes jobs.
    pub has_worker: bool,
}

/// Renders jobs in the given order.
#[must_use]
pub fn queue(view: QueueView<'_>) -> String {
    if view.jobs.is_empty() {
        return "the queue is empty\n".into();
    }
    let head = ["job", "state", "prio", "kernel", "what", "begins", "ends"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(view.jobs.iter().map(|job| row(job, view))).collect();
    let widths: [usize; 7] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut lines = Vec::new();
    for (row, job) in rows.iter().zip(std::iter::once(None).chain(view.jobs.iter().map(Some))) {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if RIGHT.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        lines.push(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned());
        let indent = " ".repeat(widths[0] + 2);
        lines.extend(job.and_then(|job| more(job, view)).map(|more| cut(&format!("{indent}{more}"), WIDTH)));
    }
    let open = view.jobs.iter().filter(|job| !job.state.is_over());
    if open.clone().next().is_some() {
        lines.push("begins, ends: from now on, by what equal jobs took".to_owned());
        if !view.has_worker {
            lines.push("no worker takes jobs: start `marvin work`".to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// Returns whether a job began and no process continues it, because its worker died.
fn is_stopped(job: &QueuedJob, view: QueueView<'_>) -> bool {
    matches!(job.state, JobState::Running { .. }) && !view.has_worker
}

fn state_word(job: &QueuedJob, view: QueueView<'_>) -> &'static str {
    if is_stopped(job, view) { "stopped" } else { job.state.word() }
}

fn row(job: &QueuedJob, view: QueueView<'_>) -> [String; 7] {
    let Work { kernel, tree, suite, workloads, seeds, .. } = &job.new.work;
    let of = if tree.is_empty() { String::new() } else { format!(" of {tree}") };
    let [begins, ends] = if job.state.is_over() || is_stopped(job, view) {
        ["-".to_owned(), "-".to_owned()]
    } else {
        let Forecast { begins_unix, ends_unix } = view.forecast.get(&job.number).copied().unwrap_or_default();
        let of = |time: Option<i64>| time.map_or_else(|| "unknown".to_owned(), |time| until(time, view.now_unix));
        let has_begun = matches!(job.state, JobState::Running { .. });
        [if has_begun { "-".to_owned() } else { of(begins_unix) }, of(ends_unix)]
    };
    [
        job.number.to_string(),
        state_word(job, view).to_owned(),
        job.new.priority.to_string(),
        cut(&plain(&format!("{kernel}{of}")), KERNEL_MAX),
        cut(&plain(&format!("{suite} {}x{seeds}", workloads.len())), KERNEL_MAX),
        begins,
        ends,
    ]
}

/// Returns the notes on a job: since when it runs and where, or how it ended.
fn more(job: &QueuedJob, view: QueueView<'_>) -> Option<String> {
    let why = if job.reason.is_empty() { String::new() } else { format!(": {}", plain(&job.reason)) };
    match &job.state {
        JobState::Waiting { from_unix } if !why.is_empty() => {
            Some(format!("tried {} of {}, again at {}{why}", job.attempts, job.new.attempts_max, date(*from_unix)))
        }
        JobState::Waiting { .. } => None,
        JobState::Running { worker, .. } if is_stopped(job, view) => {
            Some(format!("the worker on {} died; the next one requeues the job", plain(worker)))
        }
        JobState::Running { worker, .. } => {
            Some(format!("on {} since {}", plain(worker), date(job.started_unix.unwrap_or_default())))
        }
        _ => Some(format!("{}{why}", date(job.ended_unix.unwrap_or_default()))),
    }
}

/// Formats the duration until a time, in at most two units: `2h10m`.
fn until(time_unix: i64, now_unix: i64) -> String {
    let seconds = time_unix.saturating_sub(now_unix).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m"),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// Renders one job with the reason of its state and its expected times.
#[must_use]
pub fn queued_job(job: &QueuedJob, why: &Why, view: QueueView<'_>) -> String {
    let (new, work) = (&job.new, &job.new.work);
    let mut lines = vec![
        format!("job        {}, {}", job.number, state_word(job, view)),
        format!("kernel     {}", plain(&work.kernel.to_string())),
    ];
    if !work.tree.is_empty() {
        lines.push(format!("tree       {}, configured as {}", plain(&work.tree), plain(&work.config)));
    }
    lines.push(format!("suite      {}: {}", work.suite, plain(&work.workloads.join(", "))));
    lines.push(format!("seeds      {}", work.seeds));
    let asked = if new.plan.is_empty() { "by hand".to_owned() } else { format!("by the plan {}", plain(&new.plan)) };
    lines.push(format!("queued     {}, {asked}", date(job.queued_unix)));
    lines.push(format!("priority   {}, rank {}", new.priority, new.rank));
    lines.push(format!("tried      {} of {}, each at most {} s", job.attempts, new.attempts_max, new.deadline_s));
    let times = [("begun     ", job.started_unix), ("ended     ", job.ended_unix)];
    lines.extend(times.into_iter().filter_map(|(word, time)| Some(format!("{word} {}", date(time?)))));
    if !job.reason.is_empty() {
        lines.push(format!("reason     {}", plain(&job.reason)));
    }
    lines.push(format!("why        {}", because(job, why, view)));
    if !job.state.is_over() && !is_stopped(job, view) {
        lines.push(format!("ends       {}", when(job, view)));
    }
    lines.join("\n") + "\n"
}

fn when(job: &QueuedJob, view: QueueView<'_>) -> String {
    let Forecast { begins_unix, ends_unix } = view.forecast.get(&job.number).copied().unwrap_or_default();
    let told = |time: i64| match until(time, view.now_unix).as_str() {
        "now" => "now".to_owned(),
        left => format!("in about {left}, at {}", date(time)),
    };
    match (begins_unix, ends_unix) {
        (None, Some(ends)) => told(ends),
        (Some(begins), Some(ends)) => format!("{}; begins {}", told(ends), told(begins)),
        (Some(begins), None) => format!("unknown: nothing like it was done so far; begins {}", told(begins)),
        (None, None) if matches!(job.state, JobState::Running { .. }) => {
            "unknown: nothing like it was done so far".to_owned()
        }
        (None, None) => "unknown: nothing like a job before it was done so far".to_owned(),
    }
}

fn because(job: &QueuedJob, why: &Why, view: QueueView<'_>) -> String {
    let started = if view.has_worker { "" } else { "; no worker takes jobs: start `marvin work`" };
    match (why, &job.state) {
        (Why::Running, JobState::Running { worker, .. }) if !view.has_worker => {
            format!("the worker on {} that did it was killed{started}, and it goes on", plain(worker))
        }
        (Why::Running, JobState::Running { worker, until_unix }) => {
            format!("{} does it; others may take it after {}", plain(worker), date(*until_unix))
        }
        (Why::Later { from_unix }, _) => {
            format!("the last try came to nothing; the next is not before {}{started}", date(*from_unix))
        }
        (Why::Behind { waiting: 0, running }, _) => {
            format!("{} at work; it is the next{started}", jobs(*running, "is", "are"))
        }
        (Why::Behind { waiting, running }, _) => {
            let running =
                if *running == 0 { String::new() } else { format!(", and {} at work", jobs(*running, "is", "are")) };
            format!("{} first{running}{started}", jobs(*waiting, "comes", "come"))
        }
        (Why::Next, _) => format!("it is the next{started}"),
        (Why::Over | Why::Running, _) => "it is over; `marvin queue add` queues it again".to_owned(),
    }
}

fn jobs(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", count(number, "job"), if number == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use model::{Ending, NewJob, QueuedJob, Work, forecast, why};

    use super::{QueueView, queue, queued_job, until};

    fn job(number: u64, kernel: &str, plan: &str) -> QueuedJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: if kernel.starts_with("git:") { "stable".into() } else { String::new() },
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into(), "fork".into()],
            seeds: 5,
        };
        let new = NewJob { work, plan: plan.into(), priority: 100, rank: 0, attempts_max: 3, deadline_s: 60 };
        QueuedJob::queued(number, new, NOW - 10_000)
    }

    const NOW: i64 = 1_760_000_100;

    fn jobs() -> Vec<QueuedJob> {
        let mut jobs = vec![
            job(1, "git:v6.12.3", "quick"),
            job(2, "deb:linux-image-6.12.117+deb12-with-a-very-long-flavour-amd64", "whole"),
            job(3, "git:v6.1\u{1b}[2J", ""),
            job(1004, "git:v6.13", "quick"),
            job(5, "deb:6.1", ""),
            job(6, "git:v6.12", "quick"),
        ];
        jobs[0].claim("farm", NOW - 600).unwrap();
        jobs[1].claim("farm", NOW).unwrap();
        let why = "cannot get the kernel: no network\nas it seems, for the name of the server has no address";
        jobs[1].end(1, Ending::Infra(why.into()), NOW).unwrap();
        jobs[4].cancel(NOW).unwrap();
        jobs[5].claim("farm", NOW - 9_000).unwrap();
        jobs[5].end(1, Ending::Done(String::new()), NOW - 1_000).unwrap();
        jobs
    }

    #[test]
    fn the_queue_is_listed_in_eighty_columns() {
        let jobs = jobs();
        let all = forecast(&jobs, NOW);
        let listed = queue(QueueView { jobs: &jobs, forecast: &all, now_unix: NOW, has_worker: true });
        assert!(listed.lines().all(|line| line.chars().count() <= 80) && !listed.contains('\u{1b}'), "{listed}");
        insta::assert_snapshot!(listed);
        let stopped = queue(QueueView { jobs: &jobs[..1], forecast: &all, now_unix: NOW, has_worker: false });
        assert!(!stopped.contains("running"), "{stopped}");
        insta::assert_snapshot!("the_queue_of_a_dead_worker", stopped);
        let waiting = queue(QueueView { jobs: &jobs[3..5], forecast: &all, now_unix: NOW, has_worker: false });
        assert!(waiting.ends_with("no worker takes jobs: start `marvin work`\n"), "{waiting}");
        assert_eq!(
            queue(QueueView { jobs: &[], forecast: &all, now_unix: NOW, has_worker: true }),
            "the queue is empty\n"
        );
    }

    #[test]
    fn each_job_is_explained() {
        let jobs = jobs();
        let all = forecast(&jobs, NOW);
        let view = QueueView { jobs: &jobs, forecast: &all, now_unix: NOW, has_worker: true };
        let told: Vec<String> = jobs.iter().map(|job| queued_job(job, &why(job, &jobs, NOW), view)).collect();
        insta::assert_snapshot!(told.join("\n"));
        let alone = QueueView { has_worker: false, ..view };
        let told: Vec<String> = jobs.iter().map(|job| super::because(job, &why(job, &jobs, NOW), alone)).collect();
        insta::assert_snapshot!(told.join("\n"));
        let nothing = forecast(&jobs[..3], NOW);
        let view = QueueView { forecast: &nothing, ..view };
        let told = [0, 2].map(|at| queued_job(&jobs[at], &why(&jobs[at], &jobs, NOW), view));
        for (told, end) in
            told.iter().zip(["nothing like it was done so far\n", "nothing like a job before it was done so far\n"])
        {
            assert!(told.ends_with(end), "{told}");
        }
    }

    #[test]
    fn times_to_come_are_short() {
        let told = [-5, 0, 59, 60, 3_599, 3_600, 86_399, 90_000, i64::MAX].map(|seconds| until(seconds, 0));
        assert_eq!(told[..8], ["now", "now", "59s", "1m", "59m", "1h00m", "23h59m", "1d01h"]);
    }
}

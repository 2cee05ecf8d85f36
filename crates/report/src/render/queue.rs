//! The queue as text: one line a job, and one job in full with why it is where it is.

use model::{JobState, QueuedJob, Why};

use crate::plain::plain;
use crate::render::number::{count, date};

/// Widest column: longer names are cut.
const WIDTH_MAX: usize = 44;

/// Renders jobs, in the order given.
#[must_use]
pub fn queue(jobs: &[QueuedJob]) -> String {
    if jobs.is_empty() {
        return "the queue is empty\n".into();
    }
    let head = ["job", "state", "priority", "kernel", "of", "what", "tried", "since or why"].map(str::to_owned);
    let rows: Vec<[String; 8]> = std::iter::once(head).chain(jobs.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            // Numbers stand at the right.
            let (before, after) = if [0, 2].contains(&place) { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line.extend([before, cell, after, "  "]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(job: &QueuedJob) -> [String; 8] {
    let (new, work) = (&job.new, &job.new.work);
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { cut(&plain(text)) };
    let what = format!("{} ({}), {}", work.suite, work.workloads.len(), count(seeds(job), "seed"));
    let since = match &job.state {
        JobState::Waiting { from_unix } if job.attempts > 0 => {
            format!("again at {}: {}", date(*from_unix), plain(&job.reason))
        }
        JobState::Waiting { .. } => date(job.queued_unix),
        JobState::Running { worker, .. } => {
            format!("{} on {}", date(job.started_unix.unwrap_or_default()), plain(worker))
        }
        _ if job.reason.is_empty() => date(job.ended_unix.unwrap_or_default()),
        _ => plain(&job.reason),
    };
    [
        job.number.to_string(),
        job.state.word().to_owned(),
        new.priority.to_string(),
        or_dash(&work.kernel.to_string()),
        or_dash(&work.tree),
        what,
        format!("{} of {}", job.attempts, new.attempts_max),
        since,
    ]
}

fn seeds(job: &QueuedJob) -> usize {
    usize::try_from(job.new.work.seeds).unwrap_or(usize::MAX)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= WIDTH_MAX {
        return text.to_owned();
    }
    text.chars().take(WIDTH_MAX - 1).chain(['…']).collect()
}

/// Renders one job, and why it is where it is.
#[must_use]
pub fn queued_job(job: &QueuedJob, why: &Why) -> String {
    let (new, work) = (&job.new, &job.new.work);
    let mut lines = vec![
        format!("job        {}, {}", job.number, job.state.word()),
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
    lines.push(format!("why        {}", because(job, why)));
    lines.join("\n") + "\n"
}

fn because(job: &QueuedJob, why: &Why) -> String {
    match (why, &job.state) {
        (Why::Running, JobState::Running { worker, until_unix }) => {
            format!("{} does it; others may take it after {}", plain(worker), date(*until_unix))
        }
        (Why::Later { from_unix }, _) => format!("the last try failed; the next is not before {}", date(*from_unix)),
        (Why::Behind { waiting: 0, running }, _) => format!("{} at work; it is the next", jobs(*running, "is", "are")),
        (Why::Behind { waiting, running }, _) => {
            format!("{} first, and {} at work", jobs(*waiting, "comes", "come"), jobs(*running, "is", "are"))
        }
        (Why::Next, _) => "it is the next, and no worker has taken it: start `marvin work`".to_owned(),
        (Why::Over | Why::Running, _) => "it is over; `marvin queue add` queues it again".to_owned(),
    }
}

fn jobs(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", count(number, "job"), if number == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use model::{Ending, NewJob, QueuedJob, Work, why};

    use super::{queue, queued_job};

    fn job(number: u64, kernel: &str, plan: &str) -> QueuedJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: if kernel.starts_with("git:") { "stable".into() } else { String::new() },
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into(), "fork".into()],
            seeds: number,
        };
        let new = NewJob { work, plan: plan.into(), priority: 100, rank: 0, attempts_max: 3, deadline_s: 60 };
        QueuedJob::queued(number, new, 1_760_000_000)
    }

    #[test]
    fn the_queue_is_listed_and_each_job_explained() {
        let mut jobs = vec![
            job(1, "git:v6.12.3", "quick"),
            job(2, "deb:linux-image-6.12.117+deb12-with-a-very-long-flavour-amd64", "whole"),
            job(3, "git:v6.1\u{1b}[2J", ""),
            job(4, "deb:6.1", ""),
        ];
        let now = 1_760_000_100;
        jobs[0].claim("farm", now).unwrap();
        jobs[1].claim("farm", now).unwrap();
        jobs[1].end(1, Ending::Infra("no network".into()), now).unwrap();
        jobs[3].cancel(now).unwrap();
        let listed = queue(&jobs);
        assert_eq!(listed.lines().count(), 5, "{listed}");
        for word in
            [" running ", " on farm", " 1 of 3 ", ": no network", "…", "cancelled by hand", "micro (2), 1 seed "]
        {
            assert!(listed.contains(word), "{word}: {listed}");
        }
        assert!(!listed.contains('\u{1b}'), "{listed}");
        let open: Vec<QueuedJob> = jobs[..3].to_vec();
        let whys = [
            "farm does it; others may take it after 2025-10-09T",
            "the last try failed; the next is not before 2025-10-09T",
            "1 job is at work; it is the next",
            "it is over; `marvin queue add` queues it again",
        ];
        for (job, expected) in jobs.iter().zip(whys) {
            let told = queued_job(job, &why(job, &open, now));
            assert!(
                told.contains(&format!("why        {expected}")) && told.contains("suite      micro: getppid, fork"),
                "{told}"
            );
        }
        assert_eq!(queue(&[]), "the queue is empty\n");
    }
}

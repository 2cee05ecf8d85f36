//! `marvin status`: whether a lab is well, in one table: settings, trees, store, worker, queue, disk,
//! backup and messages. What the host lacks is `doctor`'s, and what was measured the dashboard's.

use config::ConfigFile;
use document::number::duration;
use model::{JobState, QueuedJob, UnixTime, sanitize_line};
use store::{Delivery, QueueOverview, Store, StoreError};

use super::watch::last_check;
use crate::exit::Exit;
use crate::session::{Session, now};

/// Jobs that are over and are looked at.
const OVER: u32 = 100;
/// How far back failed jobs count.
const FAILED_S: i64 = 86_400;
/// A backup is old after that, as in docs/operate.md.
const BACKUP_S: i64 = 2 * 86_400;
/// Least room of a data directory: a kernel's build needs about as much.
const FREE_MIN: u64 = 5 << 30;
/// Trees are checked at least once a day.
const CHECK_S: i64 = 86_400 + 3_600;
/// A job waits for long after that, where a worker should have taken it.
const WAIT_S: i64 = 3_600;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    what: &'static str,
    is_well: bool,
    text: String,
}

impl Line {
    fn well(what: &'static str, text: String) -> Self {
        Self {
            what,
            is_well: true,
            text,
        }
    }

    fn ill(what: &'static str, text: String) -> Self {
        Self {
            is_well: false,
            ..Self::well(what, text)
        }
    }
}

pub(crate) fn status(session: &Session) -> anyhow::Result<Exit> {
    let lines = match session.open_store_read_only() {
        Ok(store) => read(session, &store)?,
        // Nothing was stored yet, or it is gone.
        Err(error) if error.downcast_ref().is_some_and(is_empty) => {
            vec![
                settings(session),
                Line::ill("results", format!("{error:#}")),
            ]
        }
        Err(error) => return Err(error),
    };
    session.answer(None)?.write(format_lines(&lines))?;
    Ok(if lines.iter().all(|line| line.is_well) {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

fn is_empty(error: &StoreError) -> bool {
    matches!(error, StoreError::Empty { .. })
}

fn read(session: &Session, store: &Store) -> anyhow::Result<Vec<Line>> {
    let now_unix = store.time(now())?;
    let queue = store.queue_overview(now_unix, 1, OVER)?;
    let mut lines = vec![
        settings(session),
        results(store.newest_start()?, now_unix),
        worker(&queue, session.has_worker()?, now_unix),
        failures(&queue.over, now_unix),
        disk(store.free_bytes()),
        backup(store.last_backup(), now_unix),
        messages(&store.list_undelivered()?, now_unix),
    ];
    let has_trees = |site: &ConfigFile| !site.settings.trees.is_empty();
    if session.config().is_ok_and(has_trees) {
        lines.insert(1, trees(last_check(session.home()?), now_unix));
    }
    Ok(lines)
}

/// Returns whether marvin.toml can be read: a service with a wrong one does not start.
fn settings(session: &Session) -> Line {
    match session.config() {
        Ok(site) if site.file.is_none() => Line::well("settings", "no marvin.toml".to_owned()),
        Ok(_) => Line::well("settings", "marvin.toml is valid".to_owned()),
        Err(error) => Line::ill("settings", sanitize_line(&format!("{error:#}"))),
    }
}

/// Returns whether a `marvin watch` looks for new kernels.
fn trees(last: Option<UnixTime>, now_unix: UnixTime) -> Line {
    match last {
        None => Line::ill("trees", "never checked: start marvin watch".to_owned()),
        Some(last) if since(last, now_unix) > CHECK_S => Line::ill(
            "trees",
            format!(
                "last checked {} ago: start marvin watch",
                span(last, now_unix)
            ),
        ),
        Some(last) => Line::well("trees", format!("checked {} ago", span(last, now_unix))),
    }
}

fn format_lines(lines: &[Line]) -> String {
    let mut text = String::new();
    for Line {
        what,
        is_well,
        text: said,
    } in lines
    {
        let mark = if *is_well { "ok" } else { "NOT OK" };
        text.extend([format!("{what:<9}{mark:<8}{said}\n")]);
    }
    text
}

/// Returns how long something has been so: `2h10m`.
fn span(then: UnixTime, now_unix: UnixTime) -> String {
    duration(since(then, now_unix).unsigned_abs())
}

/// Seconds from one time to another; a time ahead of the clock is now.
fn since(then: UnixTime, now_unix: UnixTime) -> i64 {
    now_unix.seconds().saturating_sub(then.seconds()).max(0)
}

fn results(newest: Option<UnixTime>, now_unix: UnixTime) -> Line {
    Line::well(
        "results",
        newest.map_or_else(
            || "none yet".to_owned(),
            |newest| format!("the newest run began {} ago", span(newest, now_unix)),
        ),
    )
}

/// Returns whether jobs that wait or run have a worker.
fn worker(queue: &QueueOverview, has_worker: bool, now_unix: UnixTime) -> Line {
    let is_dead = |job: &&QueuedJob| match job.state {
        JobState::Running { until_unix, .. } => until_unix < now_unix,
        _ => false,
    };
    let oldest = queue
        .free_since_unix
        .iter()
        .min_by_key(|(_, since)| **since);
    if let (Some(job), false) = (queue.running.first(), has_worker) {
        let text = format!("the worker of job {} died: start marvin work", job.number);
        return Line::ill("worker", text);
    }
    if let Some(job) = queue.running.iter().find(is_dead) {
        let text = format!(
            "the worker of job {} has not been heard of: marvin queue list",
            job.number
        );
        return Line::ill("worker", text);
    }
    match oldest {
        Some((machine, waits)) if !has_worker => Line::ill(
            "worker",
            format!(
                "a job for {} has waited for {}, and no worker runs: start marvin work",
                sanitize_line(machine),
                span(*waits, now_unix)
            ),
        ),
        Some((machine, waits)) if queue.running.is_empty() && since(*waits, now_unix) > WAIT_S => {
            Line::ill(
                "worker",
                format!(
                    "a job for {} has waited for {}, and no job runs: marvin queue list",
                    sanitize_line(machine),
                    span(*waits, now_unix)
                ),
            )
        }
        _ => Line::well(
            "worker",
            match (queue.running.len(), has_worker) {
                (0, false) => "none runs, and no job waits".to_owned(),
                (0, true) => "runs; it has no job".to_owned(),
                (jobs, _) => format!("runs; jobs in hand: {jobs}"),
            },
        ),
    }
}

fn failures(over: &[QueuedJob], now_unix: UnixTime) -> Line {
    let is_recent = |job: &&QueuedJob| {
        let ended = job.ended_unix.map(|ended| since(ended, now_unix));
        ended.is_some_and(|ago| ago <= FAILED_S)
    };
    let recent: Vec<&QueuedJob> = over.iter().filter(is_recent).collect();
    let failed: Vec<&&QueuedJob> = recent
        .iter()
        .filter(|job| matches!(job.state, JobState::Failed))
        .collect();
    match failed.first() {
        None => Line::well(
            "jobs",
            format!("{} ended in the last day, none failed", recent.len()),
        ),
        Some(first) => Line::ill(
            "jobs",
            format!(
                "{} of {} failed in the last day: marvin queue why {}",
                failed.len(),
                recent.len(),
                first.number
            ),
        ),
    }
}

fn disk(free: Option<u64>) -> Line {
    match free {
        None => Line::well("disk", "the results are on a server".to_owned()),
        Some(free) => {
            let text = format!("{:.1} GiB free", free as f64 / f64::from(1 << 30));
            if free < FREE_MIN {
                Line::ill("disk", text + ": marvin gc --dry-run")
            } else {
                Line::well("disk", text)
            }
        }
    }
}

fn backup(last: Option<UnixTime>, now_unix: UnixTime) -> Line {
    match last {
        None => Line::ill("backup", "none known: marvin backup DIRECTORY".to_owned()),
        Some(last) if since(last, now_unix) > BACKUP_S => Line::ill(
            "backup",
            format!("the last was written {} ago", span(last, now_unix)),
        ),
        Some(last) => Line::well(
            "backup",
            format!("the last was written {} ago", span(last, now_unix)),
        ),
    }
}

fn messages(waiting: &[Delivery], now_unix: UnixTime) -> Line {
    let failed = waiting.iter().find(|delivery| !delivery.failure.is_empty());
    match (failed, waiting.first()) {
        (Some(failed), _) => Line::ill(
            "messages",
            format!(
                "{} undelivered; {} has failed for {}: {}",
                waiting.len(),
                sanitize_line(&failed.channel),
                span(failed.notice.raised_unix, now_unix),
                sanitize_line(&failed.failure)
            ),
        ),
        (None, Some(first)) => Line::well(
            "messages",
            format!(
                "{} on their way for {}",
                waiting.len(),
                span(first.notice.raised_unix, now_unix)
            ),
        ),
        (None, None) => Line::well("messages", "all delivered".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use model::UnixTime;
    use store::{Delivery, Notice, QueueOverview};

    use super::{backup, disk, format_lines, messages, trees, worker};

    const NOW: UnixTime = UnixTime::new(1_000_000);

    #[test]
    fn waiting_jobs_without_worker_are_ill() {
        let mut queue = QueueOverview::default();
        assert!(worker(&queue, false, NOW).is_well, "nothing waits");
        let since = NOW.minus_seconds(7_200);
        queue.free_since_unix.insert("exact".to_owned(), since);
        let lines = [worker(&queue, false, NOW), worker(&queue, true, NOW)];
        insta::assert_snapshot!(format_lines(&lines), @r"
        worker   NOT OK  a job for exact has waited for 2h00m, and no worker runs: start marvin work
        worker   NOT OK  a job for exact has waited for 2h00m, and no job runs: marvin queue list
        ");
        queue
            .free_since_unix
            .insert("exact".to_owned(), NOW.minus_seconds(60));
        assert!(worker(&queue, true, NOW).is_well, "it takes it soon");
    }

    #[test]
    fn disk_backup_and_messages_say_what_is_wrong() {
        let delivery = Delivery {
            number: 1,
            notice: Notice {
                subject: "x".to_owned(),
                headline: String::new(),
                body: String::new(),
                raised_unix: NOW.minus_seconds(600),
            },
            channel: "us".to_owned(),
            tries: 2,
            failure: "connection refused".to_owned(),
        };
        let lines = [
            disk(Some(1 << 30)),
            disk(Some(50 << 30)),
            disk(None),
            backup(None, NOW),
            backup(Some(NOW.minus_seconds(3 * 86_400)), NOW),
            backup(Some(NOW.minus_seconds(3_600)), NOW),
            messages(&[delivery], NOW),
            messages(&[], NOW),
            trees(None, NOW),
            trees(Some(NOW.minus_seconds(2 * 86_400)), NOW),
            trees(Some(NOW.minus_seconds(90)), NOW),
        ];
        insta::assert_snapshot!(format_lines(&lines), @r"
        disk     NOT OK  1.0 GiB free: marvin gc --dry-run
        disk     ok      50.0 GiB free
        disk     ok      the results are on a server
        backup   NOT OK  none known: marvin backup DIRECTORY
        backup   NOT OK  the last was written 3d00h ago
        backup   ok      the last was written 1h00m ago
        messages NOT OK  1 undelivered; us has failed for 10m: connection refused
        messages ok      all delivered
        trees    NOT OK  never checked: start marvin watch
        trees    NOT OK  last checked 2d00h ago: start marvin watch
        trees    ok      checked 1m ago
        ");
    }
}

//! A pipe within the program that its reader does not read: who writes into it waits for ever, and
//! with it the process that waits for its end.

use crate::budget::View;
use crate::facts::Wait;
use crate::finding::Finding;
use crate::waits::{Kind, describe_doing, is_call, is_file, is_in, kind, mostly, own_path};

use super::blocked::{BLOCKED, THREAD_STATES};

/// New processes per second from which on the reader is not stuck.
const CREATING: f64 = 5.0;

pub(super) fn pipe(view: &View) -> Option<Finding> {
    let facts = view.facts;
    let writes = |wait: &Wait| is_call(wait, &["write", "writev"]) || is_in(wait, &["pipe_write"]);
    let is_unread = |wait: &Wait| {
        let reader = mostly(facts, wait);
        let next = reader.and_then(|(_, doing, _)| doing.wait.as_ref());
        next.is_some_and(|next| kind(facts, next) == Kind::Join)
    };
    let own = facts
        .waits
        .iter()
        .filter(|wait| is_file(wait, "pipe:") && writes(wait) && is_unread(wait));
    let longest = own.max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let (reader, doing, _) = mostly(facts, longest)?;
    let writer = longest.threads.first()?;
    let mut threads = facts.threads.iter();
    let writer = threads.find(|thread| thread.id == *writer)?;
    let share = longest.seconds / writer.total_s.max(f64::MIN_POSITIVE);
    if share < BLOCKED || reader.process == writer.process {
        return None;
    }
    // One that starts other processes meanwhile goes on, and reads slowly.
    let created = facts.short_lived.created.unwrap_or_default();
    if view.per_second(created.processes) > CREATING {
        return None;
    }
    let from = own_path(longest).map_or_else(String::new, |own| format!(" in {own}"));
    Some(
        Finding::new(
            format!(
                "process {} {} waits to write into a full pipe{from} that process {} {} does not read: that {}",
                writer.process,
                writer.name,
                reader.process,
                reader.name,
                describe_doing(facts, reader, doing)
            ),
            share.min(1.0),
        )
        .with(
            "the writer is blocked in pipe_write, and the reader waits for its end".into(),
            THREAD_STATES,
            "30 %",
            "work of the writer",
        )
        .advise("Read the pipe until its end before waiting for the process, or give it a file.")
        .look("ls -l /proc/PID/fd"),
    )
}

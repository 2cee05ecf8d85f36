//! Pipes within the program at which its processes wait for each other: one that its reader does not
//! read, and one whose write end is still open in a process that waits for the reader.

use crate::budget::View;
use crate::facts::{Behind, Facts, Object, Thread, Wait};
use crate::finding::Finding;
use crate::waits::{Kind, describe_doing, is_call, is_file, is_in, kind, mostly, own_path};

use super::blocked::{BLOCKED, THREAD_STATES};

/// New processes per second from which on the reader is not stuck.
const CREATING: f64 = 5.0;
/// The least part of the observed time of a wait that may end from outside, and the most of it that a
/// program runs which does nothing.
const LASTING: f64 = 0.5;
const NOTHING: f64 = 0.05;

/// Whether a program does nothing, and waits for nothing from outside.
fn is_stuck(facts: &Facts) -> bool {
    let running: f64 = facts.threads.iter().map(Thread::running_s).sum();
    let lasting = facts.waits.iter();
    let mut lasting = lasting.filter(|wait| wait.seconds > LASTING * facts.seconds);
    let is_inside = |wait: &Wait| match kind(facts, wait) {
        Kind::Join | Kind::Condition | Kind::Lock => true,
        // A client would come from outside.
        Kind::Idle => matches!(wait.object, Object::Futex(_)),
        Kind::Pipe => is_file(wait, "pipe:"),
        _ => false,
    };
    running <= NOTHING * facts.seconds && lasting.all(is_inside)
}

/// Returns the process at the other end of a pipe that waits for the end of another one or at another
/// pipe.
fn stuck_peer<'f>(
    facts: &'f Facts,
    wait: &'f Wait,
    is_alone: bool,
) -> Option<(&'f Behind, String)> {
    let (behind, doing, _) = mostly(facts, wait)?;
    let next = doing.wait.as_ref()?;
    let is_waiting = match kind(facts, next) {
        Kind::Join => true,
        Kind::Pipe => is_alone,
        _ => false,
    };
    is_waiting.then(|| (behind, describe_doing(facts, behind, doing)))
}

pub(super) fn pipe(view: &View) -> Option<Finding> {
    let facts = view.facts;
    let is_alone = is_stuck(facts);
    let writes = |wait: &Wait| is_call(wait, &["write", "writev"]) || is_in(wait, &["pipe_write"]);
    let at_pipes = facts.waits.iter().filter(|wait| is_file(wait, "pipe:"));
    let own = at_pipes
        .filter(|wait| (writes(wait) || is_alone) && stuck_peer(facts, wait, is_alone).is_some());
    // Who writes says more than who reads.
    let longest = own.max_by(|one, other| {
        let by_way = writes(one).cmp(&writes(other));
        by_way.then(one.seconds.total_cmp(&other.seconds))
    })?;
    let (peer, does) = stuck_peer(facts, longest, is_alone)?;
    let waiter = longest.threads.first()?;
    let mut threads = facts.threads.iter();
    let waiter = threads.find(|thread| thread.id == *waiter)?;
    let share = longest.seconds / waiter.total_s.max(f64::MIN_POSITIVE);
    if share < BLOCKED || peer.process == waiter.process {
        return None;
    }
    // One that starts other processes meanwhile goes on, and reads slowly.
    let created = facts.short_lived.created.unwrap_or_default();
    if view.per_second(created.processes) > CREATING {
        return None;
    }
    let from = own_path(longest).map_or_else(String::new, |own| format!(" in {own}"));
    let cycle = match is_alone {
        true => ": each waits for the other (a deadlock)",
        false => "",
    };
    let (of_waiter, of_peer) = match writes(longest) {
        true => ("to write into a full pipe", "does not read"),
        false => (
            "to read from a pipe without an end",
            "still has open for writing",
        ),
    };
    let finding = Finding::new(
        format!(
            "process {} {} waits {of_waiter}{from} that process {} {} {of_peer}: that {does}{cycle}",
            waiter.process, waiter.name, peer.process, peer.name,
        ),
        share.min(1.0),
    )
    .with(
        "one is blocked at the pipe, and the other one waits for its end or at another pipe".into(),
        THREAD_STATES,
        "30 %",
        "work of either",
    )
    .look("ls -l /proc/PID/fd");
    Some(match writes(longest) {
        true => finding.advise(
            "Read the pipe until its end before waiting for the process, or give it a file.",
        ),
        false => {
            finding.advise("Close the write end, and its copies, before waiting for the reader.")
        }
    })
}

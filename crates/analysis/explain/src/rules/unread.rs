//! Pipes within the program at which its processes wait for each other: one that its reader does not
//! read, and one whose write end is still open in a process that waits for the reader.

use crate::budget::View;
use crate::facts::{Behind, Facts, Object, Thread, Wait};
use crate::finding::Finding;
use crate::waits::{Kind, describe_wait, is_call, is_file, is_in, kind, mostly, own_path};

use super::blocked::{BLOCKED, THREAD_STATES};

/// New processes per second from which on the reader is not stuck; where nothing else goes on they are
/// those that it began with.
const CREATING: f64 = 5.0;
const STARTING: f64 = 20.0;
/// The least part of the observed time of a wait that may end from outside, and the most of it that a
/// program runs which does nothing.
const LASTING: f64 = 0.5;
const NOTHING: f64 = 0.05;

/// Whether a program does nothing, and waits for nothing from outside: the processes of which some may
/// do so in further threads are `without`.
fn is_stuck(facts: &Facts, without: &[u32]) -> bool {
    let running: f64 = facts.threads.iter().map(Thread::running_s).sum();
    let lasting = facts.waits.iter();
    let mut lasting = lasting.filter(|wait| wait.seconds > LASTING * facts.seconds);
    let is_inside = |wait: &Wait| match kind(facts, wait) {
        Kind::Join | Kind::Condition | Kind::Lock => true,
        // A client would come from outside.
        Kind::Idle => matches!(wait.object, Object::Futex(_)),
        Kind::Pipe => is_file(wait, "pipe:"),
        _ => without.iter().any(|process| is_of(facts, wait, *process)),
    };
    running <= NOTHING * facts.seconds && lasting.all(is_inside)
}

/// Whether a thread of a process waits there.
fn is_of(facts: &Facts, wait: &Wait, process: u32) -> bool {
    let mut threads = facts.threads.iter();
    threads.any(|one| one.process == process && wait.threads.contains(&one.id))
}

/// Returns where a process at the other end of a pipe waits for the end of another one, or at a pipe
/// within the program; others of its threads may sleep.
fn stuck_wait<'f>(facts: &'f Facts, behind: &'f Behind, is_alone: bool) -> Option<&'f Wait> {
    let is_its = |wait: &Wait| is_of(facts, wait, behind.process);
    let doing = behind.doing.iter().filter_map(|one| one.wait.as_deref());
    let lasting = facts
        .waits
        .iter()
        .filter(|wait| wait.seconds > LASTING * facts.seconds && is_its(wait));
    let mut all = doing.chain(lasting);
    let joins = all.clone().find(|wait| kind(facts, wait) == Kind::Join);
    joins.or_else(|| all.find(|wait| is_alone && kind(facts, wait) == Kind::Pipe))
}

/// Wake-ups of a thread that sleeps until the time is over.
const ASLEEP: u64 = 3;

/// Whether nothing comes from a pipe any more: the program does nothing, and each process that has its
/// other end waits for the end of another one, or at a pipe itself.
fn is_dead(facts: &Facts, wait: &Wait) -> bool {
    let holders: Vec<u32> = wait.behind.iter().map(|behind| behind.process).collect();
    // Another thread of it that wakes up may use the pipe.
    let wakes_up = |behind: &Behind| {
        let mut others = facts.threads.iter();
        let is_other = |one: &Thread| {
            one.process == behind.process && one.id != behind.process && one.voluntary > ASLEEP
        };
        others.any(is_other)
    };
    let waits = |behind: &Behind| stuck_wait(facts, behind, true).is_some() && !wakes_up(behind);
    wait.seconds > LASTING * facts.seconds
        && !holders.is_empty()
        && wait.behind.iter().all(waits)
        && is_stuck(facts, &holders)
}

/// Returns the process at the other end of a pipe that waits for the end of another one or at another
/// pipe.
fn stuck_peer<'f>(
    facts: &'f Facts,
    wait: &'f Wait,
    is_alone: bool,
) -> Option<(&'f Behind, String)> {
    let is_dead = is_dead(facts, wait);
    let is_reader = |behind: &Behind| wait.threads.contains(&behind.thread);
    let others = wait.behind.iter().filter(|behind| !is_reader(behind));
    let behind = match mostly(facts, wait) {
        Some((behind, ..)) if !is_dead => behind,
        _ => others
            .clone()
            .find(|behind| stuck_wait(facts, behind, false).is_some())
            .or(others.clone().next())?,
    };
    let next = stuck_wait(facts, behind, is_alone || is_dead)?;
    Some((behind, describe_wait(facts, next)))
}

pub(super) fn pipe(view: &View) -> Option<Finding> {
    let facts = view.facts;
    let is_alone = is_stuck(facts, &[]);
    let writes = |wait: &Wait| is_call(wait, &["write", "writev"]) || is_in(wait, &["pipe_write"]);
    let at_pipes = facts.waits.iter().filter(|wait| is_file(wait, "pipe:"));
    let own = at_pipes.filter(|wait| {
        let may_be = writes(wait) || is_alone || is_dead(facts, wait);
        may_be && stuck_peer(facts, wait, is_alone).is_some()
    });
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
    let from = own_path(longest).map_or_else(String::new, |own| format!(" in {own}"));
    // Then all else of the program comes after that.
    let is_deadlock = is_alone || is_dead(facts, longest);
    // One that starts other processes meanwhile goes on, and reads slowly.
    let created = facts.short_lived.created.unwrap_or_default();
    let most = if is_deadlock { STARTING } else { CREATING };
    if view.per_second(created.processes) > most {
        return None;
    }
    let share = if is_deadlock { 1.0 } else { share.min(1.0) };
    let cycle = match is_deadlock {
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
        share,
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

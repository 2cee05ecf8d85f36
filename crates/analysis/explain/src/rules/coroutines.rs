//! Coroutines of CPython that wait: the thread of their loop of events is idle, whatever they wait for.

use std::collections::BTreeMap;

use crate::between::between;
use crate::budget::View;
use crate::callers::{is_own, own_path};
use crate::facts::Parked;
use crate::finding::Finding;
use crate::waits::{Kind, kind};

use super::blocked::BLOCKED;
use super::sockets;

/// The least number of coroutines, on average, that are named.
const LEAST: f64 = 0.3;
/// Groups that are named.
const GROUPS: usize = 3;
/// How functions of the library begin.
const ASYNCIO: &str = "Python's asyncio.";

/// What coroutines wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Something that another coroutine has or does.
    Other,
    /// Who is at the other end of a socket.
    Peer,
    /// What is not known: a task, a thread of an executor, or any other code that sets a future.
    Future,
    Sleep,
    /// The end of others that wait themselves.
    End,
    /// Work, or clients.
    Idle,
}

/// Functions of asyncio (Lib/asyncio/{locks,queues,tasks,threads,streams,base_events}.py) by the parts of
/// their names, with what a coroutine waits for there.
const WAYS: [(&str, Way, &str); 19] = [
    ("Lock.acquire", Way::Other, "for an asyncio.Lock"),
    (
        "Semaphore.acquire",
        Way::Other,
        "for a permit of an asyncio.Semaphore",
    ),
    (
        "Condition.wait",
        Way::Other,
        "for another one to notify it (asyncio.Condition)",
    ),
    (
        "Event.wait",
        Way::Other,
        "for another one to set an asyncio.Event",
    ),
    (
        "Barrier.wait",
        Way::Other,
        "for others at an asyncio.Barrier",
    ),
    (
        "Queue.put",
        Way::Other,
        "for room in a full asyncio.Queue (put)",
    ),
    (
        "Queue.join",
        Way::Other,
        "for all items of an asyncio.Queue to be marked done (join, task_done)",
    ),
    (
        "to_thread",
        Way::Other,
        "for a thread of the executor (to_thread)",
    ),
    (
        "drain",
        Way::Peer,
        "for the peer of a socket to read (drain)",
    ),
    ("StreamReader.", Way::Peer, "for the peer of a socket"),
    ("open_connection", Way::Peer, "for a connection"),
    ("create_connection", Way::Peer, "for a connection"),
    ("getaddrinfo", Way::Peer, "for a name server"),
    (".sock_", Way::Peer, "for the peer of a socket"),
    ("Process.", Way::Peer, "for a child"),
    ("asyncio.sleep", Way::Sleep, "by choice (asyncio.sleep)"),
    ("Queue.get", Way::Idle, "for work (asyncio.Queue.get)"),
    ("serve_forever", Way::Idle, "for clients"),
    ("asyncio.wait", Way::End, "for the end of others"),
];

/// Returns what a coroutine waits for: by the innermost function of asyncio below its own ones.
fn way(parked: &Parked) -> (Way, &'static str) {
    let innermost = parked.stack.first().map_or("", String::as_str);
    let is_of_loop = innermost.starts_with(ASYNCIO);
    let known = WAYS.iter().find(|(part, ..)| innermost.contains(part));
    match known.filter(|_| is_of_loop) {
        Some((_, way, what)) => (*way, what),
        None => (
            Way::Future,
            "for a result (a future: of a task, or of a thread of an executor)",
        ),
    }
}

/// Coroutines that wait for one thing at one place.
type Group = (Way, &'static str, String);

/// Returns the groups of a program's own coroutines, the one to name first before all others.
fn groups(view: &View) -> Vec<(Group, f64)> {
    let mut groups: BTreeMap<Group, f64> = BTreeMap::new();
    for parked in &view.facts.coroutines {
        let Some(place) = own_path(&parked.stack).filter(|_| has_own(parked)) else {
            continue;
        };
        let (way, what) = way(parked);
        *groups.entry((way, what, place)).or_default() += parked.number;
    }
    let mut groups: Vec<(Group, f64)> = groups.into_iter().collect();
    groups.retain(|(_, number)| *number >= LEAST);
    groups.sort_by(|((one, ..), more), ((other, ..), less)| {
        one.cmp(other).then_with(|| less.total_cmp(more))
    });
    groups
}

fn has_own(parked: &Parked) -> bool {
    parked.stack.iter().any(|function| is_own(function))
}

fn describe((way, what, place): &Group, number: f64) -> String {
    let [verb, plural] = match way {
        Way::Sleep => ["sleeps", "sleep"],
        _ => ["waits", "wait"],
    };
    match number.round() {
        ..=1.0 => format!("1 coroutine {verb} {what} in {place}"),
        many => format!("{many:.0} coroutines {plural} {what} in {place}"),
    }
}

pub(super) fn waiting(view: &View) -> Option<Finding> {
    let groups = groups(view);
    let ((first, what, _), number) = groups.first()?;
    // A timer of the loop is who of them sleeps.
    let share = view.blocked_in(|wait| {
        matches!(
            kind(view.facts, wait),
            Kind::Idle | Kind::Events | Kind::Sleep
        )
    });
    if share < BLOCKED || *first == Way::Idle {
        return None;
    }
    let named = groups.iter().take(GROUPS);
    let named: Vec<String> = named
        .map(|(group, number)| describe(group, *number))
        .collect();
    let has = |wanted: &[Way]| groups.iter().any(|((way, ..), _)| wanted.contains(way));
    let is_for_others = *first == Way::Other;
    let left = match has(&[Way::Peer, Way::Sleep, Way::Future, Way::Idle]) {
        false if is_for_others && (what.contains("Lock") || what.contains("permit")) => {
            "; no other coroutine is left that could give it back: one that waits itself has it (a deadlock), or one that has ended had it"
        }
        false if is_for_others => "; no other coroutine is left to do that",
        _ => "",
    };
    let taken = super::pools::taken_pool(view).filter(|_| has(&[Way::Future, Way::Other]));
    let taken = taken.map_or_else(String::new, |taken| {
        format!(
            "; all {} threads of its executor (run_in_executor, to_thread) are in tasks, and others find none: one {}",
            taken.threads, taken.does
        )
    });
    let between = match &*between(view.facts) {
        "" => sockets::connecting(view),
        between => between.to_owned(),
    };
    let finding = Finding::new(named.join("; ") + left + &taken + &between, share).with(
        format!("{number:.1} coroutines there on average"),
        "objects of CPython's collector, /proc/PID/mem",
        "0.3",
        "a loop of events without work",
    );
    let finding = match first {
        Way::Other => {
            finding.advise("Hold it for less, and not while its holder awaits something slow.")
        }
        Way::Peer => finding.advise("Look at the peer; ask it less often, or several at a time."),
        Way::Sleep => finding.advise("Await the event instead of sleeping."),
        Way::Future | Way::End | Way::Idle => finding
            .advise("See who is to set the result: a task, a thread of the executor, or none.")
            .doubt(),
    };
    Some(finding.look("asyncio.all_tasks(), task.print_stack()"))
}

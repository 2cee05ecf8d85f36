//! Goroutines of Go that wait: threads of a Go program that have nothing to run are idle, whatever
//! its goroutines wait for.

use crate::between::between;
use crate::budget::View;
use crate::callers::{entry, is_entry, is_own, is_start, own_caller, own_path};
use crate::facts::{Parked, Stack, Wait, WatchedKind};
use crate::finding::{Finding, percent};
use crate::waits::{Kind, kind};

use super::blocked::BLOCKED;
use super::sockets;
use super::system::of_call;

/// The least number of goroutines, on average, that are named.
const LEAST: f64 = 0.3;
/// Further groups that are named.
const OTHERS: usize = 2;
/// The part of running from which on a program does something.
const BUSY: f64 = 0.05;
/// Functions of Go's library that only lead to the way of waiting.
const INNER: [&str; 4] = ["runtime.", "sync.", "internal/", "time.Sleep"];

/// What goroutines wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Work, a client, or the end of other goroutines.
    Idle,
    Lock,
    /// The peer of a socket.
    Peer,
    /// Another goroutine.
    Channel,
    Sleep,
}

fn has(parked: &Parked, part: &str) -> bool {
    parked.stack.iter().any(|function| function.contains(part))
}

/// Returns the function of Go's library in which goroutines wait, nearest to it; `None` if their
/// own function waits itself.
fn library(parked: &Parked) -> Option<&str> {
    let own = own_caller(&parked.stack)?;
    let mut before = parked.stack.iter().take_while(|one| *one != own);
    before.find(|one| !is_inner(one)).map(String::as_str)
}

fn is_inner(function: &str) -> bool {
    INNER.iter().any(|part| function.starts_with(part))
}

fn way(parked: &Parked) -> Way {
    let mut own = parked.stack.iter().filter(|one| is_own(one));
    let reason = &*parked.reason;
    let is_end = |parked: &Parked| ENDS.iter().any(|part| has(parked, part));
    if own.next().is_none() || is_end(parked) || has(parked, "Accept") {
        return Way::Idle;
    }
    if has(parked, "sync.(*Mutex)") || has(parked, "sync.(*RWMutex)") {
        return Way::Lock;
    }
    match reason {
        "IO wait" => Way::Peer,
        "sleep" => Way::Sleep,
        _ if library(parked).is_none() && is_loop(parked) => Way::Idle,
        _ => Way::Channel,
    }
}

fn is_lookup(parked: &Parked) -> bool {
    has(parked, "net.(*Resolver)") || has(parked, "net.cgoLookup")
}

/// Whether goroutines wait in the function that they began with, as workers do for work, or are the
/// main one.
fn is_loop(parked: &Parked) -> bool {
    let own = own_caller(&parked.stack);
    let mut callers = parked.stack.iter().skip_while(|one| own != Some(*one));
    let above = callers.nth(1).map_or("", String::as_str);
    is_start(above) || has(parked, "runtime.main")
}

fn wait_of(goroutines: f64) -> String {
    match goroutines.round() {
        ..=1.0 => "1 goroutine waits".into(),
        many => format!("{many:.0} goroutines wait"),
    }
}

/// Returns where goroutines wait, as the end of a sentence.
fn place(parked: &Parked) -> String {
    let Some(own) = own_path(&parked.stack) else {
        return String::new();
    };
    let inner = library(parked);
    let outer = entry(&parked.stack, "").filter(|outer| is_entry(outer) && !is_inner(outer));
    match (inner, outer) {
        (Some(inner), Some(outer)) if inner != outer => format!(" in {inner} by {outer} for {own}"),
        (Some(one), _) | (None, Some(one)) => format!(" in {one} for {own}"),
        (None, None) => format!(" in {own}"),
    }
}

/// Returns the sockets that the program's pollers watch, as the middle of a sentence.
fn peers(view: &View, parked: &Parked) -> String {
    let waits = view.facts.waits.iter();
    let of_process = waits.filter(|wait| {
        let mut threads = view.facts.threads.iter();
        threads.any(|thread| thread.process == parked.process && wait.threads.contains(&thread.id))
    });
    let watched = of_process.flat_map(|wait| &wait.watched);
    let mut files: Vec<&str> = watched
        .filter(|one| one.kind == WatchedKind::Socket)
        .map(|one| &*one.file)
        .collect();
    files.sort_unstable();
    files.dedup();
    files.truncate(2);
    if files.is_empty() {
        String::new()
    } else {
        format!(" ({})", files.join(" and "))
    }
}

/// Returns the processes that a process started and that are there all along, as the middle of a
/// sentence: they may have the other end of its pipes.
fn holders(view: &View, parked: &Parked) -> String {
    let threads = view.facts.threads.iter();
    let others = threads.filter(|thread| {
        let is_lasting = 2.0 * thread.total_s >= view.facts.seconds;
        thread.id == thread.process && thread.process != parked.process && is_lasting
    });
    let mut names: Vec<String> = others
        .map(|thread| format!("{} {}", thread.process, thread.name))
        .collect();
    names.truncate(2);
    match names.is_empty() {
        true => String::new(),
        false => format!(", which the process {} may hold open", names.join(" or ")),
    }
}

fn has_function(parked: &Parked, name: &str) -> bool {
    parked.stack.iter().any(|function| function.contains(name))
}

/// Wake-ups per second of a process that are worth a word.
const OFTEN: f64 = 20.0;

/// Returns how often the threads of a process wake up, as the middle of a sentence.
fn wakeups(view: &View, parked: &Parked) -> String {
    let threads = view.facts.threads.iter();
    let of_process = threads.filter(|thread| thread.process == parked.process);
    let each_s = view.per_second(of_process.map(|thread| thread.voluntary).sum());
    if each_s < OFTEN {
        return String::new();
    }
    format!(", and its process wakes up {each_s:.0} times a second,")
}

fn describe(view: &View, way: Way, parked: &Parked) -> String {
    let wait = wait_of(parked.number);
    let what = match way {
        Way::Idle => "for work".to_owned(),
        Way::Lock => "for a mutex".to_owned(),
        Way::Peer if is_lookup(parked) => {
            format!("for a name server{}", peers(view, parked))
        }
        Way::Peer if has(parked, "os.(*File)") => {
            format!("for the other end of a pipe{}", holders(view, parked))
        }
        Way::Peer => format!("for the peer of a socket{}", peers(view, parked)),
        // os/exec/exec.go: the command has ended, and the pipes of its output have not.
        Way::Channel if has_function(parked, "os/exec.(*Cmd).awaitGoroutines") => {
            "for the end of a command's output: the command has ended, and a process that it started (a grandchild) still has the write end of the pipe open".to_owned()
        }
        Way::Channel => format!("for others ({})", parked.reason),
        Way::Sleep => {
            let sleep = wait.replace("wait", "sleep");
            let often = wakeups(view, parked);
            return format!("{sleep} by choice (time.Sleep){often}{}", place(parked));
        }
    };
    format!("{wait} {what}{}", place(parked))
}

/// Returns the groups of goroutines that wait for something, the one to name first before all
/// others.
fn groups<'v>(view: &'v View) -> Vec<(Way, &'v Parked)> {
    let parked = view.facts.parked.iter();
    let mut groups: Vec<(Way, &Parked)> = parked.map(|one| (way(one), one)).collect();
    groups.retain(|(way, one)| *way != Way::Idle && one.number >= LEAST);
    groups.sort_by(|(one_way, one), (other_way, other)| {
        // A lookup of names is what others of the program wait for, and not the other way round.
        let rank = |way: &Way, parked: &Parked| match way {
            _ if is_lookup(parked) => 0,
            Way::Sleep => 2,
            _ => 1,
        };
        let by_way = rank(one_way, one).cmp(&rank(other_way, other));
        by_way.then(other.number.total_cmp(&one.number))
    });
    // Who sleeps or waits for a peer may have the lock that the others wait for.
    groups.sort_by_key(|(way, _)| *way != Way::Lock);
    groups
}

/// Functions in which Go's runtime stops all goroutines and lets them go on, other than for its
/// collector, and in which its threads wait meanwhile (src/runtime/proc.go).
const STOPS: [&str; 2] = ["runtime.stopTheWorld.func", "runtime.startTheWorld.func"];
const STOPPED: &str = "runtime.gcstopm";
/// Functions of Go's library that do so (src/runtime/{mstats,debug,mprof,proc}.go).
const STOPPERS: [&str; 5] = [
    "runtime.ReadMemStats",
    "runtime.GOMAXPROCS",
    "runtime.Stack",
    "runtime.GoroutineProfile",
    "runtime/pprof.",
];
/// The least share of stopping, and of what it makes the threads do.
const STOPPING: f64 = 0.02;
const WITH_STOPPED: f64 = 0.1;

/// All goroutines are stopped again and again, as for statistics of memory.
pub(super) fn stopped_world(view: &View) -> Option<Finding> {
    let samples = view.facts.samples.as_ref()?;
    let is_stop = |function: &String| STOPS.iter().any(|part| function.starts_with(part));
    let stops = |stack: &Stack| stack.user.iter().any(is_stop);
    let is_stopper = |one: &&String| STOPPERS.iter().any(|name| one.starts_with(name));
    let is_part = |stack: &Stack| {
        let of_it = |one: &String| one.starts_with(STOPPED) || is_stopper(&one);
        stops(stack) || stack.user.iter().any(of_it)
    };
    let share = view.running_in(is_part);
    if view.running_in(stops) < STOPPING || share < WITH_STOPPED {
        return None;
    }
    let stacks = samples.stacks.iter();
    let calls = stacks.filter(|stack| stack.user.iter().any(|one| is_stopper(&one)));
    let most = calls.max_by_key(|stack| stack.samples);
    let stopper = most.and_then(|stack| stack.user.iter().find(is_stopper));
    let by = match (stopper, most.and_then(|stack| own_path(&stack.user))) {
        (Some(stopper), Some(own)) => format!(", by {stopper} for {own}"),
        (Some(stopper), None) => format!(", by {stopper}"),
        _ => " (as runtime.ReadMemStats and runtime.Stack do)".to_owned(),
    };
    Some(
        Finding::new(
            format!(
                "it stops all goroutines again and again, stop-the-world without a collection{by}"
            ),
            share,
        )
        .with(
            format!(
                "{} of the time in stopping and starting them",
                percent(share)
            ),
            "cpu-clock",
            "10 %",
            "the collector of garbage",
        )
        .advise("Ask less often: metrics each second, runtime/metrics instead of ReadMemStats.")
        .look("perf record -g -p PID"),
    )
}

/// How functions begin in which Go hands its work to a thread to which a goroutine is bound
/// (src/runtime/proc.go), and the least part of calls of futex there.
const BOUND: [&str; 2] = ["runtime.stoplockedm", "runtime.startlockedm"];
const OF_BOUND: f64 = 0.25;

/// Returns that a goroutine is bound to its thread, as the end of a sentence of waking threads.
pub(super) fn bound(view: &View) -> String {
    let is_bound = |function: &String| BOUND.iter().any(|begin| function.starts_with(begin));
    let bound = of_call(view, "futex", |stack| stack.user.iter().any(is_bound));
    if bound < OF_BOUND {
        return String::new();
    }
    "; a goroutine of it is bound to its thread (runtime.LockOSThread): each hand-over to that is a switch of \
     threads"
        .into()
}

/// Functions in which goroutines wait for the end of others; `WaitGroup.Go` only starts one.
const ENDS: [&str; 2] = ["sync.(*WaitGroup).Wait", "errgroup.(*Group).Wait"];

/// Whether no thread of a program runs or waits for something outside.
fn does_nothing(view: &View) -> bool {
    let mut waits = view.facts.waits.iter();
    let is_idle = |wait: &Wait| {
        let kind = kind(view.facts, wait);
        kind.is_soft() || kind == Kind::Stopped
    };
    view.budget.running() <= BUSY && waits.all(is_idle)
}

/// Whether all goroutines of a program wait for locks, for the end of others or for clients: none of
/// those that wait for work, as at a channel, may have a lock.
fn are_all_at_locks(view: &View) -> bool {
    let parked = view.facts.parked.iter();
    let mut of_program = parked.filter(|one| one.stack.iter().any(|function| is_own(function)));
    of_program.all(|one| {
        let is_end = ENDS.iter().any(|part| has(one, part));
        way(one) == Way::Lock || is_end || has(one, "Accept")
    })
}

/// A goroutine that waits for the end of others, of which none is left.
fn lost_end(view: &View) -> Option<Finding> {
    let waits_for_end = |parked: &&Parked| ENDS.iter().any(|part| has(parked, part));
    let all = view.facts.parked.iter();
    let waiter = all.clone().find(waits_for_end)?;
    let is_other = |parked: &Parked| {
        let is_of_program = parked.stack.iter().any(|one| is_own(one));
        let is_left = !waits_for_end(&parked) && !has(parked, "runtime.main");
        parked.process == waiter.process && is_of_program && is_left
    };
    if all.clone().any(is_other) || !does_nothing(view) || waiter.number < LEAST {
        return None;
    }
    let share = view.budget.blocked;
    Some(
        Finding::new(
            format!(
                "{} for the end of others (a WaitGroup){}, and no other goroutine is left to end (a missing Done)",
                wait_of(waiter.number),
                place(waiter)
            ),
            share,
        )
        .with(
            format!("{:.1} goroutines there on average", waiter.number),
            "runtime.allgs, /proc/PID/mem",
            "0.3",
            "threads of Go's runtime without work",
        )
        .advise("Call Done by defer, on all ways out of the goroutine.")
        .look("a profile of goroutines (net/http/pprof), or SIGQUIT for all stacks"),
    )
}

pub(super) fn parked(view: &View) -> Option<Finding> {
    let groups = groups(view);
    let Some((first, parked)) = groups.first().copied() else {
        return lost_end(view);
    };
    let share = view.blocked_in(|wait| {
        matches!(
            kind(view.facts, wait),
            Kind::Idle | Kind::Events | Kind::Condition
        )
    });
    if share < BLOCKED {
        return None;
    }
    let mut told = vec![describe(view, first, parked)];
    if first == Way::Lock {
        let mut further = groups.iter().skip(1).filter(|(way, _)| *way == first);
        told.extend(further.next().map(|(way, one)| describe(view, *way, one)));
        if are_all_at_locks(view) && does_nothing(view) {
            told.push(
                "no other goroutine works: one that holds it waits for it again, or for what another one \
                 holds (a deadlock)"
                    .into(),
            );
        }
    }
    let others = groups.iter().skip(1).filter(|(way, _)| *way != first);
    told.extend(
        others
            .take(OTHERS)
            .map(|(way, one)| describe(view, *way, one)),
    );
    let between = match &*between(view.facts) {
        "" => sockets::connecting(view),
        between => between.to_owned(),
    };
    let finding = Finding::new(told.join("; ") + &between, share).with(
        format!("{:.1} goroutines there on average", parked.number),
        "runtime.allgs, /proc/PID/mem",
        "0.3",
        "threads of Go's runtime without work",
    );
    let finding = match first {
        Way::Lock => finding.advise("Hold the mutex for less, and not while its holder waits."),
        Way::Peer => finding.advise("Look at the peer; ask it less often, or several at a time."),
        Way::Sleep => finding.advise("Wait for the event instead of sleeping."),
        // A pool of workers without work looks the same.
        Way::Idle | Way::Channel => finding
            .advise("See which goroutine is to send, or to give back what these wait for.")
            .doubt(),
    };
    Some(finding.look("a profile of goroutines (net/http/pprof), or SIGQUIT for all stacks"))
}

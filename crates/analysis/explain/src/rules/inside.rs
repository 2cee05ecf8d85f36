//! Rules of threads that wait for others of the same program, or for who holds what they need:
//! locks of the program, of an interpreter and of files, barriers, signals, a tracer.

use std::collections::{BTreeMap, BTreeSet};

use crate::arguments::Calls;
use crate::beside::{Left, none_left};
use crate::budget::{View, WAKEUPS};
use crate::callers::statement;
use crate::facts::{Futex, Object, Wait, WatchedKind};
use crate::finding::{Finding, percent};
use crate::waits::{
    Kind, POLLS, at_most, chain, describe_doing, describe_wait, is_call, is_file,
    is_waiting_for_clients, kind, known, mostly, own_path, waited_for, what_of, with_time,
};

use super::blocked::{BLOCKED, THREAD_STATES, blocked, caller, described};
use super::system::of_call;

/// The share of the time at locks that makes one of them the lock (reference: 50 %).
const TOP: f64 = 0.5;
/// Threads at one word from which on a wake-up is for many.
const HERD: usize = 4;
/// Wake-ups per second of each worker of a herd.
const HERD_WAKEUPS: f64 = 30.0;
/// The part of the time that a thread does something while others wait that makes it worth a word.
const MEANWHILE: f64 = 0.3;
/// The least share of the time that waits for an interpreter's lock (reference: 20 %).
const GIL: f64 = 0.2;

/// A word of memory at which threads wait, in one of the ways of `of`.
struct Word<'v> {
    futex: &'v Futex,
    waits: Vec<&'v Wait>,
    seconds: f64,
}

impl Word<'_> {
    fn threads(&self) -> BTreeSet<u32> {
        let threads = self.waits.iter().flat_map(|wait| &wait.threads);
        threads.copied().collect()
    }

    fn longest(&self) -> Option<&Wait> {
        let longest = self
            .waits
            .iter()
            .max_by(|one, other| one.seconds.total_cmp(&other.seconds));
        longest.copied()
    }

    /// Returns what it is, with where it lies.
    fn name(&self, plain: &str) -> String {
        let what = self
            .longest()
            .and_then(known)
            .map_or("", |known| known.what);
        // Of many of this kind its place says which one it is.
        let plain = match what.strip_prefix("one ") {
            Some(plain) => plain,
            None if what.is_empty() => plain,
            None => return what.to_owned(),
        };
        let place = if self.futex.mapping.is_empty() {
            format!("{:#x}", self.futex.word.1)
        } else {
            self.futex.mapping.clone()
        };
        format!("one {plain}, {place}")
    }
}

/// Returns the words at which threads wait in one of some ways, longest first, and the share of the
/// active threads' time there.
fn words<'v>(view: &'v View, of: &[Kind]) -> (f64, Vec<Word<'v>>) {
    let mut words: BTreeMap<(u32, u64), Word> = BTreeMap::new();
    for wait in &view.waits {
        let Object::Futex(futex) = &wait.object else {
            continue;
        };
        let kind = kind(view.facts, wait);
        if !of.contains(&kind) {
            continue;
        }
        let (process, address) = futex.word;
        // A condition variable of glibc has two words, one for each of two groups of waiters
        // (sysdeps/nptl/bits/thread-shared-types.h: __g_signals).
        let address = if kind == Kind::Condition || kind == Kind::Gil {
            address & !7
        } else {
            address
        };
        let word = words.entry((process, address)).or_insert(Word {
            futex,
            waits: Vec::new(),
            seconds: 0.0,
        });
        word.waits.push(wait);
        word.seconds += wait.seconds;
    }
    let mut words: Vec<Word> = words.into_values().collect();
    words.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let share = view.blocked_in(|wait| {
        matches!(wait.object, Object::Futex(_)) && of.contains(&kind(view.facts, wait))
    });
    (share, words)
}

fn threads_wait(count: usize) -> String {
    if count == 1 {
        "1 thread waits".into()
    } else {
        format!("{count} threads wait")
    }
}

pub(super) fn false_wakeups(view: &View) -> Option<Finding> {
    let (at_conditions, words) = words(view, &[Kind::Condition, Kind::Idle]);
    let word = words.first()?;
    let threads = word.threads();
    let woken: Vec<_> = view
        .active
        .iter()
        .filter(|thread| threads.contains(&thread.id))
        .collect();
    let switches: u64 = woken.iter().map(|thread| thread.voluntary).sum();
    let running: f64 = woken.iter().map(|thread| thread.running_s()).sum();
    let each = view.per_second(switches) / threads.len().max(1) as f64;
    let us = 1e6 * running / switches.max(1) as f64;
    let all: f64 = words.iter().map(|word| word.seconds).sum();
    let share = at_conditions + view.budget.waiting + view.budget.system;
    let is_herd = threads.len() >= HERD
        && each >= WAKEUPS
        && us < 200.0
        && word.seconds / all > 0.25
        && share >= BLOCKED;
    is_herd.then(|| {
        let caller = word
            .longest()
            .and_then(own_path)
            .map(|function| format!(" in {function}"))
            .unwrap_or_default();
        let is_one_by_one = Calls::of(view, |call| call == "futex").wakes_one();
        let how = if is_one_by_one {
            format!("hand each other little work by a mutex and a condition variable, woken one at a time, {each:.0} times a second for {us:.0} µs each,")
        } else {
            format!("are woken together for the work of one (a broadcast: a thundering herd), {each:.0} times a second,")
        };
        Finding::new(
            format!("{} threads {how} and wait again{caller}", threads.len()),
            share.min(1.0),
        )
        .with(
            format!("{each:.0} wake-ups per second and thread"),
            "/proc/TID/status",
            "200",
            "",
        )
        .with(
            format!("{us:.0} µs of running per wake-up"),
            "/proc/TID/schedstat",
            "under 200 µs",
            "work after a wake-up",
        )
        .with(
            format!("{} threads wait at one condition variable", threads.len()),
            THREAD_STATES,
            "4",
            "a lock with one waiter at a time",
        )
        .advise(if is_one_by_one {
            "Hand over more at once, or let fewer threads take it."
        } else {
            "Wake one thread (pthread_cond_signal) when there is work for one."
        })
        .look("perf trace -s -p PID")
    })
}

/// Workers that wait for the same listening socket, and all wake up for each client.
pub(super) fn herd_of_workers(view: &View) -> Option<Finding> {
    let mut sockets: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for wait in &view.waits {
        let listening = if is_waiting_for_clients(wait) {
            let mut watched = wait.watched.iter();
            watched.find(|watched| watched.kind == WatchedKind::Listening)
        } else {
            None
        };
        if let Some(listening) = listening {
            let threads = sockets.entry(listening.file.clone()).or_default();
            threads.extend(&wait.threads);
        }
    }
    let (socket, threads) = sockets
        .into_iter()
        .max_by_key(|(_, threads)| threads.len())?;
    let woken: Vec<_> = view
        .active
        .iter()
        .filter(|thread| threads.contains(&thread.id))
        .collect();
    let switches: u64 = woken.iter().map(|thread| thread.voluntary).sum();
    let running: f64 = woken.iter().map(|thread| thread.running_s()).sum();
    let each = view.per_second(switches) / woken.len().max(1) as f64;
    let us = 1e6 * running / switches.max(1) as f64;
    (woken.len() >= HERD && each >= HERD_WAKEUPS && us < 200.0).then(|| {
        Finding::new(
            format!(
                "{} workers wait for clients at one {socket} and are woken together (a thundering herd), {each:.0} times a second each",
                woken.len()
            ),
            1.0,
        )
        .doubt()
        .with(
            format!("{each:.0} wake-ups per second and worker, {us:.0} µs of running each"),
            "/proc/TID/{status,schedstat}",
            "30, under 200 µs",
            "workers that serve what they wake up for",
        )
        .advise("Wake one worker for a client: EPOLLEXCLUSIVE, or a socket each with SO_REUSEPORT.")
        .look("strace -f -c -e trace=accept4,epoll_wait -p PID")
    })
}

pub(super) fn gil(view: &View) -> Option<Finding> {
    let (share, words) = words(view, &[Kind::Gil]);
    let word = words.first().filter(|_| share >= GIL)?;
    let threads = word.threads();
    let wakeups: u64 = view
        .active
        .iter()
        .filter(|thread| threads.contains(&thread.id))
        .map(|thread| thread.voluntary)
        .sum();
    let each_ms = 1000.0 * word.seconds / wakeups.max(1) as f64;
    let running = view
        .active
        .iter()
        .max_by(|one, other| one.running_s().total_cmp(&other.running_s()))
        .filter(|thread| thread.running_s() > 0.2 * thread.total_s);
    let holder = running.map_or(String::new(), |thread| {
        format!(
            ", which thread {} {} holds while it computes",
            thread.id, thread.name
        )
    });
    let from = word
        .longest()
        .and_then(own_path)
        .map(|function| format!(", in {function}"))
        .unwrap_or_default();
    Some(
        Finding::new(
            format!("{} for the GIL of CPython{holder}{from}", threads_wait(threads.len())),
            share,
        )
        .with(
            format!("{} blocked in take_gil", percent(share)),
            THREAD_STATES,
            "20 %",
            "locks and input of the program",
        )
        .with(
            format!("{each_ms:.1} ms each time (a thread that computes gives the GIL up after 5 ms, sys.setswitchinterval)"),
            "/proc/TID/status",
            "",
            "",
        )
        .advise("Compute in other processes (multiprocessing), or in code that releases the GIL.")
        .look("py-spy dump --pid PID"),
    )
}

/// Processes of a server that wait for a lock of its own by sleeping until another one wakes them.
pub(super) fn server_lock(view: &View) -> Option<Finding> {
    let is_lock = |wait: &Wait| {
        kind(view.facts, wait) == Kind::Lock && !matches!(wait.object, Object::Futex(_))
    };
    let longest = view.waits.iter().find(|wait| is_lock(wait))?;
    let what = known(longest).map_or("", |known| known.what);
    let what = if what.is_empty() { "a lock" } else { what };
    let threads: BTreeSet<u32> = view
        .waits
        .iter()
        .filter(|wait| is_lock(wait))
        .flat_map(|wait| wait.threads.iter().copied())
        .collect();
    let statement = statement(&longest.stack)
        .map_or_else(String::new, |statement| format!(", for {statement}"));
    let finding = blocked(view, is_lock, "", |from| {
        format!(
            "{} for {what}, which another session holds,{}{statement}",
            threads_wait(threads.len()),
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .advise("See who holds it, and end that transaction or session (pg_locks).")
            .look("psql -c 'SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity'"),
    )
}

/// Returns that one thread waits for a lock and no other one is left that could have it, as the end of a
/// sentence; empty if one is.
fn alone(view: &View, word: &Word) -> String {
    let waiting: BTreeSet<u32> = word.threads().into_iter().collect();
    let left = Left::beside(view.facts, &waiting).filter(|_| waiting.len() == 1);
    let Some(left) = left else {
        return String::new();
    };
    let mut text = "; no other thread is left: it holds that lock itself".to_owned();
    if left.has_sleeper {
        text += ", or the one that sleeps does";
    }
    if left.has_ended {
        text += ", or one that has ended did";
    }
    text
}

pub(super) fn hot_lock(view: &View) -> Option<Finding> {
    let (at_locks, words) = words(view, &[Kind::Lock]);
    let word = words.first()?;
    let all: f64 = words.iter().map(|word| word.seconds).sum();
    let of_locks = word.seconds / all;
    if at_locks < BLOCKED || of_locks < TOP {
        return None;
    }
    let longest = word.longest()?;
    let from = own_path(longest)
        .map(|function| format!(", in {function}"))
        .unwrap_or_default();
    let stuck = deadlock(view, longest);
    let behind = match &*chain(view.facts, longest) {
        "" if stuck.is_empty() => alone(view, word) + &meanwhile(view),
        "" => stuck,
        // Its end is what the holder waits for.
        behind if joins(view, longest) => format!("{behind}{stuck}"),
        behind => behind.to_owned(),
    };
    let finding = Finding::new(
        format!(
            "{} for {}{from}{behind}",
            threads_wait(word.threads().len()),
            word.name("lock")
        ),
        at_locks * of_locks,
    )
    .with(
        format!("{} blocked at locks", percent(at_locks)),
        THREAD_STATES,
        "30 %",
        "",
    )
    .with(
        format!("{} of that at one word", percent(of_locks)),
        THREAD_STATES,
        "50 %",
        "many locks, waiting for work",
    );
    let finding = with_holder(view, finding, longest);
    // Without a name of the runtime and a holder, waiting for work looks the same.
    let finding = if known(longest).is_none() && longest.behind.is_empty() {
        finding.doubt()
    } else {
        finding
    };
    Some(finding.look("gdb -p PID -batch -ex 'thread apply all bt'"))
}

/// Whether the holder of a lock waits for the end of another thread of the program.
fn joins(view: &View, wait: &Wait) -> bool {
    let doing = mostly(view.facts, wait).filter(|(behind, ..)| behind.is_own);
    let next = doing.and_then(|(_, doing, _)| doing.wait.as_ref());
    next.is_some_and(|next| kind(view.facts, next) == Kind::Join)
}

/// Adds who holds a lock, and what to do: about what the holder waits for, or about the lock.
fn with_holder(view: &View, finding: Finding, wait: &Wait) -> Finding {
    let Some((behind, doing, part)) = mostly(view.facts, wait) else {
        return finding.advise("Hold the lock for less, or split it.");
    };
    let does = describe_doing(view.facts, behind, doing);
    let holder_waits = doing.wait.as_ref();
    let finding = finding.with(
        format!(
            "held by thread {} {}, which {does} at {} of the looks",
            behind.thread,
            behind.name,
            percent(part)
        ),
        "pthread_mutex_t.__owner, /proc/PID/mem",
        "",
        if holder_waits.is_none() {
            "storage, the network and sleeping below this lock"
        } else {
            ""
        },
    );
    match holder_waits {
        None => finding.advise("Hold the lock for less, or split it."),
        Some(_) => finding.advise(&format!(
            "Do not hold the lock while its holder {does}: do that before or after."
        )),
    }
}

pub(super) fn many_locks(view: &View) -> Option<Finding> {
    let (at_locks, words) = words(view, &[Kind::Lock]);
    let all: f64 = words.iter().map(|word| word.seconds).sum();
    let top = words.first()?.seconds / all;
    if at_locks < BLOCKED || top >= TOP {
        return None;
    }
    // Threads and processes sleep at a word of their own each for one lock of their runtime.
    let mut callers: BTreeMap<(&str, String), f64> = BTreeMap::new();
    for wait in words.iter().flat_map(|word| &word.waits) {
        let what = known(wait).map_or("", |known| known.what);
        let caller = own_path(wait).unwrap_or_default();
        *callers.entry((what, caller)).or_default() += wait.seconds;
    }
    let ((what, caller), seconds) = callers
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    let held = words.iter().flat_map(|word| &word.waits).filter(|wait| {
        let is_what = known(wait).is_some_and(|known| known.what == what);
        is_what && !wait.behind.is_empty()
    });
    let held = held.max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let behind = held.map_or_else(String::new, |wait| chain(view.facts, wait));
    let finding = if !what.is_empty() && seconds >= TOP * all {
        let taken = if caller.is_empty() {
            String::new()
        } else {
            format!(", taken in {caller}")
        };
        Finding::new(format!("threads wait for {what}{taken}{behind}"), at_locks)
    } else {
        let from = if caller.is_empty() {
            String::new()
        } else {
            format!(", in {caller}")
        };
        Finding::new(
            format!(
                "threads wait at {} futexes, none dominates{from}",
                words.len()
            ),
            at_locks,
        )
        .doubt()
    };
    Some(
        finding
            .with(
                format!("{} blocked at locks", percent(at_locks)),
                THREAD_STATES,
                "30 %",
                "",
            )
            .with(
                format!("{} of that at the first of {}", percent(top), words.len()),
                THREAD_STATES,
                "under 50 %",
                "one hot lock",
            )
            .advise("Look at who holds these locks, and at who gives the threads their work.")
            .look("gdb -p PID -batch -ex 'thread apply all bt'"),
    )
}

/// What a thread does that makes others wait: it does not run, and waits for none of them.
const OUTSIDE: [Kind; 5] = [
    Kind::Sleep,
    Kind::Pipe,
    Kind::Socket,
    Kind::Storage,
    Kind::FileLock,
];

/// Returns where a thread of the program sleeps or waits for something outside meanwhile, as the end
/// of a sentence: it may be the one that has the lock, or that is to send the signal. Empty without
/// one.
fn meanwhile(view: &View) -> String {
    let mut together: BTreeMap<&str, (f64, &Wait)> = BTreeMap::new();
    let outside = view.facts.waits.iter();
    for wait in outside.filter(|wait| OUTSIDE.contains(&kind(view.facts, wait))) {
        // A call for ever new files is one.
        let (seconds, longest) = together.entry(&wait.call).or_insert((0.0, wait));
        *seconds += wait.seconds;
        if wait.seconds > longest.seconds {
            *longest = wait;
        }
    }
    let most = together
        .into_values()
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((_, wait)) = most.filter(|(seconds, _)| *seconds >= MEANWHILE * view.facts.seconds)
    else {
        return String::new();
    };
    let does = describe_wait(view.facts, wait);
    format!("; meanwhile a thread of it {does}")
}

/// Waits per second and thread from which on they are a loop.
const LOOPING: f64 = 500.0;
/// Parts of names of waits with a time (glibc: nptl/pthread_cond_wait.c, sem_timedwait.c).
const TIMED: [&str; 4] = ["timedwait", "clockwait", "wait_for", "wait_until"];

/// Returns that threads wait again and again for a moment, as the end of a sentence; empty if they do
/// not.
fn looping(view: &View, word: &Word) -> String {
    let ids = word.threads();
    let threads = view.active.iter().filter(|one| ids.contains(&one.id));
    let waits: u64 = threads.map(|thread| thread.voluntary).sum();
    let each = view.per_second(waits) / ids.len().max(1) as f64;
    if each < LOOPING {
        return String::new();
    }
    let us = 1e6 * word.seconds / waits.max(1) as f64;
    let is_timed = word.longest().is_some_and(|wait| {
        let mut functions = wait.stack.iter();
        functions.any(|one| TIMED.iter().any(|part| one.contains(part)))
    });
    let what = if is_timed {
        "its timed waits end at once"
    } else {
        "its waits end at once"
    };
    format!("; {what}, {each:.0} times a second after {us:.0} µs")
}

/// The part of the observed time from which on running is work.
const WORKING: f64 = 0.1;

/// Returns the function with which a wait is for a semaphore (glibc: nptl/sem_wait.c).
fn semaphore(wait: &Wait) -> Option<&str> {
    let mut functions = wait.stack.iter().filter_map(|one| one.split(" (").next());
    functions.find(|function| function.trim_start_matches('_').starts_with("sem_"))
}

/// Returns that a thread waits for the end of another one all along, as the end of a sentence: where
/// no thread works, that end does not come.
pub(super) fn joining(view: &View) -> String {
    let facts = view.facts;
    // Each thread has a word of its own for that.
    let mut places: BTreeMap<String, f64> = BTreeMap::new();
    for wait in &facts.waits {
        let is_thread = matches!(wait.object, Object::Futex(_));
        if is_thread
            && kind(facts, wait) == Kind::Join
            && let Some(place) = own_path(wait)
        {
            *places.entry(place).or_default() += wait.seconds;
        }
    }
    let longest = places
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .filter(|(_, seconds)| 2.0 * seconds >= facts.seconds);
    longest.map_or_else(String::new, |(place, _)| {
        format!("; another one waits for the end of a thread (join) in {place}")
    })
}

/// Returns that no thread works while all of them wait for locks, as the end of a sentence, with another
/// place where one does; empty if one works or waits for something else.
fn deadlock(view: &View, longest: &Wait) -> String {
    let facts = view.facts;
    let threads = facts.threads.iter();
    let running = threads.map(|thread| thread.running_s() + thread.waiting_s);
    if running.sum::<f64>() > WORKING * facts.seconds {
        return String::new();
    }
    let all = facts.waits.iter();
    let lasting = all.filter(|wait| wait.seconds > WORKING * facts.seconds);
    let is_stuck = |wait: &&Wait| matches!(kind(facts, wait), Kind::Lock | Kind::Join | Kind::Idle);
    let (stuck, others): (Vec<&Wait>, Vec<&Wait>) = lasting.partition(is_stuck);
    let own = own_path(longest);
    let at_locks = stuck.iter().filter(|wait| kind(facts, wait) == Kind::Lock);
    let mut places = at_locks.filter_map(|wait| own_path(wait));
    let place = places.find(|place| Some(place) != own.as_ref());
    let has_main = |wait: &Wait| {
        let mut threads = facts.threads.iter();
        threads.any(|one| one.id == one.process && wait.threads.contains(&one.id))
    };
    // The main thread may wait until the time is over, or it may be who has the lock.
    let by_main = match others.as_slice() {
        [] => String::new(),
        [main] if place.is_some() && has_main(main) && kind(facts, main).is_soft() => {
            format!(", by the main thread, which {}", describe_wait(facts, main))
        }
        _ => return String::new(),
    };
    let place = place.map_or_else(String::new, |place| format!(" and in {place}"));
    format!(
        "{place}; no thread of it works: what they wait for is held by one that waits itself (a deadlock){by_main} \
         or by another process"
    )
}

/// Places that are named of threads that wait for a signal.
const PLACES: usize = 2;

/// Returns that most calls of futex are of waits with a time, which end at once, as the end of a
/// sentence; empty if they are not.
pub(super) fn timed_waits(view: &View) -> String {
    let is_timed = |function: &String| TIMED.iter().any(|part| function.contains(part));
    let timed = of_call(view, "futex", |stack| stack.user.iter().any(is_timed));
    let most = view.active.iter().map(|thread| thread.voluntary).max();
    let each = view.per_second(most.unwrap_or_default());
    if timed < 0.5 || each < LOOPING {
        return String::new();
    }
    format!("; its timed waits end at once, {each:.0} times a second")
}

/// Threads that wait for a signal or at a barrier while no thread of the program does anything.
pub(super) fn signals(view: &View) -> Option<Finding> {
    let (share, words) = words(view, &[Kind::Condition, Kind::Barrier]);
    let word = words.first().filter(|_| share >= BLOCKED)?;
    let longest = word.longest()?;
    // The collector of garbage works for these.
    if super::user::waits_for_collector(longest) {
        return None;
    }
    let what = match kind(view.facts, longest) {
        Kind::Barrier => "for the others at a barrier".to_owned(),
        _ => match semaphore(longest) {
            Some(function) => format!("for a semaphore ({function})"),
            None => match what_of(longest) {
                Some(what) => format!("for {what}"),
                None => {
                    "for a signal of another thread (a condition variable, a queue or a result)"
                        .into()
                }
            },
        },
    };
    // Two threads may wait for one another, or one of them for what the other one has.
    let mut places: Vec<String> = Vec::new();
    for place in words.iter().filter_map(Word::longest).filter_map(own_path) {
        if places.len() < PLACES && !places.contains(&place) {
            places.push(place);
        }
    }
    let from = match places.is_empty() {
        true => String::new(),
        false => format!(", in {}", places.join(" and in ")),
    };
    let threads: usize = words.iter().map(|word| word.threads().len()).sum();
    let all = view.facts.threads.iter();
    let busy: f64 = all
        .map(|thread| thread.running_s() + thread.waiting_s)
        .sum();
    let waiting: BTreeSet<u32> = words.iter().flat_map(Word::threads).collect();
    let works = if busy > WORKING * view.facts.seconds {
        crate::answer::in_script(view.facts).replacen("that is in", "what runs is in", 1)
    } else {
        format!(
            ", and no thread of it works{}{}",
            joining(view),
            none_left(view.facts, &waiting)
        )
    };
    let is_idle = busy <= WORKING * view.facts.seconds;
    let task = match is_idle && super::pools::is_for_result(longest) {
        true => {
            "; no thread executes the task of that result: its pool may wait for itself (a deadlock)"
        }
        false => "",
    };
    let works = works + task;
    let pool = super::pools::waiting_pool(view);
    let meanwhile = looping(view, word) + &pool + &meanwhile(view);
    Some(
        Finding::new(
            format!(
                "{} {}{works}{meanwhile}",
                threads_wait(threads),
                with_time(&what, &at_most(longest), &from)
            ),
            share,
        )
        .doubt()
        .with(
            format!("{} blocked there, at {} words", percent(share), words.len()),
            THREAD_STATES,
            "30 %",
            "",
        )
        .advise("See who is to send the signal: a thread of the same pool, or none.")
        .look("gdb -p PID -batch -ex 'thread apply all bt'"),
    )
}

pub(super) fn file_lock(view: &View) -> Option<Finding> {
    let is_lock = |wait: &Wait| kind(view.facts, wait) == Kind::FileLock;
    let first = view.waits.iter().find(|wait| is_lock(wait))?;
    let file = match (described(first), first.watched.first()) {
        (file, None) => file,
        (_, Some(watched)) => format!(" ({})", watched.file),
    };
    let call = if is_call(first, &["flock", "fcntl"]) {
        format!("in {}", first.call)
    } else {
        "by trying again and again (SQLite's busy handler)".into()
    };
    let behind = chain(view.facts, first);
    let finding = blocked(view, is_lock, "", |from| {
        format!(
            "it waits for the lock of a file{file} {call}{}{behind}",
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .advise("Hold the lock for less, or let writers use files of their own.")
            .look("cat /proc/locks"),
    )
}

pub(super) fn stopped(view: &View) -> Option<Finding> {
    let is_stopped = |wait: &Wait| kind(view.facts, wait) == Kind::Stopped;
    let first = view.waits.iter().find(|wait| is_stopped(wait))?;
    let is_traced = first.function.contains("ptrace");
    let tracer = &view.facts.settings.tracer;
    let finding = blocked(view, is_stopped, "", |_| {
        if is_traced {
            format!("it is traced, and waits at each stop for its tracer ({tracer})")
        } else {
            "a signal (SIGSTOP, SIGTSTP) stopped it".into()
        }
    })?;
    let advice = if is_traced {
        "Run it without the tracer, or trace less (strace -e, --seccomp-bpf)."
    } else {
        "Continue it (kill -CONT PID), or see who stopped it."
    };
    Some(
        finding
            .advise(advice)
            .look("grep -E 'State|TracerPid' /proc/PID/status"),
    )
}

/// One place with most of the time that no other rule knows.
pub(super) fn one_place(view: &View) -> Option<Finding> {
    let is_unknown = |wait: &Wait| {
        let is_event = is_file(wait, "anon_inode") && !is_call(wait, &POLLS);
        kind(view.facts, wait) == Kind::Other || is_event
    };
    let first = view.waits.iter().find(|wait| is_unknown(wait))?;
    let (call, function) = (&first.call, &first.function);
    let is_there = |wait: &Wait| wait.call == *call && wait.function == *function;
    let file = described(first);
    let what = match (call.as_str(), function.as_str()) {
        ("getrandom", _) => {
            "getrandom, because the kernel's random numbers are not ready yet".to_owned()
        }
        ("", "") => return None,
        ("", function) => format!("the kernel's {function}"),
        (call, function) if function.contains("fuse") || function == "request_wait_answer" => {
            format!("{call} for the server of a FUSE file system")
        }
        (call, _) => call.to_owned(),
    };
    let behind = chain(view.facts, first);
    let finding = blocked(view, is_there, "", |_| {
        let from = caller(view, is_there)
            .map(|function| format!(", in {function}"))
            .unwrap_or_default();
        let whom = waited_for(first).map_or_else(String::new, |who| format!(" for {who}"));
        format!("it waits in {what}{file}{whom}{from}{behind}")
    })?;
    Some(finding.look("strace -f -T -p PID"))
}

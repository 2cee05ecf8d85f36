//! Where the time of threads went: running in user mode and in the kernel, runnable without a
//! processor, blocked.

use std::collections::BTreeSet;

use crate::facts::{Facts, Object, SHORT_LIVED, Thread, Wait, Watched, WatchedKind};
use crate::waits::{Kind, is_held, is_runtime_thread, kind, mostly};

/// Switches per second below which a thread that does not run is idle: it only waits for the others
/// to end.
const IDLE_SWITCHES: f64 = 1.0;
/// How long a thread is observed at least to be idle (s).
const IDLE_LEAST_S: f64 = 1.0;
/// The share of its time that an idle thread runs at most.
const IDLE_RUNNING: f64 = 0.01;
/// The share of its waits that makes a thread one that waits for others.
const MOSTLY: f64 = 0.9;
/// The work that explains the time of a program: as a part of the time of one thread.
const LEAST_WORK: f64 = 0.3;
/// The same of what is left without waiting for processors that others use.
const LEAST_LEFT: f64 = 0.02;
/// The part of blocked time of which the places have been seen.
const SEEN_LEAST: f64 = 0.3;
/// Wake-ups of a thread per second from which on they can be the cost, whatever it waits for.
pub(crate) const WAKEUPS: f64 = 200.0;

/// How descriptions of pipes and sockets within the program begin.
pub(crate) const OWN: &str = "own ";

/// Shares of the time of threads; they add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Running in user mode.
    pub user: f64,
    /// Running in the kernel.
    pub system: f64,
    /// Runnable, without a processor.
    pub waiting: f64,
    /// Blocked: neither running nor runnable.
    pub blocked: f64,
}

impl Budget {
    /// Returns the budget of threads; all zero without any.
    #[must_use]
    pub fn sum<'a>(threads: impl IntoIterator<Item = &'a Thread>) -> Self {
        let mut total = 0.0;
        let mut sums = Self::default();
        for thread in threads {
            total += thread.total_s.max(thread.running_s() + thread.waiting_s);
            sums.user += thread.user_s;
            sums.system += thread.system_s;
            sums.waiting += thread.waiting_s;
            sums.blocked += thread.blocked_s();
        }
        if total <= 0.0 {
            return Self::default();
        }
        Self {
            user: sums.user / total,
            system: sums.system / total,
            waiting: sums.waiting / total,
            blocked: sums.blocked / total,
        }
    }

    /// Returns the share of the time on processors.
    #[must_use]
    pub fn running(&self) -> f64 {
        self.user + self.system
    }
}

/// Facts with what all rules derive from them.
#[derive(Debug)]
pub struct View<'a> {
    /// The facts that all else is derived from.
    pub facts: &'a Facts,
    /// The threads that take part: neither idle nor only waiting for others of the program.
    pub active: Vec<&'a Thread>,
    /// Their budget, with what ended between two rounds.
    pub budget: Budget,
    /// The time of the active threads (s).
    pub total_s: f64,
    /// The waits of active threads for something outside of the program or for a lock, longest
    /// first; of those that idle threads have, too, only the active threads' part.
    pub waits: Vec<Wait>,
}

impl<'a> View<'a> {
    /// Derives what rules look at: the active threads, their budget and their waits.
    #[must_use]
    pub fn new(facts: &'a Facts) -> Self {
        Self::among(facts, None)
    }

    /// The same of facts that were changed, with the threads that took part before.
    pub(crate) fn among(facts: &'a Facts, ids: Option<&BTreeSet<u32>>) -> Self {
        let is_dependent = |thread: &&Thread| {
            waits_for_own(facts, thread)
                || is_runtime_thread(facts, thread) && waits_softly(facts, thread)
        };
        let is_soft = |thread: &&Thread| waits_softly(facts, thread);
        // Threads that wait for others of the program are no cause as long as another thread does
        // something, and of those that do, the ones that seldom wake up.
        let waiting = waiting_for_children(facts);
        let is_child = |thread: &&Thread| !waiting.is_empty() && !waiting.contains(&thread.process);
        let choices: [&dyn Fn(&&Thread) -> bool; 5] = [
            &|thread| !is_dependent(thread) && !is_soft(thread) && !is_idle(thread),
            &|thread| !is_dependent(thread) && !is_soft(thread),
            &|thread| !is_dependent(thread) && !is_idle(thread),
            // A child that does nothing is what its parent waits for, and the parent's pools are not.
            &|thread| !is_dependent(thread) && is_child(thread),
            &|thread| !is_dependent(thread),
        ];
        let short_lived = as_thread(facts);
        let least = match ids {
            Some(_) => LEAST_LEFT * facts.seconds,
            None => LEAST_WORK * facts.seconds,
        };
        let mut chosen: Option<(Vec<&Thread>, Part)> = None;
        let is_in = |thread: &&Thread| ids.is_none_or(|ids| ids.contains(&thread.id));
        for choice in choices {
            let threads = facts.threads.iter().filter(is_in);
            let active: Vec<&Thread> = match ids {
                Some(_) => threads.collect(),
                None => threads.filter(choice).collect(),
            };
            if active.is_empty() {
                continue;
            }
            let part = Part::of_work(facts, &active, active.iter().all(is_soft), least);
            let is_enough = part.is_some();
            let part = part.unwrap_or_else(|| Part::new(facts, &active, |_| true));
            if is_enough || chosen.is_none() {
                chosen = Some((active, part));
            }
            if is_enough {
                break;
            }
        }
        let everything = || {
            let all: Vec<&Thread> = facts.threads.iter().collect();
            let part = Part::new(facts, &all, |_| true);
            (all, part)
        };
        let (active, Part { threads, mut waits }) = match chosen {
            Some(chosen) => chosen,
            // How it was started is not what all the rest of it waits for.
            None if short_lived.iter().any(|one| one.total_s >= least) => {
                (Vec::new(), Part::new(facts, &[], |_| true))
            }
            None => everything(),
        };
        let budget = Budget::sum(threads.iter().chain(&short_lived));
        let total_s = threads.iter().map(|thread| thread.total_s).sum::<f64>()
            + short_lived.map_or(0.0, |thread| thread.total_s);
        waits.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        Self {
            facts,
            active,
            budget,
            total_s,
            waits,
        }
    }

    /// Returns the share of the active threads' time for which a test of waits holds: of the
    /// blocked time, as much as of the sampled waits.
    pub fn blocked_in(&self, is_wanted: impl Fn(&Wait) -> bool) -> f64 {
        let all: f64 = self.waits.iter().map(|wait| wait.seconds).sum();
        let wanted: f64 = self
            .waits
            .iter()
            .filter(|wait| is_wanted(wait))
            .map(|wait| wait.seconds)
            .sum();
        // A few looks stand for no more than several times their time.
        let all = all.max(SEEN_LEAST * self.budget.blocked * self.total_s);
        if all > 0.0 {
            self.budget.blocked * wanted / all
        } else {
            0.0
        }
    }

    /// Returns the share of sampled running time for which a test of stacks holds; zero without
    /// samples.
    pub fn running_in(&self, is_wanted: impl Fn(&crate::facts::Stack) -> bool) -> f64 {
        let Some(samples) = &self.facts.samples else {
            return 0.0;
        };
        let all: u64 = samples.stacks.iter().map(|stack| stack.samples).sum();
        let wanted: u64 = samples
            .stacks
            .iter()
            .filter(|stack| is_wanted(stack))
            .map(|stack| stack.samples)
            .sum();
        if all > 0 {
            self.budget.running() * wanted as f64 / all as f64
        } else {
            0.0
        }
    }

    /// Returns the time of what ended between two rounds; `None` without any.
    pub(crate) fn budget_of_ended(&self) -> Option<Thread> {
        as_thread(self.facts)
    }

    /// Returns events per second.
    #[must_use]
    pub fn per_second(&self, events: u64) -> f64 {
        events as f64 / self.facts.seconds.max(f64::MIN_POSITIVE)
    }
}

/// The part of threads' time that is looked at: without the waits that say nothing of a cause.
struct Part {
    threads: Vec<Thread>,
    waits: Vec<Wait>,
}

impl Part {
    /// Takes threads with those of their waits for which a test holds.
    fn new(facts: &Facts, threads: &[&Thread], is_wanted: impl Fn(&Wait) -> bool) -> Self {
        let ids: BTreeSet<u32> = threads.iter().map(|thread| thread.id).collect();
        let mut threads: Vec<Thread> = threads.iter().copied().cloned().collect();
        let mut waits: Vec<Wait> = Vec::new();
        for wait in &facts.waits {
            let each = wait.seconds / wait.threads.len().max(1) as f64;
            let mut of_active = 0;
            for id in wait.threads.iter().filter(|id| ids.contains(id)) {
                of_active += 1;
                let thread = threads.iter_mut().find(|thread| thread.id == *id);
                if let Some(thread) = thread.filter(|_| !is_wanted(wait)) {
                    let busy_s = thread.running_s() + thread.waiting_s;
                    thread.total_s = (thread.total_s - each).max(busy_s);
                }
            }
            if of_active > 0 && is_wanted(wait) {
                waits.push(Wait {
                    seconds: each * f64::from(of_active),
                    ..wait.clone()
                });
            }
        }
        Self { threads, waits }
    }

    /// Takes what is work: time in which a thread waits for another one of the program is that one's
    /// time, and time without work is no part of it. Without as much work as that, `None`.
    fn of_work(facts: &Facts, threads: &[&Thread], is_pool: bool, least: f64) -> Option<Self> {
        let is_rare = |wait: &Wait| {
            let of_wait = threads.iter().filter(|one| wait.threads.contains(&one.id));
            let switches: u64 = of_wait.clone().map(|thread| thread.voluntary).sum();
            let seconds: f64 = of_wait.map(|thread| thread.total_s).sum();
            (switches as f64) < WAKEUPS * seconds
        };
        let is_work = |wait: &Wait| {
            let kind = kind(facts, wait);
            let is_soft = kind == Kind::Idle
                || kind.is_for_work() && is_rare(wait)
                || is_pool && kind.is_soft();
            !is_soft && !is_for_own(facts, wait)
        };
        let working = Self::new(facts, threads, is_work);
        if working.seconds(is_pool) >= least {
            return Some(working);
        }
        let busy = Self::new(facts, threads, |wait| !is_for_own(facts, wait));
        (busy.seconds(is_pool) >= least).then_some(busy)
    }

    /// Returns how much work it is (s): of threads of pools the time in which they ran, could have
    /// run, or waited for something that is known; of others all that is left.
    fn seconds(&self, is_pool: bool) -> f64 {
        let threads = self.threads.iter();
        if !is_pool {
            return threads.map(|thread| thread.total_s).sum();
        }
        let busy: f64 = threads
            .map(|thread| thread.running_s() + thread.waiting_s)
            .sum();
        busy + self.waits.iter().map(|wait| wait.seconds).sum::<f64>()
    }
}

/// Returns the processes of which a thread mostly waits for the end of a child.
pub(crate) fn waiting_for_children(facts: &Facts) -> BTreeSet<u32> {
    let is_for_child =
        |wait: &Wait| kind(facts, wait) == Kind::Join && !matches!(wait.object, Object::Futex(_));
    let waits = |thread: &&Thread| {
        let (own, all) = waited(facts, thread, is_for_child);
        all > 0.0 && own > MOSTLY * all
    };
    let threads = facts.threads.iter().filter(waits);
    threads.map(|thread| thread.process).collect()
}

/// Whether a thread is blocked for most of its time and then waits for a thread or a child of the
/// same program.
fn waits_for_own(facts: &Facts, thread: &Thread) -> bool {
    let (own, all) = waited(facts, thread, |wait| is_for_own(facts, wait));
    all > 0.0
        && own > MOSTLY * all
        && thread.running_s() + thread.waiting_s < (1.0 - MOSTLY) * thread.total_s
}

/// Whether a wait is for a thread or a child of the program, or for what one of its processes has at
/// the other end.
pub(crate) fn is_for_own(facts: &Facts, wait: &Wait) -> bool {
    // What Nagle's algorithm holds waits for an acknowledgement, not for a thread.
    if is_held(wait) {
        return false;
    }
    // Of a server that waits for a lock the client may be a process of the program.
    if kind(facts, wait) == Kind::Lock {
        return waits_for_the_only_worker(facts, wait);
    }
    let is_own = |watched: &&Watched| watched.file.starts_with(OWN);
    let mut ends = wait
        .watched
        .iter()
        .filter(|watched| matches!(watched.kind, WatchedKind::Pipe | WatchedKind::Socket));
    // A poll of children and nothing else, as of a program that runs a command.
    if wait.watched.iter().any(|watched| is_own(&watched)) && ends.clone().count() > 0 {
        return ends.all(|end| is_own(&end));
    }
    if kind(facts, wait) == Kind::Join {
        return true;
    }
    match &wait.object {
        Object::File(file) => file.starts_with(OWN),
        _ => false,
    }
}

/// Whether a thread alone waits for a lock whose holder computes: there is one that works, and none
/// that could work beside it.
fn waits_for_the_only_worker(facts: &Facts, wait: &Wait) -> bool {
    wait.threads.len() == 1
        && mostly(facts, wait).is_some_and(|(behind, doing, _)| {
            behind.is_own && doing.wait.is_none() && !wait.threads.contains(&behind.thread)
        })
}

/// Whether a thread mostly waits for work, events, a timer or a signal of others, and wakes up
/// seldom enough that waking up is no work of its own.
fn waits_softly(facts: &Facts, thread: &Thread) -> bool {
    let (soft, all) = waited(facts, thread, |wait| {
        kind(facts, wait).is_soft() || is_for_own(facts, wait)
    });
    let switches = thread.voluntary as f64 / thread.total_s.max(f64::MIN_POSITIVE);
    let (idle, _) = waited(facts, thread, |wait| kind(facts, wait) == Kind::Idle);
    all > 0.0
        && soft > MOSTLY * all
        && thread.blocked_s() > MOSTLY * thread.total_s
        && (switches < WAKEUPS || idle > MOSTLY * all)
}

/// Returns how long a thread waited in waits for which a test holds, and in all (s).
fn waited(facts: &Facts, thread: &Thread, is_wanted: impl Fn(&Wait) -> bool) -> (f64, f64) {
    let mut wanted = 0.0;
    let mut all = 0.0;
    for wait in &facts.waits {
        if wait.threads.contains(&thread.id) {
            // A group's threads have equal parts of its time, as far as is known.
            let seconds = wait.seconds / wait.threads.len().max(1) as f64;
            all += seconds;
            wanted += if is_wanted(wait) { seconds } else { 0.0 };
        }
    }
    (wanted, all)
}

/// Returns whether a thread hardly ran, and seldom woke up, as far as it lived long enough to tell.
fn is_idle(thread: &Thread) -> bool {
    if thread.total_s < IDLE_LEAST_S {
        return false;
    }
    let switches = thread.voluntary as f64 / thread.total_s.max(f64::MIN_POSITIVE);
    thread.running_s() + thread.waiting_s < IDLE_RUNNING * thread.total_s
        && switches < IDLE_SWITCHES
}

/// Returns what ended between two rounds as a thread that only ran. Ticks do not divide the time of
/// what is shorter than one: samples do, where there are some.
fn as_thread(facts: &Facts) -> Option<Thread> {
    let ended = facts.short_lived;
    let running = ended.user_s + ended.system_s;
    let sampled = facts
        .samples
        .as_ref()
        .map_or(&[][..], |samples| &samples.stacks);
    let mut all = 0;
    let mut in_kernel = 0;
    for stack in sampled.iter().filter(|stack| stack.program == SHORT_LIVED) {
        all += stack.samples;
        if !stack.kernel.is_empty() {
            in_kernel += stack.samples;
        }
    }
    let of_system = if all > 0 {
        in_kernel as f64 / all as f64
    } else {
        ended.system_s / running
    };
    (running > 0.0).then(|| Thread {
        name: SHORT_LIVED.into(),
        total_s: running,
        user_s: running * (1.0 - of_system),
        system_s: running * of_system,
        ..Thread::default()
    })
}

//! Where the time of threads went: running in user mode and in the kernel, runnable without a
//! processor, blocked.

use crate::facts::{Facts, Object, SHORT_LIVED, Thread, Wait};

/// Switches per second below which a thread that does not run is idle: it only waits for the others
/// to end.
const IDLE_SWITCHES: f64 = 1.0;
/// The share of its time that a busy thread runs or could run.
const BUSY: f64 = 0.5;
/// System calls in which a thread waits for events and timers.
const IDLE_CALLS: [&str; 9] = [
    "nanosleep",
    "clock_nanosleep",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "rt_sigtimedwait",
];
/// The share of its time that an idle thread runs at most.
const IDLE_RUNNING: f64 = 0.01;

/// How descriptions of pipes within the program begin.
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
    /// first.
    pub waits: Vec<&'a Wait>,
}

impl<'a> View<'a> {
    /// Derives what rules look at: the active threads, their budget and their waits.
    #[must_use]
    pub fn new(facts: &'a Facts) -> Self {
        let has_busy = facts
            .threads
            .iter()
            .any(|thread| thread.running_s() + thread.waiting_s >= BUSY * thread.total_s);
        let dependent = |thread: &Thread| {
            waits_for_own(facts, thread) || has_busy && waits_for_work(facts, thread)
        };
        let mut active: Vec<&Thread> = facts
            .threads
            .iter()
            .filter(|thread| !is_idle(thread) && !dependent(thread))
            .collect();
        if active.is_empty() {
            active = facts
                .threads
                .iter()
                .filter(|thread| !dependent(thread))
                .collect();
        }
        let short_lived = as_thread(facts);
        if active.is_empty() && short_lived.is_none() {
            active = facts.threads.iter().collect();
        }
        let budget = Budget::sum(active.iter().copied().chain(&short_lived));
        let total_s = active.iter().map(|thread| thread.total_s).sum::<f64>()
            + short_lived.map_or(0.0, |thread| thread.total_s);
        let mut waits: Vec<&Wait> = Vec::new();
        for wait in &facts.waits {
            let mut threads = active.iter().map(|thread| thread.id);
            if threads.any(|id| wait.threads.contains(&id)) {
                waits.push(wait);
            }
        }
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

    /// Returns events per second.
    #[must_use]
    pub fn per_second(&self, events: u64) -> f64 {
        events as f64 / self.facts.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Whether a thread is blocked for most of its time and then waits for a thread or a child of the
/// same program.
fn waits_for_own(facts: &Facts, thread: &Thread) -> bool {
    let of_thread = facts
        .waits
        .iter()
        .filter(|wait| wait.threads.contains(&thread.id));
    let mut own = 0.0;
    let mut all = 0.0;
    for wait in of_thread {
        // A group's threads have equal parts of its time, as far as is known.
        let seconds = wait.seconds / wait.threads.len().max(1) as f64;
        all += seconds;
        let is_own = match &wait.object {
            Object::Child => true,
            Object::Futex(futex) => futex.is_join,
            Object::File(file) => file.starts_with(OWN),
            Object::Unknown => false,
        };
        own += if is_own { seconds } else { 0.0 };
    }
    all > 0.0 && own / all > 0.9 && thread.running_s() + thread.waiting_s < 0.1 * thread.total_s
}

/// Whether a thread mostly waits for a signal of others, an event or a timer: beside busy threads
/// it is no part of the work.
fn waits_for_work(facts: &Facts, thread: &Thread) -> bool {
    let mut all = 0.0;
    let mut idle = 0.0;
    for wait in &facts.waits {
        if wait.threads.contains(&thread.id) {
            let seconds = wait.seconds / wait.threads.len().max(1) as f64;
            all += seconds;
            if is_condition(wait) || IDLE_CALLS.contains(&&*wait.call) {
                idle += seconds;
            }
        }
    }
    idle > 0.9 * all && thread.blocked_s() > 0.9 * thread.total_s
}

/// Returns whether a thread hardly ran, and seldom woke up.
fn is_idle(thread: &Thread) -> bool {
    let switches = thread.voluntary as f64 / thread.total_s.max(f64::MIN_POSITIVE);
    thread.running_s() + thread.waiting_s < IDLE_RUNNING * thread.total_s
        && switches < IDLE_SWITCHES
}

/// Whether threads wait at a condition variable, by their stack.
pub(crate) fn is_condition(wait: &Wait) -> bool {
    wait.stack
        .iter()
        .any(|function| function.contains("cond_") && function.contains("wait"))
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

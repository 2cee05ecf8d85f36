//! Rules of programs that run only to wait: loops that ask again and again instead of being woken.

use crate::arguments::Calls;
use crate::budget::View;
use crate::callers::Hot;
use crate::facts::Stack;
use crate::finding::{Finding, percent};
use crate::waits::POLLS;

use super::system::{call_of, caller, kernel, of_kernel, system};

/// The least share of running in the time of the threads.
const RUNNING: f64 = 0.6;
/// The least share of the kernel in the time of the threads.
const ASKING: f64 = 0.15;
/// The least part of the kernel's time in the call, and the most in calls that transfer something.
const POLLING: f64 = 0.4;
const TRANSFERRING: f64 = 0.15;
/// The least part of samples in user mode at PAUSE.
const PAUSING: f64 = 0.3;

/// Calls that transfer something: who polls has a reason then.
const TRANSFERS: [&str; 17] = [
    "read", "write", "readv", "writev", "pread64", "pwrite64", "recvfrom", "recvmsg", "recvmmsg",
    "sendto", "sendmsg", "sendmmsg", "sendfile", "accept", "accept4", "splice", "connect",
];

/// Whether the call of a stack is one that asks whether something has happened.
fn is_question(call: &str) -> bool {
    let others = [
        "sched_yield",
        "rt_sigtimedwait",
        "rt_sigpending",
        "wait4",
        "waitid",
    ];
    POLLS.contains(&call) || others.contains(&call)
}

/// Calls that ask, and return at once: the thread runs all the time, and transfers nothing.
pub(super) fn polling(view: &View) -> Option<Finding> {
    let is_asking = |stack: &Stack| call_of(stack).is_some_and(is_question);
    let asking = of_kernel(view, is_asking);
    let is_transfer = |stack: &Stack| call_of(stack).is_some_and(|call| TRANSFERS.contains(&call));
    let transferring = of_kernel(view, is_transfer);
    let is_system = kernel(view).is_some();
    if view.budget.running() < RUNNING
        || view.budget.system < ASKING
        || asking < POLLING
        || transferring > TRANSFERRING
    {
        return None;
    }
    let samples = view.facts.samples.as_ref()?;
    let asked = samples.stacks.iter().filter(|stack| is_asking(stack));
    let most = asked.max_by_key(|stack| stack.samples)?;
    let call = call_of(most)?;
    let sampled = Calls::of(view, |one| one == call);
    let meaning = if call == "sched_yield" {
        "to wait until another thread has done something".to_owned()
    } else if let Some(ready) = sampled.ready() {
        format!("which returns at once: {ready} is ready all the time")
    } else if let Some(options) = sampled.options() {
        options.to_owned()
    } else {
        "which returns at once: its timeout is 0, or what is ready, such as a connection that hung up, stays unhandled".to_owned()
    };
    // What most of its own work is in says more than the loop around it.
    let is_work =
        || super::user::one_function(view).is_some() || super::user::meaning(view).is_some();
    if !is_system && is_work() {
        return None;
    }
    let share = view.budget.running();
    let finding = system(
        view,
        format!(
            "it is a busy loop: it calls {call} again and again, {meaning}{}",
            caller(view, is_asking)
        ),
        share,
    )
    .with(
        format!(
            "{} of the kernel's samples in {call}, {} in calls that transfer something",
            percent(asking),
            percent(transferring)
        ),
        "cpu-clock",
        "40 %, under 15 %",
        "a loop of events that has work",
    )
    .advise("Wait with a timeout, for what is ready, and take what is ready away.")
    .look("strace -f -p PID");
    // An interpreter's loop is mostly in user mode, as one that works is.
    Some(if is_system { finding } else { finding.doubt() })
}

/// Loops in user mode that wait for another thread.
pub(super) fn spinning(view: &View) -> Option<Finding> {
    let samples = view.facts.samples.as_ref()?;
    let stacks = samples.stacks.iter();
    let own = stacks.filter(|stack| stack.kernel.is_empty() && !stack.user.is_empty());
    let all: u64 = own.clone().map(|stack| stack.samples).sum();
    let pausing: u64 = samples.pauses.iter().map(|code| code.samples).sum();
    let part = pausing as f64 / all.max(1) as f64;
    if part < PAUSING {
        return None;
    }
    let is_pausing = |stack: &&Stack| {
        let leaf = stack.user.first();
        let mut places = samples.pauses.iter();
        places.any(|code| Some(&code.function) == leaf)
    };
    let hot = Hot::of(own.filter(is_pausing));
    let path = hot.own_path().map(|(path, _)| path).or_else(|| hot.first());
    let share = view.budget.user * hot.all() as f64 / all.max(1) as f64;
    let from = path.map_or_else(String::new, |path| format!(" in {path}"));
    Some(
        Finding::new(
            format!(
                "it spins until another thread has done something (a busy loop with PAUSE){from}"
            ),
            share,
        )
        .with(
            format!("{} of its samples in user mode at PAUSE", percent(part)),
            "cpu-clock",
            "30 %",
            "work",
        )
        .advise("Block until there is something to do (a futex, a condition), or spin for less.")
        .look("perf record -g -p PID"),
    )
}

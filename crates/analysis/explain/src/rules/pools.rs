//! Rules of tasks that find no thread: those that wait for one another, and those whose pool is full.

use std::collections::BTreeSet;

use crate::budget::View;
use crate::callers::is_own;
use crate::facts::{Thread, Wait};
use crate::finding::Finding;
use crate::waits::{Kind, describe_wait, is_call, kind, own_path};

use super::blocked::THREAD_STATES;

/// How the stacks of pools' workers begin: of Java, of Python and of libuv.
const POOLED: [&str; 5] = [
    "ForkJoinWorkerThread.run",
    "ThreadPoolExecutor$Worker.run",
    "ThreadPoolExecutor.runWorker",
    "Python's thread._worker",
    "uv__queue_work",
];
/// Functions in which a thread waits for the result of a task: of C++ (libstdc++), Java
/// (java.util.concurrent) and Python (Lib/concurrent/futures).
const RESULTS: [&str; 11] = [
    "ForkJoinTask.awaitDone",
    "ForkJoinTask.get",
    "std::__future_base",
    "std::__basic_future",
    "FutureTask.get",
    "FutureTask.awaitDone",
    "CompletableFuture.get",
    "CompletableFuture.join",
    "AbstractExecutorService.invokeAll",
    "Python's _base.Future.result",
    "Python's _base.wait",
];
/// The same of a latch, which tasks count down. Main functions of servers wait at one, too, until these
/// are to end.
const LATCHES: [&str; 1] = ["CountDownLatch.await"];
/// The part of the time for which all threads of a pool wait so.
const ALL_ALONG: f64 = 0.7;

/// Whether one of some functions is on the stack of a wait.
fn has(wait: &Wait, names: &[&str]) -> bool {
    let mut functions = wait.stack.iter();
    functions.any(|function| names.iter().any(|name| function.contains(name)))
}

/// Whether a wait is for the result of a task. The functions of who executes one lie around the
/// program's own.
pub(super) fn is_for_result(wait: &Wait) -> bool {
    is_within(wait, &RESULTS)
}

/// Whether one of some functions is on the stack of a wait within the program's own.
fn is_within(wait: &Wait, names: &[&str]) -> bool {
    let mut functions = wait.stack.iter().take_while(|function| !is_own(function));
    functions.any(|function| names.iter().any(|name| function.contains(name)))
}

/// A pool whose threads all wait for results of tasks, which none of them is left to execute.
pub(super) fn pool_for_itself(view: &View) -> Option<Finding> {
    let is_for_task = |wait: &Wait| is_for_result(wait) || is_within(wait, &LATCHES);
    let waits = view.facts.waits.iter();
    let of_workers: Vec<&Wait> = waits.filter(|wait| has(wait, &POOLED)).collect();
    let waiting: Vec<&Wait> = of_workers
        .iter()
        .copied()
        .filter(|wait| is_for_task(wait))
        .collect();
    let threads: BTreeSet<u32> = waiting
        .iter()
        .flat_map(|wait| wait.threads.iter().copied())
        .collect();
    let seconds: f64 = waiting.iter().map(|wait| wait.seconds).sum();
    let is_all_along = seconds >= ALL_ALONG * view.facts.seconds * threads.len() as f64;
    let is_without_others = of_workers
        .iter()
        .all(|wait| is_for_task(wait) || wait.seconds < (1.0 - ALL_ALONG) * view.facts.seconds);
    let longest = waiting
        .into_iter()
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds))
        .filter(|_| is_all_along && is_without_others)?;
    let from = own_path(longest)
        .map(|function| format!(", in {function}"))
        .unwrap_or_default();
    let count = threads.len();
    let who = if count == 1 {
        "the only thread of a pool waits".to_owned()
    } else {
        format!("all {count} threads of a pool wait")
    };
    Some(
        Finding::new(
            format!(
                "{who} for the result of a task that the same pool is to execute (a deadlock){from}"
            ),
            1.0,
        )
        .doubt()
        .with(
            format!("{count} threads in the pool's own function, none of them without a task"),
            THREAD_STATES,
            "70 % of the time",
            "a pool without work",
        )
        .advise("Give tasks that wait for tasks a pool of their own, or have them called directly.")
        .look("jstack PID, py-spy dump --pid PID"),
    )
}

/// A pool whose threads all wait within tasks, all along.
pub(super) struct Taken {
    pub(super) threads: usize,
    /// What one of them does.
    pub(super) does: String,
}

/// Returns a pool that has no thread for a further task.
pub(super) fn taken_pool(view: &View) -> Option<Taken> {
    let facts = view.facts;
    let of_pool = facts.waits.iter().filter(|wait| has(wait, &POOLED));
    let (idle, busy): (Vec<&Wait>, Vec<&Wait>) =
        of_pool.partition(|wait| kind(facts, wait) == Kind::Idle);
    // One of them without a task would take it.
    let idle: f64 = idle.iter().map(|wait| wait.seconds).sum();
    let threads: BTreeSet<u32> = busy.iter().flat_map(|wait| wait.threads.clone()).collect();
    let seconds: f64 = busy.iter().map(|wait| wait.seconds).sum();
    let is_full = seconds >= ALL_ALONG * facts.seconds * threads.len() as f64;
    if threads.is_empty() || !is_full || idle > (1.0 - ALL_ALONG) * facts.seconds {
        return None;
    }
    let most = busy
        .into_iter()
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    Some(Taken {
        threads: threads.len(),
        does: describe_wait(facts, most),
    })
}

/// A thread that waits for a task's result while all threads of a pool are in other tasks, which wait
/// all along: the task finds no thread.
pub(super) fn full_pool(view: &View) -> Option<Finding> {
    let facts = view.facts;
    let longest = facts
        .waits
        .iter()
        .filter(|wait| is_for_result(wait) && !has(wait, &POOLED))
        .filter(|wait| wait.seconds >= ALL_ALONG * facts.seconds)
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let taken = taken_pool(view)?;
    let from = own_path(longest).map_or_else(String::new, |own| format!(" in {own}"));
    Some(
        Finding::new(
            format!(
                "a thread waits for the result of a task{from}, which finds no thread: all {} threads of the pool are in other tasks, where one {}",
                taken.threads,
                taken.does
            ),
            1.0,
        )
        .doubt()
        .with(
            format!("{} threads in the pool's own function, none of them without a task", taken.threads),
            THREAD_STATES,
            "70 % of the time",
            "a pool without work",
        )
        .advise("Give tasks that wait or never end threads of their own.")
        .look("jstack PID, py-spy dump --pid PID"),
    )
}

/// Returns that all threads of a pool are in tasks that wait for a signal, as the end of a sentence: a
/// task that is to send it finds no thread. Empty if one of them has no task, or works.
pub(super) fn waiting_pool(view: &View) -> String {
    let facts = view.facts;
    let of_pool = facts.waits.iter().filter(|wait| has(wait, &POOLED));
    let (waiting, others): (Vec<&Wait>, Vec<&Wait>) =
        of_pool.partition(|wait| kind(facts, wait) == Kind::Condition);
    let threads: BTreeSet<u32> = waiting
        .iter()
        .flat_map(|wait| wait.threads.clone())
        .collect();
    let seconds: f64 = waiting.iter().map(|wait| wait.seconds).sum();
    let elsewhere: f64 = others.iter().map(|wait| wait.seconds).sum();
    let is_all_along = seconds >= ALL_ALONG * facts.seconds * threads.len() as f64;
    if threads.is_empty() || !is_all_along || elsewhere > (1.0 - ALL_ALONG) * facts.seconds {
        return String::new();
    }
    let who = match threads.len() {
        1 => "the only thread of a pool is in a task that waits".to_owned(),
        count => format!("all {count} threads of a pool are in tasks that wait"),
    };
    format!("; {who} so, and a task that is to wake it finds no thread of that pool (a deadlock)")
}

/// A thread that waits for the result of a task all along, while no other thread does anything: the
/// task stands in the queue of the thread that waits, or was lost.
pub(super) fn lost_result(view: &View) -> Option<Finding> {
    let facts = view.facts;
    // The main function may sleep until the time is over.
    let is_main = |wait: &Wait| {
        let mut functions = wait.stack.iter();
        functions.any(|one| one == "main" || one.ends_with(".main"))
    };
    // A server that waits itself may be about to answer.
    let receives = |wait: &Wait| is_call(wait, &["recvfrom", "recvmsg", "recvmmsg"]);
    let is_for_nothing = |wait: &Wait| match kind(facts, wait) {
        Kind::Idle | Kind::Join => !receives(wait),
        Kind::Sleep => is_main(wait),
        _ => is_for_result(wait),
    };
    let all_along = ALL_ALONG * facts.seconds;
    let waits = facts.waits.iter();
    let longest = waits
        .clone()
        .filter(|wait| is_for_result(wait) && wait.seconds >= all_along)
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let elsewhere = waits.filter(|wait| !is_for_nothing(wait));
    let elsewhere: f64 = elsewhere.map(|wait| wait.seconds).sum();
    let running: f64 = facts.threads.iter().map(Thread::running_s).sum();
    if elsewhere + running > (1.0 - ALL_ALONG) * facts.seconds {
        return None;
    }
    let from = own_path(longest).map_or_else(String::new, |own| format!(", in {own}"));
    Some(
        Finding::new(
            format!(
                "a thread waits for the result of a task, and no thread is left to execute it: the task \
                 stands in the queue of the one that waits for it (a deadlock), or was lost{from}"
            ),
            1.0,
        )
        .doubt()
        .with(
            "all other threads wait for work, or sleep in the main function".into(),
            THREAD_STATES,
            "70 % of the time",
            "a task that takes long",
        )
        .advise("Do not wait for a task on the thread that is to execute it.")
        .look("jstack PID, py-spy dump --pid PID"),
    )
}

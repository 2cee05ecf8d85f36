//! Rules of the program's own work.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::View;
use crate::facts::{Stack, Wait};
use crate::finding::{Finding, percent};
use crate::runtimes::{MEANINGS, is_collector, is_jvm_collector};

use super::is_library;

/// The least share of the time in user mode (reference: 70 %).
const USER: f64 = 0.7;
/// The least share of one function in it.
const FUNCTION: f64 = 0.5;
/// The least share of collecting garbage in the time on processors.
const GARBAGE: f64 = 0.25;

/// Samples of the program's own work.
fn in_user_mode<'v>(view: &'v View) -> impl Iterator<Item = &'v Stack> + Clone {
    let samples = view.facts.samples.as_ref();
    samples
        .map_or(&[][..], |samples| &samples.stacks)
        .iter()
        .filter(|stack| stack.kernel.is_empty() && !stack.user.is_empty())
}

/// Where samples are, in and below a function.
#[derive(Debug, Default, Clone, Copy)]
struct Below {
    /// Samples with the function on their stack, and in it.
    with: u64,
    within: u64,
    /// The sum of the functions between it and where the sample is.
    distance: u64,
    /// Samples whose innermost function of the program's own it is.
    innermost: u64,
}

/// Returns all functions of the samples, each once for a stack.
fn functions<'v>(view: &'v View) -> (u64, BTreeMap<&'v str, Below>) {
    let mut found: BTreeMap<&str, Below> = BTreeMap::new();
    let mut all = 0;
    for stack in in_user_mode(view) {
        all += stack.samples;
        // Functions of shared objects have the name of their file behind them.
        let is_of_program = |function: &&String| is_own(function) && !function.contains(" (");
        let own = stack.user.iter().find(is_of_program);
        if let Some(own) = own {
            found.entry(own).or_default().innermost += stack.samples;
        }
        let mut seen = BTreeSet::new();
        for (distance, function) in stack.user.iter().enumerate() {
            if seen.insert(function) {
                let below = found.entry(function).or_default();
                below.with += stack.samples;
                below.distance += distance as u64 * stack.samples;
                below.within += if distance == 0 { stack.samples } else { 0 };
            }
        }
    }
    (all, found)
}

/// Returns the own function next to where most samples are: on at least half of the stacks, and of
/// those the innermost.
fn nearest_own<'v>(all: u64, functions: &BTreeMap<&'v str, Below>) -> Option<(&'v str, Below)> {
    let own = functions
        .iter()
        .filter(|(name, below)| below.with as f64 >= FUNCTION * all as f64 && is_own(name));
    let nearest = own.min_by(|(_, one), (_, other)| {
        let mean = |below: &Below| below.distance as f64 / below.with.max(1) as f64;
        mean(one).total_cmp(&mean(other))
    });
    nearest.map(|(name, below)| (*name, *below))
}

pub(super) fn one_function(view: &View) -> Option<Finding> {
    if view.budget.user < USER {
        return None;
    }
    let (all, functions) = functions(view);
    let (function, below) = functions.iter().max_by_key(|(_, below)| below.within)?;
    let own = nearest_own(all, &functions);
    let is_leaf = below.within as f64 >= FUNCTION * all as f64;
    let (what, count) = match own {
        _ if is_leaf && is_own(function) => ((*function).to_owned(), below.within),
        Some((own, _)) if is_leaf => (format!("{function}, called in {own}"), below.within),
        _ if is_leaf => ((*function).to_owned(), below.within),
        // The work is spread over what one function calls of libraries. One that calls functions of
        // the program, as main does, says nothing.
        Some((own, below)) if !is_start(own) && below.innermost as f64 >= FUNCTION * all as f64 => {
            (format!("{own} and what it calls"), below.with)
        }
        _ => return None,
    };
    let share = view.budget.user * count as f64 / all.max(1) as f64;
    let is_compiled = what.starts_with("(anonymous memory)");
    let what = what.replace(
        "(anonymous memory)",
        "code that its runtime compiled, without a name",
    );
    let finding = Finding::new(format!("it computes, and most of that in {what}"), share);
    let finding = if is_compiled {
        finding.advise("Have the runtime write perf-PID.map: node --perf-basic-prof, a perf map agent of the JVM.")
    } else {
        finding
    };
    Some(
        finding
            .with(
                format!("{} in user mode", percent(view.budget.user)),
                "/proc/TID/stat",
                "70 %",
                "the kernel, waiting",
            )
            .with(
                format!("{count} of {all} samples in {what}"),
                "cpu-clock",
                "50 %",
                "work that is spread over many functions",
            )
            .advise("Look at this function. Without a PMU nothing tells cache misses and false sharing from work.")
            .look("perf stat -d -p PID"),
    )
}

/// Whether a function is the program's own, and has a name.
fn is_own(function: &str) -> bool {
    !is_library(function) && !is_nameless(function)
}

/// Whether a function has no name: only a file and an address, or not even a file.
fn is_nameless(function: &str) -> bool {
    function.contains("+0x") || function.starts_with('(')
}

/// Whether a function is the program itself: all that it does is below it.
fn is_start(function: &str) -> bool {
    let names = [
        "main",
        "_start",
        "start_thread",
        "clone",
        "main.main",
        "runtime.main",
    ];
    let interpreters = ["_PyEval", "Py_", "Builtins_InterpreterEntry"];
    let is_interpreter = interpreters.iter().any(|begin| function.starts_with(begin));
    names.contains(&function) || is_interpreter
}

/// Functions of libraries and runtimes that say what the time is for.
pub(super) fn meaning(view: &View) -> Option<Finding> {
    let (all, functions) = functions(view);
    let share_of = |part: &str| {
        let with = in_user_mode(view)
            .filter(|stack| stack.user.iter().any(|function| function.contains(part)))
            .map(|stack| stack.samples)
            .sum::<u64>();
        with as f64 / all.max(1) as f64
    };
    let found = MEANINGS
        .iter()
        .map(|meaning| (meaning, share_of(meaning.function)))
        .find(|(_, share)| *share >= FUNCTION)
        .filter(|_| view.budget.user >= USER);
    let (meaning, share) = found?;
    let from = nearest_own(all, &functions)
        .filter(|(own, _)| !is_start(own) && !own.contains(meaning.function))
        .map(|(own, _)| format!(", called in {own}"))
        .unwrap_or_default();
    Some(
        Finding::new(format!("{}{from}", meaning.cause), share * view.budget.user)
            .with(
                format!("{} of its samples in {}", percent(share), meaning.function),
                "cpu-clock",
                "50 %",
                "the kernel, waiting",
            )
            .advise(meaning.advice)
            .look("perf record -g -p PID"),
    )
}

/// Whether a thread of Java waits until the VM thread has done something, such as a collection.
fn waits_for_collector(wait: &Wait) -> bool {
    let names = [
        "VMThread::execute",
        "VMThread::wait_until_executed",
        "SafepointSynchronize::block",
    ];
    wait.stack
        .iter()
        .any(|function| names.iter().any(|name| function.contains(name)))
}

/// Garbage collectors of runtimes.
pub(super) fn garbage(view: &View) -> Option<Finding> {
    let running: f64 = view
        .facts
        .threads
        .iter()
        .map(|thread| thread.running_s())
        .sum();
    let collectors = view
        .facts
        .threads
        .iter()
        .filter(|thread| is_jvm_collector(&thread.name));
    let by_thread: f64 =
        collectors.map(|thread| thread.running_s()).sum::<f64>() / running.max(f64::MIN_POSITIVE);
    let mut all = 0;
    let mut collecting = 0;
    let mut assisting = 0;
    let samples = view.facts.samples.as_ref();
    for stack in samples.map_or(&[][..], |samples| &samples.stacks) {
        all += stack.samples;
        let has = |test: &dyn Fn(&str) -> bool| stack.user.iter().any(|function| test(function));
        if has(&is_collector) {
            collecting += stack.samples;
        }
        if has(&|function| function.contains("runtime.gcAssistAlloc")) {
            assisting += stack.samples;
        }
    }
    let of = |samples: u64| samples as f64 / all.max(1) as f64;
    let share = by_thread.max(of(collecting));
    (share >= GARBAGE).then(|| {
        let assists = if of(assisting) >= 0.1 {
            "; its goroutines do part of that when they allocate (gcAssistAlloc)"
        } else {
            ""
        };
        Finding::new(
            format!("garbage collection has {} of its time on processors{assists}", percent(share)),
            share * view.budget.running() + view.blocked_in(waits_for_collector),
        )
        .with(
            format!(
                "{} of running in threads that collect, {} of samples in functions that do",
                percent(by_thread),
                percent(of(collecting))
            ),
            "/proc/TID/schedstat, cpu-clock",
            "25 % of running",
            "",
        )
        .advise("Allocate less and keep less; or give the heap more room (-Xmx, GOGC, GOMEMLIMIT, --max-old-space-size).")
        .look("the runtime's log of its collector: -Xlog:gc, GODEBUG=gctrace=1, --trace-gc")
    })
}

/// How the time of a lock's atomic words is seen: in the functions that take locks.
const LOCKING: [&str; 8] = [
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_rwlock",
    "pthread_spin_lock",
    "sync.(*RWMutex)",
    "sync.(*Mutex)",
    "runtime.lock2",
    "runtime.procyield",
];

/// Threads that take a lock so often that its words are the work.
pub(super) fn locking(view: &View) -> Option<Finding> {
    let several = view
        .active
        .iter()
        .filter(|thread| thread.running_s() > 0.2 * thread.total_s);
    let several = several.count() > 1;
    let (all, functions) = functions(view);
    let is_locking = |stack: &&Stack| {
        let innermost = stack.user.iter().take(2);
        innermost
            .into_iter()
            .any(|function| LOCKING.iter().any(|part| function.contains(part)))
    };
    let with: u64 = in_user_mode(view)
        .filter(is_locking)
        .map(|stack| stack.samples)
        .sum();
    let share = with as f64 / all.max(1) as f64;
    (several && share >= 0.4).then(|| {
        let own = nearest_own(all, &functions);
        let from = own
            .filter(|(own, _)| !is_start(own))
            .map(|(own, _)| format!(" in {own}"))
            .unwrap_or_default();
        Finding::new(
            format!("its threads take and give back one lock so often that this is the work{from}: its line of memory moves between processors"),
            share * view.budget.user,
        )
        .with(
            format!("{} of its samples in functions of locks", percent(share)),
            "cpu-clock",
            "40 %",
            "work below the lock",
        )
        .advise("Lock less often: per-thread data, batches, atomic reads (RCU, sync.Map).")
        .look("perf c2c record -p PID")
    })
}

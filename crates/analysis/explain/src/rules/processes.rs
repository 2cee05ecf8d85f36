//! Rules of creating processes: by copying a large one, by what they cost, and by closing its files.

use crate::budget::View;
use crate::callers::{Hot, is_start};
use crate::facts::{Limited, SHORT_LIVED, Stack, Started, Thread};
use crate::finding::{Finding, percent};
use crate::waits::is_at_mmap_lock;

use super::kernel_work::has;
use super::system::{ENTRY, call_of, caller, is_fault, kernel, maps_memory, of_kernel, system};

/// The least share of the time that creating processes has to explain.
const CREATING: f64 = 0.1;
/// The least share of the time of copying page tables and what follows, and of copying alone.
const FORKING: f64 = 0.15;
const COPYING: f64 = 0.04;
/// The least memory of a process whose page tables are long to copy (MiB): of a small one the rest of
/// a fork costs more.
const LARGE_MIB: u64 = 32;
/// A limit of open files from which on closing all of them takes time.
const FILES_MANY: u64 = 65_536;
/// Calls that create a process.
const CREATE: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

/// Returns the time in the kernel of what ended between two rounds (s).
fn ended_system_s(view: &View) -> f64 {
    let ended = view.budget_of_ended();
    ended.map_or(0.0, |ended| ended.system_s)
}

/// Whether the kernel copies page tables for a fork (mm/memory.c, kernel/fork.c).
pub(super) fn copies_tables(stack: &Stack) -> bool {
    let names = [
        "copy_page_range",
        "copy_pte_range",
        "dup_mmap",
        "copy_pmd",
        "copy_p4d",
    ];
    has(stack, &names)
}

/// Whether the kernel takes down the copied page tables when the child executes a program or ends
/// (mm/mmap.c: exit_mmap), or copies a page that both have (mm/memory.c: wp_page_copy).
fn follows_fork(stack: &Stack) -> bool {
    let is_end =
        call_of(stack).is_some_and(|call| call.starts_with("exec") || call.starts_with("exit"));
    is_end
        && has(
            stack,
            &["exit_mmap", "unmap_vmas", "free_pgtables", "zap_pte_range"],
        )
        || has(stack, &["do_wp_page", "wp_page_copy"])
}

pub(super) fn fork_tables(view: &View) -> Option<Finding> {
    let copying = view.running_in(copies_tables);
    let following = view.running_in(|stack| follows_fork(stack) && !copies_tables(stack));
    // The other threads wait for mmap_lock meanwhile.
    let waiting = view.blocked_in(is_at_mmap_lock);
    let share = copying + following + waiting;
    let resident_mib = view.facts.counters.resident_pages / 256;
    let created = view.facts.short_lived.created.unwrap_or_default();
    let forks = view.per_second(created.processes);
    (share >= FORKING && copying >= COPYING && resident_mib >= LARGE_MIB).then(|| {
        Finding::new(
            format!(
                "it copies the page tables of {resident_mib} MiB in each fork, {forks:.1} a second{}",
                caller(view, copies_tables)
            ),
            share,
        )
        .with(
            format!(
                "{} of the time in copying page tables, {} in taking them down and in copying pages afterwards, {} blocked at mmap_lock",
                percent(copying),
                percent(following),
                percent(waiting)
            ),
            "cpu-clock",
            "15 % together",
            "what the children do",
        )
        .with(
            format!("{resident_mib} MiB resident"),
            "/proc/PID/status, VmHWM",
            "",
            "",
        )
        .advise("Create processes by vfork or posix_spawn, from a small process, or with huge pages.")
        .look("strace -f -T -e trace=clone,fork,vfork -p PID")
    })
}

pub(super) fn closing(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let is_close = |stack: &Stack| call_of(stack) == Some("close");
    let of_close = of_kernel(view, is_close);
    let limits = view.facts.settings.limits.iter();
    let limit = limits
        .filter(|limit| limit.of == Limited::Files)
        .max_by_key(|limit| limit.value)?;
    (of_close >= ENTRY && limit.value >= FILES_MANY).then(|| {
        system(
            view,
            format!(
                "it closes one file descriptor after the other, up to a limit of {}{}",
                limit.value,
                caller(view, is_close)
            ),
            // The entry into the kernel belongs to each call.
            of_close * system_share,
        )
        .with(
            format!("{} of the kernel's samples in close", percent(of_close)),
            "cpu-clock",
            "40 %",
            "other system calls",
        )
        .with(
            format!("it may open {} files", limit.value),
            "/proc/PID/limits",
            "65536",
            "",
        )
        .advise("Close what is open (close_range, /proc/self/fd), or lower the limit: ulimit -n.")
        .look("strace -f -c -p PID")
    })
}

/// Returns which programs are started by whom, or who creates processes, as the middle of a
/// sentence.
fn starter(view: &View, is_program: bool) -> String {
    let started = &view.facts.started;
    let all: u64 = started
        .iter()
        .filter(|one| one.program.is_empty() != is_program)
        .map(|one| one.count)
        .sum();
    let mut largest = started
        .iter()
        .filter(|one| one.program.is_empty() != is_program && 5 * one.count >= all);
    let describe = |name: &str, command: &str| match command {
        "" => name.to_owned(),
        command if command == name => name.to_owned(),
        command => format!("{name} ({command})"),
    };
    let Some(first) = largest.next() else {
        return String::new();
    };
    let by = |one: &Started| format!("started by {}", describe(&one.by, &one.by_command));
    if !is_program {
        return format!(", {}", by(first));
    }
    let mut text = format!(
        ": {}, {}",
        describe(&first.program, &first.command),
        by(first)
    );
    if let Some(second) = largest.next() {
        let second = format!(
            "; {}, {}",
            describe(&second.program, &second.command),
            by(second)
        );
        text.push_str(&second);
    }
    text
}

/// Whether the kernel makes or takes down what a thread needs beside itself: its stack, and its
/// first page faults (glibc: nptl/allocatestack.c, pthread_create.c).
fn is_of_thread(stack: &Stack) -> bool {
    let is_memory = is_fault(stack)
        || maps_memory(stack)
        || call_of(stack)
            .is_some_and(|call| ["mprotect", "set_robust_list", "rseq"].contains(&call));
    let functions = ["pthread_create", "pthread_join", "start_thread"];
    let mut innermost = stack.user.iter().take(4);
    is_memory
        && innermost.any(|function| {
            let is_of_libc = function.starts_with("libc.so.6+0x");
            is_of_libc || functions.iter().any(|name| function.starts_with(name))
        })
}

/// Returns the own function that creates threads, by the C library's function below it, as the end
/// of a sentence.
fn creator_of_threads(view: &View) -> String {
    let samples = view.facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks).iter();
    let creates = |stack: &&Stack| {
        let mut functions = stack.user.iter();
        functions.any(|function| function.starts_with("pthread_create"))
    };
    let own = Hot::of(stacks.filter(creates)).own_path();
    let own = own.filter(|(own, _)| !is_start(own));
    own.map_or_else(String::new, |(own, _)| format!(", in {own}"))
}

/// New threads per second, their part of the observed time, and their part of all running, from which
/// on they are started for a piece of work each.
const THREADS: f64 = 4.0;
const SHORT: f64 = 0.25;
const OF_RUNNING: f64 = 0.5;

/// The function in which Node starts the thread of a Worker (src/node_worker.cc).
const WORKER: &str = "node::worker::Worker::";

/// Workers of Node that live for a moment each, and have most of the work together: each starts a V8,
/// which takes many times as long as a thread.
pub(super) fn short_workers(view: &View) -> Option<Finding> {
    let facts = view.facts;
    let created = facts.short_lived.created?;
    let each_s = view.per_second(created.threads);
    let is_short =
        |thread: &&Thread| thread.id != thread.process && thread.total_s <= SHORT * facts.seconds;
    let short = facts.threads.iter().filter(is_short);
    let running =
        |threads: &mut dyn Iterator<Item = &Thread>| threads.map(Thread::running_s).sum::<f64>();
    // Those that no two looks saw are in what ended between.
    let unseen = facts.short_lived.user_s + facts.short_lived.system_s;
    let of_short = running(&mut short.clone()) + unseen;
    let of_all = running(&mut facts.threads.iter()) + unseen;
    let is_of_threads = created.threads > created.processes;
    if each_s < THREADS || !is_of_threads || of_short < OF_RUNNING * of_all {
        return None;
    }
    let stacks = facts.samples.as_ref().map(|samples| &samples.stacks);
    let mut functions = stacks.into_iter().flatten().flat_map(|stack| &stack.user);
    if !functions.any(|function| function.starts_with(WORKER)) {
        return None;
    }
    let each_ms = 1000.0 * of_short / created.threads.max(1) as f64;
    let share = (of_short / facts.seconds).min(1.0);
    Some(
        Finding::new(
            format!(
                "it starts a new Worker (worker_threads, with a V8 of its own) for each piece of work, {each_s:.0} a second that run {each_ms:.1} ms each"
            ),
            share,
        )
        .with(
            format!(
                "{} of its running in threads that live shortly",
                percent(of_short / of_all.max(f64::MIN_POSITIVE))
            ),
            "/proc/TID/schedstat",
            "50 %",
            "threads that last",
        )
        .with(
            format!("{each_s:.0} new threads per second"),
            "perf_event_open",
            "4",
            "",
        )
        .advise("Keep threads for several pieces of work (a pool).")
        .look("strace -f -c -e trace=clone,clone3 -p PID"),
    )
}

pub(super) fn new_processes(view: &View) -> Option<Finding> {
    // Without the count of its own there is no telling: others of the host create processes, too.
    let own = view.facts.short_lived.created?;
    let created = view.per_second(own.processes + own.threads);
    let calls = [
        "clone",
        "clone3",
        "fork",
        "vfork",
        "execve",
        "execveat",
        "exit_group",
        "exit",
        "wait4",
    ];
    let makes_threads = own.threads > own.processes;
    // Of a child that lives shorter than a round, faults and mappings are its start, too.
    let is_process = |stack: &Stack| {
        call_of(stack).is_some_and(|call| calls.contains(&call))
            || stack.program == SHORT_LIVED && (is_fault(stack) || maps_memory(stack))
            || makes_threads && is_of_thread(stack)
    };
    let of_exec = of_kernel(view, |stack| {
        call_of(stack).is_some_and(|call| call.starts_with("execve"))
    });
    // What children compute is their own work, and no cost of creating them.
    let system_s = ended_system_s(view);
    let of_ended = system_s / (view.budget.running() * view.total_s).max(f64::MIN_POSITIVE);
    let share = if view.facts.samples.is_some() {
        view.running_in(is_process)
    } else {
        of_ended * view.budget.running()
    };
    let is_cost = share >= CREATING && (of_kernel(view, is_process) >= 0.2 || of_ended >= 0.4);
    // Why creating them is dear says more.
    if fork_tables(view).is_some_and(|tables| tables.share >= share / 2.0) {
        return None;
    }
    (created >= 50.0 && is_cost).then(|| {
        let [does, of_programs] = match own {
            _ if of_exec >= 0.1 => ["starts", "programs"],
            _ if makes_threads => ["creates", "threads"],
            _ => ["creates", "processes"],
        };
        let is_create = |stack: &Stack| {
            call_of(stack).is_some_and(|call| CREATE.contains(&call))
                && stack.program != SHORT_LIVED
        };
        let from = caller(view, is_create);
        // The own function behind those of the C library.
        let from = match from.rsplit_once(" for ") {
            Some((_, own)) => format!(", in {own}"),
            None => from,
        };
        let is_plain = !from.contains("+0x") && !from.contains(" (libc");
        let from = if is_plain { from } else { String::new() };
        let from = if makes_threads && from.is_empty() {
            creator_of_threads(view)
        } else {
            from
        };
        let starter = starter(view, of_programs == "programs");
        system(
            view,
            format!("it {does} {created:.0} {of_programs} a second{starter}{from}"),
            share,
        )
        .with(
            format!("{created:.0} new processes and threads of its own per second"),
            "perf_event_open, forks",
            "50",
            "other programs' processes",
        )
        .with(
            format!(
                "{} of the time was the kernel's, for processes that ended at once",
                percent(of_ended)
            ),
            "/proc/PID/stat, cstime",
            "40 %",
            "work of lasting processes, and what children compute",
        )
        .with(
            format!("{} of the kernel's samples in execve", percent(of_exec)),
            "cpu-clock",
            "10 %",
            "",
        )
        .advise(
            "Keep processes for several tasks (a pool), or call a library instead of a program.",
        )
        .look("strace -f -c -e trace=process -p PID")
    })
}

//! Rules of blocked threads. Each is over a share of the active threads' time; names are those of
//! the kernel's functions in which threads wait (`wchan`), by their stable part.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::{OWN, View, is_condition};
use crate::facts::{Futex, Limited, Object, Wait};
use crate::finding::{Finding, percent};

/// The least share of blocked time (reference: 30 %).
const BLOCKED: f64 = 0.3;
/// The share of the time at futexes that makes one of them the lock (reference: 50 %).
const TOP: f64 = 0.5;
/// Wake-ups of each thread per second from which on they can be the cost.
const WAKEUPS: f64 = 200.0;
/// Threads at one word from which on a wake-up is for many.
const HERD: usize = 4;
/// Pages read from swap per second, and their part of all page faults, from which on they are the
/// cost.
const SWAPPED: f64 = 50.0;
const SWAPPED_PART: f64 = 0.1;
/// The part of read bytes that comes from storage when the page cache does not have the data.
const COLD: f64 = 0.5;
const THREAD_STATES: &str = "/proc/TID/{stat,wchan,syscall}";

fn futex(wait: &Wait) -> Option<&Futex> {
    match &wait.object {
        Object::Futex(futex) if !futex.is_join => Some(futex),
        _ => None,
    }
}

/// Returns the share of the blocked time at futexes, and by word, longest first.
fn futexes<'a>(view: &View<'a>) -> (f64, Vec<(&'a Futex, f64)>) {
    let mut futexes: BTreeMap<(u32, u64), (&Futex, f64)> = BTreeMap::new();
    for wait in &view.waits {
        if let Some(futex) = futex(wait) {
            futexes.entry(futex.word).or_insert((futex, 0.0)).1 += wait.seconds;
        }
    }
    let mut futexes: Vec<(&Futex, f64)> = futexes.into_values().collect();
    futexes.sort_by(|one, other| other.1.total_cmp(&one.1));
    (view.blocked_in(|wait| futex(wait).is_some()), futexes)
}

/// Returns the longest stack of the waits for which a test holds: the first function that is
/// neither libc's nor ld's.
fn caller(view: &View, is_wanted: impl Fn(&Wait) -> bool) -> Option<String> {
    let wait = view
        .waits
        .iter()
        .find(|wait| is_wanted(wait) && !wait.stack.is_empty())?;
    let own = wait
        .stack
        .iter()
        .find(|function| !is_library(function) && !function.starts_with('('));
    own.or(wait.stack.first()).cloned()
}

/// Whether a function belongs to the C library or the loader, as `observe` writes them: `function
/// (libc.so.6)`, or `libc.so.6+0x12` without a name.
pub(crate) fn is_library(function: &str) -> bool {
    let file = function.rsplit_once('(').map_or(function, |(_, file)| file);
    [
        "libc.",
        "libc-",
        "ld-",
        "libpthread",
        "libc_malloc",
        "[vdso]",
    ]
    .iter()
    .any(|library| file.starts_with(library))
}

pub(super) fn false_wakeups(view: &View) -> Option<Finding> {
    let (at_futexes, futexes) = futexes(view);
    let (word, seconds) = futexes.first()?;
    let threads: BTreeSet<u32> = view
        .waits
        .iter()
        .filter(|wait| futex(wait) == Some(word))
        .flat_map(|wait| wait.threads.iter().copied())
        .collect();
    let woken: Vec<_> = view
        .active
        .iter()
        .filter(|thread| threads.contains(&thread.id))
        .collect();
    let switches: u64 = woken.iter().map(|thread| thread.voluntary).sum();
    let running: f64 = woken.iter().map(|thread| thread.running_s()).sum();
    let each = view.per_second(switches) / threads.len().max(1) as f64;
    let us = 1e6 * running / switches.max(1) as f64;
    let all: f64 = futexes.iter().map(|(_, seconds)| seconds).sum();
    let is_condition = view
        .waits
        .iter()
        .any(|wait| futex(wait) == Some(word) && is_condition(wait));
    let share = at_futexes + view.budget.waiting + view.budget.system;
    let is_herd = threads.len() >= HERD
        && is_condition
        && each >= WAKEUPS
        && us < 200.0
        && seconds / all > 0.25
        && share >= BLOCKED;
    is_herd.then(|| {
            let caller = caller(view, |wait| futex(wait) == Some(word)).unwrap_or_default();
            Finding::new(
                format!(
                    "{} threads are woken together, {each:.0} times a second, and wait again in {caller}",
                    threads.len()
                ),
                share.min(1.0),
            )
            .with(format!("{each:.0} wake-ups per second and thread"), "/proc/TID/status", "200", "")
            .with(
                format!("{us:.0} µs of running per wake-up"),
                "/proc/TID/schedstat",
                "under 200 µs",
                "work after a wake-up",
            )
            .with(
                format!("{} threads wait at one word", threads.len()),
                THREAD_STATES,
                "4",
                "a lock with one waiter at a time",
            )
            .advise("Wake one thread (pthread_cond_signal) when there is work for one.")
            .look("perf trace -s -p PID")
        })
}

pub(super) fn hot_lock(view: &View) -> Option<Finding> {
    let (at_futexes, futexes) = futexes(view);
    let (word, seconds) = futexes.first()?;
    let all: f64 = futexes.iter().map(|(_, seconds)| seconds).sum();
    let of_futexes = seconds / all;
    let share = at_futexes * of_futexes;
    if at_futexes < BLOCKED || of_futexes < TOP {
        return None;
    }
    let is_word = |wait: &Wait| futex(wait).is_some_and(|futex| futex.word == word.word);
    let threads: BTreeSet<u32> = view
        .waits
        .iter()
        .filter(|wait| is_word(wait))
        .flat_map(|wait| wait.threads.iter().copied())
        .collect();
    let place = if word.mapping.is_empty() {
        format!("{:#x}", word.word.1)
    } else {
        word.mapping.clone()
    };
    let from = caller(view, is_word)
        .map(|function| format!(", in {function}"))
        .unwrap_or_default();
    let is_signal = view
        .waits
        .iter()
        .any(|wait| is_word(wait) && is_condition(wait));
    let what = if is_signal {
        "condition variable"
    } else {
        "lock"
    };
    let waiting = if threads.len() == 1 {
        "1 thread waits".into()
    } else {
        format!("{} threads wait", threads.len())
    };
    let mut finding = Finding::new(format!("{waiting} for one {what}, {place}{from}"), share)
        .with(
            format!("{} blocked at futexes", percent(at_futexes)),
            THREAD_STATES,
            "30 %",
            "processor time and I/O",
        )
        .with(
            format!("{} of that at one word", percent(of_futexes)),
            THREAD_STATES,
            "50 %",
            "many locks, waiting for work",
        );
    let owner = view
        .waits
        .iter()
        .filter(|wait| is_word(wait))
        .find_map(|wait| futex(wait)?.owner);
    if let (Some(owner), false) = (owner, is_signal) {
        let name = view
            .facts
            .threads
            .iter()
            .find(|thread| thread.id == owner)
            .map_or("", |thread| &thread.name);
        let source = "pthread_mutex_t.__owner, /proc/PID/mem";
        finding = finding.with(
            format!("held by thread {owner} {name} when last seen"),
            source,
            "",
            "",
        );
    }
    if is_signal {
        finding = finding
            .doubt()
            .advise("See what the threads wait for: the thread that signals is the bottleneck.");
    } else {
        finding = finding.advise("Hold the lock for less, or split it.");
    }
    Some(finding.look("gdb -p PID -batch -ex 'thread apply all bt'"))
}

pub(super) fn many_locks(view: &View) -> Option<Finding> {
    let (at_futexes, futexes) = futexes(view);
    let all: f64 = futexes.iter().map(|(_, seconds)| seconds).sum();
    let top = futexes.first()?.1 / all;
    (at_futexes >= BLOCKED && top < TOP).then(|| {
        let from =
            caller(view, |wait| futex(wait).is_some()).map(|function| format!(", in {function}"));
        Finding::new(
            format!(
                "threads wait at {} futexes, none dominates{}",
                futexes.len(),
                from.unwrap_or_default()
            ),
            at_futexes,
        )
        .doubt()
        .with(
            format!("{} blocked at futexes", percent(at_futexes)),
            THREAD_STATES,
            "30 %",
            "processor time and I/O",
        )
        .with(
            format!("{} of that at the first of {}", percent(top), futexes.len()),
            THREAD_STATES,
            "under 50 %",
            "one hot lock",
        )
        .advise("Look at who gives the threads their work: waiting for work looks the same.")
        .look("gdb -p PID -batch -ex 'thread apply all bt'")
    })
}

/// A rule of waits that a test selects; `least` of the active threads' time.
fn blocked(
    view: &View,
    is_wanted: impl Fn(&Wait) -> bool,
    rules_out: &'static str,
    cause: impl FnOnce(Option<String>) -> String,
) -> Option<Finding> {
    let share = view.blocked_in(&is_wanted);
    if share < BLOCKED {
        return None;
    }
    let first = view.waits.iter().find(|wait| is_wanted(wait))?;
    let at: Vec<&str> = [&*first.call, &*first.function]
        .into_iter()
        .filter(|name| !name.is_empty())
        .collect();
    let from = caller(view, is_wanted).map(|function| format!(" in {function}"));
    Some(Finding::new(cause(from), share).with(
        format!("{} blocked at {}", percent(share), at.join(", ")),
        THREAD_STATES,
        "30 %",
        rules_out,
    ))
}

fn is_in(wait: &Wait, functions: &[&str]) -> bool {
    functions
        .iter()
        .any(|function| wait.function.contains(function))
}

fn is_call(wait: &Wait, calls: &[&str]) -> bool {
    calls.contains(&&*wait.call)
}

const SYNCS: [&str; 6] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "msync",
    "sync_file_range",
];
const DIRTY: [&str; 1] = ["balance_dirty"];
const RECLAIM: [&str; 5] = [
    "reclaim",
    "shrink_",
    "compact",
    "mem_cgroup_handle_over_high",
    "congestion",
];
const RCU: [&str; 4] = [
    "wait_rcu",
    "synchronize_rcu",
    "rcu_barrier",
    "synchronize_srcu",
];
const KERNEL_LOCKS: [&str; 6] = [
    "rwsem_",
    "mutex_lock",
    "percpu_down",
    "percpu_rwsem",
    "rt_mutex",
    "rwbase_",
];
const STORAGE: [&str; 6] = [
    "folio_wait",
    "io_schedule",
    "wait_on_page",
    "blkdev_direct",
    "iomap_dio",
    "__wait_on_buffer",
];
const SOCKETS: [&str; 10] = [
    "wait_for_more_packets",
    "sk_wait_data",
    "sk_stream_wait",
    "csk_accept",
    "unix_stream",
    "unix_wait",
    "unix_dgram",
    "sock_alloc_send",
    "skb_recv",
    "tcp_",
];
const NETWORK_CALLS: [&str; 8] = [
    "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "accept", "connect",
];
const SLEEPS: [&str; 3] = ["nanosleep", "clock_nanosleep", "pause"];
const POLLS: [&str; 7] = [
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];

pub(super) fn sync(view: &View) -> Option<Finding> {
    let is_sync = |wait: &Wait| is_call(wait, &SYNCS);
    let finding = blocked(view, is_sync, "locks and the network", |from| {
        format!(
            "it waits for storage after each sync{}",
            from.unwrap_or_default()
        )
    })?;
    let bytes = view.per_second(view.facts.counters.storage_written_bytes) / 1e6;
    Some(
        finding
            .with(
                format!("{bytes:.1} MB/s to storage"),
                "/proc/PID/io",
                "",
                "",
            )
            .advise("Sync after several records instead of each (group commit).")
            .look("strace -f -T -e trace=fsync,fdatasync,msync -p PID"),
    )
}

pub(super) fn dirty_throttling(view: &View) -> Option<Finding> {
    let is_dirty = |wait: &Wait| is_in(wait, &DIRTY);
    let finding = blocked(view, is_dirty, "reads and syncs", |from| {
        format!(
            "the kernel stops its writes until dirty pages are written{}",
            from.unwrap_or_default()
        )
    })?;
    let finding = super::settings::limit(finding, view, Limited::Dirty);
    Some(
        finding
            .advise("Write less, or to faster storage; vm.dirty_ratio only moves the point.")
            .look("vmstat 1"),
    )
}

/// Whether page faults read from swap, so that no other rule of page faults explains them. The
/// kernel counts the pages of all programs: without own memory on swap they are others'.
pub(super) fn swaps(view: &View) -> bool {
    let counters = &view.facts.counters;
    let faults = counters.minor_faults + counters.major_faults;
    counters.swapped_pages > 0
        && view.per_second(counters.swapped_in) >= SWAPPED
        && counters.swapped_in as f64 >= SWAPPED_PART * faults as f64
}

pub(super) fn swap(view: &View) -> Option<Finding> {
    if !swaps(view) {
        return None;
    }
    let counters = &view.facts.counters;
    let is_waiting = |wait: &Wait| wait.is_uninterruptible && wait.call.is_empty();
    let blocked = view.blocked_in(is_waiting);
    let running = view.running_in(super::system::is_fault);
    let from = caller(view, is_waiting)
        .map(|function| format!(", touched in {function}"))
        .unwrap_or_default();
    (blocked + running >= BLOCKED).then(|| {
        let pages = view.per_second(counters.swapped_in);
        let finding = Finding::new(format!("its memory is on swap{from}"), blocked + running);
        super::settings::limit(finding, view, Limited::Memory)
            .with(
                format!(
                    "{} blocked in page faults, {} running in them",
                    percent(blocked),
                    percent(running)
                ),
                "/proc/TID/{stat,syscall}, cpu-clock",
                "30 % together",
                "reads of files",
            )
            .with(
                format!("{pages:.0} pages read from swap per second"),
                "/proc/vmstat, pswpin",
                "50",
                "first touches",
            )
            .with(
                format!("{} of its pages on swap", counters.swapped_pages),
                "/proc/PID/status",
                "any",
                "others' swapping",
            )
            .with(
                format!("{} major faults", counters.major_faults),
                "/proc/PID/stat",
                "",
                "",
            )
            .advise("Give it more memory (memory.max of its cgroup, or the host), or use less.")
            .look("vmstat 1")
    })
}

pub(super) fn reclaim(view: &View) -> Option<Finding> {
    let is_reclaim = |wait: &Wait| is_in(wait, &RECLAIM);
    let finding = blocked(view, is_reclaim, "locks and I/O of the program", |from| {
        format!(
            "its allocations wait until memory is reclaimed{}",
            from.unwrap_or_default()
        )
    })?;
    let finding = super::settings::limit(finding, view, Limited::Memory);
    Some(
        finding
            .advise("Give it more memory: memory.high and memory.max of its cgroup, or the host.")
            .look("vmstat 1"),
    )
}

pub(super) fn rcu(view: &View) -> Option<Finding> {
    let is_rcu = |wait: &Wait| is_in(wait, &RCU) || is_call(wait, &["membarrier"]);
    let call = view
        .waits
        .iter()
        .find(|wait| is_rcu(wait))
        .map_or("", |wait| &wait.call)
        .to_owned();
    let finding = blocked(view, is_rcu, "locks and I/O", |from| {
        format!(
            "each {call} waits for an RCU grace period{}",
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .advise("Call it less often, or its expedited form.")
            .look("strace -f -T -p PID"),
    )
}

pub(super) fn kernel_lock(view: &View) -> Option<Finding> {
    let is_lock = |wait: &Wait| is_in(wait, &KERNEL_LOCKS);
    let mut calls: BTreeMap<&str, f64> = BTreeMap::new();
    for wait in view.waits.iter().filter(|wait| is_lock(wait)) {
        *calls
            .entry(if wait.call.is_empty() {
                "page faults"
            } else {
                &wait.call
            })
            .or_default() += wait.seconds;
    }
    let is_memory = !calls.is_empty()
        && calls
            .keys()
            .all(|call| super::system::CHANGES.contains(call));
    let named = calls.keys().copied().collect::<Vec<_>>().join(", ");
    let finding = blocked(view, is_lock, "locks of the program", |from| {
        let from = from.unwrap_or_default();
        if is_memory {
            format!("threads wait for mmap_lock: they change one address space ({named}){from}")
        } else {
            format!("threads wait for a lock of the kernel in {named}{from}")
        }
    })?;
    Some(
        finding
            .advise(if is_memory {
                "Change the address space less often: larger blocks, or processes instead of threads."
            } else {
                "Let threads use files and folders of their own."
            })
            .look("perf lock contention -a sleep 5"),
    )
}

pub(super) fn storage_reads(view: &View) -> Option<Finding> {
    let reads = [
        "read",
        "pread64",
        "readv",
        "preadv",
        "preadv2",
        "io_getevents",
        "io_uring_enter",
        "getdents64",
        "",
    ];
    let is_read = |wait: &Wait| {
        (wait.is_uninterruptible || is_in(wait, &STORAGE))
            && is_call(wait, &reads)
            && !is_in(wait, &KERNEL_LOCKS)
    };
    let counters = &view.facts.counters;
    let is_cold = counters.storage_read_bytes > 0
        && counters.storage_read_bytes as f64 >= COLD * counters.read_bytes as f64;
    let blocked = view.blocked_in(is_read);
    // What the kernel computes for each read is part of it, if the page cache does not have the
    // data.
    let running = if is_cold {
        view.running_in(|stack| {
            super::system::call_of(stack).is_some_and(|call| reads.contains(&call))
        })
    } else {
        0.0
    };
    if blocked + running < BLOCKED || swaps(view) {
        return None;
    }
    let from = caller(view, is_read)
        .map(|function| format!(" in {function}"))
        .unwrap_or_default();
    let mean = counters.read_bytes as f64 / counters.reads.max(1) as f64;
    let mut finding = Finding::new(
        format!("it waits for reads from storage{from}"),
        blocked + running,
    )
    .with(
        format!(
            "{} blocked in reads, {} running in them",
            percent(blocked),
            percent(running)
        ),
        "/proc/TID/{stat,wchan,syscall}, cpu-clock",
        "30 % together",
        "locks and the network",
    )
    .with(
        format!(
            "{:.1} MB/s from storage",
            view.per_second(counters.storage_read_bytes) / 1e6
        ),
        "/proc/PID/io",
        "",
        "the page cache",
    )
    .with(format!("{mean:.0} bytes per read"), "/proc/PID/io", "", "");
    if counters.refaulted > 0 {
        finding = finding.with(
            format!("{} pages read again after reclaim", counters.refaulted),
            "/proc/vmstat",
            "",
            "",
        );
    }
    Some(
        finding
            .advise("Read ahead, read larger pieces, or keep the data in memory.")
            .look("iostat -x 1"),
    )
}

pub(super) fn pipe(view: &View) -> Option<Finding> {
    let is_pipe = |wait: &Wait| {
        (is_in(wait, &["pipe_read", "pipe_write"]) || is_file(wait, "pipe:")) && !is_file(wait, OWN)
    };
    let first = view.waits.iter().find(|wait| is_pipe(wait));
    let is_write = first.is_some_and(|wait| is_call(wait, &["write", "writev", "splice"]));
    let peer = first.map_or(String::new(), |wait| described(wait));
    let finding = blocked(view, is_pipe, "processor time, storage", |from| {
        let from = from.unwrap_or_default();
        let does = if is_write {
            "reads too slowly"
        } else {
            "writes too slowly"
        };
        format!("it waits for a pipe whose other end {does}{peer}{from}")
    })?;
    Some(
        finding
            .advise("Explain the process at the other end: marvin explain --pid PID.")
            .look("lsof -p PID"),
    )
}

pub(super) fn network(view: &View) -> Option<Finding> {
    let is_socket = |wait: &Wait| {
        is_in(wait, &SOCKETS)
            || is_call(wait, &NETWORK_CALLS)
            || (is_file(wait, "socket") && !is_call(wait, &POLLS))
    };
    let peer = view
        .waits
        .iter()
        .find(|wait| is_socket(wait))
        .map_or(String::new(), |wait| described(wait));
    let finding = blocked(view, is_socket, "processor time, storage", |from| {
        format!(
            "it waits for the peer of a socket{peer}{}",
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .advise("Look at the peer, and at the name servers if this is a lookup.")
            .look("ss -tunp"),
    )
}

pub(super) fn sleep(view: &View) -> Option<Finding> {
    let is_sleep = |wait: &Wait| is_call(wait, &SLEEPS) || is_in(wait, &["nanosleep"]);
    let finding = blocked(view, is_sleep, "locks, I/O and processor time", |from| {
        format!("it sleeps by its own choice{}", from.unwrap_or_default())
    })?;
    let each = view.per_second(view.active.iter().map(|thread| thread.voluntary).sum());
    Some(
        finding
            .with(
                format!("{each:.0} times per second"),
                "/proc/TID/status",
                "",
                "",
            )
            .advise("Wait for the event instead of sleeping.")
            .look("strace -f -e trace=nanosleep,clock_nanosleep -p PID"),
    )
}

pub(super) fn poll(view: &View) -> Option<Finding> {
    let is_poll = |wait: &Wait| is_call(wait, &POLLS);
    let finding = blocked(view, is_poll, "locks, storage and processor time", |from| {
        format!("it waits for events{}", from.unwrap_or_default())
    })?;
    Some(
        finding
            .doubt()
            .advise("Look at who sends the events: the load generator or a peer.")
            .look("ss -tunp"),
    )
}

fn is_file(wait: &Wait, kind: &str) -> bool {
    matches!(&wait.object, Object::File(file) if file.starts_with(kind))
}

fn described(wait: &Wait) -> String {
    match &wait.object {
        Object::File(file) => format!(" ({file})"),
        _ => String::new(),
    }
}

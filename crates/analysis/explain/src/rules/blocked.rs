//! Rules of blocked threads. Each is over a share of the active threads' time; names are those of
//! the kernel's functions in which threads wait (`wchan`), by their stable part.

use std::collections::{BTreeMap, BTreeSet};

use crate::arguments::Calls;
use crate::between::between;
use crate::budget::{OWN, View, is_for_own};
use crate::callers::{is_own, is_start};
use crate::facts::{GOROUTINES, Limited, Object, Thread, Wait, WatchedKind};
use crate::finding::{Finding, percent};
use crate::runtimes::POOLS;
use crate::waits::{
    DIRTY, KERNEL_LOCKS, Kind, POLLS, RCU, RECLAIM, SLEEPS, STORAGE, SYNCS, at_most, chain,
    describe_wait, is_at_directory, is_at_mmap_lock, is_call, is_file, is_for_signal, is_held,
    is_in, is_waiting_for_clients, kind, own_path, timer_ms, with_time,
};

use super::sockets::{self, is_one_socket};

/// The least share of blocked time (reference: 30 %).
pub(super) const BLOCKED: f64 = 0.3;
/// Sleeps per second that are worth a word.
const OFTEN: f64 = 20.0;
/// Pages read from swap per second, and their part of all page faults, from which on they are the
/// cost.
const SWAPPED: f64 = 50.0;
const SWAPPED_PART: f64 = 0.1;
/// The part of read bytes that comes from storage when the page cache does not have the data.
const COLD: f64 = 0.5;
/// Calls that read files; without a name that of a mapped one.
const READS: [&str; 9] = [
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
/// The share of blocked reads and the bytes per second below which storage is not what reads wait
/// for.
const LITTLE: f64 = 0.1;
const READ_LEAST: f64 = 1e6;
pub(super) const THREAD_STATES: &str = "/proc/TID/{stat,wchan,syscall}";

/// Returns the first function of the longest wait for which a test holds that is neither a
/// library's way of waiting nor the C library's.
pub(super) fn caller(view: &View, is_wanted: impl Fn(&Wait) -> bool) -> Option<String> {
    let wait = view
        .waits
        .iter()
        .find(|wait| is_wanted(wait) && !wait.stack.is_empty())?;
    own_path(wait).or_else(|| wait.stack.first().cloned())
}

/// A rule of waits that a test selects.
pub(super) fn blocked(
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
    let pool = of_pool(view, &is_wanted);
    let from = caller(view, is_wanted).map(|function| format!(" in {function}"));
    Some(Finding::new(cause(from) + &pool, share).with(
        format!("{} blocked at {}", percent(share), at.join(", ")),
        THREAD_STATES,
        "30 %",
        rules_out,
    ))
}

/// Returns that waits hold threads of a pool, as the end of a sentence; empty if they do not.
fn of_pool(view: &View, is_wanted: impl Fn(&Wait) -> bool) -> String {
    let mut pools: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for wait in view.waits.iter().filter(|wait| is_wanted(wait)) {
        let has = |function: &str| wait.stack.iter().any(|one| one.contains(function));
        // A synchronous call does the same on the thread of the script.
        let pool = POOLS.iter().find(|(function, _)| has(function));
        if let Some((_, pool)) = pool.filter(|_| !has("Builtins_")) {
            pools.entry(pool).or_default().extend(&wait.threads);
        }
    }
    let largest = pools.into_iter().max_by_key(|(_, threads)| threads.len());
    largest.map_or_else(String::new, |(pool, threads)| {
        format!(
            "; there {} of the threads of {pool} wait, and others find none",
            threads.len()
        )
    })
}

pub(super) fn sync(view: &View) -> Option<Finding> {
    let is_sync = |wait: &Wait| is_call(wait, &SYNCS);
    let first = view.waits.iter().find(|wait| is_sync(wait))?;
    let (call, file) = (&first.call, described(first));
    // What the kernel does in them is part of it, the more the faster the storage is.
    let blocked = view.blocked_in(is_sync);
    let running = view.running_in(|stack| stack.call().is_some_and(|call| SYNCS.contains(&call)));
    let is_waiting = blocked >= 0.5 * BLOCKED && blocked + running >= BLOCKED;
    if !is_waiting {
        return None;
    }
    let from = caller(view, is_sync).map_or_else(String::new, |own| format!(" in {own}"));
    let finding = Finding::new(
        format!("it waits for storage after each {call}{file}{from}"),
        blocked + running,
    )
    .with(
        format!(
            "{} blocked in {call}, {} running in it",
            percent(blocked),
            percent(running)
        ),
        THREAD_STATES,
        "30 % together",
        "",
    );
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

/// Writes that wait for storage each (`O_SYNC`, `O_DIRECT`), and other calls of files that do.
pub(super) fn storage_calls(view: &View) -> Option<Finding> {
    let is_storage = |wait: &Wait| {
        kind(view.facts, wait) == Kind::Storage
            && !wait.call.is_empty()
            && !is_call(wait, &SYNCS)
            && !is_call(wait, &READS)
            && !is_in(wait, &DIRTY)
    };
    let first = view.waits.iter().find(|wait| is_storage(wait))?;
    let (call, file) = (&first.call, described(first));
    let why = if call.contains("write") {
        ", each of which goes to storage at once (O_SYNC, O_DSYNC or O_DIRECT)"
    } else {
        ""
    };
    let finding = blocked(view, is_storage, "", |from| {
        format!(
            "it waits for storage in {call}{file}{}{why}",
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .advise("Write several records at once, or sync after several.")
            .look("strace -f -T -p PID"),
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
    let is_lock =
        |wait: &Wait| is_in(wait, &KERNEL_LOCKS) || is_at_mmap_lock(wait) || is_at_directory(wait);
    let of_memory = view.blocked_in(is_at_mmap_lock);
    let of_directories = view.blocked_in(is_at_directory);
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
        && (of_memory >= 0.5 * view.blocked_in(is_lock)
            || calls
                .keys()
                .all(|call| super::system::CHANGES.contains(call)));
    let is_directory = of_directories >= 0.5 * view.blocked_in(is_lock) && of_directories > 0.0;
    let mut calls: Vec<(&str, f64)> = calls.into_iter().collect();
    calls.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named = calls.iter().take(3).map(|(call, _)| *call);
    let named = named.collect::<Vec<_>>().join(", ");
    // A fork holds mmap_lock as long as it copies.
    let copying = view.running_in(super::processes::copies_tables);
    let forks = if copying >= 0.05 * view.budget.running() && copying > 0.0 {
        let mib = view.facts.counters.resident_pages / 256;
        format!("; forks hold it while they copy the page tables of {mib} MiB")
    } else {
        String::new()
    };
    let flushes = super::kernel_work::shootdowns(view);
    let finding = blocked(view, is_lock, "locks of the program", |from| {
        let from = from.unwrap_or_default();
        if is_memory {
            format!(
                "threads wait for mmap_lock: they change one address space ({named}){from}{forks}{flushes}"
            )
        } else if is_directory {
            format!("threads wait for the lock of a directory in {named}{from}")
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
    let reads = READS;
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
    let per_second = view.per_second(counters.storage_read_bytes);
    let is_little = blocked < LITTLE && per_second < READ_LEAST;
    if blocked + running < BLOCKED || swaps(view) || is_little {
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
        (is_in(wait, &["pipe_read", "pipe_write"]) || is_file(wait, "pipe:"))
            && !described(wait).starts_with(&format!(" ({OWN}"))
    };
    let first = view.waits.iter().find(|wait| is_pipe(wait))?;
    let does = if is_call(first, &["write", "writev", "splice"]) {
        "reads too slowly"
    } else {
        "writes too slowly"
    };
    let peer = described(first);
    let behind = chain(view.facts, first);
    let finding = blocked(view, is_pipe, "", |from| {
        format!(
            "it waits for a pipe whose other end {does}{peer}{}{behind}",
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .advise("Explain the process at the other end: marvin explain --pid PID.")
            .look("lsof -p PID"),
    )
}

/// A server without clients, and pools without work.
pub(super) fn idle(view: &View) -> Option<Finding> {
    let is_accept = |wait: &Wait| is_call(wait, &["accept"]) || is_waiting_for_clients(wait);
    let is_pool = |wait: &Wait| {
        let is_event = is_file(wait, "anon_inode") && !is_call(wait, &POLLS);
        kind(view.facts, wait) == Kind::Idle && !is_event
    };
    let is_idle = |wait: &Wait| is_accept(wait) || is_pool(wait);
    let has_clients = view.waits.iter().any(is_accept);
    let finding = blocked(view, is_idle, "", |_| {
        if has_clients {
            let from = caller(view, is_accept);
            let from = from.map_or(String::new(), |function| format!(" in {function}"));
            format!("it is idle and waits for clients{from}")
        } else {
            let timer = loop_timer(view);
            let place = for_what(view, is_pool);
            let mut gaps = view.facts.gaps.iter();
            let goroutines = match gaps.any(|gap| gap.what == GOROUTINES) {
                true => " (what its goroutines wait for is not known)",
                false => "",
            };
            format!(
                "it is idle: its threads wait for work{goroutines}{place}{timer}{}{}{}",
                sockets::unread(view),
                others_do(view),
                between(view.facts)
            )
        }
    })?;
    Some(
        finding
            .doubt()
            .advise("Observe it while there is work, or explain who is to send it.")
            .look("ss -tunlp"),
    )
}

/// Returns in which function of its own most of a program waits for work, as the end of a sentence: it
/// may be a pool of something else than threads. Empty where only a runtime does.
fn for_what(view: &View, is_wanted: impl Fn(&Wait) -> bool) -> String {
    let mut places: BTreeMap<String, f64> = BTreeMap::new();
    let mut all = 0.0;
    for wait in view.waits.iter().filter(|wait| is_wanted(wait)) {
        all += wait.seconds;
        let own = wait
            .stack
            .iter()
            .filter(|one| is_own(one) && !is_start(one));
        // What a thread begins with waits for work.
        if own.count() > 1
            && let Some(path) = own_path(wait)
        {
            *places.entry(path).or_default() += wait.seconds;
        }
    }
    let most = places
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    most.filter(|(_, seconds)| *seconds > 0.5 * all)
        .map_or_else(String::new, |(path, _)| format!(", in {path}"))
}

/// Returns how long a loop of events waits at most, as the end of a sentence: what it is for is a
/// timer of the program. Empty without one.
fn loop_timer(view: &View) -> String {
    let waits = view.waits.iter().filter(|wait| is_call(wait, &POLLS));
    let longest = waits.max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let ms = longest.and_then(|wait| wait.timeout_ms);
    ms.map_or_else(String::new, |ms| {
        format!("; its loop of events waits for a timer of its own, up to {ms} ms each time")
    })
}

/// Returns what another process of the program waits for meanwhile, such as a timer of its own: the
/// work comes after that.
fn others_do(view: &View) -> String {
    let facts = view.facts;
    let process_of = |wait: &Wait| {
        let mut threads = facts.threads.iter();
        let of_wait = threads.find(|thread| wait.threads.contains(&thread.id));
        of_wait.map(|thread| (thread.process, thread.name.clone()))
    };
    let is_told = |wait: &Wait| {
        let kind = kind(facts, wait);
        !kind.is_for_work() && kind != Kind::Join || timer_ms(wait).is_some()
    };
    let of_others = facts.waits.iter().filter(|wait| {
        is_told(wait) && process_of(wait).is_some_and(|(process, _)| process != facts.root)
    });
    // What one waits for outside of itself comes before its timers.
    let by_seconds = |one: &&Wait, other: &&Wait| one.seconds.total_cmp(&other.seconds);
    let is_outside = |wait: &&Wait| {
        let is_soft = kind(facts, wait).is_soft() || kind(facts, wait) == Kind::Other;
        !is_soft && 2.0 * wait.seconds >= facts.seconds
    };
    let outside = of_others.clone().filter(is_outside).max_by(by_seconds);
    let longest = outside.or_else(|| of_others.max_by(by_seconds));
    let Some((wait, (process, name))) = longest.and_then(|wait| Some((wait, process_of(wait)?)))
    else {
        return String::new();
    };
    let does = describe_wait(facts, wait);
    format!("; its child, process {process} {name}, {does} meanwhile")
}

/// Returns the system calls between sleeps, as the end of a sentence; empty if too few were seen.
fn between_sleeps(view: &View) -> String {
    if view.facts.traced.is_some() {
        return between(view.facts);
    }
    let samples = view.facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks);
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in stacks {
        let call = super::system::call_of(stack);
        if let Some(call) = call.filter(|call| !SLEEPS.contains(call) && *call != "execve") {
            *calls.entry(call).or_default() += stack.samples;
        }
    }
    let all: u64 = calls.values().sum();
    let most = calls.into_iter().max_by_key(|(_, samples)| *samples);
    most.filter(|(_, samples)| *samples >= 3 && 2 * samples >= all)
        .map_or_else(String::new, |(call, _)| {
            let described = Calls::of(view, |one| one == call).described();
            format!("; between sleeps it calls {call}{described}")
        })
}

/// The most that a program uses of a processor which does nothing.
const NOTHING: f64 = 0.05;

/// Returns that a program that sleeps does nothing else, as the end of a sentence; empty if it does.
fn otherwise(view: &View) -> String {
    let facts = view.facts;
    let running: f64 = facts.threads.iter().map(Thread::running_s).sum();
    let used = (running + facts.short_lived.user_s + facts.short_lived.system_s) / facts.seconds;
    let is_nothing = |wait: &Wait| {
        let kind = kind(facts, wait);
        kind.is_soft() || kind == Kind::Join || is_for_own(facts, wait)
    };
    let mut lasting = facts
        .waits
        .iter()
        .filter(|wait| wait.seconds > NOTHING * facts.seconds);
    if used > NOTHING || !lasting.all(is_nothing) {
        return String::new();
    }
    format!("; otherwise it is idle ({} of a processor)", percent(used))
}

/// Whether a wait is a loop's of events.
fn is_loop(wait: &Wait) -> bool {
    is_call(wait, &POLLS) && wait.object != Object::Timer
}

pub(super) fn sleep(view: &View) -> Option<Finding> {
    let is_sleep = |wait: &Wait| {
        (is_call(wait, &SLEEPS) || is_in(wait, &["nanosleep"]))
            && !matches!(kind(view.facts, wait), Kind::FileLock | Kind::Idle)
            || kind(view.facts, wait) == Kind::Sleep
    };
    let longest = view.waits.iter().find(|wait| is_sleep(wait));
    let each = view.per_second(view.active.iter().map(|thread| thread.voluntary).sum());
    let often = match longest.map(at_most).unwrap_or_default() {
        limit if each < OFTEN => limit,
        limit => format!("{limit}, {each:.0} times a second"),
    };
    let finding = blocked(view, is_sleep, "", |from| {
        let beside = sockets::unread(view) + &between_sleeps(view);
        let beside = if beside.is_empty() {
            otherwise(view)
        } else {
            beside
        };
        let what = match longest.filter(|wait| is_for_signal(wait)) {
            Some(wait) => format!("it waits for a signal to it in {}", wait.call),
            None if longest.is_some_and(is_loop) => {
                "its loop of events waits for a timer of its own".into()
            }
            None => "it sleeps by its own choice".into(),
        };
        let waits = with_time(&what, &often, &from.unwrap_or_default());
        let joining = super::inside::joining(view);
        format!("{waits}{beside}{joining}")
    })?;
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
    let is_poll = |wait: &Wait| {
        is_call(wait, &POLLS)
            && !is_waiting_for_clients(wait)
            && !is_one_socket(wait)
            && !is_held(wait)
            && !is_for_own(view.facts, wait)
            && !matches!(kind(view.facts, wait), Kind::Idle | Kind::Lock)
    };
    let first = view.waits.iter().find(|wait| is_poll(wait))?;
    let peers = first
        .watched
        .iter()
        .filter(|watched| watched.kind != WatchedKind::Own && !watched.file.is_empty())
        .map(|watched| &*watched.file);
    let named: Vec<&str> = peers.take(2).collect();
    let of = if named.is_empty() {
        String::new()
    } else {
        format!(" of {}", named.join(" and "))
    };
    let behind = chain(view.facts, first);
    let finding = blocked(view, is_poll, "", |from| {
        let what = format!("it waits for events{of}");
        format!(
            "{}{}{behind}{}",
            with_time(&what, &at_most(first), &from.unwrap_or_default()),
            sockets::unread(view),
            between(view.facts)
        )
    })?;
    Some(
        finding
            .doubt()
            .advise("Look at who sends the events: the load generator or a peer.")
            .look("ss -tunp"),
    )
}

/// Returns what has most of the blocked time, with where that is.
pub(super) fn largest(view: &View) -> String {
    // A command is stopped for a moment until it is observed.
    let mut waits = view.waits.iter();
    let longest = waits.find(|wait| kind(view.facts, wait) != Kind::Stopped);
    let Some(longest) = longest.filter(|_| view.budget.blocked >= 0.1) else {
        return String::new();
    };
    describe_wait(view.facts, longest)
}

pub(super) fn described(wait: &Wait) -> String {
    match &wait.object {
        Object::File(file) => format!(" ({file})"),
        _ => String::new(),
    }
}

//! What threads wait for: each wait is of one kind, by the call, the kernel's function, the stack
//! and who is behind it, not by its share of the time.

use std::collections::BTreeMap;

use crate::facts::{Behind, Doing, Facts, Object, Role, Thread, Wait, Watched, WatchedKind};
use crate::runtimes::{KNOWN, Known, PYTHON_LOCK, is_jvm_thread};

/// The part of looks from which on a connection idles, or a counterpart does something.
const MOSTLY: f64 = 0.7;
/// The part of looks at which Nagle's algorithm holds data that makes it the cause.
const HELD: f64 = 0.3;

/// How many times as many wake-ups as a timer makes are those of other events.
const MUCH_MORE: f64 = 4.0;
/// The longest timer of a loop of events that polls (ms).
const TIMER_MS: u64 = 100;

/// What a blocked thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work, a client, or a signal that ends it: a part of a pool, or a thread of the runtime.
    Idle,
    /// Events of several files.
    Events,
    /// A timer of its own.
    Sleep,
    /// Other threads at the same barrier.
    Barrier,
    /// The end of a thread or a child.
    Join,
    /// A signal of another thread.
    Condition,
    /// A lock of the program.
    Lock,
    /// The global lock of an interpreter.
    Gil,
    /// A lock of a file.
    FileLock,
    /// The other end of a pipe.
    Pipe,
    /// The peer of a socket.
    Socket,
    /// A signal that continues it, or its tracer.
    Stopped,
    /// Storage.
    Storage,
    /// Memory: reclaim or swap.
    Memory,
    /// A lock or a grace period of the kernel.
    Kernel,
    /// Something else.
    Other,
}

impl Kind {
    /// Whether such a wait is no cause as long as another thread does something.
    pub(crate) fn is_soft(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Events | Self::Sleep | Self::Barrier | Self::Condition
        )
    }

    /// Whether it is a wait for work, or for another thread that works.
    pub(crate) fn is_for_work(self) -> bool {
        matches!(self, Self::Idle | Self::Barrier | Self::Condition)
    }
}

pub(crate) const SYNCS: [&str; 6] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "msync",
    "sync_file_range",
];
pub(crate) const DIRTY: [&str; 1] = ["balance_dirty"];
pub(crate) const RECLAIM: [&str; 5] = [
    "reclaim",
    "shrink_",
    "compact",
    "mem_cgroup_handle_over_high",
    "congestion",
];
pub(crate) const RCU: [&str; 4] = [
    "wait_rcu",
    "synchronize_rcu",
    "rcu_barrier",
    "synchronize_srcu",
];
pub(crate) const KERNEL_LOCKS: [&str; 6] = [
    "rwsem_",
    "mutex_lock",
    "percpu_down",
    "percpu_rwsem",
    "rt_mutex",
    "rwbase_",
];
/// Functions from which the kernel waits for mmap_lock: the lock's own are of the scheduler's
/// section, of which `wchan` names the caller (kernel/sched/core.c: get_wchan; mm/mmap.c,
/// mm/madvise.c, mm/mprotect.c, mm/memory.c).
pub(crate) const AT_MMAP_LOCK: [&str; 12] = [
    "vm_mmap_pgoff",
    "__vm_munmap",
    "vm_munmap",
    "do_mprotect_pkey",
    "do_madvise",
    "madvise_",
    "sys_brk",
    "sys_mremap",
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "dup_mmap",
    "vm_brk_flags",
];
/// The same for the lock of a directory (fs/namei.c, fs/readdir.c).
pub(crate) const AT_DIRECTORY: [&str; 10] = [
    "open_last_lookups",
    "path_openat",
    "filename_create",
    "do_unlinkat",
    "do_rmdir",
    "do_renameat2",
    "lock_rename",
    "lookup_slow",
    "iterate_dir",
    "start_dirop",
];

/// Whether a thread waits for mmap_lock.
pub(crate) fn is_at_mmap_lock(wait: &Wait) -> bool {
    wait.is_uninterruptible && is_in(wait, &AT_MMAP_LOCK)
}

/// Whether a thread waits for the lock of a directory.
pub(crate) fn is_at_directory(wait: &Wait) -> bool {
    wait.is_uninterruptible && is_in(wait, &AT_DIRECTORY)
}

/// Whom threads wait for in the kernel, by its functions.
pub(crate) const WAITED_FOR: &[(&str, &str)] = &[
    // fs/notify/fanotify/fanotify.c
    (
        "fanotify_",
        "a listener of fanotify, as a virus scanner is, to permit it",
    ),
    // fs/userfaultfd.c
    ("handle_userfault", "the handler of userfaultfd"),
    // fs/fuse/dev.c
    ("request_wait_answer", "the server of a FUSE file system"),
    ("fuse_", "the server of a FUSE file system"),
    // fs/pipe.c
    (
        "wait_for_partner",
        "someone to open the other end of the FIFO",
    ),
    ("fifo_open", "someone to open the other end of the FIFO"),
    // net/sunrpc, fs/nfs, fs/smb
    ("rpc_wait", "a server of NFS"),
    ("nfs", "a server of NFS"),
    ("cifs", "a server of SMB"),
    // fs/locks.c
    (
        "__break_lease",
        "another process to give up its lease of the file",
    ),
    // fs/jbd2/transaction.c
    (
        "start_this_handle",
        "the journal of ext4 to take a transaction",
    ),
    (
        "wait_transaction_",
        "the journal of ext4 to take a transaction",
    ),
    (
        "add_transaction_credits",
        "the journal of ext4 to take a transaction",
    ),
    // net/unix/af_unix.c
    (
        "unix_wait_for_peer",
        "room in the queue of the peer's socket",
    ),
    // drivers/tty
    ("n_tty_", "the terminal"),
    // ipc
    ("do_msg", "a queue of messages"),
    ("mq_timed", "a queue of messages"),
    ("do_semtimedop", "a semaphore of System V"),
    // kernel/exit.c, kernel/fork.c
    ("coredump", "the writing of a core"),
];

/// Returns whom a thread waits for in the kernel; `None` if its function does not say.
pub(crate) fn waited_for(wait: &Wait) -> Option<&'static str> {
    let of = WAITED_FOR.iter();
    let mut of = of.filter(|(part, _)| wait.function.contains(part));
    of.next().map(|(_, who)| *who)
}

pub(crate) const STORAGE: [&str; 7] = [
    "folio_wait",
    "io_schedule",
    "wait_on_page",
    "blkdev_direct",
    "iomap_dio",
    "__wait_on_buffer",
    "jbd2_log_wait",
];
pub(crate) const SOCKETS: [&str; 10] = [
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
pub(crate) const NETWORK_CALLS: [&str; 8] = [
    "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "accept", "connect",
];
pub(crate) const WRITES: [&str; 6] = ["write", "writev", "sendto", "sendmsg", "sendfile", "splice"];
pub(crate) const SLEEPS: [&str; 3] = ["nanosleep", "clock_nanosleep", "pause"];
pub(crate) const POLLS: [&str; 7] = [
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];
const FILE_LOCKS: [&str; 2] = ["flock", "fcntl"];
/// Calls that wait for signals.
const SIGNALS: [&str; 2] = ["rt_sigtimedwait", "rt_sigsuspend"];

pub(crate) fn is_in(wait: &Wait, functions: &[&str]) -> bool {
    functions
        .iter()
        .any(|function| wait.function.contains(function))
}

pub(crate) fn is_call(wait: &Wait, calls: &[&str]) -> bool {
    calls.contains(&&*wait.call)
}

/// Whether a wait is for a file whose description begins with `kind`, be its other end in the
/// program or not.
pub(crate) fn is_file(wait: &Wait, kind: &str) -> bool {
    matches!(&wait.object, Object::File(file)
        if file.trim_start_matches(crate::budget::OWN).starts_with(kind))
}

/// Returns what the stack of a wait says of it.
pub(crate) fn known(wait: &Wait) -> Option<&'static Known> {
    // A thread of a pool that is in a function of the program has a task.
    let is_own = |function: &String| crate::callers::is_own(function);
    let own = wait.stack.iter().position(is_own);
    let below = &wait.stack[..own.map_or(wait.stack.len(), |own| own + 1)];
    KNOWN.iter().find(|known| {
        let stack = match known.kind {
            Kind::Idle => below,
            _ => &wait.stack,
        };
        stack
            .iter()
            .any(|function| function.contains(known.function))
    })
}

/// Returns what threads wait for.
pub(crate) fn kind(facts: &Facts, wait: &Wait) -> Kind {
    if is_of_runtime(facts, wait) {
        return Kind::Idle;
    }
    match &wait.object {
        Object::Stop => return Kind::Stopped,
        Object::Child => return Kind::Join,
        Object::Timer => return Kind::Sleep,
        Object::Futex(futex) => return futex_kind(wait, futex.is_join),
        Object::File(_) | Object::Unknown => {}
    }
    if is_at_mmap_lock(wait) || is_at_directory(wait) {
        return Kind::Kernel;
    }
    if is_call(wait, &POLLS) {
        return match known(wait).map(|known| known.kind) {
            Some(kind @ (Kind::Lock | Kind::Idle | Kind::Join)) => kind,
            _ if is_held(wait) => Kind::Socket,
            // Of Go goroutines tell who sleeps.
            _ if is_waiting_for_itself(wait) && is_timer(facts, wait) && !is_of_go(wait) => {
                Kind::Sleep
            }
            _ if is_waiting_for_itself(wait) => Kind::Idle,
            _ => Kind::Events,
        };
    }
    if is_call(wait, &SLEEPS) || is_in(wait, &["nanosleep"]) {
        return sleep_kind(wait);
    }
    // A signal interrupted the wait; the kernel function says of what it was.
    if is_call(wait, &["restart_syscall"]) && is_in(wait, &["futex"]) {
        return known(wait).map_or(Kind::Condition, |known| known.kind);
    }
    if is_call(wait, &FILE_LOCKS) {
        return Kind::FileLock;
    }
    if is_call(wait, &SIGNALS) && is_of_shell(facts, wait) {
        return Kind::Join;
    }
    let is_event = is_file(wait, "anon_inode") && !is_call(wait, &["io_uring_enter"]);
    if is_event || is_call(wait, &SIGNALS) || is_call(wait, &["accept"]) {
        return Kind::Idle;
    }
    if is_in(wait, &RECLAIM) {
        return Kind::Memory;
    }
    if is_call(wait, &SYNCS) || is_in(wait, &DIRTY) || is_in(wait, &STORAGE) {
        return Kind::Storage;
    }
    if is_in(wait, &KERNEL_LOCKS) || is_in(wait, &RCU) {
        return Kind::Kernel;
    }
    if is_in(wait, &["pipe_read", "pipe_write"]) || is_file(wait, "pipe:") {
        return Kind::Pipe;
    }
    if is_in(wait, &SOCKETS) || is_call(wait, &NETWORK_CALLS) || is_file(wait, "socket") {
        return if is_idle_connection(facts, wait) {
            Kind::Idle
        } else {
            Kind::Socket
        };
    }
    Kind::Other
}

/// Shells, which wait for their children by the signal that these end.
const SHELLS: [&str; 5] = ["sh", "dash", "bash", "ksh", "zsh"];

/// Whether a shell waits.
fn is_of_shell(facts: &Facts, wait: &Wait) -> bool {
    let mut threads = facts.threads.iter();
    threads.any(|thread| wait.threads.contains(&thread.id) && SHELLS.contains(&&*thread.name))
}

/// Whether all threads of a wait are the JVM's own.
fn is_of_runtime(facts: &Facts, wait: &Wait) -> bool {
    let mut of_wait = facts
        .threads
        .iter()
        .filter(|thread| wait.threads.contains(&thread.id))
        .peekable();
    of_wait.peek().is_some() && of_wait.all(|thread| is_runtime_thread(facts, thread))
}

/// Whether a thread is one of the JVM's own.
pub(crate) fn is_runtime_thread(facts: &Facts, thread: &Thread) -> bool {
    let mut libraries = facts.settings.libraries.iter();
    is_jvm_thread(&thread.name) && libraries.any(|library| library == "libjvm.so")
}

/// Whether the functions of a Python script are known on a stack.
fn has_script(wait: &Wait) -> bool {
    wait.stack.iter().any(|function| function.ends_with(".py"))
}

fn futex_kind(wait: &Wait, is_join: bool) -> Kind {
    if is_join {
        return Kind::Join;
    }
    let has_holder = wait.behind.iter().any(|one| one.role == Role::Holder);
    match known(wait) {
        Some(known) if known.function == PYTHON_LOCK && has_script(wait) => Kind::Lock,
        // Who was woken waits for the mutex of the condition.
        Some(known) if known.kind == Kind::Condition && has_holder => Kind::Lock,
        Some(known) => known.kind,
        // A word that names its holder is a lock's; a thread alone at a word waits for a signal.
        None if wait.behind.is_empty() && (wait.threads.len() == 1 || wait.stack.is_empty()) => {
            Kind::Condition
        }
        None => Kind::Lock,
    }
}

/// A program that sleeps beside a lock of one of its files tries again and again to have it.
fn sleep_kind(wait: &Wait) -> Kind {
    // Go's own thread that looks after the others (runtime/proc.go: sysmon) has no further function.
    let is_plain = |function: &String| {
        function == "threadentry"
            || crate::callers::is_library(function)
            || crate::callers::is_nameless(function)
            || function.starts_with("runtime")
    };
    if wait.stack.iter().any(|function| function == "threadentry")
        && wait.stack.iter().all(is_plain)
    {
        return Kind::Idle;
    }
    if known(wait).is_some_and(|known| known.kind == Kind::Idle) {
        return Kind::Idle;
    }
    let is_sqlite = wait
        .stack
        .iter()
        .any(|function| function.contains("sqlite"));
    let is_beside_lock = wait.behind.iter().any(|behind| behind.role == Role::Holder);
    if is_sqlite && (is_beside_lock || known(wait).is_some()) {
        Kind::FileLock
    } else {
        Kind::Sleep
    }
}

/// Whether Nagle's algorithm holds what a wait is for.
pub(crate) fn is_held(wait: &Wait) -> bool {
    wait.connection.is_some_and(|connection| {
        let held = connection.held[0].max(connection.held[1]);
        held as f64 >= HELD * connection.looks as f64 && held > 0
    })
}

/// Whether the peer of a socket waits itself: then there is nothing to do at either end.
fn is_idle_connection(facts: &Facts, wait: &Wait) -> bool {
    // Who waits to write has something for a peer that does not read.
    if is_held(wait) || is_call(wait, &WRITES) {
        return false;
    }
    let mut idle = 0;
    let mut all = 0;
    for doing in peers(wait).flat_map(|peer| &peer.doing) {
        all += doing.looks;
        let is_idle = doing.wait.as_ref().is_some_and(|wait| {
            is_call(wait, &POLLS)
                || is_call(wait, &NETWORK_CALLS)
                || is_file(wait, "socket")
                || kind(facts, &bare(wait)) == Kind::Idle
        });
        idle += if is_idle { doing.looks } else { 0 };
    }
    all > 0 && idle as f64 >= MOSTLY * all as f64
}

/// Returns a wait without those behind it: of these it is asked only once.
fn bare(wait: &Wait) -> Wait {
    Wait {
        behind: Vec::new(),
        ..wait.clone()
    }
}

fn peers(wait: &Wait) -> impl Iterator<Item = &Behind> {
    wait.behind
        .iter()
        .filter(|behind| behind.role == Role::Peer)
}

/// Returns what the counterparts of a wait mostly do, with the part of the looks.
///
/// A thread that could run and had no processor is seen as one that runs: neighbours hide what it
/// does otherwise, so that only its own part counts.
pub(crate) fn mostly<'w>(facts: &Facts, wait: &'w Wait) -> Option<(&'w Behind, &'w Doing, f64)> {
    let weight = |behind: &Behind, doing: &Doing| {
        let looks = doing.looks as f64;
        let thread = facts
            .threads
            .iter()
            .find(|thread| thread.id == behind.thread);
        match thread.filter(|_| doing.wait.is_none()) {
            Some(thread) => {
                let both = thread.running_s() + thread.waiting_s;
                looks * thread.running_s() / both.max(f64::MIN_POSITIVE)
            }
            None => looks,
        }
    };
    let mut all = 0.0;
    let mut most: Option<(&Behind, &Doing, f64)> = None;
    for behind in &wait.behind {
        // One that waits in the same function had the lock before.
        let is_other = |doing: &&Doing| !is_same_lock(facts, wait, doing);
        for doing in behind.doing.iter().filter(is_other) {
            let looks = weight(behind, doing);
            all += looks;
            if most.is_none_or(|(_, _, before)| looks > before) {
                most = Some((behind, doing, looks));
            }
        }
    }
    most.map(|(behind, doing, looks)| (behind, doing, looks / all.max(f64::MIN_POSITIVE)))
}

/// Whether a holder of a lock waits for a lock at the same place as one that waits for it.
fn is_same_lock(facts: &Facts, wait: &Wait, doing: &Doing) -> bool {
    let Some(other) = &doing.wait else {
        return false;
    };
    let own = crate::callers::own_caller(&wait.stack);
    kind(facts, wait) == Kind::Lock
        && kind(facts, other) == Kind::Lock
        && own.is_some()
        && crate::callers::own_caller(&other.stack) == own
}

/// Whether all that an event loop watches is of the program itself or waits for clients.
pub(crate) fn is_waiting_for_clients(wait: &Wait) -> bool {
    let is = |watched: &Watched, kind| watched.kind == kind;
    wait.watched
        .iter()
        .any(|watched| is(watched, WatchedKind::Listening))
        && wait
            .watched
            .iter()
            .all(|watched| is(watched, WatchedKind::Listening) || is(watched, WatchedKind::Own))
}

/// Whether all that an event loop watches is of the program itself, such as a pool's poller.
fn is_waiting_for_itself(wait: &Wait) -> bool {
    !wait.watched.is_empty()
        && wait
            .watched
            .iter()
            .all(|watched| watched.kind == WatchedKind::Own)
}

/// Whether a loop of events is woken by a timer of its own again and again. One that wakes up much
/// more often has other events, as of its pool.
fn is_timer(facts: &Facts, wait: &Wait) -> bool {
    let Some(ms) = wait.timeout_ms.filter(|ms| *ms <= TIMER_MS) else {
        return false;
    };
    let threads = facts.threads.iter();
    let threads = threads.filter(|thread| wait.threads.contains(&thread.id));
    let wakeups: u64 = threads.map(|thread| thread.voluntary).sum();
    let by_timer = 1000.0 * wait.seconds / ms.max(1) as f64;
    wakeups as f64 <= MUCH_MORE * by_timer.max(1.0)
}

/// Whether Go's scheduler waits, which does so for all timers of goroutines.
fn is_of_go(wait: &Wait) -> bool {
    wait.stack
        .iter()
        .any(|function| function == "runtime.netpoll")
}

/// Returns what a counterpart does, as the end of a sentence.
pub(crate) fn describe_doing(facts: &Facts, behind: &Behind, doing: &Doing) -> String {
    if let Some(wait) = &doing.wait {
        return describe_wait(facts, wait);
    }
    if let Some(statement) = crate::callers::statement(&doing.stack) {
        return format!("executes {statement}");
    }
    match (crate::callers::own_path(&doing.stack), main_call(facts)) {
        (None, Some(call)) if behind.is_own => format!("runs in the system call {call}"),
        (None, _) => "computes".into(),
        (Some(own), _) => format!("computes in {own}"),
    }
}

/// Returns the system call in which most samples of a program are.
fn main_call(facts: &Facts) -> Option<&str> {
    let samples = facts.samples.as_ref()?;
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in &samples.stacks {
        if let Some(call) = stack.call() {
            *calls.entry(call).or_default() += stack.samples;
        }
    }
    let all: u64 = samples.stacks.iter().map(|stack| stack.samples).sum();
    let (call, count) = calls.into_iter().max_by_key(|(_, count)| *count)?;
    (2 * count > all).then_some(call)
}

/// Returns what a wait for another thread is for, if a function of a library says more than that.
pub(crate) fn what_of(wait: &Wait) -> Option<&'static str> {
    let known = known(wait).filter(|known| known.kind == Kind::Condition)?;
    let says = !known.what.is_empty() && known.function != PYTHON_LOCK;
    says.then_some(known.what)
}

/// The longest time that is said in milliseconds.
const SAID_MS: u64 = 10_000;

/// Returns how long a wait lasts at most, for `with_time`; empty if that is not known.
pub(crate) fn at_most(wait: &Wait) -> String {
    wait.timeout_ms
        .map_or_else(String::new, |timeout| match timeout {
            ..=SAID_MS => format!(", up to {timeout} ms each time"),
            _ => format!(", up to {} s each time", timeout / 1000),
        })
}

/// Puts a time and a place behind a wait: `sleeps, up to 5 ms each time, in work`.
pub(crate) fn with_time(what: &str, time: &str, place: &str) -> String {
    let is_plain = time.is_empty() || place.is_empty() || place.starts_with(',');
    let comma = if is_plain { "" } else { "," };
    format!("{what}{time}{comma}{place}")
}

/// Whether a wait without a time or a file ends by a signal only.
pub(crate) fn is_for_signal(wait: &Wait) -> bool {
    let is_poll = is_call(wait, &["poll", "ppoll"]) && wait.object == Object::Timer;
    is_call(wait, &["pause"]) || is_poll && wait.timeout_ms.is_none()
}

/// Returns the longest timer of a loop of events (ms): a thread of a pool that waits for work has a
/// time after which it ends.
pub(crate) fn timer_ms(wait: &Wait) -> Option<u64> {
    let is_loop = !matches!(wait.object, Object::Futex(_));
    wait.timeout_ms.filter(|_| is_loop)
}

/// Returns what who waits there does, as the end of a sentence: `waits for storage in fdatasync`.
pub(crate) fn describe_wait(facts: &Facts, wait: &Wait) -> String {
    let from = own_path(wait)
        .map(|function| format!(" in {function}"))
        .unwrap_or_default();
    let call = if wait.call.is_empty() {
        "a page fault".to_owned()
    } else {
        wait.call.clone()
    };
    let file = match &wait.object {
        Object::File(file) => format!(" ({file})"),
        _ => String::new(),
    };
    let one_socket = match wait.watched.as_slice() {
        [one] if one.kind == WatchedKind::Socket => Some(&one.file),
        _ => None,
    };
    let kind = kind(facts, wait);
    let time = match kind {
        Kind::Sleep | Kind::Condition => at_most(wait),
        _ => String::new(),
    };
    let what = match kind {
        Kind::Events if one_socket.is_some() => {
            let file = one_socket.map_or("", |file| file);
            format!("waits for the peer of a socket ({file})")
        }
        Kind::Idle | Kind::Events if timer_ms(wait).is_some() => format!(
            "waits for a timer of its own, of up to {} ms",
            timer_ms(wait).unwrap_or_default()
        ),
        Kind::Idle => format!("is idle in {call}{file}"),
        Kind::Events => "waits for events".into(),
        Kind::Sleep if is_for_signal(wait) => format!("waits for a signal in {call}"),
        Kind::Sleep => "sleeps".into(),
        Kind::Barrier => "waits at a barrier".into(),
        Kind::Join => "waits for a child or a thread".into(),
        Kind::Condition => match what_of(wait) {
            Some(what) => format!("waits for {what}"),
            None => "waits for a signal of another thread".into(),
        },
        Kind::Lock | Kind::Gil => match known(wait).map_or("", |known| known.what) {
            "" => "waits for another lock".into(),
            what => format!("waits for {what}"),
        },
        Kind::FileLock => format!("waits for a lock of a file{file}"),
        Kind::Pipe | Kind::Socket if is_call(wait, &WRITES) => {
            format!("waits to write, because the other end does not read{file}")
        }
        Kind::Pipe => format!("waits for a pipe{file}"),
        Kind::Socket => format!("waits for the peer of a socket{file}"),
        Kind::Stopped => "is stopped".into(),
        Kind::Storage => format!("waits for storage in {call}{file}"),
        Kind::Memory => "waits for memory".into(),
        Kind::Kernel => format!("waits for a lock of the kernel in {call}"),
        Kind::Other => match waited_for(wait) {
            Some(who) => format!("waits in {call}{file} for {who}"),
            None => format!("waits in {call}{file}"),
        },
    };
    with_time(&what, &time, &from)
}

/// Returns the program's own function in which a wait is, with its callers and, except of sleeps,
/// with the function of a library that it called.
pub(crate) fn own_path(wait: &Wait) -> Option<String> {
    let path = crate::callers::own_path(&wait.stack)?;
    let entry = crate::callers::entry(&wait.stack, &wait.call);
    let entry = entry.filter(|_| !is_call(wait, &SLEEPS) && !is_call(wait, &POLLS));
    Some(match entry {
        Some(entry) => format!("{entry} for {path}"),
        None => path,
    })
}

/// Returns what a server says of itself in its title: PostgreSQL adds `waiting` while a session waits
/// for a lock (src/backend/storage/lmgr/proc.c), and says when one is within a transaction
/// (src/backend/tcop/postgres.c).
fn title_says(title: &str) -> Option<&'static str> {
    let title = title.strip_prefix("postgres: ")?;
    if title.ends_with(" waiting") {
        return Some("waits for a lock that another session holds");
    }
    title
        .ends_with("idle in transaction")
        .then_some("is idle within a transaction")
}

/// Returns whom a wait is for and what that does, as the end of a sentence; empty if it was not
/// found.
pub(crate) fn chain(facts: &Facts, wait: &Wait) -> String {
    let Some((behind, doing, part)) = mostly(facts, wait) else {
        return String::new();
    };
    let is_same = |other: &Wait| other.call == wait.call && other.object == wait.object;
    let is_itself = wait.threads.iter().any(|thread| {
        let mut threads = facts.threads.iter();
        threads.any(|one| one.id == *thread && one.process == behind.process)
    });
    if behind.role == Role::Holder && is_itself && doing.wait.as_deref().is_some_and(is_same) {
        return "; it holds that lock itself, by another descriptor of the file, so it waits for ever".into();
    }
    let who = match (behind.role, behind.is_own) {
        (Role::Holder, true) if behind.thread != behind.process => {
            format!("its holder, thread {} {},", behind.thread, behind.name)
        }
        (Role::Holder, _) => format!("its holder, process {} {},", behind.process, behind.name),
        (Role::Peer, _) => format!(
            "the process at the other end, {} {},",
            behind.process, behind.name
        ),
        (Role::Tracer, _) => format!("its tracer, process {} {},", behind.process, behind.name),
    };
    let how_often = if part < MOSTLY { " mostly" } else { "" };
    let does = match title_says(&behind.name) {
        Some(says) => says.to_owned(),
        None => describe_doing(facts, behind, doing),
    };
    let text = format!("; {who}{how_often} {does}");
    // One step more: what that one waits for, where it is a thread of the program.
    let next = doing.wait.as_ref().filter(|_| behind.is_own);
    let next = next.and_then(|next| {
        let is_same = |wait: &&Wait| wait.call == next.call && wait.object == next.object;
        facts.waits.iter().find(is_same)
    });
    let first = behind.thread;
    let next = next.and_then(|next| mostly(facts, next));
    if let Some((behind, doing, _)) = next.filter(|(behind, ..)| behind.thread != first) {
        let name = format!("{} {}", behind.process, behind.name);
        let is_cycle = wait.threads.contains(&behind.thread);
        let cycle = match is_cycle && behind.role == Role::Holder {
            true => ": they wait for each other (a deadlock)",
            false => "",
        };
        return format!(
            "{text}; there {name} {}{cycle}",
            describe_doing(facts, behind, doing)
        );
    }
    text
}

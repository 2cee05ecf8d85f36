//! The decision tree as a table: each rule says why it exists, and is tested on its own.
//!
//! The thresholds are those of the reference measurements (`docs/explain.md`); each stands beside
//! its rule.

mod blocked;
mod busy;
mod children;
mod coroutines;
mod goroutines;
mod inside;
mod kernel_work;
mod pools;
mod processes;
mod settings;
mod sockets;
mod system;
mod unread;
mod user;
mod waiting;

use crate::budget::View;
use crate::finding::Finding;

pub(crate) use sockets::connecting;
pub(crate) use system::{many_transfers, much_transferred};
pub(crate) use user::parts_of_work;

/// Returns what is largest of the time in user mode, in the kernel and blocked, each as the end of a
/// sentence.
pub(crate) fn largest(view: &View) -> [String; 3] {
    let in_brackets = |text: String| match text.as_str() {
        "" => String::new(),
        _ => format!(" ({text})"),
    };
    [
        in_brackets(user::largest(view)),
        in_brackets(system::largest(view)),
        in_brackets(blocked::largest(view)),
    ]
}

/// A branch of the tree. The first ones explain what the later ones only show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Branch {
    /// What was set before the program ran.
    Settings,
    /// Threads are blocked: on locks, storage, peers.
    Blocked,
    /// Threads are runnable without a processor.
    Waiting,
    /// The kernel runs for the program.
    System,
    /// The program's own code runs.
    User,
}

/// A rule of the tree.
#[derive(Debug)]
pub struct Rule {
    /// Its name in JSON and tests.
    pub name: &'static str,
    /// The part of the time that it explains.
    pub branch: Branch,
    /// Why it exists: the mistake or the case that it names.
    pub reason: &'static str,
    /// Returns the cause, if it applies.
    pub check: fn(&View) -> Option<Finding>,
}

/// All rules, the more special ones first.
pub const RULES: &[Rule] = &[
    Rule {
        name: "debug-allocator",
        branch: Branch::Settings,
        reason: "A preloaded debug allocator has one lock and checks every block; distributions' test versions set it.",
        check: settings::debug_allocator,
    },
    Rule {
        name: "sanitizer",
        branch: Branch::Settings,
        reason: "Sanitizers multiply the time of every memory access.",
        check: settings::sanitizer,
    },
    Rule {
        name: "allocator-trimming",
        branch: Branch::Settings,
        reason: "Each M_* variable of glibc ends the dynamic threshold of mmap: large blocks fault anew each time.",
        check: settings::allocator_trimming,
    },
    Rule {
        name: "quota",
        branch: Branch::Settings,
        reason: "A cgroup's quota stops threads although processors are idle.",
        check: settings::quota,
    },
    Rule {
        name: "open-files",
        branch: Branch::Settings,
        reason: "A program without a free file descriptor asks for one again and again.",
        check: settings::open_files,
    },
    Rule {
        name: "affinity",
        branch: Branch::Settings,
        reason: "Threads that may use fewer processors than the host has queue for those.",
        check: settings::affinity,
    },
    Rule {
        name: "debug-kernel",
        branch: Branch::Settings,
        reason: "KASAN, lockdep and debugging of pages multiply the kernel's time.",
        check: settings::debug_kernel,
    },
    Rule {
        name: "frequency",
        branch: Branch::Settings,
        reason: "A governor, a power limit or heat keeps the processors far below what they can do.",
        check: settings::frequency,
    },
    Rule {
        name: "stopped",
        branch: Branch::Blocked,
        reason: "A stopped or traced program waits for who continues it.",
        check: inside::stopped,
    },
    Rule {
        name: "false-wakeups",
        branch: Branch::Blocked,
        reason: "Many threads woken together for the work of one spend their time switching.",
        check: inside::false_wakeups,
    },
    Rule {
        name: "thundering-herd",
        branch: Branch::Blocked,
        reason: "Workers that share a listening socket all wake up for one client.",
        check: inside::herd_of_workers,
    },
    Rule {
        name: "gil",
        branch: Branch::Blocked,
        reason: "Threads of CPython run one at a time.",
        check: inside::gil,
    },
    Rule {
        name: "hot-lock",
        branch: Branch::Blocked,
        reason: "One futex with most of the waiting is a lock that serialises the program.",
        check: inside::hot_lock,
    },
    Rule {
        name: "pool-for-itself",
        branch: Branch::Blocked,
        reason: "Tasks that wait for tasks of their own pool wait for ever when all of it waits.",
        check: pools::pool_for_itself,
    },
    Rule {
        name: "full-pool",
        branch: Branch::Blocked,
        reason: "A task waits for ever when all threads of its pool are in tasks that wait.",
        check: pools::full_pool,
    },
    Rule {
        name: "lost-result",
        branch: Branch::Blocked,
        reason: "Who waits for a task's result waits for ever when no thread is left to execute it.",
        check: pools::lost_result,
    },
    Rule {
        name: "server-lock",
        branch: Branch::Blocked,
        reason: "Sessions of a server wait for a lock that another one holds.",
        check: inside::server_lock,
    },
    Rule {
        name: "many-locks",
        branch: Branch::Blocked,
        reason: "Many locks with a little waiting each, or one lock at which each process has a word of its own.",
        check: inside::many_locks,
    },
    Rule {
        name: "file-lock",
        branch: Branch::Blocked,
        reason: "Another process has locked the file.",
        check: inside::file_lock,
    },
    Rule {
        name: "sync",
        branch: Branch::Blocked,
        reason: "fsync and its kin wait for storage each time.",
        check: blocked::sync,
    },
    Rule {
        name: "storage-calls",
        branch: Branch::Blocked,
        reason: "Synchronous and direct writes wait for storage each, as some calls of directories do.",
        check: blocked::storage_calls,
    },
    Rule {
        name: "dirty-throttling",
        branch: Branch::Blocked,
        reason: "The kernel stops writers until dirty pages are written.",
        check: blocked::dirty_throttling,
    },
    Rule {
        name: "swap",
        branch: Branch::Blocked,
        reason: "Page faults that read from swap wait for storage.",
        check: blocked::swap,
    },
    Rule {
        name: "reclaim",
        branch: Branch::Blocked,
        reason: "Allocations wait until memory is reclaimed.",
        check: blocked::reclaim,
    },
    Rule {
        name: "rcu",
        branch: Branch::Blocked,
        reason: "Some system calls wait for an RCU grace period each time.",
        check: blocked::rcu,
    },
    Rule {
        name: "kernel-lock",
        branch: Branch::Blocked,
        reason: "Threads wait for a lock of the kernel; changes of the address space take mmap_lock alone.",
        check: blocked::kernel_lock,
    },
    Rule {
        name: "storage-reads",
        branch: Branch::Blocked,
        reason: "Reads that are not in the page cache wait for storage.",
        check: blocked::storage_reads,
    },
    Rule {
        name: "unread-pipe",
        branch: Branch::Blocked,
        reason: "A process that waits for a child, and does not read what the child writes, waits for ever.",
        check: unread::pipe,
    },
    Rule {
        name: "pipe",
        branch: Branch::Blocked,
        reason: "The other end of a pipe is the bottleneck.",
        check: blocked::pipe,
    },
    Rule {
        name: "nagle",
        branch: Branch::Blocked,
        reason: "A small write waits until the receiver acknowledges an earlier one, which it delays.",
        check: sockets::nagle,
    },
    Rule {
        name: "tcp-limits",
        branch: Branch::Blocked,
        reason: "A full buffer or window stops the sender.",
        check: sockets::tcp_limits,
    },
    Rule {
        name: "network",
        branch: Branch::Blocked,
        reason: "The peer of a socket is the bottleneck.",
        check: sockets::network,
    },
    Rule {
        name: "goroutines",
        branch: Branch::Blocked,
        reason: "Threads of Go are idle whatever its goroutines wait for.",
        check: goroutines::parked,
    },
    Rule {
        name: "coroutines",
        branch: Branch::Blocked,
        reason: "The thread of a loop of events is idle whatever its coroutines wait for.",
        check: coroutines::waiting,
    },
    Rule {
        name: "sleep",
        branch: Branch::Blocked,
        reason: "The program sleeps by its own choice.",
        check: blocked::sleep,
    },
    Rule {
        name: "idle",
        branch: Branch::Blocked,
        reason: "A server without clients is idle, as a pool without work is.",
        check: blocked::idle,
    },
    Rule {
        name: "children",
        branch: Branch::Blocked,
        reason: "Programs that are started one after the other wait for something each.",
        check: children::one_after_the_other,
    },
    Rule {
        name: "poll",
        branch: Branch::Blocked,
        reason: "The program waits for events.",
        check: blocked::poll,
    },
    Rule {
        name: "signals",
        branch: Branch::Blocked,
        reason: "All threads wait for one another.",
        check: inside::signals,
    },
    Rule {
        name: "one-place",
        branch: Branch::Blocked,
        reason: "A call that no other rule knows has most of the time.",
        check: inside::one_place,
    },
    Rule {
        name: "steal",
        branch: Branch::Waiting,
        reason: "The hypervisor gives the processors to others.",
        check: waiting::steal,
    },
    Rule {
        name: "neighbours",
        branch: Branch::Waiting,
        reason: "Other processes use the processors.",
        check: waiting::neighbours,
    },
    Rule {
        name: "oversubscription",
        branch: Branch::Waiting,
        reason: "More runnable threads than processors.",
        check: waiting::oversubscription,
    },
    Rule {
        name: "busy-polling",
        branch: Branch::System,
        reason: "A loop that asks whether something has happened, and does not wait for it.",
        check: busy::polling,
    },
    Rule {
        name: "fork-tables",
        branch: Branch::System,
        reason: "Each fork copies the page tables of a large process.",
        check: processes::fork_tables,
    },
    Rule {
        name: "clock-calls",
        branch: Branch::System,
        reason: "Where the clock cannot be read in user mode, each time stamp is a system call.",
        check: system::clock_calls,
    },
    Rule {
        name: "new-processes",
        branch: Branch::System,
        reason: "Creating and ending processes costs more than what they do.",
        check: processes::new_processes,
    },
    Rule {
        name: "huge-pages",
        branch: Branch::System,
        reason: "Part of a huge page given back splits it, and the kernel clears and maps small pages again.",
        check: system::huge_pages,
    },
    Rule {
        name: "refaults",
        branch: Branch::System,
        reason: "Memory that is given back and taken again faults each time.",
        check: system::refaults,
    },
    Rule {
        name: "page-faults",
        branch: Branch::System,
        reason: "The first touch of each page enters the kernel.",
        check: system::page_faults,
    },
    Rule {
        name: "failing-calls",
        branch: Branch::System,
        reason: "Calls that return without data (EAGAIN) are asked again and again.",
        check: system::failing_calls,
    },
    Rule {
        name: "tiny-calls",
        branch: Branch::System,
        reason: "A few bytes per read or write make the entry into the kernel the work.",
        check: system::tiny_calls,
    },
    Rule {
        name: "lock-spinning",
        branch: Branch::System,
        reason: "Processors spin for a lock of the kernel.",
        check: system::lock_spinning,
    },
    Rule {
        name: "closing",
        branch: Branch::System,
        reason: "A child that closes every number up to the limit makes as many calls.",
        check: processes::closing,
    },
    Rule {
        name: "closing-all",
        branch: Branch::System,
        reason: "A child that closes all descriptors, or reads the list of them, makes a call for each.",
        check: kernel_work::closing_all,
    },
    Rule {
        name: "signal-handler",
        branch: Branch::System,
        reason: "A fault that a handler repairs enters the kernel three times.",
        check: kernel_work::signal_handler,
    },
    Rule {
        name: "call-group",
        branch: Branch::System,
        reason: "System calls of one kind have most of the kernel's time together.",
        check: kernel_work::call_group,
    },
    Rule {
        name: "one-call",
        branch: Branch::System,
        reason: "One system call has most of the kernel's time.",
        check: system::one_call,
    },
    Rule {
        name: "mitigations",
        branch: Branch::System,
        reason: "Mitigations of processors' faults are work at each entry, return and indirect call.",
        check: system::mitigations,
    },
    Rule {
        name: "spinning",
        branch: Branch::User,
        reason: "A loop with PAUSE waits for another thread.",
        check: busy::spinning,
    },
    Rule {
        name: "stopped-world",
        branch: Branch::User,
        reason: "Statistics of Go's memory stop all goroutines each time.",
        check: goroutines::stopped_world,
    },
    Rule {
        name: "short-workers",
        branch: Branch::User,
        reason: "A Worker of Node for each piece of work starts a V8 each time.",
        check: processes::short_workers,
    },
    Rule {
        name: "stack-dumps",
        branch: Branch::User,
        reason: "A JVM stops all threads for each look at their stacks.",
        check: user::stack_dumps,
    },
    Rule {
        name: "garbage-collection",
        branch: Branch::User,
        reason: "A heap that is too small or too lively keeps its collector busy.",
        check: user::garbage,
    },
    Rule {
        name: "known-function",
        branch: Branch::User,
        reason: "Some functions of libraries and runtimes say what the time is for.",
        check: user::meaning,
    },
    Rule {
        name: "locking",
        branch: Branch::User,
        reason: "A lock that is taken very often costs its line of memory, without any waiting.",
        check: user::locking,
    },
    Rule {
        name: "shared-line",
        branch: Branch::User,
        reason: "An atomic instruction waits for its line of memory, which other processors change.",
        check: user::shared_line,
    },
    Rule {
        name: "one-function",
        branch: Branch::User,
        reason: "One function of the program has most of the time.",
        check: user::one_function,
    },
];

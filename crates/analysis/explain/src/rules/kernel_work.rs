//! Rules of what the kernel does below system calls and faults: by its own functions.

use std::collections::BTreeMap;

use crate::arguments::Calls;
use crate::budget::View;
use crate::facts::{SHORT_LIVED, Stack};
use crate::finding::{Finding, percent};

use super::system::{
    CHANGES, ENTRY, call_of, caller, in_kernel, is_fault, kernel, of_kernel, system,
};

/// The least part of the kernel's time that a group of calls has.
const GROUP: f64 = 0.4;
/// The part of one call from which on it is named alone, and how many times as much a group has.
const ALONE: f64 = 0.6;
const MORE: f64 = 1.3;
/// The least part of the kernel's time of work that is named beside the call.
const WORK: f64 = 0.2;
/// The least part of changes of mappings in which a processor waits for the others.
const SHOOTDOWN: f64 = 0.2;

pub(super) fn has(stack: &Stack, functions: &[&str]) -> bool {
    let mut kernel = stack.kernel.iter();
    kernel.any(|function| functions.iter().any(|part| function.contains(part)))
}

/// Functions in which a processor waits until the others have flushed their TLB (arch/x86/mm/tlb.c,
/// kernel/smp.c).
const FLUSHES: [&str; 4] = [
    "smp_call_function_many_cond",
    "flush_tlb_mm_range",
    "native_flush_tlb_multi",
    "arch_tlbbatch_flush",
];

/// Returns that changes of mappings make other processors flush their TLB, as the end of a
/// sentence; empty if that is no cost.
pub(super) fn shootdowns(view: &View) -> String {
    let changes = |stack: &Stack| is_fault(stack) || call_of(stack).is_some_and(is_change);
    let of_changes = of_kernel(view, changes);
    let of_flushes = of_kernel(view, |stack| changes(stack) && has(stack, &FLUSHES));
    if of_flushes < SHOOTDOWN * of_changes || of_flushes < 0.1 {
        return String::new();
    }
    "; the other processors have to flush their TLBs for that (TLB shootdown)".into()
}

fn is_change(call: &str) -> bool {
    CHANGES.contains(&call)
}

/// Work of the kernel that functions name, with what it is (their folders in Linux).
const KINDS_OF_WORK: [(&str, &[&str]); 12] = [
    // kernel/seccomp.c
    (
        "the process's seccomp filter, which is run for each call",
        &["__seccomp_filter", "seccomp_run_filters"],
    ),
    // kernel/auditsc.c
    ("auditing", &["__audit_syscall", "audit_filter"]),
    // fs/notify
    (
        "telling those who watch these files (inotify, fanotify)",
        &["fsnotify"],
    ),
    // security/apparmor, security/selinux
    ("checks of AppArmor", &["apparmor_", "aa_path", "aa_file"]),
    ("checks of SELinux", &["selinux_", "avc_has_perm"]),
    // mm/huge_memory.c
    (
        "clearing huge pages",
        &["clear_huge_page", "clear_subpage", "folio_zero_user"],
    ),
    (
        "compacting memory",
        &["compact_zone", "isolate_migratepages"],
    ),
    // kernel/sched/fair.c, mm/migrate.c
    (
        "moving pages between nodes (NUMA balancing)",
        &["do_numa_page"],
    ),
    // net/netfilter
    (
        "netfilter's rules",
        &["nf_hook_slow", "nft_do_chain", "ipt_do_table"],
    ),
    // crypto, arch/x86/crypto
    ("encryption", &["aesni_", "crypto_skcipher", "crypto_aead"]),
    (
        "compression",
        &["ZSTD_", "lz4_", "LZ4_", "lzo1x", "zlib_deflate"],
    ),
    // fs/proc
    (
        "reading files of /proc",
        &["proc_pid_", "seq_read_iter", "show_map", "show_smap"],
    ),
];

/// Returns what the kernel does for most of a call, as the end of a sentence; empty if its functions
/// do not say it.
pub(super) fn kind_of_work(view: &View, is_wanted: impl Fn(&Stack) -> bool) -> String {
    let all = of_kernel(view, &is_wanted);
    let largest = KINDS_OF_WORK
        .iter()
        .map(|(what, names)| {
            let part = of_kernel(view, |stack| is_wanted(stack) && has(stack, names));
            (what, part)
        })
        .max_by(|one, other| one.1.total_cmp(&other.1));
    match largest {
        Some((what, part)) if part >= WORK * all && part > 0.1 => {
            format!("; the kernel's work there is {what}")
        }
        _ => String::new(),
    }
}

/// Reads of the list of open files (fs/proc/fd.c).
const DESCRIPTORS: [&str; 4] = [
    "proc_readfd",
    "proc_fd_instantiate",
    "proc_fd_link",
    "tid_fd_",
];
/// What closing an open file does (fs/open.c, fs/file_table.c).
const CLOSING: [&str; 5] = [
    "filp_close",
    "filp_flush",
    "fput",
    "__fput",
    "task_work_run",
];

/// A program that closes all its files before it executes another one.
pub(super) fn closing_all(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let is_close = |stack: &Stack| call_of(stack) == Some("close");
    let is_list = |stack: &Stack| has(stack, &DESCRIPTORS);
    let of_close = of_kernel(view, is_close);
    let of_list = of_kernel(view, is_list);
    let of_open = of_kernel(view, |stack| is_close(stack) && has(stack, &CLOSING));
    let is_listed = of_list >= 0.1 && of_list + of_close >= ENTRY;
    // Most of the numbers that it closes are of no open file.
    let is_blind = of_close >= ENTRY && of_open < 0.3 * of_close;
    if !is_listed && !is_blind {
        return None;
    }
    let from = caller(view, |stack| is_close(stack) || is_list(stack));
    let which = if is_listed {
        "all that /proc/self/fd lists"
    } else {
        "most of which are of no open file"
    };
    Some(
        system(
            view,
            format!("it closes one file descriptor after the other, {which}{from}"),
            (of_close + of_list) * system_share,
        )
        .with(
            format!(
                "{} of the kernel's samples in close, {} in reading /proc/self/fd",
                percent(of_close),
                percent(of_list)
            ),
            "cpu-clock",
            "40 %",
            "other system calls",
        )
        .advise("Open files with O_CLOEXEC, and close the others with one call (close_range).")
        .look("strace -f -c -p PID"),
    )
}

/// Functions with which the kernel hands a signal to a handler and comes back (kernel/signal.c,
/// arch/x86/kernel/signal.c).
const SIGNALS: [&str; 6] = [
    "force_sig",
    "setup_rt_frame",
    "arch_do_signal",
    "get_signal",
    "sys_rt_sigreturn",
    "restore_sigcontext",
];

/// A handler of signals that runs again and again.
pub(super) fn signal_handler(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let of_signals = of_kernel(view, |stack| has(stack, &SIGNALS));
    let of_faults = of_kernel(view, |stack| has(stack, &["force_sig_fault", "bad_area"]));
    let signal = Calls::of(view, |call| call == "rt_sigreturn").signal();
    // One that is due when its timer is set is handled as this call returns.
    let timers = ["setitimer", "timer_settime", "alarm"];
    let timer = timers.iter().find(|timer| {
        let sets = |stack: &Stack| has(stack, &SIGNALS) && call_of(stack) == Some(**timer);
        of_kernel(view, sets) >= of_signals / 2.0
    });
    let timer = timer.map(|timer| format!("a signal of its own timer ({timer})"));
    let signal = signal.or(timer);
    (of_signals >= 0.3).then(|| {
        let which = if of_faults >= 0.02 {
            "SIGSEGV: it accesses memory that it may not, and its handler goes on"
        } else {
            signal.as_deref().unwrap_or("a signal")
        };
        // The rest of the kernel's time is the entry, or the fault that becomes the signal.
        let share = of_signals.max(of_kernel(view, |stack| {
            has(stack, &SIGNALS) || is_fault(stack)
        }));
        system(
            view,
            format!(
                "it handles {which}, again and again{}",
                caller(view, |stack| has(stack, &SIGNALS))
            ),
            share * system_share,
        )
        .with(
            format!(
                "{} of the kernel's samples in handing over signals",
                percent(of_signals)
            ),
            "cpu-clock",
            "30 %",
            "system calls",
        )
        .look("strace -f -c -e trace=none -p PID")
    })
}

/// System calls that belong together, with what a program does that makes them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "looks up files and directories",
        &[
            "stat", "access", "open", "getdents", "readlink", "close", "chdir", "getcwd", "unlink",
            "mkdir", "rmdir", "rename", "symlink", "link",
        ],
    ),
    (
        "changes its address space",
        &[
            "mmap",
            "munmap",
            "mprotect",
            "madvise",
            "brk",
            "mremap",
            "page faults",
        ],
    ),
    (
        "opens and closes connections",
        &[
            "socket",
            "connect",
            "accept",
            "bind",
            "listen",
            "shutdown",
            "setsockopt",
            "getsockopt",
        ],
    ),
    (
        "sends and receives",
        &[
            "sendto", "sendmsg", "recvfrom", "recvmsg", "sendmmsg", "recvmmsg",
        ],
    ),
    ("waits for events", &["poll", "select", "epoll"]),
    (
        "hands work between threads",
        &["futex", "sched_yield", "eventfd"],
    ),
];

/// System calls of one group have most of the kernel's time, and none of them alone.
pub(super) fn call_group(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let samples = view.facts.samples.as_ref()?;
    let all: u64 = in_kernel(samples).map(|stack| stack.samples).sum();
    let mut groups: BTreeMap<usize, BTreeMap<&str, u64>> = BTreeMap::new();
    for stack in in_kernel(samples).filter(|stack| stack.program != SHORT_LIVED) {
        let call = if is_fault(stack) {
            Some("page faults")
        } else {
            call_of(stack)
        };
        let Some(call) = call else { continue };
        let group = GROUPS
            .iter()
            .position(|(_, names)| names.iter().any(|name| call.contains(name)));
        if let Some(group) = group {
            let calls = groups.entry(group).or_default();
            *calls.entry(call).or_default() += stack.samples;
        }
    }
    let (group, calls) = groups
        .into_iter()
        .max_by_key(|(_, calls)| calls.values().sum::<u64>())?;
    let (what, _) = GROUPS[group];
    let part = |count: u64| count as f64 / all.max(1) as f64;
    let share = part(calls.values().sum());
    let mut calls: Vec<(&str, u64)> = calls.into_iter().collect();
    calls.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = calls.iter().take(3);
    let named: Vec<String> = named
        .map(|(call, count)| format!("{call} {}", percent(part(*count))))
        .collect();
    let is_of_group = |stack: &Stack| {
        let call = if is_fault(stack) {
            Some("page faults")
        } else {
            call_of(stack)
        };
        call.is_some_and(|call| calls.iter().any(|(known, _)| *known == call))
    };
    let on = Calls::of(view, |call| calls.iter().any(|(known, _)| *known == call)).described();
    // One of them alone is the better answer if it has nearly all.
    let first = part(calls.first()?.1);
    (share >= GROUP && first < ALONE && share >= MORE * first).then(|| {
        system(
            view,
            format!(
                "it {what} (of the kernel's time {}){on}{}{}",
                named.join(", "),
                caller(view, is_of_group),
                kind_of_work(view, is_of_group)
            ),
            share * system_share,
        )
        .with(
            format!("{} of the kernel's samples in these calls", percent(share)),
            "cpu-clock",
            "40 %",
            "other system calls",
        )
        .advise("Make fewer of these calls.")
        .look("strace -f -c -p PID")
    })
}

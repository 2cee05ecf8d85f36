//! Rules of the kernel's time. They need samples with the kernel's functions.

use std::collections::BTreeMap;

use crate::arguments::Calls;
use crate::budget::View;
use crate::callers::{Hot, is_nameless, is_own, is_start};
use crate::facts::{Samples, Stack};
use crate::finding::{Finding, Switch, percent};

use super::kernel_work::{kind_of_work, shootdowns};

/// The least share of the kernel in the time on processors (reference: 30 %).
const SYSTEM: f64 = 0.3;
/// The least share of one entry point in the kernel's time (reference: 40 %).
pub(super) const ENTRY: f64 = 0.4;
/// The share of entry points that names a lock.
const NEARLY_ALL: f64 = 0.9;
/// Least share of spinning in the kernel's time (reference: 10 %).
const SPINNING: f64 = 0.1;
/// Switches huge pages of the host.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// Splits of huge pages per second from which on they can be the cost.
const SPLITS: f64 = 50.0;
/// Reads or writes per second from which on their number can be the cost.
const CALLS: f64 = 10_000.0;
/// The same beside another cause.
const MANY_CALLS: f64 = 25_000.0;
/// Bytes per call below which the entry costs more than the copy.
const TINY: f64 = 1024.0;
/// Bytes per call below which the program goes byte by byte.
const BYTEWISE: f64 = 8.0;

/// Functions of the kernel in which processors wait for a lock (kernel/locking).
const SPINS: [&str; 7] = [
    "queued_spin_lock_slowpath",
    "osq_lock",
    "rwsem_spin_on_owner",
    "rwsem_down_",
    "mutex_spin_on_owner",
    "__mutex_lock",
    "pv_queued_spin",
];
/// Entry points that take mmap_lock.
pub(super) const CHANGES: [&str; 7] = [
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "brk",
    "mremap",
    "page faults",
];

pub(super) fn is_fault(stack: &Stack) -> bool {
    let faults = [
        "exc_page_fault",
        "asm_exc_page_fault",
        "do_user_addr_fault",
        "handle_mm_fault",
        "do_page_fault",
    ];
    stack
        .kernel
        .iter()
        .any(|function| faults.contains(&&**function))
}

/// Whether the kernel splits a huge page (mm/huge_memory.c).
fn is_split(stack: &Stack) -> bool {
    stack
        .kernel
        .iter()
        .any(|function| function.contains("split_huge"))
}

pub(super) fn maps_memory(stack: &Stack) -> bool {
    ["munmap", "mmap", "brk", "madvise"].contains(&call_of(stack).unwrap_or_default())
}

/// Returns the system call of a stack.
pub(super) fn call_of(stack: &Stack) -> Option<&str> {
    stack.call()
}

/// The entry point of a stack in the kernel.
fn entry(stack: &Stack) -> Option<String> {
    if is_fault(stack) {
        return Some("page faults".into());
    }
    call_of(stack).map(str::to_owned)
}

pub(super) fn in_kernel(samples: &Samples) -> impl Iterator<Item = &Stack> {
    samples
        .stacks
        .iter()
        .filter(|stack| !stack.kernel.is_empty())
}

/// The kernel's share of the active threads' time, if it is large enough for the rules here.
pub(super) fn kernel(view: &View) -> Option<f64> {
    let of_running = view.budget.system / view.budget.running().max(f64::MIN_POSITIVE);
    (of_running >= SYSTEM && view.budget.system >= 0.1).then_some(view.budget.system)
}

/// Returns the share of samples in the kernel for which a test holds.
pub(super) fn of_kernel(view: &View, is_wanted: impl Fn(&Stack) -> bool) -> f64 {
    let Some(samples) = &view.facts.samples else {
        return 0.0;
    };
    let all: u64 = in_kernel(samples).map(|stack| stack.samples).sum();
    let wanted: u64 = in_kernel(samples)
        .filter(|stack| is_wanted(stack))
        .map(|stack| stack.samples)
        .sum();
    wanted as f64 / all.max(1) as f64
}

/// Returns the part of the samples in a system call for which a test holds.
pub(super) fn of_call(view: &View, call: &str, is_wanted: impl Fn(&Stack) -> bool) -> f64 {
    let of_kernel_in = |test: &dyn Fn(&Stack) -> bool| {
        of_kernel(view, |stack| call_of(stack) == Some(call) && test(stack))
    };
    of_kernel_in(&is_wanted) / of_kernel_in(&|_| true).max(f64::MIN_POSITIVE)
}

/// Returns the entry points with their samples, most first.
fn entries(samples: &Samples) -> Vec<(String, u64)> {
    let mut entries: BTreeMap<String, u64> = BTreeMap::new();
    for stack in in_kernel(samples) {
        if let Some(entry) = entry(stack) {
            *entries.entry(entry).or_default() += stack.samples;
        }
    }
    let mut entries: Vec<(String, u64)> = entries.into_iter().collect();
    entries.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    entries
}

/// Returns the entry point with the most samples, and its share of the kernel's.
fn top_entry(view: &View) -> Option<(String, f64)> {
    let samples = view.facts.samples.as_ref()?;
    let all: u64 = in_kernel(samples).map(|stack| stack.samples).sum();
    let (entry, count) = entries(samples).into_iter().next()?;
    Some((entry, count as f64 / all.max(1) as f64))
}

/// Returns the entry points with most of the kernel's time, with their parts and who calls them.
pub(super) fn largest(view: &View) -> String {
    let Some(samples) = view.facts.samples.as_ref() else {
        return String::new();
    };
    let all: u64 = in_kernel(samples).map(|stack| stack.samples).sum();
    let part = |count: u64| count as f64 / all.max(1) as f64;
    let mut largest = entries(samples);
    largest.retain(|(_, count)| part(*count) >= 0.1);
    if largest.is_empty() || view.budget.system < 0.1 {
        return String::new();
    }
    let named: Vec<String> = largest
        .iter()
        .take(3)
        .map(|(name, count)| format!("{name} {}", percent(part(*count))))
        .collect();
    format!("{}{}", named.join(", "), caller(view, |_| true))
}

pub(super) fn system(view: &View, cause: String, share: f64) -> Finding {
    Finding::new(cause, share).with(
        format!(
            "{} in the kernel, {} in user mode",
            percent(view.budget.system),
            percent(view.budget.user)
        ),
        "/proc/TID/stat",
        "30 % of running",
        "the program's own work",
    )
}

/// Returns the functions of the program that call into the kernel most often, among stacks for
/// which a test holds.
pub(super) fn caller(view: &View, is_wanted: impl Fn(&Stack) -> bool) -> String {
    let Some(samples) = &view.facts.samples else {
        return String::new();
    };
    let hot = Hot::of(in_kernel(samples).filter(|stack| is_wanted(stack)));
    let named = hot.own_path().map(|(path, _)| path);
    let named = named.filter(|path| !is_start(path));
    // The function of a library between, where it is more than the call itself. A runtime's scheduler
    // has none of the program's.
    let wanted = in_kernel(samples).filter(|stack| is_wanted(stack));
    let with_own = wanted.filter(|stack| stack.user.iter().any(|one| is_own(one)));
    let entry = Hot::of(with_own)
        .entries()
        .filter(|entry| hot.leaf().is_none_or(|(leaf, _)| leaf != entry));
    let named = named.map(|path| match entry {
        Some(entry) => format!("{entry} for {path}"),
        None => path,
    });
    named
        .or_else(|| hot.first())
        .map_or_else(String::new, |name| format!(", in {name}"))
}

pub(super) fn clock_calls(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let is_clock = |stack: &Stack| {
        call_of(stack).is_some_and(|call| ["clock_gettime", "gettimeofday", "time"].contains(&call))
    };
    let of_clock = of_kernel(view, is_clock);
    let source = &view.facts.host.clock_source;
    (of_clock >= ENTRY).then(|| {
        let why = if ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", ""].contains(&&**source) {
            String::new()
        } else {
            format!(", because the clock source {source} cannot be read in user mode")
        };
        system(
            view,
            format!(
                "it reads the clock by system calls{why}{}",
                caller(view, is_clock)
            ),
            of_clock * system_share,
        )
        .with(
            format!(
                "{} of the kernel's samples in reading the clock",
                percent(of_clock)
            ),
            "cpu-clock",
            "40 %",
            "other system calls",
        )
        .advise("Read the clock less often, or use a clock source of the vDSO (clocksource=tsc).")
        .look("cat /sys/devices/system/clocksource/clocksource0/{current,available}_clocksource")
    })
}

pub(super) fn huge_pages(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let splits = view.per_second(view.facts.counters.huge_pages_split);
    let is_memory = |stack: &Stack| is_fault(stack) || maps_memory(stack);
    let of_memory = of_kernel(view, is_memory);
    (splits >= SPLITS && of_memory >= ENTRY).then(|| {
        let cause = format!(
            "it splits huge pages, {splits:.0} a second{}",
            caller(view, is_memory)
        );
        let finding = system(view, cause, of_memory * system_share)
            .with(
                format!("{splits:.0} huge pages split per second on the host"),
                "/proc/vmstat, thp_split_pmd",
                "50",
                "",
            )
            .with(
                format!(
                    "{} of the kernel's samples in page faults, madvise and munmap",
                    percent(of_memory)
                ),
                "cpu-clock",
                "40 %",
                "other system calls",
            )
            .advise(
                "Give memory back in pieces of 2 MiB, or ask for small pages (MADV_NOHUGEPAGE).",
            )
            .look("grep thp_ /proc/vmstat")
            .switched(Switch::File {
                path: HUGE_PAGES.into(),
                without: "never",
            });
        // The kernel counts the splits of all programs.
        if of_kernel(view, is_split) > 0.0 {
            finding
        } else {
            finding.doubt()
        }
    })
}

pub(super) fn refaults(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let counters = &view.facts.counters;
    let factor = counters.minor_faults as f64 / counters.touched_pages.max(1) as f64;
    let of_memory = of_kernel(view, |stack| is_fault(stack) || maps_memory(stack));
    if super::blocked::swaps(view)
        || of_memory < ENTRY
        || factor < 2.0
        || view.per_second(counters.minor_faults) < 1000.0
    {
        return None;
    }
    let given_back = view.facts.samples.as_ref().and_then(|samples| {
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for stack in in_kernel(samples).filter(|stack| maps_memory(stack)) {
            *calls.entry(call_of(stack)?).or_default() += stack.samples;
        }
        calls
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(call, _)| format!(" by {call}"))
    });
    let toucher = with_callers(view, fault_toucher(view));
    let finding = system(
        view,
        format!(
            "it gives memory back{} and touches it again, each page {factor:.0} times{toucher}{}",
            given_back.unwrap_or_default(),
            shootdowns(view)
        ),
        of_memory * system_share,
    )
    .with(
        format!(
            "{:.0} page faults per second",
            view.per_second(counters.minor_faults)
        ),
        "/proc/PID/stat",
        "1000",
        "",
    )
    .with(
        format!("{factor:.0} faults per page"),
        "minor faults / growth of VmHWM",
        "2",
        "first touches of new memory",
    )
    .with(
        format!("{} of the kernel's samples", percent(of_memory)),
        "cpu-clock",
        "40 %",
        "other system calls",
    );
    Some(
        finding
            .advise("Keep the memory: reuse blocks, or raise the allocator's thresholds.")
            .look("perf record -e page-faults -d -g -p PID"),
    )
}

/// Returns who touches memory that faults, as the sampled faults have it.
fn fault_toucher(view: &View) -> String {
    let Some(samples) = &view.facts.samples else {
        return String::new();
    };
    let all: u64 = samples.faults.iter().map(|fault| fault.samples).sum();
    let top = samples.faults.iter().max_by_key(|fault| fault.samples);
    match top.filter(|fault| 2 * fault.samples >= all) {
        // Its callers say more than an address.
        Some(fault) if is_nameless(&fault.function) => caller(view, is_fault),
        Some(fault) => format!(
            ", in {}{}",
            fault.function,
            filled_for(view, &fault.function)
        ),
        None => caller(view, is_fault),
    }
}

/// How functions begin that fill or hand out memory for others: of the C library, of C++, Go and
/// CPython.
const FILLERS: [&str; 14] = [
    "memset",
    "memcpy",
    "memmove",
    "malloc",
    "calloc",
    "realloc",
    "operator new",
    "libc.so",
    "runtime.mem",
    "runtime.mallocgc",
    "runtime.newobject",
    "runtime.makeslice",
    "PyObject_Malloc",
    "_PyObject_Malloc",
];

/// Returns for whom a function touches memory that only fills it, as the middle of a sentence.
fn filled_for(view: &View, toucher: &str) -> String {
    let is_filler = |function: &str| FILLERS.iter().any(|begin| function.starts_with(begin));
    let Some(samples) = view.facts.samples.as_ref().filter(|_| is_filler(toucher)) else {
        return String::new();
    };
    let mut askers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all = 0;
    for stack in &samples.stacks {
        if stack.user.first().is_none_or(|first| first != toucher) {
            continue;
        }
        all += stack.samples;
        let asker = stack
            .user
            .iter()
            .find(|one| !is_filler(one) && !is_nameless(one));
        if let Some(asker) = asker.filter(|one| !is_start(one)) {
            *askers.entry(asker).or_default() += stack.samples;
        }
    }
    let most = askers.into_iter().max_by_key(|(_, samples)| *samples);
    most.filter(|(_, samples)| 2 * samples >= all)
        .map_or_else(String::new, |(asker, _)| format!(" for {asker}"))
}

/// Adds who calls the function that touches memory: a constructor or a copy is part of what moves it.
fn with_callers(view: &View, toucher: String) -> String {
    let path = caller(view, |stack| is_fault(stack) || maps_memory(stack));
    if !toucher.is_empty() && path.starts_with(&toucher) {
        return path;
    }
    toucher
}

pub(super) fn page_faults(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let of_faults = of_kernel(view, is_fault);
    let counters = &view.facts.counters;
    (!super::blocked::swaps(view)
        && of_faults >= ENTRY
        && view.per_second(counters.minor_faults) >= 1000.0)
        .then(|| {
            let toucher = fault_toucher(view);
            // mm/memory.c: a page that parent and child share since a fork, or that is zero.
            let copies = |stack: &Stack| {
                let has = |name: &str| stack.kernel.iter().any(|one| one.starts_with(name));
                has("wp_page_copy") || has("do_wp_page")
            };
            let is_copied = 2.0 * of_kernel(view, copies) >= of_faults;
            let created = view.facts.short_lived.created.unwrap_or_default();
            let what = if is_copied && created.processes > 0 {
                "it copies the pages that it shares with a process that it forked, one by one as it writes to them (copy on write)"
            } else {
                "it touches new memory"
            };
            let finding = system(
                view,
                format!("{what}{toucher}"),
                of_faults * system_share,
            )
            .with(
                format!(
                    "{:.0} page faults per second",
                    view.per_second(counters.minor_faults)
                ),
                "/proc/PID/stat",
                "1000",
                "",
            )
            .with(
                format!("{} of the kernel's samples", percent(of_faults)),
                "cpu-clock",
                "40 %",
                "system calls",
            );
            finding
                .advise("Reuse memory, or use huge pages.")
                .look("perf record -e page-faults -d -g -p PID")
        })
}

/// Reads, writes or both, where they are about as many.
struct Transfers {
    /// Parts of the names of their system calls.
    calls: &'static [&'static str],
    name: &'static str,
    per_second: f64,
    mean: f64,
}

fn transfers(view: &View) -> Transfers {
    let counters = &view.facts.counters;
    let reads = counters.reads;
    let writes = counters.writes;
    let (calls, name, count, bytes): (&[&str], _, _, _) = if reads > 2 * writes {
        (&["read", "recv"], "read", reads, counters.read_bytes)
    } else if writes > 2 * reads {
        (&["write", "send"], "write", writes, counters.written_bytes)
    } else {
        let bytes = counters.read_bytes + counters.written_bytes;
        (
            &["read", "recv", "write", "send"],
            "read and write",
            reads + writes,
            bytes,
        )
    };
    Transfers {
        calls,
        name,
        per_second: view.per_second(count),
        mean: bytes as f64 / count.max(1) as f64,
    }
}

impl Transfers {
    fn is_of(&self, call: &str) -> bool {
        self.calls.iter().any(|part| call.contains(part))
    }

    fn has(&self, stack: &Stack) -> bool {
        call_of(stack).is_some_and(|call| self.is_of(call))
    }
}

/// Returns that there are very many calls that transfer nothing or little, as the end of a sentence of
/// another cause; empty if there are not.
pub(crate) fn many_transfers(view: &View) -> String {
    let transfers = transfers(view);
    let Transfers {
        name,
        per_second: calls,
        mean,
        ..
    } = transfers;
    let sampled = Calls::of(view, |call| transfers.is_of(call));
    let files = in_brackets(sampled.files());
    match mean {
        _ if calls < MANY_CALLS => String::new(),
        // Threads wake one another up by these.
        _ if files.contains(EVENTS) => {
            let writes = Calls::of(view, |call| call.contains("write")).without(EVENTS);
            writes.same_file().map_or_else(String::new, |file| {
                format!("; it writes {file} again and again, by threads of a pool")
            })
        }
        ..0.1 => {
            let why = in_brackets(sampled.error().map(str::to_owned));
            format!("; {calls:.0} {name} calls a second return without data (0 bytes){why}{files}")
        }
        ..TINY => {
            format!("; it makes {calls:.0} {name} calls a second of {mean:.0} bytes each{files}")
        }
        _ => String::new(),
    }
}

/// How descriptors are described by which threads wake one another up.
const EVENTS: &str = "[eventfd]";
/// Bytes per second from which on they are worth a word.
const MUCH: f64 = 100e6;

/// Returns how much a program reads and writes, as the end of a sentence; empty if it is not much.
pub(crate) fn much_transferred(view: &View) -> String {
    let counters = &view.facts.counters;
    let [read, written] =
        [counters.read_bytes, counters.written_bytes].map(|bytes| view.per_second(bytes));
    if read + written < MUCH {
        return String::new();
    }
    let [read, written] = [read / 1e6, written / 1e6];
    format!("; it reads {read:.0} MB and writes {written:.0} MB a second")
}

fn in_brackets(text: Option<String>) -> String {
    text.map_or_else(String::new, |text| format!(" ({text})"))
}

pub(super) fn failing_calls(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let counters = &view.facts.counters;
    let transfers = transfers(view);
    let Transfers {
        name,
        per_second: calls,
        mean,
        ..
    } = transfers;
    let is_call = |stack: &Stack| transfers.has(stack);
    let share = of_kernel(view, is_call) * system_share;
    let sampled = Calls::of(view, |call| transfers.is_of(call));
    let why = match sampled.error() {
        Some(error) => error,
        None if sampled.is_empty_handed() => "the end of the file",
        None => "EAGAIN or the end",
    };
    let files = in_brackets(sampled.files());
    let all = counters.read_bytes + counters.written_bytes;
    (calls >= CALLS && mean < 0.1 && all < counters.reads + counters.writes).then(|| {
        system(
            view,
            format!(
                "its {name} calls return without data ({why}), {calls:.0} a second{files}{}",
                caller(view, is_call)
            ),
            share,
        )
        .with(
            format!("{calls:.0} calls of {name} per second"),
            "/proc/PID/io",
            "10000",
            "waiting",
        )
        .with(
            format!("{mean:.2} bytes per call"),
            "/proc/PID/io",
            "0.1",
            "small transfers",
        )
        .advise("Wait with poll or epoll until there is data.")
        .look("strace -f -c -p PID")
    })
}

pub(super) fn tiny_calls(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let transfers = transfers(view);
    let Transfers {
        name,
        per_second: calls,
        mean,
        ..
    } = transfers;
    let is_call = |stack: &Stack| transfers.has(stack);
    let sampled = Calls::of(view, |call| transfers.is_of(call));
    let files = in_brackets(sampled.files());
    // What they are asked for says more than the average over all that it reads and writes.
    let size = sampled.size().map_or(mean, |size| mean.min(size as f64));
    let bytes = if (0.5..1.5).contains(&size) {
        "byte"
    } else {
        "bytes"
    };
    let of_calls = of_kernel(view, is_call);
    // With a few bytes each, what the program does for each of them is part of it.
    let is_bytewise = mean < BYTEWISE && calls >= CALLS && of_calls >= ENTRY / 2.0;
    let share = if is_bytewise {
        view.budget.running()
    } else {
        of_calls * system_share
    };
    let is_tiny = calls >= CALLS && (0.1..TINY).contains(&mean) && of_calls >= ENTRY;
    (is_tiny || is_bytewise && mean >= 0.1).then(|| {
        system(
            view,
            format!(
                "it makes tiny {name} calls, {calls:.0} a second of {size:.0} {bytes} each{files}{}",
                caller(view, is_call)
            ),
            share,
        )
        .with(
            format!("{calls:.0} calls of {name} per second"),
            "/proc/PID/io",
            "10000",
            "waiting",
        )
        .with(
            format!("{mean:.1} bytes per call"),
            "/proc/PID/io",
            "under 512",
            "large transfers",
        )
        .with(
            format!("{} of the kernel's samples", percent(of_calls)),
            "cpu-clock",
            "40 %",
            "other system calls",
        )
        .advise("Buffer: some thousand bytes per call.")
        .look("strace -f -c -p PID")
    })
}

pub(super) fn lock_spinning(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let is_spinning = |stack: &Stack| {
        stack
            .kernel
            .iter()
            .take(2)
            .any(|function| SPINS.iter().any(|spin| function.contains(spin)))
    };
    let of_spinning = of_kernel(view, is_spinning);
    let mut entries: BTreeMap<String, u64> = BTreeMap::new();
    for stack in in_kernel(view.facts.samples.as_ref()?).filter(|stack| is_spinning(stack)) {
        *entries.entry(entry(stack).unwrap_or_default()).or_default() += stack.samples;
    }
    (of_spinning >= SPINNING).then(|| {
        let all: u64 = entries.values().sum();
        let memory: u64 = entries
            .iter()
            .filter(|(call, _)| CHANGES.contains(&&***call))
            .map(|(_, count)| count)
            .sum();
        let is_memory = memory as f64 >= NEARLY_ALL * all as f64;
        // The stack of a sample may end before its entry point.
        let called = entries
            .into_iter()
            .filter(|(name, _)| !name.is_empty())
            .max_by_key(|(_, count)| *count);
        let called = called.map_or_else(String::new, |(name, _)| format!(" in {name}"));
        let lock = if is_memory { "mmap_lock" } else { "a lock of the kernel" };
        let cause = format!("processors spin for {lock}{called}{}", caller(view, is_spinning));
        system(view, cause, of_spinning * system_share)
            .with(
                format!("{} of the kernel's samples spin", percent(of_spinning)),
                "cpu-clock",
                "10 %",
                "other work of the kernel",
            )
            .advise(if is_memory {
                "Change the address space less often: larger blocks, or processes instead of threads."
            } else {
                "Let threads use objects of their own."
            })
            .look("perf lock contention -a sleep 5")
    })
}

pub(super) fn one_call(view: &View) -> Option<Finding> {
    let system_share = kernel(view)?;
    let (entry, share) = top_entry(view)?;
    let is_grouped = super::kernel_work::call_group(view).is_some();
    if share < ENTRY || entry == "page faults" || is_grouped || lock_spinning(view).is_some() {
        return None;
    }
    let is_entry = |stack: &Stack| call_of(stack) == Some(&entry);
    let described = Calls::of(view, |call| call == entry).described();
    let from = caller(view, is_entry);
    let work = kind_of_work(view, is_entry) + &of_changes(view, &entry);
    let work = match &*entry {
        "futex" => work + &super::inside::timed_waits(view) + &super::goroutines::bound(view),
        _ => work,
    };
    Some(
        system(
            view,
            format!("it is in the system call {entry}{described}{from}{work}"),
            share * system_share,
        )
        .with(
            format!("{} of the kernel's samples in {entry}", percent(share)),
            "cpu-clock",
            "40 %",
            "other system calls",
        )
        .advise("Call it less often.")
        .look("strace -f -c -p PID"),
    )
}

/// Returns what a change of mappings makes other processors do; empty for other calls.
fn of_changes(view: &View, entry: &str) -> String {
    if CHANGES.contains(&entry) {
        shootdowns(view)
    } else {
        String::new()
    }
}

/// Functions that do the work of mitigations (arch/x86/lib/retpoline.S, arch/x86/entry/entry.S,
/// arch/x86/entry/entry_64.S).
const MITIGATIONS: [&str; 8] = [
    "__x86_indirect_thunk",
    "__x86_return_thunk",
    "clear_bhb_loop",
    "entry_ibpb",
    "its_",
    "retbleed_",
    "srso_",
    "write_ibpb",
];
/// Their least share in the kernel's time.
const MITIGATED: f64 = 0.3;

pub(super) fn mitigations(view: &View) -> Option<Finding> {
    let share = view.running_in(|stack| {
        let function = stack.kernel.first().map_or("", String::as_str);
        MITIGATIONS.iter().any(|begin| function.starts_with(begin))
    });
    let of_system = share / view.budget.system.max(f64::MIN_POSITIVE);
    (view.budget.system >= SYSTEM && of_system >= MITIGATED).then(|| {
        Finding::new("mitigations of the processor's faults have much of the kernel's time".into(), share)
            .with(
                format!("{} of the kernel's time in their functions", percent(of_system)),
                "cpu-clock",
                "30 %",
                "work of the kernel itself",
            )
            .with(view.facts.host.mitigations.join("; "), "/sys/devices/system/cpu/vulnerabilities", "", "")
            .advise("Enter the kernel less often; where no foreign code runs, mitigations=off on its command line.")
            .look("perf top --no-children")
    })
}

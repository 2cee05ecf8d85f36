//! Rules of what was set before the program ran. They come first: a setting explains what the other
//! rules only show.

use std::collections::BTreeMap;

use crate::budget::View;
use crate::facts::{Limit, Limited};
use crate::finding::{Finding, Suspect, Switch, Variable, percent};

use super::system::{call_of, is_fault, maps_memory};

/// Libraries that replace the allocator by a checking one.
const DEBUG_ALLOCATORS: [&str; 5] = [
    "libc_malloc_debug",
    "libefence",
    "libduma",
    "libmcheck",
    "valgrind",
];
/// Runtime libraries of sanitizers.
const SANITIZERS: [&str; 5] = ["libasan", "libtsan", "libmsan", "libubsan", "liblsan"];
/// Variables of glibc's allocator that end its dynamic threshold (malloc/malloc.c:
/// do_set_mmap_threshold and others).
const THRESHOLDS: [&str; 4] = [
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
];
/// The same as tunables (glibc's manual, Memory Allocation Tunables).
const MALLOC_TUNABLES: [&str; 4] = [
    "glibc.malloc.trim_threshold",
    "glibc.malloc.top_pad",
    "glibc.malloc.mmap_threshold",
    "glibc.malloc.mmap_max",
];
const TUNABLES: &str = "GLIBC_TUNABLES";
const PRELOAD: &str = "LD_PRELOAD";
/// The least share of the time that a setting has to explain.
const LEAST: f64 = 0.1;
/// The part of a limit from which on it is reached.
const USED_UP: f64 = 0.9;
/// The least share of running in which the frequency matters, and the part of the highest that is
/// slow.
const RUNNING: f64 = 0.5;
const SLOW: f64 = 0.7;
/// The least share of waiting for a processor (reference: 20 %).
const WAITING: f64 = 0.2;

pub(super) fn debug_allocator(view: &View) -> Option<Finding> {
    let settings = &view.facts.settings;
    let library = settings
        .libraries
        .iter()
        .find(|library| DEBUG_ALLOCATORS.iter().any(|name| library.contains(name)))?;
    let stem = library.split(".so").next().unwrap_or(library);
    let is_in = |names: &[String]| {
        names
            .iter()
            .any(|name| name.contains(stem) || is_allocator(name))
    };
    let blocked = view.blocked_in(|wait| {
        let is_at_its_lock = match &wait.object {
            crate::facts::Object::Futex(futex) => futex.mapping.contains(stem),
            _ => false,
        };
        is_at_its_lock || is_in(&wait.stack)
    });
    let running = view.running_in(|stack| is_in(&stack.user));
    let share = blocked + running;
    let variables = [
        "LD_PRELOAD",
        "MALLOC_CHECK_",
        "MALLOC_PERTURB_",
        "GLIBC_TUNABLES",
    ];
    if share < LEAST {
        return None;
    }
    let set: Vec<String> = variables
        .iter()
        .filter_map(|name| Some(format!("{name}={}", settings.environment.get(*name)?)))
        .collect();
    let by = if set.is_empty() {
        String::new()
    } else {
        format!(" ({})", set.join(" "))
    };
    let cause = format!("the debug allocator {library} is loaded{by}");
    let finding = Finding::new(cause.clone(), share)
        .with(
            format!("{library} is mapped"),
            "/proc/PID/maps",
            "any",
            "the C library's own allocator",
        )
        .with(
            format!(
                "{} blocked at its lock, {} running in it",
                percent(blocked),
                percent(running)
            ),
            "/proc/TID/syscall, cpu-clock",
            "10 %",
            "locks of the program",
        )
        .look("tr '\\0' '\\n' < /proc/PID/environ");
    let preloaded = Variable {
        name: PRELOAD,
        part: Suspect::Library(library.clone()),
        cause,
    };
    let is_preloaded = settings
        .environment
        .get(PRELOAD)
        .is_some_and(|value| preloaded.without(value).is_some());
    Some(if is_preloaded {
        let advice =
            format!("Run it without {library} in {PRELOAD}: Marvin does so with --verify.");
        finding
            .advise(&advice)
            .switched(Switch::Variable(preloaded))
    } else {
        finding.advise("Run it without this library.")
    })
}

fn is_allocator(name: &str) -> bool {
    [
        "malloc_check",
        "__debug_malloc",
        "__debug_free",
        "free_check",
        "mem2chunk_check",
    ]
    .iter()
    .any(|function| name.starts_with(function))
}

pub(super) fn sanitizer(view: &View) -> Option<Finding> {
    let libraries = &view.facts.settings.libraries;
    let library = libraries
        .iter()
        .find(|library| SANITIZERS.iter().any(|name| library.contains(name)))?;
    let share = view.budget.user;
    (share >= 0.3).then(|| {
        Finding::new(
            format!("the sanitizer {library} checks every access to memory"),
            share,
        )
        .doubt()
        .with(format!("{library} is mapped"), "/proc/PID/maps", "any", "")
        .with(
            format!("{} in user mode", percent(share)),
            "/proc/TID/stat",
            "30 %",
            "the kernel",
        )
        .advise("Build it without -fsanitize.")
    })
}

pub(super) fn allocator_trimming(view: &View) -> Option<Finding> {
    let settings = &view.facts.settings;
    let variables = allocator_variables(&settings.environment);
    if variables.is_empty() {
        return None;
    }
    let faults = view.facts.counters.minor_faults;
    let refaults = faults as f64 / view.facts.counters.touched_pages.max(1) as f64;
    let running = view.running_in(|stack| is_fault(stack) || maps_memory(stack));
    let blocked =
        view.blocked_in(|wait| ["munmap", "mmap", "brk", "madvise"].contains(&&*wait.call));
    let share = running + blocked;
    if share < LEAST || refaults < 2.0 {
        return None;
    }
    let set: Vec<&str> = variables.iter().map(|(set, _)| &**set).collect();
    let finding = Finding::new(because(&set.join(" ")), share)
        .with(
            format!("{:.0} page faults per second", view.per_second(faults)),
            "/proc/PID/stat",
            "",
            "",
        )
        .with(
            format!("each page is faulted {refaults:.0} times"),
            "minor faults / growth of VmHWM",
            "2",
            "first touches of new memory",
        )
        .with(
            format!(
                "{} in page faults, mmap, munmap, brk and madvise",
                percent(share)
            ),
            "cpu-clock, /proc/TID/syscall",
            "10 %",
            "other work of the kernel",
        )
        .advise("Run it without these variables: Marvin does so with --verify, one at a time.")
        .look("strace -f -c -e trace=memory -p PID");
    Some(
        variables
            .into_iter()
            .fold(finding, |finding, (_, variable)| {
                finding.switched(Switch::Variable(variable))
            }),
    )
}

fn because(set: &str) -> String {
    format!("the allocator gives memory back and takes it again, because {set} is set")
}

/// Returns what is set of glibc's allocator, each as it is written and as something to be without.
fn allocator_variables(environment: &BTreeMap<String, String>) -> Vec<(String, Variable)> {
    let mut variables = Vec::new();
    for name in THRESHOLDS {
        if let Some(value) = environment.get(name) {
            let set = format!("{name}={value}");
            let variable = Variable {
                name,
                part: Suspect::Whole,
                cause: because(&set),
            };
            variables.push((set, variable));
        }
    }
    let tunables = environment
        .get(TUNABLES)
        .map(String::as_str)
        .unwrap_or_default();
    for tunable in tunables.split(':') {
        if let Some((name, _)) = tunable.split_once('=')
            && MALLOC_TUNABLES.contains(&name)
        {
            let variable = Variable {
                name: TUNABLES,
                part: Suspect::Tunable(name.to_owned()),
                cause: because(&format!("{tunable} of {TUNABLES}")),
            };
            variables.push((format!("{TUNABLES}={tunable}"), variable));
        }
    }
    variables
}

pub(super) fn quota(view: &View) -> Option<Finding> {
    let settings = &view.facts.settings;
    let (throttled, periods) = settings.throttled;
    let of_periods = throttled as f64 / periods.max(1) as f64;
    let running: f64 =
        view.budget.running() * view.total_s / view.facts.seconds.max(f64::MIN_POSITIVE);
    // Which states a throttled thread is in differs by kernel: what counts is that it has no more
    // than its quota.
    let quota = settings.quota? as f64 / 1000.0;
    let share = 1.0 - view.budget.running();
    (of_periods >= 0.2 && share >= 0.1).then(|| {
        let without = if settings.quota_file.ends_with("cpu.max") {
            "max"
        } else {
            "-1"
        };
        let file = Switch::File {
            path: settings.quota_file.clone(),
            without,
        };
        let finding = Finding::new(
            format!("the quota of its cgroup, {quota} processors, stops it"),
            share,
        )
        .with(
            format!("throttled in {throttled} of {periods} periods"),
            "cpu.stat of the cgroup",
            "20 %",
            "waiting for other programs",
        )
        .with(
            format!(
                "it had {running:.2} of {quota} processors; the host was {} idle",
                percent(view.facts.host.idle)
            ),
            "/proc/TID/schedstat, /proc/stat",
            "",
            "a busy host",
        )
        .advise("Raise cpu.max (cpu.cfs_quota_us) of the cgroup, or use fewer threads.")
        .look("cat /proc/PID/cgroup; grep . /sys/fs/cgroup/…/cpu.stat");
        if settings.quota_file.is_empty() {
            finding
        } else {
            finding.switched(file)
        }
    })
}

/// Returns the limit that is nearly used up.
fn reached<'a>(view: &View<'a>, of: Limited) -> Option<&'a Limit> {
    let is_used_up =
        |limit: &&Limit| limit.of == of && limit.used as f64 >= USED_UP * limit.value as f64;
    view.facts.settings.limits.iter().find(is_used_up)
}

/// Adds the limit that a cause comes from, if one is reached, and how to be without it.
pub(super) fn limit(finding: Finding, view: &View, of: Limited) -> Finding {
    let Some(limit) = reached(view, of) else {
        return finding;
    };
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let switch = Switch::File {
        path: limit.file.clone(),
        without: limit.without,
    };
    if of != Limited::Memory {
        let limited = format!("a limit of dirty pages: {}", limit.file);
        return finding
            .with(
                limited,
                "/proc/sys/vm, /sys/class/bdi",
                "any",
                "slow storage alone",
            )
            .switched(switch);
    }
    let cause = format!(
        "{}; its cgroup may have {}",
        finding.cause,
        mib(limit.value)
    );
    let used = format!("{} of {} in its cgroup", mib(limit.used), mib(limit.value));
    let finding = finding
        .with(used, "the cgroup's memory", "90 %", "a host without memory")
        .switched(switch);
    Finding { cause, ..finding }
}

/// System calls that need a free file descriptor.
const OPENS: [&str; 14] = [
    "accept",
    "accept4",
    "creat",
    "dup",
    "dup3",
    "epoll_create1",
    "eventfd2",
    "open",
    "openat",
    "openat2",
    "pipe",
    "pipe2",
    "socket",
    "socketpair",
];

pub(super) fn open_files(view: &View) -> Option<Finding> {
    let limit = reached(view, Limited::Files).filter(|limit| limit.used >= limit.value)?;
    let running = view.running_in(|stack| call_of(stack).is_some_and(|call| OPENS.contains(&call)));
    let waiting = view.blocked_in(|wait| OPENS.contains(&&*wait.call));
    let share = running + waiting;
    (share >= LEAST).then(|| {
        Finding::new(
            format!(
                "it has no free file descriptor (EMFILE: too many open files): it may open {}",
                limit.value
            ),
            share,
        )
        .with(
            format!(
                "{} of {} files open",
                limit.used.min(limit.value),
                limit.value
            ),
            "/proc/PID/{fd,limits}",
            "all",
            "files that are slow to open",
        )
        .with(
            format!("{} in calls that need one", percent(share)),
            "cpu-clock",
            "10 %",
            "other system calls",
        )
        .advise("Close files, or raise the limit: ulimit -n, LimitNOFILE= of its unit.")
        .look("ls -l /proc/PID/fd")
    })
}

pub(super) fn frequency(view: &View) -> Option<Finding> {
    let [now, most] = view.facts.host.frequency?;
    let part = now as f64 / most.max(1) as f64;
    let running = view.budget.running();
    (running >= RUNNING && part <= SLOW).then(|| {
        let ghz = |khz: u64| khz as f64 / 1e6;
        let governor = &view.facts.host.governor;
        let by = if governor.is_empty() { String::new() } else { format!(" (governor {governor})") };
        Finding::new(
            format!("its processors run at {:.1} of {:.1} GHz{by}", ghz(now), ghz(most)),
            running * (1.0 - part),
        )
        .doubt()
        .with(
            format!("{} of the highest frequency", percent(part)),
            "/sys/devices/system/cpu/cpu*/cpufreq",
            "70 % or less",
            "",
        )
        .with(
            format!("{} running", percent(running)),
            "/proc/TID/schedstat",
            "50 %",
            "waiting, which slows clocks down",
        )
        .advise(
            "Set the governor to performance (cpupower frequency-set -g performance); look for power limits and heat.",
        )
        .look("turbostat --interval 1")
    })
}

pub(super) fn affinity(view: &View) -> Option<Finding> {
    let share = view.budget.waiting;
    let allowed = view.active.iter().map(|thread| thread.allowed).max()?;
    let runnable = runnable(view);
    let is_narrow =
        allowed > 0 && allowed < view.facts.host.processors && runnable > allowed as f64 + 0.2;
    (share >= WAITING && is_narrow).then(|| {
        let named = if allowed == 1 {
            "1 processor".to_owned()
        } else {
            format!("{allowed} processors")
        };
        Finding::new(
            format!(
                "its {} threads may use {named} of {} (affinity: sched_setaffinity, taskset, cpuset)",
                view.active.len(),
                view.facts.host.processors
            ),
            share,
        )
        .with(
            format!("{} runnable without a processor", percent(share)),
            "/proc/TID/schedstat",
            "20 %",
            "locks and I/O",
        )
        .with(
            format!("{runnable:.1} threads runnable on average, {allowed} allowed processors"),
            "/proc/TID/status, Cpus_allowed",
            "more than allowed",
            "a busy host",
        )
        .advise("Widen the affinity (taskset, cpuset, numactl), or use fewer threads.")
        .look("taskset -acp PID")
    })
}

pub(super) fn debug_kernel(view: &View) -> Option<Finding> {
    let options = &view.facts.host.debugging;
    (!options.is_empty() && view.budget.system >= 0.3).then(|| {
        Finding::new(
            format!("the kernel has debugging on: {}", options.join(", ")),
            view.budget.system,
        )
        .doubt()
        .with(
            options.join(", "),
            "/boot/config-*, /proc/cmdline",
            "any",
            "",
        )
        .with(
            format!("{} in the kernel", percent(view.budget.system)),
            "/proc/TID/stat",
            "30 %",
            "the program",
        )
        .advise("Measure on a kernel without them.")
    })
}

/// Returns how many threads are running or runnable on average.
pub(super) fn runnable(view: &View) -> f64 {
    (view.budget.running() + view.budget.waiting) * view.total_s
        / view.facts.seconds.max(f64::MIN_POSITIVE)
}

//! What a program does beside its cause, as ends of the sentence: who waits meanwhile, which programs
//! it starts, which file it opens again and again, what calls itself, and how its loop of events asks.

use std::collections::{BTreeMap, BTreeSet};

use crate::arguments::Calls;
use crate::budget::View;
use crate::callers::{calling_back, is_own};
use crate::facts::{Facts, Stack, Thread, Wait, Walk};
use crate::finding::{Finding, percent};
use crate::rules::{many_transfers, much_transferred};
use crate::waits::{Kind, POLLS, describe_wait, is_runtime_thread, kind, own_path, what_of};

/// The least part of the observed time of a wait that is worth a word beside a cause.
const LASTING: f64 = 0.5;
/// The least share of another cause that is said beside the first one.
const LEAST: f64 = 0.2;
/// The same of waiting for locks beside what runs.
const AT_LOCKS: f64 = 0.15;
/// Programs or processes per second that are worth a word.
const STARTED: f64 = 3.0;
/// Threads per second that are worth a word.
const THREADS_STARTED: f64 = 10.0;
/// The part of started programs that makes one of them the one.
const ONE_PROGRAM: f64 = 0.8;
/// The least part of what runs in opening a file, and in asking for events, that is worth a word.
const OPENING: f64 = 0.01;
const ASKING: f64 = 0.03;
/// The least part of the kernel's time of questions for events that are most of what it does.
const MOSTLY_ASKING: f64 = 0.4;
/// Calls that open a file.
const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];
/// Rules whose causes say themselves that programs are started.
const OF_PROCESSES: [&str; 5] = [
    "new-processes",
    "children",
    "fork-tables",
    "closing",
    "closing-all",
];
/// Rules of threads that wait for each other's locks.
const OF_LOCKS: [&str; 2] = ["hot-lock", "many-locks"];

/// Returns which thread of a program that sleeps waits for a lock or a signal meanwhile.
pub(crate) fn waiting_meanwhile(facts: &Facts, cause: &Finding) -> String {
    let of_kind = |wait: &&Wait| match kind(facts, wait) {
        Kind::FileLock | Kind::Lock => true,
        Kind::Condition => cause.rule == "sleep" || what_of(wait).is_some(),
        _ => false,
    };
    let longest = facts
        .waits
        .iter()
        .filter(of_kind)
        .filter(|wait| wait.seconds >= LASTING * facts.seconds)
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let Some(wait) = longest else {
        return String::new();
    };
    let mut threads = facts.threads.iter();
    let thread = threads.find(|thread| wait.threads.contains(&thread.id));
    let name = match thread {
        Some(thread) if kind(facts, wait) == Kind::FileLock => &thread.name,
        _ => "another thread of it",
    };
    let left = match kind(facts, wait) {
        Kind::Condition => none_left(facts, &wait.threads.iter().copied().collect()),
        _ => String::new(),
    };
    format!("; meanwhile {name} {}{left}", describe_wait(facts, wait))
}

/// The part of the observed time up to which a thread has ended, and from which on it was there.
const ENDED: f64 = 0.5;
const STAYED: f64 = 0.8;

/// What is left of a program beside threads that wait: none that could send them a signal or have
/// their lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    /// Whether a thread sleeps, which may do so with the lock, or send the signal later.
    pub(crate) has_sleeper: bool,
    /// Whether other threads have ended.
    pub(crate) has_ended: bool,
}

impl Left {
    /// Looks for other threads than those that wait; `None` if one is there that neither sleeps nor waits
    /// for the end of another one, or if no other one ever was.
    pub(crate) fn beside(facts: &Facts, waiting: &BTreeSet<u32>) -> Option<Self> {
        let of_kind = |wanted: Kind| -> BTreeSet<u32> {
            let lasting = facts.waits.iter().filter(|wait| {
                wait.seconds >= STAYED * facts.seconds && kind(facts, wait) == wanted
            });
            lasting
                .flat_map(|wait| wait.threads.iter().copied())
                .collect()
        };
        let sleepers = of_kind(Kind::Sleep);
        let joining = of_kind(Kind::Join);
        let mut others = facts.threads.iter().filter(|one| {
            let is_passive = [waiting, &sleepers, &joining]
                .iter()
                .any(|ids| ids.contains(&one.id));
            !is_passive && !is_runtime_thread(facts, one)
        });
        let has_stayed = |one: &Thread| one.total_s >= STAYED * facts.seconds;
        if others.clone().any(has_stayed) {
            return None;
        }
        let has_ended = others.any(|one| one.total_s < ENDED * facts.seconds);
        let has_sleeper = !sleepers.is_empty();
        (has_ended || has_sleeper).then_some(Self {
            has_sleeper,
            has_ended,
        })
    }
}

/// Returns that no thread is left that could send a signal to those that wait, as the end of a sentence;
/// empty if one is.
pub(crate) fn none_left(facts: &Facts, waiting: &BTreeSet<u32>) -> String {
    let Some(left) = Left::beside(facts, waiting) else {
        return String::new();
    };
    let others = match left.has_ended {
        true => "the other threads have ended, and no other thread is left to send it",
        false => "no other thread is there to send it",
    };
    let but = match left.has_sleeper {
        true => " but one that sleeps",
        false => "",
    };
    format!("; {others}{but}")
}

/// Returns what threads wait for at locks beside what runs.
pub(crate) fn at_locks(others: &[Finding]) -> String {
    beside(others, &OF_LOCKS, AT_LOCKS)
}

/// Functions in which the JVM spins or waits for a monitor that another thread has
/// (src/hotspot/share/runtime/{sharedRuntime,synchronizer,objectMonitor}.cpp).
const AT_MONITORS: [&str; 4] = [
    "_complete_monitor_locking",
    "SharedRuntime::complete_monitor_locking",
    "ObjectSynchronizer::enter",
    "ObjectMonitor::enter",
];
/// The least part of samples there.
const OF_MONITORS: f64 = 0.1;

/// Returns where threads of Java run for monitors that others have, if the cause does not say it.
pub(crate) fn at_monitors(facts: &Facts, sentence: &str) -> String {
    let samples = facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks);
    let is_there = |function: &String| AT_MONITORS.iter().any(|part| function.starts_with(part));
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let there = stacks
        .iter()
        .filter(|stack| stack.user.iter().any(is_there));
    let part = there.map(|stack| stack.samples).sum::<u64>() as f64 / all.max(1) as f64;
    if part < OF_MONITORS || sentence.contains("monitor of Java") {
        return String::new();
    }
    let waits = facts.waits.iter();
    let at_monitor = |wait: &&Wait| wait.stack.iter().any(is_there);
    let longest = waits
        .filter(at_monitor)
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let place = longest.and_then(own_path);
    let place = place.map_or_else(String::new, |place| format!(", taken in {place}"));
    format!(
        "; {} of that for monitors that other threads have{place}",
        percent(part)
    )
}

/// The least part of the threads at a barrier that waits there on average, and the least of what the
/// one runs that they wait for (of the time).
const AT_BARRIER: f64 = 0.5;
const ALONE: f64 = 0.4;

/// Returns that most threads wait at a barrier while one of them runs: its share of the work is larger.
pub(crate) fn at_barrier(facts: &Facts) -> String {
    let waits = facts.waits.iter();
    let at_barrier: Vec<&Wait> = waits
        .filter(|wait| kind(facts, wait) == Kind::Barrier)
        .collect();
    let threads: BTreeSet<u32> = at_barrier
        .iter()
        .flat_map(|wait| wait.threads.iter().copied())
        .collect();
    let seconds = facts.seconds.max(f64::MIN_POSITIVE);
    let waiting = at_barrier.iter().map(|wait| wait.seconds).sum::<f64>() / seconds;
    let of_them = facts.threads.iter().filter(|one| threads.contains(&one.id));
    let running = of_them.map(|thread| thread.running_s() / seconds);
    let most = running.clone().fold(0.0, f64::max);
    let all: f64 = running.sum();
    let is_one = most >= ALONE && most >= all / 2.0;
    if threads.len() < 2 || waiting < AT_BARRIER * threads.len() as f64 || !is_one {
        return String::new();
    }
    format!(
        "; of {} threads {waiting:.1} wait at a barrier on average, while one thread runs for {} of the time \
         (uneven shares of the work)",
        threads.len(),
        percent(most)
    )
}

/// Returns where a program sleeps beside its cause.
pub(crate) fn sleeping(others: &[Finding]) -> String {
    beside(others, &["sleep"], LEAST)
}

/// Returns a finding of some rules beside the cause, with its share.
fn beside(others: &[Finding], rules: &[&str], least: f64) -> String {
    let mut others = others.iter();
    let found = others.find(|other| rules.contains(&other.rule) && other.share >= least);
    found.map_or_else(String::new, |found| {
        format!("; beside that {} ({})", found.cause, percent(found.share))
    })
}

/// Returns that Node starts a thread for each piece of work, which is no share of the cause's.
pub(crate) fn short_workers(others: &[Finding]) -> String {
    let mut others = others.iter();
    let short = others.find(|other| other.rule == "short-workers" && other.share >= LEAST);
    short.map_or_else(String::new, |short| format!("; {}", short.cause))
}

/// Returns how many programs or processes a second a program starts, if its cause does not say it.
pub(crate) fn starting(facts: &Facts, cause: &Finding) -> String {
    let is_told = OF_PROCESSES.contains(&cause.rule) || cause.cause.contains("a new Worker");
    if is_told {
        return String::new();
    }
    started(facts)
}

/// The same without a cause.
pub(crate) fn started(facts: &Facts) -> String {
    let created = facts.short_lived.created.unwrap_or_default();
    let each_s = |count: u64| count as f64 / facts.seconds.max(f64::MIN_POSITIVE);
    // Those of a process that ends soon are part of starting it.
    let threads = each_s(created.threads);
    if threads >= THREADS_STARTED && created.threads > created.processes {
        return format!("; it creates {threads:.0} threads a second");
    }
    if each_s(created.processes) < STARTED {
        return String::new();
    }
    // What a program starts to begin with is over soon.
    let lasting = facts.started.iter().filter(|one| one.span >= LASTING);
    let programs = lasting.clone().filter(|one| !one.program.is_empty());
    let started: u64 = programs.clone().map(|one| one.count).sum();
    let most = programs.max_by_key(|one| one.count);
    match most {
        Some(most) if each_s(started) >= STARTED => {
            let command = match &*most.command {
                "" => &most.program,
                command => command,
            };
            if most.count as f64 >= ONE_PROGRAM * started as f64 {
                format!(
                    "; it starts {} again and again, {:.0} times a second, such as {command}",
                    most.program,
                    each_s(most.count)
                )
            } else {
                format!(
                    "; it starts {:.0} programs a second, such as {command}",
                    each_s(started)
                )
            }
        }
        _ if lasting.clone().any(|one| each_s(one.count) >= STARTED) => {
            let created = each_s(created.processes);
            format!("; it creates {created:.0} processes a second")
        }
        _ => String::new(),
    }
}

/// Returns which file is opened again and again, if most of what is opened is one.
pub(crate) fn reopening(facts: &Facts, sentence: &str) -> String {
    let view = View::new(facts);
    let opens = |call: &str| OPENS.contains(&call);
    let share = view.running_in(|stack: &Stack| stack.call().is_some_and(opens));
    let of_running = share / view.budget.running().max(f64::MIN_POSITIVE);
    let file = Calls::of(&view, opens).same_file();
    match file {
        Some(_) if of_running < OPENING || sentence.contains("again and again") => String::new(),
        Some(file) if sentence.contains(file) && sentence.contains("call open") => String::new(),
        Some(file) if sentence.contains(file) => "; it opens that file again and again".into(),
        Some(file) => format!("; it opens {file} again and again"),
        _ => String::new(),
    }
}

/// Rules that say themselves what is read or written.
const OF_TRANSFERS: [&str; 2] = ["failing-calls", "tiny-calls"];

/// Returns that there are very many small transfers, if the cause does not say it.
pub(crate) fn transferring(facts: &Facts, cause: &Finding) -> String {
    let is_told = OF_TRANSFERS.contains(&cause.rule) || cause.cause.contains("again and again");
    if is_told {
        return String::new();
    }
    let view = View::new(facts);
    match many_transfers(&view) {
        many if many.is_empty() => much_transferred(&view),
        many => many,
    }
}

/// How often a function is on a stack that calls itself, and the least part of samples in such ones.
const DEEP: usize = 3;
const RECURSING: f64 = 0.4;

/// Returns the own function that calls itself in most of what runs, with how deep.
pub(crate) fn recursing(facts: &Facts) -> String {
    let samples = facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks).iter();
    let stacks: Vec<&Stack> = if facts.scripts.is_empty() {
        stacks.collect()
    } else {
        facts.scripts.iter().collect()
    };
    let mut functions: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for stack in &stacks {
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        for function in stack.user.iter().filter(|function| is_own(function)) {
            *depths.entry(function).or_default() += 1;
        }
        for (function, depth) in depths.into_iter().filter(|(_, depth)| *depth >= DEEP) {
            let (with, deepest) = functions.entry(function).or_default();
            *with += stack.samples;
            *deepest = depth.max(*deepest);
        }
    }
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let most = functions.into_iter().max_by_key(|(_, (with, _))| *with);
    most.filter(|(_, (with, _))| *with as f64 >= RECURSING * all.max(1) as f64)
        .map_or_else(String::new, |(function, (_, depth))| {
            format!("; {function} calls itself, at least {depth} deep (recursion)")
        })
}

/// The least part of samples in or below what one function of a library calls back.
const CALLED_BACK: f64 = 0.5;

/// Returns the function of a library that calls most of what runs back: a comparison is part of sorting,
/// and a constructor of a vector that grows.
pub(crate) fn called_back(facts: &Facts, sentence: &str) -> String {
    let samples = facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks);
    let mut callers: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in stacks {
        if let Some(caller) = calling_back(&stack.user) {
            *callers.entry(caller).or_default() += stack.samples;
        }
    }
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let part = |samples: u64| samples as f64 / all.max(1) as f64;
    let most = callers.into_iter().max_by_key(|(_, samples)| *samples);
    most.filter(|(caller, samples)| part(*samples) >= CALLED_BACK && !sentence.contains(caller))
        .map_or_else(String::new, |(caller, samples)| {
            format!(
                "; {} of what runs is called back by {caller}",
                percent(part(samples))
            )
        })
}

/// The least part of samples in user mode of the loop that most are in.
const IN_LOOP: f64 = 0.5;
/// A line of the cache (bytes).
const LINE: u64 = 64;

/// Returns how the loop goes through memory that most of a program's own work is in.
pub(crate) fn walking(facts: &Facts) -> String {
    let Some(samples) = &facts.samples else {
        return String::new();
    };
    let in_user_mode = samples.stacks.iter().filter(|one| one.kernel.is_empty());
    let all: u64 = in_user_mode.map(|stack| stack.samples).sum();
    let Some(hot) = &samples.hot_loop else {
        return String::new();
    };
    let part = hot.samples as f64 / all.max(1) as f64;
    let how = match hot.walk {
        Walk::Pointers => {
            "follows pointers, each to the next one (a linked list, a chain or a tree)".to_owned()
        }
        Walk::Steps(bytes) if bytes < LINE => {
            format!("goes through memory in steps of {bytes} bytes (an array, linearly)")
        }
        Walk::Steps(bytes) => {
            format!("goes through memory in steps of {bytes} bytes, each to another cache line")
        }
        Walk::Rows => {
            "goes through memory in steps of a distance in a register (a stride: a row or a column)"
                .to_owned()
        }
        Walk::Other => return String::new(),
    };
    if part < IN_LOOP {
        return String::new();
    }
    format!(
        "; {} of that in a loop of {} instructions that {how}",
        percent(part),
        hot.instructions
    )
}

/// How the function of Node is called in which callbacks of `process.nextTick` and of promises run
/// (lib/internal/process/task_queues.js), and the least part of looks there.
const TICKS: &str = "processTicksAndRejections";
const OF_TICKS: f64 = 0.8;
/// The most of the time that a loop of events waits which stands still.
const HARDLY: f64 = 0.02;

/// Returns that Node's loop of events does not go on, because callbacks follow one another.
pub(crate) fn standing_still(facts: &Facts) -> String {
    let of_node = facts
        .scripts
        .iter()
        .filter(|stack| stack.program == "JavaScript");
    let all: u64 = of_node.clone().map(|stack| stack.samples).sum();
    let is_tick = |stack: &&Stack| stack.user.iter().any(|function| function.contains(TICKS));
    let ticks: u64 = of_node.filter(is_tick).map(|stack| stack.samples).sum();
    let of_root = |wait: &&Wait| wait.threads.contains(&facts.root) && POLLS.contains(&&*wait.call);
    let waited: f64 = facts
        .waits
        .iter()
        .filter(of_root)
        .map(|wait| wait.seconds)
        .sum();
    if all == 0 || (ticks as f64) < OF_TICKS * all as f64 || waited > HARDLY * facts.seconds {
        return String::new();
    }
    "; its loop of events does not go on meanwhile: all of this is in callbacks of process.nextTick or of \
     promises (microtasks)"
        .into()
}

/// Returns that a loop of events asks again and again and never waits.
pub(crate) fn asking(facts: &Facts, sentence: &str) -> String {
    let view = View::new(facts);
    let asks = |stack: &Stack| stack.call().is_some_and(|call| POLLS.contains(&call));
    let share = view.running_in(asks);
    let of_kernel = share / view.budget.system.max(f64::MIN_POSITIVE);
    let options = Calls::of(&view, |call| POLLS.contains(&call)).options();
    let is_at_once = options.is_some_and(|options| options.contains("timeout of 0"));
    if share < ASKING || of_kernel < MOSTLY_ASKING || !is_at_once || sentence.contains("busy loop")
    {
        return String::new();
    }
    "; its loop of events polls with a timeout of 0 at each turn and never waits: something is ready at \
     once each time"
        .into()
}

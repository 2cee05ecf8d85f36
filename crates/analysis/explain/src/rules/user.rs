//! Rules of the program's own work.

use std::collections::BTreeMap;

use crate::budget::View;
use crate::callers::{Hot, is_nameless, is_own, is_start, own_path};
use crate::facts::{Stack, Thread, Wait};
use crate::finding::{Finding, percent};
use crate::interpreted::in_interpreter;
use crate::meanings::{MEANINGS, Meaning};
use crate::parts::PARTS;
use crate::runtimes::{is_collector, is_jvm_collector};

/// The least share of the time in user mode, and its part of the time on processors (reference:
/// 70 %).
const USER: f64 = 0.4;
const OF_RUNNING: f64 = 0.7;
/// The least share of a function in it.
const FUNCTION: f64 = 0.5;
/// The share that two functions together have at least, whatever their samples scatter.
const SEVERAL: f64 = 0.55;
/// The part of one function's share from which on a meaning comes before it.
const MEANT: f64 = 0.75;
/// Mapped files of one kind from which on they are named.
const MAPPED: usize = 100;
/// The share of collecting garbage that comes before work which is spread.
const COLLECTED: f64 = 0.35;
/// The least share of collecting garbage in the time on processors.
const GARBAGE: f64 = 0.25;

/// Whether the program's own work is most of what it does.
fn is_in_user_mode(view: &View) -> bool {
    view.budget.user >= USER && view.budget.user >= OF_RUNNING * view.budget.running()
}

/// Samples of the program's own work.
fn in_user_mode<'v>(view: &'v View) -> impl Iterator<Item = &'v Stack> + Clone {
    let samples = view.facts.samples.as_ref();
    samples
        .map_or(&[][..], |samples| &samples.stacks)
        .iter()
        .filter(|stack| stack.kernel.is_empty() && !stack.user.is_empty())
}

/// What most of the program's own work is in, with its samples, as the end of a sentence.
fn hottest(view: &View) -> Option<(String, u64, u64)> {
    let hot = Hot::of(in_user_mode(view));
    let own = hot.own_path();
    let entry = hot.entry();
    let deepest = hot.deepest(|_| true);
    // `the innermost for the one that the program calls`.
    let within = |entry: &str| match deepest {
        Some(deepest) => format!("{deepest} for {entry}"),
        None => entry.to_owned(),
    };
    let called_in = |what: String, count: u64| {
        let from = own.as_ref().map(|(own, _)| format!(", called in {own}"));
        (format!("{what}{}", from.unwrap_or_default()), count)
    };
    let (what, count) = match (hot.leaf(), entry) {
        (Some((leaf, count)), _) if is_own(leaf) => match &own {
            Some((path, _)) if path.starts_with(leaf) => (path.clone(), count),
            _ => (leaf.to_owned(), count),
        },
        // The nearest function with a name says more than an address.
        (Some((leaf, count)), Some(entry)) if is_nameless(leaf) => {
            called_in(format!("{entry}, there in {leaf}"), count)
        }
        (Some((leaf, count)), Some(entry)) if entry != leaf => {
            called_in(format!("{leaf} for {}", within(entry)), count)
        }
        (Some((leaf, count)), None) if is_nameless(leaf) && own.is_some() => {
            let (own, _) = own.clone()?;
            (format!("{own}, there in {leaf}"), count)
        }
        (Some((leaf, count)), _) => called_in(leaf.to_owned(), count),
        // The work is spread over what a function calls of libraries. One that calls functions of
        // the program, as main does, says nothing.
        (None, entry) => {
            let spread = hot.one_path().filter(|(path, _)| !is_start(path));
            match (spread, entry) {
                (Some((path, count)), Some(entry)) => {
                    let second = hot.second_entry();
                    (format!("{path}, there in {}{second}", within(entry)), count)
                }
                (Some((path, count)), None) => (
                    format!("{path} and what it calls{}", hot.parts_below()),
                    count,
                ),
                (None, Some(entry)) => (format!("{entry} and what it calls"), hot.entry_samples()),
                (None, None) => return None,
            }
        }
    };
    Some((what, count, hot.all()))
}

/// Returns two functions in which most of the program's own work and half of its time is together.
fn several(view: &View) -> Option<(String, u64, u64)> {
    let is_collector = garbage(view).is_some() || meaning(view).is_some();
    let hot = Hot::of(in_user_mode(view));
    let (path, count) = hot.innermost_path().filter(|(path, _)| !is_start(path))?;
    // The two largest of five that are equal have six of ten samples now and then, if these are few.
    let scatter = stats::share_interval(count as usize, hot.all() as usize, 0.95)?;
    let share = view.budget.user * count as f64 / hot.all().max(1) as f64;
    let is_most = scatter.min >= SEVERAL && share >= FUNCTION;
    (!is_collector && is_most).then(|| (path, count, hot.all()))
}

/// Returns the functions with most of the program's own work, with their parts.
pub(super) fn largest(view: &View) -> String {
    Hot::of(in_user_mode(view)).largest()
}

pub(super) fn one_function(view: &View) -> Option<Finding> {
    if !is_in_user_mode(view) {
        return None;
    }
    let (what, count, all) = match hottest(view) {
        Some(hottest) => hottest,
        None => match spread_over_interpreter(view) {
            Some(spread) => return Some(spread),
            None => several(view)?,
        },
    };
    let share = view.budget.user * count as f64 / all.max(1) as f64;
    // What a function means says more than where it is, but allocating is a part of much.
    let known = meaning(view).filter(|known| !known.cause.contains("allocates memory"));
    if known.is_some_and(|known| known.share >= MEANT * share) {
        return None;
    }
    let is_compiled = what.starts_with("(anonymous memory)");
    let what = what.replace(
        "(anonymous memory)",
        "code that its runtime compiled, without a name",
    );
    // Their mappings are gone before they are read.
    let what = what.replace(
        "(unknown)",
        "processes that live for a moment each, so that their functions have no names",
    );
    let mapped = view.facts.settings.mapped.as_ref();
    // Where functions have no names, what they work on says more.
    let mapped = mapped.filter(|(_, count)| *count >= MAPPED && what.contains("+0x"));
    let files = mapped.map_or_else(String::new, |(ending, count)| {
        format!("; it has {count} files .{ending} mapped")
    });
    let finding = Finding::new(
        format!("it computes, and most of that in {what}{files}"),
        share,
    );
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

/// Work of a script that is spread over its interpreter: the function of the script, which is added to
/// the sentence, is where it is.
fn spread_over_interpreter(view: &View) -> Option<Finding> {
    let facts = view.facts;
    // What a function means says more, and so does a collector with much of it.
    let is_garbage = garbage(view).is_some_and(|found| found.share >= COLLECTED);
    if meaning(view).is_some() || is_garbage {
        return None;
    }
    let has_script = !crate::answer::in_script(facts).is_empty();
    let is_told = has_script || !in_interpreter(facts, "").is_empty();
    is_told.then(|| {
        let named = match &*largest(view) {
            "" => String::new(),
            named => format!(" ({named})"),
        };
        let spread = format!("it computes, spread over many functions{named}");
        let finding = Finding::new(spread, view.budget.user);
        // Operations of an interpreter say what it does, and not which part of the script.
        let finding = if has_script { finding } else { finding.doubt() };
        finding
            .with(
                format!("{} in user mode", percent(view.budget.user)),
                "/proc/TID/stat",
                "70 %",
                "the kernel, waiting",
            )
            .advise("Look at this function of the script.")
            .look("py-spy top --pid PID, perl -d:NYTProf")
    })
}

/// Returns the own functions in which most of the work is, as the end of a sentence.
fn own_work(view: &View, without: &str) -> Option<String> {
    let (own, _) = Hot::of(in_user_mode(view)).own_path()?;
    let is_said = without.split('|').any(|one| own.contains(one));
    (!is_start(&own) && !is_said).then_some(own)
}

/// Whether a function is of an interpreter, which a script does not call by that name.
fn is_interpreter(function: &str) -> bool {
    ["Perl_", "perl_", "S_", "_PyEval_", "PyEval_"]
        .iter()
        .any(|begin| function.starts_with(begin))
}

/// Returns the own functions that most often call those with a meaning: what these call back, as a
/// comparison, is not it.
fn asker(view: &View, meant: &str) -> Option<String> {
    let is_meant = |function: &String| meant.split('|').any(|one| function.contains(one));
    let mut askers: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0;
    for stack in in_user_mode(view) {
        let Some(at) = stack.user.iter().rposition(is_meant) else {
            continue;
        };
        all += stack.samples;
        let path = own_path(&stack.user[at + 1..]);
        if let Some(path) = path.filter(|path| !is_start(path) && !is_interpreter(path)) {
            *askers.entry(path).or_default() += stack.samples;
        }
    }
    let most = askers.into_iter().max_by_key(|(_, samples)| *samples);
    most.filter(|(_, samples)| 2 * samples >= all)
        .map(|(path, _)| path)
}

/// Returns what most stacks are for, by functions of libraries and runtimes, with the part of these.
fn meant<'v>(stacks: impl Iterator<Item = &'v Stack> + Clone) -> Option<(&'static Meaning, f64)> {
    let all: u64 = stacks.clone().map(|stack| stack.samples).sum();
    MEANINGS
        .iter()
        .map(|meaning| (meaning, part_with(stacks.clone(), meaning.function, all)))
        .find(|(_, share)| *share >= FUNCTION)
}

/// The least part of what runs that is worth a word beside a cause, how many are, and the least part of
/// the time that the program runs.
const BESIDE: f64 = 0.25;
const RUNNING: f64 = 0.1;
const NAMED: usize = 2;

/// Returns what much of what runs is for, in user mode and in the kernel, by functions of libraries and
/// runtimes, as the end of a sentence; empty if none says it, or the sentence has it.
pub(crate) fn parts_of_work(view: &View, sentence: &str) -> String {
    let samples = view.facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks);
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    // The start of a program that waits says nothing.
    if view.budget.running() < RUNNING {
        return String::new();
    }
    let meanings = MEANINGS
        .iter()
        .map(|meaning| (meaning.function, meaning.cause));
    // Several tables have the same words.
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for (function, does) in meanings.chain(PARTS.iter().copied()) {
        let part = part_with(stacks.iter(), function, all);
        let most = parts.entry(does).or_default();
        *most = most.max(part);
    }
    parts.retain(|does, part| *part >= BESIDE && !sentence.contains(does));
    let mut parts: Vec<(&str, f64)> = parts.into_iter().collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named = parts.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|(does, part)| format!("; {} of what runs is where {does}", percent(*part)))
        .collect();
    named.concat()
}

/// Returns the part of samples whose stacks have one of some functions.
fn part_with<'v>(stacks: impl Iterator<Item = &'v Stack>, functions: &str, all: u64) -> f64 {
    let is_one = |name: &String| functions.split('|').any(|one| name.contains(one));
    let with = stacks.filter(|stack| stack.user.iter().any(is_one));
    with.map(|stack| stack.samples).sum::<u64>() as f64 / all.max(1) as f64
}

/// Functions of libraries and runtimes that say what the time is for.
pub(super) fn meaning(view: &View) -> Option<Finding> {
    let found = meant(in_user_mode(view)).filter(|_| is_in_user_mode(view));
    let (meaning, share) = found?;
    let from = asker(view, meaning.function)
        .or_else(|| own_work(view, meaning.function))
        .map(|own| format!(", called in {own}"))
        .unwrap_or_default();
    Some(
        Finding::new(format!("{}{from}", meaning.cause), share * view.budget.user)
            .with(
                format!(
                    "{} of its samples in {}",
                    percent(share),
                    meaning.function.replace('|', ", ")
                ),
                "cpu-clock",
                "50 %",
                "the kernel, waiting",
            )
            .advise(meaning.advice)
            .look("perf record -g -p PID"),
    )
}

/// Whether a thread of Java waits until the VM thread has done something, such as a collection.
pub(super) fn waits_for_collector(wait: &Wait) -> bool {
    let names = [
        "VMThread::execute",
        "VMThread::wait_until_executed",
        "SafepointSynchronize::block",
    ];
    wait.stack
        .iter()
        .any(|function| names.iter().any(|name| function.contains(name)))
}

/// Settings of heaps, and how a value is recognised that limits one.
const HEAP_LIMITS: [(&str, &str); 4] = [
    ("GOMEMLIMIT", ""),
    ("GOGC", ""),
    ("NODE_OPTIONS", "space-size"),
    ("JAVA_TOOL_OPTIONS", "-Xmx"),
];

/// Returns the limit of the heap that the environment sets, as the end of a sentence.
fn heap_limit(view: &View) -> String {
    let environment = &view.facts.settings.environment;
    let mut set = HEAP_LIMITS.iter().filter_map(|(name, part)| {
        let value = environment.get(*name)?;
        value.contains(part).then_some((name, value))
    });
    set.next().map_or_else(String::new, |(name, value)| {
        format!("; its heap limit is {name}={value}")
    })
}

/// Functions with which the JVM reads stacks of threads for who asks (src/hotspot/share/services,
/// runtime/vmOperations.cpp, prims/jvmtiEnvBase.cpp). `Thread.print` has another one.
const DUMPS: [&str; 6] = [
    "VM_ThreadDump",
    "ThreadSnapshot::",
    "ThreadStackTrace::",
    "ThreadDumpResult",
    "VM_FindDeadlocks",
    "VM_GetAllStackTraces",
];
/// Their least part of samples.
const DUMPING: f64 = 0.1;

/// Stacks of all threads that are asked for again and again.
pub(super) fn stack_dumps(view: &View) -> Option<Finding> {
    let is_dump = |function: &String| DUMPS.iter().any(|part| function.contains(part));
    let running = view.running_in(|stack| stack.user.iter().any(is_dump));
    let part = running / view.budget.running().max(f64::MIN_POSITIVE);
    let waiting = view.blocked_in(waits_for_collector);
    (part >= DUMPING).then(|| {
        Finding::new(
            "it asks for the stacks of its threads again and again (a thread dump: ThreadMXBean.getThreadInfo, \
             Thread.getAllStackTraces), for which the JVM stops all of them each time (a safepoint)"
                .into(),
            (view.budget.running() + waiting).min(1.0),
        )
        .with(
            format!("{} of its samples in functions that do", percent(part)),
            "cpu-clock",
            "10 %",
            "the collector of garbage",
        )
        .advise("Ask less often, of fewer threads, or for fewer frames (maxDepth).")
        .look("the JVM's log of safepoints: -Xlog:safepoint")
    })
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
    // That thread does other things for which it stops all others.
    if stack_dumps(view).is_some() {
        return None;
    }
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
    // Who allocates waits until the collector is done.
    let waiting = view.blocked_in(waits_for_collector);
    let is_much = share >= GARBAGE
        || share >= GARBAGE / 2.0 && share * view.budget.running() + waiting >= GARBAGE;
    is_much.then(|| {
        let assists = if of(assisting) >= 0.1 {
            "; its goroutines do part of that when they allocate (gcAssistAlloc)"
        } else {
            ""
        };
        let limit = heap_limit(view);
        Finding::new(
            format!("garbage collection has {} of its time on processors{assists}{limit}", percent(share)),
            share * view.budget.running() + waiting,
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
    let all: u64 = in_user_mode(view).map(|stack| stack.samples).sum();
    let lock_of = |stack: &'_ Stack| {
        let mut innermost = stack.user.iter().take(2);
        innermost
            .find(|function| LOCKING.iter().any(|part| function.contains(part)))
            .map(|function| function.split(" (").next().unwrap_or(function).to_owned())
    };
    let mut locks: BTreeMap<String, u64> = BTreeMap::new();
    for stack in in_user_mode(view) {
        if let Some(lock) = lock_of(stack) {
            *locks.entry(lock).or_default() += stack.samples;
        }
    }
    let with: u64 = locks.values().sum();
    let share = with as f64 / all.max(1) as f64;
    let (lock, _) = locks.into_iter().max_by_key(|(_, samples)| *samples)?;
    (several && share >= 0.4).then(|| {
        let takers = Hot::of(in_user_mode(view).filter(|stack| lock_of(stack).is_some()));
        let own = takers.own_path().map(|(own, _)| own);
        let own = own.filter(|own| !is_start(own) && !own.contains(&lock));
        // What takes the lock waits for its line, too, when it comes back.
        let taker = own.as_ref().and_then(|own| own.split(" (").next());
        let around = in_user_mode(view).filter(|stack| {
            let is_taker = |function: &String| Some(function.as_str()) == taker;
            lock_of(stack).is_some() || stack.user.iter().any(is_taker)
        });
        let around: u64 = around.map(|stack| stack.samples).sum();
        // The library's function that takes it says whose lock it is: `math/rand.Intn`.
        let is_no_lock = |entry: &str| !LOCKING.iter().any(|part| entry.contains(part));
        let entry = takers.entry().filter(|entry| is_no_lock(entry));
        let of = entry.map(|entry| match takers.deepest(is_no_lock) {
            Some(deepest) => format!("{deepest} of {entry}"),
            None => entry.to_owned(),
        });
        let of = of.map_or_else(String::new, |entry| format!(" in {entry} for"));
        let from = match (own, &*of) {
            (Some(own), "") => format!(" in {own}"),
            (Some(own), of) => format!("{of} {own}"),
            (None, of) => of.trim_end_matches(" for").to_owned(),
        };
        Finding::new(
            format!("its threads take and give back one lock ({lock}) so often that this is the work{from}: its line of memory moves between processors"),
            view.budget.user * around as f64 / all.max(1) as f64,
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

/// The least part of samples behind atomic instructions.
const ATOMIC: f64 = 0.4;

/// Threads whose atomic instructions are the work: they wait for the line of memory.
pub(super) fn shared_line(view: &View) -> Option<Finding> {
    let runs =
        |thread: &&&Thread| thread.running_s() > 0.2 * (thread.running_s() + thread.waiting_s);
    let running = view
        .active
        .iter()
        .filter(runs)
        .filter(|thread| thread.running_s() > 0.1);
    let several = running.count() > 1 && view.facts.host.processors > 1;
    let samples = view.facts.samples.as_ref()?;
    let all: u64 = in_user_mode(view).map(|stack| stack.samples).sum();
    let behind: u64 = samples.atomics.iter().map(|code| code.samples).sum();
    let part = behind as f64 / all.max(1) as f64;
    if !several || part < ATOMIC || !is_in_user_mode(view) {
        return None;
    }
    let is_atomic = |stack: &&Stack| {
        let leaf = stack.user.first();
        samples
            .atomics
            .iter()
            .any(|code| Some(&code.function) == leaf)
    };
    let hot = Hot::of(in_user_mode(view).filter(is_atomic));
    let own = hot
        .own_path()
        .map(|(path, _)| path)
        .or_else(|| hot.first())?;
    let share = view.budget.user * hot.all() as f64 / all.max(1) as f64;
    Some(
        Finding::new(
            format!(
                "its threads mostly execute atomic instructions in {own}; where these are on the same cache line (a lock, a counter, or false sharing), it moves between processors"
            ),
            share,
        )
        .doubt()
        .with(
            format!("{} of its samples right behind atomic instructions", percent(part)),
            "cpu-clock",
            "40 %",
            "other work",
        )
        .advise("Give each thread a counter or a record of its own, on a cache line of its own.")
        .look("perf c2c record -p PID"),
    )
}

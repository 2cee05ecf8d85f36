//! Which functions of stacks say something to who wrote the program: its own, not those of the C
//! library, of a runtime or of an interpreter, and of those the innermost with their callers.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Stack;
use crate::finding::percent;
use crate::runtimes::KNOWN;

/// The part of samples that makes a function the one of most of them.
const MOST: f64 = 0.5;
/// The part that makes two functions those of most of them.
const BOTH: f64 = 0.6;
/// The least part of samples of a function that is named beside another one.
const SECOND: f64 = 0.15;
/// The same of a second function of a library.
const BESIDE: f64 = 0.2;
/// Functions of a path that are named.
const NAMED: usize = 3;

/// The folders of Go's standard library (src): no function of C begins with one and a dot.
const GO_FOLDERS: [&str; 44] = [
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
];
const MORE_GO_FOLDERS: [&str; 4] = ["unicode", "unique", "vendor", "weak"];
/// What compilers of C append to names behind a dot.
const SUFFIXES: [&str; 6] = ["constprop", "isra", "part", "cold", "lto_priv", "llvm"];
/// How `observe` writes the statement that a database executes.
const STATEMENT: &str = "SQL: ";
/// How functions of runtimes begin: of Node, V8 and libuv, of CPython, of Rust, of C++ and of the
/// JVM.
const RUNTIMES: [&str; 37] = [
    STATEMENT,
    "Python's ",
    "Perl's ",
    "Node's ",
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "com.sun.",
    "node::",
    "v8::",
    "uv_",
    "uv__",
    "Builtins_",
    "_PyEval",
    "_PyFunction",
    "_PyObject",
    "_PyVectorcall",
    "Py_",
    "PyObject_",
    "PyEval_",
    "PyThread_",
    "cfunction_",
    "method_vectorcall",
    "std::",
    "core::",
    "alloc::",
    "hashbrown::",
    "tokio::",
    "mio::",
    "__rust",
    "__gnu_cxx",
    "__gthread",
    "operator ",
    "JavaMain",
    "ThreadJavaMain",
    "StubRoutines",
];

/// What the JVM calls code of its own among that of compiled functions (src/hotspot/share/code,
/// interpreter).
const OF_JVM: [&str; 4] = [
    "Interpreter",
    "I2C/C2I adapters",
    "vtable stub",
    "itable stub",
];

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

/// Whether a function belongs to Go's standard library or its runtime.
fn is_of_go(function: &str) -> bool {
    let Some(end) = function.find(['.', '/']) else {
        return false;
    };
    let (folder, rest) = (&function[..end], &function[end + 1..]);
    (GO_FOLDERS.contains(&folder) || MORE_GO_FOLDERS.contains(&folder))
        && !SUFFIXES.iter().any(|suffix| rest.starts_with(suffix))
}

/// Whether a function belongs to a runtime that executes the program: it calls nothing of the
/// program's by name.
fn is_of_interpreter(function: &str) -> bool {
    function.rsplit_once('(').is_some_and(|(_, file)| {
        let runtimes = ["libjvm.so", "libjli.so", "libpython"];
        runtimes.iter().any(|runtime| file.starts_with(runtime))
    })
}

/// Whether a function has no name: only a file and an address, or not even a file.
pub(crate) fn is_nameless(function: &str) -> bool {
    function.contains("+0x")
        || function.starts_with(['(', '['])
        || function.starts_with("0x")
        || function.is_empty()
}

/// Whether a function has a name and is neither the C library's nor a runtime's.
pub(crate) fn is_own(function: &str) -> bool {
    !is_library(function)
        && !is_nameless(function)
        && !OF_JVM.contains(&function)
        && !is_of_go(function)
        && !is_of_interpreter(function)
        && !RUNTIMES
            .iter()
            .any(|begin| implementer(function).starts_with(begin))
}

/// Returns whose a method of Rust is: the type of `<std::fs::File as std::io::Write>::write`, and
/// the trait if that is any type, as of `<T as alloc::string::ToString>::to_string`.
fn implementer(function: &str) -> &str {
    let Some(inner) = function.strip_prefix('<') else {
        return function;
    };
    let plain = inner.trim_start_matches(['&', '[', '<', '*']);
    let plain = plain.trim_start_matches("mut ").trim_start_matches("dyn ");
    match plain.split_once(" as ") {
        Some((of, by)) if of.len() <= 2 => by,
        _ => plain,
    }
}

/// Returns the statement of a database on a stack.
pub(crate) fn statement(stack: &[String]) -> Option<&str> {
    let mut functions = stack.iter();
    functions.find_map(|function| function.strip_prefix(STATEMENT))
}

/// Whether a function executes whatever the script or the program says: it tells nothing.
fn is_loop(function: &str) -> bool {
    let loops = [
        "_PyEval_",
        "PyEval_EvalCode",
        "_PyFunction_Vectorcall",
        "_PyObject_",
        "PyObject_Call",
        "PyObject_Vectorcall",
        "_PyVectorcall",
        "method_vectorcall",
        "cfunction_",
        "Perl_runops",
        "perl_run",
        "Builtins_InterpreterEntry",
        "Builtins_JSEntry",
        "std::rt::",
        "std::panicking::",
        "std::panic::",
        "core::ops::function::",
        "std::sys::backtrace::",
        "std::thread::",
        "std::this_thread",
        "<std::thread::",
        "<std::sys::thread::",
        "<core::panic::",
        "<alloc::boxed::Box<F,A>",
    ];
    loops.iter().any(|begin| function.starts_with(begin))
}

/// Whether a function is the program itself: all that it does is below it.
pub(crate) fn is_start(function: &str) -> bool {
    let names = [
        "main",
        "_start",
        "start_thread",
        "clone",
        "main.main",
        "runtime.main",
        "threadentry",
    ];
    let begins = [
        "__libc_start",
        "<module> ",
        "runtime.goexit",
        "runtime.mcall",
    ];
    names.contains(&function) || begins.iter().any(|begin| function.starts_with(begin))
}

/// Of these, those that are no function of the program.
const STARTS: [&str; 4] = ["_start", "start_thread", "clone", "threadentry"];

/// Whether a function is a way of waiting that the kind of the wait says already.
fn is_way_of_waiting(function: &str) -> bool {
    KNOWN.iter().any(|known| function.contains(known.function))
}

/// Returns the innermost function of a stack that is the program's own; without one that of a
/// library or a runtime that is no way of waiting.
pub(crate) fn own_caller(stack: &[String]) -> Option<&str> {
    let wanted = |function: &&String| is_own(function) && !is_way_of_waiting(function);
    let own = stack.iter().find(|one| wanted(one) && !is_start(one));
    let own = own.or_else(|| stack.iter().find(|one| wanted(one) && *one != "_start"));
    let named = |function: &&String| {
        !is_library(function)
            && !is_of_interpreter(function)
            && !function.starts_with('(')
            && function.as_str() != "_start"
            && !is_way_of_waiting(function)
    };
    own.or_else(|| stack.iter().find(|one| named(one) && !is_nameless(one)))
        .or_else(|| stack.iter().find(named))
        .map(String::as_str)
}

/// Returns the function of a library or a runtime that the own caller of a stack calls, if it says
/// more than the system call.
pub(crate) fn entry<'s>(stack: &'s [String], call: &str) -> Option<&'s str> {
    let own = own_caller(stack)?;
    let at = stack.iter().position(|function| function == own)?;
    let entry = stack[..at]
        .iter()
        .rev()
        .find(|function| !is_nameless(function))?;
    let (name, _) = entry.split_once(" (").unwrap_or((entry, ""));
    let plain = name.trim_start_matches('_').trim_end_matches("64");
    let is_wrapper =
        call.contains(plain) || !call.is_empty() && name.contains(call.trim_end_matches("64"));
    let is_internal = is_library(entry) || is_of_interpreter(entry);
    (!is_wrapper && !is_internal && !is_way_of_waiting(entry)).then_some(entry)
}

/// Returns the own caller of a stack with those that call it: `flush (called by insert, work)`.
pub(crate) fn own_path(stack: &[String]) -> Option<String> {
    let first = own_caller(stack)?;
    let above = stack.iter().skip_while(|function| *function != first);
    let mut callers: Vec<&str> = Vec::new();
    for function in above.skip(1).map(String::as_str) {
        let is_new = function != first && !callers.contains(&function);
        if is_new && is_own(function) && !is_start(function) && !is_way_of_waiting(function) {
            callers.push(function);
        }
    }
    // The program's own functions before those of libraries.
    let of_program: Vec<&str> = callers
        .iter()
        .copied()
        .filter(|one| !one.contains(" ("))
        .collect();
    let callers = if of_program.is_empty() {
        callers
    } else {
        of_program
    };
    Some(called_by(first, &callers))
}

/// Returns the function of a library that calls an own one back for another own one: `qsort` of
/// `compare`, `qsort`, `load`.
pub(crate) fn calling_back(stack: &[String]) -> Option<&str> {
    let is_plain = |one: &str| is_own(one) && !is_start(one);
    let own = stack.iter().position(|one| is_plain(one))?;
    let above = &stack[own + 1..];
    let asker = above.iter().position(|one| is_plain(one))?;
    let mut between = above[..asker].iter().rev().map(String::as_str);
    between.find(|one| !is_nameless(one) && !is_loop(one))
}

fn called_by(function: &str, callers: &[&str]) -> String {
    let callers: Vec<&str> = callers.iter().copied().take(NAMED - 1).collect();
    if callers.is_empty() {
        return function.to_owned();
    }
    format!("{function} (called by {})", callers.join(", "))
}

/// Where samples are, in and below a function.
#[derive(Debug, Default, Clone, Copy)]
struct Below {
    /// Samples with the function on their stack.
    with: u64,
    /// The sum of the functions between it and where the sample is.
    distance: u64,
}

/// Where samples of stacks in user mode are.
#[derive(Debug, Default)]
pub(crate) struct Hot<'s> {
    all: u64,
    /// The innermost functions, most samples first.
    leaves: Vec<(&'s str, u64)>,
    /// Named functions that the innermost own ones call.
    entries: Vec<(&'s str, u64)>,
    /// The innermost own functions.
    innermost: Vec<(&'s str, u64)>,
    /// All own functions.
    own: BTreeMap<&'s str, Below>,
    /// All functions of libraries and runtimes that have names.
    foreign: BTreeMap<&'s str, Below>,
}

fn sorted(counts: BTreeMap<&str, u64>) -> Vec<(&str, u64)> {
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

impl Below {
    /// Returns how far below it the samples are on average.
    fn mean(&self) -> f64 {
        self.distance as f64 / self.with.max(1) as f64
    }
}

impl<'s> Hot<'s> {
    /// Counts the functions of stacks.
    pub(crate) fn of(stacks: impl Iterator<Item = &'s Stack>) -> Self {
        let mut hot = Self::default();
        let [mut leaves, mut entries, mut innermost] = [(); 3].map(|()| BTreeMap::new());
        for stack in stacks.filter(|stack| !stack.user.is_empty()) {
            hot.all += stack.samples;
            *leaves.entry(stack.user[0].as_str()).or_default() += stack.samples;
            // The program itself before a library of its own.
            let of_program = |one: &String| is_own(one) && !one.contains(" (") && !is_start(one);
            let at = stack.user.iter().position(of_program);
            let is_any = |one: &String| is_own(one) && !STARTS.contains(&one.as_str());
            let at = at.or_else(|| stack.user.iter().position(is_any));
            if let Some(at) = at {
                *innermost.entry(stack.user[at].as_str()).or_default() += stack.samples;
                let before = stack.user[..at].iter().rev();
                if let Some(entry) = before.clone().find(|one| !is_nameless(one)) {
                    *entries.entry(entry.as_str()).or_default() += stack.samples;
                }
            } else if let Some(entry) = stack.user.iter().find(|one| is_entry(one)) {
                *entries.entry(entry.as_str()).or_default() += stack.samples;
            }
            let mut seen = BTreeSet::new();
            for (distance, function) in stack.user.iter().enumerate() {
                if !seen.insert(function) {
                    continue;
                }
                let functions = if is_own(function) {
                    &mut hot.own
                } else if is_entry(function) {
                    &mut hot.foreign
                } else {
                    continue;
                };
                let below = functions.entry(function).or_default();
                below.with += stack.samples;
                below.distance += distance as u64 * stack.samples;
            }
        }
        hot.leaves = sorted(leaves);
        hot.entries = sorted(entries);
        hot.innermost = sorted(innermost);
        hot
    }

    fn part(&self, samples: u64) -> f64 {
        samples as f64 / self.all.max(1) as f64
    }

    /// Returns the functions of a list that have most of the samples: one, or two together.
    fn most(&self, of: &[(&'s str, u64)]) -> Option<(String, u64)> {
        let (first, samples) = *of.first()?;
        match of.get(1) {
            _ if self.part(samples) >= 1.5 * MOST => Some((first.to_owned(), samples)),
            Some((second, more)) if self.part(*more) >= SECOND => {
                let both = samples + more;
                (self.part(both) >= BOTH).then(|| (format!("{first} and {second}"), both))
            }
            _ => (self.part(samples) >= MOST).then(|| (first.to_owned(), samples)),
        }
    }

    /// Returns the innermost function, if one has most of the samples.
    pub(crate) fn leaf(&self) -> Option<(&'s str, u64)> {
        let leaf = self.leaves.first().copied();
        leaf.filter(|(_, samples)| self.part(*samples) >= MOST)
    }

    /// Returns how many samples there are.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// Returns own functions on most of the stacks, innermost first, without the program's start
    /// and without some names.
    fn callers(&self, without: &str) -> Vec<&'s str> {
        let mean = Below::mean;
        // What these call is no caller of them.
        let nearest = without.split(" and ").filter_map(|one| self.own.get(one));
        let nearest = nearest.map(mean).fold(f64::INFINITY, f64::min);
        let is_above = |below: &Below| nearest.is_infinite() || mean(below) > nearest;
        let mut callers: Vec<(&str, &Below)> = self
            .own
            .iter()
            .filter(|(name, below)| self.part(below.with) >= MOST && !is_start(name))
            .filter(|(_, below)| is_above(below))
            .filter(|(name, _)| !without.split(" and ").any(|one| one == **name))
            .map(|(name, below)| (*name, below))
            .collect();
        callers.sort_by(|(_, one), (_, other)| mean(one).total_cmp(&mean(other)));
        callers.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the own functions in which most of the samples are, with their callers; if these are
    /// spread over several, the nearest one that calls them.
    pub(crate) fn own_path(&self) -> Option<(String, u64)> {
        self.innermost_path().or_else(|| {
            let callers = self.callers("");
            let first = callers.first()?;
            let samples = self.own.get(first)?.with;
            Some((called_by(first, &callers[1..]), samples))
        })
    }

    /// Returns the own function in which most of the samples are, and no further own ones, with its
    /// callers.
    pub(crate) fn one_path(&self) -> Option<(String, u64)> {
        let (function, samples) = *self.innermost.first()?;
        let is_most = self.part(samples) >= MOST;
        is_most.then(|| (called_by(function, &self.callers(function)), samples))
    }

    /// Returns the same of one or two functions.
    pub(crate) fn innermost_path(&self) -> Option<(String, u64)> {
        let (function, samples) = self.most(&self.innermost)?;
        Some((called_by(&function, &self.callers(&function)), samples))
    }

    /// Returns the function that is called most often of those that have a name, whatever its part.
    pub(crate) fn first(&self) -> Option<String> {
        let lists = [&self.innermost, &self.entries, &self.leaves];
        let all = lists.into_iter().filter_map(|list| list.first());
        let says = |name: &str| !is_nameless(name) && !is_start(name) && name != "_start";
        let named = all.clone().find(|(name, _)| says(name));
        let found = named.or_else(|| all.clone().find(|(name, _)| !is_start(name)))?;
        (found.0 != "(unknown)").then(|| found.0.to_owned())
    }

    /// Returns the function of a library that the program's own ones call, if most samples are in
    /// one.
    pub(crate) fn entry(&self) -> Option<&'s str> {
        let (entry, samples) = *self.entries.first()?;
        (self.part(samples) >= MOST).then_some(entry)
    }

    /// Returns the innermost function of a library in or below which most samples are, if it is not
    /// the one that the program's own ones call: `re._compile` of `re.match`.
    pub(crate) fn deepest(&self, is_wanted: impl Fn(&str) -> bool) -> Option<&'s str> {
        let own = self
            .innermost
            .first()
            .and_then(|(one, _)| self.own.get(one));
        let entry = self.entry().and_then(|entry| self.foreign.get(entry));
        let means = own.into_iter().chain(entry).map(Below::mean);
        let nearest = means.fold(f64::INFINITY, f64::min);
        let (deepest, _) = self
            .foreign
            .iter()
            .filter(|(name, below)| {
                self.part(below.with) >= MOST && !is_loop(name) && is_wanted(name)
            })
            .filter(|(_, below)| below.mean() < nearest)
            .min_by(|one, other| one.1.mean().total_cmp(&other.1.mean()))?;
        let is_said =
            self.entry() == Some(deepest) || self.leaf().map(|leaf| leaf.0) == Some(deepest);
        (!is_said).then_some(deepest)
    }

    /// Returns the functions of a library that the program's own ones call, if most samples are in
    /// one or two of them.
    pub(crate) fn entries(&self) -> Option<String> {
        let (entries, _) = self.most(&self.entries)?;
        let named: Vec<&str> = entries.split(" and ").collect();
        // Two wrappers of the C library are two calls.
        let is_said = |one: &&str| !is_nameless(one) && !is_loop(one);
        let is_plain = named.len() > 1 && named.iter().any(|one| is_library(one));
        (named.iter().all(is_said) && !is_plain).then_some(entries)
    }

    /// Returns the functions that the own ones call most often, with their parts, in brackets; empty
    /// if none has much.
    pub(crate) fn parts_below(&self) -> String {
        let much = self.entries.iter().filter(|(name, samples)| {
            self.part(*samples) >= SECOND && !is_nameless(name) && !is_loop(name)
        });
        let named: Vec<String> = much
            .take(NAMED)
            .map(|(name, samples)| format!("{name} {}", percent(self.part(*samples))))
            .collect();
        if named.is_empty() {
            return String::new();
        }
        format!(" ({})", named.join(", "))
    }

    /// Returns the second function of a library that the program's own ones call, with its part, as the
    /// end of a sentence; empty if it has little.
    pub(crate) fn second_entry(&self) -> String {
        let second = self.entries.get(1);
        let much = second.filter(|(name, samples)| {
            self.part(*samples) >= BESIDE && !is_nameless(name) && !is_loop(name)
        });
        much.map_or_else(String::new, |(name, samples)| {
            format!(" and in {name} ({})", percent(self.part(*samples)))
        })
    }

    /// Returns the samples of that function.
    pub(crate) fn entry_samples(&self) -> u64 {
        self.entries.first().map_or(0, |(_, samples)| *samples)
    }

    /// Returns the functions with most samples, with their parts, as the end of a sentence.
    pub(crate) fn largest(&self) -> String {
        let mut largest: Vec<(&str, u64)> = Vec::new();
        let lists = [&self.innermost, &self.entries, &self.leaves];
        for (name, samples) in lists.into_iter().flat_map(|list| list.iter().take(NAMED)) {
            let is_known = largest.iter().any(|(known, _)| known == name);
            let says = !is_nameless(name) && !is_loop(name);
            if !is_known && says && self.part(*samples) >= 0.1 {
                largest.push((name, *samples));
            }
        }
        largest.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        let named = largest.iter().take(NAMED + 1);
        let named: Vec<String> = named
            .map(|(name, samples)| format!("{name} {}", percent(self.part(*samples))))
            .collect();
        named.join(", ")
    }
}

/// Whether a function of a runtime says what it does: it has a name, and is neither the C library's
/// nor the start of a thread or a program.
pub(crate) fn is_entry(function: &str) -> bool {
    !is_nameless(function)
        && !is_library(function)
        && !function.starts_with("_PyEval_EvalFrame")
        && !function.contains("start_main")
        && !function.starts_with("start_thread")
        && !function.starts_with("clone")
        && !is_start(function)
        && ![
            "Py_BytesMain",
            "pymain",
            "runtime.goexit",
            "runtime.mstart",
            "runtime.mcall",
        ]
        .iter()
        .any(|start| function.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str], samples: u64) -> Stack {
        Stack {
            user: functions.iter().map(|one| (*one).to_owned()).collect(),
            samples,
            ..Stack::default()
        }
    }

    fn path(functions: &[&str]) -> Option<String> {
        own_path(&stack(functions, 1).user)
    }

    #[test]
    fn standard_library_of_go_is_not_own() {
        let sync = [
            "internal/runtime/syscall/linux.Syscall6",
            "syscall.Fdatasync",
            "os.(*File).Sync",
            "main.(*node).save",
            "main.serve",
            "runtime.goexit",
        ];
        assert_eq!(
            path(&sync).as_deref(),
            Some("main.(*node).save (called by main.serve)")
        );
        assert!(is_own("github.com/x/y.Run") && !is_own("crypto/tls.(*Conn).Handshake"));
        // What a compiler of C leaves of a function `sort`.
        assert!(is_own("sort.constprop.0") && is_own("time_it"));
    }

    #[test]
    fn runtime_is_named_without_own_functions() {
        assert_eq!(
            path(&["read (libc.so.6)", "uv__fs_work"]).as_deref(),
            Some("uv__fs_work")
        );
        assert_eq!(path(&["read (libc.so.6)", "libc.so.6+0x12"]), None);
        assert_eq!(path(&["git+0x12", "main"]).as_deref(), Some("main"));
    }

    #[test]
    fn functions_of_runtimes_are_not_own() {
        assert!(!is_own("<std::fs::File as std::io::Write>::write"));
        assert!(!is_own("<T as alloc::string::ToString>::to_string"));
        assert!(!is_own(
            "<&mut alloc::vec::Vec<T> as core::fmt::Debug>::fmt"
        ));
        assert!(is_own("<shop::Cart as core::clone::Clone>::clone"));
        assert!(is_own("shop::Cart::add"));
        assert!(is_own("Interpreter::step") && !is_own("Interpreter"));
    }

    #[test]
    fn what_is_called_is_no_caller() {
        let throw = "_Unwind_RaiseException (libgcc_s.so.1)";
        let stacks = [stack(
            &["libc.so.6+0x8", throw, "parse", "read_all", "main"],
            90,
        )];
        let (own, _) = Hot::of(stacks.iter()).own_path().unwrap();
        assert_eq!(own, "parse (called by read_all)");
    }

    #[test]
    fn deepest_function_of_library_is_named() {
        let lock = "sync.(*Mutex).lockSlow";
        let source = "math/rand.(*lockedSource).Int63";
        let stacks = [
            stack(
                &[lock, source, "math/rand.Intn", "main.pick", "main.main"],
                40,
            ),
            stack(&[source, "math/rand.Intn", "main.pick", "main.main"], 30),
            stack(&["main.pick", "main.main"], 30),
        ];
        let hot = Hot::of(stacks.iter());
        assert_eq!(hot.entry(), Some("math/rand.Intn"));
        assert_eq!(hot.deepest(|_| true), Some(source));
        // So are those that call what the program calls.
        let stacks = [stack(&["libc.so.6+0x8", "PyEval_EvalCode", "run_mod"], 9)];
        assert_eq!(Hot::of(stacks.iter()).deepest(|_| true), None);
        // Functions that call the program's own ones are above these.
        let [outer, inner] = ["std::rt::lang_start", "std::sort"];
        let stacks = [stack(&["compare", inner, "sort_rows", outer], 9)];
        assert_eq!(Hot::of(stacks.iter()).deepest(|_| true), None);
    }

    #[test]
    fn spread_calls_of_one_function_are_listed() {
        let stacks = [
            stack(&["time.After", "main.wait", "main.main"], 40),
            stack(&["runtime.selectgo", "main.wait", "main.main"], 30),
            stack(&["runtime.memmove", "main.wait", "main.main"], 5),
        ];
        let hot = Hot::of(stacks.iter());
        assert_eq!(
            hot.parts_below(),
            " (time.After 53 %, runtime.selectgo 40 %)"
        );
    }

    #[test]
    fn callers_of_spread_samples_are_named() {
        let leaf = "rawmemchr (libc.so.6)";
        let scan = "sscanf (libc.so.6)";
        let stacks = [
            stack(
                &[leaf, "libc.so.6+0x8", scan, "parse_long", "load", "main"],
                50,
            ),
            stack(
                &[leaf, "libc.so.6+0x8", scan, "parse_double", "load", "main"],
                45,
            ),
            stack(&["known", "load", "main"], 5),
        ];
        let hot = Hot::of(stacks.iter());
        assert_eq!(hot.leaf(), Some((leaf, 95)));
        assert_eq!(hot.entry(), Some(scan));
        let (own, samples) = hot.own_path().unwrap();
        assert_eq!(own, "parse_long and parse_double (called by load)");
        assert_eq!(samples, 95);
    }
}

//! What a script asks of its interpreter, by the interpreter's own functions: V8 and Node have one
//! for each function of JavaScript's library, Perl one for each operation, CPython one for each method
//! of its own types.
//!
//! They name what the script does where its own functions have no names.

use std::collections::BTreeMap;

use crate::callers::{is_library, is_nameless};
use crate::facts::{Facts, Stack};
use crate::finding::percent;

/// The least part of all samples in one of these functions.
const LEAST: f64 = 0.2;
/// The least part of those that are named beside it, and how many are named.
const BESIDE: f64 = 0.08;
const NAMED: usize = 3;
/// How names of V8's functions begin that implement those of JavaScript (src/builtins).
const BUILTINS: [&str; 2] = ["Builtins_", "v8::internal::Builtin_"];
/// Of these, those that only call, enter, load and store: they are part of all that a script does.
const PLAIN: [&str; 20] = [
    "Interpreter",
    "JSEntry",
    "CEntry",
    "Call",
    "Construct",
    "HandleApiCall",
    "Adaptor",
    "Baseline",
    "RunMicrotasks",
    "Async",
    "Await",
    "Promise",
    "Generator",
    "RecordWrite",
    "Ephemeron",
    "Load",
    "Store",
    "Keyed",
    "Instantiate",
    "Arguments",
];
/// What Node's own functions do for a script begins so; those of its start and of its loop of events
/// (src/api, src/env.cc, src/node.cc) say nothing.
const NODE: &str = "node::";
const NODE_LOOP: [&str; 12] = [
    "node::Start",
    "node::Load",
    "node::Spin",
    "node::NodeMain",
    "node::Environment",
    "node::Internal",
    "node::MakeCallback",
    "node::AsyncWrap",
    "node::Run",
    "node::Realm",
    "node::builtins::",
    "node::CallbackScope",
];
/// Operations of Perl (pp.c, pp_hot.c, pp_sys.c), without those that every statement has.
const PERL: &str = "Perl_pp_";
const PERL_PLAIN: [&str; 8] = [
    "entersub",
    "leavesub",
    "nextstate",
    "enter",
    "leave",
    "iter",
    "unstack",
    "const",
];

/// The loop of CPython that executes functions of a script (Python/ceval.c).
const PYTHON_LOOP: &str = "_PyEval_EvalFrame";
/// How functions of CPython begin that only call what implements an operation (Objects/{call,abstract,
/// object,methodobject,descrobject,typeobject}.c).
const PYTHON_PLAIN: [&str; 14] = [
    "_PyEval",
    "PyEval",
    "_PyFunction",
    "_PyObject",
    "PyObject_",
    "_PyVectorcall",
    "PyVectorcall",
    "cfunction_",
    "method_vectorcall",
    "vectorcall_",
    "slot_",
    "PyNumber_",
    "PySequence_",
    "PyIter_Next",
];

/// Returns the function in C that a stack's script of Python called.
fn called_by_python(stack: &Stack) -> Option<&str> {
    let functions = stack.user.iter().map(String::as_str);
    let at = functions
        .clone()
        .position(|one| one.starts_with(PYTHON_LOOP))?;
    let below: Vec<&str> = functions.take(at).collect();
    let is_plain = |one: &str| PYTHON_PLAIN.iter().any(|begin| one.starts_with(begin));
    let mut outermost = below.into_iter().rev();
    let called = outermost.find(|one| !is_plain(one) && !is_nameless(one) && !is_library(one))?;
    Some(called.split(" (").next().unwrap_or(called))
}

/// Returns the function of the interpreter that a stack's script called, with the language.
fn called(stack: &Stack) -> Option<(&'static str, String)> {
    if let Some(function) = called_by_python(stack) {
        return Some(("Python", function.to_owned()));
    }
    let mut of_node = None;
    for function in stack.user.iter().map(String::as_str) {
        let is_loop = NODE_LOOP.iter().any(|begin| function.starts_with(begin));
        if function.starts_with(NODE) && !is_loop {
            of_node = Some(function);
        }
        if let Some(operation) = function.strip_prefix(PERL) {
            let is_plain = PERL_PLAIN.iter().any(|begin| operation.starts_with(begin));
            return (!is_plain).then(|| ("Perl", format!("{PERL}{operation}")));
        }
        let builtin = BUILTINS
            .iter()
            .find_map(|begin| function.strip_prefix(begin));
        let Some(builtin) = builtin else { continue };
        if let Some(of_node) = of_node {
            return Some(("Node", of_node.to_owned()));
        }
        let is_plain = PLAIN.iter().any(|begin| builtin.starts_with(begin));
        if !is_plain && !builtin.ends_with("Handler") {
            return Some(("JavaScript", builtin.to_owned()));
        }
    }
    None
}

/// The least part of samples of a library that a script has loaded.
const OF_LIBRARY: f64 = 0.3;
/// How the files of libraries end that are written for an interpreter: those of the system have
/// their version behind it.
const LOADED: [&str; 2] = [".so", ".node"];

/// Libraries of the runtimes themselves, which their names have no version of either.
const RUNTIMES: [&str; 8] = [
    "libjvm",
    "libjava",
    "libjli",
    "libnio",
    "libnet",
    "libzip",
    "libpython",
    "libperl",
];

/// Returns the library of a function that a script has loaded: `Storable.so` of `Storable.so+0x12`.
fn loaded_library(function: &str) -> Option<&str> {
    let named = function
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('));
    let file = match (named, function.split_once("+0x")) {
        (Some((_, file)), _) => file,
        (None, Some((file, _))) => file,
        (None, None) => return None,
    };
    let is_runtime = RUNTIMES.iter().any(|begin| file.starts_with(begin));
    let is_loaded = LOADED.iter().any(|ending| file.ends_with(ending));
    (is_loaded && !is_runtime).then_some(file)
}

/// Returns in which library of C a script's program spends much of its time, as the end of a
/// sentence; empty without one.
pub(crate) fn in_library(facts: &Facts, sentence: &str) -> String {
    let samples = facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks);
    let mut libraries: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in stacks {
        if let Some(library) = stack.user.iter().find_map(|one| loaded_library(one)) {
            *libraries.entry(library).or_default() += stack.samples;
        }
    }
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let most = libraries.into_iter().max_by_key(|(_, samples)| *samples);
    let part = |samples: u64| samples as f64 / all.max(1) as f64;
    most.filter(|(library, samples)| part(*samples) >= OF_LIBRARY && !sentence.contains(library))
        .map_or_else(String::new, |(library, samples)| {
            format!(
                "; {} of that in the library {library}",
                percent(part(samples))
            )
        })
}

/// Returns what most of the samples of a script's program are in, as the end of a sentence; empty if
/// that is spread, or the sentence has it already.
pub(crate) fn in_interpreter(facts: &Facts, sentence: &str) -> String {
    let samples = facts.samples.as_ref();
    let stacks = samples.map_or(&[][..], |samples| &samples.stacks);
    let mut functions: BTreeMap<(&str, String), u64> = BTreeMap::new();
    let mut all = 0;
    for stack in stacks {
        all += stack.samples;
        if let Some(called) = called(stack) {
            *functions.entry(called).or_default() += stack.samples;
        }
    }
    let mut functions: Vec<((&str, String), u64)> = functions.into_iter().collect();
    functions.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let part = |samples: u64| samples as f64 / all.max(1) as f64;
    let Some(((language, function), samples)) = functions.first() else {
        return String::new();
    };
    if part(*samples) < LEAST || sentence.contains(function) {
        return String::new();
    }
    let named = functions.iter().take(NAMED);
    let named = named.filter(|(_, samples)| part(*samples) >= BESIDE);
    let named: Vec<String> = named
        .map(|((_, function), samples)| {
            format!("{} {}", as_script(function), percent(part(*samples)))
        })
        .collect();
    // Where the script's own functions are named, these say what they do.
    if sentence.contains(" that is in ") {
        format!("; by {}", named.join(", "))
    } else {
        format!("; in {language} that is in {}", named.join(", "))
    }
}

/// Bindings of files (src/node_file.cc) of which each is a function of the module `fs`.
const FILES: &str = "node::fs::";

/// The builtin that makes an error with its stack trace (src/builtins/builtins-error.cc).
const ERROR: &str = "ErrorConstructor";

/// Writes a function of the interpreter as the script calls it.
fn as_script(function: &str) -> String {
    if function == ERROR {
        return format!("new Error with its stack trace ({ERROR})");
    }
    let binding = function.strip_prefix(FILES);
    let is_plain = |name: &&str| !name.is_empty() && name.chars().all(char::is_alphanumeric);
    let Some(binding) = binding
        .filter(is_plain)
        .filter(|name| !name.starts_with("Internal"))
    else {
        return function.to_owned();
    };
    let mut name = binding.to_lowercase();
    for ending in ["utf8", "sync", "string", "buffers", "buffer", "handle"] {
        name = name.trim_end_matches(ending).to_owned();
    }
    let name = name.replace("efile", "eFile").replace("dfile", "dFile");
    let name = name
        .replace("copyfile", "copyFile")
        .replace("openfile", "open");
    format!("fs.{name}Sync ({function})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sampled;

    fn of(user: &[&str], samples: u64) -> Stack {
        Stack {
            user: user.iter().map(|one| (*one).to_owned()).collect(),
            samples,
            ..Stack::default()
        }
    }

    fn sentence(stacks: Vec<Stack>) -> String {
        let facts = Facts {
            samples: sampled(stacks),
            ..Facts::default()
        };
        in_interpreter(&facts, "it touches memory")
    }

    #[test]
    fn builtin_of_script_is_named() {
        let concat = [
            "v8::internal::Heap::AllocateRaw",
            "v8::internal::Builtin_ArrayConcat",
            "Builtins_CEntry_Return1",
            "Builtins_InterpreterEntryTrampoline",
        ];
        let other = ["Builtins_GetPropertyHandler", "Builtins_InterpreterEntry"];
        assert_eq!(
            sentence(vec![of(&concat, 6), of(&other, 4)]),
            "; in JavaScript that is in ArrayConcat 60 %"
        );
        assert_eq!(sentence(vec![of(&concat, 1), of(&other, 9)]), "");
        let facts = Facts {
            samples: sampled(vec![of(&concat, 6)]),
            ..Facts::default()
        };
        let beside = in_interpreter(&facts, "; in JavaScript that is in merge app.js:3");
        assert_eq!(beside, "; by ArrayConcat 100 %");
    }

    #[test]
    fn method_of_pythons_types_is_named() {
        let tell = [
            "libc.so.6+0x10",
            "_io_TextIOWrapper_tell (libpython3.11.so.1.0)",
            "method_vectorcall_NOARGS (libpython3.11.so.1.0)",
            "_PyEval_EvalFrameDefault (libpython3.11.so.1.0)",
            "_PyEval_Vector (libpython3.11.so.1.0)",
        ];
        let own = ["_PyEval_EvalFrameDefault (libpython3.11.so.1.0)", "main"];
        assert_eq!(
            sentence(vec![of(&tell, 6), of(&own, 4)]),
            "; in Python that is in _io_TextIOWrapper_tell 60 %"
        );
        assert_eq!(sentence(vec![of(&own, 4)]), "");
    }

    #[test]
    fn binding_of_node_is_named() {
        let exists = [
            "access (libc.so.6)",
            "uv__fs_work",
            "node::fs::ExistsSync",
            "Builtins_CallApiCallback",
            "Builtins_InterpreterEntryTrampoline",
            "node::LoadEnvironment",
        ];
        assert_eq!(
            sentence(vec![of(&exists, 9)]),
            "; in Node that is in fs.existsSync (node::fs::ExistsSync) 100 %"
        );
    }

    #[test]
    fn operation_of_perl_is_named() {
        let subst = [
            "Perl_regexec_flags",
            "Perl_pp_subst",
            "Perl_runops_standard",
        ];
        let sub = [
            "malloc (libc.so.6)",
            "Perl_pp_entersub",
            "Perl_runops_standard",
        ];
        assert_eq!(
            sentence(vec![of(&subst, 5), of(&sub, 5)]),
            "; in Perl that is in Perl_pp_subst 50 %"
        );
    }
}

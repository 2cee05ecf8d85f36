//! Stacks of scripts: the functions of Python, Perl and JavaScript and the statements of PostgreSQL
//! and SQLite, from the interpreter's own data in the memory of the process, without stopping it. What
//! changes while it is read ends the stack.
//!
//! What the functions are made of, the interpreter's own ones, is left to `unwind` and `symbols`.

mod coroutines;
mod javascript;
mod perl;
mod postgres;
mod python;
mod sqlite;
mod statement;

use std::collections::BTreeMap;
use std::ops::Range;

use explain::facts::{Parked, Stack};

use crate::memory;
use crate::proc::Mapping;
use crate::rounds;
use crate::symbols::{Modules, file_name};
use crate::unwind::Registers;
use javascript::Engine;

/// Frames of a stack, and names that are kept of a process.
const DEPTH: usize = 48;
const NAMES_MAX: usize = 16_384;
/// Different stacks that are kept.
const STACKS_MAX: usize = 2048;
/// How often a process is tried whose interpreter cannot be found yet.
const TRIES: u32 = 20;

/// The interpreter of a process.
#[derive(Debug)]
enum Interpreter {
    Python(python::Interpreter),
    Perl(perl::Interpreter),
    JavaScript(Engine),
    Postgres(postgres::Interpreter),
}

/// A process that may have an interpreter.
#[derive(Debug, Default)]
struct Process {
    /// Programs that it had executed.
    executed: u32,
    tries: u32,
    interpreter: Option<Interpreter>,
    /// The stacks of its threads in this round.
    now: BTreeMap<u32, Vec<String>>,
    /// Where SQLite's code is.
    sqlite: Option<Range<u64>>,
}

/// The interpreters of a program.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    processes: BTreeMap<u32, Process>,
    /// Where scripts ran, by language, with looks or samples.
    ran: BTreeMap<(&'static str, Vec<String>), u64>,
    /// Samples that may still be searched for a statement in this round.
    searches: u32,
    /// Where coroutines waited, by process, with how many over all looks, and how many looks there were.
    waiting: BTreeMap<(u32, Vec<String>), u64>,
    looks: BTreeMap<u32, u64>,
}

/// How functions begin that run a loop of events of Python.
const ASYNCIO: &str = "Python's asyncio.";

/// The languages by how files begin that have their interpreters.
const FILES: [(&str, Find); 6] = [
    ("libpython3.", python::find),
    ("python3.", python::find),
    ("libperl.so", perl::find),
    ("perl", perl::find),
    ("node", javascript::find),
    ("postgres", postgres::find),
];

/// How the file of SQLite begins, and how many samples of a round are searched for its statement.
const SQLITE: &str = "libsqlite3.so";
const SEARCHED: u32 = 2;
/// Words of a stack that tell that a sample is within it.
const NEAR: usize = 48;
/// The language of statements, and how they are written on a stack.
const SQL: &str = "SQL";

/// Finds the interpreter that a mapped file has.
type Find = fn(u32, &rounds::Process, &Mapping, &mut Modules) -> Option<Interpreter>;

impl Scripts {
    /// Forgets the stacks of the round before.
    pub(crate) fn begin_round(&mut self) {
        self.searches = SEARCHED;
        self.processes
            .values_mut()
            .for_each(|process| process.now.clear());
    }

    /// Reads the stacks of a process, if it is an interpreter whose data has them.
    pub(crate) fn look(&mut self, id: u32, of: &rounds::Process, modules: &mut Modules) {
        let candidates = of.maps.iter().filter(|mapping| mapping.is_executable);
        let sqlite = candidates
            .clone()
            .find(|mapping| file_name(&mapping.path).starts_with(SQLITE));
        if let Some(mapping) = sqlite {
            let process = self.process(id, of);
            process.sqlite = Some(mapping.start..mapping.end);
        }
        let mut candidates = candidates
            .filter_map(|mapping| Some((mapping, find_of(mapping)?)))
            .peekable();
        if candidates.peek().is_none() {
            return;
        }
        let process = self.process(id, of);
        process.now.clear();
        if process.interpreter.is_none() {
            if process.tries >= TRIES {
                return;
            }
            process.tries += 1;
            // The program may have all of it in a library.
            process.interpreter =
                candidates.find_map(|(mapping, find)| find(id, of, mapping, modules));
        }
        let Some(memory) = memory::open(id) else {
            return;
        };
        match &mut process.interpreter {
            Some(Interpreter::Python(python)) => python.read(&memory, &mut process.now),
            Some(Interpreter::Perl(perl)) => {
                // Other threads of Perl have interpreters of their own.
                if let Some(stack) = perl.read(&memory) {
                    process.now.insert(id, stack);
                }
            }
            Some(Interpreter::Postgres(postgres)) => {
                if let Some(statement) = postgres.read(&memory) {
                    process.now.insert(id, vec![written(&statement)]);
                }
            }
            Some(Interpreter::JavaScript(_)) | None => {}
        }
    }

    /// Reads the coroutines of a process whose loop of events runs them.
    pub(crate) fn look_at_coroutines(&mut self, id: u32) {
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        let mut functions = process.now.values().flatten();
        let has_loop = functions.any(|function| function.starts_with(ASYNCIO));
        let (Some(Interpreter::Python(python)), true) = (&mut process.interpreter, has_loop) else {
            return;
        };
        let Some(memory) = memory::open(id) else {
            return;
        };
        *self.looks.entry(id).or_default() += 1;
        for stack in python.read_coroutines(&memory) {
            let place = (id, stack);
            if self.waiting.len() < STACKS_MAX || self.waiting.contains_key(&place) {
                *self.waiting.entry(place).or_default() += 1;
            }
        }
    }

    /// Returns where coroutines waited, most of them first.
    pub(crate) fn coroutines(&self) -> Vec<Parked> {
        let parked = |((process, stack), count): (&(u32, Vec<String>), &u64)| Parked {
            process: *process,
            reason: String::new(),
            stack: stack.clone(),
            number: *count as f64 / self.looks.get(process).copied().unwrap_or(1) as f64,
        };
        let mut all: Vec<Parked> = self.waiting.iter().map(parked).collect();
        all.sort_by(|one, other| other.number.total_cmp(&one.number));
        all
    }

    /// Returns what is known of a process; nothing of the program that it executed before.
    fn process(&mut self, id: u32, of: &rounds::Process) -> &mut Process {
        let process = self.processes.entry(id).or_default();
        if process.executed != of.executed {
            *process = Process {
                executed: of.executed,
                ..Process::default()
            };
        }
        process
    }

    /// Returns the functions of a thread in this round, innermost first.
    pub(crate) fn stack(&self, process: u32, thread: u32) -> Option<&Vec<String>> {
        self.processes.get(&process)?.now.get(&thread)
    }

    /// Returns the functions of a stack in user mode, whose bytes from the stack pointer on are
    /// given, innermost first: those of JavaScript are found there.
    pub(crate) fn frames(&mut self, id: u32, stack_pointer: u64, bytes: &[u8]) -> Vec<String> {
        let interpreter = self.processes.get_mut(&id);
        let interpreter = interpreter.and_then(|process| process.interpreter.as_mut());
        match (interpreter, memory::open(id)) {
            (Some(Interpreter::JavaScript(engine)), Some(memory)) => {
                engine.frames(&memory, stack_pointer, bytes)
            }
            _ => Vec::new(),
        }
    }

    /// Counts where the script of a thread was that runs.
    pub(crate) fn count(&mut self, process: u32, thread: u32) {
        let Some(of) = self.processes.get(&process) else {
            return;
        };
        let language = match of.interpreter {
            Some(Interpreter::Python(_)) => "Python",
            Some(Interpreter::Perl(_)) => "Perl",
            Some(Interpreter::Postgres(_)) => SQL,
            Some(Interpreter::JavaScript(_)) | None => return,
        };
        if let Some(stack) = of.now.get(&thread).cloned() {
            self.add(language, stack);
        }
    }

    /// Counts what a sample in user mode tells: functions of JavaScript, and a statement of SQLite.
    pub(crate) fn count_sample(&mut self, process: u32, registers: &Registers, stack: &[u8]) {
        self.count_frames(process, registers.stack_pointer, stack);
        self.count_statement(process, registers, stack);
    }

    fn count_frames(&mut self, process: u32, stack_pointer: u64, bytes: &[u8]) {
        let of = self.processes.get(&process);
        let interpreter = of.and_then(|of| of.interpreter.as_ref());
        // With a map of compiled functions the sample itself has their names.
        let is_wanted =
            matches!(interpreter, Some(Interpreter::JavaScript(engine)) if !engine.has_map);
        if !is_wanted {
            return;
        }
        let frames = self.frames(process, stack_pointer, bytes);
        if !frames.is_empty() {
            self.add("JavaScript", frames);
        }
    }

    fn count_statement(&mut self, process: u32, registers: &Registers, stack: &[u8]) {
        let of = self.processes.get(&process);
        let Some(code) = of.and_then(|of| of.sqlite.clone()) else {
            return;
        };
        let near = stack.chunks_exact(8).take(NEAR);
        let near = near.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        let mut near = near.chain([registers.program_counter]);
        if self.searches == 0 || !near.any(|word| code.contains(&word)) {
            return;
        }
        self.searches -= 1;
        let Some(memory) = memory::open(process) else {
            return;
        };
        let saved: Vec<u64> = registers.saved.iter().flatten().copied().collect();
        // Without a statement it counts against all.
        let found = sqlite::read(&memory, &saved, stack);
        self.add(
            SQL,
            found.iter().map(|statement| written(statement)).collect(),
        );
    }

    fn add(&mut self, language: &'static str, stack: Vec<String>) {
        if self.ran.len() < STACKS_MAX {
            *self.ran.entry((language, stack)).or_default() += 1;
        }
    }

    /// Returns the stacks in which scripts ran, with the language as the program.
    pub(crate) fn ran(&self) -> impl Iterator<Item = Stack> {
        self.ran.iter().map(|((language, user), samples)| Stack {
            program: (*language).to_owned(),
            kernel: Vec::new(),
            user: user.clone(),
            samples: *samples,
        })
    }
}

/// Writes a statement as functions are written on a stack.
fn written(statement: &str) -> String {
    format!("{SQL}: {statement}")
}

/// Returns a name of printable ASCII letters, as nearly all are: what else stands there is no name.
fn printable(bytes: &[u8]) -> Option<String> {
    let is_name = !bytes.is_empty() && bytes.iter().all(|byte| (32..127).contains(byte));
    is_name.then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// Returns how the interpreter of a mapped file is found, if it may be one.
fn find_of(mapping: &Mapping) -> Option<Find> {
    let name = file_name(&mapping.path);
    let of = FILES.iter().find(|(begin, _)| name.starts_with(begin));
    of.map(|(_, find)| *find)
}

/// Puts functions of a script into a stack: where the interpreter executes it, innermost.
pub(crate) fn insert(stack: &mut Vec<String>, frames: &[String]) {
    let begins = [
        "_PyEval_EvalFrame",
        "Perl_pp_entersub",
        "Perl_runops",
        "Builtins_Interpreter",
        "Builtins_JSEntry",
        "PortalRun",
        "exec_simple_query",
    ];
    let is_executing = |function: &String| begins.iter().any(|begin| function.starts_with(begin));
    let at = stack.iter().position(is_executing).unwrap_or(stack.len());
    stack.splice(at..at, frames.iter().cloned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_stands_in_its_interpreter() {
        let names = [
            "read (libc.so.6)",
            "os_read (libpython3.11.so.1.0)",
            "_PyEval_EvalFrameDefault",
        ];
        let mut stack: Vec<String> = names.map(str::to_owned).into();
        insert(&mut stack, &["load app.py".to_owned()]);
        assert_eq!(stack[2], "load app.py");
    }
}

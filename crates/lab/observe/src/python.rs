//! Stacks of CPython: the functions of the script, from the interpreter's own frames in
//! `/proc/PID/mem`, without stopping it. A frame that changes while it is read ends the stack.
//!
//! The places of the fields are those of one version, as its headers have them
//! (Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, Include/cpython/code.h).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::memory::{self, field};
use crate::proc::Mapping;
use crate::symbols::{Modules, file_name};

/// Frames of a stack, threads of a process, and names that are kept.
const DEPTH: usize = 48;
const THREADS_MAX: usize = 256;
const NAMES_MAX: usize = 16_384;
/// The longest name that is read (bytes).
const NAME: usize = 160;
/// How often a process is tried whose interpreter cannot be found yet.
const TRIES: u32 = 20;

/// The places of fields in CPython 3.11 on 64 bits (bytes).
const INTERPRETER: u64 = 40;
const THREAD: u64 = 16;
const NEXT: u64 = 8;
const NATIVE_ID: u64 = 160;
const CFRAME: u64 = 56;
const CURRENT: u64 = 8;
const CODE: u64 = 32;
const PREVIOUS: u64 = 48;
const FILE: u64 = 112;
const QUALIFIED_NAME: u64 = 128;
const LENGTH: u64 = 16;
const LETTERS: u64 = 48;

/// The symbol of the interpreter's state, and the file that has it.
const STATE: &str = "_PyRuntime";
const FILES: [&str; 2] = ["libpython3.11", "python3.11"];

/// A process with an interpreter.
#[derive(Debug, Default)]
struct Interpreter {
    tries: u32,
    /// Where its state is.
    state: Option<u64>,
    names: BTreeMap<u64, String>,
    /// The stacks of its threads in this round.
    now: BTreeMap<u32, Vec<String>>,
}

/// The interpreters of a program.
#[derive(Debug, Default)]
pub(crate) struct Pythons(BTreeMap<u32, Interpreter>);

impl Pythons {
    /// Reads the stacks of a process, if it is an interpreter.
    pub(crate) fn look(&mut self, process: u32, maps: &[Mapping], modules: &mut Modules) {
        let mut files = maps.iter().filter(|mapping| is_python(mapping)).peekable();
        if files.peek().is_none() {
            return;
        }
        let python = self.0.entry(process).or_default();
        python.now.clear();
        if python.state.is_none() {
            if python.tries >= TRIES {
                return;
            }
            python.tries += 1;
            // The program may have all of it in a library.
            python.state = files.find_map(|mapping| modules.address_of(mapping, STATE));
        }
        if let (Some(state), Some(memory)) = (python.state, memory::open(process)) {
            python.read(&memory, state);
        }
    }

    /// Returns the functions of a thread in this round, innermost first.
    pub(crate) fn stack(&self, process: u32, thread: u32) -> Option<&Vec<String>> {
        self.0.get(&process)?.now.get(&thread)
    }

    /// Forgets the stacks of the round before.
    pub(crate) fn begin_round(&mut self) {
        self.0.values_mut().for_each(|python| python.now.clear());
    }
}

/// Whether a mapping is of the interpreter's code.
fn is_python(mapping: &Mapping) -> bool {
    let name = file_name(&mapping.path);
    mapping.is_executable && FILES.iter().any(|file| name.starts_with(file))
}

impl Interpreter {
    fn read(&mut self, memory: &File, state: u64) {
        let Some(interpreter) = field(memory, state, INTERPRETER) else {
            return;
        };
        let mut thread = field(memory, interpreter, THREAD);
        for _ in 0..THREADS_MAX {
            let Some(at) = thread.filter(|at| *at != 0) else {
                return;
            };
            let id = field(memory, at, NATIVE_ID).and_then(|id| u32::try_from(id).ok());
            if let (Some(id), Some(stack)) = (id, self.stack(memory, at)) {
                self.now.insert(id, stack);
            }
            thread = field(memory, at, NEXT);
        }
    }

    fn stack(&mut self, memory: &File, thread: u64) -> Option<Vec<String>> {
        let mut frame = field(memory, field(memory, thread, CFRAME)?, CURRENT)?;
        let mut stack = Vec::new();
        while frame != 0 && stack.len() < DEPTH {
            let mut fields = [0; PREVIOUS as usize + 8];
            if memory.read_exact_at(&mut fields, frame).is_err() {
                break;
            }
            let of_frame = |at: u64| {
                let bytes = fields[at as usize..][..8].try_into();
                bytes.map_or(0, u64::from_le_bytes)
            };
            match self.name(memory, of_frame(CODE)) {
                Some(name) => stack.push(name),
                None => break,
            }
            frame = of_frame(PREVIOUS);
        }
        (!stack.is_empty()).then_some(stack)
    }

    fn name(&mut self, memory: &File, code: u64) -> Option<String> {
        if let Some(name) = self.names.get(&code) {
            return Some(name.clone());
        }
        let function = text(memory, field(memory, code, QUALIFIED_NAME)?)?;
        let file = text(memory, field(memory, code, FILE)?)?;
        let name = describe(&function, &file);
        if self.names.len() < NAMES_MAX {
            self.names.insert(code, name.clone());
        }
        Some(name)
    }
}

/// Returns a function's name with its file; one of the standard library is called so.
fn describe(function: &str, file: &str) -> String {
    let is_standard = file.starts_with('<') || file.contains("/lib/python3");
    // A package has the name of its folder.
    let name = match file.strip_suffix("/__init__.py") {
        Some(folder) => file_name(folder),
        None => file_name(file),
    };
    if is_standard {
        let module = name.trim_end_matches(".py").trim_matches(['<', '>']);
        return format!("Python's {module}.{function}");
    }
    format!("{function} {name}")
}

/// Reads a string of ASCII letters, as nearly all names are.
fn text(memory: &File, object: u64) -> Option<String> {
    let length = usize::try_from(field(memory, object, LENGTH)?).ok()?;
    let mut bytes = vec![0; length.min(NAME)];
    // The end of a long path says most.
    let skipped = (length - bytes.len()) as u64;
    let letters = object.checked_add(LETTERS)?.checked_add(skipped)?;
    memory.read_exact_at(&mut bytes, letters).ok()?;
    let is_name = !bytes.is_empty() && bytes.iter().all(|byte| (32..127).contains(byte));
    is_name.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Puts functions of a script into a stack: where the interpreter's evaluation is innermost.
pub(crate) fn insert(stack: &mut Vec<String>, frames: &[String]) {
    let at = stack
        .iter()
        .position(|function| function.starts_with("_PyEval_EvalFrame"));
    let at = at.unwrap_or(stack.len());
    stack.splice(at..at, frames.iter().cloned());
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_are_named_with_their_file() {
        assert_eq!(
            describe("Store.load", "/srv/app/store.py"),
            "Store.load store.py"
        );
        assert_eq!(
            describe("Popen.wait", "/usr/lib/python3.11/subprocess.py"),
            "Python's subprocess.Popen.wait"
        );
        assert_eq!(
            describe("match", "/usr/lib/python3.11/re/__init__.py"),
            "Python's re.match"
        );
        assert_eq!(
            describe("_find", "<frozen importlib._bootstrap>"),
            "Python's frozen importlib._bootstrap._find"
        );
    }

    #[test]
    fn frames_are_read_from_memory() {
        let mut bytes = vec![0; 0x1000];
        let mut put = |at: u64, value: u64| {
            bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
        };
        // State at 0, interpreter at 0x100, thread at 0x200, its frames at 0x400, code at 0x500.
        put(INTERPRETER, 0x100);
        put(0x100 + THREAD, 0x200);
        put(0x200 + NATIVE_ID, 77);
        put(0x200 + CFRAME, 0x380);
        put(0x380 + CURRENT, 0x400);
        put(0x400 + CODE, 0x500);
        put(0x500 + QUALIFIED_NAME, 0x600);
        put(0x500 + FILE, 0x700);
        put(0x600 + LENGTH, 4);
        put(0x700 + LENGTH, 6);
        bytes[0x600 + LETTERS as usize..][..4].copy_from_slice(b"load");
        bytes[0x700 + LETTERS as usize..][..6].copy_from_slice(b"app.py");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut python = Interpreter::default();
        python.read(&file, 0);
        assert_eq!(python.now[&77], vec!["load app.py".to_owned()]);
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            words in prop::collection::vec(prop_oneof![0_u64..0x800, any::<u64>()], 0..0x100),
            state: u64,
        ) {
            let memory = memory::file_of(&words);
            for state in [0, state, u64::MAX] {
                Interpreter::default().read(&memory, state);
            }
        }
    }

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

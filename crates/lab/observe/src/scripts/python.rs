//! Stacks of CPython: the functions of the script, from the interpreter's own frames in
//! `/proc/PID/mem`, without stopping it. A frame that changes while it is read ends the stack.
//!
//! The places of the fields are those of one version, as its headers have them
//! (Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, Include/cpython/code.h).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{DEPTH, NAMES_MAX};
use crate::memory::field;
use crate::proc::Mapping;
use crate::rounds::Process;
use crate::symbols::{Modules, file_name};

/// Threads of a process.
const THREADS_MAX: usize = 256;
/// The longest name that is read (bytes).
const NAME: usize = 160;

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

/// The symbol of the interpreter's state.
const STATE: &str = "_PyRuntime";

#[derive(Debug)]
pub(super) struct Interpreter {
    /// Where its state is.
    state: u64,
    names: BTreeMap<u64, String>,
}

/// Finds the interpreter in a mapped file.
pub(super) fn find(
    _: u32,
    _: &Process,
    mapping: &Mapping,
    modules: &mut Modules,
) -> Option<super::Interpreter> {
    let state = modules.address_of(mapping, STATE)?;
    let names = BTreeMap::new();
    Some(super::Interpreter::Python(Interpreter { state, names }))
}

impl Interpreter {
    /// Reads the stacks of all threads, innermost functions first.
    pub(super) fn read(&mut self, memory: &File, stacks: &mut BTreeMap<u32, Vec<String>>) {
        let Some(interpreter) = field(memory, self.state, INTERPRETER) else {
            return;
        };
        let mut thread = field(memory, interpreter, THREAD);
        for _ in 0..THREADS_MAX {
            let Some(at) = thread.filter(|at| *at != 0) else {
                return;
            };
            let id = field(memory, at, NATIVE_ID).and_then(|id| u32::try_from(id).ok());
            if let (Some(id), Some(stack)) = (id, self.stack(memory, at)) {
                stacks.insert(id, stack);
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::memory;

    fn interpreter(state: u64) -> Interpreter {
        Interpreter {
            state,
            names: BTreeMap::new(),
        }
    }

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
        let mut stacks = BTreeMap::new();
        interpreter(0).read(&file, &mut stacks);
        assert_eq!(stacks[&77], vec!["load app.py".to_owned()]);
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            words in prop::collection::vec(prop_oneof![0_u64..0x800, any::<u64>()], 0..0x100),
            state: u64,
        ) {
            let memory = memory::file_of(&words);
            for state in [0, state, u64::MAX] {
                interpreter(state).read(&memory, &mut BTreeMap::new());
            }
        }
    }
}

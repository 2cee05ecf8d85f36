//! Stacks of CPython: the functions of the script, from the interpreter's own frames in
//! `/proc/PID/mem`, without stopping it. A frame that changes while it is read ends the stack.
//!
//! The places of the fields are those of each version, as its headers have them
//! (Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, Include/cpython/code.h).
//! CPython 3.13 says them itself (`_Py_DebugOffsets`).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{DEPTH, NAMES_MAX, coroutines, printable};
use crate::memory::{self, field};
use crate::proc::Mapping;
use crate::rounds::Process;
use crate::symbols::{Modules, file_name};

/// Threads of a process.
const THREADS_MAX: usize = 256;
/// The longest name that is read (bytes).
const NAME: usize = 160;

/// How files begin that have the interpreter, before the minor version.
const FILES: [&str; 2] = ["libpython3.", "python3."];
/// The fields of all versions: the next thread, and the length of a text.
const NEXT: u64 = 8;
const LENGTH: u64 = 16;
/// Who owns a frame that executes nothing of the script (`FRAME_OWNED_BY_CSTACK`), since 3.12.
const OF_INTERPRETER: u64 = 3;
/// How often the frames of a thread are read until they are whole.
const READINGS: u32 = 4;
/// What is read of a frame (bytes).
const FRAME: usize = 80;
/// The thread's number in what pthread_self returns (glibc, x86-64: `struct pthread.tid`).
const OF_POSIX: u64 = 720;

/// The number of a thread: where it is in the thread's state.
#[derive(Debug, Clone, Copy)]
enum Number {
    Kernel(u64),
    /// What pthread_self returns.
    Posix(u64),
}

/// The places of fields on 64 bits (bytes).
#[derive(Debug, Clone, Copy)]
struct Layout {
    interpreter: u64,
    thread: u64,
    number: Number,
    /// From the thread's state to the innermost frame, by one pointer after the other.
    current: &'static [u64],
    code: usize,
    previous: usize,
    /// Who owns the frame; `None` before 3.12.
    owner: Option<usize>,
    file: u64,
    name: u64,
    letters: u64,
}

/// Those of CPython 3.9 and 3.10, 3.11, 3.12 and 3.13.
const OF_3_9: Layout = Layout {
    interpreter: 32,
    thread: 8,
    number: Number::Posix(176),
    current: &[24],
    code: 32,
    previous: 24,
    owner: None,
    file: 104,
    name: 112,
    letters: 48,
};
const OF_3_11: Layout = Layout {
    interpreter: 40,
    thread: 16,
    number: Number::Kernel(160),
    current: &[56, 8],
    code: 32,
    previous: 48,
    owner: None,
    file: 112,
    name: 128,
    letters: 48,
};
const OF_3_12: Layout = Layout {
    interpreter: 40,
    thread: 72,
    number: Number::Kernel(144),
    current: &[56, 0],
    code: 0,
    previous: 8,
    owner: Some(70),
    file: 112,
    name: 128,
    letters: 40,
};
const OF_3_13: Layout = Layout {
    number: Number::Kernel(160),
    current: &[72],
    ..OF_3_12
};
/// What CPython 3.13 begins its state with: letters, its version, and after some words where the first
/// interpreter is, and where that has its threads.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
const INTERPRETER_AT: usize = 5;
const THREAD_AT: usize = 9;

/// The symbols of the interpreter's state, and of the type of coroutines.
const STATE: &str = "_PyRuntime";
const COROUTINE: &str = "PyCoro_Type";

#[derive(Debug)]
pub(super) struct Interpreter {
    /// Where its state is.
    state: u64,
    layout: Layout,
    names: BTreeMap<u64, String>,
    /// The type of coroutines; 0 where those are not read.
    coroutines: u64,
}

/// Finds the interpreter in a mapped file.
pub(super) fn find(
    id: u32,
    _: &Process,
    mapping: &Mapping,
    modules: &mut Modules,
) -> Option<super::Interpreter> {
    let file = file_name(&mapping.path);
    let version = FILES.iter().find_map(|begin| file.strip_prefix(begin))?;
    let minor: String = version.chars().take_while(char::is_ascii_digit).collect();
    let state = modules.address_of(mapping, STATE)?;
    let layout = match minor.parse() {
        Ok(9 | 10) => OF_3_9,
        Ok(11) => OF_3_11,
        Ok(12) => OF_3_12,
        Ok(13) => read_layout(&memory::open(id)?, state)?,
        _ => return None,
    };
    let coroutines = match minor.parse() {
        Ok(11) => modules.address_of(mapping, COROUTINE),
        _ => None,
    };
    Some(super::Interpreter::Python(Interpreter {
        state,
        layout,
        names: BTreeMap::new(),
        coroutines: coroutines.unwrap_or_default(),
    }))
}

/// Returns the layout of CPython 3.13, in which the places before the threads vary with the patch level.
fn read_layout(memory: &File, state: u64) -> Option<Layout> {
    let words: [u64; THREAD_AT + 1] = memory::words(memory, state)?;
    (words[0] == COOKIE).then_some(Layout {
        interpreter: words[INTERPRETER_AT],
        thread: words[THREAD_AT],
        ..OF_3_13
    })
}

impl Interpreter {
    /// Reads the stacks of all threads, innermost functions first.
    pub(super) fn read(&mut self, memory: &File, stacks: &mut BTreeMap<u32, Vec<String>>) {
        let Some(interpreter) = field(memory, self.state, self.layout.interpreter) else {
            return;
        };
        let mut thread = field(memory, interpreter, self.layout.thread);
        for _ in 0..THREADS_MAX {
            let Some(at) = thread.filter(|at| *at != 0) else {
                return;
            };
            let id = self.number(memory, at);
            if let (Some(id), Some(stack)) = (id, self.stack(memory, at)) {
                stacks.insert(id, stack);
            }
            thread = field(memory, at, NEXT);
        }
    }

    /// Returns the functions of coroutines that wait, innermost first; none where these are not read.
    pub(super) fn read_coroutines(&mut self, memory: &File) -> Vec<Vec<String>> {
        let interpreter = field(memory, self.state, self.layout.interpreter);
        let (Some(interpreter), true) = (interpreter, self.coroutines != 0) else {
            return Vec::new();
        };
        let Some(found) = coroutines::read(memory, interpreter, self.coroutines) else {
            self.coroutines = 0;
            return Vec::new();
        };
        let name_all = |chain: Vec<u64>| -> Option<Vec<String>> {
            chain
                .into_iter()
                .map(|code| self.name(memory, code))
                .collect()
        };
        found.into_iter().filter_map(name_all).collect()
    }

    /// Returns the kernel's number of a thread.
    fn number(&self, memory: &File, thread: u64) -> Option<u32> {
        let number = match self.layout.number {
            Number::Kernel(at) => field(memory, thread, at)?,
            Number::Posix(at) => field(memory, field(memory, thread, at)?, OF_POSIX)? & 0xffff_ffff,
        };
        u32::try_from(number).ok()
    }

    /// Returns the functions of a thread. It runs on meanwhile: of several readings the first whole
    /// one is taken, or the longest.
    fn stack(&mut self, memory: &File, thread: u64) -> Option<Vec<String>> {
        let mut longest = Vec::new();
        for _ in 0..READINGS {
            let (stack, is_whole) = self.read_frames(memory, thread)?;
            if is_whole {
                return Some(stack);
            }
            if stack.len() > longest.len() {
                longest = stack;
            }
        }
        (!longest.is_empty()).then_some(longest)
    }

    /// Returns the functions of a thread's frames, and whether these led to the first one.
    fn read_frames(&mut self, memory: &File, thread: u64) -> Option<(Vec<String>, bool)> {
        let mut frame = thread;
        for at in self.layout.current {
            frame = field(memory, frame, *at)?;
        }
        // All frames before the names, which take longer.
        let mut frames = Vec::new();
        while frame != 0 && frames.len() < DEPTH {
            let mut fields = [0; FRAME];
            if memory.read_exact_at(&mut fields, frame).is_err() {
                break;
            }
            let of_frame = |at: usize| {
                let bytes = fields[at..][..8].try_into();
                bytes.map_or(0, u64::from_le_bytes)
            };
            let owner = self.layout.owner.map(|at| u64::from(fields[at]));
            frames.push((of_frame(self.layout.code), owner));
            frame = of_frame(self.layout.previous);
        }
        let mut stack = Vec::new();
        let mut is_whole = frame == 0 || frames.len() == DEPTH;
        for (code, owner) in frames {
            match self.name(memory, code) {
                Some(name) => stack.push(name),
                None if owner == Some(OF_INTERPRETER) => {}
                None => {
                    is_whole = false;
                    break;
                }
            }
        }
        let is_whole = is_whole && !stack.is_empty();
        Some((stack, is_whole))
    }

    fn name(&mut self, memory: &File, code: u64) -> Option<String> {
        if let Some(name) = self.names.get(&code) {
            return Some(name.clone());
        }
        let layout = self.layout;
        let function = text(memory, field(memory, code, layout.name)?, layout.letters)?;
        let file = text(memory, field(memory, code, layout.file)?, layout.letters)?;
        // What the interpreter executes to begin and to end has a name, too.
        if file.starts_with("<shim>") || function.starts_with("<interpreter") {
            return None;
        }
        let name = describe(&function, &file);
        if self.names.len() < NAMES_MAX {
            self.names.insert(code, name.clone());
        }
        Some(name)
    }
}

/// Packages whose functions are called by the package's name, whatever module they lie in
/// (Lib/asyncio/__init__.py).
const PACKAGES: [&str; 1] = ["asyncio"];

/// Returns a function's name with its file; one of the standard library is called so.
fn describe(function: &str, file: &str) -> String {
    let (_, inside) = file.split_once("/lib/python3").unwrap_or_default();
    let is_standard = file.starts_with('<') || !inside.is_empty();
    // A package has the name of its folder.
    let path = file.strip_suffix("/__init__.py").unwrap_or(file);
    if is_standard {
        let folder = inside.split('/').nth(1).unwrap_or_default();
        let module = match PACKAGES.contains(&folder) {
            true => folder,
            false => file_name(path),
        };
        let module = module.trim_end_matches(".py").trim_matches(['<', '>']);
        return format!("Python's {module}.{function}");
    }
    format!("{function} {}", file_name(path))
}

/// Reads a string of ASCII letters, as nearly all names are.
fn text(memory: &File, object: u64, letters: u64) -> Option<String> {
    let length = usize::try_from(field(memory, object, LENGTH)?).ok()?;
    let mut bytes = vec![0; length.min(NAME)];
    // The end of a long path says most.
    let skipped = (length - bytes.len()) as u64;
    let letters = object.checked_add(letters)?.checked_add(skipped)?;
    memory.read_exact_at(&mut bytes, letters).ok()?;
    printable(&bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn interpreter(state: u64) -> Interpreter {
        Interpreter {
            state,
            layout: OF_3_11,
            names: BTreeMap::new(),
            coroutines: 0,
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
            describe("wait", "/usr/lib/python3.11/asyncio/tasks.py"),
            "Python's asyncio.wait"
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
        put(OF_3_11.interpreter, 0x100);
        put(0x100 + OF_3_11.thread, 0x200);
        put(0x200 + 160, 77);
        put(0x200 + 56, 0x380);
        put(0x380 + 8, 0x400);
        put(0x400 + OF_3_11.code as u64, 0x500);
        put(0x500 + OF_3_11.name, 0x600);
        put(0x500 + OF_3_11.file, 0x700);
        put(0x600 + LENGTH, 4);
        put(0x700 + LENGTH, 6);
        bytes[0x600 + OF_3_11.letters as usize..][..4].copy_from_slice(b"load");
        bytes[0x700 + OF_3_11.letters as usize..][..6].copy_from_slice(b"app.py");
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
                for layout in [OF_3_9, OF_3_11, OF_3_12, OF_3_13] {
                    let mut python = interpreter(state);
                    python.layout = layout;
                    python.coroutines = 8;
                    python.read(&memory, &mut BTreeMap::new());
                    python.read_coroutines(&memory);
                }
                let _ = read_layout(&memory, state);
            }
        }
    }
}

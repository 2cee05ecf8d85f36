//! Stacks of Node: the functions of JavaScript whose frames are on a stack, without a map of compiled
//! functions.
//!
//! Where V8 has its fields, the program says itself, in symbols that debuggers of dumps use
//! (`v8dbg_*`, tools/gen-postmortem-metadata.py in V8). Frames of JavaScript are linked by RBP and
//! have the function below it (src/execution/frame-constants.h: `StandardFrameConstants`); of
//! functions that were inlined only the outer one is there.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{DEPTH, NAMES_MAX, printable};
use crate::files::find_perf_map;
use crate::memory::{self, field};
use crate::proc::Mapping;
use crate::rounds::Process;
use crate::symbols::{Modules, file_name};

/// A pointer to an object has these bits (`kHeapObjectTag`), and the map is its first word.
const TAG: u64 = 1;
const TAG_MASK: u64 = 3;
/// The largest frame (bytes).
const FRAME_MAX: u64 = 1 << 20;
/// Code is not below this.
const CODE_LEAST: u64 = 1 << 16;
/// The longest name (bytes), and how much of a script is read to find a line.
const NAME_MAX: usize = 160;
const SOURCE_MAX: usize = 4 << 20;
/// How many times a string stands for another one.
const STRINGS: usize = 4;
/// Variables from which on the scope of a function has them elsewhere
/// (`kScopeInfoMaxInlinedLocalNamesSize`), and fields behind them that are looked at.
const INLINED: u64 = 75;
const FIELDS: u64 = 10;

/// Where fields are in objects (bytes), and what marks kinds of objects.
#[derive(Debug, Clone)]
struct Layout {
    /// Of a function: what all its closures share.
    shared: u64,
    /// Of a map: the type of its objects.
    object_type: u64,
    shared_type: u64,
    name: u64,
    script: u64,
    script_type: u64,
    script_name: u64,
    source: u64,
    scope_type: u64,
    /// Of a scope, as indices: the number of its variables, and the first one.
    variables: u64,
    first_variable: u64,
    not_string: u64,
    representation_mask: u64,
    sequential: u64,
    sliced: u64,
    thin: u64,
    encoding_mask: u64,
    length: u64,
    letters: u64,
    parent: u64,
    offset: u64,
    actual: u64,
    /// Which half of a word has a small integer.
    number_shift: u64,
}

impl Layout {
    fn read(process: u32, mapping: &Mapping, modules: &mut Modules) -> Option<Self> {
        let memory = memory::open(process)?;
        let places = modules.addresses_of(mapping, "v8dbg_");
        let value = |symbol: &str| {
            let at = places.get(&format!("v8dbg_{symbol}"))?;
            let mut bytes = [0; 4];
            memory.read_exact_at(&mut bytes, *at).ok()?;
            u64::try_from(i32::from_le_bytes(bytes)).ok()
        };
        Some(Self {
            shared: value("class_JSFunction__shared__SharedFunctionInfo")?,
            object_type: value("class_Map__instance_type__uint16_t")?,
            shared_type: value("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?,
            name: value("class_SharedFunctionInfo__name_or_scope_info__Object")?,
            script: value("class_SharedFunctionInfo__script_or_debug_info__HeapObject")
                .or_else(|| value("class_SharedFunctionInfo__script_or_debug_info__Object"))
                .or_else(|| value("class_SharedFunctionInfo__script__Object"))?,
            script_type: value("type_Script__SCRIPT_TYPE")?,
            script_name: value("class_Script__name__Object")?,
            source: value("class_Script__source__Object")?,
            scope_type: value("type_ScopeInfo__SCOPE_INFO_TYPE")?,
            variables: value("scopeinfo_idx_ncontextlocals")?,
            first_variable: value("scopeinfo_idx_first_vars")?,
            not_string: value("FirstNonstringType")?,
            representation_mask: value("StringRepresentationMask")?,
            sequential: value("SeqStringTag")?,
            sliced: value("SlicedStringTag")?,
            thin: value("ThinStringTag")?,
            encoding_mask: value("StringEncodingMask")?,
            length: value("class_String__length__int32_t")?,
            letters: value("class_SeqOneByteString__chars__char")?,
            parent: value("class_SlicedString__parent__String")?,
            offset: value("class_SlicedString__offset__SMI")?,
            actual: value("class_ThinString__actual__String")?,
            number_shift: value("SmiShiftSize")?
                .checked_add(1)
                .filter(|bits| *bits < 64)?,
        })
    }
}

/// V8 in a process.
#[derive(Debug)]
pub(super) struct Engine {
    layout: Layout,
    /// Whether it writes a map of compiled functions: samples have their names from there.
    pub(super) has_map: bool,
    /// By what closures share.
    names: BTreeMap<u64, Option<String>>,
}

/// Finds V8 in a mapped program.
pub(super) fn find(
    id: u32,
    process: &Process,
    mapping: &Mapping,
    modules: &mut Modules,
) -> Option<super::Interpreter> {
    let layout = Layout::read(id, mapping, modules)?;
    Some(super::Interpreter::JavaScript(Engine {
        layout,
        has_map: find_perf_map(id, process.inner_number, process.user).is_some(),
        names: BTreeMap::new(),
    }))
}

/// What is pointed to, if it is an object.
fn object(pointer: u64) -> Option<u64> {
    (pointer & TAG_MASK == TAG).then(|| pointer - TAG)
}

impl Engine {
    /// Returns the functions of the frames on a stack, innermost first.
    pub(super) fn frames(&mut self, memory: &File, start: u64, bytes: &[u8]) -> Vec<String> {
        let word = |at: u64| {
            let offset = usize::try_from(at.checked_sub(start)?).ok()?;
            let bytes = bytes.get(offset..offset.checked_add(8)?)?;
            bytes.try_into().ok().map(u64::from_le_bytes)
        };
        let mut found = Vec::new();
        // The register has whatever the program put there.
        let mut at = start.checked_next_multiple_of(8).unwrap_or_default();
        let field = |at: u64, offset: u64| word(at.wrapping_add(offset));
        while let (Some(function), Some(context), Some(next), Some(code)) =
            (word(at), field(at, 8), field(at, 16), field(at, 24))
        {
            let frame = at + 16;
            let is_frame = next > frame && next - frame < FRAME_MAX && next.is_multiple_of(8);
            // A frame without a function has a number for its kind in place of the context.
            let has_function = object(function).is_some() && object(context).is_some();
            let name = (is_frame && has_function && code > CODE_LEAST)
                .then(|| self.name(memory, function))
                .flatten();
            at = match name {
                Some(name) if found.len() < DEPTH => {
                    found.push(name);
                    next - 16
                }
                Some(_) => break,
                None => at + 8,
            };
        }
        found
    }

    fn name(&mut self, memory: &File, function: u64) -> Option<String> {
        let shared = field(memory, object(function)?, self.layout.shared)?;
        if let Some(name) = self.names.get(&shared) {
            return name.clone();
        }
        let name = self.describe(memory, object(shared)?);
        if self.names.len() < NAMES_MAX {
            self.names.insert(shared, name.clone());
        }
        name
    }

    /// Returns the type of an object.
    fn type_of(&self, memory: &File, at: u64) -> Option<u64> {
        let map = object(memory::word(memory, at)?)?;
        Some(field(memory, map, self.layout.object_type)? & 0xffff)
    }

    /// Returns a small integer.
    fn number(&self, word: u64) -> Option<u64> {
        (word & TAG == 0).then_some(word >> self.layout.number_shift)
    }

    /// Names a function by what its closures share.
    fn describe(&self, memory: &File, shared: u64) -> Option<String> {
        let layout = &self.layout;
        if self.type_of(memory, shared)? != layout.shared_type {
            return None;
        }
        let named = field(memory, shared, layout.name)?;
        let script = object(field(memory, shared, layout.script)?)?;
        if self.type_of(memory, script)? != layout.script_type {
            return None;
        }
        let file = self.text(memory, field(memory, script, layout.script_name)?, NAME_MAX)?;
        let (name, start) = match object(named) {
            Some(at) if self.type_of(memory, at)? == layout.scope_type => self.scope(memory, at),
            Some(_) => (self.text(memory, named, NAME_MAX), None),
            None => (None, None),
        };
        let line = start.and_then(|start| {
            let source = field(memory, script, layout.source)?;
            self.line(memory, source, usize::try_from(start).ok()?)
        });
        Some(describe(name.as_deref(), &file, line))
    }

    /// Returns the name of a function and where it begins, from its scope
    /// (src/objects/scope-info.tq): behind its variables.
    fn scope(&self, memory: &File, scope: u64) -> (Option<String>, Option<u64>) {
        let layout = &self.layout;
        let slot = |index: u64| field(memory, scope, 8_u64.checked_add(index.checked_mul(8)?)?);
        let count = slot(layout.variables).and_then(|word| self.number(word));
        let count = count.unwrap_or_default();
        let taken = if count < INLINED {
            2 * count
        } else {
            1 + count
        };
        let mut name = None;
        let mut before = None;
        for index in 0..FIELDS {
            let Some(word) = slot(layout.first_variable + taken + index) else {
                break;
            };
            match (self.number(word), before) {
                // Begin and end stand side by side.
                (Some(end), Some(begin)) if begin < end => return (name, Some(begin)),
                (number, _) => before = number,
            }
            name = name.or_else(|| self.text(memory, word, NAME_MAX));
        }
        (name, None)
    }

    /// Returns the line of a place in a script.
    fn line(&self, memory: &File, source: u64, start: usize) -> Option<usize> {
        let text = self.bytes(memory, source, start.min(SOURCE_MAX))?;
        (text.len() == start).then(|| 1 + text.iter().filter(|byte| **byte == b'\n').count())
    }

    /// Reads a name, of printable ASCII letters as nearly all are.
    fn text(&self, memory: &File, string: u64, longest: usize) -> Option<String> {
        let bytes = self.bytes(memory, string, usize::MAX)?;
        // The end of a long path says most.
        printable(&bytes[bytes.len().saturating_sub(longest)..])
    }

    /// Reads the beginning of a string; of letters of two bytes the lower one.
    fn bytes(&self, memory: &File, string: u64, most: usize) -> Option<Vec<u8>> {
        let layout = &self.layout;
        let mut at = object(string)?;
        let mut skipped = 0_u64;
        let own = field(memory, at, layout.length)? as u32;
        let length = usize::try_from(own).ok()?.min(most).min(SOURCE_MAX);
        for _ in 0..STRINGS {
            let kind = self.type_of(memory, at)?;
            if kind >= layout.not_string {
                return None;
            }
            let representation = kind & layout.representation_mask;
            if representation == layout.thin {
                at = object(field(memory, at, layout.actual)?)?;
            } else if representation == layout.sliced {
                let offset = self.number(field(memory, at, layout.offset)?)?;
                skipped = skipped.checked_add(offset)?;
                at = object(field(memory, at, layout.parent)?)?;
            } else if representation == layout.sequential {
                let width = if kind & layout.encoding_mask == 0 {
                    2
                } else {
                    1
                };
                let letters = at.checked_add(layout.letters)?;
                let letters = letters.checked_add(skipped.checked_mul(width)?)?;
                let mut bytes = vec![0; length * width as usize];
                memory.read_exact_at(&mut bytes, letters).ok()?;
                return Some(bytes.into_iter().step_by(width as usize).collect());
            } else {
                return None;
            }
        }
        None
    }
}

/// Returns a function's name with its file and line; one of Node's own library is called so.
fn describe(name: Option<&str>, file: &str, line: Option<usize>) -> String {
    if let Some(module) = file.strip_prefix("node:") {
        let module = module.trim_start_matches("internal/").replace('/', ".");
        return format!("Node's {module}.{}", name.unwrap_or("function"));
    }
    let place = match line {
        Some(line) => format!("{}:{line}", file_name(file)),
        None => file_name(file).to_owned(),
    };
    format!("{} {place}", name.unwrap_or("function"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn engine() -> Engine {
        // As Node 20 has them.
        let layout = Layout {
            shared: 24,
            object_type: 12,
            shared_type: 262,
            name: 16,
            script: 32,
            script_type: 167,
            script_name: 16,
            source: 8,
            scope_type: 261,
            variables: 2,
            first_variable: 3,
            not_string: 128,
            representation_mask: 7,
            sequential: 0,
            sliced: 3,
            thin: 5,
            encoding_mask: 8,
            length: 12,
            letters: 16,
            parent: 16,
            offset: 24,
            actual: 16,
            number_shift: 32,
        };
        Engine {
            layout,
            has_map: false,
            names: BTreeMap::new(),
        }
    }

    #[test]
    fn functions_are_named_with_file_and_line() {
        let named = describe(Some("handle"), "file:///srv/app/server.js", Some(10));
        assert_eq!(named, "handle server.js:10");
        let of_node = describe(Some("readSync"), "node:internal/fs/utils", None);
        assert_eq!(of_node, "Node's fs.utils.readSync");
        assert_eq!(describe(None, "/a/b.js", Some(2)), "function b.js:2");
    }

    #[test]
    fn frame_on_stack_names_its_function() {
        let mut bytes = vec![0; 0x1000];
        let mut put = |at: u64, value: u64| {
            bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
        };
        // Maps of four types, a function, what closures share, a script, and three strings.
        for (at, kind) in [(0x100, 262), (0x120, 167), (0x140, 40), (0x160, 261)] {
            put(at + 8, kind << 32);
        }
        put(0x200 + 24, 0x301);
        put(0x300, 0x101);
        put(0x300 + 16, 0x401);
        put(0x300 + 32, 0x501);
        // The scope: one variable, name, begin and end.
        put(0x400, 0x161);
        put(0x400 + 24, 1 << 32);
        put(0x400 + 48, 0x601);
        put(0x400 + 56, 5 << 32);
        put(0x400 + 64, 9 << 32);
        put(0x500, 0x121);
        put(0x500 + 16, 0x701);
        put(0x500 + 8, 0x801);
        for (at, length) in [(0x600, 6_u64), (0x700, 9), (0x800, 11)] {
            put(at, 0x141);
            put(at + 8, length << 32);
        }
        bytes[0x610..][..6].copy_from_slice(b"handle");
        bytes[0x710..][..9].copy_from_slice(b"/a/app.js");
        bytes[0x810..][..11].copy_from_slice(b"a\nb\nhandle.");
        let read: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let memory = memory::file_of(&read);
        let start = 0x7f00_0000;
        let frame = [3, 0x201, 0x901, start + 64, 0x40_0000, 7, 7, 7, 7, 7];
        let stack: Vec<u8> = frame.into_iter().flat_map(u64::to_le_bytes).collect();
        let found = engine().frames(&memory, start, &stack);
        assert_eq!(found, vec!["handle app.js:3".to_owned()]);
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            read in prop::collection::vec(
                prop_oneof![(0_u64..0x800).prop_map(|word| word | 1), any::<u64>()],
                0..0x100,
            ),
            start in prop_oneof![0_u64..0x800, any::<u64>(), (u64::MAX - 0x200)..=u64::MAX],
            stack in prop::collection::vec(
                prop_oneof![(0_u64..0x800).prop_map(|word| word | 1), any::<u64>()],
                0..0x40,
            ),
        ) {
            let memory = memory::file_of(&read);
            let stack: Vec<u8> = stack.into_iter().flat_map(u64::to_le_bytes).collect();
            engine().frames(&memory, start, &stack);
        }
    }
}

//! Coroutines of CPython that wait, as those of asyncio: found among the objects that its collector of
//! garbage follows, and what each awaits on its own stack of values.
//!
//! The places of the fields are those of CPython 3.11 (Include/internal/{pycore_gc,pycore_frame}.h,
//! Include/cpython/genobject.h).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::memory::{field, words};

/// The first of the collector's generations in an interpreter's state, how many there are, and how far
/// apart (bytes).
const GENERATIONS: u64 = 672;
const COUNT: u64 = 3;
const APART: u64 = 24;
/// What the collector has before each object (bytes).
const BEFORE: u64 = 16;
/// Objects that are looked at: a larger heap takes too long.
const OBJECTS_MAX: usize = 200_000;
/// Coroutines that are read, and how deep they await one another.
const COROUTINES_MAX: usize = 32_768;
const DEPTH: usize = 32;
/// Where a coroutine has its state and its frame, and the state of one that waits (`FRAME_SUSPENDED`).
const STATE: u64 = 75;
const FRAME: u64 = 80;
const SUSPENDED: i8 = -1;
/// In a frame: its code, how many values are on its stack with its variables, and these.
const CODE: u64 = 32;
const TOP: u64 = 64;
const VALUES: u64 = 72;

/// A coroutine that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Coroutine {
    code: u64,
    /// What it awaits.
    awaits: u64,
}

/// Returns the code objects of coroutines that wait, of each that no other one awaits with those that it
/// awaits, innermost first; `None` if there are too many of them or of objects. A list that changes while it is read
/// ends there.
pub(super) fn read(memory: &File, interpreter: u64, kind: u64) -> Option<Vec<Vec<u64>>> {
    let mut found = BTreeMap::new();
    let mut left = OBJECTS_MAX;
    for generation in 0..COUNT {
        let head = interpreter.checked_add(GENERATIONS + generation * APART)?;
        let mut next = field(memory, head, 0).unwrap_or_default();
        while next != head && next != 0 {
            left = left.checked_sub(1)?;
            let Some([after, _, _, of]) = words(memory, next) else {
                break;
            };
            let object = next.wrapping_add(BEFORE);
            if of == kind
                && let Some(coroutine) = suspended(memory, object)
            {
                found.insert(object, coroutine);
            }
            // Of a part of them what they await would be missed.
            if found.len() > COROUTINES_MAX {
                return None;
            }
            next = after;
        }
    }
    let awaited: BTreeSet<u64> = found.values().map(|one| one.awaits).collect();
    let outermost = found.keys().filter(|object| !awaited.contains(object));
    Some(outermost.map(|object| chain(&found, *object)).collect())
}

/// Returns a coroutine that waits; `None` if it has not begun, runs, or has ended.
fn suspended(memory: &File, object: u64) -> Option<Coroutine> {
    let mut state = [0];
    memory
        .read_exact_at(&mut state, object.checked_add(STATE)?)
        .ok()?;
    if i8::from_le_bytes(state) != SUSPENDED {
        return None;
    }
    let frame = object.checked_add(FRAME)?;
    let top = field(memory, frame, TOP)? as u32;
    let last = VALUES.checked_add(8 * u64::from(top.checked_sub(1)?))?;
    Some(Coroutine {
        code: field(memory, frame, CODE)?,
        awaits: field(memory, frame, last)?,
    })
}

/// Returns the code of a coroutine and of those that it awaits, innermost first.
fn chain(all: &BTreeMap<u64, Coroutine>, outermost: u64) -> Vec<u64> {
    let mut chain = Vec::new();
    let mut object = outermost;
    while let Some(coroutine) = all.get(&object).filter(|_| chain.len() < DEPTH) {
        chain.push(coroutine.code);
        object = coroutine.awaits;
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory;

    const KIND: u64 = 0xc0de;

    /// Memory with an interpreter at 0 and two coroutines, of which the first awaits the second.
    fn memory_of_two() -> File {
        let mut words = vec![0; 0x800 / 8];
        let mut put = |at: u64, value: u64| words[at as usize / 8] = value;
        let heads = [0, 1, 2].map(|generation| GENERATIONS + generation * APART);
        for head in heads {
            put(head, head);
        }
        put(heads[0], 0x400);
        for (at, next, code, awaits) in
            [(0x400, 0x500, 0x11, 0x510), (0x500, heads[0], 0x22, 0x777)]
        {
            put(at, next);
            put(at + 24, KIND);
            let object = at + BEFORE;
            // The state is the fourth byte of its word.
            put(object + 72, 0xff << 24);
            put(object + FRAME + CODE, code);
            put(object + FRAME + TOP, 2);
            put(object + FRAME + VALUES + 8, awaits);
        }
        memory::file_of(&words)
    }

    #[test]
    fn awaited_coroutine_is_innermost() {
        assert_eq!(
            read(&memory_of_two(), 0, KIND),
            Some(vec![vec![0x22, 0x11]])
        );
        assert_eq!(read(&memory_of_two(), 0, KIND + 1), Some(Vec::new()));
    }

    #[test]
    fn list_without_an_end_tells_nothing() {
        let mut words = vec![0; 0x800 / 8];
        words[GENERATIONS as usize / 8] = 0x400;
        words[0x400 / 8] = 0x400;
        assert_eq!(read(&memory::file_of(&words), 0, KIND), None);
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            words in prop::collection::vec(prop_oneof![0_u64..0x800, any::<u64>()], 0..0x100),
            interpreter in prop_oneof![0_u64..0x200, any::<u64>()],
        ) {
            let memory = memory::file_of(&words);
            let kind = words.first().copied().unwrap_or_default();
            let _ = read(&memory, interpreter, kind);
        }
    }
}

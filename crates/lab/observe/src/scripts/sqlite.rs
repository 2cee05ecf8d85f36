//! The statement that SQLite executes, without its values: of a sample within its library.
//!
//! The library exports nothing that points to it. But its machine has the prepared statement
//! (`struct Vdbe`, src/vdbeInt.h) in a register or on the stack, and that has the text.

use std::cmp::Reverse;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::statement::without_values;
use crate::memory::{field, words};

/// Words of a stack that may be the prepared statement, from the stack pointer on.
const STACK_WORDS: usize = 160;
/// In which words of it the pointer to the text may be: it is behind the counters (`aCounter`), and
/// what is before depends on how the library was compiled.
const FIRST: usize = 22;
const LAST: usize = 44;
/// What is read of a text (bytes), and how a text begins (src/parse.y).
const READ_MAX: usize = 2048;
const VERBS: [&str; 10] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "REPLACE", "CREATE", "ALTER", "VACUUM",
    "PRAGMA",
];
const VERB_MAX: usize = 8;
/// Where a statement names the next one, and a connection its first (bytes; `pNext`, `pVdbe`).
const NEXT: u64 = 16;
const FIRST_STATEMENT: u64 = 8;
/// Memory is not below this.
const LEAST: u64 = 1 << 16;

/// Returns the statement among the words of a sample, its registers and its stack: of several, the
/// one that they name most often (others are what is left of calls before).
pub(super) fn read(memory: &File, registers: &[u64], stack: &[u8]) -> Option<String> {
    let stack = stack.chunks_exact(8).take(STACK_WORDS);
    let stack = stack.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    let mut times: Vec<(u64, u32)> = Vec::new();
    for word in registers.iter().copied().chain(stack) {
        if word < LEAST || !word.is_multiple_of(8) {
            continue;
        }
        match times.iter_mut().find(|(tried, _)| *tried == word) {
            Some((_, times)) => *times += 1,
            None => times.push((word, 1)),
        }
    }
    times.sort_by_key(|(_, times)| Reverse(*times));
    times
        .into_iter()
        .find_map(|(word, _)| statement_of(memory, word))
}

/// Returns the text of a prepared statement, if there is one at an address.
fn statement_of(memory: &File, at: u64) -> Option<String> {
    let fields = words::<LAST>(memory, at)?;
    if !is_listed(memory, at, fields[0], fields[1]) {
        return None;
    }
    let mut texts = fields[FIRST..].iter().filter(|field| **field >= LEAST);
    texts.find_map(|field| text(memory, *field))
}

/// Whether an object is a prepared statement, and not what happens to lie before one: what precedes
/// it in the list of its connection points to it. That is the one before it (`pPrev`, `pNext`), a
/// pointer (`ppVPrev`, since SQLite 3.39), or for the first the connection (`sqlite3.pVdbe`).
fn is_listed(memory: &File, object: u64, connection: u64, before: u64) -> bool {
    let points_to_it = |object_before, offset| field(memory, object_before, offset) == Some(object);
    points_to_it(before, 0)
        || points_to_it(before, NEXT)
        || (before == 0 && points_to_it(connection, FIRST_STATEMENT))
}

fn text(memory: &File, at: u64) -> Option<String> {
    let mut begin = [0; VERB_MAX];
    memory.read_exact_at(&mut begin, at).ok()?;
    let begin = String::from_utf8_lossy(&begin).to_ascii_uppercase();
    let is_begun = VERBS.iter().any(|verb| {
        let rest = begin.strip_prefix(verb);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    });
    if !is_begun {
        return None;
    }
    let mut bytes = vec![0; READ_MAX];
    let size = memory.read_at(&mut bytes, at).ok()?;
    let end = bytes[..size].iter().position(|byte| *byte == 0);
    let text = std::str::from_utf8(&bytes[..end.unwrap_or(size)]).ok()?;
    Some(without_values(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read as read_of;
    use crate::memory;

    const CONNECTION: usize = 0x1_0000;
    const FIRST: usize = 0x1_0100;
    const SECOND: usize = 0x1_0400;

    /// Returns a memory in which a connection has two statements, as before SQLite 3.39 or since.
    fn connection(is_new: bool) -> Vec<u64> {
        let mut read = vec![0; 0x3000];
        read[CONNECTION / 8 + 1] = FIRST as u64;
        for (object, before) in [(FIRST, 0), (SECOND, FIRST)] {
            read[object / 8] = CONNECTION as u64;
            read[object / 8 + 1] = match (is_new, before) {
                (false, before) => before as u64,
                (true, 0) => CONNECTION as u64 + 8,
                (true, before) => before as u64 + 16,
            };
        }
        read[FIRST / 8 + 2] = SECOND as u64;
        for (object, statement) in [
            (FIRST, b"insert into t values (?)\0       "),
            (SECOND, b"select * from t where id=17\0    "),
        ] {
            let at = object + 0x180;
            read[object / 8 + 30] = at as u64;
            for (index, letters) in statement.chunks(8).enumerate() {
                read[at / 8 + index] = u64::from_le_bytes(letters.try_into().unwrap());
            }
        }
        read
    }

    #[test]
    fn statement_is_found_in_old_and_new_libraries() {
        for is_new in [false, true] {
            let memory = memory::file_of(&connection(is_new));
            let first = Some("insert into t values (?)".to_owned());
            let second = Some("select * from t where id=?".to_owned());
            assert_eq!(read_of(&memory, &[7, FIRST as u64], &[]), first);
            let stack = (SECOND as u64).to_le_bytes();
            assert_eq!(read_of(&memory, &[], &stack), second);
            // What an earlier call left is named less often.
            let saved = [FIRST as u64, SECOND as u64];
            assert_eq!(read_of(&memory, &saved, &stack), second);
        }
    }

    #[test]
    fn what_lies_before_a_statement_is_none() {
        let memory = memory::file_of(&connection(true));
        for before in [SECOND - 0x20, SECOND - 0x40, SECOND + 8] {
            assert_eq!(read_of(&memory, &[before as u64], &[]), None);
        }
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            read in prop::collection::vec(any::<u64>(), 0..0x100),
            registers in prop::collection::vec(any::<u64>(), 0..8),
            stack in prop::collection::vec(any::<u8>(), 0..0x100),
        ) {
            read_of(&memory::file_of(&read), &registers, &stack);
        }
    }
}

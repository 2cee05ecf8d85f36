//! The statement that SQLite executes, without its values: of a sample within its library.
//!
//! The library exports nothing that points to it. But its machine has the prepared statement
//! (`struct Vdbe`, src/vdbeInt.h) in a register or on the stack, and that has the text.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::statement::without_values;
use crate::memory::words;

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
/// Memory is not below this.
const LEAST: u64 = 1 << 16;

/// Returns the statement among the words of a sample: its registers and its stack.
pub(super) fn read(memory: &File, registers: &[u64], stack: &[u8]) -> Option<String> {
    let stack = stack.chunks_exact(8).take(STACK_WORDS);
    let stack = stack.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    let mut tried: Vec<u64> = Vec::new();
    for word in registers.iter().copied().chain(stack) {
        if word < LEAST || !word.is_multiple_of(8) || tried.contains(&word) {
            continue;
        }
        tried.push(word);
        let found = words::<LAST>(memory, word)
            .into_iter()
            .flat_map(|fields| fields.into_iter().skip(FIRST))
            .filter(|field| *field >= LEAST)
            .find_map(|field| text(memory, field));
        if found.is_some() {
            return found;
        }
    }
    None
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

    #[test]
    fn statement_is_found_behind_its_machine() {
        let mut read = vec![0; 0x3000];
        let at = 0x1_0000 / 8;
        read.resize(at + 0x100, 0_u64);
        read[at + 30] = 0x1_0400;
        for (index, letters) in b"select * from t where id=17\0    ".chunks(8).enumerate() {
            read[0x1_0400 / 8 + index] = u64::from_le_bytes(letters.try_into().unwrap());
        }
        let memory = memory::file_of(&read);
        let expected = Some("select * from t where id=?".to_owned());
        assert_eq!(read_of(&memory, &[7, 0x1_0000], &[]), expected);
        let stack = 0x1_0000_u64.to_le_bytes();
        assert_eq!(read_of(&memory, &[], &stack), expected);
        assert_eq!(read_of(&memory, &[0x1_0008 * 8], &[]), None);
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

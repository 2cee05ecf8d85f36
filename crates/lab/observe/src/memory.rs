//! Reading the memory of a process without stopping it. What is read may be damaged or hostile:
//! addresses are taken as they are, and what is not there is `None`.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Opens a process's memory. It is not kept: each open file would take one of the few that Marvin
/// may have, and after an exec it is of the memory that is gone.
pub(crate) fn open(process: u32) -> Option<File> {
    File::open(format!("/proc/{process}/mem")).ok()
}

pub(crate) fn word(memory: &File, address: u64) -> Option<u64> {
    words(memory, address).map(|[word]| word)
}

/// Reads a field of an object: a word so many bytes behind its begin.
pub(crate) fn field(memory: &File, object: u64, offset: u64) -> Option<u64> {
    word(memory, object.checked_add(offset)?)
}

/// Reads words that lie one behind the other.
pub(crate) fn words<const COUNT: usize>(memory: &File, address: u64) -> Option<[u64; COUNT]> {
    let mut bytes = [[0; 8]; COUNT];
    memory
        .read_exact_at(bytes.as_flattened_mut(), address)
        .ok()?;
    Some(bytes.map(u64::from_le_bytes))
}

/// Returns the `struct timespec` at an address of a process's memory (ms).
pub(crate) fn timespec_ms(process: u32, address: u64) -> Option<u64> {
    let [seconds, nanoseconds] = words(&open(process)?, address)?;
    let ms = seconds
        .checked_mul(1000)?
        .checked_add(nanoseconds / 1_000_000)?;
    (ms > 0).then_some(ms)
}

/// Returns a file of words that stands for a memory.
#[cfg(test)]
pub(crate) fn file_of(words: &[u64]) -> File {
    use std::io::Write as _;

    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file
}

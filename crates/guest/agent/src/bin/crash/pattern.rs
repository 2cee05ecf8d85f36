//! What memory is filled with: zeroes, text, noise, and what looks like structures with pointers, a
//! quarter each. So a dump of it compresses about as well as one of a machine at work.

const PAGE: usize = 4096;
const TEXT: &[u8] =
    b"the quick brown fox jumps over the lazy dog, line by line, and the log goes on and on.\n";

/// Fills memory, a quarter with each pattern, in pages that differ from one another but for those
/// of zeroes.
pub(crate) fn fill(memory: &mut [u8]) {
    let pages = memory.len().div_ceil(PAGE).max(1);
    let mut noise = 0x9e37_79b9_7f4a_7c15;
    for (number, page) in memory.chunks_mut(PAGE).enumerate() {
        match number * 4 / pages {
            0 => page.fill(0),
            1 => text(page, number),
            2 => words(page, |_| next(&mut noise)),
            _ => words(page, |at| structure(at, number)),
        }
    }
}

/// Fills memory with equal pages, none of them zero.
pub(crate) fn fill_equally(memory: &mut [u8]) {
    memory.chunks_mut(PAGE).for_each(|page| text(page, 0));
}

fn text(page: &mut [u8], number: usize) {
    let line = [number.to_string().as_bytes(), b" ", TEXT].concat();
    page.chunks_mut(line.len())
        .for_each(|piece| piece.copy_from_slice(&line[..piece.len()]));
}

fn words(page: &mut [u8], mut word: impl FnMut(usize) -> u64) {
    for (at, bytes) in page.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&word(at).to_le_bytes());
    }
}

/// A word of something like an object of 64 bytes: pointers into the direct map, flags, a count and
/// much that is zero.
fn structure(at: usize, number: usize) -> u64 {
    let object = (number * PAGE + at * 8) as u64 / 64;
    match at % 8 {
        0 => 0xffff_8880_0000_0000 + object * 64,
        1 => 0xffff_8880_0000_0000 + (object ^ 0x1234) * 64,
        2 => object & 0xff,
        5 => 0xdead_0000_0000_0100,
        _ => 0,
    }
}

/// Marsaglia's xorshift: the same noise each time.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::{PAGE, fill, fill_equally};

    #[test]
    fn a_quarter_is_zero_and_no_other_page_comes_twice() {
        let mut memory = vec![1; 64 * PAGE];
        fill(&mut memory);
        let mut pages: Vec<&[u8]> = memory.chunks(PAGE).collect();
        assert!(
            pages[..16]
                .iter()
                .all(|page| page.iter().all(|byte| *byte == 0))
        );
        pages.sort();
        pages.dedup();
        assert_eq!(pages.len(), 49);
    }

    #[test]
    fn equal_pages_are_equal_and_not_zero() {
        let mut memory = vec![0; 3 * PAGE];
        fill_equally(&mut memory);
        assert!(
            memory
                .chunks(PAGE)
                .all(|page| page == &memory[..PAGE] && page.iter().any(|byte| *byte != 0))
        );
    }
}

//! LZO1X, the fast compression of makedumpfile's `-l`: an encoder, written from the kernel's
//! description of the format (`Documentation/staging/lzo.rst`). The decoder is in `lzo.rs`.
//!
//! Greedy, with one remembered position per hash of four bytes. Matches have at least four bytes
//! and are at most 16 KiB away, so only the two instructions for near and for farther matches are
//! written.

use std::ops::Range;

/// Bits of a hash, and number of remembered positions: with the page they fit a processor's first
/// cache.
const HASH_BITS: u32 = 12;
const MATCH_MIN: usize = 4;
/// Farthest match that fits a near instruction, and any.
const NEAR: usize = 2048;
const FAR: usize = 16384;
/// Longest match that fits a near instruction.
const NEAR_LENGTH: usize = 8;
/// Most literals that the first byte can announce.
const FIRST_LITERALS: usize = 238;
/// After this many positions without a match the steps become longer, so that incompressible data
/// costs little.
const PATIENCE: u32 = 6;
/// Bytes that are copied at once: moving a register is faster than a call for a few bytes.
const CHUNK: usize = 16;
/// No match begins in the last bytes, so that what is loaded of one lies in the input.
const TAIL: usize = 16;
/// The longest input: positions have 16 bits.
const INPUT_MAX: usize = 1 << 16;

/// Returns the room that any input of this size needs. A copy of four bytes or more takes three,
/// and one per 255 bytes; literals take one, and one per 255 of them; a chunk more may be written
/// ahead.
const fn room(size: usize) -> usize {
    size + size / 16 + 4 * CHUNK
}

/// The last position of each hash in a page.
pub(crate) struct Encoder {
    places: Box<[u16; 1 << HASH_BITS]>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            places: Box::new([0; 1 << HASH_BITS]),
        }
    }

    /// Encodes `input` into `output` and returns how long that is; `None` if the input is too long,
    /// or the output has less than [`room`].
    pub(crate) fn encode(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        if input.len() > INPUT_MAX || output.len() < room(input.len()) {
            return None;
        }
        // Readers unpack each page alone, so no match may lie in another one.
        self.places.fill(0);
        let limit = input.len().saturating_sub(TAIL);
        let mut stream = Stream {
            output,
            at: 0,
            begun: false,
        };
        // From 1 on: an empty place is 0, which is then a position before.
        let mut from = 0;
        let mut at = 1;
        while at < limit {
            // SAFETY: `limit` is `TAIL` bytes before the end.
            let bytes = unsafe { load::<u64>(input, at) };
            let word = bytes as u32;
            let place = &mut self.places[hash(bytes)];
            let before = usize::from(*place);
            *place = at as u16;
            // SAFETY: the place has 0 or a position that was `at` before, and that only grows.
            if unsafe { load::<u32>(input, before) } != word || at - before > FAR {
                at += 1 + ((at - from) >> PATIENCE);
                continue;
            }
            let distance = at - before;
            let end = at + MATCH_MIN + equal(input, at + MATCH_MIN, distance, limit);
            stream.literals(input, from..at);
            stream.copy(distance, end - at);
            (from, at) = (end, end);
        }
        if from < input.len() {
            stream.literals(input, from..input.len());
        }
        // The end mark, without which readers take the page for a cut one.
        stream.put(&[0x11, 0, 0]);
        Some(stream.at)
    }
}

/// Returns the place of the first five bytes: matches of four are too many, and each costs a wrong
/// prediction or two.
fn hash(bytes: u64) -> usize {
    ((bytes << 24).wrapping_mul(0x9e37_79b1_85eb_ca87) >> (64 - HASH_BITS)) as usize
}

/// Loads a number.
///
/// # Safety
/// It lies in the input.
unsafe fn load<T: Copy>(input: &[u8], at: usize) -> T {
    debug_assert!(at + size_of::<T>() <= input.len());
    // SAFETY: the caller says that it lies in the input; a number has any bytes and no alignment
    // here.
    unsafe { input.as_ptr().add(at).cast::<T>().read_unaligned() }
}

/// Returns how many bytes from a position on are equal to those at a distance before them, up to a
/// few bytes behind `limit`. The position is less than `MATCH_MIN` behind the limit, which is
/// `TAIL` bytes before the end.
fn equal(input: &[u8], from: usize, distance: usize, limit: usize) -> usize {
    let mut at = from;
    loop {
        // SAFETY: `at` is less than 4 behind the limit, so that 8 bytes from it on lie in the
        // input; the others are before them.
        let different = unsafe { load::<u64>(input, at) ^ load::<u64>(input, at - distance) };
        if different != 0 {
            return at - from + (different.trailing_zeros() / 8) as usize;
        }
        at += size_of::<u64>();
        if at >= limit {
            return at - from;
        }
    }
}

/// What is written. The output has [`room`] for its input.
struct Stream<'a> {
    output: &'a mut [u8],
    at: usize,
    /// Whether an instruction was written.
    begun: bool,
}

impl Stream<'_> {
    fn byte(&mut self, byte: u8) {
        self.ahead([byte]);
        self.at += 1;
    }

    /// Writes bytes without advancing past them.
    fn ahead<const N: usize>(&mut self, bytes: [u8; N]) {
        debug_assert!(self.at + N <= self.output.len());
        // SAFETY: `encode` checked that the output has room for all of its input, with a chunk
        // more; no byte of the input is written twice.
        unsafe {
            self.output
                .as_mut_ptr()
                .add(self.at)
                .cast::<[u8; N]>()
                .write_unaligned(bytes);
        };
    }

    fn put(&mut self, bytes: &[u8]) {
        self.output[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Writes literals. Up to three are announced by the instruction before them.
    #[inline(always)]
    fn literals(&mut self, input: &[u8], range: Range<usize>) {
        let count = range.len();
        if !self.begun && count <= FIRST_LITERALS {
            self.byte(count as u8 + 17);
        } else if count > 3 {
            self.length(0, count - 3, 15);
        } else {
            self.output[self.at - 2] |= count as u8;
        }
        self.begun = true;
        if count <= CHUNK && range.start + CHUNK <= input.len() {
            // Bytes behind the literals are overwritten by the next instruction.
            // SAFETY: the chunk lies in the input.
            self.ahead(unsafe { load::<[u8; CHUNK]>(input, range.start) });
            self.at += count;
        } else {
            self.put(&input[range]);
        }
    }

    /// Writes a copy of bytes at a distance.
    #[inline(always)]
    fn copy(&mut self, distance: usize, length: usize) {
        let far = distance - 1;
        if length <= NEAR_LENGTH && distance <= NEAR {
            // Lengths of 4, and of 5 to 8, have two forms of one pattern.
            self.byte(((length - 1) << 5 | (far & 7) << 2) as u8);
            self.byte((far >> 3) as u8);
            return;
        }
        self.length(0x20, length - 2, 31);
        let [low, high] = ((far << 2) as u16).to_le_bytes();
        self.byte(low);
        self.byte(high);
    }

    /// Writes an instruction with a length: in its own bits or, if it is too long for them, as a
    /// sum after it.
    #[inline(always)]
    fn length(&mut self, code: u8, length: usize, most: usize) {
        if length <= most {
            return self.byte(code | length as u8);
        }
        self.byte(code);
        let mut rest = length - most;
        while rest > 255 {
            self.byte(0);
            rest -= 255;
        }
        self.byte(rest as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoder, INPUT_MAX, room};
    use crate::lzo::decode;
    use proptest::prelude::{any, prop, proptest};

    fn back_and_forth(input: &[u8]) -> usize {
        let mut output = vec![0; room(input.len())];
        let size = Encoder::new().encode(input, &mut output).unwrap();
        let mut back = vec![0; input.len()];
        decode(&output[..size], &mut back).unwrap();
        assert_eq!(back, input);
        size
    }

    #[test]
    fn pages_become_smaller_and_come_back() {
        assert!(back_and_forth(&[7; 4096]) < 40);
        let text: Vec<u8> = b"struct page *page = pfn_to_page(pfn); "
            .iter()
            .copied()
            .cycle()
            .take(65536)
            .collect();
        assert!(back_and_forth(&text) < 600);
        let noise: Vec<u8> = (0_u32..4096)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert!(back_and_forth(&noise) <= 4096 + 64);
    }

    #[test]
    fn oversized_values_are_none() {
        assert_eq!(Encoder::new().encode(&[7; 4096], &mut [0; 8]), None);
        assert_eq!(
            Encoder::new().encode(&vec![7; INPUT_MAX + 1], &mut vec![0; 4 * INPUT_MAX]),
            None
        );
    }

    #[test]
    fn worst_inputs_fit_their_room() {
        // Matches of four bytes, far away, after each number of literals: what takes the most for
        // its input.
        for literals in 0..=20 {
            let mut input: Vec<u8> = (0_u32..8192)
                .flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes())
                .take(32768)
                .collect();
            let mut at = 4096;
            while at + 4 + literals < input.len() {
                input.copy_within(at - 4096..at - 4092, at);
                at += 4 + literals;
            }
            back_and_forth(&input);
        }
    }

    proptest! {
        #[test]
        fn any_input_round_trips(
            pieces in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 1..40), 1_usize..60),
                0..30,
            ),
        ) {
            let mut input: Vec<u8> = pieces
                .iter()
                .flat_map(|(bytes, times)| bytes.iter().copied().cycle().take(bytes.len() * times))
                .collect();
            input.truncate(INPUT_MAX);
            back_and_forth(&input);
        }

        #[test]
        fn few_bytes_come_back(input in prop::collection::vec(0_u8..3, 0..300)) {
            back_and_forth(&input);
        }
    }
}

//! LZO1X, the fast compression of makedumpfile's `-l`: an encoder, written from the kernel's description of the format
//! (`Documentation/staging/lzo.rst`). The decoder is in `lzo.rs`.
//!
//! Greedy, with one remembered position per hash of four bytes. Matches have at least four bytes and are at most 16 KiB
//! away, so only the two instructions for near and for farther matches are written.

/// Bits of a hash, and number of remembered positions.
const HASH_BITS: u32 = 12;
/// Shortest match.
const MATCH_MIN: usize = 4;
/// Farthest match that fits a near instruction, and any.
const NEAR: usize = 2048;
const FAR: usize = 16384;
/// Longest match that fits a near instruction.
const NEAR_LENGTH: usize = 8;
/// Most literals that the first byte can announce.
const FIRST_LITERALS: usize = 238;
/// After this many positions without a match the steps become longer, so that incompressible data costs little.
const PATIENCE: u32 = 5;

/// The last position of each hash in a page.
pub(crate) struct Encoder {
    places: Box<[u32; 1 << HASH_BITS]>,
}

impl Encoder {
    /// Makes an encoder.
    pub(crate) fn new() -> Self {
        Self { places: Box::new([0; 1 << HASH_BITS]) }
    }

    /// Encodes `input` into `output` and returns how long that is; `None` if it does not fit.
    pub(crate) fn encode(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        self.places.fill(0);
        let mut stream = Stream { output, at: 0, begun: false };
        let (mut from, mut at) = (0, 1);
        while let Some(word) = word(input, at) {
            let place = &mut self.places[(word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize];
            let before = std::mem::replace(place, at as u32) as usize;
            let is_match = before < at && at - before <= FAR && self::word(input, before) == Some(word);
            if !is_match {
                at += 1 + ((at - from) >> PATIENCE);
                continue;
            }
            let more = input[at + MATCH_MIN..].iter().zip(&input[before + MATCH_MIN..]).take_while(|(a, b)| a == b);
            let length = MATCH_MIN + more.count();
            stream.literals(&input[from..at])?;
            stream.copy(at - before, length)?;
            at += length;
            from = at;
        }
        stream.literals(&input[from..])?;
        stream.put(&[0x11, 0, 0])?;
        Some(stream.at)
    }
}

fn word(input: &[u8], at: usize) -> Option<u32> {
    input.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
}

struct Stream<'a> {
    output: &'a mut [u8],
    at: usize,
    /// Whether an instruction was written.
    begun: bool,
}

impl Stream<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.output.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    /// Writes literals. Up to three are announced by the instruction before them.
    fn literals(&mut self, bytes: &[u8]) -> Option<()> {
        match bytes.len() {
            0 => return Some(()),
            count if !self.begun && count <= FIRST_LITERALS => self.put(&[count as u8 + 17])?,
            count @ 1..=3 => *self.output.get_mut(self.at.checked_sub(2)?)? |= count as u8,
            count => self.length(0, count - 3, 15)?,
        }
        self.begun = true;
        self.put(bytes)
    }

    /// Writes a copy of bytes at a distance.
    fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        self.begun = true;
        let far = distance - 1;
        if length <= NEAR_LENGTH && distance <= NEAR {
            let code = if length <= 4 { 0x40 | (length - 3) << 5 } else { 0x80 | (length - 5) << 5 };
            return self.put(&[(code | (far & 7) << 2) as u8, (far >> 3) as u8]);
        }
        self.length(0x20, length - 2, 31)?;
        self.put(&((far << 2) as u16).to_le_bytes())
    }

    /// Writes an instruction with a length: in its own bits or, if it is too long for them, as a sum after it.
    fn length(&mut self, code: u8, length: usize, most: usize) -> Option<()> {
        if length <= most {
            return self.put(&[code | length as u8]);
        }
        self.put(&[code])?;
        let mut rest = length - most;
        while rest > 255 {
            self.put(&[0])?;
            rest -= 255;
        }
        self.put(&[rest as u8])
    }
}

#[cfg(test)]
mod tests {
    use super::Encoder;
    use crate::lzo::decode;
    use proptest::prelude::{any, prop, proptest};

    fn back_and_forth(input: &[u8]) -> usize {
        let mut output = vec![0; input.len() * 2 + 64];
        let size = Encoder::new().encode(input, &mut output).unwrap();
        let mut back = vec![0; input.len()];
        decode(&output[..size], &mut back).unwrap();
        assert_eq!(back, input);
        size
    }

    #[test]
    fn pages_become_smaller_and_come_back() {
        assert!(back_and_forth(&[7; 4096]) < 40);
        let text: Vec<u8> = b"struct page *page = pfn_to_page(pfn); ".iter().copied().cycle().take(65536).collect();
        assert!(back_and_forth(&text) < 600);
        let noise: Vec<u8> = (0_u32..4096).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert!(back_and_forth(&noise) <= 4096 + 64);
    }

    #[test]
    fn oversized_values_are_none() {
        assert_eq!(Encoder::new().encode(&[7; 4096], &mut [0; 8]), None);
    }

    proptest! {
        #[test]
        fn any_input_round_trips(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 1_usize..60), 0..30),
        ) {
            let input: Vec<u8> = pieces.iter().flat_map(|(bytes, times)| bytes.iter().copied().cycle().take(bytes.len() * times)).collect();
            back_and_forth(&input);
        }

        #[test]
        fn few_bytes_come_back(input in prop::collection::vec(0_u8..3, 0..300)) {
            back_and_forth(&input);
        }
    }
}

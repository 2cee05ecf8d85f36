//! LZO1X, the fast compression of older dumps: a decoder, written from the kernel's description of
//! the format (`Documentation/staging/lzo.rst`). The encoder is in `lzo_encoder.rs`.
//!
//! A stream is a sequence of instructions. Each copies earlier output, then up to three literal
//! bytes, counted by its lowest two bits; the meaning of an instruction below 16 depends on the
//! number of literals before it.

/// Decodes `input` into `output`, which it must fill exactly; `None` if it does not, or the stream
/// is wrong.
pub(crate) fn decode(input: &[u8], output: &mut [u8]) -> Option<()> {
    let mut stream = Stream {
        input,
        at: 0,
        output,
        done: 0,
    };
    stream.run()?;
    (stream.done == stream.output.len() && stream.at == input.len()).then_some(())
}

/// An earlier part of the output to copy.
struct Match {
    distance: usize,
    length: usize,
    literals: usize,
}

struct Stream<'a> {
    input: &'a [u8],
    at: usize,
    output: &'a mut [u8],
    done: usize,
}

/// The literals before an instruction below 16: none, one to three, or a long run.
#[derive(Clone, Copy)]
enum State {
    None,
    Few,
    Many,
}

impl Stream<'_> {
    fn run(&mut self) -> Option<()> {
        let mut state = self.first()?;
        loop {
            let code = self.byte()?;
            if code < 16 && matches!(state, State::None) {
                let length = self.length(code & 15, 15)?.checked_add(3)?;
                self.literals(length)?;
                state = State::Many;
                continue;
            }
            let Some(found) = self.instruction(code, state)? else {
                return Some(());
            };
            self.copy(&found)?;
            self.literals(found.literals)?;
            state = if found.literals == 0 {
                State::None
            } else {
                State::Few
            };
        }
    }

    /// The first byte may be a number of literals.
    fn first(&mut self) -> Option<State> {
        let code = usize::from(*self.input.first()?);
        if code < 18 {
            return Some(State::None);
        }
        self.at = 1;
        self.literals(code - 17)?;
        Some(if code - 17 < 4 {
            State::Few
        } else {
            State::Many
        })
    }

    /// Reads the rest of an instruction that is no run of literals; `None` at the end mark.
    fn instruction(&mut self, code: usize, state: State) -> Option<Option<Match>> {
        let found = match (code, state) {
            (0..16, State::Many) => {
                let distance = (self.byte()? << 2) + (code >> 2) + 2049;
                Match {
                    distance,
                    length: 3,
                    literals: code & 3,
                }
            }
            (0..16, _) => {
                let distance = (self.byte()? << 2) + (code >> 2) + 1;
                Match {
                    distance,
                    length: 2,
                    literals: code & 3,
                }
            }
            (16..32, _) => {
                let length = self.length(code & 7, 7)?.checked_add(2)?;
                let low = self.pair()?;
                let distance = 16384 + ((code & 8) << 11) + (low >> 2);
                if distance == 16384 {
                    return Some(None);
                }
                Match {
                    distance,
                    length,
                    literals: low & 3,
                }
            }
            (32..64, _) => {
                let length = self.length(code & 31, 31)?.checked_add(2)?;
                let low = self.pair()?;
                Match {
                    distance: (low >> 2) + 1,
                    length,
                    literals: low & 3,
                }
            }
            _ => {
                let (length, near) = if code < 128 {
                    (3 + (code >> 5 & 1), code >> 2 & 7)
                } else {
                    (5 + (code >> 5 & 3), code >> 2 & 7)
                };
                Match {
                    distance: (self.byte()? << 3) + near + 1,
                    length,
                    literals: code & 3,
                }
            }
        };
        Some(Some(found))
    }

    /// Returns a length: the given one or, if that is zero, the sum of the bytes up to the first
    /// that is not zero.
    fn length(&mut self, given: usize, base: usize) -> Option<usize> {
        if given > 0 {
            return Some(given);
        }
        let mut length = base;
        loop {
            let byte = self.byte()?;
            if byte > 0 {
                return length.checked_add(byte);
            }
            length = length.checked_add(255)?;
        }
    }

    fn byte(&mut self) -> Option<usize> {
        let byte = self.input.get(self.at)?;
        self.at += 1;
        Some(usize::from(*byte))
    }

    fn pair(&mut self) -> Option<usize> {
        Some(self.byte()? | self.byte()? << 8)
    }

    fn literals(&mut self, length: usize) -> Option<()> {
        let from = self.input.get(self.at..self.at.checked_add(length)?)?;
        self.output
            .get_mut(self.done..self.done.checked_add(length)?)?
            .copy_from_slice(from);
        self.at += length;
        self.done += length;
        Some(())
    }

    fn copy(&mut self, found: &Match) -> Option<()> {
        let start = self.done.checked_sub(found.distance)?;
        let end = self
            .done
            .checked_add(found.length)
            .filter(|end| *end <= self.output.len())?;
        if found.distance >= found.length {
            self.output
                .copy_within(start..start + found.length, self.done);
        } else {
            // Source and target may overlap, which repeats the bytes just written.
            for at in self.done..end {
                self.output[at] = self.output[at - found.distance];
            }
        }
        self.done = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::decode;

    fn decoded(input: &[u8], size: usize) -> Option<String> {
        let mut output = vec![0; size];
        decode(input, &mut output).map(|()| String::from_utf8(output).unwrap())
    }

    fn with_end(start: &[u8]) -> Vec<u8> {
        [start, &[17, 0, 0]].concat()
    }

    #[test]
    fn instructions_decode_as_documented() {
        // 4 literals, then 4 bytes from distance 4: 01L with L = 1, D = 3.
        assert_eq!(
            decoded(&with_end(b"\x15abcd\x6c\x00"), 8).unwrap(),
            "abcdabcd"
        );
        // One byte repeated: distance 1, 32 + length.
        assert_eq!(
            decoded(&with_end(b"\x12a\x27\x00\x00"), 10).unwrap(),
            "aaaaaaaaaa"
        );
        // A long length: 32, then zeros that count 255 each.
        assert_eq!(
            decoded(
                &with_end(b"\x12a\x20\x00\x01\x00\x00"),
                1 + 2 + 31 + 255 + 1
            )
            .unwrap(),
            "a".repeat(290)
        );
        // Two literals behind a match, and a two-byte match behind them.
        assert_eq!(
            decoded(&with_end(b"\x15abcd\x6e\x00XY\x00\x01"), 12).unwrap(),
            "abcdabcdXYbc"
        );
        // A run of 4 literals at the start by its own instruction.
        assert_eq!(decoded(&with_end(b"\x01abcd"), 4).unwrap(), "abcd");
        assert_eq!(
            decoded(&with_end(b"\x15abcd\x6c\x00"), 9),
            None,
            "too little"
        );
        assert_eq!(decoded(&with_end(b"\x15abcd\x6c\x00"), 7), None, "too much");
        assert_eq!(
            decoded(&with_end(b"\x15abcd\x6c\x01"), 8),
            None,
            "from before the start"
        );
        assert_eq!(decoded(b"\x15abcd", 4), None, "no end");
    }

    proptest! {
        #[test]
        fn no_stream_is_too_strange(input in prop::collection::vec(any::<u8>(), 0..200)) {
            decode(&input, &mut [0; 256]);
        }
    }
}

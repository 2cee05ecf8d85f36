//! What a guest prints on its serial line during a session: messages of the boot and the agent's
//! frames before and after it, and within it what the shell prints.

/// Stands around a word of the session's script: the record separator, which no text has.
const SIGN: u8 = 0x1e;
/// Longest word between two signs (bytes).
const WORD_MAX: usize = 16;

/// What the session says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signal {
    /// The shell, or what it started, printed this.
    Printed(Vec<u8>),
    /// The guest waits for a block of lines.
    More,
    /// The shell ended with this exit status.
    End(u8),
}

/// The output so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    state: State,
    /// A sign and what followed it, until it is a word or cannot be one.
    word: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    Within,
    After,
}

impl Output {
    pub(super) fn has_begun(&self) -> bool {
        self.state != State::Before
    }

    /// Takes what was printed next, in any portions.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Signal> {
        let mut signals = Vec::new();
        let mut printed = Vec::new();
        for byte in bytes {
            if self.word.is_empty() {
                if *byte == SIGN {
                    self.word.push(*byte);
                } else if self.state == State::Within {
                    printed.push(*byte);
                }
                continue;
            }
            self.word.push(*byte);
            if *byte != SIGN && self.word.len() <= WORD_MAX {
                continue;
            }
            let word = std::mem::take(&mut self.word);
            match self.take(&word) {
                Some(signal) => {
                    if !printed.is_empty() {
                        signals.push(Signal::Printed(std::mem::take(&mut printed)));
                    }
                    signals.extend(signal);
                }
                // A program's own sign; the last one may begin a word of the script.
                None if *byte == SIGN => {
                    self.print(&word[..word.len() - 1], &mut printed);
                    self.word.push(SIGN);
                }
                None => self.print(&word, &mut printed),
            }
        }
        if !printed.is_empty() {
            signals.push(Signal::Printed(printed));
        }
        signals
    }

    fn print(&self, bytes: &[u8], printed: &mut Vec<u8>) {
        if self.state == State::Within {
            printed.extend_from_slice(bytes);
        }
    }

    /// Takes a word with its signs; `None` if it is none of the script's.
    #[expect(
        clippy::option_option,
        reason = "a word without a signal is a word all the same"
    )]
    fn take(&mut self, word: &[u8]) -> Option<Option<Signal>> {
        let text = std::str::from_utf8(word).ok()?;
        let text = text.strip_prefix('\x1e')?.strip_suffix('\x1e')?;
        match (self.state, text) {
            (State::Before, "begin") => {
                self.state = State::Within;
                Some(None)
            }
            (State::Before, "more") => Some(Some(Signal::More)),
            (State::Within, _) => {
                let status = text.strip_prefix("end ")?.parse().ok()?;
                self.state = State::After;
                Some(Some(Signal::End(status)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Output, Signal};

    const SESSION: &[u8] =
        b"[ 0.1] booted\n#M1 x\n\x1emore\x1e\x1emore\x1e\x1ebegin\x1ehi\x1ethere\n\x1eend 3\x1e#M1 y\n";

    fn read(portion: usize) -> (Vec<u8>, Vec<Signal>) {
        let mut output = Output::default();
        let mut printed = Vec::new();
        let mut others = Vec::new();
        for part in SESSION.chunks(portion) {
            for signal in output.read(part) {
                match signal {
                    Signal::Printed(bytes) => printed.extend(bytes),
                    other => others.push(other),
                }
            }
        }
        (printed, others)
    }

    #[test]
    fn only_the_session_is_printed() {
        for portion in [1, 2, 3, 5, 7, 1000] {
            let (printed, others) = read(portion);
            assert_eq!(printed, b"hi\x1ethere\n", "in portions of {portion}");
            assert_eq!(others, [Signal::More, Signal::More, Signal::End(3)]);
        }
    }

    #[test]
    fn signs_of_programs_pass() {
        let mut output = Output::default();
        let text = b"a\x1e\x1e\x1e long text without an end\x1e";
        output.read(b"\x1ebegin\x1e");
        let mut signals = output.read(text);
        signals.extend(output.read(b"end 0\x1e"));
        assert_eq!(
            signals.pop(),
            Some(Signal::End(0)),
            "the end is found after a sign"
        );
        let printed: Vec<u8> = signals
            .into_iter()
            .flat_map(|signal| match signal {
                Signal::Printed(bytes) => bytes,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(printed, b"a\x1e\x1e\x1e long text without an end");
    }
}

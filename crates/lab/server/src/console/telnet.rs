//! The bytes of a console without the commands of telnet (RFC 854) between them.

use std::io::{self, Read};

const IAC: u8 = 255;
/// Commands: the begin and the end of a subnegotiation, the first of the four that name an option,
/// and the break.
const SB: u8 = 250;
const SE: u8 = 240;
const WILL: u8 = 251;
pub(super) const BREAK: [u8; 2] = [IAC, 243];

/// Where the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Text,
    Command,
    /// After a command that names an option.
    Option,
    /// In a subnegotiation, and whether after IAC.
    Parameters(bool),
}

/// Reads what a console prints. Negotiations are not answered: a terminal server goes on as it is.
#[derive(Debug)]
pub(super) struct Telnet<R> {
    from: R,
    at: At,
}

impl<R> Telnet<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from, at: At::Text }
    }

    /// Returns the byte if it is the console's.
    fn text_byte(&mut self, byte: u8) -> Option<u8> {
        let (at, text) = match (self.at, byte) {
            (At::Text, IAC) => (At::Command, None),
            (At::Text, _) => (At::Text, Some(byte)),
            (At::Command, IAC) => (At::Text, Some(IAC)),
            (At::Command, SB) => (At::Parameters(false), None),
            (At::Command, WILL..) => (At::Option, None),
            (At::Command | At::Option, _) | (At::Parameters(true), SE) => (At::Text, None),
            (At::Parameters(is_command), IAC) => (At::Parameters(!is_command), None),
            (At::Parameters(_), _) => (At::Parameters(false), None),
        };
        self.at = at;
        text
    }
}

impl<R: Read> Read for Telnet<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.from.read(to)?;
            let mut stored = 0;
            for at in 0..count {
                if let Some(byte) = self.text_byte(to[at]) {
                    to[stored] = byte;
                    stored += 1;
                }
            }
            // Only commands came: that is no end.
            if stored > 0 || count == 0 {
                return Ok(stored);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::Telnet;

    #[test]
    fn commands_are_not_recorded() {
        // WILL ECHO, DO SGA, a subnegotiation with an escaped 255, a doubled 255, NOP.
        let sent = b"\xff\xfb\x01\xff\xfd\x03a\xff\xfa\x2c\xff\xff\x07\xff\xf0b\xff\xff\xff\xf1c";
        for pieces in [1, 2, 3, sent.len()] {
            let mut text = Vec::new();
            // Each read returns one piece.
            struct Pieces<'a>(Vec<&'a [u8]>);
            impl Read for Pieces<'_> {
                fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                    if self.0.is_empty() {
                        return Ok(0);
                    }
                    let piece = self.0.remove(0);
                    to[..piece.len()].copy_from_slice(piece);
                    Ok(piece.len())
                }
            }
            Telnet::new(Pieces(sent.chunks(pieces).collect()))
                .read_to_end(&mut text)
                .unwrap();
            assert_eq!(text, b"ab\xffc", "{pieces}");
        }
    }
}

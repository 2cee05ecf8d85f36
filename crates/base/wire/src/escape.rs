//! Percent-encoding of bytes into one printable ASCII word, and back.

/// Returns the bytes as one printable word without blanks.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'%' {
            out.push(char::from(byte));
        } else {
            let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 15)]);
            out.extend(['%', digit(byte >> 4), digit(byte)]);
        }
    }
    out
}

/// Returns the bytes of an escaped word; `None` if it is no escaped word.
pub(crate) fn unescape(word: &str) -> Option<Vec<u8>> {
    let mut bytes = word.bytes();
    let mut out = Vec::with_capacity(word.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => nibble(bytes.next()?)? << 4 | nibble(bytes.next()?)?,
            plain if plain.is_ascii_graphic() => plain,
            _ => return None,
        });
    }
    Some(out)
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    proptest::proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            proptest::prop_assert_eq!(unescape(&escape(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn broken_words_are_none() {
        assert_eq!(
            (
                unescape("%"),
                unescape("%4"),
                unescape("%zz"),
                unescape("a b")
            ),
            (None, None, None, None)
        );
    }
}

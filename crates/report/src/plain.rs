//! Makes external text safe to show: words of guests and packages must not control the terminal.
//!
//! The renderers for markdown and HTML escape in addition.

/// Replaces control characters: newlines and tabs by spaces, others and those that change the writing direction by the
/// replacement character.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if harmful(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// Replaces control characters, and those that change the writing direction, in a text of several lines.
#[must_use]
pub fn printable(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(plain).collect();
    lines.join("\n")
}

/// Returns the lines of a text, each made plain, without empty ones at the ends.
pub(crate) fn plain_lines(text: &str) -> Vec<String> {
    text.trim_matches(['\n', '\r']).lines().map(plain).collect()
}

/// Control characters, and the characters of "Trojan Source" (CVE-2021-42574).
fn harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{plain, plain_lines};

    #[test]
    fn a_terminal_is_not_obeyed() {
        assert_eq!(plain("a\x1b[2Jb\nc\td"), "a\u{fffd}[2Jb c d");
        assert_eq!(plain("\u{202e}evil"), "\u{fffd}evil");
        assert_eq!(plain("größer ±"), "größer ±");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(plain_lines("\n a\r\nb\x07\n\n"), [" a", "b\u{fffd}"]);
        assert!(plain_lines("").is_empty());
    }
}

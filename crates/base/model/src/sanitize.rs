//! Makes external text safe to show: names, subjects and messages of guests, packages, git trees
//! and files must not control a terminal, a mail program or the order of letters.
//!
//! Sinks call it: standard output, standard error, mails, pages and documents. Markdown, HTML and
//! CSV escape in addition, with their own writers.

/// Makes text one safe line: spaces for line breaks and tabs, U+FFFD for each other character of
/// [`is_hostile`].
#[must_use]
pub fn sanitize_line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if is_hostile(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// Returns the lines of a text, each made sanitize_line, without empty ones at the ends.
#[must_use]
pub fn sanitize_lines(text: &str) -> Vec<String> {
    text.trim_matches(['\n', '\r'])
        .lines()
        .map(sanitize_line)
        .collect()
}

/// Makes text of several lines safe: keeps line breaks and tabs, and writes U+FFFD for each other
/// character of [`is_hostile`].
#[must_use]
pub fn sanitize_text(text: &str) -> String {
    sanitize_except(text, &[])
}

/// Does the same as [`sanitize_text`], and keeps these sequences, such as colours that Marvin writes
/// itself.
#[must_use]
pub fn sanitize_except(text: &str, allowed: &[&str]) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let sequence = allowed
            .iter()
            .find(|sequence| c == '\u{1b}' && rest.starts_with(**sequence));
        let length = match sequence {
            Some(sequence) => {
                safe.push_str(sequence);
                sequence.len()
            }
            None if rest.starts_with("\r\n") => 1,
            None => {
                let is_kept = matches!(c, '\n' | '\t') || !is_hostile(c);
                safe.push(if is_kept {
                    c
                } else {
                    char::REPLACEMENT_CHARACTER
                });
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    safe
}

/// Escapes what JSON leaves as it is: the document keeps its meaning. In JSON such characters occur
/// in strings only.
#[must_use]
pub fn escape_json(document: &str) -> String {
    if !document.chars().any(|c| c != '\n' && is_hostile(c)) {
        return document.to_owned();
    }
    let mut safe = String::with_capacity(document.len());
    for c in document.chars() {
        if c == '\n' || !is_hostile(c) {
            safe.push(c);
        } else {
            let mut units = [0; 2];
            safe.extend(
                c.encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            );
        }
    }
    safe
}

/// Returns whether a character controls a terminal or changes what a reader sees without being seen
/// itself: control characters of both sets, line separators, and those that are invisible or change
/// the writing direction ("Trojan Source", CVE-2021-42574).
#[must_use]
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{
        escape_json, is_hostile, sanitize_except, sanitize_line, sanitize_lines, sanitize_text,
    };

    #[test]
    fn a_terminal_is_not_obeyed() {
        assert_eq!(sanitize_line("a\x1b[2Jb\nc\td"), "a\u{fffd}[2Jb c d");
        assert_eq!(
            sanitize_line("\u{9b}2J\u{202e}evil\u{2028}x\u{200b}"),
            "\u{fffd}2J\u{fffd}evil\u{fffd}x\u{fffd}"
        );
        assert_eq!(sanitize_line("größer ±"), "größer ±");
    }

    #[test]
    fn lines_and_own_colours_stay() {
        assert_eq!(
            sanitize_text("a\r\nb\tc\rd\x1b[1m"),
            "a\nb\tc\u{fffd}d\u{fffd}[1m"
        );
        assert_eq!(sanitize_lines("\n a\r\nb\x07\n\n"), [" a", "b\u{fffd}"]);
        assert!(sanitize_lines("").is_empty());
        assert_eq!(
            sanitize_except("\x1b[1mx\x1b[8m\x1b[0m", &["\x1b[1m", "\x1b[0m"]),
            "\x1b[1mx\u{fffd}[8m\x1b[0m"
        );
    }

    #[test]
    fn documents_keep_their_meaning() {
        assert_eq!(
            escape_json("{\"a\":\"\u{202e}x\u{7f}\u{e0041}\"}\n"),
            "{\"a\":\"\\u202ex\\u007f\\udb40\\udc41\"}\n"
        );
    }

    proptest! {
        #[test]
        fn any_text_becomes_safe(text in any::<String>()) {
            prop_assert!(!sanitize_line(&text).chars().any(is_hostile));
            prop_assert!(
                !sanitize_text(&text)
                    .chars()
                    .any(|c| is_hostile(c) && c != '\n' && c != '\t')
            );
            prop_assert_eq!(sanitize_line(&text).chars().count(), text.chars().count());
        }
    }
}

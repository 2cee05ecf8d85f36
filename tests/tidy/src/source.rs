//! Views of Rust source for checks: without comments, without literals, without tests. Removed text
//! becomes blanks, so that line numbers stay.
//!
//! A scanner, no parser: it knows what a comment and a literal are, and counts braces.

/// The kind of a byte of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Returns the code alone: comments and literals are blank.
pub(crate) fn code(text: &str) -> String {
    view(text, &[Kind::Code])
}

/// Returns code and comments: literals are blank.
pub(crate) fn code_and_comments(text: &str) -> String {
    view(text, &[Kind::Code, Kind::Comment])
}

/// Returns production code: items under `#[cfg(test)]` are blank as well.
pub(crate) fn production(text: &str) -> String {
    let mut code = code(text).into_bytes();
    for start in test_items(&code) {
        let end = end_of_item(&code, start);
        blank(&mut code[start..end]);
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Returns the test modules of a file that are in separate files.
#[must_use]
pub fn test_modules(text: &str) -> Vec<String> {
    let code = code(text).into_bytes();
    let declared = |start: usize| {
        let item = String::from_utf8_lossy(&code[start..end_of_item(&code, start)]).into_owned();
        let (_, name) = item.strip_suffix(';')?.rsplit_once("mod ")?;
        Some(name.trim().to_owned())
    };
    test_items(&code).into_iter().filter_map(declared).collect()
}

/// Returns the positions of a word or a piece of code, as a whole: `rand::` does not match in
/// `operand::`.
pub(crate) fn occurrences(code: &str, wanted: &str) -> Vec<usize> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |&(start, found): &(usize, &str)| {
        let before =
            code[..start].chars().next_back().is_some_and(in_word) && wanted.starts_with(in_word);
        let after = code[start + found.len()..]
            .chars()
            .next()
            .is_some_and(in_word)
            && wanted.ends_with(in_word);
        !before && !after
    };
    code.match_indices(wanted)
        .filter(whole)
        .map(|(start, _)| start)
        .collect()
}

/// Returns the line of an offset, from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn view(text: &str, wanted: &[Kind]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = piece(text.as_bytes(), at);
        if !wanted.contains(&kind) {
            blank(&mut bytes[at..end]);
        }
        at = end;
    }
    // Pieces begin and end at character boundaries, so this is lossless.
    String::from_utf8_lossy(&bytes).into_owned()
}

fn blank(bytes: &mut [u8]) {
    bytes
        .iter_mut()
        .filter(|byte| **byte != b'\n')
        .for_each(|byte| *byte = b' ');
}

/// Returns the kind of the token at an offset, and its end.
fn piece(text: &[u8], at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    let in_word = at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
    let literal = |length: usize| (Kind::Literal, (at + length).min(text.len()));
    match rest {
        [b'/', b'/', ..] => (
            Kind::Comment,
            at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        ),
        [b'/', b'*', ..] => (Kind::Comment, at + block_comment(rest)),
        [b'"', ..] => literal(quoted(rest, b'"')),
        [b'\'', b'\\', ..] => literal(quoted(rest, b'\'')),
        [b'\'', first, ..] => match character(*first) {
            // Without a closing quote after one character it is a lifetime.
            length if rest.get(1 + length) == Some(&b'\'') => literal(length + 2),
            _ => (Kind::Code, at + 1),
        },
        [b'r', ..] if !in_word || matches!(text[at - 1], b'b' | b'c') => match raw_string(rest) {
            Some(length) => literal(length),
            None => (Kind::Code, at + 1),
        },
        _ => (Kind::Code, at + 1),
    }
}

/// Length of the character that begins with a byte.
fn character(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a quoted text, including both quotes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = [vec![b'"'], vec![b'#'; hashes]].concat();
    let body = &rest[2 + hashes..];
    let length = body
        .windows(end.len())
        .position(|window| window == end)
        .unwrap_or(body.len());
    Some(2 + hashes + length + end.len())
}

/// Returns where test-only items begin: at the attribute.
fn test_items(code: &[u8]) -> Vec<usize> {
    let text = String::from_utf8_lossy(code);
    let mut starts: Vec<usize> = ["#[cfg(test", "#[cfg(all(test"]
        .iter()
        .flat_map(|attribute| occurrences(&text, attribute))
        .collect();
    starts.sort_unstable();
    starts
}

/// The end of the item at an offset: after its last brace or its semicolon.
fn end_of_item(code: &[u8], start: usize) -> usize {
    let mut braces = 0_i32;
    let mut others = 0_i32;
    for (at, byte) in code.iter().enumerate().skip(start) {
        match byte {
            b'{' => braces += 1,
            b'}' => braces -= 1,
            b'(' | b'[' => others += 1,
            b')' | b']' => others -= 1,
            _ => {}
        }
        let ends = *byte == b'}' && braces == 0 || *byte == b';' && braces == 0 && others == 0;
        if ends {
            return at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::{code, code_and_comments, line_at, occurrences, production, test_modules};

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn comments_and_literals_become_equal_sized_blanks() {
        let text = "a // b\nc /* d /* e */ f */ g \"h \\\" i\" j 'k' '\\'' 'ä' r#\"l \" m\"# n br\"o\" p 'q: r\n";
        assert_eq!(
            words(&code(text)),
            ["a", "c", "g", "j", "n", "b", "p", "'q:", "r"]
        );
        assert_eq!(code(text).len(), text.len());
        assert_eq!(
            words(&code_and_comments("a // b \"c\"\n\"d\"")),
            ["a", "//", "b", "\"c\""]
        );
        assert_eq!(line_at(&code(text), text.find("/* d").unwrap()), 2);
    }

    #[test]
    fn truncated_parts_do_not_matter() {
        for text in ["\"a", "/* a", "'", "'\\", "r#\"a", "//", "r", "r#"] {
            assert_eq!(code(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn tests_are_no_production_code() {
        let text =
            "a();\n#[cfg(test)]\nmod tests { fn b() { [c; 1] } }\nd();\n#[cfg(test)]\nmod e;\nf();";
        assert_eq!(words(&production(text)), ["a();", "d();", "f();"]);
        assert_eq!(test_modules(text), ["e"]);
        assert_eq!(
            words(&production("#[cfg(testing)] a();")),
            ["#[cfg(testing)]", "a();"]
        );
    }

    #[test]
    fn words_are_found_whole() {
        assert_eq!(occurrences("operand::x rand::y", "rand::"), [11]);
        assert_eq!(occurrences("unsafe_code unsafe {", "unsafe"), [12]);
    }
}

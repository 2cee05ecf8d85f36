//! The functions of a preprocessed C file, with a hash of each one's text.
//!
//! Pure. What a function's text becomes is the compiler's: `described` asks it.

use std::collections::BTreeMap;

use crate::folder::sha256;
use crate::patches::defined_function;

/// Deepest nesting of braces that is followed.
const DEPTH_MAX: usize = 1000;
/// Characters of a hash.
pub(super) const HASH: usize = 16;

/// Returns the hash of each function that a preprocessed file defines. Lines, blanks and line
/// markers do not count. Of several functions with one name the hash covers all.
pub(super) fn function_hashes(preprocessed: &str) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    // What stands outside of functions since the last definition or declaration ended.
    let mut head = String::new();
    let mut body = String::new();
    let mut depth = 0_usize;
    let mut name = None;
    for line in preprocessed.lines().filter(|line| !line.starts_with('#')) {
        for piece in pieces(line) {
            match piece {
                "{" if depth == 0 => {
                    name = defined_function(head.trim_start());
                    body.push_str(head.trim_start());
                    body.push('{');
                    depth = 1;
                }
                "{" => {
                    depth = (depth + 1).min(DEPTH_MAX);
                    body.push('{');
                }
                "}" if depth == 1 => {
                    if let Some(name) = name.take() {
                        body.push('}');
                        texts.entry(name).or_default().push_str(&body);
                        head.clear();
                    } else {
                        // The braces of a type or a value are behind a part of a declaration.
                        head.push_str("{}");
                    }
                    body.clear();
                    depth = 0;
                }
                "}" => {
                    depth = depth.saturating_sub(1);
                    body.push('}');
                }
                ";" if depth == 0 => head.clear(),
                other => push(if depth == 0 { &mut head } else { &mut body }, other),
            }
        }
        push(if depth == 0 { &mut head } else { &mut body }, " ");
    }
    texts
        .into_iter()
        .map(|(name, text)| (name, sha256(text.as_bytes())[..HASH].to_owned()))
        .collect()
}

/// Adds a piece; of several blanks the first.
fn push(text: &mut String, piece: &str) {
    if piece != " " || !text.ends_with(' ') {
        text.push_str(piece);
    }
}

/// Splits a line into braces, semicolons, strings, and what stands between, with single blanks.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = match first {
            '{' | '}' | ';' => 1,
            '"' | '\'' => quoted(rest, first),
            _ if first.is_whitespace() => {
                let blanks = rest.len() - rest.trim_start().len();
                rest = &rest[blanks..];
                return Some(" ");
            }
            _ => rest
                .find(|c: char| matches!(c, '{' | '}' | ';' | '"' | '\'') || c.is_whitespace())
                .unwrap_or(rest.len()),
        };
        let (piece, behind) = rest.split_at(length);
        rest = behind;
        Some(piece)
    })
}

/// Returns the bytes of a string or character at the beginning of a text.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::function_hashes;

    const FILE: &str = "# 1 \"mm/memory.c\"\nstruct page { int a; };\nextern int out(int);\n\
        static inline __attribute__((always_inline)) int inner(int a)\n{\n\tif (a) { return '}'; }\n\treturn 1;\n}\n\
        int table[] = { 1, 2 };\nstatic long __do_sys_open(const char *name)\n{\n\tchar *s = \"{\\\"\";\n\treturn inner(s[0]);\n}\n\
        typeof(int) outer(struct page *p) { return p->a; }\n";

    #[test]
    fn functions_are_found_between_types_and_values() {
        let names: Vec<String> = function_hashes(FILE).into_keys().collect();
        assert_eq!(names, ["__do_sys_open", "inner", "outer"]);
    }

    #[test]
    fn only_the_changed_function_has_another_hash() {
        let before = function_hashes(FILE);
        let after = function_hashes(&FILE.replace("return 1;", "\n\n  return 2;"));
        let differing: Vec<&String> = before
            .iter()
            .filter(|(name, hash)| after.get(*name) != Some(hash))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(differing, ["inner"]);
    }

    #[test]
    fn lines_and_blanks_do_not_count() {
        let moved = FILE
            .replace("# 1 ", "# 7 ")
            .replace("\n\treturn 1;", "\n\n# 9 \"x\"\n        return   1;")
            .replace("(struct page *p) {", "(struct page *p)\n{");
        assert_eq!(function_hashes(&moved), function_hashes(FILE));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-z(){};\"'#\\\\ \n]{0,200}") {
            function_hashes(&text);
        }
    }
}

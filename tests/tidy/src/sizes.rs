//! Limits for files and traits, and the header of a file. A crate exists for a subject, so it has
//! no limit.

use crate::source::{code, line_at, occurrences};
use crate::{Finding, Rule};

/// Most lines of a file.
const LINES_MAX: usize = 800;
/// Most methods of a trait.
const METHODS_MAX: usize = 7;

const LINES: Rule = Rule {
    name: "a file has at most 800 lines",
    remedy: "split it by what its parts do; half of that is usual",
};
const TRAITS: Rule = Rule {
    name: "a trait has at most 7 methods",
    remedy: "put what only some of its users need into another trait",
};
const HEADER: Rule = Rule {
    name: "a file opens with `//!`",
    remedy: "say in its first line what it is for, and then what it deliberately does not do",
};

/// Finds a file that is too long.
#[must_use]
pub fn lines(file: &str, text: &str) -> Vec<Finding> {
    let count = text.lines().count();
    (count > LINES_MAX)
        .then(|| LINES.at(file, count, format!("{count} lines")))
        .into_iter()
        .collect()
}

/// Finds a file without a header.
#[must_use]
pub fn header(file: &str, text: &str) -> Vec<Finding> {
    let first = text.lines().next().unwrap_or_default();
    let said = first
        .strip_prefix("//!")
        .is_some_and(|rest| !rest.trim().is_empty());
    (!said)
        .then(|| HEADER.at(file, 1, format!("`{first}`")))
        .into_iter()
        .collect()
}

/// Finds traits with too many methods.
#[must_use]
pub fn traits(file: &str, text: &str) -> Vec<Finding> {
    let code = code(text);
    let wide = |start: usize| {
        let name: String = code[start..]
            .split_whitespace()
            .nth(1)?
            .chars()
            .take_while(|c| *c != ':')
            .collect();
        let count = methods(&code[start..]);
        let what = || format!("trait `{name}` has {count} methods");
        (count > METHODS_MAX).then(|| TRAITS.at(file, line_at(&code, start), what()))
    };
    occurrences(&code, "trait")
        .into_iter()
        .filter_map(wide)
        .collect()
}

/// Counts the functions directly in the first pair of braces.
fn methods(code: &str) -> usize {
    let functions = occurrences(code, "fn");
    let mut depth = 0;
    let mut count = 0;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => break,
            b'}' => depth -= 1,
            b'f' if depth == 1 && functions.binary_search(&at).is_ok() => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, METHODS_MAX, header, lines, traits};

    #[test]
    fn the_rules_name_the_limits() {
        assert!(super::LINES.name.contains(&LINES_MAX.to_string()));
        assert!(super::TRAITS.name.contains(&METHODS_MAX.to_string()));
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(lines("a.rs", &"\n".repeat(LINES_MAX)).is_empty());
        assert_eq!(
            lines("a.rs", &"\n".repeat(LINES_MAX + 1))[0].what,
            "801 lines"
        );
    }

    #[test]
    fn file_without_header_is_found() {
        assert!(header("a.rs", "//! Does a thing.\n").is_empty());
        for text in [
            "",
            "//!\n",
            "// A comment.\n",
            "\n//! Too late.\n",
            "use a;\n",
        ] {
            assert_eq!(header("a.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_wide_trait_is_found() {
        let narrow = format!(
            "trait A {{ {} }}",
            "fn a() { fn b() {} }".repeat(METHODS_MAX)
        );
        let wide = format!(
            "\npub trait B: C {{ {} }}\nfn d() {{}}",
            "fn a();".repeat(METHODS_MAX + 1)
        );
        let found = traits("a.rs", &(narrow + &wide));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].line, found[0].what.as_str()),
            (2, "trait `B` has 8 methods")
        );
    }
}

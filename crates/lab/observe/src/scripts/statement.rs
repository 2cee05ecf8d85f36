//! Statements of databases as they are shown: without their values.

/// What is shown of a statement (letters).
const SHOWN: usize = 160;

/// Returns a statement with `?` for each value (a number or a quoted text) and list of values, on one
/// line, shortened: what is stored in a database is in no answer.
pub(super) fn without_values(statement: &str) -> String {
    let letters: Vec<char> = statement.chars().collect();
    let mut shown = String::new();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        let before = shown.chars().next_back();
        let is_within_word = before.is_some_and(is_of_word);
        at = match letter {
            '\'' => {
                push_value(&mut shown);
                end_of_quoted(&letters, at)
            }
            '$' if !is_within_word && end_of_dollar_quoted(&letters, at).is_some() => {
                push_value(&mut shown);
                end_of_dollar_quoted(&letters, at).unwrap_or(letters.len())
            }
            '"' if is_value_expected(&shown) => {
                push_value(&mut shown);
                end_of_quoted(&letters, at)
            }
            '-' if letters.get(at + 1) == Some(&'-') => skip(&letters, at, |one| one != '\n'),
            '/' if letters.get(at + 1) == Some(&'*') => end_of_comment(&letters, at),
            _ if letter.is_ascii_digit() && !is_within_word => {
                push_value(&mut shown);
                skip(&letters, at, |one| is_of_word(one) || one == '.')
            }
            _ if letter.is_whitespace() || letter.is_control() => {
                if before.is_some_and(|before| before != ' ') {
                    shown.push(' ');
                }
                at + 1
            }
            _ => {
                shown.push(letter);
                at + 1
            }
        };
    }
    let shown = shown.trim().trim_end_matches(';');
    match shown.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.to_owned(),
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// Adds a value; those of a list have one in common.
fn push_value(shown: &mut String) {
    // The kind of a text stands before its quote.
    let is_kind = |rest: &str| !rest.chars().next_back().is_some_and(is_of_word);
    for kind in ["E", "e", "B", "b", "X", "x", "N", "n"] {
        if shown.strip_suffix(kind).is_some_and(is_kind) {
            shown.pop();
        }
    }
    let list = shown.trim_end_matches([' ', ',', '-', '+']);
    if list.ends_with('?') && list.len() < shown.trim_end().len() {
        shown.truncate(list.len());
    } else {
        shown.push('?');
    }
}

fn skip(letters: &[char], from: usize, is_wanted: impl Fn(char) -> bool) -> usize {
    let end = letters[from..]
        .iter()
        .position(|letter| !is_wanted(*letter));
    end.map_or(letters.len(), |end| from + end)
}

/// Returns the end of a text in quotes, in which a quote is doubled or behind a backslash.
fn end_of_quoted(letters: &[char], from: usize) -> usize {
    let quote = letters[from];
    let mut at = from + 1;
    while at < letters.len() {
        match letters[at] {
            '\\' => at += 2,
            one if one == quote && letters.get(at + 1) == Some(&quote) => at += 2,
            one if one == quote => return at + 1,
            _ => at += 1,
        }
    }
    letters.len()
}

/// Whether what comes next may be a value: SQLite takes a text in double quotes as one where it is no
/// name.
fn is_value_expected(shown: &str) -> bool {
    let before = shown.trim_end();
    let is_behind_value = before
        .strip_suffix(',')
        .is_some_and(|list| list.ends_with('?'));
    let word = before.rsplit(|one: char| !is_of_word(one)).next();
    let word = word.unwrap_or_default().to_ascii_uppercase();
    let operators = [
        "LIKE", "GLOB", "MATCH", "REGEXP", "BETWEEN", "AND", "THEN", "ELSE", "IS", "NOT",
    ];
    is_behind_value || before.ends_with(['=', '<', '>', '(', '|']) || operators.contains(&&*word)
}

/// Returns the end of a comment, in which others may be.
fn end_of_comment(letters: &[char], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while at + 1 < letters.len() {
        match [letters[at], letters[at + 1]] {
            ['/', '*'] => depth += 1,
            ['*', '/'] if depth == 1 => return at + 2,
            ['*', '/'] => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    letters.len()
}

/// Returns the end of a text between `$tag$` and the same again; `None` if there is none, as behind
/// the `$1` of a parameter.
fn end_of_dollar_quoted(letters: &[char], from: usize) -> Option<usize> {
    let is_of_tag = |one: char| one.is_alphanumeric() || one == '_';
    let end = skip(letters, from + 1, is_of_tag);
    let starts_with_digit = letters.get(from + 1).is_some_and(char::is_ascii_digit);
    if letters.get(end) != Some(&'$') || starts_with_digit {
        return None;
    }
    let tag = &letters[from..=end];
    let rest = &letters[end + 1..];
    let found = rest.windows(tag.len()).position(|window| window == tag);
    Some(found.map_or(letters.len(), |found| end + 1 + found + tag.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statement_has_no_values() {
        for (statement, shown) in [
            (
                "SELECT id FROM t1\n  WHERE id BETWEEN 100 AND 1.5e3 -- those\n AND n = $1;",
                "SELECT id FROM t1 WHERE id BETWEEN ? AND ? AND n = $1",
            ),
            (
                "ALTER ROLE app PASSWORD 'it''s \\' secret'",
                "ALTER ROLE app PASSWORD ?",
            ),
            (
                "INSERT INTO t2 VALUES (1, 'a', E'b'), (-2, $x$c ' $x$, 3)",
                "INSERT INTO t2 VALUES (?), (-?)",
            ),
            ("DO $$ SELECT secret $$", "DO ?"),
            (
                "SELECT \"id\", \"t\".\"name\" FROM t WHERE name = \"se\"\"cret\" OR name LIKE \"s%\"",
                "SELECT \"id\", \"t\".\"name\" FROM t WHERE name = ? OR name LIKE ?",
            ),
            (
                "SELECT 1 /* request='secret' /* one more */ */ + id FROM t /* unfinished",
                "SELECT ? + id FROM t",
            ),
            ("SELECT 'unfinished secret", "SELECT ?"),
        ] {
            assert_eq!(without_values(statement), shown);
        }
    }

    #[test]
    fn long_statement_is_shortened() {
        assert_eq!(without_values(&"é ".repeat(300)).chars().count(), SHOWN + 1);
    }

    proptest! {
        #[test]
        fn any_statement_hides_quoted_text(before in "[^$'-]*", secret in "[a-z]{5}") {
            let shown = without_values(&format!("{before} '{secret}-zzz'"));
            prop_assert!(!shown.contains("-zzz"));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            without_values(&text);
        }
    }
}

//! Collects the identifiers that a patch defines, adds, removes and needs, to find the patches that
//! others build on.

use std::collections::BTreeSet;

use super::functions::{Language, defined_function, is_word, without_comments};

/// Identifiers in the changes of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identifiers {
    /// Defined or declared by added lines: functions, macros, types, members, variables. A guess,
    /// for a diff has no types.
    pub defined: BTreeSet<String>,
    /// In added lines and in no other line of the file's changes.
    pub added: BTreeSet<String>,
    /// In removed lines and in no other line of the file's changes.
    pub removed: BTreeSet<String>,
    /// In the lines that the patch finds: context and removed ones.
    pub found: BTreeSet<String>,
}

/// Shortest identifier that says something.
const LENGTH_MIN: usize = 3;

const KEYWORDS: [&str; 60] = [
    "auto", "bool", "break", "case", "char", "const", "continue", "default", "define", "defined",
    "double", "elif", "else", "endif", "enum", "error", "extern", "false", "float", "for", "goto",
    "ifdef", "ifndef", "include", "inline", "int", "long", "NULL", "pragma", "register", "return",
    "s16", "s32", "s64", "short", "signed", "size_t", "sizeof", "ssize_t", "static", "struct",
    "switch", "true", "typedef", "u16", "u32", "u64", "undef", "union", "unsigned", "void",
    "volatile", "while", "let", "mut", "pub", "use", "impl", "self", "match",
];

/// Collects identifiers line by line.
#[derive(Debug, Default)]
pub(super) struct Collector {
    is_code: bool,
    defined: BTreeSet<String>,
    after: BTreeSet<String>,
    before: BTreeSet<String>,
    context: BTreeSet<String>,
}

impl Collector {
    pub(super) fn new(language: Option<Language>) -> Self {
        Self {
            is_code: language.is_some(),
            ..Self::default()
        }
    }

    /// Takes the lines of a hunk.
    pub(super) fn take_all(&mut self, lines: &[(u8, String)]) {
        for (sign, line) in lines {
            self.take(*sign, line);
        }
    }

    /// Takes a line, with the sign that it has in the diff.
    fn take(&mut self, sign: u8, line: &str) {
        if !self.is_code || is_comment(line) {
            return;
        }
        let code = without_comments(line);
        if sign == b'+' {
            self.defined.extend(definition(&code));
        }
        let set = match sign {
            b'+' => &mut self.after,
            b'-' => &mut self.before,
            _ => &mut self.context,
        };
        for word in words(&code) {
            if !set.contains(word) {
                set.insert(word.to_owned());
            }
        }
    }

    pub(super) fn finish(self) -> Identifiers {
        let known: BTreeSet<&String> = self.before.union(&self.context).collect();
        let added = self
            .after
            .iter()
            .filter(|word| !known.contains(word))
            .cloned()
            .collect();
        let removed = self
            .before
            .iter()
            .filter(|word: &&String| !self.after.contains(*word) && !self.context.contains(*word))
            .cloned()
            .collect();
        let defined = self
            .defined
            .into_iter()
            .filter(|word| !known.contains(word))
            .collect();
        let found = self.before.union(&self.context).cloned().collect();
        Identifiers {
            defined,
            added,
            removed,
            found,
        }
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("* ")
        || line.starts_with("/*") && !line.contains("*/")
        || line == "*"
        || line.starts_with("*/")
}

/// Returns the identifiers of a line without comments.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_ascii() || !is_word(c as u8))
        .filter(|word| is_name(word))
}

fn is_name(word: &str) -> bool {
    word.len() >= LENGTH_MIN
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && !KEYWORDS.contains(&word)
}

/// Returns what a line of C defines or declares.
fn definition(code: &str) -> Option<String> {
    let line = code.trim();
    let name = if let Some(rest) = line.strip_prefix("#define ") {
        first_word(rest.trim_start())
    } else if let Some(name) = defined_function(code.trim_end_matches([';', ' '])) {
        Some(name)
    } else if let Some(of_type) = line.strip_suffix('{') {
        let of_type = of_type
            .trim_end()
            .trim_start_matches("static ")
            .trim_start_matches("const ");
        let kinds = ["struct ", "union ", "enum "];
        kinds
            .iter()
            .find_map(|kind| of_type.strip_prefix(kind))
            .filter(|name| !name.contains(['=', ' ']))
            .and_then(first_word)
    } else {
        declared(line)
    };
    name.filter(|name| is_name(name))
}

fn first_word(text: &str) -> Option<String> {
    text.split(|c: char| !c.is_ascii() || !is_word(c as u8))
        .next()
        .map(str::to_owned)
}

/// Returns the variable or member of a declaration, such as `unsigned long flags;`.
fn declared(line: &str) -> Option<String> {
    let head = line.split(['=', ';', '[', ',']).next()?.trim_end();
    let is_declaration = line.ends_with([';', '{', ','])
        && !head.contains(['(', '>', '.', '-', '+', '?', ':', '&', '|']);
    let name = head.rsplit([' ', '*', '\t']).next()?;
    let of_type = head[..head.len() - name.len()].trim_end_matches([' ', '*', '\t']);
    let begins = of_type.split_whitespace().next()?;
    let is_type = ![
        "return", "goto", "else", "case", "break", "continue", "typedef",
    ]
    .contains(&begins);
    let is_words = of_type
        .bytes()
        .all(|byte| is_word(byte) || b" *\t".contains(&byte));
    (is_declaration && is_type && is_words && !name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Collector, Language, definition};

    #[test]
    fn definitions_of_c_are_found() {
        let lines = [
            ("#define FOLIO_MAX 7", Some("FOLIO_MAX")),
            ("int folio_walk(struct folio *folio);", Some("folio_walk")),
            ("struct folio_walk {", Some("folio_walk")),
            ("\tunsigned long flags;", Some("flags")),
            ("static struct folio *cached = NULL;", Some("cached")),
            ("\treturn flags;", None),
            ("\tflags = 7;", None),
            ("\tfolio->flags = 7;", None),
            ("\twalk(folio);", None),
        ];
        for (line, name) in lines {
            assert_eq!(definition(line).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn sides_of_a_change_are_told_apart() {
        let mut collector = Collector::new(Some(Language::C));
        collector.take(b' ', "\tstruct folio *folio;");
        collector.take(b'-', "\told_walk(folio); /* words */");
        collector.take(b'+', "\tnew_walk(folio, \"words\");");
        let found = collector.finish();
        assert_eq!(found.added.into_iter().collect::<Vec<_>>(), ["new_walk"]);
        assert_eq!(found.removed.into_iter().collect::<Vec<_>>(), ["old_walk"]);
        assert_eq!(
            found.found.into_iter().collect::<Vec<_>>(),
            ["folio", "old_walk"]
        );
    }
}

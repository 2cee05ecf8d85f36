//! What an option of the kernel config depends on, as its Kconfig file says
//! (`Documentation/kbuild/kconfig-language.rst`).
//!
//! Pure: the caller reads the file. Conditions around `source` lines in other files are not followed,
//! nor what excludes an option (`!X`): make has the last word.

/// Alternatives: at least one of these options is on.
pub(crate) type AnyOf = Vec<String>;

/// A block that other entries stand in.
struct Block {
    /// What its entries depend on.
    conditions: Vec<AnyOf>,
    /// A menu's own `depends on` lines follow it.
    is_menu: bool,
}

/// Returns what an option, without `CONFIG_`, depends on in a Kconfig file; `None` if the file does
/// not define it.
pub(crate) fn dependencies(text: &str, option: &str) -> Option<Vec<AnyOf>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_menu_head = false;
    let mut found: Option<Vec<AnyOf>> = None;
    let mut is_in_entry = false;
    for line in joined_lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["config" | "menuconfig", name] => {
                is_menu_head = false;
                is_in_entry = *name == option;
                if is_in_entry {
                    let around = blocks.iter().flat_map(|block| block.conditions.clone());
                    found.get_or_insert_default().extend(around);
                }
            }
            ["menu", ..] => {
                (is_menu_head, is_in_entry) = (true, false);
                blocks.push(Block {
                    conditions: Vec::new(),
                    is_menu: true,
                });
            }
            ["if", condition @ ..] => {
                (is_menu_head, is_in_entry) = (false, false);
                blocks.push(Block {
                    conditions: terms(&condition.join(" ")),
                    is_menu: false,
                });
            }
            ["endif" | "endmenu"] => {
                (is_menu_head, is_in_entry) = (false, false);
                blocks.pop();
            }
            ["choice" | "endchoice" | "comment" | "source", ..] => {
                (is_menu_head, is_in_entry) = (false, false);
            }
            ["depends", "on", condition @ ..] => {
                let conditions = terms(&condition.join(" "));
                if is_in_entry {
                    found.get_or_insert_default().extend(conditions);
                } else if let Some(menu) = blocks.last_mut().filter(|b| is_menu_head && b.is_menu) {
                    menu.conditions.extend(conditions);
                }
            }
            // The visible name's condition decides whether a config can set the option.
            _ => {}
        }
    }
    found
}

/// Returns the lines, continued ones in one, without comments and help texts' indentation.
fn joined_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let (line, continues) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| is_continued) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None => lines.push(line.to_owned()),
        }
        is_continued = continues;
    }
    lines
}

/// Returns the terms of a condition that are joined by `&&`; each has its alternatives.
fn terms(condition: &str) -> Vec<AnyOf> {
    let mut depth = 0usize;
    let mut parts = vec![String::new()];
    let mut characters = condition.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '&' if depth == 0 && characters.peek() == Some(&'&') => {
                characters.next();
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let mut found = Vec::new();
    for part in parts {
        let part = part.trim();
        let inner = part
            .strip_prefix('(')
            .and_then(|part| part.strip_suffix(')'));
        match inner {
            Some(inner) if inner.contains("&&") && !inner.contains("||") => {
                found.extend(terms(inner));
            }
            _ => {
                let alternatives: AnyOf = part
                    .split("||")
                    .filter_map(|word| option_name(word.trim_matches(['(', ')', ' '])))
                    .collect();
                if !alternatives.is_empty() {
                    found.push(alternatives);
                }
            }
        }
    }
    found
}

/// Returns the option of a term that wants it on: `X`, `X=y`, `X!=n`.
fn option_name(term: &str) -> Option<String> {
    let (name, value) = match term.split_once('=') {
        Some((name, value)) => match name.strip_suffix('!') {
            Some(name) => (name.trim(), value.trim() != "n"),
            None => (name.trim(), value.trim() == "n"),
        },
        None => (term.trim(), false),
    };
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    (is_name && !value).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{dependencies, terms};

    const TEXT: &str = "\
menu \"Networking\"
\tdepends on NET

config PLAIN
\tbool \"Plain\"
\thelp
\t  It depends on nothing.

if INET && !SMALL
config TUNED
\ttristate \"Tuned\" if EXPERT
\tdepends on PCI || ISA # either
\tdepends on (A && B) && \\
\t\tC!=n && D=y && E=n
endif

config LAST
\tbool
endmenu

config OUTSIDE
\tbool
";

    #[test]
    fn dependencies_come_from_entry_and_blocks() {
        let of = |option: &str| dependencies(TEXT, option).map(|all| format!("{all:?}"));
        assert_eq!(of("PLAIN").as_deref(), Some(r#"[["NET"]]"#));
        assert_eq!(
            of("TUNED").as_deref(),
            Some(r#"[["NET"], ["INET"], ["PCI", "ISA"], ["A"], ["B"], ["C"], ["D"]]"#)
        );
        assert_eq!(of("LAST").as_deref(), Some(r#"[["NET"]]"#));
        assert_eq!(of("OUTSIDE").as_deref(), Some("[]"));
        assert_eq!(of("NOSUCH"), None);
    }

    #[test]
    fn unreadable_conditions_give_nothing() {
        for condition in ["", "&&", "((", "!X", "$(cc-option,-x)", "\"a\" = \"b\""] {
            assert!(terms(condition).is_empty(), "{condition}");
        }
    }
}

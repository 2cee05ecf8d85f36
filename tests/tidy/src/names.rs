//! Forbidden names: a module or crate is named for its content, not for being shared or
//! miscellaneous.

use crate::source::{code, line_at, occurrences};
use crate::{Finding, Rule};

const DRAWERS: Rule = Rule {
    name: "no module, folder or crate is a drawer",
    remedy: "name it for the thing it holds, or put its parts where they are used",
};
const NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "misc", "imp",
];

/// Finds such names in the path of a file, and among the modules that it declares.
#[must_use]
pub fn drawers(file: &str, text: &str) -> Vec<Finding> {
    let is_drawer = |name: &&str| NAMES.contains(name);
    let parts = file
        .split('/')
        .map(|part| part.strip_suffix(".rs").unwrap_or(part))
        .filter(is_drawer);
    let mut found: Vec<Finding> = parts
        .map(|name| DRAWERS.at(file, 1, format!("`{name}` in its path")))
        .collect();
    let code = code(text);
    for at in occurrences(&code, "mod ") {
        let name = code[at + 4..]
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        if is_drawer(&name) {
            found.push(DRAWERS.at(file, line_at(&code, at), format!("`mod {name}`")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::drawers;

    #[test]
    fn drawers_are_found_by_path_and_by_declaration() {
        let what = |file: &str, text: &str| {
            drawers(file, text)
                .into_iter()
                .map(|found| found.what)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            what("crates/common/src/lib.rs", ""),
            ["`common` in its path"]
        );
        assert_eq!(what("crates/a/src/utils.rs", ""), ["`utils` in its path"]);
        assert_eq!(
            what("a.rs", "// mod misc\nmod implement;\npub mod helpers {}\n"),
            ["`mod helpers`"]
        );
        assert!(what("crates/a/src/commonwealth.rs", "fn utils() {}").is_empty());
    }
}

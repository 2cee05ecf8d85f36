//! Absolute paths of the machine on which a file was written.

use crate::source::line_at;
use crate::{Finding, Rule};

const PATHS: Rule = Rule {
    name: "no path of a developer's machine in the tree",
    remedy: "take it from the environment, from an argument or from `tempfile`; in an example, take a path that says nothing",
};
const FOLDERS: &[&str] = &["tmp/", "work/", "farm/", "root/"];

/// Finds absolute paths into directories that only exist, or only mean something, on that machine.
#[must_use]
pub fn machine_paths(file: &str, text: &str) -> Vec<Finding> {
    let begins = |at: usize| {
        let before = text.as_bytes()[..at].last();
        !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.$-".contains(byte))
    };
    let named = |at: usize| {
        FOLDERS
            .iter()
            .find(|folder| text[at + 1..].starts_with(**folder))
    };
    let slashes = text
        .match_indices('/')
        .map(|(at, _)| at)
        .filter(|at| begins(*at));
    let found = slashes
        .filter_map(|at| Some(PATHS.at(file, line_at(text, at), format!("`/{}`", named(at)?))));
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS, machine_paths};

    #[test]
    fn paths_are_found_where_they_begin() {
        for folder in FOLDERS {
            for before in ["", " ", "\"", "(", "=", "path:", "\n"] {
                assert_eq!(
                    machine_paths("a", &format!("{before}/{folder}x")).len(),
                    1,
                    "{before}/{folder}"
                );
            }
            for before in ["a", "..", "$HOME", "shared-", "var_"] {
                assert!(
                    machine_paths("a", &format!("{before}/{folder}x")).is_empty(),
                    "{before}/{folder}"
                );
            }
        }
        assert!(machine_paths("a", "/templates/ /usr/ /worker/").is_empty());
        assert_eq!(
            machine_paths("a", &format!("\n /{}", FOLDERS[0]))[0].line,
            2
        );
    }
}

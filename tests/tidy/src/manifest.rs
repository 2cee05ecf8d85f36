//! The root manifest: each dependency is on one line with its reason; and the lock file: the number
//! of packages.

use crate::{Finding, Rule};

const REASONS: Rule = Rule {
    name: "each dependency of the workspace has its reason behind it, on its line",
    remedy: "write `name = \"version\" # what it is for`; what has no good reason is not worth having",
};
/// Most packages in the lock file that others made: those with a source.
const PACKAGES_MAX: usize = 247;
const PACKAGES: Rule = Rule {
    name: "the lock file has at most 247 packages of others",
    remedy: "look at `cargo tree` for what brings them: unused features, two versions of one, a package held back",
};
const TABLE: &str = "[workspace.dependencies]";
const SUBTABLE: &str = "[workspace.dependencies.";

/// Finds dependencies without a reason. Crates of the workspace need none.
#[must_use]
pub fn reasons(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line.starts_with('[') {
            inside = line == TABLE;
        }
        let name = line
            .split_once('=')
            .map(|(name, _)| name.trim())
            .filter(|name| is_name(name));
        let ours = line.contains("path =");
        if line.starts_with(SUBTABLE) {
            found.push(REASONS.at(file, number + 1, format!("`{line}`")));
        } else if let Some(name) = name
            && inside
            && !ours
            && comment(line).is_empty()
        {
            found.push(REASONS.at(file, number + 1, format!("`{name}` without a reason")));
        }
    }
    found
}

/// Finds a lock file with too many packages.
#[must_use]
pub fn packages(file: &str, text: &str) -> Vec<Finding> {
    let count = text
        .lines()
        .filter(|line| line.starts_with("source = "))
        .count();
    (count > PACKAGES_MAX)
        .then(|| PACKAGES.at(file, 1, format!("{count} packages")))
        .into_iter()
        .collect()
}

/// Returns whether a line is a key of a table, not a comment or a part of a list.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Returns the comment after `#`, outside quotes.
fn comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return line[at + 1..].trim(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::{PACKAGES, PACKAGES_MAX, TABLE, packages, reasons};

    #[test]
    fn too_many_packages_are_found() {
        assert!(PACKAGES.name.contains(&PACKAGES_MAX.to_string()));
        let ours = "[[package]]\nname = \"a\"\n";
        let other = "[[package]]\nname = \"b\"\nsource = \"registry\"\n";
        let lock = |others: usize| ours.repeat(40) + &other.repeat(others);
        assert!(packages("Cargo.lock", &lock(PACKAGES_MAX)).is_empty());
        assert_eq!(
            packages("Cargo.lock", &lock(PACKAGES_MAX + 1))[0].what,
            format!("{} packages", PACKAGES_MAX + 1)
        );
    }

    #[test]
    fn dependencies_without_a_reason_are_found() {
        let text = format!(
            "[package]\nx = 1\n{TABLE}\nours = {{ path = \"crates/ours\" }}\n# a = 1\ngood = \"1\" # why\nbad = \"1\"\n\
             hash = {{ git = \"a#b\" }}\nempty = \"1\" #\n[workspace.dependencies.long]\nversion = \"1\"\n[other]\ny = 1\n"
        );
        let found: Vec<_> = reasons("Cargo.toml", &text)
            .into_iter()
            .map(|f| format!("{} {}", f.line, f.what))
            .collect();
        let reasons = |name: &str, line: u32| format!("{line} `{name}` without a reason");
        let all = [
            reasons("bad", 7),
            reasons("hash", 8),
            reasons("empty", 9),
            "10 `[workspace.dependencies.long]`".into(),
        ];
        assert_eq!(found, all);
    }
}

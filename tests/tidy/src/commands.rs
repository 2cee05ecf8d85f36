//! Commands of the program: each stands alone, and nothing below them knows them.

use crate::source::{line_at, occurrences, production};
use crate::{Finding, Rule};

const APART: Rule = Rule {
    name: "no command of `marvin` uses another, and no module below the commands uses one",
    remedy: "move what both need down: to `options`, `select`, `measure`, `servers`, `queue`, `session` or `views`",
};
const SOURCE: &str = "crates/apps/marvin/src/";
/// The command line, which starts the commands.
const ABOVE: &str = "cli.rs";

/// Finds uses of a command of `marvin` outside the command's own file or folder.
#[must_use]
pub fn command_uses(file: &str, text: &str) -> Vec<Finding> {
    let Some(path) = file.strip_prefix(SOURCE).filter(|path| *path != ABOVE) else {
        return Vec::new();
    };
    let code = production(text);
    let inside = path.strip_prefix("commands/");
    let own = inside.map(own_command);
    let mut found = Vec::new();
    for at in occurrences(&code, "commands::") {
        let used = names_at(&code[at + "commands::".len()..]);
        if used.iter().any(|name| Some(*name) != own) {
            found.push(at);
        }
    }
    if let Some(inside) = inside {
        // The parent of `X.rs` and of `X/mod.rs` has all commands, that of `X/part.rs` has not.
        let is_part = inside.contains('/') && !inside.ends_with("/mod.rs");
        let parent = if is_part { "super::super::" } else { "super::" };
        found.extend(occurrences(&code, parent));
    }
    found
        .into_iter()
        .map(|at| {
            let line = code[at..].lines().next().unwrap_or_default();
            APART.at(file, line_at(&code, at), format!("`{line}`"))
        })
        .collect()
}

/// Returns the command of a file in `commands/`: its name, or its folder's.
fn own_command(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Returns the names that a path goes on with: one, or those in braces.
fn names_at(text: &str) -> Vec<&str> {
    let list = match text.strip_prefix('{') {
        Some(inner) => inner.split('}').next().unwrap_or_default(),
        None => text,
    };
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let first_word = |part| {
        let part: &str = str::trim(part);
        &part[..part.find(|letter| !is_word(letter)).unwrap_or(part.len())]
    };
    if text.starts_with('{') {
        list.split(',')
            .map(first_word)
            .filter(|name| !name.is_empty())
            .collect()
    } else {
        vec![first_word(list)]
    }
}

#[cfg(test)]
mod tests {
    use super::command_uses;

    fn count(path: &str, text: &str) -> usize {
        command_uses(&format!("crates/apps/marvin/src/{path}"), text).len()
    }

    #[test]
    fn uses_of_other_commands_are_found() {
        for (path, text) in [
            ("commands/run.rs", "use super::compare::now;"),
            ("commands/run.rs", "use crate::commands::compare::now;"),
            ("commands/run.rs", "fn a() { super::compare::now() }"),
            ("commands/run.rs", "use crate::commands::{run, compare};"),
            ("commands/bisect/mod.rs", "use super::compare;"),
            ("commands/bisect/plan.rs", "use super::super::compare;"),
            ("select/runs.rs", "use crate::commands::show::find_run;"),
        ] {
            assert_eq!(count(path, text), 1, "{path}: {text}");
        }
    }

    #[test]
    fn parts_of_a_command_may_use_each_other() {
        for (path, text) in [
            ("commands/bisect/plan.rs", "use super::BisectArguments;"),
            ("commands/bisect/mod.rs", "use self::plan::plan;"),
            ("commands/bisect/plan.rs", "use crate::commands::bisect::a;"),
            (
                "commands/run.rs",
                "#[cfg(test)]\nmod tests { use super::run; }",
            ),
            ("cli.rs", "use crate::commands::{compare, run};"),
        ] {
            assert_eq!(count(path, text), 0, "{path}: {text}");
        }
    }
}

//! The commits between two kernels that touch a function: hypotheses for a bisection.

use std::path::Path;

use model::{Build, KernelName, sanitize_line};

use super::git::git;

/// How long git may look: the history of a file of the kernel takes it seconds.
const DEADLINE_S: u64 = 60;

/// Returns the commit of a build in a tree: its own, or the tag of its version, or that of the
/// release that it is a stable one of; `None` if the tree has none of them.
#[must_use]
pub fn revision_of(tree: &Path, build: &Build) -> Option<String> {
    let version = &build.version;
    let release: Vec<&str> = version.split('.').take(2).collect();
    let names = match &build.name {
        KernelName::Git(revision) => vec![revision.clone()],
        _ => vec![format!("v{version}"), format!("v{}", release.join("."))],
    };
    names.into_iter().find(|name: &String| {
        ask(
            tree,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("{name}^{{commit}}"),
            ],
        )
        .is_some()
    })
}

/// Returns the commits after `base` up to `new` that touch a function, newest first, as abbreviated
/// hash and subject: by the function's lines, in the file that defines it on either side. Empty if
/// no file does, or git takes too long.
#[must_use]
pub fn commits_touching(tree: &Path, base: &str, new: &str, function: &str) -> Vec<String> {
    let pattern = format!("^[a-z_].*\\b{function}(");
    let found = [new, base].into_iter().find_map(|revision| {
        let text = ask(
            tree,
            &["grep", "-l", "-G", "-e", &pattern, revision, "--", "*.c"],
        )?;
        text.lines()
            .next()?
            .split_once(':')
            .map(|(_, file)| file.to_owned())
    });
    let Some(file) = found else { return Vec::new() };
    let lines = format!("-L:{function}:{file}");
    let range = format!("{base}..{new}");
    let arguments = [
        "log",
        "--no-patch",
        "--no-ext-diff",
        "--no-textconv",
        "--format=%h %s",
        &lines,
        &range,
    ];
    let text = ask(tree, &arguments).unwrap_or_default();
    text.lines()
        .map(sanitize_line)
        .filter(|line| !line.is_empty())
        .collect()
}

/// Returns what git prints; `None` if it failed.
fn ask(tree: &Path, arguments: &[&str]) -> Option<String> {
    let ended = git(tree)
        .args(arguments)
        .deadline_s(DEADLINE_S)
        .end()
        .ok()?;
    (ended.code == Some(0)).then(|| ended.text().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::git::run_git;

    #[test]
    fn commits_of_a_function_are_found() {
        let tree = tempfile::tempdir().unwrap();
        let commit = |body: &str, other: &str, subject: &str| {
            let functions = [("other(void)", other), ("walk(int a)", body)];
            let text: String = functions
                .map(|(head, value)| format!("static int {head}\n{{\n\treturn {value};\n}}\n\n"))
                .concat();
            std::fs::write(tree.path().join("mm.c"), text).unwrap();
            run_git(tree.path(), &["add", "."]);
            run_git(tree.path(), &["commit", "-q", "-m", subject]);
        };
        run_git(tree.path(), &["init", "-q"]);
        commit("a", "1", "first");
        run_git(tree.path(), &["tag", "v6.1"]);
        commit("a + 1", "1", "mm: walk further");
        commit("a + 1", "2", "mm: another");
        run_git(tree.path(), &["tag", "v6.12"]);
        let found = commits_touching(tree.path(), "v6.1", "v6.12", "walk");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(" mm: walk further"), "{found:?}");
        assert!(commits_touching(tree.path(), "v6.1", "v6.12", "gone").is_empty());
    }
}

//! Paths and tests in documents: each file and each test that a document names is there.
//!
//! A path is text in backquotes with a slash that begins at a folder of the tree or at a crate's
//! name (`store/src/queue.rs` is in `crates/lab/store`), or has `src` or `tests` second. Links are
//! not looked at: they are the forge's. Tests are what stands in backquotes in a table's last column
//! if its head is `test`.

use std::collections::BTreeSet;

use crate::{File, Finding, Rule};

const PATHS: Rule = Rule {
    name: "each path that a document names exists",
    remedy: "name the file that has it now, or take the sentence out",
};
const TESTS: Rule = Rule {
    name: "each test that a document names exists",
    remedy: "name the test that shows it now, or take the row out",
};
/// Folders of the root in which documents name files.
const FOLDERS: &[&str] = &[
    "benches/", "crates/", "docs/", "scripts/", "tests/", ".github/", ".ci/",
];

/// Finds paths in documents that no file has. `files` is the whole tree.
#[must_use]
pub fn dead_paths(files: &[File]) -> Vec<Finding> {
    let mut known = BTreeSet::new();
    for file in files {
        for path in [Some(file.path.as_str()), below_wing(&file.path)] {
            let mut path = path.unwrap_or_default();
            while !path.is_empty() {
                known.insert(path);
                path = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            }
        }
    }
    let crates: BTreeSet<&str> = known
        .iter()
        .filter_map(|path| Some(path.split_once("/src/")?.0))
        .filter(|name| !name.contains('/'))
        .collect();
    let mut found = Vec::new();
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    for file in documents.filter(|file| file.path != "CHANGELOG.md") {
        for (number, line) in file.text.lines().enumerate() {
            for path in line.split('`').skip(1).step_by(2) {
                let path = path.strip_suffix('/').unwrap_or(path);
                let in_folder = FOLDERS.iter().any(|folder| path.starts_with(folder));
                let in_crate = path.split_once('/').is_some_and(|(name, rest)| {
                    crates.contains(name) || rest.starts_with("src/") || rest.starts_with("tests/")
                });
                let is_pattern =
                    path.contains(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c)));
                let is_upper = path.chars().any(|c| c.is_ascii_uppercase());
                if (in_folder || in_crate) && !is_pattern && !is_upper && !known.contains(path) {
                    found.push(PATHS.at(&file.path, number + 1, format!("`{path}`")));
                }
            }
        }
    }
    found
}

/// Finds tests in tables of documents that no source has. `files` is the whole tree.
#[must_use]
pub fn dead_tests(files: &[File]) -> Vec<Finding> {
    let sources = || files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut is_listing = false;
        for (number, line) in file.text.lines().enumerate() {
            let last = line.trim_end_matches([' ', '|']).rsplit('|').next();
            match last.map(str::trim).filter(|_| line.starts_with('|')) {
                None => is_listing = false,
                Some("test") => is_listing = true,
                Some(cell) if is_listing => {
                    for name in cell.split('`').skip(1).step_by(2) {
                        let head = format!("fn {name}(");
                        let is_path = name.contains('/');
                        if !is_path && !sources().any(|source| source.text.contains(&head)) {
                            found.push(TESTS.at(&file.path, number + 1, format!("`{name}`")));
                        }
                    }
                }
                Some(_) => {}
            }
        }
    }
    found
}

/// Returns a path without `crates/WING/`.
fn below_wing(path: &str) -> Option<&str> {
    Some(path.strip_prefix("crates/")?.split_once('/')?.1)
}

#[cfg(test)]
mod tests {
    use super::{dead_paths, dead_tests};
    use crate::File;

    #[test]
    fn tests_of_no_source_are_found() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let text =
            "| what | test |\n|---|---|\n| a | `a_is`, `b_is`, `c/d.rs` |\n\n| a | `c_is` |\n";
        let files = [file("src/a.rs", "fn a_is() {}\n"), file("docs/a.md", text)];
        let found = dead_tests(&files);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, &*found[0].what), (3, "`b_is`"));
    }

    #[test]
    fn paths_of_no_file_are_found() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let text = "`store/src/a.rs`, `crates/lab/store/src/`, `store/src`, `tests/x.rs`,\n\
                    `scripts/gone.sh`, `crates/store/src/a.rs`, `tests/NAME.rs`, `other/src/a.rs`,\n\
                    `store/src/b.rs`, `tests/*/a.rs`, `scripts/a b`\n";
        let files = [
            file("crates/lab/store/src/a.rs", ""),
            file("tests/x.rs", ""),
            file("docs/a.md", text),
        ];
        let found: Vec<String> = dead_paths(&files)
            .into_iter()
            .map(|found| format!("{}:{} {}", found.file, found.line, found.what))
            .collect();
        assert_eq!(
            found,
            [
                "docs/a.md:2 `scripts/gone.sh`",
                "docs/a.md:2 `crates/store/src/a.rs`",
                "docs/a.md:2 `other/src/a.rs`",
                "docs/a.md:3 `store/src/b.rs`"
            ]
        );
    }
}

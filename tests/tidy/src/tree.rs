//! The files of the tree: those that git tracks or would track. No build products.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test_modules;

/// A file of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path from the root.
    pub path: String,
    /// Its content; bytes that are no text are replaced.
    pub text: String,
}

impl File {
    /// Returns whether it is Rust source.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the crate in whose `src` it is: the name in `crates/WING/NAME/src/`.
    #[must_use]
    pub fn source_crate(&self) -> Option<&str> {
        let (_wing, inside) = self.path.strip_prefix("crates/")?.split_once('/')?;
        let (name, rest) = inside.split_once('/')?;
        rest.starts_with("src/").then_some(name)
    }
}

/// All files of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// In the order of their paths.
    pub files: Vec<File>,
}

/// Returns the root of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .unwrap_or_default()
}

impl Tree {
    /// Reads the tree.
    ///
    /// # Errors
    /// If git is missing, the tree is not one of git's, or a file cannot be read.
    pub fn read() -> Result<Self, Box<dyn Error>> {
        let root = root();
        let mut git = Command::new("git");
        // The gate may run as root in another user's clone.
        git.arg("-c")
            .arg(format!("safe.directory={}", root.display()))
            .current_dir(&root);
        let output = git
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .output()?;
        if !output.status.success() {
            return Err(format!(
                "git ls-files: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )
            .into());
        }
        let names = String::from_utf8(output.stdout)?;
        let paths: BTreeSet<&str> = names
            .split('\0')
            .filter(|name| root.join(name).is_file())
            .collect();
        let read = |path: &str| {
            let bytes =
                std::fs::read(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
            Ok(File {
                path: path.to_owned(),
                text: String::from_utf8_lossy(&bytes).into_owned(),
            })
        };
        Ok(Self {
            files: paths.into_iter().map(read).collect::<Result<_, String>>()?,
        })
    }

    /// Returns the Rust source.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Returns a crate's production source: the files in its `src`, without the files of its tests.
    #[must_use]
    pub fn production(&self, name: &str) -> Vec<&File> {
        let all: Vec<&File> = self
            .rust()
            .filter(|file| file.source_crate() == Some(name))
            .collect();
        let tests: Vec<String> = all.iter().flat_map(|file| test_files(file)).collect();
        all.into_iter()
            .filter(|file| !tests.iter().any(|prefix| file.path.starts_with(prefix)))
            .collect()
    }
}

/// The path prefixes of a file's test modules.
fn test_files(file: &File) -> Vec<String> {
    let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let inside = if matches!(name, "lib" | "main" | "mod") {
        folder
    } else {
        stem
    };
    let both = |module: String| {
        [
            format!("{inside}/{module}.rs"),
            format!("{inside}/{module}/"),
        ]
    };
    test_modules(&file.text)
        .into_iter()
        .flat_map(both)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{File, Tree};

    #[test]
    fn files_of_tests_are_no_production_code() {
        let file = |path: &str, text: &str| File {
            path: format!("crates/base/a/{path}"),
            text: text.to_owned(),
        };
        let files = vec![
            file("src/lib.rs", "mod b;\n#[cfg(test)]\nmod testing;"),
            file("src/testing.rs", ""),
            file("src/b.rs", "#[cfg(test)]\npub(crate) mod tests;"),
            file("src/b/tests.rs", ""),
            file("src/b/testing.rs", ""),
            file("tests/c.rs", ""),
            file("src/d.txt", ""),
        ];
        let tree = Tree { files };
        let paths: Vec<&str> = tree
            .production("a")
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(
            paths,
            [
                "crates/base/a/src/lib.rs",
                "crates/base/a/src/b.rs",
                "crates/base/a/src/b/testing.rs"
            ]
        );
        assert!(tree.production("b").is_empty());
    }
}

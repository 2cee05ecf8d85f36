//! Describes a path that does not exist: the first part that is missing, and a similar name.

use std::path::{Path, PathBuf};

use super::did_you_mean;

/// Most names that a directory is searched for a similar one.
const NAMES_MAX: usize = 10_000;

/// Returns what is missing of a path, and where; `None` if it exists.
pub(crate) fn describe_missing(path: &Path) -> Option<String> {
    if path.exists() {
        return None;
    }
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = whole.as_path();
    let mut folder = missing.parent()?;
    while !folder.exists() {
        missing = folder;
        folder = missing.parent()?;
    }
    let name = missing.file_name()?.to_string_lossy().into_owned();
    if !folder.is_dir() {
        return Some(format!("{} is a file, not a directory", folder.display()));
    }
    if missing.is_symlink() {
        let target = std::fs::read_link(missing).unwrap_or_else(|_| PathBuf::from("?"));
        return Some(format!(
            "{} is a link to {}, which does not exist",
            missing.display(),
            target.display()
        ));
    }
    if let Err(error) = std::fs::read_dir(folder) {
        return Some(format!("cannot read {}: {error}", folder.display()));
    }
    let names = names_in(folder);
    let guess = did_you_mean(names.iter().map(String::as_str), &name);
    Some(format!(
        "there is no `{name}` in {}{guess}",
        folder.display()
    ))
}

/// Returns the names in a directory, sorted.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(NAMES_MAX)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::describe_missing;

    #[test]
    fn first_missing_part_is_named() {
        let top = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(top.path()).unwrap();
        fs::create_dir(top.join("boot")).unwrap();
        fs::write(top.join("boot/vmlinuz-6.1.0-42-amd64"), "").unwrap();
        std::os::unix::fs::symlink("gone", top.join("vmlinuz")).unwrap();
        let describe = |path: &str| {
            describe_missing(&top.join(path))
                .map(|text| text.replace(&top.display().to_string(), "TOP"))
        };
        assert_eq!(describe("boot"), None);
        let texts = [
            "boot/vmlinuz-6.1.0-41-amd64",
            "bot/vmlinuz",
            "boot/x",
            "boot/vmlinuz-6.1.0-42-amd64/x",
            "vmlinuz",
        ]
        .map(|path| describe(path).unwrap())
        .join("\n");
        insta::assert_snapshot!(texts, @"
        there is no `vmlinuz-6.1.0-41-amd64` in TOP/boot (did you mean `vmlinuz-6.1.0-42-amd64`?)
        there is no `bot` in TOP (did you mean `boot`?)
        there is no `x` in TOP/boot
        TOP/boot/vmlinuz-6.1.0-42-amd64 is a file, not a directory
        TOP/vmlinuz is a link to gone, which does not exist
        ");
    }
}

//! Parses kernel names. A name without a source is an existing file or directory or, with a kernel
//! tree, a revision.

use std::path::{Component, Path};

use model::{KernelName, KernelNameError};

use super::paths::{describe_missing, names_in};
use super::{enclosing_tree, is_kernel_source};
use crate::exit::WrongInput;

/// Fewest digits of a commit that git prints.
const COMMIT_DIGITS: usize = 7;
/// Most images of a directory in a message.
const IMAGES_SHOWN: usize = 3;
/// What the files of images begin with.
const IMAGES: [&str; 3] = ["vmlinuz", "vmlinux", "bzImage"];

/// Parses a kernel's name, for commands without --tree.
pub(crate) fn kernel_name(text: &str) -> anyhow::Result<KernelName> {
    kernel_name_in(text, None)
}

/// Parses a kernel's name; without a source, it may be a revision of the tree that --tree names or
/// that contains the current directory.
pub(crate) fn kernel_name_in(text: &str, tree: Option<&Path>) -> anyhow::Result<KernelName> {
    let name = match text.parse::<KernelName>() {
        Ok(name) => name,
        Err(error @ KernelNameError::Source(_)) => match bare(text, tree)? {
            Some(name) => name,
            None => return Err(WrongInput(error.to_string()).into()),
        },
        Err(error) => return Err(WrongInput(error.to_string()).into()),
    };
    check_path(&name)?;
    Ok(name)
}

/// Errors if the file or directory of a name does not exist.
fn check_path(name: &KernelName) -> Result<(), WrongInput> {
    let path = match name.source() {
        KernelName::Path(path) | KernelName::Tree(path) => path,
        KernelName::Patch { file, .. } => file,
        _ => return Ok(()),
    };
    match describe_missing(path) {
        Some(missing) => Err(WrongInput(format!(
            "cannot get the kernel {name}: {missing}"
        ))),
        None => Ok(()),
    }
}

/// Returns the kernel of a name without a source; `None` if it is none.
fn bare(text: &str, tree: Option<&Path>) -> Result<Option<KernelName>, WrongInput> {
    let path = Path::new(text);
    if path.is_file() {
        return Ok(Some(KernelName::Path(path.to_owned())));
    }
    if path.is_dir() {
        return directory(path).map(Some);
    }
    if is_version(text) {
        return Err(WrongInput(format!(
            "`{text}` has no source: did you mean deb:{text}?"
        )));
    }
    let has_tree = tree.is_some() || enclosing_tree().is_some();
    if !has_tree && is_revision(text) {
        return Err(WrongInput(without_tree(text)));
    }
    if is_path(path) || (!has_tree && text.contains('/') && !text.contains(':')) {
        return Err(WrongInput(format!(
            "`{text}` names no kernel: {}",
            describe_missing(path).unwrap_or_else(|| "it is no regular file".to_owned())
        )));
    }
    if !has_tree {
        return Ok(None);
    }
    format!("git:{text}")
        .parse()
        .map(Some)
        .map_err(|error: KernelNameError| WrongInput(error.to_string()))
}

/// Returns whether a text is a path more likely than a revision such as `origin/master`.
fn is_path(path: &Path) -> bool {
    let begins_as_path = matches!(
        path.components().next(),
        Some(Component::RootDir | Component::CurDir | Component::ParentDir)
    );
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    begins_as_path || folder.is_some_and(Path::is_dir)
}

/// Returns whether Debian may have a package of this version.
fn is_version(text: &str) -> bool {
    format!("deb:{text}").parse::<KernelName>().is_ok()
}

/// Returns whether a text looks like a revision of git: a tag, HEAD~1, or a commit.
fn is_revision(text: &str) -> bool {
    let is_tag = text
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_commit = text.len() >= COMMIT_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_relative = ["HEAD", "@", "FETCH_HEAD", "ORIG_HEAD"].contains(&text)
        || text.contains(['~', '^', '@']) && !text.contains([':', '/']);
    is_tag || is_commit || is_relative
}

/// Describes a revision where there is no tree.
fn without_tree(text: &str) -> String {
    let version = text.strip_prefix('v').filter(|version| is_version(version));
    let package = version.map_or_else(String::new, |version| {
        format!(
            "; without a tree: deb:{version} (Debian's package), kernel.org:{version} (built here)"
        )
    });
    format!(
        "`{text}` is a revision, and the current directory is in no kernel tree\n\
         hint: run Marvin in the tree, or name it: git:{text} --tree DIR{package}"
    )
}

/// Returns the kernel that a directory means: a source as it is, or a build directory of make.
fn directory(folder: &Path) -> Result<KernelName, WrongInput> {
    if is_kernel_source(folder) {
        return Ok(KernelName::Tree(folder.to_owned()));
    }
    if folder.join(".config").is_file() {
        return Ok(KernelName::Path(folder.to_owned()));
    }
    let images: Vec<String> = names_in(folder)
        .into_iter()
        .filter(|name| IMAGES.iter().any(|image| name.starts_with(image)))
        .take(IMAGES_SHOWN)
        .map(|name| format!("path:{}", folder.join(name).display()))
        .collect();
    let instead = if images.is_empty() {
        "name an image in it (path:FILE), a kernel's source (tree:DIR) or make's output (path:DIR)"
            .to_owned()
    } else {
        format!("name an image in it: {}", images.join(", "))
    };
    Err(WrongInput(format!(
        "`{0}` is a directory without a kernel: neither a source (Kbuild, Makefile) nor make's \
         output (.config)\nhint: {instead}",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::KernelName;

    use super::{directory, is_revision, without_tree};

    #[test]
    fn revisions_are_told_from_other_words() {
        for revision in [
            "v6.12", "HEAD", "HEAD~3", "@", "HEAD^", "8c1a7b2", "v6.1-rc3", "main@{1}",
        ] {
            assert!(is_revision(revision), "{revision}");
        }
        for other in ["vmlinux", "deb", "8c1a7", "a@b:c", "main"] {
            assert!(!is_revision(other), "{other}");
        }
    }

    #[test]
    fn revision_without_tree_names_alternatives() {
        insta::assert_snapshot!(without_tree("v6.12"), @"
        `v6.12` is a revision, and the current directory is in no kernel tree
        hint: run Marvin in the tree, or name it: git:v6.12 --tree DIR; without a tree: deb:6.12 (Debian's package), kernel.org:6.12 (built here)
        ");
        insta::assert_snapshot!(without_tree("HEAD~1"), @"
        `HEAD~1` is a revision, and the current directory is in no kernel tree
        hint: run Marvin in the tree, or name it: git:HEAD~1 --tree DIR
        ");
    }

    #[test]
    fn directories_mean_sources_or_outputs() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path();
        let describe = || {
            directory(folder)
                .unwrap_err()
                .0
                .replace(&folder.display().to_string(), "DIR")
        };
        insta::assert_snapshot!(describe(), @"
        `DIR` is a directory without a kernel: neither a source (Kbuild, Makefile) nor make's output (.config)
        hint: name an image in it (path:FILE), a kernel's source (tree:DIR) or make's output (path:DIR)
        ");
        fs::write(folder.join("vmlinuz-6.1"), "").unwrap();
        insta::assert_snapshot!(describe(), @"
        `DIR` is a directory without a kernel: neither a source (Kbuild, Makefile) nor make's output (.config)
        hint: name an image in it: path:DIR/vmlinuz-6.1
        ");
        fs::write(folder.join(".config"), "").unwrap();
        assert_eq!(
            directory(folder).unwrap(),
            KernelName::Path(folder.to_owned())
        );
        for name in ["Kbuild", "Makefile"] {
            fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(
            directory(folder).unwrap(),
            KernelName::Tree(folder.to_owned())
        );
    }
}

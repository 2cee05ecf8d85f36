//! Finds the files that belong to an image in the directories around it: kernel config, symbols, modules.
//!
//! None is needed to boot, so unreadable files count as absent.

use std::fs;
use std::path::{Path, PathBuf};

/// Debian installs a one-line stub as symbol table.
const FEWEST_SYMBOLS: usize = 100;

/// The files beside an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) config: Option<Vec<u8>>,
    pub(crate) symbols: Option<Vec<u8>>,
    /// The module directory, whose name is the kernel's release.
    pub(crate) modules: Option<PathBuf>,
}

/// Searches around an image with this release.
pub(crate) fn find(image: &Path, release: Option<&str>) -> Beside {
    // A name such as `/boot/vmlinuz` is often a link to the directory with the rest.
    let image = fs::canonicalize(image).unwrap_or_else(|_| image.to_owned());
    let folder = image.parent().unwrap_or(Path::new("/"));
    let tag = image
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(tag_of)
        .or(release)
        .filter(|tag| is_plain(tag))
        .unwrap_or_default();
    let mut folders = vec![folder];
    if folder.ends_with("arch/x86/boot") {
        // A kernel's build tree has these at its root.
        folders.extend(folder.ancestors().nth(3));
    }
    let first = |names: &[String], fits: fn(&[u8]) -> bool| {
        folders
            .iter()
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
            .filter(|file| file.is_file())
            .find_map(|file| fs::read(file).ok().filter(|content| fits(content)))
    };
    Beside {
        config: first(&[format!("config-{tag}"), ".config".into(), "config".into()], is_config),
        symbols: first(&[format!("System.map-{tag}"), "System.map".into()], is_symbols),
        modules: modules(folder, tag),
    }
}

/// Returns the release in the image's file name.
fn tag_of(name: &str) -> Option<&str> {
    let (kind, tag) = name.split_once('-')?;
    ["vmlinuz", "vmlinux", "bzImage"].contains(&kind).then_some(tag)
}

/// Returns whether a release, which comes from the image, is safe as part of a path.
fn is_plain(tag: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c);
    !tag.is_empty() && !tag.starts_with('.') && tag.chars().all(fine)
}

fn modules(folder: &Path, tag: &str) -> Option<PathBuf> {
    if tag.is_empty() {
        return None;
    }
    if folder.ends_with(Path::new("modules").join(tag)) {
        return Some(folder.to_owned());
    }
    folder
        .ancestors()
        .take(2)
        .flat_map(|base| ["lib/modules", "usr/lib/modules"].map(|place| base.join(place)))
        .map(|place| place.join(tag))
        .find(|modules| modules.is_dir())
}

fn is_config(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"CONFIG_"))
}

/// A line of a symbol table: address, type and name.
fn is_symbols(content: &[u8]) -> bool {
    let symbol = |line: &&[u8]| {
        let mut words = line.split(|byte| *byte == b' ');
        let address = words.next().unwrap_or_default();
        let kind = words.next().unwrap_or_default();
        !address.is_empty()
            && address.iter().all(u8::is_ascii_hexdigit)
            && kind.len() == 1
            && words.next().is_some_and(|name| !name.is_empty())
    };
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter(symbol).take(FEWEST_SYMBOLS).count() == FEWEST_SYMBOLS
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::{Beside, find, is_config, is_symbols};

    pub(crate) fn write(root: &Path, file: &str, content: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    pub(crate) fn symbols() -> String {
        "ffffffff81000000 T _text\n".repeat(100)
    }

    #[test]
    fn a_boot_folder_keeps_everything_by_release() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        write(&root, "boot/vmlinuz-6.1", "");
        write(&root, "boot/config-6.1", "CONFIG_A=y\n");
        write(&root, "boot/config-6.2", "CONFIG_B=y\n");
        write(&root, "boot/System.map-6.1", &symbols());
        write(&root, "lib/modules/6.1/modules.order", "");
        std::os::unix::fs::symlink("boot/vmlinuz-6.1", root.join("vmlinuz")).unwrap();
        let expected = Beside {
            config: Some(b"CONFIG_A=y\n".to_vec()),
            symbols: Some(symbols().into_bytes()),
            modules: Some(root.join("lib/modules/6.1")),
        };
        assert_eq!(find(&root.join("boot/vmlinuz-6.1"), None), expected);
        assert_eq!(find(&root.join("vmlinuz"), Some("6.2")), expected);
        // Files of other releases are not taken.
        write(&root, "boot/vmlinuz-6.3", "");
        assert_eq!(find(&root.join("boot/vmlinuz-6.3"), None), Beside::default());
    }

    #[test]
    fn a_kernels_tree_keeps_everything_at_its_root() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), "arch/x86/boot/bzImage", "");
        write(home.path(), ".config", "# x\nCONFIG_A=y\n");
        write(home.path(), "System.map", &symbols());
        let beside = find(&home.path().join("arch/x86/boot/bzImage"), Some("../x"));
        assert!(beside.config.is_some() && beside.symbols.is_some());
        assert_eq!(beside.modules, None);
    }

    #[test]
    fn stubs_and_namesakes_are_passed_over() {
        assert!(!is_symbols(b"ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n"));
        assert!(!is_config(b"[core]\n\tbare = false\n"));
    }

    proptest! {
        #[test]
        fn any_content_can_be_judged(content in any::<Vec<u8>>(), release in any::<String>()) {
            is_symbols(&content);
            is_config(&content);
            find(Path::new("/nonesuch/image"), Some(&release));
        }
    }
}

//! Finds the files that belong to an image in the directories around it: kernel config, symbols,
//! modules.
//!
//! None is needed to boot, so unreadable files count as absent.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::bounded;

/// Debian installs a one-line stub as symbol table.
const FEWEST_SYMBOLS: usize = 100;

/// Largest kernel config: Debian's has 300 kB.
const CONFIG_MOST: u64 = 4 << 20;
/// Largest symbol table: Debian's has 10 MB.
const SYMBOLS_MOST: u64 = 128 << 20;

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
        .or_else(|| folder_of_modules(folder))
        .or(release)
        .filter(|tag| is_plain(tag))
        .unwrap_or_default();
    let mut folders = vec![folder];
    if folder.ends_with("arch/x86/boot") {
        // A kernel's build tree has these at its root.
        folders.extend(folder.ancestors().nth(3));
    }
    let configs = [format!("config-{tag}"), ".config".into(), "config".into()];
    let symbols = [format!("System.map-{tag}"), "System.map".into()];
    Beside {
        config: first(&folders, &configs, CONFIG_MOST, is_config),
        symbols: first(&folders, &symbols, SYMBOLS_MOST, is_symbols),
        modules: modules(folder, tag),
    }
}

/// Returns the content of the first file with one of the names that is what it should be.
fn first(
    folders: &[&Path],
    names: &[String],
    most: u64,
    fits: fn(&[u8]) -> bool,
) -> Option<Vec<u8>> {
    folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| (*folder, name)))
        .find_map(|(folder, name)| read(folder, name, most).filter(|content| fits(content)))
}

/// Returns the content of a file in a directory; `None` if it is a link to a file that others may
/// not read: the link's author could otherwise have the user copy a secret into a build, and from
/// there into reports.
fn read(folder: &Path, name: &str, most: u64) -> Option<Vec<u8>> {
    let path = folder.join(name);
    let link = fs::symlink_metadata(&path).ok()?;
    let opened = bounded::open(&path, most).ok()?;
    let file = opened.metadata().ok()?;
    let is_itself = (link.dev(), link.ino()) == (file.dev(), file.ino());
    if is_itself || is_public(&path, folder, file.mode()) {
        opened.read().ok()
    } else {
        None
    }
}

/// Returns whether everybody who may enter `folder` may read the file of this mode that a link in
/// it leads to.
fn is_public(link: &Path, folder: &Path, mode: u32) -> bool {
    let (Ok(target), Ok(folder)) = (fs::canonicalize(link), fs::canonicalize(folder)) else {
        return false;
    };
    let mut above = target
        .ancestors()
        .skip(1)
        .take_while(|above| !folder.starts_with(above));
    mode & 0o004 != 0
        && above.all(|path: &Path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o001 != 0))
}

/// Returns the release in the image's file name.
fn tag_of(name: &str) -> Option<&str> {
    let (kind, tag) = name.split_once('-')?;
    ["vmlinuz", "vmlinux", "bzImage"]
        .contains(&kind)
        .then_some(tag)
}

/// Returns the name of a folder with modules, which is their release, whatever the image beside them
/// says.
fn folder_of_modules(folder: &Path) -> Option<&str> {
    let is_in_modules = folder.parent()?.ends_with("lib/modules");
    folder.file_name()?.to_str().filter(|_| is_in_modules)
}

/// Returns whether a release, which comes from the image, is safe as part of a path.
fn is_plain(tag: &str) -> bool {
    !tag.is_empty()
        && !tag.starts_with('.')
        && tag
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c))
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

pub(crate) fn is_config(content: &[u8]) -> bool {
    content
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"CONFIG_"))
}

/// A line of a symbol table: address, type and name.
pub(crate) fn is_symbols(content: &[u8]) -> bool {
    let lines = content.split(|byte| *byte == b'\n');
    let symbols = lines.filter(|line| is_symbol(line));
    symbols.take(FEWEST_SYMBOLS).count() == FEWEST_SYMBOLS
}

/// Returns whether a line has an address, a letter and a name.
fn is_symbol(line: &[u8]) -> bool {
    let mut fields = line.split(|byte| *byte == b' ');
    let address = fields.next().unwrap_or_default();
    let kind = fields.next().unwrap_or_default();
    !address.is_empty()
        && address.iter().all(u8::is_ascii_hexdigit)
        && kind.len() == 1
        && fields.next().is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
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
        assert_eq!(
            find(&root.join("boot/vmlinuz-6.3"), None),
            Beside::default()
        );
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
    fn links_to_files_kept_secret_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let mode = |path: &str, mode| {
            fs::set_permissions(home.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        write(home.path(), "image/vmlinuz", "");
        write(home.path(), "other/config", "CONFIG_A=y\n");
        write(home.path(), "other/map", &symbols());
        for (file, link) in [
            ("other/config", "image/config"),
            ("other/map", "image/System.map"),
        ] {
            std::os::unix::fs::symlink(home.path().join(file), home.path().join(link)).unwrap();
        }
        let found = || {
            let beside = find(&home.path().join("image/vmlinuz"), None);
            (beside.config.is_some(), beside.symbols.is_some())
        };
        assert_eq!(found(), (true, true));
        mode("other/config", 0o640);
        assert_eq!(found(), (false, true));
        mode("other", 0o700);
        assert_eq!(found(), (false, false));
        // A file that is no link may be the user's alone.
        fs::remove_file(home.path().join("image/config")).unwrap();
        write(home.path(), "image/config", "CONFIG_A=y\n");
        mode("image/config", 0o600);
        assert_eq!(found(), (true, false));
    }

    #[test]
    fn files_beyond_the_limit_are_passed_over() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), "vmlinuz", "");
        write(home.path(), "config", "CONFIG_A=y\n");
        write(home.path(), "System.map", &symbols());
        for (file, most) in [
            ("config", super::CONFIG_MOST),
            ("System.map", super::SYMBOLS_MOST),
        ] {
            let file = fs::File::options()
                .write(true)
                .open(home.path().join(file))
                .unwrap();
            // A sparse file, which takes no disk space.
            file.set_len(most + 1).unwrap();
        }
        assert_eq!(find(&home.path().join("vmlinuz"), None), Beside::default());
    }

    #[test]
    fn stubs_and_namesakes_are_passed_over() {
        assert!(!is_symbols(
            b"ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n"
        ));
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

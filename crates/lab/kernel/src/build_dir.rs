//! A directory in which a developer's make built a kernel: its image and modules. Marvin reads it and
//! never writes there.
//!
//! Its objects are not reused: make compares the command line of each object with that of the last
//! build, and Marvin's has other paths, a fixed banner and its own compiler's cache.

use std::fs;
use std::path::{Component, Path, PathBuf};

use model::Origin;

use crate::KernelError;
use crate::bounded;
use crate::image::ImageFault;
use crate::source::Configuration;

/// Images that make leaves, the one that boots anywhere first.
const IMAGES: [&str; 2] = ["arch/x86/boot/bzImage", "vmlinux"];
/// Most bytes of modules that are copied: with debug information, a distribution's are more.
const MODULES_MAX: u64 = 1 << 30;
/// Largest list of modules.
const LIST_MAX: u64 = 4 << 20;
/// Lists of modules that belong beside them.
const LISTS: [&str; 3] = [
    "modules.order",
    "modules.builtin",
    "modules.builtin.modinfo",
];

/// A build directory with an image.
#[derive(Debug)]
pub(crate) struct BuildDir {
    folder: PathBuf,
    pub(crate) image: PathBuf,
    /// The compiler, as its config says.
    compiler: Option<String>,
}

/// Returns what a directory has; `None` if it is none.
pub(crate) fn find(folder: &Path) -> Result<Option<BuildDir>, KernelError> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let image = IMAGES
        .iter()
        .map(|image| folder.join(image))
        .find(|image| image.is_file());
    let config = Configuration::of_build_dir(folder);
    match (image, config) {
        (Some(image), config) => Ok(Some(BuildDir {
            folder: folder.to_owned(),
            image,
            compiler: config.ok().and_then(|config| config.compiler()),
        })),
        (None, Ok(_)) => Err(KernelError::Image {
            what: folder.display().to_string(),
            fault: ImageFault::NotBuilt,
        }),
        (None, Err(_)) => Ok(None),
    }
}

impl BuildDir {
    /// Describes the image, and the compiler if it is known.
    pub(crate) fn origin(&self) -> Origin {
        let file = self.image.display().to_string();
        match &self.compiler {
            Some(compiler) => Origin::of_build_dir(&file, compiler),
            None => Origin::Described(file),
        }
    }

    /// Copies its modules below a directory, laid out as `make modules_install` does; `None` if it
    /// has none, or more than fit.
    pub(crate) fn copy_modules(&self, to: &Path) -> Result<Option<PathBuf>, KernelError> {
        let release = self.read("include/config/kernel.release");
        let release = release.as_deref().map(str::trim).unwrap_or_default();
        let is_plain =
            |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        let Some(order) = self.read("modules.order").filter(|_| is_plain(release)) else {
            return Ok(None);
        };
        let modules: Vec<String> = order.lines().filter_map(module).collect();
        let bytes: u64 = modules
            .iter()
            .filter_map(|module| fs::symlink_metadata(self.folder.join(module)).ok())
            .map(|found| found.len())
            .sum();
        if modules.is_empty() || bytes > MODULES_MAX {
            return Ok(None);
        }
        let installed = to.join(release);
        let mut is_whole = true;
        for module in &modules {
            let file = self.folder.join(module);
            if !fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
                // `make vmlinux` alone leaves an old list, or none.
                is_whole = false;
                continue;
            }
            copy(&file, &installed.join("kernel").join(module))?;
        }
        for list in LISTS {
            let file = self.folder.join(list);
            if fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
                copy(&file, &installed.join(list))?;
            }
        }
        Ok(is_whole.then_some(installed))
    }

    fn read(&self, name: &str) -> Option<String> {
        let bytes = bounded::open(&self.folder.join(name), LIST_MAX)
            .and_then(bounded::Opened::read)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Returns the file of a line in `modules.order`: `kernel/fs/a.ko` until 6.1, `fs/a.o` from 6.3 on.
fn module(line: &str) -> Option<String> {
    let line = line
        .strip_prefix("kernel/")
        .filter(|rest| rest.ends_with(".ko"))
        .unwrap_or(line);
    let stem = line
        .strip_suffix(".ko")
        .or_else(|| line.strip_suffix(".o"))?;
    let is_below = Path::new(stem)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| format!("{stem}.ko"))
}

fn copy(from: &Path, to: &Path) -> Result<(), KernelError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
    }
    fs::copy(from, to).map(drop).map_err(KernelError::io(from))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::module;
    use crate::cache::without_network;
    use crate::companion_files::tests::{symbols, write};
    use crate::folder::sha256_of_file;
    use crate::payload::tests::pack;
    use crate::{BuildCache, bzimage, elf};

    /// Returns each file of a directory with its hash and time.
    fn state(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(state(&path));
            } else {
                let time = fs::metadata(&path).unwrap().modified().unwrap();
                found.push(format!(
                    "{path:?} {} {time:?}",
                    sha256_of_file(&path).unwrap()
                ));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn build_directory_is_a_kernel_and_left_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("out");
        let cache =
            BuildCache::open(&home.path().join("home"), without_network(home.path())).unwrap();
        let resolve =
            || cache.resolve(&format!("path:{}", out.display()).parse().unwrap(), &|_| {});
        write(
            &out,
            ".config",
            "# x\nCONFIG_CC_VERSION_TEXT=\"gcc-11 (Debian 11.3.0-12) 11.3.0\"\n",
        );
        let error = resolve().unwrap_err().to_string();
        assert!(
            error.ends_with("out: it is a build directory without an image: run make there first"),
            "{error}"
        );
        write(&out, "System.map", &symbols());
        write(&out, "include/config/kernel.release", "6.9.1-test\n");
        write(
            &out,
            "modules.order",
            "kernel/fs/a.ko\nlib/b.o\n../../x.ko\n",
        );
        write(&out, "fs/a.ko", "a");
        write(&out, "lib/b.ko", "b");
        write(&out, "arch/x86/boot/bzImage", "");
        fs::write(
            out.join("arch/x86/boot/bzImage"),
            bzimage::tests::write(&pack("zstd", &elf::tests::write(18, ""))),
        )
        .unwrap();
        let before = state(&out);
        let build = resolve().unwrap();
        assert_eq!(
            build.origin.compiler(),
            Some("gcc-11 (Debian 11.3.0-12) 11.3.0")
        );
        assert!(build.config.is_some() && build.symbols.is_some());
        let modules = build.modules.clone().unwrap();
        assert!(modules.ends_with("6.9.1-test") && modules.join("kernel/lib/b.ko").is_file());
        assert_eq!(state(&out), before, "read, never changed");
        assert_eq!(resolve().unwrap(), build);
        // A module is a part of the build.
        write(&out, "fs/a.ko", "c");
        assert_ne!(resolve().unwrap().id, build.id);
    }

    #[test]
    fn modules_are_listed_in_two_ways() {
        assert_eq!(
            module("kernel/fs/ext4/ext4.ko").as_deref(),
            Some("fs/ext4/ext4.ko")
        );
        assert_eq!(
            module("kernel/locking/locktorture.o").as_deref(),
            Some("kernel/locking/locktorture.ko")
        );
        assert_eq!(module("../x.o"), None);
        assert_eq!(module("/x.ko"), None);
    }
}

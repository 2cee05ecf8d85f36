//! The modules of a build that a guest needs, unpacked, each after its dependencies.
//!
//! A module lists its dependencies in `.modinfo` as `depends=a,b` (scripts/mod/modpost.c). Built-in modules have no
//! file and are left out: the guest finds out whether they exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use model::Build;

use crate::KernelError;
use crate::bounded::{self, ReadFault};
use crate::payload::unpack_file;

/// Largest module file, packed.
const FILE_MOST: u64 = 64 << 20;

/// Largest list of built-in modules: Debian's has 10 kB.
const LIST_MOST: u64 = 4 << 20;

/// A module to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with `_` instead of `-`.
    pub name: String,
    /// The ELF file.
    pub bytes: Vec<u8>,
}

/// Returns whether a build has a module of this name built in; `None` if it has no list (`modules.builtin`).
///
/// # Errors
/// If the list cannot be read.
pub fn is_built_in(build: &Build, name: &str) -> Result<Option<bool>, KernelError> {
    let Some(folder) = &build.modules else { return Ok(None) };
    let list = folder.join("modules.builtin");
    if !list.is_file() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes(&list, LIST_MOST)?).into_owned();
    let wanted = name.replace('-', "_");
    let name_of = |line: &str| Some(line.rsplit('/').next()?.strip_suffix(".ko")?.replace('-', "_"));
    Ok(Some(text.lines().any(|line| name_of(line).is_some_and(|name| name == wanted))))
}

/// Returns these modules and their dependencies, in loading order.
///
/// # Errors
/// If a file cannot be read or unpacked.
pub fn modules(build: &Build, names: &[&str]) -> Result<Vec<Module>, KernelError> {
    let mut files = BTreeMap::new();
    if let Some(folder) = &build.modules {
        list(&folder.join("kernel"), &mut files)?;
    }
    let mut found = ModuleOrder { files, seen: BTreeSet::new(), modules: Vec::new() };
    names.iter().try_for_each(|name| found.add(name))?;
    Ok(found.modules)
}

struct ModuleOrder {
    files: BTreeMap<String, PathBuf>,
    seen: BTreeSet<String>,
    modules: Vec<Module>,
}

impl ModuleOrder {
    fn add(&mut self, name: &str) -> Result<(), KernelError> {
        let name = name.replace('-', "_");
        // Visit each module once, so that circular dependencies terminate.
        let Some(file) = self.files.get(&name).filter(|_| self.seen.insert(name.clone())) else { return Ok(()) };
        let bytes = read(file)?;
        for needed in needed(&bytes) {
            self.add(&needed)?;
        }
        self.modules.push(Module { name, bytes });
        Ok(())
    }
}

/// Lists the module files below a directory by module name; does not follow links.
fn list(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), KernelError> {
    for entry in fs::read_dir(folder).map_err(KernelError::at(folder))? {
        let entry = entry.map_err(KernelError::at(folder))?;
        let path = entry.path();
        if entry.file_type().map_err(KernelError::at(&path))?.is_dir() {
            list(&path, files)?;
        } else if let Some((name, "" | ".xz" | ".gz" | ".zst")) = entry.file_name().to_string_lossy().split_once(".ko")
        {
            files.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>, KernelError> {
    let bytes = bytes(file, FILE_MOST)?;
    let unpacked = unpack_file(&bytes).map_err(|error| refused(file, error.to_string()))?;
    Ok(unpacked.unwrap_or(bytes))
}

fn bytes(file: &Path, most: u64) -> Result<Vec<u8>, KernelError> {
    bounded::open(file, most).and_then(|opened| opened.read()).map_err(|fault| match fault {
        ReadFault::Io(error) => KernelError::at(file)(error),
        fault => refused(file, fault.to_string()),
    })
}

fn refused(file: &Path, said: String) -> KernelError {
    KernelError::Module { file: file.to_owned(), said }
}

/// Returns the names in `depends=`; each entry of `.modinfo` ends with a zero.
fn needed(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let value = module[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(value).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::path::Path;

    use model::{Build, BuildFile, BuildId, KernelName};

    use super::{modules, needed};

    fn build(folder: &Path) -> Build {
        let hash = "0".repeat(64);
        Build {
            id: BuildId::from_hex(&hash).unwrap(),
            name: KernelName::Path("vmlinuz".into()),
            version: "6.9".into(),
            origin: model::Origin::Described("vmlinuz".into()),
            image: BuildFile { path: "vmlinuz".into(), sha256: hash },
            vmlinux: None,
            config: None,
            symbols: None,
            modules: Some(folder.to_owned()),
        }
    }

    fn names(folder: &Path, wanted: &[&str]) -> Vec<String> {
        modules(&build(folder), wanted).unwrap().into_iter().map(|module| module.name).collect()
    }

    #[test]
    fn module_dependencies_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let drivers = folder.path().join("kernel/drivers");
        fs::create_dir_all(&drivers).unwrap();
        fs::write(drivers.join("virtio-blk.ko"), b"\x7fELF license=GPL\0depends=virtio,virtio_ring\0name=x\0").unwrap();
        fs::write(drivers.join("virtio.ko"), b"\x7fELF\0depends=virtio_ring\0").unwrap();
        // Two that need one another, which does not occur in real builds.
        let packed = b"\x7fELF\0depends=virtio\0";
        let mut xz = Vec::new();
        liblzma::read::XzEncoder::new(&packed[..], 1).read_to_end(&mut xz).unwrap();
        fs::write(drivers.join("virtio_ring.ko.xz"), xz).unwrap();
        fs::write(drivers.join("virtio.ko.old"), b"").unwrap();
        assert_eq!(names(folder.path(), &["virtio_blk"]), ["virtio_ring", "virtio", "virtio_blk"]);
        assert_eq!(modules(&build(folder.path()), &["virtio_ring"]).unwrap()[1].bytes, packed);
        assert!(names(folder.path(), &["ext4"]).is_empty(), "built in, or not there at all");
    }

    #[test]
    fn builtin_modules_are_known_from_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let built_in = |name: &str| super::is_built_in(&build(folder.path()), name).unwrap();
        assert_eq!(built_in("lzo-rle"), None);
        fs::write(folder.path().join("modules.builtin"), "kernel/fs/ext4/ext4.ko\nkernel/crypto/lzo-rle.ko\n").unwrap();
        assert_eq!((built_in("lzo_rle"), built_in("ext4"), built_in("ext")), (Some(true), Some(true), Some(false)));
        assert_eq!(super::is_built_in(&Build { modules: None, ..build(folder.path()) }, "ext4").unwrap(), None);
    }

    #[test]
    fn a_damaged_module_says_which() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kernel")).unwrap();
        fs::write(folder.path().join("kernel/a.ko.xz"), b"\xfd7zXZ\0 and nothing more").unwrap();
        let error = modules(&build(folder.path()), &["a"]).unwrap_err().to_string();
        let error = error.replace(folder.path().to_str().unwrap(), "MODULES");
        insta::assert_snapshot!(error, @"MODULES/kernel/a.ko.xz: this module is damaged: lzma data error; install or build it again");
    }

    #[test]
    fn lists_may_be_empty_or_absent() {
        assert_eq!(needed(b"\0depends=\0name=a\0"), Vec::<String>::new());
        assert_eq!(needed(b"\0name=a"), Vec::<String>::new());
        assert_eq!(needed(b"\0depends=a,b"), ["a", "b"]);
    }
}

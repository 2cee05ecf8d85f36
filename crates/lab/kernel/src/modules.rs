//! The modules of a build that a guest needs, unpacked, each after its dependencies.
//!
//! A module lists its dependencies in `.modinfo` as `depends=a,b` (scripts/mod/modpost.c). Built-in
//! modules have no file and are left out: the guest finds out whether they exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use model::Build;

use crate::KernelError;
use crate::bounded::{self, ReadFault};
use crate::payload::unpack_file;

/// Largest module file, packed.
const FILE_MOST: u64 = 64 << 20;

/// Most unpacked bytes of all modules for a guest, which keeps them in memory.
const ALL_MOST: usize = 256 << 20;

/// Longest chain of dependencies: a distribution's have less than ten.
const DEPTH_MAX: usize = 64;

/// Most levels of directories: a distribution has less than ten.
const FOLDERS_MAX: usize = 32;

/// Largest list of built-in modules: Debian's has 10 kB.
const LIST_MOST: u64 = 4 << 20;

/// A module to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with `_` instead of `-`.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Largest kernel config: Debian's has 300 kB.
const CONFIG_MOST: u64 = 16 << 20;

/// Modules whose option is not their name in capitals. `drivers/*/Makefile` of the kernel, and of
/// `fs` and `net`.
const OPTIONS: [(&str, &str); 29] = [
    ("ahci", "SATA_AHCI"),
    ("algif_hash", "CRYPTO_USER_API_HASH"),
    ("atlantic", "AQTION"),
    ("bnxt_en", "BNXT"),
    ("brd", "BLK_DEV_RAM"),
    ("btrfs", "BTRFS_FS"),
    ("dm_mod", "BLK_DEV_DM"),
    ("ext4", "EXT4_FS"),
    ("f2fs", "F2FS_FS"),
    ("hpsa", "SCSI_HPSA"),
    ("jfs", "JFS_FS"),
    ("libata", "ATA"),
    ("loop", "BLK_DEV_LOOP"),
    ("md_mod", "BLK_DEV_MD"),
    ("mpt3sas", "SCSI_MPT3SAS"),
    ("nfs", "NFS_FS"),
    ("nfsv4", "NFS_V4"),
    ("nvme", "BLK_DEV_NVME"),
    ("raid0", "MD_RAID0"),
    ("raid1", "MD_RAID1"),
    ("raid10", "MD_RAID10"),
    ("raid456", "MD_RAID456"),
    ("scsi_mod", "SCSI"),
    ("sctp", "IP_SCTP"),
    ("sd_mod", "BLK_DEV_SD"),
    ("tg3", "TIGON3"),
    ("virtio_ring", "VIRTIO"),
    ("virtio_scsi", "SCSI_VIRTIO"),
    ("xfs", "XFS_FS"),
];

/// Options of parts of a module that are no modules: fs/nfs/Kconfig and fs/nfsd/Kconfig.
const PARTS: [(&str, &[&str]); 2] = [("nfsd", &["NFSD_V4"]), ("nfsv4", &["NFS_V4_1", "NFS_V4_2"])];

/// Returns the options of parts of a module, without `CONFIG_`.
pub(crate) fn parts(name: &str) -> &'static [&'static str] {
    let known = PARTS.iter().find(|(module, _)| *module == name);
    known.map_or(&[], |(_, parts)| parts)
}

/// Returns whether a build has a module of this name built in, as its list says (`modules.builtin`)
/// or, without one, its kernel config; `None` if neither says so.
///
/// # Errors
/// If a file cannot be read.
pub fn is_built_in(build: &Build, name: &str) -> Result<Option<bool>, KernelError> {
    let wanted = name.replace('-', "_");
    let list = build
        .modules
        .as_ref()
        .map(|folder| folder.join("modules.builtin"))
        .filter(|list| list.is_file());
    if let Some(list) = list {
        let text = String::from_utf8_lossy(&bytes(&list, LIST_MOST)?).into_owned();
        return Ok(Some(
            text.lines()
                .any(|line| module_name(line).is_some_and(|name| name == wanted)),
        ));
    }
    let Some(config) = &build.config else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes(&config.path, CONFIG_MOST)?).into_owned();
    Ok(is_set(&text, &option(&wanted)))
}

fn module_name(line: &str) -> Option<String> {
    Some(
        line.rsplit('/')
            .next()?
            .strip_suffix(".ko")?
            .replace('-', "_"),
    )
}

/// Returns the option of the kernel config that builds a module.
#[must_use]
pub fn option(name: &str) -> String {
    let name = name.replace('-', "_");
    let known = OPTIONS.iter().find(|(module, _)| *module == name);
    format!(
        "CONFIG_{}",
        known.map_or_else(|| name.to_uppercase(), |(_, option)| (*option).to_owned())
    )
}

/// Returns whether a kernel config builds an option in; `None` if it does not name it, as the
/// option may be another one.
fn is_set(config: &str, option: &str) -> Option<bool> {
    config.lines().find_map(|line| {
        let unset = line
            .strip_prefix("# ")
            .and_then(|line| line.strip_suffix(" is not set"));
        let set = line.split_once('=').filter(|(name, _)| *name == option);
        set.map(|(_, value)| value == "y")
            .or_else(|| (unset == Some(option)).then_some(false))
    })
}

/// Returns these modules and their dependencies, in loading order.
///
/// # Errors
/// If a file cannot be read or unpacked.
pub fn modules(build: &Build, names: &[&str]) -> Result<Vec<Module>, KernelError> {
    let mut files = BTreeMap::new();
    if let Some(folder) = &build.modules {
        list(&folder.join("kernel"), &mut files, FOLDERS_MAX)?;
    }
    let mut found = ModuleOrder {
        files,
        read,
        seen: BTreeSet::new(),
        modules: Vec::new(),
        size: 0,
    };
    names
        .iter()
        .try_for_each(|name| found.add(name, DEPTH_MAX))?;
    Ok(found.modules)
}

struct ModuleOrder<R> {
    files: BTreeMap<String, PathBuf>,
    read: R,
    seen: BTreeSet<String>,
    modules: Vec<Module>,
    /// Bytes of all modules so far.
    size: usize,
}

impl<R: FnMut(&Path) -> Result<Vec<u8>, KernelError>> ModuleOrder<R> {
    fn add(&mut self, name: &str, depth: usize) -> Result<(), KernelError> {
        let name = name.replace('-', "_");
        // Visit each module once, so that circular dependencies terminate.
        let Some(file) = self
            .files
            .get(&name)
            .filter(|_| self.seen.insert(name.clone()))
        else {
            return Ok(());
        };
        let file = file.clone();
        let Some(left) = depth.checked_sub(1) else {
            return Err(beyond(
                &file,
                format!("ends a chain of more than {DEPTH_MAX} modules that need one another"),
            ));
        };
        let bytes = (self.read)(&file)?;
        self.size += bytes.len();
        if self.size > ALL_MOST {
            return Err(beyond(
                &file,
                format!(
                    "has more than {} MiB with the modules it needs",
                    ALL_MOST >> 20
                ),
            ));
        }
        for needed in needed(&bytes) {
            self.add(&needed, left)?;
        }
        self.modules.push(Module { name, bytes });
        Ok(())
    }
}

/// Orders modules as a fuzzer names them: each line is the name of a module and its content.
#[cfg(feature = "fuzzing")]
pub(crate) fn order(text: &str) {
    let lines: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let files = lines
        .keys()
        .map(|name| ((*name).to_owned(), PathBuf::from(name)))
        .collect();
    let mut found = ModuleOrder {
        files,
        read: |file: &Path| {
            let text = file
                .to_str()
                .and_then(|name| lines.get(name))
                .copied()
                .unwrap_or_default();
            Ok(text.replace("\\0", "\0").into_bytes())
        },
        seen: BTreeSet::new(),
        modules: Vec::new(),
        size: 0,
    };
    if lines
        .keys()
        .try_for_each(|name| found.add(name, DEPTH_MAX))
        .is_ok()
    {
        let plain = lines.keys().filter(|name| !name.contains('-')).count();
        assert_eq!(found.modules.len(), plain, "each module once");
    }
}

/// Lists the module files below a directory by module name; does not follow links.
fn list(
    folder: &Path,
    files: &mut BTreeMap<String, PathBuf>,
    levels: usize,
) -> Result<(), KernelError> {
    let Some(left) = levels.checked_sub(1) else {
        return Err(beyond(
            folder,
            format!("is more than {FOLDERS_MAX} directories down"),
        ));
    };
    for entry in fs::read_dir(folder).map_err(KernelError::io(folder))? {
        let entry = entry.map_err(KernelError::io(folder))?;
        let path = entry.path();
        if entry.file_type().map_err(KernelError::io(&path))?.is_dir() {
            list(&path, files, left)?;
        } else if let Some((name, "" | ".xz" | ".gz" | ".zst")) =
            entry.file_name().to_string_lossy().split_once(".ko")
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
    bounded::open(file, most)
        .and_then(|opened| opened.read())
        .map_err(|fault| match fault {
            ReadFault::Io(error) => KernelError::io(file)(error),
            fault => refused(file, fault.to_string()),
        })
}

fn refused(file: &Path, detail: String) -> KernelError {
    KernelError::Module {
        file: file.to_owned(),
        detail,
    }
}

fn beyond(file: &Path, limit: String) -> KernelError {
    KernelError::Modules {
        file: file.to_owned(),
        limit,
    }
}

/// Returns the names in `depends=`; each entry of `.modinfo` ends with a zero.
fn needed(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = module[at + KEY.len()..]
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    String::from_utf8_lossy(value)
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
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
            image: BuildFile {
                path: "vmlinuz".into(),
                sha256: hash,
            },
            vmlinux: None,
            config: None,
            symbols: None,
            modules: Some(folder.to_owned()),
        }
    }

    fn names(folder: &Path, wanted: &[&str]) -> Vec<String> {
        modules(&build(folder), wanted)
            .unwrap()
            .into_iter()
            .map(|module| module.name)
            .collect()
    }

    #[test]
    fn module_dependencies_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let drivers = folder.path().join("kernel/drivers");
        fs::create_dir_all(&drivers).unwrap();
        fs::write(
            drivers.join("virtio-blk.ko"),
            b"\x7fELF license=GPL\0depends=virtio,virtio_ring\0name=x\0",
        )
        .unwrap();
        fs::write(drivers.join("virtio.ko"), b"\x7fELF\0depends=virtio_ring\0").unwrap();
        // Two that need one another, which does not occur in real builds.
        let packed = b"\x7fELF\0depends=virtio\0";
        let mut xz = Vec::new();
        liblzma::read::XzEncoder::new(&packed[..], 1)
            .read_to_end(&mut xz)
            .unwrap();
        fs::write(drivers.join("virtio_ring.ko.xz"), xz).unwrap();
        fs::write(drivers.join("virtio.ko.old"), b"").unwrap();
        assert_eq!(
            names(folder.path(), &["virtio_blk"]),
            ["virtio_ring", "virtio", "virtio_blk"]
        );
        assert_eq!(
            modules(&build(folder.path()), &["virtio_ring"]).unwrap()[1].bytes,
            packed
        );
        assert!(
            names(folder.path(), &["ext4"]).is_empty(),
            "built in, or not there at all"
        );
    }

    #[test]
    fn endless_dependencies_and_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("kernel");
        fs::create_dir_all(&top).unwrap();
        for n in 0..=super::DEPTH_MAX {
            fs::write(
                top.join(format!("m{n}.ko")),
                format!("\x7fELF\0depends=m{}\0", n + 1),
            )
            .unwrap();
        }
        let failed = |name: &str| {
            let error = modules(&build(folder.path()), &[name])
                .unwrap_err()
                .to_string();
            error.replace(folder.path().to_str().unwrap(), "MODULES")
        };
        insta::assert_snapshot!(failed("m0"), @"MODULES/kernel/m64.ko: ends a chain of more than 64 modules that need one another; Marvin loads no such modules: install or build them again");
        assert_eq!(names(folder.path(), &["m1"]).len(), super::DEPTH_MAX);
        fs::create_dir_all(top.join("d/".repeat(super::FOLDERS_MAX))).unwrap();
        insta::assert_snapshot!(failed("m1").replace("/d", ""), @"MODULES/kernel: is more than 32 directories down; Marvin loads no such modules: install or build them again");
    }

    #[test]
    fn builtin_modules_are_known_from_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let built_in = |name: &str| super::is_built_in(&build(folder.path()), name).unwrap();
        assert_eq!(built_in("lzo-rle"), None);
        fs::write(
            folder.path().join("modules.builtin"),
            "kernel/fs/ext4/ext4.ko\nkernel/crypto/lzo-rle.ko\n",
        )
        .unwrap();
        assert_eq!(
            (built_in("lzo_rle"), built_in("ext4"), built_in("ext")),
            (Some(true), Some(true), Some(false))
        );
        let bare = Build {
            modules: None,
            ..build(folder.path())
        };
        assert_eq!(super::is_built_in(&bare, "ext4").unwrap(), None);
        let path = folder.path().join("config");
        let text =
            "CONFIG_EXT4_FS=y\nCONFIG_XFS_FS=m\n# CONFIG_E1000E is not set\nCONFIG_VIRTIO_BLK=y\n";
        fs::write(&path, text).unwrap();
        let sha256 = String::new();
        let bare = Build {
            config: Some(model::BuildFile { path, sha256 }),
            ..bare
        };
        for (name, expected) in [
            ("ext4", Some(true)),
            ("xfs", Some(false)),
            ("e1000e", Some(false)),
            ("virtio-blk", Some(true)),
            ("virtio_scsi", None),
        ] {
            assert_eq!(super::is_built_in(&bare, name).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn a_damaged_module_says_which() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kernel")).unwrap();
        fs::write(
            folder.path().join("kernel/a.ko.xz"),
            b"\xfd7zXZ\0 and nothing more",
        )
        .unwrap();
        let error = modules(&build(folder.path()), &["a"])
            .unwrap_err()
            .to_string();
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

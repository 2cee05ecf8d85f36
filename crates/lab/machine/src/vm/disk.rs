//! The scratch disk of a guest: a sparse file in QEMU's directory, with a new file system for each
//! boot, made by the host's mkfs.

use std::fs::File;
use std::path::{Path, PathBuf};

use model::FileSystem;
use subprocess::Program;

use crate::MachineError;
use crate::qemu::Scratch;

/// The file within a scratch directory.
const NAME: &str = "disk";
/// Its size (MiB); it takes what the guest writes.
const SIZE_MIB: u64 = 1024;
/// QEMU's arguments. Flushes end in the host's memory: a workload costs what the guest's kernel
/// does, and not what the host's disk does.
const ARGUMENTS: &str = "-drive file=disk,format=raw,if=none,id=disk,cache=unsafe,discard=unmap -device virtio-blk-pci,drive=disk";
/// Where programs for administrators are, also if PATH lacks it.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// How to make the disks of a machine.
#[derive(Debug, Clone)]
pub(super) struct ScratchDisk {
    file_system: FileSystem,
    mkfs: PathBuf,
    version: String,
}

/// The program that makes a file system, its Debian package, and its options. Tables are complete
/// when it ends, so that the guest does not go on with them while it is measured.
fn maker(file_system: FileSystem) -> (&'static str, &'static str, &'static [&'static str]) {
    match file_system {
        FileSystem::Ext4 => (
            "mkfs.ext4",
            "e2fsprogs",
            &[
                "-q",
                "-F",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
            ],
        ),
        FileSystem::Xfs => ("mkfs.xfs", "xfsprogs", &["-q", "-f"]),
        FileSystem::Btrfs => ("mkfs.btrfs", "btrfs-progs", &["-q", "-f"]),
    }
}

impl ScratchDisk {
    /// Finds the program that makes the file system.
    pub(super) fn find(file_system: FileSystem) -> Result<Self, MachineError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path)
            .chain(FOLDERS.map(PathBuf::from))
            .collect();
        Self::find_in(file_system, &folders)
    }

    fn find_in(file_system: FileSystem, folders: &[PathBuf]) -> Result<Self, MachineError> {
        let (program, package, _) = maker(file_system);
        let found = folders
            .iter()
            .map(|folder| folder.join(program))
            .find(|path| path.is_file());
        let mkfs = found.ok_or(MachineError::NoMkfs {
            file_system,
            program,
            package,
        })?;
        let requested = Program::new(&mkfs).args(["-V"]).deadline_s(10).run();
        let ended = requested.map_err(|error| failed(file_system, &error.to_string()))?;
        // mkfs.ext4 writes its version to standard error.
        let text = [ended.text(), ended.stderr].concat();
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Self {
            file_system,
            mkfs,
            version,
        })
    }

    /// Makes an empty disk.
    pub(super) fn make(&self, scratch: &Scratch) -> Result<(), MachineError> {
        let path = scratch.path(NAME);
        let sized = File::create(&path).and_then(|file| file.set_len(SIZE_MIB << 20));
        sized.map_err(MachineError::io("create", &path))?;
        let (_, _, options) = maker(self.file_system);
        let made = Program::new(&self.mkfs)
            .args(options)
            .args([Path::new(NAME)])
            .folder(scratch.folder());
        match made.deadline_s(120).run() {
            Ok(ended) if ended.code == Some(0) => Ok(()),
            Ok(ended) => Err(failed(self.file_system, &ended.reason())),
            Err(error) => Err(failed(self.file_system, &error.to_string())),
        }
    }

    pub(super) const fn arguments() -> &'static str {
        ARGUMENTS
    }

    /// Returns what results depend on.
    pub(super) fn fingerprint(&self) -> (String, String) {
        (
            "equipment.disk".to_owned(),
            format!("{SIZE_MIB} MiB, {}, {ARGUMENTS}", self.version),
        )
    }
}

fn failed(file_system: FileSystem, why: &str) -> MachineError {
    MachineError::NoFileSystem {
        file_system,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use model::FileSystem;

    use super::{NAME, SIZE_MIB, ScratchDisk};
    use crate::qemu::Scratch;

    #[test]
    fn missing_mkfs_is_named_with_its_package() {
        let nowhere = tempfile::tempdir().unwrap();
        let error =
            ScratchDisk::find_in(FileSystem::Xfs, &[nowhere.path().to_owned()]).unwrap_err();
        insta::assert_snapshot!(error, @r"
        cannot make a scratch disk with xfs: there is no program mkfs.xfs
        hint: apt-get install xfsprogs
        ");
    }

    #[test]
    fn disk_is_sparse_and_has_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path()).unwrap();
        let disk = ScratchDisk::find(FileSystem::Ext4).unwrap();
        assert!(disk.version.contains("mke2fs"), "{}", disk.version);
        disk.make(&scratch).unwrap();
        let bytes = std::fs::read(scratch.path(NAME)).unwrap();
        // The magic number of the superblock (fs/ext4/ext4.h).
        assert_eq!(
            (bytes.len() as u64, &bytes[1080..1082]),
            (SIZE_MIB << 20, &[0x53, 0xef][..])
        );
        let used =
            std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(scratch.path(NAME)).unwrap())
                * 512;
        assert!(used < 128 << 20, "{used}");
    }
}

//! The disk suite: files on a scratch disk with a real file system, in guests that can have one.

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{ExtraFiles, FileSystem, GuestConfig, GuestModule, Suite, Workload};

/// Memory of these guests (MiB): the largest file fits four times.
const MEMORY_MIB: u32 = 256;
const BUS: GuestModule = GuestModule::must("virtio_pci", "");
const DISK: GuestModule = GuestModule::must("virtio_blk", "");
const EXT4: &[GuestModule] = &[BUS, DISK, GuestModule::must("ext4", "")];
const XFS: &[GuestModule] = &[BUS, DISK, GuestModule::must("xfs", "")];
/// btrfs asks the crypto API for its checksum, which no dependency names (`MODULE_SOFTDEP` in
/// fs/btrfs/super.c); newer kernels have it in a module (crypto/crc32c-cryptoapi.c), others in one
/// that btrfs depends on.
pub(super) const CHECKSUM: GuestModule = GuestModule::may("crc32c_cryptoapi");
const BTRFS: &[GuestModule] = &[BUS, DISK, CHECKSUM, GuestModule::must("btrfs", "")];

/// What is done with files: words of the name, texts, operations.
struct Case {
    names: [&'static str; 3],
    stresses: &'static str,
    operation: &'static str,
    operations: u64,
    exercises: Functions,
}

const CASES: [Case; 4] = [
    Case {
        names: ["ext4-fsync", "xfs-fsync", "btrfs-fsync"],
        stresses: "making files that outlive a crash",
        operation: "open(2) that makes a file, write(2) of 4 KiB, fsync(2), close(2)",
        operations: 100,
        exercises: &[&["vfs_fsync_range"]],
    },
    Case {
        names: ["ext4-read", "xfs-read", "btrfs-read"],
        stresses: "reading a file that is not in memory from its beginning",
        operation: "pread(2) of 64 KiB, one piece after the other",
        operations: 512,
        exercises: &[&["filemap_read"]],
    },
    Case {
        names: ["ext4-randread", "xfs-randread", "btrfs-randread"],
        stresses: "reading a file that is not in memory at random places",
        operation: "pread(2) of 4 KiB of 32 MiB",
        operations: 500,
        exercises: &[&["filemap_read"]],
    },
    Case {
        names: ["ext4-unlink", "xfs-unlink", "btrfs-unlink"],
        stresses: "removing files",
        operation: "unlink(2) of a file of 4 KiB that is on the disk",
        operations: 500,
        exercises: &[&["vfs_unlink"]],
    },
];

/// Files on a virtio disk with ext4, xfs and btrfs.
pub static DISKS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let kinds = [
        (FileSystem::Ext4, EXT4),
        (FileSystem::Xfs, XFS),
        (FileSystem::Btrfs, BTRFS),
    ];
    let mut all = Vec::new();
    for (n, (file_system, modules)) in kinds.into_iter().enumerate() {
        let guest_config = GuestConfig {
            own_module: None,
            memory_mib: MEMORY_MIB,
            modules,
            files: ExtraFiles::None,
            disk: Some(file_system),
        };
        for case in &CASES {
            let texts = Texts {
                stresses: case.stresses,
                operation: case.operation,
                source: "",
            };
            all.push(Workload {
                guest_config: guest_config.clone(),
                ..workload(case.names[n], texts, case.operations, case.exercises)
            });
        }
    }
    Suite::new(
        "disk",
        "files on a virtio disk with ext4, xfs and btrfs; only vm has one",
        all,
    )
});

//! The suite fs: single operations of real file systems, on a disk in memory, of tmpfs, and of NFS
//! from the guest itself. Some of ext4 are in the suite subsystems.

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{GuestConfig, GuestModule, Steadiness, Suite, Workload};

/// Memory of these guests (MiB).
const MEMORY_MIB: u32 = 256;
/// A disk in memory of 64 MiB: its driver's parameter is in KiB.
const SMALL_DISK: GuestModule = GuestModule::must("brd", "rd_nr=1 rd_size=65536");
/// One of 512 MiB, of which only what is written takes memory.
const LARGE_DISK: GuestModule = GuestModule::must("brd", "rd_nr=1 rd_size=524288");
const EXT4: &[GuestModule] = &[SMALL_DISK, GuestModule::must("ext4", "")];
const XFS: &[GuestModule] = &[LARGE_DISK, GuestModule::must("xfs", "")];
const BTRFS: &[GuestModule] = &[
    LARGE_DISK,
    super::disk::CHECKSUM,
    GuestModule::must("btrfs", ""),
];

/// The guest serves itself.
const NFS: &[GuestModule] = &[
    GuestModule::must("nfsd", ""),
    GuestModule::must("nfs", ""),
    GuestModule::must("nfsv4", ""),
];

/// What is done, on each file system that it is declared for.
struct Case {
    stresses: &'static str,
    operation: &'static str,
    operations: u64,
    rows: &'static [(&'static str, Functions)],
}

const OF_CONTENT: [Case; 10] = [
    Case {
        stresses: "making files, without their way to the disk",
        operation: "a file of 4 KiB is made and removed",
        operations: 200,
        rows: &[
            (
                "xfs-ram-create",
                &[&["xfs_vn_create", "xfs_create"], &["xfs_vn_unlink"]],
            ),
            ("btrfs-ram-create", &[&["btrfs_create"], &["btrfs_unlink"]]),
            ("ext4-ram-nojournal", &[&["ext4_create"], &["ext4_unlink"]]),
            ("nfs-ram-create", &[&["nfsd4_open"], &["nfsd4_remove"]]),
        ],
    },
    Case {
        stresses: "files that outlive a crash",
        operation: "a file of 4 KiB is made, written and fsync(2) returns",
        operations: 100,
        rows: &[
            ("xfs-ram-fsync", &[&["xfs_file_fsync"]]),
            ("btrfs-ram-fsync", &[&["btrfs_sync_file"]]),
            ("nfs-ram-fsync", &[&["nfs_file_fsync"], &["nfsd4_write"]]),
        ],
    },
    Case {
        stresses: "reading a file that is not in memory",
        operation: "pread(2) of 64 KiB, one piece after the other",
        operations: 128,
        rows: &[
            (
                "xfs-ram-read",
                &[&["xfs_read_iomap_begin", "xfs_vm_readahead"]],
            ),
            (
                "btrfs-ram-read",
                &[&["btrfs_readahead", "extent_readahead"]],
            ),
            ("nfs-ram-read", &[&["nfs_readahead"], &["nfsd4_read"]]),
        ],
    },
    Case {
        stresses: "files that grow",
        operation: "pwrite(2) of 4 KiB behind the end of a file",
        operations: 512,
        rows: &[
            ("ext4-ram-write", &[&["ext4_da_write_begin"]]),
            (
                "xfs-ram-write",
                &[
                    &["xfs_file_write_iter"],
                    &["xfs_buffered_write_iomap_begin"],
                ],
            ),
            (
                "btrfs-ram-write",
                &[&["btrfs_do_write_iter", "btrfs_buffered_write"]],
            ),
            ("tmpfs-write", &[&["shmem_write_begin"]]),
            ("nfs-ram-write", &[&["nfs_write_begin", "nfs_file_write"]]),
        ],
    },
    Case {
        stresses: "writing through to the disk",
        operation: "pwrite(2) of 4 KiB over a file of 1 MiB, and fdatasync(2)",
        operations: 100,
        rows: &[
            ("ext4-ram-sync", &[&["ext4_sync_file"]]),
            ("xfs-ram-sync", &[&["xfs_file_fsync"]]),
            ("nfs-ram-sync", &[&["nfs_file_fsync"], &["nfsd4_write"]]),
        ],
    },
    Case {
        stresses: "page faults that make a file's page writable",
        operation: "the first write to a page of a shared mapping of a file in memory",
        operations: 1_024,
        rows: &[
            ("ext4-ram-fault", &[&["ext4_page_mkwrite"]]),
            (
                "xfs-ram-fault",
                &[&[
                    "xfs_filemap_page_mkwrite",
                    "__xfs_filemap_fault",
                    "xfs_write_fault",
                ]],
            ),
            ("btrfs-ram-fault", &[&["btrfs_page_mkwrite"]]),
        ],
    },
    Case {
        stresses: "files that grow by gaps",
        operation: "pwrite(2) of 1000 bytes behind the end of a file and a gap of 63 KiB",
        operations: 200,
        rows: &[
            ("ext4-ram-gap", &[&["ext4_da_write_begin"]]),
            ("xfs-ram-gap", &[&["xfs_file_write_iter"]]),
        ],
    },
    Case {
        stresses: "how full a file system is",
        operation: "a file of 4 KiB is made and removed, and statfs(2)",
        operations: 150,
        rows: &[
            ("ext4-ram-statfs", &[&["ext4_statfs"]]),
            ("xfs-ram-statfs", &[&["xfs_fs_statfs"]]),
            ("btrfs-ram-statfs", &[&["btrfs_statfs"]]),
        ],
    },
    Case {
        stresses: "cutting files off",
        operation: "pwrite(2) of 64 KiB to an empty file, ftruncate(2) to nothing",
        operations: 200,
        rows: &[
            ("ext4-ram-trunc", &[&["ext4_truncate"]]),
            (
                "xfs-ram-trunc",
                &[&["xfs_setattr_size", "xfs_vn_setattr_size"]],
            ),
            ("btrfs-ram-trunc", &[&["btrfs_setattr"]]),
            ("tmpfs-trunc", &[&["shmem_setattr"], &["shmem_undo_range"]]),
            ("nfs-ram-trunc", &[&["nfs_setattr"], &["nfsd4_setattr"]]),
        ],
    },
    Case {
        stresses: "reserving blocks",
        operation: "fallocate(2) of 64 KiB, and of a hole in its place",
        operations: 200,
        rows: &[
            ("ext4-ram-falloc", &[&["ext4_fallocate"]]),
            ("xfs-ram-falloc", &[&["xfs_file_fallocate"]]),
            ("btrfs-ram-falloc", &[&["btrfs_fallocate"]]),
            ("tmpfs-falloc", &[&["shmem_fallocate"]]),
        ],
    },
];

const OF_NAMES: [Case; 7] = [
    Case {
        stresses: "copying within the kernel, which may share blocks",
        operation: "copy_file_range(2) of 64 KiB over another file",
        operations: 100,
        rows: &[
            (
                "ext4-ram-copy",
                &[&["vfs_copy_file_range"], &["splice_direct_to_actor"]],
            ),
            ("xfs-ram-copy", &[&["xfs_file_remap_range"]]),
            ("btrfs-ram-copy", &[&["btrfs_remap_file_range"]]),
        ],
    },
    Case {
        stresses: "where a file's blocks are",
        operation: "ioctl(2) FS_IOC_FIEMAP of a file with 64 extents",
        operations: 200,
        rows: &[
            ("ext4-ram-fiemap", &[&["ext4_fiemap"]]),
            ("xfs-ram-fiemap", &[&["xfs_vn_fiemap"]]),
            ("btrfs-ram-fiemap", &[&["btrfs_fiemap"]]),
        ],
    },
    Case {
        stresses: "names of files",
        operation: "link(2) and unlink(2) of a second name",
        operations: 300,
        rows: &[
            ("ext4-ram-link", &[&["ext4_link"], &["ext4_unlink"]]),
            ("xfs-ram-link", &[&["xfs_vn_link"], &["xfs_vn_unlink"]]),
            ("btrfs-ram-link", &[&["btrfs_link"], &["btrfs_unlink"]]),
            ("tmpfs-link", &[&["shmem_link"], &["shmem_unlink"]]),
        ],
    },
    Case {
        stresses: "renaming files",
        operation: "rename(2) to another name of the same folder, and back",
        operations: 300,
        rows: &[
            ("ext4-ram-rename", &[&["ext4_rename2", "ext4_rename"]]),
            ("xfs-ram-rename", &[&["xfs_vn_rename"]]),
            ("btrfs-ram-rename", &[&["btrfs_rename2", "btrfs_rename"]]),
            ("tmpfs-rename", &[&["shmem_rename2"]]),
            ("nfs-ram-rename", &[&["nfs_rename"], &["nfsd4_rename"]]),
        ],
    },
    Case {
        stresses: "making and removing folders",
        operation: "mkdir(2) and rmdir(2)",
        operations: 200,
        rows: &[
            ("ext4-ram-mkdir", &[&["ext4_mkdir"], &["ext4_rmdir"]]),
            ("xfs-ram-mkdir", &[&["xfs_vn_mkdir"], &["xfs_vn_unlink"]]),
            ("btrfs-ram-mkdir", &[&["btrfs_mkdir"], &["btrfs_rmdir"]]),
            ("tmpfs-mkdir", &[&["shmem_mkdir"], &["shmem_rmdir"]]),
            ("nfs-ram-mkdir", &[&["nfs_mkdir"], &["nfsd4_create"]]),
        ],
    },
    Case {
        stresses: "changing attributes of files",
        operation: "chmod(2) to other permissions, and back",
        operations: 500,
        rows: &[
            ("ext4-ram-chmod", &[&["ext4_setattr"]]),
            (
                "xfs-ram-chmod",
                &[&["xfs_vn_setattr", "xfs_setattr_nonsize"]],
            ),
            ("btrfs-ram-chmod", &[&["btrfs_setattr"]]),
            ("tmpfs-chmod", &[&["shmem_setattr"]]),
            ("nfs-ram-chmod", &[&["nfs_setattr"], &["nfsd4_setattr"]]),
        ],
    },
    Case {
        stresses: "reading folders",
        operation: "getdents64(2) over a folder of 64 files, from its beginning to its end",
        operations: 200,
        rows: &[
            ("ext4-ram-readdir", &[&["ext4_readdir"]]),
            ("xfs-ram-readdir", &[&["xfs_file_readdir"]]),
            ("btrfs-ram-readdir", &[&["btrfs_real_readdir"]]),
            ("nfs-ram-readdir", &[&["nfs_readdir"]]),
        ],
    },
];

/// Rows whose cost depends on whether a thread of the kernel's or the caller does the writing, which
/// a seed decides.
const CHAOTIC: [&str; 0] = [];

/// Returns what a guest needs for a file system in memory.
pub(super) fn guest_config(file_system: &str) -> GuestConfig {
    let modules = match file_system {
        "ext4" => EXT4,
        "xfs" => XFS,
        "btrfs" => BTRFS,
        "nfs" => NFS,
        _ => &[],
    };
    GuestConfig {
        modules,
        ..GuestConfig::with_memory(MEMORY_MIB)
    }
}

fn declare(case: &Case, name: &'static str, exercises: Functions) -> Workload {
    let texts = Texts {
        stresses: case.stresses,
        operation: case.operation,
        source: "",
    };
    Workload {
        steadiness: if CHAOTIC.contains(&name) {
            Steadiness::Chaotic
        } else {
            Steadiness::Steady
        },
        guest_config: guest_config(name.split('-').next().unwrap_or_default()),
        ..workload(name, texts, case.operations, exercises)
    }
}

/// Files of ext4, xfs, btrfs, tmpfs and NFS, all in memory.
pub static FS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for file_system in ["ext4", "xfs", "btrfs", "tmpfs", "nfs"] {
        for case in OF_CONTENT.iter().chain(&OF_NAMES) {
            let rows = case.rows.iter();
            let own = rows.filter(|(name, _)| name.starts_with(file_system));
            all.extend(own.map(|(name, exercises)| declare(case, name, exercises)));
        }
    }
    Suite::new(
        "fs",
        "files of ext4, xfs and btrfs on a disk in memory, of tmpfs, and of NFS by loopback",
        all,
    )
});

//! Processes that use one file system in memory at the same time, and files that they map: what their
//! locks keep from others.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::files::own;
use super::{all_at_once, each, tasks};
use crate::sys::check;
use crate::workloads::Made;
use crate::workloads::disk_mount::{InMemory, Mount, Within};
use crate::workloads::file::create_unlink_at;
use crate::workloads::region::{PAGE, Region};
use crate::workloads::scratch::{self, Folder};
use crate::workloads::split_work::TaskKind;

const PIECE: usize = 128 * 1024;
/// Pages of a file that are mapped, written and unmapped at a time.
const FILE_PAGES: usize = 16;

fn within(mount: Mount, work: Made) -> Made {
    Ok(Box::new(Within {
        work: work?,
        _mount: mount,
    }))
}

/// share-ext4-create, share-xfs-create, share-btrfs-create: processes make and remove files in
/// folders of their own.
pub(super) fn create(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let folders = mount.path("");
    for number in 0..tasks()? {
        fs::create_dir(folders.join(own(number)))?;
    }
    let work = all_at_once(TaskKind::Process, None, move |number| {
        create_unlink_at(folders.join(own(number)).join("file"), None)
    });
    within(mount, work)
}

/// share-ext4-falloc: processes reserve blocks for files of their own, and cut
/// them off.
pub(super) fn reserve(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let folder = mount.path("");
    let work = each(TaskKind::Process, None, move |number| {
        let file = File::create(folder.join(own(number)))?;
        Ok(Box::new(move || {
            // SAFETY: takes no memory of ours.
            check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, PIECE as libc::off_t) })?;
            file.set_len(0)
        }))
    });
    within(mount, work)
}

/// share-btrfs-write: processes write to files of their own, and cut them off.
pub(super) fn write(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let folder = mount.path("");
    let work = each(TaskKind::Process, None, move |number| {
        let file = File::create(folder.join(own(number)))?;
        Ok(Box::new(move || {
            file.write_all_at(&[1; PAGE], 0)?;
            file.set_len(0)
        }))
    });
    within(mount, work)
}

/// share-map-file: processes map the same pages of a file on tmpfs, write to them, and unmap them.
pub(super) fn map() -> Made {
    map_with(libc::MAP_SHARED)
}

/// share-map-private: the same with copies of their own, which are freed with the mapping.
pub(super) fn map_privately() -> Made {
    map_with(libc::MAP_PRIVATE)
}

fn map_with(flags: libc::c_int) -> Made {
    let folder = Folder::new()?;
    let mut file = folder.file("file")?;
    scratch::fill(&mut file, FILE_PAGES * PAGE)?;
    let path = folder.path("file");
    each(TaskKind::Process, Some(folder), move |_| {
        let file = File::options().read(true).write(true).open(&path)?;
        Ok(Box::new(move || -> io::Result<()> {
            Region::file(&file, FILE_PAGES * PAGE, flags)?.touch(PAGE);
            Ok(())
        }))
    })
}

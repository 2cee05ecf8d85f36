//! Opens the files that a process has mapped: these very files, wherever the root of the process is
//! and whatever stands at their paths now.
//!
//! The path of a mapping is the word of another process. At that path this host may have another
//! file, and its owner may have put a pipe there, which would never be read, or a device, which
//! would never end. What is found is looked at before it is opened, and only regular files are.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, fstatfs, major, minor, open, readlink};

use crate::proc::Mapping;

/// Largest program or library that is read (bytes).
const FILE_MAX: u64 = 512 << 20;
/// Kinds of file systems whose files have another device in their mappings than in their status
/// (fs/overlayfs, fs/btrfs; include/uapi/linux/magic.h): there the inode alone is compared.
const STACKED: [i64; 2] = [0x794c_7630, 0x9123_683e];

/// A file that was found and not opened yet.
#[derive(Debug)]
pub(crate) struct Found(OwnedFd);

/// Finds the file of a mapping of a process; `None` if it cannot be had, or another one is there.
pub(crate) fn find(process: u32, mapping: &Mapping) -> Option<Found> {
    // Leads to the mapped file itself, also if it was deleted. Only root may follow it.
    let link = format!(
        "/proc/{process}/map_files/{:x}-{:x}",
        mapping.start, mapping.end
    );
    if let Some(place) = look(&link, OFlags::empty())
        // The process may have mapped another file there meanwhile.
        && readlink(&link, Vec::new())
            .is_ok_and(|path| path.as_bytes() == mapping.raw_path.as_bytes())
    {
        return is_readable(&fstat(&place).ok()?).then_some(Found(place));
    }
    let place = look(
        &format!("/proc/{process}/root{}", mapping.path),
        OFlags::NOFOLLOW,
    )
    .filter(|place| is_mapped(place, mapping))
    // The program itself, also if it was deleted.
    .or_else(|| {
        look(&format!("/proc/{process}/exe"), OFlags::empty())
            .filter(|place| is_mapped(place, mapping))
    })?;
    is_readable(&fstat(&place).ok()?).then_some(Found(place))
}

/// Finds the map of functions that the runtime of a process wrote: `number` is that of the process
/// in its own namespace. Only what the process's user owns is its word.
pub(crate) fn find_perf_map(process: u32, number: u32, user: u32) -> Option<Found> {
    // perf reads it in this folder (tools/perf/Documentation/jit-interface.txt).
    let folder = Path::new("/").join("tmp");
    let root = Path::new("/proc").join(process.to_string()).join("root");
    let inner = root.join("tmp").join(format!("perf-{number}.map"));
    // A process that ended has no root any more.
    let outer = folder.join(format!("perf-{process}.map"));
    let place = [inner, outer]
        .iter()
        .find_map(|path| look(path.to_str()?, OFlags::NOFOLLOW))?;
    let stat = fstat(&place).ok()?;
    (stat.st_uid == user && is_readable(&stat)).then_some(Found(place))
}

/// Looks a path up. With `O_PATH` nothing is opened, so that no pipe waits and no device acts.
fn look(path: &str, flags: OFlags) -> Option<OwnedFd> {
    open(path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty()).ok()
}

/// Whether a file is the one that is mapped, by device and inode.
fn is_mapped(place: &OwnedFd, mapping: &Mapping) -> bool {
    let Ok(stat) = fstat(place) else { return false };
    let is_inode = stat.st_ino == mapping.inode && mapping.inode != 0;
    let is_device = (major(stat.st_dev), minor(stat.st_dev)) == mapping.device;
    is_inode
        && (is_device
            || fstatfs(place.as_fd()).is_ok_and(|system| STACKED.contains(&system.f_type)))
}

fn is_readable(stat: &Stat) -> bool {
    let is_small = u64::try_from(stat.st_size).is_ok_and(|size| size <= FILE_MAX);
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && is_small
}

impl Found {
    /// Opens the file. A lease of another process is not waited for.
    pub(crate) fn open(&self) -> Option<File> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let file = open(
            path,
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        );
        file.ok().map(File::from)
    }

    /// Reads the file; what grows meanwhile is read up to the limit.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.take(FILE_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::proc;

    /// Returns the mapping of this test's code.
    fn own() -> Mapping {
        let path = std::env::current_exe().unwrap().canonicalize().unwrap();
        let maps = proc::maps(&std::fs::read_to_string("/proc/self/maps").unwrap());
        maps.into_iter()
            .find(|mapping| mapping.is_executable && mapping.path == path.to_string_lossy())
            .unwrap()
    }

    #[test]
    fn mapped_file_is_read() {
        let bytes = find(std::process::id(), &own()).unwrap().read().unwrap();
        assert!(bytes.starts_with(b"\x7fELF"));
    }

    /// A mapping of a file that only its path leads to: of a process that has no such address.
    fn by_path(path: &std::path::Path) -> Mapping {
        let status = std::fs::symlink_metadata(path).unwrap();
        Mapping {
            start: 0x1000,
            end: 0x2000,
            is_executable: true,
            offset: 0,
            device: (major(status.dev()), minor(status.dev())),
            inode: status.ino(),
            raw_path: path.to_string_lossy().into_owned(),
            path: path.to_string_lossy().into_owned(),
        }
    }

    #[test]
    fn pipe_device_and_link_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, link, device] = ["pipe", "link", "device"].map(|name| folder.path().join(name));
        let made = std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let zero = by_path(std::path::Path::new("/dev/zero"));
        assert!(find(std::process::id(), &zero).is_none());
        assert!(
            [&pipe, &link]
                .iter()
                .all(|path| find(std::process::id(), &by_path(path)).is_none())
        );
        // A device of one's own needs privileges.
        let made = std::process::Command::new("mknod")
            .arg(&device)
            .args(["c", "1", "5"])
            .output()
            .unwrap();
        assert!(!made.status.success() || find(std::process::id(), &by_path(&device)).is_none());
    }

    #[test]
    fn replaced_file_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("library.so");
        std::fs::write(&path, "old").unwrap();
        let mapping = by_path(&path);
        assert_eq!(
            find(std::process::id(), &mapping).unwrap().read().unwrap(),
            b"old"
        );
        std::fs::rename(&path, folder.path().join("kept")).unwrap();
        std::fs::write(&path, "new").unwrap();
        assert!(find(std::process::id(), &mapping).is_none());
    }
}

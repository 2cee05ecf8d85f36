//! What a user's own program finds in a guest beside the files that it brought: the directories,
//! devices and file systems of an ordinary system, as far as the kernel has them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use guest::mount;
use guest::sys::{c, check};

/// Most bytes of all that a run prints: a program that prints without end fills this file system,
/// and not the memory.
pub(crate) const PRINTED_MAX: u64 = 8 << 20;
/// File systems without a device that programs expect, and where. A kernel may lack each of them.
const FILE_SYSTEMS: [(&str, &str); 9] = [
    ("devpts", "/dev/pts"),
    ("tmpfs", "/dev/shm"),
    ("mqueue", "/dev/mqueue"),
    ("hugetlbfs", "/dev/hugepages"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("tracefs", "/sys/kernel/tracing"),
    ("debugfs", "/sys/kernel/debug"),
    ("securityfs", "/sys/kernel/security"),
    ("bpf", "/sys/fs/bpf"),
];
/// The name by which the agent marks what is measured, for scripts.
pub(crate) const MARK: &str = "marvin-mark";
/// Links of /dev that udev makes elsewhere, and the agent's other names.
const LINKS: [(&str, &str); 6] = [
    ("/agent", "/usr/bin/marvin-mark"),
    ("/agent", "/usr/bin/marvin-module"),
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];
/// Directories in which all users may write.
const OPEN: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock"];
/// Directories of the system's own.
const FOLDERS: [&str; 6] = ["/root", "/run", "/usr/bin", "/var/log", "/var/lib", "/mnt"];
/// Open files of a process: what systemd allows a service at most.
const FILES_MAX: u64 = 524_288;

/// Makes an ordinary system of a guest.
pub(crate) fn make(printed: &str) -> io::Result<()> {
    show_own_tmp()?;
    for folder in FOLDERS.into_iter().chain(OPEN) {
        fs::create_dir_all(folder)?;
    }
    for (kind, place) in FILE_SYSTEMS {
        // A kernel without it refuses the mount, or has no such directory in sysfs.
        drop(mount(kind, place));
    }
    for (target, link) in LINKS {
        match symlink(target, link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    for folder in OPEN {
        fs::set_permissions(folder, Permissions::from_mode(0o1777))?;
    }
    limit_printed(printed)?;
    allow_files()
}

/// Shows what the program brought to /tmp: until now a file system of the first program hid it.
fn show_own_tmp() -> io::Result<()> {
    let place = c("/tmp")?;
    // SAFETY: the string is valid and outlives the call.
    match check(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }) {
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
        _ => Ok(()),
    }
}

/// Mounts a small file system where programs' output is kept.
fn limit_printed(printed: &str) -> io::Result<()> {
    fs::create_dir_all(printed)?;
    let (kind, place) = (c("tmpfs")?, c(printed)?);
    let options = c(&format!("size={PRINTED_MAX}"))?;
    // SAFETY: the strings are valid and outlive the call.
    check(unsafe {
        libc::mount(
            kind.as_ptr(),
            place.as_ptr(),
            kind.as_ptr(),
            0,
            options.as_ptr().cast(),
        )
    })
    .map(drop)
}

/// Returns whether programs have filled the file system of their output.
pub(crate) fn is_full(printed: &str) -> bool {
    let files = fs::read_dir(printed).into_iter().flatten().flatten();
    let bytes: u64 = files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    bytes >= PRINTED_MAX
}

/// Lets programs raise their limit of open files, as a system does.
fn allow_files() -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: 1024,
        rlim_max: FILES_MAX,
    };
    // SAFETY: the structure is valid for the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

/// Makes the working directory of a program.
pub(crate) fn make_directory(directory: &str) -> io::Result<()> {
    if Path::new(directory).is_dir() {
        return Ok(());
    }
    fs::create_dir_all(directory)
}

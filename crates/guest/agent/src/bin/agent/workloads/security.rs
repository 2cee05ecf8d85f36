//! Security modules and keys: what a call costs that they look at.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::file::open_close_at;
use super::scratch::Folder;
use super::{Between, Failure, Made, Workload, in_guest};
use crate::sys::check;

// include/uapi/linux/landlock.h; the numbers of the calls are those of x86-64 and arm64.
const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;
const BENEATH: i32 = 1;
/// Run, write and read files, and read directories: what Linux 5.13 has of `LANDLOCK_ACCESS_FS_*`.
const ACCESS: u64 = 0b1111;
/// Directories between the rule and the file: as deep as files of a home are.
const DEPTH: usize = 6;

/// `struct landlock_path_beneath_attr`, which is packed.
#[repr(C, packed)]
struct PathBeneath {
    access: u64,
    parent: i32,
}

/// landlock-open: a file is opened and closed by a process that is restricted to everything below
/// the root: each directory on the way is looked at, and nothing is refused.
pub(super) fn landlock() -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: it restricts the agent for good".to_owned(),
        ));
    }
    let folder = Folder::new()?;
    let mut path = folder.path("depth");
    for _ in 0..DEPTH {
        path.push("directory");
    }
    fs::create_dir_all(&path)?;
    path.push("file");
    File::create(&path)?;
    let handled = ACCESS;
    // SAFETY: the attributes are those of Linux 5.13, one word, valid for the call.
    let made =
        check(unsafe { libc::syscall(CREATE_RULESET, &raw const handled, size_of::<u64>(), 0) });
    let raw = made.map_err(|error| match error.raw_os_error() {
        // It is there, and not switched on.
        Some(libc::EOPNOTSUPP) => Failure::Unsupported("landlock is switched off".to_owned()),
        _ => Failure::from(error),
    })?;
    let raw = i32::try_from(raw).map_err(io::Error::other)?;
    // SAFETY: the call just opened it, and it is nowhere else.
    let rules = unsafe { OwnedFd::from_raw_fd(raw) };
    let root = File::open("/")?;
    let all = PathBeneath {
        access: ACCESS,
        parent: root.as_raw_fd(),
    };
    // SAFETY: the rule has the layout of the C struct and is valid for the call.
    check(unsafe { libc::syscall(ADD_RULE, rules.as_raw_fd(), BENEATH, &raw const all, 0) })?;
    // SAFETY: takes no memory of ours.
    check(unsafe { libc::syscall(RESTRICT_SELF, rules.as_raw_fd(), 0) })?;
    open_close_at(path, Some(folder))
}

/// A key's new content.
const CONTENT: [u8; 32] = [7; 32];
/// The keyring of this process (`KEY_SPEC_PROCESS_KEYRING` of include/uapi/linux/keyctl.h).
const OWN_KEYRING: i32 = -2;
/// `KEYCTL_READ`.
const READ: i32 = 11;

fn add_key() -> io::Result<i64> {
    // SAFETY: the strings end with a zero, the content has the size named; all outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            c"marvin".as_ptr(),
            CONTENT.as_ptr(),
            CONTENT.len(),
            OWN_KEYRING,
        )
    })
}

struct Keys;

impl Workload for Keys {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut content = [0u8; CONTENT.len()];
        for _ in 0..operations {
            let key = add_key()?;
            // SAFETY: the buffer has the size named and is valid for the call.
            let read = check(unsafe {
                libc::syscall(
                    libc::SYS_keyctl,
                    READ,
                    key,
                    content.as_mut_ptr(),
                    content.len(),
                )
            })?;
            if usize::try_from(read) != Ok(CONTENT.len()) {
                return Err(io::Error::other(format!("the key has {read} bytes")));
            }
        }
        Ok(())
    }
}

/// key-update: the content of a key is replaced and read.
pub(super) fn keys() -> Made {
    add_key()?;
    Ok(Box::new(Keys))
}

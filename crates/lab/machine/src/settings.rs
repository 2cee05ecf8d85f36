//! What machines are opened with: programs, limits, directories.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use model::ExactCpu;
use subprocess::{FolderError, LockedFolder};

use crate::MachineError;
use crate::initrd::Programs;

/// Limits of one machine. Where it counts the guest's instructions they do, too, so that a kernel
/// hangs on all hosts or on none.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Instructions for boot and settling.
    pub boot_instructions: u64,
    /// Instructions for a job.
    pub job_instructions: u64,
    /// Seconds for the boot of a machine that counts no instructions; long enough for a busy host
    /// without KVM.
    pub boot_s: u64,
    /// Seconds for a job there.
    pub job_s: u64,
    /// Bytes that a guest may print.
    pub console_bytes: u64,
    /// Share of the processors' time beyond which others have disturbed a job on a machine that
    /// measures time. An idle host's daemons take less than a hundredth, and counting in ticks
    /// errs by less than a twentieth; a process that competes for one of four processors takes
    /// an eighth.
    pub disturbed_share: f64,
    /// Bytes that all snapshots may take on disk.
    pub snapshot_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let boot_instructions = 40_000_000_000;
        let job_instructions = 40_000_000_000;
        let boot_s = 300;
        let job_s = 900;
        let disturbed_share = 0.1;
        let console_bytes = 16 << 20;
        let snapshot_bytes = 4 << 30;
        Self {
            boot_instructions,
            job_instructions,
            boot_s,
            job_s,
            disturbed_share,
            console_bytes,
            snapshot_bytes,
        }
    }
}

/// Whether to use snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotUse {
    /// Boot once per seed, then start from the saved guest.
    Cached,
    /// Boot for each job. Slower; the numbers are the same.
    Never,
}

/// Settings of a machine; each takes what it needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// QEMU; default: the one in PATH.
    pub qemu: Option<PathBuf>,
    /// The CPU of exact machines.
    pub cpu: ExactCpu,
    pub programs: Programs,
    /// The first PID 1 of guests that load modules.
    pub loader: Vec<u8>,
    /// The plugin that QEMU loads.
    pub tracer: Vec<u8>,
    /// The plugin that QEMU loads beside it to record an order of instructions; no part of the
    /// machine's identity.
    pub path_recorder: Vec<u8>,
    /// Other conditions that results depend on; part of the machine's identity.
    pub conditions: Vec<(String, String)>,
    /// The directory of snapshots and scratch files.
    pub home: PathBuf,
    /// Whether to use snapshots.
    pub snapshots: SnapshotUse,
    pub limits: Limits,
}

/// The directory for temporary files of one opened machine; it is gone with the machine.
#[derive(Debug)]
pub struct ScratchFolder(LockedFolder);

impl ScratchFolder {
    /// Makes an empty directory in a lab's data directory, and deletes those of killed processes. In
    /// a data directory that cannot be written, where only stored results are read, it is among the
    /// system's temporary files.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(home: &Path) -> Result<Self, MachineError> {
        let own = home.join("scratch");
        let made = fs::create_dir_all(&own).map_err(|source| FolderError {
            path: own.clone(),
            source,
        });
        let made = match made.and_then(|()| LockedFolder::new(&own)) {
            Err(error) if is_forbidden(&error.source) => {
                let user = rustix::process::geteuid().as_raw();
                let theirs = std::env::temp_dir().join(format!("marvin-scratch-{user}"));
                make_private(&theirs).map_err(MachineError::io("create", &theirs))?;
                LockedFolder::new(&theirs)
            }
            made => made,
        };
        made.map(Self)
            .map_err(|error| MachineError::io("use", &error.path)(error.source))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Makes a directory that only this user may write to, in one where all users may make files.
fn make_private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(folder)?;
    let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if is_own && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "another user made it, or may write to it: remove it",
        ))
    }
}

/// Returns whether this user, or this file system, may not write there.
fn is_forbidden(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Returns the free space for us in a directory (MiB); `None` if the system does not report it.
#[must_use]
pub fn free_mib(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize) >> 20)
}

/// Returns whether the file system of a directory is mounted noexec.
pub(crate) fn is_noexec(folder: &Path) -> bool {
    rustix::fs::statvfs(folder)
        .is_ok_and(|mount| mount.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC))
}

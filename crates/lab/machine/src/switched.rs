//! A setting of this host or of a cgroup with another value, as long as a program runs without it.
//!
//! Marvin may die meanwhile: a guard of `subprocess::AtEnd` sets back, whatever ends Marvin. If the
//! guard dies, too, a record is left, and the next Marvin sets back. The record names a file and a
//! value that root would write: it is believed only if its owner is this user and no other user may
//! write it or its directory, and it may name only the settings that Marvin switches. The lock of
//! `prepared` lets one Marvin at a time change or measure this host; the guard has it, too.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{OFlags, fstatfs};
use rustix::io::{FdFlags, fcntl_setfd};
use subprocess::AtEnd;

use crate::prepared::{LOCK, undo_folder};

/// The name of the record.
const RECORD: &str = "switched";
/// Most bytes of a record, and of a setting.
const BYTES_MAX: u64 = 4096;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The guard's work: writes the value $1 and removes the record $2.
const SET_BACK: &str = "printf '%s\\n' \"$1\" && rm -f -- \"$2\"";

/// Kinds of file systems (include/uapi/linux/magic.h).
const PROC: i64 = 0x9fa0;
const SYSFS: i64 = 0x6265_6572;
const CGROUPS: [i64; 2] = [0x0027_e0eb, 0x6367_7270];
/// Files of cgroups that have a limit.
const OF_CGROUP: [&str; 5] = [
    "cpu.max",
    "cpu.cfs_quota_us",
    "memory.high",
    "memory.max",
    "memory.limit_in_bytes",
];
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DIRTY: &str = "/proc/sys/vm/dirty_bytes";

/// A setting that cannot be switched: what, where and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}: {why}", .path.display())]
pub struct SwitchError {
    what: &'static str,
    path: PathBuf,
    why: String,
}

impl SwitchError {
    fn new<E: ToString>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |why| Self {
            what,
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// Where the record and the lock are.
#[derive(Debug, Clone)]
pub struct Switching {
    folder: PathBuf,
    lock: PathBuf,
}

/// The right to switch settings of this host.
#[derive(Debug)]
pub struct SwitchLock {
    switching: Switching,
    /// `None` on a host that shows nothing to lock.
    file: Option<File>,
}

/// A setting that has another value until this is dropped.
#[derive(Debug)]
pub struct Switched {
    path: PathBuf,
    before: String,
    record: PathBuf,
    guard: Option<AtEnd>,
}

impl Switching {
    /// Returns those of this host; the data directory has the record of users who may not write to
    /// `/run`.
    #[must_use]
    pub fn of_host(home: &Path) -> Self {
        Self {
            folder: undo_folder(home),
            lock: LOCK.into(),
        }
    }

    /// Takes the right to switch; `None` if another Marvin has it or measures this host.
    ///
    /// # Errors
    /// If the host's lock cannot be opened.
    pub fn try_lock(&self) -> Result<Option<SwitchLock>, SwitchError> {
        let failed = |error| SwitchError::new("lock", &self.lock)(error);
        let file = match File::open(&self.lock) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(SwitchLock {
                    switching: self.clone(),
                    file: None,
                }));
            }
            Err(error) => return Err(failed(error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(SwitchLock {
                switching: self.clone(),
                file: Some(file),
            })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Sets back what a killed Marvin and its guard left; returns a sentence about it. Leaves it to
    /// the one that has the lock.
    ///
    /// # Errors
    /// If what was left cannot be set back, or there is no trusting the record.
    pub fn set_back_left(&self) -> Result<Option<String>, SwitchError> {
        let record = self.folder.join(RECORD);
        if fs::symlink_metadata(&record).is_err() {
            return Ok(None);
        }
        match self.try_lock()? {
            Some(lock) => lock.set_back_left(),
            None => Ok(None),
        }
    }
}

impl SwitchLock {
    fn set_back_left(&self) -> Result<Option<String>, SwitchError> {
        let record = self.switching.folder.join(RECORD);
        if fs::symlink_metadata(&record).is_err() {
            return Ok(None);
        }
        let failed = |why: String| SwitchError::new("believe the record", &record)(why);
        let text = read_own(&self.switching.folder, &record).map_err(failed)?;
        let [boot, path, before] = text.lines().collect::<Vec<_>>()[..] else {
            return Err(failed("it is damaged".into()));
        };
        let mut answer = None;
        // Settings do not outlive the boot, and a cgroup may be gone.
        if boot == boot_id() && Path::new(path).exists() {
            let path = Path::new(path);
            check_value(path, before).map_err(failed)?;
            write(path, before).map_err(SwitchError::new("set back", path))?;
            answer = Some(format!(
                "{} is {before} again: a Marvin that was killed had changed it",
                path.display()
            ));
        }
        fs::remove_file(&record).map_err(SwitchError::new("remove", &record))?;
        Ok(answer)
    }

    /// Gives a setting another value.
    ///
    /// # Errors
    /// If it is no setting that Marvin switches, or cannot be changed or recorded.
    pub fn switch(&self, path: &Path, value: &str) -> Result<Switched, SwitchError> {
        self.set_back_left()?;
        check_value(path, value).map_err(SwitchError::new("change", path))?;
        let failed = |error: io::Error| SwitchError::new("change", path)(error);
        let text =
            read(open(path, OpenOptions::new().read(true)).map_err(failed)?).map_err(failed)?;
        let before = chosen(&text).to_owned();
        check_value(path, &before).map_err(SwitchError::new("change", path))?;
        let folder = &self.switching.folder;
        let record = folder.join(RECORD);
        let unrecorded =
            |error: io::Error| SwitchError::new("record the change in", &record)(error);
        make_own(folder).map_err(unrecorded)?;
        // The guard's own file: a second write to the same one would be ignored
        // (kernel.sysctl_writes_strict).
        let of_guard = open(path, OpenOptions::new().write(true)).map_err(failed)?;
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&record)
            .map_err(unrecorded)?;
        let mut switched = Switched {
            path: path.to_owned(),
            before: before.clone(),
            record: record.clone(),
            guard: None,
        };
        let text = format!("{}\n{}\n{before}\n", boot_id(), path.display());
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(unrecorded)?;
        switched.guard = Some(self.arm(&switched, of_guard).map_err(failed)?);
        write(path, value).map_err(failed)?;
        Ok(switched)
    }

    /// Starts the guard with the lock in its hands.
    fn arm(&self, switched: &Switched, setting: File) -> io::Result<AtEnd> {
        let inherit = |flags| {
            self.file
                .as_ref()
                .map_or(Ok(()), |file| fcntl_setfd(file, flags))
        };
        inherit(FdFlags::empty())?;
        let record = switched.record.to_string_lossy().into_owned();
        let guard = AtEnd::arm(SET_BACK, &[&switched.before, &record], Stdio::from(setting));
        inherit(FdFlags::CLOEXEC)?;
        guard
    }
}

impl Switched {
    /// Sets the setting back.
    ///
    /// # Errors
    /// If it cannot be set back: then the next Marvin tries again.
    pub fn set_back(mut self) -> Result<(), SwitchError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), SwitchError> {
        let is_done = self
            .guard
            .take()
            .is_some_and(|guard| guard.execute().is_ok_and(|status| status.success()));
        if is_done {
            return Ok(());
        }
        // The guard was killed, or the command deleted the cgroup.
        if self.path.exists() {
            write(&self.path, &self.before).map_err(SwitchError::new("set back", &self.path))?;
        }
        match fs::remove_file(&self.record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SwitchError::new("remove", &self.record)(error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        if self.guard.is_some() || self.record.exists() {
            // The record is left then, and the next Marvin says what is wrong.
            drop(self.end());
        }
    }
}

/// Returns what a setting says now: of several words, the one in brackets.
fn chosen(text: &str) -> &str {
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word)
}

/// Checks that a file is a setting that Marvin switches, and that a text can be its value.
fn check_value(path: &Path, value: &str) -> Result<(), String> {
    let fields: Vec<&str> = value.split(' ').collect();
    let is_fine = match (kind(path), &fields[..]) {
        (None, _) => return Err("it is no setting that Marvin switches".into()),
        (Some(Kind::HugePages), [word]) => ["always", "madvise", "never"].contains(word),
        (Some(Kind::Dirty | Kind::Strict), [word]) => is_number(word),
        (Some(Kind::Cgroup), [word]) => is_number(word) || ["max", "-1"].contains(word),
        (Some(Kind::Cgroup), [quota, period]) => {
            (is_number(quota) || *quota == "max") && is_number(period)
        }
        _ => false,
    };
    if is_fine {
        Ok(())
    } else {
        Err(format!("`{value}` is no value of it"))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() < 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    HugePages,
    Dirty,
    /// The strict limit of dirty pages of a device.
    Strict,
    Cgroup,
}

fn kind(path: &Path) -> Option<Kind> {
    let is_plain = path.is_absolute()
        && path
            .components()
            .skip(1)
            .all(|part| matches!(part, Component::Normal(_)));
    let text = path.to_str().filter(|_| is_plain)?;
    let is_line = !text.contains('\n') && !text.contains("//") && !text.contains("/./");
    let device = text
        .strip_prefix("/sys/class/bdi/")
        .and_then(|rest| rest.strip_suffix("/strict_limit"));
    match text {
        _ if !is_line => None,
        HUGE_PAGES => Some(Kind::HugePages),
        DIRTY => Some(Kind::Dirty),
        _ if device.is_some_and(|text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b':')
        }) =>
        {
            Some(Kind::Strict)
        }
        _ if OF_CGROUP
            .iter()
            .any(|name| path.file_name().is_some_and(|last| last == *name)) =>
        {
            Some(Kind::Cgroup)
        }
        _ => None,
    }
}

/// Opens a setting: a regular file of the file system where the kernel has it, and never a link.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?;
    let system = fstatfs(&file)?.f_type;
    let is_there = match kind(path) {
        Some(Kind::HugePages | Kind::Strict) => system == SYSFS,
        Some(Kind::Dirty) => system == PROC,
        Some(Kind::Cgroup) => CGROUPS.contains(&system),
        None => false,
    };
    let is_setting = is_there && file.metadata()?.is_file();
    if is_setting {
        Ok(file)
    } else {
        Err(io::Error::other("the kernel's setting is not there"))
    }
}

fn read(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    // One call of write(2): each is a value of its own.
    open(path, OpenOptions::new().write(true))?.write_all(format!("{value}\n").as_bytes())
}

/// Makes a directory of this user's that no other user may write.
fn make_own(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    check_own(&fs::symlink_metadata(folder)?).map_err(io::Error::other)
}

/// Checks that the owner is this user, and no other user may write.
fn check_own(found: &fs::Metadata) -> Result<(), String> {
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(format!("it belongs to user {}, not to {own}", found.uid()));
    }
    if found.is_symlink() {
        return Err("it is a link".into());
    }
    if found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err("other users may write it".into())
    }
}

/// Reads a file that only this user can have made.
fn read_own(folder: &Path, path: &Path) -> Result<String, String> {
    check_own(&fs::symlink_metadata(folder).map_err(|error| error.to_string())?)?;
    check_own(&fs::symlink_metadata(path).map_err(|error| error.to_string())?)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    check_own(&found)?;
    if !found.is_file() || found.nlink() > 1 || found.len() > BYTES_MAX {
        return Err("it is no record".into());
    }
    read(file).map_err(|error| error.to_string())
}

fn boot_id() -> String {
    fs::read_to_string(BOOT_ID)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests;

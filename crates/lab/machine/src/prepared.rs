//! This host set for measuring: by the agent before the first job of a boot, and set back after the
//! last.
//!
//! The undo file of root is in one place for the whole host, so that after a kill the next Marvin
//! sets back what is left, whichever data directory it has. It would set the host back under a
//! Marvin that measures: a lock, which ends with its process, lets only one of them measure at a
//! time. What the agent reports becomes part of a run's environment.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use subprocess::Shared;

use subprocess::Program;
use wire::Frame;

use crate::MachineError;

/// How long the agent may take (s): before it drops caches, it waits for the disks.
const DEADLINE_S: u64 = 120;
/// The name under which `ingest` expects the report.
const REPORT: &str = "marvin/machine";
/// Descriptions that a run's environment has under other names, or that say when and not what.
const KNOWN: [&str; 8] = [
    "boot.clocksource",
    "boot.command_line",
    "boot.id",
    "boot.mitigation.",
    "boot.release",
    "boot.transparent_hugepage",
    "boot.version",
    "host.processor",
];

/// Root's undo file is here: the directory lasts as long as a boot, and so do the knobs.
const OF_HOST: &str = "/run/marvin";

/// What Marvins lock on this host: a directory that everybody may open, and that holds the knobs.
pub(crate) const LOCK: &str = "/sys/devices/system/cpu";

/// The agent on this host, and its undo file.
#[derive(Debug)]
pub(crate) struct Preparation {
    agent: PathBuf,
    undo: PathBuf,
    lock: PathBuf,
    held: Shared<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Boots for which the host is set.
    boots: usize,
    report: String,
    has_remarked: bool,
    /// Keeps other Marvins from measuring.
    lock: Option<File>,
}

/// Who has the host's lock.
#[derive(Debug)]
enum Lock {
    /// This Marvin; `None` if the host has no knobs to lock.
    Ours(Option<File>),
    Theirs(File),
}

/// The host as long as it is set for measuring.
#[derive(Debug)]
pub(crate) struct Prepared {
    preparation: Arc<Preparation>,
    report: String,
    remark: Option<String>,
    is_over: bool,
}

/// Returns the directory of the undo file: one for the host, or one of the data directory for users
/// who may not write there, and who may set no knobs either.
pub(crate) fn undo_folder(home: &Path) -> PathBuf {
    let of_host = Path::new(OF_HOST);
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let is_ours = is_root
        && DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(of_host)
            .is_ok();
    if is_ours {
        of_host.to_owned()
    } else {
        home.join("host")
    }
}

impl Preparation {
    /// Sets back what a killed Marvin left. If another one measures, the undo file is its own, and
    /// it sets back.
    pub(crate) fn open(agent: PathBuf, folder: &Path, lock: &Path) -> Result<Self, MachineError> {
        fs::create_dir_all(folder).map_err(MachineError::io("create", folder))?;
        let undo = folder.join("undo");
        let preparation = Self {
            agent,
            undo,
            lock: lock.to_owned(),
            held: Shared::default(),
        };
        if preparation.undo.exists()
            && let Lock::Ours(_alone) = preparation.try_lock()?
        {
            preparation.turn("restore")?;
        }
        Ok(preparation)
    }

    /// Locks the host unless another Marvin measures. A host that shows no knobs has no lock.
    fn try_lock(&self) -> Result<Lock, MachineError> {
        let failed = |error| MachineError::io("lock", &self.lock)(error);
        let file = match File::open(&self.lock) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Lock::Ours(None)),
            file => file.map_err(failed)?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Lock::Ours(Some(file))),
            Err(TryLockError::WouldBlock) => Ok(Lock::Theirs(file)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Waits until no other Marvin measures on this host; says whether one did.
    fn wait_for_others(&self) -> Result<(Option<File>, bool), MachineError> {
        match self.try_lock()? {
            Lock::Ours(file) => Ok((file, false)),
            Lock::Theirs(file) => {
                file.lock().map_err(MachineError::io("lock", &self.lock))?;
                Ok((Some(file), true))
            }
        }
    }

    /// Sets the host for measuring, unless it is set already.
    pub(crate) fn prepare(self: Arc<Self>) -> Result<Prepared, MachineError> {
        let mut held = self.held();
        let mut has_waited = false;
        if held.boots == 0 {
            let (lock, waited) = self.wait_for_others()?;
            held.report = format!(
                "{}{}",
                self.turn("prepare")?,
                self.agent(&["describe".as_ref()])?
            );
            (held.lock, has_waited) = (lock, waited);
        }
        held.boots += 1;
        let waited =
            has_waited.then(|| "waited for another Marvin that measured on this host".to_owned());
        let refused =
            remark(&held.report).filter(|_| !std::mem::replace(&mut held.has_remarked, true));
        let remark = waited
            .into_iter()
            .chain(refused)
            .reduce(|waited, refused| format!("{waited}; {refused}"));
        let report = held.report.clone();
        drop(held);
        Ok(Prepared {
            preparation: self,
            report,
            remark,
            is_over: false,
        })
    }

    fn release(&self) -> Result<(), MachineError> {
        let mut held = self.held();
        held.boots -= 1;
        if held.boots > 0 {
            return Ok(());
        }
        let restored = self.turn("restore").map(|_| ());
        held.lock = None;
        restored
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }

    fn turn(&self, command: &str) -> Result<String, MachineError> {
        self.agent(&[command.as_ref(), self.undo.as_os_str()])
    }

    fn agent(&self, arguments: &[&OsStr]) -> Result<String, MachineError> {
        let ended = Program::new(&self.agent)
            .args(arguments)
            .without_variables()
            .deadline_s(DEADLINE_S)
            .run();
        let why = match ended {
            Ok(ended) if ended.code == Some(0) => return Ok(ended.text()),
            Ok(ended) => ended
                .text()
                .lines()
                .next()
                .map_or_else(|| ended.reason(), str::to_owned),
            Err(error) => error.to_string(),
        };
        let why = why.strip_prefix("agent: ").unwrap_or(&why).to_owned();
        Err(MachineError::NotPrepared {
            why: model::sanitize_line(&why),
            undo: self.undo.clone(),
        })
    }
}

impl Prepared {
    /// Says once what may not be set.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// Returns what was set, and what the host is, for the environment of a run.
    pub(crate) fn report_frame(&self) -> Frame {
        report_frame(&self.report)
    }

    /// Sets the host back if no other boot needs it.
    pub(crate) fn release(mut self) -> Result<(), MachineError> {
        self.is_over = true;
        self.preparation.release()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !self.is_over {
            // The next Marvin on this host tries again.
            drop(self.preparation.release());
        }
    }
}

/// Returns what the agent said about a machine, for the environment of a run.
#[must_use]
pub fn report_frame(text: &str) -> Frame {
    Frame::File {
        name: REPORT.to_owned(),
        bytes: readable(text).into_bytes(),
    }
}

/// Splits a line `knob NAME BEFORE AFTER`.
fn knob(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.strip_prefix("knob ")?.split_once(' ')?;
    let (before, after) = rest.split_once(' ')?;
    Some((name, before, after))
}

/// Returns a sentence about knobs that were refused.
fn remark(report: &str) -> Option<String> {
    let refused = report
        .lines()
        .filter_map(knob)
        .filter(|(_, _, after)| after.starts_with("refused"));
    let names: Vec<&str> = refused.map(|(name, _, _)| name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "this host stays as it is for want of privileges: {}",
            names.join(", ")
        )
    })
}

/// Returns lines `name=value` that people can read.
fn readable(report: &str) -> String {
    report
        .lines()
        .filter_map(|line: &str| match knob(line) {
            Some((name, before, after)) if before == after => {
                Some(format!("knob {name}={before}\n"))
            }
            Some((name, before, after)) if after.starts_with("refused") => {
                Some(format!("knob {name}={before} ({after})\n"))
            }
            Some((name, before, after)) => Some(format!("knob {name}={before} -> {after}\n")),
            None => {
                let (name, _) = line.split_once('=')?;
                let is_known = KNOWN
                    .iter()
                    .any(|known| name == *known || known.ends_with('.') && name.starts_with(known));
                (!is_known).then(|| format!("{line}\n"))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Arc;

    use super::{Preparation, readable, remark};

    const REPORT: &str = "knob transparent_hugepage madvise madvise\nknob no_turbo 0 1\n\
        knob governor powersave refused: Permission denied (os error 13)\n\
        boot.id=12\nboot.mitigation.meltdown=Not affected\nboot.idle_driver=intel_idle\nhost.bios=1.2\n";

    /// An agent that writes down its commands.
    fn agent(folder: &Path) -> std::path::PathBuf {
        let agent = folder.join("agent");
        let log = folder.join("log");
        let script = format!(
            "#!/bin/sh\necho $1 >>{0}\ncase $1 in prepare) echo knob no_turbo 0 1; touch $2;; restore) rm -f $2;; esac\n",
            log.display()
        );
        fs::write(&agent, script).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o700)).unwrap();
        agent
    }

    #[test]
    fn report_is_readable() {
        insta::assert_snapshot!(readable(REPORT), @r"
        knob transparent_hugepage=madvise
        knob no_turbo=0 -> 1
        knob governor=powersave (refused: Permission denied (os error 13))
        boot.idle_driver=intel_idle
        host.bios=1.2
        ");
    }

    #[test]
    fn refused_knobs_are_named() {
        let text = "this host stays as it is for want of privileges: governor";
        assert_eq!(remark(REPORT).as_deref(), Some(text));
        assert_eq!(remark("knob no_turbo 0 1\n"), None);
    }

    #[test]
    fn last_of_several_boots_sets_back() {
        let folder = tempfile::tempdir().unwrap();
        let log = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let without_knobs = folder.path().join("none");
        let host = Preparation::open(
            agent(folder.path()),
            &folder.path().join("host"),
            &without_knobs,
        );
        let host = Arc::new(host.unwrap());
        assert_eq!(log(), "");
        let first = Arc::clone(&host).prepare().unwrap();
        let second = Arc::clone(&host).prepare().unwrap();
        first.release().unwrap();
        assert_eq!(log(), "prepare\ndescribe\n");
        drop(second);
        assert_eq!(log(), "prepare\ndescribe\nrestore\n");
        host.prepare().unwrap().release().unwrap();
        assert_eq!(log().lines().count(), 6);
    }

    #[test]
    fn two_marvins_measure_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|home: &str| {
            let home = folder.path().join(home);
            Arc::new(Preparation::open(agent(folder.path()), &home, folder.path()).unwrap())
        });
        let first = one.prepare().unwrap();
        assert_eq!(first.remark(), None);
        let second = std::thread::spawn(move || other.prepare().unwrap());
        // The other one waits; were it not to, it would soon have prepared.
        std::thread::sleep(std::time::Duration::from_millis(100));
        first.release().unwrap();
        let second = second.join().unwrap();
        assert_eq!(
            second.remark(),
            Some("waited for another Marvin that measured on this host")
        );
        second.release().unwrap();
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert_eq!(
            log.replace('\n', " "),
            "prepare describe restore prepare describe restore "
        );
    }

    #[test]
    fn leftover_is_set_back_at_opening() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("host");
        fs::create_dir(&host).unwrap();
        fs::write(host.join("undo"), "").unwrap();
        let measuring = fs::File::open(folder.path()).unwrap();
        measuring.lock().unwrap();
        Preparation::open(agent(folder.path()), &host, folder.path()).unwrap();
        assert!(
            host.join("undo").exists(),
            "a Marvin that measures keeps its undo file"
        );
        drop(measuring);
        Preparation::open(agent(folder.path()), &host, folder.path()).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("log")).unwrap(),
            "restore\n"
        );
        assert!(!host.join("undo").exists());
    }

    #[test]
    fn failing_agent_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path());
        fs::write(
            &agent,
            "#!/bin/sh\necho agent: undo: the undo file is damaged; exit 1\n",
        )
        .unwrap();
        let host = Arc::new(Preparation::open(agent, folder.path(), folder.path()).unwrap());
        let error = host
            .prepare()
            .unwrap_err()
            .to_string()
            .replace(&folder.path().display().to_string(), "HOME");
        insta::assert_snapshot!(error, @"cannot set this host for measuring, or back: undo: the undo file is damaged; what it was is in HOME/undo");
    }
}

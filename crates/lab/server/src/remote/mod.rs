//! What Marvin does on a server, one step each. `ssh` does it with the system's ssh; tests have a
//! make-believe server.

pub(crate) mod ssh;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use machine::Driver;
use subprocess::Ended;

use crate::problem::ServerProblem;

/// The mark of a build on a kernel's command line: `marvin.build=0123456789ab`.
pub(crate) const MARK: &str = "marvin.build=";
/// The mark of an image.
pub(crate) const IMAGE: &str = "marvin.image=";
/// The exit status of an agent that was not started, as the server is in another boot
/// (`scripts/agent.sh`).
pub(crate) const OTHER_BOOT: i32 = 97;
/// The exit status where the files of a program found no place (`scripts/program.sh`).
pub(crate) const NO_PLACE: i32 = 96;
/// The exit status of timeout(1) if it ended the agent.
pub(crate) const TIMED_OUT: i32 = 124;
/// Limit on lines of an answer.
const LINES_MAX: usize = 4096;

/// A way to a server. Each step has a deadline of its own.
pub(crate) trait RemoteHost: Debug + Send + Sync {
    /// Holds the server for this lab and asks what it is and what it runs.
    fn facts(&self) -> Result<Facts, ServerProblem>;

    /// Copies a kernel there and makes its initramfs. Changes nothing that the server's own kernel
    /// boots from.
    fn install(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem>;

    /// Has the server boot an installed kernel once. Returns before the server goes down.
    fn boot_once(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem>;

    /// Has the server boot its own kernel. Returns before it goes down.
    fn reboot(&self) -> Result<(), ServerProblem>;

    /// Has the server shut down and stay off, and lets other labs use it then. Returns before it
    /// goes down.
    fn shut_down(&self) -> Result<(), ServerProblem>;

    /// Runs the agent with these arguments and standard input, on the processors for workloads.
    /// With a program's files it runs in a system of these alone, which ends with it.
    /// Ends with [`OTHER_BOOT`] if the server is in another boot.
    fn run_agent(
        &self,
        on: &AgentBoot<'_>,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Ended, ServerProblem>;

    /// Removes what only builds need, if the server runs its own kernel, and lets other labs use
    /// it.
    fn leave(&self) -> Result<(), ServerProblem>;
}

/// A server that saves the memory of a kernel that dies.
pub(crate) trait Capture: Debug + Send + Sync {
    /// Has a panic of the kernel that runs save its memory before the server restarts.
    fn load(&self) -> Result<(), ServerProblem>;

    /// Returns the memory that was saved, filtered.
    fn take(&self) -> Result<Vec<u8>, ServerProblem>;
}

/// Where and how long the agent runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentBoot<'a> {
    /// The id of the boot in which the server has to be.
    pub(crate) id: &'a str,
    /// How long the agent may run (s).
    pub(crate) deadline_s: u64,
    /// The files of a user's own program, if the job is one.
    pub(crate) files: Option<&'a ProgramFiles>,
}

/// The files of a user's own program: an archive (cpio) of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramFiles {
    pub(crate) archive: PathBuf,
    /// SHA-256 of the archive, by its name.
    pub(crate) sha256: String,
}

impl ProgramFiles {
    /// Returns the files in an archive whose name is its hash.
    pub(crate) fn of_archive(archive: &Path) -> Self {
        let name = archive.file_stem().unwrap_or_default();
        Self {
            archive: archive.to_owned(),
            sha256: name.to_string_lossy().into_owned(),
        }
    }
}

/// A kernel to install.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel<'a> {
    /// Twelve digits of the build's id.
    pub(crate) tag: &'a str,
    /// Its release, which is the name of its module directory; empty if the build has no modules.
    pub(crate) release: &'a str,
    /// The build id in its notes, if that is known.
    pub(crate) build_id: Option<&'a str>,
    /// An archive (cpio) with the image and its modules.
    pub(crate) archive: &'a [u8],
}

/// What a server says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    values: BTreeMap<String, String>,
    drivers: Vec<Driver>,
    installed: BTreeSet<String>,
}

impl Facts {
    /// Reads lines `name=value`; `driver=NAME WHY` and `installed=TAG` may occur several times.
    pub(crate) fn read(text: &str) -> Self {
        let mut facts = Self::default();
        for (name, value) in text
            .lines()
            .take(LINES_MAX)
            .filter_map(|line| line.split_once('='))
        {
            let value = model::sanitize_line(value.trim());
            match name {
                "driver" => {
                    let (driver, why) = value.split_once(' ').unwrap_or((&value, ""));
                    facts.drivers.push(Driver {
                        name: driver.to_owned(),
                        needed_by: why.to_owned(),
                    });
                }
                "installed" => drop(facts.installed.insert(value)),
                _ => drop(facts.values.insert(name.to_owned(), value)),
            }
        }
        facts
    }

    /// Returns a value; empty if the server does not know it.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Returns the present boot's id.
    pub(crate) fn boot_id(&self) -> &str {
        self.get("boot_id")
    }

    /// Returns the build under test that runs; `None` if the server runs its own kernel.
    pub(crate) fn running(&self) -> Option<&str> {
        self.marked(MARK)
    }

    /// Returns the image that runs, under a build too; `None` for another system.
    pub(crate) fn image(&self) -> Option<&str> {
        self.marked(IMAGE)
    }

    /// Returns the image that was installed on the disk from which the server runs.
    pub(crate) fn on_disk(&self) -> Option<&str> {
        Some(self.get("disk_image")).filter(|id| !id.is_empty() && self.image().is_none())
    }

    fn marked(&self, mark: &str) -> Option<&str> {
        self.get("cmdline")
            .split_whitespace()
            .find_map(|word| word.strip_prefix(mark))
    }

    /// Returns the release of the server's own kernel, as it was last seen.
    pub(crate) fn own_release(&self) -> &str {
        self.get(if self.running().is_none() {
            "release"
        } else {
            "own"
        })
    }

    /// Returns whether a kernel is installed there.
    pub(crate) fn has_installed(&self, tag: &str) -> bool {
        self.installed.contains(tag)
    }

    /// Returns the drivers that a build needs there.
    pub(crate) fn drivers(&self) -> &[Driver] {
        &self.drivers
    }
}

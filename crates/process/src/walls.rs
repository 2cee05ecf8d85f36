//! Walls around a program: bubblewrap gives it file system, network, processes and users of its own.
//!
//! The caller says which files the program needs. Where bubblewrap is missing, or may not make namespaces, programs run
//! without walls; [`no_walls`] says why, and the callers tell the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::Program;

/// Directories with programs and libraries, and what these need of /etc: read-only behind the walls.
const SYSTEM: [&str; 15] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/perl",
    "/etc/python3",
];

/// What a program sees and writes besides the system's programs. It has no network, no other processes, no capabilities.
#[derive(Debug, Clone, Default)]
pub struct Walls {
    binds: Vec<(&'static str, PathBuf)>,
}

impl Walls {
    /// Lets it read a file or a directory.
    #[must_use]
    pub fn readable(mut self, path: &Path) -> Self {
        self.binds.push(("--ro-bind", path.to_owned()));
        self
    }

    /// Lets it write a file or a directory.
    #[must_use]
    pub fn writable(mut self, path: &Path) -> Self {
        self.binds.push(("--bind", path.to_owned()));
        self
    }

    /// Returns the command prefix: bubblewrap and its arguments.
    pub(crate) fn words(&self, folder: Option<&Path>) -> Vec<OsString> {
        let fixed = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"];
        // Behind the walls, the host's root is a user without rights.
        let fixed = fixed.into_iter().chain(["--uid", "65534", "--gid", "65534", "--proc", "/proc", "--dev", "/dev"]);
        let mut words: Vec<OsString> = fixed.chain(["--tmpfs", "/tmp"]).map(Into::into).collect();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let of_path: Vec<PathBuf> = std::env::split_paths(&path).filter(|path| path.is_absolute()).collect();
        let is_there = |folder: &Path| SYSTEM[..8].iter().any(|above| folder.starts_with(above));
        let system = SYSTEM.iter().map(PathBuf::from).chain(of_path.into_iter().filter(|folder| !is_there(folder)));
        let system = system.map(|path| ("--ro-bind-try", path));
        for (kind, path) in system.chain(self.binds.iter().cloned()) {
            words.extend([kind.into(), path.clone().into(), path.into()]);
        }
        if let Some(folder) = folder {
            words.extend(["--chdir".into(), folder.into()]);
        }
        words.push("--".into());
        words
    }
}

/// Returns why programs run without walls on this host; `None` if they have them. Tries it once.
pub fn no_walls() -> Option<&'static str> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    WHY.get_or_init(|| match Program::new("true").walls(Walls::default()).deadline_s(20).run() {
        Ok(ended) if ended.code == Some(0) => None,
        Ok(ended) => Some(ended.reason()),
        // The name is that of the program behind the walls.
        Err(crate::ProgramError::Missing(_)) => Some("there is no program `bwrap`".to_owned()),
        Err(error) => Some(error.to_string()),
    })
    .as_deref()
}

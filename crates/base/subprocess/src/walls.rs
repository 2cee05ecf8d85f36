//! Walls around a program: bubblewrap gives it file system, network, processes and users of its
//! own.
//!
//! The caller says which files the program needs. Where bubblewrap is missing, or may not make
//! namespaces, programs run without walls; [`no_walls`] says why, and the callers tell the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::no_walls::NoWalls;
use crate::{Program, ProgramError};

/// Directories with programs and libraries, and what these need of /etc: read-only behind the
/// walls.
const SYSTEM: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    // Where NixOS has the links to its programs.
    "/run/current-system",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/perl",
    "/etc/python3",
];

/// What a program sees and writes besides the system's programs. It has no network, no other
/// processes, no capabilities.
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

    /// Lets it read all directories of PATH: the user's own compilers.
    #[must_use]
    pub fn readable_path(mut self) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        for folder in std::env::split_paths(&path) {
            let is_there = SYSTEM.iter().any(|above| folder.starts_with(above));
            if folder.is_absolute() && !is_there {
                self.binds.push(("--ro-bind-try", folder));
            }
        }
        self
    }

    /// Lets it write a file or a directory.
    #[must_use]
    pub fn writable(mut self, path: &Path) -> Self {
        self.binds.push(("--bind", path.to_owned()));
        self
    }

    /// Returns the command prefix: bubblewrap and its arguments.
    pub(crate) fn arguments(&self, folder: Option<&Path>) -> Vec<OsString> {
        let fixed = [
            "bwrap",
            "--unshare-all",
            "--unshare-user",
            "--die-with-parent",
            "--cap-drop",
            "ALL",
        ];
        // Behind the walls, the host's root is a user without rights.
        let fixed = fixed.into_iter().chain([
            "--uid", "65534", "--gid", "65534", "--proc", "/proc", "--dev", "/dev",
        ]);
        let mut arguments: Vec<OsString> =
            fixed.chain(["--tmpfs", "/tmp"]).map(Into::into).collect();
        let system = SYSTEM
            .iter()
            .map(|path| ("--ro-bind-try", PathBuf::from(path)));
        for (kind, path) in system.chain(self.binds.iter().cloned()) {
            arguments.extend([OsString::from(kind), path.clone().into(), path.into()]);
        }
        if let Some(folder) = folder {
            arguments.extend(["--chdir".into(), folder.into()]);
        }
        arguments.push("--".into());
        arguments
    }
}

/// Why programs run without walls.
static WHY: OnceLock<Option<NoWalls>> = OnceLock::new();

/// The reason if the user wants none.
const NOT_WANTED: &str = "--no-sandbox";

/// Lets programs run without walls from now on, because the user wants it.
pub fn remove_walls() {
    WHY.get_or_init(|| {
        Some(NoWalls {
            why: NOT_WANTED.to_owned(),
            fix: format!("leave {NOT_WANTED} out"),
        })
    });
}

/// Returns whether the user wants walls, which this host may not have.
pub fn wants_walls() -> bool {
    no_walls().is_none_or(|none| none.why != NOT_WANTED)
}

/// Returns why programs run without walls on this host; `None` if they have them. Tries it once,
/// with all that walls need: namespaces, mounts, a network of its own.
pub fn no_walls() -> Option<&'static NoWalls> {
    WHY.get_or_init(|| {
        let probe = Program::new("true")
            .walled(Walls::default())
            .deadline_s(20)
            .run();
        match probe {
            Ok(ended) if ended.code == Some(0) => None,
            Ok(ended) => Some(NoWalls::explain(&ended.reason(), Path::new("/"))),
            Err(ProgramError::Missing(_)) => Some(NoWalls::without_program()),
            Err(error) => Some(NoWalls::explain(&error.to_string(), Path::new("/"))),
        }
    })
    .as_ref()
}

#[cfg(test)]
mod tests {
    use super::{Walls, no_walls};
    use crate::Program;

    #[test]
    fn walls_hide_files_network_and_processes() {
        assert_eq!(
            no_walls(),
            None,
            "the tests need bubblewrap: scripts/needs.sh test installs it"
        );
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("own");
        let others = home.path().join("others");
        for folder in [&own, &others] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), "text").unwrap();
        }
        let output = |script: &str, walls: Walls| {
            let ended = Program::new("sh")
                .args(["-c", script])
                .folder(&own)
                .walls(walls)
                .run()
                .unwrap();
            ended.text() + &ended.stderr
        };
        let read = Walls::default().readable(&own);
        let write = Walls::default().writable(&own);
        assert_eq!(
            output(
                "cat file; echo x 2>/dev/null >file || echo refused",
                read.clone()
            ),
            "textrefused\n"
        );
        output("echo new >file", write.clone());
        assert_eq!(std::fs::read_to_string(own.join("file")).unwrap(), "new\n");
        let script = format!(
            "cat {} /etc/shadow 2>/dev/null || echo hidden",
            others.join("file").display()
        );
        assert_eq!(output(&script, write.clone()), "hidden\n");
        assert_eq!(
            output(
                "grep -c : /proc/net/dev; ls -d /proc/[0-9]* | wc -l",
                write.clone()
            )
            .lines()
            .next(),
            Some("1")
        );
        let processes: u32 = output("ls -d /proc/[0-9]* | wc -l", write.clone())
            .trim()
            .parse()
            .unwrap();
        assert!(processes < 6, "{processes}");
        assert!(output("grep CapEff /proc/self/status", write).contains("0000000000000000"));
    }

    #[test]
    fn walls_hold_processes_that_leave_the_session() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        let script = "setsid sh -c 'while :; do echo x >>file; sleep 0.05; done' & sleep 0.5";
        let program = Program::new("sh").args(["-c", script]).folder(home.path());
        program
            .walls(Walls::default().writable(home.path()))
            .run()
            .unwrap();
        let size = || std::fs::metadata(&file).unwrap().len();
        let before = size();
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(before > 0 && size() == before);
    }
}

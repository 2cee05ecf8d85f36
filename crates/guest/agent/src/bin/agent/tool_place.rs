//! Where a tool runs. A guest is the agent's alone: the image has the tool, and all processes end
//! with it. A host belongs to others: the tool is the installed one, sees a `/run` and a `/dev/shm`
//! of its own, and only its own processes end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use guest::sys::{c, check};
use guest::{IN_GUEST, mount};
use wire::{SystemTask, crc32};

use crate::system;

/// Where tools run.
pub(crate) const FOLDER: &str = "/run";
/// Where glibc keeps shared memory that has a name.
const SHARED: &str = "/dev/shm";
/// Where a host's programs are if nothing says it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where a guest's programs write their output.
const PRINTED: &str = "/printed";
/// How long killed processes may take to end.
const END: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const PACKAGES: &str = "/usr/bin/dpkg-query";

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolPlace {
    /// In a guest of ours.
    Guest,
    /// On a machine that others use, too.
    Host,
}

impl ToolPlace {
    /// Returns where this process is.
    pub(crate) fn here() -> Self {
        let is_guest = std::process::id() == 1 || std::env::var_os(IN_GUEST).is_some();
        if is_guest { Self::Guest } else { Self::Host }
    }

    /// Makes the directory where programs write their output, until the end, and what they expect:
    /// for a user's own program, an ordinary system in a guest, and nothing on a host.
    pub(crate) fn make_output(self, system: Option<&SystemTask>) -> io::Result<String> {
        match (self, system) {
            (Self::Guest, Some(system)) => {
                system::make(PRINTED)?;
                system::make_directory(&system.directory)?;
                Ok(PRINTED.to_owned())
            }
            (Self::Guest, None) => {
                self.prepare()?;
                fs::create_dir_all(PRINTED)?;
                Ok(PRINTED.to_owned())
            }
            (Self::Host, None) => {
                let output = format!("{FOLDER}/.printed");
                self.prepare()?;
                fs::create_dir_all(&output)?;
                Ok(output)
            }
            // The host's /run stays as it is.
            (Self::Host, Some(_)) => {
                adopt_orphans()?;
                new_directory()
            }
        }
    }

    /// Removes a host's directory of output: no mount of ours ends with it.
    pub(crate) fn remove_output(self, system: Option<&SystemTask>, output: &str) {
        if self == Self::Host && system.is_some() {
            drop(fs::remove_dir_all(output));
        }
    }

    /// Makes the directories that tools expect. On a host they are in a mount namespace of this
    /// process, which ends with it and its children.
    fn prepare(self) -> io::Result<()> {
        if self == Self::Host {
            own_mounts()?;
            mount("tmpfs", FOLDER)?;
            adopt_orphans()?;
        }
        fs::create_dir_all(FOLDER)?;
        mount("tmpfs", SHARED)?;
        // 1777, as everywhere: servers are not root.
        open_to_all(SHARED)
    }

    /// Returns the program that a manifest means: the file that it names, or on a host the one of
    /// that name in PATH.
    pub(crate) fn program(self, named: &str) -> Option<PathBuf> {
        let file = Path::new(named);
        if file.exists() {
            return Some(file.to_owned());
        }
        let name = file.file_name().filter(|_| self == Self::Host)?;
        let path = std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned());
        path.split(':')
            .map(|folder| Path::new(folder).join(name))
            .find(|program| program.is_file())
    }

    /// Says that a program is not there.
    pub(crate) fn lacks(self, program: &str) -> String {
        match self {
            Self::Guest => format!("{program} is not in the guest image"),
            Self::Host => format!("{}{program}", wire::NOT_INSTALLED),
        }
    }

    /// Ends all that a tool has started.
    pub(crate) fn end_processes(self) -> io::Result<()> {
        match self {
            Self::Guest => {
                // SAFETY: takes no memory of ours; -1 is every process but this one and PID 1, all
                // of a guest of ours.
                unsafe { libc::kill(-1, libc::SIGKILL) };
                Ok(())
            }
            Self::Host => end_children(),
        }
    }
}

/// Moves this process into a mount namespace of its own; without privileges into a user namespace
/// as well.
fn own_mounts() -> io::Result<()> {
    // SAFETY: these take nothing and always succeed.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let spaces = if user == 0 {
        libc::CLONE_NEWNS
    } else {
        libc::CLONE_NEWNS | libc::CLONE_NEWUSER
    };
    let refused = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("a mount namespace, which keeps this host's {FOLDER} as it is: {error}"),
        )
    };
    // SAFETY: takes no memory of ours; this process has one thread.
    check(unsafe { libc::unshare(spaces) }).map_err(refused)?;
    if user != 0 {
        // Without it, the kernel refuses the map of groups (user_namespaces(7)).
        fs::write("/proc/self/setgroups", "deny").map_err(refused)?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(refused)?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(refused)?;
    }
    let (none, root) = (c("none")?, c("/")?);
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the strings are valid and outlive the call; no data is passed.
    check(unsafe {
        libc::mount(
            none.as_ptr(),
            root.as_ptr(),
            std::ptr::null(),
            flags,
            std::ptr::null(),
        )
    })
    .map(drop)
    .map_err(refused)
}

/// Makes a directory that is this user's alone, under a name that was not there: another user could
/// have laid a link under a name that can be guessed.
fn new_directory() -> io::Result<String> {
    let mut name = *b"/tmp/.marvin-printed-XXXXXX\0";
    // SAFETY: the name is writable, ends with six X and a zero, and outlives the call.
    if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let name = std::ffi::CStr::from_bytes_until_nul(&name).map_err(io::Error::other)?;
    Ok(name.to_string_lossy().into_owned())
}

/// Becomes the parent of processes whose own parent ends: what a tool leaves behind stays known.
fn adopt_orphans() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Kills all children, and theirs as they become ours, until there is none. The id of a child is
/// its own until this process has waited for it, so no other process is hit.
fn end_children() -> io::Result<()> {
    let start = Instant::now();
    loop {
        for child in children()? {
            // SAFETY: takes no memory of ours. One that runs as another user refuses; the loop
            // notices.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        loop {
            // SAFETY: the status is not asked for.
            match check(unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) }) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if start.elapsed() > END {
            return Err(io::Error::other("the tool's processes do not end"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn children() -> io::Result<Vec<libc::pid_t>> {
    let own = std::process::id().to_string();
    let is_own = |stat: &str| {
        stat.rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1))
            == Some(&*own)
    };
    let processes =
        fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let stat = |process: libc::pid_t| fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    Ok(processes
        .filter(|process| is_own(&String::from_utf8_lossy(&stat(*process))))
        .collect())
}

fn open_to_all(folder: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))
}

/// Returns a line `NAME=FILE, PACKAGE VERSION, crc32 NUMBER` for each program: what was measured of
/// this host.
pub(crate) fn describe(programs: &[PathBuf]) -> String {
    let mut lines: Vec<String> = programs
        .iter()
        .filter_map(|program| describe_one(program))
        .collect();
    lines.sort();
    lines.dedup();
    lines.concat()
}

fn describe_one(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_string_lossy();
    let package = package(program).map_or_else(String::new, |package| format!(", {package}"));
    Some(format!(
        "{name}={}{package}, crc32 {:08x}\n",
        program.display(),
        crc32(&[&fs::read(program).ok()?])
    ))
}

/// Returns the Debian package of a program, and its version.
fn package(program: &Path) -> Option<String> {
    let ask = |words: &[&str]| {
        let output = Command::new(PACKAGES).args(words).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let file = program.to_str()?;
    // On a merged /usr, packages name their files as before.
    let owners = ask(&["-S", file]).or_else(|| ask(&["-S", file.strip_prefix("/usr")?]))?;
    let (owner, _) = owners
        .lines()
        .find(|line| !line.starts_with("diversion "))?
        .rsplit_once(": ")?;
    Some(
        ask(&["-W", "-f", "${Package} ${Version}", owner])?
            .trim()
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{ToolPlace, describe};

    #[test]
    fn installed_program_is_found_by_name() {
        assert_eq!(
            ToolPlace::Host.program("/nonesuch/bin/sh"),
            Some(PathBuf::from("/usr/bin/sh")).filter(|sh| sh.exists())
        );
        assert_eq!(ToolPlace::Host.program("/nonesuch/bin/nonesuch"), None);
        assert_eq!(
            ToolPlace::Guest.program("/nonesuch/bin/sh"),
            None,
            "an image has what the manifest names"
        );
        assert_eq!(
            ToolPlace::Host.program("/bin/sh"),
            Some(PathBuf::from("/bin/sh"))
        );
    }

    #[test]
    fn programs_are_described_once() {
        let text = describe(&["/bin/cat", "/bin/cat", "/nonesuch"].map(PathBuf::from));
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with("cat=/bin/cat, ") && text.contains("crc32 "),
            "{text}"
        );
    }
}

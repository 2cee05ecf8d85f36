//! The kernel that this host runs, as a build: it has no image and cannot be booted, only measured
//! where it runs.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Build, BuildFile, BuildId, KernelName, Origin};

use crate::KernelError;

/// What identifies a running kernel: its release with compiler and build time, and its notes, which
/// have the linker's build id (fs/proc/version.c, kernel/ksysfs.c of the kernel).
const VERSION: &str = "proc/version";
const NOTES: &str = "sys/kernel/notes";

/// Returns the kernel that runs below a root directory.
pub(crate) fn running(root: &Path) -> Result<Build, KernelError> {
    let path = root.join(VERSION);
    let version = fs::read(&path).map_err(KernelError::io(&path))?;
    // Without the file or without sysfs, the version alone distinguishes kernels.
    let notes = fs::read(root.join(NOTES)).unwrap_or_default();
    let parts = [&b"running\n"[..], &version, &notes].concat();
    let digest = archives::sha256(&parts);
    let banner = String::from_utf8_lossy(&version);
    let release = banner
        .split_whitespace()
        .nth(2)
        .unwrap_or("unknown")
        .to_owned();
    let id = BuildId::from_hex(&digest).map_err(|_| KernelError::Imported(release.clone()))?;
    Ok(Build {
        id,
        name: KernelName::Running,
        version: release,
        origin: Origin::Described(model::sanitize_line(banner.trim())),
        image: BuildFile {
            path: PathBuf::new(),
            sha256: String::new(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

#[cfg(test)]
mod tests {
    use super::running;

    #[test]
    fn running_kernel_is_its_version_and_notes() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            running(root.path()).unwrap()
        };
        let plain = write(
            "proc/version",
            "Linux version 6.12.1-rc1+ (a@b) (gcc 12) #1 SMP \u{1b}[31m\n",
        );
        assert_eq!(
            (plain.version.as_str(), plain.name.to_string().as_str()),
            ("6.12.1-rc1+", "running:")
        );
        assert!(!plain.origin.to_string().contains('\u{1b}'));
        let noted = write("sys/kernel/notes", "one build id");
        assert!(noted.id != plain.id && noted.id != write("sys/kernel/notes", "another").id);
    }

    #[test]
    fn host_without_proc_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(
            running(root.path())
                .unwrap_err()
                .to_string()
                .contains("proc/version")
        );
    }
}

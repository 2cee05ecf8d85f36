//! The directory that `make modules_install` leaves, which a source's Makefile wrote: no link in it
//! is followed or kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::KernelError;
use crate::folder::{sha256, sha256_of_file};

/// Most levels of directories: a kernel has less than ten.
const DEPTH_MAX: usize = 24;

/// Returns the directory of the one release below `top/lib/modules`, without its links; `None` if
/// there is none.
pub(super) fn installed(top: &Path) -> Result<Option<PathBuf>, KernelError> {
    let all = top.join("lib/modules");
    for folder in [top, &top.join("lib"), &all] {
        if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
            return Ok(None);
        }
    }
    let mut release = None;
    for entry in fs::read_dir(&all).map_err(KernelError::io(&all))? {
        let entry = entry.map_err(KernelError::io(&all))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            release = Some(entry.path());
        }
    }
    let Some(release) = release else {
        return Ok(None);
    };
    remove_links(&release, DEPTH_MAX)?;
    Ok(Some(release))
}

/// Removes what is neither a file nor a directory: the links to the source and the build, too.
fn remove_links(folder: &Path, depth: usize) -> Result<(), KernelError> {
    for entry in fs::read_dir(folder).map_err(KernelError::io(folder))? {
        let entry = entry.map_err(KernelError::io(folder))?;
        let kind = entry.file_type().map_err(KernelError::io(folder))?;
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            remove_links(&path, depth - 1)?;
        } else if kind.is_dir() {
            fs::remove_dir_all(&path).map_err(KernelError::io(&path))?;
        } else if !kind.is_file() {
            fs::remove_file(&path).map_err(KernelError::io(&path))?;
        }
    }
    Ok(())
}

/// Returns the hash of all modules in a directory, by their paths in it.
pub(crate) fn digest(folder: &Path) -> Result<String, KernelError> {
    let mut lines = Vec::new();
    list(folder, "", DEPTH_MAX, &mut lines)?;
    lines.sort();
    Ok(sha256(lines.concat().as_bytes()))
}

fn list(
    folder: &Path,
    prefix: &str,
    depth: usize,
    lines: &mut Vec<String>,
) -> Result<(), KernelError> {
    for entry in fs::read_dir(folder).map_err(KernelError::io(folder))? {
        let entry = entry.map_err(KernelError::io(folder))?;
        let kind = entry.file_type().map_err(KernelError::io(folder))?;
        let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if kind.is_dir() && depth > 0 {
            list(&entry.path(), &name, depth - 1, lines)?;
        } else if kind.is_file() && name.contains(".ko") {
            lines.push(format!("{name} {}\n", sha256_of_file(&entry.path())?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{digest, installed};

    #[test]
    fn links_are_neither_followed_nor_kept() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("out");
        assert_eq!(installed(&top).unwrap(), None);
        let release = top.join("lib/modules/6.1.0");
        fs::create_dir_all(release.join("kernel/fs")).unwrap();
        fs::write(release.join("kernel/fs/a.ko"), "a").unwrap();
        let before = digest(&release).unwrap();
        fs::write(home.path().join("secret"), "").unwrap();
        for link in ["build", "kernel/fs/b.ko"] {
            symlink(home.path().join("secret"), release.join(link)).unwrap();
        }
        assert_eq!(installed(&top).unwrap(), Some(release.clone()));
        assert!(!release.join("kernel/fs/b.ko").exists() && home.path().join("secret").exists());
        assert_eq!(digest(&release).unwrap(), before);
        fs::write(release.join("kernel/fs/a.ko"), "b").unwrap();
        assert_ne!(digest(&release).unwrap(), before);
        fs::rename(top.join("lib"), home.path().join("elsewhere")).unwrap();
        symlink(home.path().join("elsewhere"), top.join("lib")).unwrap();
        assert_eq!(installed(&top).unwrap(), None);
    }
}

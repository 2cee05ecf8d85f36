//! The data directory, and the permissions of files in and outside it.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use rustix::fs::Mode;

use crate::exit::WrongInput;

/// The permissions that the user's umask takes from new files.
static UMASK: OnceLock<u32> = OnceLock::new();

/// Makes new files and directories readable to this user only: the data directory has kernels, logs
/// and mails.
pub(crate) fn keep_private() {
    let users = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    UMASK.get_or_init(|| users.bits());
}

/// Gives a file that the user asked for the permissions of the user's umask.
pub(super) fn share_file(file: &Path) -> std::io::Result<()> {
    match UMASK.get() {
        Some(users) => fs::set_permissions(file, Permissions::from_mode(0o666 & !users)),
        None => Ok(()),
    }
}

/// Returns the directory that a variable names; an empty variable names none.
fn directory_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn home_directory() -> Option<PathBuf> {
    directory_variable("HOME").or_else(std::env::home_dir)
}

/// Checks who could have put what is in a data directory, before Marvin reads, empties or follows
/// any of it: this user, root, and for another user than root the owner of the directory.
///
/// # Errors
/// If another user could have, or there is a pipe or a device.
pub(super) fn check_trust(home: &Path) -> Result<(), WrongInput> {
    let own = rustix::process::geteuid().as_raw();
    let Ok(found) = fs::metadata(home) else {
        // Who makes or opens it says why it cannot be.
        return Ok(());
    };
    let trusted = [0, own, if own == 0 { 0 } else { found.uid() }];
    let check = |path: &Path, found: &Metadata| {
        let kind = found.file_type();
        if !trusted.contains(&found.uid()) {
            let owner = found.uid();
            return Err(distrust(
                path,
                &format!("it belongs to user {owner}"),
                &format!("run marvin as that user (`sudo -u '#{owner}' marvin …`)"),
            ));
        }
        if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
            return Err(distrust(path, "it is a pipe or a device", "remove it"));
        }
        // A link has no permissions of its own.
        if !found.is_symlink() && found.mode() & 0o002 != 0 {
            let hint = format!("`chmod o-w {}`", path.display());
            return Err(distrust(path, "every user may write to it", &hint));
        }
        Ok(())
    };
    check(home, &found)?;
    let link = fs::symlink_metadata(home);
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
    link.into_iter()
        .map(|link| (home.to_owned(), link))
        .chain(all)
        .try_for_each(|(path, found)| check(&path, &found))
}

fn distrust(path: &Path, why: &str, hint: &str) -> WrongInput {
    WrongInput(format!(
        "cannot trust {}: {why}\nhint: {hint}, or name another data directory with --home",
        path.display()
    ))
}

/// Returns the data directory: the given one, or `marvin` below `$XDG_DATA_HOME`, or below
/// `~/.local/share`. Always absolute. Without HOME the home is that of the user's entry in passwd.
pub(super) fn find_home(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let home = match given {
        Some(home) => home.to_owned(),
        None => directory_variable("XDG_DATA_HOME")
            // The XDG base directory specification says to ignore relative paths.
            .filter(|data| data.is_absolute())
            .or_else(|| Some(home_directory()?.join(".local/share")))
            .ok_or_else(|| {
                WrongInput(
                    "no data directory: neither XDG_DATA_HOME (an absolute path) nor HOME is set, and this user has no \
                     home in passwd; give --home FOLDER"
                        .into(),
                )
            })?
            .join("marvin"),
    };
    std::path::absolute(&home).with_context(|| {
        format!(
            "cannot find the absolute path of the data directory {}",
            home.display()
        )
    })
}

//! The data directory, and the permissions of files in and outside it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
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

//! The data directory with builds and snapshots, the store with results, there or on a server, and
//! the lab that uses both.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use lab::{Lab, LabSettings};
use rustix::fs::Mode;
use store::Location;

use crate::cli::Arguments;
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
pub(crate) fn share_file(file: &Path) -> std::io::Result<()> {
    match UMASK.get() {
        Some(users) => fs::set_permissions(file, Permissions::from_mode(0o666 & !users)),
        None => Ok(()),
    }
}

/// Returns the data directory: the given one, or `marvin` below `$XDG_DATA_HOME`, or below
/// `~/.local/share`. Always absolute.
pub(crate) fn home(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = match given {
        Some(home) => home.to_owned(),
        None => variable("XDG_DATA_HOME")
            // The XDG base directory specification says to ignore relative paths.
            .filter(|data| data.is_absolute())
            .or_else(|| Some(variable("HOME")?.join(".local/share")))
            .ok_or_else(|| {
                WrongInput(
                    "no data directory: neither XDG_DATA_HOME nor HOME is set; give --home FOLDER"
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

/// Returns the store's location: the data directory, unless `--store` or its variable names a
/// server. PGPASSWORD may have the password, as for all programs of PostgreSQL.
pub(crate) fn store(arguments: &Arguments) -> anyhow::Result<Location> {
    let password = std::env::var("PGPASSWORD").ok();
    match arguments
        .store
        .as_deref()
        .filter(|address| !address.is_empty())
    {
        Some(address) => Ok(Location::server(address, password.as_deref())?),
        None => Ok(home(arguments.home.as_deref())?.into()),
    }
}

/// Returns the name of a worker: this host's, and on a server's queue the data directory too, as a
/// host may have several workers there.
///
/// A worker takes back the jobs of its name when it starts. Hosts made from one image have one name
/// and the same paths, so the name on a server also has what tells hosts apart.
pub(crate) fn worker_name(home: &Path, store: &Location) -> String {
    match store {
        Location::Home(_) => service::machine_name(),
        Location::Server(_) => format!(
            "{}#{}:{}",
            service::machine_name(),
            machine::host_mark(),
            home.display()
        ),
    }
}

/// Returns whether a worker takes jobs from the queue; those of a server are on any host, and
/// assumed.
pub(crate) fn has_worker(arguments: &Arguments) -> anyhow::Result<bool> {
    Ok(match store(arguments)? {
        Location::Home(home) => store::has_worker(&home),
        Location::Server(_) => true,
    })
}

/// Opens the lab of the data directory. MARVIN_QEMU may name its QEMU.
pub(crate) fn open_lab(arguments: &Arguments, settings: LabSettings) -> anyhow::Result<Lab> {
    let qemu = std::env::var_os("MARVIN_QEMU").map(PathBuf::from);
    Ok(Lab::open(
        &home(arguments.home.as_deref())?,
        LabSettings { qemu, ..settings },
    )?)
}

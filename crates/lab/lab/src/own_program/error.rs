//! Why a user's own program cannot be measured.

use std::io;
use std::path::{Path, PathBuf};

use archives::ArchiveError;

#[derive(Debug, thiserror::Error)]
pub enum OwnProgramError {
    /// Nothing follows `--`.
    #[error("no program: give it after `--`: marvin compare A B -- ./my-bench --args")]
    Nothing,
    /// PATH has no such program.
    #[error("there is no program `{name}` in PATH{hint}")]
    NotInPath {
        name: String,
        /// What may help.
        hint: &'static str,
    },
    /// The path names no file.
    #[error("there is no {}", .path.display())]
    NoFile { path: PathBuf },
    /// The path is a symbolic link to nowhere.
    #[error("{} is a link to {}, which is not there", .path.display(), .target.display())]
    Dangling { path: PathBuf, target: PathBuf },
    /// A program or an input is a directory.
    #[error("{} is a directory: name a file in it", .path.display())]
    IsDirectory { path: PathBuf },
    /// `--with =PLACE`.
    #[error("--with ={place}: there is no path before the sign")]
    NoSource { place: String },
    /// It may not be executed.
    #[error("{} is not executable: chmod +x {}", .path.display(), .path.display())]
    NotExecutable { path: PathBuf },
    /// It is a directory, a device or a socket.
    #[error("{} is no regular file: its content cannot be taken into a guest", .path.display())]
    Special { path: PathBuf },
    /// It is of /proc, /sys, /dev or /run.
    #[error(
        "{} is the kernel's: the guest has its own; copy it to a file first to bring this host's", .path.display()
    )]
    Kernels { path: PathBuf },
    /// It has no byte.
    #[error("{} is empty: it cannot be started", .path.display())]
    Empty { path: PathBuf },
    /// A text without `#!`: only a shell would run it.
    #[error(
        "{} is a text without `#!`, which the kernel cannot start: write #!/bin/sh into its first line, or give -- sh {}", .path.display(), .path.display()
    )]
    NoFirstLine { path: PathBuf },
    /// A first line of `#!` only.
    #[error("{} names no interpreter behind `#!` in its first line", .path.display())]
    NoInterpreterName { path: PathBuf },
    /// A script written with DOS line ends.
    #[error(
        "the first line of {} ends with a carriage return, which the kernel takes for a part of the interpreter's name: sed -i 's/\\r$//' {}", .path.display(), .path.display()
    )]
    CarriageReturn { path: PathBuf },
    /// A script names an interpreter that is not there.
    #[error("{} needs {interpreter}, which this host has not", .path.display())]
    NoInterpreter { path: PathBuf, interpreter: String },
    /// The dynamic linker would not find a library.
    #[error(
        "the program needs files that this host has not: {}; name their directory in LD_LIBRARY_PATH with --env, or bring them with --with",
        .names.join(", ")
    )]
    NoLibrary { names: Vec<String> },
    /// A path in the guest is not absolute or has `..`.
    #[error("--with {written}: the place in the guest must be an absolute path without `..`")]
    BadPlace { written: String },
    /// A name is not UTF-8.
    #[error("{} is not UTF-8: rename it", .path.display())]
    NotText { path: PathBuf },
    /// The guest has no room for a file at its path.
    #[error(
        "no file can be brought to {} in the guest: {why}; choose another place with --with PATH=PLACE",
        shorten(.path)
    )]
    NoPlace { path: String, why: String },
    /// What a guest is asked to start is longer than a job.
    #[error(
        "the program's arguments, variables and directory have {bytes} bytes, and a guest gets {bytes_max}: write them into a script, and give -- ./script"
    )]
    Long { bytes: usize, bytes_max: usize },
    /// The files are more than a guest can hold.
    #[error(
        "its files have more than {} MiB: name fewer with --with, or put them into an archive that the program reads", .bytes_max >> 20
    )]
    Large { bytes_max: u64 },
    /// A directory is more than a guest can hold.
    #[error(
        "--with {}: it has more than {} MiB or {entries_max} files: name what the program needs of it", .path.display(), .bytes_max >> 20
    )]
    LargeDirectory {
        path: PathBuf,
        bytes_max: u64,
        entries_max: usize,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The image could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// This process has no working directory.
    #[error("the working directory is gone: {0}")]
    Directory(io::Error),
}

/// Returns the beginning of a path that may be very long.
fn shorten(path: &str) -> String {
    const SHOWN: usize = 200;
    match path.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

impl OwnProgramError {
    /// Returns why a path cannot be opened, and where a link leads.
    pub(super) fn no_file(path: &Path) -> Self {
        let path = path.to_owned();
        match std::fs::read_link(&path) {
            Ok(target) => Self::Dangling { path, target },
            Err(_) => Self::NoFile { path },
        }
    }

    pub(super) fn directory(error: io::Error) -> Self {
        Self::Directory(error)
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(super) fn archive(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Large { bytes_max } => Self::Large { bytes_max },
            other => Self::Read {
                path: PathBuf::from("a file of the program"),
                source: io::Error::other(other.to_string()),
            },
        }
    }
}

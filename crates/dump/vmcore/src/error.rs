//! Errors of dumps, each with a message that says what, where and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The user: the file is no dump, or does not support the request.
    User,
    /// The host's administrator: disk, permissions.
    Lab,
}

/// Why a dump could not be read, filtered or written.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// Reading, writing or mapping failed.
    #[error("{} could not be {action} at offset {offset:#x}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted operation: `read`, `written`, ...
        action: &'static str,
        /// The file offset in bytes.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The disk is full.
    #[error(
        "no space is left for {} (at offset {offset:#x}): make room, or drop more with a higher --level or a list such as --level 17,31; what was written is marked incomplete",
        path.display()
    )]
    NoSpace {
        /// The written file.
        path: PathBuf,
        /// The file offset in bytes.
        offset: u64,
    },
    /// The reader closed the pipe.
    #[error(
        "the reader of the output went away at offset {offset:#x}: the dump there is not complete"
    )]
    Closed {
        /// The stream offset in bytes.
        offset: u64,
    },
    /// The format is unknown.
    #[error(
        "{} is not a supported memory dump: {what}. Supported: ELF vmcores and kdump-compressed files, both flattened too", path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The first bytes.
        what: String,
    },
    /// A header contradicts itself or the file.
    #[error("{}: wrong at offset {offset:#x}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The file offset in bytes.
        offset: u64,
        /// The fault.
        what: String,
    },
    /// Headers exceed the file.
    #[error("{} is cut off: {what} should end at offset {end:#x}, but the file has {size:#x} bytes; copy it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The missing part.
        what: &'static str,
        /// Its end, in bytes.
        end: u64,
        /// Size of the file in bytes.
        size: u64,
    },
    /// The dump lacks the note.
    #[error(
        "the dump has no VMCOREINFO note, so struct page cannot be found: give one with --vmcoreinfo FILE, or keep everything with --level 0 (1 drops zero pages); for QEMU guests add -device vmcoreinfo"
    )]
    NoNote,
    /// The notes are not what their writer wrote.
    #[error(
        "the notes are damaged: their checksum is wrong, so what they say of struct page is not trusted; copy the file again, or give a VMCOREINFO text with --vmcoreinfo"
    )]
    NotesDamaged,
    /// The page tables of the machine are not read.
    #[error(
        "this is a dump of {0}, whose page tables are not read: --level 0 and 1 work without them"
    )]
    PageTables(&'static str),
    /// The note lacks a required line.
    #[error(
        "the VMCOREINFO note has no usable `{0}`, which is needed here; --level 0 and 1 work without it"
    )]
    NoteLacks(String),
    /// The note has an impossible number.
    #[error("the VMCOREINFO note says {key}={value}: {what}")]
    NoteLies {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The reason.
        what: &'static str,
    },
    /// The kernel's structures are corrupt.
    #[error(
        "{what} at virtual address {address:#x} cannot be read ({cause}): the dump lacks it, or its note is not this kernel's; --level 0 and 1 work without it"
    )]
    Structure {
        /// The structure.
        what: &'static str,
        /// Its virtual address.
        address: u64,
        /// The reason.
        cause: MemoryError,
    },
    /// A running guest did not obey a command.
    #[error("the guest at {} did not {name}: {what}", socket.display())]
    Guest {
        /// Its control socket.
        socket: PathBuf,
        /// The command.
        name: String,
        /// Its reaction.
        what: String,
    },
    /// A file would be overwritten.
    #[error("{} exists already: give --force to overwrite it", .0.display())]
    Exists(PathBuf),
    /// The request is not supported.
    #[error("{0}")]
    Usage(String),
}

/// Why physical memory could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The dump does not contain it.
    #[error("physical address {0:#x} is not in the dump")]
    Absent(u64),
    /// No page table maps the virtual address.
    #[error("virtual address {0:#x} is not mapped")]
    Unmapped(u64),
    /// The file could not be read.
    #[error("physical address {address:#x}, offset {offset:#x} of the file: {what}")]
    Unreadable {
        /// The physical address.
        address: u64,
        /// The file offset in bytes.
        offset: u64,
        /// The reason.
        what: String,
    },
}

impl DumpError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            // The user can correct a wrong name.
            Self::Io { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::IsADirectory
                        | io::ErrorKind::NotADirectory
                ) =>
            {
                Fault::User
            }
            Self::Io { .. } | Self::NoSpace { .. } | Self::Closed { .. } | Self::Guest { .. } => {
                Fault::Lab
            }
            _ => Fault::User,
        }
    }

    /// Makes a read error at an offset.
    pub fn reading(path: &Path, offset: u64) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            action: "read",
            offset,
            source,
        }
    }

    /// Makes a write error at an offset; a full disk and a closed pipe are separate errors.
    pub fn writing(path: &Path, offset: u64) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoSpace {
                path: path.to_owned(),
                offset,
            },
            io::ErrorKind::BrokenPipe => Self::Closed { offset },
            _ => Self::Io {
                path: path.to_owned(),
                action: "written",
                offset,
                source,
            },
        }
    }

    /// Makes a header error.
    pub fn malformed(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            offset,
            what: what.into(),
        }
    }
}

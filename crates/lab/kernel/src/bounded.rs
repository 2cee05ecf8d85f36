//! Reads a file into memory, if it is a regular one and not larger than its reader allows.
//!
//! For files that another user may have made: images, what lies beside them, and modules.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadFault {
    /// It is a directory, a device, a pipe or a socket.
    #[error("it is not a regular file")]
    Special,
    /// It is larger than the limit.
    #[error("it is too large")]
    Large,
    /// It is not readable.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file open for reading, with its limit in bytes.
#[derive(Debug)]
pub(crate) struct Opened {
    file: File,
    most: u64,
}

/// Opens a regular file.
pub(crate) fn open(path: &Path, most: u64) -> Result<Opened, ReadFault> {
    // Checked before opening, because opening a pipe waits for a writer.
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(ReadFault::Special);
    }
    if found.len() > most {
        return Err(ReadFault::Large);
    }
    Ok(Opened {
        file: File::open(path)?,
        most,
    })
}

impl Opened {
    /// Returns what is known about the open file, whatever its path is now.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Returns its bytes. A file of /proc has more than its size says.
    pub(crate) fn read(self) -> Result<Vec<u8>, ReadFault> {
        let mut bytes = Vec::new();
        self.file.take(self.most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.most {
            Err(ReadFault::Large)
        } else {
            Ok(bytes)
        }
    }
}

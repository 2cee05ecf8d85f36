//! Where bytes of a new dump go: into a file at their offsets, or as records of a flattened stream.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::DumpError;
use crate::flattened;
use crate::plan::locked;
use crate::progress::Progress;

/// Takes bytes at offsets, from several threads.
pub trait Sink: Sync {
    /// Writes bytes at an offset; later ones cover earlier ones.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError>;

    /// Ends the file, which has `size` bytes.
    ///
    /// # Errors
    /// When what was written cannot be kept.
    fn finish(&self, size: u64) -> Result<(), DumpError>;

    /// Hears that bytes of memory were dealt with, whatever became of them.
    fn dealt(&self, _bytes: u64) {}
}

/// A sink whose writers tell how far they are.
pub(crate) struct Watched<'w> {
    pub(crate) sink: Box<dyn Sink + 'w>,
    pub(crate) progress: &'w Progress,
}

impl Sink for Watched<'_> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        self.sink.write(offset, bytes)
    }

    fn finish(&self, size: u64) -> Result<(), DumpError> {
        self.sink.finish(size)
    }

    fn dealt(&self, bytes: u64) {
        self.progress.add(bytes);
    }
}

/// A file.
#[derive(Debug)]
pub struct FileSink {
    file: File,
    path: PathBuf,
}

impl FileSink {
    /// Creates a file; one that exists is only overwritten where `overwrite` says so. Devices always are.
    ///
    /// # Errors
    /// When it exists or cannot be created.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self, DumpError> {
        let exists = std::fs::metadata(path).is_ok_and(|data| data.is_file());
        if exists && overwrite == Overwrite::No {
            return Err(DumpError::Exists(path.to_owned()));
        }
        // Memory holds keys and passwords.
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        let file = file.map_err(DumpError::writing(path, 0))?;
        Ok(Self { file, path: path.to_owned() })
    }
}

/// Whether a file that exists may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// It may.
    Yes,
    /// It may not.
    No,
}

impl Sink for FileSink {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        self.file.write_all_at(bytes, offset).map_err(DumpError::writing(&self.path, offset))
    }

    fn finish(&self, size: u64) -> Result<(), DumpError> {
        let plain = self.file.metadata().is_ok_and(|data| data.is_file());
        if plain {
            self.file.set_len(size).map_err(DumpError::writing(&self.path, size))?;
            // Some file systems find out only now that there is no room.
            self.file.sync_all().map_err(DumpError::writing(&self.path, size))?;
        }
        Ok(())
    }
}

/// A flattened stream.
pub struct Flattened<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    stream: W,
    written: u64,
}

impl<W: Write + Send> Flattened<W> {
    /// Begins a stream.
    ///
    /// # Errors
    /// When nothing can be written to it.
    pub fn begin(stream: W) -> Result<Self, DumpError> {
        let mut state = State { stream, written: 0 };
        state.put(&flattened::header())?;
        Ok(Self { state: Mutex::new(state) })
    }
}

impl<W> std::fmt::Debug for Flattened<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flattened").finish_non_exhaustive()
    }
}

impl<W: Write> State<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), DumpError> {
        let written = self.stream.write_all(bytes);
        written.map_err(DumpError::writing(Path::new("the stream"), self.written))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn record(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        // No file has more than i64::MAX bytes.
        self.put(&flattened::record(offset.cast_signed(), bytes.len() as i64))?;
        self.put(bytes)
    }
}

impl<W: Write + Send> Sink for Flattened<W> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        locked(&self.state).record(offset, bytes)
    }

    fn finish(&self, _size: u64) -> Result<(), DumpError> {
        let mut state = locked(&self.state);
        state.put(&flattened::record(-1, -1))?;
        let written = state.written;
        state.stream.flush().map_err(DumpError::writing(Path::new("the stream"), written))
    }
}

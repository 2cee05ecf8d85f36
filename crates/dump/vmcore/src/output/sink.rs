//! Sinks for a new dump: a file with offsets, or records of a flattened stream.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::DumpError;
use crate::flattened;
use crate::plan::lock;
use crate::progress::Progress;

/// Accepts bytes at offsets, from several threads.
pub trait Sink: Sync {
    /// Writes bytes at an offset; later ones replace earlier ones.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError>;

    /// Writes the data of pages, as they are stored, one behind the other.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write_pages(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        self.write(offset, bytes)
    }

    /// Zeroes `length` bytes that were not written before; files get a hole there.
    ///
    /// # Errors
    /// If they cannot be written.
    fn zeros(&self, offset: u64, length: u64) -> Result<(), DumpError> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut done = 0;
        while done < length {
            let count = (length - done).min(ZEROS.len() as u64);
            // At most 64 KiB.
            self.write(offset + done, &ZEROS[..count as usize])?;
            done += count;
        }
        Ok(())
    }

    /// Finishes the file, which has `size` bytes.
    ///
    /// # Errors
    /// If the bytes cannot be made durable.
    fn finish(&self, size: u64) -> Result<(), DumpError>;

    /// Reports progress: bytes of memory that were handled in any way.
    fn add_progress(&self, _bytes: u64) {}
}

/// Discards bytes, like /dev/null without a system call.
#[derive(Debug, Clone, Copy)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), DumpError> {
        Ok(())
    }

    fn zeros(&self, _offset: u64, _length: u64) -> Result<(), DumpError> {
        Ok(())
    }

    fn finish(&self, _size: u64) -> Result<(), DumpError> {
        Ok(())
    }
}

/// A sink that counts progress and passes everything on.
pub struct Watched<'w> {
    /// The sink that gets the bytes.
    pub sink: Box<dyn Sink + 'w>,
    /// Where the bytes of memory that were handled are counted.
    pub progress: &'w Progress,
}

impl std::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Sink for Watched<'_> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        self.sink.write(offset, bytes)
    }

    fn zeros(&self, offset: u64, length: u64) -> Result<(), DumpError> {
        self.sink.zeros(offset, length)
    }

    fn finish(&self, size: u64) -> Result<(), DumpError> {
        self.sink.finish(size)
    }

    fn add_progress(&self, bytes: u64) {
        self.progress.add(bytes);
    }
}

/// A regular file or a device, written at offsets.
#[derive(Debug)]
pub struct FileSink {
    file: File,
    path: PathBuf,
    /// Its final name, instead of `path`.
    target: Mutex<Option<PathBuf>>,
}

impl FileSink {
    /// Creates a file; replaces an existing one only if `overwrite` allows it. Devices are always
    /// accepted, but a disk's old bytes show where the dump has holes: callers refuse it.
    ///
    /// # Errors
    /// If it exists or cannot be created.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self, DumpError> {
        let exists = std::fs::metadata(path).is_ok_and(|data| data.is_file());
        if exists && overwrite == Overwrite::No {
            return Err(DumpError::Exists(path.to_owned()));
        }
        // For its owner only: memory contains keys and passwords.
        let mut options = File::options();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path);
        let file = file.map_err(DumpError::writing(path, 0))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            target: Mutex::new(None),
        })
    }

    /// Creates a file under a temporary name beside its final one; if it is never finished, it is
    /// removed, and an existing file stays. A device is written directly.
    ///
    /// # Errors
    /// If it exists and may not be overwritten, or cannot be created.
    pub fn replacing(path: &Path, overwrite: Overwrite) -> Result<Self, DumpError> {
        // The target of a link is replaced, and not the link.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (Some(name), data) = (path.file_name(), std::fs::metadata(path)) else {
            return Self::create(path, overwrite);
        };
        match data {
            Ok(data) if !data.is_file() => return Self::create(path, overwrite),
            Ok(_) if overwrite == Overwrite::No => return Err(DumpError::Exists(path.clone())),
            _ => {}
        }
        let mut other = std::ffi::OsString::from(".");
        other.push(name);
        other.push(format!(".{}", std::process::id()));
        // An existing one was left by a killed program with the same process id.
        let sink = Self::create(&path.with_file_name(other), Overwrite::Yes)?;
        *lock(&sink.target) = Some(path.clone());
        Ok(sink)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if lock(&self.target).is_some() {
            // It is useless, and errors cannot be reported here.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Whether to overwrite an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// An existing file is replaced.
    Yes,
    /// An existing file is an error.
    No,
}

impl Sink for FileSink {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(DumpError::writing(&self.path, offset))
    }

    fn zeros(&self, _offset: u64, _length: u64) -> Result<(), DumpError> {
        // The file was empty: bytes that are never written read as zeros and need no space.
        Ok(())
    }

    fn finish(&self, size: u64) -> Result<(), DumpError> {
        let plain = self.file.metadata().is_ok_and(|data| data.is_file());
        if plain {
            self.file
                .set_len(size)
                .map_err(DumpError::writing(&self.path, size))?;
            // Some file systems report a full disk only now.
            self.file
                .sync_all()
                .map_err(DumpError::writing(&self.path, size))?;
        }
        // Last, so that the old file stays until the new one is complete and durable.
        let mut target = lock(&self.target);
        if let Some(path) = target.as_ref() {
            std::fs::rename(&self.path, path).map_err(DumpError::writing(path, size))?;
            *target = None;
        }
        Ok(())
    }
}

/// makedumpfile's flattened format: a stream of records of offset, length and bytes, for outputs
/// that cannot seek.
pub struct Flattened<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    stream: W,
    written: u64,
}

impl<W: Write + Send> Flattened<W> {
    /// Begins a stream by writing its header.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn begin(stream: W) -> Result<Self, DumpError> {
        let mut state = State { stream, written: 0 };
        state.put(&flattened::header())?;
        Ok(Self {
            state: Mutex::new(state),
        })
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
        // A record has to follow its header, so threads take turns.
        lock(&self.state).record(offset, bytes)
    }

    fn finish(&self, _size: u64) -> Result<(), DumpError> {
        let mut state = lock(&self.state);
        state.put(&flattened::record(-1, -1))?;
        let written = state.written;
        state
            .stream
            .flush()
            .map_err(DumpError::writing(Path::new("the stream"), written))
    }
}

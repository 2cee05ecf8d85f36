//! A file of bytes at offsets: plain, or assembled from the records of a flattened file.
//!
//! `elf` and `kdump` interpret the bytes.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use crate::error::DumpError;
use crate::flattened::{self, Index};
use crate::syscall_counts::Calls;

/// An open file of a dump.
#[derive(Debug)]
pub(crate) struct Storage {
    path: PathBuf,
    file: File,
    size: u64,
    /// The index of a flattened file; `None` for a plain one.
    index: Option<Index>,
    /// It is the memory of a guest.
    memory: bool,
    calls: Calls,
}

impl Storage {
    /// Opens a file; indexes a flattened one.
    ///
    /// # Errors
    /// If it cannot be opened, or its records are wrong.
    pub(crate) fn open(path: &Path) -> Result<Self, DumpError> {
        let mut storage = Self::plainly(path)?;
        if flattened::is_flattened(&storage)? {
            let index = Index::read(&storage)?;
            storage.size = index.size();
            storage.index = Some(index);
        }
        Ok(storage)
    }

    /// Opens a guest's memory, whose first bytes are the guest's.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn of_memory(path: &Path) -> Result<Self, DumpError> {
        Ok(Self {
            memory: true,
            ..Self::plainly(path)?
        })
    }

    fn plainly(path: &Path) -> Result<Self, DumpError> {
        if std::fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo()) {
            // Opening a pipe may block without limit.
            let path = path.display();
            return Err(DumpError::Usage(format!(
                "{path} is a pipe: a dump is read in any order, so put it into a file first"
            )));
        }
        let mut file = File::open(path).map_err(DumpError::reading(path, 0))?;
        // The length of a device is its end position; a directory has none, and reading it fails
        // later.
        let size = file
            .seek(SeekFrom::End(0))
            .map_err(DumpError::reading(path, 0))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            size,
            index: None,
            memory: false,
            calls: Calls::default(),
        })
    }

    /// Returns the path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the counters of system calls.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns the size of its content in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether it is flattened.
    pub(crate) fn flattened(&self) -> bool {
        self.index.is_some()
    }

    /// Returns whether it is flattened without an end mark.
    pub(crate) fn is_cut(&self) -> bool {
        self.index
            .as_ref()
            .is_some_and(|index| !index.has_end_mark())
    }

    /// Returns the file if its bytes are the content, so that it can be mapped. A guest's memory is
    /// not mapped: touching an unused page would allocate it, and a page must not change while
    /// it is compressed.
    pub(crate) fn plain(&self) -> Option<&File> {
        (self.index.is_none() && !self.memory).then_some(&self.file)
    }

    /// Fills `buffer` with the content from `offset`; a hole in a flattened file is an error.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DumpError> {
        let Some(hole) = self.fill_known(offset, buffer)? else {
            return Ok(());
        };
        let what = format!(
            "no record of this flattened file has the {} bytes that belong there",
            hole.len()
        );
        Err(DumpError::malformed(
            &self.path,
            offset + hole.start as u64,
            what,
        ))
    }

    /// Fills `buffer` with the content from `offset`, with zeros for holes in a flattened file;
    /// returns the first hole.
    pub(crate) fn fill_known(
        &self,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<Range<usize>>, DumpError> {
        let Some(index) = &self.index else {
            return self.fill_raw(offset, buffer).map(|()| None);
        };
        let mut hole = None;
        for piece in index.pieces(offset, buffer.len()) {
            match piece.at {
                Some(at) => self.fill_raw(at, &mut buffer[piece.within])?,
                None => {
                    buffer[piece.within.clone()].fill(0);
                    hole = hole.or(Some(piece.within));
                }
            }
        }
        Ok(hole)
    }

    /// Returns the location of the content's byte in the file itself, if it has one.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        let piece = self
            .index
            .as_ref()
            .and_then(|index| index.pieces(offset, 1).pop());
        piece.and_then(|piece| piece.at).unwrap_or(offset)
    }

    /// Makes an error at an offset of the content.
    pub(crate) fn malformed(&self, offset: u64, what: impl Into<String>) -> DumpError {
        DumpError::malformed(&self.path, self.place(offset), what)
    }

    /// Fills `buffer` with bytes of the file itself.
    pub(crate) fn fill_raw(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DumpError> {
        self.calls.read();
        self.file
            .read_exact_at(buffer, offset)
            .map_err(DumpError::reading(&self.path, offset))
    }

    /// Returns `length` bytes from `offset`; at most `LENGTH_MAX`. `what` names them in errors.
    pub(crate) fn bytes(
        &self,
        offset: u64,
        length: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, DumpError> {
        /// Largest header, note or table of program headers.
        const LENGTH_MAX: u64 = 64 << 20;
        let end = offset.saturating_add(length);
        if end > self.size {
            return Err(DumpError::Truncated {
                path: self.path.clone(),
                what,
                end,
                size: self.size,
            });
        }
        let length = usize::try_from(length)
            .ok()
            .filter(|_| length <= LENGTH_MAX);
        let length =
            length.ok_or_else(|| self.malformed(offset, format!("{what} is too large")))?;
        let mut bytes = vec![0; length];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }
}

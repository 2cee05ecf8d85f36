//! A file of bytes at offsets: plain, or put together from the records of a flattened file.
//!
//! What the bytes mean is the business of `elf` and `kdump`.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use crate::calls::Calls;
use crate::error::DumpError;
use crate::flattened::{self, Index};

/// An opened file of a dump.
#[derive(Debug)]
pub(crate) struct Storage {
    path: PathBuf,
    file: File,
    size: u64,
    /// Where the records of a flattened file are; `None` for a plain one.
    index: Option<Index>,
    /// It is the memory of a guest.
    memory: bool,
    calls: Calls,
}

impl Storage {
    /// Opens a file; a flattened one is indexed.
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

    /// Opens a guest's memory: it begins with whatever the guest put there.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn of_memory(path: &Path) -> Result<Self, DumpError> {
        Ok(Self { memory: true, ..Self::plainly(path)? })
    }

    fn plainly(path: &Path) -> Result<Self, DumpError> {
        if std::fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo()) {
            // To open one may wait without end.
            let path = path.display();
            return Err(DumpError::Usage(format!(
                "{path} is a pipe: a dump is read in any order, so put it into a file first"
            )));
        }
        let mut file = File::open(path).map_err(DumpError::reading(path, 0))?;
        // The length of a device is where its end is; a folder has none, and reading it fails later.
        let size = file.seek(SeekFrom::End(0)).map_err(DumpError::reading(path, 0))?;
        Ok(Self { path: path.to_owned(), file, size, index: None, memory: false, calls: Calls::default() })
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

    /// Whether it is a flattened file.
    pub(crate) fn flattened(&self) -> bool {
        self.index.is_some()
    }

    /// Whether it is a flattened file whose end mark is missing.
    pub(crate) fn cut(&self) -> bool {
        self.index.as_ref().is_some_and(|index| !index.ended())
    }

    /// Returns the file if its bytes are the content, and so can be mapped. A guest's memory is not: to touch a mapped page
    /// that the guest never did would give it memory, and a page must not change while it is compressed.
    pub(crate) fn plain(&self) -> Option<&File> {
        (self.index.is_none() && !self.memory).then_some(&self.file)
    }

    /// Fills `buffer` with the content from `offset`; what no record of a flattened file has is an error.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DumpError> {
        let Some(hole) = self.fill_known(offset, buffer)? else { return Ok(()) };
        let what = format!("no record of this flattened file has the {} bytes that belong there", hole.len());
        Err(DumpError::malformed(&self.path, offset + hole.start as u64, what))
    }

    /// Fills `buffer` with the content from `offset`, and with zeros where no record of a flattened file has it; returns
    /// the first such hole.
    pub(crate) fn fill_known(&self, offset: u64, buffer: &mut [u8]) -> Result<Option<Range<usize>>, DumpError> {
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

    /// Returns where in the file itself a byte of the content is: in a flattened file somewhere else, if anywhere.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        let piece = self.index.as_ref().and_then(|index| index.pieces(offset, 1).pop());
        piece.and_then(|piece| piece.at).unwrap_or(offset)
    }

    /// Makes an error of what stands at an offset of the content.
    pub(crate) fn malformed(&self, offset: u64, what: impl Into<String>) -> DumpError {
        DumpError::malformed(&self.path, self.place(offset), what)
    }

    /// Fills `buffer` with bytes of the file itself.
    pub(crate) fn fill_raw(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DumpError> {
        self.calls.read();
        self.file.read_exact_at(buffer, offset).map_err(DumpError::reading(&self.path, offset))
    }

    /// Returns `length` bytes from `offset`, which are `what`; at most `LENGTH_MAX`.
    pub(crate) fn bytes(&self, offset: u64, length: u64, what: &'static str) -> Result<Vec<u8>, DumpError> {
        /// No header, note or table of program headers is larger.
        const LENGTH_MAX: u64 = 64 << 20;
        let end = offset.saturating_add(length);
        if end > self.size {
            return Err(DumpError::Truncated { path: self.path.clone(), what, end, size: self.size });
        }
        let length = usize::try_from(length).ok().filter(|_| length <= LENGTH_MAX);
        let length = length.ok_or_else(|| self.malformed(offset, format!("{what} is too large")))?;
        let mut bytes = vec![0; length];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }
}

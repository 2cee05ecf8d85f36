//! A file of bytes at offsets: plain, or put together from the records of a flattened file.
//!
//! What the bytes mean is the business of `elf` and `kdump`.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::DumpError;
use crate::flattened::{self, Index};

/// An opened file of a dump.
#[derive(Debug)]
pub(crate) struct Storage {
    path: PathBuf,
    file: File,
    size: u64,
    /// Where the records of a flattened file are; nothing for a plain one.
    index: Option<Index>,
    /// It is the memory of a guest.
    memory: bool,
}

impl Storage {
    /// Opens a file; a flattened one is indexed.
    ///
    /// # Errors
    /// When it cannot be opened, or its records are wrong.
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
    /// When it cannot be opened.
    pub(crate) fn of_memory(path: &Path) -> Result<Self, DumpError> {
        Ok(Self { memory: true, ..Self::plainly(path)? })
    }

    fn plainly(path: &Path) -> Result<Self, DumpError> {
        let mut file = File::open(path).map_err(DumpError::reading(path, 0))?;
        // The length of a device is where its end is; a folder has none, and reading it fails later.
        let size = file.seek(SeekFrom::End(0)).map_err(DumpError::reading(path, 0))?;
        Ok(Self { path: path.to_owned(), file, size, index: None, memory: false })
    }

    /// Returns the path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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

    /// Fills `buffer` with the content from `offset`.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DumpError> {
        let Some(index) = &self.index else {
            return self.fill_raw(offset, buffer);
        };
        for piece in index.pieces(offset, buffer.len()) {
            let place = &mut buffer[piece.within];
            match piece.at {
                Some(at) => self.fill_raw(at, place)?,
                None => place.fill(0),
            }
        }
        Ok(())
    }

    /// Fills `buffer` with bytes of the file itself.
    pub(crate) fn fill_raw(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DumpError> {
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
        let length = length.ok_or_else(|| DumpError::malformed(&self.path, offset, format!("{what} is too large")))?;
        let mut bytes = vec![0; length];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }
}

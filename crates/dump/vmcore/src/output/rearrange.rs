//! Converts a flattened stream into the original file, record by record; a stream that is cut
//! becomes a file that says that it is incomplete.

use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::bytes::{put, u32_or_zero};
use crate::elf;
use crate::error::DumpError;
use crate::flattened::{self, HEADER, SIGNATURE};
use crate::kdump;
use crate::output::sink::Sink;

/// Bytes to copy at once.
const CHUNK: usize = 256 << 10;

/// The result of rearranging.
#[derive(Debug)]
pub struct Rearranged {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Why it is incomplete: the stream ends early.
    pub cut: Option<DumpError>,
}

/// What becomes of a stream that ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The file has what there is, and is marked as incomplete.
    Kept,
    /// It is an error.
    Refused,
}

/// Writes the file.
///
/// # Errors
/// If the stream is not flattened, is cut although that is refused or before its first record, or
/// the file cannot be written.
pub fn rearrange(
    stream: &mut dyn Read,
    sink: &dyn Sink,
    cut: Cut,
) -> Result<Rearranged, DumpError> {
    let mut source = Source { stream, at: 0 };
    let mut header = vec![0; HEADER as usize];
    source.fill(&mut header)?;
    if !header.starts_with(SIGNATURE) {
        let what = format!(
            "the stream begins with `{}`, not as a flattened dump",
            header[..12].escape_ascii()
        );
        return Err(DumpError::Unknown {
            path: Path::new("standard input").to_owned(),
            what,
        });
    }
    let mut file = Target {
        sink,
        start: Vec::new(),
        size: 0,
    };
    let cut = match records(&mut source, &mut file) {
        Ok(()) => None,
        Err(error @ DumpError::Truncated { .. }) if cut == Cut::Kept && file.mark()? => Some(error),
        Err(error) => return Err(error),
    };
    sink.finish(file.size)?;
    Ok(Rearranged {
        bytes: file.size,
        cut,
    })
}

/// Writes all records, up to the end mark.
fn records(source: &mut Source<'_>, file: &mut Target<'_>) -> Result<(), DumpError> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let mut head = [0; 16];
        source.fill(&mut head)?;
        let both = u128::from_be_bytes(head);
        let offset = (both >> 64) as i64;
        let length = both as i64;
        if (offset, length) == (-1, -1) {
            return Ok(());
        }
        let place = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
        let place = place.filter(|(offset, length)| offset.checked_add(*length).is_some());
        let Some((mut offset, mut length)) = place else {
            let what = flattened::strange(offset, length);
            return Err(DumpError::malformed(
                Path::new("standard input"),
                source.at - 16,
                what,
            ));
        };
        while length > 0 {
            let count = usize::try_from(length).unwrap_or(CHUNK).min(CHUNK);
            source.fill(&mut buffer[..count])?;
            file.write(offset, &buffer[..count])?;
            offset += count as u64;
            length -= count as u64;
        }
        file.size = file.size.max(offset);
    }
}

/// The file, and its first bytes for the mark of an incomplete one.
struct Target<'s> {
    sink: &'s dyn Sink,
    start: Vec<u8>,
    size: u64,
}

impl Target<'_> {
    /// Bytes of the start: the first header up to its status.
    const START: usize = kdump::field::STATUS + 4;

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        if let Ok(at) = usize::try_from(offset)
            && at < Self::START
        {
            let count = bytes.len().min(Self::START - at);
            self.start.resize(self.start.len().max(at + count), 0);
            self.start[at..at + count].copy_from_slice(&bytes[..count]);
        }
        self.size = self.size.max(offset + bytes.len() as u64);
        self.sink.write(offset, bytes)
    }

    /// Marks the file as incomplete; returns whether it is one of a known format.
    fn mark(&mut self) -> Result<bool, DumpError> {
        let start = &mut self.start;
        if start.len() == Self::START && start.starts_with(kdump::SIGNATURE) {
            let status = u32_or_zero(start, kdump::field::STATUS) | kdump::INCOMPLETE;
            put(start, kdump::field::STATUS, status.to_le_bytes());
        } else if start.len() >= elf::FLAGS + 4 && start.starts_with(b"\x7fELF") {
            put(start, elf::FLAGS, elf::INCOMPLETE.to_le_bytes());
        } else {
            return Ok(false);
        }
        self.sink.write(0, start)?;
        Ok(true)
    }
}

struct Source<'s> {
    stream: &'s mut dyn Read,
    at: u64,
}

impl Source<'_> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), DumpError> {
        let path = Path::new("standard input");
        self.stream
            .read_exact(buffer)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => {
                    let end = self.at + buffer.len() as u64;
                    DumpError::Truncated {
                        path: path.to_owned(),
                        what: "the flattened stream",
                        end,
                        size: self.at,
                    }
                }
                _ => DumpError::reading(path, self.at)(error),
            })?;
        self.at += buffer.len() as u64;
        Ok(())
    }
}

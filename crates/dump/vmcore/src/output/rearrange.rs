//! Converts a flattened stream into the original file, record by record.

use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::DumpError;
use crate::flattened::{self, HEADER, SIGNATURE};
use crate::output::sink::Sink;

/// Bytes to copy at once.
const CHUNK: usize = 256 << 10;

/// Writes the file; returns its size in bytes.
///
/// # Errors
/// If the stream is not flattened or is truncated, or the file cannot be written.
pub fn rearrange(stream: &mut dyn Read, sink: &dyn Sink) -> Result<u64, DumpError> {
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
    let mut size = 0;
    let mut buffer = vec![0; CHUNK];
    loop {
        let mut head = [0; 16];
        source.fill(&mut head)?;
        let both = u128::from_be_bytes(head);
        let offset = (both >> 64) as i64;
        let length = both as i64;
        if (offset, length) == (-1, -1) {
            sink.finish(size)?;
            return Ok(size);
        }
        let place = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
        let place =
            place.and_then(|(offset, length)| Some((offset, length, offset.checked_add(length)?)));
        let Some((mut offset, mut length, end)) = place else {
            let what = flattened::strange(offset, length);
            return Err(DumpError::malformed(
                Path::new("standard input"),
                source.at - 16,
                what,
            ));
        };
        size = size.max(end);
        while length > 0 {
            let count = usize::try_from(length).unwrap_or(CHUNK).min(CHUNK);
            source.fill(&mut buffer[..count])?;
            sink.write(offset, &buffer[..count])?;
            offset += count as u64;
            length -= count as u64;
        }
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

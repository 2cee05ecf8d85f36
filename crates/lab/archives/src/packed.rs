//! tar.xz: files into an archive whose bytes depend on nothing but the files, and back.
//!
//! ustar without owners and dates, in the order of the caller. What an archive contains is verified
//! by its reader.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use liblzma::stream::{Check, Stream};
use liblzma::write::XzEncoder;

use crate::ArchiveError;
use crate::tar::{Archive, Paths};
use crate::unpack::decoder;

/// Preset of xz: the smallest file; packing is rare.
const PRESET: u32 = 9;
/// Bytes of a block of tar.
const BLOCK: usize = 512;
/// Bytes of the end of an archive.
const END: usize = 2 * BLOCK;
/// Longest path of a file.
const PATH_MAX: usize = 100;

/// A file that is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedFile<'a> {
    pub path: &'a str,
    pub is_program: bool,
    pub content: &'a [u8],
}

/// A tar that is written, without compression.
#[derive(Debug)]
pub(crate) struct TarWriter<W: Write> {
    output: W,
}

impl<W: Write> TarWriter<W> {
    pub(crate) fn new(output: W) -> Self {
        Self { output }
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, file: PackedFile<'_>) -> io::Result<()> {
        self.output.write_all(&header(&file)?)?;
        self.output.write_all(file.content)?;
        let padding = (BLOCK - file.content.len() % BLOCK) % BLOCK;
        self.output.write_all(&[0; BLOCK][..padding])
    }

    /// Ends it, and returns where it was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.output.write_all(&[0; END])?;
        Ok(self.output)
    }
}

/// An archive that is written.
pub struct Packer<W: Write> {
    tar: TarWriter<XzEncoder<W>>,
}

impl<W: Write> std::fmt::Debug for Packer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl<W: Write> Packer<W> {
    /// Begins an archive.
    ///
    /// # Errors
    /// If there is not memory enough.
    pub fn new(output: W) -> io::Result<Self> {
        // One thread: the number of threads would be in the bytes.
        let stream = Stream::new_easy_encoder(PRESET, Check::Crc64)?;
        let tar = TarWriter::new(XzEncoder::new_stream(output, stream));
        Ok(Self { tar })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// If its path is too long, or the archive cannot be written.
    pub fn add(&mut self, file: PackedFile<'_>) -> io::Result<()> {
        self.tar.add(file)
    }

    /// Ends it, and returns where it was written to.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.tar.finish()?.finish()
    }
}

/// Returns the header of a file in ustar's format.
fn header(file: &PackedFile<'_>) -> io::Result<[u8; BLOCK]> {
    if file.path.len() > PATH_MAX {
        return Err(io::Error::other(format!(
            "{}: its path is too long",
            file.path
        )));
    }
    let mut header = [0; BLOCK];
    let mode = if file.is_program { 0o755 } else { 0o644 };
    let fields = [
        (0, file.path.to_owned()),
        (100, format!("{mode:07o}\0")),
        (108, format!("{:07o}\0", 0)),
        (116, format!("{:07o}\0", 0)),
        (124, format!("{:011o}\0", file.content.len())),
        (136, format!("{:011o}\0", 0)),
        // The sum is made over spaces in its own place.
        (148, " ".repeat(8)),
        (156, "0".to_owned()),
        (257, "ustar\x0000".to_owned()),
    ];
    for (place, text) in fields {
        header[place..place + text.len()].copy_from_slice(text.as_bytes());
    }
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Opens a tar.xz whose paths begin at a root.
///
/// # Errors
/// If it cannot be read.
pub fn open_packed(file: &Path) -> Result<Archive<Box<dyn Read>>, ArchiveError> {
    let packed = BufReader::new(File::open(file).map_err(ArchiveError::io(file))?);
    let unpacked = decoder("packed.tar.xz", packed).map_err(ArchiveError::io(file))?;
    Ok(Archive::new(unpacked, Paths::FromRoot))
}

/// Writes files to a tar.xz.
///
/// # Errors
/// If it cannot be written.
pub fn pack<'a>(
    file: &Path,
    files: impl IntoIterator<Item = PackedFile<'a>>,
) -> Result<(), ArchiveError> {
    let write = || {
        let mut packer = Packer::new(BufWriter::new(File::create(file)?))?;
        for file in files {
            packer.add(file)?;
        }
        packer.finish()?.into_inner()?.sync_all()
    };
    write().map_err(ArchiveError::io(file))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{PackedFile, header, open_packed, pack};
    use crate::EntryKind;

    const FILES: [PackedFile<'_>; 3] = [
        PackedFile {
            path: "bin/tool",
            is_program: true,
            content: b"#!/bin/sh\n",
        },
        PackedFile {
            path: "lib/empty",
            is_program: false,
            content: b"",
        },
        PackedFile {
            path: "share/block",
            is_program: false,
            content: &[7; 512],
        },
    ];

    #[test]
    fn packed_files_are_read_back_and_by_tar() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.tar.xz");
        pack(&file, FILES).unwrap();
        let mut archive = open_packed(&file).unwrap();
        for expected in FILES {
            let entry = archive.next_entry().unwrap().unwrap();
            assert_eq!(entry.path, expected.path);
            assert_eq!(entry.content, expected.content);
            assert_eq!(entry.kind == EntryKind::Program, expected.is_program);
        }
        assert_eq!(archive.next_entry().unwrap(), None);
        let listed = Command::new("tar")
            .arg("-tvJf")
            .arg(&file)
            .output()
            .unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.starts_with("-rwxr-xr-x 0/0 "), "{listed}");
        assert_eq!(listed.lines().count(), 3, "{listed}");
    }

    #[test]
    fn same_files_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = |name: &str| {
            let file = folder.path().join(name);
            pack(&file, FILES).unwrap();
            std::fs::read(file).unwrap()
        };
        assert_eq!(bytes("one"), bytes("other"));
    }

    #[test]
    fn archive_that_is_cut_short_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.tar.xz");
        pack(&file, FILES).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&file, &bytes[..length]).unwrap();
            let mut archive = open_packed(&file).unwrap();
            let mut count = 0;
            let is_whole = loop {
                match archive.next_entry() {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            // The check at the end is behind the last file.
            assert!(!is_whole || count == FILES.len(), "{length}");
        }
    }

    #[test]
    fn path_that_is_too_long_is_refused() {
        let path = "x".repeat(101);
        let file = PackedFile {
            path: &path,
            ..FILES[0]
        };
        assert!(header(&file).is_err());
    }
}

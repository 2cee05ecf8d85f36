//! tar.zst: files that resemble each other, such as the kernels of a series, in little room, and
//! back.
//!
//! The bytes depend on nothing but the files. `tar --zstd` reads it, within the window that it has
//! without options.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use crate::ArchiveError;
use crate::packed::{PackedFile, TarWriter};
use crate::tar::{Archive, Paths};

/// Level of zstd: the ninth saves a twentieth more of two kernels and takes twice as long.
const LEVEL: i32 = 3;
/// The window, as a power of two: 128 MiB, the largest that zstd unpacks unasked, in which a second
/// kernel finds the first.
const WINDOW: u32 = 27;

/// Writes files to a tar.zst.
///
/// # Errors
/// If it cannot be written.
pub fn pack_zstd<'a, W: Write>(
    output: W,
    files: impl IntoIterator<Item = PackedFile<'a>>,
) -> io::Result<W> {
    let mut encoder = zstd::stream::write::Encoder::new(BufWriter::new(output), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(WINDOW)?;
    let mut tar = TarWriter::new(encoder);
    for file in files {
        tar.add(file)?;
    }
    let packed = tar.finish()?.finish()?;
    packed.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Opens a tar.zst, of which at most so many bytes are unpacked. Paths begin at a root.
///
/// # Errors
/// If it cannot be read.
pub fn open_zstd(file: &Path, unpacked_max: u64) -> Result<Archive<impl Read>, ArchiveError> {
    let packed = BufReader::new(File::open(file).map_err(ArchiveError::io(file))?);
    let mut unpacked =
        zstd::stream::read::Decoder::with_buffer(packed).map_err(ArchiveError::io(file))?;
    unpacked
        .window_log_max(WINDOW)
        .map_err(ArchiveError::io(file))?;
    Ok(Archive::new(unpacked.take(unpacked_max), Paths::FromRoot))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{open_zstd, pack_zstd};
    use crate::PackedFile;

    /// Bytes without any order.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn second_kernel_is_packed_as_the_first() {
        let folder = tempfile::tempdir().unwrap();
        // Further apart than the usual window of zstd.
        let kernel = noise(12 << 20);
        let files = ["one", "two"].map(|path| PackedFile {
            path,
            is_program: false,
            content: &kernel,
        });
        let packed = pack_zstd(Vec::new(), files).unwrap();
        assert!(packed.len() < 13 << 20, "{}", packed.len());
        assert_eq!(pack_zstd(Vec::new(), files).unwrap(), packed);
        let file = folder.path().join("x.tar.zst");
        std::fs::write(&file, &packed).unwrap();
        let mut archive = open_zstd(&file, 1 << 30).unwrap();
        for expected in files {
            let entry = archive.next_entry().unwrap().unwrap();
            assert_eq!(entry.path, expected.path);
            assert!(entry.content == kernel);
        }
        assert_eq!(archive.next_entry().unwrap(), None);
        let mut rest = Vec::new();
        archive.into_inner().read_to_end(&mut rest).unwrap();
        assert!(rest.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn limits_end_what_unpacks_to_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let zeros = vec![0; 8 << 20];
        let bomb = [PackedFile {
            path: "zeros",
            is_program: false,
            content: &zeros,
        }];
        let file = folder.path().join("bomb.tar.zst");
        std::fs::write(&file, pack_zstd(Vec::new(), bomb).unwrap()).unwrap();
        assert!(open_zstd(&file, 1 << 20).unwrap().next_entry().is_err());
        let limited = open_zstd(&file, 1 << 30).unwrap();
        assert!(limited.with_file_max(1 << 20).next_entry().is_err());
    }
}

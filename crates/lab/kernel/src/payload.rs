//! Unpacks the compressed kernel in a bzImage, for every supported compression and within limits.
//!
//! The formats are those of `scripts/extract-vmlinux` and `lib/decompress*.c` of the kernel, except
//! bzip2 and lzo, which are rare and left to the kernel itself. `bzimage` finds the payload, `elf`
//! checks the result.

use std::io::{self, Read};

use crate::ImageFault;
use crate::bytes::u32_at;

/// Largest kernel: Debian's has 60 MB.
const MOST: u32 = 256 << 20;

/// Most memory of liblzma: a dictionary of 128 MiB, as `scripts/xz_wrap.sh` of the kernel chooses,
/// and more.
pub(crate) const XZ_MEMORY: u64 = 192 << 20;

/// Largest block of the kernel's build (`lz4 -l`).
const LZ4_BLOCK: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Gzip,
    /// And lzma, which liblzma distinguishes.
    Xz,
    Lz4,
    Zstd,
}

fn format(payload: &[u8]) -> Option<Format> {
    const MAGIC: [(&[u8], Format); 5] = [
        (b"\x1f\x8b", Format::Gzip),
        (b"\xfd7zXZ\0", Format::Xz),
        (b"\x5d\0\0", Format::Xz),
        (b"\x02\x21\x4c\x18", Format::Lz4),
        (b"\x28\xb5\x2f\xfd", Format::Zstd),
    ];
    let (_, format) = MAGIC.iter().find(|(magic, _)| payload.starts_with(magic))?;
    Some(*format)
}

/// Returns the unpacked payload; `None` if its compression is not supported.
pub(crate) fn unpack(payload: &[u8]) -> Result<Option<Vec<u8>>, ImageFault> {
    let Some(format) = format(payload) else {
        return Ok(None);
    };
    // Gzip ends with the unpacked size; `scripts/Makefile.lib` appends it to all others
    // (`size_append`).
    let (body, tail) = payload.split_at(payload.len().saturating_sub(4));
    let size = u32_at(tail, 0).unwrap_or(0);
    if size > MOST {
        return Err(ImageFault::PayloadTooLarge);
    }
    let room = u64::from(size) + 1;
    let unpacked = match format {
        Format::Gzip => read(flate2::bufread::GzDecoder::new(payload), room),
        Format::Xz => xz(body, room),
        Format::Lz4 => lz4(body, room),
        Format::Zstd => zstd::stream::read::Decoder::with_buffer(body)
            .and_then(|decoder| read(decoder.single_frame(), room)),
    }
    .map_err(|error| ImageFault::Payload(error.to_string()))?;
    if unpacked.len() as u64 != u64::from(size) {
        let fault = format!("{size} bytes were to come out of it");
        return Err(ImageFault::Payload(fault));
    }
    Ok(Some(unpacked))
}

/// Returns the content of a compressed file, such as a module; `None` if it is not compressed.
pub(crate) fn unpack_file(file: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let room = u64::from(MOST) + 1;
    let unpacked = match format(file) {
        None => return Ok(None),
        Some(Format::Gzip) => read(flate2::bufread::GzDecoder::new(file), room),
        Some(Format::Xz) => xz(file, room),
        Some(Format::Lz4) => lz4(file, room),
        Some(Format::Zstd) => {
            zstd::stream::read::Decoder::with_buffer(file).and_then(|decoder| read(decoder, room))
        }
    }?;
    if unpacked.len() as u64 == room {
        Err(io::Error::other("it is too large"))
    } else {
        Ok(Some(unpacked))
    }
}

fn read(decoder: impl Read, room: u64) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    decoder.take(room).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

fn xz(body: &[u8], room: u64) -> io::Result<Vec<u8>> {
    let stream = liblzma::stream::Stream::new_auto_decoder(XZ_MEMORY, 0)?;
    read(liblzma::bufread::XzDecoder::new_stream(body, stream), room)
}

/// The legacy frame: after the magic, blocks preceded by their compressed sizes.
fn lz4(body: &[u8], room: u64) -> io::Result<Vec<u8>> {
    let mut rest = body.get(4..).ok_or_else(cut_short)?;
    let mut block = vec![0; LZ4_BLOCK];
    let mut unpacked = Vec::new();
    while !rest.is_empty() && (unpacked.len() as u64) < room {
        let size = u32_at(rest, 0).ok_or_else(cut_short)? as usize;
        let (packed, after) = rest[4..].split_at_checked(size).ok_or_else(cut_short)?;
        let length =
            lz4_flex::block::decompress_into(packed, &mut block).map_err(io::Error::other)?;
        unpacked.extend_from_slice(&block[..length]);
        rest = after;
    }
    Ok(unpacked)
}

fn cut_short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a block is cut short")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};

    use proptest::prelude::*;

    use super::{MOST, unpack};

    /// Compresses like the kernel's build.
    pub(crate) fn pack(format: &str, content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        let mut packed = match format {
            "gzip" => {
                let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
                gzip.write_all(content).unwrap();
                return gzip.finish().unwrap();
            }
            "zstd" => zstd::encode_all(content, 1).unwrap(),
            "xz" => {
                let mut packed = vec![];
                let mut encoder = liblzma::read::XzEncoder::new(content, 1);
                encoder.read_to_end(&mut packed).unwrap();
                packed
            }
            "lzma" => {
                let options = liblzma::stream::LzmaOptions::new_preset(1).unwrap();
                let stream = liblzma::stream::Stream::new_lzma_encoder(&options).unwrap();
                let mut packed = vec![];
                let mut encoder = liblzma::read::XzEncoder::new_stream(content, stream);
                encoder.read_to_end(&mut packed).unwrap();
                packed
            }
            "lz4" => {
                let mut packed = 0x184C_2102_u32.to_le_bytes().to_vec();
                for block in content.chunks(super::LZ4_BLOCK) {
                    let block = lz4_flex::block::compress(block);
                    packed.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
                    packed.extend(block);
                }
                packed
            }
            other => panic!("{other}"),
        };
        packed.extend(size);
        packed
    }

    pub(crate) const FORMATS: [&str; 5] = ["gzip", "xz", "lzma", "lz4", "zstd"];

    #[test]
    fn packed_payload_round_trips() {
        // More than one block of lz4.
        let content: Vec<u8> = (0..9_000_000_u32).map(|i| (i / 1000) as u8).collect();
        for format in FORMATS {
            let unpacked = unpack(&pack(format, &content)).unwrap().unwrap();
            assert!(unpacked == content, "{format}");
        }
    }

    #[test]
    fn sizes_that_are_not_true_are_found_out() {
        for format in FORMATS {
            for (size, case) in [
                (9, "it is damaged"),
                (11, "it is damaged"),
                (MOST + 1, "it is too large"),
            ] {
                let mut packed = pack(format, b"0123456789");
                let at = packed.len() - 4;
                packed[at..].copy_from_slice(&size.to_le_bytes());
                assert!(unpack(&packed).is_err(), "{format} {size} {case}");
            }
        }
    }

    #[test]
    fn unknown_compression_is_left_to_the_kernel() {
        for magic in ["BZh91AY&SY", "\u{89}LZO", "", "x"] {
            assert_eq!(unpack(magic.as_bytes()), Ok(None));
        }
    }

    proptest! {
        #[test]
        fn damage_is_noticed_or_harmless(
            format in prop::sample::select(&FORMATS[..]),
            content in prop::collection::vec(0_u8..3, 0..500),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            end in any::<prop::sample::Index>(),
        ) {
            let mut packed = pack(format, &content);
            for (at, byte) in damage {
                let at = at.index(packed.len());
                packed[at] = byte;
            }
            packed.truncate(end.index(packed.len()) + 1);
            if let Ok(Some(unpacked)) = unpack(&packed) {
                prop_assert!(unpacked.len() <= MOST as usize);
            }
        }
    }
}

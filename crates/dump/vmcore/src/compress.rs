//! Compression of single pages in the kdump format: each page alone, and stored uncompressed if
//! that is not larger.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::zstd_safe::CParameter;

use crate::error::DumpError;
use crate::lzo;
use crate::lzo_encoder::Encoder;

/// The compression of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Pages are stored as they are.
    None,
    /// zlib, which every reader supports.
    Zlib,
    /// LZO1X, as makedumpfile's `-l`.
    Lzo,
    /// Snappy, the fastest.
    Snappy,
    /// Zstandard, with a checksum of each page.
    Zstd,
}

impl Codec {
    /// All codecs that the format knows.
    pub const ALL: [Self; 5] = [Self::None, Self::Zlib, Self::Lzo, Self::Snappy, Self::Zstd];

    /// Returns the flag in page descriptors and in the file's status.
    pub(crate) fn flag(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zlib => 1,
            Self::Lzo => 2,
            Self::Snappy => 4,
            Self::Zstd => 0x20,
        }
    }

    pub(crate) const FLAGS: u32 = 0x27;

    /// Returns the codec for a page's flags.
    pub(crate) fn from_flag(flag: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.flag() == flag)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zlib => "zlib",
            Self::Lzo => "lzo",
            Self::Snappy => "snappy",
            Self::Zstd => "zstd",
        }
    }
}

/// Compresses pages one by one.
pub struct Compressor {
    method: Method,
    output: Vec<u8>,
}

enum Method {
    None,
    Zlib(Compress),
    Lzo(Encoder),
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// Makes a compressor for pages of `page` bytes; the default level is each codec's fastest
    /// useful one.
    ///
    /// # Errors
    /// If the codec does not support writing, or this level.
    pub fn new(codec: Codec, level: Option<i32>, page: usize) -> Result<Self, DumpError> {
        let method = match codec {
            Codec::None => Method::None,
            Codec::Zlib => {
                let level = u32::try_from(level.unwrap_or(1))
                    .ok()
                    .filter(|level| (1..=9).contains(level));
                let level = level
                    .ok_or_else(|| DumpError::Usage("zlib has the levels 1 to 9".to_owned()))?;
                Method::Zlib(Compress::new(Compression::new(level), true))
            }
            Codec::Lzo => Method::Lzo(Encoder::new()),
            Codec::Snappy => Method::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Zstd => {
                let is_default = level.is_none();
                // With short matches 1 to 2 % smaller than makedumpfile's at its processor time; level
                // -1 took 0.65 of that time for 6 to 12 % more.
                let level = level.unwrap_or(1);
                let wrong =
                    |_| DumpError::Usage(format!("zstd has no level {level}: -7 to 19 are useful"));
                if !zstd::compression_level_range().contains(&level) {
                    return Err(wrong(()));
                }
                let mut zstd = zstd::bulk::Compressor::new(level).map_err(|_| wrong(()))?;
                // Every reader checks it: damaged data is an error and not another page.
                zstd.include_checksum(true).map_err(|_| wrong(()))?;
                if is_default {
                    // A page is short: matches of four bytes make it one percent smaller.
                    zstd.set_parameter(CParameter::MinMatch(4))
                        .map_err(|_| wrong(()))?;
                }
                Method::Zstd(zstd)
            }
        };
        // The largest expansion of any codec: snappy's 32 + n + n/6.
        Ok(Self {
            method,
            output: vec![0; page * 2 + 1024],
        })
    }

    /// Returns the compressed page and its codec; `None` if it is not smaller.
    pub fn compress(&mut self, page: &[u8]) -> Option<(&[u8], Codec)> {
        let (size, codec) = match &mut self.method {
            Method::None => return None,
            Method::Zlib(zlib) => {
                zlib.reset();
                let status = zlib
                    .compress(page, &mut self.output, FlushCompress::Finish)
                    .ok()?;
                let size = usize::try_from(zlib.total_out()).ok()?;
                (status == Status::StreamEnd).then_some((size, Codec::Zlib))?
            }
            Method::Lzo(lzo) => (lzo.encode(page, &mut self.output)?, Codec::Lzo),
            Method::Snappy(snappy) => {
                (snappy.compress(page, &mut self.output).ok()?, Codec::Snappy)
            }
            Method::Zstd(zstd) => (
                zstd.compress_to_buffer(page, &mut self.output[..]).ok()?,
                Codec::Zstd,
            ),
        };
        (size < page.len()).then(|| (&self.output[..size], codec))
    }
}

/// Decompresses pages one by one.
pub struct Decompressor {
    zlib: Decompress,
    snappy: snap::raw::Decoder,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Default for Decompressor {
    fn default() -> Self {
        Self {
            zlib: Decompress::new(true),
            snappy: snap::raw::Decoder::new(),
            zstd: zstd::bulk::Decompressor::new().ok(),
        }
    }
}

impl Decompressor {
    /// Decompresses `input` into `page`, which it must fill exactly; `None` if it does not.
    pub fn decompress(&mut self, codec: Codec, input: &[u8], page: &mut [u8]) -> Option<()> {
        let size = match codec {
            Codec::None => {
                (input.len() == page.len()).then(|| page.copy_from_slice(input))?;
                page.len()
            }
            Codec::Zlib => {
                self.zlib.reset(true);
                let status = self
                    .zlib
                    .decompress(input, page, FlushDecompress::Finish)
                    .ok()?;
                let size = usize::try_from(self.zlib.total_out()).ok()?;
                (status == Status::StreamEnd).then_some(size)?
            }
            Codec::Lzo => {
                lzo::decode(input, page)?;
                page.len()
            }
            Codec::Snappy => self.snappy.decompress(input, page).ok()?,
            Codec::Zstd => self.zstd.as_mut()?.decompress_to_buffer(input, page).ok()?,
        };
        (size == page.len()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Codec, Compressor, Decompressor};

    proptest! {
        #[test]
        fn compressed_pages_round_trip(
            seed in prop::collection::vec(any::<u8>(), 1..64),
            codec in 0_usize..5,
        ) {
            let page: Vec<u8> = seed.iter().copied().cycle().take(4096).collect();
            let Ok(mut compressor) = Compressor::new(Codec::ALL[codec], None, 4096) else {
                return Ok(());
            };
            let mut back = vec![0; 4096];
            if let Some((bytes, codec)) = compressor.compress(&page) {
                Decompressor::default()
                    .decompress(codec, bytes, &mut back)
                    .unwrap();
                assert_eq!(back, page);
                assert_eq!(
                    Decompressor::default().decompress(codec, bytes, &mut back[1..]),
                    None
                );
            }
        }

        #[test]
        fn no_page_is_too_strange(input in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut decompressor = Decompressor::default();
            for codec in Codec::ALL {
                decompressor.decompress(codec, &input, &mut [0; 256]);
            }
        }
    }

    #[test]
    fn unsupported_compression_is_an_error() {
        insta::assert_snapshot!(Compressor::new(Codec::Zlib, Some(0), 4096).unwrap_err(), @"zlib has the levels 1 to 9");
        insta::assert_snapshot!(Compressor::new(Codec::Zstd, Some(1 << 30), 4096).unwrap_err(), @"zstd has no level 1073741824: -7 to 19 are useful");
    }
}

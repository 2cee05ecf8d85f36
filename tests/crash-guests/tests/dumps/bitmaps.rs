//! The pages in a kdump-compressed file: its second bitmap, one bit per page, lowest first. The
//! first bitmap has the pages that existed.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The pages of a dump.
pub(crate) struct Bitmap {
    memory: Vec<u8>,
    dumped: Vec<u8>,
}

/// The differences of two bitmaps.
pub(crate) struct Difference {
    first: Option<usize>,
    more: u64,
    less: u64,
}

impl Bitmap {
    /// Reads the bitmap of a dump.
    pub(crate) fn of(dump: &Path) -> Self {
        let file = File::open(dump).unwrap();
        let number = |at: u64| {
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, at).unwrap();
            u64::from(u32::from_le_bytes(bytes))
        };
        let mut signature = [0; 8];
        file.read_exact_at(&mut signature, 0).unwrap();
        assert_eq!(&signature, b"KDUMP   ", "{}", dump.display());
        // block_size, sub_hdr_size and bitmap_blocks of struct disk_dump_header; max_mapnr_64 of
        // the one behind it.
        let block = number(428);
        let header = number(432);
        let blocks = number(436);
        let pages = number(block + 96) | number(block + 100) << 32;
        let half = blocks * block / 2;
        let [memory, dumped] = [0, half].map(|at| {
            let mut bytes = vec![0; usize::try_from(pages.div_ceil(8)).unwrap()];
            file.read_exact_at(&mut bytes, block * (1 + header) + at)
                .unwrap();
            bytes
        });
        Self { memory, dumped }
    }

    pub(crate) fn count(&self) -> u64 {
        self.dumped
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum()
    }

    /// Returns whether another one contains all of these pages.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.difference(other).more == 0
    }

    /// Returns the additional and missing pages relative to another one, within the other's memory:
    /// QEMU's own files also contain firmware and video memory.
    pub(crate) fn difference(&self, other: &Self) -> Difference {
        let mut difference = Difference {
            first: None,
            more: 0,
            less: 0,
        };
        for (at, (memory, theirs)) in other.memory.iter().zip(&other.dumped).enumerate() {
            let ours = self.dumped.get(at).copied().unwrap_or(0) & memory;
            let theirs = theirs & memory;
            difference.more += u64::from((ours & !theirs).count_ones());
            difference.less += u64::from((theirs & !ours).count_ones());
            if ours != theirs && difference.first.is_none() {
                difference.first = Some(at * 8 + (ours ^ theirs).trailing_zeros() as usize);
            }
        }
        difference
    }
}

impl Difference {
    pub(crate) fn is_none(&self) -> bool {
        self.first.is_none()
    }

    /// Returns whether exactly this many pages are missing, and none is additional.
    pub(crate) fn is_less_by(&self, pages: u64) -> bool {
        self.more == 0 && self.less == pages
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            None => f.write_str("the same pages"),
            Some(first) => write!(
                f,
                "{} pages more, {} less, first pfn {first:#x}",
                self.more, self.less
            ),
        }
    }
}

//! Dumps of very large machines in sparse files: a few sections have separate records, and all
//! others share them through page tables. That is valid, because a record does not contain its
//! page's number.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{KERNELS, RECORD, Synthetic};

/// Pages of a section.
const SECTION: u64 = 32768;

/// The memory content of a large machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Single pages of every droppable kind, in pseudorandom order: the worst case for a filter.
    Busy,
    /// Largest possible free blocks.
    Free,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Large {
    pub memory: u64,
    /// Sections of 128 MiB with separate records.
    pub distinct: u64,
    pub mix: Mix,
}

impl Large {
    /// Writes the dump.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let memory = std::iter::once(0..self.memory / 4096).collect();
        let synthetic = Synthetic {
            memory,
            section_bits: 27,
            distinct: Some(self.distinct),
            groups: String::new(),
            ..Synthetic::default()
        };
        let records = synthetic.write(path)?;
        let file = File::options().write(true).open(path)?;
        // One pseudorandom number decides the kind of each page; the sequence is fixed.
        let mut state = 1_u64;
        let mut bytes = Vec::new();
        for section in 0..self.distinct {
            bytes.clear();
            for page in 0..SECTION {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                bytes.extend(self.record(section, page, state >> 33));
            }
            file.write_all_at(&bytes, records + section * SECTION * RECORD)?;
        }
        Ok(())
    }

    fn record(&self, section: u64, page: u64, chance: u64) -> [u8; RECORD as usize] {
        let (kind, at, order) = match self.mix {
            // makedumpfile refuses an empty dump; few pages, because copying is not measured.
            _ if section == 0 && page < 64 => ("kernel", 0, 0),
            Mix::Free if section == 0 && page < 1024 => ("anon", 0, 0),
            Mix::Free => ("free", page % 1024, 10),
            Mix::Busy => (
                match chance % 10_000 {
                    0..4800 => "anon",
                    4800..7300 => "cache",
                    7300..7800 => "private",
                    _ => "free",
                },
                0,
                0,
            ),
        };
        KERNELS[5].record(kind, page - at, at, order)
    }
}

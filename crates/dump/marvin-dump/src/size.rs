//! Estimates the size of a result: headers, bitmaps and equal pages are those of a file that is
//! written to nowhere, and only what a page takes when it is compressed comes from a sample.

use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

use vmcore::{
    Codec, Compressor, Dump, DumpError, Filter, Level, Plan, Reader, Sink, Style, Work, Written,
    write_kdump,
};

use crate::arguments::Look;
use crate::limits;
use crate::report::size;
use crate::save::open;
use crate::{Exit, Host};

/// Version of the JSON document: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;
const LEVELS: [u8; 4] = [0, 1, 17, 31];
/// Size of a page's descriptor (bytes).
const DESCRIPTOR: u64 = 24;
/// Blocks of headers and notes, and of the page of zeros, in most files.
const BLOCKS: u64 = 4;
const CODECS: [Codec; 4] = [Codec::Zstd, Codec::Zlib, Codec::Snappy, Codec::None];
/// Pages to compress for each estimate, about.
const SAMPLE: u64 = 2000;
/// Most pages that are read for one estimate: 4 GiB of memory.
const READ_MAX: u64 = 1 << 20;
/// Number of parts of a larger dump that are read.
const PARTS: u64 = 64;
/// Memory for the bits of all pages (bytes); larger bitmaps go into a file.
const MEMORY: u64 = 64 << 20;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    schema_version: u32,
    sampled_pages: u64,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    level: u8,
    pages: u64,
    zstd_bytes: u64,
    zlib_bytes: u64,
    snappy_bytes: u64,
    none_bytes: u64,
}

pub(crate) fn run(wish: &Look, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let dump = open(&wish.files, &wish.ram, wish.vmcoreinfo.as_deref())?;
    let rows = LEVELS
        .into_iter()
        .map(|level| row(&dump, level))
        .collect::<Result<_, _>>()?;
    let answer = Answer {
        schema_version: SCHEMA_VERSION,
        sampled_pages: SAMPLE,
        rows,
    };
    host.answer_as(wish.json, &answer, &answer.text())?;
    Ok(Exit::Fine)
}

fn row(dump: &Dump, number: u8) -> Result<Row, DumpError> {
    let level = Level::new(number).unwrap_or(Level::MAX);
    let work = limits::reading_work(1, true)?;
    let work = Work {
        memory: work.memory.min(MEMORY),
        ..work
    };
    let filter = Filter::for_level(&mut Reader::new(dump, work.io), level)?;
    let plan = Plan::make(dump, filter.as_ref(), &work)?;
    let kept = plan.kept_count();
    let page = dump.page_size();
    let sampler = Sampler::new(page)?;
    let written = write_nowhere(&plan, level, &work, &sampler)?;
    let samples = lock(&sampler.samples);
    // What was read of a larger dump stands for all of it.
    let share = kept as f64 / written.pages.max(1) as f64;
    let stored = (written.pages - written.zero - written.twins) as f64 * share;
    let bitmaps = 2 * dump.pages().div_ceil(8 * page);
    let fixed = kept * DESCRIPTOR + (bitmaps + BLOCKS) * page;
    let bytes = samples.means().map(|mean| fixed + (stored * mean) as u64);
    let [zstd_bytes, zlib_bytes, snappy_bytes, none_bytes] = bytes;
    Ok(Row {
        level: number,
        pages: kept,
        zstd_bytes,
        zlib_bytes,
        snappy_bytes,
        none_bytes,
    })
}

/// Writes the file, without compression, to the sampler: all of it, or parts that are spread
/// evenly. Pages of such a part that are equal to one outside are not found.
fn write_nowhere(
    plan: &Plan<'_>,
    level: Level,
    work: &Work,
    sampler: &Sampler,
) -> Result<Written, DumpError> {
    let kept = plan.kept_count();
    let mut style = Style {
        codec: Codec::None,
        effort: None,
        level,
        part: None,
        limit: None,
        names: Default::default(),
    };
    if kept <= READ_MAX {
        return write_kdump(plan, &style, work, sampler);
    }
    let mut all = Written::default();
    for part in 0..PARTS {
        let first = kept / PARTS * part;
        style.part = Some(plan.page_at(first)?..plan.page_at(first + READ_MAX / PARTS)?);
        all.add(write_kdump(plan, &style, work, sampler)?);
    }
    Ok(all)
}

/// Compresses some of the pages that are written, and keeps nothing.
struct Sampler {
    page: usize,
    samples: Mutex<Samples>,
}

struct Samples {
    compressors: Vec<Compressor>,
    /// Every so many-th page is sampled: more, the more pages there are.
    stride: u64,
    seen: u64,
    /// The sizes of each sampled page with each of [`CODECS`].
    sizes: Vec<[u64; CODECS.len()]>,
}

impl Sampler {
    fn new(page: u64) -> Result<Self, DumpError> {
        // Pages have at most 1 MiB.
        let page = page as usize;
        let compressors = CODECS
            .into_iter()
            .map(|codec| Compressor::new(codec, None, page))
            .collect::<Result<_, _>>()?;
        let samples = Samples {
            compressors,
            stride: 1,
            seen: 0,
            sizes: Vec::new(),
        };
        Ok(Self {
            page,
            samples: Mutex::new(samples),
        })
    }
}

fn lock(samples: &Mutex<Samples>) -> MutexGuard<'_, Samples> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Samples {
    fn add(&mut self, page: &[u8]) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.stride) {
            return;
        }
        let mut sizes = [0; CODECS.len()];
        for (size, compressor) in sizes.iter_mut().zip(&mut self.compressors) {
            let packed = compressor.compress(page);
            *size = packed.map_or(page.len(), |(packed, _)| packed.len()) as u64;
        }
        self.sizes.push(sizes);
        if self.sizes.len() as u64 == 2 * SAMPLE {
            // Those of twice the stride.
            let mut number = 0;
            self.sizes.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.stride *= 2;
        }
    }

    /// Returns the mean size of a page with each of [`CODECS`].
    fn means(&self) -> [f64; CODECS.len()] {
        let count = self.sizes.len().max(1) as f64;
        std::array::from_fn(|codec| {
            let sum: u64 = self.sizes.iter().map(|sizes| sizes[codec]).sum();
            sum as f64 / count
        })
    }
}

impl Sink for Sampler {
    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), DumpError> {
        Ok(())
    }

    fn write_pages(&self, _offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        let mut samples = lock(&self.samples);
        bytes
            .chunks_exact(self.page)
            .for_each(|page| samples.add(page));
        Ok(())
    }

    fn zeros(&self, _offset: u64, _length: u64) -> Result<(), DumpError> {
        Ok(())
    }

    fn finish(&self, _size: u64) -> Result<(), DumpError> {
        Ok(())
    }
}

impl Answer {
    fn text(&self) -> String {
        let mut text = format!(
            "{:>5} {:>12} {:>12} {:>12} {:>12} {:>12}\n",
            "level", "pages", "zstd", "zlib", "snappy", "none"
        );
        for row in &self.rows {
            let sizes = [
                row.zstd_bytes,
                row.zlib_bytes,
                row.snappy_bytes,
                row.none_bytes,
            ]
            .map(size);
            let [zstd, zlib, snappy, none] = sizes;
            text.extend([format!(
                "{:>5} {:>12} {zstd:>12} {zlib:>12} {snappy:>12} {none:>12}\n",
                row.level, row.pages
            )]);
        }
        text
    }
}

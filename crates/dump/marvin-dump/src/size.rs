//! Estimates the size of a result from a sample of the pages, and counts pages by kind.

use schemars::JsonSchema;
use serde::Serialize;

use vmcore::{Codec, Compressor, Dump, DumpError, Filter, Io, Level, Plan, Reader, Work};

use crate::arguments::Look;
use crate::report::size;
use crate::save::open;
use crate::{Exit, Host};

/// Version of the JSON document: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;
const LEVELS: [u8; 4] = [0, 1, 17, 31];
const CODECS: [Codec; 4] = [Codec::Zstd, Codec::Zlib, Codec::Snappy, Codec::None];
/// Pages to compress for each estimate.
const SAMPLE: u64 = 2000;
/// Memory for the bits of all pages (bytes); larger bitmaps go into a file.
const MEMORY: u64 = 64 << 20;
/// Size of a page's descriptor (bytes).
const DESCRIPTOR: u64 = 24;

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
    let mut reader = Reader::new(dump, Io::Map);
    let filter = Filter::for_level(&mut reader, level)?;
    let work = Work {
        threads: 1,
        io: Io::Map,
        memory: MEMORY,
        folder: Some(std::env::temp_dir()),
    };
    let plan = Plan::make(dump, filter.as_ref(), &work)?;
    let count = plan.kept_count().min(SAMPLE);
    // The middle page of each of `SAMPLE` parts.
    let sample = (0..count)
        .map(|n| {
            let rank = u128::from(2 * n + 1) * u128::from(plan.kept_count());
            plan.page_at((rank / u128::from(2 * count)) as u64)
        })
        .collect::<Result<Vec<u64>, _>>()?;
    let page = dump.page_size();
    let length = usize::try_from(page).unwrap_or_default();
    let mut bytes = [0; CODECS.len()];
    for (sum, codec) in bytes.iter_mut().zip(CODECS) {
        let mut compressor = Compressor::new(codec, None, length)?;
        for number in &sample {
            // A page that cannot be read takes no space.
            let Ok(content) = reader.bytes(number * page, length) else {
                continue;
            };
            if !content.iter().all(|byte| *byte == 0) {
                *sum += compressor
                    .compress(content)
                    .map_or(page, |(packed, _)| packed.len() as u64);
            }
        }
        *sum =
            (u128::from(*sum) * u128::from(plan.kept_count()) / sample.len().max(1) as u128) as u64;
        *sum += plan.kept_count() * DESCRIPTOR + dump.pages() / 4;
    }
    let [zstd_bytes, zlib_bytes, snappy_bytes, none_bytes] = bytes;
    Ok(Row {
        level: number,
        pages: plan.kept_count(),
        zstd_bytes,
        zlib_bytes,
        snappy_bytes,
        none_bytes,
    })
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

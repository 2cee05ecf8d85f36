//! Filter time by number of cycles: memory holds the bits of a part of the pages only, so the
//! filter starts again for each part. `marvin-dump` itself never does that; the table also has its
//! method, one pass with the bits in a file.

use serde::Serialize;

use vmcore::{Counts, Dump, DumpError, Filter, Io, Level, Plan, Reader, Work};

use crate::plot::{Axis, Plot, Series};
use crate::{Arguments, Outcome, Spent, Subject, least, measure, ways};

/// Limit on cycles: as in the source.
const CYCLES: u64 = 8;

#[derive(Debug, Serialize)]
pub(super) struct Cycles {
    subject: Subject,
    modes: Vec<Mode>,
}

#[derive(Debug, Serialize)]
struct Mode {
    io: &'static str,
    rows: Vec<Row>,
    /// One pass with the bits in a file, with any amount of memory.
    in_file: Spent,
}

#[derive(Debug, Serialize)]
struct Row {
    /// Memory for bits (bytes).
    buffer_bytes: u64,
    cycles: Vec<Spent>,
    total: Spent,
}

pub(super) fn run(dump: &Dump, wish: &Arguments) -> Result<Cycles, DumpError> {
    // Follow the processors' free lists once after all cycles; per cycle, their cost would hide
    // that of the cycles.
    let filter = Filter::new(&mut Reader::new(dump, Io::Map), Level::MAX)?.without_lists();
    let folder = wish.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    let plan = |io: Io| {
        let work = Work {
            threads: 1,
            io,
            memory: 0,
            folder: Some(folder.clone()),
        };
        Plan::make(dump, Some(&filter), &work)
    };
    // Brings the whole file into the page cache.
    let pages = plan(Io::Read)?.memory();
    let mut modes = Vec::new();
    for (name, io) in ways(dump) {
        let parts = Parts {
            filter: &filter,
            io,
            blocks: filter.blocks(dump)?,
        };
        let rows = parts
            .sizes()
            .into_iter()
            .map(|size| row(dump, &parts, size, wish))
            .collect::<Result<_, _>>()?;
        let in_file = least(dump, wish, || plan(io).map(drop))?;
        modes.push(Mode {
            io: name,
            rows,
            in_file,
        });
    }
    Ok(Cycles {
        subject: Subject::new(dump, pages, wish),
        modes,
    })
}

fn row(dump: &Dump, parts: &Parts<'_>, size: usize, wish: &Arguments) -> Result<Row, DumpError> {
    let mut best: Option<(Spent, Vec<Spent>)> = None;
    for _ in 0..wish.times {
        let mut cycles = Vec::new();
        let spent = measure(dump, || {
            cycles = parts.filter(dump, size)?.0;
            Ok(())
        })?;
        if best
            .as_ref()
            .is_none_or(|best| spent.cpu_s() < best.0.cpu_s())
        {
            best = Some((spent, cycles));
        }
    }
    let (total, cycles) = best.unwrap_or_default();
    let buffer_bytes = size as u64 * parts.filter.map().section_pages() / 8;
    Ok(Row {
        buffer_bytes,
        cycles,
        total,
    })
}

/// A dump in parts that are filtered separately.
struct Parts<'f> {
    filter: &'f Filter,
    io: Io,
    blocks: Vec<u64>,
}

impl Parts<'_> {
    /// Returns the possible numbers of blocks per part, ascending.
    fn sizes(&self) -> Vec<usize> {
        let count = self.blocks.len().max(1) as u64;
        let mut sizes: Vec<usize> = (1..=CYCLES)
            .rev()
            .filter_map(|cycles| usize::try_from(count.div_ceil(cycles)).ok())
            .collect();
        sizes.dedup();
        sizes
    }

    /// Filters all parts of `size` blocks one by one with the same memory; returns the cost of
    /// each.
    fn filter(&self, dump: &Dump, size: usize) -> Result<(Vec<Spent>, Counts), DumpError> {
        let pages = self.filter.map().section_pages();
        let words = usize::try_from(pages / 64).unwrap_or_default();
        let mut bits = vec![0; size * words];
        let mut cycles = Vec::new();
        let mut counts = Counts::default();
        for part in self.blocks.chunks(size) {
            cycles.push(measure(dump, || {
                let mut scanner = self.filter.scanner(Reader::new(dump, self.io));
                for (number, keep) in part.iter().zip(bits.chunks_exact_mut(words)) {
                    dump.stored(number * pages, keep)?;
                    scanner.section(*number, keep);
                }
                counts.add(scanner.counts());
                Ok(())
            })?);
        }
        Ok((cycles, counts))
    }
}

impl Outcome for Cycles {
    fn table(&self) -> String {
        // Small dumps take less than a second.
        let longest = self
            .modes
            .iter()
            .flat_map(|mode| &mode.rows)
            .map(|row| row.total.cpu_s())
            .fold(0.0, f64::max);
        let (unit, factor) = if longest < 1.0 {
            ("milliseconds", 1000.0)
        } else {
            ("seconds", 1.0)
        };
        let mut text = format!(
            "Filter time against the number of cycles, level 31, processor {unit}\n{}\n",
            self.subject.lines()
        );
        for mode in &self.modes {
            text.extend([format!("\n{}\n\n|  buf size | cycles |", mode.io)]);
            let most = mode
                .rows
                .iter()
                .map(|row| row.cycles.len())
                .max()
                .unwrap_or_default();
            text.extend((1..=most).map(|n| format!("{n:>5}|")));
            text += "  total |\n|-----------+--------+";
            text.extend((1..=most).map(|_| "-----+"));
            text += "--------|\n";
            for row in &mode.rows {
                text.extend([format!(
                    "| {:>5} KiB | {:>6} |",
                    row.buffer_bytes.div_ceil(1024),
                    row.cycles.len()
                )]);
                for n in 0..most {
                    let cell = row
                        .cycles
                        .get(n)
                        .map_or_else(|| "-".to_owned(), |spent| short(spent.cpu_s() * factor, 5));
                    text.extend([format!("{cell:>5}|")]);
                }
                text.extend([format!(" {:>6} |\n", short(row.total.cpu_s() * factor, 6))]);
            }
            text.extend([format!(
                "one pass, bits in a file, any memory: {}\n",
                short(mode.in_file.cpu_s() * factor, 6)
            )]);
        }
        text + "\nmarvin-dump uses the method of the last line, never cycles. Buf size: one bit\nfor each page. All times are processor time.\n"
    }

    fn plot(&self) -> Plot {
        let mut series = Vec::new();
        for mode in &self.modes {
            let points = mode
                .rows
                .iter()
                .map(|row| (row.cycles.len() as f64, row.total.cpu_s()))
                .collect();
            series.push(Series {
                name: format!("{}, cycles", mode.io),
                points,
                level: false,
            });
        }
        for mode in &self.modes {
            let points = vec![(0.0, mode.in_file.cpu_s())];
            series.push(Series {
                name: format!("{}, one pass, file", mode.io),
                points,
                level: true,
            });
        }
        let mut counts: Vec<usize> = self
            .modes
            .iter()
            .flat_map(|mode| &mode.rows)
            .map(|row| row.cycles.len())
            .collect();
        counts.sort_unstable();
        counts.dedup();
        let marks = counts
            .into_iter()
            .map(|count| (count as f64, count.to_string()))
            .collect();
        Plot {
            title: "Filter time against the number of cycles".to_owned(),
            subtitle: self.subject.line(),
            x: Axis {
                label: "cycles",
                doubling: false,
                marks,
            },
            y_label: "processor time, all cycles [s]",
            series,
            bars: false,
        }
    }
}

/// Formats a time with this many decimal places.
fn short(spent: f64, places: usize) -> String {
    let text: String = format!("{spent:.4}").chars().take(places).collect();
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use synthetic_dumps::Synthetic;
    use vmcore::{Dump, Filter, Io, Level, Plan, Reader, Work};

    use super::Parts;

    #[test]
    fn cycles_find_what_one_pass_finds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmcore");
        let groups =
            "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab\n 0x600 huge 9"
                .to_owned();
        Synthetic {
            groups,
            ..Synthetic::default()
        }
        .write(&path)
        .unwrap();
        let dump = Dump::open(&[path]).unwrap();
        let filter = Filter::new(&mut Reader::new(&dump, Io::Map), Level::MAX).unwrap();
        let work = Work {
            threads: 1,
            io: Io::Map,
            memory: 1 << 20,
            folder: None,
        };
        let plan = Plan::make(&dump, Some(&filter), &work).unwrap();
        let parts = Parts {
            filter: &filter,
            io: Io::Read,
            blocks: filter.blocks(&dump).unwrap(),
        };
        assert_eq!(parts.sizes(), [2, 3, 4, 6, 8, 16]);
        for size in parts.sizes() {
            let (cycles, counts) = parts.filter(&dump, size).unwrap();
            assert_eq!(cycles.len(), 16_usize.div_ceil(size));
            assert_eq!(&counts, plan.counts());
        }
    }
}

//! Filter time by size of the mapped windows, compared with read calls; with the result in memory,
//! and in a file, which bounds the memory.

use serde::Serialize;

use vmcore::{Dump, DumpError, Filter, Io, Level, Plan, Reader, Work};

use crate::plot::{Axis, Plot, Series};
use crate::{Arguments, Outcome, Spent, Subject, least, seconds, window_sizes};

#[derive(Debug, Serialize)]
pub(super) struct MapSize {
    subject: Subject,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    /// `mmap`, `read`, or `default`: the mapping that commands use.
    io: &'static str,
    /// Size of a window (bytes), if the table sets it.
    map_bytes: Option<u64>,
    /// All bits in memory.
    in_memory: Spent,
    /// All bits in a file.
    in_file: Spent,
}

pub(super) fn run(dump: &Dump, wish: &Arguments) -> Result<MapSize, DumpError> {
    let mut reader = Reader::new(dump, Io::Map);
    if !reader.maps() {
        return Err(DumpError::Usage(format!(
            "{} cannot be mapped, as it is {} or flattened: name an ELF vmcore",
            dump.path().display(),
            dump.format().name()
        )));
    }
    let filter = Filter::new(&mut reader, Level::MAX)?;
    let folder = wish.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    let plan = |io: Io, memory: u64| {
        Plan::make(
            dump,
            Some(&filter),
            &Work {
                threads: 1,
                io,
                memory,
                folder: Some(folder.clone()),
            },
        )
    };
    // Brings the whole file into the page cache.
    let pages = plan(Io::Read, u64::MAX)?.memory();
    let sizes = window_sizes().map(|size| ("mmap", Some(size), Io::Windows(size)));
    let mut rows = Vec::new();
    for (io, map_bytes, access) in
        sizes.chain([("default", None, Io::Map), ("read", None, Io::Read)])
    {
        let in_memory = least(dump, wish, || plan(access, u64::MAX).map(drop))?;
        let in_file = least(dump, wish, || plan(access, 0).map(drop))?;
        rows.push(Row {
            io,
            map_bytes,
            in_memory,
            in_file,
        });
    }
    Ok(MapSize {
        subject: Subject::new(dump, pages, wish),
        rows,
    })
}

impl Outcome for MapSize {
    fn table(&self) -> String {
        let mut text = format!(
            "Filter time against map size, level 31\n{}\n\n\
             |           |  bits in memory |   bits in a file |        |        |         |\n\
             |  map size |  wall s   CPU s |   wall s   CPU s |   mmap |   read |  faults |\n\
             |-----------+-----------------+------------------+--------+--------+---------|\n",
            self.subject.lines()
        );
        for row in &self.rows {
            let name = row
                .map_bytes
                .map_or_else(|| row.io.to_owned(), |bytes| format!("{} KiB", bytes >> 10));
            let [one, two] = [row.in_memory, row.in_file]
                .map(|spent| [spent.wall_s, spent.cpu_s()].map(seconds));
            let calls = row.in_memory.calls;
            let faults = row.in_memory.page_faults;
            text.extend([format!(
                "| {name:>9} |  {:>6}  {:>6} |   {:>6}  {:>6} | {:>6} | {:>6} | {faults:>7} |\n",
                one[0], one[1], two[0], two[1], calls.mmap, calls.read
            )]);
        }
        text + "\nThe filter reads the memory map once either way. Calls and faults are those\nwith the bits in memory.\n"
    }

    fn plot(&self) -> Plot {
        let line = |name: &str, of: fn(&Row) -> Spent| {
            let points = self
                .rows
                .iter()
                .filter_map(|row| Some((row.map_bytes? as f64 / 1024.0, of(row).cpu_s())));
            Series {
                name: format!("mmap, {name}"),
                points: points.collect(),
                level: false,
            }
        };
        let level = |io: &str, name: &str, of: fn(&Row) -> Spent| {
            let points = self
                .rows
                .iter()
                .filter(|row| row.io == io)
                .map(|row| (0.0, of(row).cpu_s()));
            Series {
                name: format!("{io}, {name}"),
                points: points.collect(),
                level: true,
            }
        };
        let marks = self
            .rows
            .iter()
            .filter_map(|row| row.map_bytes)
            .map(|bytes| {
                let name = if bytes < 1 << 20 {
                    format!("{}K", bytes >> 10)
                } else {
                    format!("{}M", bytes >> 20)
                };
                (bytes as f64 / 1024.0, name)
            });
        Plot {
            title: "Filter time against map size".to_owned(),
            subtitle: self.subject.line(),
            x: Axis {
                label: "map size [bytes]",
                doubling: true,
                marks: marks.collect(),
            },
            y_label: "processor time [s]",
            series: vec![
                line("bits in memory", |row| row.in_memory),
                line("bits in a file", |row| row.in_file),
                level("read", "bits in memory", |row| row.in_memory),
                level("read", "bits in a file", |row| row.in_file),
            ],
            bars: false,
        }
    }
}

//! Prints how the filter's time depends on the size of the mapped windows, on the memory limit, and
//! on the read method. The tables follow the two mails that introduced mapping of /proc/vmcore (see
//! `docs/dump.md`). What `marvin-dump` does with the answers is its own.

mod calls;
mod cycles;
mod map_size;
mod plot;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, ValueEnum, value_parser};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use vmcore::{Counted, Dump, DumpError, Io, Level, Reader};

use figures::cpu;
use plot::Plot;

/// The parameter to vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Size of mmap windows, 4 KiB to 32 MiB, compared with read(2)
    MapSize,
    /// Memory for the bitmaps, which decides how many passes the filter needs
    Cycles,
    /// Read method: system calls, page faults and processor seconds
    Calls,
}

/// Print a table of filtering times of a dump, with different settings
#[derive(Debug, Parser)]
#[command(name = "dump_access")]
struct Arguments {
    /// Parameter to vary
    #[arg(value_enum)]
    which: Which,
    /// Dump to read; several files for a split set
    #[arg(required = true, value_name = "VMCORE")]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also draw the table as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Measure each value N times and take the fastest
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(1..=1000))]
    times: u16,
    /// Directory for bitmaps in files [default: that for temporary files]
    #[arg(long, value_name = "FOLDER")]
    work_dir: Option<PathBuf>,
    /// Levels to count calls for
    #[arg(short = 'd', long, value_name = "LEVELS", value_delimiter = ',', default_value = "31,0", value_parser = level)]
    level: Vec<Level>,
}

/// The cost of a measured piece of work.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Spent {
    wall_s: f64,
    user_s: f64,
    sys_s: f64,
    page_faults: u64,
    #[serde(serialize_with = "write_calls")]
    calls: Counted,
}

/// Writes numbers of calls as an object.
fn write_calls<S: Serializer>(calls: &Counted, to: S) -> Result<S::Ok, S::Error> {
    let mut object = to.serialize_struct("Counted", 3)?;
    object.serialize_field("mmap", &calls.mmap)?;
    object.serialize_field("munmap", &calls.munmap)?;
    object.serialize_field("read", &calls.read)?;
    object.end()
}

impl Spent {
    fn cpu_s(&self) -> f64 {
        self.user_s + self.sys_s
    }
}

/// A result: a table, a drawing and a document.
trait Outcome: Serialize {
    /// Returns a table for people.
    fn table(&self) -> String;
    /// Returns the data of a drawing.
    fn plot(&self) -> Plot;
}

/// Facts about the dump that all tables print.
#[derive(Debug, Serialize)]
struct Subject {
    release: String,
    memory_bytes: u64,
    times: u16,
}

impl Subject {
    fn new(dump: &Dump, pages: u64, wish: &Arguments) -> Self {
        let release = dump
            .info()
            .text("OSRELEASE")
            .unwrap_or("unknown")
            .escape_default()
            .to_string();
        Self {
            release,
            memory_bytes: pages * dump.page_size(),
            times: wish.times,
        }
    }

    /// Returns the dump and the method in one line, for a drawing.
    fn line(&self) -> String {
        self.lines().replace('\n', "; ")
    }

    /// Returns the same in two lines, for a table.
    fn lines(&self) -> String {
        let memory = size(self.memory_bytes);
        let times = self.times;
        format!(
            "Linux {}, {memory} of memory\none thread, least of {times}, page cache warm",
            self.release
        )
    }
}

fn main() -> anyhow::Result<()> {
    let text = answer(&Arguments::parse())?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Measures, draws the table if a file is named for that, and returns it as text or JSON.
fn answer(wish: &Arguments) -> anyhow::Result<String> {
    let dump = Dump::open(&wish.files)?;
    match wish.which {
        Which::MapSize => publish(&map_size::run(&dump, wish)?, wish),
        Which::Cycles => publish(&cycles::run(&dump, wish)?, wish),
        Which::Calls => publish(&calls::run(&dump, wish)?, wish),
    }
}

fn publish<T: Outcome>(outcome: &T, wish: &Arguments) -> anyhow::Result<String> {
    if let Some(path) = &wish.svg {
        // A name given by mistake may be that of the dump.
        let mut file = fs::File::create_new(path)?;
        file.write_all(outcome.plot().svg().as_bytes())?;
    }
    Ok(if wish.json {
        serde_json::to_string_pretty(outcome)? + "\n"
    } else {
        outcome.table()
    })
}

fn level(text: &str) -> Result<Level, String> {
    text.parse()
        .ok()
        .and_then(Level::new)
        .ok_or_else(|| "levels are 0 to 31".to_owned())
}

/// Formats a number of bytes with one decimal place.
fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 {
        format!("{mebibytes:.1} MiB")
    } else {
        format!("{:.1} GiB", mebibytes / 1024.0)
    }
}

/// Repeats work as often as requested; returns the cost of the repetition with the least processor
/// time.
fn least(
    dump: &Dump,
    wish: &Arguments,
    mut work: impl FnMut() -> Result<(), DumpError>,
) -> Result<Spent, DumpError> {
    let mut best: Option<Spent> = None;
    for _ in 0..wish.times {
        let spent = measure(dump, &mut work)?;
        if best.is_none_or(|best| spent.cpu_s() < best.cpu_s()) {
            best = Some(spent);
        }
    }
    Ok(best.unwrap_or_default())
}

fn measure(dump: &Dump, work: impl FnOnce() -> Result<(), DumpError>) -> Result<Spent, DumpError> {
    let calls = dump.calls();
    let before = Usage::now();
    let start = Instant::now();
    work()?;
    let wall_s = start.elapsed().as_secs_f64();
    let after = Usage::now();
    let cpu_s = after.cpu_s - before.cpu_s;
    let sys_s = (after.sys_s - before.sys_s).min(cpu_s);
    Ok(Spent {
        wall_s,
        user_s: cpu_s - sys_s,
        sys_s,
        page_faults: after.faults - before.faults,
        calls: dump.calls().since(calls),
    })
}

/// The resources that this process used so far.
struct Usage {
    /// Exact.
    cpu_s: f64,
    /// In ticks of 10 ms.
    sys_s: f64,
    faults: u64,
}

impl Usage {
    fn now() -> Self {
        let clock = clock_gettime(ClockId::ProcessCPUTime);
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Self {
            cpu_s: clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9,
            sys_s: stat_field(&stat, 15) as f64 / cpu::TICKS_PER_S,
            faults: stat_field(&stat, 10) + stat_field(&stat, 12),
        }
    }
}

/// Returns a field of /proc/PID/stat, numbered as in proc(5). The name in field 2 may contain
/// spaces, so they are counted from its closing parenthesis.
fn stat_field(stat: &str, number: usize) -> u64 {
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let field = fields.split(' ').nth(number - 3);
    field
        .and_then(|field| field.parse().ok())
        .unwrap_or_default()
}

/// Formats seconds with four decimal places: the tables have room for an hour.
fn seconds(seconds: f64) -> String {
    format!("{seconds:.4}").chars().take(6).collect()
}

/// The read methods to compare: a dump that cannot be mapped has only one.
fn ways(dump: &Dump) -> impl Iterator<Item = (&'static str, Io)> {
    let maps = Reader::new(dump, Io::Map).maps();
    [("mmap", Io::Map), ("read", Io::Read)]
        .into_iter()
        .filter(move |(_, io)| maps || *io == Io::Read)
}

/// The window sizes of the first table (bytes).
fn window_sizes() -> impl Iterator<Item = u64> {
    (12..=25).map(|bits| 1 << bits)
}

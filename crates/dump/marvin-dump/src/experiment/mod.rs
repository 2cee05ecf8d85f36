//! Experiments: how the filter's time depends on the size of the mapped windows, on the memory
//! limit, and on the read method. Their tables follow the two mails that introduced mapping of
//! /proc/vmcore (see `docs/dump.md`).

mod calls;
mod cycles;
mod map_size;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use vmcore::{Counted, Dump, DumpError, FileSink, Io, Level, Overwrite, Reader, Sink};

use crate::arguments::{Look, level};
use crate::plot::Plot;
use crate::report::size;
use crate::save::open;
use crate::{Exit, Host, files};

/// Version of the JSON documents: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;

/// The parameter to vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Size of mmap windows, 4 KiB to 32 MiB, compared with read(2)
    MapSize,
    /// Memory for the bitmaps, which decides how many passes the filter needs
    Cycles,
    /// Read method: system calls, page faults and processor seconds
    Calls,
}

/// An experiment.
#[derive(Debug, Args)]
pub struct Experiment {
    /// Parameter to vary
    #[arg(value_enum)]
    pub which: Which,
    /// Dump to read
    #[command(flatten)]
    pub look: Look,
    /// Also draw the table as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Overwrite an existing SVG file
    #[arg(short = 'f', long)]
    pub force: bool,
    /// Measure each value N times and take the fastest
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(1..=1000))]
    pub times: u16,
    /// Directory for bitmaps in files [default: that for temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
    /// Levels to count calls for
    #[arg(short = 'd', long, value_name = "LEVELS", value_delimiter = ',', default_value = "31,0", value_parser = level)]
    pub level: Vec<Level>,
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

/// Facts about the dump that all experiments print.
#[derive(Debug, Serialize)]
struct Subject {
    schema_version: u32,
    release: String,
    memory_bytes: u64,
    times: u16,
}

impl Subject {
    fn new(dump: &Dump, pages: u64, wish: &Experiment) -> Self {
        let release = dump
            .info()
            .text("OSRELEASE")
            .unwrap_or("unknown")
            .escape_default()
            .to_string();
        Self {
            schema_version: SCHEMA_VERSION,
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

pub(crate) fn run(wish: &Experiment, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let look = &wish.look;
    let inputs = look
        .files
        .iter()
        .chain(look.ram.iter().map(|part| &part.path))
        .chain(&look.vmcoreinfo);
    files::check(
        &inputs.map(PathBuf::as_path).collect::<Vec<_>>(),
        wish.svg.as_slice(),
    )?;
    let sink = wish.svg.as_ref().map(|path| {
        let overwrite = if wish.force {
            Overwrite::Yes
        } else {
            Overwrite::No
        };
        FileSink::replacing(path, overwrite)
    });
    let sink = sink.transpose()?;
    let dump = open(
        &wish.look.files,
        &wish.look.ram,
        wish.look.vmcoreinfo.as_deref(),
    )?;
    match wish.which {
        Which::MapSize => answer(&map_size::run(&dump, wish, host)?, wish, sink, host),
        Which::Cycles => answer(&cycles::run(&dump, wish, host)?, wish, sink, host),
        Which::Calls => answer(&calls::run(&dump, wish, host)?, wish, sink, host),
    }
}

fn answer<T: Outcome>(
    outcome: &T,
    wish: &Experiment,
    sink: Option<FileSink>,
    host: &mut Host<'_>,
) -> Result<Exit, DumpError> {
    if let Some(sink) = sink {
        let svg = outcome.plot().svg();
        sink.write(0, svg.as_bytes())?;
        sink.finish(svg.len() as u64)?;
    }
    host.answer_as(wish.look.json, outcome, &outcome.table())?;
    Ok(Exit::Fine)
}

/// Repeats work as often as requested; returns the cost of the repetition with the least processor
/// time.
fn least(
    dump: &Dump,
    wish: &Experiment,
    host: &Host<'_>,
    mut work: impl FnMut() -> Result<(), DumpError>,
) -> Result<Spent, DumpError> {
    let mut best: Option<Spent> = None;
    for _ in 0..wish.times {
        let spent = measure(dump, host, &mut work)?;
        if best.is_none_or(|best| spent.cpu_s() < best.cpu_s()) {
            best = Some(spent);
        }
    }
    Ok(best.unwrap_or_default())
}

fn measure(
    dump: &Dump,
    host: &Host<'_>,
    work: impl FnOnce() -> Result<(), DumpError>,
) -> Result<Spent, DumpError> {
    let calls = dump.calls();
    let usage = Usage::now();
    let start = (host.clock)();
    work()?;
    let end = (host.clock)();
    let after = Usage::now();
    Ok(Spent {
        wall_s: end.saturating_sub(start).as_secs_f64(),
        user_s: after.user.saturating_sub(usage.user).as_secs_f64(),
        sys_s: after.sys.saturating_sub(usage.sys).as_secs_f64(),
        page_faults: after.faults.saturating_sub(usage.faults),
        calls: dump.calls().since(calls),
    })
}

/// The resources that this process used so far.
struct Usage {
    user: Duration,
    sys: Duration,
    faults: u64,
}

impl Usage {
    fn now() -> Self {
        // SAFETY: rusage is plain numbers, for which all bytes zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a whole rusage that lives as long as the call, which cannot
        // fail with these arguments.
        unsafe {
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        }
        let time = |time: libc::timeval| {
            let number = |number: i64| u64::try_from(number).unwrap_or_default();
            Duration::from_secs(number(time.tv_sec)) + Duration::from_micros(number(time.tv_usec))
        };
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or_default();
        let faults = count(usage.ru_minflt) + count(usage.ru_majflt);
        Self {
            user: time(usage.ru_utime),
            sys: time(usage.ru_stime),
            faults,
        }
    }
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

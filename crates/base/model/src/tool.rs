//! External tools: programs of the distribution that run in the guest, and the rules for reading
//! their output.
//!
//! Tools are declared in TOML, because users bring their own; `config` reads the TOML and the
//! output.

use crate::{Direction, Steadiness};

/// A tool, as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name in `marvin tools`.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// The Debian packages that it comes from, without their dependencies.
    pub packages: Vec<String>,
    /// Additional files or directories of the packages that it needs; Marvin finds its programs
    /// and their libraries.
    pub files: Vec<String>,
    /// Environment of its programs, in the order of the names.
    pub environment: Vec<(String, String)>,
    /// The workloads that its output has values of.
    pub workloads: Vec<ToolWorkload>,
    /// What a user's own program brings; `None` for a program of packages.
    pub own: Option<OwnProgram>,
}

/// What a user's own program brings into a guest, and what it expects there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnProgram {
    /// SHA-256 of the archive with its files, as hexadecimal digits.
    pub image: String,
    /// Its working directory.
    pub directory: String,
    /// The file that is its standard input; empty input without one.
    pub stdin: Option<String>,
    /// Exit statuses beside 0 with which it has done its work.
    pub accepted: Vec<u8>,
    /// Whether it marks by itself what is measured, instead of whole runs.
    pub marks: bool,
    /// What a benchmark of the kernel's own source brings beside; `None` for other programs.
    pub benchmark: Option<TreeBenchmark>,
}

/// What a benchmark of the kernel's own source needs of each kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeBenchmark {
    /// The module of the build that it loads, if it is one.
    pub module: Option<String>,
    /// Options that it adds to the kernel config, such as `TEST_VMALLOC=m`.
    pub options: Vec<String>,
}

/// One way of running a tool, with its metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolWorkload {
    /// Its name: `tool:NAME` on the command line.
    pub name: String,
    /// What it stresses, in one line.
    pub stresses: String,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// Programs to run first, in order, with their arguments; each must succeed.
    pub setup: Vec<Vec<String>>,
    /// A server to run beside it, if it needs one.
    pub server: Option<Server>,
    /// Programs to run when the server is ready, in order; each must succeed.
    pub prepare: Vec<Vec<String>>,
    /// The command with its arguments, parameters filled in.
    pub command: Vec<String>,
    /// How often to run the command. The first run is a warm-up: a sample that is not reported.
    pub runs: u32,
    /// The time limit for everything, in seconds of guest time.
    pub limit_s: u32,
    /// Whether small causes have large effects.
    pub steadiness: Steadiness,
    /// Patterns of which one must match a line: the known versions print them.
    pub known: Vec<String>,
    /// Patterns that mean failure, whatever the exit status.
    pub refuse: Vec<String>,
    /// Its metrics; at least one.
    pub metrics: Vec<ToolMetric>,
}

/// A server that runs beside a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// The TCP port of 127.0.0.1 on which it listens when ready.
    pub port: u16,
}

/// A metric of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMetric {
    /// Its name within the workload.
    pub name: String,
    /// Its unit, for people.
    pub unit: String,
    /// The direction in which values are better.
    pub direction: Direction,
    /// The margin: a difference up to this many percent counts as same.
    pub margin_percent: f64,
    /// Where the output contains it; `None` for the cost of the run itself, which the machine
    /// measures.
    pub reader: Option<Reader>,
}

/// Where a tool's output contains a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    /// The output that is read.
    pub source: Source,
    /// Search only after the first line that matches this pattern.
    pub after: Option<String>,
    /// How to find it there.
    pub find: Find,
    /// Which of several matches counts.
    pub pick: Pick,
    /// Factor to the metric's unit.
    pub factor: f64,
}

/// Which of a tool's outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
    /// Its standard output, or its standard error if that has no value: `dd`, `time` and `perf stat`
    /// print there.
    Printed,
    /// A file that it writes.
    File(String),
}

/// How to find a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Find {
    /// A pattern with a group named `value`, tried on each line.
    Line(String),
    /// A cell of a table.
    Table(Table),
    /// A path into a JSON document: `jobs[0].read.iops`, `jobs[*].read.iops`.
    Json(String),
    /// The number behind `KEY:` at the beginning of a line.
    Key(String),
    /// Each number with a unit: a row of its own, named by its line, that is known only when the
    /// program has run.
    Printed,
}

/// A cell of a table: below a heading, in a row with some word in some column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The cell separator; white space if omitted.
    pub separator: Option<char>,
    /// The column of the value.
    pub column: Column,
    /// The column that identifies rows.
    pub row_column: Column,
    /// The content of that column in the wanted row.
    pub row: String,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By its heading in the first line of the table.
    Named(String),
    /// By its number, from 1; the table has no headings.
    Number(usize),
}

/// Which of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The only one: more are an error.
    Only,
    /// The first match.
    First,
    /// The last match.
    Last,
    /// All, each of them a sample.
    All,
    /// Their sum, for parallel jobs.
    Sum,
}

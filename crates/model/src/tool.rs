//! External tools: programs of the distribution that are run in the guest, and how what they print is read.
//!
//! Declared in TOML, because users bring their own; `ingest` reads the TOML and what a tool printed.

use crate::{Direction, Steadiness};

/// A tool, as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name: what `marvin tools` lists.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// Debian packages that it comes from; what they depend on is not named.
    pub packages: Vec<String>,
    /// Further paths of the packages' files that it needs, each a file or a folder; its programs and their libraries are
    /// found.
    pub files: Vec<String>,
    /// Environment of its programs, in the order of the names.
    pub environment: Vec<(String, String)>,
    /// What is done with it.
    pub workloads: Vec<ToolWorkload>,
}

/// One way of running a tool, with what it says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolWorkload {
    /// Its name: `tool:NAME` on the command line.
    pub name: String,
    /// What it stresses, in one line.
    pub stresses: String,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// Programs that are run first, in order, with their arguments; each has to end well.
    pub setup: Vec<Vec<String>>,
    /// A program that runs beside it, if it needs one.
    pub server: Option<Server>,
    /// Programs that are run once the server is ready, in order; each has to end well.
    pub prepare: Vec<Vec<String>>,
    /// The program with its arguments, parameters filled in.
    pub command: Vec<String>,
    /// How often the command is run. What the first run says is a sample too, and is not reported.
    pub runs: u32,
    /// Seconds of guest time that everything may take together.
    pub limit_s: u32,
    /// How far a small cause goes in it.
    pub steadiness: Steadiness,
    /// Patterns of lines of which one must be there: what the known versions print.
    pub known: Vec<String>,
    /// Patterns of lines that mean that it failed, whatever its exit status.
    pub refuse: Vec<String>,
    /// What it reports; at least one.
    pub metrics: Vec<ToolMetric>,
}

/// A program that runs beside a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// The TCP port of 127.0.0.1 that it listens on once it is ready.
    pub port: u16,
}

/// What a tool reports.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMetric {
    /// Its name within the workload.
    pub name: String,
    /// Its unit, as people write it.
    pub unit: String,
    /// Which way is good.
    pub direction: Direction,
    /// A difference up to this many percent is no news.
    pub margin_percent: f64,
    /// Where in the output it is.
    pub reader: Reader,
}

/// Where a value is in a tool's output.
#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    /// Which output.
    pub source: Source,
    /// Only lines after the first one that this pattern matches.
    pub after: Option<String>,
    /// How it is found there.
    pub find: Find,
    /// Which of several.
    pub pick: Pick,
    /// What values are multiplied by, to be in the metric's unit.
    pub factor: f64,
}

/// Which of a tool's outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file that it writes.
    File(String),
}

/// How a value is found.
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
}

/// A cell of a table: below a heading, in a row with some word in some column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What is between two cells; white space where nothing is said.
    pub separator: Option<char>,
    /// The column of the value.
    pub column: Column,
    /// The column that tells rows apart.
    pub row_column: Column,
    /// What is in that column in the row that is meant.
    pub row: String,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By its heading in the table's first line.
    Named(String),
    /// By its number, from 1; such tables have no headings.
    Number(usize),
}

/// Which of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The only one: more are an error.
    Only,
    /// The first.
    First,
    /// The last.
    Last,
    /// All, each of them a sample.
    All,
    /// Their sum: of jobs that ran beside each other.
    Sum,
}

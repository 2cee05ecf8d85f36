//! The command line's definition. Help, completions, man pages and the reference in `docs/cli.md` all come from here.

mod keeping;
mod sources;
mod standing;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use model::{CostModel, Line, RmapCase};
use report::render::{Only, Sort, Style, View};

use crate::exit::EXIT_CODES;
pub(crate) use keeping::{Export, ExportFormat, Gc};
pub(crate) use sources::{Bisect, Build, Series};
pub(crate) use standing::{Config, Queue, QueueAdd, QueueMove, Watch, Work};

const KERNELS: &str = "Kernels are named by where they come from:
  deb:6.12                     the newest 6.12 that apt offers, cloud flavour
  deb:6.12+amd64               the same in another flavour
  deb:6.12.117                 one upstream version
  deb:linux-image-VERSION…     one Debian package by its whole name
  path:/boot/vmlinuz-VERSION   a bzImage or vmlinux
  git:REVISION                 a commit of the tree that --tree names, built here
  patch:FILE@REVISION          a patch on top of one; without a revision on top of what is checked out
  tree:FOLDER                  a folder of sources as it stands, built here
  deb-src:6.12                 Debian's source package, built here
  HEAD~1                       inside a kernel tree: git:HEAD~1 with that tree
  vmlinux.old                  a file that exists: path:vmlinux.old

";

const COMPARE_EXAMPLES: &str = "Examples:
  marvin compare deb:6.1 deb:6.12
  marvin compare deb:6.1 deb:6.12 --workload fault,fork --seeds 8 \\
      --format html -o report.html
  marvin compare path:vmlinux.before path:vmlinux.after --quick";

/// Continuous performance lab for the Linux kernel
///
/// Boots kernels in an exact machine (QEMU that counts instructions, so that the same kernel gives the same numbers to
/// the last one), puts them through workloads and says what became better or worse.
#[derive(Debug, Parser)]
#[command(name = "marvin", version, max_term_width = 100, after_help = format!("{KERNELS}{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Folder for kernels, snapshots and results [default: $XDG_DATA_HOME/marvin or ~/.local/share/marvin]
    #[arg(long, global = true, value_name = "FOLDER", env = "MARVIN_HOME", hide_env_values = true)]
    pub(crate) home: Option<PathBuf>,

    /// What the site asks of its lab: trees, plans, whom to tell [default: marvin.toml in the home]
    #[arg(long, global = true, value_name = "FILE", env = "MARVIN_CONFIG", hide_env_values = true)]
    pub(crate) config_file: Option<PathBuf>,
    /// Where results are kept, if not in the home: postgres://USER@HOST/DATABASE, the password best in PGPASSWORD
    #[arg(long, global = true, value_name = "ADDRESS", env = "MARVIN_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,

    /// Colours in text
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Colour::Auto)]
    pub(crate) color: Colour,

    /// Show no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table as in MMTests, for terminals and mails
    Text,
    /// The same for issue trackers
    Markdown,
    /// One page with nothing outside of it
    Html,
    /// Everything, with units, for programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare kernels with a base: what became better or worse, and by how much
    Compare(Compare),
    /// Show which functions of the kernel a difference comes from, to the last instruction
    Profile(Box<Profile>),
    /// Show what kernels count while a workload runs: reclaim, faults, disks, slabs, stalls, kernel beside kernel
    Monitors(Box<Monitors>),
    /// Ask kernels something that takes a grid of measurements
    #[command(subcommand)]
    Experiment(Experiment),
    /// Run a suite on one kernel and keep the results
    Run(Run),
    /// Build a kernel from its source, or fetch one, and say where it is
    Build(Build),
    /// Find the commit, or the commits, between two that made a workload better or worse
    Bisect(Box<Bisect>),
    /// Compare each commit of a series with the one before it: what changed where
    Series(Box<Series>),
    /// List the runs that are kept, newest first
    Runs(Runs),
    /// Show one run in full
    Show(Show),
    /// Compare runs that are kept, without measuring
    Report(Report),
    /// Show how workloads did over many kernels, and where that changed
    History(History),
    /// List what changed over all kernels, those changes as one that came with the same kernels
    Alerts(Alerts),
    /// Keep what an alert turned out to be
    Triage(Triage),
    /// Serve the dashboard: all kernels, workloads and machines as web pages and JSON, only to read
    Serve(Serve),
    /// Write the dashboard as files that need no server
    Publish(Publish),
    /// Look once at the trees of marvin.toml, and queue what is not measured yet of their releases
    Watch(Watch),
    /// Do the jobs of the queue, one by one; one worker for a machine
    Work(Work),
    /// See and change what waits to be measured
    #[command(subcommand)]
    Queue(Queue),
    /// Check marvin.toml, show what it asks, or print its schema
    #[command(subcommand)]
    Config(Config),
    /// Bring results of another suite into the home, to list, show and compare them
    Import(Import),
    /// Write what is kept as a table for notebooks: CSV, JSON lines or Parquet
    Export(Export),
    /// Let go of runs that later ones replace and of old artefacts, never of what somebody refers to
    Gc(Gc),
    /// Filter and compress the memory dump of a crashed kernel: what marvin-dump does, with its options
    #[command(disable_help_flag = true)]
    Dump {
        /// Options and files; --help explains them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        words: Vec<std::ffi::OsString>,
    },
    /// List the kernels that a name can stand for, newest first
    Kernels(Kernels),
    /// List the workloads: what each stresses, and what one operation is
    Workloads(Workloads),
    /// List the external tools that can be run as workloads: what each is, its version, what it reports
    Tools(Tools),
    /// Check whether this host is fit; where not, print the command that mends it
    Doctor,
    /// Write shell completions to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    Man {
        /// The folder
        folder: PathBuf,
    },
    /// Write a page of the documents as markdown
    #[command(hide = true)]
    Reference {
        /// Which page
        page: Page,
    },
}

/// A page of the documents that is made from definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// docs/cli.md
    Cli,
    /// docs/workloads.md
    Workloads,
    /// docs/counters.md
    Counters,
}

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Suite to run: micro, mm, sched, net, io, reclaim, rmap, smoke, seeds; `marvin workloads` shows what is in them
    #[arg(long, value_name = "SUITE", default_value = "micro")]
    pub(crate) suite: String,

    /// Only these workloads or groups of them, separated by commas: fault,fork,getppid. tool:NAME is an external tool, or a
    /// workload of one: tool:sysbench, tool:sysbench-cpu
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,

    /// Also know the tool of this manifest (docs/tools.md); those in the folder manifests of the home are known anyway
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    /// Measure again, even if results or equal images make it needless
    #[arg(long)]
    pub(crate) force: bool,

    /// Machines at the same time [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) jobs: Option<u16>,

    /// Keep the memory of a guest whose kernel panics, filtered (level 31) and of at most 64 MiB: WORKLOAD.vmcore of its run
    #[arg(long)]
    pub(crate) keep_dump: bool,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Boot for every workload rather than starting from a snapshot: slower, with the same numbers
    #[arg(long)]
    pub(crate) no_snapshots: bool,
}

/// How kernels are built from their sources.
#[derive(Debug, Args)]
pub(crate) struct SourceWords {
    /// Tree of git: and patch: names: a folder, or a tree of marvin.toml by its name [default: the only one there that is a folder]
    #[arg(long, value_name = "TREE")]
    pub(crate) tree: Option<PathBuf>,

    /// Configuration of kernels that are built here: micro, small, or a file with a .config or lines on top of tinyconfig
    /// [default: that of the tree of marvin.toml that was named, or micro]
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<String>,
}

/// How the answer is written.
#[derive(Debug, Args)]
pub(crate) struct Write {
    /// How the comparison is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write it to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write it as a mail: plain text of at most 80 columns from the subject on, with numbered observations
    #[arg(long, conflicts_with_all = ["format", "style"])]
    pub(crate) mail: bool,

    /// Show under the table what the kernels counted meanwhile: time, reclaim, disks, slabs, stalls, as marvin monitors does
    #[arg(long)]
    pub(crate) monitors: bool,

    /// Layout of the tables in text: 2013 and mmtests as MMTests wrote and writes them, or ours
    #[arg(long, value_name = "STYLE", default_value = "marvin")]
    pub(crate) style: Style,

    /// Fold nothing away: environments, kernels, machines, and what changed taken apart
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Order of the rows: suite, or effect for the worst first
    #[arg(long, value_name = "ORDER", default_value = "suite")]
    pub(crate) sort: Sort,

    /// Only rows that are worse, better or changed
    #[arg(long, value_name = "VERDICT")]
    pub(crate) only: Option<Only>,

    /// Differences up to this many percent are no news [default: each metric's own, 1 for the micro suite]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,
}

impl Write {
    /// What of a comparison is shown, and how.
    pub(crate) fn view(&self) -> View {
        View { style: self.style, verbose: self.verbose, sort: self.sort, only: self.only }
    }
}

fn margin(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a number of percent from 0 to less than 100".into()),
    }
}

/// `marvin compare`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{COMPARE_EXAMPLES}"))]
pub(crate) struct Compare {
    /// Kernel that the others are compared with; git:A..B stands for the two git:A and git:B, git:A^..B for all that A to B did
    pub(crate) base: String,

    /// Kernels to compare with it
    #[arg(value_name = "NEW")]
    pub(crate) new: Vec<String>,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Seeds: boots and runs that are disturbed on purpose, to see what depends on layout or timing
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// One seed only: exact, but it does not show what depends on layout
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) quick: bool,

    /// Say under the table which functions each difference comes from, as `marvin profile` does in full
    #[arg(long)]
    pub(crate) profile: bool,

    /// With --monitors, copy the counters also every so many milliseconds of guest time, for plots; 0 for not
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = value_parser!(u64).range(0..=3_600_000),
          requires = "monitors")]
    pub(crate) interval: u64,

    #[command(flatten)]
    pub(crate) write: Write,
}

const PROFILE_EXAMPLES: &str = "Examples:
  marvin profile deb:6.1 deb:6.12 --workload fault-anon
  marvin profile deb:6.1 deb:6.12 --format html -o profile.html
  marvin profile deb:6.1 deb:6.12 --workload pipe --model";

/// `marvin profile`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{PROFILE_EXAMPLES}"))]
pub(crate) struct Profile {
    /// Kernel that the other is compared with
    pub(crate) base: String,

    /// Kernel to compare with it
    pub(crate) new: String,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Seeds, whose counts are added up [default: 1; 4 with --model]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,

    /// Also simulate a processor's caches, translation buffers and branch predictor: a model, not a measurement. MODEL is
    /// a name, with parameters that differ: skylake-sp,l2=512K/8
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = CostModel::NAME,
          value_parser = CostModel::parse)]
    pub(crate) model: Option<CostModel>,

    /// Most functions that are shown for a workload; the others are one line. JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) lines: usize,

    /// Do not follow calls: no entry points, no flame graph, no inlined functions apart; half the time
    #[arg(long, conflicts_with_all = ["folded", "pprof"])]
    pub(crate) no_calls: bool,

    /// Also write folded stacks, `workload;function;… BASE NEW`, as difffolded.pl does and flamegraph.pl reads
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,

    /// Also write a profile for pprof, with the values base, new and added
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,

    /// How the profile is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write it to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Profile {
    /// Returns the number of seeds: what a model says means nothing without several.
    pub(crate) fn seed_count(&self) -> u64 {
        self.seeds.unwrap_or(if self.model.is_some() { 4 } else { 1 })
    }
}

const MONITORS_EXAMPLES: &str = "Examples:
  marvin monitors deb:6.1 deb:6.12 --workload fault-anon
  marvin monitors deb:6.1 deb:6.12 --workload file-create --interval 100 --format html -o counted.html";

/// `marvin monitors`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{MONITORS_EXAMPLES}"))]
pub(crate) struct Monitors {
    /// Kernels, the base first
    #[arg(required = true, value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Seed of the run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seed: u64,

    /// Also copy the counters every so many milliseconds of guest time while the workload runs, for plots; 0 for not
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = value_parser!(u64).range(0..=3_600_000))]
    pub(crate) interval: u64,

    /// Names and layout of the rows: 2013 as in Mel Gorman's mails of that year, mmtests as its compare today, or ours
    #[arg(long, value_name = "STYLE", default_value = "marvin")]
    pub(crate) style: Style,

    /// How it is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write it to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `marvin experiment`.
#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Ask what reverse mappings cost and take: n processes with m mappings each of the same memory
    Rmap(RmapArguments),
}

const RMAP_EXAMPLES: &str = "Cases:
  file       n processes map each of m pages of a file (ramfs) by itself
  shared     the same with shared anonymous memory
  sparse     shared anonymous memory of 2 MiB, mapped m times, a page of each in use
  remapped   one mapping whose pages remap_file_pages(2) puts elsewhere one by one
  inherited  private memory of a process that the others are forked from
  chain      the same, each process forked from the one before

Examples:
  marvin experiment rmap deb:6.1 deb:6.12
  marvin experiment rmap deb:6.12 --case sparse --processes 1,10,100 --mappings 1000
  marvin experiment rmap deb:6.1 deb:6.12 --format html -o rmap.html";

/// `marvin experiment rmap`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{RMAP_EXAMPLES}"))]
pub(crate) struct RmapArguments {
    /// Kernels, the base first
    #[arg(required = true, value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,

    /// Only these cases, separated by commas
    #[arg(long, value_name = "CASES", value_delimiter = ',')]
    pub(crate) case: Vec<RmapCase>,

    /// Numbers of processes and of mappings, each with each; at most six, each from 1 to 10000; 1000 of both takes long
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [1, 10, 100],
          value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) grid: Vec<u32>,

    /// Numbers of processes, if others than those of the grid
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) processes: Vec<u32>,

    /// Numbers of mappings of each process, if others than those of the grid
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) mappings: Vec<u32>,

    /// Memory of the guest in MiB: cells that do not fit are shown as such
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = value_parser!(u32).range(256..=65_536))]
    pub(crate) memory: u32,

    /// Seed of the run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seed: u64,

    /// Machines at the same time [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) jobs: Option<u16>,

    /// How it is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write it to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `marvin run`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct Run {
    /// Kernel to run it on
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Seeds, one run each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
}

/// `marvin runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,
}

/// `marvin show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Run, by its id or the beginning of it
    pub(crate) run: String,

    /// Print a raw artefact of it instead, such as getppid.console; `list` lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) artefact: Option<String>,

    /// Write it to a file rather than to standard output; an artefact as it is
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `marvin report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Runs, by their ids or the beginning of them; the first one's kernel is the base
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Only these workloads or groups of them, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,

    /// Also know the tool of this manifest, for runs of it
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    /// Compare runs of different machines, with a warning on top
    #[arg(long)]
    pub(crate) mixed_machines: bool,

    /// Imported workloads of which less is better, where that is not known
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) lower: Vec<String>,

    /// Imported workloads of which more is better, where that is not known
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) higher: Vec<String>,

    #[command(flatten)]
    pub(crate) write: Write,
}

const LINE_HELP: &str = "Lines:
  all        all releases by their versions
  mainline   releases and candidates without stable updates
  6.12       a release and its stable updates

";

/// `marvin history`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}Examples:
  marvin history fault-anon
  marvin history fault:cost --line 6.12 --format html -o fault.html"))]
pub(crate) struct History {
    /// Workload or group of them, with or without a metric: fault-anon, fault, fault-anon:cost
    #[arg(value_name = "WORKLOAD[:METRIC]")]
    pub(crate) what: String,

    /// Only kernels of a line of releases
    #[arg(long, value_name = "LINE", default_value_t = Line::All)]
    pub(crate) line: Line,

    /// How it is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = HistoryFormat::Text)]
    pub(crate) format: HistoryFormat,

    /// Write it to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How a history is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// Tables of at most 80 columns
    Text,
    /// One page with nothing outside of it
    Html,
    /// Everything, with units, for programs
    Json,
}

/// How alerts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlertsFormat {
    /// For terminals and mails
    Text,
    /// Everything, for programs
    Json,
}

/// `marvin alerts`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}The exit code is 1 where an alert is open: something is worse, and nobody said that it may stay so. It is 3 where none is, but a metric changed unit or direction, so that results are compared with nothing."))]
pub(crate) struct Alerts {
    /// Only kernels of a line of releases
    #[arg(long, value_name = "LINE", default_value_t = Line::All)]
    pub(crate) line: Line,

    /// Only alerts that somebody should look at
    #[arg(long)]
    pub(crate) open: bool,

    /// How they are written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = AlertsFormat::Text)]
    pub(crate) format: AlertsFormat,

    /// Write this alert as a mail to the kernel's lists instead, if something is worse; its name or the end of it
    #[arg(long, value_name = "ALERT", conflicts_with_all = ["format", "open"])]
    pub(crate) mail: Option<String>,
}

/// `marvin triage`.
#[derive(Debug, Args)]
#[command(after_help = "Outcomes:
  real        the kernel does cost more, and nobody gains by it: it stays open
  apparent    the older kernel did less than it should have, or the measurement misleads
  trade-off   something else gained, and that was worth it
  fixed       a later kernel mended it
  ignored     nobody is going to look at it

An alert opens again when more series become worse with the same kernels.")]
pub(crate) struct Triage {
    /// Alert, by its name or the end of it: cloud-amd64@6.12.100, 6.12.100
    pub(crate) alert: String,

    /// What it turned out to be: real, apparent, trade-off, fixed, ignored
    pub(crate) outcome: model::Triage,

    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
}

/// `marvin serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address and port; port 0 takes one that is free [default: that of marvin.toml, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<std::net::SocketAddr>,
}

/// `marvin publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Folder to write: new, empty, or published before
    pub(crate) folder: PathBuf,
}

const IMPORT_EXAMPLES: &str = "Examples:
  marvin import mmtests work/log
  marvin import lkp /lkp/result/will-it-scale
  marvin runs
  marvin report RUN RUN …";

/// `marvin import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct Import {
    /// Suite that measured
    #[arg(value_enum)]
    pub(crate) suite: Foreign,

    /// Its results: work/log of MMTests or one run in it; a result folder of LKP-tests
    pub(crate) folder: PathBuf,
}

/// Another suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Foreign {
    /// MMTests
    Mmtests,
    /// LKP-tests
    Lkp,
}

/// `marvin kernels`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct Kernels {
    /// Name to look up, such as deb:6.1
    pub(crate) name: String,
}

/// `marvin workloads`.
#[derive(Debug, Args)]
pub(crate) struct Workloads {
    /// Suite to list [default: all]
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,
}

/// `marvin tools`.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Also list the tool of this manifest
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }
}

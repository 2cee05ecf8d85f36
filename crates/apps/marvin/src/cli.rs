//! The command line's definition, the source of help, completions, man pages and the reference in
//! `docs/cli.md`.

mod answers;
mod explain;
mod holding;
mod keeping;
mod lists;
mod machines;
mod sources;
mod stabilise;
mod standing;

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use document::{Only, Sort, Style, View};
use model::{CostModel, Line, RmapCase};

use crate::completion;
use crate::exit::EXIT_CODES;
pub(crate) use answers::{Colour, Format};
pub(crate) use explain::{Explain, SECONDS, seeds_for};
pub(crate) use holding::{Console, Deploy, Extend, Power, Release, Reserve, Turn};
pub(crate) use keeping::{Export, ExportFormat, ExportRows, Gc, Stored};
pub(crate) use lists::{
    Doctor, Kernels, ListFormat, Machines, MachinesCheck, MachinesCommand, Output, Runs, Tools,
    Workloads,
};
pub(crate) use machines::{EXACT_SMP, Noisy, OWN, On, Tasks, Threads, own};
pub(crate) use sources::{Bisect, Build, Part, Series, SourceWords, Spread};
pub(crate) use stabilise::{STABILISE_ON, Stabilise};
pub(crate) use standing::{Config, Queue, QueueAdd, QueueMove, Via, Watch, Work};

const KERNELS: &str = "Kernel names:
  deb:6.12                     newest 6.12 package that apt offers, flavour cloud-amd64
  deb:6.12+amd64               the same, another flavour
  deb:6.12.117                 one upstream version
  deb:linux-image-VERSION…     one Debian package
  path:/boot/vmlinuz-VERSION   bzImage or vmlinux file
  git:REVISION                 commit of the tree given by --tree; Marvin builds it
  patch:FILE@REVISION          patch on top of a commit, or of HEAD without @REVISION; Marvin builds it
  tree:FOLDER                  source directory with uncommitted changes; Marvin builds it
  deb-src:6.12                 Debian source package; Marvin builds it
  running:                     the kernel that this host runs; only with --on local
  HEAD~1                       inside a kernel tree: git:HEAD~1 of that tree
  vmlinux.old                  existing file: path:vmlinux.old

";

const COMPARE_EXAMPLES: &str = "Examples:
  marvin compare deb:6.1 deb:6.12
  marvin compare deb:6.1 deb:6.12 --workload fault,fork --seeds 8 \\
      --format html -o report.html
  marvin compare path:vmlinux.before path:vmlinux.after --quick";

/// Continuous performance lab for the Linux kernel
///
/// Boots kernels in QEMU, runs workloads in the guest and reports regressions and improvements.
/// QEMU counts instructions and takes no input from outside, so the same kernel gives the same
/// numbers to the last instruction.
#[derive(Debug, Parser)]
#[command(name = "marvin", version, max_term_width = 100, after_help = format!("{KERNELS}{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// Command
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Data directory: kernels, snapshots and results [default: $XDG_DATA_HOME/marvin or
    /// ~/.local/share/marvin]
    #[arg(
        long,
        global = true,
        value_name = "FOLDER",
        env = "MARVIN_HOME",
        hide_env_values = true
    )]
    pub(crate) home: Option<PathBuf>,
    /// Configuration file: git trees, plans, notifications [default: marvin.toml in the data
    /// directory]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MARVIN_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config_file: Option<PathBuf>,
    /// Store results in PostgreSQL instead of the data directory: postgres://USER@HOST/DATABASE,
    /// password in PGPASSWORD
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = "MARVIN_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<String>,

    /// Colour the text
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Colour::Auto)]
    pub(crate) color: Colour,

    /// Run QEMU and the Makefiles of kernels without walls: as you, with your files and your
    /// network
    #[arg(long, global = true)]
    pub(crate) no_sandbox: bool,

    /// Print no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// Environment variables of options that all commands have, by option.
const VARIABLES: [&str; 3] = ["home", "config_file", "store"];

/// Returns a usage error without variables: clap prints an option that a variable sets as if it
/// were required.
pub(crate) fn without_variables(error: clap::Error) -> clap::Error {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return error;
    }
    let unset =
        |command: clap::Command, name| command.mut_arg(name, |argument| argument.env(None::<&str>));
    let command = VARIABLES.into_iter().fold(Arguments::command(), unset);
    command.try_get_matches().err().unwrap_or(error)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare kernels with a baseline: regressions and improvements
    Compare(Compare),
    /// Attribute a difference to kernel functions: instruction by instruction, or by samples with
    /// --on vm
    Profile(Box<Profile>),
    /// Compare kernel counters (/proc) during a workload: reclaim, faults, disks, slabs, stalls
    Monitors(Box<Monitors>),
    /// Explain why a program or a workload is slow, or became slower
    Explain(Box<Explain>),
    /// Run a parameter-sweep experiment
    #[command(subcommand)]
    Experiment(Experiment),
    /// Run a suite on one kernel and store the results
    Run(Run),
    /// Build or fetch a kernel and print its path
    Build(Build),
    /// Find the commits between two that made a workload better or worse
    Bisect(Box<Bisect>),
    /// Compare each commit of a series with its parent
    Series(Box<Series>),
    /// Find what made a kernel slower, and the patches that repay it
    Stabilise(Box<Stabilise>),
    /// List stored runs, newest first
    Runs(Runs),
    /// Show one stored run in full
    Show(Show),
    /// Compare stored runs without measuring
    Report(Report),
    /// Show a workload's results over many kernels, with change points
    History(History),
    /// List performance changes, grouped by the kernel that introduced them
    Alerts(Alerts),
    /// Record the triage decision for an alert
    Triage(Triage),
    /// Serve the read-only dashboard: kernels, workloads and machines as web pages and JSON
    Serve(Serve),
    /// Write the dashboard as static files
    Publish(Publish),
    /// Check the trees of marvin.toml once and queue releases that are not measured yet
    Watch(Watch),
    /// Run queued jobs one by one; one worker per host
    Work(Work),
    /// List and change queued jobs
    #[command(subcommand)]
    Queue(Queue),
    /// Check marvin.toml, show its settings, or print its schema
    #[command(subcommand)]
    Config(Config),
    /// Import results of MMTests or LKP-tests, to list, show and compare them
    Import(Import),
    /// Export stored results as a table for notebooks: CSV, JSON lines or Parquet
    Export(Export),
    /// Delete superseded runs, old artifacts and unused images; referenced runs are kept
    Gc(Gc),
    /// Change the store that several hosts share
    #[command(subcommand)]
    Store(Stored),
    /// Filter and compress a crashed kernel's memory dump: same as marvin-dump
    #[command(disable_help_flag = true)]
    Dump {
        /// Options and files of marvin-dump; --help lists them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENTS"
        )]
        words: Vec<std::ffi::OsString>,
    },
    /// List the kernels that match a name, newest first
    Kernels(Kernels),
    /// List workloads: what each stresses, and what one operation is
    Workloads(Workloads),
    /// List external tools that run as workloads: purpose, version, reported values
    Tools(Tools),
    /// List machines to measure on with their state, or check one
    Machines(Machines),
    /// Print or switch the power of a server
    Power(Power),
    /// Put a distribution on a server
    Deploy(Deploy),
    /// Record the consoles of servers, or print what was recorded
    Console(Console),
    /// Reserve servers: other users neither measure on them nor switch them
    Reserve(Reserve),
    /// Make a reservation last longer
    Extend(Extend),
    /// End a reservation
    Release(Release),
    /// Check this host and print a fix for each problem
    Doctor(Doctor),
    /// Write a shell's completion script to standard output: source <(marvin completions bash)
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a directory
    Man {
        /// Directory to write to
        folder: PathBuf,
    },
    /// Write a generated page of the documentation as markdown, or the schemas of all JSON
    /// documents into a directory
    #[command(hide = true)]
    Reference {
        /// Page
        page: Page,
        /// Directory for the schemas
        #[arg(required_if_eq("page", "schemas"))]
        folder: Option<PathBuf>,
    },
}

/// A generated page of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// docs/cli.md
    Cli,
    /// docs/workloads.md
    Workloads,
    /// docs/counters.md
    Counters,
    /// docs/schemas: one file per JSON document
    Schemas,
}

/// Options for a measurement.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Suite to run: micro, mm, sched, net, io, reclaim, rmap, disk, scale, smoke, seeds; `marvin
    /// workloads` lists their workloads
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Run only these workloads or groups, separated by commas: fault,fork,syscall; external tools
    /// and their workloads are tool:sysbench, tool:sysbench-cpu
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Add the external tool of this manifest (docs/tools.md) to those in manifests/ of the data
    /// directory
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    /// Measure again, even if results exist or the images are equal
    #[arg(long)]
    pub(crate) force: bool,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,

    /// Store a memory dump when the guest's kernel panics, filtered if it has VMCOREINFO, at most
    /// 64 MiB: WORKLOAD.vmcore
    #[arg(long)]
    pub(crate) keep_dump: bool,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Boot for every workload instead of restoring a snapshot: slower, same numbers
    #[arg(long)]
    pub(crate) no_snapshots: bool,
}

/// Output options of a comparison.
#[derive(Debug, Args)]
pub(crate) struct Write {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write a mail: subject, plain text of at most 80 columns, numbered observations
    #[arg(long, conflicts_with_all = ["format", "style"])]
    pub(crate) mail: bool,

    /// Add the kernel counters below the table: time, reclaim, disks, slabs, stalls, as marvin
    /// monitors does
    #[arg(long)]
    pub(crate) monitors: bool,

    /// Table layout in text: marvin; mmtests as in MMTests today; 2013 as in MMTests of 2013
    #[arg(long, value_name = "STYLE", default_value = "marvin")]
    pub(crate) style: Style,

    /// Print all details: environments, kernels, machines, and each change broken down
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Row order: suite, or effect (worst first)
    #[arg(long, value_name = "ORDER", default_value = "suite")]
    pub(crate) sort: Sort,

    /// Show only rows with this verdict: worse, better, changed
    #[arg(long, value_name = "VERDICT")]
    pub(crate) only: Option<Only>,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,
}

impl Write {
    /// Returns which rows to show, and how.
    pub(crate) fn view(&self) -> View {
        View {
            style: self.style,
            verbose: self.verbose,
            sort: self.sort,
            only: self.only,
        }
    }
}

fn margin(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a number of percent from 0 to less than 100".into()),
    }
}

/// Returns what reads a whole number between two limits, both included.
fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text
            .parse::<u64>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        let expected = || match most {
            most if most >= u64::from(u32::MAX) => {
                format!("expected a whole number of at least {least}")
            }
            _ => format!("expected a whole number from {least} to {most}"),
        };
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(expected)
    }
}

/// `marvin compare`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{COMPARE_EXAMPLES}"))]
pub(crate) struct Compare {
    /// Baseline kernel; git:A..B means git:A and git:B, git:A^..B the commits A to B
    #[arg(add = completion::kernel())]
    pub(crate) base: String,

    /// Kernels to compare with the baseline
    #[arg(value_name = "NEW", add = completion::kernel())]
    pub(crate) new: Vec<String>,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) tasks: Tasks,

    #[command(flatten)]
    pub(crate) spread: Spread,

    /// Number of boots with different seeds; a seed perturbs layout and timing, to show what
    /// depends on them
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seeds: u64,

    /// Use one seed: fast, but does not show what depends on layout or timing
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) quick: bool,

    /// Boot on until no row is unclear, at most --boots times; looking after each boot raises no
    /// more false alarms
    #[arg(long)]
    pub(crate) until_clear: bool,

    /// With --until-clear, begin no boot after this time: 2h, 30m, 90s
    #[arg(long, value_name = "TIME", value_parser = machines::time, requires = "until_clear")]
    pub(crate) budget: Option<Duration>,

    /// List below the table the functions that each difference comes from; `marvin profile` shows
    /// more
    #[arg(long)]
    pub(crate) profile: bool,

    /// With --monitors, also sample the counters every MS milliseconds of guest time, for plots;
    /// 0: never
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = whole::<u64>(0, 3_600_000),
          requires = "monitors")]
    pub(crate) interval: u64,

    #[command(flatten)]
    pub(crate) write: Write,
}

const PROFILE_EXAMPLES: &str = "Examples:
  marvin profile deb:6.1 deb:6.12 --workload fault-anon
  marvin profile deb:6.1 deb:6.12 --format html -o profile.html
  marvin profile deb:6.1 deb:6.12 --workload pipe --model
  marvin profile deb:6.1 deb:6.12 --workload fault --on vm --boots 8";

/// `marvin profile`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{PROFILE_EXAMPLES}"))]
pub(crate) struct Profile {
    /// Baseline kernel
    #[arg(add = completion::kernel())]
    pub(crate) base: String,

    /// Kernel to compare with the baseline
    #[arg(add = completion::kernel())]
    pub(crate) new: String,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) on: On,

    /// Number of seeds; their counts are added up [default: 1; 4 with --model]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 1000))]
    pub(crate) seeds: Option<u64>,

    /// Also simulate a processor's caches, TLBs and branch predictor: modelled, not measured.
    /// MODEL is a name with changed parameters: skylake-sp,l2=512K/8
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = CostModel::NAME,
          value_parser = CostModel::parse)]
    pub(crate) model: Option<CostModel>,

    /// Show at most N functions per workload and sum up the rest; JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) lines: usize,

    /// Do not follow calls: half the time, but no entry points, flame graph or inlined functions
    #[arg(long, conflicts_with_all = ["folded", "pprof"])]
    pub(crate) no_calls: bool,

    /// Also write folded stacks for flamegraph.pl, `workload;function;… BASE NEW`, as
    /// difffolded.pl writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,

    /// Also write a pprof profile with the values base, new and added
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Profile {
    /// Returns the number of seeds: a model needs several to be meaningful.
    pub(crate) fn seed_count(&self) -> u64 {
        self.seeds.unwrap_or(seeds_for(self.model.as_ref()))
    }
}

const MONITORS_EXAMPLES: &str = "Examples:
  marvin monitors deb:6.1 deb:6.12 --workload fault-anon
  marvin monitors deb:6.1 deb:6.12 --workload file-create --interval 100 --format html -o counted.html";

/// `marvin monitors`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{MONITORS_EXAMPLES}"))]
pub(crate) struct Monitors {
    /// Kernels, baseline first
    #[arg(required = true, value_name = "KERNEL", add = completion::kernel())]
    pub(crate) kernels: Vec<String>,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seed: u64,

    /// Also sample the counters every MS milliseconds of guest time, for plots; 0: never
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = whole::<u64>(0, 3_600_000))]
    pub(crate) interval: u64,

    /// Row names and layout: marvin; mmtests as in MMTests today; 2013 as in Mel Gorman's mails of
    /// 2013
    #[arg(long, value_name = "STYLE", default_value = "marvin")]
    pub(crate) style: Style,

    /// Also show the rows that are zero on every kernel
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `marvin experiment`.
#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Measure time and memory of reverse mappings: n processes with m mappings each of the same
    /// memory
    Rmap(RmapArguments),
}

const RMAP_EXAMPLES: &str = "Cases:
  file       n processes map m pages of a file (ramfs), one mapping per page
  shared     the same with shared anonymous memory
  sparse     m mappings of 2 MiB of shared anonymous memory, one page of each in use
  remapped   one mapping whose pages remap_file_pages(2) moves one by one
  inherited  private memory of a parent process, inherited by its children
  chain      the same, each process forked from the previous one

Examples:
  marvin experiment rmap deb:6.1 deb:6.12
  marvin experiment rmap deb:6.12 --case sparse --processes 1,10,100 --mappings 1000
  marvin experiment rmap deb:6.1 deb:6.12 --format html -o rmap.html";

/// `marvin experiment rmap`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{RMAP_EXAMPLES}"))]
pub(crate) struct RmapArguments {
    /// Kernels, baseline first
    #[arg(required = true, value_name = "KERNEL", add = completion::kernel())]
    pub(crate) kernels: Vec<String>,

    /// Run only these cases, separated by commas
    #[arg(long, value_name = "CASES", value_delimiter = ',')]
    pub(crate) case: Vec<RmapCase>,

    /// Numbers of processes and mappings, in all combinations; at most six, each 1 to 10000; 1000
    /// takes long
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [1, 10, 100],
          value_parser = whole::<u32>(1, 10_000))]
    pub(crate) grid: Vec<u32>,

    /// Numbers of processes [default: --grid]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = whole::<u32>(1, 10_000))]
    pub(crate) processes: Vec<u32>,

    /// Numbers of mappings per process [default: --grid]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = whole::<u32>(1, 10_000))]
    pub(crate) mappings: Vec<u32>,

    /// Guest memory in MiB; combinations that do not fit are marked
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = whole::<u32>(256, 65_536))]
    pub(crate) memory: u32,

    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seed: u64,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `marvin run`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct Run {
    /// Kernel to measure
    #[arg(add = completion::kernel())]
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) tasks: Tasks,

    /// Number of seeds; each is one run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seeds: u64,

    #[command(flatten)]
    pub(crate) part: Part,

    /// Also sample each workload after its measurement, on machines that measure time, for marvin
    /// profile
    #[arg(long)]
    pub(crate) sample: bool,
}

/// `marvin show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Run id, or its first characters
    #[arg(add = completion::run())]
    pub(crate) run: String,

    /// Print an artifact of the run instead, such as getppid.console; `list` lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) artefact: Option<String>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ListFormat::Text, conflicts_with = "artefact")]
    pub(crate) format: ListFormat,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

const REPORT_EXAMPLES: &str = "Examples:
  marvin report deb:6.1 deb:6.12
  marvin report 6.1-vanilla 6.12-vanilla --monitors
  marvin report run_4bb1f3a6 run_90c2d1e7";

/// `marvin report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct Report {
    /// Measured kernels by name or version, the baseline first: deb:6.1, 6.12.117; or run ids, or
    /// their first characters
    #[arg(required = true, value_name = "KERNEL|RUN", add = completion::measured())]
    pub(crate) runs: Vec<String>,

    /// Suite, if the kernels were measured with several
    #[arg(long, value_name = "SUITE", add = completion::suite())]
    pub(crate) suite: Option<String>,

    /// Show only these workloads or groups, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Add the external tool of this manifest (docs/tools.md), for its runs
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    /// Compare runs of different machines; the report warns
    #[arg(long)]
    pub(crate) mixed_machines: bool,

    /// Imported workloads where lower is better, if Marvin does not know the metric
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) lower: Vec<String>,

    /// Imported workloads where higher is better, if Marvin does not know the metric
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) higher: Vec<String>,

    #[command(flatten)]
    pub(crate) write: Write,
}

const LINE_HELP: &str = "Lines:
  all        all releases, ordered by version
  mainline   releases and release candidates, no stable updates
  6.12       one release and its stable updates

";

/// `marvin history`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}Examples:
  marvin history fault-anon
  marvin history fault:cost --line 6.12 --format html -o fault.html"))]
pub(crate) struct History {
    /// Workload or group, with an optional metric: fault-anon, fault, fault-anon:cost
    #[arg(value_name = "WORKLOAD[:METRIC]", add = completion::workload())]
    pub(crate) what: String,

    /// Show only kernels of this line of releases
    #[arg(long, value_name = "LINE", default_value_t = Line::All)]
    pub(crate) line: Line,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = HistoryFormat::Text)]
    pub(crate) format: HistoryFormat,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Output format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// Tables of at most 80 columns
    Text,
    /// One self-contained page
    Html,
    /// All data with units, for programs
    Json,
}

/// `marvin alerts`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}Exit codes: 1 if an open alert reports a regression; otherwise 3 if a metric changed unit or direction, because Marvin cannot compare such results."))]
pub(crate) struct Alerts {
    /// Show only kernels of this line of releases
    #[arg(long, value_name = "LINE", default_value_t = Line::All)]
    pub(crate) line: Line,

    /// List only open alerts: regressions not triaged as apparent, trade-off, fixed or ignored
    #[arg(long)]
    pub(crate) open: bool,

    /// Output format
    #[command(flatten)]
    pub(crate) output: Output,

    /// Write a mail to the kernel's lists about the regressions of one alert, given by its name or
    /// the end of it
    #[arg(long, value_name = "ALERT", conflicts_with_all = ["format", "open"], add = completion::alert())]
    pub(crate) mail: Option<String>,
}

/// `marvin triage`.
#[derive(Debug, Args)]
#[command(after_help = "Outcomes:
  real        real regression without a benefit
  apparent    the older kernel did too little, or the measurement misleads
  trade-off   another improvement is worth it
  fixed       a later kernel fixes it
  ignored     no further action

Marvin reopens an alert when more workloads regress with the same kernels.")]
pub(crate) struct Triage {
    /// Alert name or the end of it: cloud-amd64@6.12.100, 6.12.100
    #[arg(add = completion::alert())]
    pub(crate) alert: String,

    /// Decision: real, apparent, trade-off, fixed, ignored
    pub(crate) outcome: model::Triage,

    /// Reason
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
}

/// `marvin serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address and port; port 0 picks a free one [default: that of marvin.toml, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<std::net::SocketAddr>,

    /// Also answer requests for this host name, such as a proxy's; localhost, addresses and this
    /// machine's name need none
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
}

/// `marvin publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Directory to write to: new, empty, or written by an earlier publish
    pub(crate) folder: PathBuf,
}

const IMPORT_EXAMPLES: &str = "Examples:
  marvin import mmtests work/log
  marvin import lkp /lkp/result/will-it-scale
  marvin runs
  marvin report 6.1-vanilla 6.12-vanilla";

/// `marvin import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct Import {
    /// Suite that wrote the results
    #[arg(value_enum)]
    pub(crate) suite: Foreign,

    /// Results: work/log of MMTests or one run in it; a result directory of LKP-tests
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

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }
}

//! The command line: global options and commands, the source of help, completions, man pages and
//! the reference in `docs/cli.md`. The options of a command are in its file.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    alerts, bisect, build, compare, completions, config, console, deploy, doctor, dump, experiment,
    explain, export, extend, gc, history, import, kernels, machines, man, monitors, notify, power,
    price, profile, publish, queue, reference, release, replay, report, reserve, run, runs, series,
    serve, setup, shell, show, stabilise, status, store, tools, triage, watch, work, workloads,
};
use crate::exit::{EXIT_CODES, Exit};
use crate::options::KERNELS;
use crate::session::{GlobalOptions, Session, keep_private};

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

    #[command(flatten)]
    pub(crate) global: GlobalOptions,
}

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
    let command = GlobalOptions::WITH_VARIABLES
        .into_iter()
        .fold(Arguments::command(), unset);
    command
        .try_get_matches()
        .err()
        .or_else(find_empty_variable)
        .unwrap_or(error)
}

/// Returns an error for a variable that is set to nothing: clap names only its option.
fn find_empty_variable() -> Option<clap::Error> {
    let mut command = Arguments::command();
    let name = command
        .get_arguments()
        .filter_map(clap::Arg::get_env)
        .find(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()))?
        .to_string_lossy()
        .into_owned();
    let text = format!("{name} is set to nothing: give it a value, or unset it\n");
    Some(command.error(ErrorKind::InvalidValue, text))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare kernels with a baseline: regressions and improvements
    Compare(compare::CompareArguments),
    /// Attribute a difference to kernel functions: instruction by instruction, or by samples with
    /// --on vm
    Profile(Box<profile::ProfileArguments>),
    /// Compare kernel counters (/proc) during a workload: reclaim, faults, disks, slabs, stalls
    Monitors(Box<monitors::MonitorsArguments>),
    /// Open a shell in the guest in which a program of yours would run, to try it by hand
    Shell(shell::ShellArguments),
    /// Explain why a program or a workload is slow, or became slower
    Explain(Box<explain::ExplainArguments>),
    /// Run a parameter-sweep experiment
    #[command(subcommand)]
    Experiment(experiment::ExperimentCommand),
    /// Run a suite on one kernel and store the results
    Run(run::RunArguments),
    /// Build or fetch a kernel and print its path
    Build(build::BuildArguments),
    /// Find the commits between two that made a workload better or worse
    Bisect(Box<bisect::BisectArguments>),
    /// Say what boot parameters, sysctls, files of /sys and config options cost, and their pairs
    Price(Box<price::PriceArguments>),
    /// Compare each commit of a series with its parent
    Series(Box<series::SeriesArguments>),
    /// Measure again what a proof of a series states, and say whether it is equal
    Replay(Box<replay::ReplayArguments>),
    /// Hold a change against the budgets of its tree (.marvin.toml): only what it touches
    Gate(Box<series::gate::GateArguments>),
    /// Find the changes that made a kernel slower, and patches that repay them
    Stabilise(Box<stabilise::StabiliseArguments>),
    /// List stored runs, newest first
    Runs(runs::RunsArguments),
    /// Show one stored run in full
    Show(show::ShowArguments),
    /// Compare stored runs without measuring
    Report(report::ReportArguments),
    /// Show a workload's results over many kernels, with change points
    History(history::HistoryArguments),
    /// List performance changes, grouped by the kernel that introduced them
    Alerts(alerts::AlertsArguments),
    /// Record the triage decision for an alert
    Triage(triage::TriageArguments),
    /// Serve the read-only dashboard: kernels, workloads and machines as web pages and JSON
    Serve(serve::ServeArguments),
    /// Write the dashboard as static files
    Publish(publish::PublishArguments),
    /// Check the trees of marvin.toml once and queue releases that are not measured yet
    Watch(watch::WatchArguments),
    /// Run queued jobs one by one; one worker per host
    Work(work::WorkArguments),
    /// List and change queued jobs
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Say whether the lab is well: worker, jobs, disk, backup, messages; 5 if something is not
    Status,
    /// Report regressions now, and test the mails, webhooks and commands of marvin.toml
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    /// Write a sample marvin.toml, check it, show its settings, or print its schema
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Import results of other programs, MMTests or LKP-tests, to list, show and compare them
    Import(import::ImportArguments),
    /// Export stored results as a table for notebooks: CSV, JSON lines or Parquet
    Export(export::ExportArguments),
    /// Delete superseded runs, old artifacts and unused images; referenced runs are kept
    Gc(gc::GcArguments),
    /// Write a backup of the data directory: results, queue, marvin.toml; also beside a worker
    Backup(store::BackupArguments),
    /// Restore a backup into a data directory that is missing or empty, and check it
    Restore(store::RestoreArguments),
    /// Verify or upgrade the store
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Filter and compress a crashed kernel's memory dump: same as marvin-dump
    #[command(disable_help_flag = true)]
    Dump {
        /// Options and files of marvin-dump; --help lists them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENTS"
        )]
        arguments: Vec<std::ffi::OsString>,
    },
    /// List the kernels that match a name, newest first
    Kernels(kernels::KernelsArguments),
    /// List workloads with their purpose and their operation
    Workloads(workloads::WorkloadsArguments),
    /// List external tools that run as workloads: purpose, version, reported values
    Tools(tools::ToolsArguments),
    /// List machines to measure on with their state, or check one
    Machines(machines::MachinesArguments),
    /// Print or switch the power of a server
    Power(power::PowerArguments),
    /// Put a distribution on a server
    Deploy(deploy::DeployArguments),
    /// Record the consoles of servers, or print a record
    Console(console::ConsoleArguments),
    /// Reserve servers: other users neither measure on them nor switch them
    Reserve(reserve::ReserveArguments),
    /// Make a reservation last longer
    Extend(extend::ExtendArguments),
    /// End a reservation
    Release(release::ReleaseArguments),
    /// Check this host and print a fix for each problem
    Doctor(doctor::DoctorArguments),
    /// Put the QEMU of the reference numbers into the data directory, without root
    Setup(setup::SetupArguments),
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
        page: reference::Page,
        /// Directory for the schemas
        #[arg(required_if_eq("page", "schemas"))]
        folder: Option<PathBuf>,
    },
}

impl Command {
    pub(crate) fn run(&self, session: &Session) -> anyhow::Result<Exit> {
        // These write many files for others: web servers, shells, man. A program that is observed
        // writes its own.
        let for_others = match self {
            Self::Publish(_) | Self::Dump { .. } | Self::Man { .. } | Self::Reference { .. } => {
                true
            }
            Self::Explain(command) => command.kernels.is_empty(),
            _ => false,
        };
        if !for_others {
            keep_private();
        }
        match self {
            Self::Compare(command) => compare::compare(session, command),
            Self::Profile(command) => profile::profile(session, command),
            Self::Monitors(command) => monitors::monitors(session, command),
            Self::Explain(command) => explain::explain(session, command),
            Self::Experiment(command) => experiment::experiment(session, command),
            Self::Shell(command) => shell::shell(session, command),
            Self::Run(command) => run::run(session, command),
            Self::Build(command) => build::build(session, command),
            Self::Bisect(command) => bisect::bisect(session, command),
            Self::Stabilise(command) => stabilise::stabilise(session, command),
            Self::Price(command) => price::price(session, command),
            Self::Series(command) => series::series(session, command),
            Self::Replay(command) => replay::replay(session, command),
            Self::Gate(command) => series::gate::gate(session, command),
            Self::Runs(command) => runs::runs(session, command),
            Self::Workloads(command) => workloads::workloads(session, command),
            Self::Machines(command) => machines::machines(session, command),
            Self::Power(command) => power::power(session, command),
            Self::Deploy(command) => deploy::deploy(session, command),
            Self::Console(command) => console::console(session, command),
            Self::Reserve(command) => reserve::reserve(session, command),
            Self::Extend(command) => extend::extend(session, command),
            Self::Release(command) => release::release(session, command),
            Self::Tools(command) => tools::tools(session, command),
            Self::Show(command) => show::show(session, command),
            Self::Report(command) => report::report(session, command),
            Self::History(command) => history::history(session, command),
            Self::Alerts(command) => alerts::alerts(session, command),
            Self::Triage(command) => triage::triage(session, command),
            Self::Serve(command) => serve::serve(session, command),
            Self::Publish(command) => publish::publish(session, command),
            Self::Watch(command) => watch::watch(session, command),
            Self::Work(command) => work::work(session, command),
            Self::Queue(command) => queue::queue(session, command),
            Self::Status => status::status(session),
            Self::Notify(command) => notify::notify(session, command),
            Self::Config(command) => config::config(session, command),
            Self::Import(command) => import::import(session, command),
            Self::Export(command) => export::export(session, command),
            Self::Gc(command) => gc::gc(session, command),
            Self::Backup(command) => store::backup(session, command),
            Self::Restore(command) => store::restore(session, command),
            Self::Store(command) => store::store(session, command),
            Self::Dump { arguments } => Ok(dump::dump(arguments)),
            Self::Kernels(command) => kernels::kernels(session, command),
            Self::Doctor(command) => doctor::doctor(session, command),
            Self::Setup(command) => setup::setup(session, command),
            Self::Completions { shell } => completions::completions(session, *shell),
            Self::Man { folder } => man::man(Arguments::command(), folder),
            Self::Reference { page, folder } => {
                reference::reference(session, *page, folder.as_deref(), Arguments::command())
            }
        }
    }
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

//! One run of the program: its global options, and what they lead to (data directory, marvin.toml,
//! store, lab). Each is opened when a command first needs it: `marvin explain -- COMMAND`, `doctor`
//! and `config` work without a store or with a marvin.toml that cannot be read.

mod answer;
mod clock;
mod home;
mod lasting;
mod log;
mod patience;
mod progress;
mod stop;
mod terminal;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use archives::{Archives, Debian};
use clap::Args;
use config::ConfigFile;
use lab::{Lab, LabOptions, Patience};
use model::ExactCpu;
use results::{HistoryReader, HistorySnapshot};
use store::{HomeLock, Location, Store, is_writable};

use crate::exit::WrongInput;
use crate::options::time;
use crate::say;
pub(crate) use answer::{Answer, Colour, Format, ListFormat, Output};
pub(crate) use clock::{now, now_ms};
pub(crate) use home::keep_private;
pub(crate) use lasting::LastingState;
pub(crate) use log::{About, LogLevel, LogOptions, is_log_on, start_log, write_event};
pub(crate) use patience::open_when_reached;
pub(crate) use progress::{INTERRUPTED, Progress, span};
pub(crate) use stop::Stop;
pub(crate) use terminal::{RawTerminal, send_keys};

/// Options that all commands have.
#[derive(Debug, Args)]
pub(crate) struct GlobalOptions {
    /// Data directory: kernels, snapshots and results [default: $XDG_DATA_HOME/marvin or
    /// ~/.local/share/marvin]
    #[arg(
        long,
        global = true,
        value_name = "FOLDER",
        env = "MARVIN_HOME",
        hide_env_values = true
    )]
    home: Option<PathBuf>,
    /// Configuration file: git trees, plans, notifications [default: marvin.toml in the data
    /// directory]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MARVIN_CONFIG",
        hide_env_values = true
    )]
    config_file: Option<PathBuf>,
    /// Store results in PostgreSQL instead of the data directory: postgres://USER@HOST/DATABASE,
    /// password in PGPASSWORD
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = "MARVIN_STORE",
        hide_env_values = true
    )]
    store: Option<String>,

    /// Colour the text
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Colour::Auto)]
    color: Colour,

    /// CPU of exact and exact-smp: generic, or server, which is nearer to a server of today; each
    /// is a machine of its own [default: that of marvin.toml, or generic]
    #[arg(long, global = true, value_name = "NAME", hide_possible_values = true)]
    cpu: Option<ExactCpu>,

    /// Run QEMU and the Makefiles of kernels without a sandbox: as you, with your files and your
    /// network
    #[arg(long, global = true)]
    no_sandbox: bool,

    /// Wait up to TIME for another marvin that measures in the data directory [default: not at
    /// all; without TIME, 1h]
    #[arg(long, global = true, value_name = "TIME", value_parser = time, num_args = 0..=1,
        require_equals = true, default_missing_value = "1h")]
    wait: Option<Duration>,

    /// Print no progress
    #[arg(long, short, global = true)]
    quiet: bool,
}

impl GlobalOptions {
    /// Options that have environment variables.
    pub(crate) const WITH_VARIABLES: [&str; 3] = ["home", "config_file", "store"];
}

/// What the commands of one process share.
#[derive(Debug)]
pub(crate) struct Session {
    options: GlobalOptions,
    home: OnceLock<PathBuf>,
    config: OnceLock<ConfigFile>,
}

impl Session {
    pub(crate) fn new(options: GlobalOptions) -> Self {
        if options.no_sandbox {
            subprocess::remove_walls();
        }
        Self {
            options,
            home: OnceLock::new(),
            config: OnceLock::new(),
        }
    }

    /// Returns the data directory; always absolute.
    pub(crate) fn home(&self) -> anyhow::Result<&Path> {
        let open = || {
            let home = home::find_home(self.options.home.as_deref())?;
            home::check_trust(&home)?;
            Ok(home)
        };
        open_once(&self.home, open).map(PathBuf::as_path)
    }

    /// Returns marvin.toml as it was when a command first asked for it; an empty configuration if
    /// there is no file.
    pub(crate) fn config(&self) -> anyhow::Result<&ConfigFile> {
        open_once(&self.config, || self.read_config())
    }

    /// Reads marvin.toml as it is now.
    fn read_config(&self) -> anyhow::Result<ConfigFile> {
        let tools = self.tools(&[])?;
        let file = self.options.config_file.as_deref();
        Ok(ConfigFile::read(self.home()?, file, &tools.rows())?)
    }

    /// Returns the path of marvin.toml, whether it exists or not.
    pub(crate) fn config_file(&self) -> anyhow::Result<PathBuf> {
        match &self.options.config_file {
            Some(file) => Ok(file.clone()),
            None => Ok(self.home()?.join("marvin.toml")),
        }
    }

    /// Reads marvin.toml as it is now; an error if there is no file.
    pub(crate) fn read_existing_config(&self) -> anyhow::Result<ConfigFile> {
        let config = self.read_config()?;
        if config.file.is_none() {
            let text = format!(
                "there is no marvin.toml in {}: `marvin config init` writes a sample, or name one with --config-file FILE",
                self.home()?.display()
            );
            return Err(WrongInput(text).into());
        }
        Ok(config)
    }

    /// Returns Marvin's tools, those of the data directory, and those of these manifests.
    pub(crate) fn tools(&self, manifests: &[PathBuf]) -> anyhow::Result<lab::Tools> {
        tools::read_tools(self.home()?, manifests)
    }

    /// Returns the formats of result files: those of these manifests, of the data directory, and
    /// Marvin's.
    pub(crate) fn formats(&self, manifests: &[PathBuf]) -> anyhow::Result<Vec<config::Format>> {
        tools::read_formats(self.home()?, manifests)
    }

    /// Returns the store's location: the data directory, unless `--store` or its variable names a
    /// server. PGPASSWORD may have the password, as for all programs of PostgreSQL.
    pub(crate) fn store_location(&self) -> anyhow::Result<Location> {
        let password = std::env::var("PGPASSWORD").ok();
        let address = self.options.store.as_deref();
        match address.filter(|address| !address.is_empty()) {
            Some(address) => Ok(Location::server(address, password.as_deref())?),
            None => Ok(self.home()?.to_owned().into()),
        }
    }

    /// Opens the store, and creates it if there is none.
    pub(crate) fn open_store(&self) -> anyhow::Result<Store> {
        Ok(Store::open(self.store_location()?)?)
    }

    /// Opens the store for reading.
    pub(crate) fn open_store_read_only(&self) -> anyhow::Result<Store> {
        Ok(Store::open_read_only(self.store_location()?)?)
    }

    /// Reads the history of all that the store has.
    pub(crate) fn read_history(&self) -> anyhow::Result<HistorySnapshot> {
        let mut source = self.history_reader()?;
        source.add_bisections_of(self.home()?.to_owned());
        source.refresh()?;
        Ok(source.snapshot(1))
    }

    /// Opens the history of the store's results, without reading it.
    pub(crate) fn history_reader(&self) -> anyhow::Result<HistoryReader> {
        let mut source = HistoryReader::open(self.store_location()?)?;
        source.keep_summary_of(self.home()?);
        Ok(source)
    }

    /// Opens the lab of the data directory. MARVIN_QEMU may name its QEMU.
    pub(crate) fn open_lab(&self, options: LabOptions) -> anyhow::Result<Lab> {
        self.open_lab_of(self.exact_cpu()?, options)
    }

    /// The same with another CPU of exact machines.
    pub(crate) fn open_lab_of(&self, cpu: ExactCpu, options: LabOptions) -> anyhow::Result<Lab> {
        let options = LabOptions {
            qemu: named_qemu(),
            cpu,
            archives: self.config()?.settings.archives.clone(),
            patience: self.patience(),
            ..options
        };
        Ok(Lab::open(self.home()?, options)?)
    }

    /// Returns how long to wait for another process that measures in the data directory.
    pub(crate) fn patience(&self) -> Patience {
        Patience {
            limit: self.options.wait.unwrap_or_default(),
            say,
        }
    }

    /// Locks the data directory, so that no other process measures in it.
    pub(crate) fn lock_home(&self) -> anyhow::Result<HomeLock> {
        Ok(lab::lock_home(self.home()?, self.patience())?)
    }

    /// Returns whether the data directory is there and can only be read.
    pub(crate) fn is_read_only(&self) -> anyhow::Result<bool> {
        let home = self.home()?;
        Ok(home.exists() && !is_writable(home))
    }

    /// Returns the CPU of exact machines.
    pub(crate) fn exact_cpu(&self) -> anyhow::Result<ExactCpu> {
        match self.options.cpu {
            Some(cpu) => Ok(cpu),
            None => Ok(self.config()?.settings.cpu),
        }
    }

    /// Returns the words that choose the CPU again, on any host; none for the usual one.
    pub(crate) fn cpu_arguments(&self) -> anyhow::Result<Vec<String>> {
        let cpu = self.exact_cpu()?;
        Ok(if cpu == ExactCpu::default() {
            Vec::new()
        } else {
            vec!["--cpu".to_owned(), cpu.name().to_owned()]
        })
    }

    /// Returns Debian's archive, with its lists in the data directory.
    pub(crate) fn debian(&self) -> anyhow::Result<Debian> {
        Ok(self.archives()?.debian)
    }

    /// Returns all archives, with their lists in the data directory.
    pub(crate) fn archives(&self) -> anyhow::Result<Archives> {
        let settings = self.config()?.settings.archives.clone();
        let archives = Archives::new(self.home()?, settings, now);
        Ok(if self.is_read_only()? {
            archives.offline()
        } else {
            archives
        })
    }

    /// Says what came up about the lists of archives, with `--quiet` too: it is no progress.
    pub(crate) fn say_notices(&self, archives: &Archives) {
        for notice in archives.take_notices() {
            say(&notice.to_string());
        }
    }

    /// Prepares standard output, or the file of `--output`, for the answer.
    pub(crate) fn answer(&self, path: Option<&Path>) -> anyhow::Result<Answer> {
        Answer::open(path, self.options.color)
    }

    /// Starts a progress display.
    pub(crate) fn progress(&self) -> Progress {
        Progress::new(self.options.quiet)
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// Returns the name of a worker: this host's, and on a server's queue the data directory too,
    /// as a host may have several workers there.
    ///
    /// A worker takes back the jobs of its name when it starts. Hosts made from one image have one
    /// name and the same paths, so the name on a server also has what tells hosts apart.
    pub(crate) fn worker_name(&self) -> anyhow::Result<String> {
        Ok(match self.store_location()? {
            Location::Home(_) => service::machine_name(),
            Location::Server(_) => format!(
                "{}#{}:{}",
                service::machine_name(),
                machine::host_mark(),
                self.home()?.display()
            ),
        })
    }

    /// Returns whether a worker takes jobs from the queue; those of a server are on any host, and
    /// assumed.
    pub(crate) fn has_worker(&self) -> anyhow::Result<bool> {
        Ok(match self.store_location()? {
            Location::Home(home) => store::has_worker(&home),
            Location::Server(_) => true,
        })
    }

    /// Returns the command that starts this program for a job on this host, with this session's
    /// options.
    pub(crate) fn own_command(&self) -> anyhow::Result<Vec<std::ffi::OsString>> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut arguments = vec![
            program.into_os_string(),
            "--home".into(),
            self.home()?.into(),
        ];
        if let Some(file) = &self.options.config_file {
            arguments.extend(["--config-file".into(), file.into()]);
        }
        arguments.extend(self.machine_and_store_arguments()?);
        Ok(arguments)
    }

    /// Returns the options that another Marvin gets wherever it runs. The store is not among them
    /// if it is in the environment, which that one gets too and which `ps` does not show.
    pub(crate) fn machine_and_store_arguments(&self) -> anyhow::Result<Vec<std::ffi::OsString>> {
        let cpu = self.cpu_arguments()?;
        let mut arguments: Vec<std::ffi::OsString> = cpu.into_iter().map(Into::into).collect();
        if self.options.no_sandbox {
            arguments.push("--no-sandbox".into());
        }
        let inherited = std::env::var("MARVIN_STORE").ok();
        let address = self.options.store.as_deref();
        if let Some(address) = address.filter(|address| inherited.as_deref() != Some(address)) {
            arguments.extend(["--store".into(), address.into()]);
        }
        Ok(arguments)
    }
}

/// Returns the QEMU of MARVIN_QEMU.
pub(crate) fn named_qemu() -> Option<PathBuf> {
    std::env::var_os("MARVIN_QEMU").map(PathBuf::from)
}

/// Returns what a cell has, and opens it first if it is empty. An error leaves it empty.
fn open_once<T>(
    cell: &OnceLock<T>,
    open: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<&T> {
    match cell.get() {
        Some(opened) => Ok(opened),
        None => {
            let opened = open()?;
            Ok(cell.get_or_init(|| opened))
        }
    }
}

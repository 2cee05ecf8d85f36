//! Imports results of other suites into a store: a log directory of MMTests, a result matrix of
//! LKP-tests, files of any program whose format has a manifest.
//!
//! `foreign` parses the files. Here each iteration of a kernel becomes a run. Its build has no
//! image, its machine is of the kind `imported`, and its id is a hash of its content, so that the
//! same results are the same run. Runs are read and saved one after another, so that memory does
//! not grow with their number.

mod baseline;
mod error;
mod files;
#[cfg(test)]
mod files_tests;
pub mod foreign;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod golden_formats;
mod lkp;
mod mmtests;
mod profiles;
#[cfg(test)]
mod tests;
mod times;
mod tree;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use foreign::Foreign;
use model::{
    Build, BuildFile, BuildId, Direction, FILES, KernelName, Machine, MachineId, Origin, Run,
    RunId, UnixTime, imported_metric,
};
use sha2::{Digest, Sha256};
use store::{Artifact, HomeLock, Location, Store, StoreError};

use tree::{Walk, wrong};

pub use baseline::{BaselineBy, Kernels, order_kernels};
pub use error::ImportError;
pub use foreign::LeftOut;
pub use profiles::read_profiles;

/// The artifact with the stats of monitors that a suite computed itself: a JSON object of numbers.
pub const MONITOR_STATS: &str = "monitors.stats";

/// The artifact that lists the skipped data.
const LEFT_OUT: &str = "import.log";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignSuite {
    /// MMTests: `work/log`, or one run's directory in it.
    Mmtests,
    /// LKP-tests: a result directory, or any directory in it.
    Lkp,
    /// Result files of other programs, and directories of them.
    Files,
}

impl ForeignSuite {
    /// Returns the suite whose results these are, by the directories in them.
    #[must_use]
    pub fn recognise(paths: &[PathBuf]) -> Self {
        let [folder] = paths else { return Self::Files };
        let is_of = |find: &dyn Fn(&Path, &mut Walk, &mut Imported) -> bool| {
            folder.is_dir() && find(folder, &mut Walk::default(), &mut Imported::default())
        };
        let has_iterations = |folder: &Path, walk: &mut Walk, imported: &mut Imported| {
            mmtests::find(folder, walk, imported).is_ok()
        };
        let has_stats = |folder: &Path, walk: &mut Walk, imported: &mut Imported| {
            lkp::find(folder, walk, imported).is_ok_and(|commits| !commits.is_empty())
        };
        if is_of(&has_iterations) {
            Self::Mmtests
        } else if is_of(&has_stats) {
            Self::Lkp
        } else {
            Self::Files
        }
    }
}

/// What the user says of imported results.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions<'a> {
    /// The kernel of all results; of files only.
    pub kernel: Option<&'a str>,
    /// The machine of all results.
    pub host: Option<&'a str>,
    /// The track of all kernels: a history of its own.
    pub track: Option<&'a str>,
    /// Rows of which less or more is better, by name or its beginning up to a slash. Stored with
    /// the rows.
    pub lower: &'a [String],
    pub higher: &'a [String],
    /// Formats of files, in the order in which they are tried.
    pub formats: &'a [config::Format],
}

impl ImportOptions<'_> {
    /// Returns the direction that the user gives a row.
    fn direction(&self, row: &str) -> Option<Direction> {
        let means = |word: &&String| {
            row.strip_prefix(word.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // The longest name says most of this row.
        let longest = |words: &[String]| words.iter().filter(means).map(String::len).max();
        let (lower, higher) = (longest(self.lower), longest(self.higher));
        match lower.cmp(&higher) {
            Ordering::Greater => Some(Direction::LowerIsBetter),
            Ordering::Less => Some(Direction::HigherIsBetter),
            Ordering::Equal => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRun {
    pub id: RunId,
    /// The build that stands for its kernel.
    pub build: BuildId,
    pub machine: MachineId,
    /// What the machine is, in words.
    pub machine_summary: String,
    /// The kernel config that its suite names: kernels of different ones are no pair.
    pub config: Option<String>,
    /// The suite's name of the kernel: `6.1-vanilla`.
    pub kernel: String,
    /// The suite's names of kernel and run: `6.1-vanilla iter-0`.
    pub name: String,
    /// When it began; [`Run::NO_START`] if not known.
    pub started_unix: UnixTime,
    pub rows: usize,
    /// Whether it was stored already; then its rows stay.
    pub known: bool,
    /// What a stored run did not have and was given now: copies of /proc, stats of monitors.
    pub added: Vec<String>,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    pub runs: Vec<ImportedRun>,
    /// Skipped data, with the directory of each.
    pub left_out: Vec<(String, LeftOut)>,
    /// Start times that the suite did not store, with the directory of each, and what stands in
    /// for them.
    pub start_times: Vec<(String, String)>,
}

impl Imported {
    fn leave_out(&mut self, folder: &str, what: &str, why: impl Into<String>) {
        let what = what.escape_debug().to_string();
        self.left_out.push((
            folder.to_owned(),
            LeftOut {
                what,
                why: why.into(),
            },
        ));
    }
}

/// One run as its suite stored it.
struct ForeignRun {
    suite: &'static str,
    /// The suite's name of the kernel, and what identifies the kernel.
    kernel: String,
    origin: String,
    number: u64,
    name: String,
    /// Its directory, relative to the given one.
    folder: String,
    /// What stands in for a start time that the suite did not store.
    start_time: Option<String>,
    foreign: Foreign,
    /// Rows whose values add up over the files of a run.
    sums: BTreeSet<String>,
    /// Rows that are means of values over the files of a run, and the number of these values.
    means: BTreeMap<String, usize>,
}

/// Imports results of another suite into a store. Stored runs stay unchanged. `lock` takes the lock of
/// the data directory when there is something to import.
///
/// # Errors
/// If the paths hold no result of the suite, or the data directory cannot be used. Runs that were
/// saved by then stay.
pub fn import(
    lock: &dyn Fn() -> Result<HomeLock, StoreError>,
    location: &Location,
    suite: ForeignSuite,
    paths: &[PathBuf],
    options: &ImportOptions<'_>,
) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let mut walk = Walk::default();
    if suite == ForeignSuite::Files {
        let found = files::find(paths, &mut walk)?;
        save_each(lock, location, options, &mut imported, |keep| {
            files::read(found, options, keep)
        })?;
        return Ok(imported);
    }
    for folder in paths {
        let folder = whole_folder(folder)?;
        if suite == ForeignSuite::Mmtests {
            let found = mmtests::find(&folder, &mut walk, &mut imported)?;
            save_each(lock, location, options, &mut imported, |keep| {
                mmtests::read(&found, &mut walk, options.formats, keep)
            })?;
        } else {
            let found = lkp::find(&folder, &mut walk, &mut imported)?;
            save_each(lock, location, options, &mut imported, |keep| {
                lkp::read(&folder, &found, keep)
            })?;
        }
    }
    Ok(imported)
}

fn whole_folder(folder: &Path) -> Result<PathBuf, ImportError> {
    if !folder.is_dir() {
        let what = if folder.exists() {
            "not a directory"
        } else {
            "there is no such directory"
        };
        return Err(wrong(folder, what));
    }
    std::path::absolute(folder).map_err(|error| wrong(folder, error.to_string()))
}

/// Receives each run, and skipped data beside runs.
type Keep<'a> = dyn FnMut(Part) -> Result<(), ImportError> + 'a;

/// A part of an import.
enum Part {
    Run(Box<ForeignRun>),
    /// Skipped data: directory, what, why.
    LeftOut(String, &'static str, String),
}

/// Opens the store and saves each run as soon as it was read.
fn save_each(
    lock: &dyn Fn() -> Result<HomeLock, StoreError>,
    location: &Location,
    options: &ImportOptions<'_>,
    imported: &mut Imported,
    read: impl FnOnce(&mut Keep<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let _lock = lock()?;
    let store = Store::open(location)?;
    read(&mut |part| match part {
        Part::Run(run) => keep(&store, *run, options, imported),
        Part::LeftOut(folder, what, why) => {
            imported.leave_out(&folder, what, why);
            Ok(())
        }
    })
}

/// Gives rows their unit and direction, and the run the user's machine. Returns the directions that
/// the user gave, as text.
fn declare(suite: &str, foreign: &mut Foreign, options: &ImportOptions<'_>) -> String {
    let mut given = String::new();
    for result in &mut foreign.results {
        let name = &result.workload;
        let declared = result
            .declared
            .get_or_insert_with(|| imported_metric(suite, name));
        if let Some(direction) = options.direction(name)
            && declared.direction != Some(direction)
        {
            declared.direction = Some(direction);
            given.extend([name.as_str(), &format!("\t{direction:?}\n")]);
        }
    }
    if let Some(host) = options.host {
        foreign.environment.retain(|(name, _)| name != "host");
        foreign
            .environment
            .push(("host".to_owned(), host.to_owned()));
    }
    given
}

/// Saves a run, with its copies of monitors and its skipped data.
fn keep(
    store: &Store,
    found: ForeignRun,
    options: &ImportOptions<'_>,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let ForeignRun {
        suite,
        kernel,
        origin,
        number,
        name,
        folder,
        start_time,
        mut foreign,
        sums: _,
        means: _,
    } = found;
    foreign.left_out.sort();
    let given = declare(suite, &mut foreign, options);
    let mut log: String = foreign
        .left_out
        .iter()
        .map(|LeftOut { what, why }| format!("{what}: {why}\n"))
        .collect();
    imported.left_out.extend(
        foreign
            .left_out
            .iter()
            .map(|left| (folder.clone(), left.clone())),
    );
    if foreign.results.is_empty() {
        imported.leave_out(&folder, "run", "no results in it: not imported");
        return Ok(());
    }
    // A start that the suite stored is part of the identity; a file's modification is not.
    let stored_start = foreign.started_unix.filter(|_| start_time.is_none());
    if let Some(start_time) = start_time {
        log.extend(["start time: ", &start_time, "\n"]);
        imported.start_times.push((folder, start_time));
    }
    let build = build(suite, &kernel, origin, options.track)?;
    let machine = machine(suite, &foreign)?;
    let mut artifacts = monitors(&foreign, &mut log);
    artifacts.push((LEFT_OUT.to_owned(), log.into_bytes()));
    let rows = foreign.results.len();
    let config = foreign
        .environment
        .iter()
        .find(|(name, _)| name == "config");
    let config = config.map(|(_, config)| config.clone());
    let content = content(&build, &machine, number, &foreign, &given);
    let run = Run {
        id: stored_id(store, &content, stored_start)?,
        build: build.id.clone(),
        machine: machine.id.clone(),
        suite: suite.to_owned(),
        seed: number,
        started_unix: foreign.started_unix.unwrap_or(Run::NO_START),
        environment: foreign.environment,
        results: foreign.results,
    };
    store.save_build(&build)?;
    store.save_machine(&machine)?;
    let artifacts: Vec<Artifact<'_>> = artifacts
        .iter()
        .map(|(name, bytes)| Artifact { name, bytes })
        .collect();
    let (known, added) = match store.save_run(&run, &artifacts) {
        Ok(()) => (false, Vec::new()),
        Err(StoreError::RunExists(_)) => (true, add_missing(store, &run.id, &artifacts)?),
        Err(error) => return Err(error.into()),
    };
    let started_unix = run.started_unix;
    imported.runs.push(ImportedRun {
        id: run.id,
        build: build.id,
        machine: machine.id,
        machine_summary: machine.summary,
        config,
        kernel,
        name,
        started_unix,
        rows,
        known,
        added,
    });
    Ok(())
}

/// Returns a run's copies of /proc and stats of monitors, by the names of their artifacts.
fn monitors(foreign: &Foreign, log: &mut String) -> Vec<(String, Vec<u8>)> {
    let mut artifacts: Vec<(String, Vec<u8>)> = Vec::new();
    for (test, copies) in &foreign.monitors {
        // Artifact names are stricter than test names.
        if test
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            && test.len() < 80
        {
            artifacts.push((
                format!("{test}.monitors"),
                ingest::monitors_to_bytes(copies),
            ));
        } else {
            log.extend([
                test.escape_debug().to_string().as_str(),
                ": its monitors: no name for a file\n",
            ]);
        }
    }
    if !foreign.stats.is_empty() {
        let stats = serde_json::to_vec(&foreign.stats).unwrap_or_default();
        artifacts.push((MONITOR_STATS.to_owned(), stats));
    }
    artifacts
}

/// Adds to a stored run what an earlier Marvin did not keep of the same results, such as the stats of
/// monitors; returns the names.
fn add_missing(
    store: &Store,
    run: &RunId,
    artifacts: &[Artifact<'_>],
) -> Result<Vec<String>, ImportError> {
    let mut added = Vec::new();
    for artifact in artifacts {
        if store.add_artifact(run, *artifact)? {
            added.push(artifact.name.to_owned());
        }
    }
    Ok(added)
}

fn hash(text: &str) -> String {
    model::hexadecimal(&Sha256::digest(text))
}

/// Returns a build without an image: the kernel as its suite names it.
fn build(
    suite: &str,
    kernel: &str,
    origin: String,
    track: Option<&str>,
) -> Result<Build, ImportError> {
    let of_track = track.map_or_else(String::new, |track| format!("\ntrack {track}"));
    let identity = format!("imported\n{suite}\n{kernel}\n{origin}{of_track}");
    let id = BuildId::from_hex(&hash(&identity))?;
    let name = KernelName::imported(suite, kernel, track);
    let image = BuildFile {
        path: PathBuf::new(),
        sha256: String::new(),
    };
    Ok(Build {
        id,
        name,
        version: kernel.to_owned(),
        origin: Origin::Described(origin),
        image,
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

/// When a run started.
struct RunStart {
    time: Option<UnixTime>,
    /// What stands in for a time that its files do not tell.
    remark: Option<String>,
}

impl RunStart {
    /// Takes the modification of the run's files.
    fn from_modification(modified: Option<UnixTime>, missing: &str, file: &str) -> Self {
        let remark = match modified {
            Some(_) => format!("{missing}; Marvin takes the modification time of {file}"),
            None => format!("{missing}, and {file} has no modification time: the run has no date"),
        };
        Self {
            time: modified,
            remark: Some(remark),
        }
    }
}

/// Returns the machine as far as its suite describes it, without properties of the kernel.
fn machine(suite: &str, foreign: &Foreign) -> Result<Machine, ImportError> {
    let of_kernel = ["kernel", "config", "compiler"];
    // Programs describe a machine each in its own way, or not at all.
    let is_of_machine = |name: &str| match suite {
        FILES => name == "host",
        _ => !of_kernel.contains(&name),
    };
    let mut fingerprint: Vec<(String, String)> = foreign
        .environment
        .iter()
        .filter(|(name, _)| is_of_machine(name))
        .cloned()
        .collect();
    fingerprint.push(("suite".to_owned(), suite.to_owned()));
    fingerprint.sort();
    let text: String = fingerprint
        .iter()
        .map(|(name, value)| format!("{name}\t{value}\n"))
        .collect();
    let id = MachineId::from_hex(&hash(&format!("imported\n{text}")))?;
    let host_fact = |name: &str| {
        fingerprint
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let host = host_fact("host").unwrap_or_else(|| "a host without a name".to_owned());
    let summary = [
        Some(host),
        host_fact("cpu"),
        host_fact("processors").map(|count| format!("{count} processors")),
    ];
    let summary = format!(
        "{} ({suite})",
        summary.into_iter().flatten().collect::<Vec<_>>().join(", ")
    );
    Ok(Machine::imported(id, summary, fingerprint))
}

/// Returns what identifies a run beside its start: the results, not their directory, and what the
/// user says of them. A second import that gives a direction is another run, which counts.
fn content(
    build: &Build,
    machine: &Machine,
    number: u64,
    foreign: &Foreign,
    given: &str,
) -> String {
    let mut text = format!("imported\n{}\n{}\n{number}\n", build.id, machine.id);
    for result in &foreign.results {
        let samples: Vec<String> = result
            .samples
            .iter()
            .map(|sample| format!("{:016x}", sample.to_bits()))
            .collect();
        text.extend([result.workload.as_str(), "\t", &samples.join("\t"), "\n"]);
    }
    text.push_str(given);
    text
}

/// Returns the id of a run: a hash of its content and of the start that its suite stored, as a
/// coarse clock gives equal values on several days. Stores from before the start was part of it
/// keep their ids.
fn stored_id(store: &Store, content: &str, start: Option<UnixTime>) -> Result<RunId, ImportError> {
    let by_content = RunId::from_hex(&hash(content))?;
    let Some(start) = start else {
        return Ok(by_content);
    };
    let is_known = match store.run(&by_content) {
        Ok(run) => run.started_unix == start,
        Err(StoreError::Lookup(_)) => false,
        Err(error) => return Err(error.into()),
    };
    if is_known {
        return Ok(by_content);
    }
    let dated = format!("{content}start\t{}\n", start.seconds());
    Ok(RunId::from_hex(&hash(&dated))?)
}

//! Imports results of other suites into a store: a log directory of MMTests, a result matrix of LKP-tests.
//!
//! `ingest` parses the files. Here each iteration of a kernel becomes a run. Its build has no image, its machine is of
//! the kind `imported`, and its id is a hash of its content, so that the same results are the same run.

mod error;
#[cfg(test)]
mod golden;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingest::{Foreign, LeftOut, LkpResultPath};
use model::{
    Build, BuildFile, BuildId, KernelName, LKP, MMTESTS, Machine, MachineId, Origin, Run, RunId, imported_metric,
};
use sha2::{Digest, Sha256};
use store::{Artefact, HomeLock, Location, Store, StoreError};

use tree::wrong;

pub use error::ImportError;

/// The artefact that lists the skipped data.
const LEFT_OUT: &str = "import.log";

/// Another suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignSuite {
    /// MMTests: `work/log`, or one run's directory in it.
    Mmtests,
    /// LKP-tests: a result directory, or any directory in it.
    Lkp,
}

/// An imported run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRun {
    /// Its id.
    pub id: RunId,
    /// The build that stands for its kernel.
    pub build: BuildId,
    /// The suite's name of the kernel.
    pub kernel: String,
    /// The suite's number of the run.
    pub number: u64,
    /// Its rows.
    pub rows: usize,
    /// Whether it was stored already; then nothing was changed.
    pub known: bool,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// The runs.
    pub runs: Vec<ImportedRun>,
    /// Skipped data, with the directory of each.
    pub left_out: Vec<(String, LeftOut)>,
}

/// One run as its suite stored it.
struct ForeignRun {
    suite: &'static str,
    /// The suite's name of the kernel, and what identifies the kernel.
    kernel: String,
    origin: String,
    number: u64,
    /// Its directory, relative to the given one.
    folder: String,
    foreign: Foreign,
}

/// Imports results of another suite into a store. Stored runs stay unchanged.
///
/// # Errors
/// If the directory is no result of the suite, or the data directory cannot be used. Runs that were saved by then stay.
pub fn import(home: &Path, location: &Location, suite: ForeignSuite, folder: &Path) -> Result<Imported, ImportError> {
    if !folder.is_dir() {
        return Err(wrong(folder, "there is no such folder"));
    }
    let mut imported = Imported::default();
    let found = match suite {
        ForeignSuite::Mmtests => mmtests(folder, &mut imported)?,
        ForeignSuite::Lkp => lkp(folder, &mut imported)?,
    };
    let _lock = HomeLock::acquire(home)?;
    let store = Store::open(location)?;
    for one in found {
        keep(&store, one, &mut imported)?;
    }
    Ok(imported)
}

/// Saves a run, with its copies of monitors and its skipped data.
fn keep(store: &Store, found: ForeignRun, imported: &mut Imported) -> Result<(), ImportError> {
    let ForeignRun { suite, kernel, origin, number, folder, mut foreign } = found;
    foreign.results.iter_mut().for_each(|result| result.declared = Some(imported_metric(suite, &result.workload)));
    let mut log: String = foreign.left_out.iter().map(|LeftOut { what, why }| format!("{what}: {why}\n")).collect();
    imported.left_out.extend(foreign.left_out.iter().map(|left| (folder.clone(), left.clone())));
    if foreign.results.is_empty() {
        let why = "no results in it: no run was made of it".to_owned();
        imported.left_out.push((folder.clone(), LeftOut { what: folder, why }));
        return Ok(());
    }
    let build = build(suite, &kernel, origin)?;
    let machine = machine(suite, &foreign)?;
    let mut artefacts: Vec<(String, Vec<u8>)> = Vec::new();
    for (test, copies) in &foreign.monitors {
        // Artefact names are stricter than test names.
        if test.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) && test.len() < 80 {
            artefacts.push((format!("{test}.monitors"), ingest::monitors_to_bytes(copies)));
        } else {
            log.extend([test.escape_debug().to_string().as_str(), ": its monitors: no name for a file\n"]);
        }
    }
    artefacts.push((LEFT_OUT.to_owned(), log.into_bytes()));
    let rows = foreign.results.len();
    let run = Run {
        id: run_id(&build, &machine, number, &foreign)?,
        build: build.id.clone(),
        machine: machine.id.clone(),
        suite: suite.to_owned(),
        seed: number,
        started_unix: foreign.started_unix.unwrap_or(0),
        environment: foreign.environment,
        results: foreign.results,
    };
    store.save_build(&build)?;
    store.save_machine(&machine)?;
    let artefacts: Vec<Artefact<'_>> = artefacts.iter().map(|(name, bytes)| Artefact { name, bytes }).collect();
    let known = match store.save_run(&run, &artefacts) {
        Ok(()) => false,
        Err(StoreError::RunExists(_)) => true,
        Err(error) => return Err(error.into()),
    };
    imported.runs.push(ImportedRun { id: run.id, build: build.id, kernel, number, rows, known });
    Ok(())
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a build without an image: the kernel as its suite names it.
fn build(suite: &str, kernel: &str, origin: String) -> Result<Build, ImportError> {
    let id = BuildId::from_hex(&hash(&format!("imported\n{suite}\n{kernel}\n{origin}")))?;
    let image = BuildFile { path: PathBuf::new(), sha256: String::new() };
    Ok(Build {
        id,
        name: KernelName::Imported(format!("{suite}/{kernel}")),
        version: kernel.to_owned(),
        origin: Origin::Described(origin),
        image,
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

/// Returns the machine as far as its suite describes it, without properties of the kernel.
fn machine(suite: &str, foreign: &Foreign) -> Result<Machine, ImportError> {
    let of_kernel = ["kernel", "config", "compiler"];
    let mut fingerprint: Vec<(String, String)> =
        foreign.environment.iter().filter(|(name, _)| !of_kernel.contains(&name.as_str())).cloned().collect();
    fingerprint.push(("suite".to_owned(), suite.to_owned()));
    fingerprint.sort();
    let text: String = fingerprint.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect();
    let id = MachineId::from_hex(&hash(&format!("imported\n{text}")))?;
    let said = |name: &str| fingerprint.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let host = said("host").unwrap_or_else(|| "a host without a name".to_owned());
    let summary = [Some(host), said("cpu"), said("processors").map(|count| format!("{count} processors"))];
    let summary = format!("{} ({suite})", summary.into_iter().flatten().collect::<Vec<_>>().join(", "));
    Ok(Machine::imported(id, summary, fingerprint))
}

/// Returns an id that depends only on the results, not on their directory.
fn run_id(build: &Build, machine: &Machine, number: u64, foreign: &Foreign) -> Result<RunId, ImportError> {
    let mut text = format!("imported\n{}\n{}\n{number}\n", build.id, machine.id);
    for result in &foreign.results {
        let samples: Vec<String> = result.samples.iter().map(|sample| format!("{:016x}", sample.to_bits())).collect();
        text.extend([result.workload.as_str(), "\t", &samples.join("\t"), "\n"]);
    }
    Ok(RunId::from_hex(&hash(&text))?)
}

/// Finds the iterations of runs of MMTests.
fn mmtests(folder: &Path, imported: &mut Imported) -> Result<Vec<ForeignRun>, ImportError> {
    let absolute = std::path::absolute(folder).map_err(|error| wrong(folder, error.to_string()))?;
    let mut found = iterations(&absolute, imported)?;
    if found.is_empty() {
        for entry in tree::entries(&absolute)? {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(iterations(&entry.path(), imported)?);
            }
        }
    }
    if found.is_empty() {
        let what = "no log folder of MMTests: neither it nor a folder in it holds iter-0, iter-1 and so on; give work/log \
                    or work/log/RUNNAME";
        return Err(wrong(folder, what));
    }
    Ok(found)
}

/// Reads `iter-N` of one run.
fn iterations(run: &Path, imported: &mut Imported) -> Result<Vec<ForeignRun>, ImportError> {
    let mut found = Vec::new();
    for entry in tree::entries(run)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix("iter-").and_then(|number| number.parse::<u64>().ok()) else { continue };
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let Some(kernel) = run.file_name().and_then(|name| name.to_str()).filter(|name| is_kernel(name)) else {
            let what = run.file_name().unwrap_or_default().to_string_lossy().escape_debug().to_string();
            let why = "the name of this run is not fit to be a kernel's: letters, digits and .+-_~ only".to_owned();
            imported.left_out.push((what.clone(), LeftOut { what, why }));
            return Ok(Vec::new());
        };
        let mut foreign = ingest::mmtests(&tree::read(&entry.path(), ingest::mmtests_reads)?);
        let release = foreign.environment.iter().find(|(name, _)| name == "kernel").map(|(_, release)| release.clone());
        let origin = match release {
            Some(release) => format!("run {kernel} of MMTests, Linux {release}"),
            None => format!("run {kernel} of MMTests"),
        };
        foreign.left_out.sort();
        let folder = format!("{kernel}/{name}");
        found.push(ForeignRun { suite: MMTESTS, kernel: kernel.to_owned(), origin, number, folder, foreign });
    }
    found.sort_by_key(|found| found.number);
    Ok(found)
}

fn is_kernel(name: &str) -> bool {
    (1..=80).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-_~".contains(&byte))
}

/// Finds the results of LKP-tests.
fn lkp(folder: &Path, imported: &mut Imported) -> Result<Vec<ForeignRun>, ImportError> {
    let absolute = std::path::absolute(folder).map_err(|error| wrong(folder, error.to_string()))?;
    // Run directories by the directory of their commit, and whether that holds a matrix.
    let mut commits: BTreeMap<PathBuf, (Vec<u64>, bool)> = BTreeMap::new();
    for file in tree::files(&absolute)? {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".xz")).unwrap_or(name);
        let of = absolute.join(&file).parent().map(Path::to_owned).unwrap_or_default();
        match (number_of(&of), name) {
            (Some(number), "stats.json" | "matrix.json") => {
                let commit = of.parent().map(Path::to_owned).unwrap_or_default();
                let runs = &mut commits.entry(commit).or_default().0;
                if !runs.contains(&number) {
                    runs.push(number);
                }
            }
            (None, "matrix.json") => commits.entry(of).or_default().1 = true,
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (commit, (runs, _)) in &commits {
        let shown = commit.strip_prefix(&absolute).unwrap_or(commit).display().to_string().escape_debug().to_string();
        let shown = if shown.is_empty() { ".".to_owned() } else { shown };
        let mut left = |what: &str, why: String| {
            imported.left_out.push((shown.clone(), LeftOut { what: what.to_owned(), why }));
        };
        let Some(place) = commit.to_str().and_then(LkpResultPath::of) else {
            left("matrix.json", "not at …/TEST/PARAMETERS/HOST/ROOTFS/CONFIG/COMPILER/COMMIT".to_owned());
            continue;
        };
        for (number, foreign) in lkp_runs(commit, &place, runs, &mut left) {
            let LkpResultPath { commit, config, compiler, .. } = &place;
            let origin = format!("commit {commit} as LKP-tests built it, {config}, {compiler}");
            let (kernel, folder) = (short(commit), format!("{shown}/{number}"));
            found.push(ForeignRun { suite: LKP, kernel, origin, number, folder, foreign });
        }
    }
    if found.is_empty() && imported.left_out.is_empty() {
        let what = "no results of LKP-tests: no folder in it holds stats.json or matrix.json";
        return Err(wrong(folder, what));
    }
    Ok(found)
}

/// Reads the runs of one commit: each directory's own stats, and columns of the matrix for runs without a directory.
fn lkp_runs(
    commit: &Path,
    place: &LkpResultPath,
    runs: &[u64],
    left: &mut dyn FnMut(&str, String),
) -> Vec<(u64, Foreign)> {
    let mut found: BTreeMap<u64, Foreign> = BTreeMap::new();
    for number in runs {
        let folder = commit.join(number.to_string());
        let file =
            ["stats.json", "matrix.json"].into_iter().find_map(|name| Some((name, tree::document(&folder, name)?)));
        let Some((name, read)) = file else { continue };
        match read.and_then(|json| ingest::lkp_run(place, &json)) {
            Ok(foreign) => drop(found.insert(*number, foreign)),
            Err(why) => left(&format!("{number}/{name}"), why),
        }
    }
    match tree::document(commit, "matrix.json").map(|read| read.and_then(|json| ingest::lkp_columns(place, &json))) {
        None => {}
        Some(Ok(columns)) => columns.into_iter().for_each(|(number, foreign)| {
            found.entry(number).or_insert(foreign);
        }),
        // Used only for runs without a directory.
        Some(Err(_)) if !found.is_empty() => {}
        Some(Err(why)) => left("matrix.json", why),
    }
    found.into_iter().collect()
}

/// Returns the number of a run's directory.
fn number_of(folder: &Path) -> Option<u64> {
    let name = folder.file_name()?.to_str()?;
    (name.len() <= 6 && name.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.parse().ok()).flatten()
}

/// Returns a commit's hash, abbreviated; a text that is no hash stays whole.
fn short(commit: &str) -> String {
    let is_hash = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { commit[..12].to_owned() } else { commit.to_owned() }
}

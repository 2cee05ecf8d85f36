//! Finds and reads the results of LKP-tests:
//! `…/TEST/PARAMETERS/HOST/ROOTFS/CONFIG/COMPILER/COMMIT/N/stats.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::foreign::{self, Foreign, LkpResultPath};
use model::LKP;

use super::tree::{FILE_MAX, Found, Walk, modified_unix, unpack, wrong};
use super::{ForeignRun, ImportError, Imported, Keep, Part, RunStart};

/// Most bytes of `job.yaml`.
const JOB_MAX: u64 = 1 << 20;

/// The results of a commit: a document for each run's directory, and a matrix of all.
#[derive(Default)]
pub(crate) struct Commit {
    runs: BTreeMap<u64, PathBuf>,
    matrix: Option<PathBuf>,
}

/// Commits by their directories.
pub(crate) type Commits = BTreeMap<PathBuf, Commit>;

fn is_document(name: &str) -> bool {
    ["stats.json", "matrix.json"].contains(&name.rsplit('/').next().unwrap_or(name))
}

/// Finds the documents of all runs.
pub(crate) fn find(
    folder: &Path,
    walk: &mut Walk,
    imported: &mut Imported,
) -> Result<Commits, ImportError> {
    let mut commits = Commits::new();
    for Found { path, name, fault } in walk.files(folder, is_document)? {
        let result_folder = path.parent().map(Path::to_owned).unwrap_or_default();
        if let Some(fault) = fault {
            imported.leave_out(&below(folder, &result_folder), &name_of(&path), fault);
            continue;
        }
        let is_matrix = name.ends_with("matrix.json");
        match (number_of(&result_folder), is_matrix) {
            (Some(number), _) => {
                let commit = result_folder
                    .parent()
                    .map(Path::to_owned)
                    .unwrap_or_default();
                let known = commits
                    .entry(commit)
                    .or_default()
                    .runs
                    .entry(number)
                    .or_insert_with(|| path.clone());
                // The order of names puts a matrix, which has each value over time, before the
                // stats.
                if !is_matrix && is_document_of(known, "matrix.json") {
                    *known = path;
                }
            }
            (None, true) => drop(
                commits
                    .entry(result_folder)
                    .or_default()
                    .matrix
                    .get_or_insert(path),
            ),
            (None, false) => {}
        }
    }
    if commits.is_empty() && imported.left_out.is_empty() {
        let what = "no results of LKP-tests: no directory in it holds stats.json or matrix.json\nhint: name a directory \
                    such as /lkp/result/TEST";
        return Err(wrong(folder, what));
    }
    Ok(commits)
}

fn is_document_of(path: &Path, name: &str) -> bool {
    path.file_name()
        .is_some_and(|file| file.to_string_lossy().starts_with(name))
}

/// Reads runs one after another: each directory's own stats, and columns of the matrix for runs
/// without a directory.
pub(crate) fn read(
    folder: &Path,
    commits: &Commits,
    keep: &mut Keep<'_>,
) -> Result<(), ImportError> {
    for (path, commit) in commits {
        let shown = below(folder, path);
        let Some(place) = path.to_str().and_then(LkpResultPath::parse) else {
            let why = "not below …/TEST/PARAMETERS/HOST/ROOTFS/CONFIG/COMPILER/COMMIT".to_owned();
            keep(Part::LeftOut(shown, "results", why))?;
            continue;
        };
        let mut done: Vec<u64> = Vec::new();
        for (number, file) in &commit.runs {
            match unpack(file, FILE_MAX).and_then(|json| foreign::lkp_run(&place, &json)) {
                Ok(foreign) => {
                    done.push(*number);
                    let start = start_of(file);
                    keep(Part::Run(Box::new(run(
                        &place,
                        (*number, &shown),
                        start,
                        foreign,
                    ))))?;
                }
                Err(why) => {
                    keep(Part::LeftOut(
                        format!("{shown}/{number}"),
                        "results",
                        format!("{}: {why}", name_of(file)),
                    ))?;
                }
            }
        }
        let Some(file) = &commit.matrix else { continue };
        match unpack(file, FILE_MAX).and_then(|json| foreign::lkp_columns(&place, &json)) {
            Ok(columns) => {
                // `done` is sorted, as the runs are.
                for (number, foreign) in columns
                    .into_iter()
                    .filter(|(number, _)| done.binary_search(number).is_err())
                {
                    let start = RunStart::from_modification(
                        modified_unix(file),
                        "no directory with job.yaml",
                        &name_of(file),
                    );
                    keep(Part::Run(Box::new(run(
                        &place,
                        (number, &shown),
                        start,
                        foreign,
                    ))))?;
                }
            }
            // Used only for runs without a directory.
            Err(_) if !done.is_empty() => {}
            Err(why) => keep(Part::LeftOut(
                shown,
                "results",
                format!("{}: {why}", name_of(file)),
            ))?,
        }
    }
    Ok(())
}

fn start_of(stats: &Path) -> RunStart {
    let job = stats.with_file_name("job.yaml");
    match unpack(&job, JOB_MAX)
        .ok()
        .and_then(|job| foreign::lkp_started(&job))
    {
        Some(started) => RunStart {
            time: Some(started),
            remark: None,
        },
        None => RunStart::from_modification(
            modified_unix(stats),
            "no start_time in job.yaml",
            &name_of(stats),
        ),
    }
}

fn run(
    place: &LkpResultPath,
    (number, folder): (u64, &str),
    start: RunStart,
    foreign: Foreign,
) -> ForeignRun {
    let LkpResultPath {
        test,
        commit,
        config,
        compiler,
        ..
    } = place;
    let origin = format!("commit {commit} as LKP-tests built it, {config}, {compiler}");
    let kernel = short(commit);
    let name = format!("{kernel} {test} run {number}");
    let foreign = Foreign {
        started_unix: start.time,
        ..foreign
    };
    ForeignRun {
        suite: LKP,
        kernel,
        origin,
        number,
        name,
        folder: format!("{folder}/{number}"),
        start_time: start.remark,
        foreign,
        sums: BTreeSet::new(),
        means: BTreeMap::new(),
    }
}

fn name_of(file: &Path) -> String {
    file.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .escape_debug()
        .to_string()
}

/// Returns a directory relative to the imported one.
fn below(top: &Path, folder: &Path) -> String {
    let shown = folder
        .strip_prefix(top)
        .unwrap_or(folder)
        .display()
        .to_string()
        .escape_debug()
        .to_string();
    if shown.is_empty() {
        ".".to_owned()
    } else {
        shown
    }
}

/// Returns the number of a run's directory.
fn number_of(folder: &Path) -> Option<u64> {
    let name = folder.file_name()?.to_str()?;
    (name.len() <= 6 && name.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| name.parse().ok())
        .flatten()
}

/// Returns a commit's hash, abbreviated; a text that is no hash stays whole.
fn short(commit: &str) -> String {
    let is_hash = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash {
        commit[..12].to_owned()
    } else {
        commit.to_owned()
    }
}

//! Finds and reads the iterations of runs of MMTests: `work/log/RUNNAME/iter-N`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use config::Format;
use model::MMTESTS;

use super::foreign;
use super::tree::{Entry, FILE_MAX, Kind, RUN_MAX, Walk, describe, modified_unix, unpack, wrong};
use super::{ForeignRun, ImportError, Imported, Keep, Part, RunStart};

/// An iteration of a run.
pub(crate) struct Iteration {
    path: PathBuf,
    kernel: String,
    number: u64,
}

/// Finds iterations in a run's directory, or in the directories of runs below it.
pub(crate) fn find(
    folder: &Path,
    walk: &mut Walk,
    imported: &mut Imported,
) -> Result<Vec<Iteration>, ImportError> {
    let entries = walk.entries(folder)?;
    let mut found = iterations(folder, entries.iter(), imported);
    if found.is_empty() {
        for run in entries.iter().filter(|entry| entry.kind == Kind::Folder) {
            found.extend(iterations(
                &run.path,
                walk.entries(&run.path)?.iter(),
                imported,
            ));
        }
    }
    if found.is_empty() {
        let what = "no log directory of MMTests: neither it nor a directory in it holds iter-0, iter-1 and so on\nhint: name \
                    work/log or work/log/RUNNAME";
        return Err(wrong(folder, what));
    }
    Ok(found)
}

/// Returns the iterations of one run.
fn iterations<'a>(
    run: &Path,
    entries: impl Iterator<Item = &'a Entry>,
    imported: &mut Imported,
) -> Vec<Iteration> {
    let mut found = Vec::new();
    for Entry { path, name, kind } in entries {
        let Some(number) = name
            .strip_prefix("iter-")
            .and_then(|number| number.parse::<u64>().ok())
        else {
            continue;
        };
        let shown = run.file_name().unwrap_or_default().to_string_lossy();
        let Some(kernel) = run
            .file_name()
            .and_then(|name| name.to_str())
            .filter(|name| is_kernel(name))
        else {
            let why = "Marvin takes the directory for the kernel's name, of at most 80 letters, digits and .+-_~";
            imported.leave_out(&shown.escape_debug().to_string(), &shown, why);
            return Vec::new();
        };
        match kind {
            Kind::Folder => found.push(Iteration {
                path: path.clone(),
                kernel: kernel.to_owned(),
                number,
            }),
            kind => imported.leave_out(kernel, name, describe(*kind)),
        }
    }
    found.sort_by_key(|found| found.number);
    found
}

fn is_kernel(name: &str) -> bool {
    (1..=80).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".+-_~".contains(&byte))
}

/// Reads iterations one after another.
pub(crate) fn read(
    found: &[Iteration],
    walk: &mut Walk,
    formats: &[Format],
    keep: &mut Keep<'_>,
) -> Result<(), ImportError> {
    for Iteration {
        path,
        kernel,
        number,
    } in found
    {
        let files = walk.files(path, |_| true)?;
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let mut room = RUN_MAX;
        let mut first = None;
        let mut foreign = foreign::mmtests(&names, formats, &mut |file| {
            let file = &files[file];
            if let Some(fault) = file.fault {
                return Err(fault.to_owned());
            }
            if room < FILE_MAX {
                return Err(format!(
                    "the files of this run hold more than {} MiB",
                    RUN_MAX >> 20
                ));
            }
            let bytes = unpack(&file.path, FILE_MAX)?;
            room -= bytes.len() as u64;
            first = first.into_iter().chain(modified_unix(&file.path)).min();
            Ok(bytes)
        });
        let release = foreign
            .environment
            .iter()
            .find(|(name, _)| name == "kernel")
            .map(|(_, release)| release.clone());
        let origin = match release {
            Some(release) => format!("run {kernel} of MMTests, Linux {release}"),
            None => format!("run {kernel} of MMTests"),
        };
        let mut start_time = None;
        if foreign.started_unix.is_none() {
            let missing = "tests-timestamp has no start time";
            let start = RunStart::from_modification(first, missing, "its first file");
            foreign.started_unix = start.time;
            start_time = start.remark;
        }
        let name = format!("{kernel} iter-{number}");
        let folder = format!("{kernel}/iter-{number}");
        let kernel = kernel.clone();
        let number = *number;
        let run = ForeignRun {
            suite: MMTESTS,
            kernel,
            origin,
            number,
            name,
            folder,
            start_time,
            foreign,
            sums: BTreeSet::new(),
            means: BTreeMap::new(),
        };
        keep(Part::Run(Box::new(run)))?;
    }
    Ok(())
}

//! Builds a benchmark that is a program of the source: `perf`, or a selftest. Behind walls, like
//! kernels, as the Makefile is the work of others.

use std::fs;
use std::path::{Path, PathBuf};

use subprocess::Walls;

use super::{ProgramSource, SourceText};
use crate::folder::sha256;
use crate::source::{Program, Repository, SourceError, WorkTree, first_error};
use crate::{BuildCache, BuildEvent, KernelError};

/// How long make may take (s).
const DEADLINE_S: u64 = 1800;
/// Programs of so many sources stay.
const FOLDERS_MAX: usize = 4;
/// How the directories of programs begin, in the workshop.
const PREFIX: &str = "programs-";
/// What `perf bench` does without, so that a host needs no library for it: all that reads symbols
/// and scripts (tools/perf/Makefile.perf lists these variables). Static, so that the guest needs
/// none either.
const PERF_VARIABLES: [&str; 26] = [
    "WERROR=0",
    "NO_LIBELF=1",
    "NO_LIBTRACEEVENT=1",
    "NO_LIBPYTHON=1",
    "NO_LIBPERL=1",
    "NO_LIBUNWIND=1",
    "NO_SLANG=1",
    "NO_GTK2=1",
    "NO_LIBNUMA=1",
    "NO_LIBAUDIT=1",
    "NO_LIBBPF=1",
    "NO_LIBCRYPTO=1",
    "NO_LIBDW_DWARF_UNWIND=1",
    "NO_LZMA=1",
    "NO_LIBZSTD=1",
    "NO_LIBCAP=1",
    "NO_JVMTI=1",
    "NO_JEVENTS=1",
    "NO_SDT=1",
    "NO_LIBBABELTRACE=1",
    "NO_LIBPFM4=1",
    "NO_DWARF=1",
    "NO_LIBDW=1",
    "BUILD_BPF_SKEL=0",
    "NO_BPF_SKEL=1",
    "LDFLAGS=-static",
];

impl BuildCache {
    /// Returns the file of a program of a source; builds it if necessary.
    ///
    /// # Errors
    /// If it does not build; the error names the log.
    pub fn benchmark_program(
        &self,
        source: &SourceText,
        program: &ProgramSource,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<PathBuf, KernelError> {
        let workshop = WorkTree::open(&self.home)?;
        let (folder, commit) = source.place();
        let tree = match commit {
            Some(commit) => {
                workshop.borrow(&Repository::open(folder)?)?;
                workshop.tree_of(commit)?
            }
            None => workshop.snapshot(folder)?,
        };
        let (name, folder_in_source) = match program {
            ProgramSource::Perf { .. } => ("perf", "tools/perf"),
            ProgramSource::Selftest { folder, name } => (name.as_str(), folder.as_str()),
        };
        let key = sha256(format!("{tree}\n{folder_in_source}").as_bytes());
        let all = workshop.folder().join(format!("{PREFIX}{}", &key[..12]));
        let out = all.join("out");
        let file = out.join(name);
        let log = all.join("marvin.log");
        fs::create_dir_all(&out).map_err(KernelError::io(&out))?;
        let used = all.join("marvin.used");
        fs::write(&used, "").map_err(KernelError::io(&used))?;
        let what = format!("{name} of {}", source.name());
        if is_program(&file) {
            notify(BuildEvent::Cached { what });
            return Ok(file);
        }
        sweep(workshop.folder())?;
        notify(BuildEvent::Building {
            what: what.clone(),
            estimate_s: None,
        });
        workshop.check_out(&tree, &what)?;
        let made = make(&workshop, &out, &log, program, folder_in_source, name);
        // make leaves objects of fixdep and the like in the source: the next kernel would be built
        // of a source that is not clean.
        let cleaned = workshop.remove_untracked();
        made?;
        cleaned?;
        if is_program(&file) {
            return Ok(file);
        }
        Err(SourceError::DoesNotBuild {
            what,
            first_error: format!("make left no program {name}"),
            log,
        }
        .into())
    }
}

fn is_program(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
}

/// Runs make for a program.
fn make(
    workshop: &WorkTree,
    out: &Path,
    log: &Path,
    program: &ProgramSource,
    folder: &str,
    name: &str,
) -> Result<(), KernelError> {
    let source = workshop.source();
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut arguments = vec![
        "-n".to_owned(),
        "10".to_owned(),
        "make".to_owned(),
        "--no-print-directory".to_owned(),
        format!("-j{jobs}"),
        "-C".to_owned(),
        source.join(folder).display().to_string(),
    ];
    match program {
        ProgramSource::Perf { .. } => {
            arguments.push(format!("O={}", out.display()));
            arguments.extend(PERF_VARIABLES.iter().map(|&variable| variable.to_owned()));
            arguments.push("perf".to_owned());
        }
        // Makefiles of selftests make each program below OUTPUT (tools/testing/selftests/lib.mk).
        ProgramSource::Selftest { .. } => {
            arguments.push(format!("OUTPUT={}", out.display()));
            arguments.push(out.join(name).display().to_string());
        }
    }
    let walls = Walls::default()
        .readable_path()
        // The Makefiles of tools make some of their files beside the sources.
        .writable(&source)
        .writable(out);
    let ended = Program::new("nice", &source)
        .args(arguments)
        .walls(walls)
        .deadline_s(DEADLINE_S)
        .log(log)
        .end()?;
    if ended.code == Some(0) {
        return Ok(());
    }
    let output = fs::read(log).map_err(KernelError::io(log))?;
    Err(SourceError::DoesNotBuild {
        what: name.to_owned(),
        first_error: first_error(&String::from_utf8_lossy(&output)),
        log: log.to_owned(),
    }
    .into())
}

/// Deletes the least recently used programs.
fn sweep(workshop: &Path) -> Result<(), KernelError> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(workshop).map_err(KernelError::io(workshop))? {
        let path = entry.map_err(KernelError::io(workshop))?.path();
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with(PREFIX) {
            let used = fs::metadata(path.join("marvin.used")).and_then(|found| found.modified());
            folders.push((used.ok(), path));
        }
    }
    folders.sort();
    let surplus = folders.len().saturating_sub(FOLDERS_MAX);
    for (_, path) in &folders[..surplus] {
        fs::remove_dir_all(path).map_err(KernelError::io(path))?;
    }
    Ok(())
}

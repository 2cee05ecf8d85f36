//! A user's own program: from a command line of this host to a tool, with an image of all files
//! that it needs in a guest.
//!
//! What it prints is read as for any tool (`tool_job`); which of its files are found without being
//! named is in `files.rs`.

mod brought;
mod error;
mod files;
mod interpreter;
mod module_program;
mod places;
mod shell;
mod startable;
mod toolchain;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kernel::USERLAND_FACTS;
use machine::{InitrdFile, initrd_of};
use model::{
    Direction, OwnProgram, Steadiness, Tool, ToolMetric, ToolWorkload, TreeBenchmark, hexadecimal,
};
use sha2::{Digest, Sha256};
use wire::{Clock, JOB_SIZE, Job, JobError, Perturbation};

pub use self::error::OwnProgramError;
use self::files::Host;
pub use self::module_program::{ModuleRequest, prepare_module, printed_metric};
use crate::tool_job::task;
use crate::tools::{BESIDE_FILES_MIB, Tools};

/// Memory of a guest for a program that needs no more (MiB).
const MEMORY_MIB: u64 = 512;
/// What a program gets beside its files, where these are large (MiB).
const ROOM_MIB: u64 = 256;
/// Sizes of guests are multiples of this (MiB), so that a few bytes make no other machine.
const STEP_MIB: u64 = 128;
/// Longest name of a program's row: names of artifacts contain it.
const NAME_MAX: usize = 18;
/// What begins the name of an image that is being written; the process follows.
const UNFINISHED: &str = "new-";
/// Where a guest's programs are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a user wants to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramRequest {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// More files and directories for the guest: where they are here, and where there.
    pub with: Vec<(PathBuf, Option<String>)>,
    /// Environment variables beside those of every program.
    pub environment: Vec<(String, String)>,
    /// A file that is its standard input.
    pub stdin: Option<PathBuf>,
    /// A command for `sh -c` before the first run.
    pub setup: Option<String>,
    /// The numbers of its output.
    pub values: Vec<ToolMetric>,
    /// Exit statuses beside 0 with which it has done its work.
    pub accepted: Vec<u8>,
    /// How often it runs; the first run is not reported.
    pub runs: u32,
    /// The time limit for everything, in seconds of guest time.
    pub limit_s: u32,
    /// The guest's memory (MiB); `None`: what its files need, at least the usual.
    pub memory_mib: Option<u32>,
    /// Whether it marks by itself what is measured.
    pub marks: bool,
    /// The name of its row; `None` for that of its file.
    pub name: Option<String>,
    /// What it needs of each kernel, if it is a benchmark of the kernel's source.
    pub benchmark: Option<TreeBenchmark>,
}

/// A user's own program, ready to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedProgram {
    pub tool: Tool,
    /// Bytes of its files.
    pub bytes: u64,
    /// Files that it names and that this host lacks: it may need them.
    pub missing: Vec<String>,
    /// What a directory of `--with` has and a guest cannot get: devices, FIFOs, links to nowhere.
    pub left_out: Vec<String>,
}

/// Finds the files of a program, writes its image into the data directory, and returns it as a
/// tool.
///
/// # Errors
/// If the program or a named file is missing, or a file cannot be read.
pub fn prepare_program(
    request: &ProgramRequest,
    tools: &Tools,
    home: &Path,
) -> Result<PreparedProgram, OwnProgramError> {
    let directory = std::env::current_dir().map_err(OwnProgramError::directory)?;
    let host = Host::new(&directory, &request.environment)?;
    let mut found = host.find_files(request)?;
    for (path, text) in USERLAND_FACTS {
        found
            .files
            .entry(path.to_owned())
            .or_insert_with(|| text.as_bytes().to_vec());
    }
    let (image, bytes) = write_files(found.files, home)?;
    let name = match &request.name {
        Some(name) => name.clone(),
        None => name_row(&request.command, tools),
    };
    let memory_mib = choose_memory(bytes, request.memory_mib);
    let mut metrics = vec![cost()];
    metrics.extend(request.values.iter().cloned());
    let mut environment = vec![
        ("HOME".to_owned(), "/root".to_owned()),
        ("PATH".to_owned(), join_path(&found.path)),
    ];
    if !found.library_folders.is_empty() {
        let folders = found.library_folders.join(":");
        environment.push(("LD_LIBRARY_PATH".to_owned(), folders));
    }
    environment.retain(|(name, _)| request.environment.iter().all(|(own, _)| own != name));
    environment.extend(request.environment.iter().cloned());
    let setup = request
        .setup
        .iter()
        .map(|text| vec!["/bin/sh".to_owned(), "-c".to_owned(), text.clone()]);
    let mut command = request.command.clone();
    command[0] = found.program;
    let workload = ToolWorkload {
        name: name.clone(),
        stresses: "what it does".to_owned(),
        memory_mib,
        setup: setup.collect(),
        server: None,
        prepare: Vec::new(),
        command,
        runs: request.runs,
        limit_s: request.limit_s,
        // Whatever it does, only differences in all seeds count.
        steadiness: Steadiness::Chaotic,
        known: Vec::new(),
        refuse: Vec::new(),
        metrics,
    };
    let tool = Tool {
        name,
        about: format!("your program: {}", request.command.join(" ")),
        packages: Vec::new(),
        files: Vec::new(),
        environment,
        workloads: vec![workload],
        own: Some(OwnProgram {
            image,
            directory: found.directory,
            stdin: found.stdin,
            accepted: request.accepted.clone(),
            marks: request.marks,
            benchmark: request.benchmark.clone(),
        }),
    };
    check_length(&tool)?;
    Ok(PreparedProgram {
        tool,
        bytes,
        missing: found.missing,
        left_out: found.left_out,
    })
}

/// Errors if a job has no room for what a guest is to start: a boot would show it late.
fn check_length(tool: &Tool) -> Result<(), OwnProgramError> {
    for workload in &tool.workloads {
        let job = Job {
            id: u64::MAX,
            clock: Clock::Monotonic,
            perturbation: Perturbation {
                delay_us: u64::MAX,
                spins: u64::MAX,
                child_pages: u64::MAX,
                child_forks: u64::MAX,
                mappings_above: u64::MAX,
                mappings_below: u64::MAX,
                descriptors: u64::MAX,
            },
            task: task(tool, workload),
        };
        if let Err(JobError::TooLong(bytes)) = job.encode() {
            let bytes_max = JOB_SIZE;
            return Err(OwnProgramError::Long { bytes, bytes_max });
        }
    }
    Ok(())
}

/// Writes the image of files, and returns its hash and the bytes of the files.
fn write_files(
    files: BTreeMap<String, Vec<u8>>,
    home: &Path,
) -> Result<(String, u64), OwnProgramError> {
    let files: Vec<InitrdFile> = files
        .into_iter()
        .map(|(path, bytes)| InitrdFile {
            path: path.trim_start_matches('/').to_owned(),
            bytes,
        })
        .collect();
    let bytes = files.iter().map(|file| file.bytes.len() as u64).sum();
    let archive = initrd_of(&files);
    let image = hexadecimal(&Sha256::digest(&archive));
    write_image(home, &image, archive)?;
    Ok((image, bytes))
}

/// Returns PATH: these directories, then the usual ones.
fn join_path(folders: &[String]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for folder in folders.iter().map(String::as_str).chain(PATH.split(':')) {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    all.join(":")
}

/// What every program is measured by: its runs, from start to end.
fn cost() -> ToolMetric {
    ToolMetric {
        name: "cost".to_owned(),
        unit: String::new(),
        direction: Direction::LowerIsBetter,
        margin_percent: 1.0,
        reader: None,
    }
}

/// Returns where an image is in the data directory.
pub(crate) fn image_file(home: &Path, image: &str) -> PathBuf {
    home.join("images").join(format!("{image}.cpio"))
}

/// Writes an image, whole or not at all: its name is its hash, so writers do not disturb each
/// other.
fn write_image(home: &Path, image: &str, archive: Vec<u8>) -> Result<(), OwnProgramError> {
    let file = image_file(home, image);
    // After a crash of this host it may be there and have no content.
    if fs::read(&file).is_ok_and(|known| known == archive) {
        return Ok(());
    }
    let folder = home.join("images");
    fs::create_dir_all(&folder).map_err(OwnProgramError::write(&folder))?;
    remove_unfinished(&folder);
    let new = folder.join(format!("{UNFINISHED}{}", std::process::id()));
    subprocess::replace_file(&file, &new, archive).map_err(OwnProgramError::write(&file))
}

/// Removes what killed processes left behind while they wrote an image, of up to 1 GiB each.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
        if writer.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            // Another process may have removed it, too.
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// Returns the row's name: that of the program's file, unless another workload has it.
fn name_row(command: &[String], tools: &Tools) -> String {
    let program = command.first().map_or("", String::as_str);
    let file = program.rsplit('/').next().unwrap_or(program);
    let mut name: String = file
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
        .take(NAME_MAX)
        .collect();
    if name.is_empty() {
        name = "program".to_owned();
    }
    if tools.is_taken(&name) {
        name = format!("own-{name}").chars().take(NAME_MAX).collect();
    }
    name
}

/// Returns the memory of a guest with these files (MiB): while it boots, the kernel holds them
/// twice, and the root file system may take half of the memory.
fn choose_memory(bytes: u64, wanted_mib: Option<u32>) -> u32 {
    let files_mib = bytes.div_ceil(1 << 20);
    let needed_mib = (2 * files_mib + BESIDE_FILES_MIB + ROOM_MIB).next_multiple_of(STEP_MIB);
    let chosen = wanted_mib.map_or(MEMORY_MIB.max(needed_mib), u64::from);
    u32::try_from(chosen).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

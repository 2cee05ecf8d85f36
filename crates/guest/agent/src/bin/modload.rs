//! `marvin-modload`: PID 1 before `marvin-init` in guests whose workloads need modules. Loads them
//! in the order of a list and executes `marvin-init`. A guest without modules boots `marvin-init`
//! directly, so that its numbers do not depend on this program.
//!
//! A module that cannot be loaded does not end the guest: the reason goes into a file, and the
//! agent reports its workloads as unsupported.
#![expect(
    unsafe_code,
    reason = "loading a module is a system call; the block says why it is sound"
)]

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use guest::guest_config::{FAILED, FOLDER, LIST, ModuleLine};
use guest::sys::{c, check};
use guest::{die_with_message, mount};

/// The next PID 1: the first program of a guest that needs no modules.
const INIT: &str = "/marvin-init";

fn main() {
    let error = match run() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    die_with_message(&format!("modload: {error}"))
}

fn run() -> io::Result<std::convert::Infallible> {
    // The console, for a failure.
    mount("devtmpfs", "/dev")?;
    let list = fs::read_to_string(LIST)?;
    let failures: Vec<String> = list
        .lines()
        .filter_map(|line| load(&ModuleLine::parse(line)?))
        .collect();
    if !failures.is_empty() {
        fs::write(FAILED, failures.join("; "))?;
    }
    Err(Command::new(INIT).args(std::env::args_os().skip(1)).exec())
}

/// Loads a module and deletes its file; returns why a required one could not be loaded.
fn load(line: &ModuleLine<'_>) -> Option<String> {
    let path = Path::new(FOLDER).join(line.file);
    let loaded = insert(&path, line.parameters);
    let freed = fs::remove_file(&path);
    let error = loaded.and(freed).err().filter(|_| line.must)?;
    Some(format!("module {} cannot be loaded: {error}", line.name()))
}

fn insert(path: &Path, parameters: &str) -> io::Result<()> {
    let (file, parameters) = (File::open(path)?, c(parameters)?);
    // SAFETY: the parameters are a valid C string, and `file` is open for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            parameters.as_ptr(),
            0,
        )
    };
    match check(result) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}

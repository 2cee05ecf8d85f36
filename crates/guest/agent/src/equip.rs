//! `marvin-equip`: PID 1 before `marvin-init` in guests whose workloads need modules. Loads them in
//! the order of a list and hands over; guests that need none never meet it, so that their first
//! program stays what it is.
//!
//! A module that cannot be loaded is no reason to die: what is in the way is written down for the
//! agent, which says so of the workloads.
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

use guest::equipment::{FAILED, FOLDER, LIST, Line};
use guest::sys::{c, check};
use guest::{die_saying, mount};

/// The program that goes on: PID 1 of every other guest.
const FIRST: &str = "/first";

fn main() {
    let error = match live() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    die_saying(&format!("equip: {error}"))
}

fn live() -> io::Result<std::convert::Infallible> {
    // For the console, should there be something to say.
    mount("devtmpfs", "/dev")?;
    let list = fs::read_to_string(LIST)?;
    let failures: Vec<String> = list
        .lines()
        .filter_map(|line| load(&Line::parse(line)?))
        .collect();
    if !failures.is_empty() {
        fs::write(FAILED, failures.join("; "))?;
    }
    Err(Command::new(FIRST).exec())
}

/// Loads a module, frees its file, and says what is in the way of one that must be there.
fn load(line: &Line<'_>) -> Option<String> {
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

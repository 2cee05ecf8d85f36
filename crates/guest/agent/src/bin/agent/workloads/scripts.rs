//! Several scripts at a time, each made of small processes: shell commands, after SDET, and what a
//! compiler asks of the kernel.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::exec::Executable;
use super::partner::together;
use super::region::{PAGE, Region};
use super::scratch::Folder;
use super::{Between, Made, Workload};
use crate::sys::{c, check};

/// Files that commands read and list, and their size.
const FILES: usize = 16;
const FILE_SIZE: usize = 16 * 1024;
/// What a compilation reads, touches and writes.
const HEADERS: usize = 32;
const TOUCHED: usize = 1024 * 1024;
const OBJECT: usize = 32 * 1024;

/// What scripts work with.
pub(super) struct ScriptSetup {
    folder: Folder,
    program: Executable,
}

type Script = fn(&ScriptSetup, usize) -> io::Result<()>;

struct Scripts {
    setup: ScriptSetup,
    script: Script,
    at_a_time: u64,
}

impl Workload for Scripts {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut left = operations;
        while left > 0 {
            let batch = left.min(self.at_a_time);
            together(batch as usize, |number| (self.script)(&self.setup, number))?;
            left -= batch;
        }
        Ok(())
    }
}

/// Does something in a process of its own, as a shell does a command.
fn command(action: impl Fn() -> io::Result<()>) -> io::Result<()> {
    together(1, |_| action())
}

/// Runs a program that does nothing.
fn program(setup: &ScriptSetup) -> io::Result<()> {
    command(|| Err(setup.program.execute()))
}

fn name(number: usize) -> String {
    format!("file-{number:02}")
}

/// Reads a file from its beginning to its end. Not with std, which asks for its size with statx(2)
/// first.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, vec![0; FILE_SIZE]);
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?
        .write_all(bytes)
}

fn stat(path: &Path) -> io::Result<()> {
    let path: CString = c(path.to_str().unwrap_or_default())?;
    // SAFETY: a stat of zeroes is a valid value of the C struct.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: path and struct are valid for the call.
    check(unsafe { libc::stat(path.as_ptr(), &raw mut found) }).map(|_| ())
}

/// ls -l: a folder and what is in it.
fn list(folder: &Path) -> io::Result<()> {
    fs::read_dir(folder)?.try_for_each(|entry| stat(&entry?.path()))
}

pub(super) fn new_setup() -> io::Result<ScriptSetup> {
    let folder = Folder::new()?;
    for number in 0..FILES {
        write(&folder.path(&name(number)), &[b'x'; FILE_SIZE])?;
    }
    let program = Executable::at(&folder.path("program"))?;
    Ok(ScriptSetup { folder, program })
}

/// A script: two programs, cp, ls, mkdir with touch, rm, and cat with wc behind a pipe.
fn shell(setup: &ScriptSetup, number: usize) -> io::Result<()> {
    let own: PathBuf = setup.folder.path(&format!("own-{number:02}"));
    let file = setup.folder.path(&name(number % FILES));
    program(setup)?;
    command(|| fs::create_dir(&own))?;
    command(|| write(&own.join("copy"), &read(&file)?))?;
    command(|| (0..4).try_for_each(|touched| write(&own.join(name(touched)), &[])))?;
    command(|| list(&own))?;
    let (from, to) = io::pipe()?;
    together(2, |end| match end {
        0 => read(&own.join("copy")).and_then(|bytes| (&to).write_all(&bytes)),
        _ => (&from).read_exact(&mut [0; FILE_SIZE]),
    })?;
    command(|| {
        fs::remove_file(own.join("copy"))?;
        (0..4).try_for_each(|touched| fs::remove_file(own.join(name(touched))))?;
        fs::remove_dir(&own)
    })?;
    program(setup)
}

/// A compilation: a driver that starts a compiler and an assembler.
pub(super) fn compile(setup: &ScriptSetup, number: usize) -> io::Result<()> {
    let object = setup.folder.path(&format!("object-{number:02}"));
    command(|| {
        for header in 0..HEADERS {
            // The first folder of the search path does not have it.
            if stat(&setup.folder.path("include").join(name(header % FILES))).is_ok() {
                return Err(io::Error::from_raw_os_error(libc::EEXIST));
            }
            let path = setup.folder.path(&name(header % FILES));
            stat(&path)?;
            read(&path)?;
        }
        Region::small_pages(1, TOUCHED)?.touch(PAGE);
        write(&object, &[b'o'; OBJECT])
    })?;
    program(setup)?;
    fs::remove_file(&object)
}

fn scripts(script: Script, at_a_time: u64) -> Made {
    Ok(Box::new(Scripts {
        setup: new_setup()?,
        script,
        at_a_time,
    }))
}

/// sdet-like-N: so many scripts of small commands at a time.
pub(super) fn sdet(at_a_time: u64) -> Made {
    scripts(shell, at_a_time)
}

/// build-like-N: so many compilations at a time, without what a compiler computes.
pub(super) fn build(at_a_time: u64) -> Made {
    scripts(compile, at_a_time)
}

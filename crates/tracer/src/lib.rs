//! The QEMU plugin of the exact machine. It keeps the clock exact (`idle.rs`) and counts what the guest executes
//! (`count.rs`), if it is told where to write that:
//!
//! `-plugin FILE[,counts=FILE,marks=FILE]`. Each line of the marks is a word and an address in hexadecimal: `interrupt`,
//! `exception` and `syscall` for the first instruction of such an entry to the kernel, `switch` for the function that
//! switches stacks. The counts are written when QEMU ends.
//!
//! QEMU loads it into its own process, so it never unwinds. Symbols, ledgers and what a count means are left to others.

#![expect(unsafe_code, reason = "QEMU's plugin interface is a C interface")]

mod api;
mod context;
mod count;
mod idle;
mod marks;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use api::{Block, Id, Instruction};
use context::Event;
use count::Counts;
use marks::Marks;

/// What counts, where there is something to count.
struct Tracer {
    counts: Mutex<Counts>,
    marks: Marks,
    file: PathBuf,
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Called by QEMU when it has loaded the plugin.
///
/// # Safety
/// Only QEMU calls it, with `count` arguments that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _info: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let arguments = (0..usize::try_from(count).unwrap_or(0)).map(|index| {
        // SAFETY: QEMU passes that many strings.
        unsafe { CStr::from_ptr(*arguments.add(index)) }.to_string_lossy().into_owned()
    });
    match install(id, arguments) {
        Ok(()) => 0,
        Err(why) => {
            // Into the file that the lab shows when QEMU ends by itself.
            drop(writeln!(std::io::stderr(), "marvin's tracer: {why}"));
            1
        }
    }
}

fn install(id: Id, arguments: impl Iterator<Item = String>) -> Result<(), String> {
    api::prepare()?;
    idle::prepare()?;
    let (mut file, mut marks) = (None, Marks::default());
    for argument in arguments {
        match argument.split_once('=') {
            Some(("counts", path)) => file = Some(PathBuf::from(path)),
            Some(("marks", path)) => marks = Marks::read(path)?,
            _ => return Err(format!("`{argument}` is no argument: there are counts=FILE and marks=FILE")),
        }
    }
    if let Some(file) = file {
        drop(TRACER.set(Tracer { counts: Mutex::default(), marks, file }));
        api::on_exit(id, write);
    }
    api::on_translation(id, translated);
    Ok(())
}

extern "C" fn translated(_id: Id, block: *mut Block) {
    for instruction in api::instructions(block) {
        let mut room = [0; api::LONGEST];
        let bytes = instruction.bytes(&mut room);
        if let Some(tracer) = TRACER.get() {
            trace(tracer, &instruction, bytes);
        }
        if idle::is_halt(bytes) {
            instruction.before(idle::before_halt, 0);
        }
    }
}

fn trace(tracer: &Tracer, instruction: &Instruction, bytes: &[u8]) {
    // What is noted comes before what is counted: the instruction itself belongs to what begins.
    match tracer.marks.at(instruction.address(), bytes) {
        Some(marks::Mark::Open(id)) => instruction.before(open, usize::from(id)),
        Some(marks::Mark::Close) => instruction.before(close, 0),
        Some(marks::Mark::Interrupt) => instruction.before(interrupt, 0),
        Some(marks::Mark::Exception) => instruction.before(exception, 0),
        Some(marks::Mark::SystemCall) => instruction.before(system_call, 0),
        Some(marks::Mark::Return) => instruction.before(returning, 0),
        Some(marks::Mark::Switch) => instruction.on_read(switch),
        None => {}
    }
    counts(tracer).watch(instruction, bytes);
}

fn counts(tracer: &Tracer) -> MutexGuard<'_, Counts> {
    tracer.counts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(event: Event) {
    if let Some(tracer) = TRACER.get() {
        counts(tracer).note(event);
    }
}

extern "C" fn open(_processor: u32, id: *mut c_void) {
    if let Some(tracer) = TRACER.get() {
        counts(tracer).open(u16::try_from(id as usize).unwrap_or(u16::MAX));
    }
}

extern "C" fn close(_processor: u32, _: *mut c_void) {
    if let Some(tracer) = TRACER.get() {
        counts(tracer).close();
    }
}

extern "C" fn interrupt(_processor: u32, _: *mut c_void) {
    note(Event::Interrupt);
}

extern "C" fn exception(_processor: u32, _: *mut c_void) {
    note(Event::Exception);
}

extern "C" fn system_call(_processor: u32, _: *mut c_void) {
    note(Event::SystemCall);
}

extern "C" fn returning(_processor: u32, _: *mut c_void) {
    note(Event::Return);
}

extern "C" fn switch(_processor: u32, _access: u32, address: u64, _: *mut c_void) {
    note(Event::Switch(address));
}

extern "C" fn write(_id: Id, _: *mut c_void) {
    if let Some(tracer) = TRACER.get()
        && let Err(error) = std::fs::write(&tracer.file, counts(tracer).text())
    {
        drop(writeln!(std::io::stderr(), "marvin's tracer: failed to write the counts: {error}"));
    }
}

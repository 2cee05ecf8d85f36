//! A QEMU plugin that is loaded beside the tracer for `marvin profile --path`: it writes which
//! instructions of the kernel one region executes, in their order.
//!
//! `-plugin FILE,path=FILE,marks=FILE,region=N`. The marks are the tracer's; `region` is the
//! number of the region, from 0, in the order in which they open. What is written is in
//! `recording.rs`.
//!
//! It only observes and is no part of the machine: the tracer counts beside it, and Marvin refuses
//! a run that executed anything else than the measured one. It is a file of its own so that the
//! tracer's bytes, and with them the machine, stay the same. Who executes is decided by the
//! tracer's own sources.

#![expect(unsafe_code, reason = "QEMU's plugin interface is a C interface")]

#[path = "../../tracer/src/api.rs"]
#[expect(dead_code, reason = "the tracer also counts and follows memory")]
mod api;
#[path = "../../tracer/src/context.rs"]
mod context;
#[path = "../../tracer/src/marks.rs"]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tracer also watches functions and records")
)]
mod marks;
mod recording;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use api::{Block, Id};
use context::Event;
use marks::{Mark, Marks};
use recording::Recording;

/// Kernel addresses have the highest bit set (Documentation/arch/x86/x86_64/mm.rst).
const KERNEL: u64 = 1 << 63;

/// The plugin's state.
struct Recorder {
    recording: Mutex<Recording>,
    marks: Marks,
    file: PathBuf,
}

static RECORDER: OnceLock<Recorder> = OnceLock::new();
/// Whether the region is open: most instructions are executed before and behind it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

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
        unsafe { CStr::from_ptr(*arguments.add(index)) }
            .to_string_lossy()
            .into_owned()
    });
    match install(id, arguments) {
        Ok(()) => 0,
        Err(why) => {
            // Into the file that the lab shows when QEMU ends by itself.
            drop(writeln!(std::io::stderr(), "marvin's path recorder: {why}"));
            1
        }
    }
}

fn install(id: Id, arguments: impl Iterator<Item = String>) -> Result<(), String> {
    api::prepare()?;
    let (mut file, mut marks, mut region) = (None, Marks::default(), 0);
    for argument in arguments {
        match argument.split_once('=') {
            Some(("path", path)) => file = Some(PathBuf::from(path)),
            Some(("marks", path)) => marks = Marks::read(path)?,
            Some(("region", number)) => {
                region = number
                    .parse()
                    .map_err(|_| format!("`{number}` is no region"))?;
            }
            _ => return Err(format!("`{argument}` is no argument: path, marks, region")),
        }
    }
    let recorder = Recorder {
        recording: Mutex::new(Recording::new(region)),
        marks,
        file: file.ok_or("path=FILE is missing")?,
    };
    drop(RECORDER.set(recorder));
    api::on_exit(id, write);
    api::on_translation(id, translated);
    Ok(())
}

extern "C" fn translated(_id: Id, block: *mut Block) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    for instruction in api::instructions(block) {
        let mut room = [0; api::LONGEST];
        let bytes = instruction.bytes(&mut room);
        let address = instruction.address();
        // What is noted comes before what is recorded: the instruction itself belongs to what
        // begins.
        match recorder.marks.at(address, bytes) {
            Some(Mark::Open(_)) => instruction.before(open, 0),
            Some(Mark::Close) => instruction.before(close, 0),
            Some(Mark::Interrupt) => instruction.before(interrupt, 0),
            Some(Mark::Exception) => instruction.before(exception, 0),
            Some(Mark::SystemCall) => instruction.before(system_call, 0),
            Some(Mark::Return) => instruction.before(returning, 0),
            Some(Mark::Switch) => instruction.on_access(switch, 0),
            Some(Mark::Fork) => instruction.before(fork, 0),
            _ => {}
        }
        if address & KERNEL != 0 {
            let number = recording(recorder).number(address, bytes);
            instruction.before(execute, number);
        }
    }
}

fn recording(recorder: &Recorder) -> MutexGuard<'_, Recording> {
    recorder
        .recording
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn with(change: impl FnOnce(&mut Recording)) {
    if let Some(recorder) = RECORDER.get() {
        let mut recording = recording(recorder);
        change(&mut recording);
        IS_OPEN.store(recording.is_open(), Ordering::Relaxed);
    }
}

extern "C" fn execute(_processor: u32, number: *mut c_void) {
    if IS_OPEN.load(Ordering::Relaxed)
        && let Some(recorder) = RECORDER.get()
    {
        recording(recorder).execute(number as usize);
    }
}

extern "C" fn open(_processor: u32, _: *mut c_void) {
    with(Recording::open);
}

extern "C" fn close(_processor: u32, _: *mut c_void) {
    with(Recording::close);
}

extern "C" fn interrupt(_processor: u32, _: *mut c_void) {
    with(|recording| recording.note(Event::Interrupt));
}

extern "C" fn exception(_processor: u32, _: *mut c_void) {
    with(|recording| recording.note(Event::Exception));
}

extern "C" fn system_call(_processor: u32, _: *mut c_void) {
    with(|recording| recording.note(Event::SystemCall));
}

extern "C" fn returning(_processor: u32, _: *mut c_void) {
    with(|recording| recording.note(Event::Return));
}

extern "C" fn fork(_processor: u32, _: *mut c_void) {
    with(|recording| recording.note(Event::Fork));
}

extern "C" fn switch(_processor: u32, access: u32, address: u64, _: *mut c_void) {
    if !api::is_write(access) {
        with(|recording| recording.note(Event::Switch(address)));
    }
}

extern "C" fn write(_id: Id, _: *mut c_void) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    let bytes = recording(recorder).bytes();
    if let Err(error) = std::fs::write(&recorder.file, bytes) {
        drop(writeln!(
            std::io::stderr(),
            "marvin's path recorder: failed to write {}: {error}",
            recorder.file.display()
        ));
    }
}

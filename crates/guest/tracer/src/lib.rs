//! The QEMU plugin of the exact machine. It keeps the clock exact (`idle.rs`) and counts what the
//! guest executes (`count.rs`), if it is told where to write that:
//!
//! `-plugin FILE[,counts=FILE,marks=FILE[,calls=FILE | ,model=on,SIZES]]`. Each line of the marks
//! is a word and an address in hexadecimal: `interrupt`, `exception` and `syscall` for the first
//! instruction of such an entry to the kernel, `switch` for the function that switches stacks; for
//! the call tree (`calls.rs`) also `fork` for where a new task begins and `function`
//! for every other function. The counts and the call tree are written when QEMU ends.
//!
//! The cost model (`cost/`) adds what it says to the counts. Its sizes are `SETS/WAYS` of `l1i`,
//! `l1d`, `l2` and `last`, of the translation buffers `itlb`, `dtlb` and `stlb`, and the branch
//! `predictor`'s entries as a power of two; its `seed` decides which branches share an entry.
//!
//! With `build=NAME` and more, QEMU executes several processors exactly and follows the lines that
//! move between them (`smp/`); of each `watched START END` in the marks it counts entries and
//! instructions then, and `place NAME NUMBER` says where the kernel keeps its records.
//!
//! QEMU loads it into its own process, so it never unwinds. Symbols, ledgers and what a count means
//! are left to others.

#![expect(unsafe_code, reason = "QEMU's plugin interface is a C interface")]

mod api;
mod calls;
mod context;
mod cost;
mod costly;
mod count;
mod idle;
mod marks;
mod smp;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use api::{Block, Id, Instruction};
use calls::Calls;
use context::{Event, Owner};
use cost::{Cost, Entry, Flush, Sizes};
use costly::Costly;
use count::Counts;
use marks::Marks;

const ARGUMENTS: &str =
    "counts=FILE, marks=FILE, calls=FILE, model=on with its sizes, and those of several processors";
/// Where the shared lines go, and the functions whose entries are counted with them.
static SHARED: OnceLock<(PathBuf, Marks)> = OnceLock::new();

/// What counts, where there is something to count.
struct Tracer {
    counts: Mutex<Counts>,
    marks: Marks,
    file: PathBuf,
    /// Where the call tree goes, if one is asked for.
    calls: Option<PathBuf>,
    /// Whether there is a cost model.
    has_model: bool,
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
        unsafe { CStr::from_ptr(*arguments.add(index)) }
            .to_string_lossy()
            .into_owned()
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
    let (mut file, mut calls, mut marks) = (None, None, Marks::default());
    let (mut has_model, mut sizes, mut smp) = (false, Sizes::default(), smp::Settings::default());
    for argument in arguments {
        match argument.split_once('=') {
            Some(("model", "on")) => has_model = true,
            Some((word, value)) if sizes.set(word, value) || smp.set(word, value) => {}
            Some(("counts", path)) => file = Some(PathBuf::from(path)),
            Some(("calls", path)) => calls = Some(PathBuf::from(path)),
            Some(("marks", path)) => marks = Marks::read(path)?,
            _ => {
                return Err(format!(
                    "`{argument}` is no argument: there are {ARGUMENTS}"
                ));
            }
        }
    }
    if let Some(file) = smp.install(marks.take_places())? {
        api::prepare_memory_lookup()?;
        drop(SHARED.set((file, std::mem::take(&mut marks))));
        api::on_exit(id, write_shared);
    }
    if has_model {
        api::prepare_memory_lookup()?;
        cost::install(Cost::new(&sizes).ok_or("a size of the cost model is missing")?);
    }
    if let Some(file) = file {
        let counts = if calls.is_some() {
            Counts::with_calls()
        } else {
            Counts::default()
        };
        drop(TRACER.set(Tracer {
            counts: Mutex::new(counts),
            marks,
            file,
            calls,
            has_model,
        }));
        api::on_exit(id, write);
    }
    api::on_translation(id, translated);
    Ok(())
}

extern "C" fn translated(_id: Id, block: *mut Block) {
    let tracer = TRACER.get();
    let modelled = tracer
        .filter(|tracer| tracer.has_model)
        .and_then(|tracer| model_block(tracer, block));
    let mut room_before = [0; api::LONGEST];
    let mut size_before = 0;
    for (index, instruction) in api::instructions(block).enumerate() {
        let mut room = [0; api::LONGEST];
        let bytes = instruction.bytes(&mut room);
        if let Some(tracer) = tracer {
            trace(tracer, &instruction, bytes, &room_before[..size_before]);
            // After the marks: what begins with this block fetches it.
            if let (0, Some(block)) = (index, modelled) {
                instruction.before(fetch, block);
            }
        }
        if smp::is_installed() {
            trace_processors(&instruction, bytes);
        } else if idle::is_halt(bytes) {
            instruction.before(idle::before_halt, 0);
        }
        size_before = bytes.len();
        room_before = room;
    }
}

/// Has the scheduler of several processors see what they wait with, and the lines followed.
fn trace_processors(instruction: &Instruction, bytes: &[u8]) {
    const PAUSE: [u8; 2] = [0xf3, 0x90];
    if bytes == PAUSE {
        instruction.before(smp::before_pause, 0);
    }
    if !smp::is_watched() {
        return;
    }
    let address = instruction.address();
    match SHARED.get().and_then(|(_, marks)| marks.at(address, bytes)) {
        Some(marks::Mark::Open(id)) => instruction.before(smp::open, usize::from(id)),
        Some(marks::Mark::Close) => instruction.before(smp::close, 0),
        _ => {}
    }
    if let Some(function) = SHARED.get().and_then(|(_, marks)| marks.watched(address)) {
        let callback = if function == address {
            smp::enter
        } else {
            smp::execute
        };
        instruction.before(callback, usize::try_from(function).unwrap_or(0));
    }
    if let Some(number) = smp::prefetch(address, bytes) {
        instruction.before(smp::prefetched, number);
    }
    let takes = SHARED.get().and_then(|(_, marks)| marks.takes(address));
    instruction.on_access(smp::access, smp::site(address, bytes, takes));
}

/// Has the cost model take note of a block and returns its number.
fn model_block(tracer: &Tracer, block: *mut Block) -> Option<usize> {
    let (mut code, mut room, mut entry) = (Vec::new(), [0; api::LONGEST], None);
    for instruction in api::instructions(block) {
        let size = instruction.bytes(&mut room).len();
        if code.is_empty() {
            use marks::Mark::{Exception, Interrupt, SystemCall};
            let mark = tracer.marks.at(instruction.address(), &room[..size]);
            entry = match mark {
                Some(Interrupt) => Some(Entry::Interrupt),
                Some(Exception | SystemCall) => Some(Entry::Other),
                _ => None,
            };
        }
        code.push((instruction, size));
    }
    let last = code.last()?.1;
    cost::with(|cost| cost.translate(&code, &room[..last], entry))?
}

fn trace(tracer: &Tracer, instruction: &Instruction, bytes: &[u8], before: &[u8]) {
    let address = instruction.address();
    let data = usize::try_from(address).unwrap_or(0);
    let mark = tracer.marks.at(address, bytes);
    // What is noted comes before what is counted: the instruction itself belongs to what begins.
    match mark {
        Some(marks::Mark::Open(id)) => instruction.before(open, usize::from(id)),
        Some(marks::Mark::Close) => instruction.before(close, 0),
        Some(marks::Mark::Interrupt) => instruction.before(interrupt, data),
        Some(marks::Mark::Exception) => instruction.before(exception, data),
        Some(marks::Mark::SystemCall) => instruction.before(system_call, data),
        Some(marks::Mark::Return) => instruction.before(returning, 0),
        Some(marks::Mark::Switch) => instruction.on_access(switch, 0),
        Some(marks::Mark::SystemReturn) if tracer.calls.is_some() => {
            instruction.before(system_return, 0);
        }
        Some(marks::Mark::Fork) => instruction.before(fork, data),
        Some(marks::Mark::Function) if tracer.calls.is_some() => instruction.before(function, data),
        _ => {}
    }
    if tracer.calls.is_some() && count::is_kernel(address) {
        if calls::is_call(bytes) {
            instruction.on_access(call, 0);
        } else if calls::is_return(bytes) {
            instruction.on_access(call_return, 0);
        }
    }
    if tracer.has_model {
        let site = cost::with(|cost| cost.site(address)).unwrap_or_default();
        instruction.on_access(modelled_access, site);
        if let Some(what) = Flush::of(bytes) {
            instruction.before(flush, what as usize);
        }
    }
    let kind = match mark {
        Some(marks::Mark::Exception) => Some(Costly::Exception),
        _ => Costly::of(bytes, before),
    };
    counts(tracer).watch(instruction, bytes, kind);
}

fn counts(tracer: &Tracer) -> MutexGuard<'_, Counts> {
    tracer.counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the counts take note of something, and the call tree follow.
fn note(event: Event, change: impl FnOnce(&mut Calls, Option<Owner>)) {
    if let Some(tracer) = TRACER.get() {
        let mut counts = counts(tracer);
        // IRET belongs to what it ends, but for an interrupt's: that is counted for whom it returns
        // to.
        let own = u64::from(event == Event::Return && !counts.is_interrupted());
        counts.follow(own, |_, _| {});
        counts.note(event);
        counts.follow(0, change);
    }
}

/// Has the call tree follow.
fn follow(own: u64, change: impl FnOnce(&mut Calls, Option<Owner>)) {
    if let Some(tracer) = TRACER.get() {
        counts(tracer).follow(own, change);
    }
}

/// Returns the address that a callback was registered with.
fn function_of(data: *mut c_void) -> u64 {
    data as usize as u64
}

extern "C" fn open(_processor: u32, id: *mut c_void) {
    if let Some(tracer) = TRACER.get() {
        counts(tracer).open(u16::try_from(id as usize).unwrap_or(u16::MAX));
        cost::with(Cost::activate);
    }
}

extern "C" fn close(_processor: u32, _: *mut c_void) {
    if let Some(tracer) = TRACER.get() {
        counts(tracer).close();
        // Also after a warm-up, which opens nothing.
        cost::with(Cost::activate);
    }
}

extern "C" fn interrupt(_processor: u32, data: *mut c_void) {
    note(Event::Interrupt, |calls, owner| {
        calls.interrupt(function_of(data), owner);
    });
}

extern "C" fn exception(_processor: u32, data: *mut c_void) {
    note(Event::Exception, |calls, owner| {
        calls.exception(function_of(data), owner);
    });
}

extern "C" fn system_call(_processor: u32, data: *mut c_void) {
    note(Event::SystemCall, |calls, owner| {
        calls.begin(function_of(data), owner);
    });
}

extern "C" fn returning(_processor: u32, _: *mut c_void) {
    note(Event::Return, |calls, _| calls.iret());
}

extern "C" fn switch(_processor: u32, access: u32, address: u64, _: *mut c_void) {
    if !api::is_write(access) {
        note(Event::Switch(address), |calls, _| calls.switch(address));
    }
}

extern "C" fn system_return(_processor: u32, _: *mut c_void) {
    follow(1, |calls, _| calls.sysret());
}

extern "C" fn fork(_processor: u32, data: *mut c_void) {
    if let Some(tracer) = TRACER.get() {
        let mut counts = counts(tracer);
        counts.follow(0, |_, _| {});
        counts.begin_task();
        counts.follow(0, |calls, owner| calls.begin(function_of(data), owner));
    }
}

extern "C" fn function(_processor: u32, data: *mut c_void) {
    follow(0, |calls, owner| calls.enter(function_of(data), owner));
}

extern "C" fn call(_processor: u32, access: u32, address: u64, _: *mut c_void) {
    // What an indirect call reads is the address of the function.
    if api::is_write(access) {
        follow(0, |calls, _| calls.call(address));
    }
}

extern "C" fn call_return(_processor: u32, access: u32, address: u64, _: *mut c_void) {
    if !api::is_write(access) {
        follow(0, |calls, _| calls.ret(address));
    }
}

extern "C" fn fetch(_processor: u32, block: *mut c_void) {
    cost::fetch(block as usize);
}

extern "C" fn modelled_access(_processor: u32, access: u32, address: u64, site: *mut c_void) {
    cost::access(site as usize, access, address);
}

extern "C" fn flush(_processor: u32, what: *mut c_void) {
    cost::flush(Flush::ALL[what as usize % Flush::ALL.len()]);
}

extern "C" fn write_shared(_id: Id, _: *mut c_void) {
    if let Some(((file, _), text)) = SHARED.get().zip(smp::text()) {
        write_file(file, &text);
    }
}

fn write_file(file: &Path, text: &str) {
    if let Err(error) = std::fs::write(file, text) {
        drop(writeln!(
            std::io::stderr(),
            "marvin's tracer: failed to write {}: {error}",
            file.display()
        ));
    }
}

extern "C" fn write(_id: Id, _: *mut c_void) {
    let Some(tracer) = TRACER.get() else { return };
    let counts = counts(tracer);
    let tree = tracer.calls.as_ref().zip(counts.calls_text());
    let files = std::iter::once((&tracer.file, counts.text())).chain(tree);
    for (file, text) in files {
        write_file(file, &text);
    }
}

//! Threads: making them, and two that wake each other.

use std::io;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use super::{Between, Made, Workload};
use crate::sys;

/// Stack of a thread that does nothing.
const STACK: usize = 64 * 1024;

/// Turns what a pthread function returns into a result.
pub(super) fn pthread(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

struct Create {
    attributes: libc::pthread_attr_t,
}

extern "C" fn nothing(_: *mut libc::c_void) -> *mut libc::c_void {
    null_mut()
}

impl Workload for Create {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            let mut thread = 0;
            // SAFETY: attributes and thread are valid for the call; the function uses no memory of
            // ours.
            pthread(unsafe {
                libc::pthread_create(
                    &raw mut thread,
                    &raw const self.attributes,
                    nothing,
                    null_mut(),
                )
            })?;
            // SAFETY: the thread was just made and nobody else joins it.
            pthread(unsafe { libc::pthread_join(thread, null_mut()) })?;
        }
        Ok(())
    }
}

impl Drop for Create {
    fn drop(&mut self) {
        // SAFETY: the attributes were made by pthread_attr_init and are not used again.
        unsafe { libc::pthread_attr_destroy(&raw mut self.attributes) };
    }
}

/// thread-create: make a thread that does nothing and join it. The C library reuses its stack.
pub(super) fn thread_create() -> Made {
    // SAFETY: the struct is plain memory that the next call fills in.
    let mut attributes = unsafe { std::mem::zeroed() };
    // SAFETY: `attributes` is valid for the call.
    pthread(unsafe { libc::pthread_attr_init(&raw mut attributes) })?;
    let mut create = Create { attributes };
    // SAFETY: the attributes were initialised above.
    pthread(unsafe { libc::pthread_attr_setstacksize(&raw mut create.attributes, STACK) })?;
    Ok(Box::new(create))
}

/// Nobody's turn: whoever waits for its flag waits on.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;
/// The thread is to end.
const END: u32 = 2;

/// A flag that a thread waits for and closes behind itself.
#[derive(Default)]
struct Gate(AtomicU32);

impl Gate {
    fn futex(&self, operation: i32, value: u32) {
        // The result does not matter: who waits looks at the flag again.
        // SAFETY: the word lives as long as `self`; no timeout is passed.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                operation | libc::FUTEX_PRIVATE_FLAG,
                value,
                null::<libc::timespec>(),
            )
        };
    }

    fn set(&self, state: u32) {
        self.0.store(state, Ordering::Release);
        self.futex(libc::FUTEX_WAKE, 1);
    }

    /// Waits until the gate is open and closes it. Always asks the kernel, also when the gate is
    /// open already, so that an operation has the same system calls whichever thread the
    /// scheduler prefers.
    fn pass(&self) -> u32 {
        loop {
            self.futex(libc::FUTEX_WAIT, CLOSED);
            match self.0.swap(CLOSED, Ordering::AcqRel) {
                CLOSED => {}
                state => return state,
            }
        }
    }
}

#[derive(Default)]
struct Gates {
    there: Gate,
    back: Gate,
}

struct FutexPingPong {
    gates: Arc<Gates>,
    thread: Option<JoinHandle<()>>,
}

impl Workload for FutexPingPong {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.gates.there.set(OPEN);
            self.gates.back.pass();
        }
        Ok(())
    }
}

impl Drop for FutexPingPong {
    fn drop(&mut self) {
        self.gates.there.set(END);
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked.
            thread.join().ok();
        }
    }
}

/// futex-pingpong: two threads of a process wake each other in turn.
pub(super) fn futex_pingpong() -> Made {
    sys::wake_up_politely()?;
    let gates = Arc::new(Gates::default());
    let theirs = Arc::clone(&gates);
    let thread = std::thread::Builder::new().spawn(move || {
        while theirs.there.pass() == OPEN {
            theirs.back.set(OPEN);
        }
    })?;
    Ok(Box::new(FutexPingPong {
        gates,
        thread: Some(thread),
    }))
}

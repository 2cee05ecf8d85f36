//! Handles SIGBUS: the kernel sends it when a mapped file shrinks or its disk fails, and it would
//! end the program silently. Handles SIGABRT, which libraries send when memory runs out; the
//! program's own allocator ends it with the same message, and without a signal.

use std::alloc::{GlobalAlloc, Layout, System};

/// The message when a mapped page is missing.
const MESSAGE: &[u8] =
    b"error: a mapped page of the dump could not be read: the file became shorter, or its disk failed; \
what was written is marked incomplete. --io read reports the offset\n";

/// The message when the program aborts.
const ABORTED: &[u8] =
    b"error: no memory is left, or its limit (ulimit -v) is reached; what was written is marked \
incomplete. A smaller --memory and --threads 1 need less\n";

/// The system's allocator; without memory it ends the program with one message.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: all calls are those of the system's allocator, which keeps the contract; only its failure
// is not passed on.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the method of this name.
        require(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        require(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        require(unsafe { System.realloc(at, layout, size) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Ends the program if the allocator failed.
fn require(at: *mut u8) -> *mut u8 {
    if at.is_null() {
        on_abort(libc::SIGABRT);
    }
    at
}

/// Bytes of stack that the main thread may need.
const STACK: usize = 512 << 10;

/// Makes the main thread's stack grow now: below a limit of the address space it might not grow
/// later, and the kernel would end the program.
#[inline(never)]
pub(crate) fn reserve_stack() {
    let bytes = [0_u8; STACK];
    std::hint::black_box(&bytes);
}

/// Prints the message of an abort, and exits with the code for a failed host.
extern "C" fn on_abort(_: libc::c_int) {
    // SAFETY: write and _exit may be called in a handler (signal-safety(7)), and the message is a
    // constant.
    unsafe {
        libc::write(2, ABORTED.as_ptr().cast(), ABORTED.len());
        libc::_exit(5);
    }
}

/// Makes the program print a message when it aborts, as the allocator does without memory. For
/// programs, not for libraries: the setting is process-wide.
pub(crate) fn tell_of_aborts() {
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: the handler does only what a handler may do, and lives as long as the program.
    unsafe {
        libc::signal(libc::SIGABRT, handler as libc::sighandler_t);
    }
}

/// Makes all threads allocate from one arena: glibc reserves 64 MiB of address space for each
/// other one (`HEAP_MAX_SIZE`, malloc/arena.c).
pub(crate) fn share_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt changes a setting of the allocator, and takes no pointer.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Prints the message, and exits with the code for a failed host.
extern "C" fn on_bus_error(_: libc::c_int) {
    // SAFETY: write and _exit may be called in a handler (signal-safety(7)), and the message is a
    // constant.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(5);
    }
}

/// Makes the program print a message on SIGBUS, and turns SIGXFSZ (`ulimit -f`) into a write error
/// like a full disk's. For programs, not for libraries: the setting is process-wide.
pub(crate) fn tell_of_bus_errors() {
    let handler: extern "C" fn(libc::c_int) = on_bus_error;
    // SAFETY: the handler does only what a handler may do, and lives as long as the program.
    unsafe {
        libc::signal(libc::SIGBUS, handler as libc::sighandler_t);
    }
    // SAFETY: SIG_IGN installs no handler of ours.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

//! Handles SIGBUS: the kernel sends it when a mapped file shrinks or its disk fails, and it would
//! end the program silently. Handles SIGABRT, which the program sends itself when memory runs out.

/// The message when a mapped page is missing.
const MESSAGE: &[u8] =
    b"error: a mapped page of the dump could not be read: the file became shorter, or its disk failed; \
what was written is marked incomplete. --io read reports the offset\n";

/// The message when the program aborts.
const ABORTED: &[u8] =
    b"error: no memory is left, or its limit (ulimit -v) is reached; what was written is marked \
incomplete. A smaller --memory and --threads 1 need less\n";

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

//! Handles SIGBUS: the kernel sends it when a mapped file shrinks or its disk fails, and it would
//! end the program silently.

/// The message when a mapped page is missing.
const MESSAGE: &[u8] =
    b"error: a mapped page of the dump could not be read: the file became shorter, or its disk failed; \
what was written is marked incomplete. --io read reports the offset\n";

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

//! What happens when a mapped file becomes shorter or its disk fails while it is read: the system sends SIGBUS, which would
//! end the program without a word.

/// Said when a mapped page is gone.
const MESSAGE: &[u8] =
    b"error: a mapped page of the dump could not be read: the file became shorter, or its disk failed; \
what was written is marked incomplete. With --io read the offset would be told\n";

/// Says what happened, and ends the program with the code for a host that failed.
extern "C" fn on_bus_error(_: libc::c_int) {
    // SAFETY: write and _exit may be called in a handler (signal-safety(7)), and the message is a constant.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(5);
    }
}

/// Has SIGBUS say what happened before the program ends, and has a file that may not grow (`ulimit -f`) be an error as a full
/// disk is, not an end without a word. For programs, not for libraries: it is for the whole process.
pub(crate) fn tell_of_bus_errors() {
    let handler: extern "C" fn(libc::c_int) = on_bus_error;
    // SAFETY: the handler does only what a handler may do, and lives as long as the program.
    unsafe {
        libc::signal(libc::SIGBUS, handler as libc::sighandler_t);
    }
    // SAFETY: no handler of ours is given.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

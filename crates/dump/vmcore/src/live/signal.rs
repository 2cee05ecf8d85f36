//! Resumes a stopped guest if a signal ends the program.
//!
//! SIGKILL cannot be caught: then the guest stands still until a user sends it `cont`.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals with which users end programs, and the one at lack of memory.
const SIGNALS: [libc::c_int; 5] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGABRT,
];
const GO_ON: &[u8] = b"{\"execute\":\"cont\",\"id\":\"signal\"}\n";
/// The mark of its answer.
const ANSWER: &[u8] = b"\"signal\"";
/// How often and how long to wait for the answer: QEMU forgets commands of a closed connection.
const TRIES: u32 = 50;
const TRY_MS: libc::c_int = 100;

/// The socket of the stopped guest; -1 for none.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

/// Resumes the guest, then ends the program as the signal would have.
extern "C" fn on_signal(signal: libc::c_int) {
    let socket = SOCKET.swap(-1, Ordering::Relaxed);
    if socket >= 0 {
        let mut poll = libc::pollfd {
            fd: socket,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut bytes = [0_u8; 4096];
        // SAFETY: send, poll and recv may be called in a handler (signal-safety(7)), and get
        // buffers with their lengths.
        unsafe {
            libc::send(
                socket,
                GO_ON.as_ptr().cast(),
                GO_ON.len(),
                libc::MSG_NOSIGNAL,
            );
            for _ in 0..TRIES {
                if libc::poll(&raw mut poll, 1, TRY_MS) <= 0 {
                    continue;
                }
                let got = libc::recv(
                    socket,
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    libc::MSG_DONTWAIT,
                );
                let got = usize::try_from(got).unwrap_or_default();
                if got == 0
                    || bytes[..got]
                        .windows(ANSWER.len())
                        .any(|window| window == ANSWER)
                {
                    break;
                }
            }
        }
    }
    // SAFETY: both may be called in a handler; the signal comes when the handler has returned.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// While it lives, signals resume the guest.
#[derive(Debug)]
pub(super) struct OnSignal {
    before: Vec<(libc::c_int, libc::sighandler_t)>,
}

impl OnSignal {
    /// Installs the handlers; ignored signals stay ignored.
    pub(super) fn arm(stream: &UnixStream) -> Self {
        SOCKET.store(stream.as_raw_fd(), Ordering::Relaxed);
        let handler: extern "C" fn(libc::c_int) = on_signal;
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: the handler does only what a handler may do, and lives as long as the
            // program.
            let old = unsafe { libc::signal(signal, handler as libc::sighandler_t) };
            if old == libc::SIG_IGN {
                // SAFETY: no handler is installed, only the old action is read.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            } else if old != libc::SIG_ERR {
                before.push((signal, old));
            }
        }
        Self { before }
    }
}

impl Drop for OnSignal {
    fn drop(&mut self) {
        SOCKET.store(-1, Ordering::Relaxed);
        for (signal, old) in &self.before {
            // SAFETY: that is what was there before.
            unsafe { libc::signal(*signal, *old) };
        }
    }
}

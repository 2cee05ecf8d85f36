//! The other process of a workload.

use std::io::{self, Read, Write};

use super::Workload;
use crate::sys::{self, Fork};

/// A child process that lives as long as this value.
pub(super) struct Peer(libc::pid_t);

impl Peer {
    /// Starts a process that does `work` until that fails or the peer is dropped.
    ///
    /// What `work` owns is closed in this process, so that the end of the peer shows as the end of a stream.
    pub(super) fn start(work: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        match sys::fork()? {
            Fork::Child => {
                // The peer must not outlive a parent that is killed and so drops nothing.
                // SAFETY: the call takes no memory of ours.
                let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let done = sys::check(result).and_then(|_| work());
                sys::exit_now(i32::from(done.is_err()))
            }
            Fork::Parent(pid) => Ok(Self(pid)),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer that is gone already is what is wanted.
        sys::kill_and_wait(self.0).ok();
    }
}

/// Sends back each byte that comes.
pub(super) fn echo(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte)?;
        to.write_all(&byte)?;
    }
}

/// A byte goes to the peer and comes back.
pub(super) struct PingPong<R, W> {
    pub(super) from: R,
    pub(super) to: W,
    pub(super) _peer: Peer,
}

impl<R: Read, W: Write> Workload for PingPong<R, W> {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut byte = [0];
        for _ in 0..operations {
            self.to.write_all(&byte)?;
            self.from.read_exact(&mut byte)?;
        }
        Ok(())
    }
}

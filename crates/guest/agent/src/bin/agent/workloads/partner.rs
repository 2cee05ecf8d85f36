//! The other process of a workload.

use std::io::{self, Read, Write};

use super::Workload;
use crate::sys::{self, Fork};

/// A child process that lives as long as this value.
pub(super) struct Partner(libc::pid_t);

impl Partner {
    /// Starts a process that does `work` until that fails or the partner is dropped.
    ///
    /// What `work` owns is closed in this process, so that the end of the partner shows as the end
    /// of a stream.
    pub(super) fn start(work: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        match sys::fork()? {
            Fork::Child => run_child(work),
            Fork::Parent(pid) => Ok(Self(pid)),
        }
    }
}

impl Partner {
    /// Returns whether it has ended by itself.
    pub(super) fn is_over(&self) -> io::Result<bool> {
        // SAFETY: a siginfo_t of zeroes is a valid value of the C struct.
        let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the struct is valid for the call; the child is still to be waited for.
        sys::check(unsafe {
            libc::waitid(libc::P_PID, self.0 as libc::id_t, &raw mut ended, flags)
        })?;
        // SAFETY: the kernel has filled in the struct of a child, or left it zero.
        Ok(unsafe { ended.si_pid() } != 0)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // A partner that is gone already is what is wanted.
        sys::kill_and_wait(self.0).ok();
    }
}

/// Does a child's work and ends it.
fn run_child(work: impl FnOnce() -> io::Result<()>) -> ! {
    // It must not outlive a parent that is killed and so waits for nobody.
    // SAFETY: the call takes no memory of ours.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let done = sys::check(result).and_then(|_| work());
    sys::exit_now(i32::from(done.is_err()))
}

/// Starts so many processes that do something, each knowing its number, and waits for all of them.
pub(super) fn together(count: usize, work: impl Fn(usize) -> io::Result<()>) -> io::Result<()> {
    let mut children = Vec::with_capacity(count);
    for number in 0..count {
        match sys::fork()? {
            Fork::Child => run_child(|| work(number)),
            Fork::Parent(pid) => children.push(pid),
        }
    }
    let ends = children
        .into_iter()
        .map(sys::wait_for)
        .collect::<io::Result<Vec<_>>>()?;
    ends.into_iter()
        .find_map(sys::bad_end)
        .map_or(Ok(()), |how| {
            Err(io::Error::other(format!("a child: {how}")))
        })
}

/// Sends back each byte that comes.
pub(super) fn echo(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte)?;
        to.write_all(&byte)?;
    }
}

/// A byte goes to the partner and comes back.
pub(super) struct PingPong<R, W> {
    pub(super) from: R,
    pub(super) to: W,
    pub(super) _partner: Partner,
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

//! Single system calls of one process: entry and exit, signals, semaphores.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Failure, Made, Workload};
use crate::sys::check;

struct Getppid;

impl Workload for Getppid {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            // SAFETY: getppid takes nothing and always succeeds.
            unsafe { libc::getppid() };
        }
        Ok(())
    }
}

/// getppid: the cheapest call that enters the kernel each time.
pub(super) fn getppid() -> Made {
    Ok(Box::new(Getppid))
}

/// Signals that arrived since the last check.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_signal: i32) {
    ARRIVED.fetch_add(1, Ordering::Relaxed);
}

struct Signal {
    action: libc::sigaction,
    own: libc::pid_t,
}

impl Workload for Signal {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            // SAFETY: the action is valid for the call; its handler only adds to an atomic.
            check(unsafe {
                libc::sigaction(libc::SIGUSR1, &raw const self.action, std::ptr::null_mut())
            })?;
            // SAFETY: kill takes no memory of ours.
            check(unsafe { libc::kill(self.own, libc::SIGUSR1) })?;
        }
        Ok(())
    }

    fn clear(&mut self, operations: u64) -> io::Result<()> {
        match ARRIVED.swap(0, Ordering::Relaxed) {
            arrived if arrived == operations => Ok(()),
            arrived => Err(io::Error::other(format!(
                "{arrived} of {operations} signals arrived"
            ))),
        }
    }
}

/// signal: install a handler, send the signal to oneself, return from the handler.
pub(super) fn signal() -> Made {
    // SAFETY: a sigaction of zeroes is valid: the default action, no flags, nothing masked.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = count as *const () as usize;
    // SAFETY: getpid takes nothing and always succeeds.
    let own = unsafe { libc::getpid() };
    Ok(Box::new(Signal { action, own }))
}

struct Semaphore(i32);

impl Workload for Semaphore {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.add(1)?;
            self.add(-1)?;
        }
        Ok(())
    }
}

impl Semaphore {
    fn add(&self, value: i16) -> io::Result<()> {
        let mut operation = libc::sembuf {
            sem_num: 0,
            sem_op: value,
            sem_flg: 0,
        };
        // SAFETY: one operation is passed, and it is valid for the call.
        check(unsafe { libc::semop(self.0, &raw mut operation, 1) }).map(|_| ())
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: the set is ours; removing it takes no further argument.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// sem-sysv: a System V semaphore goes up and down without anybody waiting.
pub(super) fn semaphore() -> Made {
    // SAFETY: semget takes no memory of ours.
    let id = check(unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | 0o600) })?;
    let id = i32::try_from(id).map_err(|error| Failure::Error(io::Error::other(error)))?;
    Ok(Box::new(Semaphore(id)))
}

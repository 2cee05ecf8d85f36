//! POSIX mutexes, with and without somebody else who wants them.

use std::cell::UnsafeCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use super::thread::pthread;
use super::{Between, Made, Workload};
use crate::sys;

/// A mutex of the C library, at an address that does not change.
struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a POSIX mutex is made to be used by several threads at a time.
unsafe impl Sync for Mutex {}

// SAFETY: it is not bound to a thread while nobody holds it, and is moved only then.
unsafe impl Send for Mutex {}

impl Mutex {
    fn new() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    fn lock(&self) -> io::Result<()> {
        // SAFETY: the mutex is initialised and does not move.
        pthread(unsafe { libc::pthread_mutex_lock(self.0.get()) })
    }

    fn unlock(&self) -> io::Result<()> {
        // SAFETY: as above; the callers hold it.
        pthread(unsafe { libc::pthread_mutex_unlock(self.0.get()) })
    }
}

struct Uncontended(Mutex);

impl Workload for Uncontended {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.0.lock()?;
            self.0.unlock()?;
        }
        Ok(())
    }
}

/// mutex-uncontended: lock and unlock a mutex that nobody else wants. Never enters the kernel.
pub(super) fn uncontended() -> Made {
    Ok(Box::new(Uncontended(Mutex::new())))
}

/// Nothing to do for the other thread.
const REST: u32 = 0;
/// We hold the mutex, the other thread is to want it.
const GO: u32 = 1;
/// The other thread is about to lock.
const WANTED: u32 = 2;
/// The other thread is to end.
const END: u32 = 3;

struct Shared {
    mutex: Mutex,
    state: AtomicU32,
}

impl Shared {
    fn set(&self, state: u32) {
        self.state.store(state, Ordering::Release);
    }

    /// Gives up the processor until the state is one of two.
    fn until(&self, one: u32, other: u32) -> u32 {
        loop {
            match self.state.load(Ordering::Acquire) {
                state if state == one || state == other => return state,
                _ => sys::yield_now(),
            }
        }
    }

    fn want_each_time(&self) -> io::Result<()> {
        while self.until(GO, END) == GO {
            self.set(WANTED);
            self.mutex.lock()?;
            self.set(REST);
            self.mutex.unlock()?;
        }
        Ok(())
    }
}

struct Contended {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Workload for Contended {
    /// The other side tries to run all the time.
    fn between(&self) -> Between {
        Between::GoOn
    }

    /// The other thread gives up the processor only by waiting for the mutex: when we see that it
    /// wants it, it waits.
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.shared.mutex.lock()?;
            self.shared.set(GO);
            self.shared.until(WANTED, WANTED);
            self.shared.mutex.unlock()?;
            self.shared.until(REST, REST);
        }
        Ok(())
    }
}

impl Drop for Contended {
    fn drop(&mut self) {
        self.shared.set(END);
        if let Some(thread) = self.thread.take() {
            // Its own errors would have shown as a hang, and do not occur with a plain mutex.
            thread.join().ok();
        }
    }
}

/// mutex-contended: two threads on one processor; one holds the mutex while the other comes to wait
/// for it.
pub(super) fn contended() -> Made {
    sys::stay_on_this_cpu()?;
    let shared = Arc::new(Shared {
        mutex: Mutex::new(),
        state: AtomicU32::new(REST),
    });
    let theirs = Arc::clone(&shared);
    let thread = std::thread::Builder::new().spawn(move || theirs.want_each_time())?;
    Ok(Box::new(Contended {
        shared,
        thread: Some(thread),
    }))
}

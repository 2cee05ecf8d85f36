//! Threads of one process, and what they need not share.

use std::io;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};

use super::{all_at_once, each, tasks};
use crate::sys::{self, check};
use crate::workloads::split_work::TaskKind;
use crate::workloads::{Made, exec};

/// A word on lines of its own: processors fetch two at a time.
#[derive(Default)]
#[repr(align(128))]
struct Alone(AtomicU64);

/// Words on one line.
#[derive(Default)]
#[repr(align(64))]
struct SharedLine([AtomicU32; 16]);

/// share-no-syscall: getppid(2) of each thread.
pub(super) fn no_syscall() -> Made {
    each(TaskKind::Thread, None, |_| {
        Ok(Box::new(|| {
            // SAFETY: getppid takes nothing.
            unsafe { libc::syscall(libc::SYS_getppid) };
            Ok(())
        }))
    })
}

/// share-no-counter: each thread counts on a line of its own.
pub(super) fn no_counter() -> Made {
    each(TaskKind::Thread, None, |_| {
        let counter = Box::new(Alone::default());
        Ok(Box::new(move || {
            counter.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))
    })
}

/// share-no-clock: each thread reads the clock.
pub(super) fn no_clock() -> Made {
    each(TaskKind::Thread, None, |_| {
        Ok(Box::new(|| {
            let mut now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: the struct is valid for the call.
            check(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) }).map(|_| ())
        }))
    })
}

/// share-no-timer: each thread sets and reads a timer of its own.
pub(super) fn no_timer() -> Made {
    each(TaskKind::Thread, None, |_| {
        // SAFETY: timerfd_create takes two numbers.
        let timer =
            super::channels::owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) })?;
        Ok(Box::new(move || {
            use std::os::fd::AsRawFd;
            let later = libc::timespec {
                tv_sec: 3600,
                tv_nsec: 0,
            };
            let mut value = libc::itimerspec {
                it_interval: libc::timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: later,
            };
            // SAFETY: the struct is valid for the call; the old value is not asked for.
            check(unsafe {
                libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const value, std::ptr::null_mut())
            })?;
            // SAFETY: the struct is valid for the call.
            check(unsafe { libc::timerfd_gettime(timer.as_raw_fd(), &raw mut value) }).map(|_| ())
        }))
    })
}

/// share-counter: all threads count with one word.
pub(super) fn counter() -> Made {
    let counter = Arc::new(Alone::default());
    each(TaskKind::Thread, None, move |_| {
        let counter = Arc::clone(&counter);
        Ok(Box::new(move || {
            counter.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))
    })
}

/// share-false: each thread reads and writes a word of its own, all on one line. Without LOCK, as a
/// plain variable.
pub(super) fn false_sharing() -> Made {
    let line = Arc::new(SharedLine::default());
    each(TaskKind::Thread, None, move |number| {
        let line = Arc::clone(&line);
        Ok(Box::new(move || {
            // Words of four bytes would share one of eight.
            let word = &line.0[number * 2 % 16];
            word.store(
                word.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
            Ok(())
        }))
    })
}

/// share-thread: each thread makes a thread that ends at once, and joins it.
pub(super) fn create() -> Made {
    each(TaskKind::Thread, None, |_| {
        Ok(Box::new(|| {
            let thread = std::thread::Builder::new().spawn(|| ())?;
            thread.join().map_err(|_| other("a thread panicked"))
        }))
    })
}

/// share-exec-proc: each process makes one that executes the smallest program, and waits for it.
pub(super) fn exec() -> Made {
    all_at_once(TaskKind::Process, None, |_| exec::vfork_exec())
}

/// share-fork: each thread forks; the child ends at once.
pub(super) fn fork() -> Made {
    each(TaskKind::Thread, None, |_| {
        Ok(Box::new(|| {
            // SAFETY: the child of a process with threads makes one system call, which ends it.
            match check(unsafe { libc::fork() })? {
                0 => sys::exit_now(0),
                child => sys::wait_for(child as libc::pid_t).map(|_| ()),
            }
        }))
    })
}

/// share-futex: each thread calls FUTEX_WAKE on a word that no thread waits on. Each has a word of
/// its own; all are on one page.
pub(super) fn futex() -> Made {
    let line = Arc::new(SharedLine::default());
    each(TaskKind::Thread, None, move |number| {
        let line = Arc::clone(&line);
        Ok(Box::new(move || {
            let word = line.0[number % 16].as_ptr();
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word lives as long as the closure; no timeout is passed.
            check(unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    word,
                    operation,
                    1,
                    null::<libc::timespec>(),
                )
            })
            .map(|_| ())
        }))
    })
}

/// share-mutex: threads take one lock and make a system call with it held.
pub(super) fn mutex() -> Made {
    let lock = Arc::new(Mutex::new(0_u64));
    each(TaskKind::Thread, None, move |_| {
        let lock = Arc::clone(&lock);
        Ok(Box::new(move || {
            let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: getppid takes nothing.
            unsafe { libc::syscall(libc::SYS_getppid) };
            *held += 1;
            Ok(())
        }))
    })
}

/// share-condvar: threads wait for one another; the last to come wakes all.
pub(super) fn condvar() -> Made {
    let barrier = Arc::new(Barrier::new(tasks()?));
    each(TaskKind::Thread, None, move |_| {
        let barrier = Arc::clone(&barrier);
        Ok(Box::new(move || {
            barrier.wait();
            Ok(())
        }))
    })
}

extern "C" fn handled(_: i32) {}

/// share-signal: each thread sends a signal to the process, which one of them handles.
pub(super) fn signal() -> Made {
    // SAFETY: a sigaction of zeroes is a valid value of the C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handled as extern "C" fn(i32) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does nothing; the struct is valid for the call.
    check(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) })?;
    each(TaskKind::Thread, None, |_| {
        Ok(Box::new(|| {
            // SAFETY: the signal has a handler; both calls take no memory of ours.
            check(unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) }).map(|_| ())
        }))
    })
}

/// An error for what cannot be.
pub(super) fn other(text: &'static str) -> io::Error {
    io::Error::other(text)
}

//! The processors on which a thread may run, by system calls: taskset(1) is not on every host.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs a closure with this thread on one processor: a process that it starts stays there. Starts it
/// anywhere if the host refuses.
pub(crate) fn on_processor<T>(processor: usize, start: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None);
    let moved = set_of(processor).and_then(|only| Ok(sched_setaffinity(None, &only)?));
    let started = start();
    if let (Ok(before), Ok(())) = (before, moved) {
        // A thread that stays on one processor is slower, not wrong.
        sched_setaffinity(None, &before).ok();
    }
    started
}

/// Keeps a thread of another process on one processor.
///
/// # Errors
/// If there is no such processor or thread, or it is another user's.
pub fn pin_thread(thread: u32, processor: usize) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let thread = thread.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(sched_setaffinity(Some(thread), &set_of(processor)?)?)
}

fn set_of(processor: usize) -> io::Result<CpuSet> {
    if processor >= CpuSet::MAX_CPU {
        let why = format!(
            "processor {processor} is beyond the first {}",
            CpuSet::MAX_CPU
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(set)
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::{on_processor, pin_thread};

    #[test]
    fn thread_is_moved_only_while_it_starts() {
        let before = sched_getaffinity(None).unwrap();
        let last = (0..1024).rev().find(|one| before.is_set(*one)).unwrap();
        let inside = on_processor(last, || sched_getaffinity(None).unwrap());
        assert_eq!((inside.count(), inside.is_set(last)), (1, true));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert_eq!(on_processor(1 << 20, || 7), 7);
    }

    #[test]
    fn absent_thread_or_processor_is_refused() {
        assert!(pin_thread(0, 0).is_err());
        assert!(pin_thread(std::process::id(), 1 << 20).is_err());
    }
}

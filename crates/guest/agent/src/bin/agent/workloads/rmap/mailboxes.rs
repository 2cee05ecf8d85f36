//! Orders to many processes, one after the other, over memory that they share: a process has its
//! order, does it alone while all others sleep, and answers. No descriptors, so that a thousand
//! processes cost no more than their memory.

use std::io;
use std::ptr::null;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::sys::{self, check};

/// How long a process may take over an order before it counts as dead. Guest time: when all are
/// asleep it flies.
const PATIENCE: Duration = Duration::from_secs(120);
/// Orders count up in steps of this; what is below is the step.
const NEXT: u32 = 1 << 8;

/// What a process is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Map and write to each page.
    Map = 1,
    /// Write to each page.
    Touch,
    /// Fork processes that end at once.
    Fork,
    /// Fork the next process of the chain.
    Spawn,
    /// Count entries and page tables.
    Count,
    /// Have one page reclaimed.
    PageOut,
    /// Unmap mappings one by one, and map each again.
    Cycle,
    /// Unmap all.
    Unmap,
    /// End.
    Leave,
}

const STEPS: [Step; 9] = [
    Step::Map,
    Step::Touch,
    Step::Fork,
    Step::Spawn,
    Step::Count,
    Step::PageOut,
    Step::Cycle,
    Step::Unmap,
    Step::Leave,
];

/// What a process answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answer {
    /// Ticks of the measured part.
    pub(crate) ticks: u64,
    /// Page-table entries that are in use, or 1 for a page that stayed.
    pub(crate) entries: u64,
    /// Page tables in KiB.
    pub(crate) tables_kib: u64,
}

/// A process's part of the mailboxes.
#[repr(C)]
struct Slot {
    order: AtomicU32,
    done: AtomicU32,
    argument: AtomicU32,
    error: AtomicI32,
    ticks: AtomicU64,
    entries: AtomicU64,
    tables_kib: AtomicU64,
}

/// The mailboxes. All processes that are forked from its maker share it.
pub(super) struct Mailboxes {
    slots: *mut Slot,
    count: usize,
}

impl Mailboxes {
    /// Makes a mailboxes for so many processes, all of it in memory.
    pub(super) fn new(count: usize) -> io::Result<Self> {
        let bytes = count * size_of::<Slot>();
        let slots: *mut Slot = sys::map_anonymous(bytes, libc::MAP_SHARED)?.cast();
        let mailboxes = Self { slots, count };
        (0..count).for_each(|number| mailboxes.slot(number).order.store(0, Ordering::Relaxed));
        Ok(mailboxes)
    }

    fn slot(&self, number: usize) -> &Slot {
        assert!(number < self.count, "a process that was never started");
        // SAFETY: the number is within the mapping, which lives as long as `self`, begins at a page
        // and was zeroes, which is a valid slot; whoever shares it uses atomic operations
        // only.
        unsafe { &*self.slots.add(number) }
    }

    /// Has a process do a step, and waits for its answer.
    pub(super) fn ask(&self, number: usize, step: Step, argument: u32) -> io::Result<Answer> {
        let slot = self.slot(number);
        let order = self.tell(number, step, argument);
        while slot.done.load(Ordering::Acquire) != order {
            let done = slot.done.load(Ordering::Acquire);
            if done != order {
                wait(&slot.done, done, Some(PATIENCE))?;
            }
        }
        match slot.error.load(Ordering::Acquire) {
            0 => Ok(Answer {
                ticks: slot.ticks.load(Ordering::Acquire),
                entries: slot.entries.load(Ordering::Acquire),
                tables_kib: slot.tables_kib.load(Ordering::Acquire),
            }),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Tells a process what to do, and does not wait.
    pub(super) fn tell(&self, number: usize, step: Step, argument: u32) -> u32 {
        let slot = self.slot(number);
        slot.argument.store(argument, Ordering::Release);
        let order = (slot.order.load(Ordering::Acquire) / NEXT + 1) * NEXT + step as u32;
        slot.order.store(order, Ordering::Release);
        wake(&slot.order);
        order
    }

    /// Waits for an order that is not the last one, and returns it with its step and argument.
    pub(super) fn next(&self, number: usize, last: u32) -> io::Result<(u32, Step, u32)> {
        let slot = self.slot(number);
        loop {
            let order = slot.order.load(Ordering::Acquire);
            if order != last {
                let step = STEPS[(order % NEXT).saturating_sub(1) as usize % STEPS.len()];
                return Ok((order, step, slot.argument.load(Ordering::Acquire)));
            }
            wait(&slot.order, order, None)?;
        }
    }

    /// Answers an order.
    pub(super) fn answer(&self, number: usize, order: u32, answer: io::Result<Answer>) {
        let slot = self.slot(number);
        let code = answer
            .as_ref()
            .err()
            .map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        let Answer {
            ticks,
            entries,
            tables_kib,
        } = answer.unwrap_or_default();
        slot.ticks.store(ticks, Ordering::Release);
        slot.entries.store(entries, Ordering::Release);
        slot.tables_kib.store(tables_kib, Ordering::Release);
        slot.error.store(code, Ordering::Release);
        slot.done.store(order, Ordering::Release);
        wake(&slot.done);
    }
}

impl Drop for Mailboxes {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and with the mailboxes all references to it are gone.
        unsafe { libc::munmap(self.slots.cast(), self.count * size_of::<Slot>()) };
    }
}

/// Sleeps while a word has a value, at most so long. The word may be in memory that processes
/// share.
fn wait(word: &AtomicU32, value: u32, patience: Option<Duration>) -> io::Result<()> {
    let time = patience.map(|patience| libc::timespec {
        tv_sec: libc::time_t::try_from(patience.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: 0,
    });
    let time = time.as_ref().map_or(null(), |time| &raw const *time);
    // SAFETY: the word and the time outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            time,
        )
    };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::ETIMEDOUT) => Err(io::Error::other(
            "a process does not answer: it was killed, or is stuck",
        )),
        // The word has changed already, or a signal came: the caller looks again.
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call; waking nobody is fine.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

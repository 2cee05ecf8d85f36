//! Samples where the processors are, by perf events (perf_event_open(2)): cycles where the machine
//! counts them, else a timer. Runs only during measured iterations of a repeat that is not a
//! measurement; `samples.rs` sums the stacks up.
//!
//! In a guest of ours it samples all processors. On a host it samples only the workload's
//! processes: what else runs there is none of our business, and fewer privileges suffice.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use guest::IN_GUEST;
use guest::sys::check;

use crate::samples::{Samples, Task};
use crate::tick_profile::TickProfile;
use crate::workloads::Failure;

/// What decides who may sample (Documentation/admin-guide/sysctl/kernel.rst).
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// `enum perf_type_id` and the events in it (include/uapi/linux/perf_event.h).
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CPU_CYCLES: u64 = 0;
const CPU_CLOCK: u64 = 0;
/// Instruction pointer, process and thread, stack.
const SAMPLE: u64 = 1 | 1 << 1 | 1 << 5;
/// Bits of the flags.
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const NO_USER_STACK: u64 = 1 << 22;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
/// Cycles for each nanosecond of the period: a processor of 3 GHz is as often sampled as the timer
/// ticks.
const CYCLES_PER_NS: u64 = 3;

/// Types of records, and what the sampled code was, within `misc`.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLED: u32 = 9;
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
/// Entries of a stack above this are marks between its parts.
const CONTEXTS: u64 = -4096_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;

/// Places of `data_head` and `data_tail` in the first page of a ring.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// Most pages of a ring and of all rings; fewest of a ring.
const RING_PAGES: usize = 512;
const ALL_PAGES: usize = 16_384;
const RING_PAGES_MIN: usize = 8;
/// Longest record that is read (bytes): a header, a sample, and a stack of 127 frames with its
/// marks.
const RECORD_MAX: usize = 4096;

/// `struct perf_event_attr` in its first version, which every kernel takes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

/// Whose work is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of this machine.
    System,
    /// This process, and those that it will start.
    Own,
}

/// The events and rings of all processors or, on kernels without perf events, the counters of the
/// timer tick.
#[derive(Debug)]
pub(crate) struct Sampler {
    rings: Vec<Ring>,
    ticks: Option<TickProfile>,
    samples: Samples,
}

/// The ring of one processor.
#[derive(Debug)]
struct Ring {
    event: OwnedFd,
    memory: *mut u8,
    page: usize,
    /// Without the first page (bytes).
    size: usize,
}

impl Sampler {
    /// Opens an event for each processor, to be sampled every so many nanoseconds; all are off.
    pub(crate) fn open(period_ns: u64) -> Result<Self, Failure> {
        let scope = if std::env::var_os(IN_GUEST).is_some() {
            Scope::System
        } else {
            Scope::Own
        };
        let processors = online();
        let source = match Source::find(period_ns.max(1), scope, processors[0]) {
            Ok(source) => source,
            Err(error) => return Self::of_ticks(processors.len(), &error),
        };
        let pages = (ALL_PAGES / processors.len()).clamp(RING_PAGES_MIN, RING_PAGES);
        let pages = 1 << pages.ilog2();
        let mut rings = Vec::with_capacity(processors.len());
        for processor in &processors {
            let event = source
                .open(scope, *processor)
                .map_err(|error| refused(&error))?;
            rings.push(Ring::map(event, pages).map_err(|error| refused(&error))?);
        }
        let scope = match scope {
            Scope::System => "system",
            Scope::Own => "processes",
        };
        let samples = Samples::new(source.name, scope, source.attributes.period, rings.len());
        Ok(Self {
            rings,
            ticks: None,
            samples,
        })
    }

    /// Uses the timer tick of a kernel that does not know perf events; otherwise says why these
    /// were refused.
    fn of_ticks(processors: usize, error: &io::Error) -> Result<Self, Failure> {
        // ENOENT: the kernel knows the call, and none of the events.
        if !matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::ENOENT)) {
            return Err(refused(error));
        }
        let Ok(ticks) = TickProfile::open() else {
            return Err(refused(error));
        };
        let samples = Samples::new("cpu-clock", "system", ticks.period_ns, processors);
        Ok(Self {
            rings: Vec::new(),
            ticks: Some(ticks),
            samples,
        })
    }

    /// Switches it on.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.ticks.as_ref().map_or(Ok(()), TickProfile::reset)?;
        self.rings.iter().try_for_each(|ring| ring.switch(ENABLE))
    }

    /// Switches it off.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.ticks
            .as_ref()
            .map_or(Ok(()), |ticks| ticks.read(&mut self.samples))?;
        self.rings.iter().try_for_each(|ring| ring.switch(DISABLE))
    }

    /// Reads what the rings hold.
    pub(crate) fn drain(&mut self) {
        for ring in &self.rings {
            ring.drain(&mut self.samples);
        }
    }

    /// Returns what was sampled.
    pub(crate) fn into_samples(self) -> Samples {
        self.samples
    }
}

/// What is sampled.
struct Source {
    name: &'static str,
    attributes: Attributes,
}

impl Source {
    /// Finds what this machine offers.
    fn find(period_ns: u64, scope: Scope, processor: usize) -> io::Result<Self> {
        let inherit = if scope == Scope::Own { INHERIT } else { 0 };
        let attributes = |kind, config, period, more| Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            period,
            sample_type: SAMPLE,
            read_format: 0,
            flags: DISABLED | EXCLUDE_HYPERVISOR | inherit | more,
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
        };
        let cycles = period_ns.saturating_mul(CYCLES_PER_NS);
        let mut last = io::Error::from_raw_os_error(libc::ENOSYS);
        // Kernels before 3.7 do not know the flag, and refuse it.
        for more in [NO_USER_STACK, 0] {
            for (name, attributes) in [
                ("cycles", attributes(HARDWARE, CPU_CYCLES, cycles, more)),
                (
                    "cpu-clock",
                    attributes(SOFTWARE, CPU_CLOCK, period_ns, more),
                ),
            ] {
                let source = Self { name, attributes };
                match source.open(scope, processor) {
                    Ok(_) => return Ok(source),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }

    fn open(&self, scope: Scope, processor: usize) -> io::Result<OwnedFd> {
        let process: libc::pid_t = match scope {
            Scope::System => -1,
            Scope::Own => 0,
        };
        let attributes = self.attributes;
        let (group, flags) = (-1, 0_u64);
        // SAFETY: the attributes are valid for the call and of the size that they name; the rest
        // are numbers.
        let fd = check(unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                process,
                processor as libc::c_int,
                group,
                flags,
            )
        })?;
        // SAFETY: the descriptor is new, and owned by nothing else.
        let event = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // SAFETY: fcntl takes no memory of ours; the descriptor is open. The flag of the call
        // itself came with 3.14.
        check(unsafe { libc::fcntl(event.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
        Ok(event)
    }
}

/// Explains why there are no events, and how to get some.
fn refused(error: &io::Error) -> Failure {
    let paranoid = || {
        fs::read_to_string(PARANOID)
            .map_or_else(|_| "not there".to_owned(), |text| text.trim().to_owned())
    };
    Failure::Unsupported(match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            "sampling: this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            format!(
                "sampling: {error}; run as root, or write 1 into {PARANOID}, which is {}",
                paranoid()
            )
        }
        _ => format!("sampling: perf_event_open: {error}"),
    })
}

/// Returns the processors that are on, at least one.
fn online() -> Vec<usize> {
    let text = fs::read_to_string(ONLINE).unwrap_or_default();
    let mut found = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            found.extend(first..=last.min(first + 4095));
        }
    }
    if found.is_empty() { vec![0] } else { found }
}

impl Ring {
    /// Maps an event's ring of at most so many pages, a power of two: fewer where the kernel allows
    /// no more.
    fn map(event: OwnedFd, mut pages: usize) -> io::Result<Self> {
        // SAFETY: sysconf takes nothing.
        let page = usize::try_from(check(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })?)
            .map_err(io::Error::other)?;
        loop {
            let bytes = (1 + pages) * page;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of
            // ours.
            let memory = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    protection,
                    libc::MAP_SHARED,
                    event.as_raw_fd(),
                    0,
                )
            };
            if memory != libc::MAP_FAILED {
                return Ok(Self {
                    event,
                    memory: memory.cast(),
                    page,
                    size: pages * page,
                });
            }
            if pages == RING_PAGES_MIN {
                return Err(io::Error::last_os_error());
            }
            pages /= 2;
        }
    }

    fn switch(&self, request: u64) -> io::Result<()> {
        // SAFETY: the request takes a number; the descriptor is open.
        check(unsafe { libc::ioctl(self.event.as_raw_fd(), request as _, 0) }).map(|_| ())
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self` lives, and aligned; the kernel and we
        // only use whole words.
        unsafe { AtomicU64::from_ptr(self.memory.add(place).cast()) }
    }

    /// Copies bytes out of the ring, from a place that counts on beyond its end.
    fn copy(&self, from: u64, to: &mut [u8]) {
        let at = (from % self.size as u64) as usize;
        let first = to.len().min(self.size - at);
        // SAFETY: both parts lie within the ring behind the first page, for `to` is no longer than
        // the ring.
        unsafe {
            let data = self.memory.add(self.page);
            std::ptr::copy_nonoverlapping(data.add(at), to.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, to.as_mut_ptr().add(first), to.len() - first);
        }
    }

    fn drain(&self, samples: &mut Samples) {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut tail = self.word(TAIL).load(Ordering::Relaxed);
        let mut record = [0; RECORD_MAX];
        while tail < head {
            self.copy(tail, &mut record[..8]);
            let (kind, misc, length) = header(&record);
            if !(8..=RECORD_MAX).contains(&length) || length as u64 > head - tail {
                // Not what the kernel writes: the rest cannot be read.
                samples.lost += 1;
                tail = head;
                break;
            }
            self.copy(tail, &mut record[..length]);
            read(kind, misc, &record[8..length], samples);
            tail += length as u64;
        }
        fence(Ordering::SeqCst);
        self.word(TAIL).store(tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.memory.cast(), self.page + self.size) };
    }
}

/// Returns a record's type, its `misc` and its length.
fn header(record: &[u8]) -> (u32, u16, usize) {
    let half = |at: usize| u16::from_ne_bytes([record[at], record[at + 1]]);
    (
        u32::from_ne_bytes([record[0], record[1], record[2], record[3]]),
        half(4),
        usize::from(half(6)),
    )
}

/// Reads one record.
fn read(kind: u32, misc: u16, body: &[u8], samples: &mut Samples) {
    let mut words = body
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    match kind {
        // The event's id, and how many were lost.
        LOST => samples.lost += words.nth(1).unwrap_or(1),
        THROTTLE => samples.throttled += 1,
        SAMPLED => {
            let (Some(address), Some(ids)) = (words.next(), words.next()) else {
                return;
            };
            // Process id first, thread id second; the idle task of each processor has 0.
            let thread = if cfg!(target_endian = "little") {
                ids >> 32
            } else {
                ids & u64::from(u32::MAX)
            };
            if misc & MODE != MODE_KERNEL {
                samples.add(Task::User, &[]);
                return;
            }
            let count = words.next().unwrap_or_default() as usize;
            let mut stack = Vec::with_capacity(count.min(RECORD_MAX / 8));
            let mut is_kernel = true;
            for entry in words.take(count) {
                if entry >= CONTEXTS {
                    is_kernel = entry == CONTEXT_KERNEL;
                } else if is_kernel {
                    stack.push(entry);
                }
            }
            if stack.is_empty() {
                stack.push(address);
            }
            samples.add(
                if thread == 0 {
                    Task::Idle
                } else {
                    Task::Process
                },
                &stack,
            );
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{CONTEXT_KERNEL, LOST, SAMPLED, Sampler, online, read};
    use crate::samples::Samples;
    use crate::workloads::Failure;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn records_become_stacks() {
        let mut samples = Samples::new("cpu-clock", "system", 1000, 1);
        let ids = 7 | 7 << 32;
        let user = -512_i64 as u64;
        read(
            SAMPLED,
            1,
            &body(&[0x1004, ids, 5, CONTEXT_KERNEL, 0x1004, 0x2008, user, 0x77]),
            &mut samples,
        );
        read(
            SAMPLED,
            1,
            &body(&[0x1008, 0, 2, CONTEXT_KERNEL, 0x1008]),
            &mut samples,
        );
        read(SAMPLED, 2, &body(&[0x77, ids, 0]), &mut samples);
        read(LOST, 0, &body(&[1, 5]), &mut samples);
        read(SAMPLED, 1, &body(&[0x77]), &mut samples);
        let symbols = vec![
            (0x1000, "t first".to_owned()),
            (0x2000, "T second".to_owned()),
        ];
        let files = samples.files(&symbols);
        assert_eq!(
            String::from_utf8_lossy(&files[0].1),
            "marvin-samples 1\nevent cpu-clock\nscope system\nperiod 1000\nprocessors 1\nlost 5\nthrottled 0\nunkept 0\n\
             at 1000\nat 2000\nuser 1 0\nidle 1 0 0\nprocess 1 0 1 0\n"
        );
        assert_eq!(
            String::from_utf8_lossy(&files[1].1),
            "t1000 first\nT1000 second\n"
        );
    }

    #[test]
    fn this_host_samples_or_says_why_not() {
        assert!(!online().is_empty());
        let mut sampler = match Sampler::open(100_003) {
            Ok(sampler) => sampler,
            Err(Failure::Unsupported(why)) => {
                assert!(why.starts_with("sampling: "), "{why}");
                return;
            }
            Err(Failure::Error(error)) => panic!("{error}"),
        };
        sampler.start().unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 50 {
            std::hint::black_box(std::fs::metadata("/").unwrap());
        }
        sampler.stop().unwrap();
        sampler.drain();
        assert!(sampler.into_samples().count() > 20);
    }
}

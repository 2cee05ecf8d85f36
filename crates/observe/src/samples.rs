//! Samples of what runs, and of page faults, by `perf_event_open`: no program beside it, no stop of the target.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

/// Samples per second of each thread on a processor: what cost nothing measurable (`docs/explain.md`).
const FREQUENCY: u64 = 199;
/// Samples per second of page faults, about: the kernel chooses the period.
const FAULTS: u64 = 199;
/// Pages of each ring buffer.
const PAGES: usize = 32;
/// Most events: threads times processors.
const EVENTS_MAX: usize = 512;
/// Kept addresses of a stack in user mode, and in the kernel.
const DEPTH: usize = 24;
/// Addresses from here on are marks in call chains, not code (include/uapi/linux/perf_event.h: PERF_CONTEXT_MAX).
const MARKS: u64 = u64::MAX - 4095;
const MARK_USER: u64 = u64::MAX - 512 + 1;
const MARK_KERNEL: u64 = u64::MAX - 128 + 1;

/// A stack as addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain {
    pub(crate) process: u32,
    pub(crate) kernel: Vec<u64>,
    pub(crate) user: Vec<u64>,
}

/// Page faults of one place.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Faults, by the period of each sample.
    pub(crate) faults: u64,
    pub(crate) pages: BTreeSet<u64>,
}

/// The events of a program, and what they brought so far.
pub(crate) struct Sampling {
    samplers: Vec<Sampler>,
    pub(crate) chains: BTreeMap<Chain, u64>,
    /// By process, instruction and mapped page's first 2 MiB.
    pub(crate) touched: BTreeMap<(u32, u64), Touched>,
    pub(crate) lost: u64,
    /// Whether the kernel's functions are in the samples.
    pub(crate) has_kernel: bool,
}

impl std::fmt::Debug for Sampling {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sampling").field("samplers", &self.samplers.len()).finish_non_exhaustive()
    }
}

impl Sampling {
    /// Attaches to threads and what they create from now on. As an ordinary user only user mode is sampled.
    pub(crate) fn attach(threads: &[u32], processors: usize) -> io::Result<Self> {
        if threads.len() * processors > EVENTS_MAX {
            return Err(io::Error::other(format!("{} threads are too many", threads.len())));
        }
        let open = |has_kernel: bool| -> io::Result<Vec<Sampler>> {
            let mut samplers = Vec::new();
            for thread in threads {
                for processor in 0..processors {
                    for event in [Software::CPU_CLOCK, Software::PAGE_FAULTS] {
                        samplers.push(sampler(event, *thread, processor, has_kernel)?);
                    }
                }
            }
            Ok(samplers)
        };
        let (samplers, has_kernel) = match open(true) {
            Ok(samplers) => (samplers, true),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (open(false)?, false),
            Err(error) => return Err(error),
        };
        Ok(Self { samplers, chains: BTreeMap::new(), touched: BTreeMap::new(), lost: 0, has_kernel })
    }

    /// Takes what the ring buffers have.
    pub(crate) fn drain(&mut self) {
        let Self { samplers, chains, touched, lost, .. } = self;
        for (index, sampler) in samplers.iter_mut().enumerate() {
            // In the order in which they were opened.
            let is_clock = index % 2 == 0;
            while let Some(record) = sampler.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(sample)) if is_clock => {
                        let chain = chain(sample.pid().unwrap_or_default(), sample.callchain().unwrap_or_default());
                        *chains.entry(chain).or_default() += 1;
                    }
                    Ok(Record::Sample(sample)) => {
                        let at = (sample.pid().unwrap_or_default(), sample.ip().unwrap_or_default());
                        let place = touched.entry(at).or_default();
                        place.faults += sample.period().unwrap_or(1);
                        place.pages.insert(sample.addr().unwrap_or_default() >> 12);
                    }
                    Ok(Record::Lost(record)) => *lost += record.lost,
                    _ => {}
                }
            }
        }
    }
}

fn sampler(event: Software, thread: u32, processor: usize, has_kernel: bool) -> io::Result<Sampler> {
    let mut builder = Builder::new(event);
    let is_clock = event == Software::CPU_CLOCK;
    builder
        .observe_pid(i32::try_from(thread).unwrap_or(i32::MAX))
        .one_cpu(processor)
        .inherit(true)
        .enabled(true)
        .sample(SampleFlag::IP)
        .sample(SampleFlag::TID)
        .exclude_kernel(!has_kernel)
        .exclude_hv(true);
    if is_clock {
        builder.sample(SampleFlag::CALLCHAIN).sample_frequency(FREQUENCY);
    } else {
        builder.sample(SampleFlag::ADDR).sample(SampleFlag::PERIOD).sample_frequency(FAULTS);
    }
    builder.build()?.sampled(PAGES)
}

fn chain(process: u32, addresses: &[u64]) -> Chain {
    let mut chain = Chain { process, kernel: Vec::new(), user: Vec::new() };
    let mut in_kernel = false;
    for address in addresses {
        match *address {
            MARK_USER => in_kernel = false,
            MARK_KERNEL => in_kernel = true,
            mark if mark > MARKS => {}
            address if in_kernel => chain.kernel.push(address),
            address if chain.user.len() < DEPTH => chain.user.push(address),
            _ => {}
        }
    }
    chain
}

/// Returns the samples per second.
pub(crate) fn frequency() -> u64 {
    FREQUENCY
}

//! Samples of what runs, and of page faults, by `perf_event_open`: no program beside it, no stop of
//! the target.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use crate::arguments::{Arguments, Budget, LookedUp, look_up};
use crate::creations::Creations;
use crate::unwind::Registers;

/// Samples per second of each thread on a processor: what cost nothing measurable
/// (`docs/explain.md`).
const FREQUENCY: u64 = 199;
/// Samples per second of page faults, about: the kernel chooses the period.
const FAULTS: u64 = 199;
/// What is kept of the stack of a sample in user mode (bytes).
const STACK: u32 = 4096;
/// Samples that keep it, at most: the others have only what frame pointers tell.
const STACKS_MAX: usize = 20_000;
/// RBX, RBP, RSP, RIP, R12 to R15 (arch/x86/include/uapi/asm/perf_regs.h), which unwinding needs,
/// those of a call's arguments and result, and their DWARF numbers.
const REGISTERS: [(u32, usize); 13] = [
    (0, 0),
    (1, 3),
    (3, 1),
    (4, 4),
    (5, 5),
    (6, 6),
    (7, 7),
    (8, 16),
    (18, 10),
    (20, 12),
    (21, 13),
    (22, 14),
    (23, 15),
];
/// The DWARF numbers of RAX, and of RDI, RSI, RDX and R10.
const RESULT: usize = 0;
const ARGUMENTS: [usize; 4] = [5, 4, 1, 10];
/// Ring buffers (bytes): of a processor of the host, and of a thread, of which an ordinary user may
/// have 516 KiB for each processor (`kernel.perf_event_mlock_kb`).
const BUFFER: usize = 1 << 20;
const BUFFER_OF_THREAD: usize = 64 << 10;
/// Most events: threads times processors.
const EVENTS_MAX: usize = 512;
/// Kept addresses of a stack in user mode, and in the kernel.
const DEPTH: usize = 48;
/// Addresses from here on are marks in call chains, not code (include/uapi/linux/perf_event.h:
/// PERF_CONTEXT_MAX).
const MARKS: u64 = u64::MAX - 4095;
const MARK_USER: u64 = u64::MAX - 512 + 1;
const MARK_KERNEL: u64 = u64::MAX - 128 + 1;
/// Marks the record of a name that a process has from a program that it executed
/// (include/uapi/linux/perf_event.h: `PERF_RECORD_MISC_COMM_EXEC`).
const EXECUTED: u16 = 1 << 13;

/// A stack as addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain {
    pub(crate) process: u32,
    pub(crate) kernel: Vec<u64>,
    pub(crate) user: Vec<u64>,
}

/// A sample with a part of its stack.
#[derive(Debug)]
pub(crate) struct Stacked {
    pub(crate) process: u32,
    pub(crate) kernel: Vec<u64>,
    /// What frame pointers tell of the stack in user mode.
    pub(crate) user: Vec<u64>,
    pub(crate) registers: Registers,
    pub(crate) stack: Vec<u8>,
    pub(crate) arguments: Arguments,
    pub(crate) looked_up: LookedUp,
}

impl Stacked {
    /// Returns the open file that the first argument of its call may be, if it was looked up.
    pub(crate) fn looked_up_file(&self) -> Option<u64> {
        let is_of_kernel = !self.kernel.is_empty();
        self.looked_up
            .file_number(&self.arguments)
            .filter(|_| is_of_kernel)
    }
}

/// The events of a program, and what they brought so far.
pub(crate) struct Sampling {
    samplers: Vec<Sampler>,
    pub(crate) chains: BTreeMap<Chain, u64>,
    pub(crate) stacked: Vec<Stacked>,
    /// Page faults by process and instruction.
    pub(crate) touched: BTreeMap<(u32, u64), u64>,
    pub(crate) lost: u64,
    pub(crate) creations: Creations,
    pub(crate) reach: Reach,
}

impl std::fmt::Debug for Sampling {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sampling")
            .field("samplers", &self.samplers.len())
            .finish_non_exhaustive()
    }
}

impl Sampling {
    /// Attaches to the processors, which needs root, or else to threads and what they create from
    /// now on: then processes that live shorter than a period bring no samples, and an ordinary
    /// user gets none of the kernel.
    pub(crate) fn attach(
        processes: BTreeSet<u32>,
        threads: &[u32],
        processors: usize,
    ) -> io::Result<Self> {
        let whole = Reach {
            has_kernel: true,
            is_host: true,
        };
        let own = Reach {
            has_kernel: true,
            is_host: false,
        };
        let user = Reach {
            has_kernel: false,
            is_host: false,
        };
        let mut last = None;
        for reach in [whole, own, user] {
            match open(reach, threads, processors) {
                Ok(samplers) => {
                    return Ok(Self {
                        samplers,
                        creations: Creations::of(processes),
                        chains: BTreeMap::new(),
                        stacked: Vec::new(),
                        touched: BTreeMap::new(),
                        lost: 0,
                        reach,
                    });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no way to sample")))
    }

    /// Takes what the ring buffers have.
    pub(crate) fn drain(&mut self) {
        let mut taken = Vec::new();
        let mut forks = Vec::new();
        let mut programs = Vec::new();
        for (index, sampler) in self.samplers.iter_mut().enumerate() {
            while let Some(record) = sampler.next_record() {
                // In the order in which they were opened.
                let is_clock = index % 2 == 0;
                let is_program = record.misc() & EXECUTED != 0;
                match record.parse_record() {
                    Ok(Record::Fork(fork)) => forks.push((fork.ppid, fork.pid)),
                    Ok(Record::Comm(named)) if is_program => {
                        let name = String::from_utf8_lossy(&named.comm).into_owned();
                        programs.push((named.pid, name));
                    }
                    Ok(Record::Sample(sample)) => {
                        taken.push((is_clock, Taken::from_sample(&sample, is_clock)));
                    }
                    Ok(Record::Lost(record)) => self.lost += record.lost,
                    _ => {}
                }
            }
        }
        self.creations.begin_round();
        self.creations.add_forks(forks);
        for (process, name) in programs {
            self.creations.add_program(process, name);
        }
        // Which processes belong to the program is known when all buffers are read.
        let mut budget = Budget::default();
        for (is_clock, taken) in taken {
            if self.creations.processes.contains(&taken.chain.process) {
                self.keep(is_clock, taken, &mut budget);
            }
        }
    }

    fn keep(&mut self, is_clock: bool, taken: Taken, budget: &mut Budget) {
        if !is_clock {
            *self
                .touched
                .entry((taken.chain.process, taken.instruction))
                .or_default() += taken.period;
            return;
        }
        match taken.stack {
            Some((registers, arguments, stack)) if self.stacked.len() < STACKS_MAX => {
                let Chain {
                    process,
                    kernel,
                    user,
                } = taken.chain;
                let looked_up = if !kernel.is_empty() && budget.take() {
                    look_up(process, &arguments, registers.stack_pointer, &stack)
                } else {
                    LookedUp::default()
                };
                self.stacked.push(Stacked {
                    process,
                    kernel,
                    user,
                    registers,
                    stack,
                    arguments,
                    looked_up,
                });
            }
            _ => *self.chains.entry(taken.chain).or_default() += 1,
        }
    }
}

/// What a sample has.
struct Taken {
    chain: Chain,
    instruction: u64,
    period: u64,
    stack: Option<(Registers, Arguments, Vec<u8>)>,
}

impl Taken {
    fn from_sample(sample: &perf_event::data::Sample, is_clock: bool) -> Self {
        let registers = if is_clock {
            sample.regs_user().and_then(registers)
        } else {
            None
        };
        Self {
            chain: chain(
                sample.pid().unwrap_or_default(),
                sample.callchain().unwrap_or_default(),
            ),
            instruction: sample.ip().unwrap_or_default(),
            period: sample.period().unwrap_or(1),
            stack: registers
                .zip(sample.stack_user())
                .map(|((registers, arguments), stack)| (registers, arguments, stack.to_vec())),
        }
    }
}

/// Whose samples are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// Those of the kernel, too.
    pub(crate) has_kernel: bool,
    /// All processes of the host.
    is_host: bool,
}

fn open(reach: Reach, threads: &[u32], processors: usize) -> io::Result<Vec<Sampler>> {
    let targets: Vec<Option<u32>> = if reach.is_host {
        vec![None]
    } else {
        threads.iter().copied().map(Some).collect()
    };
    if targets.len() * processors > EVENTS_MAX {
        return Err(io::Error::other(format!(
            "{} threads are too many",
            threads.len()
        )));
    }
    let mut samplers = Vec::new();
    for target in targets {
        for processor in 0..processors {
            for event in [Software::CPU_CLOCK, Software::PAGE_FAULTS] {
                samplers.push(sampler(event, target, processor, reach)?);
            }
        }
    }
    Ok(samplers)
}

fn sampler(
    event: Software,
    thread: Option<u32>,
    processor: usize,
    reach: Reach,
) -> io::Result<Sampler> {
    let mut builder = Builder::new(event);
    let is_clock = event == Software::CPU_CLOCK;
    match thread {
        Some(thread) => builder
            .observe_pid(i32::try_from(thread).unwrap_or(i32::MAX))
            .inherit(true),
        None => builder.any_pid(),
    };
    builder
        .one_cpu(processor)
        .task(is_clock)
        .comm(is_clock)
        .comm_exec(is_clock)
        .enabled(true)
        .sample(SampleFlag::IP)
        .sample(SampleFlag::TID)
        .exclude_kernel(!reach.has_kernel)
        .exclude_idle(true)
        .exclude_hv(true);
    if is_clock {
        builder
            .sample(SampleFlag::CALLCHAIN)
            .sample_frequency(FREQUENCY);
        if cfg!(target_arch = "x86_64") {
            let mask = REGISTERS.iter().fold(0, |mask, (bit, _)| mask | 1 << bit);
            builder.sample(SampleFlag::REGS_USER).sample_regs_user(mask);
            builder
                .sample(SampleFlag::STACK_USER)
                .sample_stack_user(STACK);
        }
    } else {
        builder.sample(SampleFlag::PERIOD).sample_frequency(FAULTS);
    }
    builder.build()?.sampled(if thread.is_some() {
        BUFFER_OF_THREAD
    } else {
        BUFFER
    })
}

/// Returns the sampled registers of a 64-bit program.
fn registers(sampled: &perf_event::data::Registers) -> Option<(Registers, Arguments)> {
    if sampled.abi != perf_event::data::SampleRegsAbi::ABI_64
        || sampled.regs.len() != REGISTERS.len()
    {
        return None;
    }
    let mut saved = [None; 17];
    for ((_, number), value) in REGISTERS.iter().zip(sampled.regs.iter()) {
        saved[*number] = Some(*value);
    }
    let arguments = Arguments {
        result: saved[RESULT]?.cast_signed(),
        values: ARGUMENTS.map(|number| saved[number].unwrap_or_default()),
    };
    // A function that calls another one has other values in these.
    for number in ARGUMENTS.into_iter().chain([RESULT]) {
        saved[number] = None;
    }
    let registers = Registers {
        program_counter: saved[16]?,
        stack_pointer: saved[7]?,
        saved,
    };
    Some((registers, arguments))
}

fn chain(process: u32, addresses: &[u64]) -> Chain {
    let mut chain = Chain {
        process,
        kernel: Vec::new(),
        user: Vec::new(),
    };
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

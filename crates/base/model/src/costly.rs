//! Instructions that take many times as long as others, and what they cost on two processors: an
//! estimate of cycles from counts. What misses caches, translation buffers and predictions cost is
//! [`CostModel`](crate::CostModel)'s.

/// A kind of costly instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Costly {
    /// Atomic: with LOCK, or XCHG with memory.
    Locked,
    /// CMPXCHG with memory, not locked.
    Exchange,
    /// MFENCE, SFENCE.
    Fence,
    /// LFENCE.
    LoadFence,
    /// RDTSC, RDTSCP.
    Clock,
    /// RDRAND, RDSEED.
    Random,
    /// CPUID.
    Identify,
    /// RDMSR, WRMSR, RDPMC.
    Msr,
    /// SYSCALL, SYSRET.
    Entry,
    /// SWAPGS, RDFSBASE and its kin.
    Base,
    /// INVLPG, INVPCID.
    Invalidate,
    /// A write of CR3.
    AddressSpace,
    /// A write of another control register, or of a descriptor table's.
    Control,
    /// POPF.
    Flags,
    /// CLI, STI, CLAC, STAC.
    Interrupts,
    /// DIV, IDIV up to 32 bits.
    Division,
    /// DIV, IDIV of 64 bits.
    LongDivision,
    /// A jump or call of an address in a register or in memory.
    Indirect,
    /// The return of a retpoline, which is never predicted.
    Thunk,
    /// One repetition of MOVS or STOS of 2 to 8 bytes.
    Words,
    /// One repetition of MOVSB or STOSB.
    Bytes,
    /// One repetition of CMPS, SCAS or LODS.
    Scan,
    /// PAUSE.
    Pause,
    /// FXSAVE, XSAVE, XRSTOR and their kin.
    State,
    /// VERW, which clears buffers.
    Buffers,
    /// A load of a segment register.
    Segment,
    /// IRET.
    Return,
    /// The delivery of an exception, counted at its first instruction.
    Exception,
}

/// Counts of costly instructions, in the order of [`Costly::ALL`].
pub type CostlyCounts = [u64; Costly::ALL.len()];

impl Costly {
    /// All of them, in the order of the tracer's counts.
    pub const ALL: [Self; 28] = [
        Self::Locked,
        Self::Exchange,
        Self::Fence,
        Self::LoadFence,
        Self::Clock,
        Self::Random,
        Self::Identify,
        Self::Msr,
        Self::Entry,
        Self::Base,
        Self::Invalidate,
        Self::AddressSpace,
        Self::Control,
        Self::Flags,
        Self::Interrupts,
        Self::Division,
        Self::LongDivision,
        Self::Indirect,
        Self::Thunk,
        Self::Words,
        Self::Bytes,
        Self::Scan,
        Self::Pause,
        Self::State,
        Self::Buffers,
        Self::Segment,
        Self::Return,
        Self::Exception,
    ];

    /// Returns its name in the tracer's counts and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// Returns its name in texts.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.about().1
    }

    fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Locked => ("locked", "locked instructions"),
            Self::Exchange => ("exchange", "CMPXCHG without LOCK"),
            Self::Fence => ("fence", "MFENCE and SFENCE"),
            Self::LoadFence => ("load-fence", "LFENCE"),
            Self::Clock => ("clock", "RDTSC"),
            Self::Random => ("random", "RDRAND"),
            Self::Identify => ("identify", "CPUID"),
            Self::Msr => ("msr", "RDMSR and WRMSR"),
            Self::Entry => ("entry", "SYSCALL and SYSRET"),
            Self::Base => ("base", "SWAPGS"),
            Self::Invalidate => ("invalidate", "INVLPG"),
            Self::AddressSpace => ("address-space", "writes of CR3"),
            Self::Control => ("control", "writes of control registers"),
            Self::Flags => ("flags", "POPF"),
            Self::Interrupts => ("interrupts", "CLI, STI, CLAC and STAC"),
            Self::Division => ("division", "DIV up to 32 bits"),
            Self::LongDivision => ("long-division", "DIV of 64 bits"),
            Self::Indirect => ("indirect", "indirect branches"),
            Self::Thunk => ("thunk", "retpolines"),
            Self::Words => ("words", "REP MOVS and STOS by words"),
            Self::Bytes => ("bytes", "REP MOVS and STOS by bytes"),
            Self::Scan => ("scan", "REP CMPS and SCAS"),
            Self::Pause => ("pause", "PAUSE"),
            Self::State => ("state", "XSAVE and XRSTOR"),
            Self::Buffers => ("buffers", "VERW"),
            Self::Segment => ("segment", "loads of segment registers"),
            Self::Return => ("return", "IRET"),
            Self::Exception => ("exception", "exceptions"),
        }
    }
}

/// What instructions cost on a processor, in cycles: the least and the most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processor {
    /// Its name in texts.
    pub name: &'static str,
    /// An instruction that is not costly, in code that mostly hits the caches.
    pub plain: [f64; 2],
    /// Costly ones, in the order of [`Costly::ALL`].
    pub costly: [[f64; 2]; Costly::ALL.len()],
}

/// The processors that cycles are estimated for: a server's core of 2017, and one of 2023.
///
/// What unprivileged code can execute has the figures of Agner Fog's instruction tables (2022,
/// Skylake-X: reciprocal throughput to latency) and of uops.info (Emerald Rapids, 2026); of these,
/// LOCK, XCHG, MFENCE, LFENCE, RDTSC, CPUID, RDRAND, DIV, POPF, CLI, STI, PAUSE, WRMSR, VERW,
/// FXSAVE and the repeated ones. IRET and exceptions end at what Y. Shan measured on a Xeon E5 v3
/// (lastweek.io/notes/xperf, 2020: 440 cycles in, 270 out). No table has SYSCALL, SYSRET, SWAPGS,
/// CR3 and INVLPG; their ranges are wide. A retpoline's return goes astray by design; a processor of 2023 needs none, so its
/// least is a predicted branch.
pub const PROCESSORS: [Processor; 2] = [
    Processor {
        name: "Skylake-SP",
        plain: [0.35, 0.8],
        costly: [
            [18.0, 23.0],
            [5.0, 16.0],
            [6.0, 33.0],
            [4.0, 20.0],
            [25.0, 32.0],
            [200.0, 460.0],
            [100.0, 250.0],
            [50.0, 150.0],
            [40.0, 100.0],
            [10.0, 30.0],
            [100.0, 250.0],
            [100.0, 250.0],
            [50.0, 200.0],
            [20.0, 25.0],
            [2.0, 10.0],
            [6.0, 26.0],
            [21.0, 88.0],
            [1.0, 20.0],
            [15.0, 35.0],
            [0.25, 1.0],
            [0.03, 1.0],
            [1.0, 3.0],
            [140.0, 140.0],
            [65.0, 140.0],
            [70.0, 500.0],
            [10.0, 30.0],
            [80.0, 270.0],
            [150.0, 440.0],
        ],
    },
    Processor {
        name: "Emerald Rapids",
        plain: [0.25, 0.6],
        costly: [
            [17.0, 20.0],
            [4.0, 14.0],
            [6.0, 38.0],
            [4.0, 12.0],
            [25.0, 33.0],
            [117.0, 620.0],
            [123.0, 200.0],
            [50.0, 149.0],
            [30.0, 80.0],
            [7.0, 25.0],
            [100.0, 250.0],
            [100.0, 250.0],
            [40.0, 200.0],
            [20.0, 27.0],
            [2.0, 8.0],
            [6.0, 17.0],
            [10.0, 18.0],
            [1.0, 17.0],
            [2.0, 30.0],
            [0.125, 0.5],
            [0.016, 0.5],
            [1.0, 3.0],
            [34.0, 140.0],
            [72.0, 140.0],
            [70.0, 78.0],
            [10.0, 30.0],
            [60.0, 200.0],
            [100.0, 350.0],
        ],
    },
];

/// Cycles by each of the assumptions: for each of [`PROCESSORS`], plain instructions at their
/// dearest with costly ones at their cheapest, and the reverse. Differences between two kernels are
/// extreme at these ends.
pub type Cycles = [f64; 2 * PROCESSORS.len()];

/// Estimates the cycles of so many instructions, of which these are costly.
#[must_use]
pub fn estimate_cycles(instructions: u64, costly: &CostlyCounts) -> Cycles {
    let plain = instructions.saturating_sub(costly.iter().sum()) as f64;
    let mut cycles = Cycles::default();
    for (number, end) in cycles.iter_mut().enumerate() {
        let processor = &PROCESSORS[number / 2];
        let dear = number % 2;
        *end = plain * processor.plain[1 - dear];
        for (count, cost) in costly.iter().zip(&processor.costly) {
            *end += *count as f64 * cost[dear];
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::{Costly, CostlyCounts, PROCESSORS, estimate_cycles};

    #[test]
    fn kinds_are_in_the_order_of_their_numbers() {
        for (number, kind) in Costly::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind:?}");
        }
    }

    #[test]
    fn costs_are_ranges() {
        for processor in PROCESSORS {
            for cost in processor.costly.iter().chain([&processor.plain]) {
                assert!(
                    cost[0] > 0.0 && cost[0] <= cost[1],
                    "{} {cost:?}",
                    processor.name
                );
            }
        }
    }

    #[test]
    fn plain_and_costly_instructions_add_up() {
        let mut costly = CostlyCounts::default();
        costly[Costly::Locked as usize] = 2;
        let cycles = estimate_cycles(102, &costly);
        let hundredths = cycles.map(|one| (one * 100.0).round() as u64);
        assert_eq!(hundredths, [11_600, 8_100, 9_400, 6_500]);
    }
}

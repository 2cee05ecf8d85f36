//! The cost model: simulated caches, translation buffers and branch predictor of a processor, with
//! their sizes, the cost of each miss, and the results for a workload.

use std::fmt;

use crate::Share;

/// An event that costs a processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostEvent {
    /// A miss in the first-level instruction cache.
    L1i,
    /// A miss in the first-level data cache.
    L1d,
    /// Such a miss that also missed the second-level cache.
    L2,
    /// Such a miss that also missed the last-level cache.
    Last,
    /// A miss in the first-level instruction TLB.
    Itlb,
    /// A miss in the first-level data TLB.
    Dtlb,
    /// Such a miss that also missed the second-level TLB: the processor walks the page tables.
    Walk,
    /// A branch that the predictor gets wrong.
    Branch,
}

impl CostEvent {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::L1i,
        Self::L1d,
        Self::L2,
        Self::Last,
        Self::Itlb,
        Self::Dtlb,
        Self::Walk,
        Self::Branch,
    ];

    /// Returns its name in the tracer's output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::L1i => "l1i",
            Self::L1d => "l1d",
            Self::L2 => "l2",
            Self::Last => "last",
            Self::Itlb => "itlb",
            Self::Dtlb => "dtlb",
            Self::Walk => "walk",
            Self::Branch => "branch",
        }
    }

    /// Returns its name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::L1i => "L1I misses",
            Self::L1d => "L1D misses",
            Self::L2 => "L2 misses",
            Self::Last => "last-level misses",
            Self::Itlb => "ITLB misses",
            Self::Dtlb => "DTLB misses",
            Self::Walk => "page walks",
            Self::Branch => "branch mispredictions",
        }
    }
}

/// Event counts, indexed as in [`CostEvent::ALL`].
pub type CostEvents = [u64; CostEvent::ALL.len()];

/// A cache, in bytes with lines of 64, or a TLB, in entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    size: u64,
    ways: u64,
}

/// Parameter names of caches and TLBs, with the bytes or entries of one line.
const MEMORIES: [(&str, u64); 7] = [
    ("l1i", 64),
    ("l1d", 64),
    ("l2", 64),
    ("last", 64),
    ("itlb", 1),
    ("dtlb", 1),
    ("stlb", 1),
];
/// Parameter names of the cycles of each event, in the order of [`CostEvent::ALL`].
const CYCLES: [&str; 8] = [
    "l1i-cycles",
    "l1d-cycles",
    "l2-cycles",
    "last-cycles",
    "itlb-cycles",
    "dtlb-cycles",
    "walk-cycles",
    "branch-cycles",
];
/// Largest value of a parameter other than a size.
const CYCLES_MAX: u64 = 10_000;
const SETS_MAX: u64 = 1 << 20;
const WAYS_MAX: u64 = 64;

/// A processor to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostModel {
    /// The text that selected it: the name and the changed parameters.
    name: String,
    memories: [Memory; 7],
    /// Entries of the branch predictor, as a power of two.
    predictor: u64,
    /// Instructions that start in one cycle at best.
    issue: u64,
    cycles: [u64; 8],
}

impl Default for CostModel {
    /// Returns the model of an Intel Xeon of the Skylake server generation with 16 cores: sizes and
    /// latencies of the Intel 64 and IA-32 Architectures Optimization Reference Manual, Skylake
    /// Server Microarchitecture (L1 4, L2 14 cycles), the costs beyond them rounded. Its branch
    /// predictor is not public: it is a textbook's gshare.
    fn default() -> Self {
        Self {
            name: Self::NAME.to_owned(),
            memories: [
                Memory {
                    size: 32 << 10,
                    ways: 8,
                },
                Memory {
                    size: 32 << 10,
                    ways: 8,
                },
                Memory {
                    size: 1 << 20,
                    ways: 16,
                },
                Memory {
                    size: 22 << 20,
                    ways: 11,
                },
                Memory { size: 128, ways: 8 },
                Memory { size: 64, ways: 4 },
                Memory {
                    size: 1536,
                    ways: 12,
                },
            ],
            predictor: 14,
            issue: 4,
            cycles: [10, 10, 45, 150, 7, 7, 25, 16],
        }
    }
}

/// Why a text selects no cost model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostModelError {
    /// No model has this name.
    #[error("there is no model `{0}`; there is {name}, whose parameters can be changed: {name},l2=512K/8", name = CostModel::NAME)]
    Name(String),
    /// No parameter has this name.
    #[error("`{0}` is no parameter; there are {known}", known = CostModel::parameters().join(", "))]
    Parameter(String),
    /// The value is invalid.
    #[error("{0}")]
    Value(String),
}

impl CostModel {
    /// The name of the built-in model.
    pub const NAME: &str = "skylake-sp";

    /// Parses a name and changed parameters: `skylake-sp,l2=512K/8,branch-cycles=20`.
    ///
    /// # Errors
    /// If there is no such model or parameter, or a value makes no sense.
    pub fn parse(text: &str) -> Result<Self, CostModelError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        if name != Self::NAME {
            return Err(CostModelError::Name(name.to_owned()));
        }
        let mut model = Self::default();
        for part in parts {
            let (word, value) = part
                .split_once('=')
                .ok_or_else(|| CostModelError::Parameter(part.to_owned()))?;
            model.set(word, value)?;
        }
        text.clone_into(&mut model.name);
        Ok(model)
    }

    fn parameters() -> Vec<&'static str> {
        MEMORIES
            .map(|(word, _)| word)
            .into_iter()
            .chain(["predictor", "issue"])
            .chain(CYCLES)
            .collect()
    }

    fn set(&mut self, word: &str, value: &str) -> Result<(), CostModelError> {
        let number = |range, what| parse_number(word, value, range, what);
        if let Some(place) = MEMORIES.iter().position(|(known, _)| *known == word) {
            let memory = parse_memory(value, MEMORIES[place].1);
            self.memories[place] = memory.ok_or_else(|| {
                let example = if MEMORIES[place].1 == 1 {
                    "64/4 (entries/ways)"
                } else {
                    "32K/8 (bytes/ways)"
                };
                let sets = "with a power of two of sets";
                CostModelError::Value(format!(
                    "{word}={value}: expected a size and ways, {sets}, such as {example}"
                ))
            })?;
        } else if let Some(place) = CYCLES.iter().position(|known| *known == word) {
            self.cycles[place] = number(0..=CYCLES_MAX, "cycles")?;
        } else if word == "predictor" {
            self.predictor = number(1..=20, "a power of two of entries")?;
        } else if word == "issue" {
            self.issue = number(1..=16, "instructions in a cycle")?;
        } else {
            return Err(CostModelError::Parameter(word.to_owned()));
        }
        Ok(())
    }

    /// Returns the name and the changed parameters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the arguments of the tracer: sets and ways, and the predictor's power of two.
    #[must_use]
    pub fn simulated(&self) -> Vec<(&'static str, String)> {
        let mut simulated = Vec::new();
        for ((word, line), memory) in MEMORIES.iter().zip(&self.memories) {
            let sets = memory.size / line / memory.ways;
            simulated.push((*word, format!("{sets}/{}", memory.ways)));
        }
        simulated.push(("predictor", self.predictor.to_string()));
        simulated
    }

    /// Returns the estimated cycles: instructions at the best rate, then each event's share.
    #[must_use]
    pub fn cycles(&self, instructions: u64, events: &CostEvents) -> f64 {
        let added: f64 = events
            .iter()
            .zip(self.cycles)
            .map(|(count, cycles)| *count as f64 * cycles as f64)
            .sum();
        instructions as f64 / self.issue as f64 + added
    }
}

impl fmt::Display for CostModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        for ((word, line), Memory { size, ways }) in MEMORIES.iter().zip(&self.memories) {
            match size {
                size if *line > 1 && size % (1 << 10) != 0 => {
                    write!(f, "{word} {size} bytes/{ways}, ")?;
                }
                size if *line > 1 && size % (1 << 20) == 0 => {
                    write!(f, "{word} {} MiB/{ways}, ", size >> 20)?;
                }
                size if *line > 1 => write!(f, "{word} {} KiB/{ways}, ", size >> 10)?,
                size => write!(f, "{word} {size}/{ways}, ")?,
            }
        }
        write!(
            f,
            "gshare of 2^{} entries; cycles = instructions/{}",
            self.predictor, self.issue
        )?;
        for (event, cycles) in CostEvent::ALL.iter().zip(self.cycles) {
            write!(f, " + {cycles} {}", event.name())?;
        }
        Ok(())
    }
}

fn parse_memory(text: &str, line: u64) -> Option<Memory> {
    let (size, ways) = text.split_once('/')?;
    let (digits, shift) = match size.strip_suffix(['K', 'M']) {
        Some(digits) if line > 1 => (digits, if size.ends_with('K') { 10 } else { 20 }),
        Some(_) => return None,
        None => (size, 0),
    };
    let ways = ways
        .parse::<u64>()
        .ok()
        .filter(|ways| (1..=WAYS_MAX).contains(ways))?;
    let size = digits.parse::<u64>().ok().filter(|size| *size < 1 << 32)? << shift;
    let sets = size / line / ways;
    let is_whole = sets * line * ways == size && sets.is_power_of_two() && sets <= SETS_MAX;
    is_whole.then_some(Memory { size, ways })
}

/// Simulated events of one function in one share, over all regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelledLine {
    /// Who executed these instructions.
    pub share: Share,
    /// Its symbol; `[user]` for user code.
    pub symbol: String,
    /// Executed instructions, iterations included.
    pub instructions: u64,
    /// How often each event happened.
    pub events: CostEvents,
}

/// Results of the cost model for one workload in one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modelled {
    /// Operations in all regions together.
    pub operations: u64,
    /// The functions that were executed, each once.
    pub lines: Vec<ModelledLine>,
}

/// Parses a number of a parameter within its range.
fn parse_number(
    word: &str,
    value: &str,
    range: std::ops::RangeInclusive<u64>,
    what: &str,
) -> Result<u64, CostModelError> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let least = range.start();
        let most = range.end();
        CostModelError::Value(format!(
            "{word}={value}: expected {what} from {least} to {most}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{CostEvent, CostModel, CostModelError};

    #[test]
    fn parameters_change_a_model() {
        let model = CostModel::parse("skylake-sp,l2=512K/8,dtlb=32/4,branch-cycles=20").unwrap();
        assert_eq!(
            model.to_string(),
            "skylake-sp,l2=512K/8,dtlb=32/4,branch-cycles=20: l1i 32 KiB/8, l1d 32 KiB/8, l2 512 KiB/8, last 22 MiB/11, \
             itlb 128/8, dtlb 32/4, stlb 1536/12, gshare of 2^14 entries; cycles = instructions/4 + 10 l1i + 10 l1d + \
             45 l2 + 150 last + 7 itlb + 7 dtlb + 25 walk + 20 branch"
        );
        let simulated = model.simulated();
        assert_eq!(simulated[2], ("l2", "1024/8".to_owned()));
        assert_eq!(simulated[3], ("last", "32768/11".to_owned()));
        assert_eq!(simulated[6], ("stlb", "128/12".to_owned()));
        assert_eq!(simulated[7], ("predictor", "14".to_owned()));
    }

    #[test]
    fn cycles_add_instructions_and_event_costs() {
        let mut events = [0; CostEvent::ALL.len()];
        events[CostEvent::L1i as usize] = 2;
        events[CostEvent::Branch as usize] = 1;
        assert_eq!(
            CostModel::default().cycles(400, &events).to_bits(),
            (100.0_f64 + 20.0 + 16.0).to_bits()
        );
    }

    #[test]
    fn unknown_model_name_is_an_error() {
        let error = |text: &str| CostModel::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("zen"),
            "there is no model `zen`; there is skylake-sp, whose parameters can be changed: skylake-sp,l2=512K/8"
        );
        assert!(
            error("skylake-sp,l4=1M/8")
                .starts_with("`l4` is no parameter; there are l1i, l1d, l2,")
        );
        assert!(error("skylake-sp,l2").starts_with("`l2` is no parameter"));
        for wrong in ["33K/8", "32K/0", "32K", "x/8", "32G/8", "4294967295M/1"] {
            assert!(
                matches!(
                    CostModel::parse(&format!("skylake-sp,l1i={wrong}")),
                    Err(CostModelError::Value(_))
                ),
                "{wrong}"
            );
        }
        assert_eq!(
            error("skylake-sp,issue=0"),
            "issue=0: expected instructions in a cycle from 1 to 16"
        );
        assert_eq!(
            error("skylake-sp,dtlb=64K/4"),
            "dtlb=64K/4: expected a size and ways, with a power of two of sets, such as 64/4 (entries/ways)"
        );
    }
}

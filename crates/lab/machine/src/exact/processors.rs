//! Several processors on the exact machine: which builds of QEMU execute them exactly, at what
//! costs, and what a job's transfers are. How they are executed and lines followed is in
//! `crates/guest/tracer/src/smp`.

use std::fmt;

use model::KnownQemu;
use wire::{Frame, Stream};

use crate::MachineError;
use crate::qemu::{Qemu, QemuProblem};

/// The tracer's file for the lines that moved.
pub(super) const SHARED: &str = "shared";
/// Most by which one processor is ahead of another when the machine goes on (ns).
const OFFSET_MAX: u64 = 2_000;

/// Several processors, executed exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smp {
    pub cpus: u32,
    pub costs: Costs,
}

impl Smp {
    /// Checks that a QEMU executes several processors exactly.
    ///
    /// # Errors
    /// If the build is not known; the error names those that are.
    pub fn check(qemu: &Qemu) -> Result<(), MachineError> {
        Processors::new(Self::new(2), qemu).map(|_| ())
    }

    /// So many processors at the usual costs.
    #[must_use]
    pub fn new(cpus: u32) -> Self {
        Self {
            cpus,
            costs: Costs::default(),
        }
    }
}

/// What scheduling costs, in nanoseconds of a processor's own time: see
/// `crates/guest/tracer/src/smp/schedule.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// How far a processor gets ahead of the next. Above the latency it hides transfers.
    pub quantum: u32,
    /// A line that moves.
    pub latency: u32,
    pub pause: u32,
    /// From an interrupt to a halted processor until that runs.
    pub wake: u32,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            quantum: 100,
            latency: 100,
            pause: 40,
            wake: 500,
        }
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            quantum,
            latency,
            pause,
            wake,
        } = self;
        write!(
            f,
            "quantum={quantum},latency={latency},pause={pause},wake={wake}"
        )
    }
}

/// The processors of a machine that has several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processors {
    pub(super) count: u32,
    costs: Costs,
    build: &'static str,
}

impl Processors {
    /// Returns so many processors, on a QEMU that is known.
    pub(super) fn new(smp: Smp, qemu: &Qemu) -> Result<Self, MachineError> {
        let known = KnownQemu::find(&qemu.hashes).filter(|_| qemu.plugins);
        Ok(Self {
            count: smp.cpus,
            costs: smp.costs,
            build: known
                .ok_or_else(|| QemuProblem::NotExactSmp {
                    found: qemu.version.clone(),
                    known: KnownQemu::ALL
                        .iter()
                        .map(|known| known.version)
                        .collect::<Vec<_>>()
                        .join(", "),
                })?
                .name,
        })
    }

    /// Returns the tracer's arguments.
    pub(super) fn tracer_arguments(self, seed: u64, follows: bool) -> String {
        let offsets: Vec<String> = (0..u64::from(self.count))
            .map(|number| offset(seed, number).to_string())
            .collect();
        let shared = if follows {
            format!(",sharing={SHARED}")
        } else {
            String::new()
        };
        format!(
            ",build={},{},offsets={}{shared}",
            self.build,
            self.costs,
            offsets.join("/")
        )
    }

    /// Returns what results depend on.
    pub(super) fn fingerprint(self) -> [(String, String); 2] {
        [
            ("processors".into(), self.count.to_string()),
            (
                "scheduling".into(),
                format!("{} offsets<{OFFSET_MAX}", self.costs),
            ),
        ]
    }
}

/// Returns by how much a processor's time differs from the machine's when a job begins (ns).
fn offset(seed: u64, number: u64) -> u64 {
    // Neighbouring seeds are far apart, and the first processor is where the machine is.
    seed.wrapping_add(1)
        .wrapping_mul(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        % OFFSET_MAX
}

/// Puts the transfers of each iteration in place of the time that it took.
pub(super) fn count_transfers(stream: &mut Stream, shared: &[u8]) -> Result<(), MachineError> {
    let text = String::from_utf8_lossy(shared);
    let region = |line: &str| {
        let mut fields = line.strip_prefix("region ")?.split(' ').skip(1);
        let moves: [u64; 3] = std::array::from_fn(|_| {
            fields
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(u64::MAX)
        });
        moves
            .iter()
            .try_fold(0_u64, |sum, moves| sum.checked_add(*moves))
    };
    let transfers: Vec<u64> = text.lines().filter_map(region).collect();
    let is_whole = text.lines().last() == Some("end 0 0");
    for frame in &mut stream.frames {
        if let Frame::Samples(samples) = frame {
            if samples.len() != transfers.len() || !is_whole {
                let answer = format!(
                    "transfers of {} iterations, {} were measured",
                    transfers.len(),
                    samples.len()
                );
                return Err(MachineError::Refused {
                    command: "follow lines".into(),
                    answer,
                });
            }
            samples.clone_from(&transfers);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wire::{Frame, Stream};

    use super::{OFFSET_MAX, count_transfers, offset};

    #[test]
    fn transfers_stand_where_ticks_stood() {
        let stream = || Stream {
            frames: vec![Frame::Samples(vec![1000, 2000])],
        };
        let mut whole = stream();
        count_transfers(
            &mut whole,
            b"region 1 1 2 3 0\nregion 1 0 0 4 4\nmoved load true 0 41 0 1\nend 0 0\n",
        )
        .unwrap();
        assert_eq!(whole.frames, [Frame::Samples(vec![6, 4])]);
        for short in [
            "region 1 1 2 3 0\nend 0 0\n",
            "region 1 1 2 3 0\nregion 1 1 2 3 0\n",
            "region 1 1 2 3 0\nregion 1 1 2 x 0\nend 0 0\n",
            "",
        ] {
            assert!(
                count_transfers(&mut stream(), short.as_bytes()).is_err(),
                "{short}"
            );
        }
    }

    #[test]
    fn seeds_differ_by_offsets_of_later_processors() {
        assert!((0..9).all(|seed| offset(seed, 0) == 0 && offset(seed, 1) < OFFSET_MAX));
        let different: std::collections::BTreeSet<u64> =
            (0..20).map(|seed| offset(seed, 1)).collect();
        assert!(different.len() > 15, "{different:?}");
    }
}

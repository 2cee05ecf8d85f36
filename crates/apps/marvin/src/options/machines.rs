//! Options for the machines to measure on, and for the number of tasks there.

use std::fmt;

use clap::Args;
use lab::Wanted;
use machine::{Smp, VmShape};
use model::TASKS_MAX;

use super::whole;
use crate::completion;

/// The memory of a virtual machine (MiB), unless its workloads need more.
const MEMORY_MIB: u32 = 1024;

/// Its least memory (MiB): a kernel of a distribution unpacks the guest's files in it.
const MEMORY_MIB_MIN: u64 = 128;

/// Its most memory (MiB).
const MEMORY_MIB_MAX: u64 = 1 << 20;

/// Boots of each kernel.
const BOOTS: u64 = 5;

/// Most boots of each kernel with `--until-clear`.
const BOOTS_AT_MOST: u64 = 30;

/// Most processors that a virtual machine has by default.
const CPUS: usize = 4;

/// Processors of exact-smp by default.
const EXACT_CPUS: u32 = 2;

/// The machine that counts instructions.
pub(crate) const EXACT: &str = "exact";

/// The exact machine with several processors.
pub(crate) const EXACT_SMP: &str = "exact-smp";

/// The virtual machine that measures time.
pub(crate) const VM: &str = "vm";

/// Names of machines that need no settings, and what they are.
pub(crate) const OWN_MACHINES: [(&str, &str); 4] = [
    (EXACT, "counts instructions, repeats exactly"),
    (EXACT_SMP, "several processors, counts the lines they share"),
    (VM, "several processors, measures time"),
    ("local", "this host; its kernel is running:"),
];

/// Options for the machines to measure on.
#[derive(Debug, Args)]
pub(crate) struct MachineOptions {
    /// Machines to measure on, separated by commas: exact (counts instructions), exact-smp (counts
    /// the lines of memory that processors share), vm (a virtual machine with several
    /// processors), local (this host; its kernel is running:), or a [[machine]] of marvin.toml
    #[arg(
        long,
        value_name = "MACHINES",
        value_delimiter = ',',
        default_value = "exact",
        add = completion::machine()
    )]
    pub(crate) on: Vec<String>,

    #[command(flatten)]
    pub(crate) noisy: NoisyOptions,
}

/// Options for machines that measure time.
#[derive(Debug, Args)]
pub(crate) struct NoisyOptions {
    /// Number of boots of each kernel on machines that measure time; at most, with --until-clear
    /// [default: 5; 30 with --until-clear]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 100))]
    pub(crate) boots: Option<u64>,

    /// Processors of vm [default: those of this host, at most 4] and of exact-smp [default: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 64))]
    pub(crate) cpus: Option<u32>,

    /// Memory of the virtual machine in MiB; workloads that need more get more [default: 1024]
    #[arg(long, value_name = "MIB", value_parser = whole::<u32>(MEMORY_MIB_MIN, MEMORY_MIB_MAX))]
    pub(crate) memory: Option<u32>,
}

/// Returns a machine that needs no settings; `None` for other names.
pub(crate) fn own_machine(name: &str, noisy: &NoisyOptions) -> Option<Wanted> {
    match name {
        EXACT => Some(Wanted::Exact),
        EXACT_SMP => Some(Wanted::ExactSmp(Smp::new(noisy.cpus.unwrap_or(EXACT_CPUS)))),
        VM => Some(Wanted::Vm(VmShape {
            cpus: noisy.cpus(),
            memory_mib: noisy.memory.unwrap_or(MEMORY_MIB),
        })),
        "local" => Some(Wanted::Local),
        _ => None,
    }
}

impl NoisyOptions {
    /// Returns the number of boots.
    pub(crate) fn boots(&self) -> u64 {
        self.boots.unwrap_or(BOOTS)
    }

    /// Returns the number of processors of the virtual machine.
    fn cpus(&self) -> u32 {
        let here = std::thread::available_parallelism()
            .map_or(1, std::num::NonZero::get)
            .min(CPUS);
        self.cpus
            .unwrap_or_else(|| u32::try_from(here).unwrap_or(1))
    }
}

impl MachineOptions {
    /// Returns the most boots with `--until-clear`.
    pub(crate) fn boots_at_most(&self) -> u64 {
        self.noisy.boots.unwrap_or(BOOTS_AT_MOST)
    }

    /// Returns the names of the machines, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in &self.on {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Returns whether results are counts, at least in part.
    pub(crate) fn has_exact(&self) -> bool {
        self.names().contains(&OWN_MACHINES[0].0)
    }

    /// Returns these options as words, without those that have no effect.
    pub(crate) fn arguments(&self, until_clear: bool) -> Vec<String> {
        if self.names() == [OWN_MACHINES[0].0] {
            return Vec::new();
        }
        let mut arguments = vec!["--on".to_owned(), self.names().join(",")];
        if !self
            .names()
            .iter()
            .all(|name| ["exact", "exact-smp"].contains(name))
        {
            let boots = if until_clear {
                self.boots_at_most()
            } else {
                self.noisy.boots()
            };
            arguments.extend(["--boots".to_owned(), boots.to_string()]);
        }
        if self.names().contains(&"vm") {
            arguments.extend(["--cpus".to_owned(), self.noisy.cpus().to_string()]);
            arguments.extend(
                self.noisy
                    .memory
                    .iter()
                    .flat_map(|mib| ["--memory".to_owned(), mib.to_string()]),
            );
        } else if self.names().contains(&"exact-smp") {
            arguments.extend(
                self.noisy
                    .cpus
                    .iter()
                    .flat_map(|cpus| ["--cpus".to_owned(), cpus.to_string()]),
            );
        }
        arguments
    }
}

/// Options for workloads that scale.
#[derive(Debug, Args)]
pub(crate) struct ThreadOptions {
    /// Run workloads of suite scale with these numbers of tasks at the same time, separated by
    /// commas: 1,2,4,max; max: one for each processor of the machine [default: powers of two
    /// up to max]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = threads)]
    pub(crate) threads: Vec<Threads>,
}

/// A number of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    Number(u32),
    /// One for each processor.
    Max,
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Max => f.write_str("max"),
        }
    }
}

impl ThreadOptions {
    /// Returns these options as words.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let numbers: Vec<String> = self.threads.iter().map(Threads::to_string).collect();
        if numbers.is_empty() {
            Vec::new()
        } else {
            vec!["--threads".to_owned(), numbers.join(",")]
        }
    }
}

fn threads(text: &str) -> Result<Threads, String> {
    let most = u64::from(TASKS_MAX);
    match text {
        "max" => Ok(Threads::Max),
        _ => whole(1, most)(text)
            .map(Threads::Number)
            .map_err(|why| format!("{why}, or max")),
    }
}

#[cfg(test)]
mod tests {
    use lab::Wanted;
    use machine::VmShape;

    use super::{MachineOptions, NoisyOptions, Threads, own_machine, threads};

    fn on(names: &str, memory: Option<u32>) -> MachineOptions {
        let noisy = NoisyOptions {
            boots: None,
            cpus: Some(2),
            memory,
        };
        MachineOptions {
            on: names.split(',').map(str::to_owned).collect(),
            noisy,
        }
    }

    #[test]
    fn memory_is_repeated_where_it_counts() {
        assert_eq!(
            on("vm", Some(512)).arguments(false).join(" "),
            "--on vm --boots 5 --cpus 2 --memory 512"
        );
        assert_eq!(
            on("vm", None).arguments(false).join(" "),
            "--on vm --boots 5 --cpus 2"
        );
        assert_eq!(
            on("local", Some(512)).arguments(false).join(" "),
            "--on local --boots 5"
        );
        let shape = |memory| own_machine("vm", &on("vm", memory).noisy);
        assert_eq!(
            shape(Some(512)),
            Some(Wanted::Vm(VmShape {
                cpus: 2,
                memory_mib: 512
            }))
        );
        assert_eq!(
            shape(None),
            Some(Wanted::Vm(VmShape {
                cpus: 2,
                memory_mib: 1024
            }))
        );
    }

    #[test]
    fn threads_are_numbers_or_max() {
        assert_eq!(
            [threads("4"), threads("max")],
            [Ok(Threads::Number(4)), Ok(Threads::Max)]
        );
        for wrong in ["", "0", "-1", "4097", "two"] {
            assert_eq!(
                threads(wrong),
                Err("expected a whole number from 1 to 4096, or max".to_owned()),
                "{wrong}"
            );
        }
    }
}

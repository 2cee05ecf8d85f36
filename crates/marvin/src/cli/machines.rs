//! Options that choose the machines of a measurement.

use clap::{Args, ValueEnum};
use machine::{VmShape, Wanted};

use super::whole;

/// The memory of a virtual machine (MiB), unless its workloads need more.
const MEMORY_MIB: u32 = 1024;
/// Most processors that a virtual machine has by default.
const CPUS: usize = 4;

/// A machine by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MachineName {
    /// Counts instructions: the same kernel gives the same numbers
    Exact,
    /// A virtual machine with several processors: measures time, which scatters
    Vm,
    /// This host with the kernel that it runs, whose name is running:
    Local,
}

/// Options for the machines to measure on.
#[derive(Debug, Args)]
pub(crate) struct On {
    /// Machines to measure on, separated by commas
    #[arg(long, value_name = "MACHINES", value_enum, value_delimiter = ',', default_value = "exact")]
    pub(crate) on: Vec<MachineName>,

    /// Number of boots of each kernel on machines that measure time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u64>(1, 1000))]
    pub(crate) boots: u64,

    /// Processors of the virtual machine [default: those of this host, at most 4]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 64))]
    pub(crate) cpus: Option<u32>,
}

impl On {
    /// Returns the machines to open, each once, with their names.
    pub(crate) fn machines(&self) -> Vec<(MachineName, Wanted)> {
        let mut names: Vec<MachineName> = Vec::new();
        for name in &self.on {
            if !names.contains(name) {
                names.push(*name);
            }
        }
        names.into_iter().map(|name| (name, self.wanted(name))).collect()
    }

    /// Returns whether results are counts, at least in part.
    pub(crate) fn has_exact(&self) -> bool {
        self.on.contains(&MachineName::Exact)
    }

    /// Returns these options as words, without those that have no effect.
    pub(crate) fn words(&self) -> Vec<String> {
        if self.on == [MachineName::Exact] {
            return Vec::new();
        }
        let names: Vec<&str> = self.machines().iter().map(|(name, _)| name.word()).collect();
        let mut words = vec!["--on".to_owned(), names.join(",")];
        words.extend(["--boots".to_owned(), self.boots.to_string()]);
        for (_, wanted) in self.machines() {
            if let Wanted::Vm(VmShape { cpus, .. }) = wanted {
                words.extend(["--cpus".to_owned(), cpus.to_string()]);
            }
        }
        words
    }

    fn wanted(&self, name: MachineName) -> Wanted {
        match name {
            MachineName::Exact => Wanted::Exact,
            MachineName::Local => Wanted::Local,
            MachineName::Vm => {
                let here = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(CPUS);
                let cpus = self.cpus.unwrap_or_else(|| u32::try_from(here).unwrap_or(1));
                Wanted::Vm(VmShape { cpus, memory_mib: MEMORY_MIB })
            }
        }
    }
}

impl MachineName {
    /// Returns the name as users type it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Vm => "vm",
            Self::Local => "local",
        }
    }
}

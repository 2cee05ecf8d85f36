//! What a workload needs of its guest beyond a kernel: memory, modules, files.
//!
//! Workloads of the same equipment share a machine; each other equipment is a machine of its own, with its own
//! fingerprint and snapshots. How it gets into a guest is left to `machine`, finding modules to `kernel`.

use std::borrow::Cow;
use std::fmt;

/// What a guest is equipped with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Equipment {
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Modules that are loaded before the guest settles, in this order; those that they need come by themselves.
    pub modules: &'static [GuestModule],
    /// Files beside the guest's programs.
    pub files: ExtraFiles,
}

/// A module of the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestModule {
    /// Its name.
    pub name: &'static str,
    /// Its parameters, as a boot loader would write them behind it: `delay=1 dev_size_mb=64`. Empty for none.
    pub parameters: &'static str,
    /// What it means that a build does not have it.
    pub need: Need,
}

/// What it means that something is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The workload cannot be run.
    Must,
    /// Nothing: some kernels need it, others have what it does elsewhere.
    May,
}

/// Files that a guest carries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtraFiles {
    /// None.
    None,
    /// Those of a guest image, unpacked into the root. Images are told apart by this text: two that may hold different
    /// files, or are used in another way, have different ones.
    Image(Cow<'static, str>),
}

impl Equipment {
    /// What workloads have that ask for nothing: enough for the micro suite, little enough to save and to restore
    /// quickly.
    pub const PLAIN: Self = Self::with_memory(256);

    /// Returns the equipment of a guest with so much memory and nothing else.
    #[must_use]
    pub const fn with_memory(memory_mib: u32) -> Self {
        Self { memory_mib, modules: &[], files: ExtraFiles::None }
    }
}

impl GuestModule {
    /// Returns a module that must be there, in the build's files or built in.
    #[must_use]
    pub const fn must(name: &'static str, parameters: &'static str) -> Self {
        Self { name, parameters, need: Need::Must }
    }

    /// Returns a module that is loaded where there is one.
    #[must_use]
    pub const fn may(name: &'static str) -> Self {
        Self { name, parameters: "", need: Need::May }
    }
}

/// As it is written into a machine's fingerprint: `256 MiB`, `128 MiB, null_blk gb=4, files`.
impl fmt::Display for Equipment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.memory_mib)?;
        for GuestModule { name, parameters, need } in self.modules {
            let maybe = if *need == Need::May { "?" } else { "" };
            write!(f, ", {name}{maybe}{}{parameters}", if parameters.is_empty() { "" } else { " " })?;
        }
        match &self.files {
            ExtraFiles::None => Ok(()),
            ExtraFiles::Image(name) => write!(f, ", files of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Equipment, ExtraFiles, GuestModule};

    #[test]
    fn equipment_differs_by_its_text() {
        assert_eq!(Equipment::PLAIN.to_string(), "256 MiB");
        const MODULES: &[GuestModule] = &[GuestModule::may("lzo"), GuestModule::must("null_blk", "gb=4 irqmode=2")];
        let all = Equipment {
            modules: MODULES,
            files: ExtraFiles::Image("sysbench 0a".into()),
            ..Equipment::with_memory(128)
        };
        assert_eq!(all.to_string(), "128 MiB, lzo?, null_blk gb=4 irqmode=2, files of sysbench 0a");
    }
}

//! A machine: where a build is booted, and everything about it that results depend on.

use std::fmt;

use crate::MachineId;

/// The kind of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineKind {
    /// QEMU with instruction counting and no outside input: the same build gives the same numbers.
    Exact,
    /// Somewhere that Marvin does not know, where another suite measured: results are imported, noise and all.
    Imported,
}

impl fmt::Display for MachineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Imported => f.write_str("imported"),
        }
    }
}

/// A machine with its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Hash of kind and fingerprint.
    pub id: MachineId,
    /// What kind it is.
    pub kind: MachineKind,
    /// One line for people: program, version, CPU model, memory.
    pub summary: String,
    /// Everything that results depend on apart from the kernel, as sorted pairs: CPU model, memory, hashes of
    /// program and firmware, arguments, the agent.
    pub fingerprint: Vec<(String, String)>,
}

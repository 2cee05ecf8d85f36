//! A machine: where a build is booted, and everything about it that results depend on.

use std::fmt;

use crate::MachineId;

/// What names of a fingerprint begin with that say what a guest is equipped with.
const OF_EQUIPMENT: [&str; 2] = ["equipment", "memory_mib"];

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

impl Machine {
    /// Tells whether this is the other machine with other equipment, or the same: one lab has as many as its workloads
    /// need.
    #[must_use]
    pub fn is_kin(&self, other: &Self) -> bool {
        let rest = |machine: &Self| -> Vec<(String, String)> {
            let is_rest = |(name, _): &&(String, String)| !OF_EQUIPMENT.iter().any(|start| name.starts_with(start));
            machine.fingerprint.iter().filter(is_rest).cloned().collect()
        };
        self.kind == other.kind && rest(self) == rest(other)
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, MachineKind};
    use crate::MachineId;

    #[test]
    fn machines_of_one_lab_are_kin_and_others_are_not() {
        let machine = |digit: &str, pairs: &[(&str, &str)]| Machine {
            id: MachineId::from_hex(&digit.repeat(64)).unwrap(),
            kind: MachineKind::Exact,
            summary: String::new(),
            fingerprint: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let plain = machine("a", &[("cpu", "max"), ("memory_mib", "256")]);
        let large = machine("b", &[("cpu", "max"), ("equipment.modules", "zram"), ("memory_mib", "1024")]);
        let other = machine("c", &[("cpu", "min"), ("memory_mib", "256")]);
        assert!(plain.is_kin(&large) && large.is_kin(&plain) && plain.is_kin(&plain));
        assert!(!plain.is_kin(&other));
    }
}

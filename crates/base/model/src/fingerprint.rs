//! What a machine and a boot say about themselves (`marvin-agent describe`): which of it belongs to
//! the machine, and what has changed since.

use std::fmt;

/// Whose property a named value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belongs {
    /// The machine's: firmware, microcode, processors, memory. A change makes it another machine,
    /// and its results never mix with those from before.
    Machine,
    /// The boot's: mitigations, command line, clock source, drivers. It may differ between kernels,
    /// and between boots of one kernel.
    Boot,
}

impl Belongs {
    /// Returns whose property a name of `marvin-agent describe` is.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        if name.starts_with("host.") {
            Self::Machine
        } else {
            Self::Boot
        }
    }
}

/// A property of a machine that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The fact's name: `host.memory`.
    pub name: String,
    /// The value when the machine was recorded.
    pub before: String,
    /// The value found now.
    pub now: String,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.name, self.before, self.now)
    }
}

/// Share by which memory may seem to change: where only the kernel says how much there is, it
/// leaves out what it has reserved. A removed module is more, except in a machine with very many.
const MEMORY_SHARE: u64 = 16;

/// Returns the properties of a machine that differ from its record, in the record's order. A value
/// that only one of them has is no change: without privileges fewer can be read.
#[must_use]
pub fn drift(record: &[(String, String)], now: &[(String, String)]) -> Vec<Drift> {
    let of_machine = record
        .iter()
        .filter(|(name, _)| Belongs::from_name(name) == Belongs::Machine);
    let changed = of_machine.filter_map(|(name, before)| {
        let (_, now) = now.iter().find(|(known, _)| known == name)?;
        let is_same = before == now || is_same_memory(before, now);
        (!is_same).then(|| Drift {
            name: name.clone(),
            before: before.clone(),
            now: now.clone(),
        })
    });
    changed.collect()
}

fn is_same_memory(before: &str, now: &str) -> bool {
    let (Some(before), Some(now)) = (mib(before), mib(now)) else {
        return false;
    };
    before.abs_diff(now) <= before.max(now) / MEMORY_SHARE
}

/// Reads a size of memory: `16384 MiB`.
fn mib(text: &str) -> Option<u64> {
    text.strip_suffix(" MiB")?.parse().ok()
}

/// Returns what to tell people about a machine that has changed; `None` if it has not.
#[must_use]
pub fn drift_text(machine: &str, drift: &[Drift]) -> Option<String> {
    let changes: Vec<String> = drift.iter().map(Drift::to_string).collect();
    (!changes.is_empty()).then(|| format!("machine {machine} changed: {}", changes.join("; ")))
}

/// Reads the lines of `marvin-agent describe`.
#[must_use]
pub fn described(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Belongs, described, drift, drift_text};

    const RECORD: &str = "boot.clocksource=tsc\nboot.mitigation.meltdown=Not affected\nhost.bios=1.2\n\
                          host.dimms=2 x 8192 MiB 3200 MT/s\nhost.memory=16384 MiB\nhost.microcode=0x7\n";

    #[test]
    fn unchanged_machine_has_no_drift() {
        assert!(drift(&described(RECORD), &described(RECORD)).is_empty());
        assert_eq!(drift_text("testbox", &[]), None);
    }

    #[test]
    fn changed_machine_is_described() {
        let now = RECORD.replace("=16384", "=8192").replace("0x7", "0x8");
        let drift = drift(&described(RECORD), &described(&now));
        let text =
            "machine testbox changed: host.memory 16384 MiB -> 8192 MiB; host.microcode 0x7 -> 0x8";
        assert_eq!(drift_text("testbox", &drift).as_deref(), Some(text));
    }

    #[test]
    fn other_boot_is_no_drift() {
        let now = RECORD
            .replace("=tsc", "=hpet")
            .replace("Not affected", "Mitigation: PTI");
        assert!(drift(&described(RECORD), &described(&now)).is_empty());
        assert_eq!(
            Belongs::from_name("boot.mitigation.meltdown"),
            Belongs::Boot
        );
        assert_eq!(Belongs::from_name("host.bios"), Belongs::Machine);
    }

    #[test]
    fn unreadable_values_are_no_drift() {
        let now: Vec<_> = described(RECORD)
            .into_iter()
            .filter(|(name, _)| name != "host.dimms")
            .collect();
        assert!(drift(&described(RECORD), &now).is_empty());
        assert!(drift(&now, &described(RECORD)).is_empty());
    }

    #[test]
    fn memory_that_a_kernel_reserves_is_none() {
        let memory = |mib: u32| described(&format!("host.memory={mib} MiB"));
        assert!(drift(&memory(16384), &memory(15900)).is_empty());
        assert_eq!(drift(&memory(16384), &memory(12288)).len(), 1);
        assert_eq!(drift(&described("host.memory=much"), &memory(1)).len(), 1);
    }
}

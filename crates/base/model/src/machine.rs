//! A machine: what boots a build, and every property that results depend on.

use std::fmt;
use std::str::FromStr;

use crate::MachineId;

/// Prefixes of the fingerprint entries that describe the guest config.
const OF_GUEST_CONFIG: [&str; 2] = ["equipment", "memory_mib"];

/// The kind of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineKind {
    /// QEMU with instruction counting and no outside input: the same build gives the same numbers.
    Exact,
    /// The same with several processors, which counts the lines of memory that move between them.
    ExactSmp,
    /// QEMU with several processors and real time: noisy, and nothing of the host but its processor
    /// is in it.
    Vm,
    /// This host, with the kernel that it runs.
    Local,
    /// A server by ssh, which boots builds once.
    Server,
    /// An unknown machine on which another suite measured: its results are imported and noisy.
    Imported,
}

/// An unknown kind of machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no kind of machine `{0}`")]
pub struct UnknownMachineKind(String);

impl MachineKind {
    const ALL: [Self; 6] = [
        Self::Exact,
        Self::ExactSmp,
        Self::Vm,
        Self::Local,
        Self::Server,
        Self::Imported,
    ];

    /// Returns its name in stores and documents, which never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ExactSmp => "exact-smp",
            Self::Vm => "vm",
            Self::Local => "local",
            Self::Server => "ssh",
            Self::Imported => "imported",
        }
    }

    /// Returns the caveat for readers of its numbers.
    #[must_use]
    pub const fn caution(self) -> &'static str {
        match self {
            Self::Exact => {
                "Exact machine: instructions are not cycles; one processor; caches, contention and devices are not in it."
            }
            Self::ExactSmp => {
                "Exact machine with several processors: transfers of lines in one interleaving for each seed; caches without \
                 limit; no nanoseconds, no scaling, no NUMA."
            }
            Self::Vm => {
                "Virtual machine: time on a host that others may use too; without KVM, QEMU translates each instruction, \
                 and caches are not in it."
            }
            Self::Local => {
                "This host: time with whatever else it did; runs of one boot are no independent boots."
            }
            Self::Server => {
                "Server: time on this machine; boots differ, so a difference is one between boots."
            }
            Self::Imported => {
                "Imported: another suite measured this. A difference is that of geometric means over runs; each run is \
                 taken for a start of its own."
            }
        }
    }
}

impl fmt::Display for MachineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MachineKind {
    type Err = UnknownMachineKind;

    fn from_str(word: &str) -> Result<Self, UnknownMachineKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or_else(|| UnknownMachineKind(word.to_owned()))
    }
}

/// The CPU of an exact machine. Another one is another machine: kernels choose string functions and
/// mitigations by it (`docs/exact-machine.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExactCpu {
    /// What QEMU offers on every host, of an old model without its own mitigations.
    #[default]
    Generic,
    /// Nearer to a server of today: AMD's EPYC of the third generation.
    Server,
}

/// A name of no CPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no CPU `{0}`; there are generic and server (--cpus sets the number of processors)")]
pub struct UnknownExactCpu(String);

impl ExactCpu {
    /// The key of its name in a machine's fingerprint; the usual one has no entry there.
    pub const KEY: &str = "cpu.name";

    /// The names of all.
    pub const NAMES: &[&str] = &["generic", "server"];

    /// Returns its name on the command line and in marvin.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Server => "server",
        }
    }

    /// Returns a command that measures on this CPU, on any host.
    #[must_use]
    pub fn repeat(self, command: String) -> String {
        if self == Self::default() {
            command
        } else {
            format!("{command} --cpu {}", self.name())
        }
    }
}

impl FromStr for ExactCpu {
    type Err = UnknownExactCpu;

    fn from_str(word: &str) -> Result<Self, UnknownExactCpu> {
        [Self::Generic, Self::Server]
            .into_iter()
            .find(|cpu| cpu.name() == word)
            .ok_or_else(|| UnknownExactCpu(word.to_owned()))
    }
}

/// A machine with its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Hash of kind and fingerprint.
    pub id: MachineId,
    /// How it runs kernels.
    pub kind: MachineKind,
    /// Summary in one line: program, version, CPU model, memory.
    pub summary: String,
    /// Everything except the kernel that results depend on, as sorted pairs: CPU model, memory,
    /// hashes of program and firmware, arguments, the agent.
    pub fingerprint: Vec<(String, String)>,
}

/// A build of QEMU with which the reference numbers are measured. Another one gives numbers of its
/// own: never bit for bit, and other verdicts where it shows its guests another processor
/// (`docs/exact-machine.md`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownQemu {
    /// Its name in `crates/guest/tracer/src/smp/qemu.rs`, which has the places of its fields.
    pub name: &'static str,
    /// Its version, for people.
    pub version: &'static str,
    /// The SHA-256 of the program, of its module for TCG, and of the firmware that boots kernels:
    /// a guest executes that, too.
    hashes: &'static [(&'static str, &'static str)],
}

impl KnownQemu {
    /// All that are known.
    pub const ALL: &[Self] = &[Self {
        name: "debian-7.2.22",
        version: "Debian 12's 1:7.2+dfsg-7+deb12u18+b3",
        hashes: &[
            (
                "qemu-system-x86_64",
                "1493008ba0036014c727bb23bbe2f399135867e9b5c4fe288ef2b4b816f46b0c",
            ),
            (
                "accel-tcg-x86_64.so",
                "e113de9d435e9b4cb118e2a9dbd0f0954d24ded7034e5ec0ed1baa6111dfeb5b",
            ),
            (
                "bios-microvm.bin",
                "5c4d986a8829abc3ccc45302bb0e9e93e9f78435a6ed4d13a48f4e2822f91f74",
            ),
            (
                "pvh.bin",
                "bac467fcfca0232cc87f4054463df09c341d633dab3daeedc4ad73e5658f9d02",
            ),
            (
                "linuxboot_dma.bin",
                "388e7e5dc15ac1884cd5a65cccee09ff68837a50da41228f88a0fd45f4f2ff7d",
            ),
        ],
    }];

    /// What names of files begin with in a machine's fingerprint.
    pub const PREFIX: &str = "sha256.";

    /// Returns the build that has these hashes, by name of file.
    #[must_use]
    pub fn find(hashes: &[(String, String)]) -> Option<&'static Self> {
        Self::ALL.iter().find(|known| {
            known.hashes.iter().all(|(name, hash)| {
                let mut hashes = hashes.iter();
                hashes.any(|(file, found)| file == name && found == hash)
            })
        })
    }
}

impl Machine {
    /// Returns the version of the QEMU that an exact machine runs on if it is none of the known
    /// ones.
    #[must_use]
    pub fn another_qemu(&self) -> Option<&str> {
        if !matches!(self.kind, MachineKind::Exact | MachineKind::ExactSmp) {
            return None;
        }
        let (_, version) = self
            .fingerprint
            .iter()
            .find(|(name, _)| name == "qemu.version")?;
        let mut hashes: Vec<(String, String)> = Vec::new();
        for (name, hash) in &self.fingerprint {
            if let Some(file) = name.strip_prefix(KnownQemu::PREFIX) {
                hashes.push((file.to_owned(), hash.clone()));
            }
        }
        KnownQemu::find(&hashes).is_none().then_some(version)
    }

    /// Returns the CPU of an exact machine; the usual one for other machines.
    #[must_use]
    pub fn exact_cpu(&self) -> ExactCpu {
        let mut pairs = self.fingerprint.iter();
        let named = pairs.find(|(name, _)| name == ExactCpu::KEY);
        named
            .and_then(|(_, name)| name.parse().ok())
            .unwrap_or_default()
    }

    /// Returns what tells it from the usual exact machine, with a comma before each: its CPU, its
    /// QEMU.
    #[must_use]
    pub fn peculiarities(&self) -> String {
        let cpu = self.exact_cpu();
        let cpu = (cpu != ExactCpu::default()).then(|| format!(", CPU {}", cpu.name()));
        let qemu = self.another_qemu();
        let qemu = qemu.map(|version| format!(", another QEMU ({version})"));
        [cpu, qemu].into_iter().flatten().collect()
    }

    /// Returns the machine of imported results.
    #[must_use]
    pub const fn imported(
        id: MachineId,
        summary: String,
        fingerprint: Vec<(String, String)>,
    ) -> Self {
        Self {
            id,
            kind: MachineKind::Imported,
            summary,
            fingerprint,
        }
    }

    /// Returns whether both are the same machine apart from the guest config; a lab has one machine
    /// per guest config.
    #[must_use]
    pub fn is_kin(&self, other: &Self) -> bool {
        self.kind == other.kind && self.without_guest_config().eq(other.without_guest_config())
    }

    fn without_guest_config(&self) -> impl Iterator<Item = &(String, String)> {
        self.fingerprint
            .iter()
            .filter(|(name, _)| !OF_GUEST_CONFIG.iter().any(|start| name.starts_with(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::{ExactCpu, KnownQemu, Machine, MachineKind};
    use crate::MachineId;

    #[test]
    fn kinds_are_read_from_their_words() {
        assert_eq!(
            MachineKind::ALL.map(MachineKind::name),
            ["exact", "exact-smp", "vm", "local", "ssh", "imported"],
            "stores have these"
        );
        for kind in MachineKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(
            "quantum".parse::<MachineKind>().unwrap_err().to_string(),
            "no kind of machine `quantum`"
        );
    }

    #[test]
    fn cpus_are_read_from_their_names() {
        for (name, cpu) in ExactCpu::NAMES
            .iter()
            .zip([ExactCpu::Generic, ExactCpu::Server])
        {
            assert_eq!((name.parse(), cpu.name()), (Ok(cpu), *name));
        }
        assert_eq!(
            "4".parse::<ExactCpu>().unwrap_err().to_string(),
            "no CPU `4`; there are generic and server (--cpus sets the number of processors)"
        );
    }

    #[test]
    fn other_cpus_and_qemus_are_peculiarities() {
        let hashes = KnownQemu::ALL[0].hashes.iter();
        let mut fingerprint: Vec<(String, String)> = hashes
            .map(|(name, hash)| (format!("{}{name}", KnownQemu::PREFIX), (*hash).to_owned()))
            .collect();
        fingerprint.push(("qemu.version".to_owned(), "7.2.22".to_owned()));
        let mut machine = Machine {
            id: MachineId::from_hex(&"a".repeat(64)).unwrap(),
            kind: MachineKind::Exact,
            summary: String::new(),
            fingerprint,
        };
        assert_eq!(machine.peculiarities(), "");
        assert_eq!(machine.exact_cpu().repeat("run".to_owned()), "run");
        let server = ExactCpu::Server.name().to_owned();
        machine.fingerprint.push((ExactCpu::KEY.to_owned(), server));
        assert_eq!(machine.peculiarities(), ", CPU server");
        assert_eq!(
            machine.exact_cpu().repeat("run".to_owned()),
            "run --cpu server"
        );
        // Other firmware: the guest executes it.
        machine.fingerprint[2].1 = "0".to_owned();
        assert_eq!(
            machine.peculiarities(),
            ", CPU server, another QEMU (7.2.22)"
        );
    }

    #[test]
    fn machines_of_one_lab_are_kin() {
        let machine = |digit: &str, pairs: &[(&str, &str)]| Machine {
            id: MachineId::from_hex(&digit.repeat(64)).unwrap(),
            kind: MachineKind::Exact,
            summary: String::new(),
            fingerprint: pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let plain = machine("a", &[("cpu", "max"), ("memory_mib", "256")]);
        let large = machine(
            "b",
            &[
                ("cpu", "max"),
                ("equipment.modules", "zram"),
                ("memory_mib", "1024"),
            ],
        );
        let other = machine("c", &[("cpu", "min"), ("memory_mib", "256")]);
        assert!(plain.is_kin(&large) && large.is_kin(&plain) && plain.is_kin(&plain));
        assert!(!plain.is_kin(&other));
    }
}

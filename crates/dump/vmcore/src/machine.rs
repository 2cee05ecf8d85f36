//! The architectures of dumps.

use crate::note::Info;

/// An architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// 64-bit POWER, little-endian: its page tables are not read.
    Ppc64le,
    /// 64-bit RISC-V: its page tables are not read.
    Riscv64,
}

/// All of them.
const MACHINES: [Machine; 4] = [
    Machine::X86_64,
    Machine::Aarch64,
    Machine::Ppc64le,
    Machine::Riscv64,
];

/// Returns how to call the machine of an ELF header, which need not be a supported one (`EM_…`,
/// `include/uapi/linux/elf-em.h`).
pub(crate) fn elf_name(number: u16) -> String {
    const NAMES: [(u16, &str); 13] = [
        (2, "sparc"),
        (3, "i386"),
        (8, "mips"),
        (15, "parisc"),
        (20, "ppc"),
        (21, "ppc64"),
        (22, "s390x"),
        (40, "arm"),
        (43, "sparc64"),
        (62, "x86_64"),
        (183, "aarch64"),
        (243, "riscv64"),
        (258, "loongarch64"),
    ];
    let name = NAMES.into_iter().find(|(machine, _)| *machine == number);
    name.map_or_else(
        || format!("ELF machine {number}"),
        |(_, name)| {
            format!(
                "a dump of {name}; x86_64 and aarch64 are read, ppc64le and riscv64 at --level 0 and 1"
            )
        },
    )
}

impl Machine {
    /// Returns the architecture of an ELF header's `e_machine`.
    pub(crate) fn from_elf(number: u16) -> Option<Self> {
        MACHINES.into_iter().find(|machine| machine.elf() == number)
    }

    /// Returns its number in an ELF header.
    pub(crate) fn elf(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
            Self::Ppc64le => 21,
            Self::Riscv64 => 243,
        }
    }

    /// Returns the architecture by `uname -m`'s name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        MACHINES.into_iter().find(|machine| machine.name() == name)
    }

    /// Returns the architecture by what its kernels write into their note about themselves
    /// (`arch_crash_save_vmcoreinfo`, `arch/*/kernel/`).
    pub(crate) fn from_info(info: &Info) -> Option<Self> {
        let names = [
            ("kimage_voffset", Self::Aarch64),
            ("phys_base", Self::X86_64),
            ("phys_ram_base", Self::Riscv64),
        ];
        names
            .into_iter()
            .find(|(name, _)| info.number(name).is_some())
            .map(|(_, machine)| machine)
    }

    /// Returns whether its kernels can have pages of `size` bytes.
    pub(crate) fn has_pages_of(self, size: u64) -> bool {
        match self {
            Self::X86_64 | Self::Riscv64 => size == 4 << 10,
            Self::Ppc64le => [4 << 10, 64 << 10].contains(&size),
            Self::Aarch64 => [4 << 10, 16 << 10, 64 << 10].contains(&size),
        }
    }

    /// Returns the size of pages that most of its kernels have, for dumps that do not say it.
    pub(crate) fn usual_page(self) -> u64 {
        match self {
            Self::Ppc64le => 64 << 10,
            _ => 4 << 10,
        }
    }

    /// Returns its name as `uname -m` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Ppc64le => "ppc64le",
            Self::Riscv64 => "riscv64",
        }
    }
}

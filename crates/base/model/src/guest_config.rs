//! The guest config of a workload: memory, modules, files.
//!
//! Workloads with the same guest config share a machine; each guest config is a separate machine
//! with its own fingerprint and snapshots. `machine` puts it into the guest, `kernel` finds the
//! modules.

use std::borrow::Cow;
use std::fmt;

/// What a guest has beside its kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestConfig {
    /// Memory of the guest, in MiB.
    pub memory_mib: u32,
    /// Modules to load before the guest settles, in this order; Marvin adds their dependencies.
    pub modules: &'static [GuestModule],
    /// A module that the workload loads by itself: its file is in the guest, and Marvin loads its
    /// dependencies before the guest settles.
    pub own_module: Option<Cow<'static, str>>,
    /// Files in addition to the guest's own programs.
    pub files: ExtraFiles,
    /// A scratch disk with this file system, empty in each boot; `None` for none.
    pub disk: Option<FileSystem>,
}

/// A file system of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileSystem {
    /// The ext4 file system.
    Ext4,
    /// The XFS file system.
    Xfs,
    /// The Btrfs file system.
    Btrfs,
}

impl FileSystem {
    /// Returns the kernel's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A module of the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestModule {
    /// The module's name, as for modprobe.
    pub name: &'static str,
    /// Module parameters, as on the kernel command line: `delay=1 dev_size_mb=64`. Empty for none.
    pub parameters: &'static str,
    /// What to do if a build lacks it.
    pub need: Need,
}

/// What to do if a module is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The workload is unsupported.
    Must,
    /// Go on: some kernels need it, others have its function elsewhere.
    May,
}

/// Additional files of a guest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtraFiles {
    /// No file beside the agent.
    None,
    /// The files of a guest image, unpacked into the root. The text identifies the image: images
    /// with different files, or different use, have different texts.
    Image(Cow<'static, str>),
}

impl GuestConfig {
    /// The directory of the guest with the file of the module that a workload loads by itself.
    pub const MODULE_FOLDER: &str = "/modules";

    /// Returns whether a guest gets modules of its build.
    #[must_use]
    pub fn has_modules(&self) -> bool {
        !self.modules.is_empty() || self.own_module.is_some()
    }

    /// The default guest config: enough memory for the micro suite, and little enough to save and
    /// restore quickly.
    pub const PLAIN: Self = Self::with_memory(256);

    /// Returns a guest config with this memory and nothing else.
    #[must_use]
    pub const fn with_memory(memory_mib: u32) -> Self {
        Self {
            memory_mib,
            modules: &[],
            own_module: None,
            files: ExtraFiles::None,
            disk: None,
        }
    }
}

impl GuestModule {
    /// Returns a required module, as a file or built in.
    #[must_use]
    pub const fn must(name: &'static str, parameters: &'static str) -> Self {
        Self {
            name,
            parameters,
            need: Need::Must,
        }
    }

    /// Returns an optional module.
    #[must_use]
    pub const fn may(name: &'static str) -> Self {
        Self {
            name,
            parameters: "",
            need: Need::May,
        }
    }

    /// Returns whether each of its parameters is an option of the kernel config when it is built
    /// in: those of disks in memory are (drivers/block/brd.c).
    #[must_use]
    pub fn has_options(&self) -> bool {
        let mut parameters = self.parameters.split_whitespace();
        parameters.all(|parameter| parameter.starts_with("rd_"))
    }
}

/// The form in a machine's fingerprint: `256 MiB`, `128 MiB, null_blk gb=4, files`.
impl fmt::Display for GuestConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.memory_mib)?;
        for GuestModule {
            name,
            parameters,
            need,
        } in self.modules
        {
            let maybe = if *need == Need::May { "?" } else { "" };
            write!(
                f,
                ", {name}{maybe}{}{parameters}",
                if parameters.is_empty() { "" } else { " " }
            )?;
        }
        if let Some(name) = &self.own_module {
            write!(f, ", file of {name}")?;
        }
        if let ExtraFiles::Image(name) = &self.files {
            write!(f, ", files of {name}")?;
        }
        self.disk
            .map_or(Ok(()), |file_system| write!(f, ", {file_system} disk"))
    }
}

#[cfg(test)]
mod tests {
    use super::{ExtraFiles, FileSystem, GuestConfig, GuestModule};

    #[test]
    fn equipment_differs_by_its_text() {
        assert_eq!(GuestConfig::PLAIN.to_string(), "256 MiB");
        const MODULES: &[GuestModule] = &[
            GuestModule::may("lzo"),
            GuestModule::must("null_blk", "gb=4 irqmode=2"),
        ];
        let all = GuestConfig {
            modules: MODULES,
            files: ExtraFiles::Image("sysbench 0a".into()),
            ..GuestConfig::with_memory(128)
        };
        assert_eq!(
            all.to_string(),
            "128 MiB, lzo?, null_blk gb=4 irqmode=2, files of sysbench 0a"
        );
        let disk = GuestConfig {
            disk: Some(FileSystem::Xfs),
            ..GuestConfig::PLAIN
        };
        assert_eq!(disk.to_string(), "256 MiB, xfs disk");
    }
}

//! A server of the lab: how Marvin reaches it and boots builds on it. `config` parses it from a
//! `[[machine]]` of `marvin.toml`.

use std::path::PathBuf;

use crate::console::ConsoleSettings;
use crate::deploy::DeploySettings;
use crate::power::PowerSettings;

/// A server that boots builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The server's name in marvin.toml: `testbox`.
    pub name: String,
    /// Where ssh finds it: `root@testbox.lab`, or a host of the ssh configuration.
    pub host: String,
    /// A configuration file for ssh; `None` for the user's.
    pub ssh_config: Option<PathBuf>,
    /// How a build is booted once.
    pub boot: BootOnce,
    /// The processors that workloads run on, as taskset(1) writes them; `None` for the last one.
    pub cpus: Option<String>,
    /// How long a boot may take (s).
    pub boot_s: u64,
    /// How long it may be idle until `marvin work` switches it off (s); `None` for ever.
    pub idle_off_s: Option<u64>,
    /// After how long without a completed job `marvin work` checks it (s); `None` for never.
    pub check_every_s: Option<u64>,
    /// What switches its power.
    pub power: Option<PowerSettings>,
    /// A static `marvin-dump` of the lab's host, which saves there the memory of a kernel that
    /// dies; `None` to save none.
    pub collector: Option<PathBuf>,
    /// Where its serial console is.
    pub console: Option<ConsoleSettings>,
    /// The Slurm node that stands for it.
    pub slurm_node: Option<String>,
    /// How it comes to run an image.
    pub deploy: DeploySettings,
}

impl ServerSettings {
    /// Returns the settings of a server by kexec of which nothing else is set.
    #[must_use]
    pub fn of_host(name: &str, host: &str) -> Self {
        Self {
            name: name.to_owned(),
            host: host.to_owned(),
            ssh_config: None,
            boot: BootOnce::Kexec,
            cpus: None,
            boot_s: 600,
            idle_off_s: None,
            check_every_s: None,
            power: None,
            collector: None,
            console: None,
            slurm_node: None,
            deploy: DeploySettings::default(),
        }
    }
}

/// How a server boots a build once; the next boot is that of its own kernel again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootOnce {
    /// The running kernel starts the build: kexec(8).
    Kexec,
    /// GRUB boots it at the next start: grub-reboot(8).
    Grub,
    /// systemd-boot boots it at the next start: bootctl(1) set-oneshot.
    SystemdBoot,
    /// A program of the server with its arguments: it gets MARVIN_KERNEL, MARVIN_INITRD and
    /// MARVIN_COMMAND_LINE.
    Command(Vec<String>),
}

impl BootOnce {
    /// All names in `marvin.toml`.
    pub const NAMES: [&str; 4] = ["kexec", "grub-once", "systemd-boot-once", "command"];

    /// Returns its name in `marvin.toml`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Kexec => Self::NAMES[0],
            Self::Grub => Self::NAMES[1],
            Self::SystemdBoot => Self::NAMES[2],
            Self::Command(_) => Self::NAMES[3],
        }
    }
}

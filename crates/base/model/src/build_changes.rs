//! How one kernel is built and booted otherwise than the settings say: what stands behind its name,
//! as in `git:HEAD@config:MEMCG=y,NUMA=n@cc:clang-14@make:KCFLAGS=-O3@cmdline:mitigations=off`.
//!
//! This module only parses; the `kernel` crate knows configs and compilers, machines boot.

use std::fmt;

use crate::{KernelNameError, MakeArgument};

/// What begins a change, with the marker of its kind.
const CONFIG: &str = "@config:";
const CC: &str = "@cc:";
const MAKE: &str = "@make:";
const CMDLINE: &str = "@cmdline:";
const SYSCTL: &str = "@sysctl:";
const SYSFS: &str = "@sysfs:";
const MEMORY: &str = "@memory:";
const MARKERS: [&str; 7] = [CONFIG, CC, MAKE, CMDLINE, SYSCTL, SYSFS, MEMORY];
/// The boot parameter by which the guest's first process writes a file: `wire` has the same.
pub const WRITE_PARAMETER: &str = "marvin.write=";
/// Where files of a factor are.
const SYSFS_ROOT: &str = "/sys/";
/// Boot parameters that machines set themselves: without them no guest starts or ends.
const RESERVED: [&str; 11] = [
    "console",
    "init",
    "initrd",
    "mem",
    "oops",
    "panic",
    "rdinit",
    "reboot",
    "root",
    "rootfstype",
    "nokaslr",
];
/// Longest boot parameters of a kernel, in bytes: `COMMAND_LINE_SIZE` of
/// arch/x86/include/asm/setup.h is 2048, and machines have their own.
const BOOT_MAX: usize = 1024;

/// Changes to the build and the boot of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildChanges {
    /// Kernel configs, fragments and single options, on top of the config of the settings.
    pub config: Vec<String>,
    /// The compiler, instead of that of the settings.
    pub cc: Option<String>,
    /// Variables for make, after those of the settings.
    pub make_args: Vec<MakeArgument>,
    /// What it is booted with, in order.
    pub boot: Vec<BootFactor>,
}

/// A change to the boot of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BootFactor {
    /// Parameters of the kernel's command line, as in `mitigations=off`.
    Cmdline(String),
    /// A sysctl and its value, as in `vm.swappiness=10`. The kernel sets it before PID 1 starts,
    /// since 5.8 (commit 3db978d480e2).
    Sysctl(String),
    /// A file below /sys and what is written to it, as in
    /// `kernel/mm/transparent_hugepage/enabled=always`: by PID 1, before anything runs.
    Sysfs(String),
    /// The memory that the kernel may use, as in `256M`.
    Memory(String),
}

impl BootFactor {
    /// Returns its words of the kernel's command line.
    #[must_use]
    pub fn parameter(&self) -> String {
        match self {
            Self::Cmdline(words) => words.clone(),
            Self::Sysctl(setting) => format!("sysctl.{setting}"),
            Self::Sysfs(setting) => format!("{WRITE_PARAMETER}{SYSFS_ROOT}{setting}"),
            Self::Memory(size) => format!("mem={size}"),
        }
    }

    fn parse(marker: &str, change: &str) -> Result<Self, String> {
        // Quotes would join words that the kernel then reads otherwise.
        if change.contains(['"', '\'']) {
            return Err(format!("`{marker}{change}` has a quotation mark"));
        }
        match marker {
            SYSCTL => match change.split_once('=') {
                Some((name, value))
                    if is_sysctl(name) && !value.is_empty() && !value.contains(' ') =>
                {
                    Ok(Self::Sysctl(change.to_owned()))
                }
                _ => Err(format!(
                    "`{change}` is no sysctl: expected NAME=VALUE, such as vm.swappiness=10"
                )),
            },
            SYSFS => {
                let setting = change.strip_prefix(SYSFS_ROOT).unwrap_or(change);
                match setting.split_once('=') {
                    Some((file, value))
                        if is_sysfs(file) && !value.is_empty() && !value.contains(' ') =>
                    {
                        Ok(Self::Sysfs(setting.to_owned()))
                    }
                    _ => Err(format!(
                        "`{change}` is no file below /sys with a value of one word, such as kernel/mm/transparent_hugepage/enabled=always"
                    )),
                }
            }
            MEMORY => {
                let digits = change.strip_suffix(['K', 'M', 'G']).unwrap_or_default();
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(format!(
                        "`{change}` is no memory size: expected such as 256M or 1G"
                    ));
                }
                Ok(Self::Memory(change.to_owned()))
            }
            _ => {
                let names = change
                    .split(' ')
                    .map(|word| word.split('=').next().unwrap_or(word));
                if let Some(name) = names.into_iter().find(|name| RESERVED.contains(name)) {
                    return Err(format!("`{name}` is set by the machine"));
                }
                if change.split(' ').any(|word| word == "--") {
                    return Err("words behind `--` are for PID 1, which is Marvin's".to_owned());
                }
                Ok(Self::Cmdline(change.to_owned()))
            }
        }
    }
}

impl fmt::Display for BootFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cmdline(words) => write!(f, "{CMDLINE}{words}"),
            Self::Sysctl(setting) => write!(f, "{SYSCTL}{setting}"),
            Self::Sysfs(setting) => write!(f, "{SYSFS}{setting}"),
            Self::Memory(size) => write!(f, "{MEMORY}{size}"),
        }
    }
}

/// Returns whether a text may name a sysctl.
fn is_sysctl(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    !name.is_empty() && name.chars().all(is_part)
}

/// Returns whether a text may name a file below /sys.
fn is_sysfs(file: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    !file.is_empty() && file.chars().all(is_part) && !file.split('/').any(|part| part == "..")
}

impl BuildChanges {
    /// Splits a kernel's name from its changes; `None` if it has none.
    ///
    /// # Errors
    /// If a change is empty or no argument for make.
    pub fn split(text: &str) -> Result<Option<(&str, Self)>, KernelNameError> {
        let Some(start) = first_marker(text) else {
            return Ok(None);
        };
        let mut changes = Self::default();
        let mut rest = &text[start..];
        while !rest.is_empty() {
            let marker = MARKERS
                .into_iter()
                .find(|marker| rest.starts_with(marker))
                .unwrap_or(CONFIG);
            let end = first_marker(&rest[1..]).map_or(rest.len(), |next| next + 1);
            let change = &rest[marker.len()..end];
            changes
                .add(marker, change)
                .map_err(|detail| KernelNameError::Changes {
                    name: text.to_owned(),
                    detail,
                })?;
            rest = &rest[end..];
        }
        if changes.boot_parameters().len() > BOOT_MAX {
            return Err(KernelNameError::Changes {
                name: text.to_owned(),
                detail: format!("its boot parameters have more than {BOOT_MAX} bytes"),
            });
        }
        Ok(Some((&text[..start], changes)))
    }

    /// Returns whether only the boot is another, so that the kernel need not be built.
    #[must_use]
    pub fn is_boot_only(&self) -> bool {
        self.config.is_empty() && self.cc.is_none() && self.make_args.is_empty()
    }

    /// Returns the changes to the build alone.
    #[must_use]
    pub fn without_boot(&self) -> Self {
        Self {
            boot: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the words that the kernel's command line gets, empty if none.
    #[must_use]
    pub fn boot_parameters(&self) -> String {
        let words: Vec<String> = self.boot.iter().map(BootFactor::parameter).collect();
        words.join(" ")
    }

    fn add(&mut self, marker: &str, change: &str) -> Result<(), String> {
        if change.is_empty() || change.chars().any(char::is_control) {
            return Err(format!("`{marker}` needs a value of one line"));
        }
        match marker {
            CC => self.cc = Some(change.to_owned()),
            MAKE => self.make_args.push(
                change
                    .parse()
                    .map_err(|error: crate::MakeArgumentError| error.to_string())?,
            ),
            CMDLINE | SYSCTL | SYSFS | MEMORY => self.boot.push(BootFactor::parse(marker, change)?),
            _ => {
                for part in change.split(',') {
                    if part.is_empty() {
                        return Err(format!("`{marker}` has an empty option"));
                    }
                    self.config.push(part.to_owned());
                }
            }
        }
        Ok(())
    }
}

/// Returns where the first change begins.
fn first_marker(text: &str) -> Option<usize> {
    MARKERS
        .into_iter()
        .filter_map(|marker| text.find(marker))
        .min()
}

impl fmt::Display for BuildChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.config.is_empty() {
            write!(f, "{CONFIG}{}", self.config.join(","))?;
        }
        if let Some(cc) = &self.cc {
            write!(f, "{CC}{cc}")?;
        }
        for argument in &self.make_args {
            write!(f, "{MAKE}{}", argument.word())?;
        }
        for factor in &self.boot {
            write!(f, "{factor}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::BuildChanges;
    use crate::KernelName;

    #[test]
    fn changes_stand_behind_the_name() {
        let text = "git:HEAD@config:memcg=y,NUMA=n@cc:clang-14@make:KCFLAGS=-O3 -g@make:V=1";
        let (name, changes) = BuildChanges::split(text).unwrap().unwrap();
        assert_eq!(name, "git:HEAD");
        assert_eq!(changes.config, ["memcg=y", "NUMA=n"]);
        assert_eq!(changes.cc.as_deref(), Some("clang-14"));
        assert_eq!(changes.make_args.len(), 2);
        assert_eq!(format!("{name}{changes}"), text);
        assert_eq!(BuildChanges::split("git:HEAD@{1}").unwrap(), None);
        assert_eq!(BuildChanges::split("deb:sid@20260101/6.12").unwrap(), None);
    }

    #[test]
    fn boot_is_changed_for_any_kernel() {
        let text = "deb:6.12@cmdline:isolcpus=2,3 quiet@sysctl:vm.swappiness=10@memory:256M";
        let (name, changes) = BuildChanges::split(text).unwrap().unwrap();
        assert_eq!(name, "deb:6.12");
        assert!(changes.is_boot_only());
        assert_eq!(
            changes.boot_parameters(),
            "isolcpus=2,3 quiet sysctl.vm.swappiness=10 mem=256M"
        );
        let kernel: KernelName = text.parse().unwrap();
        assert_eq!(kernel.to_string().parse(), Ok(kernel));
        let huge = "deb:6.12@sysfs:/sys/kernel/mm/transparent_hugepage/enabled=always";
        let huge: KernelName = huge.parse().unwrap();
        assert_eq!(
            huge.boot_parameters(),
            "marvin.write=/sys/kernel/mm/transparent_hugepage/enabled=always"
        );
        assert_eq!(huge.to_string().parse(), Ok(huge));
        let path: KernelName = "path:/boot/vmlinuz@cmdline:x=1".parse().unwrap();
        assert_eq!(path.source().to_string(), "path:/boot/vmlinuz");
    }

    #[test]
    fn wrong_changes_are_errors() {
        let error = |text: &str| text.parse::<KernelName>().unwrap_err().to_string();
        assert_eq!(
            error("git:HEAD@config:"),
            "cannot build `git:HEAD@config:` that way: `@config:` needs a value of one line"
        );
        assert_eq!(
            error("git:HEAD@config:A=y,"),
            "cannot build `git:HEAD@config:A=y,` that way: `@config:` has an empty option"
        );
        assert_eq!(
            error("git:HEAD@make:vmlinux"),
            "cannot build `git:HEAD@make:vmlinux` that way: `vmlinux` is no argument for make: expected VARIABLE=VALUE, such as KCFLAGS=-O3; Marvin chooses make's targets and options"
        );
        assert_eq!(
            error("deb:6.12@config:A=y"),
            "`deb:6.12@config:A=y` is built already: @config:, @cc: and @make: are for kernels that Marvin builds (git:, patch:, tree:, deb-src:, kernel.org:)"
        );
        assert!(error("git:@config:A=y").contains("needs a revision"));
        for (change, detail) in [
            ("cmdline:init=/bin/sh", "`init` is set by the machine"),
            ("cmdline:a=\"b c\"", "has a quotation mark"),
            ("sysctl:vm.swappiness", "is no sysctl"),
            ("sysfs:../etc/passwd=1", "is no file below /sys"),
            ("sysfs:kernel/mm/ksm/run", "is no file below /sys"),
            ("memory:lots", "is no memory size"),
        ] {
            let text = error(&format!("deb:6.12@{change}"));
            assert!(text.contains(detail), "{text}");
        }
    }
}

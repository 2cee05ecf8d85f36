//! Kernel configs: Marvin's fragments and the user's own, stacked, and the options that the kernel's
//! Kconfig changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::GuestModule;

use super::SourceError;
use crate::folder::sha256;
use crate::{KernelError, bounded, payload};

const TINY: &str = include_str!("../../configs/tiny.fragment");
const DEFAULT: &str = include_str!("../../configs/default.fragment");
const SMP: &str = include_str!("../../configs/smp.fragment");
const SMALL: &str = include_str!("../../configs/small.fragment");
const BYTES_MAX: u64 = 4 << 20;
/// The first line of a complete kernel config.
const WHOLE: &str = "Automatically generated file; DO NOT EDIT.";
/// The size of a disk in memory in KiB: the parameter of brd, and its option (drivers/block/brd.c).
const RAM_DISK_KIB: &str = "rd_size";
const RAM_DISK_OPTION: &str = "BLK_DEV_RAM_SIZE";
/// Marvin's usual config.
const DEFAULT_NAME: &str = "default";
/// The config of the kernel that runs.
const RUNNING: &str = "running";
/// Options with files of certificates, which only the source of a distribution has.
const CERTIFICATES: [&str; 2] = [
    "CONFIG_SYSTEM_TRUSTED_KEYS",
    "CONFIG_SYSTEM_REVOCATION_KEYS",
];

/// Options that have or select VMCOREINFO (kernel/Kconfig.kexec, fs/proc/Kconfig).
const DESCRIBE_MEMORY: [&str; 6] = [
    "CONFIG_PROC_KCORE",
    "CONFIG_VMCORE_INFO",
    "CONFIG_CRASH_CORE",
    "CONFIG_CRASH_DUMP",
    "CONFIG_KEXEC",
    "CONFIG_KEXEC_FILE",
];

/// Options that Kconfig computes from the toolchain (init/Kconfig): a complete config has those of the
/// compiler that it was made with.
const OF_TOOLCHAIN: [&str; 11] = [
    "CC_", "GCC_", "CLANG_", "AS_", "LD_", "LLD_", "PAHOLE_", "RUSTC_", "TOOLS_", "GCC10_",
    "GCC11_",
];

/// The basis of a kernel config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// Lines on top of `make tinyconfig`.
    Tiny,
    /// A complete kernel config.
    Whole,
    /// Lines on top of a config that make makes: `defconfig`.
    Target(String),
}

/// A kernel config to build with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    name: String,
    /// Options for the basis, and on top of it.
    pub(crate) text: String,
    pub(crate) base: Base,
    /// Fragments of the kernel's own tree, such as `kvm_guest.config`.
    pub(crate) in_tree: Vec<String>,
    /// The modules to keep, instead of all.
    pub(crate) modules: Option<Vec<String>>,
    /// The architecture that a complete config is for, as its first line says.
    architecture: Option<String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self::new(DEFAULT_NAME, Base::Tiny, format!("{TINY}{DEFAULT}"))
    }
}

impl Configuration {
    fn new(name: &str, base: Base, text: String) -> Self {
        Self {
            name: name.to_owned(),
            text,
            base,
            in_tree: Vec::new(),
            modules: None,
            architecture: None,
        }
    }

    /// Returns a kernel config with others on top, as in `tiny+debug.config+MEMCG=y`. The first is
    /// default, tiny, smp, small, a target of make such as `defconfig`, `running`, or a file: a complete
    /// `.config`, or lines on top of `make tinyconfig`. The others are files with lines, fragments
    /// of the kernel's tree (`NAME.config`), or single options.
    ///
    /// # Errors
    /// If one does not exist, or is no kernel config.
    pub fn named(name: &str) -> Result<Self, KernelError> {
        let mut parts = Self::parts(name)?.into_iter();
        let first = parts.next().unwrap_or(name);
        let base = match option_line(first) {
            Some(_) => Self::default().with(first)?,
            None => Self::basis(first)?,
        };
        parts.try_fold(base, |base, part| base.with(part))
    }

    /// Returns whether a name begins with a single option, and so needs a config to be on top of.
    #[must_use]
    pub fn is_option(name: &str) -> bool {
        name.split('+')
            .next()
            .is_some_and(|first| option_line(first).is_some())
    }

    /// Splits at `+`; a file's name may contain one.
    fn parts(name: &str) -> Result<Vec<&str>, KernelError> {
        let mut parts = Vec::new();
        let mut rest = name;
        while !rest.is_empty() {
            let ends = rest
                .rmatch_indices('+')
                .map(|(end, _)| end)
                .chain([0])
                .collect::<Vec<_>>();
            let longest = std::iter::once(rest.len())
                .chain(ends)
                .find(|end| *end > 0 && Path::new(&rest[..*end]).is_file());
            let end = longest.unwrap_or_else(|| rest.find('+').unwrap_or(rest.len()));
            if end == 0 {
                return Err(unknown(name).into());
            }
            parts.push(&rest[..end]);
            let Some(left) = rest[end..].strip_prefix('+') else {
                break;
            };
            if left.is_empty() {
                return Err(unknown(name).into());
            }
            rest = left;
        }
        Ok(parts)
    }

    /// Returns the config that others may be on top of.
    fn basis(name: &str) -> Result<Self, KernelError> {
        let built_in = match name {
            DEFAULT_NAME => return Ok(Self::default()),
            // Until 2026-11 its name was micro: stored origins have it.
            "tiny" | "micro" => return Ok(Self::new("tiny", Base::Tiny, TINY.to_owned())),
            "smp" => Some(format!("{TINY}{SMP}")),
            "small" => Some(SMALL.to_owned()),
            _ => None,
        };
        if let Some(text) = built_in {
            return Ok(Self::new(name, Base::Tiny, text));
        }
        if name == RUNNING {
            return Self::running(Path::new("/"));
        }
        if is_target(name) {
            return Ok(Self::new(
                name,
                Base::Target(name.to_owned()),
                String::new(),
            ));
        }
        let file = Path::new(name);
        Self::of_text(&file_name(file), read(file, name)?).ok_or_else(|| unknown(name).into())
    }

    /// Reads the config of the kernel that runs, below a root directory.
    pub(crate) fn running(root: &Path) -> Result<Self, KernelError> {
        let release =
            fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
        let release = release.trim();
        let files = [
            root.join("proc/config.gz"),
            root.join("boot").join(format!("config-{release}")),
            root.join("lib/modules").join(release).join("config"),
        ];
        let found = files.iter().find_map(|file| {
            let bytes = bounded::open(file, BYTES_MAX).ok()?.read().ok()?;
            let text = match payload::unpack_file(&bytes) {
                Ok(Some(unpacked)) => unpacked,
                _ => bytes,
            };
            Self::of_text(RUNNING, String::from_utf8_lossy(&text).into_owned())
        });
        let mut found = found.ok_or_else(|| SourceError::NoRunningConfiguration {
            release: release.to_owned(),
        })?;
        found.base = Base::Whole;
        Ok(found.without_certificates())
    }

    /// Reads the config of a build directory of make.
    ///
    /// # Errors
    /// If the directory has none.
    pub fn of_build_dir(folder: &Path) -> Result<Self, KernelError> {
        let no_config = || SourceError::NoBuildDir {
            folder: folder.to_owned(),
        };
        let file = folder.join(".config");
        let bytes = bounded::open(&file, BYTES_MAX)
            .and_then(bounded::Opened::read)
            .map_err(|_| no_config())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut found =
            Self::of_text(&format!("{}/.config", file_name(folder)), text).ok_or_else(no_config)?;
        found.base = Base::Whole;
        Ok(found)
    }

    /// Returns a config of a text; `None` if it has no options.
    fn of_text(name: &str, text: String) -> Option<Self> {
        if options(&text).is_empty() {
            return None;
        }
        let is_whole = text.lines().take(10).any(|line| line.contains(WHOLE));
        let base = if is_whole { Base::Whole } else { Base::Tiny };
        let architecture = text.lines().take(10).find_map(|line| {
            let (architecture, rest) = line.strip_prefix("# Linux/")?.split_once(' ')?;
            rest.contains("Configuration")
                .then(|| architecture.to_owned())
        });
        // The origin of a build separates its parts by commas.
        let name = name.replace(", ", ",_");
        Some(Self {
            architecture,
            ..Self::new(&name, base, text)
        })
    }

    /// Returns it with more on top: a fragment or an option; a config that is a basis replaces it.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn with(self, part: &str) -> Result<Self, KernelError> {
        // KUnit keeps its fragments in the directories of the code.
        let in_folder = Path::new(part).join(".kunitconfig");
        let file = if in_folder.is_file() {
            &in_folder
        } else {
            Path::new(part)
        };
        let (name, lines) = match option_line(part) {
            Some(line) => (part.to_owned(), line),
            None if file.is_file() => {
                let fragment = Self::of_text(&file_name(file), read(file, part)?)
                    .ok_or_else(|| unknown(part))?;
                if fragment.base == Base::Whole {
                    return Ok(fragment);
                }
                (fragment.name, fragment.text)
            }
            None if is_in_tree(part) => {
                let mut stacked = self.called(part);
                stacked.in_tree.push(part.to_owned());
                return Ok(stacked);
            }
            None if part.contains('=') => {
                return Err(SourceError::NoOption(model::sanitize_line(part)).into());
            }
            None => return Self::basis(part),
        };
        let mut stacked = self.called(&name);
        if !stacked.text.is_empty() && !stacked.text.ends_with('\n') {
            stacked.text.push('\n');
        }
        stacked.text.push_str(&lines);
        Ok(stacked)
    }

    fn called(self, part: &str) -> Self {
        Self {
            name: format!("{}+{part}", self.name),
            ..self
        }
    }

    /// Returns it with only these of its modules, as `make localmodconfig` selects them.
    #[must_use]
    pub fn with_modules(self, modules: Vec<String>) -> Self {
        Self {
            modules: Some(modules),
            ..self.called("localmod")
        }
    }

    fn without_certificates(mut self) -> Self {
        for option in CERTIFICATES {
            if options(&self.text)
                .get(option)
                .is_some_and(|value| value != "\"\"" && value != "n")
            {
                self.text.extend([option, "=\"\"\n"]);
            }
        }
        self
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the compiler that made a complete config, as the config says.
    #[must_use]
    pub fn compiler(&self) -> Option<String> {
        let value = options(&self.text).remove("CONFIG_CC_VERSION_TEXT")?;
        Some(model::sanitize_line(value.trim_matches('"')))
    }

    /// Errors if a complete config is for another architecture than the build.
    pub(crate) fn check_architecture(&self, architecture: &str) -> Result<(), SourceError> {
        let is_x86 = |name: &str| matches!(name, "x86" | "x86_64" | "i386");
        match &self.architecture {
            Some(own) if own != architecture && !(is_x86(own) && is_x86(architecture)) => {
                Err(SourceError::OtherArchitecture {
                    name: self.name.clone(),
                    own: own.clone(),
                    architecture: architecture.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns a text that identifies it: equal lines are an equal config.
    #[must_use]
    pub fn identity(&self) -> String {
        let kind = match &self.base {
            Base::Tiny => "tiny",
            Base::Whole => "whole",
            Base::Target(target) => target,
        };
        let lines: String = options(&self.text)
            .iter()
            .map(|(option, value)| format!("{option}={value}\n"))
            .collect();
        let in_tree: String = self
            .in_tree
            .iter()
            .map(|fragment| format!("\nin tree {fragment}"))
            .collect();
        let modules = self.modules.as_ref().map_or_else(String::new, |modules| {
            format!("\nmodules {}", modules.join(" "))
        });
        sha256(format!("{kind}\n{lines}{in_tree}{modules}").as_bytes())
    }

    /// Returns the requested options that differ in the result, each as `CONFIG_X=y`.
    pub(crate) fn not_kept(&self, resolved: &str) -> Vec<String> {
        let found = options(resolved);
        options(&self.text)
            .iter()
            .filter(|(option, _)| self.base != Base::Whole || !is_of_toolchain(option))
            .filter(|(option, value)| {
                found.get(*option).map_or("n", String::as_str) != value.as_str()
            })
            .map(|(option, value)| format!("{option}={value}"))
            .collect()
    }

    /// Returns the config of a kernel that describes its memory to readers of dumps (VMCOREINFO).
    /// PROC_KCORE selects that (fs/proc/Kconfig), whatever its name. A config that requests it in another way stays as it is.
    ///
    /// # Errors
    /// If the config takes no further option.
    pub fn with_memory_description(self) -> Result<Self, KernelError> {
        if DESCRIBE_MEMORY.iter().any(|option| self.requests(option)) {
            return Ok(self);
        }
        self.with("PROC_KCORE=y")
    }

    /// Builds in a module that a workload needs, on top of Marvin's default config, with parameters
    /// that are options when it is built in. Other configs stay as they are: they say what the
    /// user wants to measure.
    ///
    /// # Errors
    /// If the config takes no further option.
    pub fn with_module(self, module: &GuestModule) -> Result<Self, KernelError> {
        if self.name.split('+').next() != Some(DEFAULT_NAME) {
            return Ok(self);
        }
        let mut grown = self;
        let option = crate::modules::option(module.name);
        if !options(&grown.text).contains_key(&option) {
            let name = option.trim_start_matches("CONFIG_");
            grown = grown.with(&format!("{name}=y"))?;
            for part in crate::modules::parts(module.name) {
                grown = grown.with(&format!("{part}=y"))?;
            }
        }
        for parameter in module.parameters.split_whitespace() {
            if let Some((RAM_DISK_KIB, wanted)) = parameter.split_once('=') {
                grown = grown.with_at_least(RAM_DISK_OPTION, wanted)?;
            }
        }
        Ok(grown)
    }

    /// Raises an option that is a number.
    fn with_at_least(self, option: &str, wanted: &str) -> Result<Self, KernelError> {
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        let known = options(&self.text)
            .get(&format!("CONFIG_{option}"))
            .cloned();
        if known.is_some_and(|known| number(&known) >= number(wanted)) {
            return Ok(self);
        }
        self.with(&format!("{option}={wanted}"))
    }

    /// Returns whether it requests an option.
    pub(crate) fn requests(&self, option: &str) -> bool {
        options(&self.text).get(option).map(String::as_str) == Some("y")
    }
}

fn unknown(name: &str) -> SourceError {
    SourceError::UnknownConfiguration {
        name: model::sanitize_line(name),
    }
}

fn is_of_toolchain(option: &str) -> bool {
    let name = option.strip_prefix("CONFIG_").unwrap_or(option);
    // These are chosen.
    let is_chosen = name.starts_with("CC_OPTIMIZE_") || name.starts_with("LD_DEAD_");
    !is_chosen && OF_TOOLCHAIN.iter().any(|start| name.starts_with(start))
}

fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Reads a file with a config.
fn read(file: &Path, name: &str) -> Result<String, KernelError> {
    let found = fs::metadata(file)
        .ok()
        .filter(|found| found.is_file() && found.len() <= BYTES_MAX);
    found.ok_or_else(|| unknown(name))?;
    let bytes = fs::read(file).map_err(KernelError::io(file))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether make makes a config of that name: `defconfig`, `x86_64_defconfig`,
/// `allnoconfig`.
fn is_target(name: &str) -> bool {
    let is_word = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let is_made = name.ends_with("defconfig")
        || ["tinyconfig", "allnoconfig", "allyesconfig", "allmodconfig"].contains(&name);
    is_word && is_made && !name.starts_with('-')
}

/// Returns whether the kernel's tree may have a fragment of that name.
fn is_in_tree(name: &str) -> bool {
    name.strip_suffix(".config").is_some_and(|stem| {
        !stem.is_empty()
            && stem
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    })
}

/// Returns the line of a config for `MEMCG=y` or `CONFIG_MEMCG=y`; `None` if it is none. Lower case
/// is as good: almost no option has small letters.
fn option_line(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_value = |value: &str| {
        let plain = value.trim_matches('"');
        !value.is_empty()
            && plain
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-+.,:/= ".contains(c))
            && (plain.len() == value.len() || value.len() == plain.len() + 2)
    };
    if !is_name(name) || !is_value(value) {
        return None;
    }
    let bare = name.strip_prefix("CONFIG_").unwrap_or(name);
    let bare = if bare.chars().any(|c| c.is_ascii_uppercase()) {
        bare.to_owned()
    } else {
        bare.to_uppercase()
    };
    Some(format!("CONFIG_{bare}={value}\n"))
}

/// Parses the options of a kernel config; the last line about an option counts, and one that is not
/// set is `n`.
#[must_use]
pub fn options(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line: &str| {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("# ") {
                let name = rest.strip_suffix(" is not set")?;
                return name
                    .starts_with("CONFIG_")
                    .then(|| (name.to_owned(), "n".to_owned()));
            }
            let (name, value) = line.split_once('=')?;
            name.starts_with("CONFIG_")
                .then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::GuestModule;

    use super::{Base, Configuration, options};

    #[test]
    fn every_line_of_ours_has_its_purpose() {
        for name in ["default", "tiny", "smp", "small"] {
            let configuration = Configuration::named(name).unwrap();
            let mut purpose = "";
            for line in configuration.text.lines() {
                if let Some(text) = line.strip_prefix("# ") {
                    purpose = text;
                } else {
                    assert!(
                        line.starts_with("CONFIG_") && purpose.ends_with('.'),
                        "{line}"
                    );
                }
            }
            assert!(configuration.not_kept(&configuration.text).is_empty());
            assert!(
                configuration.text.contains("CONFIG_X86_IOPL_IOPERM=y\n"),
                "the agent needs its ports"
            );
        }
    }

    #[test]
    fn default_config_takes_modules_that_workloads_need() {
        let named = |name: &str, module: GuestModule| {
            let config = Configuration::named(name).unwrap();
            config.with_module(&module).unwrap().name().to_owned()
        };
        let must = |name| GuestModule::must(name, "");
        assert_eq!(named("default", must("xfs")), "default+XFS_FS=y");
        assert_eq!(
            named("default+PSI=n", must("btrfs")),
            "default+PSI=n+BTRFS_FS=y"
        );
        // It has ext4, and the user says what it must not have.
        assert_eq!(named("default", must("ext4")), "default");
        assert_eq!(named("default+XFS_FS=n", must("xfs")), "default+XFS_FS=n");
        assert_eq!(named("tiny", must("xfs")), "tiny");
        let disk = |size| GuestModule::must("brd", size);
        assert_eq!(named("default", disk("rd_nr=1 rd_size=65536")), "default");
        assert_eq!(
            named("default", disk("rd_nr=1 rd_size=524288")),
            "default+BLK_DEV_RAM_SIZE=524288"
        );
    }

    #[test]
    fn dropped_config_options_are_listed() {
        let wanted = Configuration {
            text: "CONFIG_A=y\nCONFIG_B=n\nCONFIG_C=y\n".into(),
            ..Configuration::default()
        };
        let resolved = "CONFIG_A=y\n# CONFIG_C is not set\nCONFIG_B=y\n";
        assert_eq!(wanted.not_kept(resolved), ["CONFIG_B=n", "CONFIG_C=y"]);
        assert!(
            wanted.not_kept("CONFIG_A=y\nCONFIG_C=y\n").is_empty(),
            "what is absent is not set"
        );
        let whole = Configuration {
            text: "CONFIG_CC_IS_GCC=y\nCONFIG_CC_OPTIMIZE_FOR_SIZE=y\n".into(),
            base: Base::Whole,
            ..Configuration::default()
        };
        assert_eq!(whole.not_kept(""), ["CONFIG_CC_OPTIMIZE_FOR_SIZE=y"]);
    }

    #[test]
    fn a_file_is_whole_or_lines_on_top() {
        let home = tempfile::tempdir().unwrap();
        let named = |text: &str| {
            let file = home.path().join("my.config");
            std::fs::write(&file, text).unwrap();
            Configuration::named(file.to_str().unwrap())
        };
        let lines = named("CONFIG_A=y\n").unwrap();
        assert_eq!((lines.name(), &lines.base), ("my.config", &Base::Tiny));
        let whole = named("#\n# Automatically generated file; DO NOT EDIT.\nCONFIG_A=y\n").unwrap();
        assert_eq!(whole.base, Base::Whole);
        assert_ne!(lines.identity(), whole.identity());
        assert_eq!(
            named("# words\nCONFIG_A=y\n").unwrap().identity(),
            lines.identity()
        );
        assert!(named("no options").is_err());
        insta::assert_snapshot!(Configuration::named("mikro").unwrap_err(), @"unknown kernel config `mikro`: use default, tiny, smp, small, defconfig, running, or a file, and +FRAGMENT or +OPTION=VALUE");
    }

    #[test]
    fn fragments_and_options_are_stacked() {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let debug = file("debug+1.config", "CONFIG_KASAN=y\n# CONFIG_NUMA is not set");
        let stacked = Configuration::named(&format!("tiny+{debug}+memcg=y+NR_CPUS=4")).unwrap();
        assert_eq!(stacked.name(), "tiny+debug+1.config+memcg=y+NR_CPUS=4");
        let found = options(&stacked.text);
        let of = |option: &str| found[option].as_str();
        assert_eq!(
            [of("CONFIG_KASAN"), of("CONFIG_NUMA"), of("CONFIG_MEMCG")],
            ["y", "n", "y"]
        );
        assert_eq!((of("CONFIG_NR_CPUS"), of("CONFIG_PVH")), ("4", "y"));
        let option = Configuration::named("MEMCG=n").unwrap();
        assert_eq!(option.name(), "default+MEMCG=n");
        let again = Configuration::default()
            .with("MEMCG=y")
            .unwrap()
            .with("memcg=n")
            .unwrap();
        assert_eq!(again.identity(), option.identity(), "the last counts");
        assert_ne!(again.identity(), Configuration::default().identity());
        let target = Configuration::named("defconfig+kvm_guest.config+PVH=y").unwrap();
        assert_eq!(target.base, Base::Target("defconfig".into()));
        assert_eq!((&*target.text, target.in_tree.len()), ("CONFIG_PVH=y\n", 1));
        assert_ne!(
            target.identity(),
            Configuration::named("defconfig+PVH=y").unwrap().identity()
        );
        let small = Configuration::default().with("small").unwrap();
        assert_eq!(small, Configuration::named("small").unwrap());
    }

    #[test]
    fn wrong_fragments_are_named() {
        let error = |name: &str| Configuration::named(name).unwrap_err().to_string();
        insta::assert_snapshot!(error("tiny+debug.fragment"), @"unknown kernel config `debug.fragment`: use default, tiny, smp, small, defconfig, running, or a file, and +FRAGMENT or +OPTION=VALUE");
        insta::assert_snapshot!(error("tiny+A=$(id)"), @"`A=$(id)` is no option of a kernel config: expected OPTION=VALUE, such as MEMCG=y, NR_CPUS=4 or LOCALVERSION=\"-x\"");
        for none in [
            "",
            "+",
            "tiny+",
            "tiny++A=y",
            "+tiny",
            "tiny+/",
            "tiny+A=y\nB=y",
            "tiny+A=",
        ] {
            assert!(Configuration::named(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn config_of_the_running_kernel_is_found() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        };
        file("proc/sys/kernel/osrelease", b"6.1.0-9-amd64\n");
        let error = Configuration::running(root.path()).unwrap_err();
        insta::assert_snapshot!(error, @"this host has no config of the kernel 6.1.0-9-amd64 that runs: neither /proc/config.gz nor /boot/config-6.1.0-9-amd64; name a file with --config FILE");
        file(
            "boot/config-6.1.0-9-amd64",
            b"CONFIG_A=y\nCONFIG_SYSTEM_TRUSTED_KEYS=\"debian/certs/x.pem\"\n",
        );
        let installed = Configuration::running(root.path()).unwrap();
        assert_eq!(
            (installed.name(), &installed.base),
            ("running", &Base::Whole)
        );
        assert_eq!(
            options(&installed.text)["CONFIG_SYSTEM_TRUSTED_KEYS"],
            "\"\""
        );
        file(
            "proc/config.gz",
            &crate::payload::tests::pack("gzip", b"CONFIG_B=y\n"),
        );
        assert_eq!(
            Configuration::running(root.path()).unwrap().text,
            "CONFIG_B=y\n"
        );
    }

    #[test]
    fn complete_config_is_for_one_architecture() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(
            home.path().join(".config"),
            "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/arm64 6.1.0 Kernel Configuration\n#\n\
             CONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian) 12.2.0\"\n",
        )
        .unwrap();
        let config = Configuration::of_build_dir(home.path()).unwrap();
        assert_eq!(config.compiler().as_deref(), Some("gcc-12 (Debian) 12.2.0"));
        assert!(config.check_architecture("arm64").is_ok());
        let error = config.check_architecture("x86").unwrap_err().to_string();
        assert!(error.ends_with("/.config is a kernel config for arm64, and this build is for x86: name one for x86, or build with --make-args ARCH=arm64"), "{error}");
        assert!(Configuration::default().check_architecture("arm64").is_ok());
        let error = Configuration::of_build_dir("/nonesuch".as_ref()).unwrap_err();
        insta::assert_snapshot!(error, @"/nonesuch is no build directory of a kernel: no .config in it; name the directory of make's O=, or of a tree that was built");
    }

    #[test]
    fn the_last_line_counts() {
        assert_eq!(
            options("CONFIG_A=y\n# CONFIG_A is not set\n# CONFIG\n")["CONFIG_A"],
            "n"
        );
    }
}

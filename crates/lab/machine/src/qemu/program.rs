//! Finds QEMU and identifies its exact version.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use model::KnownQemu;
use subprocess::Program;

use super::bundle;
use super::start_failure::find_fix;
use crate::{MachineError, hash};

const PROGRAM: &str = "qemu-system-x86_64";
/// Where the distributions of Red Hat have theirs.
const ELSEWHERE: &str = "/usr/libexec/qemu-kvm";
/// The oldest QEMU with which microvm, icount and x-ignore-shared are known to be exact together.
const OLDEST: (u32, u32) = (7, 2);
/// The oldest QEMU whose microvm sends the timer interrupt through an interrupt controller that is
/// not set up: a kernel with ACPI then divides by zero. Seen with 10.0; not with 7.2; untested
/// between them.
const STRAY_TIMER: (u32, u32) = (8, 0);
/// Firmware that the machine may run at power-on: microvm's BIOS by either name, and the loaders of
/// PVH and bzImage (QEMU hw/i386/microvm.c, hw/i386/x86.c).
const FIRMWARE: &[&str] = &[
    "bios-microvm.bin",
    "qboot.rom",
    "pvh.bin",
    "linuxboot_dma.bin",
];
/// A loadable module of the distribution's QEMU that the instruction count depends on.
const MODULE: &str = "accel-tcg-x86_64.so";
/// Where QEMU looks for it: as its distribution configured it, but from the program's directory.
const MODULE_FOLDERS: &[&str] = &["lib/x86_64-linux-gnu/qemu", "lib64/qemu", "lib/qemu"];

/// System calls that QEMU denies itself: none of them is needed after its start.
const SECCOMP: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
/// The oldest QEMU that opens a file read-only as the memory of a guest that writes (`rom=off`).
const READ_ONLY_MEMORY: (u32, u32) = (8, 2);

/// A QEMU and its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    pub program: PathBuf,
    /// The dynamic linker that starts it; `None` if the kernel finds the host's own.
    loader: Option<PathBuf>,
    /// Its version: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)`.
    pub version: String,
    /// Whether it loads plugins: without them, the clock of a guest that halts is not always
    /// exact, and there are no counts.
    pub plugins: bool,
    /// Whether it filters its own system calls.
    pub seccomp: bool,
    /// Hashes of the program, the firmware and the modules that it uses, by name.
    pub hashes: Vec<(String, String)>,
}

/// Why no QEMU is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QemuProblem {
    /// QEMU is missing or cannot be started.
    Missing { program: String, why: String },
    /// The host does not let QEMU start from the data directory.
    NotStartable { program: String, why: String },
    /// QEMU is too old.
    TooOld { found: String },
    /// Marvin does not know how this QEMU executes several processors.
    NotExactSmp {
        found: String,
        /// The builds that are known.
        known: String,
    },
    /// QEMU does not start the exact machine: it lacks a feature of its processor, or does not load
    /// the plugin.
    DoesNotStart { found: String, answer: String },
    /// Its guests see another processor than that of the exact machine.
    OtherCpu {
        found: String,
        /// The registers of CPUID that differ.
        differing: Vec<String>,
    },
    /// QEMU prints no known version.
    Unknown { answer: String },
}

impl std::error::Error for QemuProblem {}

impl fmt::Display for QemuProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REFERENCE: &str = "get the reference QEMU with `marvin setup`, and unset MARVIN_QEMU if it names this one";
        /// Registers that a message has.
        const SHOWN: usize = 3;
        const MEND: &str =
            "get the reference QEMU with `marvin setup`, or name another with MARVIN_QEMU";
        let (major, minor) = OLDEST;
        match self {
            Self::Missing { program, why } => {
                write!(f, "QEMU not found: `{program}`: {why}; {MEND}")
            }
            Self::NotStartable { program, why } => {
                let hint = if why.contains("there is no program") {
                    "install it, or put its directory into PATH"
                } else {
                    "name a data directory from which programs can start with --home"
                };
                write!(f, "cannot start {program}: {why}\nhint: {hint}")
            }
            Self::TooOld { found } => {
                write!(
                    f,
                    "QEMU {found} is too old: {major}.{minor} or newer is needed; {MEND}"
                )
            }
            Self::NotExactSmp { found, known } => write!(
                f,
                "exact-smp needs a build of QEMU that Marvin knows: {known}; this is {found}; get it with `marvin setup`"
            ),
            Self::DoesNotStart { found, answer } => {
                let fix = find_fix(answer).unwrap_or(REFERENCE);
                let errors: Vec<&str> = answer
                    .split("; ")
                    .filter(|line| !line.contains("warning: "))
                    .collect();
                let answer = errors.join("; ");
                write!(
                    f,
                    "cannot measure with QEMU {found}: it does not start the exact machine: {answer}\nhint: {fix}"
                )
            }
            Self::OtherCpu { found, differing } => {
                let shown: Vec<&str> = differing.iter().take(SHOWN).map(String::as_str).collect();
                let more = differing.len() - shown.len();
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                let differing = shown.join("; ");
                write!(
                    f,
                    "cannot measure with QEMU {found}: its guests see another processor, so other verdicts would come: \
                     {differing}{more}\nhint: {REFERENCE}"
                )
            }
            Self::Unknown { answer } => {
                write!(
                    f,
                    "QEMU does not print its version (it printed `{answer}`); {MEND}"
                )
            }
        }
    }
}

impl Qemu {
    /// Finds QEMU: the given program; else the one in PATH, if it gives the reference numbers; else
    /// the one that `marvin setup` put into the data directory; else any in PATH.
    ///
    /// # Errors
    /// If there is none, it is too old, or one of its files cannot be read.
    pub fn find(given: Option<&Path>, home: &Path) -> Result<Self, MachineError> {
        if let Some(given) = given {
            return match in_path(given) {
                Some(program) => Self::identify(program, None),
                None => Err(missing(given, "no such program".into()).into()),
            };
        }
        let elsewhere = || Some(PathBuf::from(ELSEWHERE)).filter(|program| program.is_file());
        let usual = in_path(Path::new(PROGRAM)).or_else(elsewhere);
        let usual = usual.map(|program| Self::identify(program, None));
        match usual {
            Some(Ok(qemu)) if qemu.is_known() => Ok(qemu),
            _ if bundle::find(home).is_some() => Self::bundled(home),
            Some(usual) => usual,
            None => Err(missing(Path::new(PROGRAM), "no such program".into()).into()),
        }
    }

    /// Returns the one in the data directory.
    pub(super) fn bundled(home: &Path) -> Result<Self, MachineError> {
        match bundle::find(home) {
            Some((program, loader)) => Self::identify(program, Some(loader)),
            None => Err(missing(&bundle::folder(home), "no such folder".into()).into()),
        }
    }

    /// Starts a bundle that is not in its place yet.
    pub(super) fn identify_bundle(folder: &Path) -> Result<Self, MachineError> {
        let (program, loader) = bundle::programs(folder);
        Self::identify(program, Some(loader))
    }

    /// Asks a program for what it is, and hashes what results depend on.
    fn identify(program: PathBuf, loader: Option<PathBuf>) -> Result<Self, MachineError> {
        // QEMU looks for its files from where a link leads.
        let program = program.canonicalize().unwrap_or(program);
        let command = command(&program, loader.as_deref());
        let asked =
            |arguments: &[&str]| output(&command, arguments).map_err(|why| missing(&program, why));
        let answer = output(&command, &["--version"]).map_err(|why| {
            let program = program.display().to_string();
            if loader.is_some() {
                QemuProblem::NotStartable { program, why }
            } else {
                QemuProblem::Missing { program, why }
            }
        })?;
        let version = version_in(&answer).ok_or_else(|| QemuProblem::Unknown {
            answer: answer.lines().next().unwrap_or_default().to_owned(),
        })?;
        if numbers(&version) < Some(OLDEST) {
            return Err(QemuProblem::TooOld { found: version }.into());
        }
        let plugins = asked(&["-help"])?
            .lines()
            .any(|line| line.starts_with("-plugin "));
        // Options count in their order: a QEMU without seccomp refuses the first.
        let seccomp = output(&command, &["-sandbox", SECCOMP, "-version"])
            .is_ok_and(|answer| version_in(&answer).is_some());
        let firmware = asked(&["-L", "help"])?;
        let firmware: Vec<PathBuf> = firmware.lines().map(PathBuf::from).collect();
        let bin = program.parent().unwrap_or(Path::new("/"));
        let modules: Vec<PathBuf> = MODULE_FOLDERS
            .iter()
            .map(|folder| bin.with_file_name(folder))
            .collect();
        let mut hashes = vec![(PROGRAM.to_owned(), hash_file(&program)?)];
        for name in FIRMWARE.iter().chain([&MODULE]) {
            let folders = if *name == MODULE { &modules } else { &firmware };
            let mut paths = folders.iter().map(|folder| folder.join(name));
            if let Some(path) = paths.find(|path| path.is_file()) {
                hashes.push(((*name).to_owned(), hash_file(&path)?));
            }
        }
        Ok(Self {
            program,
            loader,
            version,
            plugins,
            seccomp,
            hashes,
        })
    }
}

impl Qemu {
    /// Returns whether its numbers are those of the reference machine.
    #[must_use]
    pub fn is_known(&self) -> bool {
        KnownQemu::find(&self.hashes).is_some()
    }

    /// Returns the firmware that no guest starts without, if none of its folders has it.
    pub(crate) fn missing_firmware(&self) -> Option<&'static str> {
        let has = |file: &str| self.hashes.iter().any(|(name, _)| name == file);
        match FIRMWARE {
            [bios, other_bios, ..] if !has(bios) && !has(other_bios) => Some(bios),
            _ => None,
        }
    }

    /// Returns the words that start it.
    pub(crate) fn command(&self) -> Vec<OsString> {
        command(&self.program, self.loader.as_deref())
    }

    /// Returns its version and the hashes of its files, for a machine's identity.
    pub(crate) fn fingerprint(&self) -> Vec<(String, String)> {
        let version = ("qemu.version".to_owned(), self.version.clone());
        let hashes = self
            .hashes
            .iter()
            .map(|(name, hash)| (format!("{}{name}", KnownQemu::PREFIX), hash.clone()));
        std::iter::once(version).chain(hashes).collect()
    }

    /// Returns its arguments against a guest that takes it over. They are no part of a machine's
    /// identity: they change no number (`marvin/tests/program/walls.rs`), and results from
    /// before them stay valid.
    pub(crate) fn sandbox(&self) -> Vec<String> {
        let filters = self.seccomp && subprocess::wants_walls();
        if filters {
            ["-sandbox", SECCOMP].map(str::to_owned).to_vec()
        } else {
            Vec::new()
        }
    }

    /// Returns the options of a memory file that QEMU opens read-only although the guest writes to
    /// its copy; `None` if it cannot: then it opens the file for writing and does not write.
    pub(crate) fn read_only_memory(&self) -> Option<&'static str> {
        (numbers(&self.version) >= Some(READ_ONLY_MEMORY)).then_some(",readonly=on,rom=off")
    }

    /// Returns the directories that it needs beside the system's: those around a QEMU that the user
    /// installed.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let bin = self.program.parent().unwrap_or(Path::new("/"));
        let beside = ["share", "lib", "lib64", "libexec"].map(|name| bin.with_file_name(name));
        std::iter::once(bin.to_owned())
            .chain(beside)
            .filter(|path| path.is_absolute() && path.is_dir())
            .collect()
    }

    /// Returns its microvm. Without the old interrupt controller only kernels with ACPI boot, so
    /// Marvin omits it only on QEMUs with the timer bug.
    pub(crate) fn microvm(&self) -> &'static str {
        if numbers(&self.version) >= Some(STRAY_TIMER) {
            "microvm,pic=off"
        } else {
            "microvm"
        }
    }
}

pub(super) fn in_path(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns the words that start a program, by a dynamic linker with the libraries beside it.
fn command(program: &Path, loader: Option<&Path>) -> Vec<OsString> {
    let Some(loader) = loader else {
        return vec![program.into()];
    };
    let libraries = loader.parent().unwrap_or(Path::new("/"));
    let mut words: Vec<OsString> = vec![loader.into(), "--library-path".into()];
    words.push(libraries.into());
    // Messages begin with the program's name, not the linker's.
    words.extend(["--argv0".into(), PROGRAM.into(), program.into()]);
    words
}

fn missing(program: &Path, why: String) -> QemuProblem {
    QemuProblem::Missing {
        program: program.display().to_string(),
        why,
    }
}

fn output(command: &[OsString], arguments: &[&str]) -> Result<String, String> {
    let (program, first) = command.split_first().ok_or("no program")?;
    let ended = Program::new(program)
        .args(first)
        .args(arguments)
        .deadline_s(60)
        .run()
        .map_err(|error| error.to_string())?;
    let text = ended.text();
    if ended.code != Some(0) && text.is_empty() {
        return Err(ended.reason());
    }
    Ok(text)
}

fn version_in(answer: &str) -> Option<String> {
    // Some builds say first that there is no KVM.
    let mut lines = answer.lines();
    let line = lines.find(|line| line.starts_with("QEMU emulator version "))?;
    let version = line.split_once(" version ")?.1.trim();
    numbers(version).map(|_| version.to_owned())
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Returns the SHA-256 of a file as hexadecimal digits.
pub(crate) fn hash_file(path: &Path) -> Result<String, MachineError> {
    let bytes = std::fs::read(path).map_err(MachineError::io("read", path))?;
    Ok(hash(&[&bytes]))
}

#[cfg(test)]
mod tests {
    use super::{Qemu, QemuProblem, numbers, version_in};
    use crate::MachineError;
    use std::path::Path;

    #[test]
    fn versions_are_read() {
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright";
        assert_eq!(
            version_in(debian).as_deref(),
            Some("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)")
        );
        let without_kvm = format!("failed to initialize KVM: version 7\n{debian}");
        assert_eq!(version_in(&without_kvm), version_in(debian));
        assert!(numbers("10.0.2") > numbers("7.2"));
        assert_eq!(version_in("busybox"), None);
    }

    #[test]
    fn the_installed_qemu_is_identified() {
        let qemu = Qemu::find(None, Path::new("/nonexistent")).unwrap();
        let names: Vec<&str> = qemu.hashes.iter().map(|(name, _)| name.as_str()).collect();
        assert!(qemu.plugins);
        assert_eq!(names[0], "qemu-system-x86_64");
        assert!(names.contains(&"pvh.bin"), "{names:?}");
    }

    #[test]
    fn absent_old_and_strange_qemu_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, line: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\necho '{line}'\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let message = |path: &Path| match Qemu::find(Some(path), Path::new("/nonexistent")) {
            Err(MachineError::Qemu(problem)) => problem.to_string(),
            other => panic!("{other:?}"),
        };
        insta::assert_snapshot!(message(Path::new("no-such-qemu")), @"QEMU not found: `no-such-qemu`: no such program; get the reference QEMU with `marvin setup`, or name another with MARVIN_QEMU");
        insta::assert_snapshot!(message(&script("old", "QEMU emulator version 5.2.0 (Debian)")), @"QEMU 5.2.0 (Debian) is too old: 7.2 or newer is needed; get the reference QEMU with `marvin setup`, or name another with MARVIN_QEMU");
        insta::assert_snapshot!(message(&script("odd", "hello")), @"QEMU does not print its version (it printed `hello`); get the reference QEMU with `marvin setup`, or name another with MARVIN_QEMU");
        assert!(matches!(
            Qemu::find(Some(&folder.path().join("x/y")), folder.path()),
            Err(MachineError::Qemu(QemuProblem::Missing { .. }))
        ));
    }
}

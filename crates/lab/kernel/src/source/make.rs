//! make: builds the work tree into a vmlinux, bit for bit reproducible whatever was built before.
//!
//! Each configuration keeps its object directory, so that make rebuilds only changes. A source is
//! the work of others: its Makefile may run anything. Behind walls it reads the work tree and the
//! system's programs, writes make's output and compiler cache, and nothing else; Marvin's own files
//! are beside, and Marvin follows no link in the output.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use subprocess::Walls;

use super::SourceError;
use super::compiled::Compiled;
use super::config::{Base, Configuration};
use super::program::Program;
use super::work_tree::WorkTree;
use crate::KernelError;
use crate::folder::sha256;

/// Variables that make builds of the same source equal: they fix the kernel's banner, and with it
/// the seed of its random numbers. Setting LOCALVERSION, even to an empty text, keeps git's state
/// out of the release.
const FIXED: [&str; 5] = [
    "KBUILD_BUILD_TIMESTAMP=2020-01-01",
    "KBUILD_BUILD_USER=marvin",
    "KBUILD_BUILD_HOST=lab",
    "KBUILD_BUILD_VERSION=1",
    "LOCALVERSION=",
];
/// Programs that make needs, and their packages.
const PROGRAMS: [(&str, &str); 6] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
];
/// gcc's message if its compiler process was killed.
const KILLED: [&str; 2] = ["Killed signal", "Terminated signal"];
/// With fewer free bytes a failed build is attributed to the full disk.
const ROOM_BYTES: usize = 16 << 20;
const FOLDERS_MAX: usize = 3;

/// How to build kernels.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// The tree of `git:` names.
    pub tree: Option<PathBuf>,
    pub configuration: Configuration,
    pub jobs: usize,
    /// Time limit of a build, in seconds.
    pub deadline_s: u64,
    /// Limit of cached builds in bytes; the least recently used are deleted first.
    pub bytes_max: u64,
    /// The directory that hosts share: builds go there, and come from there.
    pub shared: Option<PathBuf>,
}

impl Default for SourceSettings {
    /// No tree, micro, one compiler per processor, an hour, 4 GB.
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let configuration = Configuration::default();
        Self {
            tree: None,
            configuration,
            jobs,
            deadline_s: 3600,
            bytes_max: 4_000_000_000,
            shared: None,
        }
    }
}

/// The result of a build.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) vmlinux: PathBuf,
    pub(crate) compiled: Compiled,
    /// Requested options that the result changed.
    pub(crate) not_kept: Vec<String>,
}

/// Returns a text that identifies the compiler; errors if a program is missing.
pub(crate) fn compiler() -> Result<String, KernelError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (program, package) in PROGRAMS {
        if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            return Err(SourceError::NoProgram {
                program: program.into(),
                package: package.into(),
            }
            .into());
        }
    }
    Ok(format!("{}, {}", version("gcc")?, version("ld")?))
}

fn version(program: &'static str) -> Result<String, KernelError> {
    let text = Program::new(program, Path::new("/"))
        .args(["--version"])
        .run()?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Durations of builds of a configuration on this host, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildSeconds {
    pub last: u64,
    /// The longest one: usually the first, which compiles everything.
    pub longest: u64,
}

impl BuildSeconds {
    /// The file with them in an object directory: two numbers in a line.
    const FILE: &str = "marvin.seconds";

    /// Returns the durations of a configuration's builds in a workshop; `None` if there was none.
    pub(crate) fn of_workshop(
        workshop: &Path,
        settings: &SourceSettings,
        compiler: &str,
    ) -> Option<Self> {
        Self::read(&workshop.join(folder_name(settings, compiler)))
    }

    fn read(out: &Path) -> Option<Self> {
        let text = fs::read_to_string(out.join(Self::FILE)).ok()?;
        let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
        let last = numbers.next()?;
        Some(Self {
            last,
            longest: numbers.next().unwrap_or(last),
        })
    }

    fn write(self, out: &Path) -> Result<(), KernelError> {
        let file = out.join(Self::FILE);
        fs::write(&file, format!("{} {}\n", self.last, self.longest))
            .map_err(KernelError::io(&file))
    }
}

/// Returns the name of the object directory of a configuration and a compiler.
fn folder_name(settings: &SourceSettings, compiler: &str) -> String {
    let key = sha256(format!("{}\n{compiler}", settings.configuration.identity()).as_bytes());
    format!("objects-{}", &key[..12])
}

pub(crate) struct Objects<'a> {
    workshop: &'a WorkTree,
    settings: &'a SourceSettings,
    /// The directory, with Marvin's records.
    folder: PathBuf,
    /// make's output in it.
    out: PathBuf,
    compiler: &'a str,
}

impl<'a> Objects<'a> {
    /// Opens the object directory of a configuration and a compiler, and deletes the least recently
    /// used ones.
    pub(crate) fn open(
        workshop: &'a WorkTree,
        settings: &'a SourceSettings,
        compiler: &'a str,
    ) -> Result<Self, KernelError> {
        let folder = workshop.folder().join(folder_name(settings, compiler));
        let out = folder.join("out");
        if folder.join("Makefile").exists() {
            // make's output was here, without a directory of its own.
            fs::remove_dir_all(&folder).map_err(KernelError::io(&folder))?;
        }
        for folder in [&out, &workshop.compiler_cache()] {
            fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
        }
        let used = folder.join("marvin.used");
        fs::write(&used, "").map_err(KernelError::io(&used))?;
        sweep(workshop.folder())?;
        Ok(Self {
            workshop,
            settings,
            folder,
            out,
            compiler,
        })
    }

    /// Returns the durations of builds here.
    pub(crate) fn seconds(&self) -> Option<BuildSeconds> {
        BuildSeconds::read(&self.folder)
    }

    fn log(&self) -> PathBuf {
        self.folder.join("marvin.log")
    }

    /// Builds the work tree.
    pub(crate) fn make(&self, tree: &str, what: &str) -> Result<Made, KernelError> {
        let configuration = &self.settings.configuration;
        let begun = self.folder.join("marvin.begun");
        fs::write(&begun, "").map_err(KernelError::io(&begun))?;
        self.configure(tree, what)?;
        let config = self.out.join(".config");
        check_file(&config, what, &self.log())?;
        let resolved = fs::read(&config).map_err(KernelError::io(&config))?;
        let not_kept = configuration.not_kept(&String::from_utf8_lossy(&resolved));
        let vmlinux = self.out.join("vmlinux");
        self.run("vmlinux", what)?;
        check_file(&vmlinux, what, &self.log())?;
        let seconds = time_between(&begun, &self.log()).as_secs();
        let longest = self
            .seconds()
            .map_or(seconds, |before| before.longest.max(seconds));
        BuildSeconds {
            last: seconds,
            longest,
        }
        .write(&self.folder)?;
        let compiled = Compiled::of_build(&self.out, &self.workshop.source())?;
        Ok(Made {
            vmlinux,
            compiled,
            not_kept,
        })
    }

    /// Makes the `.config`, unless its sources are unchanged.
    fn configure(&self, tree: &str, what: &str) -> Result<(), KernelError> {
        let Configuration { text, base, .. } = &self.settings.configuration;
        let key = sha256(
            format!(
                "{}\n{}",
                self.compiler,
                of_kconfig(&self.workshop.list(tree)?)
            )
            .as_bytes(),
        );
        let mark = self.folder.join("marvin.configured");
        let config = self.out.join(".config");
        if fs::read_to_string(&mark).is_ok_and(|old| old == key) && config.exists() {
            return Ok(());
        }
        drop(fs::remove_file(&mark));
        let mut lines = String::new();
        if *base == Base::Tiny {
            self.run("tinyconfig", what)?;
            check_file(&config, what, &self.log())?;
            lines = fs::read_to_string(&config).map_err(KernelError::io(&config))?;
        }
        // The last of several lines about an option counts.
        lines.push_str(text);
        // A build may have left a link here.
        drop(fs::remove_file(&config));
        File::create_new(&config)
            .and_then(|mut file| file.write_all(lines.as_bytes()))
            .map_err(KernelError::io(&config))?;
        self.run("olddefconfig", what)?;
        fs::write(&mark, key).map_err(KernelError::io(&mark))
    }

    /// Returns whether the disk still accepts writes: if not, make's messages are not in the log
    /// either.
    fn has_room(&self) -> bool {
        let probe = self.folder.join("marvin.room");
        let written = fs::write(&probe, vec![1; ROOM_BYTES]);
        drop(fs::remove_file(&probe));
        !written.is_err_and(|error| {
            matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            )
        })
    }

    fn run(&self, target: &str, what: &str) -> Result<(), KernelError> {
        let log = self.log();
        let jobs = format!("-j{}", self.settings.jobs.max(1));
        let out = format!("O={}", self.out.display());
        let mut arguments = vec![
            "-n",
            "10",
            "make",
            "--no-print-directory",
            "ARCH=x86",
            &jobs,
            &out,
        ];
        arguments.extend(FIXED);
        if has_ccache() {
            arguments.push("CC=ccache gcc");
        }
        arguments.push(target);
        let source = self.workshop.source();
        let cache = self.workshop.compiler_cache();
        let walls = Walls::default()
            .readable_path()
            .readable(&source)
            .writable(&self.out)
            .writable(&cache);
        let program = Program::new("nice", &source)
            .args(arguments)
            .variable("CCACHE_DIR", &cache)
            .walls(walls)
            .deadline_s(self.settings.deadline_s)
            .log(&log);
        let ended = program.end()?;
        if ended.code == Some(0) {
            return Ok(());
        }
        let output =
            String::from_utf8_lossy(&fs::read(&log).map_err(KernelError::io(&log))?).into_owned();
        if output.contains("No space left on device") || !self.has_room() {
            return Err(KernelError::NoSpace {
                folder: self.folder.clone(),
            });
        }
        let first_error = first_error(&output);
        if ended.code.is_none() || KILLED.iter().any(|signal| first_error.contains(signal)) {
            // Another process killed it, such as a kernel without memory: the source is not at
            // fault.
            return Err(SourceError::Program {
                command: format!("make {target}"),
                detail: first_error,
            }
            .into());
        }
        Err(SourceError::DoesNotBuild {
            what: what.to_owned(),
            first_error,
            log,
        }
        .into())
    }
}

/// Checks that make left a file and no link, which may lead to a file of the host.
fn check_file(file: &Path, what: &str, log: &Path) -> Result<(), KernelError> {
    if fs::symlink_metadata(file)
        .map_err(KernelError::io(file))?
        .is_file()
    {
        return Ok(());
    }
    let first_error = format!(
        "{} is no file",
        file.file_name().unwrap_or_default().to_string_lossy()
    );
    Err(SourceError::DoesNotBuild {
        what: what.to_owned(),
        first_error,
        log: log.to_owned(),
    }
    .into())
}

fn has_ccache() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("ccache").is_file())
}

/// Returns the time between the writes of two files; `None` if the host's clock was set back in
/// between.
fn time_between(first: &Path, last: &Path) -> Duration {
    let between = modified_at(first)
        .zip(modified_at(last))
        .and_then(|(first, last)| last.duration_since(first).ok());
    between.unwrap_or_default()
}

fn modified_at(file: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(file).and_then(|found| found.modified()).ok()
}

/// Keeps the files in a list that a `.config` depends on.
fn of_kconfig(list: &str) -> String {
    list.lines()
        .filter(|line: &&str| {
            let file = line.split_once('\t').map_or("", |(_, file)| file);
            let name = file.rsplit('/').next().unwrap_or_default();
            let folders = ["scripts/", "arch/x86/configs/", "kernel/configs/"];
            name.starts_with("Kconfig")
                || ["Makefile", "arch/x86/Makefile"].contains(&file)
                || folders.iter().any(|folder| file.starts_with(folder))
        })
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Picks the first line that reports an error, not a consequence.
fn first_error(output: &str) -> String {
    let found = output
        .lines()
        .find(|line: &&str| {
            let of_tool = [
                "error:",
                "undefined reference",
                KILLED[0],
                KILLED[1],
                "not found",
                "No such file",
            ];
            of_tool.iter().any(|word| line.contains(word)) && !line.starts_with("make")
        })
        .or_else(|| output.lines().find(|line: &&str| line.contains("***")));
    let line = found
        .or_else(|| output.lines().rfind(|line| !line.trim().is_empty()))
        .unwrap_or("it said nothing");
    line.trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(400)
        .collect()
}

/// Deletes the least recently used object directories.
fn sweep(workshop: &Path) -> Result<(), KernelError> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(workshop).map_err(KernelError::io(workshop))? {
        let path = entry.map_err(KernelError::io(workshop))?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("objects-"))
        {
            let used = fs::metadata(path.join("marvin.used"))
                .and_then(|found| found.modified())
                .ok();
            folders.push((used, path));
        }
    }
    folders.sort();
    let surplus = folders.len().saturating_sub(FOLDERS_MAX);
    for (_, path) in &folders[..surplus] {
        fs::remove_dir_all(path).map_err(KernelError::io(path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BuildSeconds, first_error, of_kconfig, sweep};

    #[test]
    fn the_first_error_is_the_cause() {
        let output = "  CC      mm/memory.o\n../mm/memory.c:12:1: error: unknown type name 'x'\nmm/slab.c:1: error: other\n\
                    make[3]: *** [scripts/Makefile.build:229: mm/memory.o] Error 1\n";
        assert_eq!(
            first_error(output),
            "../mm/memory.c:12:1: error: unknown type name 'x'"
        );
        assert_eq!(
            first_error("make: *** No rule to make target 'vmlinux'.  Stop.\n"),
            "make: *** No rule to make target 'vmlinux'.  Stop."
        );
        assert_eq!(first_error("a\nb\n\n"), "b");
        assert_eq!(first_error(""), "it said nothing");
    }

    #[test]
    fn a_configuration_comes_from_few_files() {
        let list = "100644 blob aa\tmm/Kconfig\n100644 blob bb\tmm/memory.c\n100644 blob cc\tMakefile\n\
                    100644 blob dd\tmm/Makefile\n100755 blob ee\tscripts/cc-version.sh\n100644 blob ff\tmm/Kconfig.debug\n";
        assert_eq!(of_kconfig(list).lines().count(), 4);
    }

    #[test]
    fn build_times_round_trip() {
        let out = tempfile::tempdir().unwrap();
        assert_eq!(BuildSeconds::read(out.path()), None);
        let seconds = BuildSeconds {
            last: 6,
            longest: 175,
        };
        seconds.write(out.path()).unwrap();
        assert_eq!(BuildSeconds::read(out.path()), Some(seconds));
    }

    #[test]
    fn few_folders_of_objects_are_kept() {
        let home = tempfile::tempdir().unwrap();
        for name in ["objects-1", "objects-2", "objects-3", "objects-4", "linux"] {
            std::fs::create_dir(home.path().join(name)).unwrap();
            if name != "objects-2" {
                std::fs::write(home.path().join(name).join("marvin.used"), "").unwrap();
            }
        }
        sweep(home.path()).unwrap();
        assert!(!home.path().join("objects-2").exists(), "never used");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 4);
    }
}

//! make: builds the work tree into an image and its modules, bit for bit reproducible whatever was built before.
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
use super::compile_progress::{BuildProgress, ObjectCounts, run_with_reports};
use super::compiled::Compiled;
use super::config::{Base, Configuration, options as config_options};
use super::module_folder;
use super::needs::{MissingNeeds, missing_for};
use super::program::{Ended, Program};
use super::toolchain::{MakeOptions, Toolchain, X86, missing_programs};
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
/// gcc's message if its compiler process was killed.
const KILLED: [&str; 2] = ["Killed signal", "Terminated signal"];
/// With fewer free bytes a failed build is attributed to the full disk.
const ROOM_BYTES: usize = 16 << 20;
const FOLDERS_MAX: usize = 3;
/// The file in an object directory that names the source tree that its objects are of.
const MADE: &str = "marvin.made";
/// The image that boots without a PVH entry.
const BZIMAGE: &str = "arch/x86/boot/bzImage";
/// The option that needs a Rust toolchain, and its programs.
const RUST: &str = "CONFIG_RUST=y";
const RUST_PROGRAMS: [&str; 2] = ["rustc", "bindgen"];

/// How to build kernels.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// The tree of `git:` names.
    pub tree: Option<PathBuf>,
    pub configuration: Configuration,
    /// The compiler, and variables for make.
    pub make: MakeOptions,
    pub jobs: usize,
    /// Time limit of a build, in seconds.
    pub deadline_s: u64,
    /// Limit of cached builds in bytes; the least recently used are deleted first.
    pub bytes_max: u64,
    /// The directory that hosts share: builds go there, and come from there.
    pub shared: Option<PathBuf>,
    /// Whether kernels need not boot on Marvin's machines.
    pub is_only_built: bool,
}

impl Default for SourceSettings {
    /// No tree, the default config, gcc, one compiler per processor, an hour, 4 GB.
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let configuration = Configuration::default();
        Self {
            tree: None,
            configuration,
            make: MakeOptions::default(),
            jobs,
            deadline_s: 3600,
            bytes_max: 4_000_000_000,
            shared: None,
            is_only_built: false,
        }
    }
}

impl SourceSettings {
    /// Returns compiler, linker and variables of make, for people.
    ///
    /// # Errors
    /// If this host lacks one.
    pub fn compiler(&self) -> Result<String, KernelError> {
        Ok(Toolchain::find(&self.make, &self.configuration)?.description)
    }
}

/// The result of a build.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) image: PathBuf,
    /// The directory of its modules, named by its release.
    pub(crate) modules: Option<PathBuf>,
    pub(crate) compiled: Compiled,
}

/// What is known while a build runs.
#[derive(Debug)]
pub(crate) enum MakeStep {
    /// Kconfig changed these requested options.
    NotKept(Vec<String>),
    Compiling(BuildProgress),
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
    toolchain: &'a Toolchain,
}

impl<'a> Objects<'a> {
    /// Opens the object directory of a configuration and a compiler, and deletes the least recently
    /// used ones.
    pub(crate) fn open(
        workshop: &'a WorkTree,
        settings: &'a SourceSettings,
        toolchain: &'a Toolchain,
    ) -> Result<Self, KernelError> {
        let name = folder_name(settings, &toolchain.identity());
        let folder = workshop.folder().join(name);
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
            toolchain,
        })
    }

    /// Returns the durations of builds here.
    pub(crate) fn seconds(&self) -> Option<BuildSeconds> {
        BuildSeconds::read(&self.folder)
    }

    fn log(&self) -> PathBuf {
        self.folder.join("marvin.log")
    }

    /// Builds the work tree, and reports how far it is.
    pub(crate) fn make(
        &self,
        tree: &str,
        what: &str,
        report: &dyn Fn(MakeStep),
    ) -> Result<Made, KernelError> {
        let configuration = &self.settings.configuration;
        let begun = self.folder.join("marvin.begun");
        let made = self.folder.join(MADE);
        drop(fs::remove_file(&made));
        fs::write(&begun, "").map_err(KernelError::io(&begun))?;
        self.configure(tree, what)?;
        let resolved = self.resolved(what)?;
        let not_kept = configuration.not_kept(&resolved);
        if not_kept.iter().any(|option| option == RUST) {
            self.check_rust(what)?;
        }
        if !not_kept.is_empty() {
            report(MakeStep::NotKept(not_kept));
        }
        let options = config_options(&resolved);
        let is =
            |option: &str, value: &str| options.get(option).is_some_and(|found| found == value);
        // Without a PVH entry only the bzImage boots; what is on top of tinyconfig has one.
        let needs_bzimage = configuration.base != Base::Tiny
            && self.toolchain.architecture == X86
            && !is("CONFIG_PVH", "y");
        let image = if needs_bzimage { BZIMAGE } else { "vmlinux" };
        let host_cc = self.toolchain.host_compiler();
        if let Some(needs) = missing_for(&options, &host_cc, needs_bzimage) {
            let MissingNeeds { what, install } = needs;
            return Err(SourceError::Needs { what, install }.into());
        }
        let has_modules = is("CONFIG_MODULES", "y") && options.values().any(|value| value == "m");
        let target = image.rsplit('/').next().unwrap_or(image);
        let targets = [target, "modules"];
        let targets = if has_modules { &targets } else { &targets[..1] };
        self.compile(targets, what, report)?;
        let image = self.out.join(image);
        check_file(&image, what, &self.log())?;
        self.note_seconds(&begun)?;
        let modules = if has_modules {
            Some(self.install_modules(what)?)
        } else {
            None
        };
        let compiled = Compiled::of_build(&self.out, &self.workshop.source())?;
        fs::write(&made, tree).map_err(KernelError::io(&made))?;
        Ok(Made {
            image,
            modules,
            compiled,
        })
    }

    /// Returns the `.config` that a build of the work tree would have. It is made in a directory of
    /// its own: those with objects stay as they are.
    pub(crate) fn resolve(
        workshop: &'a WorkTree,
        settings: &'a SourceSettings,
        toolchain: &'a Toolchain,
        tree: &str,
        what: &str,
    ) -> Result<String, KernelError> {
        let folder = workshop.folder().join("config");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(KernelError::io(&folder))?;
        }
        let out = folder.join("out");
        for folder in [&out, &workshop.compiler_cache()] {
            fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
        }
        let objects = Self {
            workshop,
            settings,
            folder,
            out,
            toolchain,
        };
        objects.configure(tree, what)?;
        objects.resolved(what)
    }

    /// Runs make for the image and the modules.
    fn compile(
        &self,
        targets: &[&str],
        what: &str,
        report: &dyn Fn(MakeStep),
    ) -> Result<(), KernelError> {
        let key = sha256(self.settings.configuration.identity().as_bytes());
        let counts = ObjectCounts::of_config(self.workshop.folder(), &key[..12]);
        let whole = counts.read();
        let is_partial = self.seconds().is_some();
        let (made, objects) = run_with_reports(
            &self.log(),
            || self.run(targets, what),
            &mut |objects, elapsed| {
                report(MakeStep::Compiling(BuildProgress {
                    objects,
                    whole,
                    is_partial,
                    seconds: elapsed.as_secs(),
                }));
            },
        );
        made?;
        counts.keep(objects)
    }

    /// Returns the `.config` as make resolved it.
    fn resolved(&self, what: &str) -> Result<String, KernelError> {
        let config = self.out.join(".config");
        check_file(&config, what, &self.log())?;
        let resolved = fs::read(&config).map_err(KernelError::io(&config))?;
        Ok(String::from_utf8_lossy(&resolved).into_owned())
    }

    fn note_seconds(&self, begun: &Path) -> Result<(), KernelError> {
        let seconds = time_between(begun, &self.log()).as_secs();
        let longest = self
            .seconds()
            .map_or(seconds, |before| before.longest.max(seconds));
        BuildSeconds {
            last: seconds,
            longest,
        }
        .write(&self.folder)
    }

    /// Installs the modules below the output, without their debug information.
    fn install_modules(&self, what: &str) -> Result<PathBuf, KernelError> {
        let top = self.out.join("marvin.modules");
        if fs::symlink_metadata(&top).is_ok() {
            fs::remove_dir_all(&top).map_err(KernelError::io(&top))?;
        }
        let path = format!("INSTALL_MOD_PATH={}", top.display());
        // The guest finds dependencies in the modules themselves.
        let arguments = [path.as_str(), "INSTALL_MOD_STRIP=1", "DEPMOD=true"];
        self.run(&[&arguments[..], &["modules_install"]].concat(), what)?;
        module_folder::installed(&top)?.ok_or_else(|| {
            SourceError::DoesNotBuild {
                what: what.to_owned(),
                first_error: "make modules_install left no lib/modules/RELEASE".to_owned(),
                log: self.log(),
            }
            .into()
        })
    }

    /// Errors if this host cannot build the kernel's Rust code; names all that it lacks.
    fn check_rust(&self, what: &str) -> Result<(), KernelError> {
        let missing = missing_programs(&RUST_PROGRAMS);
        let mut detail = String::new();
        if !missing.is_empty() {
            detail = format!(
                "no {} on this host; run `sudo apt-get install rustc rust-src bindgen` (Documentation/rust/quick-start.rst has the versions)",
                missing.join(" and no ")
            );
        } else if let Err(error) = self.run(&["rustavailable"], what) {
            let KernelError::Source(SourceError::DoesNotBuild { log, .. }) = error else {
                return Err(error);
            };
            let output = fs::read(&log).map_err(KernelError::io(&log))?;
            detail = format!(
                "`make rustavailable` fails: {}",
                first_complaint(&String::from_utf8_lossy(&output))
            );
        }
        if detail.is_empty() {
            // Another option excludes it.
            return Ok(());
        }
        Err(SourceError::NoRust {
            what: what.to_owned(),
            detail,
        }
        .into())
    }

    /// Makes the `.config`, unless its sources are unchanged.
    fn configure(&self, tree: &str, what: &str) -> Result<(), KernelError> {
        let configuration = &self.settings.configuration;
        let key = sha256(
            format!(
                "{}\n{}",
                self.toolchain.identity(),
                of_kconfig(
                    &self.workshop.list(tree)?,
                    self.toolchain.source_architecture()
                )
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
        let basis = match &configuration.base {
            Base::Tiny => Some("tinyconfig"),
            Base::Target(target) => Some(target.as_str()),
            Base::Whole => None,
        };
        if let Some(target) = basis {
            self.run(&[target], what)?;
            lines = self.resolved(what)?;
        }
        for fragment in &configuration.in_tree {
            lines.push_str(&self.fragment(fragment, what)?);
            lines.push('\n');
        }
        // The last of several lines about an option counts.
        lines.push_str(&configuration.text);
        replace(&config, &lines)?;
        self.run(&["olddefconfig"], what)?;
        if let Some(modules) = &configuration.modules {
            let list = self.out.join("marvin.lsmod");
            replace(&list, &format!("{}\n", modules.join("\n")))?;
            let list = format!("LSMOD={}", list.display());
            self.run(&[&list, "localmodconfig"], what)?;
            self.run(&["olddefconfig"], what)?;
        }
        fs::write(&mark, key).map_err(KernelError::io(&mark))
    }

    /// Returns a config fragment of the source.
    fn fragment(&self, name: &str, what: &str) -> Result<String, KernelError> {
        let architecture = self.toolchain.source_architecture();
        let folders = [
            "kernel/configs".to_owned(),
            format!("arch/{architecture}/configs"),
        ];
        let file = folders
            .iter()
            .map(|folder| self.workshop.source().join(folder).join(name))
            .find(|file| fs::symlink_metadata(file).is_ok_and(|found| found.is_file()))
            .ok_or_else(|| SourceError::NoFragment {
                what: what.to_owned(),
                name: name.to_owned(),
                architecture: architecture.to_owned(),
            })?;
        let bytes = fs::read(&file).map_err(KernelError::io(&file))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
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

    /// Returns whether the last build here was of this source tree: its objects are there.
    pub(crate) fn is_of(&self, tree: &str) -> bool {
        fs::read_to_string(self.folder.join(MADE)).is_ok_and(|last| last == tree)
    }

    /// Returns make's output, below which the objects are.
    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    /// Returns the work tree.
    pub(super) fn source(&self) -> PathBuf {
        self.workshop.source()
    }

    /// Runs a shell's commands in make's output; returns what is wrong if they fail.
    pub(super) fn run_shell(&self, script: &str) -> Result<Option<String>, KernelError> {
        let log = self.folder.join("marvin.described.log");
        let program = self.confined(["-n", "10", "sh", "-c", script], &self.out);
        let ended = program.log(&log).end()?;
        if ended.code == Some(0) {
            return Ok(None);
        }
        let first_error = self.fault_of_source(&ended, &log, "sh")?;
        Ok(Some(first_error))
    }

    /// Returns the first error of a program that failed.
    ///
    /// # Errors
    /// If not the source is at fault: a full disk, or another process killed it.
    fn fault_of_source(
        &self,
        ended: &Ended,
        log: &Path,
        command: &str,
    ) -> Result<String, KernelError> {
        let output = fs::read(log).map_err(KernelError::io(log))?;
        let output = String::from_utf8_lossy(&output);
        if output.contains("No space left on device") || !self.has_room() {
            return Err(KernelError::NoSpace {
                folder: self.folder.clone(),
            });
        }
        let first_error = first_error(&output);
        if ended.code.is_none() || KILLED.iter().any(|signal| first_error.contains(signal)) {
            // Such as a kernel without memory.
            return Err(SourceError::Program {
                command: command.to_owned(),
                detail: first_error,
            }
            .into());
        }
        Ok(first_error)
    }

    /// Returns a program of the build behind its walls.
    fn confined<'b>(&self, arguments: impl IntoIterator<Item = &'b str>, folder: &Path) -> Program {
        let source = self.workshop.source();
        let cache = self.workshop.compiler_cache();
        let mut walls = Walls::default()
            .readable_path()
            .readable(&source)
            .writable(&self.out)
            .writable(&cache);
        for folder in &self.toolchain.folders {
            walls = walls.readable(folder);
        }
        let mut program = Program::new("nice", folder)
            .args(arguments)
            .variable("CCACHE_DIR", &cache);
        let rustup = rustup_home().filter(|_| self.settings.configuration.requests("CONFIG_RUST"));
        if let Some(rustup) = rustup {
            walls = walls.readable(&rustup);
            program = program.variable("RUSTUP_HOME", &rustup);
        }
        program.walls(walls).deadline_s(self.settings.deadline_s)
    }

    fn run(&self, targets: &[&str], what: &str) -> Result<(), KernelError> {
        let log = self.log();
        let jobs = format!("-j{}", self.settings.jobs.max(1));
        let out = format!("O={}", self.out.display());
        let mut arguments = vec!["-n", "10", "make", "--no-print-directory", &jobs, &out];
        arguments.extend(FIXED);
        let chosen = self.toolchain.arguments(has_ccache());
        arguments.extend(chosen.iter().map(String::as_str));
        arguments.extend(targets);
        let program = self.confined(arguments, &self.workshop.source()).log(&log);
        let ended = program.end()?;
        if ended.code == Some(0) {
            return Ok(());
        }
        let command = format!("make {}", targets.join(" "));
        let first_error = self.fault_of_source(&ended, &log, &command)?;
        Err(SourceError::DoesNotBuild {
            what: what.to_owned(),
            first_error,
            log,
        }
        .into())
    }
}

/// Writes a file anew: a build may have left a link in its place.
fn replace(file: &Path, text: &str) -> Result<(), KernelError> {
    drop(fs::remove_file(file));
    File::create_new(file)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(KernelError::io(file))
}

/// Returns what a check of make complains of: the words of its frame of stars.
fn first_complaint(output: &str) -> String {
    let lines: Vec<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("***"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        first_error(output)
    } else {
        model::sanitize_line(&lines.join(" "))
            .chars()
            .take(400)
            .collect()
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

/// Returns where rustup has the compilers that its `rustc` runs.
fn rustup_home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".rustup"));
    std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or(home)
        .filter(|folder| folder.is_absolute() && folder.is_dir())
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
fn of_kconfig(list: &str, architecture: &str) -> String {
    let configs = format!("arch/{architecture}/configs/");
    let makefile = format!("arch/{architecture}/Makefile");
    list.lines()
        .filter(|line: &&str| {
            let file = line.split_once('\t').map_or("", |(_, file)| file);
            let name = file.rsplit('/').next().unwrap_or_default();
            let folders = ["scripts/", &configs, "kernel/configs/"];
            name.starts_with("Kconfig")
                || ["Makefile", &makefile].contains(&file)
                || folders.iter().any(|folder| file.starts_with(folder))
        })
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Picks the first line that reports an error, not a consequence.
pub(crate) fn first_error(output: &str) -> String {
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
        assert_eq!(of_kconfig(list, "x86").lines().count(), 4);
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

//! The files of a program on this host: the program, its libraries, its interpreter with its
//! library, the programs and files that a shell script or an argument names.
//!
//! What a program opens only while it runs cannot be known before: that is named with `--with`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archives::{Root, collect};

use super::error::OwnProgramError;
use super::startable::{self, first_line};
use super::{ProgramRequest, brought, interpreter, places, shell, toolchain};

/// Most bytes of all files.
pub(super) const FILES_MAX: u64 = 1 << 30;
/// Largest file that is taken without being named with `--with`, in bytes.
const UNNAMED_MAX: u64 = 64 << 20;
/// Most files that are looked into for what they name.
const SCRIPTS_MAX: usize = 2000;
/// Directories whose files are the kernel's.
pub(super) const KERNEL_FOLDERS: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// Shells: their scripts name programs as words.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"];
/// Programs that start another, which their arguments name.
const STARTERS: [&str; 17] = [
    "chrt", "env", "ionice", "nice", "nohup", "numactl", "perf", "prlimit", "setarch", "setsid",
    "stdbuf", "strace", "taskset", "time", "timeout", "unshare", "xargs",
];
/// Where the dynamic linker finds its directories beside the usual ones.
const LINKER_SETTINGS: &str = "/etc/ld.so.conf";

/// The files of a program.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The program, as the guest starts it.
    pub(super) program: String,
    /// Its working directory.
    pub(super) directory: String,
    /// Its standard input.
    pub(super) stdin: Option<String>,
    /// Files by their paths in the guest.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// What files name and this host lacks.
    pub(super) missing: Vec<String>,
    /// What a directory of `--with` has and a guest cannot get.
    pub(super) left_out: Vec<String>,
    /// Directories of libraries that a guest's dynamic linker does not know.
    pub(super) library_folders: Vec<String>,
    /// Directories of programs, in the order of PATH.
    pub(super) path: Vec<String>,
}

/// This host, as the program's user sees it.
pub(super) struct Host {
    directory: PathBuf,
    path: Vec<PathBuf>,
    library_folders: Vec<String>,
}

/// Files that are looked into, and what was found.
#[derive(Default)]
struct Search {
    wanted: BTreeSet<String>,
    scripts: VecDeque<PathBuf>,
    seen: usize,
    /// Directories of interpreters, which come first in PATH.
    program_folders: BTreeSet<String>,
    missing: BTreeSet<String>,
    left_out: BTreeSet<String>,
}

/// Files that go to another place in the guest.
struct Placed {
    source: String,
    place: String,
    files: BTreeSet<String>,
}

impl Host {
    pub(super) fn new(
        directory: &Path,
        environment: &[(String, String)],
    ) -> Result<Self, OwnProgramError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = environment
            .iter()
            .filter(|(name, _)| name == "LD_LIBRARY_PATH")
            .flat_map(|(_, folders)| folders.split(':'));
        let mut library_folders: Vec<String> = own.map(str::to_owned).collect();
        library_folders.extend(linker_folders(Path::new(LINKER_SETTINGS)));
        text(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            path: std::env::split_paths(&path).collect(),
            library_folders,
        })
    }

    /// Finds all files of a program.
    pub(super) fn find_files(&self, request: &ProgramRequest) -> Result<Found, OwnProgramError> {
        let first = request.command.first().ok_or(OwnProgramError::Nothing)?;
        let program = self.find_program(first)?;
        let mut search = Search::default();
        search.add(&program)?;
        startable::check(&program)?;
        self.check_interpreter(&program)?;
        self.check_linked(&program)?;
        self.search_arguments(&program, &request.command[1..], &mut search)?;
        if let Some(setup) = &request.setup {
            let shell = self.find_program("/bin/sh")?;
            search.add(&shell)?;
            self.search_text(setup, &mut search)?;
        }
        let stdin = match &request.stdin {
            Some(file) => {
                let file = self.named_file(file)?;
                search.wanted.insert(text(&file)?);
                Some(text(&file)?)
            }
            None => None,
        };
        let placed = self.bring(request, &mut search)?;
        self.search_scripts(&mut search)?;
        let mut found = self.collect(&search, &placed)?;
        found.program = self.started_as(&program)?;
        found.path = self.choose_path(&search, &found)?;
        found.directory = text(&self.directory)?;
        found.stdin = stdin;
        Ok(found)
    }

    /// Takes what the user names with `--with`.
    fn bring(
        &self,
        request: &ProgramRequest,
        search: &mut Search,
    ) -> Result<Vec<Placed>, OwnProgramError> {
        let mut placed = Vec::new();
        for (named, place) in &request.with {
            if named.as_os_str().is_empty() {
                return Err(OwnProgramError::NoSource {
                    place: place.clone().unwrap_or_default(),
                });
            }
            let source = without_dots(&self.directory.join(named));
            let brought = brought::list(&source)?;
            search.left_out.extend(brought.left_out);
            if source.is_file() {
                search.scripts.push_back(source.clone());
            }
            match place {
                Some(place) => placed.push(Placed {
                    source: text(&source)?,
                    place: check_place(named, place)?,
                    files: brought.files,
                }),
                None => search.wanted.extend(brought.files),
            }
        }
        Ok(placed)
    }

    /// Errors if a script's interpreter is missing.
    fn check_interpreter(&self, program: &Path) -> Result<(), OwnProgramError> {
        let line = first_line(program)?.unwrap_or_default();
        for name in startable::name_interpreters(&line) {
            if self.find_program(name).is_err() {
                return Err(OwnProgramError::NoInterpreter {
                    path: program.to_owned(),
                    interpreter: name.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Returns the program's path in the guest. An interpreter knows where it is itself.
    fn started_as(&self, program: &Path) -> Result<String, OwnProgramError> {
        match interpreter::ask(program).executable {
            Some(executable) => text(&executable),
            None => text(program),
        }
    }

    /// Returns the file of a program: a path, or a name in PATH.
    fn find_program(&self, name: &str) -> Result<PathBuf, OwnProgramError> {
        if !name.contains('/') {
            return self
                .in_path(name)
                .ok_or_else(|| OwnProgramError::NotInPath {
                    name: name.to_owned(),
                    hint: if self.directory.join(name).is_file() {
                        "; it is in this directory: write ./ in front of it"
                    } else if matches!(name, "cd" | "source" | "export" | "ulimit" | "eval" | "set")
                    {
                        "; it is a word of the shell: write sh -c '…'"
                    } else {
                        ""
                    },
                });
        }
        let path = self.named_file(Path::new(name))?;
        let mode = fs::metadata(&path).map_err(OwnProgramError::read(&path))?;
        if mode.permissions().mode() & 0o111 == 0 {
            return Err(OwnProgramError::NotExecutable { path });
        }
        Ok(path)
    }

    fn in_path(&self, name: &str) -> Option<PathBuf> {
        let mut files = self.path.iter().map(|folder| folder.join(name));
        files.find(|file| {
            file.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
    }

    /// Returns the absolute path of a regular file that the user names.
    fn named_file(&self, named: &Path) -> Result<PathBuf, OwnProgramError> {
        let path = without_dots(&self.directory.join(named));
        match fs::metadata(&path) {
            Err(_) => Err(OwnProgramError::no_file(&path)),
            Ok(found) if found.is_dir() => Err(OwnProgramError::IsDirectory { path }),
            Ok(found) if !found.is_file() => Err(OwnProgramError::Special { path }),
            Ok(_) => Ok(path),
        }
    }

    /// Returns PATH of the guest: directories of interpreters, and those of this host's PATH that
    /// have a file there.
    fn choose_path(&self, search: &Search, found: &Found) -> Result<Vec<String>, OwnProgramError> {
        let mut chosen: Vec<String> = search.program_folders.iter().cloned().collect();
        let used: BTreeSet<&Path> = found
            .files
            .keys()
            .filter_map(|path| Path::new(path).parent())
            .collect();
        for folder in &self.path {
            if used.contains(folder.as_path()) {
                chosen.push(text(folder)?);
            }
        }
        Ok(chosen)
    }

    /// Errors if the dynamic linker would not find a library of the program.
    fn check_linked(&self, program: &Path) -> Result<(), OwnProgramError> {
        let wanted = [text(program)?];
        let collected = collect(
            &Root(Path::new("/")),
            &wanted,
            &self.library_folders,
            FILES_MAX,
        )
        .map_err(OwnProgramError::archive)?;
        if collected.missing.is_empty() {
            Ok(())
        } else {
            Err(OwnProgramError::NoLibrary {
                names: collected.missing,
            })
        }
    }

    /// Adds the files that arguments name, and what a shell's text or a starter's words name.
    fn search_arguments(
        &self,
        program: &Path,
        arguments: &[String],
        search: &mut Search,
    ) -> Result<(), OwnProgramError> {
        let name = program.file_name().and_then(|name| name.to_str());
        let is_shell = name.is_some_and(|name| SHELLS.contains(&name));
        let is_starter = name.is_some_and(|name| STARTERS.contains(&name));
        // `sh FILE` needs no `#!` in the file.
        let mut may_be_script = is_shell;
        for (at, argument) in arguments.iter().enumerate() {
            let is_text = is_shell && at > 0 && arguments[at - 1].ends_with('c');
            if is_text && arguments[at - 1].starts_with('-') {
                may_be_script = false;
                self.search_text(argument, search)?;
                continue;
            }
            if may_be_script && !argument.starts_with('-') {
                may_be_script = false;
                let file = self.directory.join(argument);
                // A FIFO would never end, and /dev/zero fill the memory.
                if file
                    .metadata()
                    .is_ok_and(|about| about.is_file() && about.len() <= UNNAMED_MAX)
                {
                    let bytes = fs::read(&file).unwrap_or_default();
                    self.search_text(&String::from_utf8_lossy(&bytes), search)?;
                }
            }
            if is_starter && let Some(started) = self.in_path(argument) {
                search.add(&started)?;
                // `env sh -c TEXT`: the shell's own arguments follow.
                self.search_arguments(&started, &arguments[at + 1..], search)?;
                return Ok(());
            }
            let value = argument.split_once('=').map_or("", |(_, value)| value);
            for word in [argument.as_str(), value] {
                self.search_file(word, search)?;
            }
        }
        Ok(())
    }

    /// Adds the programs and files that the text of a shell names.
    fn search_text(&self, script: &str, search: &mut Search) -> Result<(), OwnProgramError> {
        for word in shell::words(script) {
            match self.in_path(word) {
                Some(program) if !word.contains('/') => search.add(&program)?,
                _ => self.search_file(word, search)?,
            }
        }
        Ok(())
    }

    /// Adds a file if a word names one.
    fn search_file(&self, word: &str, search: &mut Search) -> Result<(), OwnProgramError> {
        if word.is_empty() || word.starts_with('-') {
            return Ok(());
        }
        let path = without_dots(&self.directory.join(word));
        if KERNEL_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
            return Ok(());
        }
        let Ok(found) = fs::metadata(&path) else {
            return Ok(());
        };
        if found.is_file() && found.len() <= UNNAMED_MAX {
            search.add(&path)?;
        }
        Ok(())
    }

    /// Looks into files for interpreters, and into shell scripts for what they name.
    fn search_scripts(&self, search: &mut Search) -> Result<(), OwnProgramError> {
        while let Some(file) = search.scripts.pop_front() {
            search.seen += 1;
            if search.seen > SCRIPTS_MAX {
                return Ok(());
            }
            let name = file.file_name().and_then(|name| name.to_str());
            if name.is_some_and(toolchain::is_compiler) {
                self.add_toolchain(&file, search)?;
                continue;
            }
            let answer = interpreter::ask(&file);
            search.wanted.extend(answer.library);
            if let Some(executable) = answer.executable {
                search.wanted.insert(text(&executable)?);
                if let Some(folder) = executable.parent() {
                    search.program_folders.insert(text(folder)?);
                }
                // What PATH names may be a script that looks for it.
                continue;
            }
            let Some(started) = self.add_interpreter(&file, search)? else {
                continue;
            };
            let name = started.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| SHELLS.contains(&name)) {
                let bytes = fs::read(&file).map_err(OwnProgramError::read(&file))?;
                self.search_text(&String::from_utf8_lossy(&bytes), search)?;
            }
        }
        Ok(())
    }

    /// Adds what a compiler of C says that it needs.
    fn add_toolchain(&self, compiler: &Path, search: &mut Search) -> Result<(), OwnProgramError> {
        for path in toolchain::ask(compiler) {
            let path = without_dots(Path::new(&path));
            if path.is_dir() {
                search.wanted.extend(brought::list(&path)?.files);
            } else {
                search.wanted.insert(text(&path)?);
            }
        }
        // It finds an assembler and a linker by their names.
        for name in ["as", "ld"] {
            if let Some(program) = self.in_path(name) {
                search.wanted.insert(text(&program)?);
            }
        }
        Ok(())
    }

    /// Adds the interpreter of a script, and returns the program that reads it. Without one, only
    /// the user's own program is lost: a text may name files that never start.
    fn add_interpreter(
        &self,
        script: &Path,
        search: &mut Search,
    ) -> Result<Option<PathBuf>, OwnProgramError> {
        let line = first_line(script)?.unwrap_or_default();
        let mut started = None;
        for name in startable::name_interpreters(&line) {
            let Ok(found) = self.find_program(name) else {
                search.missing.insert(name.to_owned());
                return Ok(None);
            };
            search.add(&found)?;
            started = Some(found);
        }
        Ok(started)
    }

    /// Reads all files with their libraries.
    fn collect(&self, search: &Search, placed: &[Placed]) -> Result<Found, OwnProgramError> {
        let root = Root(Path::new("/"));
        let mut wanted = Vec::new();
        for path in &search.wanted {
            let files = root.files(path).into_iter();
            wanted.extend(files.filter(|file| file == path || !interpreter::is_left_out(file)));
        }
        wanted.extend(
            placed
                .iter()
                .flat_map(|placed| placed.files.iter().cloned()),
        );
        let collected = collect(&root, &wanted, &self.library_folders, FILES_MAX)
            .map_err(OwnProgramError::archive)?;
        let missing = collected.missing.into_iter();
        let mut found = Found {
            files: collected.files,
            missing: missing.chain(search.missing.iter().cloned()).collect(),
            left_out: search.left_out.iter().cloned().collect(),
            ..Found::default()
        };
        for Placed { source, place, .. } in placed {
            let moved: Vec<String> = found
                .files
                .keys()
                .filter(|path| Path::new(path).starts_with(source))
                .cloned()
                .collect();
            for path in moved {
                if let Some(bytes) = found.files.remove(&path) {
                    found
                        .files
                        .insert(format!("{place}{}", &path[source.len()..]), bytes);
                }
            }
        }
        places::check(&found.files)?;
        found.library_folders = self
            .library_folders
            .iter()
            .filter(|folder| {
                let files = found.files.keys();
                files
                    .filter_map(|path| Path::new(path).parent())
                    .any(|parent| parent == Path::new(folder.as_str()))
            })
            .cloned()
            .collect();
        Ok(found)
    }
}

impl Search {
    /// Takes a file, and looks into it later.
    fn add(&mut self, file: &Path) -> Result<(), OwnProgramError> {
        if self.wanted.insert(text(file)?) {
            self.scripts.push_back(file.to_owned());
        }
        Ok(())
    }
}

/// Returns the directories of ld.so.conf and of the files that it includes.
fn linker_folders(settings: &Path) -> Vec<String> {
    let mut folders = Vec::new();
    let mut open = vec![settings.to_owned()];
    while let Some(file) = open.pop() {
        let text = fs::read_to_string(&file).unwrap_or_default();
        for line in text.lines().map(str::trim) {
            match line.strip_prefix("include ") {
                // Distributions write `include /etc/ld.so.conf.d/*.conf`.
                Some(pattern) => {
                    let folder = Path::new(pattern.trim()).parent();
                    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
                    let mut included: Vec<PathBuf> = entries
                        .into_iter()
                        .flatten()
                        .flatten()
                        .map(|entry| entry.path())
                        .filter(|path| path.extension().is_some_and(|end| end == "conf"))
                        .collect();
                    included.sort();
                    open.extend(included);
                }
                None if line.starts_with('/') => folders.push(line.to_owned()),
                None => {}
            }
        }
    }
    folders
}

/// Returns a path without `.` and `..`; links stay.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn check_place(named: &Path, place: &str) -> Result<String, OwnProgramError> {
    let path = Path::new(place);
    let has_parent = path
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    if path.is_absolute() && !has_parent && path != Path::new("/") {
        return text(&without_dots(path));
    }
    Err(OwnProgramError::BadPlace {
        written: format!("{}={place}", named.display()),
    })
}

fn text(path: &Path) -> Result<String, OwnProgramError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| OwnProgramError::NotText {
            path: path.to_owned(),
        })
}

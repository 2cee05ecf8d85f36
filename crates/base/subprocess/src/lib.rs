//! External programs: one way of running them. They die with Marvin, have a deadline and few
//! variables of the environment, may have walls around them, and their output is limited.
//!
//! `running` starts them and ends them, `walls` says what they see; `tethered` starts those that
//! Marvin observes, and `at_end` does what is to be done when Marvin ends; `lock` opens files of
//! locks, `locked_folder` makes directories of interruptible work; `qmp` speaks with a QEMU; `shared` holds what threads share; `whole_file` replaces files. The callers interpret the
//! exit status and choose the program's name in messages.

#![warn(missing_docs)]

mod affinity;
mod at_end;
mod curl;
mod lock;
mod locked_folder;
mod no_walls;
mod qmp;
mod running;
mod shared;
mod shell;
mod tethered;
mod walls;
mod whole_file;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

pub use affinity::pin_thread;
pub use at_end::AtEnd;
pub use curl::curl_config;
pub use lock::{lock_file, wait_for_lock};
pub use locked_folder::{FolderError, LockedFolder};
pub use no_walls::NoWalls;
pub use qmp::{Qmp, QmpError};
use running::{Lifeline, Start};
pub use running::{Running, signal_of};
pub use shared::Shared;
pub use shell::quote_words;
pub use tethered::Tethered;
pub use walls::{Walls, no_walls, remove_walls, wants_walls};
pub use whole_file::replace_file;

/// The exit status of a shell if there is no such program.
const NOT_FOUND: i32 = 127;
/// Limit of the kept standard error, in bytes: its beginning.
const SAID_MAX: u64 = 1 << 20;
/// Variables that each program gets from Marvin's environment. All others may be secrets: passwords
/// of the store and the mail server, keys of clouds.
const VARIABLES: [&str; 5] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR"];
/// Variables for programs that ask servers: proxies and certificates.
pub const NETWORK: [&str; 12] = [
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// A program and how to run it.
#[derive(Debug, Clone)]
pub struct Program {
    name: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    /// The environment; `None` for all of Marvin's.
    variables: Option<Vec<(OsString, OsString)>>,
    deadline_s: u64,
    output_max: u64,
    log: Option<PathBuf>,
    walls: Option<Walls>,
    /// What starts it, outside its walls.
    prefix: Vec<OsString>,
    /// The only processor that it may use.
    processor: Option<usize>,
    /// Whether its end is the end of what it left in the background.
    is_swept: bool,
}

/// The end of a program that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its output, up to the limit.
    pub output: Vec<u8>,
    /// What it wrote to standard error, up to the limit.
    pub stderr: String,
}

/// A program that did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("there is no program `{0}`")]
    Missing(String),
    /// The program is there, but what it names as its dynamic linker or interpreter is not.
    #[error("`{0}` is there, but its dynamic linker (PT_INTERP) or interpreter (#!) is not")]
    NoLoader(String),
    /// It exceeded its deadline.
    #[error("`{command}` did not end within {seconds} s")]
    Deadline {
        /// The command, as a user would type it.
        command: String,
        /// The deadline that it had, in seconds.
        seconds: u64,
    },
    /// The host could not start or read it.
    #[error("cannot run `{command}`: {source}")]
    Io {
        /// The program's name.
        command: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Ended {
    /// Returns the last line of its standard error, or else how it ended.
    #[must_use]
    pub fn reason(&self) -> String {
        let mut lines = self.stderr.lines().rev();
        match (lines.find(|line| !line.trim().is_empty()), self.code) {
            (Some(line), _) => line.trim().to_owned(),
            (None, Some(code)) => format!("exit status {code}"),
            (None, None) => "ended by a signal".to_owned(),
        }
    }

    /// Returns its output; bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

impl Program {
    /// Returns a program with a deadline of 15 minutes and an output limit of a gigabyte.
    #[must_use]
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.as_ref().to_owned(),
            arguments: Vec::new(),
            folder: None,
            variables: Some(vec![("LC_ALL".into(), "C".into())]),
            deadline_s: 900,
            output_max: 1 << 30,
            log: None,
            walls: None,
            prefix: Vec::new(),
            processor: None,
            is_swept: false,
        }
        .inherit(&VARIABLES)
    }

    /// Adds arguments behind those it has.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        if let Some(variables) = &mut self.variables {
            variables.push((name.into(), value.as_ref().to_owned()));
        }
        self
    }

    /// Passes variables of Marvin's environment on, those that are set.
    #[must_use]
    pub fn inherit(mut self, names: &[&str]) -> Self {
        for name in names {
            if let Some(value) = std::env::var_os(name) {
                self = self.variable(name, value);
            }
        }
        self
    }

    /// Passes no variables on but PATH.
    #[must_use]
    pub fn without_variables(self) -> Self {
        Self {
            variables: Some(Vec::new()),
            ..self
        }
        .inherit(&VARIABLES[..1])
    }

    /// Passes Marvin's whole environment on: only for Marvin itself, and for a batch system that
    /// starts it elsewhere.
    #[must_use]
    pub fn inherit_all(mut self) -> Self {
        self.variables = None;
        self
    }

    /// Puts walls around it, unless [`no_walls()`] says why not.
    #[must_use]
    pub fn walls(self, walls: Walls) -> Self {
        if no_walls().is_some() {
            self
        } else {
            self.walled(walls)
        }
    }

    fn walled(self, walls: Walls) -> Self {
        Self {
            walls: Some(walls),
            ..self
        }
    }

    /// Has another program start it, outside its walls: words such as those of chrt(1).
    #[must_use]
    pub fn started_by(mut self, words: &[&str]) -> Self {
        self.prefix = words.iter().map(OsString::from).collect();
        self
    }

    /// Starts it on one processor, as far as the host allows.
    #[must_use]
    pub fn processor(mut self, processor: Option<usize>) -> Self {
        self.processor = processor;
        self
    }

    /// Sets the time after which it is killed, in seconds.
    #[must_use]
    pub fn deadline_s(mut self, seconds: u64) -> Self {
        self.deadline_s = seconds;
        self
    }

    /// Sets how much of its output is kept (bytes).
    #[must_use]
    pub fn output_max(mut self, bytes: u64) -> Self {
        self.output_max = bytes;
        self
    }

    /// Has what it leaves in the background end with it. Otherwise its output ends when the last
    /// process has closed it.
    #[must_use]
    pub fn sweep(mut self) -> Self {
        self.is_swept = true;
        self
    }

    /// Redirects its output and standard error to a file.
    #[must_use]
    pub fn log(mut self, file: &Path) -> Self {
        self.log = Some(file.to_owned());
        self
    }

    /// Returns it as a user would type it, without the prefix.
    #[must_use]
    pub fn command(&self) -> String {
        let command_line = std::iter::once(&self.name).chain(&self.arguments);
        command_line
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs it to its end, successful or not.
    ///
    /// # Errors
    /// If it is not there, overruns, or cannot be run.
    pub fn run(&self) -> Result<Ended, ProgramError> {
        let running = self.start_caught(Stdio::null())?;
        Ok(self.wait_with(running, || ())?.0)
    }

    /// Feeds it and runs it to its end; also returns how feeding went, as a program that ends early
    /// leaves a broken pipe.
    ///
    /// # Errors
    /// If it is not there, overruns, or cannot be run.
    pub fn fed<T>(
        &self,
        feed: impl FnOnce(&mut dyn Write) -> T,
    ) -> Result<(Ended, Option<T>), ProgramError> {
        let mut running = self.start_caught(Stdio::piped())?;
        let input = running.take_input();
        self.wait_with(running, || input.map(|mut input| feed(&mut input)))
    }

    /// Starts it and returns at once. It ends when the value is dropped, or when Marvin ends.
    ///
    /// # Errors
    /// If the host cannot start a process.
    pub fn start(&self, input: Stdio, output: Stdio, errors: Stdio) -> io::Result<Running> {
        let lifeline = Lifeline::new()?;
        let mut command = lifeline.command();
        command.args(&self.prefix);
        if let Some(walls) = &self.walls {
            command.args(walls.arguments(self.folder.as_deref()));
        }
        command
            .arg(&self.name)
            .args(&self.arguments)
            .stdin(input)
            .stdout(output)
            .stderr(errors);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some(variables) = &self.variables {
            command
                .env_clear()
                .envs(variables.iter().map(|(name, value)| (name, value)));
        }
        let start = Start {
            deadline_s: self.deadline_s,
            is_walled: self.walls.is_some(),
            processor: self.processor,
        };
        Running::spawn(command, lifeline, &start)
    }

    fn start_caught(&self, input: Stdio) -> Result<Running, ProgramError> {
        let start = || {
            let Some(file) = &self.log else {
                return self.start(input, Stdio::piped(), Stdio::piped());
            };
            let log = File::create(file)?;
            self.start(input, log.try_clone()?.into(), log.into())
        };
        start().map_err(|error| self.to_error(error))
    }

    /// Runs a closure while the program runs, and waits for its end.
    fn wait_with<T>(
        &self,
        mut running: Running,
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(Ended, T), ProgramError> {
        let output = running.take_output();
        let errors = running.take_errors();
        let (output, messages, done, swept) = thread::scope(|scope| {
            let output = scope.spawn(|| {
                output.map_or(Ok(Vec::new()), |output| {
                    read_limited(output, self.output_max)
                })
            });
            let messages = scope
                .spawn(|| errors.map_or(Ok(Vec::new()), |errors| read_limited(errors, SAID_MAX)));
            let done = meanwhile();
            // What it left keeps the pipes open.
            let swept = self.is_swept.then(|| running.wait_and_sweep());
            // A thread that panics is a bug of Marvin: pass the panic on.
            let joined =
                |end: thread::Result<_>| end.unwrap_or_else(|bug| std::panic::resume_unwind(bug));
            (joined(output.join()), joined(messages.join()), done, swept)
        });
        let (status, overran) = swept
            .unwrap_or_else(|| running.wait())
            .map_err(|error| self.to_error(error))?;
        let output = output.map_err(|e| self.to_error(e))?;
        let messages = messages.map_err(|e| self.to_error(e))?;
        match status.code().filter(|_| signal_of(status).is_none()) {
            Some(NOT_FOUND) if !overran => Err(self.why_missing()),
            None if overran => Err(ProgramError::Deadline {
                command: self.command(),
                seconds: self.deadline_s,
            }),
            code => Ok((
                Ended {
                    code,
                    output,
                    stderr: String::from_utf8_lossy(&messages).into_owned(),
                },
                done,
            )),
        }
    }

    /// Returns why the shell says that there is no such program. The kernel says so of a program
    /// whose dynamic linker is not there, too.
    fn why_missing(&self) -> ProgramError {
        let program = self.name.to_string_lossy().into_owned();
        if program.contains('/') && Path::new(&self.name).is_file() {
            ProgramError::NoLoader(program)
        } else {
            ProgramError::Missing(program)
        }
    }

    fn to_error(&self, source: io::Error) -> ProgramError {
        match source.kind() {
            // util-linux and busybox have it.
            io::ErrorKind::NotFound => ProgramError::Missing("setsid".to_owned()),
            _ => ProgramError::Io {
                command: self.command(),
                source,
            },
        }
    }
}

/// Reads to the end and keeps as much as the limit allows; the rest is dropped, so that the program
/// can end.
fn read_limited(mut from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.by_ref().take(most).read_to_end(&mut content)?;
    io::copy(&mut from, &mut io::sink())?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::{Program, ProgramError, VARIABLES};

    fn shell(script: &str) -> Program {
        Program::new("sh").args(["-c", script])
    }

    #[test]
    fn program_runs_in_its_directory_with_variables() {
        let program = shell("pwd; echo $GREETING; echo $HOME")
            .folder(Path::new("/"))
            .variable("GREETING", "hello");
        let home = std::env::var("HOME").unwrap_or_default();
        assert_eq!(program.run().unwrap().text(), format!("/\nhello\n{home}\n"));
    }

    #[test]
    fn swept_program_waits_for_nothing_in_background() {
        let begun = Instant::now();
        let ended = shell("echo begun; (sleep 47; echo late) & exit 3")
            .sweep()
            .run()
            .unwrap();
        assert_eq!((ended.code, ended.text().as_str()), (Some(3), "begun\n"));
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn program_gets_few_variables_of_the_environment() {
        let names = |program: Program| {
            let text = program.run().unwrap().text();
            text.lines()
                .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
                .collect::<Vec<_>>()
        };
        // Cargo sets this one for tests: it stands for a secret.
        let secret = "CARGO_MANIFEST_DIR";
        let few = names(Program::new("env"));
        assert!(
            few.iter()
                .all(|name| VARIABLES.contains(&&**name) || ["LC_ALL", "PWD"].contains(&&**name)),
            "{few:?}"
        );
        assert!(
            names(Program::new("env").inherit(&[secret, "MARVIN_NONESUCH"]))
                .contains(&secret.to_owned())
        );
        assert!(names(Program::new("env").inherit_all()).contains(&secret.to_owned()));
    }

    #[test]
    fn program_that_ignores_signals_is_killed() {
        let begun = std::time::Instant::now();
        let error = shell("trap '' TERM; sleep 60; sleep 60")
            .deadline_s(1)
            .run()
            .unwrap_err();
        assert!(
            matches!(error, ProgramError::Deadline { seconds: 1, .. }),
            "{error}"
        );
        assert!(begun.elapsed().as_secs() < 30);
        assert_eq!(shell("kill -9 $$").run().unwrap().code, None);
    }

    #[test]
    fn exit_status_is_returned_with_output() {
        let ended = shell("echo why >&2; exit 3").run().unwrap();
        assert_eq!((ended.code, ended.reason().as_str()), (Some(3), "why"));
        assert_eq!(shell("exit 4").run().unwrap().reason(), "exit status 4");
    }

    #[test]
    fn program_past_its_deadline_is_killed() {
        let error = Program::new("sleep")
            .args(["60"])
            .deadline_s(1)
            .run()
            .unwrap_err();
        assert_eq!(error.to_string(), "`sleep 60` did not end within 1 s");
    }

    #[test]
    fn missing_program_is_named() {
        let error = Program::new("nonesuch").run().unwrap_err();
        assert!(
            matches!(&error, ProgramError::Missing(name) if name == "nonesuch"),
            "{error}"
        );
    }

    #[test]
    fn a_program_is_fed_while_it_prints() {
        // More than a pipe holds, in both directions.
        let much = vec![b'x'; 1 << 20];
        let (ended, fed) = Program::new("cat")
            .fed(|input| input.write_all(&much))
            .unwrap();
        assert!(ended.output == much && fed.unwrap().is_ok());
        let (ended, fed) = shell("exit 0").fed(|input| input.write_all(&much)).unwrap();
        assert!(
            ended.code == Some(0) && fed.unwrap().is_err(),
            "who does not read leaves a broken pipe"
        );
    }

    #[test]
    fn output_beyond_the_limit_is_dropped() {
        let program = Program {
            output_max: 10,
            ..shell("yes | head -c 1000000")
        };
        let ended = program.run().unwrap();
        assert_eq!((ended.code, ended.output.len()), (Some(0), 10));
    }

    #[test]
    fn a_log_takes_all_that_is_printed() {
        let file = std::env::temp_dir().join(format!("process-log-{}", std::process::id()));
        let ended = shell("echo one; echo two >&2").log(&file).run().unwrap();
        let log = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((ended.output.len(), log.as_str()), (0, "one\ntwo\n"));
    }
}

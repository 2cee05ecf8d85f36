//! External programs: they die with Marvin, have a deadline, and their output is limited.
//!
//! The callers interpret the exit status and choose the program's name in messages.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// The exit status of timeout(1) if it ended the program, and the one after its SIGKILL.
const TIMED_OUT: [i32; 2] = [124, 137];
/// The exit status of timeout(1) if there is no such program.
const NOT_FOUND: i32 = 127;
/// Seconds between a program's deadline and its SIGKILL.
const KILL_AFTER: &str = "--kill-after=10";
/// Limit of the kept standard error, in bytes: its beginning.
const SAID_MAX: u64 = 1 << 20;

/// Returns a command prefix whose program gets this signal when Marvin dies in any way. The caller appends the program
/// and its arguments.
#[must_use]
pub fn bound(signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "--"]);
    command
}

/// A program and how to run it.
#[derive(Debug, Clone)]
pub struct Program {
    name: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    variables: Vec<(OsString, Option<OsString>)>,
    deadline_s: u64,
    output_max: u64,
    log: Option<PathBuf>,
}

/// The end of a program that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its output, up to the limit.
    pub output: Vec<u8>,
    /// Its standard error.
    pub said: String,
}

/// A program that did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("there is no program `{0}`")]
    Missing(String),
    /// It exceeded its deadline.
    #[error("`{command}` did not end within {seconds} s")]
    Deadline {
        /// The command, as a user would type it.
        command: String,
        /// Its deadline.
        seconds: u64,
    },
    /// The host failed.
    #[error("cannot run `{command}`: {source}")]
    Io {
        /// The command.
        command: String,
        /// The system's message.
        source: io::Error,
    },
}

impl Ended {
    /// Returns the last line of its standard error, or else how it ended.
    #[must_use]
    pub fn reason(&self) -> String {
        let line = self.said.lines().rfind(|line| !line.trim().is_empty());
        let status = || self.code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit status {code}"));
        line.map_or_else(status, |line| line.trim().to_owned())
    }

    /// Returns its output.
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
            variables: Vec::new(),
            deadline_s: 900,
            output_max: 1 << 30,
            log: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
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
        self.variables.push((name.into(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes environment variables.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.variables.extend(names.iter().map(|name| (name.into(), None)));
        self
    }

    /// Sets its deadline.
    #[must_use]
    pub fn deadline_s(mut self, seconds: u64) -> Self {
        self.deadline_s = seconds;
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
        let words = std::iter::once(&self.name).chain(&self.arguments);
        words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    /// Runs it to its end, successful or not.
    ///
    /// # Errors
    /// If it is not there, overruns, or cannot be run.
    pub fn run(&self) -> Result<Ended, ProgramError> {
        let child = self.start(Stdio::null())?;
        Ok(self.wait_with(child, || ())?.0)
    }

    /// Feeds it and runs it to its end; also returns how feeding went, as a program that ends early leaves a broken
    /// pipe.
    ///
    /// # Errors
    /// If it is not there, overruns, or cannot be run.
    pub fn fed<T>(&self, feed: impl FnOnce(&mut dyn Write) -> T) -> Result<(Ended, Option<T>), ProgramError> {
        let mut child = self.start(Stdio::piped())?;
        let input = child.stdin.take();
        self.wait_with(child, || input.map(|mut input| feed(&mut input)))
    }

    fn start(&self, input: Stdio) -> Result<Child, ProgramError> {
        // timeout(1) forwards the signal to all processes that it started.
        let mut command = bound("TERM");
        command.args(["timeout", KILL_AFTER, &self.deadline_s.to_string()]).arg(&self.name).args(&self.arguments);
        command.env("LC_ALL", "C").stdin(input);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        match &self.log {
            Some(file) => {
                let log = File::create(file).map_err(|error| self.to_error(error))?;
                command.stdout(log.try_clone().map_err(|error| self.to_error(error))?).stderr(log);
            }
            None => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
        }
        command.spawn().map_err(|error| self.to_error(error))
    }

    /// Runs a closure while the program runs, and waits for its end.
    fn wait_with<T>(&self, mut child: Child, meanwhile: impl FnOnce() -> T) -> Result<(Ended, T), ProgramError> {
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (output, said, done) = thread::scope(|scope| {
            let output = scope.spawn(|| output.map_or(Ok(Vec::new()), |output| read_limited(output, self.output_max)));
            let said = scope.spawn(|| errors.map_or(Ok(Vec::new()), |errors| read_limited(errors, SAID_MAX)));
            let done = meanwhile();
            // A thread that panics is a bug of Marvin: pass the panic on.
            let joined = |end: thread::Result<_>| end.unwrap_or_else(|bug| std::panic::resume_unwind(bug));
            (joined(output.join()), joined(said.join()), done)
        });
        let status = child.wait().map_err(|error| self.to_error(error))?;
        let (output, said) = (output.map_err(|e| self.to_error(e))?, said.map_err(|e| self.to_error(e))?);
        match status.code() {
            Some(NOT_FOUND) => Err(ProgramError::Missing(self.name.to_string_lossy().into_owned())),
            Some(code) if TIMED_OUT.contains(&code) => {
                Err(ProgramError::Deadline { command: self.command(), seconds: self.deadline_s })
            }
            code => Ok((Ended { code, output, said: String::from_utf8_lossy(&said).into_owned() }, done)),
        }
    }

    fn to_error(&self, source: io::Error) -> ProgramError {
        match source.kind() {
            // setpriv comes with every distribution that has a kernel.
            io::ErrorKind::NotFound => ProgramError::Missing("setpriv".to_owned()),
            _ => ProgramError::Io { command: self.command(), source },
        }
    }
}

/// Reads to the end and keeps as much as the limit allows; the rest is dropped, so that the program can end.
fn read_limited(mut from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    from.by_ref().take(most).read_to_end(&mut kept)?;
    io::copy(&mut from, &mut io::sink())?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Program, ProgramError};

    fn shell(script: &str) -> Program {
        Program::new("sh").args(["-c", script])
    }

    #[test]
    fn program_runs_in_its_directory_with_variables() {
        let program = shell("pwd; echo $GREETING; echo $HOME").folder(Path::new("/")).variable("GREETING", "hello");
        assert_eq!(program.without(&["HOME"]).run().unwrap().text(), "/\nhello\n\n");
    }

    #[test]
    fn exit_status_is_returned_with_output() {
        let ended = shell("echo why >&2; exit 3").run().unwrap();
        assert_eq!((ended.code, ended.reason().as_str()), (Some(3), "why"));
        assert_eq!(shell("exit 4").run().unwrap().reason(), "exit status 4");
    }

    #[test]
    fn program_past_its_deadline_is_killed() {
        let error = Program::new("sleep").args(["60"]).deadline_s(1).run().unwrap_err();
        assert_eq!(error.to_string(), "`sleep 60` did not end within 1 s");
    }

    #[test]
    fn missing_program_is_named() {
        let error = Program::new("nonesuch").run().unwrap_err();
        assert!(matches!(&error, ProgramError::Missing(name) if name == "nonesuch"), "{error}");
    }

    #[test]
    fn a_program_is_fed_while_it_prints() {
        // More than a pipe holds, in both directions.
        let much = vec![b'x'; 1 << 20];
        let (ended, fed) = Program::new("cat").fed(|input| input.write_all(&much)).unwrap();
        assert!(ended.output == much && fed.unwrap().is_ok());
        let (ended, fed) = shell("exit 0").fed(|input| input.write_all(&much)).unwrap();
        assert!(ended.code == Some(0) && fed.unwrap().is_err(), "who does not read leaves a broken pipe");
    }

    #[test]
    fn output_beyond_the_limit_is_dropped() {
        let program = Program { output_max: 10, ..shell("yes | head -c 1000000") };
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

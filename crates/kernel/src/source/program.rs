//! Programs that are run for a source: with a deadline, nothing of the caller's settings for git, and their output caught.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::SourceError;
use crate::KernelError;

/// The status by which timeout(1) says that it ended the program, and the one after its SIGKILL.
const TIMED_OUT: [i32; 2] = [124, 137];
/// The status by which it says that there is no such program.
const NOT_FOUND: i32 = 127;

/// A program and how it is run.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    arguments: Vec<OsString>,
    folder: PathBuf,
    variables: Vec<(&'static str, OsString)>,
    deadline_s: u64,
    log: Option<PathBuf>,
}

/// How a program ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: Vec<u8>,
    pub(crate) said: String,
}

impl Ended {
    /// Returns the last line that it said.
    pub(crate) fn reason(&self) -> String {
        let line = self.said.lines().rfind(|line| !line.trim().is_empty());
        line.map_or_else(|| format!("exit status {}", self.code.unwrap_or(-1)), |line| line.trim().to_owned())
    }

    /// Returns what it printed.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

impl Program {
    pub(crate) fn new(name: &'static str, folder: &Path) -> Self {
        let (arguments, variables) = (Vec::new(), Vec::new());
        Self { name, arguments, folder: folder.to_owned(), variables, deadline_s: 900, log: None }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    pub(crate) fn deadline_s(mut self, seconds: u64) -> Self {
        self.deadline_s = seconds;
        self
    }

    /// Has all that it prints written to a file rather than caught.
    pub(crate) fn log(mut self, file: &Path) -> Self {
        self.log = Some(file.to_owned());
        self
    }

    /// Returns it as a user would type it, without our paths and settings in front.
    pub(crate) fn command(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        std::iter::once(self.name.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }

    fn start(&self, input: Stdio) -> Result<Child, KernelError> {
        // It does not outlive a Marvin that is killed: timeout(1) hands the signal on to all it started.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "timeout", "--kill-after=10", &self.deadline_s.to_string(), self.name]);
        command.args(&self.arguments).current_dir(&self.folder).env("LC_ALL", "C").stdin(input);
        for name in
            ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "MAKEFLAGS"]
        {
            command.env_remove(name);
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        match &self.log {
            Some(file) => {
                let log = std::fs::File::create(file).map_err(KernelError::at(file))?;
                let copy = log.try_clone().map_err(KernelError::at(file))?;
                command.stdout(log).stderr(copy);
            }
            None => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
        }
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.missing(),
            _ => KernelError::at(Path::new(self.name))(error),
        })
    }

    fn missing(&self) -> KernelError {
        let package = if self.name == "nice" { "coreutils" } else { self.name };
        SourceError::NoProgram { program: self.name.to_owned(), package: package.to_owned() }.into()
    }

    /// Runs it to its end, whatever that is.
    pub(crate) fn end(self) -> Result<Ended, KernelError> {
        let child = self.start(Stdio::null())?;
        self.ended(child)
    }

    /// Feeds it, and runs it to its end. What it prints must be little.
    pub(crate) fn fed(
        self,
        feed: impl FnOnce(&mut dyn Write) -> Result<(), KernelError>,
    ) -> Result<Ended, KernelError> {
        let mut child = self.start(Stdio::piped())?;
        let fed = child.stdin.take().map_or(Ok(()), |mut input| feed(&mut input));
        let ended = self.ended(child)?;
        match fed {
            Err(KernelError::Source(error)) => Err(error.into()),
            // Where it ended early, its own words say more than a broken pipe.
            Err(error) if ended.code == Some(0) => Err(error),
            _ => Ok(ended),
        }
    }

    fn ended(&self, child: Child) -> Result<Ended, KernelError> {
        let output = child.wait_with_output().map_err(KernelError::at(Path::new(self.name)))?;
        match output.status.code() {
            Some(NOT_FOUND) => Err(self.missing()),
            Some(code) if TIMED_OUT.contains(&code) => {
                Err(SourceError::Deadline { command: self.command(), seconds: self.deadline_s }.into())
            }
            code => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                if said.contains("No space left on device") {
                    return Err(KernelError::NoSpace { folder: self.folder.clone() });
                }
                Ok(Ended { code, output: output.stdout, said })
            }
        }
    }

    /// Runs it to its end, which must be a good one, and returns what it printed.
    pub(crate) fn run(self) -> Result<String, KernelError> {
        let command = self.command();
        let ended = self.end()?;
        match ended.code {
            Some(0) => Ok(ended.text()),
            _ => Err(SourceError::Program { command, said: ended.reason() }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Program;
    use crate::KernelError;
    use crate::source::SourceError;

    #[test]
    fn a_program_is_run_fed_cut_off_or_missing() {
        let root = Path::new("/");
        assert_eq!(Program::new("sh", root).args(["-c", "pwd"]).run().unwrap(), "/\n");
        let fed = Program::new("cat", root).fed(|input| input.write_all(b"x").map_err(KernelError::at(root))).unwrap();
        assert_eq!(fed.text(), "x");
        let error = Program::new("sh", root).args(["-c", "echo why >&2; exit 3"]).run().unwrap_err();
        insta::assert_snapshot!(error, @"`sh -c echo why >&2; exit 3` failed: why");
        let error = Program::new("nonesuch", root).run().unwrap_err();
        assert!(matches!(error, KernelError::Source(SourceError::NoProgram { .. })), "{error}");
        let error = Program::new("sleep", root).args(["60"]).deadline_s(1).run().unwrap_err();
        insta::assert_snapshot!(error, @"`sleep 60` did not end within 1 s: the host is too busy, or the limit too low");
    }
}

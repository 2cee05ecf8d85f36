//! Runs programs for a source, isolated from the caller's git settings, and converts their failures
//! to source errors.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) use subprocess::Ended;
use subprocess::{ProgramError, Walls};

use super::SourceError;
use crate::KernelError;

/// A program and how to run it.
#[derive(Debug)]
pub(crate) struct Program {
    program: subprocess::Program,
    folder: PathBuf,
}

impl Program {
    pub(crate) fn new(name: impl AsRef<OsStr>, folder: &Path) -> Self {
        Self {
            program: subprocess::Program::new(name).folder(folder),
            folder: folder.to_owned(),
        }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: self.program.args(arguments),
            ..self
        }
    }

    pub(crate) fn variable(self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        Self {
            program: self.program.variable(name, value),
            ..self
        }
    }

    /// Passes variables of Marvin's environment on.
    pub(crate) fn inherit(self, names: &[&str]) -> Self {
        Self {
            program: self.program.inherit(names),
            ..self
        }
    }

    /// Puts walls around it, if this host has them.
    pub(crate) fn walls(self, walls: Walls) -> Self {
        Self {
            program: self.program.walls(walls),
            ..self
        }
    }

    pub(crate) fn deadline_s(self, seconds: u64) -> Self {
        Self {
            program: self.program.deadline_s(seconds),
            ..self
        }
    }

    /// Sets how much of its output is kept (bytes).
    pub(crate) fn output_max(self, bytes: u64) -> Self {
        Self {
            program: self.program.output_max(bytes),
            ..self
        }
    }

    /// Redirects all output to a file.
    pub(crate) fn log(self, file: &Path) -> Self {
        Self {
            program: self.program.log(file),
            ..self
        }
    }

    /// Returns it as a user would type it, without Marvin's paths and settings.
    pub(crate) fn command(&self) -> String {
        self.program.command()
    }

    /// Runs it to its end, successful or not.
    pub(crate) fn end(self) -> Result<Ended, KernelError> {
        let ended = self.program.run().map_err(to_source_error)?;
        self.check_end(ended)
    }

    /// Feeds it, and runs it to its end.
    pub(crate) fn fed(
        self,
        feed: impl FnOnce(&mut dyn Write) -> Result<(), KernelError>,
    ) -> Result<Ended, KernelError> {
        let (ended, fed) = self.program.fed(feed).map_err(to_source_error)?;
        let ended = self.check_end(ended)?;
        match fed {
            Some(Err(KernelError::Source(error))) => Err(error.into()),
            // If it ended early, its own message says more than a broken pipe.
            Some(Err(error)) if ended.code == Some(0) => Err(error),
            _ => Ok(ended),
        }
    }

    fn check_end(&self, ended: Ended) -> Result<Ended, KernelError> {
        if ended.stderr.contains("No space left on device") {
            return Err(KernelError::NoSpace {
                folder: self.folder.clone(),
            });
        }
        Ok(ended)
    }

    /// Runs it to its end, which must be successful, and returns its output.
    pub(crate) fn run(self) -> Result<String, KernelError> {
        let command = self.command();
        let ended = self.end()?;
        match ended.code {
            Some(0) => Ok(ended.text()),
            _ => Err(SourceError::Program {
                command,
                detail: ended.reason(),
            }
            .into()),
        }
    }
}

fn to_source_error(error: ProgramError) -> KernelError {
    match error {
        ProgramError::Missing(program) | ProgramError::NoLoader(program) => {
            let package = if program == "nice" {
                "coreutils".to_owned()
            } else {
                program.clone()
            };
            SourceError::NoProgram { program, package }.into()
        }
        ProgramError::Deadline { command, seconds } => {
            SourceError::Deadline { command, seconds }.into()
        }
        ProgramError::Io { command, source } => KernelError::Io {
            path: command.into(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Program;
    use crate::KernelError;
    use crate::source::SourceError;

    #[test]
    fn program_run_covers_input_deadline_and_absence() {
        let root = Path::new("/");
        assert_eq!(
            Program::new("sh", root).args(["-c", "pwd"]).run().unwrap(),
            "/\n"
        );
        let fed = Program::new("cat", root)
            .fed(|input| input.write_all(b"x").map_err(KernelError::io(root)))
            .unwrap();
        assert_eq!(fed.text(), "x");
        let error = Program::new("sh", root)
            .args(["-c", "echo why >&2; exit 3"])
            .run()
            .unwrap_err();
        insta::assert_snapshot!(error, @"`sh -c echo why >&2; exit 3` failed: why");
        let error = Program::new("nonesuch", root).run().unwrap_err();
        assert!(
            matches!(error, KernelError::Source(SourceError::NoProgram { .. })),
            "{error}"
        );
        let error = Program::new("sleep", root)
            .args(["60"])
            .deadline_s(1)
            .run()
            .unwrap_err();
        insta::assert_snapshot!(error, @"`sleep 60` did not end within 1 s: the host is too busy, or the limit too low");
    }
}

//! Executes command lines in a directory and collects messages, answer and exit code.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use marvin_dump::{Arguments, Host, Screen, run};

/// The result of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandResult {
    line: String,
    pub(crate) code: u8,
    pub(crate) answer: Vec<u8>,
    /// Standard error; the directory's path is replaced by FOLDER.
    pub(crate) messages: String,
}

impl CommandResult {
    /// Executes a command line; words with `@` name files of the directory. Its clock stands still.
    pub(crate) fn of(folder: &Path, line: &str, input: &[u8]) -> Result<Self, clap::Error> {
        let place = |word: &str| {
            word.strip_prefix('@').map_or_else(
                || word.to_owned(),
                |name| folder.join(name).display().to_string(),
            )
        };
        let words = std::iter::once("marvin-dump".to_owned()).chain(line.split(' ').map(place));
        let arguments = Arguments::try_parse_from(words)?;
        let mut answer = Vec::new();
        let mut messages = Vec::new();
        let mut input = Cursor::new(input);
        let clock = || Duration::from_secs(7);
        let mut host = Host {
            input: &mut input,
            answers: &mut answer,
            messages: &mut messages,
            clock: &clock,
        };
        let code = run(&arguments, Screen::Plain, &mut host).code();
        let messages =
            String::from_utf8_lossy(&messages).replace(&folder.display().to_string(), "FOLDER");
        Ok(Self {
            line: line.to_owned(),
            code,
            answer,
            messages,
        })
    }

    /// Returns the command, its messages, and the exit code.
    pub(crate) fn transcript(&self) -> String {
        format!(
            "$ marvin-dump {}\n{}exit code {}\n",
            self.line, self.messages, self.code
        )
    }

    /// Returns the same with the answer, which must be text, before the messages.
    pub(crate) fn all(&self) -> String {
        let answer = String::from_utf8_lossy(&self.answer);
        format!(
            "$ marvin-dump {}\n{answer}{}exit code {}\n",
            self.line, self.messages, self.code
        )
    }
}

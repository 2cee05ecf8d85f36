//! Executes command lines in a directory and collects messages, answer and exit code.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use marvin_dump::{Arguments, Host, Screen};

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
    pub(crate) fn run(folder: &Path, line: &str, input: &[u8]) -> Result<Self, clap::Error> {
        let mut words = vec!["marvin-dump".to_owned()];
        words.extend(line.split(' ').map(|word| match word.strip_prefix('@') {
            Some(name) => folder.join(name).display().to_string(),
            None => word.to_owned(),
        }));
        let arguments = Arguments::try_parse_from(words)?;
        let mut answer = Vec::new();
        let mut messages = Vec::new();
        let mut input = Cursor::new(input);
        let mut host = Host {
            input: &mut input,
            answers: &mut answer,
            messages: &mut messages,
            clock: &|| Duration::from_secs(7),
        };
        let code = marvin_dump::run(&arguments, Screen::Plain, &mut host).code();
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

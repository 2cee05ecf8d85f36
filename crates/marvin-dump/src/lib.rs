//! The commands of `marvin-dump`: what can be asked, and what is done and said then. Another program can carry them out
//! too; it gives the streams and the clock, and gets the exit code. What is done with dumps is the library `vmcore`.

#![expect(unsafe_code, reason = "signals, and what the process used; each use says why it is sound")]

mod arguments;
mod experiment;
mod files;
mod guard;
mod info;
mod plot;
mod report;
mod save;
mod size;
mod usage;
mod watch;

use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use serde::Serialize;

pub use arguments::{Arguments, Command};
pub use watch::Screen;

use vmcore::{DumpError, Guilt};

/// What the exit code says. The codes are those of `marvin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine,
    /// What was written is not what was read (`--verify`).
    Differs,
    /// Wrong usage, or a file that is no dump or not as it should be.
    Usage,
    /// A dump was written, but it is not complete; it says so itself.
    Incomplete,
    /// The host failed: disk, permissions.
    Host,
}

/// All exit codes with their meaning, for the help.
pub const EXIT_CODES: &str = "Exit codes:
  0   success
  1   the written dump differs from the input (--verify)
  2   wrong usage, or not a dump
  3   the written dump is usable but incomplete
  5   the host failed (disk, permissions): try again later
  70  a bug in marvin-dump";

impl Exit {
    /// Returns the number for the system.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Differs => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Host => 5,
        }
    }
}

/// What the calling program lends to a command.
pub struct Host<'h> {
    /// Where a stream comes from.
    pub input: &'h mut (dyn Read + Send),
    /// Takes answers.
    pub answers: &'h mut (dyn Write + Send),
    /// Takes reports, progress and errors.
    pub messages: &'h mut (dyn Write + Send),
    /// Tells the time since some moment.
    pub clock: &'h dyn Fn() -> Duration,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host<'_> {
    /// Says something to whoever reads messages; if nobody does, the exit code still tells.
    fn say(&mut self, text: &str) {
        drop(writeln!(self.messages, "{text}"));
    }

    /// Gives an answer: the document if `json`, else the text.
    fn answer_as(&mut self, json: bool, document: &impl Serialize, text: &str) -> Result<(), DumpError> {
        if !json {
            return self.answer(text);
        }
        // Documents are numbers, strings and lists of them: that cannot fail.
        self.answer(&serde_json::to_string_pretty(document).map(|text| text + "\n").unwrap_or_default())
    }

    /// Gives an answer.
    fn answer(&mut self, text: &str) -> Result<(), DumpError> {
        let written = self.answers.write_all(text.as_bytes()).and_then(|()| self.answers.flush());
        written.map_err(DumpError::writing(std::path::Path::new("standard output"), 0))
    }
}

/// Carries out a command with this process's streams and clock, and its signals.
#[must_use]
pub fn run_here(arguments: &Arguments) -> Exit {
    guard::tell_of_bus_errors();
    let start = Instant::now();
    let (mut input, mut answers, mut messages) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let screen = if messages.is_terminal() { Screen::Terminal } else { Screen::Plain };
    let clock = || start.elapsed();
    let mut host = Host { input: &mut input, answers: &mut answers, messages: &mut messages, clock: &clock };
    run(arguments, screen, &mut host)
}

/// Carries out a command; `screen` is where messages go.
#[must_use]
pub fn run(arguments: &Arguments, screen: Screen, host: &mut Host<'_>) -> Exit {
    let done = match &arguments.command {
        None => save::run(&arguments.save, screen, host),
        Some(Command::Usage(wish)) => usage::run(wish, screen, host),
        Some(Command::Info(wish)) => info::run(wish, host),
        Some(Command::Dmesg(wish)) => info::dmesg(wish, host),
        Some(Command::Estimate(wish)) => size::run(wish, host),
        Some(Command::Experiment(wish)) => experiment::run(wish, host),
    };
    match done {
        Ok(exit) => exit,
        Err(error) => {
            host.say(&format!("error: {error}"));
            match error.guilt() {
                Guilt::User => Exit::Usage,
                Guilt::Infra => Exit::Host,
            }
        }
    }
}

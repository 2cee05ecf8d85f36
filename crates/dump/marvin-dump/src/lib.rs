//! The commands of `marvin-dump`: their arguments, actions and messages. Other programs can execute
//! them too: they provide the streams and the clock, and get the exit code. The library `vmcore`
//! handles the dumps.

#![expect(
    unsafe_code,
    reason = "signals and malloc; each use says why it is sound"
)]

mod arguments;
mod check;
mod files;
mod guard;
mod info;
mod limits;
mod progress_printer;
mod report;
mod save;
mod size;
mod usage;

use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use model::{escape_json, sanitize_text};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

pub use arguments::{Arguments, Command};
pub use guard::Allocator;
pub use progress_printer::Screen;

use vmcore::{DumpError, Fault};

/// The exit code. The codes are those of `marvin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Fine,
    /// The written dump differs from the one read (`--verify`), or a page cannot be read (`check`).
    Differs,
    /// Wrong usage, or a file that is no dump or is damaged.
    Usage,
    /// The written dump is incomplete, and marked as such.
    Incomplete,
    /// The host failed: disk, permissions.
    Host,
}

/// All exit codes with their meaning, for the help.
pub const EXIT_CODES: &str = "Exit codes:
  0   success
  1   the written dump differs from the input (--verify), or pages are damaged (check)
  2   wrong usage, or not a dump
  3   the written dump is incomplete, and says so
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

/// What the calling program provides.
pub struct Host<'h> {
    /// The source of a stream.
    pub input: &'h mut (dyn Read + Send),
    pub answers: &'h mut (dyn Write + Send),
    /// Takes reports, progress and errors.
    pub messages: &'h mut (dyn Write + Send),
    /// Returns the time since some moment.
    pub clock: &'h dyn Fn() -> Duration,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host<'_> {
    /// Prints a message; ignores a closed stream, as the exit code remains.
    fn say(&mut self, text: &str) {
        drop(writeln!(self.messages, "{}", sanitize_text(text)));
    }

    /// Prints an answer: the document if `json`, else the text.
    fn answer_as(
        &mut self,
        json: bool,
        document: &impl Serialize,
        text: &str,
    ) -> Result<(), DumpError> {
        if !json {
            return self.answer(text);
        }
        // Documents consist of numbers, strings and lists of them: serialising cannot fail.
        let text = serde_json::to_string_pretty(document)
            .map(|text| text + "\n")
            .unwrap_or_default();
        self.answer(&escape_json(&text))
    }

    fn answer(&mut self, text: &str) -> Result<(), DumpError> {
        let written = self
            .answers
            .write_all(sanitize_text(text).as_bytes())
            .and_then(|()| self.answers.flush());
        written.map_err(DumpError::writing(
            std::path::Path::new("standard output"),
            0,
        ))
    }
}

/// Returns the JSON schemas of the documents, by name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("dump", schema_of::<report::Report>("marvin-dump")),
        (
            "dump-estimate",
            schema_of::<size::Answer>("marvin-dump estimate"),
        ),
        (
            "dump-check",
            schema_of::<check::Checked>("marvin-dump check"),
        ),
        ("dump-info", schema_of::<info::Answer>("marvin-dump info")),
        (
            "dump-usage",
            schema_of::<usage::Answer>("marvin-dump usage"),
        ),
    ]
}

fn schema_of<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// Executes a command with this process's streams, clock and signals.
#[must_use]
pub fn run_here(arguments: &Arguments) -> Exit {
    guard::tell_of_bus_errors();
    guard::tell_of_aborts();
    if limits::room().is_some() {
        guard::share_one_arena();
        guard::reserve_stack();
    }
    let start = Instant::now();
    let mut input = std::io::stdin();
    let mut answers = std::io::stdout();
    let mut messages = std::io::stderr();
    let screen = if messages.is_terminal() {
        Screen::Terminal
    } else {
        Screen::Plain
    };
    let mut host = Host {
        input: &mut input,
        answers: &mut answers,
        messages: &mut messages,
        clock: &|| start.elapsed(),
    };
    run(arguments, screen, &mut host)
}

/// Executes a command; `screen` is the destination of progress.
#[must_use]
pub fn run(arguments: &Arguments, screen: Screen, host: &mut Host<'_>) -> Exit {
    let result = match &arguments.command {
        None => save::run(&arguments.save, screen, host),
        Some(Command::Usage(wish)) => usage::run(wish, screen, host),
        Some(Command::Info(wish)) => info::run(wish, host),
        Some(Command::Dmesg(wish)) => info::dmesg(wish, host),
        Some(Command::Check(wish)) => check::run(wish, host),
        Some(Command::Estimate(wish)) => size::run(wish, host),
    };
    match result {
        Ok(exit) => exit,
        Err(error) => {
            host.say(&format!("error: {error}"));
            match error.fault() {
                Fault::User => Exit::Usage,
                Fault::Lab => Exit::Host,
            }
        }
    }
}

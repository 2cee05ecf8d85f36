//! The destination of an answer: standard output, or a file that is written whole or not at all.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use document::Styles;
use model::sanitize_except;

use super::home::share_file;
use crate::exit::WrongInput;
use crate::views::Listing;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Output format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Table as in MMTests, for terminals and mails
    Text,
    /// The same in markdown, for issue trackers
    Markdown,
    /// One self-contained page
    Html,
    /// All data with units, for programs
    Json,
}

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For terminals and mails
    Text,
    /// All data, for programs
    Json,
}

/// Output options of a list.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
}

/// The destination of an answer. Marvin checks it before it measures, so that a bad path fails
/// early.
#[derive(Debug)]
pub(crate) struct Answer {
    target: Target,
    colour: Colour,
    /// Whether the text has Marvin's colours, which pass.
    is_coloured: Cell<bool>,
}

#[derive(Debug)]
enum Target {
    Output,
    /// A regular file; written under a temporary name beside it first.
    File(PathBuf),
    /// Another kind of file, such as a device or a pipe; written directly.
    Special(PathBuf),
}

impl Answer {
    /// Prepares standard output, or the file of `--output`.
    pub(super) fn open(path: Option<&Path>, colour: Colour) -> anyhow::Result<Self> {
        match path {
            Some(path) => Ok(Self {
                colour,
                ..Self::file("--output", path)?
            }),
            None => Ok(Self::to(Target::Output, colour)),
        }
    }

    fn to(target: Target, colour: Colour) -> Self {
        Self {
            target,
            colour,
            is_coloured: Cell::new(false),
        }
    }

    /// Checks the file of an option.
    pub(crate) fn file(option: &str, path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() || path.file_name().is_none() {
            let path = path.display();
            return Err(WrongInput(format!("{option} {path}: not the name of a file")).into());
        }
        let named = path;
        // Replace the target of a symbolic link, not the link.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            return Ok(Self::to(Target::Special(path), Colour::Never));
        }
        let part = beside(&path);
        File::create(&part)
            .and_then(|_| std::fs::remove_file(&part))
            .map_err(|error| {
                let named = named.display();
                WrongInput(format!("{option} {named}: cannot write it: {error}"))
            })?;
        Ok(Self::to(Target::File(path), Colour::Never))
    }

    /// Prepares the file of an option, if it is given.
    pub(crate) fn optional_file(option: &str, path: Option<&Path>) -> anyhow::Result<Option<Self>> {
        path.map(|path| Self::file(option, path)).transpose()
    }

    /// Returns the colours for text with this destination.
    pub(crate) fn styles(&self) -> Styles {
        let terminal = matches!(self.target, Target::Output) && io::stdout().is_terminal();
        let asked_not = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_coloured = match self.colour {
            Colour::Always => true,
            Colour::Auto => terminal && !asked_not,
            Colour::Never => false,
        };
        self.is_coloured.set(is_coloured);
        if is_coloured {
            Styles::ansi()
        } else {
            Styles::plain()
        }
    }

    /// Writes a list in the format of the command.
    pub(crate) fn list(self, list: &impl Listing, output: Output) -> anyhow::Result<()> {
        let text = match output.format {
            ListFormat::Text => list.text(&self.styles()),
            ListFormat::Json => list.json()?,
        };
        self.write(text)
    }

    /// Writes text. Names from outside cannot control a terminal, wherever the text comes from.
    pub(crate) fn write(self, text: impl AsRef<str>) -> anyhow::Result<()> {
        let colours = if self.is_coloured.get() {
            Styles::ansi().sequences()
        } else {
            Styles::plain().sequences()
        };
        let safe = sanitize_except(text.as_ref(), &colours);
        self.write_bytes(safe.as_bytes())
    }

    /// Writes bytes as they are: a format that is not text, or an artifact that the user wants as
    /// it is.
    pub(crate) fn write_bytes(self, bytes: &[u8]) -> anyhow::Result<()> {
        match self.target {
            Target::Output => match io::stdout()
                .write_all(bytes)
                .and_then(|()| io::stdout().flush())
            {
                // A reader that closes early, such as head, is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                result => result.context("cannot write to standard output"),
            },
            Target::Special(path) => File::options()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(bytes))
                .with_context(|| format!("cannot write to {}", path.display())),
            Target::File(path) => {
                let part = beside(&path);
                let written = std::fs::write(&part, bytes)
                    .and_then(|()| share_file(&part))
                    .and_then(|()| std::fs::rename(&part, &path));
                if written.is_err() {
                    // Remove the half-written file, if it exists.
                    drop(std::fs::remove_file(&part));
                }
                written.with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

/// Returns a temporary name beside a file, unique to this process.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

//! Where an answer goes: standard output, or a file that is there whole or not at all.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use report::render::Styles;

use crate::cli::Colour;
use crate::exit::WrongInput;

/// Where an answer will go. Opened before anything is measured, so that a bad path fails early.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Standard output.
    Output,
    /// A file, written beside its final place first.
    File { file: File, part: PathBuf, path: PathBuf },
}

impl Answer {
    /// Prepares standard output, or a file.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Output) };
        let name = path.file_name().filter(|_| !path.is_dir());
        let name = name.ok_or_else(|| WrongInput(format!("--output {}: not the name of a file", path.display())))?;
        let mut part = name.to_owned();
        part.push(".part");
        let part = path.with_file_name(part);
        let file = File::create(&part)
            .map_err(|error| WrongInput(format!("--output {}: cannot be written: {error}", path.display())))?;
        Ok(Self::File { file, part, path: path.to_owned() })
    }

    /// Returns the colours for text that goes there.
    pub(crate) fn styles(&self, colour: Colour) -> Styles {
        let terminal = matches!(self, Self::Output) && io::stdout().is_terminal();
        let asked_not = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match colour {
            Colour::Always => Styles::ansi(),
            Colour::Auto if terminal && !asked_not => Styles::ansi(),
            Colour::Auto | Colour::Never => Styles::plain(),
        }
    }

    /// Writes the answer.
    pub(crate) fn write(mut self, text: &str) -> anyhow::Result<()> {
        match &mut self {
            Self::Output => match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
                // A reader that has seen enough, such as head, is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                result => result.context("cannot write to standard output"),
            },
            Self::File { file, part, path } => file
                .write_all(text.as_bytes())
                .and_then(|()| std::fs::rename(&*part, &*path))
                .with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Self::File { part, .. } = self {
            // Gone already if the answer was written; nothing half-written stays.
            drop(std::fs::remove_file(part));
        }
    }
}

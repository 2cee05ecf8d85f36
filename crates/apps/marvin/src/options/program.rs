//! Options for a program of the user's own in the guest: `-- ./my-bench --args`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use lab::ProgramRequest;
use model::ToolMetric;

use super::{time, whole};
use crate::exit::WrongInput;

const HEADING: &str = "Your own program";

/// Options for a program of the user's own.
#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// Measure this program of yours, with its libraries, instead of workloads
    #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = ["workload", "suite"], help_heading = HEADING)]
    pub(crate) program: Vec<OsString>,

    /// Bring this file or directory, to the same place in the guest or to PLACE
    #[arg(long, value_name = "PATH[=PLACE]", requires = "program", help_heading = HEADING)]
    pub(crate) with: Vec<PathBuf>,

    /// Set an environment variable; of this host's the program gets none
    #[arg(long, value_name = "NAME=VALUE", requires = "program", value_parser = variable, help_heading = HEADING)]
    pub(crate) env: Vec<Variable>,

    /// Give it this file as standard input [default: empty input]
    #[arg(long, value_name = "FILE", requires = "program", help_heading = HEADING)]
    pub(crate) stdin: Option<PathBuf>,

    /// Run this by sh -c before the first run
    #[arg(long, value_name = "COMMAND", requires = "program", help_heading = HEADING)]
    pub(crate) setup: Option<String>,

    /// Also report a number that it prints: a regular expression whose (group) is the number, or
    /// json:PATH; higher: or lower: in front says what is better, first:, last: or sum: which of
    /// several
    #[arg(long, value_name = "PATTERN", requires = "program", value_parser = values, help_heading = HEADING)]
    pub(crate) value: Vec<Values>,

    /// Accept this exit status beside 0
    #[arg(long, value_name = "N", requires = "program", help_heading = HEADING)]
    pub(crate) accept_status: Vec<u8>,

    /// Run it N times in each boot; the first time is not reported
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u32>(2, 1000), help_heading = HEADING)]
    pub(crate) repeat: u32,

    /// End it after this time of the guest, all runs together
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, help_heading = HEADING)]
    pub(crate) time_limit: Duration,

    /// Memory of the guest in MiB [default: 512, or what its files need]
    #[arg(long, value_name = "MIB", requires = "program", value_parser = whole::<u32>(128, 65536), help_heading = HEADING)]
    pub(crate) guest_memory: Option<u32>,

    /// Measure what the program marks, not whole runs: marvin-mark begin and marvin-mark end in a
    /// script, or docs/marvin-mark.h
    #[arg(long, requires = "program", help_heading = HEADING)]
    pub(crate) marks: bool,
}

/// An environment variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    name: String,
    value: String,
}

impl Variable {
    /// Returns its name and its value.
    pub(crate) fn pair(&self) -> (String, String) {
        (self.name.clone(), self.value.clone())
    }
}

/// The metrics of one `--value`, and how it was written.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    written: String,
    metrics: Vec<ToolMetric>,
}

pub(crate) fn variable(written: &str) -> Result<Variable, String> {
    match written.split_once('=') {
        Some((name, value)) if !name.is_empty() && !written.contains('\0') => Ok(Variable {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("expected NAME=VALUE".into()),
    }
}

fn values(written: &str) -> Result<Values, String> {
    let metrics = config::program_values(written).map_err(|error| error.to_string())?;
    Ok(Values {
        written: written.to_owned(),
        metrics,
    })
}

impl ProgramOptions {
    /// Returns whether the user gave a program.
    pub(crate) fn is_given(&self) -> bool {
        !self.program.is_empty()
    }

    /// Refuses a program where only workloads are known.
    ///
    /// # Errors
    /// If the user gave one; `what` says who knows only workloads.
    pub(crate) fn refuse(&self, what: &str) -> Result<(), WrongInput> {
        if !self.is_given() {
            return Ok(());
        }
        Err(WrongInput(format!(
            "{what} knows workloads only, no program of your own: marvin compare, run, profile and explain on exact and \
             exact-smp, series and bisect do"
        )))
    }

    /// Returns what the user wants to run.
    ///
    /// # Errors
    /// If a word is not UTF-8.
    pub(crate) fn request(&self) -> Result<ProgramRequest, WrongInput> {
        let command = words_of(&self.program)?;
        let mut values: Vec<ToolMetric> = Vec::new();
        for metric in self.value.iter().flat_map(|value| &value.metrics) {
            let mut metric = metric.clone();
            let is_taken = |name: &str| values.iter().any(|known| known.name == name);
            let mut number = 2;
            let name = metric.name.clone();
            while is_taken(&metric.name) {
                metric.name = format!("{name}{number}");
                number += 1;
            }
            values.push(metric);
        }
        Ok(ProgramRequest {
            command,
            with: self
                .with
                .iter()
                .map(|written| split_place(written))
                .collect(),
            environment: self.env.iter().map(Variable::pair).collect(),
            stdin: self.stdin.clone(),
            setup: self.setup.clone(),
            values,
            accepted: self.accept_status.clone(),
            runs: self.repeat,
            limit_s: u32::try_from(self.time_limit.as_secs()).unwrap_or(u32::MAX),
            memory_mib: self.guest_memory,
            marks: self.marks,
            name: None,
            benchmark: None,
        })
    }

    /// Returns the words that say the same again.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.is_given() {
            return words;
        }
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), quote(&value)]);
        for path in &self.with {
            add("--with", path.display().to_string());
        }
        for variable in &self.env {
            add("--env", format!("{}={}", variable.name, variable.value));
        }
        if let Some(file) = &self.stdin {
            add("--stdin", file.display().to_string());
        }
        if let Some(command) = &self.setup {
            add("--setup", command.clone());
        }
        for value in &self.value {
            add("--value", value.written.clone());
        }
        for status in &self.accept_status {
            add("--accept-status", status.to_string());
        }
        if self.repeat != 4 {
            add("--repeat", self.repeat.to_string());
        }
        if self.time_limit != Duration::from_secs(60) {
            add("--time-limit", format!("{}s", self.time_limit.as_secs()));
        }
        if let Some(mib) = self.guest_memory {
            add("--guest-memory", mib.to_string());
        }
        if self.marks {
            words.push("--marks".to_owned());
        }
        words
    }

    /// Returns the program with its arguments, behind `--`; they end a command.
    pub(crate) fn tail(&self) -> Vec<String> {
        if !self.is_given() {
            return Vec::new();
        }
        let words = self
            .program
            .iter()
            .map(|word| quote(&word.to_string_lossy()));
        std::iter::once("--".to_owned()).chain(words).collect()
    }
}

/// Returns the words of a command as text.
///
/// # Errors
/// If a word is not UTF-8.
pub(crate) fn words_of(command: &[OsString]) -> Result<Vec<String>, WrongInput> {
    let words = command.iter().map(|word| word.to_str());
    words
        .map(|word| word.map(str::to_owned))
        .collect::<Option<Vec<String>>>()
        .ok_or_else(|| {
            let text = "a word of the program's command is not UTF-8: rename the file, or write it into a script";
            WrongInput(text.to_owned())
        })
}

/// Splits `PATH=PLACE`; a path that exists may have the sign in its name.
pub(crate) fn split_place(written: &Path) -> (PathBuf, Option<String>) {
    let text = written.to_string_lossy();
    match text.rsplit_once('=') {
        Some((path, place)) if !written.exists() => (PathBuf::from(path), Some(place.to_owned())),
        _ => (written.to_owned(), None),
    }
}

/// Writes a word as a shell reads it.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    subprocess::quote_words([word])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{quote, split_place, variable};

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("./a-b.c"), "./a-b.c");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), "'it'\\''s'");
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn place_follows_the_last_sign() {
        assert_eq!(
            split_place(Path::new("none=/srv")),
            ("none".into(), Some("/srv".to_owned()))
        );
        assert_eq!(split_place(Path::new("/etc")), ("/etc".into(), None));
    }

    #[test]
    fn variable_needs_a_name() {
        assert!(variable("A=b=c").is_ok());
        assert!(variable("=b").is_err() && variable("A").is_err());
    }
}

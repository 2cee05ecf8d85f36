//! The mail of an answer, with one meaning for all commands.

use std::path::{Path, PathBuf};

use clap::Args;
use model::KernelName;

use crate::exit::WrongInput;
use crate::session::Answer;

/// The name that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// The option for a mail.
#[derive(Debug, Args)]
pub(crate) struct MailOptions {
    /// Also write a mail for the kernel's lists (subject, plain text) to FILE; without FILE, or
    /// with -, write the mail instead of the answer
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    mail: Option<PathBuf>,
}

impl MailOptions {
    /// Returns whether the mail takes the place of the answer.
    pub(crate) fn is_answer(&self) -> bool {
        self.mail.as_deref() == Some(Path::new(STANDARD_OUTPUT))
    }

    /// Returns whether a mail is asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.mail.is_some()
    }

    /// Returns the file for the mail, if it is not the answer.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.mail.as_deref().filter(|_| !self.is_answer())
    }

    /// Prepares the file for the mail. Refuses the name of a kernel or a run, which stands behind
    /// `--mail` by mistake.
    pub(crate) fn open(&self) -> anyhow::Result<Option<Answer>> {
        let Some(file) = self.file() else {
            return Ok(None);
        };
        let name = file.to_string_lossy();
        if is_kernel_or_run(&name) {
            let text = format!(
                "--mail {name}: it names a kernel or a run, not a file\nhint: put --mail behind all names, or write --mail=FILE"
            );
            return Err(WrongInput(text).into());
        }
        Answer::file("--mail", file).map(Some)
    }
}

/// Returns whether a word names a kernel or a run and hardly a file.
fn is_kernel_or_run(word: &str) -> bool {
    let is_version = word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_version || word.starts_with("run_") || word.parse::<KernelName>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_kernel_or_run;

    #[test]
    fn kernels_and_runs_are_no_files() {
        for word in ["deb:6.12", "git:HEAD", "6.12.117", "run_7f3a"] {
            assert!(is_kernel_or_run(word), "{word}");
        }
        for file in ["regression.txt", "mails/6.12.txt", "result"] {
            assert!(!is_kernel_or_run(file), "{file}");
        }
    }
}

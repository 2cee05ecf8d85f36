//! The batch system that jobs may go to: the keys of `[slurm]` and `[batch]`.

use model::{BatchKind, BatchSettings, SlurmSettings};

use super::check::Record;
use crate::toml_document::Mistake;

/// Parses the batch system, if the file has one.
pub(super) fn batch(file: &Record) -> Result<Option<BatchSettings>, Mistake> {
    match [file.is_written("slurm"), file.is_written("batch")] {
        [false, false] => Ok(None),
        [true, true] => {
            let what = "jobs go to one batch system: write [slurm] or [batch]";
            Err(Mistake::new(file.span_of("batch"), what))
        }
        [true, false] => {
            let record = file.one("slurm");
            let slurm = SlurmSettings {
                options: options(record, "options")?,
                exact: options(record, "exact")?,
            };
            Ok(Some(settings(record, BatchKind::Slurm(slurm))?))
        }
        [false, true] => {
            let record = file.one("batch");
            if !record.has("command") {
                return Err(Mistake::new(
                    file.span_of("batch"),
                    "[batch] without `command`",
                ));
            }
            Ok(Some(settings(
                record,
                BatchKind::Command(record.strings("command")),
            )?))
        }
    }
}

fn settings(record: &Record, system: BatchKind) -> Result<BatchSettings, Mistake> {
    for key in ["home", "program"] {
        if record.text(key).is_some_and(|path| !path.starts_with('/')) {
            let what = format!("`{key}` is a path on the system's hosts: begin it with /");
            return Err(Mistake::new(record.span_of(key), what));
        }
    }
    let text_of = |key: &str| record.text(key).map(str::to_owned);
    let jobs_max = usize::try_from(record.whole("jobs")).unwrap_or(usize::MAX);
    Ok(BatchSettings {
        system,
        jobs_max,
        home: text_of("home"),
        program: text_of("program"),
    })
}

/// Returns options of sbatch: each begins with a hyphen, so that none is taken for a script.
fn options(record: &Record, key: &str) -> Result<Vec<String>, Mistake> {
    match record
        .texts(key)
        .unwrap_or_default()
        .iter()
        .find(|(_, word)| !word.starts_with('-'))
    {
        Some((span, word)) => {
            let what = format!(
                "expected an option of sbatch such as --partition=lab, not `{}`",
                word.escape_debug()
            );
            Err(Mistake::new(span, what))
        }
        None => Ok(record.strings(key)),
    }
}

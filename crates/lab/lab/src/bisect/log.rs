//! The log of a bisection: measurements in order, in a file that is complete after each step.
//! Marvin does not repeat them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use compare::Scale;
use sha2::{Digest, Sha256};
use subprocess::replace_file;

use super::Probe;
use crate::LabError;

/// First line of a log file.
const HEAD: &str = "marvin bisection 1";
/// Prefix of lines with values, by scale.
const COUNTED: &str = "counted";
const MEASURED: &str = "measured";
/// Marvin reads no larger log (bytes).
const BYTES_MAX: u64 = 16 << 20;

/// A commit and its measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The commit measured; may be a merge that Marvin made for the test.
    pub commit: String,
    /// The commit that `commit` stands for.
    pub of: String,
    /// How `commit` stands for `of`.
    pub stands: Stands,
    pub probe: Probe,
}

/// How the measured commit stands for the one in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It is the commit.
    Itself,
    /// It is the commit merged onto the trunk.
    Merged,
    /// It is BAD without the commit.
    Without,
}

/// The log of a bisection.
#[derive(Debug)]
pub struct BisectionLog {
    file: Option<PathBuf>,
    question: String,
    known: BTreeMap<String, Probe>,
    entries: Vec<Entry>,
    resumed: usize,
}

impl BisectionLog {
    /// Returns a log without a file.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            file: None,
            question: String::new(),
            known: BTreeMap::new(),
            entries: Vec::new(),
            resumed: 0,
        }
    }

    /// Opens the log of a one-line question below a data directory, with earlier measurements
    /// unless `reuse` says to repeat them.
    ///
    /// # Errors
    /// If the file cannot be read, or belongs to another question.
    pub fn open(home: &Path, question: &str, reuse: crate::Reuse) -> Result<Self, LabError> {
        let question: String = question
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let folder = home.join("bisections");
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let name = model::hexadecimal(&Sha256::digest(&question)[..8]);
        let file = folder.join(name);
        let mut known = BTreeMap::new();
        if reuse == crate::Reuse::Stored && file.exists() {
            if fs::metadata(&file).map_err(failed(&file))?.len() > BYTES_MAX {
                return Err(LabError::BadBisection { file });
            }
            let text =
                String::from_utf8_lossy(&fs::read(&file).map_err(failed(&file))?).into_owned();
            known = read(&text, &question)
                .ok_or_else(|| LabError::BadBisection { file: file.clone() })?;
        }
        let resumed = known.len();
        Ok(Self {
            file: Some(file),
            question,
            known,
            entries: Vec::new(),
            resumed,
        })
    }

    /// Writes the findings beside the log, as `HASH.found`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self, found: &str) -> Result<(), LabError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let new = file.with_extension("found-new");
        let file = file.with_extension("found");
        replace_file(&file, &new, found).map_err(failed(&file))
    }

    /// Returns the number of commits that an earlier attempt measured.
    #[must_use]
    pub fn resumed_count(&self) -> usize {
        self.resumed
    }

    /// Returns the entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the measurement of a commit, if there is one.
    pub(super) fn known(&self, commit: &str) -> Option<&Probe> {
        self.known.get(commit)
    }

    /// Adds an entry and writes the log; an earlier entry of the same commit had fewer values.
    pub(super) fn note(&mut self, entry: Entry) -> Result<(), LabError> {
        let is_new = self
            .known
            .insert(entry.commit.clone(), entry.probe.clone())
            .as_ref()
            != Some(&entry.probe);
        match self
            .entries
            .iter_mut()
            .find(|other| other.commit == entry.commit)
        {
            Some(other) => *other = entry,
            None => self.entries.push(entry),
        }
        match &self.file {
            Some(file) if is_new => {
                let new = file.with_extension("new");
                replace_file(file, &new, self.text()).map_err(failed(file))
            }
            _ => Ok(()),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}\n{}\n", self.question);
        for (commit, probe) in &self.known {
            let line = match probe {
                Probe::Measured {
                    build,
                    values,
                    scale,
                } => {
                    let word = if *scale == Scale::Counted {
                        COUNTED
                    } else {
                        MEASURED
                    };
                    // All digits: a value read back must equal the measured one.
                    let values: Vec<String> =
                        values.iter().map(|value| format!("{value:?}")).collect();
                    format!("{word} {commit} {build} {}\n", values.join(" "))
                }
                Probe::Failed(why) => {
                    format!("failed {commit} {}\n", why.replace(char::is_control, " "))
                }
            };
            text.push_str(&line);
        }
        text
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LabError {
    move |error| LabError::Bisection {
        file: path.to_owned(),
        error,
    }
}

fn read(text: &str, question: &str) -> Option<BTreeMap<String, Probe>> {
    let mut lines = text.lines();
    (lines.next()? == HEAD && lines.next()? == question).then_some(())?;
    lines.map(line).collect()
}

fn line(line: &str) -> Option<(String, Probe)> {
    let mut fields = line.splitn(3, ' ');
    let kind = fields.next()?;
    let commit = fields.next()?;
    let rest = fields.next().unwrap_or_default();
    let probe = match kind {
        COUNTED | MEASURED => {
            let scale = if kind == COUNTED {
                Scale::Counted
            } else {
                Scale::Reported
            };
            let mut fields = rest.split(' ');
            let build = fields.next()?.to_owned();
            let values: Option<Vec<f64>> = fields
                .map(|word| word.parse().ok().filter(|value: &f64| value.is_finite()))
                .collect();
            Probe::Measured {
                build,
                values: values?,
                scale,
            }
        }
        "failed" => Probe::Failed(rest.to_owned()),
        _ => return None,
    };
    Some((commit.to_owned(), probe))
}

#[cfg(test)]
mod tests {
    use super::{BisectionLog, Entry, Probe, Scale, Stands};
    use crate::Reuse;

    fn entry(commit: &str, probe: Probe) -> Entry {
        Entry {
            commit: commit.to_owned(),
            of: commit.to_owned(),
            stands: Stands::Itself,
            probe,
        }
    }

    #[test]
    fn measurements_survive_a_kill() {
        let home = tempfile::tempdir().unwrap();
        let of = |scale, values| Probe::Measured {
            build: "build_aa".to_owned(),
            values,
            scale,
        };
        let measured = of(Scale::Counted, vec![0.1 + 0.2, 1e-300, 6105.0]);
        let timed = of(Scale::Reported, vec![3.0]);
        let failed = Probe::Failed("does not build:\nerror".to_owned());
        let mut log = BisectionLog::open(home.path(), "a..b", Reuse::Stored).unwrap();
        log.note(entry("c1", measured.clone())).unwrap();
        log.note(entry("c2", failed)).unwrap();
        log.note(entry("c3", timed.clone())).unwrap();
        let again = BisectionLog::open(home.path(), "a..b", Reuse::Stored).unwrap();
        assert_eq!((again.resumed_count(), again.entries().len()), (3, 0));
        assert_eq!(
            [again.known("c1"), again.known("c3")],
            [Some(&measured), Some(&timed)]
        );
        assert_eq!(
            again.known("c2"),
            Some(&Probe::Failed("does not build: error".to_owned()))
        );
        assert_eq!(
            BisectionLog::open(home.path(), "a..b", Reuse::Nothing)
                .unwrap()
                .resumed_count(),
            0
        );
        assert_eq!(
            BisectionLog::open(home.path(), "a..c", Reuse::Stored)
                .unwrap()
                .resumed_count(),
            0
        );
    }

    #[test]
    fn damaged_log_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let mut log = BisectionLog::open(home.path(), "a..b", Reuse::Stored).unwrap();
        log.note(entry("c1", Probe::Failed("x".to_owned())))
            .unwrap();
        let file = std::fs::read_dir(home.path().join("bisections"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        for damage in [
            "",
            "marvin bisection 1\nother\n",
            "marvin bisection 1\na..b\nmeasured c1 b NaN\n",
            "marvin bisection 1\na..b\nx\n",
        ] {
            std::fs::write(&file, damage).unwrap();
            let error = BisectionLog::open(home.path(), "a..b", Reuse::Stored).unwrap_err();
            assert!(error.to_string().contains("remove the file"), "{error}");
        }
    }
}

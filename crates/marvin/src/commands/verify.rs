//! `marvin explain --verify`: runs a command with and without what is suspected, in turns.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, io};

use ::explain::{Finding, Switch, judge_runs};
use process::Program;

use crate::exit::WrongInput;
use crate::progress::Progress;

/// Runs of each side: five are the fewest that separate two sides at 1 % by their ranks.
const RUNS: usize = 5;

/// Measures the command with and without the suspect, and returns the finding with what came out.
pub(crate) fn verify(
    finding: Finding,
    words: &[OsString],
    rate: Option<&str>,
    seconds: u32,
    home: &Path,
    progress: &Progress,
) -> anyhow::Result<Finding> {
    let Some(switch) = finding.switch.clone() else {
        let text = "nothing that Marvin can switch off: no variable of the environment, and no setting of the kernel or a cgroup";
        return Ok(finding.with(format!("not verified: {text}"), "--verify", "", ""));
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for run in 1..=RUNS {
        progress.say(&format!("verifying: run {run} of {RUNS} with and without {}", switch.name()));
        with.push(measure(words, &[], rate, seconds)?);
        without.push(match &switch {
            Switch::Environment(variables) => measure(words, variables, rate, seconds)?,
            Switch::File { path, without } => {
                let _changed = Changed::new(path, without, home)?;
                measure(words, &[], rate, seconds)?
            }
        });
    }
    Ok(judge_runs(finding, &switch.name(), rate, [&with, &without]))
}

/// Below the data directory: the setting that a run is without: the process that changed it, its file and its value before.
const RECORD: &str = "verifying";

/// A file of the kernel's settings with another value, until it is dropped.
struct Changed {
    path: String,
    before: String,
    record: PathBuf,
}

impl Changed {
    fn new(path: &str, value: &str, home: &Path) -> Result<Self, WrongInput> {
        let failed = |path: &Path, error: io::Error| WrongInput(format!("cannot verify: {}: {error}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(path.as_ref(), error))?;
        let before = chosen(&text).to_owned();
        // A killed Marvin sets nothing back: the next one does, by this record.
        let record = home.join(RECORD);
        fs::create_dir_all(home).map_err(|error| failed(home, error))?;
        fs::write(&record, format!("{}\t{path}\t{before}\n", std::process::id()))
            .map_err(|error| failed(&record, error))?;
        let changed = Self { path: path.to_owned(), before, record };
        fs::write(path, value).map_err(|error| failed(path.as_ref(), error))?;
        Ok(changed)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // The command may have deleted the cgroup.
        drop(fs::write(&self.path, &self.before));
        drop(fs::remove_file(&self.record));
    }
}

/// Sets back what a killed Marvin left, and says so.
pub(crate) fn set_back(home: &Path) {
    let record = home.join(RECORD);
    let Ok(text) = fs::read_to_string(&record) else { return };
    for line in text.lines() {
        let [process, path, before] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { continue };
        if process != std::process::id().to_string() && Path::new("/proc").join(process).exists() {
            // It is still verifying.
            return;
        }
        let said = match fs::write(path, before) {
            Ok(()) => format!("note: {path} is {before} again: a Marvin that was killed had changed it"),
            Err(error) => format!("warning: a Marvin that was killed changed {path}, and it was {before}: {error}"),
        };
        crate::say(&said);
    }
    drop(fs::remove_file(&record));
}

/// Returns what a file of settings says now: of several words, the one in brackets.
fn chosen(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word)
}

/// Runs the command without variables, and returns how long it takes (s), or the rate that it prints.
fn measure(words: &[OsString], without: &[String], rate: Option<&str>, seconds: u32) -> anyhow::Result<f64> {
    let mut arguments: Vec<OsString> = without.iter().flat_map(|name| ["-u".into(), name.into()]).collect();
    arguments.extend(words.iter().cloned());
    let started = Instant::now();
    let program = Program::new("env").args(arguments).inherit_all().deadline_s(u64::from(seconds));
    let ended = program.run().map_err(|error| WrongInput(format!("cannot verify: {error}")))?;
    let elapsed = started.elapsed().as_secs_f64();
    if ended.code != Some(0) {
        return Err(WrongInput(format!("cannot verify: the command failed: {}", ended.reason())).into());
    }
    let Some(text) = rate else { return Ok(elapsed) };
    number_before(&ended.text(), text).ok_or_else(|| {
        WrongInput(format!("cannot verify: there is no number before `{text}` in what it prints")).into()
    })
}

/// Returns the last number that stands directly before a text: `812.5 rec/s`.
fn number_before(output: &str, text: &str) -> Option<f64> {
    let before = &output[..output.rfind(text)?];
    before.split_whitespace().next_back()?.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_word_is_set_back() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen("30000\n"), "30000");
    }

    #[test]
    fn next_marvin_sets_back_what_was_left() {
        let home = tempfile::tempdir().unwrap();
        let setting = home.path().join("enabled");
        fs::write(&setting, "always [madvise] never\n").unwrap();
        std::mem::forget(Changed::new(setting.to_str().unwrap(), "never", home.path()).unwrap());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "never");
        set_back(home.path());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "madvise");
        assert!(!home.path().join(RECORD).exists());
    }

    #[test]
    fn rate_is_the_last_number() {
        assert_eq!(number_before("1 rec/s\nrun: 2.5 rec/s\n", "rec/s"), Some(2.5));
        assert_eq!(number_before("many rec/s", "rec/s"), None);
    }
}

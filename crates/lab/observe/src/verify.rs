//! Verifies a cause: runs a command with and without each suspect, in turns, one change at a time.
//!
//! A run without the suspect that fails, ends early or prints something else is no run without it:
//! then nothing is shown.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use explain::{Certainty, Finding, Runs, Switch, Variable, compare_outputs, judge_runs, runs_for};
use machine::{SwitchLock, Switching};
use subprocess::{Program, ProgramError};

/// The command to verify with.
#[derive(Debug, Clone, Copy)]
pub struct Verification<'a> {
    pub command: &'a [OsString],
    /// The text behind the number that it prints; without it, the duration counts.
    pub rate: Option<&'a str>,
    /// How long a run may take (s), if the user says so.
    pub seconds: Option<u32>,
    pub home: &'a Path,
}

/// Why nothing was verified.
type Unverified = String;

/// Why a command that prints nothing proves nothing.
const SILENT: &str = "the command prints nothing, and a run that did less would only look fast; have it print what it did";

/// What a run without a suspect needs.
enum Change {
    /// A variable with another value; `None` to remove it.
    Variable(&'static str, Option<OsString>),
    /// A file with another value.
    File(String, &'static str),
}

/// Measures the command with and without the suspects, and returns the finding with what came out.
/// `say` gets the progress.
#[must_use]
pub fn verify(finding: Finding, verification: Verification, say: &dyn Fn(&str)) -> Finding {
    match try_verify(&finding, verification, say) {
        Ok(verified) => verified,
        Err(why) => finding.with(format!("not verified: {why}"), "--verify", "", ""),
    }
}

fn try_verify(
    finding: &Finding,
    verification: Verification,
    say: &dyn Fn(&str),
) -> Result<Finding, Unverified> {
    let nothing = "nothing that Marvin can switch off: no variable of the environment, and no setting of the kernel or a cgroup";
    let [_, ..] = finding.switches[..] else {
        return Err(nothing.into());
    };
    let changes = finding
        .switches
        .iter()
        .map(change)
        .collect::<Result<Vec<_>, _>>()?;
    let has_file = changes
        .iter()
        .any(|change| matches!(change, Change::File(..)));
    let lock = if has_file {
        Some(lock(verification.home)?)
    } else {
        None
    };
    let names: Vec<String> = finding.switches.iter().map(Switch::name).collect();
    let mut with = Side::default();
    let mut without: Vec<Side> = changes.iter().map(|_| Side::default()).collect();
    let runs = runs_for(changes.len());
    for run in 1..=runs {
        say(&format!(
            "verifying: run {run} of {runs} with and without {}",
            names.join(", ")
        ));
        with.add(
            verification
                .measure(None)
                .map_err(|why| format!("with {}, {why}", names.join(", ")))?,
        );
        if verification.rate.is_none() && with.outputs.iter().all(|text| text.trim().is_empty()) {
            return Err(SILENT.into());
        }
        for ((change, side), name) in changes.iter().zip(&mut without).zip(&names) {
            let measured = verification.measure_without(change, lock.as_ref());
            side.add(measured.map_err(|why| format!("without {name}, {why}"))?);
        }
    }
    for (side, name) in without.iter().zip(&names) {
        if let Some(what) = side
            .outputs
            .iter()
            .find_map(|text| compare_outputs(&with.outputs, text).err())
        {
            return Err(format!(
                "without {name}, the command does something else: {what}"
            ));
        }
    }
    Ok(judge(finding, verification.rate, &with, &without))
}

/// Judges each suspect alone. The one without which the command is fastest is the cause.
fn judge(finding: &Finding, rate: Option<&str>, with: &Side, without: &[Side]) -> Finding {
    let judged: Vec<Finding> = finding
        .switches
        .iter()
        .zip(without)
        .map(|(switch, side)| {
            let runs = Runs {
                suspects: without.len(),
                with: &with.values,
                without: &side.values,
            };
            let cause = match switch {
                Switch::Variable(variable) => variable.cause.clone(),
                Switch::File { .. } => finding.cause.clone(),
            };
            judge_runs(
                Finding {
                    cause,
                    ..finding.clone()
                },
                &switch.name(),
                rate,
                runs,
            )
        })
        .collect();
    let best = judged
        .iter()
        .max_by(|one: &&Finding, other: &&Finding| {
            one.gain
                .unwrap_or(0.0)
                .total_cmp(&other.gain.unwrap_or(0.0))
        })
        .unwrap_or(finding);
    // If none of several is shown, all of them stay what was suspected.
    let cause = if best.certainty == Certainty::Shown {
        best.cause.clone()
    } else {
        finding.cause.clone()
    };
    let others = judged.iter().filter(|other| !std::ptr::eq(*other, best));
    let evidence = others
        .filter_map(|other| other.evidence.last())
        .chain(best.evidence.last())
        .cloned();
    let evidence = finding.evidence.iter().cloned().chain(evidence).collect();
    Finding {
        cause,
        evidence,
        ..best.clone()
    }
}

/// Returns what a run without a suspect needs. Only what Marvin itself hands down can be switched:
/// a variable that the command sets comes back in each run.
fn change(switch: &Switch) -> Result<Change, Unverified> {
    let variable: &Variable = match switch {
        Switch::File { path, without } => return Ok(Change::File(path.clone(), without)),
        Switch::Variable(variable) => variable,
    };
    let value = std::env::var(variable.name).ok();
    match value.and_then(|value| variable.without(&value)) {
        None => Err(format!(
            "the command itself sets {}, and Marvin cannot run it without",
            switch.name()
        )),
        Some(left) if left.is_empty() => Ok(Change::Variable(variable.name, None)),
        Some(left) => Ok(Change::Variable(variable.name, Some(left.into()))),
    }
}

fn lock(home: &Path) -> Result<SwitchLock, Unverified> {
    let lock = Switching::of_host(home)
        .try_lock()
        .map_err(|error| error.to_string())?;
    lock.ok_or_else(|| {
        "another Marvin measures this host, or changes its settings; try again later".to_owned()
    })
}

/// The runs of one side.
#[derive(Debug, Default)]
struct Side {
    /// Durations (s) or rates.
    values: Vec<f64>,
    outputs: Vec<String>,
}

impl Side {
    fn add(&mut self, (value, output): (f64, String)) {
        self.values.push(value);
        self.outputs.push(output);
    }
}

impl Verification<'_> {
    fn measure_without(
        &self,
        change: &Change,
        lock: Option<&SwitchLock>,
    ) -> Result<(f64, String), Unverified> {
        match (change, lock) {
            (Change::File(path, value), Some(lock)) => {
                let switched = lock
                    .switch(Path::new(path), value)
                    .map_err(|error| error.to_string())?;
                let measured = self.measure(None);
                switched.set_back().map_err(|error| error.to_string())?;
                measured
            }
            (change, _) => self.measure(Some(change)),
        }
    }

    /// Runs the command, and returns how long it takes (s), or the rate that it prints, and all
    /// that it prints.
    fn measure(&self, change: Option<&Change>) -> Result<(f64, String), Unverified> {
        let mut arguments: Vec<OsString> = match change {
            Some(Change::Variable(name, None)) => vec!["-u".into(), name.into()],
            Some(Change::Variable(name, Some(value))) => {
                let mut set = OsString::from(format!("{name}="));
                set.push(value);
                vec![set]
            }
            _ => Vec::new(),
        };
        arguments.extend(self.command.iter().cloned());
        let started = Instant::now();
        let program = Program::new("env")
            .args(arguments)
            .inherit_all()
            .output_max(OUTPUT_MAX)
            .sweep();
        let ended = program
            .deadline_s(self.seconds.map_or(ENDLESS_S, u64::from))
            .run()
            .map_err(|error| match error {
                ProgramError::Deadline { seconds, .. } => {
                    format!("the command did not end within {seconds} s")
                }
                error => error.to_string(),
            })?;
        let elapsed = started.elapsed().as_secs_f64();
        match ended.code {
            Some(0) => {}
            Some(code) => {
                return Err(format!(
                    "the command failed, exit status {code}: {}",
                    ended.reason()
                ));
            }
            None => return Err("a signal ended the command".into()),
        }
        let output = format!("{}\n{}", ended.text(), ended.stderr);
        let Some(text) = self.rate else {
            return Ok((elapsed, output));
        };
        let rate = number_before(&ended.text(), text);
        let rate = rate.ok_or_else(|| {
            format!("there is no number before `{text}` in what the command prints")
        })?;
        Ok((rate, output))
    }
}

/// Kept of what a run prints (bytes).
const OUTPUT_MAX: u64 = 4 << 20;
/// The deadline of a command that runs to its end: a century (s).
const ENDLESS_S: u64 = 100 * 366 * 86400;

/// Returns the last number that stands directly before a text: `812.5 rec/s`.
fn number_before(output: &str, text: &str) -> Option<f64> {
    let before = &output[..output.rfind(text)?];
    before
        .split_whitespace()
        .next_back()?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use explain::Suspect;

    use super::*;

    fn suspects(names: [&'static str; 2]) -> Finding {
        names
            .into_iter()
            .map(|name| {
                let cause = format!("because {name} is set");
                Switch::Variable(Variable {
                    name,
                    part: Suspect::Whole,
                    cause,
                })
            })
            .fold(
                Finding::new("because of both".into(), 0.5),
                Finding::switched,
            )
    }

    fn side(value: f64) -> Side {
        Side {
            values: (0..6)
                .map(|n| value * (1.0 + f64::from(n) / 50.0))
                .collect(),
            outputs: Vec::new(),
        }
    }

    #[test]
    fn cause_is_the_suspect_that_was_shown() {
        let finding = suspects(["GUILTY", "INNOCENT"]);
        let judged = judge(&finding, None, &side(10.0), &[side(1.0), side(10.0)]);
        assert_eq!(
            (judged.cause.as_str(), judged.certainty),
            ("because GUILTY is set", Certainty::Shown)
        );
        let sentences: Vec<&str> = judged
            .evidence
            .iter()
            .map(|evidence| &*evidence.quantity)
            .collect();
        assert!(
            sentences.len() == 2
                && sentences[0].contains("without: no gain")
                && sentences[1].contains("times as fast"),
            "{sentences:?}"
        );
    }

    #[test]
    fn suspects_that_change_nothing_are_not_shown() {
        let judged = judge(
            &suspects(["A", "B"]),
            None,
            &side(10.0),
            &[side(10.1), side(10.0)],
        );
        assert!(
            judged.certainty < Certainty::Shown && judged.cause == "because of both",
            "{judged:?}"
        );
        assert_eq!(judged.evidence.len(), 2);
    }

    #[test]
    fn variable_of_the_command_is_not_switched() {
        let Err(why) = change(&suspects(["MARVIN_NONESUCH", "B"]).switches[0]) else {
            panic!("it is set nowhere")
        };
        assert_eq!(
            why,
            "the command itself sets MARVIN_NONESUCH, and Marvin cannot run it without"
        );
        // Cargo sets this one for tests.
        assert!(matches!(
            change(&suspects(["CARGO_MANIFEST_DIR", "B"]).switches[0]),
            Ok(Change::Variable("CARGO_MANIFEST_DIR", None))
        ));
    }

    #[test]
    fn run_that_fails_or_overruns_proves_nothing() {
        let measure = |script: &str, rate| {
            let command = ["sh", "-c", script].map(OsString::from);
            let home = Path::new("/nonesuch");
            Verification {
                command: &command,
                rate,
                seconds: Some(1),
                home,
            }
            .measure(None)
            .map(|(value, _)| value)
        };
        assert_eq!(
            measure("exit 3", None).unwrap_err(),
            "the command failed, exit status 3: exit status 3"
        );
        assert_eq!(
            measure("kill -9 $$", None).unwrap_err(),
            "a signal ended the command"
        );
        assert_eq!(
            measure("sleep 20", None).unwrap_err(),
            "the command did not end within 1 s"
        );
        assert_eq!(
            measure("echo fast", Some("rec/s")).unwrap_err(),
            "there is no number before `rec/s` in what the command prints"
        );
        assert_eq!(measure("echo 5 rec/s", Some("rec/s")), Ok(5.0));
        // No deadline ends what is left in the background.
        assert!(measure("(sleep 47) & echo begun", None).is_ok_and(|seconds| seconds < 20.0));
    }

    #[test]
    fn silent_command_proves_nothing() {
        let command = [OsString::from("true")];
        let verification = Verification {
            command: &command,
            rate: None,
            seconds: Some(5),
            home: Path::new("/nonesuch"),
        };
        let verified = verify(
            suspects(["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"]),
            verification,
            &|_| {},
        );
        assert_eq!(
            verified.evidence.last().unwrap().quantity,
            format!("not verified: {SILENT}")
        );
        assert_eq!(verified.certainty, Certainty::Likely);
    }

    #[test]
    fn rate_is_the_last_number() {
        assert_eq!(
            number_before("1 rec/s\nrun: 2.5 rec/s\n", "rec/s"),
            Some(2.5)
        );
        assert_eq!(number_before("many rec/s", "rec/s"), None);
    }
}

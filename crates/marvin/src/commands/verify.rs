//! `marvin explain --verify`: runs a command with and without what is suspected, in turns.

use std::ffi::OsString;
use std::time::Instant;

use ::explain::{Certainty, Finding, Switch};
use process::Program;

use crate::exit::WrongInput;
use crate::progress::Progress;

/// Runs of each side: five are the fewest that separate two sides at 1 % by their ranks.
const RUNS: usize = 5;
/// Chance of ranks so uneven without a difference, at most.
const LEVEL: f64 = 0.01;
/// The least change that counts (percent).
const LEAST_PERCENT: f64 = 5.0;
/// Runs that all take the same time, to this part, end by the clock.
const SAME: f64 = 0.03;

/// Measures the command with and without the suspect, and returns the finding with what came out.
pub(crate) fn verify(
    finding: Finding,
    words: &[OsString],
    rate: Option<&str>,
    seconds: u32,
    progress: &Progress,
) -> anyhow::Result<Finding> {
    let Some(switch) = finding.switch.clone() else {
        let text = "nothing that Marvin can switch off: no variable of the environment, quota or huge pages";
        return Ok(finding.with(format!("not verified: {text}"), "--verify", "", ""));
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for run in 1..=RUNS {
        progress.say(&format!("verifying: run {run} of {RUNS} with and without {}", switch.name()));
        with.push(measure(words, &[], rate, seconds)?);
        without.push(match &switch {
            Switch::Environment(variables) => measure(words, variables, rate, seconds)?,
            Switch::File { path, without } => {
                let _changed = Changed::new(path, without)?;
                measure(words, &[], rate, seconds)?
            }
        });
    }
    Ok(judge(finding, &switch.name(), rate, [&with, &without]))
}

/// A file of the kernel's settings with another value, until it is dropped.
struct Changed {
    path: String,
    before: String,
}

impl Changed {
    fn new(path: &str, value: &str) -> Result<Self, WrongInput> {
        let failed = |error: std::io::Error| WrongInput(format!("cannot verify: {path}: {error}"));
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let before = chosen(&text).to_owned();
        let changed = Self { path: path.to_owned(), before };
        std::fs::write(path, value).map_err(failed)?;
        Ok(changed)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // The command may have deleted the cgroup.
        drop(std::fs::write(&self.path, &self.before));
    }
}

/// Returns what a file of settings says now: of several words, the one in brackets.
fn chosen(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word)
}

/// Decides what the runs show.
fn judge(finding: Finding, variables: &str, rate: Option<&str>, [with, without]: [&[f64]; 2]) -> Finding {
    let source = "5 runs of each, in turns";
    let (Some(test), Some(before), Some(after)) =
        (stats::rank_test(with, without), stats::median(with), stats::median(without))
    else {
        return finding.with("not verified: no values".into(), source, "", "");
    };
    let unit = rate.map_or(" s".to_owned(), |text| format!(" {text}"));
    let numbers = format!("{before:.2}{unit} with {variables}, {after:.2}{unit} without");
    let all = || with.iter().chain(without);
    let [least, most] = [all().copied().fold(f64::INFINITY, f64::min), all().copied().fold(0.0, f64::max)];
    if rate.is_none() && most - least < SAME * most {
        let text = format!("not verified: it always runs for {before:.2} s; give --rate with what it prints");
        return finding.with(text, source, "", "");
    }
    let gain = if rate.is_some() { after / before } else { before / after };
    let is_shown = test.p < LEVEL && gain > 1.0 + LEAST_PERCENT / 100.0;
    let certainty = if is_shown { Certainty::Shown } else { Certainty::Hypothesis };
    let text = if is_shown { format!("{numbers}: {gain:.2} times as fast") } else { format!("{numbers}: no gain") };
    Finding { certainty, gain: is_shown.then_some(gain), ..finding }.with(
        format!("{text}, p = {:.3}", test.p),
        source,
        "p < 0.01, 5 %",
        "chance",
    )
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

    fn judged(with: [f64; 5], without: [f64; 5], rate: Option<&str>) -> (Certainty, String) {
        let finding = judge(Finding::new("x".into(), 0.5), "A", rate, [&with, &without]);
        (finding.certainty, finding.evidence[0].quantity.clone())
    }

    #[test]
    fn separate_runs_show_the_cause() {
        let (certainty, text) = judged([10.0, 11.0, 10.5, 10.2, 10.1], [1.0, 1.1, 1.2, 1.05, 1.01], None);
        assert_eq!(certainty, Certainty::Shown);
        assert_eq!(text, "10.20 s with A, 1.05 s without: 9.71 times as fast, p = 0.008");
    }

    #[test]
    fn equal_runs_refute_the_cause() {
        let (certainty, _) = judged([10.0, 11.0, 10.5, 10.2, 10.1], [10.3, 10.9, 10.4, 10.2, 9.9], None);
        assert_eq!(certainty, Certainty::Hypothesis);
    }

    #[test]
    fn slower_runs_show_nothing() {
        let (certainty, _) = judged([1.0, 1.1, 1.2, 1.05, 1.01], [10.0, 11.0, 10.5, 10.2, 10.1], None);
        assert_eq!(certainty, Certainty::Hypothesis);
    }

    #[test]
    fn runs_by_the_clock_need_a_rate() {
        let same = [2.0, 2.01, 2.0, 2.02, 2.0];
        let (certainty, text) = judged(same, same, None);
        assert_eq!((certainty, text.starts_with("not verified")), (Certainty::Likely, true), "{text}");
        let (certainty, _) =
            judged([100.0, 110.0, 105.0, 102.0, 101.0], [990.0, 995.0, 999.0, 980.0, 970.0], Some("rec/s"));
        assert_eq!(certainty, Certainty::Shown);
    }

    #[test]
    fn chosen_word_is_set_back() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen("30000\n"), "30000");
    }

    #[test]
    fn rate_is_the_last_number() {
        assert_eq!(number_before("1 rec/s\nrun: 2.5 rec/s\n", "rec/s"), Some(2.5));
        assert_eq!(number_before("many rec/s", "rec/s"), None);
    }
}

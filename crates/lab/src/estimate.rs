//! Estimates how long a plan will take, from durations in earlier runs or from defaults. Pure: `execute.rs` has the
//! clock and stores the seconds with each run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The artifact with a run's durations: lines of name, tab, seconds.
pub(crate) const TIMES: &str = "times";
/// Name of a boot in that artifact.
pub(crate) const BOOT: &str = "boot";

/// Default duration of a boot [seconds].
const BOOT_DEFAULT_S: f64 = 10.0;
/// Default duration of a job [seconds].
const JOB_DEFAULT_S: f64 = 3.0;
/// Larger values in a stored file are ignored [seconds].
const LONGEST_S: f64 = 86_400.0;

/// How long a plan will take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Wall time [seconds].
    pub seconds: f64,
    /// Jobs and boots with a duration from earlier runs.
    pub known: usize,
    /// Jobs and boots with a default duration.
    pub guessed: usize,
}

/// Durations of earlier runs by name [seconds].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Times(BTreeMap<String, Vec<f64>>);

impl Times {
    /// Adds the durations of a run; skips invalid lines.
    pub(crate) fn add(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, seconds)) = line.split_once('\t') else { continue };
            match seconds.parse::<f64>() {
                Ok(seconds) if (0.0..LONGEST_S).contains(&seconds) => {
                    self.0.entry(name.to_owned()).or_default().push(seconds);
                }
                _ => {}
            }
        }
    }

    /// Returns the median duration of a boot or job.
    fn of(&self, name: &str) -> Option<f64> {
        let mut seconds = self.0.get(name)?.clone();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }

    /// Estimates how long these boots and jobs take on `machines` machines.
    pub(crate) fn estimate<'a>(&self, names: impl IntoIterator<Item = &'a str>, machines: usize) -> Estimate {
        let (mut all, mut known, mut guessed) = (0.0, 0, 0);
        for name in names {
            match self.of(name) {
                Some(seconds) => {
                    all += seconds;
                    known += 1;
                }
                None => {
                    all += if name == BOOT { BOOT_DEFAULT_S } else { JOB_DEFAULT_S };
                    guessed += 1;
                }
            }
        }
        Estimate { seconds: all / machines.clamp(1, (known + guessed).max(1)) as f64, known, guessed }
    }
}

/// Formats durations as they are stored.
pub(crate) fn to_text(times: &[(String, f64)]) -> String {
    let mut text = String::new();
    for (name, seconds) in times {
        // Writing into a string cannot fail.
        writeln!(text, "{name}\t{seconds:.3}").ok();
    }
    text
}

/// Returns the remaining seconds when `done` of `jobs` jobs are done after `elapsed_s`: a mean of the estimate and of
/// the pace so far, which counts more as more jobs are done.
#[must_use]
pub fn remaining_s(estimate: &Estimate, done: u64, jobs: u64, elapsed_s: f64) -> f64 {
    if jobs == 0 || done >= jobs {
        return 0.0;
    }
    let (done, jobs) = (done as f64, jobs as f64);
    let left = jobs - done;
    let estimated = estimate.seconds * left / jobs;
    let pace = if done > 0.0 { elapsed_s.max(0.0) * left / done } else { estimated };
    let share = done / jobs;
    share * pace + (1.0 - share) * estimated
}

#[cfg(test)]
mod tests {
    use super::{BOOT, Estimate, Times, remaining_s, to_text};

    #[test]
    fn what_took_how_long_comes_back_from_its_text() {
        let mut times = Times::default();
        times.add(&to_text(&[(BOOT.to_owned(), 4.0), ("getppid".to_owned(), 0.5)]));
        times.add("getppid\t1.5\ngetppid\t0.75\nfork\t-1\nfork\tNaN\nfork\t1e300\nfork\nnonsense");
        assert_eq!((times.of("getppid"), times.of(BOOT), times.of("fork")), (Some(0.75), Some(4.0), None));
    }

    #[test]
    fn known_and_guessed_are_told_apart_and_machines_share_the_work() {
        let mut times = Times::default();
        let names = [BOOT, "getppid", "getppid"];
        assert_eq!(times.estimate(names, 1), Estimate { seconds: 16.0, known: 0, guessed: 3 });
        times.add("boot\t4\ngetppid\t1\n");
        assert_eq!(times.estimate(names, 1), Estimate { seconds: 6.0, known: 3, guessed: 0 });
        assert_eq!(times.estimate(names, 2), Estimate { seconds: 3.0, known: 3, guessed: 0 });
        assert_eq!(times.estimate(["fork", "getppid"], 64), Estimate { seconds: 2.0, known: 1, guessed: 1 });
        assert_eq!(times.estimate([], 2), Estimate { seconds: 0.0, known: 0, guessed: 0 });
    }

    #[test]
    fn what_is_left_goes_from_the_estimate_to_the_pace() {
        let estimate = Estimate { seconds: 100.0, known: 10, guessed: 0 };
        let left = |done, jobs, elapsed_s| format!("{:.1}", remaining_s(&estimate, done, jobs, elapsed_s));
        assert_eq!(left(0, 10, 50.0), "100.0");
        // Half is done in a tenth of the time: half of the pace's 10 s, half of the estimate's 50 s.
        assert_eq!(left(5, 10, 10.0), "30.0");
        assert_eq!([left(10, 10, 10.0), left(0, 0, 10.0)], ["0.0", "0.0"]);
        assert!(remaining_s(&estimate, 9, 10, -5.0) >= 0.0);
    }
}

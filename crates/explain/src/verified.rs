//! Decides by runs with and without a suspect whether it is the cause.

use crate::finding::{Certainty, Finding};

/// Chance of ranks so uneven without a difference, at most.
const LEVEL: f64 = 0.01;
/// The least change that counts (percent).
const LEAST_PERCENT: f64 = 5.0;
/// Runs that all take the same time, to this part, end by the clock.
const SAME: f64 = 0.03;

/// Decides what runs with and without a suspect show: durations (s), or rates that the program printed. `suspect` names it.
#[must_use]
pub fn judge_runs(finding: Finding, suspect: &str, rate: Option<&str>, [with, without]: [&[f64]; 2]) -> Finding {
    let source = "5 runs of each, in turns";
    let (Some(test), Some(before), Some(after)) =
        (stats::rank_test(with, without), stats::median(with), stats::median(without))
    else {
        return finding.with("not verified: no values".into(), source, "", "");
    };
    let unit = rate.map_or(" s".to_owned(), |text| format!(" {text}"));
    let numbers = format!("{before:.2}{unit} with {suspect}, {after:.2}{unit} without");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(with: [f64; 5], without: [f64; 5], rate: Option<&str>) -> (Certainty, String) {
        let finding = judge_runs(Finding::new("x".into(), 0.5), "A", rate, [&with, &without]);
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
}

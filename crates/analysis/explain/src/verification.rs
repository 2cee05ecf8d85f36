//! Decides by runs with and without a suspect whether it is the cause.

use std::collections::BTreeMap;

use crate::finding::{Certainty, Finding};

/// Chance of ranks so uneven without a difference, at most.
const LEVEL: f64 = 0.01;
/// The least change that counts (percent).
const LEAST_PERCENT: f64 = 5.0;
/// Runs that all take the same time, to this part, end by the clock.
const SAME: f64 = 0.03;
/// Letters of a line that are quoted.
const LINE: usize = 60;

/// Runs with and without one of several suspects.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    /// How many suspects are tried: each may look guilty by chance.
    pub suspects: usize,
    /// What the runs with it have: durations (s), or rates that the program printed.
    pub with: &'a [f64],
    /// What those without it have.
    pub without: &'a [f64],
}

/// Returns how many runs of each side separate the sides by their ranks, for a number of suspects.
#[must_use]
pub fn runs_for(suspects: usize) -> usize {
    match suspects {
        0 | 1 => 5,
        2 => 6,
        _ => 7,
    }
}

/// Decides what runs with and without a suspect show. `suspect` names it.
#[must_use]
pub fn judge_runs(finding: Finding, suspect: &str, rate: Option<&str>, runs: Runs) -> Finding {
    let Runs {
        suspects,
        with,
        without,
    } = runs;
    let source = match with.len() {
        5 => "5 runs of each, in turns",
        6 => "6 runs of each, in turns",
        _ => "7 runs of each, in turns",
    };
    let (Some(test), Some(before), Some(after)) = (
        stats::rank_test(with, without),
        stats::median(with),
        stats::median(without),
    ) else {
        return finding.with("not verified: no values".into(), source, "", "");
    };
    let unit = rate.map_or(" s".to_owned(), |text| format!(" {text}"));
    let numbers = format!("{before:.2}{unit} with {suspect}, {after:.2}{unit} without");
    let all = with.iter().chain(without).copied();
    let least = all.clone().fold(f64::INFINITY, f64::min);
    let most = all.fold(0.0, f64::max);
    if rate.is_none() && most - least < SAME * most {
        let text = format!(
            "not verified: it always runs for {before:.2} s; give --rate with what it prints"
        );
        return finding.with(text, source, "", "");
    }
    let gain = if rate.is_some() {
        after / before
    } else {
        before / after
    };
    let is_shown = test.p < LEVEL / suspects.max(1) as f64 && gain > 1.0 + LEAST_PERCENT / 100.0;
    let certainty = if is_shown {
        Certainty::Shown
    } else {
        Certainty::Hypothesis
    };
    let text = if is_shown {
        format!("{numbers}: {gain:.2} times as fast")
    } else {
        format!("{numbers}: no gain")
    };
    Finding {
        certainty,
        gain: is_shown.then_some(gain),
        ..finding
    }
    .with(
        format!("{text}, p = {:.3}", test.p),
        source,
        if suspects > 1 {
            "p < 0.01 for all suspects, 5 %"
        } else {
            "p < 0.01, 5 %"
        },
        "chance",
    )
}

/// Compares what the runs with a suspect printed with what one without it printed, but for the
/// numbers. A program that does something else without the suspect is faster or slower for that,
/// and shows nothing.
///
/// # Errors
/// Returns what differs. Lines that the runs with it do not share are not compared.
pub fn compare_outputs(with: &[String], without: &str) -> Result<(), String> {
    let all: Vec<BTreeMap<String, usize>> = with.iter().map(|text| lines(text)).collect();
    let [first, further @ ..] = all.as_slice() else {
        return Ok(());
    };
    let own = lines(without);
    let is_fixed = further.iter().all(|other| other == first);
    let mut in_all = first.keys().filter(|line| {
        further
            .iter()
            .all(|other| other.get(*line) == first.get(*line))
    });
    if let Some(line) = in_all.find(|line| own.get(*line) != first.get(*line)) {
        return Err(format!("it does not print `{}`", shortened(line)));
    }
    match own
        .keys()
        .find(|line| is_fixed && !first.contains_key(*line))
    {
        Some(line) => Err(format!("it prints `{}`", shortened(line))),
        None => Ok(()),
    }
}

/// Counts the lines of a text, with a mark for each number.
fn lines(text: &str) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in text.lines() {
        let mut masked = String::new();
        let mut is_number = false;
        for letter in line.chars() {
            let continues = letter.is_ascii_digit() || is_number && letter == '.';
            if !continues {
                masked.push(letter);
            } else if !is_number {
                masked.push('#');
            }
            is_number = continues;
        }
        *counted
            .entry(masked.split_whitespace().collect::<Vec<_>>().join(" "))
            .or_default() += 1;
    }
    counted
}

fn shortened(line: &str) -> String {
    let short: String = line.chars().take(LINE).collect();
    if short.len() < line.len() {
        format!("{short}…")
    } else {
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(with: [f64; 5], without: [f64; 5], rate: Option<&str>) -> (Certainty, String) {
        let finding = judge_runs(
            Finding::new("x".into(), 0.5),
            "A",
            rate,
            Runs {
                suspects: 1,
                with: &with,
                without: &without,
            },
        );
        (finding.certainty, finding.evidence[0].quantity.clone())
    }

    #[test]
    fn separate_runs_show_the_cause() {
        let (certainty, text) = judged(
            [10.0, 11.0, 10.5, 10.2, 10.1],
            [1.0, 1.1, 1.2, 1.05, 1.01],
            None,
        );
        assert_eq!(certainty, Certainty::Shown);
        assert_eq!(
            text,
            "10.20 s with A, 1.05 s without: 9.71 times as fast, p = 0.008"
        );
    }

    #[test]
    fn equal_runs_refute_the_cause() {
        let (certainty, _) = judged(
            [10.0, 11.0, 10.5, 10.2, 10.1],
            [10.3, 10.9, 10.4, 10.2, 9.9],
            None,
        );
        assert_eq!(certainty, Certainty::Hypothesis);
    }

    #[test]
    fn slower_runs_show_nothing() {
        let (certainty, _) = judged(
            [1.0, 1.1, 1.2, 1.05, 1.01],
            [10.0, 11.0, 10.5, 10.2, 10.1],
            None,
        );
        assert_eq!(certainty, Certainty::Hypothesis);
    }

    #[test]
    fn runs_by_the_clock_need_a_rate() {
        let same = [2.0, 2.01, 2.0, 2.02, 2.0];
        let (certainty, text) = judged(same, same, None);
        assert_eq!(
            (certainty, text.starts_with("not verified")),
            (Certainty::Likely, true),
            "{text}"
        );
        let (certainty, _) = judged(
            [100.0, 110.0, 105.0, 102.0, 101.0],
            [990.0, 995.0, 999.0, 980.0, 970.0],
            Some("rec/s"),
        );
        assert_eq!(certainty, Certainty::Shown);
    }

    #[test]
    fn several_suspects_need_more_runs() {
        let (with, without): (Vec<f64>, Vec<f64>) = (0..7)
            .map(|n| (10.0 + f64::from(n), 1.0 + f64::from(n) / 10.0))
            .unzip();
        let is_shown = |suspects: usize, runs: usize| {
            let runs = Runs {
                suspects,
                with: &with[..runs],
                without: &without[..runs],
            };
            judge_runs(Finding::new("x".into(), 0.5), "A", None, runs).certainty == Certainty::Shown
        };
        assert!(is_shown(1, runs_for(1)) && is_shown(2, runs_for(2)) && is_shown(4, runs_for(4)));
        assert!(
            !is_shown(2, 5),
            "one of two suspects looks guilty by chance twice as often"
        );
    }

    #[test]
    fn other_output_proves_nothing() {
        let with = ["12.5", "13"].map(|rate| format!("start\n  {rate} rec/s\n"));
        assert_eq!(compare_outputs(&with, "start\n170 rec/s\n"), Ok(()));
        assert_eq!(
            compare_outputs(&with, "start\n"),
            Err("it does not print `# rec/s`".into())
        );
        assert_eq!(
            compare_outputs(&with, "start\n1 rec/s\nno library\n"),
            Err("it prints `no library`".into())
        );
        assert_eq!(
            compare_outputs(&with, ""),
            Err("it does not print `# rec/s`".into())
        );
        // What varies by itself is not compared.
        let varying = ["a\nx\n".to_owned(), "a\ny\n".to_owned()];
        assert_eq!(compare_outputs(&varying, "a\nz\n"), Ok(()));
        assert_eq!(
            compare_outputs(&varying, "z\n"),
            Err("it does not print `a`".into())
        );
        assert_eq!(compare_outputs(&[], "z"), Ok(()));
    }
}

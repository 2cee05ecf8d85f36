//! Numbers and units as programs print them in result files.

use model::Direction::{self, HigherIsBetter, LowerIsBetter};

use crate::tools::output::without_separators;

/// Largest number: sums and products with a factor stay finite.
const NUMBER_MAX: f64 = 1e100;
/// Why such a text is no number.
pub(super) const UNMEASURED: &str = "not measured";
/// Texts that stand where nothing was measured.
const BLANKS: [&str; 11] = [
    "",
    "-",
    "nan",
    "-nan",
    "+nan",
    "n/a",
    "na",
    "null",
    "none",
    "<not counted>",
    "<not supported>",
];
/// Units of time, in lower case.
const TIMES: [&str; 27] = [
    "ns",
    "nsec",
    "nsecs",
    "nanosecond",
    "nanoseconds",
    "us",
    "µs",
    "μs",
    "usec",
    "usecs",
    "microsecond",
    "microseconds",
    "ms",
    "msec",
    "msecs",
    "millisecond",
    "milliseconds",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "minutes",
    "cycles",
    "clocks",
    "ps",
    "h",
];
/// Units of work for each second that do not end as [`PER_SECOND`], in lower case.
const RATES: [&str; 14] = [
    "iops", "rps", "tps", "qps", "fps", "pps", "mips", "mflops", "gflops", "mwips", "lps", "lpm",
    "kbps", "dmips",
];
/// Ends of units of work for each second, in lower case.
const PER_SECOND: [&str; 7] = [
    "/s",
    "/sec",
    "/ sec",
    "/second",
    " per second",
    " per sec",
    "_per_second",
];

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// Hours, minutes and seconds: `1:02:03.5`.
    Clock,
    /// Commas are between thousands: `3,472`.
    Grouped,
}

impl Form {
    /// Returns the number as it is written plainly.
    pub(super) fn plain(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Clock => seconds(text).map_or_else(|| text.to_owned(), |s| s.to_string()),
            Self::Grouped => text.replace(',', ""),
        }
    }
}

fn seconds(clock: &str) -> Option<f64> {
    let mut total = 0.0;
    for part in clock.trim().split(':') {
        let part: f64 = part.parse().ok().filter(|part: &f64| *part >= 0.0)?;
        total = total * 60.0 + part;
    }
    Some(total)
}

/// Parses a number; the error says what it is instead.
///
/// Takes `1,234.5`, `1.831.065.743` and `3,4814`. `3,472` is either, so it is refused.
pub(super) fn parse_number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let text = text.strip_suffix('%').unwrap_or(text).trim_end();
    if BLANKS.contains(&text.to_lowercase().as_str()) {
        return Err(UNMEASURED.to_owned());
    }
    let plain = without_separators(text).or_else(|| as_point(text));
    match plain.as_deref().unwrap_or(text).parse::<f64>() {
        Ok(number) if number.is_finite() && number.abs() <= NUMBER_MAX => Ok(number),
        _ => Err(format!("`{}` is not a number", shorten(text))),
    }
}

/// Returns a number with a decimal comma, or with points between its thousands, as Rust writes it.
fn as_point(text: &str) -> Option<String> {
    let (whole, fraction) = text
        .split_once(',')
        .map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut groups = whole.trim_start_matches('-').split('.');
    let first = groups.next()?;
    let groups: Vec<&str> = groups.collect();
    let all_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_grouped = first.len() <= 3 && groups.iter().all(|group| group.len() == 3);
    let is_whole = all_digits(first) && groups.iter().all(|group| all_digits(group)) && is_grouped;
    let is_certain = match fraction {
        None => groups.len() > 1,
        Some(fraction) => all_digits(fraction) && (!groups.is_empty() || fraction.len() != 3),
    };
    let is_long = fraction.is_some() && groups.is_empty() && all_digits(first);
    if !is_certain || !(is_whole || is_long) {
        return None;
    }
    let whole = whole.replace('.', "");
    Some(match fraction {
        Some(fraction) => format!("{whole}.{fraction}"),
        None => whole,
    })
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

/// Returns the good direction of a unit that has only one: less time, more work for each second.
pub(super) fn direction_of_unit(unit: &str) -> Option<Direction> {
    let unit = unit.trim().to_lowercase();
    let (head, per) = unit.split_once('/').unwrap_or((&unit, ""));
    if TIMES.contains(&head.trim()) && !TIMES.contains(&per) {
        return Some(LowerIsBetter);
    }
    let is_rate =
        RATES.contains(&unit.as_str()) || PER_SECOND.iter().any(|end| unit.ends_with(end));
    is_rate.then_some(HigherIsBetter)
}

/// Returns the direction that a word of a file names; `None` for any other word.
pub(super) fn direction_of_word(word: &str) -> Option<Direction> {
    match word.trim().to_lowercase().as_str() {
        "lower"
        | "lib"
        | "smaller"
        | "less"
        | "down"
        | "lower_is_better"
        | "customsmallerisbetter"
        | "false" => Some(LowerIsBetter),
        "higher"
        | "hib"
        | "bigger"
        | "more"
        | "up"
        | "higher_is_better"
        | "custombiggerisbetter"
        | "true" => Some(HigherIsBetter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::Direction::{HigherIsBetter, LowerIsBetter};
    use proptest::prelude::*;

    use super::{Form, direction_of_unit, parse_number};

    #[test]
    fn separators_of_all_countries_are_read() {
        for (text, number) in [
            ("1,234,567", 1_234_567.0),
            ("1,234.5", 1234.5),
            ("1.831.065.743", 1_831_065_743.0),
            ("3,4814", 3.4814),
            ("1.234,5", 1234.5),
            ("12 %", 12.0),
            (" 4.06e-07", 4.06e-7),
        ] {
            assert_eq!(parse_number(text), Ok(number), "{text}");
        }
        for text in ["3,472", "1,2,3", "inf", "12V.43", "0x10"] {
            assert!(parse_number(text).unwrap_err().ends_with("not a number"));
        }
        for text in ["<not counted>", "-nan", ""] {
            assert_eq!(parse_number(text), Err("not measured".to_owned()));
        }
    }

    #[test]
    fn forms_are_written_plainly() {
        assert_eq!(Form::Clock.plain("1:02:03.5"), "3723.5");
        assert_eq!(Form::Clock.plain("0:x"), "0:x");
        assert_eq!(Form::Grouped.plain("3,472"), "3472");
    }

    #[test]
    fn only_times_and_rates_have_directions() {
        for unit in ["ns/iter", "s", "Seconds", "usec", "cycles"] {
            assert_eq!(direction_of_unit(unit), Some(LowerIsBetter), "{unit}");
        }
        for unit in ["MB/s", "requests per second", "TPS", "Ops/sec"] {
            assert_eq!(direction_of_unit(unit), Some(HigherIsBetter), "{unit}");
        }
        for unit in ["", "MB", "%", "score", "s/s"] {
            assert_ne!(direction_of_unit(unit), Some(LowerIsBetter), "{unit}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_number_or_refused(text in "\\PC{0,20}") {
            if let Ok(number) = parse_number(&text) {
                prop_assert!(number.is_finite());
            }
        }
    }
}

//! Numbers and units as programs print them in result files.

use model::Direction::{self, HigherIsBetter, LowerIsBetter};

use crate::tools::output::without_separators;

/// Largest number: sums and products with a factor stay finite.
const NUMBER_MAX: f64 = 1e100;
/// Why such a text is no number.
pub(super) const UNMEASURED: &str = "not measured";
/// Texts that stand where nothing was measured.
const BLANKS: [&str; 12] = [
    "",
    "-",
    "---",
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
    /// Seconds, or a number with its unit: `80.8us`, `5ms`, `0.2s`.
    Duration,
}

impl Form {
    /// Returns the number as it is written plainly.
    pub(super) fn plain(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Clock => seconds(text).map_or_else(|| text.to_owned(), |s| s.to_string()),
            Self::Grouped => text.replace(',', ""),
            Self::Duration => in_seconds(text).map_or_else(|| text.to_owned(), |s| s.to_string()),
        }
    }
}

/// Returns the seconds of a number with a unit of time behind it.
fn in_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = text.trim_end_matches(char::is_alphabetic);
    let per_second = match &text[number.len()..] {
        "s" => 1.0,
        "ms" => 1e3,
        "us" | "µs" | "μs" => 1e6,
        "ns" => 1e9,
        _ => return None,
    };
    Some(number.trim_end().parse::<f64>().ok()? / per_second)
}

fn seconds(clock: &str) -> Option<f64> {
    let mut total = 0.0;
    for part in clock.trim().split(':') {
        let part: f64 = part.parse().ok().filter(|part: &f64| *part >= 0.0)?;
        total = total * 60.0 + part;
    }
    Some(total)
}

/// The decimal sign of a file's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sign {
    #[default]
    Unknown,
    Point,
    Comma,
}

impl Sign {
    /// Returns the sign that all numbers of a text allow; `Unknown` if they contradict each other.
    pub(super) fn of_numbers<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut known = Self::Unknown;
        for sign in texts.flat_map(numbers_in).map(Self::of_number) {
            match (known, sign) {
                (_, Self::Unknown) => {}
                (Self::Unknown, sign) => known = sign,
                (known, sign) if known != sign => return Self::Unknown,
                _ => {}
            }
        }
        known
    }

    /// Returns the sign if the number can be read in one way only.
    fn of_number(text: &str) -> Self {
        let at = text.rfind(['.', ',']);
        let Some((whole, fraction)) = at.map(|at| (&text[..at], &text[at + 1..])) else {
            return Self::Unknown;
        };
        let is_point = text[whole.len()..].starts_with('.');
        let (own, other) = if is_point {
            (Self::Point, Self::Comma)
        } else {
            (Self::Comma, Self::Point)
        };
        let mut separators = whole.chars().filter(|letter| !letter.is_ascii_digit());
        let Some(first) = separators.next() else {
            let is_either = fraction.len() == 3 && whole.len() <= 3 && !whole.starts_with('0');
            return if is_either { Self::Unknown } else { own };
        };
        let mut groups = whole.split(first);
        let is_grouped = groups.next().is_some_and(|group| group.len() <= 3)
            && groups.all(|group| group.len() == 3)
            && separators.all(|letter| letter == first);
        match (first == '.') == is_point {
            _ if !is_grouped || whole.starts_with('0') => Self::Unknown,
            true if fraction.len() == 3 => other,
            true => Self::Unknown,
            false => own,
        }
    }
}

/// Returns the words of a text that are numbers with or without separators.
fn numbers_in(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |letter: char| letter.is_whitespace() || "()%#\"'".contains(letter);
    text.split(is_end).filter(|word| {
        let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
        is_digit(word.bytes().next())
            && is_digit(word.bytes().next_back())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b".,".contains(&byte))
    })
}

/// Parses a number of a file whose decimal sign may be known; the error says what it is instead.
pub(super) fn parse_number_as(text: &str, sign: Sign) -> Result<f64, String> {
    let text = text.trim();
    let is_either = {
        let digits = text.trim_end_matches('%').trim_end();
        let parts = digits.split_once(['.', ',']);
        parts.is_some_and(|(whole, fraction)| {
            let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            (1..=3).contains(&whole.len())
                && !whole.starts_with('0')
                && fraction.len() == 3
                && all_digits(whole)
                && all_digits(fraction)
        })
    };
    match sign {
        Sign::Comma if is_either => parse_number(&text.replace('.', "").replace(',', ".")),
        Sign::Point if is_either => parse_number(&text.replace(',', "")),
        _ => parse_number(text),
    }
}

/// Parses a number; the error says what it is instead.
///
/// Takes `1,234.5`, `1.831.065.743`, `3,4814` and `0,160`. `3,472` is either, so it is refused.
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
        Some(fraction) => {
            // No group of thousands begins with 0.
            let is_decimal = !groups.is_empty() || fraction.len() != 3 || first == "0";
            all_digits(fraction) && is_decimal
        }
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

    use super::{Form, Sign, direction_of_unit, parse_number, parse_number_as};

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
    fn decimal_sign_is_decided_once_per_file() {
        for (line, sign, text, number) in [
            (
                "11 1,31 insn (0,68%)",
                Sign::Comma,
                "162.032",
                Ok(162_032.0),
            ),
            ("1.101,01 msec", Sign::Comma, "3,308", Ok(3.308)),
            ("3.642.649.330 #", Sign::Comma, "1.024", Ok(1024.0)),
            ("28,123,456 # 2.1", Sign::Point, "3,472", Ok(3472.0)),
            ("0.0124 1234.567", Sign::Point, "3.472", Ok(3.472)),
            ("1,31 2.45", Sign::Unknown, "162.032", Ok(162.032)),
            (
                "162.032 2.1.4 1,2,3 0.123.456",
                Sign::Unknown,
                "0,160",
                Ok(0.16),
            ),
        ] {
            assert_eq!(Sign::of_numbers([line].into_iter()), sign, "{line}");
            assert_eq!(parse_number_as(text, sign), number, "{line}");
        }
        assert!(parse_number_as("3,472", Sign::Unknown).is_err());
    }

    #[test]
    fn forms_are_written_plainly() {
        assert_eq!(Form::Clock.plain("1:02:03.5"), "3723.5");
        assert_eq!(Form::Clock.plain("0:x"), "0:x");
        assert_eq!(Form::Grouped.plain("3,472"), "3472");
        for (text, seconds) in [
            ("80.5us", "0.0000805"),
            ("5 ms", "0.005"),
            ("2s", "2"),
            ("0,3", "0,3"),
            ("5m", "5m"),
        ] {
            assert_eq!(Form::Duration.plain(text), seconds);
        }
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
            for sign in [Sign::Unknown, Sign::Point, Sign::Comma] {
                if let Ok(number) = parse_number_as(&text, sign) {
                    prop_assert!(number.is_finite());
                }
            }
        }

        #[test]
        fn sign_of_any_number_reads_it_right(number in 0_u64..100_000_000, cents in 0_u32..100) {
            let grouped = |by: char| {
                let digits = number.to_string();
                let mut text = String::new();
                for (at, digit) in digits.chars().enumerate() {
                    if at > 0 && (digits.len() - at) % 3 == 0 {
                        text.push(by);
                    }
                    text.push(digit);
                }
                text
            };
            for (by, point, sign) in [(',', '.', Sign::Point), ('.', ',', Sign::Comma)] {
                let text = format!("{}{point}{cents:02}", grouped(by));
                prop_assert_eq!(Sign::of_numbers([text.as_str()].into_iter()), sign);
                let expected: f64 = format!("{number}.{cents:02}").parse().unwrap();
                prop_assert_eq!(parse_number_as(&text, sign), Ok(expected));
                let whole: f64 = number.to_string().parse().unwrap();
                prop_assert_eq!(parse_number_as(&grouped(by), sign), Ok(whole));
            }
        }
    }
}

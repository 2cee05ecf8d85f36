//! Formats numbers for people: as many digits as fit into the columns; also seeds and dates.

use model::{Run, UnixTime};
use stats::Spread;

/// Formats a number with as many decimals as fit, at most two; with an exponent if even whole
/// numbers do not fit. Small numbers keep three digits.
#[must_use]
pub fn value(number: f64, width: usize) -> String {
    let size = number.abs();
    if size > 0.0 && size < 0.01 {
        return powers(number, width);
    }
    let decimals = if size > 0.0 && size < 1.0 { 4 } else { 2 };
    fitting(number, decimals, width)
}

/// Formats a percentage with two decimals, or fewer to fit.
#[must_use]
pub fn percent(number: f64, width: usize) -> String {
    fitting(number, 2, width)
}

/// Formats a percentage with its sign, for prose: `+4.29%`.
#[must_use]
pub fn signed_percent(number: f64) -> String {
    let text = format_fixed(number, 2);
    if number > 0.0 && text != "0.00" {
        format!("+{text}%")
    } else {
        format!("{text}%")
    }
}

/// Formats a margin for prose, without trailing zeros: `1%`, `0.5%`.
#[must_use]
pub fn margin(percent: f64) -> String {
    format!("{percent}%")
}

/// Formats a ratio: three decimals, or fewer to fit.
#[must_use]
pub fn ratio(number: f64, width: usize) -> String {
    fitting(number, 3, width)
}

/// Formats both ends of an interval, with the same number of decimals.
#[must_use]
pub fn interval(spread: Spread, width: usize) -> String {
    ends(spread, 2, width)
}

/// Formats both ends of a ratio's interval: three decimals, or fewer to fit.
#[must_use]
pub fn ratio_interval(spread: Spread, width: usize) -> String {
    ends(spread, 3, width)
}

fn ends(spread: Spread, decimals: usize, width: usize) -> String {
    for decimals in (0..=decimals).rev() {
        let [min, max] = [spread.min, spread.max].map(|end| format_fixed(end, decimals));
        let text = format!("{min}..{max}");
        if text.len() <= width {
            return text;
        }
    }
    format!("{:.0e}..{:.0e}", spread.min, spread.max)
}

fn fitting(number: f64, decimals: usize, width: usize) -> String {
    (0..=decimals)
        .rev()
        .map(|decimals| format_fixed(number, decimals))
        .find(|text| text.len() <= width)
        .unwrap_or_else(|| powers(number, width))
}

fn powers(number: f64, width: usize) -> String {
    (0..=2)
        .rev()
        .map(|digits| format!("{number:.digits$e}"))
        .find(|text| text.len() <= width)
        .unwrap_or_else(|| format!("{number:.0e}"))
}

/// Formats a number with decimals, without a minus before zero.
fn format_fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|b| b == b'0' || b == b'.') => digits.to_owned(),
        _ => text,
    }
}

/// Formats seeds: `seed 3`, `seeds 1-5`, `seeds 1, 7, 20-29`.
#[must_use]
pub fn seed_list(seeds: &[u64]) -> String {
    match seeds {
        [] => "no seed".to_owned(),
        [one] => format!("seed {one}"),
        many => format!("seeds {}", ranges(many)),
    }
}

fn ranges(seeds: &[u64]) -> String {
    let mut texts = Vec::new();
    let mut rest = seeds;
    while let Some(&first) = rest.first() {
        let length = rest
            .iter()
            .zip(first..=u64::MAX)
            .take_while(|(seed, expected)| **seed == *expected)
            .count();
        if length > 2 {
            texts.push(format!("{first}-{}", rest[length - 1]));
            rest = &rest[length..];
        } else {
            texts.push(first.to_string());
            rest = &rest[1..];
        }
    }
    texts.join(", ")
}

/// Formats a duration (s) in at most two units: `59s`, `5m`, `2h10m`, `1d03h`.
#[must_use]
pub fn duration(seconds: u64) -> String {
    let minutes = seconds / 60;
    let hours = seconds / 3600;
    let days = seconds / 86_400;
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m"),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// Formats a date in UTC to the minute: `2026-11-20 13:12`.
#[must_use]
pub fn minute(time: UnixTime) -> String {
    time.date().replacen('T', " ", 1).chars().take(16).collect()
}

/// Formats the start of a run; one that is not known is called so.
#[must_use]
pub fn start_date(started_unix: UnixTime) -> String {
    Run::known_start(started_unix).map_or_else(|| "not known".to_owned(), UnixTime::date)
}

/// Formats a count with its noun, in singular or plural.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};
    use stats::Spread;

    use super::{count, interval, percent, ratio, seed_list, signed_percent, value};

    #[test]
    fn values_keep_fitting_decimals() {
        for (number, text) in [
            (326.3, "326.30"),
            (0.0, "0.00"),
            (0.5, "0.5000"),
            (0.000_000_326_4, "3.26e-7"),
            (1_234_567.891, "1234567.89"),
            (12_345_678.91, "12345678.9"),
            (1_234_567_890.4, "1234567890"),
            (12_345_678_901.0, "1.23e10"),
            (f64::MAX, "1.80e308"),
        ] {
            assert_eq!(value(number, 10), text);
        }
    }

    #[test]
    fn percentages_keep_fitting_decimals() {
        assert_eq!(percent(-4.294, 7), "-4.29");
        assert_eq!(percent(-0.001, 7), "0.00");
        assert_eq!(percent(-1234.56, 7), "-1234.6");
        assert_eq!(percent(-1_234_567.8, 7), "-1.23e6");
        assert_eq!(signed_percent(4.294), "+4.29%");
        assert_eq!(signed_percent(0.001), "0.00%");
        assert_eq!(signed_percent(-4.0), "-4.00%");
        assert_eq!(ratio(0.957_4, 6), "0.957");
        assert_eq!(ratio(12_345.67, 6), "12346");
    }

    #[test]
    fn intervals_keep_the_same_decimals_at_both_ends() {
        for (min, max, expected) in [
            (-4.314, -4.266, "-4.31..-4.27"),
            (-104.31, -104.27, "-104.3..-104.3"),
            (-1234.56, -1234.5, "-1235..-1234"),
            (-9.9e9, 1e9, "-1e10..1e9"),
        ] {
            assert_eq!(interval(Spread { min, max }, 14), expected);
        }
    }

    #[test]
    fn seeds_are_described_in_few_words() {
        assert_eq!(seed_list(&[]), "no seed");
        assert_eq!(seed_list(&[7]), "seed 7");
        assert_eq!(seed_list(&[1, 2]), "seeds 1, 2");
        assert_eq!(seed_list(&[1, 2, 3, 9, 5, 6, 7]), "seeds 1-3, 9, 5-7");
        assert_eq!(
            seed_list(&[u64::MAX, u64::MAX]),
            format!("seeds {0}, {0}", u64::MAX)
        );
    }

    #[test]
    fn counts_have_a_singular() {
        assert_eq!(count(1, "seed"), "1 seed");
        assert_eq!(count(0, "seed"), "0 seeds");
    }

    proptest! {
        #[test]
        fn lines_fit_their_columns(number in any::<f64>(), other in any::<f64>()) {
            if number.is_finite() && other.is_finite() {
                prop_assert!(value(number, 10).len() <= 10);
                prop_assert!(percent(number, 7).len() <= 7);
                let spread = Spread {
                    min: number.min(other),
                    max: number.max(other),
                };
                prop_assert!(interval(spread, 15).len() <= 15);
            }
        }
    }
}

//! Values of options: numbers within limits, and times.

use std::time::Duration;

pub(crate) fn margin(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a number of percent from 0 to less than 100".into()),
    }
}

/// Returns what reads a whole number between two limits, both included.
pub(crate) fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text
            .parse::<u64>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| match most {
                most if most >= u64::from(u32::MAX) => {
                    format!("expected a whole number of at least {least}")
                }
                _ => format!("expected a whole number from {least} to {most}"),
            })
    }
}

/// Parses a time, in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    lab::seconds(text)
        .ok_or_else(|| "expected a time such as 90s, 30m, 2h or 1d, at most a year".into())
}

pub(crate) fn time(text: &str) -> Result<Duration, String> {
    seconds(text).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::time;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        for wrong in [
            "",
            "h",
            "2",
            "2 h",
            "-1m",
            "99999999999999999999h",
            "9999999999999999h",
            "2д",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}

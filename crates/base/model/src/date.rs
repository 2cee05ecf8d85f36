//! Dates in UTC as texts of RFC 3339, to the second.

/// The last second in RFC 3339: 9999-12-31T23:59:59Z.
const LAST_SECOND: u64 = 253_402_300_799;
const SECONDS_OF_DAY: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01. Years begin in March here, so that the leap day is the last.
const DAYS_TO_1970: u64 = 719_468;

/// Formats seconds since 1970-01-01 UTC: `2026-11-26T14:05:22Z`; beyond the range of RFC 3339, the
/// bare number.
#[must_use]
pub fn format_date(unix: i64) -> String {
    match u64::try_from(unix) {
        Ok(seconds) if seconds <= LAST_SECOND => {
            let [year, month, day] = day_of(seconds / SECONDS_OF_DAY);
            let second = seconds % SECONDS_OF_DAY;
            let hour = second / 3600;
            let minute = second / 60 % 60;
            let second = second % 60;
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        }
        _ => format!("{unix} s"),
    }
}

/// Parses what [`format_date`] writes; `None` for any other text.
#[must_use]
pub fn parse_date(text: &str) -> Option<i64> {
    let year = digits(text, 0, 4)?;
    let month = digits(text, 5, 7)?;
    let day = digits(text, 8, 10)?;
    let hour = digits(text, 11, 13)?;
    let minute = digits(text, 14, 16)?;
    let second = digits(text, 17, 19)?;
    // The months from March on have 31, 30, 31, 30, 31 days, twice and a half.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let of_year = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let days = (365 * year + year / 4 + year / 400 + of_year)
        .checked_sub(year / 100)?
        .checked_sub(DAYS_TO_1970)?;
    let unix = i64::try_from(days * SECONDS_OF_DAY + hour * 3600 + minute * 60 + second).ok()?;
    (format_date(unix) == text).then_some(unix)
}

/// Returns a part of a text as a number, if it has digits only.
fn digits(text: &str, from: usize, to: usize) -> Option<u64> {
    let part = text.get(from..to)?;
    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| part.parse().ok()).flatten()
}

/// Returns year, month and day of a day, counted from 1970-01-01.
fn day_of(days: u64) -> [u64; 3] {
    let days = days + DAYS_TO_1970;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    [
        era * 400 + year_of_era + u64::from(is_next_year),
        if is_next_year { month - 9 } else { month + 3 },
        day,
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{LAST_SECOND, day_of, format_date, parse_date};

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "2026-11-26",
            "2026-02-30T00:00:00Z",
            "2026-11-26T14:05:22+",
            "1969-12-31T23:59:59Z",
            "é",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert_eq!(parse_date("2026-11-26T14:05:22Z"), Some(1_795_701_922));
    }

    proptest! {
        #[test]
        fn dates_are_read_as_written(second in 0..=LAST_SECOND) {
            let unix = i64::try_from(second).unwrap();
            prop_assert_eq!(parse_date(&format_date(unix)), Some(unix));
        }

        #[test]
        fn any_text_is_a_date_or_none(text in any::<String>()) {
            prop_assert!(parse_date(&text).is_none_or(|unix| format_date(unix) == text));
        }

        #[test]
        fn every_day_follows_the_last(days in 0_u64..2_900_000) {
            let [year, month, day] = day_of(days);
            let next = day_of(days + 1);
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let expected = match (day == length, month) {
                (false, _) => [year, month, day + 1],
                (true, 12) => [year + 1, 1, 1],
                (true, _) => [year, month + 1, 1],
            };
            prop_assert_eq!(next, expected);
        }
    }
}

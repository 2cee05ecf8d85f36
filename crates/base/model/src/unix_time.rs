//! Points in time, and their texts of RFC 3339 in UTC, to the second. It leaves clocks to programs,
//! and how times are stored to those that store them.

use std::time::{SystemTime, UNIX_EPOCH};

/// The last second in RFC 3339: 9999-12-31T23:59:59Z.
const LAST_SECOND: u64 = 253_402_300_799;
const SECONDS_OF_DAY: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01. Years begin in March here, so that the leap day is the last.
const DAYS_TO_1970: u64 = 719_468;

/// A point in time, in whole seconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(i64);

impl UnixTime {
    /// The latest one.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns the time so many seconds after 1970-01-01 UTC.
    #[must_use]
    pub const fn new(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Returns the seconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// Returns the time so many seconds later, or the latest one.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_add_unsigned(seconds))
    }

    /// Returns the time so many seconds earlier, or the earliest one.
    #[must_use]
    pub const fn minus_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_sub_unsigned(seconds))
    }

    /// Returns the seconds since an earlier time; `None` if that is later.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> Option<u64> {
        u64::try_from(self.0.saturating_sub(earlier.0)).ok()
    }

    /// Returns the whole days since 1970-01-01 UTC.
    #[must_use]
    pub const fn days(self) -> i64 {
        self.0.div_euclid(SECONDS_OF_DAY.cast_signed())
    }

    /// Formats it: `2026-11-26T14:05:22Z`; beyond the range of RFC 3339, the bare number.
    #[must_use]
    pub fn date(self) -> String {
        match u64::try_from(self.0) {
            Ok(seconds) if seconds <= LAST_SECOND => {
                let [year, month, day] = day_of(seconds / SECONDS_OF_DAY);
                let second = seconds % SECONDS_OF_DAY;
                let hour = second / 3600;
                let minute = second / 60 % 60;
                let second = second % 60;
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
            }
            _ => format!("{} s", self.0),
        }
    }

    /// Parses what [`date`](Self::date) writes; `None` for any other text.
    #[must_use]
    pub fn parse_date(text: &str) -> Option<Self> {
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
        let seconds = days * SECONDS_OF_DAY + hour * 3600 + minute * 60 + second;
        let time = Self(i64::try_from(seconds).ok()?);
        (time.date() == text).then_some(time)
    }
}

impl From<SystemTime> for UnixTime {
    /// Returns the time of a clock; of one that is set before 1970, 1970-01-01 UTC.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }
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

    use super::{LAST_SECOND, UnixTime, day_of};

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
            assert_eq!(UnixTime::parse_date(text), None, "{text}");
        }
        assert_eq!(
            UnixTime::parse_date("2026-11-26T14:05:22Z"),
            Some(UnixTime::new(1_795_701_922))
        );
    }

    #[test]
    fn dates_are_rfc_3339_within_its_range() {
        assert_eq!(UnixTime::new(1_795_180_320).date(), "2026-11-20T13:12:00Z");
        assert_eq!(UnixTime::new(0).date(), "1970-01-01T00:00:00Z");
        assert_eq!(UnixTime::new(951_782_399).date(), "2000-02-28T23:59:59Z");
        assert_eq!(UnixTime::new(951_782_400).date(), "2000-02-29T00:00:00Z");
        assert_eq!(UnixTime::new(4_107_542_400).date(), "2100-03-01T00:00:00Z");
        assert_eq!(
            UnixTime::new(253_402_300_799).date(),
            "9999-12-31T23:59:59Z"
        );
        assert_eq!(UnixTime::new(-1).date(), "-1 s");
        assert_eq!(UnixTime::new(i64::MAX).date(), "9223372036854775807 s");
    }

    proptest! {
        #[test]
        fn dates_are_read_as_written(second in 0..=LAST_SECOND) {
            let time = UnixTime::new(i64::try_from(second).unwrap());
            prop_assert_eq!(UnixTime::parse_date(&time.date()), Some(time));
        }

        #[test]
        fn any_time_has_a_date(seconds in any::<i64>()) {
            prop_assert!(!UnixTime::new(seconds).date().is_empty());
        }

        #[test]
        fn any_text_is_a_date_or_none(text in any::<String>()) {
            prop_assert!(UnixTime::parse_date(&text).is_none_or(|time| time.date() == text));
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

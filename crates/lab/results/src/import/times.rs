//! Times of day as result files have them: seconds or milliseconds since 1970, RFC 3339 with and
//! without a zone, RFC 2822.

use model::UnixTime;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Parses a time; without a zone it is taken for UTC.
pub(super) fn parse_time(text: &str) -> Option<UnixTime> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.len() {
            9 | 10 => text.parse().ok().map(UnixTime::new),
            12 | 13 => text.parse::<i64>().ok().map(|ms| UnixTime::new(ms / 1000)),
            _ => None,
        };
    }
    from_words(text)
        .or_else(|| from_ctime(text))
        .or_else(|| from_digits(text))
}

/// `2026-11-26T14:05:22.5+01:00`, also with a space for the T.
fn from_digits(text: &str) -> Option<UnixTime> {
    let date = text.get(..10)?;
    let time = text.get(11..19)?;
    let time = UnixTime::parse_date(&format!("{date}T{time}Z"))?;
    let zone = text
        .get(19..)?
        .trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    shift(time, zone)
}

/// `Sat, 01 Nov 2025 12:00:00 +0100`.
fn from_words(text: &str) -> Option<UnixTime> {
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split_whitespace();
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    let day: u32 = day.parse().ok()?;
    let time = UnixTime::parse_date(&format!("{year}-{month:02}-{day:02}T{time}Z"))?;
    shift(time, words.next().unwrap_or_default())
}

/// `Fri May 16 23:04:11 2025` and `Mon Jan 08 2024 07:40:42`.
fn from_ctime(text: &str) -> Option<UnixTime> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, one, other] = words[..] else {
        return None;
    };
    let (time, year) = if one.contains(':') {
        (one, other)
    } else {
        (other, one)
    };
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    let day: u32 = day.parse().ok()?;
    UnixTime::parse_date(&format!("{year}-{month:02}-{day:02}T{time}Z"))
}

/// Subtracts a zone such as `+01:00` or `-0530`; a name or none is UTC.
fn shift(time: UnixTime, zone: &str) -> Option<UnixTime> {
    let zone = zone.trim();
    let (is_east, digits) = match zone.split_at_checked(1) {
        Some(("+", digits)) => (true, digits),
        Some(("-", digits)) => (false, digits),
        _ => return Some(time),
    };
    let digits = digits.replace(':', "");
    let hours: u64 = digits.get(..2)?.parse().ok()?;
    let minutes: u64 = digits.get(2..4).unwrap_or("00").parse().ok()?;
    let seconds = hours * 3600 + minutes * 60;
    Some(if is_east {
        time.minus_seconds(seconds)
    } else {
        time.plus_seconds(seconds)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse_time;

    #[test]
    fn times_of_all_kinds_are_read() {
        for (text, date) in [
            ("1522903341", Some("2018-04-05T04:42:21Z")),
            ("1522903341123", Some("2018-04-05T04:42:21Z")),
            ("2018-04-05T06:42:21.5+02:00", Some("2018-04-05T04:42:21Z")),
            ("2018-04-05 04:42:21", Some("2018-04-05T04:42:21Z")),
            (
                "Thu, 05 Apr 2018 00:12:21 -0430",
                Some("2018-04-05T04:42:21Z"),
            ),
            ("Thu Apr  5 04:42:21 2018", Some("2018-04-05T04:42:21Z")),
            ("Thu Apr 05 2018 04:42:21", Some("2018-04-05T04:42:21Z")),
            ("2018:04:05", None),
            ("yesterday", None),
        ] {
            let time = parse_time(text).map(|time| time.date());
            assert_eq!(time.as_deref(), date, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,30}") {
            prop_assert!(parse_time(&text).is_none_or(|time| time.seconds() > -70_000_000_000));
        }
    }
}

//! The time: only the program reads it, the libraries get it as a number.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970-01-01 UTC.
pub(crate) fn now() -> i64 {
    i64::try_from(since_epoch().as_secs()).unwrap_or(i64::MAX)
}

/// Returns the milliseconds since 1970-01-01 UTC.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX)
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

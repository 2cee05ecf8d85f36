//! The time: only the program reads it, the libraries get it as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use model::UnixTime;

/// Returns the time of this host.
pub(crate) fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}

/// Returns the milliseconds since 1970-01-01 UTC.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

//! Programs that run for months start with their host, perhaps before the store's server does.

use std::time::Duration;

use results::HistoryReadError;
use store::StoreError;

use crate::session::{About, LastingState, LogLevel, Stop};

/// Between two tries to reach a server.
const PAUSE: Duration = Duration::from_secs(2);

/// Opens what a server has, and waits for as long as it cannot be reached, or until the process is
/// to stop.
///
/// # Errors
/// If anything else is wrong, or it is to stop.
pub(crate) fn open_when_reached<T>(
    stop: &Stop,
    open: impl Fn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut away = LastingState::default();
    loop {
        match open() {
            Err(error) if is_gone(&error) && !stop.is_asked() => {
                let text = format!("{error}\nMarvin waits for it.");
                away.hold(LogLevel::Warn, About::default(), &text);
                stop.sleep(PAUSE);
            }
            Ok(done) => {
                away.end(About::default(), "the store answers");
                return Ok(done);
            }
            failed => return failed,
        }
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    let of_history = error.downcast_ref::<HistoryReadError>();
    let store = match of_history {
        Some(HistoryReadError::Store(error)) => Some(error),
        _ => error.downcast_ref::<StoreError>(),
    };
    matches!(store, Some(StoreError::Gone { .. }))
}

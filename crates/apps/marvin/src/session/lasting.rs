//! A state that lasts, such as a store that is away: said when it begins, once an hour while it
//! lasts, and when it ends.

use std::time::{Duration, Instant};

use super::log::{About, LogLevel, write_event};
use super::progress::span;

/// Least time between two lines about a state that goes on.
const AGAIN: Duration = Duration::from_hours(1);

/// Most different texts about one state in that time: an error may name another process each time.
const TEXTS_MAX: usize = 4;

/// A state that may hold now.
#[derive(Debug, Default)]
pub(crate) struct LastingState {
    begun: Option<Instant>,
    said: Option<Instant>,
    texts: Vec<String>,
}

impl LastingState {
    /// Notes that the state holds, and says so if that is new.
    pub(crate) fn hold(&mut self, level: LogLevel, about: About<'_>, text: &str) {
        if let Some(lasted) = self.note(text, Instant::now()) {
            write_event(level, about, &format!("{text}{}", format_lasted(lasted)));
        }
    }

    /// Notes that the state does not hold, and says so if it did.
    pub(crate) fn end(&mut self, about: About<'_>, text: &str) {
        if let Some(lasted) = self.note_end(Instant::now()) {
            let lasted = span(lasted.as_secs_f64());
            write_event(LogLevel::Info, about, &format!("{text}, after {lasted}"));
        }
    }

    /// Returns how long the state has held, if that is to be said now.
    fn note(&mut self, text: &str, now: Instant) -> Option<Duration> {
        let begun = *self.begun.get_or_insert(now);
        if self.said.is_none_or(|said| now >= said + AGAIN) {
            self.texts.clear();
        } else if self.texts.len() == TEXTS_MAX || self.texts.iter().any(|said| said == text) {
            return None;
        }
        self.said = Some(now);
        self.texts.push(text.to_owned());
        Some(now - begun)
    }

    /// Ends the state; returns how long it held, if it did.
    fn note_end(&mut self, now: Instant) -> Option<Duration> {
        let begun = std::mem::take(self).begun?;
        Some(now - begun)
    }
}

fn format_lasted(lasted: Duration) -> String {
    if lasted < Duration::from_mins(1) {
        return String::new();
    }
    format!(" (for {} now)", span(lasted.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{LastingState, TEXTS_MAX, format_lasted};

    #[test]
    fn lasting_state_is_said_once_an_hour() {
        let start = Instant::now();
        let mut state = LastingState::default();
        let mut said = Vec::new();
        // Three hours and a half, looked at each five seconds.
        for look in 0..2520_u32 {
            let now = start + Duration::from_secs(5) * look;
            said.extend(
                state
                    .note("the store is away", now)
                    .map(|time| time.as_secs()),
            );
        }
        assert_eq!(said, [0, 3600, 7200, 10800]);
        let now = start + Duration::from_secs(12600);
        assert_eq!(state.note_end(now), Some(Duration::from_secs(12600)));
        assert_eq!(state.note_end(now), None, "the end is said once");
        assert_eq!(state.note("the store is away", now), Some(Duration::ZERO));
    }

    #[test]
    fn changing_texts_of_a_state_are_limited() {
        let start = Instant::now();
        let mut state = LastingState::default();
        let said = (0..700_u32).filter(|look| {
            let now = start + Duration::from_secs(5) * *look;
            state.note(&format!("process {look} has it"), now).is_some()
        });
        assert_eq!(said.count(), TEXTS_MAX);
    }

    #[test]
    fn time_is_named_once_it_matters() {
        assert_eq!(format_lasted(Duration::from_secs(59)), "");
        assert_eq!(
            format_lasted(Duration::from_hours(2)),
            " (for 2 h 0 min now)"
        );
    }
}

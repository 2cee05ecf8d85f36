//! On which channels an alert was reported, in a sentence.

use model::{Told, sanitize_line};

use crate::{Triaged, day};

/// Whether a sentence names people, and says why a channel failed: a published page does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// People and reasons are named.
    Named,
    /// People are counted.
    Counted,
}

/// Returns on which channels an alert was reported and when; `None` for no channel.
#[must_use]
pub fn told_words(triaged: &Triaged, addresses: Addresses) -> Option<String> {
    let all: Vec<String> = triaged
        .told
        .iter()
        .map(|told| one(told, addresses))
        .collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn one(told: &Told, addresses: Addresses) -> String {
    let Some(channel) = &told.channel else {
        return "on no channel, as it was open before this lab reported regressions".to_owned();
    };
    let channel = sanitize_line(channel);
    let whom = match (told.addresses.len(), addresses) {
        (0, _) => channel,
        (_, Addresses::Named) => {
            let names = sanitize_line(&told.addresses.join(", "));
            format!("{names} by {channel}")
        }
        (1, Addresses::Counted) => format!("one address by {channel}"),
        (count, Addresses::Counted) => format!("{count} addresses by {channel}"),
    };
    match told.delivered_unix {
        Some(when) => format!("{whom} on {}", day(when)),
        None if told.failure.is_empty() || addresses == Addresses::Counted => {
            format!("{whom} not yet")
        }
        None => format!("{whom} not yet ({})", sanitize_line(&told.failure)),
    }
}

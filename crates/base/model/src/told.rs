//! On which channels a regression was reported, and when: the names of its notices and of their
//! channels.
//!
//! Those who raise the notices decide what they say, and to whom.

use crate::UnixTime;

/// Subjects of notices about regressions begin so.
const REGRESSION: &str = "regression:";
/// Subjects of notices about regressions that go to those in charge of the code begin so.
const REPORT: &str = "report:";
/// Between the name of a channel and other addresses than its own; no channel's name has a blank.
const TO: &str = " to ";

/// A notice about a regression on one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The series of kernels: `cloud-amd64`.
    pub track: String,
    /// Version of the last kernel without the change, at that time.
    pub after: String,
    /// Version of the first kernel with it.
    pub at: String,
    /// Whether it went to those in charge of the code, beside the notice to the lab's own people.
    pub is_report: bool,
    /// The channel; `None` for no channel: it was open before this lab reported regressions.
    pub channel: Option<String>,
    /// Addresses in place of the channel's own.
    pub addresses: Vec<String>,
    /// When it was found.
    pub raised_unix: UnixTime,
    /// When the channel took it.
    pub delivered_unix: Option<UnixTime>,
    /// Why it did not at the last attempt; empty if none was made.
    pub failure: String,
}

impl Told {
    /// Reads the subject of a notice; `None` if it is about something else.
    #[must_use]
    pub fn of_subject(subject: &str, raised_unix: UnixTime) -> Option<Self> {
        let range = [REGRESSION, REPORT]
            .iter()
            .find_map(|begin| subject.strip_prefix(begin))?;
        let (track, versions) = range.rsplit_once(' ')?;
        let (after, at) = versions.split_once("..")?;
        Some(Self {
            is_report: is_report(subject),
            track: track.to_owned(),
            after: after.to_owned(),
            at: at.to_owned(),
            channel: None,
            addresses: Vec::new(),
            raised_unix,
            delivered_unix: None,
            failure: String::new(),
        })
    }

    /// Sets the channel from its name in the store.
    pub fn set_channel(&mut self, name: &str) {
        let (channel, addresses) = addresses_of(name);
        self.channel = Some(channel.to_owned());
        self.addresses = addresses.into_iter().map(str::to_owned).collect();
    }
}

/// Returns the subject of the notice about a regression; `at` is the first kernel that has it.
#[must_use]
pub fn regression_subject(track: &str, after: &str, at: &str) -> String {
    format!("{REGRESSION}{track} {after}..{at}")
}

/// Returns the subject of the notice to those in charge of the code.
#[must_use]
pub fn report_subject(track: &str, after: &str, at: &str) -> String {
    format!("{REPORT}{track} {after}..{at}")
}

/// Returns whether a notice goes to those in charge of the code.
#[must_use]
pub fn is_report(subject: &str) -> bool {
    subject.starts_with(REPORT)
}

/// Returns the name of a channel that sends to these addresses instead of its own.
#[must_use]
pub fn channel_to(channel: &str, addresses: &[String]) -> String {
    format!("{channel}{TO}{}", addresses.join(","))
}

/// Returns a channel's own name, and the addresses in place of its own; none without any.
#[must_use]
pub fn addresses_of(channel: &str) -> (&str, Vec<&str>) {
    match channel.split_once(TO) {
        Some((name, addresses)) => (name, addresses.split(',').collect()),
        None => (channel, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Told, addresses_of, channel_to, is_report, regression_subject, report_subject};
    use crate::UnixTime;

    #[test]
    fn subjects_of_notices_name_track_and_range() {
        let raised = UnixTime::new(5);
        for subject in [
            regression_subject("tree of mine", "6.1.4", "6.1.5"),
            report_subject("tree of mine", "6.1.4", "6.1.5"),
        ] {
            let told = Told::of_subject(&subject, raised).unwrap();
            let range = (&*told.track, &*told.after, &*told.at, told.is_report);
            let expected = ("tree of mine", "6.1.4", "6.1.5", is_report(&subject));
            assert_eq!(range, expected);
        }
        assert!(is_report(&report_subject("a", "1", "2")));
        assert!(!is_report(&regression_subject("a", "1", "2")));
        for other in [
            "regression:",
            "tree:stable",
            "regressions:begun",
            "regression:a 1",
        ] {
            assert_eq!(Told::of_subject(other, raised), None, "{other}");
        }
    }

    #[test]
    fn channels_keep_other_addresses_in_their_name() {
        let addresses = ["a@x.org".to_owned(), "b@x.org".to_owned()];
        let name = channel_to("us", &addresses);
        assert_eq!(addresses_of(&name), ("us", vec!["a@x.org", "b@x.org"]));
        assert_eq!(addresses_of("us"), ("us", Vec::new()));
    }
}

//! Profiles of other programs: how many samples each function itself has, from folded stacks, from
//! what `perf script` prints, and from pprof's format.

use std::collections::BTreeMap;

use super::document::lines;
use super::read::ResultFile;
use super::samples::UNKNOWN;
use super::{is_pprof_text, pprof, samples};

/// The command of idle processors.
const IDLE: &str = "swapper";
/// Parts of a file that are named because they were not read.
const NAMED_MAX: usize = 20;

/// The samples of a profile, by function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeafProfile {
    /// What was counted: an event, or a type of samples.
    pub event: String,
    /// Samples of each function itself.
    pub functions: BTreeMap<String, u64>,
    /// Samples of idle processors, which are in no function.
    pub idle: u64,
    /// What was not read, and why.
    pub left_out: Vec<(String, String)>,
}

impl LeafProfile {
    /// Returns all samples of work.
    #[must_use]
    pub fn total(&self) -> u64 {
        let samples = self.functions.values();
        samples.fold(0, |sum, samples| sum.saturating_add(*samples))
    }

    /// Returns all samples, idle processors' among them.
    fn all(&self) -> u64 {
        self.total().saturating_add(self.idle)
    }

    pub(super) fn add(&mut self, function: &str, samples: u64) {
        // Addresses differ from one execution to the next.
        let digits = function.strip_prefix("0x");
        let is_address = digits
            .is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit()));
        let function = if is_address { UNKNOWN } else { function };
        let known = self.functions.entry(function.to_owned()).or_default();
        *known = known.saturating_add(samples);
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        if self.left_out.len() < NAMED_MAX {
            self.left_out.push((what.to_owned(), why.to_owned()));
        }
    }
}

/// Most samples of a file: so many that those of all files of a side have an exact sum.
const SAMPLES_MAX: u64 = 1 << 53;

/// Reads a profile, unpacked.
///
/// # Errors
/// If it is none, or has no sample; the text says why.
pub fn read_leaves(bytes: &[u8]) -> Result<LeafProfile, String> {
    let profile = match ResultFile::new("", bytes) {
        // Text has no other control characters than white space; a message of pprof begins with one.
        Ok(file) if !file.text().contains(is_control) => read_text(&file)?,
        Err(why) if why == "empty" => return Err("it is empty: no samples".to_owned()),
        _ => pprof::read_pprof(bytes)?,
    };
    if profile.total() == 0 {
        return Err("it has no sample of a function".to_owned());
    }
    if profile.all() > SAMPLES_MAX {
        return Err("its samples are more than 2^53, which are no counts of a profile".to_owned());
    }
    Ok(profile)
}

fn is_control(letter: char) -> bool {
    letter.is_control() && !letter.is_whitespace()
}

fn read_text(file: &ResultFile<'_>) -> Result<LeafProfile, String> {
    if let Some(profile) = read_perf_script(file) {
        return Ok(profile);
    }
    let mut profile = LeafProfile {
        event: "samples".to_owned(),
        ..LeafProfile::default()
    };
    let mut pairs = 0;
    let mut parts = 0.0;
    for line in lines(file.text()).map(str::trim_end) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((stack, samples, fraction)) = split_count(line) else {
            profile.leave_out(&shortened(line), "no folded stack and its number");
            continue;
        };
        parts += fraction;
        pairs += usize::from(split_count(stack).is_some_and(|(stack, ..)| !stack.is_empty()));
        let mut frames = stack.split(';');
        let first = frames.next().unwrap_or_default();
        let leaf = frames.next_back();
        if is_idle(first) && leaf.is_some() {
            profile.idle = profile.idle.saturating_add(samples);
        } else {
            profile.add(leaf.unwrap_or(first), samples);
        }
    }
    let stacks = profile.all();
    if pairs > 0 && stacks > 0 && file.text().lines().count() <= 2 * pairs {
        return Err(
            "it has two numbers a line, those of both sides of a comparison: name a file of each side"
                .to_owned(),
        );
    }
    if parts > 0.0 {
        let why = format!("of samples are cut, {parts:.3} in all");
        profile.leave_out("fractions", &why);
    }
    if stacks == 0 && is_pprof_text(file.text()) {
        return Err("it is a text of pprof: give the profile itself".to_owned());
    }
    if stacks == 0 {
        return Err(
            "no profile: expected folded stacks, what perf script prints, or pprof".to_owned(),
        );
    }
    Ok(profile)
}

/// Splits `a;b;c 12` or `a;b;c 12.9`; numbers are cut, as difffolded.pl cuts them. Also returns
/// what is cut.
fn split_count(line: &str) -> Option<(&str, u64, f64)> {
    let (stack, number) = line.rsplit_once(' ')?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if stack.trim().is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    let cut = format!("0.{part}").parse().ok()?;
    Some((stack.trim_end(), whole.parse().ok()?, cut))
}

/// Returns whether a command is that of idle processors; a number of the process may follow.
fn is_idle(command: &str) -> bool {
    command.strip_prefix(IDLE).is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte.is_ascii_digit() || b"-/ []".contains(&byte))
    })
}

/// Returns the profile of the event with the most samples; `None` if this is no such text.
fn read_perf_script(file: &ResultFile<'_>) -> Option<LeafProfile> {
    let mut events: BTreeMap<String, LeafProfile> = BTreeMap::new();
    let mut unread = 0;
    let mut periods = samples::Periods::default();
    samples::each_sample(file, &mut |sample, function| {
        periods.add(sample);
        let event = events.entry(sample.event.clone()).or_default();
        match function {
            _ if is_idle(&sample.command) => event.idle += 1,
            Some(function) => event.add(function, 1),
            None => unread += 1,
        }
    })?;
    let count = |profile: &LeafProfile| profile.all();
    let name = events
        .iter()
        .max_by_key(|(_, profile)| count(profile))
        .map(|(name, _)| name.clone())?;
    let mut profile = events.remove(&name)?;
    profile.event.clone_from(&name);
    for (event, why) in periods.uneven().filter(|(event, _)| *event == name) {
        profile.leave_out(&event, &why);
    }
    for (other, left) in events {
        let why = format!("{} samples of another event than {name}", count(&left));
        profile.leave_out(&other, &why);
    }
    if unread > 0 {
        let what = format!("{unread} samples");
        profile.leave_out(&what, "without a frame");
    }
    Some(profile)
}

fn shortened(line: &str) -> String {
    line.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LeafProfile, read_leaves};

    fn counts(profile: &LeafProfile) -> Vec<(&str, u64)> {
        let functions = profile.functions.iter();
        functions
            .map(|(name, samples)| (name.as_str(), *samples))
            .collect()
    }

    #[test]
    fn folded_stacks_of_four_encodings_are_equal() {
        // speedscope's sample/profiles/stackcollapse/simple*.txt (MIT): the same five lines.
        let text = "a;b;c 1\na;b;c 1\na;b;d 4\na;b;c 3\na;b 5";
        let crlf = text.replace('\n', "\r\n");
        let little: Vec<u8> = std::iter::once(0xfeff)
            .chain(crlf.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let big: Vec<u8> = std::iter::once(0xfeff)
            .chain(text.encode_utf16())
            .flat_map(u16::to_be_bytes)
            .collect();
        for bytes in [text.as_bytes(), crlf.as_bytes(), &little, &big] {
            let profile = read_leaves(bytes).unwrap();
            assert_eq!(counts(&profile), [("b", 5), ("c", 5), ("d", 4)]);
        }
    }

    #[test]
    fn invalid_lines_are_named_and_left_out() {
        let text = "# comment\n// some other comment\na;b;c 14\nTHIS IS A BAD LINE\n\n\
                    BAD FRACTIONAL LINE 12V.43\n";
        let profile = read_leaves(text.as_bytes()).unwrap();
        assert_eq!(profile.total(), 14);
        assert_eq!(profile.left_out.len(), 3);
    }

    #[test]
    fn fractions_of_samples_are_named() {
        let profile = read_leaves(b"a;b 31.23\na;c 6.1\nd 274.321\n").unwrap();
        assert_eq!(profile.total(), 311);
        let left = &profile.left_out[0];
        assert_eq!(left.1, "of samples are cut, 0.651 in all");
        let whole = read_leaves(b"a;b 31\na;c 6.0\n").unwrap();
        assert!(whole.left_out.is_empty());
    }

    #[test]
    fn text_of_pprof_is_called_so() {
        for text in [
            "Showing nodes accounting for 1.12s, 100% of 1.12s total\n      flat  flat%   sum%\n",
            " bytes: Total 98.63MB of 98.63MB (  100%)\n        62.50MB (63.37%): 1.56MB\n",
        ] {
            let why = read_leaves(text.as_bytes()).unwrap_err();
            assert!(why.contains("text of pprof"), "{why}");
        }
    }

    #[test]
    fn two_numbers_a_line_are_refused() {
        let why = read_leaves(b"dd;read 14 13\ndd;write 0 12\n").unwrap_err();
        assert!(why.contains("two numbers a line"), "{why}");
    }

    #[test]
    fn idle_samples_are_no_work() {
        let text = "swapper     0 [002] 203265.377019:    1001001 cpu-clock: \n\
            \tff native_safe_halt+0xa ([kernel.kallsyms])\n\n\
            forks     9 [002] 203265.378019:    1001001 cpu-clock: \n\tff fork+0x1 (/lib/x)\n\n\
            forks     9 [002] 203265.378020:    1 cycles:u: \n\tff fork+0x1 (/lib/x)\n";
        let profile = read_leaves(text.as_bytes()).unwrap();
        assert_eq!((profile.event.as_str(), profile.idle), ("cpu-clock", 1));
        assert_eq!(counts(&profile), [("fork", 1)]);
        assert_eq!(profile.left_out[0].0, "cycles:u");
        let addresses = read_leaves(b"a;0x234f2abc 1\na;0xF1BDE348 2\na;0xyz 3\n").unwrap();
        assert_eq!(counts(&addresses), [("0xyz", 3), ("[unknown]", 3)]);
        let folded = read_leaves(b"swapper;halt 3\ndd;read 2\nswapper 5\n").unwrap();
        assert_eq!((folded.idle, folded.total()), (3, 7));
    }

    #[test]
    fn unreadable_leaf_is_not_its_caller() {
        let text = "app 9 [0] 1.0: 1 cycles: \n\t7f3 hot+0xbf (/opt/App (x86)/bin/app (deleted))\n\
            \t7f4 main+0x1 (/x)\n\n";
        let profile = read_leaves(text.as_bytes()).unwrap();
        assert_eq!(counts(&profile), [("[unknown]", 1)]);
    }

    #[test]
    fn texts_without_samples_are_refused() {
        for text in ["", "  \n", "a word\n", "{}", "a 0\n"] {
            assert!(read_leaves(text.as_bytes()).is_err(), "{text}");
        }
        // Numbers that no sum can hold.
        let most = u64::MAX;
        for text in [
            format!("a;b {most}\na;c {most}\n"),
            format!("swapper;h {most}\na;c 1\n"),
        ] {
            let why = read_leaves(text.as_bytes()).unwrap_err();
            assert!(why.contains("more than 2^53"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_profile_or_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(profile) = read_leaves(&bytes) {
                prop_assert!(profile.total() > 0);
            }
        }
    }
}

//! Patterns of lines: regular expressions in linear time, bounded in size.

use regex_lite::{Regex, RegexBuilder};

/// Most memory that a compiled pattern may take, in bytes.
const PATTERN_MAX: usize = 256 << 10;

/// A pattern, ready to be tried.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern; inside the error, why it cannot be.
    pub(crate) fn new(written: &str) -> Result<Self, String> {
        RegexBuilder::new(written).size_limit(PATTERN_MAX).build().map(Self).map_err(|error| error.to_string())
    }

    /// Returns whether it has a group of that name.
    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.0.capture_names().flatten().any(|known| known == name)
    }

    /// Returns whether a line has it.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// Returns what the group `value` is in a line that has the pattern.
    pub(crate) fn value<'a>(&self, line: &'a str) -> Option<&'a str> {
        Some(self.0.captures(line)?.name("value")?.as_str())
    }
}

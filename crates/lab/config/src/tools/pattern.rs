//! Patterns of lines: regular expressions in linear time, bounded in size.

use regex_lite::{Regex, RegexBuilder};

/// Memory limit of a compiled pattern, in bytes.
const PATTERN_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern; the error says why it is invalid.
    pub(crate) fn new(written: &str) -> Result<Self, String> {
        RegexBuilder::new(written)
            .size_limit(PATTERN_MAX)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Returns whether it has a group with this name.
    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.0.capture_names().flatten().any(|known| known == name)
    }

    /// Returns whether a line matches.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// Returns the text of the group `value` in a matching line.
    pub(crate) fn value<'a>(&self, line: &'a str) -> Option<&'a str> {
        Some(self.0.captures(line)?.name("value")?.as_str())
    }

    /// Returns the named groups of a matching line that have text.
    pub(crate) fn groups<'a>(&'a self, line: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let captures = self.0.captures(line)?;
        let named = self.0.capture_names().flatten();
        Some(
            named
                .filter_map(|name| Some((name, captures.name(name)?.as_str())))
                .collect(),
        )
    }
}

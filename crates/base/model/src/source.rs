//! Source locations.

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file, relative to the source tree: `mm/memory.c`.
    pub file: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
}

impl SourceLocation {
    /// Returns the file's directory: `mm`, `kernel/sched`; `.` for the top.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.file.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }
}

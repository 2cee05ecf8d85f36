//! Where code is in the source.

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file, from the top of the source tree: `mm/memory.c`.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
}

impl SourceLocation {
    /// Returns the folder that the file is in: `mm`, `kernel/sched`; `.` for the top.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.file.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }
}

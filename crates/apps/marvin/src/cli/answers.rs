//! How answers look: colour and format.

use clap::ValueEnum;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Output format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Table as in MMTests, for terminals and mails
    Text,
    /// The same in markdown, for issue trackers
    Markdown,
    /// One self-contained page
    Html,
    /// All data with units, for programs
    Json,
}

//! External tools: manifests to tools, and output of tools to samples. Pure: runs no program.

mod document;
mod json;
mod manifest;
mod output;
mod pattern;
mod shipped;
#[cfg(test)]
mod tests;

pub use document::ManifestError;
pub(crate) use document::{Fault, Section, Shape, Value, did_you_mean, expected, list, text};
pub use manifest::tool;
pub use output::{OUTPUT_MAX, OutputError, ToolOutput, tool_samples};
pub use shipped::SHIPPED;

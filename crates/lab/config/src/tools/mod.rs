//! External tools: manifests to tools, and output of tools to samples. Pure: runs no program.

pub(crate) mod json;
mod manifest;
pub(crate) mod output;
pub(crate) mod pattern;
pub(crate) mod printed;
mod shipped;
#[cfg(test)]
mod tests;
mod value;

pub use manifest::tool;
pub use output::{OUTPUT_MAX, OutputError, ToolOutput, tool_samples};
pub use printed::{PRINTED_MAX, PrintedValue, printed_values};
pub use shipped::SHIPPED;
pub use value::{ValueError, program_values};

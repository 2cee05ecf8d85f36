//! External tools: manifests to tools, and output of tools to samples. Pure: runs no program.

mod json;
mod manifest;
mod output;
mod pattern;
mod printed;
mod shipped;
#[cfg(test)]
mod tests;
mod value;

pub use manifest::tool;
pub use output::{OUTPUT_MAX, OutputError, ToolOutput, tool_samples};
pub use printed::{PRINTED_MAX, PrintedValue, printed_values};
pub use shipped::SHIPPED;
pub use value::{ValueError, program_values};

//! Configuration that people write: `marvin.toml`, the manifests of tools and of formats, and the
//! budgets of a tree, strict and with the position of each mistake; and the outputs of these tools
//! and files of these formats, by their manifests.
//!
//! `file` reads marvin.toml from the disk; all else maps text to values. The types are those of
//! `model`.

mod budgets;
mod file;
mod formats;
mod settings;
mod toml_document;
mod tools;

pub use budgets::{BUDGETS_FILE, BUDGETS_MAX, budgets, write_budgets};
pub use file::{ConfigError, ConfigFile};
pub use formats::{
    FileContent, FileRow, Format, LeafProfile, MMTESTS_FORMATS, PERF_SCRIPT, Recognised,
    ResultFile, SHIPPED_FORMATS, TABLE, describe_formats, describe_mmtests, describe_unread,
    format, read_as, read_leaves, read_result_file,
};
pub use settings::{SETTINGS_MAX, seconds, settings, settings_schema};
pub use toml_document::ManifestError;
pub use tools::{
    OUTPUT_MAX, OutputError, PRINTED_MAX, PrintedValue, SHIPPED, ToolOutput, ValueError,
    printed_values, program_values, tool, tool_samples,
};

//! Formats of result files of other programs: a manifest says how a file is recognised, and where
//! its numbers, units and directions are. Pure: opens no file.
//!
//! `read` goes through a file by a manifest, `table` reads tables that have none, `collect` holds
//! the rows. Which run of which kernel a file is, the crate `results` decides.

mod collect;
mod document;
mod manifest;
mod number;
mod page;
mod read;
mod shipped;
mod table;
mod template;
#[cfg(test)]
mod tests;

pub use collect::{FileContent, FileRow};
pub use manifest::{Format, format};
pub use page::{describe_formats, describe_mmtests};
pub use read::{ResultFile, read_as};
pub use shipped::{MMTESTS_FORMATS, SHIPPED_FORMATS};

use table::read_table;

/// The name of the format of tables without a manifest.
pub const TABLE: &str = "table";

/// A file that was recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    /// The name of its format.
    pub format: String,
    pub content: FileContent,
}

/// Reads a file in the first format that it has; `None` if it has none of them.
///
/// # Errors
/// If it begins like a file of one of them and is damaged; the text says how.
pub fn read_result_file(
    formats: &[Format],
    file: &ResultFile<'_>,
) -> Result<Option<Recognised>, String> {
    let mut fault = None;
    for format in formats.iter().filter(|format| !format.is_of_mmtests()) {
        match read_as(format, file) {
            Ok(Some(content)) => {
                return Ok(Some(Recognised {
                    format: format.name.clone(),
                    content,
                }));
            }
            Ok(None) => {}
            Err(why) => fault = fault.or(Some(format!("{}: {why}", format.name))),
        }
    }
    let table = || {
        let content = read_table(file)?;
        let format = TABLE.to_owned();
        Some(Recognised { format, content })
    };
    match fault {
        Some(why) => Err(why),
        None => Ok(table()),
    }
}

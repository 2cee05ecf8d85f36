//! Formats of result files of other programs: a manifest says how a file is recognised, and where
//! its numbers, units and directions are. Pure: opens no file.
//!
//! `read` goes through a file by a manifest; `table`, `samples` and `histogram` read tables, stacks of
//! perf and histograms of cyclictest, which have none; `collect` holds the rows. `leaves` and `pprof` read profiles that `marvin profile` compares. Which run of which kernel a file is, the crate `results` decides.

mod collect;
mod document;
mod histogram;
mod leaves;
mod manifest;
mod number;
mod page;
mod pprof;
mod read;
mod samples;
mod shipped;
mod table;
mod template;
#[cfg(test)]
mod tests;

pub use collect::{FileContent, FileRow};
pub use leaves::{LeafProfile, read_leaves};
pub use manifest::{Format, format};
pub use page::{describe_formats, describe_mmtests};
pub use read::{ResultFile, read_as};
pub use shipped::{MMTESTS_FORMATS, SHIPPED_FORMATS};

use histogram::read_histogram;
use samples::read_samples;
use table::read_table;

/// The name of the format of tables without a manifest.
pub const TABLE: &str = "table";

/// The name of the format of what `perf script` prints.
pub const PERF_SCRIPT: &str = "perf-script";

/// The name of the format of the histogram of cyclictest -h.
pub(crate) const CYCLICTEST_HISTOGRAM: &str = "cyclictest-histogram";

/// A file that was recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    /// The name of its format.
    pub format: String,
    pub content: FileContent,
}

/// Returns why a file of no format is not read: what it is instead, if that is known.
#[must_use]
pub fn describe_unread(file: &ResultFile<'_>) -> &'static str {
    let text = file.text();
    let has_line = |sign: &dyn Fn(&str) -> bool| text.lines().any(sign);
    if is_pprof_text(text) {
        "a text of pprof: give the profile itself to marvin profile"
    } else if has_line(&|line| {
        line.split_whitespace()
            .any(|word| word == "Amean" || word == "Hmean")
    }) {
        "a report of MMTests: give its work/log"
    } else {
        "no format of docs/import.md"
    }
}

/// Returns whether a text is a report of pprof, and not a profile.
fn is_pprof_text(text: &str) -> bool {
    let is_sign = |line: &str| {
        line.starts_with("Showing nodes accounting for ")
            || line.split_whitespace().take(2).eq(["flat", "flat%"])
            || line.contains(": Total ") && line.ends_with("%)")
    };
    text.lines().take(50).any(is_sign)
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
    if let Some(why) = fault {
        return Err(why);
    }
    if let Some(content) = read_samples(file) {
        let format = PERF_SCRIPT.to_owned();
        return Ok(Some(Recognised { format, content }));
    }
    if let Some(content) = read_histogram(file) {
        let format = CYCLICTEST_HISTOGRAM.to_owned();
        return Ok(Some(Recognised { format, content }));
    }
    Ok(read_table(file).map(|content| Recognised {
        format: TABLE.to_owned(),
        content,
    }))
}

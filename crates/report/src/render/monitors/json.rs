//! What monitors saw as JSON: all rows with their numbers as they are, all samples, all points of plots.

use serde::Serialize;

use crate::monitors::{Block, Monitored, Plot, SampleTable, title};
use crate::render::RenderError;

/// Version of this document's form.
const SCHEMA_VERSION: u32 = 1;

/// What monitors saw, as a document or a part of one.
#[derive(Debug, Serialize)]
pub(crate) struct MonitorsDocument<'a> {
    schema_version: u32,
    kind: &'static str,
    /// What was done meanwhile.
    #[serde(skip_serializing_if = "str::is_empty")]
    subject: &'a str,
    /// The base first; all lists of values are in this order.
    kernels: Vec<String>,
    samples: &'a [SampleTable],
    blocks: &'a [Block],
    plots: &'a [Plot],
}

/// Renders what monitors saw as a JSON document that ends in a line break.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn json(monitored: &Monitored) -> Result<String, RenderError> {
    crate::document::write_json(&document(monitored))
}

/// Returns what monitors saw as a document.
pub(crate) fn document(monitored: &Monitored) -> MonitorsDocument<'_> {
    MonitorsDocument {
        schema_version: SCHEMA_VERSION,
        kind: "monitors",
        subject: &monitored.subject,
        kernels: monitored.heads.iter().map(title).collect(),
        samples: &monitored.tables,
        blocks: &monitored.blocks,
        plots: &monitored.plots,
    }
}

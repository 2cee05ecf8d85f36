//! Monitor data as JSON: all rows with raw numbers, all samples, all points of plots.

use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::{Block, Monitored, Plot, SampleTable, title};
use document::RenderError;

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

/// Monitor data, as a document or a part of one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MonitorsDocument<'a> {
    schema_version: u32,
    kind: &'static str,
    /// The workloads.
    #[serde(skip_serializing_if = "str::is_empty")]
    subject: &'a str,
    /// The base first; all lists of values are in this order.
    kernels: Vec<String>,
    samples: &'a [SampleTable],
    blocks: &'a [Block],
    plots: &'a [Plot],
}

/// Returns the JSON schema of the document.
#[must_use]
pub fn schema() -> Schema {
    document::schema_of::<MonitorsDocument<'_>>("marvin monitors")
}

/// Renders monitor data as a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn json(monitored: &Monitored) -> Result<String, RenderError> {
    document::write_json(&document(monitored))
}

/// Returns monitor data as a document.
pub fn document(monitored: &Monitored) -> MonitorsDocument<'_> {
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

//! Renders comparisons, runs and workloads. Each renderer is a pure function from values to a text, which the caller
//! prints or stores.

pub(crate) mod comparison;
mod counted;
pub(crate) mod findings;
mod json;
pub mod layout;
pub mod ledger;
pub mod mail;
pub mod monitors;
mod noise;
pub mod number;
pub mod rmap;
mod run;
mod scale;
mod schema;
pub mod side_by_side;
mod style;
mod styles;
mod view;
mod words;

pub use crate::document::{DOCUMENT_STYLES, SCRIPT, SCRIPT_STYLES, SITE_POLICY, page_head, page_script, write_json};
pub use comparison::comparison;
pub use json::{SCHEMA_VERSION, json};
pub use number::{count, date, start_date};
pub use run::{Shown, result_unit, run};
pub use schema::{schema_of, schemas};
pub use style::{Style, StyleError};
pub use styles::Styles;
pub use view::{Only, Sort, View, ViewError};
pub use words::headlines;

/// A rendering that could not be written: a bug of Marvin, as everything is in memory.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The page's template.
    #[error("failed to fill in the page: {0}")]
    Template(#[from] askama::Error),
    /// The JSON document.
    #[error("failed to write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

//! Renders comparisons, runs and workloads. Each renderer is a pure function from values to a text, which the caller
//! prints or stores.

mod build;
pub(crate) mod comparison;
mod counted;
mod doctor;
pub(crate) mod findings;
mod garbage;
mod json;
mod kernels;
pub mod layout;
pub mod ledger;
mod listing;
pub mod mail;
pub mod monitors;
mod noise;
pub mod number;
mod queue;
pub mod rmap;
mod run;
mod runs;
mod scale;
mod schema;
mod style;
mod styles;
mod tools;
mod view;
mod words;
mod workloads;

pub use crate::document::{SCRIPT, SCRIPT_STYLES, page_head, page_script, write_json};
pub use build::BuildDocument;
pub use comparison::comparison;
pub use doctor::{Check, DoctorDocument, Problem};
pub use garbage::{GarbageDocument, Sizes};
pub use json::{SCHEMA_VERSION, json};
pub use kernels::{KernelsDocument, ListedKernel};
pub use listing::Listing;
pub use number::{count, date};
pub use queue::{JobDocument, QueueDocument, QueueView};
pub use run::{Shown, run};
pub use runs::{ListedRun, RunsDocument};
pub use schema::{schema_of, schemas};
pub use style::{Style, StyleError};
pub use styles::Styles;
pub use tools::ToolsDocument;
pub use view::{Only, Sort, View, ViewError};
pub use words::headlines;
pub use workloads::WorkloadsDocument;

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

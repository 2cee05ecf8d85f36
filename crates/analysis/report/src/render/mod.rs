//! Renders comparisons, runs and workloads. Each renderer is a pure function from values to a text,
//! which the caller prints or stores.

pub(crate) mod comparison;
mod counted;
pub(crate) mod findings;
mod json;
pub mod ledger;
pub mod mail;
pub mod monitors;
pub(crate) mod noise;
pub mod number;
pub mod rmap;
mod run;
mod scale;
mod schema;
pub mod side_by_side;
mod style;
mod view;
mod words;

pub use comparison::comparison;
pub use document::{
    DOCUMENT_STYLES, RenderError, SCRIPT, SCRIPT_STYLES, SITE_POLICY, Styles, layout, page_head,
    page_script, write_json,
};
pub use json::{SCHEMA_VERSION, json};
pub use noise::profile as describe_noise;
pub use number::{count, date, start_date};
pub use run::{Shown, result_unit, run};
pub use schema::{schema_of, schemas};
pub use style::{Style, StyleError};
pub use view::{Only, Sort, View, ViewError};
pub use words::headlines;

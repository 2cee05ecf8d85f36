//! Renders comparisons and runs: each renderer is a pure function from values to a document or a
//! text, which the caller prints or stores.

pub(crate) mod comparison;
pub(crate) mod counted;
pub(crate) mod findings;
pub(crate) mod json;
pub mod mail;
pub(crate) mod noise;
mod run;
pub(crate) mod scale;
pub(crate) mod words;

pub use comparison::comparison;
pub use json::{json, schema};
pub use noise::profile as describe_noise;
pub use run::{Shown, result_unit, run};
pub use words::headlines;

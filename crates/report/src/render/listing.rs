//! What all lists have in common: one struct per list, from which its JSON, its schema and its text come.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::render::{RenderError, SCHEMA_VERSION, Styles};

/// A list that a command prints.
pub trait Listing: Serialize + Sized {
    /// Renders it as text.
    fn text(&self, styles: &Styles) -> String;

    /// Renders it as a JSON document that ends in a line break.
    ///
    /// # Errors
    /// Never in practice: everything is in memory and every key is a string.
    fn json(&self) -> Result<String, RenderError> {
        crate::document::write_json(self)
    }
}

/// What each document begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Head {
    /// Version of the schema. New keys do not change it; a removed key or another meaning does.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
}

impl Head {
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self { schema_version: SCHEMA_VERSION, kind }
    }
}

/// Serializes ids and names as text.
pub(crate) fn text<S: Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

//! JSON schemas of the documents, from the types that are written.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::render::{json, ledger, monitors, rmap, side_by_side};

/// Returns the schema of a type, for its serialized form (JSON schema 2020-12).
#[must_use]
pub fn schema_of<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// Returns the schemas of this crate's documents, by name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("comparison", json::schema()),
        (
            "monitors",
            schema_of::<monitors::MonitorsDocument<'_>>("marvin monitors"),
        ),
        ("profile", ledger::schema()),
        ("rmap", rmap::schema()),
        ("side-by-side", side_by_side::schema()),
    ]
}

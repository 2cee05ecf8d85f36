//! JSON schemas of documents, from the types that are written, and the version of their shape.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The version of the documents' shape. New keys do not raise it; a changed or removed key does.
pub const SCHEMA_VERSION: u32 = 1;

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

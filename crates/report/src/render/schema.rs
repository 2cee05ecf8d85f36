//! JSON schemas of the documents, from the types that are written.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::render::{build, doctor, garbage, json, kernels, ledger, monitors, queue, rmap, runs, tools, workloads};

/// Returns the schema of a type, for its serialized form (JSON schema 2020-12).
#[must_use]
pub fn schema_of<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// Returns the schemas of this crate's documents, by name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("build", schema_of::<build::BuildDocument>("marvin build")),
        ("comparison", json::schema()),
        ("doctor", schema_of::<doctor::DoctorDocument>("marvin doctor")),
        ("gc", schema_of::<garbage::GarbageDocument>("marvin gc")),
        ("job", schema_of::<queue::JobDocument>("marvin queue why")),
        ("kernels", schema_of::<kernels::KernelsDocument>("marvin kernels")),
        ("monitors", schema_of::<monitors::MonitorsDocument<'_>>("marvin monitors")),
        ("profile", ledger::schema()),
        ("queue", schema_of::<queue::QueueDocument>("marvin queue list")),
        ("rmap", rmap::schema()),
        ("runs", schema_of::<runs::RunsDocument>("marvin runs")),
        ("tools", schema_of::<tools::ToolsDocument>("marvin tools")),
        ("workloads", schema_of::<workloads::WorkloadsDocument>("marvin workloads")),
    ]
}

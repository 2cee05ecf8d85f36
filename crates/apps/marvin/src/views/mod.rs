//! The lists that commands print: one struct per list, from which its JSON, its schema and its text
//! come. What is in them, the commands of `marvin` find out.

mod benchmarks;
mod build;
pub(crate) mod comparison;
mod doctor;
mod garbage;
mod kernels;
mod machines;
mod queue;
mod run;
mod runs;
mod tools;
mod workloads;

use document::{RenderError, SCHEMA_VERSION, Styles, schema_of, write_json};
use schemars::Schema;
use serde::{Serialize, Serializer};

pub(crate) use benchmarks::BenchmarksDocument;
pub(crate) use build::BuildDocument;
pub(crate) use doctor::{Check, DoctorDocument, Problem};
pub(crate) use garbage::{ExpiredRecords, GarbageDocument, Sizes};
pub(crate) use kernels::{KernelsDocument, ListedKernel};
pub(crate) use machines::{ListedMachine, MachineState, MachinesDocument};
pub(crate) use queue::{JobDocument, QueueDocument, QueueView};
pub(crate) use run::RunDocument;
pub(crate) use runs::{ListedRun, RunsDocument};
pub(crate) use tools::ToolsDocument;
pub(crate) use workloads::WorkloadsDocument;

/// The note beside a mail whose regression rests on one seed.
pub(crate) const ONE_SEED: &str =
    "note: one seed only: the mail addresses no list; measure more seeds before you send it";

/// A list that a command prints.
pub(crate) trait Listing: Serialize + Sized {
    /// Renders it as text.
    fn text(&self, styles: &Styles) -> String;

    /// Renders it as a JSON document that ends in a line break.
    ///
    /// # Errors
    /// Never in practice: everything is in memory and every key is a string.
    fn json(&self) -> Result<String, RenderError> {
        write_json(self)
    }
}

/// Serializes ids and names as text.
fn text<S: Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Returns the JSON schemas of these documents, by name.
#[must_use]
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        (
            "benchmarks",
            schema_of::<BenchmarksDocument>("marvin workloads --tree"),
        ),
        ("build", schema_of::<BuildDocument>("marvin build")),
        ("doctor", schema_of::<DoctorDocument>("marvin doctor")),
        ("gc", schema_of::<GarbageDocument>("marvin gc")),
        ("job", schema_of::<JobDocument>("marvin queue why")),
        ("kernels", schema_of::<KernelsDocument>("marvin kernels")),
        ("machines", schema_of::<MachinesDocument>("marvin machines")),
        ("queue", schema_of::<QueueDocument>("marvin queue list")),
        ("run", schema_of::<RunDocument>("marvin show")),
        ("runs", schema_of::<RunsDocument>("marvin runs")),
        ("tools", schema_of::<ToolsDocument>("marvin tools")),
        (
            "workloads",
            schema_of::<WorkloadsDocument>("marvin workloads"),
        ),
    ]
}

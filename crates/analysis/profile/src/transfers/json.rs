//! Shared lines of two kernels as JSON.

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::Movement;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::transfers::{PerOperation, Shared, SharedLine, SharingDifference};

/// Transfers per operation.
#[derive(Serialize, JsonSchema)]
struct SidesDocument {
    base: f64,
    new: f64,
}

#[derive(Serialize, JsonSchema)]
struct NamedDocument {
    name: String,
    base: f64,
    new: f64,
}

/// A line of memory.
#[derive(Serialize, JsonSchema)]
struct LineDocument {
    /// A symbol of the kernel's data or a slab cache, each with a distance, or the kind of memory.
    line: String,
    transfers_per_operation: f64,
    /// The share that is false sharing, from 0 to 1.
    false_sharing: f64,
    /// The functions that wait for it in order to write, the most transfers first.
    writers: Vec<String>,
    readers: Vec<String>,
    words: Vec<WordDocument>,
}

/// A word of 8 bytes in a line.
#[derive(Serialize, JsonSchema)]
struct WordDocument {
    /// A field, as in `mm_struct.mmap_lock.count`, or a symbol.
    word: String,
    transfers_per_operation: f64,
    /// The share that is false sharing, from 0 to 1.
    false_sharing: f64,
    writers: Vec<String>,
    readers: Vec<String>,
}

/// A lock that several processors took.
#[derive(Serialize, JsonSchema)]
struct LockDocument {
    /// The word that it is in: a field, or a symbol; or the function that takes it.
    lock: String,
    /// How it was taken: spin, read, write, mutex, down_read, down_write.
    kind: &'static str,
    /// How often it was held, per operation.
    times: SidesDocument,
    /// How long it was held, per operation (ns, modelled).
    ns: SidesDocument,
}

#[derive(Serialize, JsonSchema)]
struct WorkloadDocument {
    workload: String,
    /// Runs of each kernel: one for each seed.
    runs: [usize; 2],
    total: SidesDocument,
    /// By how lines move: load, store, upgrade.
    movements: Vec<NamedDocument>,
    false_sharing: SidesDocument,
    clearing_and_copying_pages: SidesDocument,
    /// They add up to the total.
    functions: Vec<NamedDocument>,
    /// By the word of memory that was asked for; they add up to the total.
    words: Vec<NamedDocument>,
    /// Per operation: interrupts between processors, context switches, migrations, slow paths of
    /// locks.
    events: Vec<NamedDocument>,
    locks: Vec<LockDocument>,
    base_lines: Vec<LineDocument>,
    new_lines: Vec<LineDocument>,
}

#[derive(Serialize, JsonSchema)]
struct MissingDocument {
    workload: String,
    why: String,
}

/// The lines of memory that two kernels move between processors.
#[derive(Serialize, JsonSchema)]
struct SharedDocument {
    schema_version: u32,
    base: String,
    new: String,
    machine: String,
    seeds: Vec<u64>,
    workloads: Vec<WorkloadDocument>,
    missing: Vec<MissingDocument>,
    command: String,
}

/// Returns the JSON document of the shared lines of two kernels.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn json(shared: &Shared) -> Result<String, RenderError> {
    let missing = shared
        .missing
        .iter()
        .map(|(workload, why)| MissingDocument {
            workload: workload.clone(),
            why: why.clone(),
        });
    write_json(&SharedDocument {
        schema_version: SCHEMA_VERSION,
        base: shared.base.1.clone(),
        new: shared.new.1.clone(),
        machine: shared.machine.clone(),
        seeds: shared.seeds.clone(),
        workloads: shared.differences.iter().map(workload).collect(),
        missing: missing.collect(),
        command: shared.command.clone(),
    })
}

/// Returns the schema of that document.
#[must_use]
pub fn schema() -> Schema {
    schema_of::<SharedDocument>("marvin profile --on exact-smp")
}

fn sides([base, new]: PerOperation) -> SidesDocument {
    SidesDocument { base, new }
}

fn workload(difference: &SharingDifference) -> WorkloadDocument {
    let [base_lines, new_lines] = difference
        .lines
        .each_ref()
        .map(|lines| lines.iter().map(line).collect());
    let movements = Movement::ALL.into_iter().zip(difference.by_movement);
    WorkloadDocument {
        workload: difference.workload.clone(),
        runs: difference.runs,
        total: sides(difference.total),
        movements: movements
            .map(|(movement, sides)| named(movement.name(), sides))
            .collect(),
        false_sharing: sides(difference.of_false),
        clearing_and_copying_pages: sides(difference.of_pages),
        functions: difference
            .functions
            .iter()
            .map(|(name, sides)| named(name, *sides))
            .collect(),
        words: difference
            .words
            .iter()
            .map(|(name, sides)| named(name, *sides))
            .collect(),
        events: difference
            .events
            .iter()
            .map(|(about, sides)| named(about, *sides))
            .collect(),
        locks: difference
            .held
            .iter()
            .map(|lock| LockDocument {
                lock: lock.lock.clone(),
                kind: lock.kind.name(),
                times: sides(lock.times),
                ns: sides(lock.ns),
            })
            .collect(),
        base_lines,
        new_lines,
    }
}

fn named(name: &str, [base, new]: PerOperation) -> NamedDocument {
    NamedDocument {
        name: name.to_owned(),
        base,
        new,
    }
}

fn line(line: &SharedLine) -> LineDocument {
    LineDocument {
        line: line.name.clone(),
        transfers_per_operation: line.per_operation,
        false_sharing: line.of_false,
        writers: line.writers.clone(),
        readers: line.readers.clone(),
        words: line.words.iter().map(word).collect(),
    }
}

fn word(word: &SharedLine) -> WordDocument {
    WordDocument {
        word: word.name.clone(),
        transfers_per_operation: word.per_operation,
        false_sharing: word.of_false,
        writers: word.writers.clone(),
        readers: word.readers.clone(),
    }
}

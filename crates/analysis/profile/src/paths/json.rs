//! Where executions part, as JSON.

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::PathInstruction;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{Divergence, LineOf, Next, Parted, PathDifference};

/// Instructions of both kernels.
#[derive(Serialize, JsonSchema)]
struct SidesDocument {
    base: u64,
    new: u64,
}

#[derive(Serialize, JsonSchema)]
struct InstructionDocument {
    function: String,
    /// Bytes from its first.
    offset: u64,
    /// Machine code in hexadecimal.
    code: String,
    /// The file, relative to the source tree; null without debug information.
    file: Option<String>,
    line: Option<u32>,
}

/// What a kernel executes next.
#[derive(Serialize, JsonSchema)]
struct NextDocument {
    /// instruction, of the same function; again, the last one once more; call, of another function;
    /// or end, of the function.
    kind: &'static str,
    /// The instruction; null if it is none.
    instruction: Option<InstructionDocument>,
    /// The function that is called; null if none is.
    function: Option<String>,
}

/// A place where the executions part.
#[derive(Serialize, JsonSchema)]
struct DivergenceDocument {
    /// The function in which they part.
    function: String,
    /// The last instruction that both execute in it, on the new kernel; null at its beginning.
    behind: Option<InstructionDocument>,
    base: NextDocument,
    new: NextDocument,
    /// What each kernel executes when they meet again, the first time.
    base_meets: NextDocument,
    new_meets: NextDocument,
    times: u64,
    /// Until they meet again, all times together.
    instructions: SidesDocument,
    /// New minus base: positive is more work.
    more: i64,
    /// Functions that only the baseline calls until then, the first time.
    base_calls: Vec<String>,
    new_calls: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct PartDocument {
    /// As in the table.
    name: String,
    instructions: SidesDocument,
}

#[derive(Serialize, JsonSchema)]
struct WorkloadDocument {
    workload: String,
    seed: u64,
    /// The measured iteration that was followed, from 1.
    iteration: usize,
    iterations: usize,
    /// Operations of an iteration.
    operations: u64,
    /// The row's median instructions per operation of the baseline and the new kernel.
    row: [f64; 2],
    /// Instructions of the whole iteration.
    total: SidesDocument,
    /// They add up to the total.
    parts: Vec<PartDocument>,
    /// In the order in which the executions part there first. They add up to the difference of the
    /// part `kernel, followed`.
    divergences: Vec<DivergenceDocument>,
}

#[derive(Serialize, JsonSchema)]
struct MissingDocument {
    workload: String,
    why: String,
}

/// Where the executions of two kernels part.
#[derive(Serialize, JsonSchema)]
struct PathsDocument {
    schema_version: u32,
    base: String,
    new: String,
    machine: String,
    workloads: Vec<WorkloadDocument>,
    missing: Vec<MissingDocument>,
    command: String,
}

/// Renders the paths of two kernels as JSON.
///
/// # Errors
/// If a number is not finite.
pub fn json(parted: &Parted, line_of: &LineOf<'_>) -> Result<String, RenderError> {
    let differences = parted.differences.iter();
    write_json(&PathsDocument {
        schema_version: SCHEMA_VERSION,
        base: parted.base.0.clone(),
        new: parted.new.0.clone(),
        machine: parted.machine.clone(),
        workloads: differences.map(|one| workload(one, line_of)).collect(),
        missing: parted
            .missing
            .iter()
            .map(|(workload, why)| MissingDocument {
                workload: workload.clone(),
                why: why.clone(),
            })
            .collect(),
        command: parted.command.clone(),
    })
}

/// Returns the schema of that document.
#[must_use]
pub fn schema() -> Schema {
    schema_of::<PathsDocument>("marvin profile --path")
}

fn sides([base, new]: [u64; 2]) -> SidesDocument {
    SidesDocument { base, new }
}

fn workload(difference: &PathDifference, line_of: &LineOf<'_>) -> WorkloadDocument {
    let parts = difference.parts().into_iter();
    let divergences = difference.divergences.iter();
    WorkloadDocument {
        workload: difference.workload.clone(),
        seed: difference.seed,
        iteration: difference.iteration.0,
        iterations: difference.iteration.1,
        operations: difference.operations,
        row: difference.row,
        total: sides(difference.counted.each_ref().map(model::Region::total)),
        parts: parts
            .map(|(name, instructions)| PartDocument {
                name: name.to_owned(),
                instructions: sides(instructions),
            })
            .collect(),
        divergences: divergences.map(|one| divergence(one, line_of)).collect(),
    }
}

fn divergence(divergence: &Divergence, line_of: &LineOf<'_>) -> DivergenceDocument {
    let [base_calls, new_calls] = divergence.calls.clone();
    let [base, new] = [0, 1].map(|side| next(side, &divergence.next[side], line_of));
    let behind = divergence.behind.as_ref().and_then(|point| {
        let side = usize::from(point.sides[1].is_some());
        Some(instruction(side, point.sides[side].as_ref()?, line_of))
    });
    DivergenceDocument {
        function: divergence.function.clone(),
        behind,
        base,
        new,
        base_meets: next(0, &divergence.meet[0], line_of),
        new_meets: next(1, &divergence.meet[1], line_of),
        times: divergence.times,
        instructions: sides(divergence.instructions),
        more: divergence.more(),
        base_calls,
        new_calls,
    }
}

fn next(side: usize, next: &Next, line_of: &LineOf<'_>) -> NextDocument {
    let (kind, found, called) = match next {
        Next::Instruction(found) => ("instruction", Some(found), None),
        Next::Again => ("again", None, None),
        Next::Call(function) => ("call", None, Some(function)),
        Next::End => ("end", None, None),
    };
    NextDocument {
        kind,
        instruction: found.map(|found| instruction(side, found, line_of)),
        function: called.map(ToString::to_string),
    }
}

fn instruction(side: usize, found: &PathInstruction, line_of: &LineOf<'_>) -> InstructionDocument {
    let line = line_of(side, found);
    InstructionDocument {
        function: found.symbol.clone(),
        offset: found.offset,
        code: found
            .bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        line: line.as_ref().map(|line| line.line),
        file: line.map(|line| line.file),
    }
}

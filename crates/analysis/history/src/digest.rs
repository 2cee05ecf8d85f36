//! What a history keeps of a run: a value and a mark for each result, and what results of one
//! workload have in common over many runs, once. Reading digests instead of runs is what makes a
//! large store open fast; `results` keeps them in a file.

use std::collections::HashMap;
use std::sync::Arc;

use compare::Scale;
use model::{BuildId, Capabilities, Declared, MachineId, Run, RunId, UnixTime, WorkloadResult};

use super::gather::NotKnown;
use super::series::{Absent, EstimatedCycles, SeedValue, WithinMean};

/// The number of a [`Shape`] in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShapeIx(pub u32);

/// What results have in common: all but their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Where they were measured.
    pub machine: MachineId,
    /// The suite of their runs.
    pub suite: String,
    /// The workload's name.
    pub workload: String,
    /// Operations in one iteration.
    pub operations: u64,
    /// The metric's declaration as it was stored.
    pub declared: Option<Declared>,
    /// What their values are, or why there is none.
    pub ended: Result<Scale, Absent>,
}

/// A result: its shape, and its numbers if it has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultDigest {
    /// What it has in common with others.
    pub shape: ShapeIx,
    /// Its value on the shape's scale; zero without one.
    pub value: f64,
    /// A hash that identifies its list of samples; zero without a value.
    pub mark: u64,
    /// The estimate of cycles per operation; zeros without one.
    pub cycles: EstimatedCycles,
    /// Deferred work per operation beside a counted value, else zero.
    pub deferred: f32,
    /// What the samples of another suite's run say by themselves, where there are enough.
    pub within: Option<Arc<WithinMean>>,
}

/// What a history keeps of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDigest {
    /// The stored run's id.
    pub id: RunId,
    /// The build that booted.
    pub build: BuildId,
    /// The machine that it booted on.
    pub machine: MachineId,
    /// The seed of the run's memory layout.
    pub seed: u64,
    /// When it began.
    pub started_unix: UnixTime,
    /// One for each workload, in order.
    pub results: Vec<ResultDigest>,
}

impl RunDigest {
    /// Replaces the numbers of shapes by those of another history: its element N is that of N.
    ///
    /// # Errors
    /// If one is missing.
    pub fn refer_to(&mut self, shapes: &[ShapeIx]) -> Result<(), NotKnown> {
        for result in &mut self.results {
            let there = shapes.get(result.shape.0 as usize);
            result.shape = *there.ok_or_else(|| NotKnown::run(&self.id))?;
        }
        Ok(())
    }
}

/// Shapes by number, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    all: Vec<Arc<Shape>>,
    /// By machine, suite, workload, operations and ending: the first of these, as declarations
    /// have no hash.
    known: HashMap<u64, Vec<ShapeIx>>,
}

impl Shapes {
    pub(super) fn all(&self) -> &[Arc<Shape>] {
        &self.all
    }

    /// Returns the number of a shape, which may be new.
    pub(super) fn add(&mut self, shape: Shape) -> ShapeIx {
        let same = self.known.entry(hash(&shape)).or_default();
        let mut found = same.iter().copied();
        if let Some(found) = found.find(|known| *self.all[known.0 as usize] == shape) {
            return found;
        }
        let new = ShapeIx(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        same.push(new);
        self.all.push(Arc::new(shape));
        new
    }

    /// Returns the digest of a run on a machine that can do this.
    pub(super) fn digest(&mut self, run: &Run, can: Capabilities) -> RunDigest {
        let results = run.results.iter();
        RunDigest {
            id: run.id.clone(),
            build: run.build.clone(),
            machine: run.machine.clone(),
            seed: run.seed,
            started_unix: run.started_unix,
            results: results
                .map(|result| self.digest_result(run, result, can))
                .collect(),
        }
    }

    fn digest_result(
        &mut self,
        run: &Run,
        result: &WorkloadResult,
        can: Capabilities,
    ) -> ResultDigest {
        let measured = SeedValue::measure(result, can);
        let value = measured.as_ref().map_or(0.0, |measured| measured.value);
        let mark = measured.as_ref().map_or(0, |measured| measured.mark);
        let cycles = measured
            .as_ref()
            .map_or_else(|_| EstimatedCycles::default(), |one| one.cycles);
        let deferred = measured.as_ref().map_or(0.0, |one| one.deferred);
        let within = measured.as_ref().ok().and_then(|one| one.within.clone());
        let shape = self.add(Shape {
            machine: run.machine.clone(),
            suite: run.suite.clone(),
            workload: result.workload.clone(),
            operations: result.operations,
            declared: result.declared.clone(),
            ended: measured
                .map(|measured| measured.scale)
                .map_err(|(missing, why)| Absent {
                    missing,
                    why: Arc::from(model::sanitize_line(&why)),
                }),
        });
        ResultDigest {
            shape,
            value,
            mark,
            cycles,
            deferred,
            within,
        }
    }
}

/// Returns a hash of the parts of a shape that have one.
fn hash(shape: &Shape) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (shape.machine.hex(), &shape.suite, &shape.workload).hash(&mut hasher);
    let why = shape.ended.as_ref().map_err(|absent| &absent.why).err();
    (shape.operations, why).hash(&mut hasher);
    hasher.finish()
}

//! The nouns of Marvin: what a kernel, a build, a machine, a workload, a run and a verdict are.
//!
//! Pure: no input or output, no clock, no random numbers, no promise about any file or wire format
//! (those belong to `wire`, `store` and `report`). The words are those of `docs/glossary.md`.

mod build;
mod calls;
mod concept;
mod cost;
mod ids;
mod imported;
mod kernel;
mod machine;
mod metric;
mod micro;
mod monitor;
mod profile;
mod run;
mod selection;
mod source;
mod suites;
mod verdict;
mod workload;

pub use build::{Build, BuildFile};
pub use calls::{CallPath, CallTree};
pub use concept::{CONCEPTS, Comparability, Concept, Form, Term, ZONES, concept};
pub use cost::{CostEvent, CostEvents, CostModel, CostModelError, Modelled, ModelledLine};
pub use ids::{BuildId, IdError, MachineId, RunId};
pub use imported::{Declared, LKP, MMTESTS, imported_metric};
pub use kernel::{DebQuery, KernelName, KernelNameError};
pub use machine::{Machine, MachineKind};
pub use metric::{Direction, Metric, Unit};
pub use micro::MICRO;
pub use monitor::{Counters, MonitorCopy, MonitorFile, Observation, Phase, Reading, TimedReading, thread_of};
pub use profile::{Profile, ProfileLine, Region, Share};
pub use run::{Environment, FailureReason, Outcome, Run, Stage, SubjectFailure, WorkloadResult};
pub use selection::{SelectionError, group_of, select, suite, workloads};
pub use source::SourcePlace;
pub use suites::{IO, MM, NET, SCHED, SEEDS, SMOKE, SUITES};
pub use verdict::{Uncertainty, Verdict};
pub use workload::{Suite, Workload};

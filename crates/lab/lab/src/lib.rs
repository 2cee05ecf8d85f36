//! Plans and executes runs: which build runs which workload with which seed, on how many machines
//! in parallel, which results exist, and what to retry.
//!
//! This is the lowest layer that reads the clock. `compare` interprets the results; `machine` knows
//! how machines work.

mod bisect;
mod calibration;
mod callers;
mod code_change;
mod deployment;
mod disturbed;
mod dump;
mod error;
mod estimate;
mod event;
mod execute;
mod executed;
mod forecast;
mod guest_shell;
mod host;
mod interrupt;
mod job;
mod lab;
mod lease;
mod machine_pool;
mod offsets;
mod open_machine;
mod options;
mod own_cost;
mod own_program;
mod path;
mod perturb;
mod plan;
mod printed_margin;
mod proof_file;
mod records;
mod reference_job;
mod rmap;
mod run_in_progress;
mod sampling;
mod stabilise;
mod symbols;
mod tool_job;
mod tools;
mod turn;
mod twins;

pub use self::stabilise::{
    Branch, Candidate, CandidateSource, CheckedBefore, FoundSubject, Measuring, Spent,
    StabiliseEvent, Subject, TreeWorld, find_subject,
};
pub use bisect::{
    Bisected, BisectionEvent, BisectionLog, BisectionQuestion, Certainty, Change, Confirm, Culprit,
    Elsewhere, Entry, Findings, LabProber, Nodes, Noise, Pace, Probe, Prober, RebuildCost, Refused,
    Reverted, Rounds, Stands, bisect, report as bisection, values_of,
};

pub use callers::Callers;
pub use config::seconds;
pub use deployment::{OwnSystem, deploy};
pub use dump::is_dump;
pub use error::LabError;
pub use estimate::Estimate;
pub use event::{Event, Replicate};
pub use execute::estimate_measurement;
pub use executed::{ExecutedFunctions, Execution};
pub use guest_shell::{GuestShell, LINES_MAX, ShellEnd, ShellStep, ShellUser, prepare_shell};
pub use interrupt::interrupt;
pub use lab::{Followed, Lab, Measurement, counted_profile, monitored_subject, stored_observation};
pub use lease::switch_off;
pub use open_machine::Wanted;
pub use options::LabOptions;
pub use own_program::{
    ModuleRequest, OwnProgramError, PreparedProgram, ProgramRequest, prepare_module,
    prepare_program, printed_metric,
};
pub use plan::{Dumps, Plan, Reuse, Sampled};
pub use proof_file::{ProofFileError, ProofWriter, UnpackedProof, unpack_proof};
pub use reference_job::execute_reference_job;
pub use sampling::sampled_profile;
pub use tools::{Tools, ToolsError};
pub use turn::{Patience, lock_home};
pub use twins::doubt_by_twins;

/// The agent: the static program that runs the workloads in every guest; `build.rs` builds it.
pub const AGENT: &[u8] = include_bytes!(env!("MARVIN_AGENT"));

/// PID 1 of every guest up to the snapshot; `build.rs` builds it.
pub const INIT: &[u8] = include_bytes!(env!("MARVIN_INIT"));

/// PID 1 of guests that do one job after the other; `build.rs` builds it.
pub const SERVE: &[u8] = include_bytes!(env!("MARVIN_SERVE"));

/// PID 1 of guests that load modules, until it executes [`INIT`]; `build.rs` builds it.
pub const MODLOAD: &[u8] = include_bytes!(env!("MARVIN_MODLOAD"));

/// PID 1 of guests whose memory tests dump; `build.rs` builds it.
pub const CRASH: &[u8] = include_bytes!(env!("MARVIN_CRASH"));

/// The tracer: the plugin that QEMU loads; `build.rs` builds it.
pub const TRACER: &[u8] = include_bytes!(env!("MARVIN_TRACER"));

/// The plugin that QEMU loads beside the tracer to record which instructions are executed in which
/// order; it is no part of the machine.
pub const PATH_RECORDER: &[u8] = include_bytes!(env!("MARVIN_PATH_RECORDER"));

//! The nouns of Marvin: what a kernel, a build, a machine, a workload, a run and a verdict are.
//!
//! Pure: no input or output, no clock, no random numbers, no promise about any file or wire format
//! (those belong to `wire`, `store` and `compare`). The words are those of `docs/glossary.md`.

#![warn(missing_docs)]

mod availability;
mod batch;
mod budget;
mod build;
mod build_changes;
mod calls;
mod capabilities;
mod clients;
mod console;
mod cost;
mod costly;
mod declared;
mod deploy;
mod experiment;
mod fault;
mod fingerprint;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod guest_config;
mod health;
mod idle;
mod ids;
mod imported;
mod kernel;
mod locks;
mod machine;
mod make_argument;
mod metric;
mod monitor;
mod offsets;
mod origin;
mod path;
mod power;
mod profile;
mod queue;
mod release;
mod reservation;
mod rmap;
mod run;
mod samples;
mod sanitize;
mod selection;
mod server;
mod settings;
mod sharing;
mod source;
mod subsystem;
mod suites;
mod told;
mod tool;
mod triage;
mod unix_time;
mod verdict;
mod workload;

pub use availability::Availability;
pub use batch::{BatchKind, BatchSettings, SlurmSettings};
pub use budget::{Budget, Limit, USUAL_LIMIT_PERCENT, is_path_within};
pub use build::{Build, BuildFile};
pub use build_changes::{BuildChanges, WRITE_PARAMETER};
pub use calls::{CallPath, CallTree};
pub use capabilities::{Capabilities, Clock};
pub use clients::{ClientCounts, ClientLimits};
pub use console::ConsoleSettings;
pub use cost::{CostEvent, CostEvents, CostModel, CostModelError, Modelled, ModelledLine};
pub use costly::{Costly, CostlyCounts, Cycles, PROCESSORS, Processor, estimate_cycles};
pub use declared::{Declared, unit_named};
pub use deploy::{DeploySettings, DeployWay, ImageSettings, KernelRange, Recipe};
pub use experiment::experiment_of;
pub use fault::Fault;
pub use fingerprint::{Belongs, Drift, described, drift, drift_text};
pub use guest_config::{ExtraFiles, FileSystem, GuestConfig, GuestModule, Need};
pub use health::{Health, quarantine_of};
pub use idle::{ServerUse, describe_off};
pub use ids::{BuildId, IdError, MachineId, RunId, hexadecimal};
pub use imported::{
    FILES, IMPORTED_MARGIN_PERCENT, IMPORTED_SUITES, LKP, MMTESTS, imported_declaration,
    imported_declarations, imported_metric, imported_workload,
};
pub use kernel::{
    Distribution, InstalledQuery, KernelName, KernelNameError, PackageQuery, PackageSelection,
};
pub use locks::{Held, HeldWord, LockKind, TAKEN_IN, Within, lock_in_sentence, taken_by, taken_in};
pub use machine::{ExactCpu, KnownQemu, Machine, MachineKind, UnknownExactCpu, UnknownMachineKind};
pub use make_argument::{MakeArgument, MakeArgumentError};
pub use metric::{Direction, Metric, Quantity, Unit};
pub use monitor::{
    Counters, MonitorCopy, MonitorFile, Observation, Phase, Reading, TimedReading, thread_of,
};
pub use offsets::{Executions, Offsets};
pub use origin::{Origin, SourceOrigin};
pub use path::{ExecutedPath, PathEntry, PathInstruction, PathKind, PathStep};
pub use power::{BootDevice, Ipmi, PowerSettings, Redfish};
pub use profile::{Profile, ProfileLine, Region, Share};
pub use queue::{
    CHECK_PLAN, Ending, Forecast, JobState, LEASE_S, NewJob, QueuedJob, RETRY_S, Refusal,
    USUAL_MACHINE, Why, Work, check_job, forecast, retry_after_s, why,
};
pub use release::{LineError, Release, ReleaseLine, track_of};
pub use reservation::{
    Reservation, ReservationRefusal, Taken, check_free, format_left, reservation_of,
};
pub use rmap::{
    ENTRIES_PER_TABLE, RmapCase, RmapCaseError, RmapCell, RmapCost, RmapMeasured, RmapOperation,
    RmapOutcome, RmapSlab, RmapSpace,
};
pub use run::{
    Environment, FailureReason, LAB_COST, Outcome, Run, Stage, SubjectFailure, WorkloadResult,
    disturbed_pair, disturbed_workload, is_of_one_run,
};
pub use samples::{SampledProfile, SampledStack, Sampling, SamplingEvent, SamplingScope};
pub use sanitize::{
    escape_json, is_hostile, sanitize_except, sanitize_line, sanitize_lines, sanitize_text,
};
pub use selection::{
    Choice, SelectionError, TOOL, ToolRows, choose, find_workload, group_of, in_tasks, select,
    suite, suite_of, task_counts, usual_suite, workloads,
};
pub use server::{BootOnce, ServerSettings};
pub use settings::{
    ArchiveSettings, Channel, ChannelKind, DebianSettings, FedoraSettings, Login, MailServer,
    MailTaker, MarvinConfig, MirrorSettings, Points, RegressionSettings, Secrecy, Secret,
    StandingPlan, TrackAddresses, TreeOrigin, WatchedTree, WorkSettings,
};
pub use sharing::{Counted, Entered, Move, Movement, Sharing, WATCHED, without_suffix};
pub use source::SourceLocation;
pub use subsystem::subsystem_of;
pub use suites::micro::MICRO;
pub use suites::{
    CONTENTION, DISKS, FS, Floor, IO, KERNEL_PARTS, KernelPart, LayoutState, MM, NET, PATHS,
    RECLAIM, REPORTS, RMAP, SCALE, SCHED, SEEDS, SMOKE, SUBSYSTEMS, SUITES, declared_transfers,
    floor, floor_percent, layout_state, spread_percent, twins,
};
pub use told::{Told, addresses_of, channel_to, is_report, regression_subject, report_subject};
pub use tool::{
    Column, Find, OwnProgram, Pick, Reader, Server, Source, Table, Tool, ToolMetric, ToolWorkload,
    TreeBenchmark,
};
pub use triage::{Decision, Triage, TriageError};
pub use unix_time::UnixTime;
pub use verdict::{Uncertainty, Verdict, WithinRun};
pub use workload::{Processors, Steadiness, Suite, TASKS_MAX, Workload};

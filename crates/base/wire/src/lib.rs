//! The protocol between host and agent: a job goes in, a stream of frames comes out. Versioned,
//! checksummed, text.
//!
//! Pure: bytes in, values out. `machine` and the agent transport the bytes (fw_cfg, a serial line,
//! ssh); `ingest` interprets the values. All functions are total: hostile bytes give an error.

mod checksum;
mod escape;
mod job;
mod stream;
mod tool;

pub use checksum::crc32;
pub use job::{Clock, JOB_SIZE, Job, JobError, Perturbation, Task};
pub use stream::{Frame, MARK, Stream, StreamError, decode, encode, find_hello, find_last_words};
pub use tool::{Command, NOT_INSTALLED, PROGRAMS, SystemTask, ToolTask};

/// Version of job and stream. Raise it if either changes incompatibly.
pub const PROTOCOL: u32 = 1;

/// Follows each job's stream where a guest does one job after the other; no frame contains it.
pub const JOB_END: u8 = 4;

/// The boot parameter that names a file and what the first process writes to it:
/// `marvin.write=/sys/kernel/mm/transparent_hugepage/enabled=always`. The kernel leaves parameters
/// with a dot to modules, and says nothing (`unknown_bootoption()` in init/main.c).
pub const WRITE_PARAMETER: &str = "marvin.write=";

/// The name of the file in which the agent of a machine that measures time says what it took of a
/// processor in a job, and how long the job took (ns).
pub const OWN_COST: &str = "own cost";

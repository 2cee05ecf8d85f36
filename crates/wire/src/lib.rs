//! The protocol between host and agent: a job goes in, a stream of frames comes out. Versioned, checksummed, text.
//!
//! Pure: bytes in, values out. How the bytes travel (fw_cfg, a serial line, ssh) is the business of `machine` and the
//! agent; what the values mean is the business of `ingest`. Everything here is total: hostile bytes give an error.

mod checksum;
mod escape;
mod job;
mod stream;
mod tool;

pub use job::{Clock, JOB_SIZE, Job, JobError, Perturbation, Task};
pub use stream::{Frame, MARK, Stream, StreamError, decode, encode, find_hello, find_last_words};
pub use tool::{Command, ToolTask};

/// Version of job and stream. Raised when either changes so that the other side must know.
pub const PROTOCOL: u32 = 1;

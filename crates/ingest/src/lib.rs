//! From a guest's raw bytes to samples, environments and counts. Total functions: whatever a guest sends, the answer is
//! a value or an error.
//!
//! Nothing is decided here: what a value means against another is the business of `report`.

mod environment;
mod probes;
mod samples;

pub use environment::environment;
pub use probes::{ProbeHits, probe_hits};
pub use samples::{IngestError, outcome};

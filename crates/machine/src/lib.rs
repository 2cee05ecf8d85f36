//! Machines: where a build is booted and a job is done.
//!
//! So far there is the exact machine: QEMU with instruction counting and no outside input. What a result means is
//! left to `ingest` and `report`; which jobs are done in which order is left to `lab`.

mod console;
mod error;
mod exact;
mod initrd;
mod process;
mod qemu;
mod qmp;
mod seat;
mod snapshot;

pub use console::{readable_tail, reason_in};
pub use error::{Guilt, MachineError};
pub use exact::{Boot, Exact, JobEnd, Limits, Settings, SnapshotUse, Start, Trace};
pub use initrd::Programs;
pub use qemu::{Qemu, QemuProblem};
pub use snapshot::Snapshot;

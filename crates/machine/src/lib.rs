//! Machines: where a build is booted and a job is done.
//!
//! So far there is the exact machine: QEMU with instruction counting and no outside input. Beside it the same QEMU runs
//! crash guests, which are not measured but captured. What a result means is
//! left to `ingest` and `report`; which jobs are done in which order is left to `lab`.

mod capture;
mod console;
mod crash;
mod error;
mod exact;
mod initrd;
mod process;
mod qemu;
mod qmp;
mod seat;
mod snapshot;
mod vmcore;

pub use console::{readable_tail, reason_in};
pub use crash::{Crash, CrashGuest, Disk, Paging, StillGuest};
pub use error::{Guilt, MachineError};
pub use exact::{Boot, Exact, Fittings, Guest, JobEnd, Limits, Settings, SnapshotUse, Start, Trace, modules_hash};
pub use initrd::{InitrdFile, Programs, initrd_of};
pub use qemu::{Qemu, QemuProblem};
pub use snapshot::Snapshot;
pub use vmcore::VmcoreFormat;

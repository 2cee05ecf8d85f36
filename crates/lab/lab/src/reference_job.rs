//! The reference job on this host: it needs a data directory, and neither a store, nor a kernel, nor
//! a network.

use std::path::{Path, PathBuf};

use machine::{Exact, ReferenceNumbers, Settings};
use model::ExactCpu;
use store::HomeLock;

use crate::perturb::conditions;
use crate::{LabError, LabOptions, MODLOAD, PATH_RECORDER, TRACER};

/// Executes the reference job on the exact machine of this host, with the QEMU that measurements
/// take.
///
/// # Errors
/// If another process measures in the data directory, no QEMU is usable, or the job fails.
pub fn execute_reference_job(
    home: &Path,
    qemu: Option<PathBuf>,
    cpu: ExactCpu,
) -> Result<ReferenceNumbers, LabError> {
    let _lock = HomeLock::acquire(home)?;
    let options = LabOptions::default();
    let settings = Settings {
        qemu,
        cpu,
        programs: options.programs,
        loader: MODLOAD.to_vec(),
        tracer: TRACER.to_vec(),
        path_recorder: PATH_RECORDER.to_vec(),
        conditions: conditions(),
        home: home.to_owned(),
        snapshots: options.snapshots,
        limits: options.limits,
    };
    Ok(Exact::open(settings, None)?.prove()?)
}

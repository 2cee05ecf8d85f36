//! An image becomes a server's own system, under a reservation.

use std::path::Path;
use std::sync::Arc;

use machine::{Image, Limits, Programs, Settings, SnapshotUse, undeploy};
use model::ServerSettings;
use store::{HomeLock, Location};

use crate::lease::Lease;
use crate::{AGENT, INIT, LabError};

/// Has a server run an image as its own system, or without one the system that it starts by itself, and makes its record anew.
/// Returns the release of the kernel that runs then. `home` is the lab's data directory.
///
/// # Errors
/// If another user has the server, it cannot be used, or it does not come up with that.
pub fn deploy(at: Location, server: &ServerSettings, image: Option<&Image>, home: &Path) -> Result<String, LabError> {
    let _lock = HomeLock::acquire(home)?;
    let permit = Arc::new(Lease::take(at, &server.name)?);
    let settings = Settings {
        qemu: None,
        programs: Programs { init: INIT.to_vec(), agent: AGENT.to_vec() },
        loader: Vec::new(),
        tracer: Vec::new(),
        conditions: Vec::new(),
        home: home.to_owned(),
        snapshots: SnapshotUse::Never,
        limits: Limits::default(),
        permit: Some(permit),
    };
    let deployed = match image {
        Some(image) => machine::deploy(server, image, &settings),
        None => undeploy(server, &settings),
    };
    Ok(deployed?)
}

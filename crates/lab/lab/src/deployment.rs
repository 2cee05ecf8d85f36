//! An image becomes a server's own system, under a reservation.

use std::path::Path;
use std::sync::Arc;

use machine::Limits;
use model::ServerSettings;
use server::{Image, ServerAccess};
use store::{HomeLock, Location};

use crate::lease::Lease;
use crate::{AGENT, LabError};

/// What a server is to run as its own system.
#[derive(Debug, Clone, Copy)]
pub enum OwnSystem<'a> {
    /// An image, from memory.
    InMemory(&'a Image),
    /// An image, from the disk that its settings name, which loses what it has.
    OnDisk(&'a Image),
    /// What it starts by itself.
    Former,
}

impl<'a> OwnSystem<'a> {
    /// Returns what a server is to run: an image, on its disk or in its memory, or without one what
    /// it starts by itself.
    #[must_use]
    pub const fn new(image: Option<&'a Image>, is_on_disk: bool) -> Self {
        match image {
            None => Self::Former,
            Some(image) if is_on_disk => Self::OnDisk(image),
            Some(image) => Self::InMemory(image),
        }
    }
}

/// Has a server run this as its own system, and makes its record anew. Returns the release of the
/// kernel that runs then. `home` is the lab's data directory, whose lock the caller has.
///
/// # Errors
/// If another user has the server, it cannot be used, or it does not come up with that.
pub fn deploy(
    at: Location,
    server: &ServerSettings,
    system: OwnSystem<'_>,
    home: &Path,
    _lock: &HomeLock,
) -> Result<String, LabError> {
    let permit = Arc::new(Lease::take(at, &server.name)?);
    let access = ServerAccess {
        home: home.to_owned(),
        agent: AGENT.to_vec(),
        limits: Limits::default(),
        permit: Some(permit),
    };
    let deployed = match system {
        OwnSystem::InMemory(image) => server::deploy(server, image, &access),
        OwnSystem::OnDisk(image) => server::install(server, image, &access),
        OwnSystem::Former => server::undeploy(server, &access),
    };
    Ok(deployed?)
}

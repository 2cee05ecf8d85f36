//! A look at a server that changes nothing there.

use std::path::Path;

use model::ServerSettings;

use super::problem::ServerProblem;
use super::reach::Facts;
use super::{problems, ssh};

/// What a server is now.
#[derive(Debug)]
pub struct ServerLook {
    /// The release of the kernel that runs.
    pub kernel: String,
    /// Whether that is a kernel under test.
    pub under_test: bool,
    /// The lab that holds it.
    pub held_by: Option<String>,
    /// The name of its processors.
    pub processor: String,
    /// Their number.
    pub processors: String,
    /// Its memory: `972 MiB`.
    pub memory: String,
    /// Space left for kernels (MiB).
    pub free_mib: u64,
    /// The clock source of its kernel.
    pub clock: String,
    /// Why it cannot boot builds.
    pub problems: Vec<ServerProblem>,
}

/// Looks at a server; `home` is the lab's data directory.
///
/// # Errors
/// If it cannot be reached.
pub fn look(server: &ServerSettings, home: &Path) -> Result<ServerLook, ServerProblem> {
    let facts = ssh::Ssh::new(server.clone(), home, None, &[]).look()?;
    Ok(of(server, &facts))
}

fn of(server: &ServerSettings, facts: &Facts) -> ServerLook {
    let get = |name: &str| facts.get(name).to_owned();
    let mib = |name: &str| facts.get(name).parse::<u64>().unwrap_or(0) >> 10;
    ServerLook {
        kernel: get("release"),
        under_test: facts.running().is_some(),
        held_by: Some(get("held_by")).filter(|holder| !holder.is_empty()),
        processor: get("machine.processor"),
        processors: get("machine.processors"),
        memory: get("machine.memory"),
        free_mib: mib("free_kib"),
        clock: get("clock"),
        problems: problems(server, facts),
    }
}

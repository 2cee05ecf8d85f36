//! A look at a server that changes nothing there but that it gets the agent, which says what hardware it has.

use std::path::Path;

use model::ServerSettings;
use process::Ended;

use super::problem::ServerProblem;
use super::reach::{Boot, Facts, OTHER_BOOT, Reach};
use super::{PREPARE_S, problems, ssh};

/// What a server is now.
#[derive(Debug)]
pub struct ServerLook {
    /// The release of the kernel that runs.
    pub kernel: String,
    /// Whether that is a kernel under test.
    pub under_test: bool,
    /// The lab that holds it.
    pub held_by: Option<String>,
    /// Its processors and memory, as the agent says; `None` while it cannot measure.
    pub hardware: Option<String>,
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
pub fn look(server: &ServerSettings, home: &Path, agent: &[u8]) -> Result<ServerLook, ServerProblem> {
    let ssh = ssh::Ssh::new(server.clone(), home, None, agent);
    let facts = ssh.look()?;
    let mut look = of(server, &facts);
    if look.problems.is_empty() && look.held_by.is_none() {
        match describe(&ssh, &server.name, facts.boot_id()) {
            Ok(report) => look.hardware = Some(hardware(&report)),
            Err(problem) => look.problems.push(problem),
        }
    }
    Ok(look)
}

fn of(server: &ServerSettings, facts: &Facts) -> ServerLook {
    let get = |name: &str| facts.get(name).to_owned();
    ServerLook {
        kernel: get("release"),
        under_test: facts.running().is_some(),
        held_by: Some(get("held_by")).filter(|holder| !holder.is_empty()),
        hardware: None,
        free_mib: facts.get("free_kib").parse::<u64>().unwrap_or(0) >> 10,
        clock: get("clock"),
        problems: problems(server, facts),
    }
}

/// Has the agent describe a server in this boot.
pub(super) fn describe(reach: &dyn Reach, name: &str, boot_id: &str) -> Result<String, ServerProblem> {
    let ended = reach.run_agent(&Boot { id: boot_id, deadline_s: PREPARE_S }, &["describe"], &[])?;
    text_of(&ended, name, "run the agent")
}

/// Returns what the agent printed in a step.
pub(super) fn text_of(ended: &Ended, name: &str, step: &'static str) -> Result<String, ServerProblem> {
    let name = name.to_owned();
    match ended.code {
        Some(0) => Ok(ended.text()),
        Some(OTHER_BOOT) => Err(ServerProblem::Unreachable { name, said: "it has restarted".to_owned() }),
        _ => Err(ServerProblem::Step { name, step, said: model::plain(&ended.reason()) }),
    }
}

/// Returns processors and memory for people: `2 x Fast, 1024 MiB`.
fn hardware(report: &str) -> String {
    let pairs = model::described(report);
    let get = |name: &str| pairs.iter().find(|(known, _)| known == name).map_or("unknown", |(_, value)| value.trim());
    model::plain(&format!("{} x {}, {}", get("host.processors"), get("host.processor"), get("host.memory")))
}

//! What a server is now. It changes nothing there, but copies the agent, which describes the
//! hardware.

use std::path::Path;

use machine::MachineError;
use model::ServerSettings;
use subprocess::Ended;

use crate::PREPARE_S;
use crate::deploy::deployed_image;
use crate::fit::problems;
use crate::problem::{ServerProblem, WrongSystem};
use crate::record::{Record, of_machine};
use crate::remote::ssh;
use crate::remote::{AgentBoot, Facts, OTHER_BOOT, RemoteHost};

/// What a server is now.
#[derive(Debug)]
pub struct ServerLook {
    /// The release of the kernel that runs.
    pub kernel: String,
    /// Whether that is a kernel under test.
    pub under_test: bool,
    /// The lab that holds it.
    pub held_by: Option<String>,
    /// How long the hold lasts if that lab does not renew it (min).
    pub held_minutes: Option<u64>,
    /// How it differs from its record: Marvin does not measure on it then.
    pub changes: Option<String>,
    /// Its processors and memory, as the agent says; `None` while it cannot measure.
    pub hardware: Option<String>,
    /// Space left for kernels (MiB).
    pub free_mib: u64,
    /// The image that was deployed on it, and whether it runs that.
    pub image: Option<(String, bool)>,
    /// The clock source of its kernel.
    pub clock: String,
    /// Why it cannot boot builds.
    pub problems: Vec<ServerProblem>,
}

/// Looks at a server; `home` is the lab's data directory.
///
/// # Errors
/// If it cannot be reached.
pub fn look(
    server: &ServerSettings,
    home: &Path,
    agent: &[u8],
) -> Result<ServerLook, ServerProblem> {
    let ssh = ssh::Ssh::new(server.clone(), home, None, agent);
    let facts = ssh.look()?;
    let mut look = look_from_facts(server, &facts);
    look.image = deployed_image(home, &server.name)?.map(|image| {
        let runs = facts.image() == Some(&image.id);
        (image.name, runs)
    });
    if look.problems.is_empty() && look.held_by.is_none() {
        match describe(&ssh, &server.name, facts.boot_id()) {
            Ok(report) => {
                look.hardware = Some(hardware(&report));
                let record = Record::load(&Record::file(home, &server.name));
                // A kernel under test sees less of it.
                let record = record.filter(|_| !look.under_test);
                look.changes =
                    record.and_then(|record| record.changes(&of_machine(&report), &server.name));
            }
            Err(problem) => look.problems.push(problem),
        }
    }
    Ok(look)
}

/// Makes what a server is now its record in the lab's data directory `home`, whatever it was
/// before.
///
/// # Errors
/// If it cannot be reached, does not run its own kernel, is held by another lab, or the record
/// cannot be written.
pub fn accept(server: &ServerSettings, home: &Path, agent: &[u8]) -> Result<(), MachineError> {
    let ssh = ssh::Ssh::new(server.clone(), home, None, agent);
    let facts = ssh.look()?;
    if let Some(problem) = problems(server, &facts).into_iter().next() {
        return Err(ServerProblem::from(problem).into());
    }
    if !facts.get("held_by").is_empty() {
        return Err(ssh::held(&server.name, &facts).into());
    }
    // A kernel under test sees less of the hardware: the record would be wrong.
    if facts.running().is_some() {
        return Err(ServerProblem::from(WrongSystem::UnderTest {
            name: server.name.clone(),
        })
        .into());
    }
    let report = describe(&ssh, &server.name, facts.boot_id())?;
    Record::from_facts(&facts, &report).accept(&Record::file(home, &server.name))
}

fn look_from_facts(server: &ServerSettings, facts: &Facts) -> ServerLook {
    let get = |name: &str| facts.get(name).to_owned();
    ServerLook {
        kernel: get("release"),
        under_test: facts.running().is_some(),
        held_by: Some(get("held_by")).filter(|holder| !holder.is_empty()),
        held_minutes: facts.get("held_minutes").parse().ok(),
        changes: None,
        hardware: None,
        free_mib: facts.get("free_kib").parse::<u64>().unwrap_or(0) >> 10,
        image: None,
        clock: get("clock"),
        problems: problems(server, facts)
            .into_iter()
            .map(ServerProblem::from)
            .collect(),
    }
}

/// Has the agent describe a server in this boot.
pub(crate) fn describe(
    remote: &dyn RemoteHost,
    name: &str,
    boot_id: &str,
) -> Result<String, ServerProblem> {
    let ended = remote.run_agent(
        &AgentBoot {
            id: boot_id,
            deadline_s: PREPARE_S,
            files: None,
        },
        &["describe"],
        &[],
    )?;
    text_of(&ended, name, "run the agent")
}

/// Returns what the agent printed in a step.
pub(crate) fn text_of(
    ended: &Ended,
    name: &str,
    step: &'static str,
) -> Result<String, ServerProblem> {
    let name = name.to_owned();
    match ended.code {
        Some(0) => Ok(ended.text()),
        Some(OTHER_BOOT) => Err(ServerProblem::Unreachable {
            name,
            answer: "it has restarted".to_owned(),
        }),
        _ => Err(ServerProblem::Step {
            name,
            step,
            answer: model::sanitize_line(&ended.reason()),
        }),
    }
}

/// Returns processors and memory for people: `2 x Fast, 1024 MiB`.
fn hardware(report: &str) -> String {
    let pairs = model::described(report);
    let get = |name: &str| {
        pairs
            .iter()
            .find(|(known, _)| known == name)
            .map_or("unknown", |(_, value)| value.trim())
    };
    model::sanitize_line(&format!(
        "{} x {}, {}",
        get("host.processors"),
        get("host.processor"),
        get("host.memory")
    ))
}

//! The agent as an ordinary process, here or on a server: which jobs it may do, and what its end
//! says about one.

use model::{ExtraFiles, FailureReason, GuestConfig, Machine, Stage, SubjectFailure};
use subprocess::Ended;
use wire::{Frame, Stream};

use crate::backend::JobEnd;
use crate::{MachineError, identify};

/// Says that the files of a user's own program came with it.
const CARRIED: (&str, &str) = ("equipment.files", "carried");
/// Name of the tool in a machine's fingerprint; `Machine::is_kin` knows its beginning.
const TOOL: &str = "equipment.tool";

/// Returns the tool that a guest config is for; `None` if it asks for more than a tool's files.
fn tool_of(guest_config: &GuestConfig) -> Option<&str> {
    let ExtraFiles::Image(tool) = &guest_config.files else {
        return None;
    };
    (!guest_config.has_modules() && guest_config.disk.is_none()).then_some(tool)
}

/// Returns the end of a job that would load modules or fill the memory of a machine that others
/// use; `None` if it may run. A tool may: there it is the one that is installed.
#[must_use]
pub fn refuse_guest_config(guest_config: &GuestConfig) -> Option<JobEnd> {
    if *guest_config == GuestConfig::PLAIN || tool_of(guest_config).is_some() {
        return None;
    }
    let why = "it needs a guest of its own: measure it on exact or vm".to_owned();
    Some(JobEnd::unobserved(
        Ok(Stream {
            frames: vec![Frame::Unsupported(why)],
        }),
        Vec::new(),
    ))
}

/// Returns the machine for a guest config: one for each tool, because a result is that of the
/// tool's manifest; and another one if its files are carried there, because it runs among these.
///
/// # Errors
/// If its id cannot be made.
pub fn machine_for(
    plain: &Machine,
    guest_config: &GuestConfig,
    is_carried: bool,
) -> Result<Machine, MachineError> {
    let Some(tool) = tool_of(guest_config) else {
        return Ok(plain.clone());
    };
    let mut fingerprint = plain.fingerprint.clone();
    fingerprint.retain(|(name, _)| name != TOOL && name != CARRIED.0);
    fingerprint.push((TOOL.to_owned(), tool.to_owned()));
    if is_carried {
        fingerprint.push((CARRIED.0.to_owned(), CARRIED.1.to_owned()));
    }
    identify(plain.kind, plain.summary.clone(), fingerprint)
}

/// Reads the end of an agent: its frames, or how it died; and its standard error.
pub fn read_end(ended: &Ended, job: u64) -> (Result<Stream, SubjectFailure>, Vec<u8>) {
    let stream = wire::decode(&ended.output, job).map_err(|error| {
        let text = ended.text();
        let agent = text
            .lines()
            .rfind(|line| line.starts_with("agent: "))
            .map(str::to_owned);
        let why = agent.unwrap_or_else(|| format!("{error}; {}", ended.reason()));
        let reason = FailureReason::AgentDied(model::sanitize_line(&why));
        SubjectFailure {
            stage: Stage::Workload,
            reason,
            console_tail: String::new(),
        }
    });
    (stream, ended.stderr.clone().into_bytes())
}

#[cfg(test)]
mod tests {
    use model::{ExtraFiles, FileSystem, GuestConfig, MachineKind};

    use super::{machine_for, refuse_guest_config};
    use crate::identify;

    #[test]
    fn tools_run_where_guests_are_missing() {
        let tool = |name: &'static str| GuestConfig {
            files: ExtraFiles::Image(name.into()),
            ..GuestConfig::PLAIN
        };
        assert!(
            refuse_guest_config(&GuestConfig::PLAIN).is_none()
                && refuse_guest_config(&tool("fio 1a")).is_none()
        );
        assert!(refuse_guest_config(&GuestConfig::with_memory(1024)).is_some());
        assert!(
            refuse_guest_config(&GuestConfig {
                disk: Some(FileSystem::Ext4),
                ..tool("fio 1a")
            })
            .is_some()
        );
        let plain = identify(
            MachineKind::Local,
            String::new(),
            vec![("host.id".into(), "1".into())],
        )
        .unwrap();
        let [one, other] =
            ["fio 1a", "fio 2b"].map(|name| machine_for(&plain, &tool(name), false).unwrap());
        let carried = machine_for(&plain, &tool("fio 1a"), true).unwrap();
        assert!(carried.id != one.id && carried.is_kin(&plain));
        assert_ne!(one.id, other.id);
        assert!(one.is_kin(&plain) && one.is_kin(&other));
        assert_eq!(machine_for(&other, &tool("fio 1a"), false).unwrap(), one);
        assert_eq!(
            machine_for(&plain, &GuestConfig::PLAIN, false).unwrap(),
            plain
        );
    }
}

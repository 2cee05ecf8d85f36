//! Slurm, by its commands. The text formats of squeue(1) are the same since its first releases; its
//! JSON changes with each (22.05 has a state as a word, 23.11 as a list of words), and its REST
//! interface changes names.

use model::{SlurmSettings, USUAL_MACHINE};
use subprocess::{Ended, Program, ProgramError};

use super::{BatchError, BatchJob, BatchState, BatchSystem, Submission, script};

/// Deadline of one command (s). A controller that is restarting makes the commands wait.
const COMMAND_S: u64 = 60;
const NAME: &str = "Slurm";
/// The states in which a job has not ended (squeue(1), JOB STATE CODES).
const WAITS: [&str; 5] = [
    "PENDING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
];
const RUNS: [&str; 6] = [
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
];
const HELD: [&str; 2] = ["REQUEUE_HOLD", "SPECIAL_EXIT"];
/// What a controller that cannot be reached makes sbatch say (src/common/slurm_errno.c).
const SILENT: [&str; 4] = [
    "Unable to contact",
    "timed out",
    "Connection refused",
    "in standby mode",
];

/// The Slurm of a site.
#[derive(Debug)]
pub(super) struct Slurm {
    pub(super) settings: SlurmSettings,
    /// Machines with the nodes that stand for them.
    pub(super) nodes: Vec<(String, String)>,
}

impl Slurm {
    fn options(&self, job: &Submission<'_>) -> Vec<String> {
        let own = [
            "--parsable".to_owned(),
            format!("--job-name={}", job.name),
            format!("--comment=marvin: {}", job.about),
            format!("--time={}", job.minutes),
            "--requeue".to_owned(),
            "--exclusive".to_owned(),
            "--chdir=/".to_owned(),
            "--output=/dev/null".to_owned(),
        ];
        let node = self
            .nodes
            .iter()
            .find(|(machine, _)| machine == job.machine);
        let place = match node {
            Some((_, node)) => vec![format!("--nodelist={node}")],
            None if job.machine == USUAL_MACHINE => self.settings.exact.clone(),
            None => Vec::new(),
        };
        // Of two equal options the last one counts: the site's word stands.
        own.into_iter()
            .chain(self.settings.options.iter().cloned())
            .chain(place)
            .collect()
    }
}

impl BatchSystem for Slurm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn list(&self) -> Result<Vec<BatchJob>, BatchError> {
        let arguments = [
            "--me",
            "--noheader",
            "--states=all",
            "--format=%i|%T|%r|%N|%j",
        ];
        let ended = answer(&Program::new("squeue").args(arguments), "")?;
        if ended.code != Some(0) {
            return Err(silent(ended.reason()));
        }
        Ok(ended.text().lines().filter_map(job).collect())
    }

    fn submit(&self, job: &Submission<'_>) -> Result<String, BatchError> {
        let ended = answer(
            &Program::new("sbatch").args(self.options(job)),
            &script(job.command),
        )?;
        // 17, or 17;cluster
        let text = ended.text();
        let id = text.trim().split(';').next().unwrap_or_default();
        match ended.code {
            Some(0) if !id.is_empty() => Ok(id.to_owned()),
            _ if SILENT.iter().any(|text| ended.stderr.contains(text)) => {
                Err(silent(ended.reason()))
            }
            _ => Err(BatchError::Refused {
                system: NAME,
                reason: model::sanitize_line(&ended.reason()),
            }),
        }
    }

    fn cancel(&self, id: &str) -> Result<(), BatchError> {
        let ended = answer(&Program::new("scancel").args(["--quiet", id]), "")?;
        if ended.code == Some(0) {
            Ok(())
        } else {
            Err(silent(ended.reason()))
        }
    }
}

fn silent(reason: String) -> BatchError {
    BatchError::Silent {
        system: NAME,
        reason: model::sanitize_line(&reason),
    }
}

/// Runs a command of Slurm. It gets the whole environment: SLURM_CONF, and what the job is to have.
fn answer(program: &Program, input: &str) -> Result<Ended, BatchError> {
    let fed = program
        .clone()
        .inherit_all()
        .deadline_s(COMMAND_S)
        .fed(|to| to.write_all(input.as_bytes()));
    fed.map(|(ended, _)| ended).map_err(|error| match error {
        ProgramError::Missing(name) => silent(format!(
            "no {name} on this host (apt-get install slurm-client)"
        )),
        other => silent(other.to_string()),
    })
}

/// Parses a line of squeue.
fn job(line: &str) -> Option<BatchJob> {
    let mut fields = line.splitn(5, '|');
    let [id, state, reason, node, name] = std::array::from_fn(|_| fields.next());
    let id = id?;
    let state = state?;
    let reason = reason?;
    let node = node?;
    let name = name?.trim();
    if !name.starts_with("marvin-") {
        return None;
    }
    let is_held =
        reason.starts_with("JobHeld") || reason.contains("held") || reason == "JobHoldMaxRequeue";
    let kind = match state {
        _ if HELD.contains(&state) => BatchState::Held,
        _ if WAITS.contains(&state) && is_held => BatchState::Held,
        _ if WAITS.contains(&state) => BatchState::Waits,
        _ if RUNS.contains(&state) => BatchState::Runs,
        _ => BatchState::Ended,
    };
    let about = match kind {
        BatchState::Runs => format!("on {node}"),
        BatchState::Ended if ["None", ""].contains(&reason) => state.to_owned(),
        BatchState::Ended => format!("{state}, {reason}"),
        BatchState::Waits | BatchState::Held => reason.to_owned(),
    };
    Some(BatchJob {
        id: id.to_owned(),
        name: name.to_owned(),
        state: kind,
        about: model::sanitize_line(&about),
    })
}

#[cfg(test)]
mod tests {
    use model::SlurmSettings;

    use super::{BatchState, Slurm, Submission, job};

    #[test]
    fn lines_of_squeue_become_jobs() {
        // As Slurm 22.05 prints them.
        for (line, state, about) in [
            ("PENDING|Resources|", BatchState::Waits, "Resources"),
            ("RUNNING|None|bm1", BatchState::Runs, "on bm1"),
            ("PENDING|BeginTime|", BatchState::Waits, "BeginTime"),
            ("PENDING|JobHeldUser|", BatchState::Held, "JobHeldUser"),
            (
                "PENDING|launch failed requeued held|",
                BatchState::Held,
                "launch failed requeued held",
            ),
            (
                "FAILED|NonZeroExitCode|bm1",
                BatchState::Ended,
                "FAILED, NonZeroExitCode",
            ),
            ("COMPLETED|None|bm1", BatchState::Ended, "COMPLETED"),
            ("NODE_FAIL|None|bm1", BatchState::Ended, "NODE_FAIL"),
        ] {
            let job = job(&format!("4|{line}|marvin-1-5-0")).unwrap();
            assert_eq!((job.state, job.about.as_str()), (state, about), "{line}");
        }
        assert_eq!(job("12|RUNNING|None|bm1|build|all"), None);
        assert_eq!(job("12|RUNNING"), None);
    }

    #[test]
    fn sites_options_come_after_ours() {
        let slurm = Slurm {
            settings: SlurmSettings {
                options: vec!["--nice=10".to_owned()],
                exact: vec!["--constraint=amd".to_owned()],
            },
            nodes: vec![("testbox".to_owned(), "bm1".to_owned())],
        };
        let tail = |machine| {
            let command = &["true".into()];
            let job = Submission {
                name: "marvin-7-5-0",
                about: "deb:6.12",
                machine,
                minutes: 5,
                command,
            };
            slurm.options(&job).split_off(7)
        };
        assert_eq!(
            tail("exact"),
            ["--output=/dev/null", "--nice=10", "--constraint=amd"]
        );
        assert_eq!(
            tail("testbox"),
            ["--output=/dev/null", "--nice=10", "--nodelist=bm1"]
        );
    }
}

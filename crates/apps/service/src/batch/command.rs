//! Another batch system, by a program of the site:
//!
//! * `PROGRAM… submit NAME MINUTES MACHINE` sends the script on its standard input, and prints the
//!   job's number there;
//! * `PROGRAM… list` prints a line for each job of Marvin that waits, runs or ended lately: `NUMBER
//!   NAME STATE REMARK…`, where the state is `waits`, `held`, `runs` or `ended`;
//! * `PROGRAM… cancel NUMBER` cancels a job.
//!
//! Each ends with 0. Status 75 (EX_TEMPFAIL of sysexits.h) says that the system does not answer
//! now, another one that it refuses.

use subprocess::{Ended, Program};

use super::{BatchError, BatchJob, BatchState, BatchSystem, Submission, script};

/// Deadline of one command (s).
const COMMAND_S: u64 = 60;
const NAME: &str = "the batch system";
const LATER: i32 = 75;

/// A program that speaks to the batch system.
#[derive(Debug)]
pub(super) struct SiteProgram {
    pub(super) command: Vec<String>,
}

impl SiteProgram {
    fn ask(&self, arguments: &[&str], input: &str) -> Result<Ended, BatchError> {
        let (name, first) = self
            .command
            .split_first()
            .map_or(("", &[][..]), |(name, first)| (name, first));
        let program = Program::new(name)
            .args(first)
            .args(arguments)
            .inherit_all()
            .deadline_s(COMMAND_S);
        let (ended, _) = program
            .fed(|to| to.write_all(input.as_bytes()))
            .map_err(|error| silent(&error.to_string()))?;
        match ended.code {
            Some(0) => Ok(ended),
            Some(LATER) | None => Err(silent(&ended.reason())),
            Some(_) => Err(BatchError::Refused {
                system: NAME,
                reason: model::sanitize_line(&ended.reason()),
            }),
        }
    }
}

impl BatchSystem for SiteProgram {
    fn name(&self) -> &'static str {
        NAME
    }

    fn list(&self) -> Result<Vec<BatchJob>, BatchError> {
        let text = self.ask(&["list"], "").map_err(|error| match error {
            // A list cannot be refused.
            BatchError::Refused { reason, .. } => silent(&reason),
            silent @ BatchError::Silent { .. } => silent,
        })?;
        Ok(text.text().lines().filter_map(job).collect())
    }

    fn submit(&self, job: &Submission<'_>) -> Result<String, BatchError> {
        let minutes = job.minutes.to_string();
        let ended = self.ask(
            &["submit", job.name, &minutes, job.machine],
            &script(job.command),
        )?;
        let text = ended.text();
        match text.split_whitespace().next_back() {
            Some(id) => Ok(id.to_owned()),
            None => Err(BatchError::Refused {
                system: NAME,
                reason: "it printed no number".to_owned(),
            }),
        }
    }

    fn cancel(&self, id: &str) -> Result<(), BatchError> {
        match self.ask(&["cancel", id], "") {
            Ok(_) | Err(BatchError::Refused { .. }) => Ok(()),
            Err(silent) => Err(silent),
        }
    }
}

fn silent(reason: &str) -> BatchError {
    BatchError::Silent {
        system: NAME,
        reason: model::sanitize_line(reason),
    }
}

fn job(line: &str) -> Option<BatchJob> {
    let mut fields = line.split_whitespace();
    let id = fields.next()?;
    let name = fields.next()?;
    let state = fields.next()?;
    let states = [
        BatchState::Waits,
        BatchState::Held,
        BatchState::Runs,
        BatchState::Ended,
    ];
    let state = states.into_iter().find(|one| one.name() == state)?;
    let about = model::sanitize_line(&fields.collect::<Vec<_>>().join(" "));
    name.starts_with("marvin-").then(|| BatchJob {
        id: id.to_owned(),
        name: name.to_owned(),
        state,
        about,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{BatchError, BatchState, BatchSystem, Submission};
    use super::SiteProgram;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script, "site"].map(str::to_owned).to_vec()
    }

    #[test]
    fn sites_program_sends_lists_and_cancels() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let text = "case $1 in
            submit) echo \"$2 $3 $4\" >> LOG; cat >> LOG; echo queued as 17;;
            list) echo '17 marvin-1-5-0 runs on node 3'; echo '18 other runs'; echo '19 marvin-2-5-0 pondering';;
            cancel) echo 'no such job' >&2; exit 1;;
        esac";
        let system = SiteProgram {
            command: shell(&text.replace("LOG", &log.display().to_string())),
        };
        let command = ["true".into()];
        let job = Submission {
            name: "marvin-1-5-0",
            about: "deb:6.12",
            machine: "exact",
            minutes: 4,
            command: &command,
        };
        assert_eq!(system.submit(&job).unwrap(), "17");
        assert_eq!(
            std::fs::read_to_string(&log).unwrap(),
            "marvin-1-5-0 4 exact\n#!/bin/sh\nexec 'true'\n"
        );
        let listed = system.list().unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(
            (listed[0].state, listed[0].about.as_str()),
            (BatchState::Runs, "on node 3")
        );
        system.cancel("17").unwrap();
        let down = SiteProgram {
            command: shell("echo 'no server' >&2; exit 75"),
        };
        let error = down.submit(&job).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the batch system does not answer: no server"
        );
        assert!(matches!(down.cancel("17"), Err(BatchError::Silent { .. })));
    }
}

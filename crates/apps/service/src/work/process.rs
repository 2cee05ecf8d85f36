//! Runs a job in a process of its own: starts it, watches it, kills it when it takes too long, and
//! reads its result.
//!
//! The process prints the result in one line on standard output; its exit code says whose fault an
//! error is.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::{Ending, QueuedJob};
use subprocess::{Program, Running, signal_of};

use super::{Attempt, Executor, JobResult};
use crate::ServiceError;

/// Interval between checks of a process.
const LOOK: Duration = Duration::from_millis(100);
/// How much longer the job's guard waits than the worker, which says why it kills a job.
const GUARD_GRACE_S: u64 = 10;
/// Checks whether the job is still wanted once per this many intervals.
const ASK: u32 = 10;
/// Length limit of an answer (bytes).
const ANSWER_MAX: u64 = 4096;
/// Length limit of a stored reason (characters).
const REASON_MAX: usize = 600;

/// Executes jobs by starting a program for each: the command, and the job's number as its last
/// argument.
#[derive(Debug, Clone)]
pub struct JobProcess {
    /// The program and its arguments, without the number.
    pub command: Vec<std::ffi::OsString>,
    /// Directory of the logs, `NUMBER.log`. Kept for jobs that failed.
    pub logs: PathBuf,
}

impl Executor for JobProcess {
    fn attempt(
        &self,
        job: &QueuedJob,
        goes_on: &dyn Fn() -> Result<bool, ServiceError>,
    ) -> Result<Attempt, ServiceError> {
        let log = self.logs.join(format!("{}.log", job.number));
        let opened = fs::create_dir_all(&self.logs).and_then(|()| File::create(&log));
        let file = match opened {
            Ok(file) => file,
            Err(error) => return Ok(lab_failed(format!("{}: {error}", log.display()))),
        };
        let mut child = match self.start(job, file) {
            Ok(child) => child,
            Err(error) => {
                return Ok(lab_failed(format!(
                    "cannot start the job's process: {error}"
                )));
            }
        };
        let ended = wait(&mut child, Duration::from_secs(job.new.deadline_s), goes_on);
        let status = match ended {
            Ok(Ended::By(status)) => status,
            Ok(Ended::Overran) => return Ok(Attempt::ended(Ending::Overran)),
            // The queue refuses the result of an unwanted job, whatever it is.
            Ok(Ended::Unwanted) => return Ok(lab_failed("no longer wanted".into())),
            Err(error) => {
                return Err(error);
            }
        };
        let mut answer = String::new();
        if let Some(output) = child.take_output() {
            // An unreadable answer counts as none.
            drop(output.take(ANSWER_MAX).read_to_string(&mut answer));
        }
        let messages = fs::read(&log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let attempt = judge(
            status.code().filter(|_| signal_of(status).is_none()),
            answer.trim(),
            &messages,
        );
        if attempt.ending == Ending::Done(String::new()) {
            // The log of a successful job is not needed; ignore a failed removal.
            drop(fs::remove_file(&log));
        }
        Ok(attempt)
    }
}

impl JobProcess {
    fn start(&self, job: &QueuedJob, log: File) -> std::io::Result<Running> {
        let (name, arguments) = self
            .command
            .split_first()
            .ok_or(std::io::ErrorKind::InvalidInput)?;
        // The job dies with its worker: the next holder must find the data directory unlocked. Its
        // guard ends it if the worker hangs.
        Program::new(name)
            .args(arguments)
            .args([job.number.to_string()])
            .inherit_all()
            .deadline_s(job.new.deadline_s.saturating_add(GUARD_GRACE_S))
            .start(Stdio::null(), Stdio::piped(), log.into())
    }
}

/// How a process ended.
enum Ended {
    By(ExitStatus),
    Overran,
    Unwanted,
}

fn wait(
    child: &mut Running,
    deadline: Duration,
    goes_on: &dyn Fn() -> Result<bool, ServiceError>,
) -> Result<Ended, ServiceError> {
    let begun = Instant::now();
    for look in 1_u32.. {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Ended::By(status)),
            Ok(None) | Err(_) if begun.elapsed() > deadline => {
                child.kill().ok();
                return Ok(Ended::Overran);
            }
            _ => {}
        }
        if look.is_multiple_of(ASK) && !goes_on()? {
            child.kill().ok();
            return Ok(Ended::Unwanted);
        }
        std::thread::sleep(LOOK);
    }
    Ok(Ended::Overran)
}

fn lab_failed(why: String) -> Attempt {
    Attempt::ended(Ending::Lab(why))
}

/// Derives the result of a job from its exit code, answer and messages. The answer counts more than
/// the code: a process may fail after it has printed its result.
fn judge(code: Option<i32>, answer: &str, messages: &str) -> Attempt {
    match (code, JobResult::read(answer)) {
        (_, Some(JobResult::Busy(who))) => Attempt::ended(Ending::Busy(who)),
        (_, Some(JobResult::Done)) => Attempt::ended(Ending::Done(String::new())),
        (_, Some(JobResult::NoKernel(why))) => Attempt {
            no_kernel: Some(why.clone()),
            ..Attempt::ended(Ending::Done(why))
        },
        (_, Some(JobResult::MachineFailed(why))) => Attempt {
            machine_failed: true,
            ..Attempt::ended(Ending::Lab(why))
        },
        (_, Some(JobResult::WorkloadsFailed(why))) => Attempt::ended(Ending::Done(why)),
        (Some(2), None) => Attempt::ended(Ending::Wrong(reason(messages))),
        (Some(70), None) => Attempt::ended(Ending::Wrong(format!(
            "a bug in marvin: {}",
            reason(messages)
        ))),
        (Some(_), None) => Attempt::ended(Ending::Lab(reason(messages))),
        (None, None) => Attempt::ended(Ending::Lab("its process was killed".into())),
    }
}

/// Returns the error that a process printed, with its causes.
fn reason(messages: &str) -> String {
    let error = match messages.rsplit_once("error: ") {
        Some((_, error)) => error,
        None => messages.lines().last().unwrap_or_default(),
    };
    if error.trim().is_empty() {
        "no error message".into()
    } else {
        short(error)
    }
}

/// Returns a text in one line, of bounded length.
pub(crate) fn short(text: &str) -> String {
    let fields: Vec<&str> = text.split_whitespace().collect();
    fields
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(REASON_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use model::{Ending, NewJob, QueuedJob, UnixTime, Work};

    use super::{JobProcess, judge};
    use crate::{Attempt, Executor};

    fn job(deadline_s: u64) -> QueuedJob {
        let work = Work {
            kernel: "deb:6.12".parse().unwrap(),
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec![],
            seeds: 1,
            machine: model::USUAL_MACHINE.to_owned(),
        };
        let new = NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 2,
            deadline_s,
        };
        QueuedJob::queued(7, new, UnixTime::new(0))
    }

    fn done_by(script: &str, deadline_s: u64, wanted: bool) -> Attempt {
        let logs = tempfile::tempdir().unwrap();
        let command = ["sh", "-c", script, "job"].map(Into::into).to_vec();
        let process = JobProcess {
            command,
            logs: logs.path().join("jobs"),
        };
        process.attempt(&job(deadline_s), &|| Ok(wanted)).unwrap()
    }

    #[test]
    fn process_answer_and_exit_decide_the_result() {
        assert_eq!(
            done_by("test $1 = 7 && echo done", 60, true).ending,
            Ending::Done(String::new())
        );
        let kernel = done_by("echo kernel does not boot: panic; exit 4", 60, true);
        assert_eq!(kernel.ending, Ending::Done("does not boot: panic".into()));
        assert_eq!(kernel.no_kernel.as_deref(), Some("does not boot: panic"));
        let broken = done_by(
            "echo booting >&2; echo 'error: no network' >&2; echo '  because: x' >&2; exit 5",
            60,
            true,
        );
        assert_eq!(broken.ending, Ending::Lab("no network because: x".into()));
        assert_eq!(
            done_by("kill -9 $$", 60, true).ending,
            Ending::Lab("its process was killed".into())
        );
        assert_eq!(done_by("sleep 60", 1, true).ending, Ending::Overran);
        assert_eq!(
            done_by("sleep 60", 60, false).ending,
            Ending::Lab("no longer wanted".into())
        );
        let missing = JobProcess {
            command: vec!["/nonexistent/marvin".into()],
            logs: std::env::temp_dir(),
        };
        assert!(matches!(
            missing.attempt(&job(60), &|| Ok(true)).unwrap().ending,
            Ending::Lab(_)
        ));
    }

    #[test]
    fn wrong_input_and_bugs_are_not_retried() {
        assert_eq!(
            judge(Some(2), "", "error: no suite `x`").ending,
            Ending::Wrong("no suite `x`".into())
        );
        assert_eq!(
            judge(Some(70), "", "").ending,
            Ending::Wrong("a bug in marvin: no error message".into())
        );
        assert_eq!(
            judge(Some(5), "busy ben has it", "").ending,
            Ending::Busy("ben has it".into())
        );
        let failed = judge(Some(5), "machine testbox is lost", "");
        assert_eq!(
            (failed.ending, failed.machine_failed),
            (Ending::Lab("testbox is lost".into()), true)
        );
        assert_eq!(
            judge(Some(4), "workloads fork: panic", "").ending,
            Ending::Done("fork: panic".into())
        );
    }
}

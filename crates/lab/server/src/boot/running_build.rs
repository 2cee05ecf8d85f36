//! A build that a server runs, and its jobs.

use std::sync::Arc;

use machine::{
    Booted, DeadMemory, JobEnd, MachineError, Observe, read_end, refuse_guest_config, report_frame,
    take_disturbance,
};
use model::{FailureReason, Stage, sanitize_line};
use subprocess::Shared;
use wire::{Frame, Job, Stream, Task};

use super::{ServerMachine, Session, Start, died};
use crate::remote::{AgentBoot, Kernel, NO_PLACE, OTHER_BOOT, TIMED_OUT};

/// A build that the server runs.
#[derive(Debug)]
pub(super) struct RunningBuild {
    pub(super) on: Arc<ServerMachine>,
    pub(super) tag: String,
    pub(super) release: String,
    pub(super) build_id: Option<String>,
    /// What was sent there; kept if the server forgets it by a reset.
    pub(super) archive: Vec<u8>,
    /// What the first boot printed.
    pub(super) console: Vec<u8>,
    /// The present boot; none after one that died.
    pub(super) session: Shared<Option<Session>>,
    /// The memory of the kernel that died last, or why it was not saved.
    pub(super) dead: Shared<Option<Result<DeadMemory, MachineError>>>,
}

impl Booted for RunningBuild {
    fn boot_console(&self) -> &[u8] {
        &self.console
    }

    fn run(&self, job: &Job, _: Observe<'_>) -> Result<JobEnd, MachineError> {
        let bytes = job.encode()?;
        let handle = &self.on.handle;
        if let Some(refused) = refuse_guest_config(&self.on.guest_config) {
            return Ok(refused);
        }
        let session = match self.session()? {
            Start::Ready(session) => session,
            Start::KernelFailed { failure, console } => {
                return Ok(JobEnd::unobserved(Err(failure), console));
            }
        };
        let on = AgentBoot {
            id: &session.boot_id,
            deadline_s: handle.job_s,
            files: self.on.files.as_ref(),
        };
        match handle.remote.run_agent(&on, &["job"], &bytes) {
            Ok(ended) if ended.code == Some(OTHER_BOOT) => self.after_silence(&session),
            // Nothing ran: the server, or this kernel, cannot hold the program.
            Ok(ended) if ended.code == Some(NO_PLACE) => {
                let why = Frame::Unsupported(sanitize_line(&ended.reason()));
                let stream = Stream { frames: vec![why] };
                Ok(JobEnd::unobserved(Ok(stream), handle.control.new_console()))
            }
            // The agent answered, so the kernel lives and only the job hung: the next job runs in
            // the same boot.
            Ok(ended) if ended.code == Some(TIMED_OUT) => {
                let console = handle.control.new_console();
                Ok(JobEnd::unobserved(
                    Err(died(Stage::Workload, FailureReason::Hung, &console)),
                    console,
                ))
            }
            Ok(ended) => {
                let (mut stream, _) = read_end(&ended, job.id);
                let mut disturbance = None;
                if let Ok(stream) = &mut stream {
                    disturbance = take_disturbance(stream, handle.disturbed_share);
                    if job.task == Task::Environment {
                        stream.frames.push(report_frame(&session.report));
                    }
                }
                Ok(JobEnd {
                    disturbance,
                    ..JobEnd::unobserved(stream, handle.control.new_console())
                })
            }
            Err(problem) if problem.is_silence() => self.after_silence(&session),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Returns the memory of the kernel that died: on a server it may not die again.
    fn run_to_death(&self, _: &Job) -> Result<Option<DeadMemory>, MachineError> {
        self.dead.lock().take().transpose()
    }
}

impl RunningBuild {
    /// Returns the boot for the next job; boots again if the last one died.
    fn session(&self) -> Result<Start, MachineError> {
        let mut session = self.session.lock();
        if let Some(session) = &*session {
            return Ok(Start::Ready(session.clone()));
        }
        // It is installed: nothing has to be sent, but to a server that runs from memory.
        let build_id = self.build_id.as_deref();
        let kernel = Kernel {
            tag: &self.tag,
            release: &self.release,
            build_id,
            archive: &self.archive,
        };
        let started = self.on.boot_kernel(&kernel)?;
        if let Start::Ready(again) = &started {
            *session = Some(again.clone());
        }
        Ok(started)
    }

    /// Finds out why the connection ended during a job: cut, or the kernel died.
    fn after_silence(&self, session: &Session) -> Result<JobEnd, MachineError> {
        let (mut reason, console) = self.on.handle.find_death(&session.boot_id, "a job")?;
        // First of all: whatever is found out below, the next job has to boot again.
        *self.session.lock() = None;
        self.on.check_emulator(&console)?;
        let dead = self.on.handle.read_dead_memory();
        // The memory is saved by a kernel that only a panic starts.
        if matches!(dead, Some(Ok(_))) {
            reason = FailureReason::Panicked;
        }
        *self.dead.lock() = dead;
        Ok(JobEnd::unobserved(
            Err(died(Stage::Workload, reason, &console)),
            console,
        ))
    }
}

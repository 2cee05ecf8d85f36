//! What a worker or a dispatcher says of its events, with their jobs; states that last are not
//! repeated.

use std::cell::RefCell;

use model::{JobState, QueuedJob};
use service::{DispatchEvent, WorkEvent, format_dispatch_event, format_work_event};

use crate::exit::describe_error;
use crate::session::{About, LastingState, LogLevel, is_log_on, write_event};

/// The journal of a process that works on the queue.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Whether it tells failures only, where there is no log.
    is_quiet: bool,
    /// The job in hand.
    job: RefCell<Option<QueuedJob>>,
    idle: RefCell<LastingState>,
    /// Why no job can be worked on.
    failure: RefCell<LastingState>,
    /// Why the batch system does not answer.
    silence: RefCell<LastingState>,
}

fn about(job: &QueuedJob) -> About<'_> {
    About {
        job: Some(job.number),
        machine: Some(&job.new.work.machine),
    }
}

impl Journal {
    pub(crate) fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            ..Self::default()
        }
    }

    pub(crate) fn note_work(&self, event: &WorkEvent) {
        let text = format_work_event(event);
        match event {
            WorkEvent::Requeued(job) => self.write(LogLevel::Warn, about(job), &text),
            WorkEvent::Begun(job) => {
                self.end_idle();
                self.write(LogLevel::Info, about(job), &text);
                self.job.replace(Some(job.clone()));
            }
            WorkEvent::Ended(job) => {
                self.job.take();
                self.end_failure();
                let level = match job.state {
                    JobState::Failed => LogLevel::Error,
                    JobState::Waiting { .. } => LogLevel::Warn,
                    _ => LogLevel::Info,
                };
                self.write(level, about(job), &text);
            }
            WorkEvent::Idle(_) => {
                self.end_failure();
                if self.speaks() {
                    let mut idle = self.idle.borrow_mut();
                    idle.hold(LogLevel::Info, About::default(), &text);
                }
            }
        }
    }

    pub(crate) fn note_dispatch(&self, event: &DispatchEvent, system: &str) {
        match event {
            DispatchEvent::Work(event) => self.note_work(event),
            DispatchEvent::Sent(job, _) => {
                self.end_idle();
                self.write(
                    LogLevel::Info,
                    about(job),
                    &format_dispatch_event(event, system),
                );
            }
            DispatchEvent::Held(job, _) => {
                self.write(
                    LogLevel::Warn,
                    about(job),
                    &format_dispatch_event(event, system),
                );
            }
            DispatchEvent::Silent(_) if self.speaks() => self.silence.borrow_mut().hold(
                LogLevel::Warn,
                About::default(),
                &format_dispatch_event(event, system),
            ),
            DispatchEvent::Silent(_) => {}
            DispatchEvent::Answers => {
                let text = format_dispatch_event(event, system);
                self.silence.borrow_mut().end(About::default(), &text);
            }
        }
    }

    /// Says why the worker cannot go on now, with the job that it has in hand.
    pub(crate) fn note_failure(&self, error: &anyhow::Error) {
        let job = self.job.borrow();
        let subject = job.as_ref().map(about).unwrap_or_default();
        let mut failure = self.failure.borrow_mut();
        failure.hold(LogLevel::Error, subject, &describe_error(error));
    }

    fn speaks(&self) -> bool {
        !self.is_quiet || is_log_on()
    }

    fn write(&self, level: LogLevel, about: About<'_>, text: &str) {
        if self.speaks() {
            write_event(level, about, text);
        }
    }

    fn end_failure(&self) {
        let text = "the worker goes on";
        self.failure.borrow_mut().end(About::default(), text);
    }

    fn end_idle(&self) {
        let mut idle = self.idle.borrow_mut();
        // At a terminal the job's own line says it.
        if is_log_on() {
            idle.end(About::default(), "a job is free");
        }
    }
}

//! The lines that workers and dispatchers print, and what switches idle servers off.

use crate::idle::IdleEvent;
use crate::{DispatchEvent, WorkEvent};

/// Returns the line for an event of a worker.
#[must_use]
pub fn format_work_event(event: &WorkEvent) -> String {
    match event {
        WorkEvent::Requeued(job) => {
            let times = if job.kills > 1 {
                format!(", {} in a row", job.kills)
            } else {
                String::new()
            };
            format!(
                "job {}: its worker died{times}; the job is {}",
                job.number,
                job.state.name()
            )
        }
        WorkEvent::Begun(job) => format!("job {}: {}", job.number, job.new.work),
        WorkEvent::Ended(job) if job.reason.is_empty() => {
            format!("job {} is {}", job.number, job.state.name())
        }
        WorkEvent::Ended(job) => {
            format!("job {} is {}: {}", job.number, job.state.name(), job.reason)
        }
        WorkEvent::Idle(0) => "the queue is empty".to_owned(),
        WorkEvent::Idle(_) => "no job is free now: `marvin queue list` shows when".to_owned(),
    }
}

/// Returns the line for an event of a dispatcher.
#[must_use]
pub fn format_dispatch_event(event: &DispatchEvent, system: &str) -> String {
    match event {
        DispatchEvent::Sent(job, id) => format!(
            "job {}: sent to {system} as {id}: {}",
            job.number, job.new.work
        ),
        DispatchEvent::Held(job, why) => format!("job {}: held by {system}: {why}", job.number),
        DispatchEvent::Silent(error) => format!("{error}; jobs wait"),
        DispatchEvent::Answers => format!("{system} answers again"),
        DispatchEvent::Work(event) => format_work_event(event),
    }
}

/// Returns the line for an event of idle servers.
#[must_use]
pub(crate) fn format_idle_event(event: &IdleEvent) -> String {
    match event {
        IdleEvent::Off(name) => format!("{name} was idle: it is off until a measurement needs it"),
        IdleEvent::StaysOn { name, why } => {
            format!(
                "{name} is not switched off: {}",
                why.lines().next().unwrap_or_default()
            )
        }
    }
}

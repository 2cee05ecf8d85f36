//! The lab at work: its machines, and its jobs.

use askama::Template;
use document::number::{duration, minute};
use model::UnixTime;

use super::{Frame, Rendered, render};
use crate::jobs::{LabDocument, LabJob, WorkingMachine};

const NONE: &str = "-";

#[derive(Template)]
#[template(path = "lab.html")]
struct Page {
    frame: Frame,
    now: String,
    machines: Vec<Machine>,
    jobs: Vec<Job>,
    /// The number of open jobs that are not among them; empty without any.
    unlisted: String,
    /// The number of messages that no channel has taken yet; empty without any.
    undelivered: String,
}

struct Machine {
    name: String,
    state: &'static str,
    is_ill: bool,
    about: String,
    until: String,
    waiting: usize,
    done: usize,
    failed: usize,
}

struct Job {
    number: u64,
    state: &'static str,
    is_ill: bool,
    machine: String,
    work: String,
    begun: String,
    took: String,
    reason: String,
}

/// Renders the lab at work.
pub(crate) fn lab(frame: Frame, lab: &LabDocument) -> Rendered {
    let machines = lab.machines.iter().map(machine).collect();
    let jobs = lab.jobs.iter().map(|one| job(one, lab.now_unix)).collect();
    render(&Page {
        frame,
        now: minute(UnixTime::new(lab.now_unix)),
        machines,
        jobs,
        unlisted: number_if_any(lab.unlisted()),
        undelivered: number_if_any(lab.undelivered),
    })
}

/// Returns a number, or an empty text for zero.
fn number_if_any(number: usize) -> String {
    if number == 0 {
        return String::new();
    }
    number.to_string()
}

fn machine(one: &WorkingMachine) -> Machine {
    Machine {
        name: one.name.clone(),
        state: one.state,
        is_ill: ["quarantined", "lost"].contains(&one.state),
        about: one.about.clone(),
        until: minute_if_any(one.until_unix),
        waiting: one.waiting,
        done: one.done,
        failed: one.failed,
    }
}

fn minute_if_any(seconds: Option<i64>) -> String {
    seconds.map_or_else(|| NONE.to_owned(), |seconds| minute(UnixTime::new(seconds)))
}

fn job(one: &LabJob, now_unix: i64) -> Job {
    let ended = one
        .ended_unix
        .or((one.state == "running").then_some(now_unix));
    Job {
        number: one.number,
        state: one.state,
        is_ill: one.state == "failed",
        machine: one.machine.clone(),
        work: one
            .work
            .strip_suffix(&format!(" on {}", one.machine))
            .unwrap_or(&one.work)
            .to_owned(),
        begun: minute_if_any(one.started_unix),
        took: one.started_unix.zip(ended).map_or_else(
            || NONE.to_owned(),
            |(from, to)| duration(u64::try_from(to.saturating_sub(from)).unwrap_or(0)),
        ),
        reason: one
            .worker
            .as_ref()
            .map_or_else(|| one.reason.clone(), |worker| format!("on {worker}")),
    }
}

//! The lab at work: its machines with what they do and for whom, and its latest jobs. Read from the
//! store at each request; the page, the document and the metrics show the same values.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Health, JobState, QueuedJob, Reservation, USUAL_MACHINE, UnixTime, describe_off, quarantine_of,
    reservation_of,
};
use serde::Serialize;
use store::{QueueOverview, Store, StoreError};

use document::SCHEMA_VERSION;

/// Limits on listed jobs that are not over, and that are.
const OPEN_MAX: u32 = 100;
const OVER_MAX: u32 = 50;
/// The states of jobs, in the order of the metrics.
pub(crate) const STATES: [&str; 6] = [
    "waiting",
    "running",
    "done",
    "failed",
    "cancelled",
    "replaced",
];

/// The lab at work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LabDocument {
    pub(crate) schema_version: u32,
    /// The time of this document (seconds since 1970-01-01 UTC).
    pub(crate) now_unix: i64,
    pub(crate) machines: Vec<WorkingMachine>,
    /// The first open jobs in their order, then the latest that are over.
    pub(crate) jobs: Vec<LabJob>,
    /// Notices that are not delivered yet.
    pub(crate) undelivered: usize,
    /// All jobs by state, also those not listed.
    pub(crate) states: BTreeMap<&'static str, usize>,
    /// Seconds that jobs took which are done, in sum, and their number.
    pub(crate) done_seconds: u64,
}

/// A machine that has jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WorkingMachine {
    pub(crate) name: String,
    /// `ready`, `measuring`, `lost` (its worker was killed), `reserved`, `off` or `quarantined`.
    pub(crate) state: &'static str,
    /// Who has it, what switches it on, or why it is quarantined; empty without any.
    pub(crate) about: String,
    /// When reservation, lease or quarantine's pause end (seconds since 1970-01-01 UTC).
    pub(crate) until_unix: Option<i64>,
    pub(crate) waiting: usize,
    pub(crate) done: usize,
    pub(crate) failed: usize,
    /// Failures of the lab in a row.
    pub(crate) failures: u32,
    /// How long the first free job has waited (s).
    pub(crate) waits_s: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LabJob {
    pub(crate) number: u64,
    pub(crate) machine: String,
    pub(crate) state: &'static str,
    pub(crate) work: String,
    pub(crate) worker: Option<String>,
    pub(crate) started_unix: Option<i64>,
    pub(crate) ended_unix: Option<i64>,
    pub(crate) reason: String,
}

impl LabDocument {
    /// Reads it; `servers` are those of marvin.toml, `off` those whose power is off.
    pub(crate) fn read(
        store: &Store,
        servers: &[String],
        off: &BTreeSet<String>,
        own_unix: UnixTime,
    ) -> Result<Self, StoreError> {
        let now_unix = store.time(own_unix)?;
        let queue = store.queue_overview(now_unix, OPEN_MAX, OVER_MAX)?;
        let reservations = store.reservations(own_unix)?;
        let health = store.health()?;
        let mut names: Vec<&str> = vec![USUAL_MACHINE];
        let others = servers
            .iter()
            .map(String::as_str)
            .chain(queue.counts.iter().map(|count| &*count.machine));
        for name in others {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let now = Now {
            queue: &queue,
            reservations: &reservations,
            health: &health,
            off,
            now_unix,
        };
        let mut states: BTreeMap<&'static str, usize> = STATES.map(|state| (state, 0)).into();
        for count in &queue.counts {
            *states.entry(count.state).or_default() += count.jobs;
        }
        let open = queue
            .running
            .iter()
            .chain(&queue.waiting)
            .take(OPEN_MAX as usize);
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            now_unix: now_unix.seconds(),
            machines: names.into_iter().map(|name| now.working(name)).collect(),
            undelivered: store.list_undelivered()?.len(),
            done_seconds: queue.took_s,
            jobs: open.chain(&queue.over).map(listed).collect(),
            states,
        })
    }

    /// Returns the number of open jobs that are not listed.
    pub(crate) fn unlisted(&self) -> usize {
        let open: usize = ["waiting", "running"]
            .iter()
            .filter_map(|state| self.states.get(state))
            .sum();
        open.saturating_sub(
            self.jobs
                .iter()
                .filter(|job| ["waiting", "running"].contains(&job.state))
                .count(),
        )
    }

    /// Returns a number of each machine, with its label.
    fn each_machine(&self, value: fn(&WorkingMachine) -> u64) -> Vec<(String, u64)> {
        self.machines
            .iter()
            .map(|machine| {
                let label = format!("{{machine=\"{}\"}}", escape(&machine.name));
                (label, value(machine))
            })
            .collect()
    }

    /// Returns the metrics of machines and queue, in Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        let states = self.machines.iter().map(|machine| {
            let name = escape(&machine.name);
            let labels = format!("{{machine=\"{name}\",state=\"{}\"}}", machine.state);
            (labels, 1)
        });
        text += &family(
            "marvin_machine_state",
            "gauge",
            "1 for the state that a machine is in.",
            states.collect(),
        );
        let failures = self.each_machine(|machine| machine.failures.into());
        text += &family(
            "marvin_machine_failures",
            "gauge",
            "Failures of the lab in a row on a machine.",
            failures,
        );
        text += &family(
            "marvin_queue_depth",
            "gauge",
            "Jobs that wait.",
            self.each_machine(|machine| machine.waiting as u64),
        );
        let waits = self.each_machine(|machine| machine.waits_s);
        text += &family(
            "marvin_queue_wait_seconds",
            "gauge",
            "How long the first free job of a machine has waited.",
            waits,
        );
        let jobs = self
            .states
            .iter()
            .map(|(state, count)| (format!("{{state=\"{state}\"}}"), *count as u64))
            .collect();
        text += &family("marvin_jobs", "gauge", "Queued jobs by state.", jobs);
        let sum = ("_sum".to_owned(), self.done_seconds);
        let count = (
            "_count".to_owned(),
            self.states.get("done").copied().unwrap_or_default() as u64,
        );
        text += &family(
            "marvin_job_seconds",
            "summary",
            "How long jobs took that are done.",
            vec![sum, count],
        );
        let undelivered = vec![(String::new(), self.undelivered as u64)];
        text += &family(
            "marvin_notices_undelivered",
            "gauge",
            "Notices that are not delivered yet.",
            undelivered,
        );
        text
    }
}

/// Formats the values of one metric, each behind its labels.
fn family(name: &str, kind: &str, help: &str, values: Vec<(String, u64)>) -> String {
    let lines = values
        .into_iter()
        .map(|(labels, value)| format!("{name}{labels} {value}\n"));
    let head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    std::iter::once(head).chain(lines).collect()
}

/// Escapes a label's value.
fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// What the states of machines follow from.
struct Now<'a> {
    queue: &'a QueueOverview,
    reservations: &'a [Reservation],
    health: &'a [Health],
    off: &'a BTreeSet<String>,
    now_unix: UnixTime,
}

impl Now<'_> {
    fn working(&self, name: &str) -> WorkingMachine {
        let running = self.queue.running.iter().find_map(|job| match &job.state {
            JobState::Running { worker, until_unix } if job.new.work.machine == name => {
                Some((format!("job {} by {worker}", job.number), *until_unix))
            }
            _ => None,
        });
        let is_off = self.off.contains(name);
        // A reservation that a killed lab left says less than that the server is off.
        let reserved = reservation_of(name, self.reservations, self.now_unix)
            .filter(|one| !(is_off && one.by_lab));
        let (state, about, until_unix) = match (quarantine_of(name, self.health), running, reserved)
        {
            (Some(ill), ..) => ("quarantined", ill.reason.clone(), Some(ill.next_unix)),
            (_, Some((about, until)), _) if until <= self.now_unix => (
                "lost",
                format!("{about}, which has not been heard of"),
                Some(until),
            ),
            (_, Some((about, until)), _) => ("measuring", about, Some(until)),
            (.., Some(one)) => {
                let off = if is_off { "; it is off" } else { "" };
                (
                    "reserved",
                    format!("{}: {}{off}", one.holder, one.why),
                    Some(one.until_unix),
                )
            }
            _ if is_off => ("off", describe_off(name), None),
            _ => ("ready", String::new(), None),
        };
        let first = self.queue.free_since_unix.get(name).copied();
        WorkingMachine {
            name: name.to_owned(),
            state,
            about,
            until_unix: until_unix.map(UnixTime::seconds),
            waiting: self.queue.jobs(name, "waiting"),
            done: self.queue.jobs(name, "done"),
            failed: self.queue.jobs(name, "failed"),
            failures: self
                .health
                .iter()
                .find(|health| health.machine == name)
                .map_or(0, |health| health.failures),
            waits_s: first
                .and_then(|since| self.now_unix.seconds_since(since))
                .unwrap_or(0),
        }
    }
}

fn listed(job: &QueuedJob) -> LabJob {
    let worker = match &job.state {
        JobState::Running { worker, .. } => Some(worker.clone()),
        _ => None,
    };
    LabJob {
        number: job.number,
        machine: job.new.work.machine.clone(),
        state: job.state.name(),
        work: job.new.work.to_string(),
        worker,
        started_unix: job.started_unix.map(UnixTime::seconds),
        ended_unix: job.ended_unix.map(UnixTime::seconds),
        reason: job.reason.clone(),
    }
}

//! Planning, order, failures, retries and reuse, on a scripted machine. No QEMU, no kernel.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calibrated;
mod disturbed;
mod failures;
mod looking;
mod offsets;
mod order;
mod planning;
mod retries;
mod reuse;
mod values;

use std::path::Path;
use std::sync::{Arc, Mutex};

use lab::{Dumps, Event, Lab, LabError, LabOptions, Plan, Reuse, Sampled};
use machine::{Backend, Does, Fake, FakeRequest, MachineError};
use model::{
    Build, BuildFile, BuildId, Capabilities, Clock, KernelName, MICRO, Origin, Outcome, Run,
    Workload,
};

/// A lab with its own machine and data directory.
struct Story {
    lab: Lab,
    machine: Arc<Fake>,
    home: tempfile::TempDir,
}

/// The results of a plan.
struct PlanResult {
    runs: Result<Vec<Vec<Run>>, LabError>,
    events: Vec<Event>,
}

/// Begins a test with a scripted machine.
fn story(script: impl Fn(&FakeRequest<'_>) -> Does + Send + Sync + 'static) -> Story {
    story_on(Fake::new(script))
}

fn story_on(machine: Fake) -> Story {
    let home = tempfile::tempdir().unwrap();
    let machine = Arc::new(machine);
    let lab = open(home.path(), &machine);
    Story { lab, machine, home }
}

fn open(home: &Path, machine: &Arc<Fake>) -> Lab {
    let machine: Arc<dyn Backend> = Arc::clone(machine) as _;
    Lab::open(
        home,
        LabOptions {
            machine: Some(machine),
            ..LabOptions::default()
        },
    )
    .unwrap()
}

/// A machine on which everything succeeds.
fn steady() -> Fake {
    Fake::new(|_| Does::Takes(100))
}

/// Makes a machine one that measures time.
fn measures_time(can: &mut Capabilities) {
    (can.deterministic, can.clock, can.counts) = (false, Clock::Seconds, false);
}

/// A lab failure after which a retry may succeed.
fn lost() -> Does {
    Does::Breaks(MachineError::QemuDied {
        how: "signal 9".into(),
        stderr: String::new(),
    })
}

/// A build of this version; its files do not exist.
fn build(version: &str) -> Build {
    let hash: String = version
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
        + &"0".repeat(64);
    Build {
        id: BuildId::from_hex(&hash[..64]).unwrap(),
        name: KernelName::Path("vmlinuz".into()),
        version: version.to_owned(),
        origin: Origin::Described("vmlinuz".into()),
        image: BuildFile {
            path: "/nowhere/vmlinuz".into(),
            sha256: hash[..64].to_owned(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    }
}

fn declared(name: &str) -> &'static Arc<Workload> {
    model::workloads()
        .into_iter()
        .find(|workload| workload.name == name)
        .unwrap()
}

/// A plan for one worker.
fn plan<'a>(sides: &[&'a Build], names: &[&str], replicates: &[u64]) -> Plan<'a> {
    Plan {
        sides: sides.to_vec(),
        suite: &MICRO,
        workloads: names
            .iter()
            .map(|name| Arc::clone(declared(name)))
            .collect(),
        replicates: replicates.to_vec(),
        machines: 1,
        reuse: Reuse::Stored,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    }
}

impl Story {
    fn execute(&self, plan: &Plan<'_>) -> PlanResult {
        let events = Mutex::new(Vec::new());
        let runs = self
            .lab
            .execute(plan, &|event| events.lock().unwrap().push(event));
        PlanResult {
            runs,
            events: events.into_inner().unwrap(),
        }
    }

    /// Measures workloads of one build with replicate 1 and returns their outcomes.
    fn outcomes(&self, version: &str, names: &[&str]) -> Vec<String> {
        let runs = self
            .execute(&plan(&[&build(version)], names, &[1]))
            .runs
            .unwrap();
        runs[0]
            .iter()
            .flat_map(|run| &run.results)
            .map(|result| outcome_text(&result.outcome))
            .collect()
    }

    /// Returns the number of requests whose log line begins with `start`.
    fn count_requests(&self, start: &str) -> usize {
        self.machine
            .log()
            .iter()
            .filter(|line| line.starts_with(start))
            .count()
    }
}

impl PlanResult {
    fn count(&self, is_meant: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is_meant(event)).count()
    }

    fn retries(&self) -> usize {
        self.count(|event| matches!(event, Event::Retrying { .. }))
    }

    /// Returns the numbers of planned jobs and of reused results.
    fn planned(&self) -> (usize, usize) {
        let planned = self.events.iter().find_map(|event| match event {
            Event::Planned { jobs, reused } => Some((*jobs, *reused)),
            _ => None,
        });
        planned.unwrap()
    }
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed".to_owned(),
        Outcome::Unsupported(why) => format!("unsupported: {why}"),
        Outcome::Failed(failure) => format!("{} ({})", failure.reason, failure.stage),
    }
}

/// Returns the samples of a workload in a run.
fn samples<'a>(run: &'a Run, name: &str) -> &'a [f64] {
    &run.results
        .iter()
        .find(|result| result.workload == name)
        .unwrap()
        .samples
}

//! Writes a lab as it is after years, made up from a seed: what it holds, and not how fast it is.

use std::path::Path;

use anyhow::Context;
use model::{
    Build, BuildFile, BuildId, Clock, Decision, Declared, Ending, FailureReason, KernelName,
    Machine, MachineId, MachineKind, Metric, NewJob, Origin, Outcome, Region, Run, RunId,
    SourceOrigin, Stage, SubjectFailure, Triage, UnixTime, Work, WorkloadResult,
};
use stats::synthetic::Chance;
use store::{Queued, Store};

/// The seed of everything random.
pub const SEED: u64 = 20_261_129;
/// What the lab has.
pub const RUNS: usize = 20_000;
/// Workloads in each run.
pub const WORKLOADS: usize = 40;
/// Jobs in the queue's table, most of them over.
pub const JOBS: usize = 100_000;

const START: i64 = 1_700_000_000;
/// Runs of a kernel on each machine: seeds of the exact one, boots of the servers.
const BOOTS: [u64; 3] = [5, 10, 5];
const RUNS_OF_KERNEL: usize = 20;
/// Jobs that still wait.
const WAITING: usize = 200;
const DECISIONS: usize = 50;

/// Writes a lab with so many runs and jobs into a directory.
pub fn write(home: &Path, runs: usize, jobs: usize) -> anyhow::Result<()> {
    let store = Store::open(home)?;
    let mut lab = Lab {
        store,
        chance: Chance::new(SEED),
        runs: 0,
    };
    for number in 0..BOOTS.len() {
        lab.store.save_machine(&machine(number)?)?;
    }
    for kernel in 0..runs.div_ceil(RUNS_OF_KERNEL) {
        lab.measure(kernel, runs)?;
    }
    for kernel in 0..DECISIONS.min(runs / RUNS_OF_KERNEL / 5) {
        lab.decide(kernel * 5 + 5)?;
    }
    lab.queue(jobs)
}

struct Lab {
    store: Store,
    chance: Chance,
    runs: usize,
}

impl Lab {
    /// Measures a kernel on all machines, unless the lab has all its runs.
    fn measure(&mut self, kernel: usize, runs: usize) -> anyhow::Result<()> {
        let build = build(kernel)?;
        self.store.save_build(&build)?;
        for (number, boots) in BOOTS.into_iter().enumerate() {
            for seed in 1..=boots {
                if self.runs == runs {
                    return Ok(());
                }
                self.runs += 1;
                let run = Run {
                    id: RunId::from_hex(&format!("{:016x}", self.runs)).context("an id")?,
                    build: build.id.clone(),
                    machine: machine(number)?.id,
                    suite: "micro".to_owned(),
                    seed,
                    started_unix: UnixTime::new(START + self.runs as i64 * 3600),
                    environment: vec![("release".to_owned(), build.version.clone())],
                    results: self.results(kernel, number),
                };
                self.store.save_run(&run, &[])?;
            }
        }
        Ok(())
    }

    fn results(&mut self, kernel: usize, machine: usize) -> Vec<WorkloadResult> {
        let all = model::workloads();
        all.iter()
            .take(WORKLOADS)
            .enumerate()
            .map(|(place, workload)| self.result(&workload.name, place, kernel, machine))
            .collect()
    }

    fn result(
        &mut self,
        workload: &str,
        place: usize,
        kernel: usize,
        machine: usize,
    ) -> WorkloadResult {
        let is_exact = machine == 0;
        let value = level(place, kernel, machine);
        let noise = if is_exact { 0.0005 } else { 0.01 };
        let value = value * (1.0 + noise * self.chance.normal());
        let outcome = match (place, kernel % 50) {
            // A feature that old kernels lack, and a kernel in fifty that fails.
            (7, _) if kernel < 100 => Outcome::Unsupported("io_uring".to_owned()),
            (11, 33) => Outcome::Failed(SubjectFailure {
                stage: Stage::Workload,
                reason: FailureReason::Panicked,
                console_tail: String::new(),
            }),
            _ => Outcome::Completed,
        };
        let iterations = match (&outcome, is_exact) {
            (Outcome::Completed, true) => 5,
            (Outcome::Completed, false) => 8,
            _ => 0,
        };
        let mut samples = Vec::new();
        for _ in 0..iterations {
            samples.push(value * (1.0 + noise / 10.0 * self.chance.normal()));
        }
        let count = |sample: &f64| Region {
            user: 200_000,
            kernel: (sample * 1000.0) as u64,
            interrupt: 10,
            other: 0,
            ..Region::default()
        };
        let counted = if is_exact {
            samples.iter().map(count).collect()
        } else {
            Vec::new()
        };
        let clock = if is_exact {
            Clock::Instructions
        } else {
            Clock::Seconds
        };
        WorkloadResult {
            workload: workload.to_owned(),
            operations: 1000,
            declared: Some(Declared::from_metric(&Metric::COST, clock)),
            outcome,
            samples,
            counted,
        }
    }

    fn decide(&self, kernel: usize) -> anyhow::Result<()> {
        let [after, at] = [build(kernel - 4)?, build(kernel)?];
        self.store.decide(&Decision {
            track: model::track_of(&at.name),
            after: after.version,
            at: at.version,
            triage: [Triage::Real, Triage::Ignored][kernel % 2],
            note: "looked at".to_owned(),
            worse: kernel % 7,
            decided_unix: UnixTime::new(START + kernel as i64 * 72_000),
        })?;
        Ok(())
    }

    fn queue(&self, jobs: usize) -> anyhow::Result<()> {
        for number in 0..jobs {
            let queued = UnixTime::new(START + number as i64 * 700);
            let new = NewJob {
                work: Work {
                    kernel: format!("deb:6.{}.{number}", number % 30).parse()?,
                    tree: String::new(),
                    config: "micro".into(),
                    suite: "micro".into(),
                    workloads: vec!["getppid".into()],
                    seeds: 5,
                    machine: ["exact", "testbox1", "testbox2"][number % 3].to_owned(),
                },
                plan: "releases".to_owned(),
                priority: 0,
                rank: 0,
                attempts_max: 3,
                deadline_s: 3600,
            };
            let Queued::New(job) = self.store.queue_job(&new, queued)? else {
                anyhow::bail!("job {number} was there already");
            };
            if number + WAITING >= jobs {
                continue;
            }
            self.store.change_job(job, |now| {
                now.claim("testbox1", queued)?;
                now.end(
                    now.fence,
                    Ending::Done(String::new()),
                    queued.plus_seconds(600),
                )
            })?;
        }
        Ok(())
    }
}

/// The cost of a workload: every seventh changes once, on the even machines, at one of five
/// kernels of each track.
fn level(workload: usize, kernel: usize, machine: usize) -> f64 {
    let cost = 100.0 + workload as f64 * 3.0 + machine as f64 * 40.0;
    let changes =
        workload % 7 == 3 && machine.is_multiple_of(2) && kernel >= 180 * (1 + workload % 5);
    let size = if workload.is_multiple_of(2) {
        1.07
    } else {
        0.95
    };
    if changes { cost * size } else { cost }
}

/// Each fifth kernel is one of Debian's two lines or a release of kernel.org; the others are
/// commits.
fn build(kernel: usize) -> anyhow::Result<Build> {
    let place = kernel / 5;
    let started = UnixTime::new(START + kernel as i64 * 72_000);
    let package = |version: &str| -> anyhow::Result<(KernelName, String, Origin)> {
        let name = format!("linux-image-{version}-cloud-amd64");
        let origin = Origin::Package {
            name,
            version: format!("{version}-1"),
        };
        Ok(("deb:6.12".parse()?, version.to_owned(), origin))
    };
    let (name, version, origin) = match kernel % 5 {
        0 => package(&format!("6.1.{place}"))?,
        1 => package(&format!("6.12.{place}"))?,
        2 => (
            format!("kernel.org:6.{place}").parse()?,
            format!("6.{place}.0"),
            Origin::Described("a tarball".to_owned()),
        ),
        _ => {
            let commit = format!("{:012x}", (kernel as u64 + 1) * 0x9e37_79b9);
            (
                format!("git:{commit}").parse()?,
                format!("6.{}.0-rc1-g{commit}", place / 10),
                Origin::Built {
                    source: SourceOrigin::Commit {
                        commit,
                        tree: "/srv/linux".to_owned(),
                    },
                    configuration: "micro".to_owned(),
                    compiler: "gcc 12".to_owned(),
                    committed_unix: Some(started),
                },
            )
        }
    };
    Ok(Build {
        id: BuildId::from_hex(&format!("{kernel:016x}"))?,
        name,
        origin,
        version,
        image: BuildFile {
            path: "/nowhere/vmlinuz".into(),
            sha256: "00".into(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

fn machine(number: usize) -> anyhow::Result<Machine> {
    let kind = if number == 0 {
        MachineKind::Exact
    } else {
        MachineKind::Server
    };
    Ok(Machine {
        id: MachineId::from_hex(&format!("{number:x}{:015x}", 0))?,
        kind,
        summary: format!("synthetic machine {number}"),
        fingerprint: vec![("synthetic".to_owned(), number.to_string())],
    })
}

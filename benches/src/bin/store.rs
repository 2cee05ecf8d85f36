//! Prints how long a store takes to save one run, in a data directory and on a PostgreSQL server:
//! 10,000 samples in 500 results, each with a console, until everything is on the disk. And how
//! long workers of 50 machines together need for a job on that server, with 20,000 jobs in its
//! queue.

use std::time::{Duration, Instant};

use figures::figure::{Against, Figure, Figures};
use model::{
    Build, BuildFile, BuildId, Ending, Machine, MachineId, MachineKind, NewJob, Outcome, Run,
    RunId, UnixTime, Work, WorkloadResult,
};
use store::cluster::{Cluster, Durability};
use store::{Artifact, Location, Store};

const WORKLOADS: usize = 500;
const ITERATIONS: usize = 20;
/// Number of saved runs; the median counts, because disks vary in speed.
const RUNS: usize = 21;
/// Time limit of one run.
const GOAL_MS: f64 = 50.0;

const MACHINES: usize = 50;
const JOBS: usize = 20_000;
/// How long the workers claim.
const QUEUE_TIME: Duration = Duration::from_secs(8);
/// 500 claims in a second.
const CLAIM_MS: f64 = 2.0;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    let home = tempfile::tempdir()?;
    measure_store(&mut figures, "SQLite", &Store::open(home.path())?)?;
    match Cluster::start(Durability::Durable)? {
        Some(cluster) => {
            let location = Location::server(&cluster.place()?, None)?;
            measure_store(&mut figures, "PostgreSQL", &Store::open(&location)?)?;
            measure_queue(&mut figures, &location)
        }
        None => Ok(figures.doubt("PostgreSQL is not installed: not measured")?),
    }
}

fn measure_store(figures: &mut Figures, name: &str, store: &Store) -> anyhow::Result<()> {
    let build = build()?;
    let machine = machine()?;
    store.save_build(&build)?;
    store.save_machine(&machine)?;
    let console = vec![b'x'; 4096];
    let mut times = Vec::new();
    for number in 0..RUNS {
        let run = run(number)?;
        let artifacts = [Artifact {
            name: "environment.console",
            bytes: &console,
        }];
        let start = Instant::now();
        store.save_run(&run, &artifacts)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let samples = WORKLOADS * ITERATIONS;
    let mut print = |name: String, value, against| {
        figures.print(&Figure {
            name,
            value,
            unit: "ms",
            against,
        })
    };
    print(
        format!("keeping a run of {samples} samples, {name}"),
        times[RUNS / 2],
        Against::Goal(GOAL_MS),
    )?;
    print(
        "the same, slowest".to_owned(),
        times[RUNS - 1],
        Against::Nothing,
    )?;
    let start = Instant::now();
    let found = store.run(&run(0)?.id)?;
    anyhow::ensure!(found == run(0)?, "another run came back");
    print(
        "reading it".to_owned(),
        start.elapsed().as_secs_f64() * 1e3,
        Against::Nothing,
    )?;
    Ok(())
}

/// Has workers of all machines claim and end jobs of one queue at the same time.
fn measure_queue(figures: &mut Figures, location: &Location) -> anyhow::Result<()> {
    let store = Store::open(location)?;
    for number in 0..JOBS {
        let work = Work {
            kernel: format!("deb:6.{number}").parse()?,
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into()],
            seeds: 1,
            machine: machine_name(number % MACHINES),
        };
        let new = NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 3,
            deadline_s: 100,
        };
        store.queue_job(&new, UnixTime::new(0))?;
    }
    let start = Instant::now();
    let claimed: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..MACHINES)
            .map(|number| scope.spawn(move || claim_all(location, machine_name(number), start)))
            .collect();
        let ended = workers.into_iter().map(|worker| {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a worker panicked"))?
        });
        Ok::<_, anyhow::Error>(ended.collect::<anyhow::Result<Vec<_>>>()?.concat())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut once = claimed.clone();
    once.sort_unstable();
    once.dedup();
    anyhow::ensure!(
        once.len() == claimed.len(),
        "{} jobs were claimed twice",
        claimed.len() - once.len()
    );
    let name = format!("claiming and ending a job, workers of {MACHINES} machines, {JOBS} jobs");
    let value = seconds * 1e3 / claimed.len() as f64;
    figures.print(&Figure {
        name,
        value,
        unit: "ms",
        against: Against::Goal(CLAIM_MS),
    })?;
    Ok(())
}

fn machine_name(number: usize) -> String {
    format!("testbox{number}")
}

/// Returns the jobs that a worker had until its time was over.
fn claim_all(location: &Location, machine: String, start: Instant) -> anyhow::Result<Vec<u64>> {
    let store = Store::open(location)?;
    let machines = [machine];
    let mut all = Vec::new();
    while start.elapsed() < QUEUE_TIME {
        let Some(job) = store.claim_job(&machines[0], &machines, UnixTime::new(1))? else {
            break;
        };
        store.change_job(job.number, |now| {
            now.end(job.fence, Ending::Done(String::new()), UnixTime::new(2))
        })?;
        all.push(job.number);
    }
    Ok(all)
}

fn build() -> anyhow::Result<Build> {
    Ok(Build {
        id: BuildId::from_hex("aa")?,
        name: "deb:6.12".parse()?,
        version: "6.12".into(),
        origin: model::Origin::Described("synthetic".into()),
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

fn machine() -> anyhow::Result<Machine> {
    Ok(Machine {
        id: MachineId::from_hex("ee")?,
        kind: MachineKind::Exact,
        summary: "synthetic".into(),
        fingerprint: Vec::new(),
    })
}

fn run(number: usize) -> anyhow::Result<Run> {
    let result = |workload: usize| WorkloadResult {
        workload: format!("workload-{workload}"),
        operations: 20_000,
        declared: None,
        outcome: Outcome::Completed,
        samples: (0..ITERATIONS)
            .map(|n| (number * workload + n) as f64 * 1.1)
            .collect(),
        counted: vec![
            model::Region {
                user: 1,
                kernel: 2,
                interrupt: 3,
                other: 4,
                ..model::Region::default()
            };
            ITERATIONS
        ],
    };
    Ok(Run {
        id: RunId::from_hex(&format!("{:04x}", number + 1))?,
        build: BuildId::from_hex("aa")?,
        machine: MachineId::from_hex("ee")?,
        suite: "synthetic".into(),
        seed: 1,
        started_unix: UnixTime::new(1_790_000_000),
        environment: vec![("release".into(), "6.12".into()); 20],
        results: (0..WORKLOADS).map(result).collect(),
    })
}

//! Prints what Slurm costs per job of the exact machine, and what it brings for one comparison: on
//! one node, on two, and on three by a model of the measured jobs. Nodes are `slurmd`s of this host
//! with one processor each, so that a host of two processors has two. Runs the `marvin` beside this
//! program, in temporary data directories.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use archives::Archives;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use kernel::BuildCache;
use model::{ArchiveSettings, UnixTime};
use rack::Slurm;
use store::cluster::{Cluster, Durability};

const NODES: [&str; 2] = ["n1", "n2"];
const KERNELS: [&str; 2] = ["deb:6.1", "deb:6.12"];
/// The first one makes the snapshot, the others are measured: each is a job here and one through
/// Slurm.
const WORKLOADS: [&str; 6] = [
    "getppid",
    "signal",
    "fork-exit",
    "event-fd",
    "file-open",
    "fault-anon",
];
const GOAL_S: f64 = 2.0;
/// Interval between looks at a job of Slurm.
const LOOK: Duration = Duration::from_millis(50);
const SEEDS: &str = "3";
/// Comparisons on each number of nodes: the fastest counts, as other processes can only add.
const TURNS: usize = 2;
const NODES_OF_MODEL: usize = 3;

fn now() -> UnixTime {
    UnixTime::from(std::time::SystemTime::now())
}

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    let (Some(slurm), Some(cluster)) =
        (Slurm::start(&NODES)?, Cluster::start(Durability::Durable)?)
    else {
        return Ok(figures.doubt("Slurm or PostgreSQL is not installed: not measured")?);
    };
    figures.doubt_load(cpu::load()?)?;
    let marvin = std::env::current_exe()?.with_file_name("marvin");
    anyhow::ensure!(
        marvin.is_file(),
        "{} is not there: cargo build --release -p marvin",
        marvin.display()
    );
    let folder = tempfile::tempdir()?;
    let home = folder.path().join("kernels");
    let archives = Archives::new(&home, ArchiveSettings::default(), now);
    let cache = BuildCache::open(&home, archives)?;
    let mut kernels = Vec::new();
    for name in KERNELS {
        kernels.push(format!(
            "path:{}",
            cache
                .resolve(&name.parse()?, &|_| {})?
                .boot_file()
                .path
                .display()
        ));
    }
    let grid = Grid {
        slurm,
        cluster,
        marvin,
        folder: folder.path().to_owned(),
        kernels,
    };
    overhead(&grid, &mut figures)?;
    speed_up(&grid, &mut figures)
}

/// A Slurm and kernels to measure.
struct Grid {
    slurm: Slurm,
    cluster: Cluster,
    marvin: PathBuf,
    folder: PathBuf,
    kernels: Vec<String>,
}

/// A data directory with a store of its own.
struct Site<'a> {
    grid: &'a Grid,
    home: PathBuf,
    address: String,
}

impl Grid {
    /// Makes a data directory whose jobs go to the first nodes, each bound to a processor.
    fn site(&self, name: &str, nodes: usize) -> anyhow::Result<Site<'_>> {
        let home = self.folder.join(name);
        fs::create_dir_all(home.join("jobs-of-slurm"))?;
        let program = home.join("marvin-of-node");
        let script = format!(
            "#!/bin/sh\ncase $SLURMD_NODENAME in {} ) cpu=0;; * ) cpu=1;; esac\nlog={}/jobs-of-slurm/$SLURM_JOB_ID\n\
             date +%s.%N > $log\ntaskset -c $cpu {} \"$@\"\ncode=$?\ndate +%s.%N >> $log\nexit $code\n",
            NODES[0],
            home.display(),
            self.marvin.display()
        );
        fs::write(&program, script)?;
        fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        let excluded = NODES[nodes..].join(",");
        let options = if excluded.is_empty() {
            String::new()
        } else {
            format!("options = [\"--exclude={excluded}\"]\n")
        };
        let text = format!(
            "[work]\nbuilds = \"{0}/shared\"\n[slurm]\n{options}home = \"{0}/%N\"\nprogram = \"{1}\"\n",
            home.display(),
            program.display()
        );
        fs::write(home.join("marvin.toml"), text)?;
        Ok(Site {
            grid: self,
            home,
            address: self.cluster.place()?,
        })
    }

    /// Returns how long Slurm takes for a job that does nothing, until it is seen as ended (s).
    fn true_s(&self) -> anyhow::Result<f64> {
        let start = Instant::now();
        let id = self.slurm.run(
            "sbatch",
            &[
                "--parsable",
                "--exclusive",
                "--output=/dev/null",
                "--wrap=true",
            ],
        )?;
        while self
            .slurm
            .run("squeue", &["-h", "-o", "%i"])?
            .lines()
            .any(|line| line.trim() == id.trim())
        {
            sleep(LOOK);
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

impl Site<'_> {
    /// Runs Marvin and returns how long it took (s).
    fn run(&self, arguments: &[&str], is_bound: bool) -> anyhow::Result<f64> {
        let mut command = Command::new("taskset");
        // The sender has both processors.
        command
            .args(["-c", if is_bound { "0" } else { "0,1" }])
            .arg(&self.grid.marvin)
            .arg("--home")
            .arg(&self.home);
        command
            .args(["--quiet", "--store", &self.address])
            .args(arguments);
        command
            .env("SLURM_CONF", self.grid.slurm.configuration())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let output = command.output().context("cannot run marvin")?;
        let took = start.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stderr);
        // 1 is the answer of a comparison that found something.
        anyhow::ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "marvin {arguments:?}: {} {said}",
            output.status
        );
        Ok(took)
    }

    /// Returns how long a worker takes for one queued job (s).
    fn job(&self, workload: &str, work: &[&str], is_bound: bool) -> anyhow::Result<f64> {
        let kernel = &self.grid.kernels[1];
        self.run(
            &[
                "queue",
                "add",
                kernel,
                "--workload",
                workload,
                "--seeds",
                "1",
            ],
            false,
        )?;
        self.run(&[&["work", "--once"], work].concat(), is_bound)
    }

    /// Returns start and end of each job of Slurm (s since 1970), in their order.
    fn jobs_of_slurm(&self) -> anyhow::Result<Vec<[f64; 2]>> {
        let mut jobs = Vec::new();
        for entry in fs::read_dir(self.home.join("jobs-of-slurm"))? {
            let text = fs::read_to_string(entry?.path())?;
            let times: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
            jobs.push(
                <[f64; 2]>::try_from(times)
                    .ok()
                    .context("a job of Slurm has not ended")?,
            );
        }
        jobs.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Ok(jobs)
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Prints what a job through Slurm takes beyond the same job here and beyond Slurm's own time.
fn overhead(grid: &Grid, figures: &mut Figures) -> anyhow::Result<()> {
    let here = grid.site("here", 1)?;
    let there = grid.site("there", 1)?;
    let mut more = Vec::new();
    let mut own = Vec::new();
    for (number, workload) in WORKLOADS.into_iter().enumerate() {
        let [alone, through] = [
            here.job(workload, &[], true)?,
            there.job(workload, &["--via", "slurm"], false)?,
        ];
        if number > 0 {
            more.push(through - alone);
            own.push(grid.true_s()?);
        }
    }
    let more = median(more);
    let own = median(own);
    let mut print = |name: &str, value, against| {
        figures.print(&Figure {
            name: name.to_owned(),
            value,
            unit: "s",
            against,
        })
    };
    print(
        "sbatch of `true`, until it is seen as ended",
        own,
        Against::Nothing,
    )?;
    print(
        "exact job through Slurm, beyond the same job here",
        more,
        Against::Nothing,
    )?;
    print(
        "the same, beyond Slurm's own time",
        more - own,
        Against::Goal(GOAL_S),
    )?;
    Ok(())
}

/// Prints how much faster a comparison is on several nodes.
fn speed_up(grid: &Grid, figures: &mut Figures) -> anyhow::Result<()> {
    let compare = |turn: usize, nodes: usize| -> anyhow::Result<(f64, Vec<[f64; 2]>)> {
        let site = grid.site(&format!("nodes-{nodes}-{turn}"), nodes)?;
        let [old, new] = [&grid.kernels[0], &grid.kernels[1]];
        let took = site.run(
            &[
                "compare",
                old,
                new,
                "--workload",
                "getppid",
                "--seeds",
                SEEDS,
                "--via",
                "slurm",
            ],
            false,
        )?;
        Ok((took, site.jobs_of_slurm()?))
    };
    let (mut one, mut jobs) = compare(0, 1)?;
    let (mut two, _) = compare(0, 2)?;
    for turn in 1..TURNS {
        two = two.min(compare(turn, 2)?.0);
        let again = compare(turn, 1)?;
        if again.0 < one {
            (one, jobs) = again;
        }
    }
    if one / two > NODES.len() as f64 || two > one {
        figures.doubt(
            "other processes disturbed the comparisons: the measured speed-up is not that of nodes",
        )?;
    }
    let count = jobs.len();
    let mut print = |name: String, value, unit, against| {
        figures.print(&Figure {
            name,
            value,
            unit,
            against,
        })
    };
    print(
        format!("compare of {count} exact jobs, one node of one processor"),
        one,
        "s",
        Against::Nothing,
    )?;
    print(
        "the same on two nodes".to_owned(),
        two,
        "s",
        Against::Nothing,
    )?;
    print(
        "speed-up by two nodes, measured".to_owned(),
        one / two,
        "times",
        Against::Nothing,
    )?;
    let modelled = |nodes| modelled_s(one, &jobs, nodes);
    let of_model = format!("speed-up by two nodes, by a model of the {count} jobs");
    print(of_model, one / modelled(2), "times", Against::Nothing)?;
    let name = format!("speed-up by {NODES_OF_MODEL} nodes, modelled, not measured");
    print(
        name,
        one / modelled(NODES_OF_MODEL),
        "times",
        Against::Nothing,
    )?;
    Ok(())
}

/// Returns how long a command takes with so many nodes (s), of which one took `one`: each job goes
/// to the node that is free first, after the pause that Slurm made between two jobs; what the
/// command did before and after is as it was.
fn modelled_s(one: f64, jobs: &[[f64; 2]], nodes: usize) -> f64 {
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
        return one;
    };
    let whole = last[1] - first[0];
    let lengths = jobs.iter().map(|job| job[1] - job[0]);
    let pauses = whole - lengths.clone().sum::<f64>();
    let pause = pauses / (jobs.len() - 1).max(1) as f64;
    let mut free = vec![0.0_f64; nodes];
    for length in lengths {
        free.sort_by(f64::total_cmp);
        free[0] += length + pause;
    }
    let longest = free.into_iter().fold(0.0, f64::max) - pause;
    one - whole + longest
}

#[cfg(test)]
mod tests {
    use super::modelled_s;

    #[test]
    fn model_of_one_node_is_what_was_measured() {
        let jobs = [[10.0, 14.0], [15.0, 19.0], [20.0, 24.0], [25.0, 29.0]];
        let at = |nodes| (modelled_s(25.0, &jobs, nodes) * 1e3).round() as i64;
        // Four jobs of 4 s with pauses of 1 s, and 6 s before and after.
        assert_eq!([1, 2, 3, 4].map(at), [25_000, 15_000, 15_000, 10_000]);
    }
}

//! The agent: its file size, and how fast the exact machine runs a loop in user space.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::Context;
use lab::AGENT;
use model::{MICRO, Workload};

use crate::suite::Ready;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};

const SIZE_GOAL_MB: f64 = 3.0;

/// The workload that stays in user space.
const LOOP: &str = "mutex-uncontended";
/// Operations of an iteration, few and many: the difference is the loop alone, without start and
/// end.
const IN_GUEST: (u64, u64) = (100_000, 2_100_000);
const BY_HAND: (u64, u64) = (1_000_000, 31_000_000);
/// Iterations of `marvin-agent run`, with the warm-up.
const ITERATIONS_BY_HAND: f64 = 6.0;

/// Rounds of the monitors, and milliseconds between them: a whole number of those in which slabs
/// are copied.
const ROUNDS: (&str, &str) = ("180", "20");
/// Largest share of a processor that monitors may take at one copy per second, in percent.
const SAMPLER_GOAL_PERCENT: f64 = 0.05;

/// Prints the share of a host processor that the monitors take at one round per second.
pub(crate) fn sampler(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("marvin-agent");
    let kept = folder.path().join("kept");
    std::fs::write(&program, AGENT)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let output = Command::new(&program)
        .arg("sample")
        .arg(&kept)
        .args([ROUNDS.0, ROUNDS.1])
        .output()?;
    anyhow::ensure!(
        output.status.success(),
        "`marvin-agent sample` ended with {}",
        output.status
    );
    let said = String::from_utf8_lossy(&output.stdout);
    let ns: f64 = said
        .split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .context("`marvin-agent sample` says no number")?;
    let figure = Figure {
        name: "monitors at 1 Hz on this host, of a processor".into(),
        value: ns / 1e9 * 100.0,
        unit: "%",
        against: Against::Goal(SAMPLER_GOAL_PERCENT),
    };
    Ok(figures.print(&figure)?)
}

/// Prints the size of the agent's file.
pub(crate) fn size(figures: &mut Figures) -> anyhow::Result<()> {
    let figure = Figure {
        name: "agent file".into(),
        value: AGENT.len() as f64 / 1e6,
        unit: "MB",
        against: Against::Goal(SIZE_GOAL_MB),
    };
    Ok(figures.print(&figure)?)
}

/// Prints how many instructions of a plain loop the exact machine executes per second of the host's
/// processor; the same loop on the host is the peer.
pub(crate) fn plain_loop(bench: &mut Ready, figures: &mut Figures) -> anyhow::Result<()> {
    let declared = MICRO
        .workloads
        .iter()
        .find(|workload| workload.name == LOOP)
        .context("the plain loop is gone")?;
    let few = guest(bench, declared, IN_GUEST.0)?;
    let many = guest(bench, declared, IN_GUEST.1)?;
    let instructions = many.instructions - few.instructions;
    let per_operation = instructions / ((IN_GUEST.1 - IN_GUEST.0) as f64 * iterations(declared));
    let host_s = by_hand(BY_HAND.1)? - by_hand(BY_HAND.0)?;
    let host_operations = (BY_HAND.1 - BY_HAND.0) as f64 * ITERATIONS_BY_HAND;
    let figure = Figure {
        name: "plain loop on the exact machine, per CPU second".into(),
        value: instructions / (many.cpu_s - few.cpu_s) / 1e6,
        unit: "MIPS",
        against: Against::Peer("host", per_operation * host_operations / host_s / 1e6),
    };
    Ok(figures.print(&figure)?)
}

/// The cost of a run.
struct Cost {
    instructions: f64,
    cpu_s: f64,
}

fn iterations(workload: &Workload) -> f64 {
    f64::from(workload.warm_up + workload.iterations)
}

fn guest(bench: &mut Ready, declared: &Workload, operations: u64) -> anyhow::Result<Cost> {
    let workload = Arc::new(Workload {
        operations,
        ..declared.clone()
    });
    let done = bench.measure(vec![workload], 1)?;
    let samples = done
        .run
        .results
        .first()
        .map(|result| result.samples.as_slice())
        .unwrap_or_default();
    anyhow::ensure!(!samples.is_empty(), "{LOOP} has no samples");
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    Ok(Cost {
        instructions: mean * operations as f64 * iterations(declared),
        cpu_s: done.cpu_s,
    })
}

/// Runs the loop on the host and returns its processor seconds.
fn by_hand(operations: u64) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("marvin-agent");
    std::fs::write(&program, AGENT)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let before = cpu::children_s()?;
    let status = Command::new(&program)
        .args(["run", LOOP, &operations.to_string()])
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(
        status.success(),
        "`marvin-agent run {LOOP}` ended with {status}"
    );
    Ok(cpu::children_s()? - before)
}

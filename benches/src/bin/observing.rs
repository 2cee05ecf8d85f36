//! Prints what `marvin explain` costs: programs that make system calls, create processes or
//! compute, with and without being observed, in turns; and the processor time of observing.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use explain::facts::AFTERWARDS;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use observe::{Observation, Subject, observe};

/// Runs of each side; the shortest counts, as other load only adds.
const RUNS: usize = 5;
/// Most of a processor that observing may take (%).
const GOAL: f64 = 1.0;

const PROGRAMS: [(&str, &[&str]); 3] = [
    (
        "system calls",
        &[
            "dd",
            "if=/dev/zero",
            "of=/dev/null",
            "bs=1",
            "count=3000000",
            "status=none",
        ],
    ),
    (
        "new processes",
        &["sh", "-c", "for i in $(seq 1500); do /bin/true; done"],
    ),
    (
        "computing",
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done",
        ],
    ),
];

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    for (name, command) in PROGRAMS {
        let mut alone = f64::INFINITY;
        let mut observed = f64::INFINITY;
        let mut cost = f64::INFINITY;
        for _ in 0..RUNS {
            let started = Instant::now();
            let ended = Command::new(command[0])
                .args(&command[1..])
                .stdout(Stdio::null())
                .status()?;
            anyhow::ensure!(ended.success(), "{name}: {ended}");
            alone = alone.min(started.elapsed().as_secs_f64());
            let subject = Subject::Command(command.iter().map(OsString::from).collect());
            let facts = observe(&Observation {
                subject,
                seconds: Some(60.0),
                stop: Arc::default(),
            })?
            .facts;
            observed = observed.min(facts.seconds);
            let spent: f64 = facts
                .costs
                .iter()
                .filter(|(name, _)| *name != AFTERWARDS)
                .map(|(_, s)| s)
                .sum();
            cost = cost.min(100.0 * spent / facts.seconds);
        }
        let peer = Against::Peer("alone", alone);
        figures.print(&Figure {
            name: format!("explain, {name}: observed"),
            value: observed,
            unit: "s",
            against: peer,
        })?;
        let goal = Against::Goal(GOAL);
        figures.print(&Figure {
            name: format!("explain, {name}: observing"),
            value: cost,
            unit: "%",
            against: goal,
        })?;
    }
    Ok(())
}

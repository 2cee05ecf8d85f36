//! Prints what the walls around QEMU cost: processor time of the micro suite with them and without
//! (`--no-sandbox`), in turns, and whether all samples are equal. Runs the `marvin` beside this
//! program, in a temporary data directory.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};

/// Measurements of each kind.
const TIMES: usize = 4;
const GOAL_PERCENT: f64 = 2.0;
const KERNEL: &str = "deb:6.12";
/// Columns of `marvin export` (docs/export.md).
const RUN: usize = 0;
const STARTED: usize = 8;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let home = tempfile::tempdir()?;
    let marvin = std::env::current_exe()?.with_file_name("marvin");
    anyhow::ensure!(
        marvin.is_file(),
        "{} is not there: cargo build --release -p marvin",
        marvin.display()
    );
    // Fetches the kernel and makes the snapshot.
    measure(&marvin, home.path(), false)?;
    let mut with = Vec::new();
    let mut without = Vec::new();
    let mut samples = BTreeSet::new();
    for turn in 0..2 * TIMES {
        // With, without, without, with.
        let is_walled = turn % 4 == 0 || turn % 4 == 3;
        let measured = measure(&marvin, home.path(), is_walled)?;
        samples.insert(measured.samples);
        if is_walled { &mut with } else { &mut without }.push(measured.cpu_s);
    }
    // Other processes can only add.
    let [with, without] =
        [with, without].map(|times| times.into_iter().fold(f64::INFINITY, f64::min));
    let print = |figures: &mut Figures, name: &str, value, unit, against| {
        figures.print(&Figure {
            name: name.to_owned(),
            value,
            unit,
            against,
        })
    };
    print(
        &mut figures,
        "micro suite behind walls, processor time",
        with,
        "s",
        Against::Peer("without", without),
    )?;
    let more = (with / without - 1.0) * 100.0;
    print(
        &mut figures,
        "walls cost, of the suite",
        more.max(0.0),
        "%",
        Against::Goal(GOAL_PERCENT),
    )?;
    let different = samples.len().saturating_sub(1) as f64;
    print(
        &mut figures,
        "sets of samples that differ with or without walls",
        different,
        "sets",
        Against::Nothing,
    )?;
    Ok(())
}

struct Measured {
    cpu_s: f64,
    /// The samples of all workloads, as exported.
    samples: String,
}

fn measure(marvin: &Path, home: &Path, is_walled: bool) -> anyhow::Result<Measured> {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(marvin);
        command
            .arg("--home")
            .arg(home)
            .args(arguments)
            .stderr(Stdio::inherit());
        command.args((!is_walled).then_some("--no-sandbox"));
        command
    };
    let before_s = cpu::host_s()?;
    let output = command(&["run", KERNEL, "--force", "--quiet"])
        .output()
        .context("cannot run marvin")?;
    anyhow::ensure!(
        output.status.success(),
        "marvin run ended with {}",
        output.status
    );
    let cpu_s = cpu::host_s()? - before_s;
    let exported = command(&["export", "--rows", "samples", "--limit", "1"]).output()?;
    anyhow::ensure!(
        exported.status.success(),
        "marvin export ended with {}",
        exported.status
    );
    let text = String::from_utf8_lossy(&exported.stdout).into_owned();
    // All columns but the run's id and its start.
    let row = |line: &str| -> String {
        let cells = line
            .split(',')
            .enumerate()
            .filter(|(column, _)| ![RUN, STARTED].contains(column));
        cells.map(|(_, cell)| format!("{cell},")).collect()
    };
    Ok(Measured {
        cpu_s,
        samples: text.lines().map(row).collect(),
    })
}

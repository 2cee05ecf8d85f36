//! Prints how well estimated cycles order the rows of a suite: the estimate of a kernel on the exact
//! machine beside the time that the same agent takes under the kernel of this host.
//!
//! `cycles DATA KERNEL TREE CONFIG [SUITE]`: the kernel as for `marvin compare`, such as `git:HEAD`
//! in a tree of the host's release, with the config `running` where the host has `/proc/config.gz`. A
//! host that is a virtual machine pays more for its faults and timers. Results are kept in DATA.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use compare::run_value;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use kernel::{Configuration, SourceSettings};
use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled, Wanted};
use machine::this_boot;
use model::{KernelName, Suite};

/// Groups with fewer rows have no rank correlation that says anything.
const GROUP_ROWS_MIN: usize = 4;
/// What the rank correlation should be over all rows, and within each group.
const GOAL_ALL: f64 = 0.95;
const GOAL_GROUP: f64 = 0.8;

/// A row on both machines, per operation.
struct Row {
    name: String,
    group: String,
    /// The middle of the estimate for each processor, in cycles.
    cycles: Vec<f64>,
    time_ns: f64,
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [data, kernel, tree, config, rest @ ..] = words.as_slice() else {
        anyhow::bail!("cycles DATA KERNEL TREE CONFIG [SUITE]");
    };
    let suite = rest.first().map_or("micro", String::as_str);
    let suite = model::suite(suite).with_context(|| format!("no suite `{suite}`"))?;
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let sources = SourceSettings {
        tree: Some(tree.into()),
        configuration: Configuration::named(config)?,
        ..SourceSettings::default()
    };
    let name: KernelName = kernel.parse()?;
    let exact = values(Path::new(data), Wanted::Exact, sources, &name, suite)?;
    let local = values(
        Path::new(data),
        Wanted::Local,
        SourceSettings::default(),
        &KernelName::Running,
        suite,
    )?;
    let mut rows = Vec::new();
    for (name, value) in exact {
        let (Some(cycles), Some(timed)) = (value.cycles, local.get(&name)) else {
            continue;
        };
        rows.push(Row {
            group: name.split('-').next().unwrap_or(&name).to_owned(),
            name,
            cycles: cycles
                .chunks(2)
                .map(|ends| ends.iter().sum::<f64>() / 2.0)
                .collect(),
            time_ns: timed.value,
        });
    }
    for (number, processor) in model::PROCESSORS.iter().enumerate() {
        print(&mut figures, processor.name, number, &rows)?;
    }
    Ok(())
}

/// Measures a suite once, and returns the rows that have a value.
fn values(
    data: &Path,
    wanted: Wanted,
    sources: SourceSettings,
    kernel: &KernelName,
    suite: &Suite,
) -> anyhow::Result<BTreeMap<String, compare::RunValue>> {
    let is_exact = matches!(wanted, Wanted::Exact);
    let lab = Lab::open(
        data,
        LabOptions {
            wanted,
            sources,
            ..LabOptions::default()
        },
    )?;
    let build = lab.build(kernel, &|_| {})?;
    let plan = Plan {
        sides: vec![&build],
        suite,
        workloads: suite.workloads.clone(),
        replicates: vec![if is_exact { 1 } else { this_boot() }],
        machines: 1,
        reuse: Reuse::Stored,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab.execute(&plan, &|_| {})?;
    let capabilities = lab.machine().capabilities();
    let mut values = BTreeMap::new();
    for result in runs.iter().flatten().flat_map(|run| &run.results) {
        match run_value(result, capabilities) {
            Ok(value) => {
                values.insert(result.workload.to_string(), value);
            }
            Err(why) => writeln!(std::io::stdout(), "{}: {why}", result.workload)?,
        }
    }
    Ok(values)
}

/// Prints the figures of one processor, and the rows that are farthest from the common factor.
fn print(
    figures: &mut Figures,
    processor: &str,
    number: usize,
    rows: &[Row],
) -> anyhow::Result<()> {
    let cycles: Vec<f64> = rows.iter().map(|row| row.cycles[number]).collect();
    let times: Vec<f64> = rows.iter().map(|row| row.time_ns).collect();
    let mut figure = |name: String, value: f64, unit: &'static str, goal: Option<f64>| {
        figures.print(&Figure {
            name,
            value,
            unit,
            against: goal.map_or(Against::Nothing, Against::Goal),
        })
    };
    figure(format!("{processor}: rows"), rows.len() as f64, "", None)?;
    figure(
        format!("{processor}: rank correlation"),
        stats::rank_correlation(&cycles, &times),
        "",
        Some(GOAL_ALL),
    )?;
    let ratios: Vec<f64> = cycles.iter().zip(&times).map(|(c, t)| c / t).collect();
    let common = stats::median(&ratios).context("no row is on both machines")?;
    let mut errors: Vec<(f64, &str)> = Vec::new();
    for (ratio, row) in ratios.iter().zip(rows) {
        errors.push(((ratio / common).ln(), &row.name));
    }
    let sizes: Vec<f64> = errors.iter().map(|(error, _)| error.abs().exp()).collect();
    let median = stats::median(&sizes).context("no row")?;
    figure(
        format!("{processor}: cycles a nanosecond, common"),
        common,
        "",
        None,
    )?;
    figure(
        format!("{processor}: median error, a factor of"),
        median,
        "",
        None,
    )?;
    let mut groups: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for row in rows {
        let (cycles, times) = groups.entry(&row.group).or_default();
        cycles.push(row.cycles[number]);
        times.push(row.time_ns);
    }
    for (group, (cycles, times)) in groups {
        if cycles.len() >= GROUP_ROWS_MIN {
            figure(
                format!(
                    "{processor}: rank correlation, {} rows of {group}",
                    cycles.len()
                ),
                stats::rank_correlation(&cycles, &times),
                "",
                Some(GOAL_GROUP),
            )?;
        }
    }
    errors.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
    for (error, name) in errors.iter().take(8) {
        let factor = error.exp();
        writeln!(
            std::io::stdout(),
            "  {name}: {factor:.2} of what the common factor says"
        )?;
    }
    Ok(())
}

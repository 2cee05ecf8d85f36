//! `marvin run`: runs a suite on one kernel.

use clap::Args;
use compare::render::Shown;
use lab::{Sampled, Wanted};
use model::{BuildId, KernelName, Outcome};

use crate::completion;
use crate::exit::Exit;
use crate::measure::{
    KernelMeasurement, check_threads, choose_for_machine, open_lab_on, replicates,
};
use crate::options::{KERNELS, MachineOptions, MeasureOptions, SeedOptions, ThreadOptions};
use crate::select::{ChosenWorkloads, choose_machines, choose_workloads, kernel_name_in};
use crate::session::Session;

/// `marvin run`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct RunArguments {
    /// Kernel to measure
    #[arg(add = completion::kernel())]
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) on: MachineOptions,

    #[command(flatten)]
    pub(crate) tasks: ThreadOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    #[command(flatten)]
    pub(crate) part: PartOptions,

    /// Also sample each workload after its measurement, on machines that measure time, for marvin
    /// profile
    #[arg(long)]
    pub(crate) sample: bool,
}

/// The part of a comparison that another host has asked for.
#[derive(Debug, Args)]
pub(crate) struct PartOptions {
    /// Use the build of this hash that hosts share
    #[arg(long, value_name = "HASH", hide = true)]
    pub(crate) build: Option<String>,

    /// Run this seed
    #[arg(long, value_name = "N", hide = true, conflicts_with_all = ["seeds", "quick"])]
    pub(crate) seed: Option<u64>,
}

pub(crate) fn run(session: &Session, command: &RunArguments) -> anyhow::Result<Exit> {
    let name = kernel_name_in(&command.kernel, command.measure.sources.tree.as_deref())?;
    let chosen = choose_workloads(session, &command.measure, std::slice::from_ref(&name))?;
    let answer = session.answer(None)?;
    let mut texts = Vec::new();
    let mut failed = false;
    let machines = choose_machines(session, &command.on)?;
    check_threads(&command.tasks, &chosen, &machines)?;
    for (_, wanted) in machines {
        let chosen = choose_for_machine(&command.tasks, &command.measure, &chosen, &wanted);
        let (runs, shown) = run_on(wanted, session, command, &chosen, &name)?;
        failed |= runs
            .iter()
            .flat_map(|run| &run.results)
            .any(|r| matches!(r.outcome, Outcome::Failed(_)));
        texts.extend(shown);
    }
    answer.write(texts.join("\n"))?;
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}

/// Runs the suite on one machine; returns the runs, and each as text.
fn run_on(
    wanted: Wanted,
    session: &Session,
    command: &RunArguments,
    chosen: &ChosenWorkloads,
    name: &KernelName,
) -> anyhow::Result<(Vec<model::Run>, Vec<String>)> {
    let lab = open_lab_on(wanted, session, &command.measure, chosen.tools.clone())?;
    let progress = session.progress();
    let sampled = if command.sample {
        Sampled::Yes
    } else {
        Sampled::No
    };
    let seeds = match command.part.seed {
        Some(seed) => vec![seed],
        None => replicates(
            lab.machine(),
            command.seeds.count(1),
            command.on.noisy.boots(),
        ),
    };
    let build = command
        .part
        .build
        .as_deref()
        .map(BuildId::from_hex)
        .transpose()?;
    let whole = KernelMeasurement {
        measure: &command.measure,
        chosen,
        build,
        seeds,
        sampled,
    };
    let (build, runs) = whole.measure(&lab, name, &progress)?;
    let machines = lab.machines(&chosen.workloads)?;
    progress.end();
    let styles = session.answer(None)?.styles();
    let mut texts = Vec::new();
    for run in &runs {
        let machine = machines
            .iter()
            .find(|machine| machine.id == run.machine)
            .unwrap_or(lab.machine());
        let declared = &chosen
            .tools
            .with_printed_rows(&chosen.tools.suite().workloads, &[vec![run.clone()]]);
        let shown = Shown {
            run,
            build: &build,
            machine,
            declared,
            dumps: &lab.dumps(&run.id)?,
        };
        texts.push(compare::render::run(&shown, &styles));
    }
    texts.extend(compare::scaling::table(
        &build,
        lab.machine(),
        &runs.iter().collect::<Vec<_>>(),
        &styles,
    ));
    Ok((runs, texts))
}

//! `marvin workloads --sensitivity`: how the transfers of the suite contention depend on what
//! scheduling costs on exact-smp, which is a choice of the model.

use compare::run_value;
use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled, Wanted};
use machine::{Costs, Smp};
use model::{CONTENTION, Run, Workload};
use profile::transfers::{Sensitive, sensitivity_document};

use super::WorkloadsArguments;
use crate::exit::{Exit, WrongInput};
use crate::select::kernel_name;
use crate::session::Session;

const CPUS: u32 = 2;

/// The usual costs and others, in nanoseconds.
fn variations() -> [(&'static str, Costs); 4] {
    let usual = Costs::default();
    [
        ("usual", usual),
        (
            "quantum 50",
            Costs {
                quantum: 50,
                ..usual
            },
        ),
        (
            "latency 200",
            Costs {
                latency: 200,
                ..usual
            },
        ),
        (
            "both 50",
            Costs {
                quantum: 50,
                latency: 50,
                ..usual
            },
        ),
    ]
}

pub(crate) fn sensitivity(
    session: &Session,
    command: &WorkloadsArguments,
    kernel: &str,
) -> anyhow::Result<Exit> {
    if command
        .suite
        .as_deref()
        .is_some_and(|suite| suite != CONTENTION.name)
    {
        let text = "--sensitivity is of the suite contention: others have no processors that wait for each other";
        return Err(WrongInput(text.into()).into());
    }
    let kernel = kernel_name(kernel)?;
    let answer = session.answer(None)?;
    let progress = session.progress();
    let mut all: Vec<Sensitive> = CONTENTION
        .workloads
        .iter()
        .map(|workload| Sensitive {
            workload: workload.name.to_string(),
            margin_percent: workload.metric.margin_percent,
            values: Vec::new(),
        })
        .collect();
    for (name, costs) in variations() {
        progress.say(&format!("{name}: {costs}"));
        let options = LabOptions {
            store: Some(session.store_location()?),
            wanted: Wanted::ExactSmp(Smp {
                costs,
                ..Smp::new(CPUS)
            }),
            ..LabOptions::default()
        };
        let lab = session.open_lab(options)?;
        let build = lab.build(&kernel, &|step| progress.step(&kernel.to_string(), &step))?;
        let plan = Plan {
            sides: vec![&build],
            suite: &CONTENTION,
            workloads: CONTENTION.workloads.clone(),
            replicates: vec![1],
            machines: 1,
            reuse: Reuse::Stored,
            dumps: Dumps::Drop,
            sampled: Sampled::No,
        };
        let runs = lab
            .execute(&plan, &|event| progress.event(&event))?
            .concat();
        for (sensitive, workload) in all.iter_mut().zip(&CONTENTION.workloads) {
            sensitive.values.push(value(&lab, &runs, workload));
        }
    }
    progress.end();
    let names = variations().map(|(name, _)| name);
    let text = sensitivity_document(&names, &all).text(&answer.styles());
    answer.write(text)?;
    Ok(Exit::Fine)
}

/// Returns the transfers per operation of a workload; `None` if it did not complete.
fn value(lab: &Lab, runs: &[Run], workload: &Workload) -> Option<f64> {
    let result = runs
        .iter()
        .flat_map(|run| &run.results)
        .find(|result| result.workload == workload.name)?;
    run_value(result, lab.machine().capabilities())
        .ok()
        .map(|value| value.value)
}

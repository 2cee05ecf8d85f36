//! The cost of counting, of following calls and of simulating a processor: processor time of the
//! same job with and without.

use std::sync::Arc;

use anyhow::Context;
use lab::{Lab, Measurement};
use model::{Build, CostModel, MICRO, Workload};
use probes::Probe;

use crate::suite::Ready;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};

/// A workload that is almost all kernel.
const NAME: &str = "fault-anon";
/// Factors for its operations: the difference is the work alone, without start and end.
const TIMES: [u64; 2] = [1, 9];

pub(crate) fn tracing(bench: &mut Ready, figures: &mut Figures) -> anyhow::Result<()> {
    let declared = MICRO
        .workloads
        .iter()
        .find(|workload| workload.name == NAME)
        .context("the workload is gone")?;
    let mut seconds = [[0.0; 2]; 4];
    for (place, times) in TIMES.into_iter().enumerate() {
        let operations = declared.operations * times;
        let workload = Arc::new(Workload {
            operations,
            exercises: &[],
            ..(**declared).clone()
        });
        let run = bench.measure(vec![Arc::clone(&workload)], 1)?.run;
        let (lab, build) = bench.parts();
        let profile = lab.profile(&run.id, NAME)?.context("it was not counted")?;
        seconds[0][place] = plain(lab, build, &workload)?;
        seconds[1][place] = bench.measure(vec![Arc::clone(&workload)], 1)?.cpu_s;
        let (lab, build) = bench.parts();
        let of = Measurement {
            build,
            workload: &workload,
            replicate: 1,
        };
        let before = cpu::children_s()?;
        lab.follow_calls(of, &profile)?
            .into_result()
            .map_err(anyhow::Error::msg)?;
        seconds[2][place] = cpu::children_s()? - before;
        let before = cpu::children_s()?;
        lab.simulate(of, &profile, &CostModel::default())?
            .into_result()
            .map_err(anyhow::Error::msg)?;
        seconds[3][place] = cpu::children_s()? - before;
    }
    let [plain, counted, followed, simulated] = seconds.map(|[few, many]| many - few);
    let figures_of = [
        ("instructions counted", counted),
        ("calls followed", followed),
        ("a processor simulated", simulated),
    ];
    for (what, value) in figures_of {
        figures.print(&Figure {
            name: format!("{NAME}, {what}: processor time"),
            value,
            unit: "s",
            against: Against::Peer("without", plain),
        })?;
    }
    Ok(())
}

/// Runs the workload without counting, as a probe of no function.
fn plain(lab: &Lab, build: &Build, workload: &Workload) -> anyhow::Result<f64> {
    let before = cpu::children_s()?;
    lab.probe(build, workload)?;
    Ok(cpu::children_s()? - before)
}

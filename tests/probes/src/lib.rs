//! Runs workloads with kprobes on the kernel functions that they exercise. For tests and benches
//! only: runs with probes are no measurements, and are not stored.

mod table;

use lab::{Lab, LabError, Measurement};
use model::{Build, Processors, Workload};
use wire::{Frame, Task};

pub use table::{ProbeHits, probe_hits};

/// The result of a workload with probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Entries of each function with a probe.
    pub hits: Vec<ProbeHits>,
    /// Number of operations, warm-up included.
    pub operations: u64,
    /// Ticks of each measured iteration, including the cost of the probes.
    pub ticks: Vec<u64>,
}

/// A lab with probes.
pub trait Probe {
    /// Runs a workload with probes on its functions.
    ///
    /// # Errors
    /// If the lab fails. A kernel that fails, or without kprobes, has no hits.
    fn probe(&self, build: &Build, workload: &Workload) -> Result<Probed, LabError>;
}

impl Probe for Lab {
    fn probe(&self, build: &Build, workload: &Workload) -> Result<Probed, LabError> {
        let frames = self.run_task(
            Measurement {
                build,
                workload,
                replicate: 1,
            },
            task(workload),
        )?;
        let mut table = Vec::new();
        let mut ticks = Vec::new();
        for frame in frames.into_result().unwrap_or_default() {
            match frame {
                Frame::File { bytes, .. } => table.extend(bytes),
                Frame::Samples(of_iterations) => ticks = of_iterations,
                _ => {}
            }
        }
        let operations = workload.operations * u64::from(workload.warm_up + workload.iterations);
        Ok(Probed {
            hits: probe_hits(&table),
            operations,
            ticks,
        })
    }
}

fn task(workload: &Workload) -> Task {
    let probes = workload
        .exercises
        .iter()
        .flat_map(|names| names.iter())
        .map(ToString::to_string);
    Task::Workload {
        name: workload.name.to_string(),
        operations: workload.operations,
        warm_up: workload.warm_up,
        iterations: workload.iterations,
        tasks: workload.tasks.unwrap_or(1),
        all_processors: workload.processors == Processors::All,
        probes: probes.collect(),
        monitors: None,
        sampling: None,
    }
}

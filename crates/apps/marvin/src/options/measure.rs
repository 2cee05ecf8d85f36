//! Options for a measurement: workloads, tools, parallel machines, artifacts.

use std::path::PathBuf;

use clap::Args;
use model::CostModel;

use super::{ProgramOptions, SourceOptions, whole};
use crate::completion;
use crate::select::TREE;

/// Options for a measurement.
#[derive(Debug, Args)]
pub(crate) struct MeasureOptions {
    /// Suite to run: micro, mm, sched, net, io, reclaim, rmap, disk, fs, subsystems, reports, paths,
    /// scale, contention, smoke, seeds; `marvin workloads` lists them; paths-mm, paths-net and others are rows
    /// of subsystems (docs/gate.md) [default: the first that has the workloads, so micro; of series: paths]
    #[arg(long, value_name = "SUITE", add = completion::suite())]
    pub(crate) suite: Option<String>,

    /// Run only these workloads or groups, separated by commas: fault,fork,syscall; external tools
    /// and their workloads are tool:sysbench, tool:sysbench-cpu; benchmarks of the kernel's source
    /// tree:find_bit_benchmark (marvin workloads --tree)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Add the external tool of this manifest (docs/tools.md) to those in manifests/ of the data
    /// directory
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    /// Measure again, even if results exist or the images are equal
    #[arg(long)]
    pub(crate) force: bool,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,

    /// Store a memory dump when the guest's kernel panics, filtered if it has VMCOREINFO, at most
    /// 64 MiB: WORKLOAD.vmcore; kernels that Marvin builds get CONFIG_PROC_KCORE=y for it
    #[arg(long)]
    pub(crate) keep_dump: bool,

    #[command(flatten)]
    pub(crate) sources: SourceOptions,

    /// Boot for every workload instead of restoring a snapshot: slower, same numbers
    #[arg(long)]
    pub(crate) no_snapshots: bool,

    #[command(flatten)]
    pub(crate) program: ProgramOptions,
}

impl MeasureOptions {
    /// Returns the name of the suite; without one that of the workloads.
    pub(crate) fn suite(&self) -> &str {
        let usual = || model::usual_suite(&self.workload).name;
        self.suite.as_deref().unwrap_or_else(usual)
    }

    /// Returns the words that choose the same workloads again; the program of the user's own, if
    /// there is one, follows at the end of a command.
    pub(crate) fn choice_arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(suite) = &self.suite {
            words.extend(["--suite".into(), suite.clone()]);
        }
        if !self.workload.is_empty() {
            words.extend(["--workload".into(), self.workload.join(",")]);
        }
        // Benchmarks of the kernel's source come from there.
        let of_source = self.workload.iter().any(|word| word.starts_with(TREE));
        if let Some(tree) = self.sources.tree.as_ref().filter(|_| of_source) {
            words.extend(["--tree".into(), tree.display().to_string()]);
        }
        for manifest in &self.manifest {
            words.extend(["--manifest".into(), manifest.display().to_string()]);
        }
        words.extend(self.program.arguments());
        words
    }
}

/// Returns the number of seeds that counting needs: a model depends on the layout of memory.
pub(crate) fn seeds_for(model: Option<&CostModel>) -> u64 {
    if model.is_some() { 4 } else { 1 }
}

//! Measures kernels for the commands that do: opens the lab, gets kernels, plans, executes, and
//! repeats what a first measurement cannot have.

mod causes;
mod counted;
mod kdump_program;
mod kernel;
mod lab;
mod plan;
mod repeat;
mod sampled;
mod threads;
mod transfers;

pub(crate) use self::lab::{
    open_exact_lab, open_exact_lab_with, open_lab_on, open_search_lab, replicates,
};
pub(crate) use causes::{explain_stored, explain_stored_or_none, find_differing_settings};
pub(crate) use counted::{
    CountOptions, CountedKernels, as_sides, count_kernels, kernel_titles, machine_summary,
    read_ledger, read_ledger_with, read_of_both,
};
pub(crate) use kdump_program::with_kdump_program;
pub(crate) use kernel::KernelMeasurement;
pub(crate) use plan::{
    find_build, find_builds, parallel_machines, plan_runs, prepare_tools, reuse_unless,
};
pub(crate) use repeat::{FollowedCalls, RepeatedJobs, Simulated, follow_calls, simulate_processor};
pub(crate) use sampled::{SampledKernels, profiles, sample_kernels, stored_ledger};
pub(crate) use threads::{check_threads, choose_for_machine};
pub(crate) use transfers::{
    FollowedLines, follow_lines, line_difference, locks_beside, weigh_locks,
};

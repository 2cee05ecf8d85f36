//! Chooses what the user names: kernels, workloads, machines, trees, stored runs and alerts. An
//! error for an unknown name suggests a similar one.

mod alerts;
mod benchmarks;
mod kernels;
mod machines;
mod paths;
mod runs;
mod sources;
mod workloads;

pub(crate) use alerts::find_alert;
pub(crate) use benchmarks::{BenchmarkChoice, TREE, add_benchmarks, open_tree};
pub(crate) use kernels::{kernel_name, kernel_name_in};
pub(crate) use machines::{choose_machines, find_machines};
pub(crate) use paths::describe_missing;
pub(crate) use runs::{NamedRuns, RunChoice, find_run, find_runs, shortest_names};
pub(crate) use sources::{
    enclosing_tree, find_tree, find_tree_folder, is_kernel_source, measured_sources,
    settings_with_tools, source_settings, with_modules,
};
pub(crate) use workloads::{
    ChosenWorkloads, EMPTY_NAME, choose_named_workloads, choose_program, choose_workloads,
    choose_workloads_of, describe_program, explain_program_error, find_suite, select_workload,
    select_workloads, smp_suite,
};

/// Returns a suggestion for an error text; empty if no name is similar.
pub(crate) fn did_you_mean<'a>(names: impl Iterator<Item = &'a str>, word: &str) -> String {
    let nearest = names
        .map(|name| (strsim::damerau_levenshtein(name, word), name))
        .min()
        .filter(|(distance, name)| distance * 3 <= name.len().max(word.len()));
    nearest.map_or_else(String::new, |(_, name)| {
        format!(" (did you mean `{name}`?)")
    })
}

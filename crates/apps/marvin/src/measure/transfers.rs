//! Follows the lines of memory that processors share, on the exact machine with several processors.

use compare::{Comparison, LockBeside, LongestHeld};
use lab::{Lab, Reuse, Wanted};
use model::{Availability, Build, KernelName, Run};
use profile::transfers::SharingDifference;

use super::{
    as_sides, find_builds, machine_summary, open_lab_on, plan_runs, prepare_tools, read_of_both,
};
use crate::options::MeasureOptions;
use crate::select::{ChosenWorkloads, choose_workloads_of, smp_suite};
use crate::session::Session;

/// Two kernels whose shared lines were followed.
pub(crate) struct FollowedLines {
    pub(crate) lab: Lab,
    pub(crate) builds: Vec<Build>,
    pub(crate) runs: Vec<Vec<Run>>,
    pub(crate) differences: Vec<SharingDifference>,
    /// Summary of the machine.
    pub(crate) machine: String,
    /// Workloads without one, with the reason.
    pub(crate) missing: Vec<(String, String)>,
}

/// Measures what is missing, and compares the lines of both kernels.
pub(crate) fn follow_lines(
    session: &Session,
    measure: &MeasureOptions,
    names: &[KernelName],
    seeds: &[u64],
    wanted: &Wanted,
) -> anyhow::Result<FollowedLines> {
    let suite = smp_suite(measure.suite())?;
    let ChosenWorkloads {
        suite,
        workloads,
        tools,
    } = choose_workloads_of(session, measure, suite.name, names)?;
    let lab = open_lab_on(wanted.clone(), session, measure, tools)?;
    let progress = session.progress();
    prepare_tools(&lab, &workloads, &progress)?;
    let builds = find_builds(&lab, names, &progress)?;
    let mut plan = plan_runs(measure, &builds, &suite, &workloads, seeds);
    if matches!(builds.as_slice(), [base, new] if base.id == new.id) {
        // Stored runs would be those of both sides.
        plan.reuse = Reuse::Nothing;
    }
    let runs = as_sides(lab.execute(&plan, &|event| progress.event(&event))?);
    let builds = as_sides(builds);
    progress.end();
    let machine = machine_summary(&lab, &workloads)?;
    let mut differences = Vec::new();
    let mut missing = Vec::new();
    for workload in workloads {
        let name = &*workload.name;
        match line_difference(&lab, &runs, name)? {
            Availability::Available(difference) => differences.push(difference),
            Availability::Unavailable(why) => missing.push((name.to_owned(), why)),
        }
    }
    Ok(FollowedLines {
        lab,
        builds,
        runs,
        differences,
        machine,
        missing,
    })
}

/// Returns the difference of a workload over the runs of both kernels, or why there is none.
pub(crate) fn line_difference(
    lab: &Lab,
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Availability<SharingDifference>> {
    let lost = "its lines were not recorded; --force measures again";
    let sides = read_of_both(&|run| Ok(lab.sharing(run, workload)?), runs, workload, lost)?;
    Ok(sides.and_then(|[base, new]| {
        SharingDifference::new(workload, &base, &new)
            .ok_or_else(|| "it was not measured on both kernels".into())
    }))
}

/// Weighs the rows of a comparison on a machine that follows lines by the locks that were held
/// longest. `runs` has the baseline's first.
pub(crate) fn weigh_locks(
    lab: &Lab,
    runs: &[Vec<Run>],
    comparison: &mut Comparison,
) -> anyhow::Result<()> {
    let [base, others @ ..] = runs else {
        return Ok(());
    };
    let names: Vec<String> = comparison
        .rows
        .iter()
        .map(|row| row.workload.name.to_string())
        .collect();
    for (column, new) in others.iter().enumerate() {
        let sides = [base.clone(), new.clone()];
        for workload in &names {
            let read = |run: &_| Ok(lab.sharing(run, workload)?);
            let Availability::Available([base, new]) =
                read_of_both(&read, &sides, workload, "none")?
            else {
                continue;
            };
            let longest = LongestHeld::of_seeds(&base, &new);
            comparison.weigh_locks(workload, column, &longest);
        }
    }
    Ok(())
}

/// Returns the locks of a row that are held for longer or shorter, the longest or not; none where
/// a kernel was not measured. `runs` has the runs of each side.
pub(crate) fn locks_beside(
    lab: &Lab,
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Vec<LockBeside>> {
    let read = |run: &_| Ok(lab.sharing(run, workload)?);
    let sides = read_of_both(&read, runs, workload, "none")?;
    Ok(match sides {
        Availability::Available([base, new]) => LockBeside::of_seeds(&base, &new),
        Availability::Unavailable(_) => Vec::new(),
    })
}

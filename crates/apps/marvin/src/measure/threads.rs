//! `--threads`: with how many tasks the workloads run that scale.

use std::sync::Arc;

use lab::Wanted;
use model::{Workload, in_tasks, task_counts};

use crate::exit::WrongInput;
use crate::options::{MeasureOptions, ThreadOptions, Threads};
use crate::select::ChosenWorkloads;

/// Checks the numbers before anything is fetched or booted: each must fit a machine, and each
/// machine needs one that fits.
pub(crate) fn check_threads(
    tasks: &ThreadOptions,
    chosen: &ChosenWorkloads,
    machines: &[(String, Wanted)],
) -> anyhow::Result<()> {
    if tasks.threads.is_empty() {
        return Ok(());
    }
    if chosen
        .workloads
        .iter()
        .all(|workload| workload.tasks.is_none())
    {
        let text = "--threads needs workloads that scale: those of --suite scale";
        return Err(WrongInput(text.to_owned()).into());
    }
    for (name, wanted) in machines {
        let processors = wanted.processors();
        let too_many = tasks.threads.iter().find_map(|threads| match threads {
            Threads::Number(number) => Some(*number).filter(|number| *number > processors),
            Threads::Max => None,
        });
        let is_alone = machines.len() == 1 || counts(tasks, processors).is_empty();
        if let Some(number) = too_many.filter(|_| is_alone) {
            let hint = match wanted {
                Wanted::Exact | Wanted::ExactSmp(_) => format!("--on vm --cpus {number}"),
                Wanted::Vm(_) => format!("--cpus {number}"),
                Wanted::Local => "--threads max".to_owned(),
                Wanted::Server(_) => "`cpus` of the [[machine]] in marvin.toml".to_owned(),
            };
            let text = format!(
                "cannot run {number} threads on {name}: it has {}\nhint: {hint}",
                count_processors(processors)
            );
            return Err(WrongInput(text).into());
        }
    }
    let most = machines
        .iter()
        .map(|(_, wanted)| wanted.processors())
        .max()
        .unwrap_or(1);
    let beyond = tasks
        .threads
        .iter()
        .find(|threads| matches!(threads, Threads::Number(number) if *number > most));
    match beyond {
        Some(number) => {
            let text = format!(
                "cannot run {number} threads: none of the machines has more than {}",
                count_processors(most)
            );
            Err(WrongInput(text).into())
        }
        None => Ok(()),
    }
}

/// Returns the workloads for a machine: those that scale with each number of tasks that fits.
pub(crate) fn choose_for_machine(
    tasks: &ThreadOptions,
    measure: &MeasureOptions,
    chosen: &ChosenWorkloads,
    wanted: &Wanted,
) -> ChosenWorkloads {
    let processors = wanted.processors();
    let counts = if tasks.threads.is_empty() {
        task_counts(processors)
    } else {
        counts(tasks, processors)
    };
    let workloads: Vec<Arc<Workload>> = in_tasks(&chosen.workloads, &measure.workload, &counts);
    ChosenWorkloads {
        suite: Arc::clone(&chosen.suite),
        workloads,
        tools: chosen.tools.clone(),
    }
}

fn count_processors(processors: u32) -> String {
    if processors == 1 {
        "one processor".to_owned()
    } else {
        format!("{processors} processors")
    }
}

/// Returns the numbers that fit so many processors, in the order of their size.
fn counts(tasks: &ThreadOptions, processors: u32) -> Vec<u32> {
    let mut counts: Vec<u32> = tasks
        .threads
        .iter()
        .map(|threads| match threads {
            Threads::Number(number) => *number,
            Threads::Max => processors,
        })
        .filter(|number| *number <= processors)
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use lab::Wanted;
    use machine::VmShape;

    use super::{check_threads, counts};
    use crate::options::{ThreadOptions, Threads};
    use crate::select::{ChosenWorkloads, choose_named_workloads};

    fn chosen(suite: &str) -> ChosenWorkloads {
        choose_named_workloads(lab::Tools::default(), suite, &[]).unwrap()
    }

    fn tasks(threads: &[Threads]) -> ThreadOptions {
        ThreadOptions {
            threads: threads.to_vec(),
        }
    }

    fn refused(threads: &[Threads], suite: &str, machines: &[(&str, Wanted)]) -> String {
        let machines: Vec<_> = machines
            .iter()
            .map(|(name, wanted)| ((*name).to_owned(), wanted.clone()))
            .collect();
        let checked = check_threads(&tasks(threads), &chosen(suite), &machines);
        checked
            .err()
            .map_or_else(|| "accepted".to_owned(), |error| error.to_string())
    }

    fn vm() -> (&'static str, Wanted) {
        (
            "vm",
            Wanted::Vm(VmShape {
                cpus: 4,
                memory_mib: 512,
            }),
        )
    }

    #[test]
    fn threads_beyond_the_processors_are_refused() {
        let exact = || ("exact", Wanted::Exact);
        let number = Threads::Number;
        insta::assert_snapshot!(refused(&[number(8)], "scale", &[vm()]), @r"
        cannot run 8 threads on vm: it has 4 processors
        hint: --cpus 8
        ");
        insta::assert_snapshot!(refused(&[number(1), number(2)], "scale", &[exact()]), @r"
        cannot run 2 threads on exact: it has one processor
        hint: --on vm --cpus 2
        ");
        insta::assert_snapshot!(refused(&[number(2)], "scale", &[exact(), vm()]), @r"
        cannot run 2 threads on exact: it has one processor
        hint: --on vm --cpus 2
        ");
        insta::assert_snapshot!(refused(&[number(1), number(8)], "scale", &[exact(), vm()]), @"cannot run 8 threads: none of the machines has more than 4 processors");
        insta::assert_snapshot!(refused(&[number(2)], "micro", &[vm()]), @"--threads needs workloads that scale: those of --suite scale");
        for threads in [&[number(1), number(4)][..], &[number(1), Threads::Max], &[]] {
            assert_eq!(refused(threads, "scale", &[exact(), vm()]), "accepted");
        }
    }

    #[test]
    fn max_is_all_processors_once() {
        let threads = [
            Threads::Max,
            Threads::Number(1),
            Threads::Number(4),
            Threads::Number(8),
        ];
        assert_eq!(counts(&tasks(&threads), 4), [1, 4]);
    }
}

//! `marvin report`: compares stored runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compare::{Machines, Question, Side, Warning};
use model::{
    Build, BuildId, Declared, Direction, LKP, MMTESTS, Machine, MachineId, Observation, Run, RunId,
    Workload, find_workload, imported_metric, imported_workload, in_tasks,
};
use monitors::{Monitored, heads};
use store::Store;

use super::compare::{compare_observations, now, write};
use super::measure::{suite, workloads};
use super::stored::{Choice, Named};
use super::tools::known_tools;
use crate::answer::Answer;
use crate::cli::{Arguments, Report};
use crate::exit::{Exit, WrongInput};

pub(crate) fn report(arguments: &Arguments, command: &Report) -> anyhow::Result<Exit> {
    let answer = Answer::open(command.write.output.as_deref())?;
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    let choice = Choice {
        suite: command.suite.as_deref(),
        mixed_machines: command.mixed_machines,
    };
    let Named { runs: ids, words } = super::stored::runs(&store, &command.runs, choice)?;
    let runs = ids
        .iter()
        .map(|id| store.run(id))
        .collect::<Result<Vec<_>, _>>()?;
    let groups = group_runs(runs, &store)?;
    let known = groups
        .iter()
        .map(|group| Ok((store.build(&group.build)?, &*group.machines)))
        .collect::<Result<Vec<(Build, &[Machine])>, store::StoreError>>()?;
    let sides: Vec<Side<'_>> = groups
        .iter()
        .zip(&known)
        .map(|(group, (build, machines))| Side {
            build,
            machine: &machines[0],
            also: machines[1..].iter().collect(),
            runs: group.runs.iter().collect(),
        })
        .collect();
    let suite = groups[0].runs[0].suite.clone();
    let results = || {
        groups
            .iter()
            .flat_map(|group| &group.runs)
            .flat_map(|run| &run.results)
    };
    let is_imported = [MMTESTS, LKP].contains(&suite.as_str());
    let Chosen {
        workloads,
        without_direction,
    } = if is_imported {
        let names = results().map(|result| result.workload.as_str()).collect();
        choose_imported(&suite, &names, command)?
    } else {
        let measured_tasks =
            || results().filter_map(|result| find_workload(&result.workload)?.tasks);
        let counts: Vec<u32> = measured_tasks()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let choose_workloads = in_tasks(
            &own(&suite, arguments, command)?,
            &command.workload,
            &counts,
        );
        let measured =
            |workload: &Arc<Workload>| results().any(|result| result.workload == workload.name);
        Chosen {
            workloads: choose_workloads.into_iter().filter(measured).collect(),
            without_direction: Vec::new(),
        }
    };
    let question = Question {
        suite,
        workloads,
        seeds: Vec::new(),
        margin_percent: command.write.margin,
        scatters: if is_imported {
            scatters(arguments, &groups)?
        } else {
            BTreeMap::new()
        },
        looks_max: None,
        machines: if command.mixed_machines {
            Machines::Mixed
        } else {
            Machines::Equal
        },
        command: reproducer(command, &words),
        created_unix: Some(now()),
    };
    let mut comparison = compare::compare(&sides[0], &sides[1..], &question)?;
    if !is_imported {
        lab::doubt_by_twins(crate::home::store(arguments)?, &mut comparison)?;
    }
    if !without_direction.is_empty() {
        comparison.warnings.push(Warning::NotRated {
            workloads: without_direction,
        });
    }
    if command.write.monitors {
        comparison.monitors = load_monitors(&store, &sides)?;
    }
    write(&comparison, &command.write, answer, arguments)?;
    mention(arguments, &comparison);
    Ok(comparison.conclusion().into())
}

/// Returns the noise of other kernels' runs on these machines, by workload.
fn scatters(
    arguments: &Arguments,
    groups: &[Group],
) -> anyhow::Result<BTreeMap<String, compare::Scatter>> {
    let snapshot = super::history::read(arguments)?;
    let machines: Vec<&MachineId> = groups
        .iter()
        .flat_map(|group| &group.machines)
        .map(|machine| &machine.id)
        .collect();
    let builds: Vec<&BuildId> = groups.iter().map(|group| &group.build).collect();
    Ok(snapshot.history.scatters(&machines, &builds))
}

/// Marks runs as referenced by a report, so that `marvin gc` keeps them.
pub(crate) fn mention(arguments: &Arguments, comparison: &compare::Comparison) {
    let runs: Vec<&RunId> = comparison
        .kernels()
        .flat_map(|kernel| &kernel.runs)
        .map(|run| &run.id)
        .collect();
    let left = crate::home::store(arguments)
        .and_then(|location| Ok(Store::open(location)?.pin(&runs, &comparison.command)?));
    if let Err(error) = left {
        // The report is written; without write access, Marvin cannot protect the runs from removal.
        crate::say(&format!(
            "note: cannot mark these runs as referenced: {error:#}"
        ));
    }
}

/// Returns the stored copies of monitors by workload, from the newest run of each side that has
/// them.
fn load_monitors(store: &Store, sides: &[Side<'_>]) -> anyhow::Result<Vec<Monitored>> {
    let heads = heads(
        &sides
            .iter()
            .map(|side| (side.build, side.machine))
            .collect::<Vec<_>>(),
    );
    let mut kept: Vec<BTreeMap<String, (i64, &RunId)>> = Vec::new();
    for side in sides {
        let mut of_side = BTreeMap::new();
        for run in &side.runs {
            for name in store.artefact_names(&run.id)? {
                // As with results, the newest counts.
                if lab::monitored_subject(&name).is_some()
                    && of_side
                        .get(&name)
                        .is_none_or(|(started, _)| run.started_unix > *started)
                {
                    of_side.insert(name, (run.started_unix, &run.id));
                }
            }
        }
        kept.push(of_side);
    }
    let mut all = Vec::new();
    for name in kept[0]
        .keys()
        .filter(|name| kept.iter().all(|of_side| of_side.contains_key(*name)))
    {
        let read = |of_side: &BTreeMap<String, (i64, &RunId)>| -> anyhow::Result<Observation> {
            let (_, run) = of_side[name];
            let bytes = store.artefact(run, name)?;
            lab::stored_observation(&bytes).ok_or_else(|| {
                WrongInput(format!(
                    "cannot read {name} of {run}: not monitor copies of this version"
                ))
                .into()
            })
        };
        let seen = kept.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let subject = format!(
            "{}: kernel counters",
            lab::monitored_subject(name).unwrap_or(name)
        );
        all.push(compare_observations(subject, &heads, &seen, None));
    }
    Ok(all)
}

/// Returns workloads of one of Marvin's suites and, unless some are selected, those of external
/// tools that may have run with it.
fn own(suite: &str, arguments: &Arguments, command: &Report) -> anyhow::Result<Vec<Arc<Workload>>> {
    let tools = known_tools(arguments, &command.manifest)?;
    let of_tools = suite == tools.suite().name;
    let mut choose_workloads = workloads(
        if of_tools {
            tools.suite()
        } else {
            self::suite(suite)?
        },
        &command.workload,
    )?;
    if command.workload.is_empty() && !of_tools {
        choose_workloads.extend(tools.suite().workloads.iter().cloned());
    }
    Ok(choose_workloads)
}

/// The rows of a report.
struct Chosen {
    workloads: Vec<Arc<Workload>>,
    /// Workloads that have no row because their direction is unknown.
    without_direction: Vec<String>,
}

/// Selects workloads of another suite: a word is a name or its beginning up to a slash.
fn choose_imported(
    suite: &str,
    names: &BTreeSet<&str>,
    command: &Report,
) -> anyhow::Result<Chosen> {
    let meant = |name: &str, word: &String| {
        name.strip_prefix(word.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let words = || {
        [&command.workload, &command.lower, &command.higher]
            .into_iter()
            .flatten()
    };
    if words().any(String::is_empty) {
        return Err(WrongInput(super::measure::EMPTY_NAME.to_owned()).into());
    }
    if let Some(word) = words().find(|word| !names.iter().any(|name| meant(name, word))) {
        let text = format!(
            "no workload `{word}` in these runs; `marvin show RUN` lists a run's workloads"
        );
        return Err(WrongInput(text).into());
    }
    let mut choose_workloads = Chosen {
        workloads: Vec::new(),
        without_direction: Vec::new(),
    };
    let wanted = |name: &&&str| {
        command.workload.is_empty() || command.workload.iter().any(|word| meant(name, word))
    };
    for name in names.iter().filter(wanted) {
        let declared = imported_metric(suite, name);
        let said = |words: &[String], direction| {
            words
                .iter()
                .any(|word| meant(name, word))
                .then_some(direction)
        };
        let direction = said(&command.lower, Direction::LowerIsBetter)
            .or_else(|| said(&command.higher, Direction::HigherIsBetter))
            .or(declared.direction);
        match imported_workload(
            name,
            &Declared {
                direction,
                ..declared
            },
        ) {
            Some(workload) => choose_workloads.workloads.push(workload),
            None => choose_workloads.without_direction.push((*name).to_owned()),
        }
    }
    if choose_workloads.workloads.is_empty() {
        let few: Vec<&str> = choose_workloads
            .without_direction
            .iter()
            .take(4)
            .map(String::as_str)
            .collect();
        let text = format!(
            "metric direction unknown for all these workloads ({}): set it with --lower or --higher",
            few.join(", ")
        );
        return Err(WrongInput(text).into());
    }
    Ok(choose_workloads)
}

/// The runs of one kernel on one machine, with any guest config.
struct Group {
    build: BuildId,
    machines: Vec<Machine>,
    runs: Vec<Run>,
}

impl Group {
    /// Takes a run that belongs here; returns others.
    fn take(&mut self, run: Run, machine: &Machine) -> Option<Run> {
        if self.build != run.build || !self.machines[0].is_kin(machine) {
            return Some(run);
        }
        self.runs.push(run);
        None
    }
}

/// Groups runs by build and machine, in the order of their names. If all are of one build, the
/// first run is compared with the rest: a kernel with itself.
fn group_runs(runs: Vec<Run>, store: &Store) -> anyhow::Result<Vec<Group>> {
    let (mut groups, mut known): (Vec<Group>, Vec<Machine>) = (Vec::new(), Vec::new());
    for run in runs {
        let machine = store.machine(&run.machine)?;
        if !known.iter().any(|known: &Machine| known.id == machine.id) {
            known.push(machine.clone());
        }
        if let Some(run) = groups
            .iter_mut()
            .try_fold(run, |run, group| group.take(run, &machine))
        {
            groups.push(Group {
                build: run.build.clone(),
                machines: vec![machine],
                runs: vec![run],
            });
        }
    }
    for group in &mut groups {
        // Related machines in the same order on every side, including those without runs.
        let first = group.machines[0].clone();
        group.machines = known
            .iter()
            .filter(|machine| machine.is_kin(&first))
            .cloned()
            .collect();
    }
    if let [only] = groups.as_mut_slice() {
        if only.runs.len() < 2 {
            return Err(WrongInput(
                "a report needs at least two runs: `marvin runs` lists them".into(),
            )
            .into());
        }
        let rest = only.runs.split_off(1);
        let (build, machines) = (only.build.clone(), only.machines.clone());
        groups.push(Group {
            build,
            machines,
            runs: rest,
        });
    }
    Ok(groups)
}

fn reproducer(command: &Report, named: &[String]) -> String {
    let mut words = vec!["marvin".to_owned(), "report".to_owned()];
    words.extend(named.iter().cloned());
    if let Some(suite) = &command.suite {
        words.extend(["--suite".into(), suite.clone()]);
    }
    if !command.workload.is_empty() {
        words.extend(["--workload".into(), command.workload.join(",")]);
    }
    if let Some(margin) = command.write.margin {
        words.extend(["--margin".into(), margin.to_string()]);
    }
    if command.write.monitors {
        words.push("--monitors".into());
    }
    if command.mixed_machines {
        words.push("--mixed-machines".into());
    }
    for (option, names) in [("--lower", &command.lower), ("--higher", &command.higher)] {
        if !names.is_empty() {
            words.extend([option.into(), names.join(",")]);
        }
    }
    words.join(" ")
}

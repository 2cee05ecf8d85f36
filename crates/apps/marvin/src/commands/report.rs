//! `marvin report`: compares stored runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use compare::{Machines, Question, Side, Warning};
use model::{
    Build, BuildId, Declared, Direction, IMPORTED_SUITES, Machine, MachineId, Observation, Run,
    RunId, UnixTime, Workload, find_workload, imported_declarations, imported_workload, in_tasks,
};
use monitors::{Monitored, RunStats, heads, stats_block};
use results::import::MONITOR_STATS;
use store::Store;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::ComparisonOptions;
use crate::select::{EMPTY_NAME, NamedRuns, RunChoice, find_runs, find_suite, select_workloads};
use crate::session::{Session, now};
use crate::views::comparison::{compare_observations, pin_runs, write_comparison};

const REPORT_EXAMPLES: &str = "Examples:
  marvin report deb:6.1 deb:6.12
  marvin report 6.1-vanilla 6.12-vanilla --monitors
  marvin report run_4bb1f3a6 run_90c2d1e7";

/// `marvin report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Measured kernels by name or version, the baseline first: deb:6.1, 6.12.117; or run ids, or
    /// their first characters
    #[arg(required = true, value_name = "KERNEL|RUN", add = completion::measured())]
    pub(crate) runs: Vec<String>,

    /// Suite, if the kernels were measured with several
    #[arg(long, value_name = "SUITE", add = completion::suite())]
    pub(crate) suite: Option<String>,

    /// Show only these workloads or groups, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Add the external tool of this manifest (docs/tools.md), for its runs
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    /// Compare runs of different machines; the report warns
    #[arg(long)]
    pub(crate) mixed_machines: bool,

    /// Imported workloads where lower is better, if Marvin does not know the metric
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) lower: Vec<String>,

    /// Imported workloads where higher is better, if Marvin does not know the metric
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) higher: Vec<String>,

    #[command(flatten)]
    pub(crate) write: ComparisonOptions,
}

pub(crate) fn report(session: &Session, command: &ReportArguments) -> anyhow::Result<Exit> {
    command.write.check_mail()?;
    let answer = session.answer(command.write.output.as_deref())?;
    let mail = command.write.mail.open()?;
    let store = session.open_store_read_only()?;
    let choice = RunChoice {
        suite: command.suite.as_deref(),
        mixed_machines: command.mixed_machines,
    };
    let NamedRuns { runs: ids, terms } = find_runs(&store, &command.runs, choice)?;
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
    let results = groups
        .iter()
        .flat_map(|group| &group.runs)
        .flat_map(|run| &run.results);
    let is_imported = IMPORTED_SUITES.contains(&suite.as_str());
    let Chosen {
        workloads,
        without_direction,
    } = if is_imported {
        let runs = groups.iter().flat_map(|group| &group.runs);
        choose_imported(imported_declarations(runs), command)?
    } else {
        let tasks: BTreeSet<u32> = results
            .clone()
            .filter_map(|result| find_workload(&result.workload)?.tasks)
            .collect();
        let counts: Vec<u32> = tasks.into_iter().collect();
        let mut workloads = in_tasks(&own(&suite, session, command)?, &command.workload, &counts);
        let measured: BTreeSet<&str> = results.map(|result| result.workload.as_str()).collect();
        workloads.retain(|workload| measured.contains(&*workload.name));
        Chosen {
            workloads,
            without_direction: Vec::new(),
        }
    };
    let question = Question {
        suite,
        workloads,
        seeds: Vec::new(),
        margin_percent: command.write.margin,
        scatters: if is_imported {
            scatters(session, &groups)?
        } else {
            BTreeMap::new()
        },
        looks_max: None,
        machines: if command.mixed_machines {
            Machines::Mixed
        } else {
            Machines::Equal
        },
        command: reproducer(command, &terms),
        created_unix: Some(now()),
    };
    let mut comparison = compare::compare(&sides[0], &sides[1..], &question)?;
    if !is_imported {
        lab::doubt_by_twins(session.store_location()?, &mut comparison)?;
    }
    if !without_direction.is_empty() {
        comparison.warnings.push(Warning::NotRated {
            workloads: without_direction,
        });
    }
    if command.write.monitors {
        comparison.monitors = load_monitors(&store, &sides)?;
    }
    write_comparison(&comparison, &command.write, answer, mail)?;
    pin_runs(session, &comparison);
    Ok(comparison.conclusion().into())
}

/// Returns the noise of other kernels' runs on these machines, by workload.
fn scatters(
    session: &Session,
    groups: &[Group],
) -> anyhow::Result<BTreeMap<String, compare::Scatter>> {
    let snapshot = session.read_history()?;
    let machines: Vec<&MachineId> = groups
        .iter()
        .flat_map(|group| &group.machines)
        .map(|machine| &machine.id)
        .collect();
    let builds: Vec<&BuildId> = groups.iter().map(|group| &group.build).collect();
    Ok(snapshot.history.scatters(&machines, &builds))
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
    let mut artifacts: Vec<BTreeMap<String, (UnixTime, &RunId)>> = Vec::new();
    for side in sides {
        let mut of_side = BTreeMap::new();
        for run in &side.runs {
            for name in store.artifact_names(&run.id)? {
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
        artifacts.push(of_side);
    }
    let mut all = Vec::new();
    for name in artifacts[0]
        .keys()
        .filter(|name| artifacts.iter().all(|of_side| of_side.contains_key(*name)))
    {
        let seen = artifacts
            .iter()
            .map(|of_side| read_observation(store, of_side[name].1, name))
            .collect::<Result<Vec<_>, _>>()?;
        let subject = format!(
            "{}: kernel counters",
            lab::monitored_subject(name).unwrap_or(name)
        );
        all.push(compare_observations(subject, &heads, &seen, None));
    }
    let stats = sides
        .iter()
        .map(|side| load_stats(store, side))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(block) = stats_block(&stats) {
        all.push(Monitored {
            subject: "Monitors of the suite".to_owned(),
            heads,
            tables: Vec::new(),
            blocks: vec![block],
            plots: Vec::new(),
        });
    }
    Ok(all)
}

/// Returns the stats that another suite computed of its monitors, of each run that has some; of
/// repeated runs the newest counts.
fn load_stats(store: &Store, side: &Side<'_>) -> anyhow::Result<Vec<RunStats>> {
    let mut newest: BTreeMap<u64, &Run> = BTreeMap::new();
    for &run in &side.runs {
        let known = newest.entry(run.seed).or_insert(run);
        if run.started_unix > known.started_unix {
            *known = run;
        }
    }
    let mut all = Vec::new();
    for run in newest.values() {
        let names = store.artifact_names(&run.id)?;
        if !names.iter().any(|name| name == MONITOR_STATS) {
            continue;
        }
        let bytes = store.artifact(&run.id, MONITOR_STATS)?;
        let stats = serde_json::from_slice(&bytes).map_err(|error| {
            WrongInput(format!(
                "cannot read {MONITOR_STATS} of {}: {error}",
                run.id
            ))
        })?;
        all.push(stats);
    }
    Ok(all)
}

fn read_observation(store: &Store, run: &RunId, name: &str) -> anyhow::Result<Observation> {
    let bytes = store.artifact(run, name)?;
    lab::stored_observation(&bytes).ok_or_else(|| {
        WrongInput(format!(
            "cannot read {name} of {run}: not monitor copies of this version"
        ))
        .into()
    })
}

/// Returns workloads of one of Marvin's suites and, unless some are selected, those of external
/// tools that may have run with it.
fn own(
    suite: &str,
    session: &Session,
    command: &ReportArguments,
) -> anyhow::Result<Vec<Arc<Workload>>> {
    let tools = session.tools(&command.manifest)?;
    let of_tools = suite == tools.suite().name;
    let mut workloads = select_workloads(
        if of_tools {
            tools.suite()
        } else {
            find_suite(suite)?
        },
        &command.workload,
    )?;
    if command.workload.is_empty() && !of_tools {
        workloads.extend(tools.suite().workloads.iter().cloned());
    }
    Ok(workloads)
}

/// The rows of a report.
struct Chosen {
    workloads: Vec<Arc<Workload>>,
    /// Workloads that have no row because their direction is unknown.
    without_direction: Vec<String>,
}

/// Returns whether a word means a workload of another suite: by its name, or its beginning up to a
/// slash.
fn is_meant(name: &str, word: &str) -> bool {
    name.strip_prefix(word)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn any_means(terms: &[String], name: &str) -> bool {
    terms.iter().any(|word| is_meant(name, word))
}

/// Selects workloads of another suite: a word is a name or its beginning up to a slash.
fn choose_imported(
    rows: BTreeMap<&str, Declared>,
    command: &ReportArguments,
) -> anyhow::Result<Chosen> {
    let mut terms = [&command.workload, &command.lower, &command.higher]
        .into_iter()
        .flatten();
    if terms.clone().any(String::is_empty) {
        return Err(WrongInput(EMPTY_NAME.to_owned()).into());
    }
    if let Some(word) = terms.find(|word| !rows.keys().any(|name| is_meant(name, word))) {
        let text = format!(
            "no workload `{word}` in these runs; `marvin show RUN` lists a run's workloads"
        );
        return Err(WrongInput(text).into());
    }
    let mut chosen = Chosen {
        workloads: Vec::new(),
        without_direction: Vec::new(),
    };
    for (name, declared) in rows {
        if !command.workload.is_empty() && !any_means(&command.workload, name) {
            continue;
        }
        let direction = if any_means(&command.lower, name) {
            Some(Direction::LowerIsBetter)
        } else if any_means(&command.higher, name) {
            Some(Direction::HigherIsBetter)
        } else {
            declared.direction
        };
        match imported_workload(
            name,
            &Declared {
                direction,
                ..declared
            },
        ) {
            Some(workload) => chosen.workloads.push(workload),
            None => chosen.without_direction.push(name.to_owned()),
        }
    }
    if chosen.workloads.is_empty() {
        let few: Vec<&str> = chosen
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
    Ok(chosen)
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
        let build = only.build.clone();
        let machines = only.machines.clone();
        groups.push(Group {
            build,
            machines,
            runs: rest,
        });
    }
    Ok(groups)
}

fn reproducer(command: &ReportArguments, named: &[String]) -> String {
    let mut arguments = vec!["marvin".to_owned(), "report".to_owned()];
    arguments.extend(named.iter().cloned());
    if let Some(suite) = &command.suite {
        arguments.extend(["--suite".into(), suite.clone()]);
    }
    if !command.workload.is_empty() {
        arguments.extend(["--workload".into(), command.workload.join(",")]);
    }
    if let Some(margin) = command.write.margin {
        arguments.extend(["--margin".into(), margin.to_string()]);
    }
    if command.write.monitors {
        arguments.push("--monitors".into());
    }
    if command.mixed_machines {
        arguments.push("--mixed-machines".into());
    }
    for (option, names) in [("--lower", &command.lower), ("--higher", &command.higher)] {
        if !names.is_empty() {
            arguments.extend([option.into(), names.join(",")]);
        }
    }
    arguments.join(" ")
}

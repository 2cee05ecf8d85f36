//! `marvin report`: a comparison of runs that are kept.

use model::{Build, BuildId, Machine, Run};
use report::{Machines, Question, Side};
use store::Store;

use super::compare::{now, write};
use super::measure::{suite, workloads};
use super::tools::known_tools;
use crate::answer::Answer;
use crate::cli::{Arguments, Report};
use crate::exit::{Exit, WrongInput};
use crate::home::home;

pub(crate) fn report(arguments: &Arguments, command: &Report) -> anyhow::Result<Exit> {
    let answer = Answer::open(command.write.output.as_deref())?;
    let store = Store::open_read_only(&home(arguments.home.as_deref())?)?;
    let ids = command.runs.iter().map(|run| store.find_run(run)).collect::<Result<Vec<_>, _>>()?;
    let runs = ids.iter().map(|id| store.run(id)).collect::<Result<Vec<_>, _>>()?;
    let groups = grouped(runs, &store)?;
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
    let tools = known_tools(arguments, &command.manifest)?;
    let suite = match groups[0].runs[0].suite.as_str() {
        name if name == tools.suite().name => tools.suite(),
        name => suite(name)?,
    };
    let measured =
        |name: &str| groups.iter().flat_map(|g| &g.runs).flat_map(|r| &r.results).any(|r| r.workload == name);
    let mut chosen = workloads(suite, &command.workload)?;
    if command.workload.is_empty() && suite.name != tools.suite().name {
        chosen.extend(tools.suite().workloads);
    }
    let question = Question {
        suite: suite.name.to_owned(),
        workloads: chosen.into_iter().filter(|workload| measured(workload.name)).collect(),
        seeds: Vec::new(),
        margin_percent: command.write.margin,
        machines: if command.mixed_machines { Machines::Mixed } else { Machines::Equal },
        command: reproducer(command, &ids.iter().map(model::RunId::short).collect::<Vec<_>>()),
        created_unix: Some(now()),
    };
    let comparison = report::compare(&sides[0], &sides[1..], &question)?;
    write(&comparison, &command.write, (answer, arguments))?;
    Ok(comparison.conclusion().into())
}

/// The runs of one kernel on one machine, whatever its equipment.
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

/// Puts runs of the same build and machine together, in the order in which they are named. When all are of one, the
/// first stands against the rest: a kernel against itself.
fn grouped(runs: Vec<Run>, store: &Store) -> anyhow::Result<Vec<Group>> {
    let (mut groups, mut known): (Vec<Group>, Vec<Machine>) = (Vec::new(), Vec::new());
    for run in runs {
        let machine = store.machine(&run.machine)?;
        if !known.iter().any(|known: &Machine| known.id == machine.id) {
            known.push(machine.clone());
        }
        if let Some(run) = groups.iter_mut().try_fold(run, |run, group| group.take(run, &machine)) {
            groups.push(Group { build: run.build.clone(), machines: vec![machine], runs: vec![run] });
        }
    }
    for group in &mut groups {
        // Kin in one order on every side, also where a side has no runs on some of them.
        let first = group.machines[0].clone();
        group.machines = known.iter().filter(|machine| machine.is_kin(&first)).cloned().collect();
    }
    if let [only] = groups.as_mut_slice() {
        if only.runs.len() < 2 {
            return Err(WrongInput("a report needs at least two runs: `marvin runs` lists them".into()).into());
        }
        let rest = only.runs.split_off(1);
        let (build, machines) = (only.build.clone(), only.machines.clone());
        groups.push(Group { build, machines, runs: rest });
    }
    Ok(groups)
}

fn reproducer(command: &Report, ids: &[String]) -> String {
    let mut words = vec!["marvin".to_owned(), "report".to_owned()];
    words.extend(ids.iter().cloned());
    if !command.workload.is_empty() {
        words.extend(["--workload".into(), command.workload.join(",")]);
    }
    if let Some(margin) = command.write.margin {
        words.extend(["--margin".into(), margin.to_string()]);
    }
    if command.mixed_machines {
        words.push("--mixed-machines".into());
    }
    words.join(" ")
}

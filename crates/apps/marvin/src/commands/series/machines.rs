//! `--on`: a series on the exact machine, and on others beside it.
//!
//! Each machine has its workloads and its columns; a row is of all of them.

use std::collections::BTreeMap;

use clap::Args;
use compare::{Question, Side};
use history::commit_table::{CommitCell, CommitRow, State};
use lab::Wanted;
use model::Build;

use super::{SEEDS, SeriesArguments, cell};
use crate::commands::compare::side;
use crate::completion;
use crate::exit::WrongInput;
use crate::measure::{open_lab_on, plan_runs, prepare_tools, replicates};
use crate::options::{EXACT, NoisyOptions, VM};
use crate::select::{ChosenWorkloads, choose_workloads_of, find_machines};
use crate::session::{Progress, Session};

/// Options for the machines of a series.
#[derive(Debug, Args)]
pub(crate) struct SeriesMachines {
    /// Machines to measure on: exact (counts instructions), and beside it exact-smp (counts the
    /// lines of memory that processors share: suite contention, unless workloads are named), vm or
    /// a [[machine]] of marvin.toml (time, of workloads that are named)
    #[arg(
        long,
        value_name = "MACHINES",
        value_delimiter = ',',
        default_value = "exact",
        add = completion::machine()
    )]
    on: Vec<String>,

    #[command(flatten)]
    noisy: NoisyOptions,
}

impl SeriesMachines {
    /// Returns the machines beside exact. Refuses the one that runs this host's kernel, and a series
    /// without exact.
    pub(super) fn beside_exact(&self, session: &Session) -> anyhow::Result<Vec<(String, Wanted)>> {
        let names: Vec<&str> = self.on.iter().map(String::as_str).collect();
        let mut beside: Vec<(String, Wanted)> = Vec::new();
        let mut has_exact = false;
        for (name, wanted) in find_machines(session, &names, &self.noisy)? {
            match wanted {
                Wanted::Exact => has_exact = true,
                Wanted::Local => {
                    let text = "cannot measure a series on local: it measures the kernel that this host runs";
                    return Err(WrongInput(text.to_owned()).into());
                }
                Wanted::ExactSmp(_) | Wanted::Vm(_) | Wanted::Server(_) => {
                    if beside.iter().all(|(known, _)| *known != name) {
                        beside.push((name, wanted));
                    }
                }
            }
        }
        if !has_exact {
            let named = names.join(",");
            let text = format!(
                "cannot measure a series without exact: only its profile shows whether workloads enter what a patch changes\n\
                 hint: --on exact,{named}"
            );
            return Err(WrongInput(text).into());
        }
        if beside.is_empty() {
            let NoisyOptions {
                boots,
                cpus,
                memory,
            } = &self.noisy;
            let given = [
                ("--boots", boots.is_some()),
                ("--cpus", cpus.is_some()),
                ("--memory", memory.is_some()),
            ];
            if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
                let text = format!("{option} is for machines beside exact: --on exact,{VM}");
                return Err(WrongInput(text).into());
            }
        }
        Ok(beside)
    }

    /// Returns the words that choose the same machines again.
    pub(super) fn arguments(&self) -> Vec<String> {
        let NoisyOptions {
            boots,
            cpus,
            memory,
        } = &self.noisy;
        let mut words = Vec::new();
        if self.on.iter().any(|name| name != EXACT) {
            words.extend(["--on".to_owned(), self.on.join(",")]);
        }
        if let Some(boots) = boots {
            words.extend(["--boots".to_owned(), boots.to_string()]);
        }
        if let Some(cpus) = cpus {
            words.extend(["--cpus".to_owned(), cpus.to_string()]);
        }
        if let Some(memory) = memory {
            words.extend(["--memory".to_owned(), memory.to_string()]);
        }
        words
    }
}

/// Another machine of a series, with its workloads.
pub(super) struct Beside {
    name: String,
    wanted: Wanted,
    chosen: ChosenWorkloads,
}

impl Beside {
    /// Chooses the workloads of all.
    pub(super) fn choose_all(
        session: &Session,
        command: &SeriesArguments,
        machines: Vec<(String, Wanted)>,
        exact: &ChosenWorkloads,
    ) -> anyhow::Result<Vec<Self>> {
        let chosen = machines
            .into_iter()
            .map(|machine| Self::choose(session, command, machine, exact));
        chosen.collect()
    }

    /// Says behind a title how those that measure time do it.
    pub(super) fn describe_all(beside: &[Self], command: &SeriesArguments) -> String {
        let described = beside.iter().filter_map(|beside| beside.describe(command));
        described.map(|text| format!("; {text}")).collect()
    }

    /// Chooses its workloads: those that are named, which `exact` has; without, exact-smp has its
    /// own suite, and time is not measured of everything.
    fn choose(
        session: &Session,
        command: &SeriesArguments,
        machine: (String, Wanted),
        exact: &ChosenWorkloads,
    ) -> anyhow::Result<Self> {
        let (name, wanted) = machine;
        let measure = &command.measure;
        let are_named =
            measure.suite.is_some() || !measure.workload.is_empty() || measure.program.is_given();
        let chosen = if are_named {
            ChosenWorkloads {
                suite: std::sync::Arc::clone(&exact.suite),
                workloads: exact.workloads.clone(),
                tools: exact.tools.clone(),
            }
        } else if matches!(wanted, Wanted::ExactSmp(_)) {
            choose_workloads_of(session, measure, model::CONTENTION.name, &[])?
        } else {
            let text = format!(
                "{name} measures time, which takes several boots of each kernel: name the workloads, such as --workload fault,fork"
            );
            return Err(WrongInput(text).into());
        };
        Ok(Self {
            name,
            wanted,
            chosen,
        })
    }

    /// Returns the names of its columns.
    pub(super) fn names(&self) -> Vec<String> {
        let workloads = self.chosen.workloads.iter();
        workloads
            .map(|workload| format!("{} on {}", workload.name, self.name))
            .collect()
    }

    /// Says how time is measured; `None` if the machine counts.
    fn describe(&self, command: &SeriesArguments) -> Option<String> {
        let boots =
            document::number::count(usize::try_from(command.on.noisy.boots()).ok()?, "boot");
        let is_timed = !matches!(self.wanted, Wanted::Exact | Wanted::ExactSmp(_));
        is_timed.then(|| format!("{}: time, {boots}", self.name))
    }

    /// Measures the images, and adds its cells to the rows that have another image than the one
    /// before. `builds` are those of the rows that are built. No other lab may be open in the data
    /// directory.
    pub(super) fn fill(
        &self,
        session: &Session,
        command: &SeriesArguments,
        builds: &[Build],
        rows: &mut [CommitRow],
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let twins = session.store_location()?;
        let mut images: Vec<Build> = Vec::new();
        let mut places = BTreeMap::new();
        for build in builds {
            if !places.contains_key(&build.id) {
                places.insert(build.id.clone(), images.len());
                images.push(build.clone());
            }
        }
        if images.len() < 2 {
            return Ok(());
        }
        let ChosenWorkloads {
            suite, workloads, ..
        } = &self.chosen;
        let tools = self.chosen.tools.clone();
        let lab = open_lab_on(self.wanted.clone(), session, &command.measure, tools)?;
        prepare_tools(&lab, workloads, progress)?;
        let seeds = command.seeds.count(SEEDS);
        let seeds = replicates(lab.machine(), seeds, command.on.noisy.boots());
        let plan = plan_runs(&command.measure, &images, suite, workloads, &seeds);
        let runs = lab.execute(&plan, &|event| progress.event(&event))?;
        let machines = lab.machines(workloads)?;
        let question = Question {
            margin_percent: command.margin,
            ..Question::about(suite.name, workloads.clone(), seeds)
        };
        let sides: Vec<Side<'_>> = images
            .iter()
            .zip(&runs)
            .map(|(build, runs)| side(build, runs, &machines))
            .collect();
        let mut built = rows.iter_mut().filter(|row| row.is_built());
        built.next();
        for (row, pair) in built.zip(builds.windows(2)) {
            if let State::Compared(cells) = &mut row.state {
                let [before, after] = [0, 1].map(|side| &sides[places[&pair[side].id]]);
                let mut comparison =
                    compare::compare(before, std::slice::from_ref(after), &question)?;
                lab::doubt_by_twins(twins.clone(), &mut comparison)?;
                let more: Vec<CommitCell> = comparison.rows.iter().map(cell).collect();
                cells.extend(more);
            }
        }
        Ok(lab.close()?)
    }
}

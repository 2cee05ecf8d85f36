//! `--on`: a series on the exact machine, and on the one with several processors beside it.
//!
//! Each machine has its workloads and its columns; a row is of all of them. Machines that measure
//! time need boots and intervals, which a row of a series has no room for.

use std::collections::BTreeMap;

use clap::Args;
use compare::{Question, Side};
use history::commit_table::{CommitCell, CommitRow, State};
use lab::Wanted;
use model::Build;

use super::{SEEDS, SeriesArguments, cell};
use crate::completion;
use crate::exit::WrongInput;
use crate::measure::{open_lab_on, plan_runs, prepare_tools};
use crate::options::{EXACT_SMP, NoisyOptions, whole};
use crate::select::{ChosenWorkloads, choose_workloads_of, find_machines};
use crate::session::{Progress, Session};

/// Options for the machines of a series.
#[derive(Debug, Args)]
pub(crate) struct SeriesMachines {
    /// Machines to measure on: exact (counts instructions), or exact,exact-smp (also counts the
    /// lines of memory that processors share: suite contention, unless workloads are named)
    #[arg(
        long,
        value_name = "MACHINES",
        value_delimiter = ',',
        default_value = "exact",
        add = completion::machine()
    )]
    on: Vec<String>,

    /// Processors of exact-smp [default: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2, 4))]
    cpus: Option<u32>,
}

impl SeriesMachines {
    /// Returns exact-smp if it is asked for. Refuses machines that measure time, and exact-smp
    /// alone.
    pub(super) fn beside_exact(&self, session: &Session) -> anyhow::Result<Option<Wanted>> {
        let noisy = NoisyOptions {
            boots: None,
            cpus: self.cpus,
            memory: None,
        };
        let names: Vec<&str> = self.on.iter().map(String::as_str).collect();
        let mut beside = None;
        let mut has_exact = false;
        for (name, wanted) in find_machines(session, &names, &noisy)? {
            match wanted {
                Wanted::Exact => has_exact = true,
                Wanted::ExactSmp(_) => beside = Some(wanted),
                Wanted::Local => {
                    let text = "cannot measure a series on local: it measures the kernel that this host runs";
                    return Err(WrongInput(text.to_owned()).into());
                }
                Wanted::Vm(_) | Wanted::Server(_) => {
                    let text = format!(
                        "cannot measure a series on {name}: it measures time, and a series compares counts, on exact and exact-smp\n\
                         hint: marvin compare HEAD~1 HEAD --on {name} compares two commits there"
                    );
                    return Err(WrongInput(text).into());
                }
            }
        }
        if !has_exact {
            let text = "cannot measure a series on exact-smp alone: only the profile of exact shows whether workloads enter what a patch changes\n\
                        hint: --on exact,exact-smp";
            return Err(WrongInput(text.to_owned()).into());
        }
        if self.cpus.is_some() && beside.is_none() {
            let text = "--cpus is for exact-smp: --on exact,exact-smp";
            return Err(WrongInput(text.to_owned()).into());
        }
        Ok(beside)
    }

    /// Returns the words that choose the same machines again.
    pub(super) fn arguments(&self) -> Vec<String> {
        if !self.on.iter().any(|name| name == EXACT_SMP) {
            return Vec::new();
        }
        let mut words = vec!["--on".to_owned(), format!("exact,{EXACT_SMP}")];
        if let Some(cpus) = self.cpus {
            words.extend(["--cpus".to_owned(), cpus.to_string()]);
        }
        words
    }
}

/// Another machine of a series, with its workloads.
pub(super) struct Beside {
    wanted: Wanted,
    chosen: ChosenWorkloads,
}

impl Beside {
    /// Chooses its workloads: those that are named, which `exact` has, or its own suite.
    pub(super) fn choose(
        session: &Session,
        command: &SeriesArguments,
        wanted: Wanted,
        exact: &ChosenWorkloads,
    ) -> anyhow::Result<Self> {
        let measure = &command.measure;
        let are_named =
            measure.suite.is_some() || !measure.workload.is_empty() || measure.program.is_given();
        let chosen = if are_named {
            ChosenWorkloads {
                suite: std::sync::Arc::clone(&exact.suite),
                workloads: exact.workloads.clone(),
                tools: exact.tools.clone(),
            }
        } else {
            choose_workloads_of(session, measure, model::CONTENTION.name, &[])?
        };
        Ok(Self { wanted, chosen })
    }

    /// Returns the names of its columns.
    pub(super) fn names(&self) -> Vec<String> {
        let workloads = self.chosen.workloads.iter();
        workloads
            .map(|workload| format!("{} on {EXACT_SMP}", workload.name))
            .collect()
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
        let seeds: Vec<u64> = (1..=command.seeds.count(SEEDS)).collect();
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
            .map(|(build, runs)| Side {
                build,
                machine: &machines[0],
                also: machines[1..].iter().collect(),
                runs: runs.iter().collect(),
            })
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

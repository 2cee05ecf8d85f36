//! `marvin experiment`: parameter sweeps, which measure a grid instead of one workload.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use compare::rmap::Rmap;
use lab::{Lab, LabOptions};
use machine::Limits;
use model::{Build, KernelName, RmapCase, RmapCell, RmapOutcome};
use subprocess::Shared;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::find_builds;
use crate::options::{KERNELS, whole};
use crate::select::kernel_name;
use crate::session::{Format, Progress, Session};

/// `marvin experiment`.
#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Measure time and memory of reverse mappings: n processes with m mappings each of the same
    /// memory
    Rmap(RmapArguments),
}

const RMAP_EXAMPLES: &str = "Cases:
  file       n processes map m pages of a file (ramfs), one mapping per page
  shared     the same with shared anonymous memory
  sparse     m mappings of 2 MiB of shared anonymous memory, one page of each in use
  remapped   one mapping whose pages remap_file_pages(2) moves one by one
  inherited  private memory of a parent process, inherited by its children
  chain      the same, each process forked from the previous one

Examples:
  marvin experiment rmap deb:6.1 deb:6.12
  marvin experiment rmap deb:6.12 --case sparse --processes 1,10,100 --mappings 1000
  marvin experiment rmap deb:6.1 deb:6.12 --format html -o rmap.html";

/// `marvin experiment rmap`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{RMAP_EXAMPLES}"))]
pub(crate) struct RmapArguments {
    /// Kernels, baseline first
    #[arg(required = true, value_name = "KERNEL", add = completion::kernel())]
    pub(crate) kernels: Vec<String>,

    /// Run only these cases, separated by commas
    #[arg(long, value_name = "CASES", value_delimiter = ',')]
    pub(crate) case: Vec<RmapCase>,

    /// Numbers of processes and mappings, in all combinations; at most six, each 1 to 10000; 1000
    /// takes long
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [1, 10, 100],
          value_parser = whole::<u32>(1, 10_000))]
    pub(crate) grid: Vec<u32>,

    /// Numbers of processes [default: --grid]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = whole::<u32>(1, 10_000))]
    pub(crate) processes: Vec<u32>,

    /// Numbers of mappings per process [default: --grid]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = whole::<u32>(1, 10_000))]
    pub(crate) mappings: Vec<u32>,

    /// Guest memory in MiB; combinations that do not fit are marked
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = whole::<u32>(256, 65_536))]
    pub(crate) memory: u32,

    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seed: u64,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Limit on numbers of an axis: what fits into a line of text.
const AXIS_MAX: usize = 6;

/// Instruction limit of one cell: a million mappings take minutes.
const CELL_INSTRUCTIONS: u64 = 600_000_000_000;

pub(crate) fn experiment(session: &Session, command: &ExperimentCommand) -> anyhow::Result<Exit> {
    let ExperimentCommand::Rmap(command) = command;
    let names = command
        .kernels
        .iter()
        .map(|name| kernel_name(name))
        .collect::<Result<Vec<KernelName>, _>>()?;
    let processes = axis(command, "--processes")?;
    let mappings = axis(command, "--mappings")?;
    let cases = cases(command);
    let answer = session.answer(command.output.as_deref())?;
    let lab = open(session)?;
    let progress = session.progress();
    let builds = find_builds(&lab, &names, &progress)?;
    let machine = lab.rmap_machine(command.memory)?;
    let kernels: Vec<_> = builds.iter().map(|build| (build, &machine)).collect();
    let mut rmap = Rmap {
        kernels: monitors::heads(&kernels)
            .iter()
            .map(|head| head.join(" ").trim().to_owned())
            .collect(),
        machine: machine.summary.clone(),
        seed: command.seed,
        command: lab
            .machine()
            .exact_cpu()
            .repeat(reproducer(command, &builds)),
        cases,
        processes,
        mappings,
        outcomes: BTreeMap::new(),
    };
    rmap.outcomes = Grid {
        lab: &lab,
        builds: &builds,
        command,
        progress: &progress,
    }
    .execute(&rmap)?;
    progress.end();
    let document = compare::rmap::document(&rmap);
    let text = match command.format {
        Format::Text => document.text(&answer.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => compare::rmap::json(&rmap)?,
    };
    answer.write(&text)?;
    Ok(if rmap.has_anything() {
        Exit::Fine
    } else {
        Exit::Subject
    })
}

/// Returns the numbers of an axis, ascending and distinct.
fn axis(command: &RmapArguments, option: &str) -> anyhow::Result<Vec<u32>> {
    let own = if option == "--processes" {
        &command.processes
    } else {
        &command.mappings
    };
    let (option, numbers) = if own.is_empty() {
        ("--grid", &command.grid)
    } else {
        (option, own)
    };
    let mut numbers = numbers.clone();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > AXIS_MAX {
        let text = format!(
            "{option} has {} numbers; a table has room for {AXIS_MAX}",
            numbers.len()
        );
        return Err(WrongInput(text).into());
    }
    Ok(numbers)
}

/// Returns the distinct cases in the order of reports; all of them if the user named none.
fn cases(command: &RmapArguments) -> Vec<RmapCase> {
    RmapCase::ALL
        .into_iter()
        .filter(|case| command.case.is_empty() || command.case.contains(case))
        .collect()
}

/// Opens a lab whose guests have enough time for a large cell.
fn open(session: &Session) -> anyhow::Result<Lab> {
    let store = Some(session.store_location()?);
    let limits = Limits {
        job_instructions: CELL_INSTRUCTIONS,
        ..Limits::default()
    };
    session.open_lab(LabOptions {
        store,
        limits,
        ..LabOptions::default()
    })
}

/// The outcomes of cells, by the kernel's index.
type Outcomes = BTreeMap<(usize, RmapCell), RmapOutcome>;

/// A grid to measure.
struct Grid<'a> {
    lab: &'a Lab,
    builds: &'a [Build],
    command: &'a RmapArguments,
    progress: &'a Progress,
}

impl Grid<'_> {
    /// Measures all cells on all kernels, kernel by kernel within a cell, on several machines in
    /// parallel.
    fn execute(&self, rmap: &Rmap) -> anyhow::Result<Outcomes> {
        let cells = rmap.cases.iter().flat_map(|case| rmap.cells(*case));
        let items = cells.flat_map(|cell| (0..self.builds.len()).map(move |kernel| (kernel, cell)));
        let queue: Shared<VecDeque<(usize, RmapCell)>> = Shared::new(items.collect());
        self.progress.again("measuring", queue.lock().len());
        let done: Shared<Outcomes> = Shared::default();
        std::thread::scope(|scope| {
            let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let machines = self.command.jobs.map_or(processors.min(2), usize::from);
            let workers: Vec<_> = (0..machines.max(1))
                .map(|_| scope.spawn(|| self.measure_cells(&queue, &done)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|bug| std::panic::resume_unwind(bug))
            })
        })?;
        Ok(done.into_inner())
    }

    /// Measures cells until the queue is empty; after an error the others finish theirs.
    fn measure_cells(
        &self,
        queue: &Shared<VecDeque<(usize, RmapCell)>>,
        done: &Shared<Outcomes>,
    ) -> anyhow::Result<()> {
        loop {
            let next = queue.lock().pop_front();
            let Some((kernel, cell)) = next else {
                return Ok(());
            };
            match self.lab.rmap(
                &self.builds[kernel],
                self.command.seed,
                self.command.memory,
                cell,
            ) {
                Ok(outcome) => {
                    done.lock().insert((kernel, cell), outcome);
                }
                Err(error) => {
                    // The other threads finish their cells.
                    queue.lock().clear();
                    return Err(error.into());
                }
            }
            let RmapCell {
                case,
                processes,
                mappings,
            } = cell;
            let version = &self.builds[kernel].version;
            self.progress
                .one_more(&format!("{version} {case} {processes} x {mappings}"));
        }
    }
}

/// Returns the command that gives the same numbers, with full package names, as `deb:6.12` moves
/// on.
fn reproducer(command: &RmapArguments, builds: &[Build]) -> String {
    let mut arguments = vec!["marvin experiment rmap".to_owned()];
    arguments.extend(builds.iter().map(Build::exact_name));
    arguments.push(format!("--grid {}", join(&command.grid)));
    for (option, own) in [
        ("--processes", &command.processes),
        ("--mappings", &command.mappings),
    ] {
        if !own.is_empty() {
            arguments.push(format!("{option} {}", join(own)));
        }
    }
    if !command.case.is_empty() {
        let cases: Vec<&str> = cases(command).into_iter().map(RmapCase::name).collect();
        arguments.push(format!("--case {}", cases.join(",")));
    }
    arguments.push(format!(
        "--memory {} --seed {}",
        command.memory, command.seed
    ));
    arguments.join(" ")
}

fn join(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(",")
}

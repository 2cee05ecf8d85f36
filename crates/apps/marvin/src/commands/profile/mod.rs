//! `marvin profile`: attributes the difference between two kernels to functions.

mod files;
mod paths;
mod sampled;
mod transfers;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::{Lab, Wanted};
use model::{Build, CostModel, KernelName, Run};
use profile::calls::FoldedSide;
use profile::ledger::Sources;
use profile::render as ledger;
use profile::render::Profiled;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{
    CountOptions, CountedKernels, FollowedCalls, count_kernels, kernel_titles, machine_summary,
};
use crate::options::{KERNELS, MachineOptions, MeasureOptions, SeedOptions, seeds_for};
use crate::select::{choose_machines, kernel_name_in};
use crate::session::{Answer, Format, Session};

const PROFILE_EXAMPLES: &str = "Examples:
  marvin profile deb:6.1 deb:6.12 --workload fault-anon
  marvin profile deb:6.1 deb:6.12 --format html -o profile.html
  marvin profile deb:6.1 deb:6.12 --workload pipe --model
  marvin profile HEAD~1 HEAD --workload fault-anon --path
  marvin profile deb:6.1 deb:6.12 --workload fault --on vm --boots 8
  marvin profile before/ after/";

/// `marvin profile`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{PROFILE_EXAMPLES}"))]
pub(crate) struct ProfileArguments {
    /// Baseline kernel; or a profile of another program (folded stacks, what perf script prints,
    /// pprof), or a directory of its profiles, such as before/
    #[arg(add = completion::kernel())]
    pub(crate) base: String,

    /// Kernel, profile or directory of profiles to compare with the baseline
    #[arg(add = completion::kernel())]
    pub(crate) new: String,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) on: MachineOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Also simulate a processor's caches, TLBs and branch predictor: modelled, not measured.
    /// MODEL is a name with changed parameters: skylake-sp,l2=512K/8
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = CostModel::NAME,
          value_parser = CostModel::parse)]
    pub(crate) model: Option<CostModel>,

    /// Show at most N functions per workload and sum up the rest; JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) lines: usize,

    /// Do not follow calls: half the time, but no entry points, flame graph or inlined functions
    #[arg(long, conflicts_with_all = ["folded", "pprof", "firefox"])]
    pub(crate) no_calls: bool,

    /// Show where the executed instructions of both kernels part instead, in one iteration: the
    /// first place, and all places with their cost
    #[arg(long, conflicts_with_all = ["model", "no_calls", "folded", "pprof", "firefox"])]
    pub(crate) path: bool,

    /// Also write folded stacks for flamegraph.pl, `workload;function;… BASE NEW`, as
    /// difffolded.pl writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,

    /// Kernels of the folded stacks: both for flamegraph.pl, one for viewers such as speedscope and
    /// Firefox's profiler
    #[arg(long, value_name = "SIDE", value_enum, default_value_t = FoldedKernels::Both, requires = "folded")]
    pub(crate) folded_side: FoldedKernels,

    /// Also write a pprof profile with the values base, new and added
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,

    /// Also write a profile for Firefox's profiler, a thread for each kernel
    #[arg(long, value_name = "FILE")]
    pub(crate) firefox: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl ProfileArguments {
    /// Returns the names of both kernels.
    pub(crate) fn kernel_names(&self) -> anyhow::Result<[KernelName; 2]> {
        let tree = self.measure.sources.tree.as_deref();
        Ok([
            kernel_name_in(&self.base, tree)?,
            kernel_name_in(&self.new, tree)?,
        ])
    }

    /// Returns the number of seeds: a model needs several to be meaningful.
    pub(crate) fn seed_count(&self) -> u64 {
        self.seeds.count(seeds_for(self.model.as_ref()))
    }
}

/// The kernels of folded stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FoldedKernels {
    /// Two numbers a line
    Both,
    /// The baseline's
    Base,
    /// The new kernel's
    New,
}

impl From<FoldedKernels> for FoldedSide {
    fn from(kernels: FoldedKernels) -> Self {
        match kernels {
            FoldedKernels::Both => Self::Both,
            FoldedKernels::Base => Self::Base,
            FoldedKernels::New => Self::New,
        }
    }
}

pub(crate) fn profile(session: &Session, command: &ProfileArguments) -> anyhow::Result<Exit> {
    if files::are_files(command)? {
        return files::profile(session, command);
    }
    match choose_machines(session, &command.on)?.as_slice() {
        [(_, Wanted::Exact)] if command.path => paths::profile(session, command),
        [(_, Wanted::Exact)] => counted(session, command),
        _ if command.path => Err(WrongInput(
            "--path needs --on exact: other machines do not repeat an execution".to_owned(),
        )
        .into()),
        [(_, wanted @ Wanted::ExactSmp(_))] => transfers::profile(session, command, wanted),
        [(_, wanted)] => sampled::profile(session, command, wanted),
        _ => Err(WrongInput("a profile shows one machine: give --on one name".to_owned()).into()),
    }
}

fn counted(session: &Session, command: &ProfileArguments) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let names = command.kernel_names()?;
    let answer = session.answer(command.output.as_deref())?;
    let folded = Answer::optional_file("--folded", command.folded.as_deref())?;
    let pprof = Answer::optional_file("--pprof", command.pprof.as_deref())?;
    let firefox = Answer::optional_file("--firefox", command.firefox.as_deref())?;
    let progress = session.progress();
    let wanted = CountOptions {
        seeds: command.seed_count(),
        calls: !command.no_calls,
        model: command.model.as_ref(),
    };
    let counted = count_kernels(session, measure, &names, &wanted, &progress)?;
    progress.end();
    let sources = sources(&counted.lab, &counted.builds, &counted.runs)?;
    let machine = machine_summary(&counted.lab, &counted.workloads)?;
    let CountedKernels {
        lab,
        builds,
        seeds,
        ledgers,
        missing,
        followed,
        simulated,
        ..
    } = counted;
    let FollowedCalls {
        calls,
        expanded,
        without,
    } = followed;
    if let Some(file) = folded {
        file.write(profile::calls::folded(&calls, command.folded_side.into()))?;
    }
    if let Some(file) = pprof {
        file.write_bytes(&profile::calls::pprof(&calls))?;
    }
    let [base, new] = kernel_titles(&builds);
    if let Some(file) = firefox {
        file.write(profile::calls::firefox(&calls, [&base.0, &new.0]).to_string())?;
    }
    let profiled = Profiled {
        base,
        new,
        machine,
        seeds,
        ledgers,
        missing,
        expanded,
        sources,
        calls,
        without_calls: without,
        model: command.model.clone(),
        modelled: simulated.differences,
        without_model: simulated.without,
        command: lab
            .machine()
            .exact_cpu()
            .repeat(reproducer(command, &builds)),
        lines_max: command.lines,
    };
    let document = ledger::document(&profiled)?;
    let text = match command.format {
        Format::Text => document.text(&answer.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => ledger::json(&profiled)?,
    };
    answer.write(&text)?;
    Ok(if profiled.ledgers.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

/// Returns where the source defines the functions of all profiles.
fn sources(lab: &Lab, builds: &[Build], runs: &[Vec<Run>]) -> anyhow::Result<Sources> {
    let mut places = Vec::new();
    for (build, runs) in builds.iter().zip(runs) {
        let mut symbols = BTreeSet::new();
        for run in runs {
            for result in &run.results {
                let lines = lab
                    .profile(&run.id, &result.workload)?
                    .map(|profile| profile.lines)
                    .unwrap_or_default();
                symbols.extend(lines.into_iter().map(|line| line.symbol));
            }
        }
        places.push(lab.source_places(build, &symbols.iter().map(String::as_str).collect()));
    }
    let [base, new] = places.as_slice() else {
        return Ok(Sources::default());
    };
    Ok(Sources::new(base, new))
}

/// Returns the words that repeat a profile on any machine: kernels, suite and workloads.
pub(crate) fn kernel_words(command: &ProfileArguments, builds: &[Build]) -> Vec<String> {
    let mut arguments = vec!["marvin".to_owned(), "profile".to_owned()];
    arguments.extend(builds.iter().map(Build::exact_name));
    arguments.extend(command.measure.choice_arguments());
    arguments
}

fn reproducer(command: &ProfileArguments, builds: &[Build]) -> String {
    let mut arguments = kernel_words(command, builds);
    if let Some(seeds) = command.seeds.given() {
        arguments.extend(["--seeds".into(), seeds.to_string()]);
    }
    if let Some(model) = &command.model {
        arguments.push(format!("--model={}", model.name()));
    }
    if command.no_calls {
        arguments.push("--no-calls".into());
    }
    arguments.extend(command.measure.program.tail());
    arguments.join(" ")
}

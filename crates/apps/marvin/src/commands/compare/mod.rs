//! `marvin compare`: compares kernels with a baseline.

mod batch;
mod chain;
mod functions;
mod live_rows;
mod until_clear;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::explain::WorkloadExplained;
use clap::{Args, Parser};
use compare::{Comparison, Question, Side, Warning};
use lab::{Event, Lab, Measurement, Plan, Reuse, Wanted};
use model::{Availability, Build, KernelName, Machine, Run, Workload};
use monitors::{Monitored, heads};

use self::batch::BatchMeasurement;
pub(crate) use self::functions::RowFunctions;
use self::functions::row_functions;
use self::live_rows::LiveRows;
use self::until_clear::{Limits, unclear, until_clear};
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{
    check_threads, choose_for_machine, find_builds, find_differing_settings, line_difference,
    open_lab_on, plan_runs, prepare_tools, read_ledger, replicates, weigh_locks,
};
use crate::options::{
    BatchName, ComparisonOptions, ExitOptions, KERNELS, MachineOptions, MeasureOptions,
    SeedOptions, ThreadOptions, time, whole,
};
use crate::select::{
    ChosenWorkloads, choose_machines, choose_workloads, enclosing_tree, kernel_name, kernel_name_in,
};
use crate::session::{Format, Progress, Session, now};
use crate::views::comparison::{compare_observations, pin_runs, write_comparison};

const COMPARE_EXAMPLES: &str = "Examples:
  marvin compare deb:6.1 deb:6.12
  marvin compare deb:6.1 deb:6.12 --workload fault,fork --seeds 8 \\
      --format html -o report.html
  marvin compare --chain deb:6.1 deb:6.12 --workload fault --quick
  marvin compare path:vmlinux.before path:vmlinux.after --quick";

/// `marvin compare`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{COMPARE_EXAMPLES}"))]
pub(crate) struct CompareArguments {
    /// Baseline kernel; git:A..B means git:A and git:B, git:A^..B the commits A to B [default: in a
    /// tree, HEAD against the tree as it stands]
    #[arg(add = completion::kernel())]
    pub(crate) base: Option<String>,

    /// Kernels to compare with the baseline
    #[arg(value_name = "NEW", add = completion::kernel())]
    pub(crate) new: Vec<String>,

    /// Measure the releases between the baseline and the new kernel, and name those that a
    /// difference came with; further kernels between both name suites to look into
    #[arg(long, conflicts_with_all = ["vary", "via", "until_clear", "monitors", "mail", "threads"])]
    pub(crate) chain: bool,

    /// Compare the baseline with itself, booted or built otherwise: cmdline:PARAMETER,
    /// sysctl:NAME=VALUE, sysfs:FILE=VALUE, memory:SIZE, config:OPTION=VALUE, cc:COMPILER or make:VARIABLE=VALUE
    #[arg(long, value_name = "FACTOR")]
    pub(crate) vary: Vec<String>,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) on: MachineOptions,

    #[command(flatten)]
    pub(crate) tasks: ThreadOptions,

    #[command(flatten)]
    pub(crate) spread: BatchOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Keep booting until no row is unclear, at most --boots times; checking after each boot adds
    /// no false alarms
    #[arg(long)]
    pub(crate) until_clear: bool,

    /// With --until-clear, begin no boot after this time: 2h, 30m, 90s
    #[arg(long, value_name = "TIME", value_parser = time, requires = "until_clear")]
    pub(crate) budget: Option<Duration>,

    /// List below the table the functions that each difference comes from; `marvin profile` shows
    /// more
    #[arg(long)]
    pub(crate) profile: bool,

    /// With --monitors, also sample the counters every MS milliseconds of guest time, for plots;
    /// 0: never
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = whole::<u64>(0, 3_600_000),
          requires = "monitors")]
    pub(crate) interval: u64,

    #[command(flatten)]
    pub(crate) write: ComparisonOptions,

    #[command(flatten)]
    pub(crate) exit: ExitOptions,
}

/// The arguments of a comparison that another command asks for.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    compare: CompareArguments,
}

impl CompareArguments {
    /// Reads words as `marvin compare` takes them.
    pub(crate) fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Self> {
        Ok(Words::try_parse_from(words)?.compare)
    }
}

/// Options for one comparison on several hosts.
#[derive(Debug, Args)]
pub(crate) struct BatchOptions {
    /// Boot each kernel and seed in a job of this batch system of marvin.toml, instead of all on
    /// this host
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) via: Option<BatchName>,
}

/// Seeds of each kernel by default.
const SEEDS: u64 = 5;

pub(crate) fn compare(session: &Session, command: &CompareArguments) -> anyhow::Result<Exit> {
    if command.spread.via.is_some() {
        command.measure.program.refuse("--via")?;
    }
    if command.chain {
        return chain::chain(session, command);
    }
    let names = sides(command)?;
    let chosen = choose_workloads(session, &command.measure, &names)?;
    command.write.check_mail()?;
    if command.write.mail.is_wanted() && command.on.names().len() > 1 {
        let text =
            "a mail shows one machine: give --on one name, or --format markdown instead of --mail";
        return Err(WrongInput(text.to_owned()).into());
    }
    let machines = choose_machines(session, &command.on)?;
    if command.until_clear
        && machines
            .iter()
            .all(|(_, wanted)| matches!(wanted, Wanted::Exact | Wanted::ExactSmp(_)))
    {
        let text = "--until-clear needs a machine that measures time, such as --on vm: the exact one repeats itself";
        return Err(WrongInput(text.to_owned()).into());
    }
    check_threads(&command.tasks, &chosen, &machines)?;
    let site = command.spread.via.map(|_| session.config()).transpose()?;
    let spread = BatchMeasurement::open(session, command, site)?;
    let answer = session.answer(command.write.output.as_deref())?;
    let mail = command.write.mail.open()?;
    let mut columns = Vec::new();
    for (machine, wanted) in machines {
        let chosen = choose_for_machine(&command.tasks, &command.measure, &chosen, &wanted);
        let request = Request {
            command,
            spread: spread.as_ref(),
        };
        let nothing = |_: &OnMachine<'_>, _: &[Vec<Run>]| Ok(());
        let (comparison, ()) = compare_on(wanted, session, &request, &chosen, &names, nothing)?;
        columns.push((machine, comparison));
    }
    if let [(_, comparison)] = &columns[..] {
        write_comparison(comparison, &command.write, answer, mail)?;
        pin_runs(session, comparison);
        if let Some(hint) = chain::hint(command, &names, comparison) {
            session.progress().say(&hint);
        }
        return Ok(comparison.conclusion().into());
    }
    let both = compare::side_by_side(columns)?;
    let document = compare::side_by_side::document(&both, &command.write.view());
    let text = match command.write.format {
        Format::Text => document.text(&answer.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => compare::side_by_side::json(&both)?,
    };
    answer.write(&text)?;
    Ok(both.conclusion().into())
}

/// Measures and compares two kernels on the machine that the arguments name, without writing it.
/// Returns what the rows say of functions beside the comparison.
pub(crate) fn measure(
    session: &Session,
    command: &CompareArguments,
) -> anyhow::Result<(Comparison, Vec<RowFunctions>)> {
    let names = sides(command)?;
    let chosen = choose_workloads(session, &command.measure, &names)?;
    let machines = choose_machines(session, &command.on)?;
    let Some((_, wanted)) = machines.into_iter().next() else {
        return Err(WrongInput("no machine to measure on".to_owned()).into());
    };
    let chosen = choose_for_machine(&command.tasks, &command.measure, &chosen, &wanted);
    let request = Request {
        command,
        spread: None,
    };
    compare_on(wanted, session, &request, &chosen, &names, row_functions)
}

/// What is asked for.
struct Request<'a> {
    command: &'a CompareArguments,
    /// Measures on other hosts first.
    spread: Option<&'a BatchMeasurement<'a>>,
}

/// Measures and compares on one machine, and looks at the runs of each side while it is open.
fn compare_on<T>(
    wanted: Wanted,
    session: &Session,
    request: &Request<'_>,
    chosen: &ChosenWorkloads,
    names: &[KernelName],
    look: impl Fn(&OnMachine<'_>, &[Vec<Run>]) -> anyhow::Result<T>,
) -> anyhow::Result<(Comparison, T)> {
    let &Request { command, spread } = request;
    let lab = open_lab_on(wanted, session, &command.measure, chosen.tools.clone())?;
    let progress = session.progress();
    let builds = find_builds(&lab, names, &progress)?;
    prepare_tools(&lab, &chosen.workloads, &progress)?;
    let machines = lab.machines(&chosen.workloads)?;
    // Now, as what a name means may change while Marvin measures.
    let not_compiled = not_compiled(&lab, &builds)?;
    let on = OnMachine {
        lab,
        progress,
        builds,
        machines,
        command,
        spread,
        chosen,
    };
    // A machine that cannot return to its own kernel is an error, but not the loss of what was
    // measured.
    let compared = on.compare_all(look);
    let closed = on.lab.close();
    let (mut compared, seen) = compared?;
    closed?;
    lab::doubt_by_twins(session.store_location()?, &mut compared)?;
    for (other, files) in compared
        .others
        .iter()
        .zip(not_compiled)
        .filter(|(_, files)| !files.is_empty())
    {
        compared.warnings.push(Warning::NotCompiled {
            kernel: other.kernel.title.clone(),
            files,
        });
    }
    Ok((compared, seen))
}

/// Returns, for each build after the first, the code that it changes without being compiled: the
/// image is the first one's.
fn not_compiled(lab: &Lab, builds: &[Build]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for build in &builds[1..] {
        let files = if build.id == builds[0].id {
            lab.not_compiled(&builds[0].name, &build.name)?
        } else {
            Vec::new()
        };
        all.push(files.iter().map(ToString::to_string).collect());
    }
    Ok(all)
}

/// A lab on one machine, with what to compare there.
struct OnMachine<'a> {
    lab: Lab,
    progress: Progress,
    builds: Vec<Build>,
    /// One for each guest config.
    machines: Vec<Machine>,
    command: &'a CompareArguments,
    spread: Option<&'a BatchMeasurement<'a>>,
    chosen: &'a ChosenWorkloads,
}

impl OnMachine<'_> {
    /// Measures what is missing of these workloads, and returns the runs of each side.
    fn measure(&self, workloads: &[Arc<Workload>], seeds: &[u64]) -> anyhow::Result<Vec<Vec<Run>>> {
        let plan = plan_runs(
            &self.command.measure,
            &self.builds,
            &self.chosen.suite,
            workloads,
            seeds,
        );
        if let Some(spread) = self.spread {
            spread.measure(&self.lab, &plan, self.command, &self.progress)?;
        }
        let rows = LiveRows::new(&self.builds, workloads, seeds[0]);
        let runs = execute_plan(&self.lab, plan, &|event| {
            self.progress.event(&event);
            rows.completed_by(&event)
                .iter()
                .for_each(|row| self.progress.say(row));
        })?;
        self.progress.end();
        Ok(runs)
    }

    fn question(&self, seeds: Vec<u64>, looks_max: Option<usize>) -> Question {
        let cpu = self.lab.machine().exact_cpu();
        Question {
            looks_max,
            margin_percent: self.command.write.margin,
            command: cpu.repeat(reproducer(self.command, &self.builds)),
            created_unix: Some(now()),
            ..Question::about(self.chosen.suite.name, self.chosen.workloads.clone(), seeds)
        }
    }

    fn compare(&self, runs: &[Vec<Run>], question: &Question) -> anyhow::Result<Comparison> {
        let question = Question {
            workloads: self
                .chosen
                .tools
                .with_printed_rows(&question.workloads, runs),
            ..question.clone()
        };
        let sides = self
            .builds
            .iter()
            .zip(runs)
            .map(|(build, runs)| side(build, runs, &self.machines));
        let sides: Vec<Side<'_>> = sides.collect();
        Ok(compare::compare(&sides[0], &sides[1..], &question)?)
    }

    /// Measures and compares, row by row until they are clear if asked to: then there are no runs to
    /// look at.
    fn compare_all<T>(
        &self,
        look: impl Fn(&OnMachine<'_>, &[Vec<Run>]) -> anyhow::Result<T>,
    ) -> anyhow::Result<(Comparison, T)> {
        let command = self.command;
        if command.until_clear && !self.lab.machine().capabilities().deterministic {
            return Ok((self.compare_until_clear()?, look(self, &[])?));
        }
        let seeds = command.seeds.count(SEEDS);
        let seeds = replicates(self.lab.machine(), seeds, command.on.noisy.boots());
        let runs = self.measure(&self.chosen.workloads, &seeds)?;
        let question = self.question(seeds, None);
        let mut comparison = self.compare(&runs, &question)?;
        if self.lab.machine().capabilities().sharing {
            weigh_locks(&self.lab, &runs, &mut comparison)?;
        }
        if command.profile {
            comparison.origins = origins(self, &runs, &comparison)?;
        }
        if command.write.monitors {
            comparison.monitors = observe_sides(self, &runs, &question)?;
        }
        let seen = look(self, &runs)?;
        Ok((comparison, seen))
    }

    fn compare_until_clear(&self) -> anyhow::Result<Comparison> {
        let limits = Limits::begin(self.command.on.boots_at_most(), self.command.budget);
        let looks_max = usize::try_from(limits.boots).ok();
        let mut all: Vec<Vec<Run>> = vec![Vec::new(); self.builds.len()];
        let measure = |open: &[Arc<Workload>], boots: u64| {
            let seeds: Vec<u64> = (1..=boots).collect();
            for (known, runs) in all.iter_mut().zip(self.measure(open, &seeds)?) {
                // What was decided earlier is in the run as it was read first.
                for run in runs {
                    if known.iter().all(|one| one.id != run.id) {
                        known.push(run);
                    }
                }
            }
            self.compare(&all, &self.question(seeds, looks_max))
        };
        until_clear(&self.chosen.workloads, limits, measure, unclear, |line| {
            self.progress.say(line);
        })
    }
}

/// Returns a side of a comparison.
pub(crate) fn side<'a>(build: &'a Build, runs: &'a [Run], machines: &'a [Machine]) -> Side<'a> {
    Side {
        build,
        machine: &machines[0],
        also: machines[1..].iter().collect(),
        runs: runs.iter().collect(),
    }
}

/// Returns the names of the sides, baseline first. A range means two names.
fn sides(command: &CompareArguments) -> anyhow::Result<Vec<KernelName>> {
    let tree = command.measure.sources.tree.as_deref();
    let has_tree = tree.is_some() || enclosing_tree().is_some();
    let Some(base) = command.base.as_deref() else {
        return sides_of_tree(command);
    };
    let is_bare = !base.contains([':', '/']) && !Path::new(base).exists();
    let bare = (is_bare && has_tree).then_some(base);
    let range = base
        .strip_prefix("git:")
        .or(bare)
        .and_then(|text| text.split_once(".."));
    let mut names = match range {
        Some((older, newer)) => {
            let newer = if newer.is_empty() { "HEAD" } else { newer };
            vec![
                kernel_name(&format!("git:{older}"))?,
                kernel_name(&format!("git:{newer}"))?,
            ]
        }
        None => vec![kernel_name_in(base, tree)?],
    };
    for name in &command.new {
        names.push(kernel_name_in(name, tree)?);
    }
    for factor in &command.vary {
        names.push(varied(&names[0], factor)?);
    }
    if names.len() < 2 {
        return Err(WrongInput(format!(
            "no kernel to compare {base} with: name one after it"
        ))
        .into());
    }
    Ok(names)
}

/// Returns what is compared if no kernel is named: the last commit with the tree as it stands, or
/// with itself, built or booted otherwise.
fn sides_of_tree(command: &CompareArguments) -> anyhow::Result<Vec<KernelName>> {
    let named = command.measure.sources.tree.clone();
    let Some(tree) = named.filter(|tree| tree.is_dir()).or_else(enclosing_tree) else {
        let text = "no kernels to compare: name two; inside a kernel tree none means HEAD and the tree as it stands";
        return Err(WrongInput(text.to_owned()).into());
    };
    let mut names = vec![kernel_name("git:HEAD")?];
    if command.vary.is_empty() {
        names.push(kernel_name(&format!("tree:{}", tree.display()))?);
    }
    for factor in &command.vary {
        names.push(varied(&names[0], factor)?);
    }
    Ok(names)
}

/// Returns a kernel that is built or booted otherwise.
pub(crate) fn varied(base: &KernelName, factor: &str) -> anyhow::Result<KernelName> {
    let is_known = [
        "config:", "cc:", "make:", "cmdline:", "sysctl:", "sysfs:", "memory:",
    ]
    .iter()
    .any(|known| factor.starts_with(known));
    if !is_known {
        let text = format!(
            "cannot vary `{}`: expected cmdline:PARAMETER, sysctl:NAME=VALUE, sysfs:FILE=VALUE, memory:SIZE, config:OPTION=VALUE, cc:COMPILER \
             or make:VARIABLE=VALUE",
            factor.escape_debug()
        );
        return Err(WrongInput(text).into());
    }
    kernel_name(&format!("{base}@{factor}"))
}

/// Returns the kernels' counters during each workload with the first seed. The copies are stored
/// with the runs.
fn observe_sides(
    on: &OnMachine<'_>,
    runs: &[Vec<Run>],
    question: &Question,
) -> anyhow::Result<Vec<Monitored>> {
    let OnMachine {
        lab,
        builds,
        progress,
        ..
    } = on;
    let interval_ms = on.command.interval;
    let heads = heads(
        &builds
            .iter()
            .map(|build| (build, lab.machine()))
            .collect::<Vec<_>>(),
    );
    let seed = question.seeds.first().copied().unwrap_or(1);
    progress.again("watching", question.workloads.len() * builds.len());
    let mut all = Vec::new();
    for workload in &question.workloads {
        let mut seen = Vec::new();
        let mut without = None;
        for (build, of_side) in builds.iter().zip(runs) {
            // A side with the baseline's image has no run of its own, and the same counters.
            let of_side = if of_side.is_empty() {
                &runs[0]
            } else {
                of_side
            };
            let measured = of_side.iter().find(|run| {
                run.seed == seed && run.results.iter().any(|r| r.workload == workload.name)
            });
            let end = match measured {
                Some(run) => lab.observe_stored(
                    &run.id,
                    Measurement {
                        build,
                        workload,
                        replicate: seed,
                    },
                    interval_ms,
                )?,
                None => Availability::Unavailable("no run of it".to_owned()),
            };
            match end {
                Availability::Available(observation) => seen.push(observation),
                Availability::Unavailable(why) => {
                    without = without.or(Some(format!("{}: {why}", build.version)));
                }
            }
            progress.one_more(&format!("{} {}", build.version, workload.name));
        }
        let subject = format!("{}: kernel counters, seed {seed}", workload.name);
        all.push(compare_observations(subject, &heads, &seen, without));
    }
    progress.end();
    Ok(all)
}

/// Executes a plan, and returns the runs of each side. Sides with the baseline's image cannot
/// differ from it: without `--force` they get no runs.
fn execute_plan(
    lab: &Lab,
    mut plan: Plan<'_>,
    notify: &(dyn Fn(Event) + Sync),
) -> anyhow::Result<Vec<Vec<Run>>> {
    let sides = std::mem::take(&mut plan.sides);
    let places: Vec<usize> = (0..sides.len())
        .filter(|&n| plan.reuse == Reuse::Nothing || n == 0 || sides[n].id != sides[0].id)
        .collect();
    let mut runs = vec![Vec::new(); sides.len()];
    if places.len() > 1 {
        plan.sides = places.iter().map(|&n| sides[n]).collect();
        for (place, of_side) in places.into_iter().zip(lab.execute(&plan, notify)?) {
            runs[place] = of_side;
        }
    }
    Ok(runs)
}

/// Lists, for each workload that became better or worse, the functions that the difference is in,
/// and settings whose functions they are. Others that differ are listed where there is a ledger.
fn origins(
    on: &OnMachine<'_>,
    runs: &[Vec<Run>],
    comparison: &compare::Comparison,
) -> anyhow::Result<Vec<String>> {
    let mut sentences = Vec::new();
    for (place, side) in runs.iter().enumerate().skip(1) {
        let pair = [runs[0].clone(), side.clone()];
        let (settings, _) =
            find_differing_settings(&[on.builds[0].clone(), on.builds[place].clone()], &pair);
        let builds = [&on.builds[0], &on.builds[place]];
        let changed = comparison.changed(place - 1);
        let others = comparison.differing(place - 1);
        let all = changed.iter().map(|name| (name, true));
        for (workload, is_changed) in all.chain(others.iter().map(|name| (name, false))) {
            let explained = if on.lab.machine().capabilities().sharing {
                let lines = line_difference(&on.lab, &pair, workload)?;
                lines.map(|lines| (format!("{workload}: {}", lines.sentence()), Vec::new()))
            } else {
                read_ledger(&on.lab, builds, &pair, workload)?.map(|ledger| {
                    let mut explained = WorkloadExplained::new(&ledger, None, false);
                    explained.suspect(&settings);
                    (explained.sentence, explained.hypotheses)
                })
            };
            let (sentence, hypotheses) = match explained {
                Availability::Available(explained) => explained,
                Availability::Unavailable(_) if !is_changed => continue,
                Availability::Unavailable(why) => {
                    (format!("{workload}: no profile: {why}"), Vec::new())
                }
            };
            let title = if runs.len() > 2 {
                format!("{}, ", comparison.others[place - 1].kernel.title)
            } else {
                String::new()
            };
            sentences.push(format!("{title}{sentence}"));
            sentences.extend(
                hypotheses
                    .into_iter()
                    .map(|text| format!("{title}{workload}: {text}")),
            );
        }
    }
    Ok(sentences)
}

/// Returns the command that gives the same numbers, with full package names, as `deb:6.12` moves
/// on.
fn reproducer(command: &CompareArguments, builds: &[Build]) -> String {
    let mut arguments = vec!["marvin".to_owned(), "compare".to_owned()];
    arguments.extend(builds.iter().map(Build::exact_name));
    arguments.extend(command.measure.choice_arguments());
    arguments.extend(command.on.arguments(command.until_clear));
    arguments.extend(command.tasks.arguments());
    if command.until_clear {
        arguments.push("--until-clear".into());
    }
    let exact = command.on.has_exact();
    if exact || command.seeds.given() == Some(1) {
        arguments.extend(command.seeds.arguments(SEEDS));
    }
    if let Some(margin) = command.write.margin {
        arguments.extend(["--margin".into(), margin.to_string()]);
    }
    if command.write.monitors {
        arguments.push("--monitors".into());
        if command.interval > 0 {
            arguments.extend(["--interval".into(), command.interval.to_string()]);
        }
    }
    if command.measure.force {
        arguments.push("--force".into());
    }
    arguments.extend(command.measure.program.tail());
    arguments.join(" ")
}

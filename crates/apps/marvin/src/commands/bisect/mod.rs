//! `marvin bisect`: finds the commits that made a workload better or worse.

mod batch;
mod plan;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use history::{BisectionRecord, RecordedCulprit};
use kernel::{BuildCache, BuildEvent, CommitGraph, Sources};
use lab::bisection::{BisectionReport, add};
use lab::{
    Bisected, BisectionEvent, BisectionLog, BisectionQuestion, Confirm, Culprit, Dumps, Elsewhere,
    Event, Lab, LabProber, Noise, Plan, Refused, Reuse, Sampled, Tools, bisection,
};
use model::{Availability, Capabilities, ExtraFiles, KernelName, Steadiness, Workload};
use profile::render::brief;

use self::batch::Ahead;
use self::plan::plan_bisection;
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{
    line_difference, open_search_lab, parallel_machines, prepare_tools, read_ledger, reuse_unless,
};
use crate::options::{
    BatchName, EXACT, EXACT_SMP, MailOptions, NoisyOptions, ProgramOptions, SearchOptions,
    SeedOptions, SourceOptions, VM, margin, whole,
};
use crate::queue::BatchTarget;
use crate::select::{
    BenchmarkChoice, ChosenWorkloads, TREE, add_benchmarks, choose_named_workloads, choose_program,
    find_machines, find_suite, select_workload, settings_with_tools, smp_suite, with_modules,
};
use crate::session::{Answer, Progress, Session};
use crate::views::ONE_SEED;

const BISECT_EXAMPLES: &str = "Examples:
  marvin bisect v6.12.115 v6.12.117 --tree linux --workload fault-anon
  marvin bisect HEAD~20 HEAD --tree linux --workload pipe --mail regression.txt";

/// `marvin bisect`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_EXAMPLES)]
pub(crate) struct BisectArguments {
    /// Older commit, without the change
    #[arg(add = completion::revision())]
    pub(crate) good: String,

    /// Newer commit, with the change; may be better or worse
    #[arg(add = completion::revision())]
    pub(crate) bad: String,

    /// Workload that shows the change; tree:NAME is a benchmark of the kernel's source
    #[arg(long, value_name = "NAME", required_unless_present = "program", add = completion::workload())]
    pub(crate) workload: Option<String>,

    /// Suite of the workload
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Machine to measure on: exact; exact-smp for the suite contention; or vm, by time: each run
    /// is a boot
    #[arg(long, value_name = "MACHINE", default_value = EXACT, value_parser = [EXACT, EXACT_SMP, VM])]
    pub(crate) on: String,

    /// Processors of vm [default: those of this host, at most 4] and of exact-smp [default: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 64))]
    pub(crate) cpus: Option<u32>,

    #[command(flatten)]
    pub(crate) program: ProgramOptions,

    #[command(flatten)]
    pub(crate) sources: SourceOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Threshold in percent: ignore smaller steps [default: a quarter of the difference, at most
    /// the metric's threshold]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Measure N parts of the range first, to find steps that cancel each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u16>(1, 1024))]
    pub(crate) parts: u16,

    /// Run a noisy workload at most N times in total; Marvin stops earlier when the result is
    /// certain enough
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = whole::<u16>(20, 50_000))]
    pub(crate) runs: u16,

    /// Variance between builds of a noisy workload, as a share of the variance between runs
    /// [default: 0; 0.5 on vm]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) build_variance: Option<f64>,

    /// Do not revert culprits on top of BAD to confirm them
    #[arg(long)]
    pub(crate) no_revert: bool,

    /// Print the commits to search and the estimated cost, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) search: SearchOptions,

    /// Have jobs of this batch system of marvin.toml build and measure the commits that may come
    /// next
    #[arg(long, value_name = "SYSTEM", conflicts_with = "force")]
    pub(crate) via: Option<BatchName>,

    /// Measure up to N commits in the batch system at once [default: 6 if that makes the bisection
    /// shorter, else none]
    #[arg(long, value_name = "N", requires = "via", value_parser = whole::<u16>(1, 64))]
    pub(crate) nodes: Option<u16>,

    #[command(flatten)]
    pub(crate) mail: MailOptions,

    /// Write the report to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1000.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1000".into()),
    }
}

/// Seeds of each commit by default; a commit is a culprit only if all seeds show a difference.
const SEEDS: u64 = 2;

/// Variance between builds where time is measured: where code lies in memory moves time, and more
/// boots of a build do not show it. An assumption, so that layout alone is no culprit.
const BUILD_VARIANCE_OF_TIME: f64 = 0.5;

impl BisectArguments {
    /// Returns the number of seeds.
    pub(crate) fn seed_count(&self) -> u64 {
        self.seeds.count(SEEDS)
    }

    /// Tells whether its machine measures time.
    fn is_timed(&self) -> bool {
        self.on == VM
    }

    fn build_variance(&self) -> f64 {
        let usual = if self.is_timed() {
            BUILD_VARIANCE_OF_TIME
        } else {
            0.0
        };
        self.build_variance.unwrap_or(usual)
    }
}

/// How many seeds a draft asks for.
const SEEDS_OF_DRAFTS: u64 = 5;

/// Most functions listed for a culprit.
const FUNCTIONS_MAX: usize = 8;

pub(crate) fn bisect(session: &Session, command: &BisectArguments) -> anyhow::Result<Exit> {
    let chosen = choose(session, command)?;
    let workload = workload_on(session, command, &chosen.workloads[0])?;
    let home = session.home()?;
    let answers = Answers::open(session, command)?;
    let sources = open_sources(session, command, home, &chosen)?;
    let history = history(command, &sources)?;
    let site = command.via.map(|_| session.config()).transpose()?;
    let via = BatchTarget::open_direct(session, command.via, site)?;
    let plan = || {
        plan_bisection(
            command,
            &history,
            &sources,
            &workload,
            session.store_location()?,
        )
    };
    if command.dry_run {
        answers
            .answer
            .write(plan()?.text(via.as_ref().map(|via| batch::nodes(command, via))))?;
        return Ok(Exit::Fine);
    }
    let lab = open_search_lab(session, &command.on, command.cpus, &sources, chosen.tools)?;
    let progress = session.progress();
    prepare_tools(&lab, &chosen.workloads, &progress)?;
    batch::check(command, &workload, lab.machine().capabilities())?;
    let ahead = |via| Ahead::new(command, via, &sources, plan()?.measuring.seconds, &progress);
    let ahead = via.as_ref().map(ahead).transpose()?;
    let reuse = reuse_unless(command.search.force);
    let mut log = BisectionLog::open(
        home,
        &identity(command, &history, &workload, &lab, &sources),
        reuse,
    )?;
    bisection::describe_resumed(log.resumed_count())
        .iter()
        .for_each(|resumed| progress.say(resumed));
    let name = RefCell::new(String::new());
    let notify = |event: BisectionEvent<'_>| {
        if let BisectionEvent::Probing(commit) = &event {
            name.replace(bisection::short(commit));
        }
        progress.say(&bisection::format_event(&event));
    };
    let mut prober = LabProber {
        lab: &lab,
        sources: &sources,
        suite: &chosen.suite,
        workload: Arc::clone(&workload),
        machines: parallel_machines(command.search.jobs),
        reuse,
        elsewhere: ahead.as_ref().map(|ahead| ahead as &dyn Elsewhere),
        step: |step| progress.step(&name.borrow(), &step),
        event: |event| progress.event(&event),
    };
    let findings = match lab::bisect(
        &history,
        &question(command, &workload),
        &mut prober,
        &mut log,
        &notify,
    )? {
        Bisected::Refused(why) => {
            progress.end();
            return report_refusal(&why);
        }
        Bisected::Found(findings) => findings,
    };
    let mut headlines = Vec::new();
    let mut ledgers = Vec::new();
    for culprit in &findings.culprits {
        headlines.push(sources.headline(&culprit.commit)?);
    }
    for culprit in &findings.culprits {
        ledgers.push(ledger(&prober, culprit, command.seed_count())?.into_result());
    }
    progress.end();
    let configuration = configuration(command, &sources);
    let cpu = lab.machine().exact_cpu();
    let report = BisectionReport {
        findings: &findings,
        headlines: &headlines,
        ledgers: &ledgers,
        entries: log.entries(),
        workload: &workload,
        ends: (history.good(), history.bad()),
        machine: lab.machine(),
        configuration: configuration.clone(),
        command: cpu.repeat(reproducer(
            command,
            &history,
            &configuration,
            command.seed_count(),
        )),
        mail_command: cpu.repeat(mail_command(command, &history, &configuration)),
    };
    log.keep(&record_of(command, &report).to_text())?;
    write_report(&report, answers, &progress)
}

/// Chooses the workload: one of a suite, or the first row of a program of the user's own.
fn choose(session: &Session, command: &BisectArguments) -> anyhow::Result<ChosenWorkloads> {
    if command.program.is_given() {
        return choose_program(session, &command.program, session.tools(&[])?);
    }
    let suite = if command.on == EXACT_SMP {
        smp_suite(&command.suite)?
    } else {
        find_suite(&command.suite)?
    };
    let word = command.workload.as_deref().unwrap_or_default();
    if word.starts_with(TREE) {
        return choose_benchmark(session, command, word);
    }
    Ok(ChosenWorkloads {
        workloads: vec![select_workload(suite, word)?],
        suite: Arc::clone(suite),
        tools: Tools::default(),
    })
}

/// Returns the workload as it is on the machine: noisy, where time is measured.
fn workload_on(
    session: &Session,
    command: &BisectArguments,
    workload: &Workload,
) -> anyhow::Result<Arc<Workload>> {
    let noisy = NoisyOptions {
        boots: None,
        cpus: command.cpus,
        memory: None,
    };
    find_machines(session, &[&command.on], &noisy)?;
    if command.on == EXACT && command.cpus.is_some() {
        let text = format!("exact has one processor: --cpus is for {EXACT_SMP} and {VM}");
        return Err(WrongInput(text).into());
    }
    let mut workload = workload.clone();
    if command.is_timed() {
        workload.steadiness = Steadiness::Chaotic;
    }
    Ok(Arc::new(workload))
}

/// Makes a workload of a benchmark of the kernel's source: its first row.
fn choose_benchmark(
    session: &Session,
    command: &BisectArguments,
    word: &str,
) -> anyhow::Result<ChosenWorkloads> {
    let kernels = [&command.good, &command.bad].map(|end| KernelName::Git(end.clone()));
    let choice = BenchmarkChoice {
        sources: &command.sources,
        program: &command.program,
        kernels: &kernels,
    };
    let tools = session.tools(&[])?;
    let (tools, words) = add_benchmarks(session, &choice, tools, &[word.to_owned()])?;
    choose_named_workloads(tools, &command.suite, &words)
}

fn open_sources(
    session: &Session,
    command: &BisectArguments,
    home: &Path,
    chosen: &ChosenWorkloads,
) -> anyhow::Result<Sources> {
    let mut settings = settings_with_tools(session, &command.sources, &chosen.tools)?;
    settings.configuration = with_modules(settings.configuration, &chosen.workloads)?;
    if settings.tree.is_none() {
        return Err(WrongInput(
            "bisect needs a tree: name its directory with --tree FOLDER".into(),
        )
        .into());
    }
    let mut cache = BuildCache::open(home, session.archives()?)?;
    cache.set_sources(settings);
    Ok(Sources::open(&cache)?)
}

/// Returns the commits between the two ends, which are kernel names.
fn history(command: &BisectArguments, sources: &Sources) -> anyhow::Result<CommitGraph> {
    for end in [&command.good, &command.bad] {
        sources.repository().check_linux(end)?;
    }
    Ok(sources.repository().history(&command.good, &command.bad)?)
}

/// Where the report and the mail go.
struct Answers {
    answer: Answer,
    /// The mail's own file.
    mail: Option<Answer>,
    /// Whether the mail takes the place of the report.
    is_mail: bool,
}

impl Answers {
    fn open(session: &Session, command: &BisectArguments) -> anyhow::Result<Self> {
        Ok(Self {
            answer: session.answer(command.output.as_deref())?,
            mail: command.mail.open()?,
            is_mail: command.mail.is_answer(),
        })
    }
}

/// Writes the report, and the mail if requested; without a regression there is no mail.
fn write_report(
    report: &BisectionReport<'_>,
    answers: Answers,
    progress: &Progress,
) -> anyhow::Result<Exit> {
    let Answers {
        answer,
        mail,
        is_mail,
    } = answers;
    let is_wanted = is_mail || mail.is_some();
    let text = is_wanted.then(|| bisection::mail(report)).flatten();
    if is_wanted && text.is_none() {
        progress.say("no regression: Marvin writes no mail");
    }
    if text.is_some() && bisection::rests_on_one_seed(report) {
        progress.say(ONE_SEED);
    }
    if let (Some(file), Some(text)) = (mail, &text) {
        file.write(text)?;
    }
    match text.filter(|_| is_mail) {
        Some(text) => answer.write(text)?,
        None => answer.write(bisection::text(report))?,
    }
    Ok(if report.findings.culprits.is_empty() {
        Exit::Unclear
    } else {
        Exit::Fine
    })
}

/// Says what the difference of a culprit against its reference commit is in; both are measured.
fn ledger<S: Fn(BuildEvent), E: Fn(Event) + Sync>(
    prober: &LabProber<'_, S, E>,
    culprit: &Culprit,
    seeds: u64,
) -> anyhow::Result<Availability<String>> {
    let Capabilities {
        sharing,
        deterministic,
        ..
    } = prober.lab.machine().capabilities();
    if !deterministic {
        let [parent, commit] = [&culprit.parent, &culprit.commit].map(|end| bisection::short(end));
        return Ok(Availability::Unavailable(format!(
            "time was measured; marvin profile git:{parent} git:{commit} --on vm samples it"
        )));
    }
    if prober.workload.steadiness == Steadiness::Chaotic && !sharing {
        return Ok(Availability::Unavailable(
            "two boots of this workload take different paths on any kernel".into(),
        ));
    }
    let mut builds = Vec::new();
    for commit in [&culprit.parent, &culprit.commit] {
        builds.push(prober.sources.build(commit, &prober.step)?);
    }
    let plan = Plan {
        sides: builds.iter().collect(),
        suite: prober.suite,
        workloads: vec![Arc::clone(&prober.workload)],
        replicates: (1..=seeds).collect(),
        machines: prober.machines,
        reuse: Reuse::Stored,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = prober.lab.execute(&plan, &prober.event)?;
    let name = &prober.workload.name;
    Ok(if sharing {
        line_difference(prober.lab, &runs, name)?
            .map(|lines| profile::transfers::brief(&lines, FUNCTIONS_MAX))
    } else {
        let [base, new] = [&builds[0], &builds[1]];
        read_ledger(prober.lab, [base, new], &runs, name)?
            .map(|ledger| brief(&ledger, FUNCTIONS_MAX))
    })
}

/// Returns the stored form of the answer, which alerts link to.
fn record_of(command: &BisectArguments, report: &BisectionReport<'_>) -> BisectionRecord {
    let culprits =
        report
            .findings
            .culprits
            .iter()
            .zip(report.headlines)
            .map(|(culprit, headline)| RecordedCulprit {
                commit: culprit.commit.clone(),
                percent: culprit.change.percent().unwrap_or(0.0),
                subject: headline.subject.clone(),
            });
    BisectionRecord {
        workload: report.workload.name.to_string(),
        good: [command.good.clone(), report.ends.0.to_owned()],
        bad: [command.bad.clone(), report.ends.1.to_owned()],
        culprits: culprits.collect(),
    }
}

fn question(command: &BisectArguments, workload: &Workload) -> BisectionQuestion {
    let intervals = usize::from(command.parts);
    let noise = match workload.steadiness {
        Steadiness::Steady => Noise::Seeds(command.seed_count()),
        Steadiness::Chaotic => Noise::Runs {
            bias: command.build_variance(),
            runs_max: usize::from(command.runs),
        },
    };
    let confirm = if command.no_revert {
        Confirm::Nothing
    } else {
        Confirm::Revert
    };
    let seeds_first = parallel_machines(command.search.jobs);
    BisectionQuestion {
        metric: workload.metric.clone(),
        floor: model::floor(&workload.name),
        margin_percent: command.margin,
        intervals,
        noise,
        seeds_first,
        confirm,
    }
}

/// Lists everything that distinguishes a bisection from others with a log.
fn identity(
    command: &BisectArguments,
    history: &CommitGraph,
    workload: &Workload,
    lab: &Lab,
    sources: &Sources,
) -> String {
    let machine = &lab.machine().id;
    let good = history.good();
    let bad = history.bad();
    let tree = sources.repository().folder().display();
    // By content: a config file may have changed, and so may Marvin's own config.
    let config = sources.settings().configuration.identity();
    let seeds = match workload.steadiness {
        Steadiness::Steady => format!("{} seeds", command.seed_count()),
        Steadiness::Chaotic => "runs".to_owned(),
    };
    let compiler = sources.compiler();
    // A program of the user's own is known by its image.
    let files = match &workload.guest_config.files {
        ExtraFiles::Image(image) => format!(" {image}"),
        ExtraFiles::None => String::new(),
    };
    format!(
        "{good}..{bad} {tree} {config} {compiler} {} {} {seeds} {machine} counted{files}",
        command.suite, workload.name
    )
}

fn report_refusal(why: &Refused) -> anyhow::Result<Exit> {
    crate::say(&format!("error: {}", bisection::format_refusal(why)));
    Ok(if matches!(why, Refused::End { .. }) {
        Exit::Subject
    } else {
        Exit::Unclear
    })
}

/// Returns the kernel config as the user named it.
fn configuration(command: &BisectArguments, sources: &Sources) -> String {
    command
        .sources
        .named_config()
        .unwrap_or_else(|| sources.settings().configuration.name().to_owned())
}

/// Returns the command for the reader of a mail, who lacks the sender's files; one seed becomes
/// several.
fn mail_command(command: &BisectArguments, history: &CommitGraph, configuration: &str) -> String {
    let seeds = if command.seed_count() == 1 {
        SEEDS_OF_DRAFTS
    } else {
        command.seed_count()
    };
    let config = if configuration.contains('/') {
        bisection::CONFIG
    } else {
        configuration
    };
    reproducer(command, history, config, seeds)
}

/// Returns the command that gives the same answer, with commits by hash.
fn reproducer(
    command: &BisectArguments,
    history: &CommitGraph,
    configuration: &str,
    seeds: u64,
) -> String {
    let good = bisection::short(history.good());
    let bad = bisection::short(history.bad());
    let mut command_line = format!("marvin bisect {good} {bad} --tree linux");
    if let Some(workload) = &command.workload {
        add(&mut command_line, format_args!(" --workload {workload}"));
    }
    if command.suite != model::MICRO.name {
        add(
            &mut command_line,
            format_args!(" --suite {}", command.suite),
        );
    }
    if command.on != EXACT {
        add(&mut command_line, format_args!(" --on {}", command.on));
    }
    if let Some(cpus) = command.cpus {
        add(&mut command_line, format_args!(" --cpus {cpus}"));
    }
    if let Some(share) = command.build_variance {
        add(&mut command_line, format_args!(" --build-variance {share}"));
    }
    add(&mut command_line, format_args!(" --config {configuration}"));
    if !command.is_timed() {
        add(&mut command_line, format_args!(" --seeds {seeds}"));
    }
    command_line.push_str(&command.sources.make_options_text());
    if let Some(margin) = command.margin {
        add(&mut command_line, format_args!(" --margin {margin}"));
    }
    let program = &command.program;
    for word in program.arguments().into_iter().chain(program.tail()) {
        add(&mut command_line, format_args!(" {word}"));
    }
    command_line
}

//! `marvin bisect`: finds the commits that made a workload better or worse.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use history::{BisectionRecord, RecordedCulprit};
use kernel::{BuildCache, CommitGraph, Sources, Step};
use lab::{
    Bisected, BisectionEvent, BisectionLog, BisectionQuestion, Confirm, Culprit, Dumps, Elsewhere,
    Event, Lab, LabProber, LabSettings, Noise, Plan, Refused, Reuse, Sampled, Wanted,
};
use model::{Steadiness, Workload};
use profile::render::brief;

use super::alerts::ONE_SEED;
use super::bisect_plan::plan;
use super::bisect_via::{self, Ahead};
use super::config::site;
use super::measure::{machines_of, suite, workload};
use super::shared::{difference, suite_of};
use super::tree::settings;
use super::via::Via;
use crate::answer::Answer;
use crate::cli::{Arguments, Bisect, EXACT_SMP, Noisy, own};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, open_lab, store};
use crate::progress::Progress;
use lab::bisection::{self, BisectionReport, add};

/// How many seeds a draft asks for.
const SEEDS_OF_DRAFTS: u64 = 5;
/// Most functions listed for a culprit.
const FUNCTIONS_MAX: usize = 8;

pub(crate) fn bisect(arguments: &Arguments, command: &Bisect) -> anyhow::Result<Exit> {
    let suite = if command.on == EXACT_SMP {
        suite_of(&command.suite)?
    } else {
        suite(&command.suite)?
    };
    let workload = workload(suite, &command.workload)?;
    let home = home(arguments.home.as_deref())?;
    let answer = Answer::open(command.output.as_deref())?;
    let mail = command
        .mail
        .as_deref()
        .map(|path| Answer::file("--mail", path))
        .transpose()?;
    let sources = open_sources(arguments, command, &home)?;
    let history = history(command, &sources)?;
    let site = command.via.map(|_| site(arguments)).transpose()?;
    let via = Via::open_direct(arguments, command.via, site.as_ref())?;
    let plan = || plan(command, &history, &sources, &workload, store(arguments)?);
    if command.dry_run {
        answer.write(plan()?.text(via.as_ref().map(|via| bisect_via::nodes(command, via))))?;
        return Ok(Exit::Fine);
    }
    let store = Some(store(arguments)?);
    let wanted = own(
        &command.on,
        &Noisy {
            boots: None,
            cpus: command.cpus,
            memory: None,
        },
    )
    .unwrap_or(Wanted::Exact);
    let settings = LabSettings {
        store,
        wanted,
        sources: sources.settings().clone(),
        ..LabSettings::default()
    };
    let lab = open_lab(arguments, settings)?;
    let progress = Progress::new(arguments.quiet);
    bisect_via::check(command, &workload, lab.machine().capabilities())?;
    let ahead = |via| Ahead::new(command, via, &sources, plan()?.measuring.seconds, &progress);
    let ahead = via.as_ref().map(ahead).transpose()?;
    let reuse = if command.force {
        Reuse::Nothing
    } else {
        Reuse::Stored
    };
    let mut log = BisectionLog::open(
        &home,
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
        suite,
        workload: Arc::clone(&workload),
        machines: machines_of(command.jobs),
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
    let headlines = findings
        .culprits
        .iter()
        .map(|culprit| sources.headline(&culprit.commit));
    let headlines = headlines.collect::<Result<Vec<_>, _>>()?;
    let ledgers = findings
        .culprits
        .iter()
        .map(|culprit| ledger(&prober, culprit, command.seeds));
    let ledgers = ledgers.collect::<anyhow::Result<Vec<_>>>()?;
    progress.end();
    let configuration = configuration(command, &sources);
    let report = BisectionReport {
        findings: &findings,
        headlines: &headlines,
        ledgers: &ledgers,
        entries: log.entries(),
        workload: &workload,
        ends: (history.good(), history.bad()),
        machine: lab.machine(),
        configuration: configuration.clone(),
        command: reproducer(command, &history, &configuration, command.seeds),
        mail_command: mail_command(command, &history, &configuration),
    };
    log.keep(&record_of(command, &report).to_text())?;
    write_report(&report, answer, mail, &progress)
}

fn open_sources(arguments: &Arguments, command: &Bisect, home: &Path) -> anyhow::Result<Sources> {
    let settings = settings(arguments, &command.sources)?;
    if settings.tree.is_none() {
        return Err(WrongInput(
            "bisect needs a tree: name its directory with --tree FOLDER".into(),
        )
        .into());
    }
    let mut cache = BuildCache::open(home)?;
    cache.set_sources(settings);
    Ok(Sources::open(&cache)?)
}

/// Returns the commits between the two ends, which are kernel names.
fn history(command: &Bisect, sources: &Sources) -> anyhow::Result<CommitGraph> {
    for end in [&command.good, &command.bad] {
        sources.repository().check_linux(end)?;
    }
    Ok(sources.repository().history(&command.good, &command.bad)?)
}

/// Writes the report, and the mail if requested.
fn write_report(
    report: &BisectionReport<'_>,
    answer: Answer,
    mail: Option<Answer>,
    progress: &Progress,
) -> anyhow::Result<Exit> {
    if let Some(file) = mail {
        match bisection::mail(report) {
            Some(text) => {
                file.write(text)?;
                if bisection::rests_on_one_seed(report) {
                    progress.say(ONE_SEED);
                }
            }
            None => progress.say("no regression: Marvin writes no mail"),
        }
    }
    answer.write(bisection::text(report))?;
    Ok(if report.findings.culprits.is_empty() {
        Exit::Unclear
    } else {
        Exit::Fine
    })
}

/// Says what the difference of a culprit against its reference commit is in; both are measured.
fn ledger<S: Fn(Step), E: Fn(Event) + Sync>(
    prober: &LabProber<'_, S, E>,
    culprit: &Culprit,
    seeds: u64,
) -> anyhow::Result<Result<String, String>> {
    let sharing = prober.lab.machine().capabilities().sharing;
    if prober.workload.steadiness == Steadiness::Chaotic && !sharing {
        return Ok(Err(
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
        difference(prober.lab, &runs, name)?
            .map(|lines| profile::transfers::brief(&lines, FUNCTIONS_MAX))
    } else {
        super::profile::ledger(prober.lab, &runs, name)?.map(|ledger| brief(&ledger, FUNCTIONS_MAX))
    })
}

/// Returns the stored form of the answer, which alerts link to.
fn record_of(command: &Bisect, report: &BisectionReport<'_>) -> BisectionRecord {
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

fn question(command: &Bisect, workload: &Workload) -> BisectionQuestion {
    let intervals = usize::from(command.parts);
    let noise = match workload.steadiness {
        Steadiness::Steady => Noise::Seeds(command.seeds),
        Steadiness::Chaotic => Noise::Runs {
            bias: command.build_variance,
            runs_max: usize::from(command.runs),
        },
    };
    let confirm = if command.no_revert {
        Confirm::Nothing
    } else {
        Confirm::Revert
    };
    let seeds_first = machines_of(command.jobs);
    BisectionQuestion {
        metric: workload.metric.clone(),
        floor_percent: model::floor_percent(&workload.name),
        margin_percent: command.margin,
        intervals,
        noise,
        seeds_first,
        confirm,
    }
}

/// Lists everything that distinguishes a bisection from others with a log.
fn identity(
    command: &Bisect,
    history: &CommitGraph,
    workload: &Workload,
    lab: &Lab,
    sources: &Sources,
) -> String {
    let machine = &lab.machine().id;
    let (good, bad) = (history.good(), history.bad());
    let tree = sources.repository().folder().display();
    // By content: a config file may have changed, and so may Marvin's own config.
    let config = sources.settings().configuration.identity();
    let seeds = match workload.steadiness {
        Steadiness::Steady => format!("{} seeds", command.seeds),
        Steadiness::Chaotic => "runs".to_owned(),
    };
    let compiler = sources.compiler();
    format!(
        "{good}..{bad} {tree} {config} {compiler} {} {} {seeds} {machine} counted",
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
fn configuration(command: &Bisect, sources: &Sources) -> String {
    command
        .sources
        .config
        .clone()
        .unwrap_or_else(|| sources.settings().configuration.name().to_owned())
}

/// Returns the command for the reader of a mail, who lacks the sender's files; one seed becomes
/// several.
fn mail_command(command: &Bisect, history: &CommitGraph, configuration: &str) -> String {
    let seeds = if command.seeds == 1 {
        SEEDS_OF_DRAFTS
    } else {
        command.seeds
    };
    let config = if configuration.contains('/') {
        bisection::CONFIG
    } else {
        configuration
    };
    reproducer(command, history, config, seeds)
}

/// Returns the command that gives the same answer, with commits by hash.
fn reproducer(command: &Bisect, history: &CommitGraph, configuration: &str, seeds: u64) -> String {
    let (good, bad) = (
        bisection::short(history.good()),
        bisection::short(history.bad()),
    );
    let mut words = format!(
        "marvin bisect {good} {bad} --tree linux --workload {}",
        command.workload
    );
    if command.suite != model::MICRO.name {
        add(&mut words, format_args!(" --suite {}", command.suite));
    }
    if command.on == EXACT_SMP {
        add(&mut words, format_args!(" --on {}", command.on));
    }
    if let Some(cpus) = command.cpus {
        add(&mut words, format_args!(" --cpus {cpus}"));
    }
    add(
        &mut words,
        format_args!(" --config {configuration} --seeds {seeds}"),
    );
    if let Some(margin) = command.margin {
        add(&mut words, format_args!(" --margin {margin}"));
    }
    words
}

//! `marvin stabilise`: finds what made NEW slower than BASELINE, and the smallest series of patches
//! that repays it.

mod check;
mod plan;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use compare::{Rule, Scale, Seeds};
use kernel::{BuildCache, Sources};
use lab::bisection::{add, short};
use lab::{CandidateSource, FoundSubject, Lab, Measuring, StabiliseEvent, TreeWorld, find_subject};
use model::{Steadiness, Suite, Workload};
use stabilise::render::{
    BranchName, Candidate, Cost, Dropped, End, NamedCommit, Report, RowName, SkippedRow,
};
use stabilise::{Outcome, Phase, Question};

use self::plan::plan_stabilisation;
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{open_search_lab, parallel_machines, reuse_unless};
use crate::options::{
    EXACT_SMP, MailOptions, SearchOptions, SeedOptions, SourceOptions, margin, whole,
};
use crate::select::{find_suite, select_workloads, smp_suite, source_settings};
use crate::session::{Format, Progress, Session};

const EXAMPLES: &str = "Examples:
  marvin stabilise v6.12.107 v6.12.117 --tree linux --candidates v6.16..v6.18
  marvin stabilise sle15-sp3 v5.14 --tree linux --candidates queue/ --candidates fixes.mbox --budget 8h
  marvin stabilise deb-src:6.12.107 deb-src:6.12.113 --candidates deb-src:6.12.113..deb-src:6.12.117
  marvin stabilise v6.12.117 stable/linux-6.12.y --tree linux --candidates queue-6.12/ --check --mail queue.txt";

/// `marvin stabilise`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StabiliseArguments {
    /// Kernel with the performance to return to: a commit, or deb-src:VERSION
    pub(crate) baseline: String,

    /// Kernel to repair
    pub(crate) new: String,

    /// Patches that may repair it: commits OLDER..NEWER, a mailbox, or a folder of patches; may be
    /// given several times
    #[arg(long, value_name = "SOURCE", required = true)]
    pub(crate) candidates: Vec<String>,

    #[command(flatten)]
    pub(crate) sources: SourceOptions,

    /// Suite to measure
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Workloads of the suite, by name or group, with commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Machine on which one run is proof: exact, or exact-smp for the suite contention
    #[arg(long, value_name = "MACHINE", default_value = "exact", add = completion::exact_machine())]
    pub(crate) on: String,

    /// Processors of exact-smp [default: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2, 4))]
    pub(crate) cpus: Option<u32>,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Stop the search after this time, such as 8h or 30m, and report the series found so far; the
    /// same command continues
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) budget: Option<u64>,

    /// Try each new candidate alone on NEW, and report its effect; candidates of earlier checks
    /// are left out
    #[arg(long, conflicts_with = "format")]
    pub(crate) check: bool,

    /// Print the size of the search and its estimated cost, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) search: SearchOptions,

    /// Also write the series with its cover letter into a new or empty folder, as mails for git
    /// send-email
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["check", "dry_run"])]
    pub(crate) patches: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) mail: MailOptions,

    /// Format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write the report to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

const YEAR_S: u64 = 366 * 86_400;

/// The machines on which a stabilisation can run.
pub(crate) const STABILISE_ON: [&str; 2] = ["exact", EXACT_SMP];

/// Parses a time such as `8h`, `30m` or `90s`; in seconds.
fn time(text: &str) -> Result<u64, String> {
    let wrong = || "expected a time such as 8h, 30m or 90s".to_owned();
    let (number, factor) = match text.char_indices().last() {
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 's')) => (&text[..at], 1),
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(factor).ok_or_else(wrong)?;
    if (1..=YEAR_S).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected a time from 1s to a year".to_owned())
    }
}

/// Seeds of each kernel by default; a difference counts only if all seeds show it.
const SEEDS: u64 = 2;

impl StabiliseArguments {
    /// Returns the number of seeds.
    pub(crate) fn seed_count(&self) -> u64 {
        self.seeds.count(SEEDS)
    }
}

/// The prefix of Debian's releases, which have no commits within.
const DEB_SRC: &str = "deb-src:";

pub(crate) fn stabilise(session: &Session, command: &StabiliseArguments) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    if !STABILISE_ON.contains(&&*command.on) {
        return Err(WrongInput(format!(
            "cannot stabilise on {}: its measurements scatter, and a trial would take many boots instead of seconds\n\
             hint: --on exact, or --on exact-smp for the suite contention",
            command.on
        ))
        .into());
    }
    let suite = if command.on == EXACT_SMP {
        smp_suite(&command.suite)?
    } else {
        find_suite(&command.suite)?
    };
    let (rows, skipped) = rows(suite, &command.workload)?;
    let home = session.home()?;
    let answer = session.answer(command.output.as_deref())?;
    if command.mail.is_wanted() && !command.check {
        let text = "--mail is for --check; without it, --patches FOLDER writes the series as mails";
        return Err(WrongInput(text.to_owned()).into());
    }
    let mail = command.mail.open()?;
    let patches = command.patches.as_deref().map(empty_folder).transpose()?;
    let progress = session.progress();
    let named = NamedSources::open(session, command, home, &progress)?;
    let scratch = home.join("stabilisations/mails");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let found = find_subject(
        &named.sources,
        &named.baseline,
        &named.new,
        &named.candidates,
        &scratch,
    )?;
    if command.dry_run {
        answer.write(plan_stabilisation(
            command,
            &found,
            &named.sources,
            &rows,
            session.store_location()?,
        )?)?;
        return Ok(Exit::Fine);
    }
    let lab = open_search_lab(
        session,
        &command.on,
        command.cpus,
        &named.sources,
        lab::Tools::default(),
    )?;
    let trial = Trial {
        command,
        lab: &lab,
        named: &named,
        found: &found,
        suite,
        rows: &rows,
        home,
    };
    if command.check {
        return check::check(&trial, &progress, answer, mail);
    }
    let (outcome, cost, not_compiled) = trial.search(&progress, begun)?;
    let mut report = trial.report(&outcome, skipped, cost, &not_compiled);
    report.branch = trial.branch(&report).unwrap_or_else(|error| {
        // The answer took hours, and does not depend on the branch.
        progress.say(&format!("no branch: {error:#}"));
        None
    });
    if let (Some(folder), Some(branch)) = (&patches, &report.branch) {
        write_patches(
            &named.sources,
            &report,
            branch,
            found.subject.new_commit(),
            folder,
        )?;
    }
    progress.end();
    let text = match command.format {
        Format::Text => stabilise::render::document(&report).text(&answer.styles()),
        Format::Markdown => stabilise::render::document(&report).markdown(),
        Format::Html => stabilise::render::document(&report).html()?,
        Format::Json => stabilise::render::json(&report)?,
    };
    answer.write(text)?;
    Ok(conclusion(&report))
}

/// The tree, the revisions and the sources of candidates that the user named.
pub(super) struct NamedSources {
    pub(super) sources: Sources,
    baseline: String,
    new: String,
    candidates: Vec<CandidateSource>,
}

impl NamedSources {
    fn open(
        session: &Session,
        command: &StabiliseArguments,
        home: &Path,
        progress: &Progress,
    ) -> anyhow::Result<Self> {
        let mut settings = source_settings(session, &command.sources)?;
        let mut cache = BuildCache::open(home, session.archives()?)?;
        let mut ends = [command.baseline.clone(), command.new.clone()];
        let mut candidates = command.candidates.clone();
        if ends.iter().any(|end| end.starts_with(DEB_SRC)) {
            let mut parts = ends
                .iter()
                .chain(&candidates)
                .flat_map(|name| name.split(".."));
            if let Some(other) = parts.find(|part| !part.starts_with(DEB_SRC)) {
                return Err(not_debian(other).into());
            }
            let mut folder = None;
            for name in ends.iter_mut().chain(&mut candidates) {
                let mut tags = Vec::new();
                for part in name.split("..") {
                    let version = part.trim_start_matches(DEB_SRC);
                    let (repository, tag) = cache
                        .import_release(version, &|step| progress.step(part, &step))
                        .with_context(|| format!("cannot import {part}"))?;
                    folder = Some(repository);
                    tags.push(format!("refs/tags/{tag}"));
                }
                *name = tags.join("..");
            }
            settings.tree = folder;
        }
        if settings.tree.is_none() {
            return Err(WrongInput(
                "stabilise needs a tree: name its directory with --tree FOLDER".into(),
            )
            .into());
        }
        cache.set_sources(settings);
        let sources = Sources::open(&cache)?;
        let [baseline, new] = ends;
        let candidates = candidates
            .into_iter()
            .map(source_of)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            sources,
            baseline,
            new,
            candidates,
        })
    }
}

fn not_debian(part: &str) -> WrongInput {
    WrongInput(format!(
        "{part} is no release of Debian: name BASELINE, NEW and candidates all as {DEB_SRC}VERSION"
    ))
}

/// Returns where candidates come from: an existing file or directory, or a range of commits.
fn source_of(text: String) -> Result<CandidateSource, WrongInput> {
    let path = PathBuf::from(&text);
    if path.exists() {
        return Ok(CandidateSource::File(path));
    }
    if text.contains("..") {
        return Ok(CandidateSource::Range(text));
    }
    Err(WrongInput(format!(
        "{text} is neither a file, a folder, nor a range of commits\nhint: --candidates OLDER..NEWER, or a mailbox, or a folder of patches"
    )))
}

/// Returns the rows to judge, and those that are no proof.
fn rows(suite: &Suite, terms: &[String]) -> anyhow::Result<(Vec<Arc<Workload>>, Vec<SkippedRow>)> {
    let mut rows = Vec::new();
    let mut skipped = Vec::new();
    for workload in select_workloads(suite, terms)? {
        if workload.steadiness == Steadiness::Chaotic {
            let why = "two kernels take different paths in it, whatever they changed".to_owned();
            skipped.push(SkippedRow {
                name: workload.name.to_string(),
                why,
            });
        } else {
            rows.push(workload);
        }
    }
    if rows.is_empty() {
        return Err(WrongInput(
            "none of these workloads is a proof on one run: choose others with --workload".into(),
        )
        .into());
    }
    Ok((rows, skipped))
}

/// Returns a folder for patches, which must be new or empty.
fn empty_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() && !folder.is_dir() {
        return Err(WrongInput(format!(
            "{} is no folder: name a new one with --patches",
            folder.display()
        ))
        .into());
    }
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut entries = fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    if entries.next().is_some() {
        let text = format!(
            "{} is not empty: name a new folder with --patches",
            folder.display()
        );
        return Err(WrongInput(text).into());
    }
    Ok(std::path::absolute(folder)?)
}

/// What is needed for trials.
pub(super) struct Trial<'a> {
    pub(super) command: &'a StabiliseArguments,
    pub(super) lab: &'a Lab,
    pub(super) named: &'a NamedSources,
    pub(super) found: &'a FoundSubject,
    pub(super) suite: &'a Suite,
    pub(super) rows: &'a [Arc<Workload>],
    pub(super) home: &'a Path,
}

impl Trial<'_> {
    /// Returns the question of the search.
    pub(super) fn question(&self) -> Question {
        let mut rules = Vec::new();
        for workload in self.rows {
            rules.push(Rule {
                direction: workload.metric.direction,
                margin_percent: self.margin(workload),
                floor: model::floor(&workload.name),
                seeds: Seeds::OnBoth,
            });
        }
        Question {
            rows: rules,
            history: self.found.subject.trunk.len(),
            candidates: self.found.subject.candidates.len(),
            is_ancestor: self.found.is_ancestor,
        }
    }

    fn margin(&self, workload: &Workload) -> f64 {
        self.command
            .margin
            .unwrap_or(workload.metric.margin_percent)
    }

    /// Returns what to measure with.
    pub(super) fn measuring(&self, begun: Instant) -> Measuring<'_> {
        Measuring {
            lab: self.lab,
            sources: &self.named.sources,
            suite: self.suite,
            rows: self.rows.to_vec(),
            seeds: self.command.seed_count(),
            machines: parallel_machines(self.command.search.jobs),
            reuse: reuse_unless(self.command.search.force),
            deadline: self
                .command
                .budget
                .map(|seconds| begun + Duration::from_secs(seconds)),
        }
    }

    fn search(
        &self,
        progress: &Progress,
        begun: Instant,
    ) -> anyhow::Result<(Outcome, Cost, BTreeSet<usize>)> {
        let notify = |event: StabiliseEvent<'_>| progress.say(&describe(&event));
        let mut world = TreeWorld::open(
            self.measuring(begun),
            &self.found.subject,
            self.home,
            |step| progress.step("kernel", &step),
            |event| progress.event(&event),
            &notify,
        )?;
        let mut outcome = stabilise::search(&self.question(), &mut world)?;
        stabilise::check_steps(&mut outcome, self.found.subject.trunk.len(), &mut world)?;
        let spent = world.spent();
        let cost = Cost {
            kernels: spent.kernels,
            builds: spent.builds,
            images: spent.images,
            seconds: begun.elapsed().as_secs(),
        };
        Ok((outcome, cost, world.not_compiled().clone()))
    }

    fn report<'o>(
        &self,
        outcome: &'o Outcome,
        skipped: Vec<SkippedRow>,
        cost: Cost,
        not_compiled: &BTreeSet<usize>,
    ) -> Report<'o> {
        let subject = &self.found.subject;
        let mut points = Vec::new();
        for place in &subject.trunk {
            let commit = subject.history.id(place.commit).to_owned();
            points.push(NamedCommit {
                subject: self.subject_of(&commit),
                commit,
            });
        }
        let mut candidates = Vec::new();
        for (number, candidate) in subject.candidates.iter().enumerate() {
            let commit = candidate.facts.commit.clone().unwrap_or_default();
            let named = NamedCommit {
                commit,
                subject: candidate.subject.clone(),
            };
            let dropped = not_compiled
                .contains(&number)
                .then_some(Dropped::NotCompiled);
            candidates.push(Candidate { named, dropped });
        }
        for _ in 0..self.found.in_new {
            candidates.push(Candidate {
                named: NamedCommit::default(),
                dropped: Some(Dropped::InNew),
            });
        }
        let fork = subject.point(0).to_owned();
        Report {
            outcome,
            rows: self.row_names(),
            skipped,
            baseline: End {
                name: self.command.baseline.clone(),
                commit: subject.baseline.clone(),
            },
            new: self.new_end(),
            parted_at: (!self.found.is_ancestor).then(|| End {
                name: short(&fork),
                commit: fork,
            }),
            points,
            candidates,
            source: self.command.candidates.join(", "),
            measuring: self.measured(),
            cost,
            branch: None,
            command: self.command_line(),
        }
    }

    /// Returns NEW for a report.
    pub(super) fn new_end(&self) -> End {
        End {
            name: self.command.new.clone(),
            commit: self.found.subject.new_commit().to_owned(),
        }
    }

    fn subject_of(&self, commit: &str) -> String {
        self.named
            .sources
            .headline(commit)
            .map(|headline| headline.subject)
            .unwrap_or_default()
    }

    /// Returns the rows for a report.
    pub(super) fn row_names(&self) -> Vec<RowName> {
        let clock = self.lab.machine().capabilities().clock;
        let names = self.rows.iter().map(|workload| RowName {
            name: workload.name.to_string(),
            unit: Scale::Counted
                .unit(&workload.metric, clock)
                .name()
                .into_owned(),
            margin_percent: self.margin(workload),
        });
        names.collect()
    }

    /// Returns what measured, for a report.
    pub(super) fn measured(&self) -> stabilise::render::Measuring {
        stabilise::render::Measuring {
            machine: self.lab.machine().summary.clone(),
            config: self.config(),
            suite: self.suite.name.to_owned(),
            seeds: (1..=self.command.seed_count()).collect(),
        }
    }

    fn config(&self) -> String {
        let named = self.command.sources.named_config();
        named.unwrap_or_else(|| {
            self.named
                .sources
                .settings()
                .configuration
                .name()
                .to_owned()
        })
    }

    /// Returns the command that repeats it.
    pub(super) fn command_line(&self) -> String {
        let command = self.command;
        let mut command_line = format!("marvin stabilise {} {}", command.baseline, command.new);
        if !command.baseline.starts_with(DEB_SRC) {
            command_line.push_str(" --tree linux");
        }
        for source in &command.candidates {
            add(&mut command_line, format_args!(" --candidates {source}"));
        }
        if command.suite != model::MICRO.name {
            add(
                &mut command_line,
                format_args!(" --suite {}", command.suite),
            );
        }
        if !command.workload.is_empty() {
            add(
                &mut command_line,
                format_args!(" --workload {}", command.workload.join(",")),
            );
        }
        if command.on == EXACT_SMP {
            add(&mut command_line, format_args!(" --on {}", command.on));
        }
        add(
            &mut command_line,
            format_args!(
                " --config {} --seeds {}",
                self.config(),
                command.seed_count()
            ),
        );
        command_line.push_str(&command.sources.make_options_text());
        if let Some(margin) = command.margin {
            add(&mut command_line, format_args!(" --margin {margin}"));
        }
        if let Some(cpus) = command.cpus {
            add(&mut command_line, format_args!(" --cpus {cpus}"));
        }
        if command.check {
            command_line.push_str(" --check");
        }
        self.lab.machine().exact_cpu().repeat(command_line)
    }

    /// Makes the branch with the series; `None` without one.
    fn branch(&self, report: &Report<'_>) -> anyhow::Result<Option<BranchName>> {
        let series = &report.outcome.series;
        if series.is_empty() {
            return Ok(None);
        }
        let notes: Vec<String> = series
            .iter()
            .map(|change| stabilise::render::effect_note(report, *change))
            .collect();
        let subject = &self.found.subject;
        let name = format!("stabilise/{}", short(subject.new_commit()));
        let branch = subject.branch(&self.named.sources, &name, series, &notes)?;
        Ok(branch.map(|branch| BranchName {
            repository: branch.repository.display().to_string(),
            name: branch.name,
            tip: branch.tip,
        }))
    }
}

/// Writes the series and its cover letter.
fn write_patches(
    sources: &Sources,
    report: &Report<'_>,
    branch: &BranchName,
    base: &str,
    folder: &Path,
) -> anyhow::Result<()> {
    let files = sources.format_patches(base, &branch.tip, folder)?;
    let letter = stabilise::render::cover_letter(report);
    let (subject, text) = letter.split_once('\n').unwrap_or((&letter, ""));
    let count = files.len();
    let cover = folder.join("0000-cover-letter.patch");
    let mail = format!("Subject: [PATCH 0/{count}] {subject}\n{text}");
    fs::write(&cover, mail).with_context(|| format!("cannot write {}", cover.display()))
}

pub(super) fn describe(event: &StabiliseEvent<'_>) -> String {
    match event {
        StabiliseEvent::Phase(phase) => match phase {
            Phase::Ends => "measuring BASELINE and NEW",
            Phase::Causes => "searching the commits that made rows worse",
            Phase::Stack => "applying all candidates together",
            Phase::Repairs => "searching the candidates that repay rows",
            Phase::Alternatives => "searching smaller alternatives",
            Phase::Series => "choosing the series",
        }
        .to_owned(),
        StabiliseEvent::Trying(what) => format!("next is {what}"),
        StabiliseEvent::Failed(what, failure) => {
            format!("{what}: {}", stabilise::render::describe_failure(failure))
        }
    }
}

fn conclusion(report: &Report<'_>) -> Exit {
    let outcome = report.outcome;
    if outcome.ends.is_some() {
        return Exit::Subject;
    }
    let is_any_unpaid = outcome.debts.iter().any(|debt| {
        debt.left_percent
            .is_none_or(|left| left < -report.rows[debt.row].margin_percent)
    });
    if outcome.is_cut {
        Exit::Unclear
    } else if is_any_unpaid || !outcome.worse.is_empty() {
        Exit::Worse
    } else {
        Exit::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(
            [time("8h"), time("30m"), time("90s")],
            [Ok(28_800), Ok(1800), Ok(90)]
        );
        for wrong in [
            "",
            "8",
            "h",
            "-1h",
            "0m",
            "1d",
            "1.5h",
            "99999999999999999999h",
            "9000h",
            "ü",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}

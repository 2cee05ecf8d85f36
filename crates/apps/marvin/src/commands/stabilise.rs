//! `marvin stabilise`: finds what made NEW slower than BASELINE, and the smallest series of patches
//! that repays it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use compare::{Rule, Scale, Seeds};
use kernel::{BuildCache, Sources, Step};
use lab::{
    CandidateSource, FoundSubject, Lab, LabSettings, Measuring, Reuse, StabiliseEvent, TreeWorld,
    Wanted, find_subject,
};
use model::{Steadiness, Suite, Workload};
use stabilise::render::{
    BranchName, Candidate, Cost, Dropped, End, NamedCommit, Report, RowName, SkippedRow,
};
use stabilise::{Outcome, Phase, Question};

use super::measure::{machines_of, suite, workloads};
use super::shared::suite_of;
use super::stabilise_plan::plan;
use super::tree::settings;
use crate::answer::Answer;
use crate::cli::{Arguments, EXACT_SMP, Format, Noisy, STABILISE_ON, Stabilise, own};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, open_lab, store};
use crate::progress::Progress;
use lab::bisection::{add, short};

/// The prefix of Debian's releases, which have no commits within.
const DEB_SRC: &str = "deb-src:";

pub(crate) fn stabilise(arguments: &Arguments, command: &Stabilise) -> anyhow::Result<Exit> {
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
        suite_of(&command.suite)?
    } else {
        suite(&command.suite)?
    };
    let (rows, skipped) = rows(suite, &command.workload)?;
    let home = home(arguments.home.as_deref())?;
    let answer = Answer::open(command.output.as_deref())?;
    let mail = command
        .mail
        .as_deref()
        .map(|path| Answer::file("--mail", path))
        .transpose()?;
    let patches = command.patches.as_deref().map(empty_folder).transpose()?;
    let progress = Progress::new(arguments.quiet);
    let asked = Asked::open(arguments, command, &home, &progress)?;
    let scratch = home.join("stabilisations/mails");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let found = find_subject(
        &asked.sources,
        &asked.baseline,
        &asked.new,
        &asked.candidates,
        &scratch,
    )?;
    if command.dry_run {
        answer.write(plan(
            command,
            &found,
            &asked.sources,
            &rows,
            store(arguments)?,
        )?)?;
        return Ok(Exit::Fine);
    }
    let noisy = Noisy {
        boots: None,
        cpus: command.cpus,
        memory: None,
    };
    let wanted = own(&command.on, &noisy).unwrap_or(Wanted::Exact);
    let sources = asked.sources.settings().clone();
    let store = Some(store(arguments)?);
    let lab = open_lab(
        arguments,
        LabSettings {
            store,
            wanted,
            sources,
            ..LabSettings::default()
        },
    )?;
    let trial = Trial {
        command,
        lab: &lab,
        asked: &asked,
        found: &found,
        suite,
        rows: &rows,
        home: &home,
    };
    if command.check {
        return super::stabilise_check::check(&trial, &progress, answer, mail);
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
            &asked.sources,
            &report,
            branch,
            found.subject.new_commit(),
            folder,
        )?;
    }
    progress.end();
    let text = match command.format {
        Format::Text => stabilise::render::document(&report).text(&answer.styles(arguments.color)),
        Format::Markdown => stabilise::render::document(&report).markdown(),
        Format::Html => stabilise::render::document(&report).html()?,
        Format::Json => stabilise::render::json(&report)?,
    };
    answer.write(text)?;
    Ok(conclusion(&report))
}

/// The tree, the revisions and the sources of candidates that the user asked for.
pub(super) struct Asked {
    pub(super) sources: Sources,
    baseline: String,
    new: String,
    candidates: Vec<CandidateSource>,
}

impl Asked {
    fn open(
        arguments: &Arguments,
        command: &Stabilise,
        home: &Path,
        progress: &Progress,
    ) -> anyhow::Result<Self> {
        let mut settings = settings(arguments, &command.sources)?;
        let mut cache = BuildCache::open(home)?;
        let mut ends = [command.baseline.clone(), command.new.clone()];
        let mut candidates = command.candidates.clone();
        if ends.iter().any(|end| end.starts_with(DEB_SRC)) {
            let names = || {
                ends.iter()
                    .chain(&candidates)
                    .flat_map(|name| name.split(".."))
            };
            if let Some(other) = names().find(|part| !part.starts_with(DEB_SRC)) {
                return Err(not_debian(other).into());
            }
            let mut folder = None;
            for name in ends.iter_mut().chain(&mut candidates) {
                let mut tags = Vec::new();
                for part in name.split("..") {
                    let version = part.trim_start_matches(DEB_SRC);
                    let step = |step| progress.step(part, &step);
                    let (repository, tag) = cache
                        .import_release(version, &step)
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
fn rows(suite: &Suite, words: &[String]) -> anyhow::Result<(Vec<Arc<Workload>>, Vec<SkippedRow>)> {
    let mut rows = Vec::new();
    let mut skipped = Vec::new();
    for workload in workloads(suite, words)? {
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
    pub(super) command: &'a Stabilise,
    pub(super) lab: &'a Lab,
    pub(super) asked: &'a Asked,
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
                floor_percent: model::floor_percent(&workload.name),
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
            sources: &self.asked.sources,
            suite: self.suite,
            rows: self.rows.to_vec(),
            seeds: self.command.seeds,
            machines: machines_of(self.command.jobs),
            reuse: if self.command.force {
                Reuse::Nothing
            } else {
                Reuse::Stored
            },
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
        let step = |step: Step| progress.step("kernel", &step);
        let event = |event: lab::Event| progress.event(&event);
        let mut world = TreeWorld::open(
            self.measuring(begun),
            &self.found.subject,
            self.home,
            step,
            event,
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
            command: self.words(),
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
        self.asked
            .sources
            .headline(commit)
            .map(|headline| headline.subject)
            .unwrap_or_default()
    }

    /// Returns the rows for a report.
    pub(super) fn row_names(&self) -> Vec<RowName> {
        let clock = self.lab.machine().capabilities().clock;
        let name = |workload: &Arc<Workload>| RowName {
            name: workload.name.to_string(),
            unit: Scale::Counted
                .unit(&workload.metric, clock)
                .name()
                .into_owned(),
            margin_percent: self.margin(workload),
        };
        self.rows.iter().map(name).collect()
    }

    /// Returns what measured, for a report.
    pub(super) fn measured(&self) -> stabilise::render::Measuring {
        stabilise::render::Measuring {
            machine: self.lab.machine().summary.clone(),
            config: self.config(),
            suite: self.suite.name.to_owned(),
            seeds: (1..=self.command.seeds).collect(),
        }
    }

    fn config(&self) -> String {
        let named = self.command.sources.config.clone();
        named.unwrap_or_else(|| {
            self.asked
                .sources
                .settings()
                .configuration
                .name()
                .to_owned()
        })
    }

    /// Returns the command that repeats it.
    pub(super) fn words(&self) -> String {
        let command = self.command;
        let mut words = format!("marvin stabilise {} {}", command.baseline, command.new);
        if !command.baseline.starts_with(DEB_SRC) {
            words.push_str(" --tree linux");
        }
        for source in &command.candidates {
            add(&mut words, format_args!(" --candidates {source}"));
        }
        if command.suite != model::MICRO.name {
            add(&mut words, format_args!(" --suite {}", command.suite));
        }
        if !command.workload.is_empty() {
            add(
                &mut words,
                format_args!(" --workload {}", command.workload.join(",")),
            );
        }
        if command.on == EXACT_SMP {
            add(&mut words, format_args!(" --on {}", command.on));
        }
        add(
            &mut words,
            format_args!(" --config {} --seeds {}", self.config(), command.seeds),
        );
        if let Some(margin) = command.margin {
            add(&mut words, format_args!(" --margin {margin}"));
        }
        if let Some(cpus) = command.cpus {
            add(&mut words, format_args!(" --cpus {cpus}"));
        }
        if command.check {
            words.push_str(" --check");
        }
        words
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
        let branch = subject.branch(&self.asked.sources, &name, series, &notes)?;
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

/// Describes progress.
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
    let is_unpaid = |debt: &stabilise::Debt| {
        debt.left_percent
            .is_none_or(|left| left < -report.rows[debt.row].margin_percent)
    };
    if outcome.is_cut {
        Exit::Unclear
    } else if outcome.debts.iter().any(is_unpaid) || !outcome.worse.is_empty() {
        Exit::Worse
    } else {
        Exit::Fine
    }
}

//! The lab as the world of a stabilisation: makes kernels of a tree with changes, builds and
//! measures them, and gathers what speaks for each change. `stabilise` decides what to try.

mod branch;
mod checked;
mod evidence;
mod failures;
mod kernels;
mod subject;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kernel::{BuildEvent, CommitGraph, Compiled, KernelError, LinePoint, SourceError, Sources};
use model::{Availability, Build, Run, Suite, Workload};
use stabilise::evidence::ChangeFacts;
use stabilise::{Cause, Change, Evidence, Failure, Kernel, Phase, Trial, World};

use crate::bisect::report::short;
use crate::{Dumps, Event, Lab, LabError, Plan, RebuildCost, Reuse, Sampled, values_of};
pub use branch::Branch;
pub use checked::CheckedBefore;
use failures::Failures;
use kernels::Kernels;
pub use subject::{CandidateSource, FoundSubject, find_subject};

/// Seconds of a trial before the first build.
const FIRST_BUILD_S: u64 = 60;

/// A candidate: a commit of the tree, or a patch.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    /// The commit; `None` for a patch whose files the tree does not have.
    pub commit: Option<String>,
    /// The patch, if it is none of the tree's commits.
    pub diff: Option<Vec<u8>>,
    pub subject: String,
    /// Files that it changes.
    pub files: BTreeSet<String>,
    /// Whether it creates a header: no build has read it, and later patches may need it.
    pub creates_header: bool,
    /// Names that its lines add.
    pub adds: BTreeSet<String>,
    /// What is known of it.
    pub facts: ChangeFacts,
    /// Its author and message, for the branch.
    pub authorship: Option<kernel::Authorship>,
}

/// The kernels and the changes of a stabilisation.
#[derive(Debug)]
pub struct Subject {
    /// The commit of BASELINE.
    pub baseline: String,
    /// Commits from where NEW and BASELINE part up to NEW.
    pub history: CommitGraph,
    /// The points of the history, oldest first.
    pub trunk: Vec<LinePoint>,
    /// What is known of each point.
    pub points: Vec<ChangeFacts>,
    /// In the order in which they are applied.
    pub candidates: Vec<Candidate>,
}

impl Subject {
    /// Returns the commit of a point of the history.
    #[must_use]
    pub fn point(&self, point: usize) -> &str {
        match point.checked_sub(1).and_then(|place| self.trunk.get(place)) {
            Some(place) => self.history.id(place.commit),
            None => self.history.good(),
        }
    }

    /// Returns the commit of NEW.
    #[must_use]
    pub fn new_commit(&self) -> &str {
        self.history.bad()
    }

    /// Describes a kernel in a few words.
    #[must_use]
    pub fn describe(&self, kernel: &Kernel) -> String {
        match kernel {
            Kernel::Baseline => "BASELINE".to_owned(),
            Kernel::Point(0) => format!("{}, where the history begins", short(self.point(0))),
            Kernel::Point(point) if *point == self.trunk.len() => "NEW".to_owned(),
            Kernel::Point(point) => format!(
                "{} (point {point} of {})",
                short(self.point(*point)),
                self.trunk.len()
            ),
            Kernel::With(changes) => {
                let named: Vec<String> = changes.iter().map(|change| self.name(*change)).collect();
                match named.as_slice() {
                    [first, .., last] if named.len() > 3 => {
                        format!("NEW with {} changes, {first} to {last}", named.len())
                    }
                    _ => format!("NEW with {}", named.join(", ")),
                }
            }
        }
    }

    /// Names a change: its commit, or its number and subject.
    #[must_use]
    pub fn name(&self, change: Change) -> String {
        match change {
            Change::Revert(point) => format!("the revert of {}", short(self.point(point))),
            Change::Apply(number) => match self.candidates.get(number) {
                Some(Candidate {
                    commit: Some(commit),
                    diff: None,
                    ..
                }) => short(commit),
                Some(candidate) => format!("\"{}\"", candidate.subject),
                None => format!("candidate {number}"),
            },
        }
    }
}

/// Progress of a stabilisation.
#[derive(Debug, Clone, PartialEq)]
pub enum StabiliseEvent<'a> {
    /// A part of the search begins.
    Phase(Phase),
    /// A kernel is built or measured next.
    Trying(&'a str),
    /// It cannot be measured.
    Failed(&'a str, &'a Failure),
}

/// What a stabilisation has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Kernels that were built, failed builds included, in this session or an earlier one.
    pub kernels: usize,
    /// Of these, builds in this session.
    pub builds: usize,
    pub images: usize,
}

/// The lab as the world of a search.
pub struct TreeWorld<'a, S: Fn(BuildEvent), E: Fn(Event) + Sync> {
    lab: &'a Lab,
    sources: &'a Sources,
    subject: &'a Subject,
    suite: &'a Suite,
    rows: Vec<Arc<Workload>>,
    seeds: u64,
    machines: usize,
    reuse: Reuse,
    deadline: Option<Instant>,
    step: S,
    event: E,
    notify: &'a dyn Fn(StabiliseEvent<'_>),
    kernels: Kernels,
    failures: Failures,
    rebuild_cost: RebuildCost,
    /// The last point that was built.
    built: usize,
    tried: BTreeSet<Kernel>,
    /// Runs and builds of the ends.
    ends: BTreeMap<Kernel, (Build, Vec<Run>)>,
    not_compiled: BTreeSet<usize>,
    trees: BTreeSet<String>,
    images: BTreeSet<String>,
    builds: usize,
}

/// What a stabilisation measures, with what.
#[derive(Debug)]
pub struct Measuring<'a> {
    pub lab: &'a Lab,
    pub sources: &'a Sources,
    /// The suite with the workloads.
    pub suite: &'a Suite,
    /// The workloads: the rows.
    pub rows: Vec<Arc<Workload>>,
    /// Seeds of each trial.
    pub seeds: u64,
    /// Machines that run in parallel.
    pub machines: usize,
    /// Whether to use results of earlier runs.
    pub reuse: Reuse,
    pub deadline: Option<Instant>,
}

impl<'a, S: Fn(BuildEvent), E: Fn(Event) + Sync> TreeWorld<'a, S, E> {
    /// Opens the world; failures of earlier sessions with the same sources come from a log in the
    /// data directory.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn open(
        measuring: Measuring<'a>,
        subject: &'a Subject,
        home: &std::path::Path,
        step: S,
        event: E,
        notify: &'a dyn Fn(StabiliseEvent<'_>),
    ) -> Result<Self, LabError> {
        let Measuring {
            lab,
            sources,
            suite,
            rows,
            seeds,
            machines,
            reuse,
            deadline,
        } = measuring;
        let identity = format!(
            "{} {} {} {}",
            sources.settings().configuration.identity(),
            sources.compiler(),
            lab.machine().id,
            suite.name
        );
        Ok(Self {
            lab,
            sources,
            subject,
            suite,
            rows,
            seeds,
            machines,
            reuse,
            deadline,
            step,
            event,
            notify,
            kernels: Kernels::default(),
            failures: Failures::open(home, &identity, reuse)?,
            rebuild_cost: RebuildCost::everything(subject.history.count()),
            built: subject.trunk.len(),
            tried: BTreeSet::new(),
            ends: BTreeMap::new(),
            not_compiled: BTreeSet::new(),
            trees: BTreeSet::new(),
            images: BTreeSet::new(),
            builds: 0,
        })
    }

    /// Returns the candidates that change nothing that the kernel config compiles, once the debts
    /// are known.
    #[must_use]
    pub fn not_compiled(&self) -> &BTreeSet<usize> {
        &self.not_compiled
    }

    /// Returns what it has cost.
    #[must_use]
    pub fn spent(&self) -> Spent {
        Spent {
            kernels: self.trees.len(),
            builds: self.builds,
            images: self.images.len(),
        }
    }

    /// Builds a commit; a failed build is remembered.
    fn build(&mut self, commit: &str) -> Result<Availability<Build, Failure>, LabError> {
        let tree = self.sources.source_id(commit)?;
        self.trees.insert(tree.clone());
        if let Some(failure) = self.failures.get(&tree) {
            return Ok(Availability::Unavailable(failure.clone()));
        }
        let is_new = self.sources.compiled(commit)?.is_none();
        self.builds += usize::from(is_new);
        let failure = match self.sources.build(commit, &self.step) {
            Ok(build) => {
                self.images.insert(build.id.hex().to_owned());
                return Ok(Availability::Available(build));
            }
            Err(KernelError::Source(SourceError::DoesNotBuild { first_error, .. })) => {
                Failure::DoesNotBuild(first_error)
            }
            Err(KernelError::Image { fault, .. }) => {
                Failure::DoesNotRun(format!("no kernel: {fault}"))
            }
            Err(error) => return Err(error.into()),
        };
        self.failures.note(&tree, &failure)?;
        Ok(Availability::Unavailable(failure))
    }

    /// Measures rows of a build.
    fn measure(
        &mut self,
        kernel: &Kernel,
        build: Build,
        rows: &[usize],
    ) -> Result<Trial, LabError> {
        let workloads: Vec<Arc<Workload>> = rows
            .iter()
            .map(|row| Arc::clone(&self.rows[*row]))
            .collect();
        let plan = Plan {
            sides: vec![&build],
            suite: self.suite,
            workloads,
            replicates: (1..=self.seeds).collect(),
            machines: self.machines,
            reuse: self.reuse,
            dumps: Dumps::Drop,
            sampled: Sampled::No,
        };
        let runs = self.lab.execute(&plan, &self.event)?.concat();
        let capabilities = self.lab.machine().capabilities();
        let mut values = BTreeMap::new();
        let mut why_not = None;
        for row in rows {
            match values_of(&runs, 1..=self.seeds, &self.rows[*row].name, capabilities) {
                Ok((of_seeds, _)) => drop(values.insert(*row, of_seeds)),
                Err(why) => why_not = Some(format!("{}: {why}", self.rows[*row].name)),
            }
        }
        let image = build.id.hex().to_owned();
        // The ends may lack rows; a kernel with changes has all that were asked for, or is none to
        // judge.
        let is_end = !matches!(kernel, Kernel::With(_));
        if is_end {
            self.ends.insert(kernel.clone(), (build, runs));
        }
        Ok(match why_not.filter(|_| values.is_empty() || !is_end) {
            Some(why) => Trial::Failed(Failure::DoesNotRun(why)),
            None => Trial::Measured { image, values },
        })
    }
}

impl<S: Fn(BuildEvent), E: Fn(Event) + Sync> World for TreeWorld<'_, S, E> {
    type Error = LabError;

    fn trial(&mut self, kernel: &Kernel, rows: &[usize]) -> Result<Trial, LabError> {
        let what = self.subject.describe(kernel);
        (self.notify)(StabiliseEvent::Trying(&what));
        self.tried.insert(kernel.clone());
        let commit = match self.kernels.commit_of(self.sources, self.subject, kernel)? {
            Availability::Available(commit) => commit,
            Availability::Unavailable(failure) => {
                (self.notify)(StabiliseEvent::Failed(&what, &failure));
                return Ok(Trial::Failed(failure));
            }
        };
        let trial = match self.build(&commit)? {
            Availability::Available(build) if rows.is_empty() => Trial::Measured {
                image: build.id.hex().to_owned(),
                values: BTreeMap::new(),
            },
            Availability::Available(build) => self.measure(kernel, build, rows)?,
            Availability::Unavailable(failure) => Trial::Failed(failure),
        };
        if let Kernel::Point(point) = kernel {
            self.built = *point;
        }
        if let Trial::Failed(failure) = &trial {
            (self.notify)(StabiliseEvent::Failed(&what, failure));
        }
        Ok(trial)
    }

    fn evidence(&mut self, debts: &[usize], causes: &[Cause]) -> Result<Evidence, LabError> {
        let mut compiled = Compiled::default();
        for end in [&self.subject.baseline, self.subject.new_commit()] {
            if let Some(of_end) = self.sources.compiled(end)? {
                compiled.join(of_end);
            }
        }
        let changed = self.sources.changed_files(&self.subject.history)?;
        self.rebuild_cost = RebuildCost::estimate(&self.subject.history, &changed, &compiled);
        let evidence = self.gather(debts, causes, &compiled)?;
        let candidates = evidence.candidates.iter().enumerate();
        self.not_compiled = candidates
            .filter(|(_, candidate)| !candidate.is_compiled)
            .map(|(number, _)| number)
            .collect();
        Ok(evidence)
    }

    fn begin(&mut self, phase: Phase) {
        (self.notify)(StabiliseEvent::Phase(phase));
    }

    fn prerequisites(
        &mut self,
        candidate: usize,
        failure: &Failure,
    ) -> Result<Vec<usize>, LabError> {
        kernels::prerequisites(self.sources, self.subject, candidate, failure)
    }

    fn at_fault(&mut self, kernel: &Kernel, failure: &Failure) -> Result<Option<Change>, LabError> {
        Ok(kernels::at_fault(self.subject, kernel, failure))
    }

    fn cost_s(&mut self, kernel: &Kernel) -> f64 {
        if self.tried.contains(kernel) {
            return 0.0;
        }
        let last = self
            .sources
            .seconds()
            .map_or(FIRST_BUILD_S, |seconds| seconds.last.max(1)) as f64;
        let Kernel::Point(point) = kernel else {
            return last;
        };
        let brings: Vec<&[usize]> = std::iter::once(&[][..])
            .chain(self.subject.trunk.iter().map(|p| &*p.brings))
            .collect();
        let links = self.rebuild_cost.costs(&brings, self.built);
        last * links.get(*point).copied().unwrap_or(1.0)
    }

    fn is_spent(&mut self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl<S: Fn(BuildEvent), E: Fn(Event) + Sync> std::fmt::Debug for TreeWorld<'_, S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeWorld")
            .field("baseline", &self.subject.baseline)
            .finish_non_exhaustive()
    }
}

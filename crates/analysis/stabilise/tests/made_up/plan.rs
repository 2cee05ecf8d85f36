//! The truth of a made-up world: what each commit and each candidate does to each row, and what
//! applies and builds.
//!
//! Values are numbers of instructions: base, seed and effects are integers, so their sum is exact
//! and independent of order.

use std::collections::BTreeSet;

use stabilise::{Change, Failure, Kernel};

/// Seeds of each row.
pub(crate) const SEEDS: usize = 3;

/// A change to the source, wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A commit of the history, by its point.
    Commit(usize),
    Candidate(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Instructions of each seed without any effect.
    pub(crate) base: [i64; SEEDS],
    /// The functions that it executes.
    pub(crate) functions: BTreeSet<usize>,
}

/// An effect on one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effect {
    pub(crate) row: usize,
    /// Additional instructions; negative for a gain.
    pub(crate) instructions: i64,
    /// It shows only if all of these are present.
    pub(crate) needs: Vec<Part>,
    /// Each of these removes it; two remove no more than one.
    pub(crate) repairs: Vec<Repair>,
}

/// What removes an effect.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repair {
    pub(crate) by: usize,
    /// Candidates without which it applies and builds, but does nothing.
    pub(crate) with: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Lie {
    /// It looks as if no row executed what it changes.
    Hidden,
    /// It looks like a culprit in these debts (by their number, modulo the number of debts).
    Accused(Vec<usize>),
}

/// What commits and candidates have in common.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Patch {
    /// The function that it changes.
    pub(crate) function: usize,
    pub(crate) is_compiled: bool,
    pub(crate) lie: Option<Lie>,
}

/// A commit of the history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Commit {
    pub(crate) patch: Patch,
    /// A later commit without whose revert the revert of this one conflicts.
    pub(crate) below: Option<usize>,
}

/// Why a candidate is of no use to any kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    Conflict,
    /// It does not compile.
    Compiler,
    /// It does not boot.
    Boot,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) patch: Patch,
    /// Earlier candidates without which it conflicts.
    pub(crate) applies_on: Vec<usize>,
    /// Earlier candidates without which it does not build.
    pub(crate) builds_with: Vec<usize>,
    /// Earlier candidates that git or the error shows.
    pub(crate) shown: Vec<usize>,
    pub(crate) flaw: Option<Flaw>,
}

/// The truth of a world.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) rows: Vec<Row>,
    /// The commit of point 1 and those after it.
    pub(crate) commits: Vec<Commit>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) effects: Vec<Effect>,
    /// Pairs of points: with the first commit and without the second, no kernel builds.
    pub(crate) breaks: Vec<(usize, usize)>,
    /// A row, and the instructions that BASELINE has less in it than point 0; `None` if BASELINE
    /// is point 0.
    pub(crate) side: Option<(usize, i64)>,
    /// The points of the commits that were made causes.
    pub(crate) causes: Vec<usize>,
}

/// What a kernel consists of. Kernels with equal contents are one kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Content {
    /// Whether it is a BASELINE that is no point of the history.
    pub(crate) is_side: bool,
    /// Points of the history whose commits it lacks.
    pub(crate) lacks: BTreeSet<usize>,
    /// The candidates that it has.
    pub(crate) has: BTreeSet<usize>,
}

impl Content {
    /// Returns whether it contains a part.
    pub(crate) fn contains(&self, part: Part) -> bool {
        match part {
            Part::Commit(point) => !self.lacks.contains(&point),
            Part::Candidate(candidate) => self.has.contains(&candidate),
        }
    }
}

impl Effect {
    /// Returns whether it shows in a kernel.
    fn shows_in(&self, content: &Content) -> bool {
        self.needs.iter().all(|part| content.contains(*part))
            && !self.repairs.iter().any(|repair| repair.is_in(content))
    }

    /// Returns whether a part causes it or repairs it.
    pub(crate) fn is_of(&self, part: Part) -> bool {
        let mut repairs = self.repairs.iter();
        self.needs.contains(&part) || repairs.any(|repair| Part::Candidate(repair.by) == part)
    }
}

impl Repair {
    fn is_in(&self, content: &Content) -> bool {
        content.has.contains(&self.by) && self.with.iter().all(|other| content.has.contains(other))
    }
}

impl Plan {
    /// Returns the point of NEW.
    pub(crate) fn new_point(&self) -> usize {
        self.commits.len()
    }

    /// Returns the content of a kernel.
    ///
    /// Panics if the kernel breaks the rules of [`Kernel`]: an unknown number, or changes out of
    /// order.
    pub(crate) fn content(&self, kernel: &Kernel) -> Content {
        let end = self.new_point();
        let mut content = Content {
            is_side: false,
            lacks: BTreeSet::new(),
            has: BTreeSet::new(),
        };
        match kernel {
            Kernel::Baseline => {
                content.is_side = self.side.is_some();
                content.lacks.extend(1..=end);
            }
            Kernel::Point(point) => {
                assert!(*point <= end, "point {point} of {end}");
                content.lacks.extend(point + 1..=end);
            }
            Kernel::With(changes) => {
                let place = |change: &Change| match *change {
                    Change::Revert(point) => (0, end - point),
                    Change::Apply(candidate) => (1, candidate),
                };
                let is_ordered = changes
                    .windows(2)
                    .all(|pair| place(&pair[0]) < place(&pair[1]));
                assert!(
                    is_ordered,
                    "reverts newest first, then candidates in order, each once: {changes:?}"
                );
                for change in changes {
                    match *change {
                        Change::Revert(point) => {
                            assert!(
                                (1..=end).contains(&point),
                                "revert of point {point} of {end}"
                            );
                            content.lacks.insert(point);
                        }
                        Change::Apply(candidate) => {
                            assert!(candidate < self.candidates.len(), "candidate {candidate}");
                            content.has.insert(candidate);
                        }
                    }
                }
            }
        }
        content
    }

    /// Returns why a kernel cannot be measured.
    pub(crate) fn failure(&self, kernel: &Kernel, content: &Content) -> Option<Failure> {
        // Points are checked out of git: no change is applied to them.
        let changes: &[Change] = if let Kernel::With(changes) = kernel {
            changes
        } else {
            &[]
        };
        for &change in changes {
            if let Some(function) = self.conflict(change, content) {
                return Some(Failure::Conflict {
                    change,
                    files: vec![file(function)],
                });
            }
        }
        for &candidate in &content.has {
            let it = &self.candidates[candidate];
            let is_incomplete = !it
                .builds_with
                .iter()
                .all(|other| content.has.contains(other));
            if is_incomplete || it.flaw == Some(Flaw::Compiler) {
                return Some(Failure::DoesNotBuild(format!(
                    "{}: error: not declared",
                    file(it.patch.function)
                )));
            }
        }
        let mut breaks = self.breaks.iter();
        if let Some((from, _)) =
            breaks.find(|(from, to)| !content.lacks.contains(from) && content.lacks.contains(to))
        {
            let function = self.commits[from - 1].patch.function;
            return Some(Failure::DoesNotBuild(format!(
                "{}: error: not declared",
                file(function)
            )));
        }
        let mut candidates = content.has.iter().map(|place| &self.candidates[*place]);
        candidates
            .any(|candidate| candidate.flaw == Some(Flaw::Boot))
            .then(|| Failure::DoesNotRun("it does not boot".to_owned()))
    }

    /// Returns the function whose file is in conflict if a change does not apply.
    fn conflict(&self, change: Change, content: &Content) -> Option<usize> {
        match change {
            Change::Revert(point) => {
                let later = self.commits[point - 1].below?;
                (!content.lacks.contains(&later)).then(|| self.commits[later - 1].patch.function)
            }
            Change::Apply(candidate) => {
                let it = &self.candidates[candidate];
                let is_missing = !it
                    .applies_on
                    .iter()
                    .all(|other| content.has.contains(other));
                (is_missing || it.flaw == Some(Flaw::Conflict)).then_some(it.patch.function)
            }
        }
    }

    /// Returns the values of a row, one per seed.
    pub(crate) fn values(&self, content: &Content, row: usize) -> [i64; SEEDS] {
        let of_row = self
            .effects
            .iter()
            .filter(|effect| effect.row == row && effect.shows_in(content));
        let mut sum: i64 = of_row.map(|effect| effect.instructions).sum();
        if let (true, Some((_, less))) = (content.is_side, self.side.filter(|side| side.0 == row)) {
            sum -= less;
        }
        self.rows[row].base.map(|base| base + sum)
    }

    /// Returns how much better a kernel is than another in a row (percent): the median over the
    /// seeds.
    pub(crate) fn percent(&self, old: &Content, new: &Content, row: usize) -> f64 {
        let olds = self.values(old, row);
        let news = self.values(new, row);
        let mut percents: Vec<f64> = olds
            .iter()
            .zip(news)
            .map(|(old, new)| (old - new) as f64 / *old as f64 * 100.0)
            .collect();
        percents.sort_by(f64::total_cmp);
        percents[SEEDS / 2]
    }

    /// Returns whether an effect is more than drift: beyond 0.1 % of its row.
    pub(crate) fn is_notable(&self, effect: &Effect) -> bool {
        effect.instructions.abs() * 1000 > self.rows[effect.row].base[0]
    }

    /// Returns what identifies the image of a kernel: its compiled changes.
    pub(crate) fn image(&self, content: &Content) -> String {
        let lacks = content
            .lacks
            .iter()
            .filter(|point| self.commits[**point - 1].patch.is_compiled);
        let has = content
            .has
            .iter()
            .filter(|candidate| self.candidates[**candidate].patch.is_compiled);
        let mut image = if content.is_side {
            "side".to_owned()
        } else {
            "new".to_owned()
        };
        image.extend(lacks.map(|point| format!("-{point}")));
        image.extend(has.map(|candidate| format!("+{candidate}")));
        image
    }
}

/// Returns the file of a function.
fn file(function: usize) -> String {
    format!("kernel/f{function}.c")
}

//! The verdicts.

use std::fmt;

/// The verdict of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Better by more than the margin, for all seeds.
    Better,
    /// Worse by more than the margin, for all seeds.
    Worse,
    /// Within the margin for all seeds: shown, not assumed.
    Same,
    /// None of the three, with the reason and what would resolve it.
    Unclear(Uncertainty),
}

/// Why a verdict is unclear.
#[derive(Debug, Clone, PartialEq)]
pub enum Uncertainty {
    /// The seeds do not agree on which side of the margin the difference lies.
    SeedsDisagree {
        /// Seeds that say better.
        better: usize,
        /// Seeds that say worse.
        worse: usize,
        /// Seeds that say same.
        same: usize,
    },
    /// All seeds agree, but on less than the spread between seeds of one build, and there are too
    /// few of them.
    BelowFloor {
        /// The spread between seeds of one build, in percent.
        floor_percent: f64,
        /// Seeds whose differences are on one side.
        seeds: usize,
        /// Seeds needed to agree.
        seeds_least: usize,
    },
    /// The seeds of a chaotic workload scatter too much for their number.
    Layouts {
        /// The standard deviation between seeds of one build, in percent.
        floor_percent: f64,
        /// How many more seeds would decide with a chance of 80 %; `None` beyond 50 in all.
        more_seeds: Option<usize>,
    },
    /// The runs are too noisy for their number.
    Noise {
        /// How many more runs each side needs for a clear verdict with a chance of 80 %, after what
        /// was seen. `None` if both sides have one run, which says nothing about noise
        /// between runs.
        more_runs: Option<usize>,
    },
    /// The difference lies too near to the margin for any affordable number of runs.
    NearMargin,
    /// A side has one run, and earlier kernels were too noisy to tell how sure it is.
    NoisyHistory,
    /// The noise would take more than 50 runs of each side.
    TooNoisy,
    /// The clock's steps are as wide as the margin.
    TooCoarse,
    /// A twin, a workload of another suite that does the same operation, does not show the
    /// difference: the layout of memory may be the cause.
    Contradicted {
        /// The name of the twin.
        twin: String,
        /// Its difference in percent; positive is better.
        difference_percent: f64,
    },
    /// The count and the estimate of cycles disagree: one is beyond the margin, and the other on the
    /// other side of zero, or within.
    Mixed {
        /// The difference by counted instructions in percent; positive is better.
        counted_percent: f64,
        /// The least and the most of the estimate's.
        cycles_percent: [f64; 2],
        /// The kinds of costly instructions that changed, per operation: `RDTSC 1 -> 0`.
        costly: String,
    },
    /// The count of the row and the count with the work that it defers disagree as those of
    /// [`Self::Mixed`] do.
    Deferred {
        /// The difference of the row in percent; positive is better.
        counted_percent: f64,
        /// The difference with deferred work.
        with_deferred_percent: f64,
        /// Deferred work on both sides, in instructions per operation.
        deferred: [f64; 2],
    },
    /// The transfers of lines and the time of the lock that is held longest disagree as those of
    /// [`Self::Mixed`] do.
    Held {
        /// The difference by transfers in percent; positive is better.
        counted_percent: f64,
        /// The lock that is held longest, on the side where it is longer.
        lock: String,
        /// How long the longest is held and handed over on both sides, in nanoseconds an operation,
        /// modelled.
        ns: [f64; 2],
        /// The least and the most difference of that over the seeds.
        held_percent: [f64; 2],
        /// Whether the difference by transfers is within the margin.
        is_alone: bool,
    },
    /// Each side has one run, and its samples differ by more than they scatter, or by less than the
    /// margin. How much boots differ, one run does not show.
    WithinRun(WithinRun),
    /// One side has no value; the text gives the reason.
    Missing(String),
}

/// What the samples within one run of each side show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WithinRun {
    /// Better by more than the margin.
    Better,
    /// Worse by more than the margin.
    Worse,
    /// Within the margin.
    Same,
}

impl WithinRun {
    /// Returns the letter in tables: that of the verdict, small; `~` for the same.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Better => 'b',
            Self::Worse => 'w',
            Self::Same => '~',
        }
    }

    /// Returns the name in texts and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better within one run",
            Self::Worse => "worse within one run",
            Self::Same => "same within one run",
        }
    }
}

impl Verdict {
    /// The letter that marks it in a table without colours.
    #[must_use]
    pub fn letter(&self) -> char {
        match self {
            Self::Better => 'B',
            Self::Worse => 'W',
            Self::Same => '=',
            Self::Unclear(
                Uncertainty::Mixed { .. } | Uncertainty::Deferred { .. } | Uncertainty::Held { .. },
            ) => 'M',
            Self::Unclear(Uncertainty::WithinRun(within)) => within.letter(),
            Self::Unclear(_) => '?',
        }
    }

    /// Returns the name of its colour: a verdict within one run is no better or worse row.
    #[must_use]
    pub fn tone(&self) -> &'static str {
        match self {
            Self::Unclear(Uncertainty::WithinRun(_)) => "unclear",
            _ => self.name(),
        }
    }

    /// Returns the name in texts and JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear(
                Uncertainty::Mixed { .. } | Uncertainty::Deferred { .. } | Uncertainty::Held { .. },
            ) => "mixed",
            Self::Unclear(Uncertainty::WithinRun(within)) => within.name(),
            Self::Unclear(_) => "unclear",
        }
    }
}

impl fmt::Display for Uncertainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeedsDisagree { better, worse, same } => write!(
                f,
                "seeds disagree ({better} better, {worse} worse, {same} same): the difference is near the margin or \
                 depends on layout; try a larger --margin, or see the profile"
            ),
            Self::BelowFloor { floor_percent, seeds, seeds_least } => write!(
                f,
                "below the floor: seeds of one build differ by up to {floor_percent}%, so {seeds_least} seeds must agree, but \
                 there {}",
                if *seeds == 1 { "is 1".to_owned() } else { format!("are {seeds}") }
            ),
            Self::Layouts { floor_percent, more_seeds } => {
                let scatter = (100.0 * floor_percent).round() / 100.0;
                write!(f, "seeds of one build scatter by {scatter}%: ")?;
                match more_seeds {
                    Some(more) => write!(f, "{more} more {} would probably decide", if *more == 1 { "seed" } else { "seeds" }),
                    None => f.write_str("not even 50 seeds would decide; use a larger --margin"),
                }
            }
            Self::Noise { more_runs: None } => {
                f.write_str("one run per side does not show the noise: compare two or more runs of each")
            }
            Self::Noise { more_runs: Some(more) } => {
                write!(f, "too much noise: {more} more runs of each side would probably decide")
            }
            Self::TooNoisy => f.write_str(
                "too much noise: more than 50 runs of each side would be needed; use a larger --margin or a quieter machine",
            ),
            Self::NearMargin => f.write_str(
                "the difference is near the margin: not even 50 runs of each side would probably decide; use another --margin",
            ),
            Self::NoisyHistory => f.write_str(
                "earlier kernels were too noisy to judge one run of a side: compare three or more runs of each",
            ),
            Self::TooCoarse => f.write_str("the values are in steps as wide as the margin: measure longer, or use a larger --margin"),
            Self::Contradicted { twin, difference_percent } => write!(
                f,
                "its twin {twin}, which does the same operation, says {difference_percent:+.2}%: the layout of memory may be the \
                 cause; measure both with more seeds"
            ),
            Self::Mixed { counted_percent, cycles_percent: [least, most], costly } => {
                let because = if costly.is_empty() { String::new() } else { format!(": {costly}") };
                write!(
                    f,
                    "mixed: {counted_percent:+.2}% by instructions, {least:+.1} to {most:+.1}% by estimated cycles{because}"
                )
            }
            Self::Deferred {
                counted_percent,
                with_deferred_percent,
                deferred: [old, new],
            } => write!(
                f,
                "mixed: {counted_percent:+.2}% in the row, {with_deferred_percent:+.2}% with the work it defers: {old:.1} -> \
                 {new:.1} instructions of interrupts and other tasks"
            ),
            Self::Held {
                counted_percent,
                lock,
                ns: [old, new],
                held_percent: [least, most],
                ..
            } => {
                let counted = format!("{counted_percent:+.2}% by transfers");
                write!(
                    f,
                    "mixed: {counted}, {least:+.1} to {most:+.1}% by the lock that is held longest ({lock}): {old:.0} -> {new:.0} \
                     ns an operation with handing it over"
                )
            }
            Self::WithinRun(within) => write!(
                f,
                "{}: its samples decide if boots differ no more than samples do, which one run does not show; compare two or \
                 more runs of each",
                within.name()
            ),
            Self::Missing(why) => write!(f, "no value: {why}"),
        }
    }
}

//! The answer as JSON: all of it.

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::Availability;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::view::{NotTaken, Repayment, WhyNot};
use super::{Dropped, End, NamedCommit, Report};
use crate::outcome::{Cause, Debt, Effect};
use crate::world::{Change, Failure};

/// A kernel that the user named.
#[derive(Serialize, JsonSchema)]
struct EndDocument {
    name: String,
    commit: String,
}

/// A candidate that is applied to NEW, or a commit of NEW's history that is reverted.
#[derive(Serialize, JsonSchema)]
struct ChangeDocument {
    /// `apply` or `revert`.
    kind: &'static str,
    /// The number of the candidate, from 0, or the point of the history, from 1.
    number: usize,
    /// Absent for a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    subject: String,
}

/// A difference in a row.
#[derive(Serialize, JsonSchema)]
struct EffectDocument {
    row: String,
    /// Positive is better.
    percent: f64,
}

/// Why there is no kernel to measure.
#[derive(Serialize, JsonSchema)]
struct FailureDocument {
    /// `conflict`, `does-not-build` or `does-not-run`.
    kind: &'static str,
    /// The change that does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeDocument>,
    /// Files in conflict.
    files: Vec<String>,
    /// The first error; empty for a conflict.
    error: String,
}

/// What a kernel brings: effects, or why it cannot be measured.
#[derive(Serialize, JsonSchema)]
struct TrialDocument {
    effects: Vec<EffectDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureDocument>,
}

#[derive(Serialize, JsonSchema)]
struct RowDocument {
    name: String,
    unit: String,
    /// Smaller differences count as same.
    margin_percent: f64,
}

#[derive(Serialize, JsonSchema)]
struct SkippedDocument {
    name: String,
    why: String,
}

/// A row in which NEW is worse than BASELINE.
#[derive(Serialize, JsonSchema)]
struct DebtDocument {
    row: String,
    /// From BASELINE to NEW; negative.
    percent: f64,
    /// The share of it that the causes explain.
    explained_percent: f64,
    /// From BASELINE to NEW with the series; absent if that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_percent: Option<f64>,
    /// `repaid`, `partly`, `unpaid`, or `unknown` if the series was not measured.
    repayment: &'static str,
    /// Points of the history, which `causes` has.
    causes: Vec<usize>,
}

/// A commit that made rows worse.
#[derive(Serialize, JsonSchema)]
struct CauseDocument {
    /// Its point in the history, from 1.
    point: usize,
    /// The first point that it can be: less than `point` if kernels between cannot be measured.
    first_point: usize,
    /// Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    subject: String,
    /// Against the point before it.
    effects: Vec<EffectDocument>,
    /// What its revert brings on NEW; absent if it was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverted: Option<TrialDocument>,
}

/// A change of the series.
#[derive(Serialize, JsonSchema)]
struct PatchDocument {
    change: ChangeDocument,
    /// What it brings on NEW alone, with those that it needs; absent if it was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    alone: Option<TrialDocument>,
    /// What the series loses without it.
    in_series: Vec<EffectDocument>,
    /// The numbers in the series, from 1, of those that it needs.
    needs: Vec<usize>,
    /// The numbers in the series, from 1, of those that need it.
    needed_by: Vec<usize>,
    /// Whether others need it and it brings nothing itself.
    is_only_needed: bool,
    /// Why there is no kernel to measure after this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken_step: Option<FailureDocument>,
}

/// A change that was tried and not taken.
#[derive(Serialize, JsonSchema)]
struct NotTakenDocument {
    change: ChangeDocument,
    /// `harms`, `no-more`, `budget`, `betters-no-debt`, `failed` or `no-effect`.
    reason: &'static str,
    why: String,
    /// All changes of the trial, with those that it needs.
    with: Vec<ChangeDocument>,
    /// What it brings on NEW alone, with those that it needs.
    alone: TrialDocument,
}

/// A candidate that was not considered.
#[derive(Serialize, JsonSchema)]
struct DroppedDocument {
    /// Absent for a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    subject: String,
    /// `not-compiled`, `in-new`, or another reason in words.
    why: String,
}

#[derive(Serialize, JsonSchema)]
struct CandidatesDocument {
    /// A range, a mailbox or a directory.
    source: String,
    count: usize,
    not_compiled: usize,
    in_new: usize,
    dropped_otherwise: usize,
    /// Apply or build nowhere.
    failed: usize,
    tried_alone: usize,
    dropped: Vec<DroppedDocument>,
}

#[derive(Serialize, JsonSchema)]
struct MeasuringDocument {
    machine: String,
    config: String,
    suite: String,
    seeds: Vec<u64>,
}

#[derive(Serialize, JsonSchema)]
struct CostDocument {
    /// Built in this session or an earlier one.
    kernels: usize,
    builds_in_this_session: usize,
    images: usize,
    seconds: u64,
}

#[derive(Serialize, JsonSchema)]
struct BranchDocument {
    repository: String,
    name: String,
    tip: String,
}

/// Causes of regressions from BASELINE to NEW, and the smallest set of patches that repays them.
#[derive(Serialize, JsonSchema)]
struct StabiliseDocument {
    schema_version: u32,
    /// The result in one sentence.
    result: String,
    baseline: EndDocument,
    new: EndDocument,
    /// Where both part, if BASELINE is no ancestor of NEW.
    #[serde(skip_serializing_if = "Option::is_none")]
    parted_at: Option<EndDocument>,
    /// Why BASELINE or NEW cannot be measured: then nothing was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    unmeasurable: Option<FailureDocument>,
    /// Whether the budget ended the search.
    is_cut: bool,
    rows: Vec<RowDocument>,
    skipped_rows: Vec<SkippedDocument>,
    debts: Vec<DebtDocument>,
    causes: Vec<CauseDocument>,
    series: Vec<PatchDocument>,
    /// What the series brings against NEW.
    effects: Vec<EffectDocument>,
    /// Rows that the series makes worse than NEW.
    worse: Vec<EffectDocument>,
    not_taken: Vec<NotTakenDocument>,
    candidates: CandidatesDocument,
    measuring: MeasuringDocument,
    cost: CostDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<BranchDocument>,
    command: String,
}

/// Returns the JSON document of a stabilisation.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn json(report: &Report<'_>) -> Result<String, RenderError> {
    let outcome = report.outcome;
    let numbered = (1..).zip(&outcome.series);
    write_json(&StabiliseDocument {
        schema_version: SCHEMA_VERSION,
        result: report.result(),
        baseline: end(&report.baseline),
        new: end(&report.new),
        parted_at: report.parted_at.as_ref().map(end),
        unmeasurable: outcome
            .ends
            .as_ref()
            .map(|failure| report.failure_document(failure)),
        is_cut: outcome.is_cut,
        rows: rows(report),
        skipped_rows: skipped_rows(report),
        debts: outcome.debts.iter().map(|debt| report.debt(debt)).collect(),
        causes: outcome
            .causes
            .iter()
            .map(|cause| report.cause(cause))
            .collect(),
        series: numbered
            .map(|(number, change)| report.patch(number, *change))
            .collect(),
        effects: report.effect_documents(&outcome.effects),
        worse: report.effect_documents(&outcome.worse),
        not_taken: report
            .not_taken()
            .iter()
            .map(|not_taken| report.not_taken_document(not_taken))
            .collect(),
        candidates: candidates(report),
        measuring: MeasuringDocument {
            machine: report.measuring.machine.clone(),
            config: report.measuring.config.clone(),
            suite: report.measuring.suite.clone(),
            seeds: report.measuring.seeds.clone(),
        },
        cost: CostDocument {
            kernels: report.cost.kernels,
            builds_in_this_session: report.cost.builds,
            images: report.cost.images,
            seconds: report.cost.seconds,
        },
        branch: report.branch.as_ref().map(|branch| BranchDocument {
            repository: branch.repository.clone(),
            name: branch.name.clone(),
            tip: branch.tip.clone(),
        }),
        command: report.command.clone(),
    })
}

/// Returns the schema of that document.
#[must_use]
pub fn schema() -> Schema {
    schema_of::<StabiliseDocument>("marvin stabilise")
}

fn end(end: &End) -> EndDocument {
    EndDocument {
        name: end.name.clone(),
        commit: end.commit.clone(),
    }
}

fn known(commit: &str) -> Option<String> {
    (!commit.is_empty()).then(|| commit.to_owned())
}

fn rows(report: &Report<'_>) -> Vec<RowDocument> {
    let mut rows = Vec::new();
    for row in &report.rows {
        rows.push(RowDocument {
            name: row.name.clone(),
            unit: row.unit.clone(),
            margin_percent: row.margin_percent,
        });
    }
    rows
}

fn skipped_rows(report: &Report<'_>) -> Vec<SkippedDocument> {
    let mut skipped = Vec::new();
    for row in &report.skipped {
        skipped.push(SkippedDocument {
            name: row.name.clone(),
            why: row.why.clone(),
        });
    }
    skipped
}

fn candidates(report: &Report<'_>) -> CandidatesDocument {
    let counts = report.candidate_counts();
    let mut dropped = Vec::new();
    for candidate in &report.candidates {
        let why = match &candidate.dropped {
            None => continue,
            Some(Dropped::NotCompiled) => "not-compiled".to_owned(),
            Some(Dropped::InNew) => "in-new".to_owned(),
            Some(Dropped::Other(why)) => why.clone(),
        };
        let NamedCommit { commit, subject } = &candidate.named;
        dropped.push(DroppedDocument {
            commit: known(commit),
            subject: subject.clone(),
            why,
        });
    }
    CandidatesDocument {
        source: report.source.clone(),
        count: counts.all,
        not_compiled: counts.not_compiled,
        in_new: counts.in_new,
        dropped_otherwise: counts.dropped_otherwise,
        failed: counts.failed,
        tried_alone: counts.tried,
        dropped,
    }
}

impl Report<'_> {
    fn change(&self, change: Change) -> ChangeDocument {
        let named = self.named(change);
        let (kind, number) = match change {
            Change::Apply(number) => ("apply", number),
            Change::Revert(point) => ("revert", point),
        };
        ChangeDocument {
            kind,
            number,
            commit: known(&named.commit),
            subject: named.subject,
        }
    }

    fn effect_documents(&self, effects: &[Effect]) -> Vec<EffectDocument> {
        effects
            .iter()
            .map(|effect| EffectDocument {
                row: self.row(effect.row),
                percent: effect.percent,
            })
            .collect()
    }

    fn failure_document(&self, failure: &Failure) -> FailureDocument {
        match failure {
            Failure::Conflict { change, files } => FailureDocument {
                kind: "conflict",
                change: Some(self.change(*change)),
                files: files.clone(),
                error: String::new(),
            },
            Failure::DoesNotBuild(error) => FailureDocument {
                kind: "does-not-build",
                change: None,
                files: Vec::new(),
                error: error.clone(),
            },
            Failure::DoesNotRun(error) => FailureDocument {
                kind: "does-not-run",
                change: None,
                files: Vec::new(),
                error: error.clone(),
            },
        }
    }

    fn trial(&self, trial: &Availability<Vec<Effect>, Failure>) -> TrialDocument {
        match trial {
            Availability::Available(effects) => TrialDocument {
                effects: self.effect_documents(effects),
                failure: None,
            },
            Availability::Unavailable(failure) => TrialDocument {
                effects: Vec::new(),
                failure: Some(self.failure_document(failure)),
            },
        }
    }

    fn debt(&self, debt: &Debt) -> DebtDocument {
        let repayment = match self.repayment(debt) {
            Repayment::Repaid => "repaid",
            Repayment::Partly => "partly",
            Repayment::Unpaid => "unpaid",
            Repayment::Unknown => "unknown",
        };
        DebtDocument {
            row: self.row(debt.row),
            percent: debt.percent,
            explained_percent: debt.explained_percent,
            left_percent: debt.left_percent,
            repayment,
            causes: self
                .causes_of(debt.row)
                .iter()
                .map(|cause| cause.point)
                .collect(),
        }
    }

    fn cause(&self, cause: &Cause) -> CauseDocument {
        let named = self.point(cause.point);
        CauseDocument {
            point: cause.point,
            first_point: cause.first,
            commit: known(&named.commit),
            subject: named.subject,
            effects: self.effect_documents(&cause.effects),
            reverted: cause.reverted.as_ref().map(|reverted| self.trial(reverted)),
        }
    }

    fn patch(&self, number: usize, change: Change) -> PatchDocument {
        let unit = self.unit_in_series(change);
        PatchDocument {
            change: self.change(change),
            alone: unit.map(|unit| self.trial(&unit.alone)),
            in_series: unit
                .map(|unit| self.effect_documents(&unit.in_series))
                .unwrap_or_default(),
            needs: self.needs(change),
            needed_by: self.needed_by(change),
            is_only_needed: self.is_only_needed(change),
            broken_step: self
                .outcome
                .broken_steps
                .get(&number)
                .map(|failure| self.failure_document(failure)),
        }
    }

    fn not_taken_document(&self, not_taken: &NotTaken<'_>) -> NotTakenDocument {
        let reason = match &not_taken.why {
            WhyNot::Harms(_) => "harms",
            WhyNot::NoMore => "no-more",
            WhyNot::Budget => "budget",
            WhyNot::BettersNoDebt => "betters-no-debt",
            WhyNot::Failed(_) => "failed",
            WhyNot::NoEffect => "no-effect",
        };
        let unit = not_taken.unit;
        let with = unit.map_or(&[][..], |unit| &unit.changes);
        let alone = match (not_taken.unit, &not_taken.why) {
            (Some(unit), _) => self.trial(&unit.alone),
            (None, WhyNot::Failed(failure)) => TrialDocument {
                effects: Vec::new(),
                failure: Some(self.failure_document(failure)),
            },
            (None, _) => TrialDocument {
                effects: Vec::new(),
                failure: None,
            },
        };
        NotTakenDocument {
            change: self.change(not_taken.change),
            reason,
            why: self.why_not_taken(not_taken),
            with: with.iter().map(|change| self.change(*change)).collect(),
            alone,
        }
    }
}

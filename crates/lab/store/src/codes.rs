//! The codes of the model's enums in columns: they never change, even if the model renames a
//! variant.
//!
//! An unknown code was written by a newer Marvin and is an error, never a guess.

use model::{
    Declared, Direction, FailureReason, MachineKind, Outcome, Stage, SubjectFailure, Triage,
    unit_named,
};
use rusqlite::types::{FromSql, FromSqlResult, Null, ToSqlOutput, ValueRef};

use crate::columns::UnknownCode;
use crate::database::{Failure, Row};

/// An enum without data, stored as a word.
pub(crate) struct Code<T>(pub(crate) T);

impl FromSql for Code<MachineKind> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?;
        word.parse()
            .map(Self)
            .map_err(|_| UnknownCode::error("kind of machine", word))
    }
}

pub(crate) fn triage(triage: Triage) -> &'static str {
    match triage {
        Triage::Real => "real",
        Triage::Apparent => "apparent",
        Triage::TradeOff => "trade-off",
        Triage::Fixed => "fixed",
        Triage::Ignored => "ignored",
    }
}

impl FromSql for Code<Triage> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(match value.as_str()? {
            "real" => Triage::Real,
            "apparent" => Triage::Apparent,
            "trade-off" => Triage::TradeOff,
            "fixed" => Triage::Fixed,
            "ignored" => Triage::Ignored,
            other => return Err(UnknownCode::error("outcome of a triage", other)),
        }))
    }
}

/// Returns a metric's declaration as one text: direction, margin, unit. Units may have spaces, so
/// they are last.
pub(crate) fn declared(declared: Option<&Declared>) -> ToSqlOutput<'static> {
    declared.map_or_else(|| Null.into(), |declared| declared_text(declared).into())
}

pub(crate) fn declared_text(declared: &Declared) -> String {
    let Declared {
        unit,
        direction,
        margin_percent,
    } = declared;
    let direction = match direction {
        Some(Direction::LowerIsBetter) => "lower",
        Some(Direction::HigherIsBetter) => "higher",
        None => "unknown",
    };
    format!("{direction} {margin_percent} {unit}")
}

impl FromSql for Code<Declared> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let wrong = || UnknownCode::error("declaration of a metric", text);
        let mut fields = text.splitn(3, ' ');
        let direction = fields.next();
        let margin = fields.next();
        let unit = fields.next();
        let direction = match direction.ok_or_else(wrong)? {
            "lower" => Some(Direction::LowerIsBetter),
            "higher" => Some(Direction::HigherIsBetter),
            "unknown" => None,
            _ => return Err(wrong()),
        };
        let margin_percent: f64 = margin
            .and_then(|margin| margin.parse().ok())
            .ok_or_else(wrong)?;
        let unit = unit_named(unit.ok_or_else(wrong)?);
        Ok(Self(Declared {
            unit,
            direction,
            margin_percent,
        }))
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Boot => "boot",
        Stage::Settle => "settle",
        Stage::Restore => "restore",
        Stage::Workload => "workload",
        Stage::Results => "results",
    }
}

impl FromSql for Code<Stage> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(match value.as_str()? {
            "boot" => Stage::Boot,
            "settle" => Stage::Settle,
            "restore" => Stage::Restore,
            "workload" => Stage::Workload,
            "results" => Stage::Results,
            other => return Err(UnknownCode::error("stage", other)),
        }))
    }
}

/// The columns of an outcome, borrowed for writing.
#[derive(Default)]
pub(crate) struct OutcomeColumns<'a> {
    pub(crate) outcome: &'static str,
    pub(crate) stage: Option<&'static str>,
    pub(crate) reason: Option<&'static str>,
    pub(crate) detail: Option<&'a str>,
    pub(crate) console_tail: Option<&'a str>,
}

impl<'a> OutcomeColumns<'a> {
    pub(crate) fn from_outcome(outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self {
                outcome: "completed",
                ..Self::default()
            },
            Outcome::Unsupported(what) => Self {
                outcome: "unsupported",
                detail: Some(what),
                ..Self::default()
            },
            Outcome::Failed(failure) => {
                let (reason, detail) = reason(&failure.reason);
                Self {
                    outcome: "failed",
                    stage: Some(stage(failure.stage)),
                    reason: Some(reason),
                    detail,
                    console_tail: Some(&failure.console_tail),
                }
            }
        }
    }
}

/// Reads an outcome from five neighbouring columns: outcome, stage, reason, detail, console_tail.
pub(crate) fn outcome(row: &Row<'_>, first: usize) -> Result<Outcome, Failure> {
    match row.get::<String>(first)?.as_str() {
        "completed" => Ok(Outcome::Completed),
        "unsupported" => Ok(Outcome::Unsupported(row.get(first + 3)?)),
        "failed" => Ok(Outcome::Failed(SubjectFailure {
            stage: row.get::<Code<Stage>>(first + 1)?.0,
            reason: read_reason(row, first + 2)?,
            console_tail: row.get(first + 4)?,
        })),
        other => Err(UnknownCode::error("outcome", other).into()),
    }
}

fn reason(reason: &FailureReason) -> (&'static str, Option<&str>) {
    match reason {
        FailureReason::DidNotBoot => ("did-not-boot", None),
        FailureReason::Lacks(what) => ("lacks", Some(what)),
        FailureReason::Panicked => ("panicked", None),
        FailureReason::Oopsed => ("oopsed", None),
        FailureReason::Hung => ("hung", None),
        FailureReason::OutOfMemory => ("out-of-memory", None),
        FailureReason::AgentDied(how) => ("agent-died", Some(how)),
        FailureReason::WorkloadFailed(what) => ("workload-failed", Some(what)),
        FailureReason::TooMuchOutput => ("too-much-output", None),
        FailureReason::BadStream(how) => ("bad-stream", Some(how)),
    }
}

fn read_reason(row: &Row<'_>, column: usize) -> Result<FailureReason, Failure> {
    let detail = || row.get::<String>(column + 1);
    Ok(match row.get::<String>(column)?.as_str() {
        "did-not-boot" => FailureReason::DidNotBoot,
        "lacks" => FailureReason::Lacks(detail()?),
        "panicked" => FailureReason::Panicked,
        "oopsed" => FailureReason::Oopsed,
        "hung" => FailureReason::Hung,
        "out-of-memory" => FailureReason::OutOfMemory,
        "agent-died" => FailureReason::AgentDied(detail()?),
        "workload-failed" => FailureReason::WorkloadFailed(detail()?),
        "too-much-output" => FailureReason::TooMuchOutput,
        "bad-stream" => FailureReason::BadStream(detail()?),
        other => return Err(UnknownCode::error("reason of a failure", other).into()),
    })
}

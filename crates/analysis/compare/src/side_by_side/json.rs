//! Comparisons side by side as JSON: the match of the rows, and the document of each comparison.

use std::borrow::Cow;

use model::{Uncertainty, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::{machines, words};
use crate::comparison::{ComparisonCell, ComparisonRow};
use crate::render::comparison::ratios::interval;
use crate::render::json::{Document as ComparisonDocument, document as comparison_document};
use crate::side_by_side::{MatchedRow, SideBySide};
use document::RenderError;

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    kind: &'static str,
    headlines: Vec<String>,
    /// The worst of all machines.
    conclusion: &'static str,
    difference: &'static str,
    ratio: &'static str,
    rows: Vec<MatchedRowDocument<'a>>,
    machines: Vec<MachineColumnDocument<'a>>,
}

/// A workload. Lists about machines and kernels have the order of `machines` and of their
/// comparisons' `others`.
#[derive(Serialize, JsonSchema)]
struct MatchedRowDocument<'a> {
    workload: &'a str,
    /// For each machine its values; null if it does not have the row.
    machines: Vec<Option<OwnRow<'a>>>,
    /// For each kernel after the base.
    agreements: Vec<AgreementDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct AgreementDocument<'a> {
    /// `agree`, `disagree`, `changed on some`, `unclear on some` or `measured on one`.
    agreement: &'static str,
    /// The machines that `changed on some`, `unclear on some` and `measured on one` are about.
    on: Vec<&'a str>,
    /// What usually explains a disagreement.
    explanations: Vec<ExplanationDocument>,
}

#[derive(Serialize, JsonSchema)]
struct ExplanationDocument {
    word: &'static str,
    sentence: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct OwnRow<'a> {
    machine: &'a str,
    unit: Cow<'static, str>,
    margin_percent: f64,
    base: Option<f64>,
    others: Vec<OwnCell>,
}

#[derive(Serialize, JsonSchema)]
struct OwnCell {
    value: Option<f64>,
    verdict: &'static str,
    reason: Option<String>,
    difference_percent: Option<f64>,
    ratio: Option<f64>,
    /// On noisy machines, the ends of the ratio's confidence interval of 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_high: Option<f64>,
    /// On noisy machines, the boots of the base and of this kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    boots: Option<[usize; 2]>,
    /// How many more boots of each kernel would probably decide an unclear row.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_boots: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct MachineColumnDocument<'a> {
    /// The machine's name, as the user typed it.
    machine: &'a str,
    /// The caveat for readers of its numbers.
    caution: &'static str,
    comparison: ComparisonDocument<'a>,
}

/// Returns the document's JSON schema.
#[must_use]
pub fn schema() -> schemars::Schema {
    document::schema_of::<Document<'_>>("marvin compare --on MACHINE,MACHINE")
}

/// Renders comparisons side by side as a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn json(side_by_side: &SideBySide) -> Result<String, RenderError> {
    document::write_json(&Document {
        schema_version: SCHEMA_VERSION,
        kind: "side-by-side",
        headlines: words::headlines(side_by_side),
        conclusion: side_by_side.conclusion().name(),
        difference: "percent of the base; positive is better",
        ratio: "above 1 is better",
        rows: side_by_side
            .rows()
            .iter()
            .map(|row| matched(side_by_side, row))
            .collect(),
        machines: machines(side_by_side)
            .map(|(machine, comparison)| MachineColumnDocument {
                machine,
                caution: comparison.base.machine.kind.caution(),
                comparison: comparison_document(comparison),
            })
            .collect(),
    })
}

fn matched<'a>(side_by_side: &'a SideBySide, row: &'a MatchedRow) -> MatchedRowDocument<'a> {
    let columns = side_by_side.columns();
    let mut machines = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let own = side_by_side.row(row, place);
        machines.push(own.map(|own| own_row(&column.machine, own)));
    }
    let mut agreements = Vec::new();
    for (kernel, agreement) in row.agreements.iter().enumerate() {
        let explanations = side_by_side.explanations(row, kernel);
        agreements.push(AgreementDocument {
            agreement: agreement.name(),
            on: agreement
                .machines()
                .iter()
                .map(|machine| columns[*machine].machine.as_str())
                .collect(),
            explanations: explanations
                .into_iter()
                .map(|explanation| ExplanationDocument {
                    word: explanation.name(),
                    sentence: explanation.sentence(),
                })
                .collect(),
        });
    }
    MatchedRowDocument {
        workload: &row.workload.name,
        machines,
        agreements,
    }
}

fn own_row<'a>(machine: &'a str, row: &ComparisonRow) -> OwnRow<'a> {
    OwnRow {
        machine,
        unit: row.unit.name(),
        margin_percent: row.margin_percent,
        base: row.base.value,
        others: row.cells.iter().map(own_cell).collect(),
    }
}

fn own_cell(cell: &ComparisonCell) -> OwnCell {
    let ends = interval(cell);
    let (reason, more_boots) = match &cell.compared.verdict {
        Verdict::Unclear(why @ Uncertainty::Noise { more_runs }) => {
            (Some(why.to_string()), *more_runs)
        }
        Verdict::Unclear(why) => (Some(why.to_string()), None),
        Verdict::Better | Verdict::Worse | Verdict::Same => (None, None),
    };
    OwnCell {
        value: cell.measured.value,
        verdict: cell.compared.verdict.name(),
        reason,
        difference_percent: cell.compared.difference_percent,
        ratio: cell.compared.ratio,
        ratio_low: ends.map(|ends| ends.min),
        ratio_high: ends.map(|ends| ends.max),
        boots: cell.rated.map(|rated| rated.rating.groups.into()),
        more_boots,
    }
}

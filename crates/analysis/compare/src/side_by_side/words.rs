//! Sentences about comparisons side by side: agreements, disagreements and what usually explains
//! them.

use std::collections::BTreeMap;

use model::{Verdict, sanitize_line};

use super::machines;
use crate::comparison::{Comparison, ComparisonCell};
use crate::side_by_side::{Agreement, Explanation, MatchedRow, SideBySide};
use document::Block;
use document::number::{count, interval, margin, signed_percent};

/// The widest interval in a sentence.
const INTERVAL: usize = 30;

impl Explanation {
    /// Its name in documents.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LessWorkMoreTime => "fewer instructions, more time",
            Self::MoreWorkLessTime => "more instructions, less time",
            Self::Times => "times disagree",
            Self::Work => "instructions disagree",
            Self::Events => "values disagree",
        }
    }

    /// Returns the usual causes, in a sentence.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::LessWorkMoreTime => {
                "Fewer instructions but more time: usual causes are cache and TLB misses, contention, idle states and a \
                 lower frequency; in a guest also exits and instructions that the host emulates."
            }
            Self::MoreWorkLessTime => {
                "More instructions but less time: usually the code misses caches, TLBs and branch predictions less, waits \
                 less, or lets the processor idle less; in a guest it may also leave the guest less often."
            }
            Self::Times => {
                "Less time on one machine and more on another: usual causes are cache sizes, the number of processors, \
                 devices and power management."
            }
            Self::Work => {
                "Fewer instructions on one machine and more on another: usual causes are features of the processor, the \
                 number of processors and the size of memory, to which kernels adapt."
            }
            Self::Events => {
                "Better on one machine and worse on another: usual causes are the size of memory, the number of processors \
                 and timing."
            }
        }
    }
}

impl Agreement {
    /// Its name in documents.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Disagree => "disagree",
            Self::ChangedOn(_) => "changed on some",
            Self::UnclearOn(_) => "unclear on some",
            Self::MeasuredOn(_) => "measured on one",
        }
    }

    /// Returns the machines that it names.
    pub(super) fn machines(&self) -> &[usize] {
        match self {
            Self::Agree | Self::Disagree => &[],
            Self::ChangedOn(machines) | Self::UnclearOn(machines) => machines,
            Self::MeasuredOn(machine) => std::slice::from_ref(machine),
        }
    }
}

/// Returns the headline, one for each kernel after the base: `6.12 against 6.1 on exact, vm: 7
/// rows: 5 agree, …`.
#[must_use]
pub fn headlines(side_by_side: &SideBySide) -> Vec<String> {
    let names: Vec<String> = machines(side_by_side)
        .map(|(machine, _)| sanitize_line(machine))
        .collect();
    let Some((_, first)) = machines(side_by_side).next() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (kernel, other) in first.others.iter().enumerate() {
        let sides = format!("{} against {}", other.kernel.title, first.base.title);
        let agreements = agreements(side_by_side, kernel);
        lines.push(format!("{sides} on {}: {agreements}", join(&names)));
    }
    lines
}

/// Returns how many rows agree and disagree: `7 rows: 5 agree, 1 disagrees, 1 measured on exact
/// only`.
pub(super) fn agreements(side_by_side: &SideBySide, kernel: usize) -> String {
    let mut counts: BTreeMap<&Agreement, usize> = BTreeMap::new();
    for agreement in side_by_side
        .rows()
        .iter()
        .filter_map(|row| row.agreements.get(kernel))
    {
        *counts.entry(agreement).or_default() += 1;
    }
    let mut parts: Vec<String> = Vec::new();
    for (agreement, number) in counts {
        let names: Vec<String> = agreement
            .machines()
            .iter()
            .map(|machine| sanitize_line(&side_by_side.columns()[*machine].machine))
            .collect();
        let machines = join(&names);
        parts.push(match agreement {
            Agreement::Agree => {
                format!("{number} {}", if number == 1 { "agrees" } else { "agree" })
            }
            Agreement::Disagree => format!(
                "{number} {}",
                if number == 1 { "disagrees" } else { "disagree" }
            ),
            Agreement::ChangedOn(_) => format!("{number} changed on {machines} only"),
            Agreement::UnclearOn(_) => format!("{number} unclear on {machines}"),
            Agreement::MeasuredOn(_) => format!("{number} measured on {machines} only"),
        });
    }
    let rows = count(side_by_side.rows().len(), "row");
    if parts.is_empty() {
        rows
    } else {
        format!("{rows}: {}", parts.join(", "))
    }
}

fn join(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Returns the rows on which machines disagree, and what usually explains it: each explanation
/// once.
pub(super) fn disagreements(side_by_side: &SideBySide) -> Vec<Block> {
    let kernels: Vec<&str> = side_by_side
        .columns()
        .first()
        .map(|column| {
            column
                .comparison
                .others
                .iter()
                .map(|other| other.kernel.title.as_str())
                .collect()
        })
        .unwrap_or_default();
    let mut found: BTreeMap<Explanation, Vec<String>> = BTreeMap::new();
    for row in side_by_side.rows() {
        for (kernel, title) in kernels.iter().enumerate() {
            let of = if kernels.len() > 1 {
                format!(" ({title})")
            } else {
                String::new()
            };
            let item = format!(
                "{}{of}: {}",
                sanitize_line(&row.workload.name),
                verdicts(side_by_side, row, kernel)
            );
            for explanation in side_by_side.explanations(row, kernel) {
                found.entry(explanation).or_default().push(item.clone());
            }
        }
    }
    let heading = (!found.is_empty()).then(|| Block::Heading("Machines disagree".to_owned()));
    let blocks = found.into_iter().flat_map(|(explanation, items)| {
        [
            Block::Paragraph(explanation.sentence().to_owned()),
            Block::List(items),
        ]
    });
    heading.into_iter().chain(blocks).collect()
}

/// Returns the machines' verdicts on a row that are better or worse, with the differences.
fn verdicts(side_by_side: &SideBySide, row: &MatchedRow, kernel: usize) -> String {
    let mut verdicts = Vec::new();
    for (place, (machine, _)) in machines(side_by_side).enumerate() {
        let Some(own) = side_by_side.row(row, place) else {
            continue;
        };
        if let Some(cell) = own.cells.get(kernel)
            && matches!(cell.compared.verdict, Verdict::Better | Verdict::Worse)
        {
            verdicts.push(format!(
                "{} on {} {}",
                cell.compared.verdict.name(),
                sanitize_line(machine),
                size(cell, own.margin_percent)
            ));
        }
    }
    verdicts.join(", ")
}

/// Returns a difference with its interval, or with the margin if there is none.
fn size(cell: &ComparisonCell, margin_percent: f64) -> String {
    let difference = cell
        .compared
        .difference_percent
        .map(signed_percent)
        .unwrap_or_default();
    match cell
        .compared
        .spread_percent
        .filter(|_| cell.rated.is_some())
    {
        Some(ends) => format!("({difference}, 95%: {})", interval(ends, INTERVAL)),
        None => format!("({difference}, margin {})", margin(margin_percent)),
    }
}

/// Returns a text about each machine, with the machines' names; without them if it is the same for
/// all.
pub(super) fn grouped(
    side_by_side: &SideBySide,
    text: impl Fn(&Comparison) -> String,
) -> Vec<String> {
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for (machine, comparison) in machines(side_by_side) {
        let text = text(comparison);
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(sanitize_line(machine)),
            None if text.is_empty() => {}
            None => texts.push((text, vec![sanitize_line(machine)])),
        }
    }
    let is_one =
        matches!(texts.as_slice(), [(_, names)] if names.len() == side_by_side.columns().len());
    texts
        .into_iter()
        .map(|(text, names)| match is_one {
            true => text,
            false => format!("{}: {text}", join(&names)),
        })
        .collect()
}

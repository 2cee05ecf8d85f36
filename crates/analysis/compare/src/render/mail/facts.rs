//! The observations in a comparison, one sentence per fact, without guesses.

use model::Verdict;

use crate::comparison::{Comparison, ComparisonCell, ComparisonRow};
use crate::render::{counted, findings, words};
use document::number::{count, interval, margin, signed_percent, value};
use model::sanitize_line;

/// Most rows with a sentence, per verdict; the others are counted.
const TOLD_MAX: usize = 10;

/// Names in one sentence.
const NAMED_MAX: usize = 12;

/// Returns the facts: regressions, worst first; improvements, best first; unchanged rows; failures;
/// unclear rows; causes; other differences.
pub(super) fn facts(comparison: &Comparison) -> Vec<String> {
    if words::no_run_needed(comparison) {
        return vec!["The kernels are one image.".to_owned()];
    }
    let mut facts = Vec::new();
    for place in 0..comparison.others.len() {
        for verdict in [Verdict::Worse, Verdict::Better] {
            push_changes(&mut facts, comparison, place, &verdict);
        }
        same(&mut facts, comparison, place);
        facts.extend(
            words::geometric_mean(comparison, &comparison.others[place])
                .map(|mean| format!("Geometric mean of ratios: {mean}.")),
        );
    }
    facts.extend(
        comparison
            .failures
            .iter()
            .map(|failure| format!("Failed: {}.", findings::failure(comparison, failure))),
    );
    facts.extend(
        findings::unclear(comparison)
            .into_iter()
            .map(|of| format!("Unclear: {}: {}.", of.rows, of.reason)),
    );
    facts.extend(
        comparison
            .origins
            .iter()
            .map(|origin| sanitize_line(origin)),
    );
    environment(&mut facts, comparison);
    facts
}

fn push_changes(facts: &mut Vec<String>, comparison: &Comparison, place: usize, verdict: &Verdict) {
    let mut rows: Vec<&ComparisonRow> = comparison
        .rows
        .iter()
        .filter(|row| row.cells[place].compared.verdict == *verdict)
        .collect();
    rows.sort_by(|a, b| {
        let [a, b] = [a, b].map(|row| row.cells[place].compared.difference_percent);
        let [a, b] = [a, b].map(|percent| percent.unwrap_or_default().abs());
        b.total_cmp(&a)
    });
    for row in rows.iter().take(TOLD_MAX) {
        facts.push(of_row(comparison, row, place));
    }
    if rows.len() > TOLD_MAX {
        let more = &rows[TOLD_MAX..];
        facts.push(format!(
            "{} more {} {}: {}.",
            more.len(),
            are(more.len()),
            verdict.name(),
            names(more)
        ));
    }
}

/// Describes one row: the difference, its certainty, both values, and the parts if it was counted.
fn of_row(comparison: &Comparison, row: &ComparisonRow, place: usize) -> String {
    let cell = &row.cells[place];
    let of = if comparison.others.len() > 1 {
        format!(
            " on {}",
            sanitize_line(&comparison.others[place].kernel.title)
        )
    } else {
        String::new()
    };
    let size = cell
        .compared
        .difference_percent
        .map_or_else(String::new, |percent| {
            format!(": {}", signed_percent(percent))
        });
    let mut parts = vec![format!(
        "{}{of} is {}{size}{}",
        sanitize_line(&row.workload.name),
        cell.compared.verdict.name(),
        certainty(cell)
    )];
    if let (Some(base), Some(new)) = (row.base.value, cell.measured.value) {
        parts.push(format!(
            ", {} to {} {}",
            value(base, 15),
            value(new, 15),
            row.unit
        ));
    }
    parts.push(".".to_owned());
    parts.extend(apart(comparison, row, place));
    parts.concat()
}

/// Describes the parts of a difference, if it was counted.
fn apart(comparison: &Comparison, row: &ComparisonRow, place: usize) -> Option<String> {
    let name = match comparison.others.len() {
        1 => row.workload.name.to_string(),
        _ => format!(
            "{}, {}",
            row.workload.name, comparison.others[place].kernel.title
        ),
    };
    let apart = counted::apart(comparison)
        .into_iter()
        .find(|apart| apart.name == name)?;
    Some(format!(
        " Kernel {}, user code {}; ticks and other tasks, which are not in it, {}.",
        signed_change(apart.kernel),
        signed_change(apart.user),
        signed_change(apart.deferred)
    ))
}

/// Returns the difference of two values, with its sign.
fn signed_change([base, new]: [f64; 2]) -> String {
    let sign = if new > base { "+" } else { "" };
    format!("{sign}{}", value(new - base, 15))
}

fn certainty(cell: &ComparisonCell) -> String {
    match (
        cell.compared.differences.len(),
        cell.compared.spread_percent,
    ) {
        (_, ends) if let Some(rated) = &cell.rated => {
            let (base, new) = rated.rating.groups;
            let ends = ends.map_or_else(String::new, |ends| {
                format!("95%: {}%; ", interval(ends, 16))
            });
            format!(" ({ends}{base} against {})", count(new, "run"))
        }
        (0 | 1, _) | (_, None) => " (one seed)".to_owned(),
        (seeds, Some(spread)) => {
            format!(" ({}% over {})", interval(spread, 16), count(seeds, "seed"))
        }
    }
}

fn same(facts: &mut Vec<String>, comparison: &Comparison, place: usize) {
    let rows: Vec<&ComparisonRow> = comparison
        .rows
        .iter()
        .filter(|row| row.cells[place].compared.verdict == Verdict::Same)
        .collect();
    let margins: Vec<f64> = rows.iter().map(|row| row.margin_percent).collect();
    let Some(widest) = stats::spread(&margins) else {
        return;
    };
    let of = if comparison.others.len() > 1 {
        format!(
            " on {}",
            sanitize_line(&comparison.others[place].kernel.title)
        )
    } else {
        String::new()
    };
    let number = rows.len();
    facts.push(format!(
        "{}{of} {} the same within {}: {}.",
        count(number, "workload"),
        are(number),
        margin(widest.max),
        names(&rows)
    ));
}

fn environment(facts: &mut Vec<String>, comparison: &Comparison) {
    let names: Vec<String> = comparison
        .environment
        .differences
        .iter()
        .map(|other| sanitize_line(&other.name))
        .collect();
    facts.push(
        if names.is_empty() && comparison.environment.silent.is_empty() {
            "The kernels' environments do not differ.".to_owned()
        } else if names.is_empty() {
            "What could be compared of the kernels' environments does not differ.".to_owned()
        } else {
            format!("Of the kernels' environments, {} differ.", names.join(", "))
        },
    );
    facts.extend(
        findings::silent(comparison)
            .map(|silent| format!("The environment is {}.", sanitize_line(&silent))),
    );
}

fn names(rows: &[&ComparisonRow]) -> String {
    let shown: Vec<String> = rows
        .iter()
        .take(NAMED_MAX)
        .map(|row| sanitize_line(&row.workload.name))
        .collect();
    let more = rows.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        format!("{} and {more} more", shown.join(", "))
    } else {
        shown.join(", ")
    }
}

fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

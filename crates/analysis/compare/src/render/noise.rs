//! Remarks on noisy runs, beside their verdicts: rank tests, and the kind of noise.

use stats::NoiseProfile;

use crate::comparison::{Comparison, Rated};
use document::cut_middle;
use document::number::count;
use model::sanitize_line;

/// Most named rows of one kind.
const ROWS_MAX: usize = 6;
/// The longest name of a row.
const NAME: usize = 48;

/// Returns the rank tests that agree with the ratings, in a sentence; `None` for runs without
/// noise.
pub(crate) fn ranks_that_agree(comparison: &Comparison) -> Option<String> {
    together(
        "Ranks of the runs (exact Mann-Whitney; Hodges-Lehmann shift)",
        ranks(comparison, true),
    )
}

/// Returns the reasons to doubt ratings; none for runs without noise.
pub(crate) fn doubts(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(together(
        "Ranks and rating do not agree; look at the runs before you believe either",
        ranks(comparison, false),
    ));
    notes.extend(together("Not noise as it should be", noise(comparison)));
    notes.extend(together(
        "More noise than other kernels had: rated without them",
        names_by(comparison, stats::Basis::Noisier),
    ));
    notes.extend(together(
        "Less noise than other kernels had: rated without them; `marvin history` shows which are loud",
        names_by(comparison, stats::Basis::Quieter),
    ));
    notes
}

fn together(head: &str, facts: Vec<String>) -> Option<String> {
    let more = facts.len().saturating_sub(ROWS_MAX);
    let more = if more > 0 {
        format!("; and {}", count(more, "more row"))
    } else {
        String::new()
    };
    let shown: Vec<String> = facts.into_iter().take(ROWS_MAX).collect();
    (!shown.is_empty()).then(|| format!("{head}: {}{more}.", shown.join("; ")))
}

/// Returns each rated cell, with the names of its row and its kernel.
fn find_rated(comparison: &Comparison) -> impl Iterator<Item = (String, &Rated)> {
    comparison.rows.iter().flat_map(move |row| {
        row.cells
            .iter()
            .enumerate()
            .filter_map(move |(kernel, cell)| {
                Some((
                    format_name(&row.workload.name, &comparison.others[kernel].kernel.title),
                    cell.rated.as_ref()?,
                ))
            })
    })
}

fn format_name(row: &str, kernel: &str) -> String {
    format!("{} on {kernel}", cut_middle(&sanitize_line(row), NAME))
}

/// Describes the rank tests: the rows that agree with the rating, or those that do not.
fn ranks(comparison: &Comparison, agrees: bool) -> Vec<String> {
    let mut texts = Vec::new();
    for (name, rated) in find_rated(comparison) {
        let Some(check) = rated.ranks.filter(|check| check.agrees == agrees) else {
            continue;
        };
        let percent = |log: f64| format!("{:+.2}%", log.exp_m1() * 100.0);
        let ends = check
            .ranks
            .interval
            .map_or_else(String::new, |(low, high)| {
                format!(", 95%: {} to {}", percent(low), percent(high))
            });
        let p = rated.rating.precision.map_or(1.0, |precision| precision.p);
        let beside = if agrees {
            String::new()
        } else {
            format!(" beside p = {p:.2e}")
        };
        texts.push(format!(
            "{name} {} (p = {:.2e}{beside}{ends})",
            percent(check.ranks.shift),
            check.ranks.p
        ));
    }
    texts
}

/// Returns the cells whose rating rests on this.
fn names_by(comparison: &Comparison, basis: stats::Basis) -> Vec<String> {
    let mut names = Vec::new();
    for (name, rated) in find_rated(comparison) {
        let precision = rated.rating.precision;
        if precision.is_some_and(|precision| precision.basis == basis) {
            names.push(name);
        }
    }
    names
}

fn noise(comparison: &Comparison) -> Vec<String> {
    let mut facts = Vec::new();
    for row in &comparison.rows {
        let cells = row.cells.iter().map(|cell| &cell.measured);
        for (kernel, measured) in comparison
            .kernels()
            .zip(std::iter::once(&row.base).chain(cells))
        {
            if let Some(remarks) = measured.noise.as_ref().and_then(profile) {
                facts.push(format!(
                    "{}: {remarks}",
                    format_name(&row.workload.name, &kernel.title)
                ));
            }
        }
    }
    facts
}

/// Describes a noise profile; `None` for plain noise.
#[must_use]
pub fn profile(noise: &NoiseProfile) -> Option<String> {
    let mut remarks = Vec::new();
    if let Some(apart) = noise.modes_apart {
        remarks.push(format!("two modes, {apart:.1} deviations apart"));
    }
    if noise.outliers > 0 {
        remarks.push(count(noise.outliers, "outlier"));
    }
    if noise.drifts {
        let way = if noise.drift > 0.0 { "up" } else { "down" };
        remarks.push(format!("drifts {way} from run to run"));
    }
    if noise.remembers {
        remarks.push("each run is like the one before".to_owned());
    }
    (!remarks.is_empty()).then(|| remarks.join(", "))
}

//! Remarks beside the table: why rows are unclear, how kernels failed, what differed.

use std::collections::HashMap;

use model::{Uncertainty, Verdict};

use crate::comparison::{Comparison, Failure};
use crate::environment::Difference;
use document::number::seed_list;
use model::sanitize_line;

/// One reason and the rows that are unclear because of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unclear {
    /// The rows: names, or a number if all are meant; with the kernel if there are several others.
    pub(crate) rows: String,
    pub(crate) reason: String,
}

/// Returns why rows are unclear, grouped by reason.
pub(crate) fn unclear(comparison: &Comparison) -> Vec<Unclear> {
    let mut places: HashMap<(usize, String), usize> = HashMap::new();
    let mut found: Vec<(usize, String, Vec<&str>)> = Vec::new();
    for (kernel, _) in comparison.others.iter().enumerate() {
        for row in &comparison.rows {
            let Verdict::Unclear(why) = &row.cells[kernel].compared.verdict else {
                continue;
            };
            let reason = sanitize_line(&reason_of(&row.workload.name, why));
            let place = *places.entry((kernel, reason.clone())).or_insert_with(|| {
                found.push((kernel, reason, Vec::new()));
                found.len() - 1
            });
            found[place].2.push(&row.workload.name);
        }
    }
    found
        .into_iter()
        .map(|(kernel, reason, names)| Unclear {
            rows: if comparison.others.len() > 1 {
                let title = &comparison.others[kernel].kernel.title;
                format!("{title}: {}", rows(comparison, &names))
            } else {
                rows(comparison, &names)
            },
            reason,
        })
        .collect()
}

/// Returns why a workload's row is unclear; where seeds disagree, with the state that they vary.
fn reason_of(workload: &str, why: &Uncertainty) -> String {
    match (why, model::layout_state(workload)) {
        (Uncertainty::SeedsDisagree { .. }, Some(state)) => {
            format!("{why}; seeds vary {}", state.words())
        }
        _ => why.to_string(),
    }
}

/// Returns the failed kernel and place, in a sentence: `6.12.117: hung (workload stage),
/// pipe-pingpong, seeds 1-5`.
pub(crate) fn failure(comparison: &Comparison, failure: &Failure) -> String {
    let title = comparison
        .kernels()
        .nth(failure.kernel)
        .map_or("", |kernel| kernel.title.as_str());
    let reason = sanitize_line(&failure.reason.to_string());
    format!(
        "{title}: {reason} ({} stage), {}",
        failure.stage,
        places(comparison, failure)
    )
}

fn places(comparison: &Comparison, failure: &Failure) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut seeds: HashMap<&str, Vec<u64>> = HashMap::new();
    for occurrence in &failure.occurrences {
        seeds
            .entry(&occurrence.workload)
            .or_insert_with(|| {
                names.push(&occurrence.workload);
                Vec::new()
            })
            .push(occurrence.seed);
    }
    let Some(first) = names.first().map(|name| &seeds[name]) else {
        return String::new();
    };
    if names.iter().all(|name| seeds[name] == *first) {
        return format!("{}, {}", rows(comparison, &names), seed_list(first));
    }
    let each: Vec<String> = names
        .iter()
        .map(|name| format!("{name} ({})", seed_list(&seeds[name])))
        .collect();
    each.join(", ")
}

fn rows(comparison: &Comparison, names: &[&str]) -> String {
    if names.len() > 2 && names.len() == comparison.rows.len() {
        format!("all {} workloads", names.len())
    } else {
        names.join(", ")
    }
}

/// Returns the values of a difference for people, one for each kernel.
pub(crate) fn values(
    comparison: &Comparison,
    difference: &Difference,
    width: usize,
) -> Vec<String> {
    let mut values: Vec<String> = difference
        .short_values(width)
        .iter()
        .map(|value| sanitize_line(value))
        .collect();
    for silent in &comparison.environment.silent {
        if let Some(value) = values.get_mut(*silent) {
            "(unknown)".clone_into(value);
        }
    }
    values
}

/// Names the kernels with an unknown environment, in a sentence.
pub(crate) fn silent(comparison: &Comparison) -> Option<String> {
    let titles: Vec<&str> = comparison
        .kernels()
        .enumerate()
        .filter(|(position, _)| comparison.environment.silent.contains(position))
        .map(|(_, kernel)| kernel.title.as_str())
        .collect();
    let why = if comparison.is_imported() {
        "the imported results do not describe it"
    } else {
        "no run got that far"
    };
    (!titles.is_empty()).then(|| format!("unknown for {}: {why}", titles.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::silent;
    use crate::fixtures::{seeds, three};

    #[test]
    fn imported_environment_is_not_described() {
        let mut comparison = three(&seeds(2));
        assert!(
            silent(&comparison)
                .unwrap()
                .ends_with(": no run got that far")
        );
        comparison.base.machine.kind = "imported".parse().unwrap();
        assert!(
            silent(&comparison)
                .unwrap()
                .ends_with(": the imported results do not describe it")
        );
    }
}

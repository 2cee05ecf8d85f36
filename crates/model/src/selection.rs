//! Finding a suite and choosing workloads of it by name or by group.

use std::collections::BTreeSet;

use crate::{SUITES, Suite, Workload};

/// A selection that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No workload and no group of that name.
    #[error("no workload or group `{0}`")]
    UnknownWorkload(String),
    /// Nothing was selected.
    #[error("no workload selected")]
    Nothing,
}

/// Returns the suite of that name.
#[must_use]
pub fn suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().copied().find(|suite| suite.name == name)
}

/// Returns the workloads of all suites, each once, in the order of the suites.
#[must_use]
pub fn workloads() -> Vec<&'static Workload> {
    let mut seen = BTreeSet::new();
    SUITES.iter().flat_map(|suite| suite.workloads).filter(|workload| seen.insert(workload.name)).collect()
}

/// Returns the group of a workload: what stands before the first hyphen of its name.
#[must_use]
pub fn group_of(workload: &Workload) -> &'static str {
    group_of_name(workload.name)
}

/// Returns the group that a name is of.
pub(crate) fn group_of_name(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

/// Returns the workloads of a suite that the words name, in the suite's order; all of them for no words.
///
/// A word is a workload's name or a group: `fault` stands for `fault-anon`, `fault-file-private` and so on.
///
/// # Errors
/// When a word names nothing, or the words are there but empty.
pub fn select(suite: &'static Suite, words: &[String]) -> Result<Vec<&'static Workload>, SelectionError> {
    let meant = |workload: &Workload, word: &str| workload.name == word || group_of(workload) == word;
    if let Some(word) = words.iter().find(|word| !suite.workloads.iter().any(|w| meant(w, word))) {
        return Err(if word.is_empty() {
            SelectionError::Nothing
        } else {
            SelectionError::UnknownWorkload(word.clone())
        });
    }
    Ok(suite.workloads.iter().filter(|w| words.is_empty() || words.iter().any(|word| meant(w, word))).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{SelectionError, group_of, select, suite, workloads};
    use crate::{IO, MICRO, MM, NET, RECLAIM, RMAP, SCHED, SUITES, Steadiness, Workload};

    fn names(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        select(&MICRO, &words).unwrap().iter().map(|w| w.name).collect()
    }

    #[test]
    fn a_group_stands_for_its_members() {
        let faults = names(&["fault"]);
        assert!(faults.len() > 1 && faults.iter().all(|name| name.starts_with("fault-")));
        assert_eq!(names(&["getppid", "getppid"]), ["getppid"]);
    }

    #[test]
    fn no_words_are_all_workloads_and_unknown_words_are_refused() {
        assert_eq!(names(&[]).len(), MICRO.workloads.len());
        assert_eq!(select(&MICRO, &["foult".into()]), Err(SelectionError::UnknownWorkload("foult".into())));
        assert_eq!(select(&MICRO, &[String::new()]), Err(SelectionError::Nothing));
    }

    #[test]
    fn names_fit_a_row_and_stand_for_one_workload() {
        for suite in SUITES {
            let mut seen = BTreeSet::new();
            for workload in suite.workloads {
                assert!(workload.name.len() <= 18, "{}", workload.name);
                assert!(seen.insert(workload.name), "{} twice in {}", workload.name, suite.name);
                let fewest = if workload.steadiness == Steadiness::Steady { 16 } else { 3 };
                assert!(workload.iterations >= fewest, "{}: one more than are used", workload.name);
                let lead = suite.workloads.iter().find(|lead| lead.name == workload.job().name).unwrap();
                let (metric, stresses) = (lead.metric, lead.stresses);
                assert_eq!(Workload { metric, stresses, ..workload.job() }, *lead, "{}", workload.name);
                assert!(!group_of(workload).is_empty());
                let first = workloads().into_iter().find(|known| known.name == workload.name).unwrap();
                assert_eq!(workload, first, "{}: one name, two declarations", workload.name);
            }
        }
        let declared: usize =
            [MICRO, MM, SCHED, NET, IO, RECLAIM, RMAP].iter().map(|suite| suite.workloads.len()).sum();
        assert_eq!(workloads().len(), declared, "a name is in two suites that declare");
    }

    #[test]
    fn what_is_made_after_an_older_test_says_so() {
        for suite in [MM, SCHED, NET, IO, RECLAIM, RMAP] {
            // Of our own are only those that reclaim on purpose.
            let old = |workload: &&Workload| !(workload.source.is_empty() && group_of(workload) == "reclaim");
            for Workload { name, source, .. } in suite.workloads.iter().filter(old) {
                assert!(source.contains("Kept: ") && source.contains("Differs: "), "{name}: {source}");
            }
        }
    }

    #[test]
    fn suites_are_found_by_their_names() {
        for known in SUITES {
            assert_eq!(suite(known.name), Some(*known));
        }
        assert_eq!(suite("macro"), None);
    }
}

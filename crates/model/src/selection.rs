//! Finding a suite, and choosing workloads of it and external tools by name or by group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::{SUITES, Suite, Workload};

/// An invalid selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is no suite with this name.
    #[error("no suite `{0}`")]
    UnknownSuite(String),
    /// There is no external tool with this name, and no workload of one.
    #[error("no tool `{0}`")]
    UnknownTool(String),
    /// There is no workload and no group with this name.
    #[error("no workload or group `{0}`")]
    UnknownWorkload(String),
    /// Nothing was selected.
    #[error("no workload selected")]
    Nothing,
}

/// The prefix of words that name an external tool.
pub const TOOL: &str = "tool:";

static NO_TOOLS: LazyLock<Arc<Suite>> =
    LazyLock::new(|| Suite::of("tools", "programs of the distribution, as their manifests say", []));

/// The available external tools.
#[derive(Debug, Clone)]
pub struct ToolRows {
    /// The rows of all tools, as a suite.
    pub suite: Arc<Suite>,
    /// The rows for each word: a tool, a workload of one, or one metric of that.
    pub words: BTreeMap<String, Vec<Arc<Workload>>>,
}

/// No tools.
impl Default for ToolRows {
    fn default() -> Self {
        Self { suite: Arc::clone(&NO_TOOLS), words: BTreeMap::new() }
    }
}

/// The selected workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The suite; if only tools are selected, the suite of the tools.
    pub suite: Arc<Suite>,
    /// The workloads, in the suite's order, then the tools.
    pub workloads: Vec<Arc<Workload>>,
}

impl Choice {
    /// Returns words that select the same workloads even if the suite or the tools grow.
    #[must_use]
    pub fn words(&self, tools: &ToolRows) -> Vec<String> {
        let is_tool = |workload: &Workload| tools.suite.workloads.iter().any(|row| row.name == workload.name);
        let word = |workload: &Workload| format!("{}{}", if is_tool(workload) { TOOL } else { "" }, workload.name);
        self.workloads.iter().map(|workload| word(workload)).collect()
    }
}

/// Selects workloads of a suite, and tools by words that begin with `tool:`. If the words name only tools, the suite is
/// theirs.
///
/// # Errors
/// If there is no such suite, workload or group.
pub fn choose(tools: &ToolRows, suite_name: &str, words: &[String]) -> Result<Choice, SelectionError> {
    let is_of_tools = suite_name == tools.suite.name;
    let (mut rows, mut others) = (BTreeSet::new(), Vec::new());
    for word in words {
        match word.strip_prefix(TOOL).or(is_of_tools.then_some(word)) {
            Some(name) => {
                let named = tools.words.get(name).ok_or_else(|| SelectionError::UnknownTool(name.to_owned()))?;
                rows.extend(named.iter().map(|row| &*row.name));
            }
            None => others.push(word.clone()),
        }
    }
    let is_named = |row: &&Arc<Workload>| rows.contains(&*row.name) || (is_of_tools && words.is_empty());
    let named = tools.suite.workloads.iter().filter(is_named).cloned();
    if is_of_tools || (others.is_empty() && !rows.is_empty()) {
        return Ok(Choice { suite: Arc::clone(&tools.suite), workloads: named.collect() });
    }
    let suite = suite(suite_name).ok_or_else(|| SelectionError::UnknownSuite(suite_name.to_owned()))?;
    Ok(Choice { suite: Arc::clone(suite), workloads: select(suite, &others)?.into_iter().chain(named).collect() })
}

/// Returns the suite with this name.
#[must_use]
pub fn suite(name: &str) -> Option<&'static Arc<Suite>> {
    SUITES.iter().find(|suite| suite.name == name)
}

/// Returns the workloads of all suites, each once, in the order of the suites.
#[must_use]
pub fn workloads() -> Vec<&'static Arc<Workload>> {
    let mut seen = BTreeSet::new();
    SUITES.iter().flat_map(|suite| &suite.workloads).filter(|workload| seen.insert(&*workload.name)).collect()
}

/// Returns the group of a workload: its name up to the first hyphen.
#[must_use]
pub fn group_of(workload: &Workload) -> &str {
    group_of_name(&workload.name)
}

/// Returns the group of a name.
pub(crate) fn group_of_name(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

/// A group whose members' names do not begin with it.
const SYSCALL: (&str, [&str; 2]) = ("syscall", ["getppid", "signal"]);

/// Returns the workloads of a suite that the words name, in the suite's order; without words, all.
///
/// A word is a workload's name or a group: `fault` stands for `fault-anon`, `fault-file-private` and so on, and
/// `syscall` for those of system calls alone.
///
/// # Errors
/// If there is no such workload or group, or the words are empty.
pub fn select(suite: &Suite, words: &[String]) -> Result<Vec<Arc<Workload>>, SelectionError> {
    let is_syscall = |workload: &Workload| SYSCALL.1.contains(&&*workload.name);
    let meant = |workload: &Workload, word: &str| {
        workload.name == word || group_of(workload) == word || (word == SYSCALL.0 && is_syscall(workload))
    };
    if let Some(word) = words.iter().find(|word| !suite.workloads.iter().any(|w| meant(w, word))) {
        return Err(if word.is_empty() {
            SelectionError::Nothing
        } else {
            SelectionError::UnknownWorkload(word.clone())
        });
    }
    let chosen = |workload: &&Arc<Workload>| words.is_empty() || words.iter().any(|word| meant(workload, word));
    Ok(suite.workloads.iter().filter(chosen).cloned().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::{Choice, SelectionError, ToolRows, choose, group_of, select, suite, workloads};
    use crate::{IO, MICRO, MM, NET, RECLAIM, RMAP, SCHED, SUITES, Steadiness, Suite, Workload};

    fn names(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        select(&MICRO, &words).unwrap().iter().map(|w| w.name.to_string()).collect()
    }

    #[test]
    fn a_group_stands_for_its_members() {
        let faults = names(&["fault"]);
        assert!(faults.len() > 1 && faults.iter().all(|name| name.starts_with("fault-")));
        assert_eq!(names(&["getppid", "getppid"]), ["getppid"]);
        assert_eq!(names(&["syscall"]), ["getppid", "signal"]);
    }

    #[test]
    fn empty_selection_is_all_and_unknown_is_refused() {
        assert_eq!(names(&[]).len(), MICRO.workloads.len());
        assert_eq!(select(&MICRO, &["foult".into()]), Err(SelectionError::UnknownWorkload("foult".into())));
        assert_eq!(select(&MICRO, &[String::new()]), Err(SelectionError::Nothing));
    }

    #[test]
    fn tools_are_selected_beside_suite_or_alone() {
        // Two workloads of the smallest suite take the place of tools.
        let [one, two] = [0, 1].map(|at| Arc::clone(&crate::SMOKE.workloads[at]));
        let suite = Suite { name: "tools", purpose: "", workloads: vec![Arc::clone(&one), Arc::clone(&two)] };
        let words =
            [("bench".to_owned(), vec![two.clone(), one.clone()]), ("one".to_owned(), vec![one.clone()])].into();
        let tools = ToolRows { suite: Arc::new(suite), words };
        let words_of = |choice: &Choice| choice.words(&tools);
        let chosen = |suite: &str, words: &[&str]| {
            choose(&tools, suite, &words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        let both = [&one, &two].map(|row| format!("tool:{}", row.name));
        let alone = chosen("micro", &["tool:bench", "tool:one"]).unwrap();
        assert_eq!((alone.suite.name, words_of(&alone)), ("tools", both.to_vec()));
        assert_eq!(chosen("tools", &[]).unwrap(), alone);
        assert_eq!(chosen("tools", &["bench"]).unwrap(), alone);
        let beside = chosen("mm", &["tool:one", &crate::MM.workloads[0].name]).unwrap();
        assert_eq!(beside.suite.name, "mm");
        assert_eq!(beside.workloads.last().unwrap().name, one.name);
        assert_eq!(chosen("macro", &[]), Err(SelectionError::UnknownSuite("macro".into())));
        assert_eq!(chosen("micro", &["tool:"]), Err(SelectionError::UnknownTool(String::new())));
        assert_eq!(chosen("tools", &["fork"]), Err(SelectionError::UnknownTool("fork".into())));
        let none = choose(&ToolRows::default(), "micro", &[]).unwrap();
        assert_eq!(none.workloads.len(), MICRO.workloads.len());
    }

    #[test]
    fn workload_names_fit_a_row_and_are_unique() {
        for suite in SUITES.iter() {
            let mut seen = BTreeSet::new();
            for workload in &suite.workloads {
                assert!(workload.name.len() <= 18, "{}", workload.name);
                assert!(seen.insert(&*workload.name), "{} twice in {}", workload.name, suite.name);
                let fewest = if workload.steadiness == Steadiness::Steady { 16 } else { 3 };
                assert!(workload.iterations >= fewest, "{}: one more than are used", workload.name);
                let lead = suite.workloads.iter().find(|lead| lead.name == workload.job().name).unwrap();
                let (metric, stresses) = (lead.metric.clone(), lead.stresses.clone());
                assert_eq!(Workload { metric, stresses, ..workload.job() }, **lead, "{}", workload.name);
                assert!(!group_of(workload).is_empty());
                let first = workloads().into_iter().find(|known| known.name == workload.name).unwrap();
                assert_eq!(workload, first, "{}: one name, two declarations", workload.name);
            }
        }
        let declared: usize =
            [&MICRO, &MM, &SCHED, &NET, &IO, &RECLAIM, &RMAP].iter().map(|suite| suite.workloads.len()).sum();
        assert_eq!(workloads().len(), declared, "a name is in two suites that declare");
    }

    #[test]
    fn workloads_made_after_tests_name_their_source() {
        for suite in [&MM, &SCHED, &NET, &IO, &RECLAIM, &RMAP] {
            // Of the workloads without a source test, only those of reclaim.
            let old = |workload: &&Arc<Workload>| !(workload.source.is_empty() && group_of(workload) == "reclaim");
            for workload in suite.workloads.iter().filter(old) {
                let Workload { name, source, .. } = &**workload;
                assert!(source.contains("Kept: ") && source.contains("Differs: "), "{name}: {source}");
            }
        }
    }

    #[test]
    fn suites_are_found_by_their_names() {
        for known in SUITES.iter() {
            assert_eq!(suite(known.name), Some(known));
        }
        assert_eq!(suite("macro"), None);
    }
}

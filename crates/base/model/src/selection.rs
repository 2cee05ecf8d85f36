//! Finding a suite, and choosing workloads of it and external tools by name or by group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::{MICRO, SUITES, Suite, Workload};

/// Why words select no workloads.
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
    /// An empty word.
    #[error("no workload selected")]
    Nothing,
}

/// The prefix of words that name an external tool.
pub const TOOL: &str = "tool:";

static NO_TOOLS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "tools",
        "programs of the distribution, as their manifests say",
        [],
    )
});

/// The available external tools.
#[derive(Debug, Clone)]
pub struct ToolRows {
    /// The rows of all tools, as a suite.
    pub suite: Arc<Suite>,
    /// The rows for each word: a tool, a workload of one, or one metric of that.
    pub terms: BTreeMap<String, Vec<Arc<Workload>>>,
}

impl Default for ToolRows {
    fn default() -> Self {
        Self {
            suite: Arc::clone(&NO_TOOLS),
            terms: BTreeMap::new(),
        }
    }
}

/// The workloads that words select, and the suite that is their home.
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
    pub fn terms(&self, tools: &ToolRows) -> Vec<String> {
        let mut terms = Vec::new();
        for workload in &self.workloads {
            let mut rows = tools.suite.workloads.iter();
            let is_tool = rows.any(|row| row.name == workload.name);
            let prefix = if is_tool { TOOL } else { "" };
            terms.push(format!("{prefix}{}", workload.name));
        }
        terms
    }
}

/// Selects workloads of a suite, and tools by words that begin with `tool:`. If the words name only
/// tools, the suite is theirs.
///
/// # Errors
/// If there is no such suite, workload or group.
pub fn choose(
    tools: &ToolRows,
    suite_name: &str,
    terms: &[String],
) -> Result<Choice, SelectionError> {
    let is_of_tools = suite_name == tools.suite.name;
    let mut rows = BTreeSet::new();
    let mut others = Vec::new();
    for word in terms {
        match word.strip_prefix(TOOL).or(is_of_tools.then_some(word)) {
            Some(name) => {
                let named = tools
                    .terms
                    .get(name)
                    .ok_or_else(|| SelectionError::UnknownTool(name.to_owned()))?;
                rows.extend(named.iter().map(|row| &*row.name));
            }
            None => others.push(word.clone()),
        }
    }
    let is_named =
        |row: &&Arc<Workload>| rows.contains(&*row.name) || (is_of_tools && terms.is_empty());
    let named = tools.suite.workloads.iter().filter(is_named).cloned();
    if is_of_tools || (others.is_empty() && !rows.is_empty()) {
        return Ok(Choice {
            suite: Arc::clone(&tools.suite),
            workloads: named.collect(),
        });
    }
    let suite =
        suite(suite_name).ok_or_else(|| SelectionError::UnknownSuite(suite_name.to_owned()))?;
    Ok(Choice {
        suite: Arc::clone(suite),
        workloads: select(suite, &others)?.into_iter().chain(named).collect(),
    })
}

/// Returns the suite with this name. `paths-mm` and the others of parts of the kernel are rows of
/// `paths`, and that is their suite.
#[must_use]
pub fn suite(name: &str) -> Option<&'static Arc<Suite>> {
    let mut suites = SUITES.iter();
    suites
        .find(|suite| suite.name == name)
        .or_else(|| crate::suites::part_suite(name))
}

/// Returns the workloads of all suites, each once, in the order of the suites.
#[must_use]
pub fn workloads() -> Vec<&'static Arc<Workload>> {
    let mut seen = BTreeSet::new();
    SUITES
        .iter()
        .flat_map(|suite| &suite.workloads)
        .filter(|workload| seen.insert(&*workload.name))
        .collect()
}

/// Finds a workload of any suite by its name, with any number of tasks.
#[must_use]
pub fn find_workload(name: &str) -> Option<Arc<Workload>> {
    SUITES.iter().find_map(|suite| suite.find(name))
}

/// Returns the suite that declares a workload: the first, as later ones select from others.
#[must_use]
pub fn suite_of(name: &str) -> Option<&'static Arc<Suite>> {
    SUITES.iter().find(|suite| suite.find(name).is_some())
}

/// Returns the suite to choose from where the user named none: the first that knows all of these
/// words, tools left out; else micro.
#[must_use]
pub fn usual_suite(terms: &[String]) -> &'static Arc<Suite> {
    let words: Vec<String> = terms
        .iter()
        .filter(|word| !word.starts_with(TOOL))
        .cloned()
        .collect();
    let mut suites = SUITES.iter();
    suites
        .find(|suite| select(suite, &words).is_ok())
        .unwrap_or(&MICRO)
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
/// A word is a workload's name or a group: `fault` stands for `fault-anon`, `fault-file-private`
/// and so on, and `syscall` for those of system calls alone.
///
/// # Errors
/// If there is no such workload or group, or the words are empty.
pub fn select(suite: &Suite, terms: &[String]) -> Result<Vec<Arc<Workload>>, SelectionError> {
    let is_known = |word: &str| {
        suite.workloads.iter().any(|w| is_meant(w, word)) || suite.find(word).is_some()
    };
    if let Some(word) = terms.iter().find(|word| !is_known(word)) {
        return Err(if word.is_empty() {
            SelectionError::Nothing
        } else {
            SelectionError::UnknownWorkload(word.clone())
        });
    }
    let mut chosen = Vec::new();
    for workload in &suite.workloads {
        if terms.is_empty() || terms.iter().any(|word| is_meant(workload, word)) {
            chosen.push(Arc::clone(workload));
        }
        let named = terms
            .iter()
            .filter(|word| **word != workload.name)
            .filter_map(|word| suite.find(word));
        for found in
            named.filter(|found| found.tasks.is_some() && found.series() == workload.series())
        {
            if !chosen.contains(&found) {
                chosen.push(found);
            }
        }
    }
    Ok(chosen)
}

/// Returns whether a word selects a workload: by its name, series or group.
fn is_meant(workload: &Workload, word: &str) -> bool {
    [&*workload.name, workload.series(), group_of(workload)].contains(&word)
        || (word == SYSCALL.0 && SYSCALL.1.contains(&&*workload.name))
}

/// Returns the numbers of tasks that show how workloads scale over so many processors: powers of
/// two, and all of them.
#[must_use]
pub fn task_counts(processors: u32) -> Vec<u32> {
    let powers = (0..u32::BITS)
        .map(|power| 1 << power)
        .take_while(|count| *count < processors);
    powers.chain([processors.max(1)]).collect()
}

/// Returns the workloads with each of these numbers of tasks. Those without such a parameter stay
/// as they are, and so do those that a word names with their number.
#[must_use]
pub fn in_tasks(
    workloads: &[Arc<Workload>],
    terms: &[String],
    counts: &[u32],
) -> Vec<Arc<Workload>> {
    let mut all: Vec<Arc<Workload>> = Vec::new();
    for workload in workloads {
        let is_named = terms.iter().any(|word| *word == workload.name);
        let mut series = Vec::new();
        if !is_named {
            let with_tasks = counts
                .iter()
                .filter_map(|count| workload.with_tasks(*count));
            series.extend(with_tasks.map(Arc::new));
        }
        if series.is_empty() {
            series.push(Arc::clone(workload));
        }
        all.extend(
            series
                .into_iter()
                .filter(|one| !all.iter().any(|known| known.name == one.name))
                .collect::<Vec<_>>(),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::{
        Choice, SelectionError, ToolRows, choose, find_workload, group_of, in_tasks, select, suite,
        suite_of, task_counts, usual_suite, workloads,
    };
    use crate::{
        CONTENTION, DISKS, FS, IO, MICRO, MM, NET, RECLAIM, REPORTS, RMAP, SCALE, SCHED,
        SUBSYSTEMS, SUITES, Steadiness, Suite, Workload,
    };

    fn names(terms: &[&str]) -> Vec<String> {
        let terms: Vec<String> = terms.iter().map(|w| (*w).to_owned()).collect();
        select(&MICRO, &terms)
            .unwrap()
            .iter()
            .map(|w| w.name.to_string())
            .collect()
    }

    #[test]
    fn suite_of_words_is_the_first_with_them() {
        let usual = |terms: &[&str]| {
            let terms: Vec<String> = terms.iter().map(|word| (*word).to_owned()).collect();
            usual_suite(&terms).name
        };
        assert_eq!(usual(&[]), MICRO.name);
        assert_eq!(usual(&["fork", "tool:sysbench"]), MICRO.name);
        assert_eq!(usual(&["btrfs-ram-create", "xfs-ram-link"]), FS.name);
        assert_eq!(usual(&["share-brk"]), CONTENTION.name);
        assert_eq!(usual(&["xfs-ram-link", "no-such-row"]), MICRO.name);
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
        assert_eq!(
            select(&MICRO, &["foult".into()]),
            Err(SelectionError::UnknownWorkload("foult".into()))
        );
        assert_eq!(
            select(&MICRO, &[String::new()]),
            Err(SelectionError::Nothing)
        );
    }

    fn scaling(terms: &[&str], counts: &[u32]) -> Vec<String> {
        let terms: Vec<String> = terms.iter().map(|word| (*word).to_owned()).collect();
        let chosen = select(&SCALE, &terms).unwrap();
        in_tasks(&chosen, &terms, counts)
            .iter()
            .map(|workload| workload.name.to_string())
            .collect()
    }

    #[test]
    fn scaling_workloads_come_with_each_count() {
        assert_eq!(
            scaling(&["fault-thr"], &[1, 2]),
            ["fault-thr-1", "fault-thr-2"]
        );
        assert_eq!(scaling(&["futex"], &[4]), ["futex-own-4", "futex-shared-4"]);
        assert_eq!(
            scaling(&["fault-thr-8", "fault-proc-1"], &[1, 2]),
            ["fault-thr-8", "fault-proc-1"]
        );
        assert_eq!(
            scaling(&["fault-thr", "fault-thr-2"], &[1, 2]),
            ["fault-thr-1", "fault-thr-2"]
        );
        assert_eq!(scaling(&[], &[1]).len(), SCALE.workloads.len());
        for wrong in [
            "fault-thr-0",
            "fault-thr-02",
            "fault-thr-+2",
            "fault-thr-5000",
            "fault-anon-2",
        ] {
            assert!(select(&SCALE, &[wrong.to_owned()]).is_err(), "{wrong}");
            assert_eq!(find_workload(wrong), None, "{wrong}");
        }
        assert_eq!(
            in_tasks(&select(&MICRO, &["getppid".into()]).unwrap(), &[], &[1, 2]).len(),
            1
        );
    }

    #[test]
    fn members_of_series_are_declared_workloads() {
        let four = find_workload("fault-thr-4").unwrap();
        assert_eq!(
            (four.tasks, four.series(), &*four.name),
            (Some(4), "fault-thr", "fault-thr-4")
        );
        assert_eq!(suite_of("fault-thr-4").unwrap().name, "scale");
        assert_eq!(suite_of("pft-thr-4").unwrap().name, "mm");
        let longest = SCALE
            .workloads
            .iter()
            .map(|workload| workload.series().len())
            .max()
            .unwrap();
        assert!(longest + "-4096".len() <= 18, "{longest}");
    }

    #[test]
    fn counts_are_powers_of_two_and_all() {
        assert_eq!(
            [1, 2, 6, 8].map(task_counts),
            [vec![1], vec![1, 2], vec![1, 2, 4, 6], vec![1, 2, 4, 8]]
        );
        assert_eq!(task_counts(0), [1]);
    }

    #[test]
    fn tools_are_selected_beside_suite_or_alone() {
        // Two workloads of the smallest suite take the place of tools.
        let [one, two] = [0, 1].map(|at| Arc::clone(&crate::SMOKE.workloads[at]));
        let suite = Suite {
            name: "tools",
            purpose: "",
            workloads: vec![Arc::clone(&one), Arc::clone(&two)],
        };
        let terms = [
            ("bench".to_owned(), vec![two.clone(), one.clone()]),
            ("one".to_owned(), vec![one.clone()]),
        ]
        .into();
        let tools = ToolRows {
            suite: Arc::new(suite),
            terms,
        };
        let terms_of = |choice: &Choice| choice.terms(&tools);
        let chosen = |suite: &str, terms: &[&str]| {
            choose(
                &tools,
                suite,
                &terms
                    .iter()
                    .map(|&word| word.to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let both = [&one, &two].map(|row| format!("tool:{}", row.name));
        let alone = chosen("micro", &["tool:bench", "tool:one"]).unwrap();
        assert_eq!(
            (alone.suite.name, terms_of(&alone)),
            ("tools", both.to_vec())
        );
        assert_eq!(chosen("tools", &[]).unwrap(), alone);
        assert_eq!(chosen("tools", &["bench"]).unwrap(), alone);
        let beside = chosen("mm", &["tool:one", &crate::MM.workloads[0].name]).unwrap();
        assert_eq!(beside.suite.name, "mm");
        assert_eq!(beside.workloads.last().unwrap().name, one.name);
        assert_eq!(
            chosen("macro", &[]),
            Err(SelectionError::UnknownSuite("macro".into()))
        );
        assert_eq!(
            chosen("micro", &["tool:"]),
            Err(SelectionError::UnknownTool(String::new()))
        );
        assert_eq!(
            chosen("tools", &["fork"]),
            Err(SelectionError::UnknownTool("fork".into()))
        );
        let none = choose(&ToolRows::default(), "micro", &[]).unwrap();
        assert_eq!(none.workloads.len(), MICRO.workloads.len());
    }

    #[test]
    fn workload_names_fit_a_row_and_are_unique() {
        for suite in SUITES.iter() {
            let mut seen = BTreeSet::new();
            for workload in &suite.workloads {
                assert!(workload.name.len() <= 18, "{}", workload.name);
                assert!(
                    seen.insert(&*workload.name),
                    "{} twice in {}",
                    workload.name,
                    suite.name
                );
                // Transfers are counted: the machine repeats them.
                let is_counted = suite.name == CONTENTION.name;
                let fewest = if is_counted {
                    8
                } else if workload.steadiness == Steadiness::Steady {
                    16
                } else {
                    3
                };
                assert!(
                    workload.iterations >= fewest,
                    "{}: one more than are used",
                    workload.name
                );
                let lead = suite
                    .workloads
                    .iter()
                    .find(|lead| lead.name == workload.job().name)
                    .unwrap();
                let metric = lead.metric.clone();
                let stresses = lead.stresses.clone();
                assert_eq!(
                    Workload {
                        metric,
                        stresses,
                        ..workload.job()
                    },
                    **lead,
                    "{}",
                    workload.name
                );
                assert!(!group_of(workload).is_empty());
                let first = workloads()
                    .into_iter()
                    .find(|known| known.name == workload.name)
                    .unwrap();
                assert_eq!(
                    workload, first,
                    "{}: one name, two declarations",
                    workload.name
                );
            }
        }
        let declared: usize = [
            &MICRO,
            &MM,
            &SCHED,
            &NET,
            &IO,
            &RECLAIM,
            &RMAP,
            &SCALE,
            &CONTENTION,
            &DISKS,
            &FS,
            &SUBSYSTEMS,
            &REPORTS,
        ]
        .iter()
        .map(|suite| suite.workloads.len())
        .sum();
        assert_eq!(
            workloads().len(),
            declared,
            "a name is in two suites that declare"
        );
    }

    #[test]
    fn workloads_made_after_tests_name_their_source() {
        for suite in [&MM, &SCHED, &NET, &IO, &RECLAIM, &RMAP] {
            // Of the workloads without a source test, only those of reclaim.
            let old = |workload: &&Arc<Workload>| {
                !(workload.source.is_empty() && group_of(workload) == "reclaim")
            };
            for workload in suite.workloads.iter().filter(old) {
                let Workload { name, source, .. } = &**workload;
                assert!(
                    source.contains("Kept: ") && source.contains("Differs: "),
                    "{name}: {source}"
                );
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

//! The files that monitors copy are listed in three places that cannot share code: the agent, which
//! interprets nothing; the model, which names them; and the tests of their parser. This test
//! compares the lists.

use std::collections::BTreeSet;
use std::error::Error;

/// The list, by its file and its first words.
const LISTS: [(&str, &str); 3] = [
    (
        "crates/guest/agent/src/bin/agent/monitors.rs",
        "const FILES: &[&str] = &[",
    ),
    (
        "crates/base/model/src/monitor.rs",
        "const PATHS: [(MonitorFile, &str); ",
    ),
    (
        "crates/lab/ingest/src/monitors/tests.rs",
        "const PATHS: [&str; ",
    ),
];

/// Returns the paths of a list, without those of threads, for which each list has another example.
fn listed(file: &str, beginning: &str) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let text = std::fs::read_to_string(tidy::root().join(file))?;
    let (_, rest) = text
        .split_once(beginning)
        .ok_or_else(|| format!("{file} has no `{beginning}`"))?;
    let (list, _) = rest
        .split_once("];\n")
        .and_then(|(list, _)| Some((list, list.find('"')?)))
        .ok_or("it does not end")?;
    let paths = list
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|path| path.starts_with("/proc/"));
    Ok(paths
        .filter(|path| !path.starts_with("/proc/1/"))
        .map(str::to_owned)
        .collect())
}

#[test]
fn the_lists_of_monitored_files_are_equal() -> Result<(), Box<dyn Error>> {
    let [agent, model, tests] = LISTS.map(|(file, beginning)| listed(file, beginning));
    let agent = agent?;
    let model = model?;
    let tests = tests?;
    assert!(agent.len() > 10, "the lists were not found: {agent:?}");
    assert_eq!(
        agent, model,
        "crates/guest/agent/src/bin/agent/monitors.rs FILES and crates/base/model/src/monitor.rs PATHS differ"
    );
    assert_eq!(
        model, tests,
        "crates/base/model/src/monitor.rs PATHS and crates/lab/ingest/src/monitors/tests.rs PATHS differ"
    );
    Ok(())
}

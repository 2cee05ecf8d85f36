//! `marvin import`: imports results of other suites.

use std::collections::BTreeMap;

use import::{ForeignSuite, Imported};
use model::BuildId;
use store::{Location, Store};

use super::stored::words_of;
use crate::answer::Answer;
use crate::cli::{Arguments, Foreign, Import};
use crate::exit::Exit;
use crate::home::{home, store};

pub(crate) fn import(arguments: &Arguments, command: &Import) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let suite = match command.suite {
        Foreign::Mmtests => ForeignSuite::Mmtests,
        Foreign::Lkp => ForeignSuite::Lkp,
    };
    let store = store(arguments)?;
    let imported = import::import(&home(arguments.home.as_deref())?, &store, suite, &command.folder)?;
    let exit = if imported.runs.is_empty() { Exit::Usage } else { Exit::Fine };
    let next = if imported.runs.is_empty() { String::new() } else { next_command(&store, &imported)? };
    answer.write(format_imported(&imported) + &next)?;
    Ok(exit)
}

/// Returns the command that compares the kernels; with one kernel, the one that shows its first run.
fn next_command(location: &Location, imported: &Imported) -> anyhow::Result<String> {
    let mut builds: Vec<BuildId> = Vec::new();
    for run in &imported.runs {
        if !builds.contains(&run.build) {
            builds.push(run.build.clone());
        }
    }
    if let [_] = &builds[..] {
        return Ok(format!("To show a run:\n  marvin show {}\n", imported.runs[0].id.short()));
    }
    let words = words_of(&Store::open_read_only(location)?, &builds)?;
    Ok(format!("To compare the kernels:\n  marvin report {}\n", words.join(" ")))
}

/// Lists imported runs, runs imported earlier, and skipped results.
fn format_imported(imported: &Imported) -> String {
    let mut lines: Vec<String> = imported
        .runs
        .iter()
        .map(|run| {
            let end = if run.known { "already imported, unchanged" } else { "imported" };
            format!("{} {} run {}: {} rows, {end}", run.id.short(), run.kernel, run.number, run.rows)
        })
        .collect();
    // Print the same reason once for many runs.
    let mut left: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (folder, one) in &imported.left_out {
        left.entry((&one.what, &one.why)).or_default().push(folder);
    }
    if !left.is_empty() {
        lines.push(format!("Skipped ({}; import.log of each run lists its own):", imported.left_out.len()));
    }
    for ((what, why), folders) in left {
        let of = match folders.as_slice() {
            [folder] => (*folder).to_owned(),
            [folder, rest @ ..] => format!("{folder} and {} more", rest.len()),
            [] => String::new(),
        };
        lines.push(format!("  {what}: {why} ({of})"));
    }
    if imported.runs.is_empty() {
        lines.push("No run imported.".to_owned());
    }
    lines.join("\n") + "\n"
}

//! Completions, man pages and the reference: everything generated from the command line's definition.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use model::{Clock, Metric, SUITES, Suite, Workload, floor_percent};

use crate::answer::Answer;
use crate::cli::{Arguments, Page};
use crate::exit::Exit;

pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "marvin", &mut text);
    Answer::open(None)?.write(&text)?;
    Ok(Exit::Fine)
}

pub(crate) fn man(folder: &Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    clap_mangen::generate_to(Arguments::command(), folder)
        .with_context(|| format!("cannot write man pages into {}", folder.display()))?;
    Ok(Exit::Fine)
}

pub(crate) fn reference(page: Page, folder: Option<&Path>) -> anyhow::Result<Exit> {
    let text = match page {
        Page::Schemas => return schemas(folder.unwrap_or(Path::new("."))),
        Page::Cli => cli(),
        Page::Workloads => workloads(),
        Page::Counters => report::render::monitors::dictionary(),
    };
    Answer::open(None)?.write(&text)?;
    Ok(Exit::Fine)
}

/// Writes the schema of each JSON document into its own file.
fn schemas(folder: &Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, schema) in report::render::schemas().into_iter().chain(history::schemas()) {
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        Answer::file("DIR", &folder.join(format!("{name}.json")))?.write(text)?;
    }
    Ok(Exit::Fine)
}

fn cli() -> String {
    let mut command = Arguments::command().term_width(100);
    command.build();
    let made = "Made by `marvin reference cli`; a test holds it to the program.";
    let mut text = format!("# Command line reference\n\n{made}\n");
    section(&mut command, "", &mut text);
    text
}

fn workloads() -> String {
    let mut text = format!(
        "# Workloads\n\nMade by `marvin reference workloads` from the declarations; a test holds it to them.\n\n\
         Each workload reports its cost: the median over its iterations without the first, in {} on the exact machine, \
         {}; differences up to {} % are no news. That a workload enters the kernel functions it is meant to exercise, \
         once per operation or more, is tested with kprobes in real kernels. All are exact: on the exact machine the \
         same kernel and seed give the same samples. The floor is how far the values of five seeds of one kernel lie \
         apart, in percent: a smaller difference needs five seeds that agree. The reclaim suite is chaotic: which page is \
         reclaimed decides what happens next, so a small cause may have a large effect; its margins are wide, and its \
         floor is the standard deviation of the five values.\n",
        Metric::COST.unit(Clock::Instructions),
        Metric::COST.direction,
        Metric::COST.margin_percent,
    );
    let mut shown = BTreeSet::new();
    for suite in SUITES.iter() {
        text.extend(["\n## ", suite.name, "\n\n", &capitalised(suite.purpose), ".\n\n"]);
        if suite.workloads.iter().all(|workload| shown.contains(&*workload.name)) {
            let names: Vec<String> = suite.workloads.iter().map(|workload| format!("`{}`", workload.name)).collect();
            text.extend(["These of the suites above: ", &names.join(", "), ".\n"]);
        } else {
            text.push_str(&table(suite));
        }
        shown.extend(suite.workloads.iter().map(|workload| &*workload.name));
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A table of a suite's workloads, and their sources below.
fn table(suite: &Suite) -> String {
    let rows: String = suite.workloads.iter().map(|workload| row(workload)).collect();
    let head = "| workload | stresses | one operation | operations per iteration | enters | floor |\n|---|---|---|---|---|---|\n";
    let mut sources: Vec<(&str, Vec<String>)> = Vec::new();
    for workload in suite.workloads.iter().filter(|workload| !workload.source.is_empty()) {
        let Workload { name, source, .. } = &**workload;
        match sources.iter_mut().find(|(known, _)| known == source) {
            Some((_, names)) => names.push(format!("`{name}`")),
            None => sources.push((source, vec![format!("`{name}`")])),
        }
    }
    let notes: String =
        sources.iter().map(|(source, names)| format!("- {}: after {source}.\n", names.join(", "))).collect();
    if notes.is_empty() { format!("{head}{rows}") } else { format!("{head}{rows}\n{notes}") }
}

fn row(workload: &Workload) -> String {
    let functions: Vec<String> = workload.exercises.iter().map(|names| format!("`{}`", names.join("` or `"))).collect();
    let functions = if functions.is_empty() { "none: it stays in user space".to_owned() } else { functions.join(", ") };
    let Workload { name, stresses, operation, operations, .. } = workload;
    let floor = floor_percent(name).map_or_else(String::new, |percent| format!("{percent} %"));
    format!("| `{name}` | {stresses} | {operation} | {operations} | {functions} | {floor} |\n")
}

fn section(command: &mut Command, parents: &str, text: &mut String) {
    let name = format!("{parents}{}", command.get_name());
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    for part in ["\n## ", &name, "\n\n```text\n", help.join("\n").trim_end(), "\n```\n"] {
        text.push_str(part);
    }
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        section(below, &format!("{name} "), text);
    }
}

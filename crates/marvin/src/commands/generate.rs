//! Completions, man pages and the reference: everything that is generated from the command line's definition.

use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use model::{MICRO, MachineKind, Metric, Workload};

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

pub(crate) fn reference(page: Page) -> anyhow::Result<Exit> {
    let text = match page {
        Page::Cli => cli(),
        Page::Workloads => workloads(),
        Page::Counters => report::render::monitors::dictionary(),
    };
    Answer::open(None)?.write(&text)?;
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
    let row = |workload: &Workload| {
        let functions: Vec<String> =
            workload.exercises.iter().map(|names| format!("`{}`", names.join("` or `"))).collect();
        let functions =
            if functions.is_empty() { "none: it stays in user space".to_owned() } else { functions.join(", ") };
        let Workload { name, stresses, operation, operations, .. } = workload;
        format!("| `{name}` | {stresses} | {operation} | {operations} | {functions} |\n")
    };
    let rows: String = MICRO.workloads.iter().map(row).collect();
    format!(
        "# Workloads\n\nMade by `marvin reference workloads` from the declarations; a test holds it to them.\n\n\
         The `{}` suite shows {}. Each workload reports its cost: the median over its iterations without the first, \
         in {} on the exact machine, {}; differences up to {} % are no news. That a workload enters the kernel \
         functions it is meant to exercise, once per operation or more, is tested with kprobes in real kernels.\n\n\
         | workload | stresses | one operation | operations per iteration | enters |\n|---|---|---|---|---|\n{rows}",
        MICRO.name,
        MICRO.purpose,
        Metric::COST.unit(MachineKind::Exact),
        Metric::COST.direction,
        Metric::COST.margin_percent,
    )
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

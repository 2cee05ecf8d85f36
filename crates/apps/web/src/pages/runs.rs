//! Runs: a list, and one run in full with its artifacts.

use askama::Template;
use history::History;
use model::{Build, Machine, Run, RunId};
use store::RunSummary;

use super::{Frame, Rendered, count, machine_name, render};

/// Limit on runs of the list.
pub(crate) const RUNS_MAX: usize = 250;

#[derive(Template)]
#[template(path = "runs.html")]
struct List {
    frame: Frame,
    headline: String,
    runs: Vec<Listed>,
}

struct Listed {
    id: String,
    href: String,
    kernel: String,
    suite: String,
    seed: u64,
    started: String,
    completed: String,
    machine: String,
}

/// Renders the newest runs.
pub(crate) fn runs(frame: Frame, history: &History, newest: &[RunSummary]) -> Rendered {
    let all = history.run_count();
    let listed = newest.iter().map(|run| Listed {
        id: run.id.short(),
        href: format!("r/{}/index.html", run.id.hex()),
        kernel: run.version.clone(),
        suite: run.suite.clone(),
        seed: run.seed,
        started: run.started_unix.date(),
        completed: format!(
            "{} of {}",
            run.completed,
            run.completed + run.unsupported + run.failed
        ),
        machine: machine_name(history, &run.machine),
    });
    let shown = if newest.len() < all {
        format!("The newest {} of {}", newest.len(), count(all, "run"))
    } else {
        count(all, "run")
    };
    render(&List {
        frame,
        headline: shown,
        runs: listed.collect(),
    })
}

#[derive(Template)]
#[template(path = "run.html")]
struct One {
    frame: Frame,
    artifacts: Vec<(String, String)>,
    omitted: Vec<(String, usize, String)>,
    text: String,
}

/// A run with its build and machine, and the names of its artifacts.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) run: Run,
    pub(crate) build: Build,
    pub(crate) machine: Machine,
    pub(crate) artifacts: Vec<String>,
    /// Those that this site does not have because of their size, with their bytes.
    pub(crate) omitted: Vec<(String, usize)>,
}

/// Returns the command that writes an artifact to a file.
pub(crate) fn get_artifact(run: &RunId, name: &str) -> String {
    format!(
        "marvin show {} --artifact {name} --output {name}",
        run.short()
    )
}

pub(crate) fn run(frame: Frame, shown: &Shown) -> Rendered {
    let text = compare::render::run(
        &compare::render::Shown {
            run: &shown.run,
            build: &shown.build,
            machine: &shown.machine,
            declared: &[],
            dumps: &[],
        },
        &document::Styles::plain(),
    );
    let artifacts = shown
        .artifacts
        .iter()
        .map(|name| (name.clone(), format!("r/{}/{name}", shown.run.id.hex())));
    let omitted = shown
        .omitted
        .iter()
        .map(|(name, size)| (name.clone(), size >> 20, get_artifact(&shown.run.id, name)))
        .collect();
    render(&One {
        frame,
        artifacts: artifacts.collect(),
        omitted,
        text,
    })
}

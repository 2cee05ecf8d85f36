//! `marvin monitors`: compares kernel counters during a workload.

use std::sync::Arc;

use document::{Styles, View};
use lab::{Lab, Measurement};
use model::{Build, Machine, Observation, Workload};
use monitors::{Monitored, Watched, heads};

use super::measure::{builds, kernel_name, open, suite, workloads};
use crate::answer::Answer;
use crate::cli::{Arguments, Format, Monitors};
use crate::exit::{Exit, WrongInput};
use crate::progress::Progress;

pub(crate) fn monitors(arguments: &Arguments, command: &Monitors) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let workloads = workloads(suite(&measure.suite)?, &measure.workload)?;
    if workloads.len() > 1 && matches!(command.format, Format::Html | Format::Json) {
        let text = "formats html and json take one workload: name it with --workload, or use --format text";
        return Err(WrongInput(text.to_owned()).into());
    }
    let names = command
        .kernels
        .iter()
        .map(|name| kernel_name(name))
        .collect::<Result<Vec<_>, _>>()?;
    let answer = Answer::open(command.output.as_deref())?;
    let lab = open(arguments, measure)?;
    let progress = Progress::new(arguments.quiet);
    let builds = builds(&lab, &names, &progress)?;
    progress.again("watching", workloads.len() * builds.len());
    let mut texts = Vec::new();
    let mut failed = false;
    for workload in workloads {
        let machine = &lab.machines(&[Arc::clone(&workload)])?[0];
        let seen = observe_kernels(&lab, &builds, &workload, command, &progress)?;
        let title = format!(
            "{}: {}, seed {}",
            workload.name, workload.stresses, command.seed
        );
        texts.push(match seen {
            Ok(seen) => render_observations(
                &title,
                machine,
                &builds,
                &seen,
                command,
                &answer.styles(arguments.color),
            )?,
            Err(why) => {
                failed = true;
                format!("{title}\n\n{why}\n")
            }
        });
    }
    progress.end();
    answer.write(texts.join("\n"))?;
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}

/// Runs a workload on each kernel; the inner error says why a kernel has no counters.
fn observe_kernels(
    lab: &Lab,
    builds: &[Build],
    workload: &Workload,
    command: &Monitors,
    progress: &Progress,
) -> anyhow::Result<Result<Vec<Observation>, String>> {
    let mut seen = Vec::new();
    for build in builds {
        match lab.observe(
            Measurement {
                build,
                workload,
                replicate: command.seed,
            },
            command.interval,
        )? {
            Ok(observation) => seen.push(observation),
            Err(why) => return Ok(Err(format!("{}: {why}", build.version))),
        }
        progress.one_more(&format!("{} {}", build.version, workload.name));
    }
    Ok(Ok(seen))
}

fn render_observations(
    title: &str,
    machine: &Machine,
    builds: &[Build],
    seen: &[Observation],
    command: &Monitors,
    styles: &Styles,
) -> anyhow::Result<String> {
    let kernels: Vec<_> = builds.iter().map(|build| (build, machine)).collect();
    let watched: Vec<Watched<'_>> = heads(&kernels)
        .into_iter()
        .zip(seen)
        .map(|(head, observation)| Watched { head, observation })
        .collect();
    let monitored = Monitored {
        subject: title.to_owned(),
        ..Monitored::new(&watched, Vec::new())
    };
    let view = View {
        style: command.style,
        verbose: command.verbose,
        ..View::default()
    };
    let document = monitors::render::document(&monitored, &view);
    Ok(match command.format {
        Format::Text => document.text(styles),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => monitors::render::json(&monitored)?,
    })
}

//! `marvin monitors`: compares kernel counters during a workload.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use document::{Style, Styles, View};
use lab::{Lab, Measurement};
use model::{Availability, Build, Machine, Observation, Workload};
use monitors::{Monitored, Watched, heads};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{find_builds, open_exact_lab};
use crate::options::{KERNELS, MeasureOptions, whole};
use crate::select::{find_suite, kernel_name_in, select_workloads};
use crate::session::{Format, Progress, Session};

const MONITORS_EXAMPLES: &str = "Examples:
  marvin monitors deb:6.1 deb:6.12 --workload fault-anon
  marvin monitors deb:6.1 deb:6.12 --workload file-create --interval 100 --format html -o counted.html";

/// `marvin monitors`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{MONITORS_EXAMPLES}"))]
pub(crate) struct MonitorsArguments {
    /// Kernels, baseline first
    #[arg(required = true, value_name = "KERNEL", add = completion::kernel())]
    pub(crate) kernels: Vec<String>,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seed: u64,

    /// Also sample the counters every MS milliseconds of guest time, for plots; 0: never
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = whole::<u64>(0, 3_600_000))]
    pub(crate) interval: u64,

    /// Row names and layout: marvin; mmtests as in MMTests today; 2013 as in Mel Gorman's mails of
    /// 2013
    #[arg(long, value_name = "STYLE", default_value = "marvin")]
    pub(crate) style: Style,

    /// Also show the rows that are zero on every kernel
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn monitors(session: &Session, command: &MonitorsArguments) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    measure.program.refuse("marvin monitors")?;
    let workloads = select_workloads(find_suite(measure.suite())?, &measure.workload)?;
    if workloads.len() > 1 && matches!(command.format, Format::Html | Format::Json) {
        let text = "formats html and json take one workload: name it with --workload, or use --format text";
        return Err(WrongInput(text.to_owned()).into());
    }
    let names = command
        .kernels
        .iter()
        .map(|name| kernel_name_in(name, measure.sources.tree.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    let answer = session.answer(command.output.as_deref())?;
    let lab = open_exact_lab(session, measure)?;
    let progress = session.progress();
    let builds = find_builds(&lab, &names, &progress)?;
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
            Availability::Available(seen) => {
                render_observations(&title, machine, &builds, &seen, command, &answer.styles())?
            }
            Availability::Unavailable(why) => {
                failed = true;
                format!("{title}\n\n{why}\n")
            }
        });
    }
    progress.end();
    answer.write(texts.join("\n"))?;
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}

/// Runs a workload on each kernel.
fn observe_kernels(
    lab: &Lab,
    builds: &[Build],
    workload: &Workload,
    command: &MonitorsArguments,
    progress: &Progress,
) -> anyhow::Result<Availability<Vec<Observation>>> {
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
            Availability::Available(observation) => seen.push(observation),
            Availability::Unavailable(why) => {
                return Ok(Availability::Unavailable(format!(
                    "{}: {why}",
                    build.version
                )));
            }
        }
        progress.one_more(&format!("{} {}", build.version, workload.name));
    }
    Ok(Availability::Available(seen))
}

fn render_observations(
    title: &str,
    machine: &Machine,
    builds: &[Build],
    seen: &[Observation],
    command: &MonitorsArguments,
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

//! `marvin show`: prints one run in full, or one of its artifacts.

use std::path::PathBuf;

use clap::Args;
use compare::render::Shown;
use document::write_json;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::select::find_run;
use crate::session::{ListFormat, Session};
use crate::views::RunDocument;

/// `marvin show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Run id, or its first characters
    #[arg(add = completion::run())]
    pub(crate) run: String,

    /// Print an artifact of the run instead, such as getppid.console; `list` lists them
    #[arg(long, alias = "artefact", value_name = "NAME")]
    pub(crate) artifact: Option<String>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ListFormat::Text, conflicts_with = "artifact")]
    pub(crate) format: ListFormat,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn show(session: &Session, command: &ShowArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(command.output.as_deref())?;
    let store = session.open_store_read_only()?;
    let id = find_run(&store, &command.run)?;
    let text = match command.artifact.as_deref() {
        Some("list") => store
            .artifact_names(&id)?
            .iter()
            .map(|name| format!("{name}\n"))
            .collect(),
        Some(name) if command.output.is_some() => {
            answer.write_bytes(&store.artifact(&id, name)?)?;
            return Ok(Exit::Fine);
        }
        Some(name) if lab::is_dump(name) => {
            return Err(WrongInput(format!(
                "{name} is not text: write it to a file with --output"
            ))
            .into());
        }
        Some(name) => String::from_utf8_lossy(&store.artifact(&id, name)?).into_owned(),
        None => {
            let run = store.run(&id)?;
            let build = store.build(&run.build)?;
            let machine = store.machine(&run.machine)?;
            let dumps: Vec<String> = store
                .artifact_names(&id)?
                .into_iter()
                .filter(|name| lab::is_dump(name))
                .collect();
            // Without their manifests, values of tools have no units.
            let tools = session.tools(&[]).unwrap_or_default();
            let declared = &tools.suite().workloads;
            let shown = Shown {
                run: &run,
                build: &build,
                machine: &machine,
                declared,
                dumps: &dumps,
            };
            match command.format {
                ListFormat::Text => {
                    let styles = answer.styles();
                    let page = compare::render::run(&shown, &styles);
                    let table = compare::scaling::table(&build, &machine, &[&run], &styles);
                    std::iter::once(page)
                        .chain(table)
                        .collect::<Vec<_>>()
                        .join("\n")
                }
                ListFormat::Json => write_json(&RunDocument::new(&shown))?,
            }
        }
    };
    answer.write(&text)?;
    Ok(Exit::Fine)
}

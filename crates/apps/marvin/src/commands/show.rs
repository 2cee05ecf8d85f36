//! `marvin show`: prints one run in full, or one of its artifacts.

use compare::render::Shown;
use document::write_json;
use model::RunId;
use store::{Store, StoreError};

use super::tools::known_tools;
use crate::answer::Answer;
use crate::cli::{Arguments, ListFormat, Show};
use crate::exit::{Exit, WrongInput};
use lists::RunDocument;

pub(crate) fn show(arguments: &Arguments, command: &Show) -> anyhow::Result<Exit> {
    let answer = Answer::open(command.output.as_deref())?;
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    let id = find_run(&store, &command.run)?;
    let text = match command.artefact.as_deref() {
        Some("list") => store
            .artefact_names(&id)?
            .iter()
            .map(|name| format!("{name}\n"))
            .collect(),
        Some(name) if command.output.is_some() => {
            answer.write_bytes(&store.artefact(&id, name)?)?;
            return Ok(Exit::Fine);
        }
        Some(name) if lab::is_dump(name) => {
            return Err(WrongInput(format!(
                "{name} is not text: write it to a file with --output"
            ))
            .into());
        }
        Some(name) => String::from_utf8_lossy(&store.artefact(&id, name)?).into_owned(),
        None => {
            let run = store.run(&id)?;
            let (build, machine) = (store.build(&run.build)?, store.machine(&run.machine)?);
            let dumps: Vec<String> = store
                .artefact_names(&id)?
                .into_iter()
                .filter(|name| lab::is_dump(name))
                .collect();
            // Without their manifests, values of tools have no units.
            let tools = known_tools(arguments, &[]).unwrap_or_default();
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
                    let styles = answer.styles(arguments.color);
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

/// Finds a run by the beginning of its id.
pub(super) fn find_run(store: &Store, text: &str) -> anyhow::Result<RunId> {
    store.find_run(text).map_err(|error| match error {
        StoreError::BadId(why) => WrongInput(format!("{why}; `marvin runs` lists the runs")).into(),
        other => other.into(),
    })
}

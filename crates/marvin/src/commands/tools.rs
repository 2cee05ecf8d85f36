//! `marvin tools`: the external tools that there are; and finding them, for the commands that run them.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use report::render::ListedTool;

use crate::answer::Answer;
use crate::cli::{Arguments, Tools};
use crate::exit::{Exit, WrongInput};
use crate::home::home;

/// Most bytes of a manifest that are read: more than one may have, so that it is refused rather than cut.
const MANIFEST_MAX: u64 = 128 << 10;

pub(crate) fn tools(arguments: &Arguments, command: &Tools) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let known = known_tools(arguments, &command.manifest)?;
    let packages: Vec<&str> = known.all().filter_map(|tool| tool.packages.first()).map(String::as_str).collect();
    // A host without apt can list them, and has no versions.
    let versions = kernel::package_versions(&packages).unwrap_or_default();
    let version = |tool: &model::Tool| versions.get(tool.packages.first()?).map(String::as_str);
    let listed: Vec<ListedTool<'_>> = known.all().map(|tool| ListedTool { tool, version: version(tool) }).collect();
    let text = report::render::tools(&listed, &answer.styles(arguments.color));
    answer.write(&text)?;
    Ok(Exit::Fine)
}

/// Returns the tools that come with Marvin, those of the home, and those of these files.
pub(crate) fn known_tools(arguments: &Arguments, manifests: &[PathBuf]) -> anyhow::Result<lab::Tools> {
    let mut files = of_home(&home(arguments.home.as_deref())?.join("manifests"))?;
    files.extend(manifests.iter().cloned());
    let manifests = files.iter().map(|file| read(file)).collect::<anyhow::Result<Vec<_>>>()?;
    lab::Tools::read(&manifests).map_err(|error| WrongInput(error.to_string()).into())
}

/// The manifests of the home, in the order of their names; none where there is no such folder.
fn of_home(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        // A home that cannot be is for the lab to complain about.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> anyhow::Result<(String, String)> {
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MANIFEST_MAX).read_to_end(&mut bytes));
    read.map_err(|error| WrongInput(format!("cannot read the manifest {name}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| WrongInput(format!("the manifest {name} is not UTF-8")))?;
    Ok((name, text))
}

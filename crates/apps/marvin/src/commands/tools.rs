//! `marvin tools`: lists external tools; also finds them for other commands.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::answer::Answer;
use crate::cli::{Arguments, Tools};
use crate::exit::{Exit, WrongInput};
use crate::home::home;
use lists::ToolsDocument;

/// Reads at most this many bytes of a manifest: more than the limit, so that a large one is refused
/// and not truncated.
const MANIFEST_MAX: u64 = 128 << 10;

pub(crate) fn tools(arguments: &Arguments, command: &Tools) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let known = known_tools(arguments, &command.manifest)?;
    let packages: Vec<&str> = known
        .all()
        .filter_map(|tool| tool.packages.first())
        .map(String::as_str)
        .collect();
    // A host without apt can list tools, without their versions.
    let versions = kernel::package_versions(&packages).unwrap_or_default();
    let version = |tool: &model::Tool| versions.get(tool.packages.first()?).map(String::as_str);
    let document = ToolsDocument::new(known.all().map(|tool| (tool, version(tool))));
    answer.list(&document, command.output, arguments)?;
    Ok(Exit::Fine)
}

/// Returns Marvin's tools, those of the data directory, and those of these manifests.
pub(crate) fn known_tools(
    arguments: &Arguments,
    manifests: &[PathBuf],
) -> anyhow::Result<lab::Tools> {
    let mut files = of_home(&home(arguments.home.as_deref())?.join("manifests"))?;
    files.extend(manifests.iter().cloned());
    let manifests = files
        .iter()
        .map(|file| read(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    lab::Tools::read(&manifests).map_err(|error| WrongInput(error.to_string()).into())
}

/// Lists the manifests of the data directory by name; empty if the directory is missing.
fn of_home(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        // The lab reports an unusable data directory.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot read {}", folder.display()))?
            .path();
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
    let text = String::from_utf8(bytes)
        .map_err(|_| WrongInput(format!("the manifest {name} is not UTF-8")))?;
    Ok((name, text))
}

//! The external tools that a session knows: from manifests in the data directory, and from those
//! that the user names.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::exit::WrongInput;

/// Reads at most this many bytes of a manifest: more than the limit, so that a large one is refused
/// and not truncated.
const MANIFEST_MAX: u64 = 128 << 10;

/// Returns Marvin's tools, those of the data directory, and those of these manifests.
pub(super) fn read_tools(home: &Path, manifests: &[PathBuf]) -> anyhow::Result<lab::Tools> {
    let mut files = list_manifests(&home.join("manifests"))?;
    files.extend(manifests.iter().cloned());
    let manifests = files
        .iter()
        .map(|file| read_manifest(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    lab::Tools::read(&manifests).map_err(|error| WrongInput(error.to_string()).into())
}

/// Lists the manifests of the data directory by name; empty if the directory is missing.
fn list_manifests(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
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

fn read_manifest(file: &Path) -> anyhow::Result<(String, String)> {
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MANIFEST_MAX).read_to_end(&mut bytes));
    read.map_err(|error| WrongInput(format!("cannot read the manifest {name}: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| WrongInput(format!("the manifest {name} is not UTF-8")))?;
    Ok((name, text))
}

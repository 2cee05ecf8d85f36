//! The external tools and the formats of result files that a session knows: from manifests in the
//! data directory, and from those that the user names.

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

/// Returns the formats of these manifests, of the data directory, and Marvin's: a user's come first,
/// so that one of Marvin's name replaces that.
pub(super) fn read_formats(
    home: &Path,
    manifests: &[PathBuf],
) -> anyhow::Result<Vec<config::Format>> {
    let mut files = manifests.to_vec();
    files.extend(list_manifests(&home.join("formats"))?);
    let mut formats: Vec<config::Format> = Vec::new();
    for file in &files {
        let (name, text) = read_manifest(file)?;
        let format = config::format(&text)
            .map_err(|error| WrongInput(format!("bad manifest {name}: {error}")))?;
        formats.push(format);
    }
    let shipped = [config::SHIPPED_FORMATS, config::MMTESTS_FORMATS];
    for (name, text) in shipped.into_iter().flatten() {
        let format = config::format(text).with_context(|| format!("format {name}"))?;
        let is_replaced = |known: &config::Format| {
            known.name == format.name && known.is_of_mmtests() == format.is_of_mmtests()
        };
        if !formats.iter().any(is_replaced) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Lists the manifests of a directory by name; empty if it is missing.
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
    // A pipe would be waited for.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Err(WrongInput(format!("the manifest {name} is no regular file")).into());
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MANIFEST_MAX).read_to_end(&mut bytes));
    read.map_err(|error| WrongInput(format!("cannot read the manifest {name}: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| WrongInput(format!("the manifest {name} is not UTF-8")))?;
    Ok((name, text))
}

//! The cost of verifying, once per process, the files that results depend on: a snapshot's memory
//! and a build's vmlinux.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use figures::figure::{Against, Figure, Figures};

/// Prints these figures, for the files that the suite left in the data directory.
pub(crate) fn hashing(home: &Path, figures: &mut Figures) -> anyhow::Result<()> {
    for (name, folder, file) in [
        ("a snapshot's memory", "snapshots", "ram"),
        ("a build's vmlinux", "builds", "vmlinux"),
    ] {
        let path =
            find(&home.join(folder), file)?.with_context(|| format!("no {file} in {folder}"))?;
        let begun = Instant::now();
        machine::hash_memory(&path)?;
        let value = begun.elapsed().as_secs_f64();
        figures.print(&Figure {
            name: format!("hash of {name}"),
            value,
            unit: "s",
            against: Against::Nothing,
        })?;
    }
    Ok(())
}

/// Returns a file with this name in a subdirectory.
fn find(folder: &Path, file: &str) -> std::io::Result<Option<PathBuf>> {
    let mut entries = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path().join(file));
    Ok(entries.find(|path| path.is_file()))
}

//! What it costs to verify, once per process, what a number depends on: a snapshot's memory and a build's vmlinux.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use figures::figure::{Against, Figure, Figures};

/// Prints these figures, of what the suite left in the home.
pub(crate) fn hashing(home: &Path, figures: &mut Figures) -> anyhow::Result<()> {
    for (name, folder, file) in
        [("a snapshot's memory", "snapshots", "ram"), ("a build's vmlinux", "builds", "vmlinux")]
    {
        let path = find(&home.join(folder), file)?.with_context(|| format!("no {file} in {folder}"))?;
        let begun = Instant::now();
        machine::hash_memory(&path)?;
        let value = begun.elapsed().as_secs_f64();
        figures.print(&Figure { name: format!("hash of {name}"), value, unit: "s", against: Against::Nothing })?;
    }
    Ok(())
}

/// Returns a file of this name in one of a folder's folders.
fn find(folder: &Path, file: &str) -> std::io::Result<Option<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path().join(file));
    Ok(entries.find(|path| path.is_file()))
}

//! Snapshots: a guest stopped at an exact instruction, kept under the hash of everything that went into it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::MachineError;
use crate::process::Scratch;
use crate::qemu::hash;

/// The guest's memory within a snapshot's folder; sparse.
pub(crate) const RAM: &str = "ram";
/// The state of its devices.
pub(crate) const STATE: &str = "state";
/// What went into it, for people, and the mark of a whole snapshot: written last.
const SEAL: &str = "seal";

/// Where a job starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot {
    /// From a saved guest, in this folder.
    Saved(PathBuf),
    /// From power-on, each time; the text says why no snapshot is used. The numbers are the same.
    PlainBoot(String),
}

/// The snapshots of a home.
#[derive(Debug)]
pub(crate) struct Snapshots {
    folder: PathBuf,
    bytes_max: u64,
    turns: Mutex<BTreeMap<String, Arc<Mutex<()>>>>,
}

impl Snapshots {
    /// Uses a folder, and at most so many bytes of it.
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Result<Self, MachineError> {
        fs::create_dir_all(&folder).map_err(MachineError::io("create", &folder))?;
        let entries = fs::read_dir(&folder).map_err(MachineError::io("list", &folder))?;
        for part in entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some()) {
            // Left by a killed Marvin; the home's lock says that nobody is making it now.
            fs::remove_dir_all(&part).map_err(MachineError::io("remove", &part))?;
        }
        Ok(Self { folder, bytes_max, turns: Mutex::default() })
    }

    /// Returns the lock under which the snapshot of these ingredients is looked for and made: two threads that want the
    /// same one boot it once.
    pub(crate) fn turn(&self, ingredients: &str) -> Arc<Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(ingredients.to_owned()).or_default())
    }

    /// Removes a snapshot that turned out to be of no use; it is made again when it is wanted again.
    pub(crate) fn forget(&self, folder: &Path) {
        // The seal goes first: without it the rest is nothing.
        drop(fs::remove_file(folder.join(SEAL)));
        drop(fs::remove_dir_all(folder));
    }

    /// Returns the folder of the snapshot that these ingredients made, if it is there and whole.
    pub(crate) fn find(&self, ingredients: &str) -> Option<PathBuf> {
        let folder = self.folder.join(hash(&[ingredients.as_bytes()]));
        let seal = folder.join(SEAL);
        let whole = fs::read_to_string(&seal).is_ok_and(|text| text == sealed(ingredients, &folder));
        // The seal's age tells which snapshots are not used any more.
        if whole {
            drop(fs::File::options().append(true).open(&seal).and_then(|file| file.set_len(file.metadata()?.len())));
        }
        whole.then_some(folder)
    }

    /// Keeps what lies in a scratch folder (RAM and STATE) as the snapshot of these ingredients.
    pub(crate) fn keep(&self, ingredients: &str, scratch: &Scratch) -> Result<PathBuf, MachineError> {
        let whole = self.folder.join(hash(&[ingredients.as_bytes()]));
        let part = whole.with_extension("part");
        for stale in [&whole, &part] {
            if stale.exists() {
                fs::remove_dir_all(stale).map_err(MachineError::io("remove", stale))?;
            }
        }
        fs::create_dir_all(&part).map_err(MachineError::io("create", &part))?;
        for name in [RAM, STATE] {
            fs::rename(scratch.path(name), part.join(name)).map_err(MachineError::io("keep", &part))?;
            sync(&part.join(name))?;
        }
        let seal = part.join(SEAL);
        fs::write(&seal, sealed(ingredients, &part)).map_err(MachineError::io("write", &seal))?;
        sync(&seal)?;
        fs::rename(&part, &whole).map_err(MachineError::io("keep", &whole))?;
        self.prune(&whole)?;
        Ok(whole)
    }

    /// Removes the snapshots not used for longest until the rest fits, but never `newest`.
    fn prune(&self, newest: &Path) -> Result<(), MachineError> {
        let entries = fs::read_dir(&self.folder).map_err(MachineError::io("list", &self.folder))?;
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let folder = entry.ok()?.path();
                let used = fs::metadata(folder.join(SEAL)).ok()?.modified().ok()?;
                Some((used, allocated(&folder.join(RAM)), folder))
            })
            .collect();
        found.sort();
        let mut total: u64 = found.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, folder) in found {
            if total > self.bytes_max && folder != newest {
                fs::remove_dir_all(&folder).map_err(MachineError::io("remove", &folder))?;
                total -= bytes;
            }
        }
        Ok(())
    }
}

/// A seal must not outlive what it seals, should the power fail.
fn sync(path: &Path) -> Result<(), MachineError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(MachineError::io("write", path))
}

/// The seal's text: the ingredients, and what the files must be like.
fn sealed(ingredients: &str, folder: &Path) -> String {
    let ram = fs::metadata(folder.join(RAM)).map_or(0, |file| file.len());
    let state = fs::read(folder.join(STATE)).unwrap_or_default();
    format!("{ingredients}ram.bytes={ram}\nstate.sha256={}\n", hash(&[&state]))
}

fn allocated(file: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(file).map_or(0, |file| file.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use super::{RAM, STATE, Snapshots};
    use crate::process::Scratch;

    fn keep(snapshots: &Snapshots, parent: &std::path::Path, ingredients: &str) -> std::path::PathBuf {
        let scratch = Scratch::new(parent).unwrap();
        scratch.write(RAM, &[7; 8192]).unwrap();
        scratch.write(STATE, ingredients.as_bytes()).unwrap();
        snapshots.keep(ingredients, &scratch).unwrap()
    }

    #[test]
    fn a_snapshot_is_found_by_its_ingredients_only_and_only_whole() {
        let home = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(home.path().join("snapshots"), 1 << 30).unwrap();
        assert_eq!(snapshots.find("seed=1\n"), None);
        let folder = keep(&snapshots, home.path(), "seed=1\n");
        assert_eq!(snapshots.find("seed=1\n"), Some(folder.clone()));
        assert_eq!(snapshots.find("seed=2\n"), None);
        std::fs::write(folder.join(STATE), "damaged").unwrap();
        assert_eq!(snapshots.find("seed=1\n"), None, "a damaged state");
        keep(&snapshots, home.path(), "seed=1\n");
        std::fs::write(folder.join(RAM), "cut").unwrap();
        assert_eq!(snapshots.find("seed=1\n"), None, "a cut memory");
    }

    #[test]
    fn what_a_killed_marvin_left_and_what_is_forgotten_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("snapshots");
        std::fs::create_dir_all(folder.join("00.part")).unwrap();
        let snapshots = Snapshots::new(folder.clone(), 1 << 30).unwrap();
        assert!(!folder.join("00.part").exists());
        let kept = keep(&snapshots, home.path(), "seed=1\n");
        snapshots.forget(&kept);
        assert_eq!((snapshots.find("seed=1\n"), kept.exists()), (None, false));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let home = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(home.path().join("snapshots"), 10_000).unwrap();
        keep(&snapshots, home.path(), "seed=1\n");
        keep(&snapshots, home.path(), "seed=2\n");
        assert_eq!(snapshots.find("seed=1\n"), None);
        assert!(snapshots.find("seed=2\n").is_some());
    }
}

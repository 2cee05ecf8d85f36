//! Snapshots: a guest stopped at an exact instruction, stored under the hash of everything that it
//! depends on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, Once};
use subprocess::Shared;

use sha2::{Digest, Sha256};

use crate::qemu::{STATE, Scratch};
use crate::{MachineError, hash};

/// The guest's memory within a snapshot's directory; sparse.
pub(crate) const RAM: &str = "ram";
/// What the snapshot depends on, for people; also marks a complete snapshot, as it is written last.
const SEAL: &str = "seal";

/// Where a job starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// From a saved guest in this directory.
    Saved(PathBuf),
    /// From power-on each time, with the same numbers; the text says why.
    PlainBoot(String),
}

/// The snapshots of a data directory.
#[derive(Debug)]
pub(crate) struct Snapshots {
    folder: PathBuf,
    bytes_max: u64,
    turns: Shared<BTreeMap<String, Arc<Shared<()>>>>,
    /// Directories whose memory this process has verified by hash, and when it was last changed:
    /// an old QEMU has the memory open for writing, and a guest may take QEMU over.
    verified: Shared<BTreeMap<PathBuf, Stamp>>,
    swept: Once,
}

impl Snapshots {
    /// Uses a directory, and at most `bytes_max` bytes of it.
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self {
            folder,
            bytes_max,
            turns: Shared::default(),
            verified: Shared::default(),
            swept: Once::new(),
        }
    }

    /// Removes what a killed Marvin left. Before the first snapshot of this process only: only then
    /// does the lock of the data directory exclude other writers.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for part in entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some())
        {
            // It costs only its space.
            drop(fs::remove_dir_all(&part));
        }
    }

    /// Returns the lock for finding and making the snapshot of these ingredients: two threads that
    /// need the same one boot once.
    pub(crate) fn turn(&self, ingredients: &str) -> Arc<Shared<()>> {
        let mut turns = self.turns.lock();
        Arc::clone(turns.entry(ingredients.to_owned()).or_default())
    }

    /// Removes an unusable snapshot; the next use makes it again.
    pub(crate) fn forget(&self, folder: &Path) {
        // The seal goes first: without it the snapshot is invalid.
        drop(fs::remove_file(folder.join(SEAL)));
        self.verified().remove(folder);
        drop(fs::remove_dir_all(folder));
    }

    fn remember(&self, folder: &Path) {
        self.verified()
            .extend(stamp(folder).map(|stamp| (folder.to_owned(), stamp)));
    }

    fn verified(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Stamp>> {
        self.verified.lock()
    }

    /// Returns the directory of the snapshot of these ingredients, if it exists and every byte is
    /// as saved: a changed byte would silently change numbers. Memory is hashed once per
    /// process.
    pub(crate) fn find(&self, ingredients: &str) -> Option<PathBuf> {
        let folder = self.folder.join(hash(&[ingredients.as_bytes()]));
        let seal = folder.join(SEAL);
        let is_sealed =
            || fs::read_to_string(&seal).is_ok_and(|text| text == seal_text(ingredients, &folder));
        let known =
            stamp(&folder).is_some() && self.verified().get(&folder).copied() == stamp(&folder);
        let whole = if known { seal.is_file() } else { is_sealed() };
        // The seal's age shows which snapshots are unused.
        if whole {
            self.remember(&folder);
            drop(
                fs::File::options()
                    .append(true)
                    .open(&seal)
                    .and_then(|file| file.set_len(file.metadata()?.len())),
            );
        }
        whole.then_some(folder)
    }

    /// Stores RAM and STATE of a scratch directory as the snapshot of these ingredients.
    pub(crate) fn keep(
        &self,
        ingredients: &str,
        scratch: &Scratch,
    ) -> Result<PathBuf, MachineError> {
        self.swept.call_once(|| self.sweep());
        let whole = self.folder.join(hash(&[ingredients.as_bytes()]));
        let part = whole.with_extension("part");
        for stale in [&whole, &part] {
            if stale.exists() {
                fs::remove_dir_all(stale).map_err(MachineError::io("remove", stale))?;
            }
        }
        fs::create_dir_all(&part).map_err(MachineError::io("create", &part))?;
        for name in [RAM, STATE] {
            fs::rename(scratch.path(name), part.join(name))
                .map_err(MachineError::io("keep", &part))?;
            sync(&part.join(name))?;
        }
        let seal = part.join(SEAL);
        fs::write(&seal, seal_text(ingredients, &part))
            .map_err(MachineError::io("write", &seal))?;
        sync(&seal)?;
        fs::rename(&part, &whole).map_err(MachineError::io("keep", &whole))?;
        self.remember(&whole);
        self.prune(&whole)?;
        Ok(whole)
    }

    /// Removes the least recently used snapshots until the rest fits, but never `newest`.
    fn prune(&self, newest: &Path) -> Result<(), MachineError> {
        let entries = fs::read_dir(&self.folder).map_err(MachineError::io("list", &self.folder))?;
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let folder = entry.ok()?.path();
                let used = fs::metadata(folder.join(SEAL)).ok()?.modified().ok()?;
                Some((used, allocated_bytes(&folder.join(RAM)), folder))
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

/// When a memory file was last changed. No program can set this time back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    seconds: i64,
    nanoseconds: i64,
}

fn stamp(folder: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(folder.join(RAM)).ok().map(|file| Stamp {
        seconds: file.ctime(),
        nanoseconds: file.ctime_nsec(),
    })
}

/// Flushes to disk: after a power failure, no seal may exist without its files.
fn sync(path: &Path) -> Result<(), MachineError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(MachineError::io("write", path))
}

/// The seal's text: the ingredients, and the sizes and hashes of the files.
fn seal_text(ingredients: &str, folder: &Path) -> String {
    let ram = hash_memory(&folder.join(RAM)).unwrap_or_default();
    let state = fs::read(folder.join(STATE)).unwrap_or_default();
    format!(
        "{ingredients}ram.sha256={ram}\nstate.sha256={}\n",
        hash(&[&state])
    )
}

/// Returns the SHA-256 of a guest's memory file, hexadecimal: of its length and of each block with
/// its position. Skips blocks of zeros, which are most of the file.
///
/// # Errors
/// If the file cannot be read.
pub fn hash_memory(file: &Path) -> io::Result<String> {
    const ZEROS: &[u8] = &[0; 1 << 16];
    let mut file = File::open(file)?;
    let mut hash = Sha256::new();
    let mut place = 0_u64;
    let mut block = vec![0; ZEROS.len()];
    loop {
        let mut filled = 0;
        while filled < block.len() {
            match file.read(&mut block[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        if block[..filled] != ZEROS[..filled] {
            hash.update(place.to_le_bytes());
            hash.update(&block[..filled]);
        }
        place += filled as u64;
        if filled < block.len() {
            hash.update(place.to_le_bytes());
            return Ok(model::hexadecimal(&hash.finalize()));
        }
    }
}

fn allocated_bytes(file: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(file).map_or(0, |file| file.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use super::{RAM, STATE, Snapshots};
    use crate::qemu::Scratch;

    fn keep(
        snapshots: &Snapshots,
        parent: &std::path::Path,
        ingredients: &str,
    ) -> std::path::PathBuf {
        let scratch = Scratch::new(parent).unwrap();
        scratch.write(RAM, &[7; 8192]).unwrap();
        scratch.write(STATE, ingredients.as_bytes()).unwrap();
        snapshots.keep(ingredients, &scratch).unwrap()
    }

    #[test]
    fn only_whole_snapshots_with_equal_ingredients_match() {
        let home = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(home.path().join("snapshots"), 1 << 30);
        assert_eq!(snapshots.find("seed=1\n"), None);
        let folder = keep(&snapshots, home.path(), "seed=1\n");
        assert_eq!(snapshots.find("seed=1\n"), Some(folder.clone()));
        assert_eq!(snapshots.find("seed=2\n"), None);
        let reopened = || Snapshots::new(home.path().join("snapshots"), 1 << 30).find("seed=1\n");
        assert_eq!(reopened(), Some(folder.clone()));
        let mut one_byte = vec![7; 8192];
        one_byte[5000] ^= 1;
        for (file, content) in [(STATE, &b"damaged"[..]), (RAM, b"cut"), (RAM, &one_byte)] {
            keep(&snapshots, home.path(), "seed=1\n");
            std::fs::write(folder.join(file), content).unwrap();
            assert_eq!(reopened(), None, "{file} is not what was saved");
        }
    }

    #[test]
    fn changed_memory_is_verified_again() {
        let home = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(home.path().join("snapshots"), 1 << 30);
        let folder = keep(&snapshots, home.path(), "seed=1\n");
        assert_eq!(snapshots.find("seed=1\n"), Some(folder.clone()));
        // The clock of a file system has steps.
        std::thread::sleep(std::time::Duration::from_millis(30));
        std::fs::write(folder.join(RAM), [8; 8192]).unwrap();
        assert_eq!(
            snapshots.find("seed=1\n"),
            None,
            "a guest has written to it"
        );
    }

    #[test]
    fn leftovers_and_forgotten_snapshots_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("snapshots");
        std::fs::create_dir_all(folder.join("00.part")).unwrap();
        let snapshots = Snapshots::new(folder.clone(), 1 << 30);
        // Another process may be writing it until this one writes itself.
        assert!(folder.join("00.part").exists());
        let stored = keep(&snapshots, home.path(), "seed=1\n");
        assert!(!folder.join("00.part").exists());
        snapshots.forget(&stored);
        assert_eq!((snapshots.find("seed=1\n"), stored.exists()), (None, false));
    }

    #[test]
    fn oldest_snapshots_are_pruned_first() {
        let home = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(home.path().join("snapshots"), 10_000);
        keep(&snapshots, home.path(), "seed=1\n");
        keep(&snapshots, home.path(), "seed=2\n");
        assert_eq!(snapshots.find("seed=1\n"), None);
        assert!(snapshots.find("seed=2\n").is_some());
    }
}

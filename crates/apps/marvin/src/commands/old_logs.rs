//! The logs of a data directory that `marvin gc` deletes by age: those of jobs, and full files of
//! recorded consoles. What is still written to is never old.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use model::UnixTime;

/// Old logs, and their size.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OldLogs {
    files: Vec<PathBuf>,
    pub(crate) bytes: u64,
}

impl OldLogs {
    /// Finds the logs that were last written before a time.
    pub(crate) fn find(home: &Path, before_unix: UnixTime) -> anyhow::Result<Self> {
        let mut found = Self::default();
        found.add(&home.join("jobs"), "log", before_unix)?;
        for console in list(&home.join("consoles"))? {
            found.add(&console, "gz", before_unix)?;
        }
        Ok(found)
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Adds the old files of a directory with this ending.
    fn add(&mut self, folder: &Path, ending: &str, before_unix: UnixTime) -> anyhow::Result<()> {
        for file in list(folder)? {
            let Ok(found) = fs::symlink_metadata(&file) else {
                // Its job has ended well, or another gc deleted it.
                continue;
            };
            let has_ending = file.extension().is_some_and(|known| known == ending);
            let written = found.modified().map_or(UnixTime::MAX, UnixTime::from);
            if has_ending && found.is_file() && written < before_unix {
                self.bytes += found.len();
                self.files.push(file);
            }
        }
        Ok(())
    }

    /// Deletes them.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        for file in &self.files {
            match fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot delete {}", file.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns what a directory has, which may be missing and is no link; in order.
fn list(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::UnixTime;

    use super::OldLogs;

    #[test]
    fn full_and_finished_logs_are_deleted_by_age() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("jobs")).unwrap();
        fs::create_dir_all(at("consoles/rack")).unwrap();
        let old = ["jobs/7.log", "consoles/rack/1795516953123.gz"];
        let kept = ["jobs/8.log", "jobs/notes", "consoles/rack/current"];
        let past = UnixTime::new(1_000_000);
        for name in old.iter().chain(&kept) {
            fs::write(at(name), "four").unwrap();
            let file = fs::File::open(at(name)).unwrap();
            let second = std::time::Duration::from_secs(past.seconds().unsigned_abs());
            if *name != "jobs/8.log" {
                file.set_modified(std::time::UNIX_EPOCH + second).unwrap();
            }
        }
        // A directory of another name is not followed.
        std::os::unix::fs::symlink(at("jobs"), at("consoles/link")).unwrap();
        assert_eq!(
            OldLogs::find(home.path(), past).unwrap(),
            OldLogs::default()
        );
        let found = OldLogs::find(home.path(), past.plus_seconds(1)).unwrap();
        assert_eq!((found.count(), found.bytes), (2, 8));
        found.remove().unwrap();
        assert!(old.iter().all(|name| !at(name).exists()));
        assert!(kept.iter().all(|name| at(name).exists()));
        // As after a gc that ran at the same time.
        found.remove().unwrap();
    }
}

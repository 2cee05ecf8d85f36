//! A list that is fetched when the one of the data directory is old. Its reader verifies it, where
//! its archive signs it.

use std::fs;
use std::path::{Path, PathBuf};

use model::UnixTime;

use crate::fetch::{Pause, Wanted, refuse_web_page};
use crate::lists::FRESH_S;
use crate::{ArchiveError, hashing};

/// Largest list.
const LIST_MAX: u64 = 64 << 20;

/// A list at its address.
pub(crate) struct FreshList<'a> {
    pub(crate) url: &'a str,
    pub(crate) folder: &'a Path,
    pub(crate) clock: fn() -> UnixTime,
    pub(crate) pause: Pause,
}

impl FreshList<'_> {
    /// Returns the list's file: the one of the data directory while it is fresh, or while the
    /// mirror is away.
    pub(crate) fn file(&self) -> Result<PathBuf, ArchiveError> {
        fs::create_dir_all(self.folder).map_err(ArchiveError::io(self.folder))?;
        let name = hashing::sha256(self.url.as_bytes());
        let file = self.folder.join(format!("{}.list", &name[..16]));
        let seen = file.with_extension("seen");
        let is_fresh = fs::metadata(&seen)
            .and_then(|found| found.modified())
            .ok()
            .and_then(|modified| (self.clock)().seconds_since(UnixTime::from(modified)))
            .is_some_and(|age_s| age_s < FRESH_S);
        if is_fresh && file.is_file() {
            return Ok(file);
        }
        let new = file.with_extension("new");
        let hint = "the mirror no longer has it: set another `mirror` in marvin.toml";
        let wanted = Wanted {
            url: self.url,
            hint,
            pause: self.pause,
        };
        let fetched = wanted.fetch(None, LIST_MAX, &new).and_then(|_| {
            // A list without a signature would be read as an empty one.
            refuse_web_page(self.url, &new).inspect_err(|_| drop(fs::remove_file(&new)))
        });
        match fetched {
            Ok(()) => {
                fs::rename(&new, &file).map_err(ArchiveError::io(&file))?;
                fs::write(&seen, "").map_err(ArchiveError::io(&seen))?;
                Ok(file)
            }
            Err(error) if error.is_away() && file.is_file() => Ok(file),
            Err(error) => Err(error),
        }
    }
}

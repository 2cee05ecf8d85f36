//! Names the layout of an archive that has no suites below `dists/`, for the message that Marvin
//! does not read it.

use std::fs;

use crate::ArchiveError;
use crate::debian::{Debian, Source};
use crate::fetch::{Wanted, refuse_web_page};

/// What a flat repository may have beside its packages.
const FLAT: [&str; 5] = [
    "InRelease",
    "Release",
    "Packages.gz",
    "Packages.xz",
    "Packages",
];
/// Largest list or index that is looked at.
const LOOK_MAX: u64 = 64 << 20;

impl Debian {
    /// Returns the error for a suite that the archive lacks: there is none of this name, or the
    /// archive has another layout.
    pub(crate) fn explain_absence(&self, source: &Source) -> ArchiveError {
        let known_layout = self.no_suite(&source.suite);
        if !source.is_main || source.is_past {
            return known_layout;
        }
        match self.find_layout(&source.archive) {
            Some(layout) => ArchiveError::Layout {
                url: source.archive.clone(),
                layout,
            },
            None => known_layout,
        }
    }

    fn find_layout(&self, archive: &str) -> Option<&'static str> {
        if FLAT.iter().any(|name| self.look(archive, name).is_some()) {
            return Some("a flat repository: its list lies beside its packages");
        }
        let index = self.look(archive, "")?;
        let index = index.to_ascii_lowercase();
        let mut links = index.split("href=").skip(1).map(|rest| {
            let link = rest.trim_start_matches(['"', '\'']);
            let end = link.find(['"', '\'', '>', ' ']).unwrap_or(link.len());
            &link[..end]
        });
        links.find_map(|link| {
            let is_version = link
                .strip_prefix('v')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if link.ends_with(".deb") || link.starts_with("amd64/") {
                Some("a folder of packages without a list, as kernel.ubuntu.com/mainline has them")
            } else if is_version {
                Some("a folder for each version, without a list, as kernel.ubuntu.com/mainline has them")
            } else {
                None
            }
        })
    }

    /// Returns a file of the archive's own folder, or its index; `None` if it is not there.
    fn look(&self, archive: &str, name: &str) -> Option<String> {
        let file = self.folder.join("layout.new");
        let url = format!("{archive}/{name}");
        let wanted = Wanted {
            url: &url,
            hint: "",
            pause: self.pause,
        };
        let fetched = wanted.fetch(None, LOOK_MAX, &file).ok();
        let is_fitting = name.is_empty() || refuse_web_page(&url, &file).is_ok();
        let content = fs::read(&file).ok().filter(|_| is_fitting);
        drop(fs::remove_file(&file));
        fetched?;
        Some(String::from_utf8_lossy(&content?).into_owned())
    }
}

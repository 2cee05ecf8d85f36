//! The same pages as files: every page linked from the first one, for any server, a mirror or a
//! memory stick.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::site::{ContentKind, Site};

const FILES_MAX: usize = 100_000;
/// Marks a directory that `publish` wrote.
const MARK: &str = ".marvin";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub files: usize,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The directory has other files.
    #[error("cannot publish to {folder}: it holds files that marvin did not write\nhint: name a new or empty directory", folder = .0.display())]
    Foreign(PathBuf),
    /// There are too many pages.
    #[error(
        "cannot publish: more than {FILES_MAX} files\nhint: marvin serve shows a store of any size"
    )]
    TooMuch,
    #[error("cannot write {path}: {source}", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Writes the site into a directory, completely or not at all.
///
/// # Errors
/// If the directory has other files, cannot be written, or would get too many.
pub fn publish(site: &Site, folder: &Path) -> Result<Published, PublishError> {
    let is_ours = folder.join(MARK).exists();
    if folder.exists() && !is_ours && !is_empty(folder) {
        return Err(PublishError::Foreign(folder.to_owned()));
    }
    remove_leftovers(folder);
    // Beside the directory, as a rename is atomic on one file system only.
    let new = hidden_sibling(folder, "new");
    let old = hidden_sibling(folder, "old");
    let written = write_all(site, &new).and_then(|published| {
        if folder.exists() {
            fs::rename(folder, &old).map_err(|source| io_error(folder, source))?;
        }
        fs::rename(&new, folder).map_err(|source| io_error(folder, source))?;
        Ok(published)
    });
    // Leftovers do no harm, and the error above is more important.
    drop(fs::remove_dir_all(&old));
    drop(fs::remove_dir_all(&new));
    written
}

/// Removes what killed processes left beside the directory.
fn remove_leftovers(folder: &Path) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let parent = folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let beside = fs::read_dir(parent.unwrap_or(Path::new("."))).into_iter();
    for entry in beside.flatten().flatten() {
        let found = entry.file_name();
        let words = found.to_string_lossy();
        let of_us = words.strip_prefix(&format!(".{name}."));
        let process = of_us.and_then(|rest| rest.split_once('.'));
        let is_left = process.is_some_and(|(id, word)| {
            ["new", "old"].contains(&word)
                && id.parse::<u32>().is_ok()
                && !Path::new("/proc").join(id).exists()
        });
        if is_left {
            // The error of what follows says more.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn hidden_sibling(folder: &Path, word: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{}.{word}", std::process::id()))
}

fn io_error(path: &Path, source: io::Error) -> PublishError {
    PublishError::Io {
        path: path.to_owned(),
        source,
    }
}

fn write_all(site: &Site, folder: &Path) -> Result<Published, PublishError> {
    let mut published = Published { files: 0, bytes: 0 };
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut left: Vec<String> = ["index.html", "api/v1/openapi.json"]
        .map(str::to_owned)
        .to_vec();
    left.extend(crate::openapi::DOCUMENTS.map(|document| format!("api/v1/{}", document.name)));
    while let Some(path) = left.pop() {
        if !known.insert(path.clone()) {
            continue;
        }
        if known.len() > FILES_MAX {
            return Err(PublishError::TooMuch);
        }
        let reply = site.answer(&format!("/{path}"), "");
        if reply.kind == ContentKind::Html {
            left.extend(links(&path, &String::from_utf8_lossy(&reply.body)));
        }
        let file = folder.join(&path);
        fs::create_dir_all(file.parent().unwrap_or(folder))
            .and_then(|()| fs::write(&file, &reply.body))
            .map_err(|source| io_error(&file, source))?;
        published.files += 1;
        published.bytes += reply.body.len() as u64;
    }
    let mark = folder.join(MARK);
    fs::write(&mark, "").map_err(|source| io_error(&mark, source))?;
    Ok(published)
}

/// Returns the links of a page, as paths from the top. Drops links to other sites.
pub(crate) fn links(page: &str, html: &str) -> Vec<String> {
    let folder: Vec<&str> = page
        .split('/')
        .rev()
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let starts = html
        .match_indices("href=\"")
        .map(|(at, word)| at + word.len());
    let scripts = html
        .match_indices("src=\"")
        .map(|(at, word)| at + word.len());
    starts
        .chain(scripts)
        .filter_map(|start| target(&folder, &html[start..]))
        .collect()
}

/// Returns the target of the link that begins `text`, for a page in these directories; `None`
/// outside the site.
fn target(folder: &[&str], text: &str) -> Option<String> {
    let link = text
        .split('"')
        .next()?
        .split(['#', '?'])
        .next()
        .filter(|link| !link.is_empty())?;
    let mut parts = folder.to_vec();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "." | "" => {}
            other if other.contains(':') || other.starts_with('.') => return None,
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_stay_below_the_top() {
        let html = r##"<a href="../../index.html#x"> <a href="b.html?q=1"> <a href="../../../../etc/passwd"> <a href="http://x/y">
                      <a href="#here"> <script src="../../script.js">"##;
        assert_eq!(
            links("s/m/a.html", html),
            ["index.html", "s/m/b.html", "script.js"]
        );
        assert_eq!(
            links("index.html", r#"<a href="s/m/~2e~2e.html">"#),
            ["s/m/~2e~2e.html"]
        );
    }
}

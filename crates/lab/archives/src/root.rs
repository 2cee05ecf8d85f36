//! An unpacked directory as the root of a guest: its links never lead outside.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most links in one path.
const LINKS_MAX: usize = 40;
/// Most files below a requested directory.
const FILES_MAX: usize = 20_000;

#[derive(Debug)]
pub struct Root<'a>(pub &'a Path);

impl Root<'_> {
    /// Returns the real location of a guest's path; `None` if there is no such file.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<PathBuf> {
        let mut rest: VecDeque<String> = path_parts(Path::new(path)).into();
        let mut at: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            match part.as_str() {
                "." => continue,
                ".." => {
                    at.pop();
                    continue;
                }
                _ => at.push(part),
            }
            let place = self.0.join(at.join("/"));
            let found = fs::symlink_metadata(&place).ok()?;
            if found.is_symlink() {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                let target = fs::read_link(&place).ok()?;
                at.pop();
                if target.is_absolute() {
                    at.clear();
                }
                for part in path_parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
        }
        Some(self.0.join(at.join("/")))
    }

    /// Returns where a path that may not exist yet is made: its directory's links are followed
    /// within the root, its own name is not.
    ///
    /// # Errors
    /// If the directory cannot be made, or its links go in a circle.
    pub(crate) fn make_place(&self, path: &str) -> io::Result<PathBuf> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut at = self.0.to_owned();
        let mut walked = String::new();
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            walked = format!("{walked}/{part}");
            at = match self.find(&walked) {
                Some(found) => found,
                None => {
                    let made = at.join(part);
                    fs::create_dir(&made)?;
                    made
                }
            };
        }
        Ok(at.join(name))
    }

    /// Removes the links of unpacked packages that lead outside or nowhere: who follows one without
    /// [`find`](Self::find) stays inside.
    ///
    /// # Errors
    /// If a directory cannot be read, or a link not be removed.
    pub fn remove_links_out(&self) -> io::Result<()> {
        let mut folders = vec![self.0.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_symlink() && self.leads_out(&entry.path()) {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }

    fn leads_out(&self, link: &Path) -> bool {
        let outside = fs::canonicalize(self.0)
            .and_then(|root| Ok(!fs::canonicalize(link)?.starts_with(root)));
        outside.unwrap_or(true)
    }

    /// Returns the location of a file: at its path, or below `/usr`, where distributions moved
    /// top-level directories.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        [path.to_owned(), format!("/usr{path}")]
            .iter()
            .find_map(|path| self.find(path))
            .filter(|found| found.is_file())
    }

    /// Returns the files at or below a path, in order; empty if there is none.
    #[must_use]
    pub fn files(&self, path: &str) -> Vec<String> {
        if self.file(path).is_some() {
            return vec![path.to_owned()];
        }
        let mut files = Vec::new();
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            let Some(place) = self.find(&folder) else {
                continue;
            };
            for entry in fs::read_dir(place).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = format!("{folder}/{name}");
                // A link to a directory may be circular.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(_) if files.len() < FILES_MAX && self.file(&path).is_some() => {
                        files.push(path);
                    }
                    _ => {}
                }
            }
        }
        files.sort();
        files
    }
}

fn path_parts(path: &Path) -> Vec<String> {
    path.iter()
        .filter_map(|part| part.to_str())
        .filter(|part| *part != "/")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::Root;

    #[test]
    fn links_stay_within_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("usr/lib/x")).unwrap();
        fs::write(at("usr/lib/x/libx.so.1.2"), "x").unwrap();
        symlink("libx.so.1.2", at("usr/lib/x/libx.so.1")).unwrap();
        symlink("/usr/lib", at("lib")).unwrap();
        symlink("../../../../../../etc/passwd", at("usr/lib/out")).unwrap();
        symlink("/etc/passwd", at("usr/lib/absolute")).unwrap();
        symlink("circle", at("usr/lib/circle")).unwrap();
        symlink("/usr", at("usr/lib/x/up")).unwrap();
        let root = Root(folder.path());
        assert_eq!(
            root.file("/lib/x/libx.so.1"),
            Some(at("usr/lib/x/libx.so.1.2"))
        );
        assert_eq!(root.file("/bin/true"), None);
        for path in [
            "/usr/lib/out",
            "/usr/lib/absolute",
            "/usr/lib/circle",
            "/usr/lib/x",
            "/../../etc/passwd",
        ] {
            assert_eq!(root.file(path), None, "{path}");
        }
        assert_eq!(
            root.files("/usr/lib"),
            ["/usr/lib/x/libx.so.1", "/usr/lib/x/libx.so.1.2"]
        );
        assert_eq!(root.files("/lib/x/libx.so.1"), ["/lib/x/libx.so.1"]);
        assert!(root.files("/nothing").is_empty());
        root.remove_links_out().unwrap();
        for (link, is_there) in [("usr/lib/out", false), ("usr/lib/absolute", false)] {
            assert_eq!(at(link).is_symlink(), is_there, "{link}");
        }
        assert!(at("usr/lib/x/libx.so.1").is_symlink());
        fs::create_dir(at("usr/bin")).unwrap();
        fs::write(at("usr/bin/tool"), "x").unwrap();
        assert_eq!(root.file("/bin/tool"), Some(at("usr/bin/tool")));
    }
}

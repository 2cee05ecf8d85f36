//! Lists the files of a folder of patches: in the order of its quilt series, or else by name.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{PATCHES_MAX, PatchesError};
use crate::bounded;

/// Largest series: SUSE's has 2 MB.
const SERIES_BYTES_MAX: u64 = 16 << 20;

/// Endings of patches in a folder without series.
const ENDINGS: [&str; 6] = [".patch", ".diff", ".mbox", ".mbx", ".eml", ".mail"];

/// Files to read in this order.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<PathBuf>,
    /// Whether each file is a mail of one mailbox.
    pub(super) is_maildir: bool,
    is_folder: bool,
}

impl Listing {
    /// Returns what to say if none of the files is a patch.
    pub(super) fn without_patches(&self) -> String {
        match (self.is_folder, self.files.is_empty()) {
            (true, true) => {
                "it has no series and no *.patch, *.diff or *.mbox; name the folder that has them"
                    .to_owned()
            }
            (true, false) => "none of its files has a diff; name another folder".to_owned(),
            _ => "it has no diff; name a mail with a patch, a mailbox or a diff".to_owned(),
        }
    }
}

/// Lists the files of what a user names.
pub(super) fn list(path: &Path) -> Result<Listing, PatchesError> {
    let found = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !found.is_dir() {
        if is_series(path) {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            return Ok(Listing {
                files: series(folder, path)?,
                is_maildir: false,
                is_folder: true,
            });
        }
        return Ok(Listing {
            files: vec![path.to_owned()],
            ..Listing::default()
        });
    }
    for name in ["series", "series.conf"] {
        let file = path.join(name);
        if file.is_file() {
            return Ok(Listing {
                files: series(path, &file)?,
                is_maildir: false,
                is_folder: true,
            });
        }
    }
    let new = path.join("new");
    let read = path.join("cur");
    if new.is_dir() && read.is_dir() {
        let mut files = by_name(&read, |_| true)?;
        files.extend(by_name(&new, |_| true)?);
        return Ok(Listing {
            files,
            is_maildir: true,
            is_folder: true,
        });
    }
    Ok(Listing {
        files: by_name(path, is_patch)?,
        is_maildir: false,
        is_folder: true,
    })
}

fn unreadable(file: &Path, detail: impl ToString) -> PatchesError {
    PatchesError::Unreadable {
        file: file.to_owned(),
        detail: detail.to_string(),
    }
}

/// Returns whether a file is a series by its name: `series`, Debian's `series-rt`, `series.conf`,
/// Armbian's `x.series`.
fn is_series(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_patch = is_patch(&name);
    !is_patch
        && (name == "series"
            || name.starts_with("series-")
            || name.starts_with("series.")
            || name.ends_with(".series"))
}

fn is_patch(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    !name.starts_with('.') && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns files of a folder, sorted by name as the shell and `git am` do.
fn by_name(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, PatchesError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let entry = entry.map_err(|error| unreadable(folder, error))?;
        let is_wanted = is_wanted(&entry.file_name().to_string_lossy());
        let path = entry.path();
        if is_wanted && path.is_file() {
            files.push(
                inside(folder, &path)
                    .ok_or_else(|| unreadable(&path, "it is a link out of its folder"))?,
            );
        }
        if files.len() > PATCHES_MAX {
            let limit = format!("it has more than {PATCHES_MAX} files");
            return Err(PatchesError::TooMuch {
                place: folder.to_owned(),
                limit,
            });
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the path, if it and what it links to are in the folder.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let is_inside = fs::canonicalize(path)
        .ok()?
        .starts_with(fs::canonicalize(folder).ok()?);
    is_inside.then(|| path.to_owned())
}

/// Returns the files that a series names.
fn series(folder: &Path, file: &Path) -> Result<Vec<PathBuf>, PatchesError> {
    let bytes = bounded::open(file, SERIES_BYTES_MAX).and_then(bounded::Opened::read);
    let bytes = bytes.map_err(|fault| unreadable(file, fault))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut files = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let refuse = |detail: String| PatchesError::Series {
            file: file.to_owned(),
            line: number + 1,
            detail,
        };
        let Some(name) = entry(line).map_err(refuse)? else {
            continue;
        };
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_err() {
            return Err(refuse(format!(
                "no file `{}` in its folder; remove the line",
                model::sanitize_line(name)
            )));
        }
        let path = inside(folder, &path);
        files.push(path.ok_or_else(|| {
            refuse(format!(
                "`{}` is a link out of its folder",
                model::sanitize_line(name)
            ))
        })?);
    }
    Ok(files)
}

/// Returns whether a line names a patch; one that does names it below its folder.
#[cfg(feature = "fuzzing")]
pub(super) fn is_entry(line: &str) -> bool {
    let name = entry(line).ok().flatten();
    assert!(
        name.is_none_or(|name| !name.starts_with('/') && !name.split('/').any(|part| part == ".."))
    );
    name.is_some()
}

/// Parses a line of a series; `None` if it names no patch.
fn entry(line: &str) -> Result<Option<&str>, String> {
    let line = line
        .split_once(" #")
        .or_else(|| line.split_once("\t#"))
        .map_or(line, |(line, _)| line)
        .trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if let Some(rest) = line.strip_prefix('-')
        && rest.split_whitespace().count() == 1
    {
        // Armbian's way to leave a patch out.
        return Ok(None);
    }
    if line.starts_with(['+', '-']) {
        let guard = line.split_whitespace().next().unwrap_or_default();
        return Err(format!(
            "guards such as `{}` are not followed; remove it, or the line",
            model::sanitize_line(guard)
        ));
    }
    let mut fields = line.split_whitespace();
    let name = fields.next().unwrap_or_default();
    let options: Vec<&str> = fields.collect();
    if !options
        .iter()
        .all(|option| ["-p1", "-p", "1", "-pab", "ab"].contains(option))
    {
        let options = model::sanitize_line(&options.join(" "));
        return Err(format!(
            "options `{options}` are not followed: patches apply with -p1; refresh it so"
        ));
    }
    let is_below = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_below || name.contains('\0') {
        return Err(format!(
            "`{}` is not below its folder; name a file there",
            model::sanitize_line(name)
        ));
    }
    Ok(Some(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{entry, is_patch, is_series};

    #[test]
    fn lines_of_a_series_are_parsed() {
        assert_eq!(entry("a.patch -p1 # why"), Ok(Some("a.patch")));
        assert_eq!(
            entry("\tbugfix/all/a.patch\t# why"),
            Ok(Some("bugfix/all/a.patch"))
        );
        assert_eq!(entry("# a.patch"), Ok(None));
        assert_eq!(entry(""), Ok(None));
        assert_eq!(entry("-\ta.patch"), Ok(None));
        let refused = [
            "+arm a.patch",
            "-arm a.patch",
            "a.patch -p0",
            "a.patch -R",
            "../a.patch",
            "/etc/passwd",
            "a/../../b",
        ];
        let messages = refused.map(|line| entry(line).unwrap_err()).join("\n");
        insta::assert_snapshot!(messages, @"
        guards such as `+arm` are not followed; remove it, or the line
        guards such as `-arm` are not followed; remove it, or the line
        options `-p0` are not followed: patches apply with -p1; refresh it so
        options `-R` are not followed: patches apply with -p1; refresh it so
        `../a.patch` is not below its folder; name a file there
        `/etc/passwd` is not below its folder; name a file there
        `a/../../b` is not below its folder; name a file there
        ");
    }

    #[test]
    fn files_are_known_by_their_names() {
        for name in ["0001-a.patch", "a.diff", "t.mbox.gz", "A.PATCH"] {
            assert!(is_patch(name) && !is_series(name.as_ref()), "{name}");
        }
        for name in ["series", "series-rt", "series.conf", "x/armbian.series"] {
            assert!(is_series(name.as_ref()), "{name}");
        }
        assert!(!is_patch("README") && !is_patch(".a.patch") && !is_series("README".as_ref()));
    }

    proptest! {
        #[test]
        fn any_line_stays_in_its_folder(line in any::<String>()) {
            if let Ok(Some(name)) = entry(&line) {
                prop_assert!(!name.starts_with('/') && !name.split('/').any(|part| part == ".."));
            }
        }
    }
}

//! One directory of the build cache: the files of a build, and `origin`, which lists them.
//!
//! Each file is written under a temporary name and renamed, so that readers never see half of it.
//! `cache` knows which build a directory belongs to and who may write to it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::BuildFile;
use subprocess::replace_file;

pub(crate) use archives::sha256;

use crate::KernelError;

/// The file of facts, written last.
const ORIGIN: &str = "origin";
/// The fact with the hash of modules that Marvin built.
pub(crate) const MODULES_HASH: &str = "modules-sha256";
/// The roles of files in a build, as `origin` names them.
const ROLES: [&str; 4] = ["image", "vmlinux", "config", "symbols"];

/// A build's directory with the content of its `origin`.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    facts: BTreeMap<String, String>,
}

/// Returns the SHA-256 of a file, hexadecimal.
pub(crate) fn sha256_of_file(file: &Path) -> Result<String, KernelError> {
    archives::sha256_of_file(file).map_err(KernelError::io(file))
}

/// Writes a file completely or not at all; one process writes to its directory at a time.
pub(crate) fn write(file: &Path, content: &[u8]) -> Result<(), KernelError> {
    let new = file.with_file_name(".new");
    replace_file(file, &new, content).map_err(KernelError::io(file))
}

/// Parses lines of `key=value`; `None` if there is no such file.
pub(crate) fn read_facts(file: &Path) -> Result<Option<BTreeMap<String, String>>, KernelError> {
    match fs::read(file) {
        Ok(content) => Ok(Some(facts(&String::from_utf8_lossy(&content)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(KernelError::io(file)(error)),
    }
}

pub(crate) fn facts(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Writes lines of `key=value`. Values are escaped, as a file name may contain a newline.
pub(crate) fn write_facts(
    file: &Path,
    facts: &BTreeMap<String, String>,
) -> Result<(), KernelError> {
    let lines = facts
        .iter()
        .map(|(key, value)| format!("{key}={}\n", value.escape_debug()));
    write(file, lines.collect::<String>().as_bytes())
}

/// Returns what identifies an image with modules that Marvin built.
pub(crate) fn id_with_modules(image: &str, modules: &str) -> String {
    sha256(format!("{image}\n{modules}").as_bytes())
}

impl Folder {
    /// Returns whether its image, with its modules, has this id.
    pub(crate) fn is_of_id(&self, id: &str) -> bool {
        self.image()
            .is_ok_and(|image| match self.facts.get(MODULES_HASH) {
                None => image.sha256 == id,
                Some(modules) => id_with_modules(&image.sha256, modules) == id,
            })
    }

    /// Makes an empty directory.
    pub(crate) fn create(path: PathBuf) -> Result<Self, KernelError> {
        fs::create_dir(&path).map_err(KernelError::io(&path))?;
        Ok(Self {
            path,
            facts: BTreeMap::new(),
        })
    }

    /// Opens a directory; `None` if it is missing or incomplete.
    pub(crate) fn open(path: PathBuf) -> Result<Option<Self>, KernelError> {
        let Some(facts) = read_facts(&path.join(ORIGIN))? else {
            return Ok(None);
        };
        let folder = Self { path, facts };
        // Measurements depend on every byte of the booted files, and files may be short after a
        // power failure.
        let modules = folder.modules().is_none_or(|modules| modules.is_dir());
        let fine = folder.has("image")
            && ROLES
                .iter()
                .all(|role| !folder.has(role) || folder.is_whole(role))
            && modules;
        Ok(fine.then_some(folder))
    }

    fn is_whole(&self, role: &str) -> bool {
        let Some(file) = self.file(role).filter(|file| file.path.is_file()) else {
            return false;
        };
        // A file in two roles is read once.
        let is_image = role != "image" && self.file("image").as_ref() == Some(&file);
        is_image || sha256_of_file(&file.path).is_ok_and(|found| found == file.sha256)
    }

    /// Returns whether there is a file in that role.
    pub(crate) fn has(&self, role: &str) -> bool {
        self.facts.contains_key(role)
    }

    /// Reads the directory again.
    pub(crate) fn reopen(self) -> Result<Self, KernelError> {
        Ok(Self::open(self.path.clone())?.unwrap_or(self))
    }

    /// Returns the image file.
    pub(crate) fn image(&self) -> Result<BuildFile, KernelError> {
        self.file("image")
            .ok_or_else(|| KernelError::io(&self.path)(io::Error::from(io::ErrorKind::NotFound)))
    }

    /// Returns the file in that role.
    pub(crate) fn file(&self, role: &str) -> Option<BuildFile> {
        let mut fields = self.facts.get(role)?.split(' ');
        Some(BuildFile {
            path: self.path.join(fields.next()?),
            sha256: fields.next()?.to_owned(),
        })
    }

    /// Returns the module directory.
    pub(crate) fn modules(&self) -> Option<PathBuf> {
        self.facts.get("modules").map(|place| self.path.join(place))
    }

    pub(crate) fn note(&mut self, key: &str, value: &str) {
        self.facts.insert(key.to_owned(), value.to_owned());
    }

    /// Writes a file and records its role.
    pub(crate) fn put(
        &mut self,
        role: &str,
        name: &str,
        content: &[u8],
    ) -> Result<(), KernelError> {
        write(&self.path.join(name), content)?;
        let hash = sha256(content);
        self.note(role, &format!("{name} {hash} {}", content.len()));
        Ok(())
    }

    /// Uses the file of one role in another, too.
    pub(crate) fn same(&mut self, role: &str, as_role: &str) {
        if let Some(file) = self.facts.get(as_role).cloned() {
            self.facts.insert(role.to_owned(), file);
        }
    }

    /// Moves a module directory in, from the same file system.
    pub(crate) fn take_modules(&mut self, modules: &Path) -> Result<(), KernelError> {
        let Some(release) = modules.file_name().and_then(|name| name.to_str()) else {
            return Ok(());
        };
        let all = self.path.join("modules");
        if all.exists() {
            // Left by an attempt that did not finish, as `origin` does not list it.
            fs::remove_dir_all(&all).map_err(KernelError::io(&all))?;
        }
        fs::create_dir(&all).map_err(KernelError::io(&all))?;
        fs::rename(modules, all.join(release)).map_err(KernelError::io(&all))?;
        self.note("modules", &format!("modules/{release}"));
        Ok(())
    }

    /// Writes `origin`, which makes the directory complete.
    pub(crate) fn save(&self) -> Result<(), KernelError> {
        write_facts(&self.path.join(ORIGIN), &self.facts)
    }

    /// Moves the complete directory into place, from the same file system.
    pub(crate) fn move_to(mut self, place: PathBuf) -> Result<Self, KernelError> {
        if place.exists() {
            // The existing one is incomplete, or it would have been used.
            fs::remove_dir_all(&place).map_err(KernelError::io(&place))?;
        }
        fs::rename(&self.path, &place).map_err(KernelError::io(&place))?;
        self.path = place;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Folder, facts};

    #[test]
    fn a_folder_is_whole_or_not_there() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("build");
        let mut folder = Folder::create(path.clone()).unwrap();
        assert!(Folder::open(path.clone()).unwrap().is_none());
        folder.put("image", "image", b"kernel").unwrap();
        folder.same("vmlinux", "image");
        folder.note("origin", "a\nconfig=b");
        folder.save().unwrap();
        let found = Folder::open(path.clone()).unwrap().unwrap();
        assert_eq!(found.file("image"), found.file("vmlinux"));
        assert!(!found.has("config"));
        let origin = std::fs::read_to_string(path.join("origin")).unwrap();
        insta::assert_snapshot!(origin, @r"
        image=image 6923dd1bc0460082c5d55a831908c24a282860b7f1cd6c2b79cf1bc8857c639c 6
        origin=a\nconfig=b
        vmlinux=image 6923dd1bc0460082c5d55a831908c24a282860b7f1cd6c2b79cf1bc8857c639c 6
        ");
        for damaged in [&b"kern"[..], b"Kernel"] {
            std::fs::write(path.join("image"), damaged).unwrap();
            assert!(Folder::open(path.clone()).unwrap().is_none());
        }
    }

    proptest! {
        #[test]
        fn any_facts_can_be_read(text in any::<String>()) {
            prop_assert!(facts(&text).len() <= text.lines().count());
        }
    }
}

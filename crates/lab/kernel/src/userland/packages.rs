//! Packages of userlands, kept in the data directory: `packages/HASH.deb`, by the hash in apt's
//! lists.
//!
//! Only missing or damaged packages are downloaded, for all tools together.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::{self, Needed};
use crate::folder::sha256_of_file;
use crate::scratch::Scratch;
use crate::{AptError, BuildCache, BuildEvent, KernelError};

const FOLDER: &str = "packages";

impl BuildCache {
    /// Returns the files of packages, in order; downloads missing ones. `what` names the tool that
    /// needs them.
    pub(super) fn packages(
        &self,
        needed: &[Needed],
        what: &str,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Vec<PathBuf>, KernelError> {
        let folder = self.home.join(FOLDER);
        fs::create_dir_all(&folder).map_err(KernelError::io(&folder))?;
        let files: Vec<PathBuf> = needed
            .iter()
            .map(|one| hash(one).map(|hash| folder.join(format!("{hash}.deb"))))
            .collect::<Result<_, _>>()?;
        let absent: Vec<(&Needed, &PathBuf)> = needed
            .iter()
            .zip(&files)
            .filter(|(one, file): &(&Needed, &PathBuf)| check(one, file).is_err())
            .collect();
        if absent.is_empty() {
            return Ok(files);
        }
        let bytes = absent.iter().map(|(one, _)| one.bytes).sum();
        notify(BuildEvent::Downloading {
            package: what.to_owned(),
            bytes,
        });
        let scratch = Scratch::new(self.downloads())?;
        let list: Vec<Needed> = absent.iter().map(|(one, _)| (*one).clone()).collect();
        for (deb, (one, file)) in apt::download_all(&list, scratch.path())?.iter().zip(absent) {
            check(one, deb)?;
            fs::rename(deb, file).map_err(KernelError::io(file))?;
        }
        Ok(files)
    }
}

/// Returns a package's hash in apt's lists, which becomes a file name.
fn hash(needed: &Needed) -> Result<&str, KernelError> {
    let is_hash =
        |hash: &&str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    needed
        .hash
        .strip_prefix("SHA256:")
        .filter(is_hash)
        .ok_or_else(|| KernelError::Program {
            command: "apt-get --print-uris install".to_owned(),
            detail: format!("{} has `{}` and no SHA-256", spoken(needed), needed.hash),
        })
}

/// Checks that a file is the needed package.
fn check(needed: &Needed, file: &Path) -> Result<(), KernelError> {
    let expected = hash(needed)?.to_owned();
    let got = sha256_of_file(file)?;
    if got == expected {
        Ok(())
    } else {
        Err(KernelError::Apt(AptError::Checksum {
            package: spoken(needed),
            expected,
            got,
        }))
    }
}

fn spoken(needed: &Needed) -> String {
    format!("{} {}", needed.package, needed.version)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use crate::apt::Needed;
    use crate::folder::sha256;
    use crate::{BuildCache, BuildEvent};

    fn needed(hash: &str) -> Needed {
        Needed {
            package: "marvin-nonesuch".to_owned(),
            version: "1".to_owned(),
            file: "marvin-nonesuch_1_amd64.deb".to_owned(),
            bytes: 3,
            hash: hash.to_owned(),
        }
    }

    #[test]
    fn only_missing_or_damaged_packages_are_downloaded() {
        let home = tempfile::tempdir().unwrap();
        let cache = BuildCache::open(home.path()).unwrap();
        let one = needed(&format!("SHA256:{}", sha256(b"deb")));
        let file = home
            .path()
            .join("packages")
            .join(format!("{}.deb", sha256(b"deb")));
        let steps = RefCell::new(Vec::new());
        let notify = |step: BuildEvent| steps.borrow_mut().push(step);
        let ask = || {
            cache
                .packages(std::slice::from_ref(&one), "tools", &notify)
                .map_err(|error| error.to_string())
        };
        // There is no such package, so that a download would fail.
        let error = ask().unwrap_err();
        assert!(error.contains("marvin-nonesuch=1"), "{error}");
        assert_eq!(
            steps.take(),
            [BuildEvent::Downloading {
                package: "tools".to_owned(),
                bytes: 3
            }]
        );
        fs::write(&file, "deb").unwrap();
        assert_eq!(ask().unwrap(), std::slice::from_ref(&file));
        assert!(steps.take().is_empty());
        fs::write(&file, "dex").unwrap();
        ask().unwrap_err();
        assert_eq!(steps.take().len(), 1);
    }

    #[test]
    fn a_hash_is_no_path() {
        let home = tempfile::tempdir().unwrap();
        let cache = BuildCache::open(home.path()).unwrap();
        let refusal = |hash: &str| {
            cache
                .packages(std::slice::from_ref(&needed(hash)), "tools", &|_| {})
                .unwrap_err()
                .to_string()
        };
        insta::assert_snapshot!(refusal("SHA256:../../etc/passwd"), @"`apt-get --print-uris install` failed: marvin-nonesuch 1 has `SHA256:../../etc/passwd` and no SHA-256");
        insta::assert_snapshot!(refusal("MD5Sum:00"), @"`apt-get --print-uris install` failed: marvin-nonesuch 1 has `MD5Sum:00` and no SHA-256");
    }
}

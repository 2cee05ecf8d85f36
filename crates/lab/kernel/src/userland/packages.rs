//! Packages of userlands, kept in the data directory: `packages/HASH.deb`, by the hash in the
//! archive's lists.
//!
//! Only missing or damaged packages are downloaded, for all tools together.

use std::fs;
use std::path::PathBuf;

use archives::Needed;

use crate::folder::sha256_of_file;
use crate::scratch::Scratch;
use crate::{BuildCache, BuildEvent, KernelError};

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
        let mut files = Vec::new();
        let mut absent = Vec::new();
        for one in needed {
            let sha256 = &one.package.sha256;
            let file = folder.join(format!("{sha256}.deb"));
            if sha256_of_file(&file).ok().as_ref() != Some(sha256) {
                absent.push((one, file.clone()));
            }
            files.push(file);
        }
        if absent.is_empty() {
            return Ok(files);
        }
        let bytes = absent.iter().map(|(one, _)| one.package.bytes).sum();
        notify(BuildEvent::Downloading {
            package: what.to_owned(),
            bytes,
        });
        let scratch = Scratch::new(self.downloads())?;
        for (one, file) in absent {
            let deb = self
                .archives
                .debian
                .download(&one.package, scratch.path())?;
            fs::rename(&deb, &file).map_err(KernelError::io(&file))?;
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use archives::{Needed, Package};

    use crate::cache::without_network;
    use crate::folder::sha256;
    use crate::{BuildCache, BuildEvent};

    fn needed(sha256: String) -> Needed {
        Needed {
            version: "1".to_owned(),
            file: "x_1_amd64.deb".to_owned(),
            package: Package {
                package: "x".to_owned(),
                // Nothing listens there, so that a download fails.
                url: "http://127.0.0.1:1/x_1_amd64.deb".to_owned(),
                bytes: 3,
                sha256,
            },
        }
    }

    #[test]
    fn only_missing_or_damaged_packages_are_downloaded() {
        let home = tempfile::tempdir().unwrap();
        let debian = without_network(home.path());
        let cache = BuildCache::open(home.path(), debian).unwrap();
        let one = needed(sha256(b"deb"));
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
        let error = ask().unwrap_err();
        assert!(
            error.contains("cannot fetch http://127.0.0.1:1/"),
            "{error}"
        );
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
}

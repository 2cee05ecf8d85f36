//! The sources that do not build, in a file of the data directory: an interrupted stabilisation
//! does not build them again. Builds and results are in the build cache and in the store.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use stabilise::Failure;
use subprocess::replace_file;

use crate::{LabError, Reuse};

/// First line of the file.
const HEAD: &str = "marvin failures 1";
/// Marvin reads no larger file (bytes).
const BYTES_MAX: u64 = 16 << 20;

/// Failures by source tree.
#[derive(Debug)]
pub(super) struct Failures {
    file: PathBuf,
    known: BTreeMap<String, Failure>,
}

impl Failures {
    /// Opens the failures of a kernel config, a compiler and a machine; without earlier ones unless
    /// `reuse` says so.
    pub(super) fn open(home: &Path, identity: &str, reuse: Reuse) -> Result<Self, LabError> {
        let folder = home.join("stabilisations");
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let name = model::hexadecimal(&Sha256::digest(identity)[..8]);
        let file = folder.join(name);
        let mut known = BTreeMap::new();
        let is_readable = fs::metadata(&file).is_ok_and(|found| found.len() <= BYTES_MAX);
        if reuse == Reuse::Stored && is_readable {
            let text =
                String::from_utf8_lossy(&fs::read(&file).map_err(failed(&file))?).into_owned();
            // A line that an interruption cut is built again.
            known = text.lines().skip(1).filter_map(parse).collect();
        }
        Ok(Self { file, known })
    }

    pub(super) fn get(&self, tree: &str) -> Option<&Failure> {
        self.known.get(tree)
    }

    pub(super) fn note(&mut self, tree: &str, failure: &Failure) -> Result<(), LabError> {
        self.known.insert(tree.to_owned(), failure.clone());
        let mut text = format!("{HEAD}\n");
        for (tree, failure) in &self.known {
            let (kind, why) = match failure {
                Failure::DoesNotBuild(why) => ("build", why),
                Failure::DoesNotRun(why) => ("run", why),
                Failure::Conflict { .. } => continue,
            };
            let line = format!("{kind} {tree} {}\n", why.replace(char::is_control, " "));
            text.push_str(&line);
        }
        let new = self.file.with_extension("new");
        replace_file(&self.file, &new, text).map_err(failed(&self.file))
    }
}

fn parse(line: &str) -> Option<(String, Failure)> {
    let mut fields = line.splitn(3, ' ');
    let kind = fields.next()?;
    let tree = fields.next()?;
    let why = fields.next()?.to_owned();
    let failure = match kind {
        "build" => Failure::DoesNotBuild(why),
        "run" => Failure::DoesNotRun(why),
        _ => return None,
    };
    Some((tree.to_owned(), failure))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LabError {
    move |error| LabError::Stabilisation {
        file: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use stabilise::Failure;

    use super::Failures;
    use crate::Reuse;

    #[test]
    fn failed_builds_survive_a_kill() {
        let home = tempfile::tempdir().unwrap();
        let mut failures = Failures::open(home.path(), "micro gcc", Reuse::Stored).unwrap();
        let failure = Failure::DoesNotBuild("mm/memory.c:1: error:\nx".to_owned());
        failures.note("aa", &failure).unwrap();
        let again = Failures::open(home.path(), "micro gcc", Reuse::Stored).unwrap();
        assert_eq!(
            again.get("aa"),
            Some(&Failure::DoesNotBuild("mm/memory.c:1: error: x".to_owned()))
        );
        assert_eq!(
            Failures::open(home.path(), "micro clang", Reuse::Stored)
                .unwrap()
                .get("aa"),
            None
        );
        assert_eq!(
            Failures::open(home.path(), "micro gcc", Reuse::Nothing)
                .unwrap()
                .get("aa"),
            None
        );
    }
}

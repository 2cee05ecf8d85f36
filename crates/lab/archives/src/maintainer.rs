//! Who maintains a package, by the extracts of lists that are kept in a data directory. Fetches
//! nothing: what was never looked up has no answer.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::stanza::field;

/// Largest extract that is read (bytes).
const EXTRACT_MAX: u64 = 64 << 20;

/// Returns the `Maintainer` of a package's version: `Debian Kernel Team <address>`.
#[must_use]
pub fn package_maintainer(home: &Path, package: &str, version: &str) -> Option<String> {
    let entries = fs::read_dir(home.join("archives")).ok()?;
    for entry in entries.flatten() {
        let file = entry.path();
        // Whole lists are compressed; the extracts have the kernels.
        if file.extension().is_some_and(|extension| extension == "xz") {
            continue;
        }
        let mut text = String::new();
        let read = File::open(&file).and_then(|open| {
            let mut open = open.take(EXTRACT_MAX);
            open.read_to_string(&mut text)
        });
        if read.is_err() {
            continue;
        }
        let mut stanzas = text.split("\n\n");
        let is_meant = |stanza: &&str| {
            field(stanza, "Package") == Some(package) && field(stanza, "Version") == Some(version)
        };
        if let Some(found) = stanzas.find(is_meant) {
            return field(found, "Maintainer").map(str::to_owned);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::package_maintainer;

    #[test]
    fn maintainer_of_a_version_comes_from_extracts() {
        let home = tempfile::tempdir().unwrap();
        let of = |version| package_maintainer(home.path(), "linux-image-a", version);
        assert_eq!(of("1"), None, "nothing was looked up");
        let folder = home.path().join("archives");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("1.xz"), b"\xfd7zXZ\xff\xfe").unwrap();
        fs::write(folder.join("2.broken"), b"\xff\xfe").unwrap();
        let stanzas = "Package: linux-image-a\nVersion: 1\nMaintainer: Team <team@x.org>\n\n\
                       Package: linux-image-a\nVersion: 2\n\n";
        fs::write(folder.join("2.linux"), stanzas).unwrap();
        assert_eq!(of("1").as_deref(), Some("Team <team@x.org>"));
        assert_eq!(of("2"), None, "it has no such field");
        assert_eq!(of("3"), None);
    }
}

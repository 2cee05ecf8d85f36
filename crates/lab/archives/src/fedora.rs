//! Fedora's archive: lists of the packages of a release and its updates, and packages that are
//! verified by the signature that they carry.
//!
//! The lists are not signed: `repomd.xml` names the list of packages with its hash, so a mirror can
//! withhold a package, but give no other one in its place.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{FedoraSettings, UnixTime};

use crate::error::damaged;
use crate::fetch::{Pause, Wanted, file_name, write};
use crate::fresh::FreshList;
use crate::hashing::HashingReader;
use crate::openpgp::Validity;
use crate::repodata::Primary;
use crate::unpack::decoder_of;
use crate::{ArchiveError, Package, Stanzas, repodata, rpm};

/// Packages of kernels.
const PREFIX: &str = "kernel";

/// Fedora's archive, with its lists in a data directory.
#[derive(Debug, Clone)]
pub struct Fedora {
    settings: FedoraSettings,
    folder: PathBuf,
    clock: fn() -> UnixTime,
    pause: Pause,
}

impl Fedora {
    /// Returns the archive with its lists below `home`; fetches nothing yet.
    #[must_use]
    pub fn new(home: &Path, settings: FedoraSettings, clock: fn() -> UnixTime) -> Self {
        Self {
            settings,
            folder: home.join("archives"),
            clock,
            pause: std::thread::sleep,
        }
    }

    /// Returns the same archive, which waits between tries as `pause` does.
    #[must_use]
    pub fn pausing(self, pause: fn(Duration)) -> Self {
        Self { pause, ..self }
    }

    /// Returns the release that a name without one means, or the given one.
    #[must_use]
    pub fn release<'a>(&'a self, given: Option<&'a str>) -> &'a str {
        given.unwrap_or(&self.settings.release)
    }

    /// Returns the stanzas of the kernel packages of a release with its updates.
    ///
    /// # Errors
    /// If there is no such release, or its lists cannot be fetched.
    pub fn kernels(&self, release: &str) -> Result<Vec<Stanzas>, ArchiveError> {
        let mirror = self.settings.mirror.trim_end_matches('/');
        let is_number = release.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = release.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let repositories = match (is_number, is_plain) {
            (true, _) => vec![
                format!("{mirror}/releases/{release}/Everything/x86_64/os"),
                format!("{mirror}/updates/{release}/Everything/x86_64"),
            ],
            (false, true) => vec![format!(
                "{mirror}/development/{release}/Everything/x86_64/os"
            )],
            (false, false) => return Err(no_release(release)),
        };
        let mut found = Vec::new();
        for repository in repositories {
            let text = self.stanzas(&repository).map_err(|error| match error {
                ArchiveError::Absent { .. } => no_release(release),
                error => error,
            })?;
            found.push(Stanzas {
                archive: repository,
                text,
            });
        }
        Ok(found)
    }

    fn stanzas(&self, repository: &str) -> Result<String, ArchiveError> {
        let repomd = FreshList {
            url: &format!("{repository}/repodata/repomd.xml"),
            folder: &self.folder,
            clock: self.clock,
            pause: self.pause,
        }
        .file()?;
        let text = fs::read_to_string(&repomd).map_err(ArchiveError::io(&repomd))?;
        let listed = Primary::parse(&text).map_err(|detail| ArchiveError::Unsupported {
            what: format!("{repository}/repodata/repomd.xml"),
            detail,
        })?;
        let extract = self.folder.join(format!("{}.{PREFIX}", listed.file.sha256));
        if let Ok(text) = fs::read_to_string(&extract) {
            return Ok(text);
        }
        let url = format!("{repository}/{}", listed.file.path);
        let list = self.folder.join(format!("{}.primary", listed.file.sha256));
        let wanted = Wanted {
            url: &url,
            hint: "the mirror is being updated: try again in some minutes",
            pause: self.pause,
        };
        wanted.fetch_known(listed.file.bytes, &listed.file.sha256, &list)?;
        let text = read_primary(&url, &list, &listed);
        // The whole list is large, and nothing else of it is needed.
        drop(fs::remove_file(&list));
        let text = text?;
        write(&extract, text.as_bytes())?;
        Ok(text)
    }

    /// Downloads a package into a directory and verifies it; returns its file.
    ///
    /// # Errors
    /// If there is no keyring, the package cannot be fetched, or is not trusted: then nothing is
    /// left.
    pub fn download(&self, package: &Package, into: &Path) -> Result<PathBuf, ArchiveError> {
        let keyring = self.settings.keyring.as_deref().ok_or(ArchiveError::NoKeyring {
            what: "packages of Fedora",
            table: "[fedora]",
            example: "Fedora's is /etc/pki/rpm-gpg/RPM-GPG-KEY-fedora-43-primary, of its package fedora-gpg-keys",
        })?;
        let name = file_name(&package.url);
        let file = into.join(format!("{}-{name}", &package.sha256[..8]));
        let hint = "the lists may be older than the archive: `marvin kernels --refresh`";
        Wanted {
            url: &package.url,
            hint,
            pause: self.pause,
        }
        .fetch_known(package.bytes, &package.sha256, &file)?;
        let expected = name.trim_end_matches(".rpm").trim_end_matches(".x86_64");
        let validity = Validity::At((self.clock)());
        let verified = rpm::verify(&file, &package.url, expected, keyring, validity);
        if verified.is_err() {
            drop(fs::remove_file(&file));
        }
        verified.map(|()| file)
    }
}

/// Reads the stanzas of kernels from a list of packages, and checks what it unpacks to.
fn read_primary(url: &str, list: &Path, listed: &Primary) -> Result<String, ArchiveError> {
    let packed = BufReader::new(File::open(list).map_err(ArchiveError::io(list))?);
    let unpacked = decoder_of(packed).map_err(|error| damaged(Path::new(url), &error))?;
    let mut unpacked = HashingReader::new(unpacked);
    let text = repodata::stanzas(BufReader::new(&mut unpacked), PREFIX)
        .map_err(|error| damaged(Path::new(url), &error))?;
    let got = unpacked.finish();
    match &listed.unpacked_sha256 {
        Some(expected) if *expected != got => Err(ArchiveError::Checksum {
            url: format!("{url}, unpacked,"),
            expected: expected.clone(),
            got,
        }),
        _ => Ok(text),
    }
}

fn no_release(release: &str) -> ArchiveError {
    ArchiveError::Suite {
        suite: release.to_owned(),
        known: "Fedora's, such as 43 or rawhide; old releases are at another `mirror`",
    }
}

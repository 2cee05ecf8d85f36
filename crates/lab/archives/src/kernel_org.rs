//! Tarballs of kernel.org: which versions there are, and their sources, verified by the signed list
//! of hashes or, of a version that it has not yet, by the signature of the tarball.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{MirrorSettings, UnixTime};

use crate::error::damaged;
use crate::fetch::{Pause, Wanted, read, refuse_web_page};
use crate::fresh::FreshList;
use crate::openpgp::{self, Validity};
use crate::packets::binary;
use crate::release::is_sha256;
use crate::unpack::decoder_of;
use crate::version::{key, numbers};
use crate::{ArchiveError, hashing};

/// Largest tarball, packed and unpacked: that of 6.12 has 150 MB and 1.5 GB.
const TARBALL_MAX: u64 = 1 << 30;
const UNPACKED_MAX: u64 = 4 << 30;
const SIGNATURE_MAX: u64 = 1 << 16;
/// Most versions in a message.
const SHOWN: usize = 4;

/// Tarballs of kernel.org, with their list in a data directory.
#[derive(Debug, Clone)]
pub struct KernelOrg {
    settings: MirrorSettings,
    folder: PathBuf,
    clock: fn() -> UnixTime,
    pause: Pause,
}

/// A version of the kernel's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceVersion {
    pub version: String,
    /// SHA-256 of its tarball; `None` if the list has it not yet.
    sha256: Option<String>,
    /// The newest versions that the list has, for messages.
    listed: Vec<String>,
}

/// A downloaded tarball.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tarball {
    pub file: PathBuf,
    /// What verified it.
    pub proof: &'static str,
}

impl KernelOrg {
    /// Returns the archive with its lists below `home`; fetches nothing yet.
    #[must_use]
    pub fn new(home: &Path, settings: MirrorSettings, clock: fn() -> UnixTime) -> Self {
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

    /// Returns the newest version that begins with these numbers, or the version itself if the list
    /// has none.
    ///
    /// # Errors
    /// If there is no keyring, or the list cannot be fetched or is not trusted.
    pub fn find(&self, version: &str) -> Result<SourceVersion, ArchiveError> {
        let keyring = self.keyring()?;
        let url = format!("{}/sha256sums.asc", self.series(version));
        let list = FreshList {
            url: &url,
            folder: &self.folder,
            clock: self.clock,
            pause: self.pause,
        }
        .file()?;
        let validity = Validity::At((self.clock)());
        let text = openpgp::signed_text(&list, keyring, validity)
            .map_err(|fault| ArchiveError::signature(&url, keyring, fault))?;
        let mut listed: Vec<(&str, &str)> = text.lines().filter_map(tarball).collect();
        listed.sort_by_key(|(_, version)| std::cmp::Reverse(key(version)));
        let found = listed
            .iter()
            .find(|(_, listed)| numbers(listed).starts_with(&numbers(version)));
        let shown = listed.iter().take(SHOWN);
        Ok(SourceVersion {
            version: found.map_or(version, |(_, version)| version).to_owned(),
            sha256: found.map(|(sha256, _)| (*sha256).to_owned()),
            listed: shown.map(|(_, version)| (*version).to_owned()).collect(),
        })
    }

    /// Downloads the tarball of a version into a directory and verifies it.
    ///
    /// # Errors
    /// If there is none, or it is not trusted: then nothing is left.
    pub fn download(&self, source: &SourceVersion, into: &Path) -> Result<Tarball, ArchiveError> {
        let version = &source.version;
        let tar = format!("{}/linux-{version}.tar", self.series(version));
        let file = into.join(format!("linux-{version}.tar.xz"));
        let hint = "marvin kernels names no sources: https://www.kernel.org has the list";
        Wanted {
            url: &format!("{tar}.xz"),
            hint,
            pause: self.pause,
        }
        .fetch(None, TARBALL_MAX, &file)
        .map_err(|error| match error {
            ArchiveError::Absent { .. } => ArchiveError::NoTarball {
                version: version.clone(),
                listed: source.listed.join(", "),
            },
            error => error,
        })?;
        let verified = match &source.sha256 {
            Some(sha256) => check(&tar, &file, sha256).map(|()| "sha256sums.asc"),
            None => self.verify(&tar, &file).map(|()| "its signature"),
        };
        if verified.is_err() {
            drop(fs::remove_file(&file));
        }
        verified.map(|proof| Tarball { file, proof })
    }

    /// Verifies the unpacked tarball, in memory: that is what is signed.
    fn verify(&self, tar: &str, file: &Path) -> Result<(), ArchiveError> {
        let keyring = self.keyring()?;
        let url = format!("{tar}.sign");
        let beside = file.with_extension("sign");
        let hint = "a version without a signature is not used";
        Wanted {
            url: &url,
            hint,
            pause: self.pause,
        }
        .fetch(None, SIGNATURE_MAX, &beside)?;
        let signature = read(&beside)?;
        drop(fs::remove_file(&beside));
        let signature = binary(&signature)
            .map_err(|detail| ArchiveError::signature(&url, keyring, detail.into()))?;
        let packed = BufReader::new(File::open(file).map_err(ArchiveError::io(file))?);
        let mut unpacked = Vec::new();
        decoder_of(packed)
            .and_then(|tar| tar.take(UNPACKED_MAX).read_to_end(&mut unpacked))
            .map_err(|error| damaged(file, &error))?;
        let validity = Validity::At((self.clock)());
        openpgp::verify(unpacked, &signature, &read(keyring)?, validity)
            .map_err(|fault| ArchiveError::signature(&url, keyring, fault))
    }

    fn keyring(&self) -> Result<&Path, ArchiveError> {
        self.settings.keyring.as_deref().ok_or(ArchiveError::NoKeyring {
            what: "sources of kernel.org",
            table: "[kernel_org]",
            example: "https://www.kernel.org/signature.html says which keys sign, and where they are",
        })
    }

    /// Returns the address of a version's folder.
    fn series(&self, version: &str) -> String {
        let major = version.split('.').next().unwrap_or_default();
        let mirror = self.settings.mirror.trim_end_matches('/');
        format!("{mirror}/v{major}.x")
    }
}

/// Reads a line of the list: hash and version of a tarball.
fn tarball(line: &str) -> Option<(&str, &str)> {
    let (sha256, file) = line.split_once("  ")?;
    let version = file.strip_prefix("linux-")?.strip_suffix(".tar.xz")?;
    let is_version = version
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_sha256(sha256) && is_version).then_some((sha256, version))
}

fn check(tar: &str, file: &Path, sha256: &str) -> Result<(), ArchiveError> {
    let got = hashing::sha256_of_file(file).map_err(ArchiveError::io(file))?;
    if got == sha256 {
        return Ok(());
    }
    let url = format!("{tar}.xz");
    refuse_web_page(&url, file)?;
    Err(ArchiveError::Checksum {
        url,
        expected: sha256.to_owned(),
        got,
    })
}

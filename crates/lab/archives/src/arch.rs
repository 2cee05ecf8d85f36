//! Arch Linux's archive: the database of each repository, and packages that are verified by the
//! signature beside them.
//!
//! The databases are not signed: a mirror can withhold a package, but give no other one in its
//! place.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{MirrorSettings, UnixTime};

use crate::error::damaged;
use crate::fetch::{Pause, Wanted, file_name, read};
use crate::fresh::FreshList;
use crate::openpgp::{self, Validity};
use crate::packets::binary;
use crate::tar::{Archive, Paths};
use crate::unpack::{UNPACKED_MAX, decoder_of};
use crate::{ArchiveError, Package, Stanzas};

/// Repositories with kernels.
const REPOSITORIES: [&str; 2] = ["core", "extra"];
const PREFIX: &str = "linux";
/// Largest signature.
const SIGNATURE_MAX: u64 = 1 << 16;
/// Where a package says what it is.
const INFO: &str = ".PKGINFO";

/// Arch Linux's archive, with its lists in a data directory.
#[derive(Debug, Clone)]
pub struct Arch {
    settings: MirrorSettings,
    folder: PathBuf,
    clock: fn() -> UnixTime,
    pause: Pause,
}

impl Arch {
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

    /// Returns the stanzas of packages whose names begin as a kernel's.
    ///
    /// # Errors
    /// If a database cannot be fetched or read.
    pub fn kernels(&self) -> Result<Vec<Stanzas>, ArchiveError> {
        let mut found = Vec::new();
        for repository in REPOSITORIES {
            let mirror = self.settings.mirror.trim_end_matches('/');
            let archive = format!("{mirror}/{repository}/os/x86_64");
            let database = FreshList {
                url: &format!("{archive}/{repository}.db"),
                folder: &self.folder,
                clock: self.clock,
                pause: self.pause,
            }
            .file()?;
            let file = File::open(&database).map_err(ArchiveError::io(&database))?;
            let text = stanzas(file).map_err(|error| damaged(&database, &error))?;
            found.push(Stanzas { archive, text });
        }
        Ok(found)
    }

    /// Downloads a package into a directory and verifies it; returns its file.
    ///
    /// # Errors
    /// If there is no keyring, the package cannot be fetched, or is not trusted: then nothing is
    /// left.
    pub fn download(&self, package: &Package, into: &Path) -> Result<PathBuf, ArchiveError> {
        let keyring = self.settings.keyring.as_deref().ok_or(ArchiveError::NoKeyring {
            what: "packages of Arch Linux",
            table: "[arch]",
            example: "Arch's is /usr/share/pacman/keyrings/archlinux.gpg, of its package archlinux-keyring",
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
        let verified = self.verify(package, &file, &name, keyring);
        if verified.is_err() {
            drop(fs::remove_file(&file));
        }
        verified.map(|()| file)
    }

    fn verify(
        &self,
        package: &Package,
        file: &Path,
        name: &str,
        keyring: &Path,
    ) -> Result<(), ArchiveError> {
        let beside = file.with_extension("sig");
        let hint = "Arch signs every package: set another `mirror` in marvin.toml";
        let url = format!("{}.sig", package.url);
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
        let validity = Validity::At((self.clock)());
        openpgp::verify(read(file)?, &signature, &read(keyring)?, validity)
            .map_err(|fault| ArchiveError::signature(&package.url, keyring, fault))?;
        // The file's name comes from a list without a signature.
        let found = info(file).map_err(|error| damaged(file, &error))?;
        let is_expected = name
            .strip_prefix(&found)
            .is_some_and(|rest| rest.starts_with("-x86_64.pkg.tar"));
        if is_expected {
            return Ok(());
        }
        Err(ArchiveError::OtherPackage {
            url: package.url.clone(),
            expected: name.to_owned(),
            found,
        })
    }
}

/// Returns what a package says that it is, `NAME-VERSION`.
fn info(package: &Path) -> io::Result<String> {
    let unpacked = decoder_of(BufReader::new(File::open(package)?))?;
    let mut entries = Archive::new(unpacked.take(UNPACKED_MAX), Paths::FromRoot);
    while let Some(entry) = entries.next_entry()? {
        if entry.path == INFO {
            let text = String::from_utf8_lossy(&entry.content);
            let named = info_field(&text, "pkgname").zip(info_field(&text, "pkgver"));
            return named
                .map(|(name, version)| format!("{name}-{version}"))
                .ok_or_else(|| io::Error::other("its .PKGINFO has no name and version"));
        }
    }
    Err(io::Error::other("it has no .PKGINFO"))
}

/// Returns a field of a `.PKGINFO`.
fn info_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(" = ")?;
        (key == name).then_some(value)
    })
}

/// Reads a database: a tar archive with a file `desc` for each package.
fn stanzas(database: impl Read) -> io::Result<String> {
    let unpacked = decoder_of(BufReader::new(database))?;
    let mut entries = Archive::new(unpacked.take(UNPACKED_MAX), Paths::FromRoot);
    let mut stanzas = String::new();
    while let Some(entry) = entries.next_entry()? {
        if entry.path.starts_with(PREFIX) && entry.path.ends_with("/desc") {
            let description = String::from_utf8_lossy(&entry.content);
            stanzas.push_str(&stanza(&description).unwrap_or_default());
        }
    }
    Ok(stanzas)
}

fn stanza(description: &str) -> Option<String> {
    let mut stanza = String::new();
    writeln!(
        stanza,
        "Package: {}\nVersion: {}\nArchitecture: {}\nFilename: {}\nSize: {}\nSHA256: {}\n",
        field(description, "NAME")?,
        field(description, "VERSION")?,
        field(description, "ARCH").filter(|arch| *arch == "x86_64")?,
        field(description, "FILENAME")?,
        field(description, "CSIZE")?,
        field(description, "SHA256SUM")?
    )
    .ok()?;
    Some(stanza)
}

/// Returns a field of one word of a description.
fn field<'a>(description: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = description.split_once(&format!("%{name}%\n"))?;
    rest.lines().next().filter(|value| !value.contains(' '))
}

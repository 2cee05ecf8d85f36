//! Debian's archive: suites with their signed lists, kept in the data directory, and packages,
//! downloaded and verified by these lists.
//!
//! `archives/SUITE.InRelease` is the newest list that was seen, `archives/HASH.xz` a list of
//! packages, `archives/HASH.NAME` an extract of it. Lists are asked for again when they are older
//! than [`FRESH_S`]; without a network the old ones serve as long as they are valid.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use model::{DebianSettings, UnixTime};

use crate::http::{self, Answer, HttpError, Receiver};
use crate::release::{ListedFile, Release, is_sha256};
use crate::resolve::{Needed, closure};
use crate::stanza::field;
use crate::unpack::decoder;
use crate::version::debian_version;
use crate::{ArchiveError, hashing, openpgp};

/// How old a list may be that is used without asking (s).
const FRESH_S: u64 = 6 * 3600;
/// Largest InRelease, which a signature protects only afterwards.
const RELEASE_MAX: u64 = 16 << 20;
/// The list of packages: Marvin's guests are amd64, and kernels are in main.
const PACKAGES: &str = "main/binary-amd64/Packages.xz";
/// Suites that come alone: without updates and security updates beside them.
const ALONE: [&str; 3] = ["sid", "unstable", "experimental"];
/// Debian's keys, of the package debian-archive-keyring 2023.3+deb12u2.
const KEYRING: &[u8] = include_bytes!("../keys/debian.gpg");

/// Debian's archive, with its lists in a data directory.
#[derive(Debug, Clone)]
pub struct Debian {
    settings: DebianSettings,
    folder: PathBuf,
    /// Says what time it is.
    clock: fn() -> UnixTime,
    /// Whether the kept lists have to do.
    is_offline: bool,
}

/// A package in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub package: String,
    pub url: String,
    pub bytes: u64,
    /// SHA-256 of it, hexadecimal.
    pub sha256: String,
}

impl Package {
    /// Reads a stanza of an archive's list; `None` if it does not say where the package is, its
    /// size and its hash.
    #[must_use]
    pub fn parse(archive: &str, stanza: &str) -> Option<Self> {
        let path = field(stanza, "Filename")?;
        let sha256 = field(stanza, "SHA256").filter(|hash| is_sha256(hash))?;
        Some(Self {
            package: field(stanza, "Package")?.to_owned(),
            url: format!("{archive}/{path}"),
            bytes: field(stanza, "Size")?.parse().ok()?,
            sha256: sha256.to_owned(),
        })
    }
}

/// A package that is known by its hash, as Marvin's own lists have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPackage<'a> {
    pub package: &'a str,
    /// Its path in the archive, with the archive's name in front: `debian/pool/…`.
    pub path: &'a str,
    pub bytes: u64,
    /// SHA-256 of it, hexadecimal.
    pub sha256: &'a str,
    /// A day when the archive had it, as the snapshot service names it: `20261126T000000Z`.
    pub day: &'a str,
}

impl<'a> KnownPackage<'a> {
    /// Reads `NAME VERSION PATH SHA256 BYTES`.
    #[must_use]
    pub fn parse(line: &'a str, day: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        let package = words.next()?;
        let _version = words.next()?;
        Some(Self {
            package,
            path: words.next()?,
            sha256: words.next().filter(|hash| is_sha256(hash))?,
            bytes: words.next()?.parse().ok()?,
            day,
        })
    }
}

/// Stanzas of a list of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stanzas {
    /// The archive's address: `Filename` is below it.
    pub archive: String,
    pub text: String,
}

/// A suite in one archive.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    archive: String,
    suite: String,
    /// The name of its files in the data directory.
    file: String,
    /// Whether it stands for a day in the past, whose lists have ended.
    is_past: bool,
}

impl Debian {
    /// Returns the archive with its lists below `home`; fetches nothing yet.
    #[must_use]
    pub fn new(home: &Path, settings: DebianSettings, clock: fn() -> UnixTime) -> Self {
        Self {
            settings,
            folder: home.join("archives"),
            clock,
            is_offline: false,
        }
    }

    /// Returns the same archive as far as its lists are in the data directory, however old.
    #[must_use]
    pub fn offline(self) -> Self {
        Self {
            is_offline: true,
            ..self
        }
    }

    /// Returns the suite that a name without one means, or the given one.
    #[must_use]
    pub fn suite<'a>(&'a self, given: Option<&'a str>) -> &'a str {
        given.unwrap_or(&self.settings.suite)
    }

    /// Returns the stanzas of packages whose names begin with one of `starts`, of a suite with its
    /// updates; an extract of this name is kept.
    ///
    /// # Errors
    /// If there is no such suite, or its lists cannot be fetched or verified.
    pub fn extract(
        &self,
        suite: &str,
        name: &str,
        starts: &[&str],
    ) -> Result<Vec<Stanzas>, ArchiveError> {
        let _alone = self.lock()?;
        let mut found = Vec::new();
        for source in self.sources(suite)? {
            let list = self.packages(&source)?;
            let kept = list.with_extension(name);
            let text = match fs::read_to_string(&kept) {
                Ok(text) => text,
                Err(_) => {
                    let text = extract(&list, starts)?;
                    write(&kept, text.as_bytes())?;
                    text
                }
            };
            let archive = source.archive;
            found.push(Stanzas { archive, text });
        }
        Ok(found)
    }

    /// Returns packages with all their dependencies, as if none were installed, in the order of
    /// their files.
    ///
    /// # Errors
    /// If a package or a dependency is not there, or lists cannot be fetched or verified.
    pub fn closure(&self, suite: &str, packages: &[String]) -> Result<Vec<Needed>, ArchiveError> {
        let _alone = self.lock()?;
        let mut lists = Vec::new();
        // Reading whole lists takes seconds, and what they say of these packages does not change.
        let mut key = packages.join(" ");
        for source in self.sources(suite)? {
            let list = self.packages(&source)?;
            key = format!("{key} {}", list.display());
            lists.push((source.archive, list));
        }
        let kept = self
            .folder
            .join(format!("{}.needed", hashing::sha256(key.as_bytes())));
        if let Ok(text) = fs::read_to_string(&kept)
            && let Some(needed) = text.lines().map(Needed::parse).collect()
        {
            return Ok(needed);
        }
        let mut stanzas = Vec::new();
        for (archive, list) in lists {
            let text = extract(&list, &[""])?;
            stanzas.push(Stanzas { archive, text });
        }
        let needed = closure(&stanzas, packages).map_err(|packages| ArchiveError::NoPackage {
            packages: packages.join(", "),
            suites: suite.to_owned(),
        })?;
        let text: String = needed.iter().map(|one| format!("{one}\n")).collect();
        write(&kept, text.as_bytes())?;
        Ok(needed)
    }

    /// Returns the newest versions of packages; omits those that a suite has not.
    ///
    /// # Errors
    /// If there is no such suite, or its lists cannot be fetched or verified.
    pub fn versions(
        &self,
        suite: &str,
        packages: &[&str],
    ) -> Result<BTreeMap<String, String>, ArchiveError> {
        let key = hashing::sha256(packages.join(" ").as_bytes());
        let mut newest: BTreeMap<String, String> = BTreeMap::new();
        for stanzas in self.extract(suite, &key[..8], packages)? {
            for stanza in stanzas.text.split("\n\n") {
                let named = field(stanza, "Package").zip(field(stanza, "Version"));
                let Some((package, version)) = named.filter(|(name, _)| packages.contains(name))
                else {
                    continue;
                };
                let is_newer = newest
                    .get(package)
                    .is_none_or(|old| debian_version(old) < debian_version(version));
                if is_newer {
                    newest.insert(package.to_owned(), version.to_owned());
                }
            }
        }
        Ok(newest)
    }

    /// Downloads a package into a directory and verifies it; returns its file.
    ///
    /// # Errors
    /// If it cannot be fetched, or is another one than the list says: then nothing is left.
    pub fn download(&self, package: &Package, into: &Path) -> Result<PathBuf, ArchiveError> {
        let name = package.url.rsplit('/').next().unwrap_or_default();
        // The name comes from a signed list, but need not be one of a file.
        let name = name.replace(
            |c: char| !c.is_ascii_alphanumeric() && !"._+~-%".contains(c),
            "_",
        );
        let file = into.join(format!("{}-{name}", &package.sha256[..8]));
        let hint = "the lists may be older than the archive: `marvin kernels --refresh`; the snapshot service has old packages (deb:SUITE@DATE/…)";
        let fetched = fetch(&package.url, None, package.bytes, &file, hint)
            .and_then(|_| check(&package.url, &file, package.bytes, &package.sha256));
        if fetched.is_err() {
            drop(fs::remove_file(&file));
        }
        fetched.map(|()| file)
    }

    /// Downloads a package that is known by its hash, whatever today's lists have: from the archive,
    /// or from the snapshot service of a day when it was there.
    ///
    /// # Errors
    /// If neither has it, or another one.
    pub fn download_known(
        &self,
        known: &KnownPackage<'_>,
        into: &Path,
    ) -> Result<PathBuf, ArchiveError> {
        let mut package = Package {
            package: known.package.to_owned(),
            url: String::new(),
            bytes: known.bytes,
            sha256: known.sha256.to_owned(),
        };
        let (kind, path) = known.path.split_once('/').unwrap_or(("debian", known.path));
        let base = if kind == "debian-security" {
            &self.settings.security
        } else {
            &self.settings.mirror
        };
        package.url = format!("{}/{path}", base.trim_end_matches('/'));
        match self.download(&package, into) {
            Err(ArchiveError::Absent { .. } | ArchiveError::Checksum { .. }) => {
                let snapshot = &self.settings.snapshot;
                package.url = format!("{snapshot}/archive/{kind}/{}/{path}", known.day);
                self.download(&package, into)
            }
            result => result,
        }
    }

    /// Forgets when lists were seen: the next use asks for them.
    ///
    /// # Errors
    /// If the data directory cannot be written.
    pub fn forget_lists(&self) -> Result<(), ArchiveError> {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "seen") {
                fs::remove_file(&path).map_err(ArchiveError::io(&path))?;
            }
        }
        Ok(())
    }

    /// Waits for other Marvins, which would fetch the same lists or remove old ones.
    fn lock(&self) -> Result<File, ArchiveError> {
        if self.is_offline && !self.folder.exists() {
            return Err(ArchiveError::Fetch {
                url: self.settings.mirror.clone(),
                detail: "no list is in the data directory".to_owned(),
            });
        }
        fs::create_dir_all(&self.folder).map_err(ArchiveError::io(&self.folder))?;
        let lock = self.folder.join("lock");
        subprocess::lock_file(&lock)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(ArchiveError::io(&lock))
    }

    /// Removes the list of packages of an old list and what was made of it.
    fn remove_old(&self, old: &Release, new: &Release) {
        let listed = |release: &Release| release.file(PACKAGES).map(|file| file.sha256.clone());
        let Some(hash) = listed(old).filter(|hash| Some(hash) != listed(new).as_ref()) else {
            return;
        };
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&hash) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Returns the archives of a suite, `NAME` or `NAME@DATE`.
    fn sources(&self, suite: &str) -> Result<Vec<Source>, ArchiveError> {
        let (name, date) = match suite.split_once('@') {
            Some((name, date)) => (name, Some(date)),
            None => (suite, None),
        };
        let is_word = |text: &str| {
            let ok = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(ok)
        };
        let is_date = |text: &str| {
            (text.len() == 8 || text.len() == 16)
                && text.bytes().enumerate().all(|(place, byte)| match place {
                    8 => byte == b'T',
                    15 => byte == b'Z',
                    _ => byte.is_ascii_digit(),
                })
        };
        if !is_word(name) || !date.is_none_or(is_date) {
            return Err(ArchiveError::Suite(suite.to_owned()));
        }
        let archive = |base: &str, kind: &str| match date {
            Some(date) if date.len() == 8 => {
                format!("{}/archive/{kind}/{date}T000000Z", self.settings.snapshot)
            }
            Some(date) => format!("{}/archive/{kind}/{date}", self.settings.snapshot),
            None => base.trim_end_matches('/').to_owned(),
        };
        let main = archive(&self.settings.mirror, "debian");
        let security = archive(&self.settings.security, "debian-security");
        let mut sources = vec![(main.clone(), name.to_owned())];
        if !ALONE.contains(&name) && !name.contains('-') {
            sources.push((main, format!("{name}-updates")));
            sources.push((security, format!("{name}-security")));
        }
        Ok(sources
            .into_iter()
            .map(|(archive, suite)| {
                // Another mirror has other lists.
                let place = hashing::sha256(archive.as_bytes());
                Source {
                    file: format!("{suite}-{}", &place[..8]),
                    archive,
                    suite,
                    is_past: date.is_some(),
                }
            })
            .collect())
    }

    /// Returns the file with a suite's list of packages, fetched if it is not there.
    fn packages(&self, source: &Source) -> Result<PathBuf, ArchiveError> {
        let release = self.release(source)?;
        let base = format!("{}/dists/{}", source.archive, source.suite);
        let listed = release
            .file(PACKAGES)
            .ok_or_else(|| ArchiveError::Damaged {
                what: format!("{base}/InRelease"),
                detail: format!("it does not list {PACKAGES}"),
            })?;
        let file = self.folder.join(format!("{}.xz", listed.sha256));
        if file.is_file() {
            return Ok(file);
        }
        self.fetch_list(&base, release.by_hash, listed, &file)?;
        Ok(file)
    }

    fn fetch_list(
        &self,
        base: &str,
        by_hash: bool,
        listed: &ListedFile,
        file: &Path,
    ) -> Result<(), ArchiveError> {
        let folder = listed
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        let url = if by_hash {
            format!("{base}/{folder}/by-hash/SHA256/{}", listed.sha256)
        } else {
            format!("{base}/{}", listed.path)
        };
        let new = file.with_extension("new");
        let hint = "the mirror is being updated: try again in some minutes";
        fetch(&url, None, listed.bytes, &new, hint)?;
        if let Err(error) = check(&url, &new, listed.bytes, &listed.sha256) {
            drop(fs::remove_file(&new));
            return Err(error);
        }
        fs::rename(&new, file).map_err(ArchiveError::io(file))
    }

    /// Returns a suite's signed list: the kept one while it is fresh.
    fn release(&self, source: &Source) -> Result<Release, ArchiveError> {
        let url = format!("{}/dists/{}/InRelease", source.archive, source.suite);
        let kept = self.folder.join(format!("{}.InRelease", source.file));
        let seen = self.folder.join(format!("{}.seen", source.file));
        let old = if kept.is_file() {
            Some(self.verify(&url, &kept, source)?)
        } else {
            None
        };
        if let Some(old) = &old
            && (source.is_past || self.is_offline || self.is_fresh(&seen))
        {
            return Ok(old.clone());
        }
        if self.is_offline {
            return Err(ArchiveError::Fetch {
                url,
                detail: "it is not in the data directory".to_owned(),
            });
        }
        let new = self.folder.join(format!("{}.new", source.file));
        let since = old.as_ref().and_then(|_| fs::read_to_string(&seen).ok());
        let hint =
            "the mirror no longer has this suite: set another one below [debian] in marvin.toml";
        let answer = fetch(&url, since.as_deref(), RELEASE_MAX, &new, hint);
        match (answer, old) {
            (Ok(Answer::Unchanged), Some(old)) => {
                write(&seen, since.unwrap_or_default().as_bytes())?;
                Ok(old)
            }
            (Ok(Answer::Unchanged), None) => Err(ArchiveError::Fetch {
                url,
                detail: "it says that nothing has changed, but nothing was there".to_owned(),
            }),
            (Ok(Answer::Received { modified }), old) => {
                let release = self.verify(&url, &new, source);
                let release = release.and_then(|release| check_order(&url, release, old.as_ref()));
                if release.is_err() {
                    drop(fs::remove_file(&new));
                }
                let release = release?;
                if let Some(old) = &old {
                    self.remove_old(old, &release);
                }
                fs::rename(&new, &kept).map_err(ArchiveError::io(&kept))?;
                write(&seen, modified.unwrap_or_default().as_bytes())?;
                Ok(release)
            }
            // The network is away: the old list is valid, or it would have been refused.
            (Err(ArchiveError::Fetch { .. }), Some(old)) => Ok(old),
            // A mirror that is there and lacks the suite: it has another name.
            (Err(ArchiveError::Absent { .. }), None) => {
                Err(ArchiveError::Suite(source.suite.clone()))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Returns whether a list was seen not long ago.
    fn is_fresh(&self, seen: &Path) -> bool {
        let modified = fs::metadata(seen).and_then(|found| found.modified());
        let Ok(modified) = modified.map(UnixTime::from) else {
            return false;
        };
        let age_s = (self.clock)().seconds_since(modified);
        // A clock that was set back makes them asked for again.
        age_s.is_some_and(|age_s| age_s < FRESH_S)
    }

    /// Verifies a list and reads it.
    fn verify(&self, url: &str, file: &Path, source: &Source) -> Result<Release, ArchiveError> {
        let keyring = match &self.settings.keyring {
            Some(keyring) => keyring.clone(),
            None => {
                let keyring = self.folder.join("debian-archive-keyring.gpg");
                if fs::read(&keyring).ok().as_deref() != Some(KEYRING) {
                    write(&keyring, KEYRING)?;
                }
                keyring
            }
        };
        let text =
            openpgp::signed_text(file, &keyring).map_err(|detail| ArchiveError::Signature {
                url: url.to_owned(),
                keyring: keyring.display().to_string(),
                detail,
            })?;
        let release = Release::parse(&text).ok_or_else(|| ArchiveError::Damaged {
            what: url.to_owned(),
            detail: "it is no list of a suite".to_owned(),
        })?;
        match release.valid_until {
            Some(end) if end < (self.clock)() && !source.is_past => Err(ArchiveError::Stale {
                url: url.to_owned(),
                detail: format!("it was valid until {}", end.date()),
            }),
            _ => Ok(release),
        }
    }
}

/// Refuses a list that is older than the one that was seen.
fn check_order(url: &str, new: Release, old: Option<&Release>) -> Result<Release, ArchiveError> {
    match old {
        Some(old) if old.made > new.made => Err(ArchiveError::Stale {
            url: url.to_owned(),
            detail: format!(
                "it was made on {}, and one of {} was seen",
                new.made.date(),
                old.made.date()
            ),
        }),
        _ => Ok(new),
    }
}

/// A file that is received.
struct Download {
    file: File,
}

impl Receiver for Download {
    fn restart(&mut self) -> io::Result<()> {
        use std::io::Seek;
        self.file.set_len(0)?;
        self.file.rewind()
    }

    fn receive(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }
}

/// Fetches a file of at most so many bytes, which the caller verifies.
///
/// # Errors
/// If it cannot be fetched: then nothing is left.
pub fn fetch_file(url: &str, bytes_max: u64, file: &Path) -> Result<(), ArchiveError> {
    fetch(url, None, bytes_max, file, "is the address right?").map(drop)
}

/// Fetches a file of at most so many bytes; `hint` is for one that is not there.
fn fetch(
    url: &str,
    since: Option<&str>,
    bytes_max: u64,
    file: &Path,
    hint: &'static str,
) -> Result<Answer, ArchiveError> {
    let mut download = Download {
        file: File::create(file).map_err(ArchiveError::io(file))?,
    };
    let since = since.filter(|date| !date.is_empty());
    http::get(url, since, bytes_max, &mut download).map_err(|error| {
        drop(fs::remove_file(file));
        let url = url.to_owned();
        match error {
            HttpError::Status(404 | 410) => ArchiveError::Absent { url, hint },
            HttpError::Status(status) => ArchiveError::Fetch {
                url,
                detail: format!("the server answers with status {status}"),
            },
            HttpError::Network(detail) => ArchiveError::Fetch { url, detail },
            HttpError::Receiver(source) => ArchiveError::io(file)(source),
        }
    })
}

/// Checks that a file is the one that a list names.
fn check(url: &str, file: &Path, bytes: u64, sha256: &str) -> Result<(), ArchiveError> {
    let length = fs::metadata(file).map_err(ArchiveError::io(file))?.len();
    let got = hashing::sha256_of_file(file).map_err(ArchiveError::io(file))?;
    if length == bytes && got == sha256 {
        return Ok(());
    }
    Err(ArchiveError::Checksum {
        url: url.to_owned(),
        expected: sha256.to_owned(),
        got,
    })
}

/// Writes a file completely or not at all.
fn write(file: &Path, content: &[u8]) -> Result<(), ArchiveError> {
    let new = file.with_extension("part");
    subprocess::replace_file(file, &new, content).map_err(ArchiveError::io(file))
}

/// Returns the stanzas of a packed list whose package begins with one of these.
fn extract(list: &Path, starts: &[&str]) -> Result<String, ArchiveError> {
    let damaged = |error: io::Error| ArchiveError::Damaged {
        what: list.display().to_string(),
        detail: error.to_string(),
    };
    let packed = BufReader::new(File::open(list).map_err(ArchiveError::io(list))?);
    let mut lines = BufReader::new(decoder("Packages.xz", packed).map_err(damaged)?);
    let mut text = String::new();
    let mut line = String::new();
    let mut is_wanted = false;
    loop {
        line.clear();
        if lines.read_line(&mut line).map_err(damaged)? == 0 {
            return Ok(text);
        }
        if let Some(package) = line.strip_prefix("Package: ") {
            is_wanted = starts.iter().any(|start| package.starts_with(start));
        }
        if is_wanted {
            text.push_str(&line);
        }
    }
}

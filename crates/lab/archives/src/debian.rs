//! Debian's archive: suites with their signed lists, kept in the data directory, and packages,
//! downloaded and verified by these lists.
//!
//! `archives/HASH.xz` is a list of packages, `archives/HASH.NAME` an extract of it; `lists` fetches
//! and verifies them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{DebianSettings, Distribution, UnixTime};

use crate::address::without_login;
use crate::fetch::{Pause, Wanted, file_name, write};
use crate::notices::{ListNotice, Notices};
use crate::release::is_sha256;
use crate::resolve::{Needed, closure};
use crate::stanza::field;
use crate::unpack::decoder;
use crate::version::debian_version;
use crate::{ArchiveError, hashing};

/// Suites that come alone: without updates and security updates beside them.
const ALONE: [&str; 3] = ["sid", "unstable", "experimental"];
/// Days of the past that are tried for a package.
const PAST_DAYS_MAX: usize = 3;
/// Releases whose security updates are in the suite `NAME/updates`.
const OLD_SECURITY: [&str; 7] = [
    "etch", "lenny", "squeeze", "wheezy", "jessie", "stretch", "buster",
];

/// The archive of Debian, or of Ubuntu in the same layout, with its lists in a data directory.
#[derive(Debug, Clone)]
pub struct Debian {
    pub(crate) distribution: Distribution,
    pub(crate) settings: DebianSettings,
    pub(crate) folder: PathBuf,
    /// Says what time it is.
    pub(crate) clock: fn() -> UnixTime,
    /// Waits between tries.
    pub(crate) pause: Pause,
    pub(crate) notices: Notices,
    /// Whether the kept lists have to do.
    pub(crate) is_offline: bool,
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
pub(crate) struct Source {
    pub(crate) archive: String,
    pub(crate) suite: String,
    /// The name of its files in the data directory.
    pub(crate) file: String,
    /// Whether it stands for a day in the past, whose lists have ended.
    pub(crate) is_past: bool,
    /// Whether it is the suite that was requested, not its updates.
    pub(crate) is_main: bool,
    /// The setting with its address.
    setting: &'static str,
}

/// Returns whether a file cannot be written, by this user or on this file system.
fn is_forbidden(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
    )
}

impl Debian {
    /// Returns the archive with its lists below `home`; fetches nothing yet.
    #[must_use]
    pub fn new(home: &Path, settings: DebianSettings, clock: fn() -> UnixTime) -> Self {
        Self {
            distribution: Distribution::Debian,
            settings,
            folder: home.join("archives"),
            clock,
            pause: std::thread::sleep,
            notices: Notices::default(),
            is_offline: false,
        }
    }

    /// Returns the same archive, which waits between tries as `pause` does.
    #[must_use]
    pub fn pausing(self, pause: fn(Duration)) -> Self {
        Self { pause, ..self }
    }

    /// Returns Ubuntu's archive.
    #[must_use]
    pub fn ubuntu(home: &Path, settings: DebianSettings, clock: fn() -> UnixTime) -> Self {
        Self {
            distribution: Distribution::Ubuntu,
            ..Self::new(home, settings, clock)
        }
    }

    /// Returns whose archive it is.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        self.distribution
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
        let alone = self.lock()?;
        let mut found = Vec::new();
        for (source, list) in self.lists(suite)? {
            let kept = list.with_extension(name);
            let text = match fs::read_to_string(&kept) {
                Ok(text) => text,
                Err(_) => {
                    let text = extract(&list, starts)?;
                    if alone.is_some() {
                        write(&kept, text.as_bytes())?;
                    }
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
        let alone = self.lock()?;
        let mut lists = Vec::new();
        // Reading whole lists takes seconds, and what they say of these packages does not change.
        let mut key = packages.join(" ");
        for (source, list) in self.lists(suite)? {
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
            suites: format!("{}'s {suite}", self.distribution),
        })?;
        let text: String = needed.iter().map(|one| format!("{one}\n")).collect();
        if alone.is_some() {
            write(&kept, text.as_bytes())?;
        }
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

    /// Returns the lists of packages of a suite with its updates; omits, with a notice, updates whose
    /// list has ended: what the suite itself has is valid all the same.
    fn lists(&self, suite: &str) -> Result<Vec<(Source, PathBuf)>, ArchiveError> {
        let mut lists = Vec::new();
        for source in self.sources(suite)? {
            let url = format!("{}/dists/{}", source.archive, source.suite);
            match self.packages(&source) {
                Err(ArchiveError::Stale {
                    ended: Some(ended), ..
                }) if !source.is_main => self.notices.add(ListNotice::LeftOut {
                    suite: format!("{}'s {}", self.distribution, source.suite),
                    url,
                    ended,
                    setting: format!(
                        "`{}` below [{}]",
                        source.setting,
                        self.distribution.to_string().to_lowercase()
                    ),
                }),
                list => {
                    let list = list?;
                    self.notices.list_is_valid(&url);
                    lists.push((source, list));
                }
            }
        }
        Ok(lists)
    }

    /// Returns the notices that came up, once each.
    #[must_use]
    pub fn take_notices(&self) -> Vec<ListNotice> {
        self.notices.take()
    }

    /// Returns the suites that are left out now.
    #[must_use]
    pub fn left_out(&self) -> Vec<ListNotice> {
        self.notices.left_out()
    }

    /// Downloads a package into a directory and verifies it; returns its file. What the archive
    /// removed comes from the snapshot service, of the day of the list that has it.
    ///
    /// # Errors
    /// If it cannot be fetched, or is another one than the list says: then nothing is left.
    pub fn download(&self, package: &Package, into: &Path) -> Result<PathBuf, ArchiveError> {
        let absent = match self.download_from(package, &package.url, into) {
            Err(absent @ ArchiveError::Absent { .. }) => absent,
            result => return result,
        };
        for url in self.in_the_past(&package.url) {
            if let Ok(file) = self.download_from(package, &url, into) {
                return Ok(file);
            }
        }
        Err(absent)
    }

    /// Returns where the snapshot service may have a file that the archive lacks: on the days of
    /// the lists of that archive, the newest first.
    fn in_the_past(&self, url: &str) -> Vec<String> {
        let [archive, security] = self.in_snapshots();
        let archives = [
            (security, self.settings.security.trim_end_matches('/')),
            (archive, self.settings.mirror.trim_end_matches('/')),
        ];
        let found = archives.iter().find_map(|(kind, base)| {
            let path = url.strip_prefix(base)?.strip_prefix('/')?;
            Some((kind, base, path))
        });
        let Some((kind, base, path)) = found else {
            return Vec::new();
        };
        let mut days: Vec<String> = self
            .days_of_lists(base)
            .into_iter()
            .map(|made| made.date().replace(['-', ':'], ""))
            .collect();
        days.sort();
        days.dedup();
        let snapshot = self.settings.snapshot.trim_end_matches('/');
        days.iter()
            .rev()
            .take(PAST_DAYS_MAX)
            .map(|day| format!("{snapshot}/{kind}/{day}/{path}"))
            .collect()
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
        match self.download_from(&package, &package.url, into) {
            Err(ArchiveError::Absent { .. } | ArchiveError::Checksum { .. }) => {
                let snapshot = &self.settings.snapshot;
                package.url = format!("{snapshot}/archive/{kind}/{}/{path}", known.day);
                self.download_from(&package, &package.url, into)
            }
            result => result,
        }
    }

    /// Downloads a package from an address and verifies it.
    fn download_from(
        &self,
        package: &Package,
        url: &str,
        into: &Path,
    ) -> Result<PathBuf, ArchiveError> {
        let file = into.join(format!("{}-{}", &package.sha256[..8], file_name(url)));
        let wanted = Wanted {
            url,
            hint: "the lists may be older than the archive: `marvin kernels --refresh`; the snapshot service has old packages (deb:SUITE@DATE/…)",
            pause: self.pause,
        };
        wanted.fetch_known(package.bytes, &package.sha256, &file)?;
        Ok(file)
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

    /// Waits for other Marvins, which would fetch the same lists or remove old ones; where they cannot
    /// be written, without a lock.
    fn lock(&self) -> Result<Option<File>, ArchiveError> {
        if self.is_offline && !self.folder.exists() {
            return Err(ArchiveError::Fetch {
                url: without_login(&self.settings.mirror),
                detail: "no list is in the data directory".to_owned(),
                hint: None,
            });
        }
        fs::create_dir_all(&self.folder).map_err(ArchiveError::io(&self.folder))?;
        let lock = self.folder.join("lock");
        match subprocess::wait_for_lock(&lock) {
            Err(error) if self.is_offline && is_forbidden(&error) => Ok(None),
            locked => locked.map(Some).map_err(ArchiveError::io(&lock)),
        }
    }

    /// Returns the folders of the snapshot service with the archive and its security updates.
    fn in_snapshots(&self) -> [&'static str; 2] {
        match self.distribution {
            Distribution::Ubuntu => ["ubuntu", "ubuntu"],
            _ => ["archive/debian", "archive/debian-security"],
        }
    }

    /// Returns the address of an archive, today or on a day of the past.
    fn archive_of(&self, date: Option<&str>, base: &str, in_snapshots: &str) -> String {
        let Some(date) = date else {
            return base.trim_end_matches('/').to_owned();
        };
        let time = if date.len() == 8 { "T000000Z" } else { "" };
        let snapshot = self.settings.snapshot.trim_end_matches('/');
        format!("{snapshot}/{in_snapshots}/{date}{time}")
    }

    /// Returns the error for a suite that is not there.
    pub(crate) fn no_suite(&self, suite: &str) -> ArchiveError {
        ArchiveError::Suite {
            suite: suite.to_owned(),
            known: match self.distribution {
                Distribution::Ubuntu => "Ubuntu's, such as jammy, noble or noble-updates",
                _ => "Debian's, such as bookworm, trixie, trixie-backports or sid",
            },
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
            return Err(self.no_suite(suite));
        }
        let [main, security] = self.in_snapshots();
        let main = self.archive_of(date, &self.settings.mirror, main);
        let security = self.archive_of(date, &self.settings.security, security);
        let mut sources = Vec::new();
        if let Some(release) = name.strip_suffix("-security") {
            sources.push(("security", security, security_suite(release)));
        } else {
            sources.push(("mirror", main.clone(), name.to_owned()));
            if !ALONE.contains(&name) && !name.contains('-') {
                sources.push(("mirror", main, format!("{name}-updates")));
                sources.push(("security", security, security_suite(name)));
            }
        }
        Ok(sources
            .into_iter()
            .enumerate()
            .map(|(number, (setting, archive, suite))| {
                // Another mirror has other lists.
                let place = hashing::sha256(archive.as_bytes());
                Source {
                    file: format!("{}-{}", suite.replace('/', "_"), &place[..8]),
                    archive,
                    suite,
                    is_past: date.is_some(),
                    is_main: number == 0,
                    setting,
                }
            })
            .collect())
    }
}

/// Returns the suite of a release's security updates.
fn security_suite(release: &str) -> String {
    if OLD_SECURITY.contains(&release) {
        format!("{release}/updates")
    } else {
        format!("{release}-security")
    }
}

/// Returns the stanzas of a packed list whose package begins with one of these.
fn extract(list: &Path, starts: &[&str]) -> Result<String, ArchiveError> {
    let damaged = |error: io::Error| ArchiveError::Damaged {
        what: list.display().to_string(),
        detail: error.to_string(),
    };
    let packed = BufReader::new(File::open(list).map_err(ArchiveError::io(list))?);
    let mut lines = BufReader::new(decoder(&list.to_string_lossy(), packed).map_err(damaged)?);
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

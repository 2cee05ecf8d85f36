//! The lists of a suite in an archive of Debian's layout: fetches the signed list of the suite and
//! the list of packages that it names, and keeps both in the data directory.
//!
//! `archives/SUITE.InRelease` is the newest list that was seen; of an archive without such files
//! `SUITE.Release` with its signature beside it. Lists are asked for again when they are older
//! than [`FRESH_S`]; without a network the old ones serve as long as they are valid.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Distribution, UnixTime};

use crate::debian::{Debian, Source};
use crate::fetch::{fetch, fetch_known, write};
use crate::http::Answer;
use crate::openpgp::{self, SignatureFault, Validity};
use crate::release::{ListedFile, Release};
use crate::{ArchiveError, hashing};

/// How old a list may be that is used without asking (s).
pub(crate) const FRESH_S: u64 = 6 * 3600;
/// Largest InRelease, which a signature protects only afterwards.
const RELEASE_MAX: u64 = 16 << 20;
/// How far the clocks of a host and of an archive may differ (s).
const SKEW_S: u64 = 600;
/// Debian's keys, of the package debian-archive-keyring 2023.3+deb12u2.
const DEBIAN_KEYS: &[u8] = include_bytes!("../keys/debian.gpg");
/// Ubuntu's keys, of the package ubuntu-keyring 2023.11.28.1.
const UBUNTU_KEYS: &[u8] = include_bytes!("../keys/ubuntu.gpg");
/// What to do when a list is not there.
const NO_SUITE: &str = "the mirror no longer has this suite: set another `mirror` in marvin.toml";

/// A suite's list with its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Signed {
    Within(PathBuf),
    Beside { text: PathBuf, signature: PathBuf },
}

impl Signed {
    fn files(&self) -> Vec<&PathBuf> {
        match self {
            Self::Within(file) => vec![file],
            Self::Beside { text, signature } => vec![text, signature],
        }
    }

    fn is_there(&self) -> bool {
        self.files().iter().all(|file| file.is_file())
    }

    fn remove(&self) {
        for file in self.files() {
            drop(fs::remove_file(file));
        }
    }
}

/// What a mirror answered.
enum Fetched {
    Unchanged,
    New {
        signed: Signed,
        modified: Option<String>,
    },
}

/// A suite's list, and what it replaces once its packages are there too.
struct Seen {
    release: Release,
    /// `None` if it is the one in the data directory.
    pending: Option<Pending>,
}

/// A new list that is verified and not yet at its place.
struct Pending {
    signed: Signed,
    modified: Option<String>,
    old: Option<Release>,
}

impl Debian {
    /// Returns the file with a suite's list of packages, fetched if it is not there.
    pub(crate) fn packages(&self, source: &Source) -> Result<PathBuf, ArchiveError> {
        match self.packages_now(source) {
            // A mirror in change has, for a moment, a list that its packages do not fit.
            Err(ArchiveError::Checksum { .. } | ArchiveError::Absent { .. }) => {
                self.packages_now(source)
            }
            result => result,
        }
    }

    fn packages_now(&self, source: &Source) -> Result<PathBuf, ArchiveError> {
        let Seen { release, pending } = self.release(source)?;
        let file = self.packages_of(source, &release);
        let Some(pending) = pending else {
            return file;
        };
        match file {
            Ok(file) => {
                if let Some(old) = &pending.old {
                    self.remove_old(old, &release);
                }
                self.keep(source, &pending.signed)?;
                let modified = pending.modified.unwrap_or_default();
                write(&self.seen(source), modified.as_bytes())?;
                Ok(file)
            }
            Err(error) => {
                pending.signed.remove();
                // What was there stays, and serves as long as it is valid. A disk that is full is
                // no fault of the mirror.
                let is_of_mirror = matches!(
                    error,
                    ArchiveError::Absent { .. }
                        | ArchiveError::Checksum { .. }
                        | ArchiveError::Fetch { .. }
                );
                let old = pending.old.as_ref().filter(|_| is_of_mirror);
                old.and_then(|old| self.present_packages(old)).ok_or(error)
            }
        }
    }

    /// Returns the file with the packages of a list, fetched if it is not there.
    fn packages_of(&self, source: &Source, release: &Release) -> Result<PathBuf, ArchiveError> {
        if let Some(file) = self.present_packages(release) {
            return Ok(file);
        }
        let base = base(source);
        let mut result = Err(ArchiveError::Damaged {
            what: format!("{base}/InRelease"),
            detail: "it lists no Packages of main for amd64".to_owned(),
        });
        for listed in release.packages() {
            let file = self.packages_file(listed);
            let fetched = self.fetch_packages(&base, release.by_hash, listed, &file);
            result = fetched.map(|()| file);
            // A mirror need not have all forms.
            if !matches!(result, Err(ArchiveError::Absent { .. })) {
                break;
            }
        }
        result
    }

    fn present_packages(&self, release: &Release) -> Option<PathBuf> {
        let files = release.packages().into_iter();
        let mut files = files.map(|listed| self.packages_file(listed));
        files.find(|file| file.is_file())
    }

    /// Returns the place of a list of packages; its ending says how it is packed.
    fn packages_file(&self, listed: &ListedFile) -> PathBuf {
        let (_, name) = listed.path.rsplit_once('/').unwrap_or(("", &listed.path));
        let ending = name.rsplit_once('.').map_or("plain", |(_, ending)| ending);
        self.folder.join(format!("{}.{ending}", listed.sha256))
    }

    /// Returns the file that says when a suite's list was seen last.
    fn seen(&self, source: &Source) -> PathBuf {
        self.folder.join(format!("{}.seen", source.file))
    }

    /// Fetches a list of packages by its hash; from mirrors that lack such files, by its name.
    fn fetch_packages(
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
        let mut urls = Vec::new();
        if by_hash {
            urls.push(format!("{base}/{folder}/by-hash/SHA256/{}", listed.sha256));
        }
        urls.push(format!("{base}/{}", listed.path));
        // Old security updates have this in the names of components and not in those of folders.
        let plain = listed.path.strip_prefix("updates/");
        urls.extend(plain.map(|path| format!("{base}/{path}")));
        let new = file.with_extension("new");
        let hint = "the mirror is being updated: try again in some minutes";
        let mut result = Ok(());
        for url in urls {
            result = fetch_known(&url, listed.bytes, &listed.sha256, &new, hint);
            if !matches!(result, Err(ArchiveError::Absent { .. })) {
                break;
            }
        }
        result?;
        fs::rename(&new, file).map_err(ArchiveError::io(file))
    }

    /// Returns a suite's signed list: that of the data directory while it is fresh.
    fn release(&self, source: &Source) -> Result<Seen, ArchiveError> {
        let base = base(source);
        let url = format!("{base}/InRelease");
        let seen = self.seen(source);
        let old = match self.in_data_directory(source) {
            Some(signed) => Some(self.verify(&url, &signed, source)?),
            None => None,
        };
        if let Some(old) = &old
            && (source.is_past || self.is_offline || self.is_fresh(&seen))
        {
            return Ok(Seen::known(old.clone()));
        }
        if self.is_offline {
            return Err(ArchiveError::Fetch {
                url,
                detail: "it is not in the data directory".to_owned(),
            });
        }
        let since = old.as_ref().and_then(|_| fs::read_to_string(&seen).ok());
        match (self.fetch_release(&base, source, since.as_deref()), old) {
            (Ok(Fetched::Unchanged), Some(old)) => {
                write(&seen, since.unwrap_or_default().as_bytes())?;
                Ok(Seen::known(old))
            }
            (Ok(Fetched::Unchanged), None) => Err(ArchiveError::Fetch {
                url,
                detail: "it says that nothing has changed, but nothing was there".to_owned(),
            }),
            (Ok(Fetched::New { signed, modified }), old) => {
                let release = self.verify(&url, &signed, source);
                let release = release.and_then(|release| check_order(&url, release, old.as_ref()));
                if release.is_err() {
                    signed.remove();
                }
                let pending = Pending {
                    signed,
                    modified,
                    old,
                };
                Ok(Seen {
                    release: release?,
                    pending: Some(pending),
                })
            }
            // The network is away: the old list is valid, or it would have been refused.
            (Err(ArchiveError::Fetch { .. }), Some(old)) => Ok(Seen::known(old)),
            // A mirror that is there and lacks the suite: it has another name.
            (Err(ArchiveError::Absent { .. }), None) => Err(self.no_suite(&source.suite)),
            (Err(error), _) => Err(error),
        }
    }

    /// Fetches InRelease, or Release with its signature where the archive has no InRelease.
    fn fetch_release(
        &self,
        base: &str,
        source: &Source,
        since: Option<&str>,
    ) -> Result<Fetched, ArchiveError> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}.new", source.file));
        let within = file("InRelease");
        match fetch(
            &format!("{base}/InRelease"),
            since,
            RELEASE_MAX,
            &within,
            NO_SUITE,
        ) {
            Err(ArchiveError::Absent { .. }) => {}
            Ok(answer) => return Ok(Fetched::new(answer, Signed::Within(within))),
            Err(error) => return Err(error),
        }
        let signed = Signed::Beside {
            text: file("Release"),
            signature: file("Release.gpg"),
        };
        let answer = fetch(
            &format!("{base}/Release"),
            since,
            RELEASE_MAX,
            &file("Release"),
            NO_SUITE,
        )?;
        if answer != Answer::Unchanged {
            let url = format!("{base}/Release.gpg");
            let hint = "an archive that signs its lists has InRelease or Release.gpg";
            let beside = fetch(&url, None, RELEASE_MAX, &file("Release.gpg"), hint);
            if let Err(error) = beside {
                signed.remove();
                return Err(match error {
                    ArchiveError::Absent { url, .. } => ArchiveError::Signature {
                        url: format!("{base}/Release"),
                        keyring: self.keyring()?.display().to_string(),
                        detail: format!("there is no {url}"),
                    },
                    error => error,
                });
            }
        }
        Ok(Fetched::new(answer, signed))
    }

    /// Returns the list of a suite that is in the data directory.
    fn in_data_directory(&self, source: &Source) -> Option<Signed> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}", source.file));
        let within = Signed::Within(file("InRelease"));
        let beside = Signed::Beside {
            text: file("Release"),
            signature: file("Release.gpg"),
        };
        [within, beside].into_iter().find(Signed::is_there)
    }

    /// Moves a list to its place, instead of the old one.
    fn keep(&self, source: &Source, signed: &Signed) -> Result<(), ArchiveError> {
        let old = self.in_data_directory(source);
        let mut places = Vec::new();
        for file in signed.files() {
            let place = file.with_extension("");
            fs::rename(file, &place).map_err(ArchiveError::io(&place))?;
            places.push(place);
        }
        // An archive may have changed from one form to the other.
        for file in old.iter().flat_map(Signed::files) {
            if !places.contains(file) {
                drop(fs::remove_file(file));
            }
        }
        Ok(())
    }

    /// Removes the list of packages of an old list and what was made of it.
    fn remove_old(&self, old: &Release, new: &Release) {
        let new = new.packages();
        for listed in old.packages() {
            if new.iter().any(|one| one.sha256 == listed.sha256) {
                continue;
            }
            for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name.to_string_lossy().starts_with(&listed.sha256) {
                    drop(fs::remove_file(entry.path()));
                }
            }
        }
    }

    /// Returns when the lists of an archive were made that are in the data directory.
    pub(crate) fn days_of_lists(&self, archive: &str) -> Vec<UnixTime> {
        let place = hashing::sha256(archive.as_bytes());
        let mut days = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_list = ["InRelease", "Release"]
                .iter()
                .any(|ending| name.ends_with(&format!("-{}.{ending}", &place[..8])));
            if is_list && let Ok(text) = fs::read_to_string(entry.path()) {
                days.extend(Release::parse(&text).map(|list| list.made));
            }
        }
        days
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

    /// Returns the file of the keys that may sign lists.
    fn keyring(&self) -> Result<PathBuf, ArchiveError> {
        if let Some(keyring) = &self.settings.keyring {
            return Ok(keyring.clone());
        }
        let name = format!("{}-archive-keyring.gpg", self.distribution).to_lowercase();
        let keyring = self.folder.join(name);
        let keys = match self.distribution {
            Distribution::Ubuntu => UBUNTU_KEYS,
            _ => DEBIAN_KEYS,
        };
        if fs::read(&keyring).ok().as_deref() != Some(keys) {
            write(&keyring, keys)?;
        }
        Ok(keyring)
    }

    /// Verifies a list and reads it.
    fn verify(&self, url: &str, signed: &Signed, source: &Source) -> Result<Release, ArchiveError> {
        let keyring = self.keyring()?;
        let now = (self.clock)();
        let validity = if source.is_past {
            Validity::WhenSigned
        } else {
            Validity::At(now)
        };
        let text = match signed {
            Signed::Within(file) => openpgp::signed_text(file, &keyring, validity),
            Signed::Beside { text, signature } => {
                openpgp::text_signed_beside(text, signature, &keyring, validity)
            }
        };
        let text = text.map_err(|fault| ArchiveError::signature(url, &keyring, fault))?;
        let release = Release::parse(&text).ok_or_else(|| ArchiveError::Damaged {
            what: url.to_owned(),
            detail: "it is no list of a suite".to_owned(),
        })?;
        if !release.is_called(&source.suite) {
            return Err(ArchiveError::OtherSuite {
                url: url.to_owned(),
                requested: source.suite.clone(),
                names: release.names(),
            });
        }
        if release.made > now.plus_seconds(SKEW_S) {
            return Err(ArchiveError::Early {
                url: url.to_owned(),
                made: release.made.date(),
                now: now.date(),
            });
        }
        match release.valid_until {
            Some(end) if end < now && !source.is_past => Err(ArchiveError::Stale {
                url: url.to_owned(),
                detail: format!(
                    "it was valid until {}, and this host's clock shows {}",
                    end.date(),
                    now.date()
                ),
            }),
            _ => Ok(release),
        }
    }
}

impl Seen {
    fn known(release: Release) -> Self {
        Self {
            release,
            pending: None,
        }
    }
}

impl Fetched {
    fn new(answer: Answer, signed: Signed) -> Self {
        match answer {
            Answer::Unchanged => {
                signed.remove();
                Self::Unchanged
            }
            Answer::Received { modified } => Self::New { signed, modified },
        }
    }
}

/// Returns the address of a suite.
fn base(source: &Source) -> String {
    format!("{}/dists/{}", source.archive, source.suite)
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

impl ArchiveError {
    /// Returns the error for a signature.
    pub(crate) fn signature(url: &str, keyring: &Path, fault: SignatureFault) -> Self {
        let url = url.to_owned();
        let keyring = keyring.display().to_string();
        match fault {
            SignatureFault::Expired { key, ended } => Self::ExpiredKey {
                url,
                keyring,
                key,
                ended: ended.date(),
            },
            SignatureFault::Untrusted(detail) => Self::Signature {
                url,
                keyring,
                detail,
            },
        }
    }
}

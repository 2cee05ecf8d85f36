//! The lists of a suite in an archive of Debian's layout: fetches the signed list of the suite and
//! the list of packages that it names, and keeps both in the data directory.
//!
//! `archives/SUITE.InRelease` is the newest list that was seen; of an archive without such files
//! `SUITE.Release` with its signature beside it. Lists are asked for again when they are older
//! than [`FRESH_S`]; without a network the old ones serve as long as they are valid.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Distribution, UnixTime};

use crate::address::without_login;
use crate::debian::{Debian, Source};
use crate::fetch::{Wanted, refuse_web_page, write};
use crate::http::Answer;
use crate::notices::ListNotice;
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
    old_is_valid: bool,
}

/// The list of the data directory.
struct Known {
    release: Release,
    /// Why it is not valid now; `None` if it is.
    refusal: Option<ArchiveError>,
}

impl Known {
    fn valid(self) -> Result<Release, ArchiveError> {
        match self.refusal {
            None => Ok(self.release),
            Some(refusal) => Err(refusal),
        }
    }
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
                self.notice_rename(source, &pending, &release);
                let modified = pending.modified.unwrap_or_default();
                write(&self.seen(source), modified.as_bytes())?;
                Ok(file)
            }
            Err(error) => {
                pending.signed.remove();
                // What was there stays, and serves as long as it is valid. A disk that is full is
                // no fault of the mirror.
                let is_of_mirror = is_of_one_file(&error) || error.is_away();
                let old = pending.old.as_ref();
                let old = old.filter(|_| is_of_mirror && pending.old_is_valid);
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
        let mut result: Result<PathBuf, _> = Err(ArchiveError::Damaged {
            what: format!("{base}/InRelease"),
            detail: "it lists no Packages of main for amd64".to_owned(),
        });
        for listed in release.packages() {
            let file = self.packages_file(listed);
            let fetched = self.fetch_packages(&base, release.by_hash, listed, &file);
            match fetched {
                Ok(()) => return Ok(file),
                // A mirror need not have all forms, and one in change has them of different days.
                Err(error) if is_of_one_file(&error) => {
                    let tells_less = matches!(error, ArchiveError::Absent { .. });
                    let is_first = matches!(result, Err(ArchiveError::Damaged { .. }));
                    if is_first || !tells_less {
                        result = Err(error);
                    }
                }
                Err(error) => return Err(error),
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
            let wanted = Wanted {
                url: &url,
                hint,
                pause: self.pause,
            };
            result = wanted.fetch_known(listed.bytes, &listed.sha256, &new);
            let is_refused = matches!(
                result,
                Err(ArchiveError::Absent { .. } | ArchiveError::Forbidden { .. })
            );
            if !is_refused {
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
            Some(signed) => self.known(&url, &signed, source)?,
            None => None,
        };
        if let Some(old) = &old
            && old.refusal.is_none()
            && (source.is_past || self.is_offline || self.is_fresh(&seen))
        {
            return Ok(Seen::known(old.release.clone()));
        }
        if self.is_offline {
            let refusal = old.and_then(|old| old.refusal);
            return Err(refusal.unwrap_or(ArchiveError::Fetch {
                url: without_login(&url),
                detail: "it is not in the data directory".to_owned(),
                hint: None,
            }));
        }
        let since = old.as_ref().and_then(|_| fs::read_to_string(&seen).ok());
        match (self.fetch_release(&base, source, since.as_deref()), old) {
            (Ok(Fetched::Unchanged), Some(old)) => {
                let old = old.valid()?;
                write(&seen, since.unwrap_or_default().as_bytes())?;
                Ok(Seen::known(old))
            }
            (Ok(Fetched::Unchanged), None) => Err(ArchiveError::Fetch {
                url,
                detail: "it says that nothing has changed, but nothing was there".to_owned(),
                hint: None,
            }),
            (Ok(Fetched::New { signed, modified }), old) => {
                let old_is_valid = old.as_ref().is_some_and(|old| old.refusal.is_none());
                let old = old.map(|old| old.release);
                let release = self.verify(&url, &signed, source, old.as_ref());
                if release.is_err() {
                    signed.remove();
                }
                let pending = Pending {
                    signed,
                    modified,
                    old,
                    old_is_valid,
                };
                Ok(Seen {
                    release: release?,
                    pending: Some(pending),
                })
            }
            // The network is away: the old list serves as long as it is valid.
            (Err(error), Some(old)) if error.is_away() => old.valid().map(Seen::known),
            // A mirror that is there and lacks the suite: it has another name.
            (Err(ArchiveError::Absent { .. }), None) => Err(self.explain_absence(source)),
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
        let first = match self.fetch_list(&format!("{base}/InRelease"), since, &within, NO_SUITE) {
            Ok(answer) => return Ok(Fetched::new(answer, Signed::Within(within))),
            // Some mirrors and proxies refuse a name that they do not know.
            Err(error) if is_of_one_file(&error) => error,
            Err(error) => return Err(error),
        };
        let signed = Signed::Beside {
            text: file("Release"),
            signature: file("Release.gpg"),
        };
        let url = format!("{base}/Release");
        let answer = match self.fetch_list(&url, since, &file("Release"), NO_SUITE) {
            Ok(answer) => answer,
            // A web page in place of the first says more than that the second is not there.
            Err(error) if is_of_one_file(&error) => {
                let tells_less = matches!(first, ArchiveError::Absent { .. });
                return Err(if tells_less { error } else { first });
            }
            Err(error) => return Err(error),
        };
        if answer != Answer::Unchanged {
            let url = format!("{base}/Release.gpg");
            let hint = "an archive that signs its lists has InRelease or Release.gpg";
            let beside = self.fetch_list(&url, None, &file("Release.gpg"), hint);
            if let Err(error) = beside {
                signed.remove();
                return Err(match (error, first) {
                    (ArchiveError::Absent { url, .. }, ArchiveError::Absent { .. }) => {
                        ArchiveError::Signature {
                            url: format!("{base}/Release"),
                            keyring: self.keyring()?.display().to_string(),
                            detail: format!("there is no {url}"),
                        }
                    }
                    (ArchiveError::Absent { .. }, first) => first,
                    (error, _) => error,
                });
            }
        }
        Ok(Fetched::new(answer, signed))
    }

    /// Fetches a list or its signature; leaves nothing of a web page.
    fn fetch_list(
        &self,
        url: &str,
        since: Option<&str>,
        file: &Path,
        hint: &'static str,
    ) -> Result<Answer, ArchiveError> {
        let wanted = Wanted {
            url,
            hint,
            pause: self.pause,
        };
        let answer = wanted.fetch(since, RELEASE_MAX, file)?;
        refuse_web_page(url, file).inspect_err(|_| drop(fs::remove_file(file)))?;
        Ok(answer)
    }

    /// Says that a suite's name has come to stand for another release.
    fn notice_rename(&self, source: &Source, pending: &Pending, now: &Release) {
        let Some(old) = &pending.old else {
            return;
        };
        let is_known = !old.codename.is_empty() && !now.codename.is_empty();
        if source.is_main && is_known && old.codename != now.codename {
            self.notices.add(ListNotice::Renamed {
                distribution: self.distribution,
                suite: source.suite.clone(),
                before: old.codename.clone(),
                now: now.codename.clone(),
            });
        }
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

    /// Reads the list of the data directory; `None` if its signature counts no longer, as after a
    /// change of the keyring: then a new one is fetched.
    fn known(
        &self,
        url: &str,
        signed: &Signed,
        source: &Source,
    ) -> Result<Option<Known>, ArchiveError> {
        let release = match self.read_signed(url, signed, source) {
            Ok(release) => release,
            Err(ArchiveError::Signature { .. } | ArchiveError::ExpiredKey { .. })
                if !self.is_offline =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(Some(match self.check_dates(url, release.clone(), source) {
            Ok(release) => Known {
                release,
                refusal: None,
            },
            Err(refusal) => Known {
                release,
                refusal: Some(refusal),
            },
        }))
    }

    /// Verifies a new list and reads it. One that is older than the one that was seen is replayed,
    /// and no list that has only ended.
    fn verify(
        &self,
        url: &str,
        signed: &Signed,
        source: &Source,
        old: Option<&Release>,
    ) -> Result<Release, ArchiveError> {
        let release = self.read_signed(url, signed, source)?;
        let release = check_order(url, release, old)?;
        self.check_dates(url, release, source)
    }

    /// Verifies a list's signature and reads it.
    fn read_signed(
        &self,
        url: &str,
        signed: &Signed,
        source: &Source,
    ) -> Result<Release, ArchiveError> {
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
        Ok(release)
    }

    /// Refuses a list that is not valid now.
    fn check_dates(
        &self,
        url: &str,
        release: Release,
        source: &Source,
    ) -> Result<Release, ArchiveError> {
        let now = (self.clock)();
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
                ended: Some(end.date()),
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

/// Returns whether another file of the same mirror may serve in place of the one that failed so.
fn is_of_one_file(error: &ArchiveError) -> bool {
    matches!(
        error,
        ArchiveError::Absent { .. }
            | ArchiveError::Checksum { .. }
            | ArchiveError::Forbidden { .. }
            | ArchiveError::WebPage { .. }
    )
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
            ended: None,
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

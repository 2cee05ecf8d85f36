//! The signed list of a suite (InRelease): when it was made, how long it is valid, and the hashes of
//! the lists of packages.

use model::UnixTime;

use crate::stanza::{field, lines_below};

/// What a suite's list says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// The suite's names: `oldstable` and `bookworm`.
    suite: String,
    pub(crate) codename: String,
    /// When it was made.
    pub(crate) made: UnixTime,
    /// Until when it is valid; lists of released suites have no end.
    pub(crate) valid_until: Option<UnixTime>,
    /// Whether lists are served by their hash too, so that a mirror in change serves the right one.
    pub(crate) by_hash: bool,
    files: Vec<ListedFile>,
}

/// A list of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    /// Its path below the suite.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl Release {
    /// Reads the signed text; `None` if it is no list of a suite.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let files = lines_below(text, "SHA256")
            .into_iter()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let sha256 = words.next().filter(|hash| is_sha256(hash))?.to_owned();
                let bytes = words.next()?.parse().ok()?;
                let path = words.next()?.to_owned();
                Some(ListedFile {
                    path,
                    bytes,
                    sha256,
                })
            })
            .collect();
        Some(Self {
            suite: field(text, "Suite").unwrap_or_default().to_owned(),
            codename: field(text, "Codename").unwrap_or_default().to_owned(),
            made: date(field(text, "Date")?)?,
            valid_until: match field(text, "Valid-Until") {
                Some(text) => Some(date(text)?),
                None => None,
            },
            by_hash: field(text, "Acquire-By-Hash") == Some("yes"),
            files,
        })
    }

    /// Returns the list at a path below the suite.
    pub(crate) fn file(&self, path: &str) -> Option<&ListedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the list of packages in all forms that it has, the smallest first: Marvin's guests
    /// are amd64, and kernels are in main.
    pub(crate) fn packages(&self) -> Vec<&ListedFile> {
        let mut forms = Vec::new();
        for component in ["main", "updates/main"] {
            for ending in [".xz", ".zst", ".gz", ""] {
                forms.extend(self.file(&format!("{component}/binary-amd64/Packages{ending}")));
            }
        }
        forms
    }

    /// Returns whether it is the list of a suite that was requested by this name, which may be the
    /// old path of security updates, `buster/updates`.
    pub(crate) fn is_called(&self, requested: &str) -> bool {
        let requested = requested.strip_suffix("/updates").unwrap_or(requested);
        // Ubuntu's noble-updates has the code name noble.
        let is_beside = self.suite.starts_with(&format!("{requested}-"));
        self.suite == requested || (self.codename == requested && !is_beside)
    }

    /// Returns the names of its suite, for messages.
    pub(crate) fn names(&self) -> String {
        format!("Suite: {}, Codename: {}", self.suite, self.codename)
    }
}

pub(crate) fn is_sha256(hash: &str) -> bool {
    hash.len() == 64
        && hash
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads `Sat, 09 May 2026 10:00:00 UTC`: dates of HTTP say GMT.
fn date(text: &str) -> Option<UnixTime> {
    let text = text.replace("UTC", "GMT").replace("+0000", "GMT");
    // Debian writes hours without a leading zero, Ubuntu with a space instead.
    let (day, time) = text.rsplit_once(" GMT")?.0.rsplit_once(' ')?;
    let time = if time.len() == 7 {
        format!("0{time}")
    } else {
        time.to_owned()
    };
    let date = httpdate::parse_http_date(&format!("{} {time} GMT", day.trim_end()));
    date.ok().map(UnixTime::from)
}

#[cfg(test)]
mod tests {
    use model::UnixTime;

    use super::{Release, date};

    #[test]
    fn lists_dates_and_hashes_are_read() {
        let hash = "a".repeat(64);
        let text = format!(
            "Origin: Debian\nDate: Sat, 09 May 2026  9:05:00 UTC\nAcquire-By-Hash: yes\nSHA256:\n {hash} 12 main/binary-amd64/Packages.xz\n ../x 1 evil\n"
        );
        let text = text.replace("  9", " 9");
        let release = Release::parse(&text).unwrap();
        assert_eq!(release.made, UnixTime::new(1_778_317_500));
        assert_eq!((release.valid_until, release.by_hash), (None, true));
        assert_eq!(
            release.file("main/binary-amd64/Packages.xz").unwrap().bytes,
            12
        );
        assert!(release.file("evil").is_none(), "a hash becomes a file name");
        assert!(Release::parse("Date: today\n").is_none());
        assert_eq!(
            release.packages().first().copied(),
            release.file("main/binary-amd64/Packages.xz")
        );
        let plain = Release::parse(&text.replace("Packages.xz", "Packages")).unwrap();
        assert_eq!(plain.packages()[0].path, "main/binary-amd64/Packages");
        let odd_end = format!("{text}Valid-Until: soon\n");
        assert!(
            Release::parse(&odd_end).is_none(),
            "an end that is not understood is no end"
        );
        assert_eq!(
            date("Wed, 25 Nov 2026  0:28:14 UTC"),
            date("Wed, 25 Nov 2026 00:28:14 GMT")
        );
        assert_eq!(
            date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(UnixTime::new(784_111_777))
        );
    }
    #[test]
    fn suite_is_known_by_either_name() {
        let names = |suite: &str, codename: &str| {
            let text = format!(
                "Suite: {suite}\nCodename: {codename}\nDate: Sat, 09 May 2026 9:05:00 UTC\n"
            );
            Release::parse(&text).unwrap()
        };
        let bookworm = names("oldstable", "bookworm");
        assert!(bookworm.is_called("bookworm") && bookworm.is_called("oldstable"));
        assert!(!bookworm.is_called("sid") && !bookworm.is_called("bookworm-updates"));
        assert!(names("unstable", "sid").is_called("sid"));
        assert!(names("oldoldstable", "buster").is_called("buster/updates"));
        assert!(names("noble", "noble").is_called("noble"));
        assert!(names("noble-updates", "noble").is_called("noble-updates"));
        assert!(!names("noble-updates", "noble").is_called("noble"));
        assert!(!names("", "").is_called("bookworm"));
    }
}

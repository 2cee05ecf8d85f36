//! Order of kernels: parsed versions, release lines, and series of comparable kernels.
//!
//! A version only determines the order; Marvin never concludes from it what a kernel can do.
//! Kernels of one version that differ only by a hash, commits and working trees, have no order in
//! their texts: their dates order them.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::{KernelName, PackageSelection, UnixTime};

/// A sortable version: 6.1, 6.1.192, 6.12-rc4, 6.12, 6.12.0-g1f0e2d3c4b5a, 6.12.117. Any text can
/// be sorted; texts without numbers come first.
///
/// The order is one of numbers, candidates, texts before a hash, dates, and texts, in this
/// sequence: it is total and transitive whatever is compared, commits with releases too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    numbers: [u64; 3],
    /// The release candidate; a release comes after its candidates.
    candidate: u64,
    /// Of a version that ends with a hash: the date that orders it.
    dated_unix: Option<UnixTime>,
    text: String,
}

/// What Marvin and the kernel's build write before the hash of a commit, a patched tree or a
/// working tree.
const MARKS: [&str; 3] = ["-g", "-p", "-t"];
/// Fewest hexadecimal digits of a hash: git abbreviates to no fewer.
const HASH_MIN: usize = 7;

impl Release {
    /// Parses any version.
    #[must_use]
    pub fn parse(version: &str) -> Self {
        let end = version
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(version.len());
        let (head, rest) = version.split_at(end);
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(head.split('.')) {
            *number = whole(part);
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let candidate = rest.strip_prefix("-rc").filter(|rest| digits(rest) > 0);
        let candidate = candidate.map_or(u64::MAX, |rest| whole(&rest[..digits(rest)]));
        Self {
            numbers,
            candidate,
            dated_unix: None,
            text: version.to_owned(),
        }
    }

    /// Returns it with the date that orders it among kernels of its version: when it was committed,
    /// or else first measured. A version without a hash is in order by itself and has no date.
    #[must_use]
    pub fn dated(self, date: Option<UnixTime>) -> Self {
        let dated_unix = date.filter(|_| self.is_hashed());
        Self { dated_unix, ..self }
    }

    /// Returns whether the version ends with a hash, which is in no order.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.stem().len() < self.text.len()
    }

    /// Returns the text before the hash, or all of it: `6.12.0` of `6.12.0-g1f0e2d3c4b5a` and of
    /// `6.12.0-g1f0e2d3c4b5a-dirty`.
    #[must_use]
    pub fn stem(&self) -> &str {
        for mark in MARKS {
            if let Some(start) = self.text.rfind(mark)
                && is_commit_hash(&self.text[start + mark.len()..])
            {
                return &self.text[..start];
            }
        }
        &self.text
    }

    /// Returns the first two numbers, which name a stable series.
    #[must_use]
    pub fn series(&self) -> (u64, u64) {
        (self.numbers[0], self.numbers[1])
    }

    /// Returns the original text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn key(&self) -> ([u64; 3], u64) {
        (self.numbers, self.candidate)
    }
}

/// Parses digits; no digits are zero, too many the largest number.
fn whole(digits: &str) -> u64 {
    if digits.is_empty() {
        0
    } else {
        digits.parse().unwrap_or(u64::MAX)
    }
}

impl PartialOrd for Release {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Release {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key()
            .cmp(&other.key())
            .then_with(|| natural(self.stem()).cmp(&natural(other.stem())))
            .then_with(|| self.is_hashed().cmp(&other.is_hashed()))
            .then_with(|| self.dated_unix.cmp(&other.dated_unix))
            .then_with(|| natural(&self.text).cmp(&natural(&other.text)))
            .then_with(|| self.text.cmp(&other.text))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits a text into words and numbers, so that `deb9` comes before `deb12`.
fn natural(text: &str) -> Vec<(String, u64)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (before, behind) = rest.split_at(word);
        let number = behind
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(behind.len());
        pieces.push((before.to_owned(), whole(&behind[..number])));
        rest = &behind[number..];
    }
    pieces
}

/// A line of releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ReleaseLine {
    /// All, by their versions.
    #[default]
    All,
    /// Mainline: releases and candidates, no stable updates.
    Mainline,
    /// A release and its stable updates, named by its first two numbers.
    Stable(u64, u64),
}

/// An invalid name of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no line of releases: expected all, mainline, or a stable series such as 6.12")]
pub struct LineError(String);

impl ReleaseLine {
    /// Returns whether a release belongs to this line.
    #[must_use]
    pub fn has(&self, release: &Release) -> bool {
        match *self {
            Self::All => true,
            Self::Mainline => release.numbers[2] == 0,
            Self::Stable(major, minor) => {
                release.series() == (major, minor) && release.candidate == u64::MAX
            }
        }
    }
}

impl FromStr for ReleaseLine {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        match text {
            "all" => Ok(Self::All),
            "mainline" => Ok(Self::Mainline),
            _ => stable(text).ok_or_else(|| LineError(text.to_owned())),
        }
    }
}

impl fmt::Display for ReleaseLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Mainline => f.write_str("mainline"),
            Self::Stable(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

/// Returns the name of the series that a kernel belongs to, which has one configuration: the
/// flavour of Debian's packages, else the prefix of the kernel name.
#[must_use]
pub fn track_of(name: &KernelName) -> String {
    match name {
        KernelName::Package(query) => match &query.selection {
            PackageSelection::Version { flavour, .. } => flavour.clone(),
            PackageSelection::Package(package) => flavour_of(package),
        },
        // Its config or compiler is another one.
        KernelName::Changed { kernel, changes } => format!("{}{changes}", track_of(kernel)),
        other => match other.imported_track() {
            Some(track) => track.to_owned(),
            None => other
                .to_string()
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned(),
        },
    }
}

/// Returns the flavour in a package name: `cloud-amd64` of
/// `linux-image-6.12.117+deb12-cloud-amd64`.
fn flavour_of(package: &str) -> String {
    let name = package
        .trim_start_matches("linux-image-")
        .trim_start_matches("unsigned-")
        .trim_end_matches("-unsigned");
    let is_version =
        |part: &&str| part.starts_with(|c: char| c.is_ascii_digit()) || part.starts_with("rc");
    let parts: Vec<&str> = name.split('-').skip_while(is_version).collect();
    if parts.is_empty() {
        name.to_owned()
    } else {
        parts.join("-")
    }
}

/// Returns whether a text is an abbreviated hash, with the marks of a changed tree.
fn is_commit_hash(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    digits >= HASH_MIN && ["", "+", "-dirty"].contains(&&text[digits..])
}

/// Parses the line of a stable series: `6.12`.
fn stable(text: &str) -> Option<ReleaseLine> {
    let (major, minor) = text.split_once('.')?;
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    Some(ReleaseLine::Stable(
        major.parse().ok()?,
        minor.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Release, ReleaseLine, track_of};
    use crate::UnixTime;

    #[test]
    fn releases_sort_after_candidates_before_stable_updates() {
        let ordered = [
            "",
            "mystery",
            "3.10",
            "6.1-rc1",
            "6.1",
            "6.1.9",
            "6.1.90",
            "6.1.192",
            "6.12.0-rc4",
            "6.12.0-rc10",
            "6.12",
            "6.12.0-39-cloud-amd64",
            "6.12.117",
            "6.12.117+deb9",
            "6.12.117+deb12",
            "99999999999999999999.1",
        ];
        for pair in ordered.windows(2) {
            assert!(
                Release::parse(pair[0]) < Release::parse(pair[1]),
                "{} < {}",
                pair[0],
                pair[1]
            );
        }
    }

    #[test]
    fn lines_have_their_releases() {
        let of = |line: &str, version: &str| {
            line.parse::<ReleaseLine>()
                .unwrap()
                .has(&Release::parse(version))
        };
        assert!(
            of("all", "6.1.5")
                && of("mainline", "6.1")
                && of("mainline", "6.2-rc1")
                && !of("mainline", "6.1.5")
        );
        assert!(
            of("6.1", "6.1") && of("6.1", "6.1.5") && !of("6.1", "6.1-rc2") && !of("6.1", "6.12.5")
        );
        assert_eq!("6.12".parse::<ReleaseLine>().unwrap().to_string(), "6.12");
        for wrong in ["", "6", "6.", ".1", "6.1.2", "+6.1", "stable"] {
            assert!(wrong.parse::<ReleaseLine>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn kernels_of_one_configuration_are_on_one_track() {
        for (name, track) in [
            ("deb:6.12", "cloud-amd64"),
            ("deb:6.12+rt-amd64", "rt-amd64"),
            ("deb:linux-image-6.12.117+deb12-cloud-amd64", "cloud-amd64"),
            ("deb:linux-image-6.1.0-39-amd64-unsigned", "amd64"),
            ("path:/boot/vmlinuz-6.1", "path"),
            ("imported:mmtests/6.1-vanilla", "imported"),
            ("imported:mmtests/6.1-vanilla,track=lts", "lts"),
        ] {
            assert_eq!(track_of(&name.parse().unwrap()), track);
        }
    }

    #[test]
    fn commits_of_one_version_sort_by_date() {
        let commit = |version: &str, date| Release::parse(version).dated(Some(UnixTime::new(date)));
        let ordered = [
            commit("6.12", 9),
            commit("6.12.0", 9),
            commit("6.12.0-gffffffffffff", 1),
            commit("6.12.0-t0123456789ab", 2),
            commit("6.12.0-g0123456789ab", 3),
            commit("6.12.0-00007-gffffffffffff-dirty", 1),
            commit("6.12.0-00012-g0123456789ab", 0),
            commit("6.12.1", 0),
            commit("6.13.0-gaaaaaaaaaaaa", 0),
        ];
        assert!(ordered.is_sorted(), "{ordered:?}");
        // What a date cannot order, it does not part: two texts of one version that is no hash.
        assert_eq!(commit("6.12.117", 1), commit("6.12.117", 2));
        assert!(
            !Release::parse("6.12.0-39-cloud-amd64").is_hashed()
                && !Release::parse("6.12-gcafe").is_hashed()
        );
    }

    fn any_release() -> impl Strategy<Value = Release> {
        let version = "6\\.1[0-2](\\.[0-2])?(-rc[1-3])?(-0000[1-3])?(-[gpt](aaaaaaa|bbbbbbb|ccccccc|c2c1))?(-dirty)?";
        let date = prop::option::of((0_i64..3).prop_map(UnixTime::new));
        (version, date).prop_map(|(version, date)| Release::parse(&version).dated(date))
    }

    proptest! {
        #[test]
        fn releases_and_commits_have_one_order(of in prop::collection::vec(any_release(), 3)) {
            use std::cmp::Ordering;
            for (a, b) in [(&of[0], &of[1]), (&of[1], &of[2]), (&of[0], &of[2])] {
                prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
                prop_assert_eq!(a.cmp(b) == Ordering::Equal, a == b);
            }
            if of[0] <= of[1] && of[1] <= of[2] {
                prop_assert!(of[0] <= of[2]);
            }
        }

        #[test]
        fn any_text_has_its_place(one in any::<String>(), other in any::<String>()) {
            let one = Release::parse(&one);
            let other = Release::parse(&other);
            prop_assert_eq!(one.cmp(&other), other.cmp(&one).reverse());
            prop_assert_eq!(one.cmp(&other).is_eq(), one == other);
        }
    }
}

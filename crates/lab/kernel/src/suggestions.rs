//! Describes an archive's alternatives to an unknown kernel.

use std::collections::BTreeSet;

use archives::{Archives, key, numbers};
use model::{Distribution, KernelName, PackageQuery, PackageSelection};

use crate::KernelError;
use crate::catalogue::{Offer, flavour_of};

/// Most packages in a message.
const SHOWN: usize = 4;

/// Describes the alternatives; `offers` are all that the suite has, newest first.
pub(crate) fn instead(query: &PackageQuery, offers: &[Offer]) -> String {
    let names = Names {
        distribution: query.distribution,
        suite: query.suite.as_deref(),
    };
    match &query.selection {
        PackageSelection::Package(package) => {
            format!("nearest: {}", packages(names, package, offers))
        }
        PackageSelection::Version { version, flavour } => {
            version_of(names, flavour, version, offers)
        }
    }
}

/// Adds suites that are left out now to the error for a kernel that the others lack.
pub(crate) fn name_left_out(
    error: KernelError,
    archives: &Archives,
    distribution: Distribution,
) -> KernelError {
    let KernelError::Unknown {
        suite,
        requested,
        mut instead,
    } = error
    else {
        return error;
    };
    for notice in archives.left_out(distribution) {
        instead = format!("{instead}; {notice}");
    }
    KernelError::Unknown {
        suite,
        requested,
        instead,
    }
}

/// The parts that all names of an archive have.
#[derive(Debug, Clone, Copy)]
struct Names<'a> {
    distribution: Distribution,
    suite: Option<&'a str>,
}

fn version_of(archive: Names<'_>, flavour: &str, version: &str, offers: &[Offer]) -> String {
    let of_version = flavours(offers.iter().filter(|offer| offer.is_version(version)));
    if !of_version.is_empty() {
        let names: Vec<String> = of_version
            .iter()
            .map(|it| name(archive, version, it))
            .collect();
        return format!("it comes as {}", names.join(", "));
    }
    let same: Vec<&Offer> = offers.iter().filter(|o| o.flavour == flavour).collect();
    if same.is_empty() {
        let all: Vec<&str> = flavours(offers.iter()).into_iter().collect();
        return format!("the flavours are {}", all.join(", "));
    }
    format!(
        "nearest: {}; newest of each series: {}{}",
        names(archive, &neighbours(version, &same)),
        names(archive, &series(&same)),
        in_the_past(archive, version)
    )
}

/// Describes where a release of a stable series may be that its archive no longer has.
fn in_the_past(archive: Names<'_>, version: &str) -> String {
    let has_days = matches!(
        archive.distribution,
        Distribution::Debian | Distribution::Ubuntu
    );
    let is_of_today = archive.suite.is_none_or(|suite| !suite.contains('@'));
    if !has_days || !is_of_today || numbers(version).len() < 3 {
        return String::new();
    }
    let scheme = archive.distribution.scheme();
    let suite = archive.suite.unwrap_or("SUITE");
    format!("; the archive of a day that had it: {scheme}:{suite}@YYYYMMDD/{version}")
}

/// Formats a kernel name for an offer.
fn name(archive: Names<'_>, version: &str, flavour: &str) -> String {
    KernelName::Package(PackageQuery {
        distribution: archive.distribution,
        suite: archive.suite.map(str::to_owned),
        selection: PackageSelection::Version {
            version: version.to_owned(),
            flavour: flavour.to_owned(),
        },
    })
    .to_string()
}

fn names(archive: Names<'_>, offers: &[&Offer]) -> String {
    let mut names: Vec<String> = offers
        .iter()
        .map(|offer| name(archive, &offer.upstream, &offer.flavour))
        .collect();
    names.dedup();
    names.join(", ")
}

fn flavours<'a>(offers: impl Iterator<Item = &'a Offer>) -> BTreeSet<&'a str> {
    offers.map(|offer| &*offer.flavour).collect()
}

/// Returns the two offers closest to a version, older and newer.
fn neighbours<'a>(version: &str, offers: &[&'a Offer]) -> Vec<&'a Offer> {
    let older = offers.partition_point(|offer| key(&offer.upstream) > key(version));
    let from = older.saturating_sub(SHOWN / 2);
    let to = (older + SHOWN / 2).min(offers.len());
    offers[from..to].to_vec()
}

/// Returns the newest offer of each series, such as 6.12.
fn series<'a>(offers: &[&'a Offer]) -> Vec<&'a Offer> {
    let mut seen = BTreeSet::new();
    let mut newest = offers.to_vec();
    newest.retain(|offer| {
        let mut series = numbers(&offer.upstream);
        series.truncate(2);
        seen.insert(series)
    });
    newest
}

/// Returns the most similar packages: same flavour first, then by the length of the common prefix.
fn packages(archive: Names<'_>, name: &str, offers: &[Offer]) -> String {
    let image = name.trim_end_matches("-dbg").trim_end_matches("-unsigned");
    let flavour = flavour_of(image);
    let mut sorted: Vec<&Offer> = offers.iter().collect();
    sorted.sort_by_key(|offer| {
        let pairs = offer.package.bytes().zip(image.bytes());
        let common = pairs.take_while(|(a, b)| a == b).count();
        std::cmp::Reverse((flavour == Some(&offer.flavour), common))
    });
    let names: Vec<String> = sorted
        .iter()
        .take(SHOWN)
        .map(|offer| {
            let query = PackageQuery {
                distribution: archive.distribution,
                suite: archive.suite.map(str::to_owned),
                selection: PackageSelection::Package(offer.package.clone()),
            };
            KernelName::Package(query).to_string()
        })
        .collect();
    names.join(", ")
}

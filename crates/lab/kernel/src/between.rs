//! The releases of a distribution between two kernels: what its lists have, and what they name and
//! lack.

use std::collections::BTreeMap;

use archives::{Archives, upstream};
use model::{KernelName, PackageQuery, PackageSelection, Release};

use crate::KernelError;
use crate::catalogue::{Catalogue, Offer, offers};

/// A release between two kernels, or one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseBetween {
    /// Its upstream version.
    pub version: String,
    /// The name of its newest package.
    pub name: KernelName,
    /// The part that no list has, without which it does not boot.
    pub missing: Option<String>,
}

/// Returns the releases from the first of these kernels to the last, oldest first, both included,
/// in the flavour of the first; one for each upstream version. They come from the suites of all
/// kernels.
///
/// # Errors
/// If the lists cannot be had, or have none of these kernels.
pub fn releases_between(
    archives: &Archives,
    kernels: &[PackageQuery],
) -> Result<Vec<ReleaseBetween>, KernelError> {
    let mut named = Vec::new();
    let mut lists = Vec::new();
    for query in kernels {
        let suite = query.suite.as_deref();
        named.push(offers(archives, query)?.swap_remove(0));
        lists.push(Catalogue::open(archives, query.distribution, suite)?);
    }
    Ok(between(kernels, &named, &lists))
}

/// Returns the releases of kernels from what their queries mean, and the lists of their suites.
fn between(kernels: &[PackageQuery], named: &[Offer], lists: &[Catalogue]) -> Vec<ReleaseBetween> {
    let (Some(base), Some(new)) = (named.first(), named.last()) else {
        return Vec::new();
    };
    let first = Release::parse(&base.upstream);
    let last = Release::parse(&new.upstream);
    let mut between: BTreeMap<Release, ReleaseBetween> = BTreeMap::new();
    for (query, lists) in kernels.iter().zip(lists) {
        for offer in &lists.images {
            let release = Release::parse(&offer.upstream);
            let is_between = first < release && release < last;
            if is_between && offer.flavour == base.flavour {
                // Offers are in order, the newest first.
                between.entry(release).or_insert_with(|| had(offer, query));
            }
        }
        for without in &lists.without_image {
            let version = upstream(&without.version);
            let release = Release::parse(version);
            let is_between = first < release && release < last;
            if is_between && without.flavour == base.flavour {
                between.entry(release).or_insert_with(|| ReleaseBetween {
                    version: version.to_owned(),
                    name: KernelName::Package(PackageQuery {
                        selection: PackageSelection::Package(without.package.clone()),
                        ..query.clone()
                    }),
                    missing: Some(format!("no list has {}", without.missing)),
                });
            }
        }
    }
    let mut all = vec![had(base, &kernels[0])];
    all.extend(between.into_values());
    all.push(had(new, &kernels[kernels.len() - 1]));
    all
}

/// Returns a release that the lists have, of the suite of a query.
fn had(offer: &Offer, query: &PackageQuery) -> ReleaseBetween {
    ReleaseBetween {
        version: offer.shown_version().to_owned(),
        name: offer.name(query.suite.as_deref()),
        missing: None,
    }
}

#[cfg(test)]
mod tests {
    use archives::Stanzas;
    use model::{Distribution, KernelName, PackageQuery};

    use super::between;
    use crate::catalogue::Catalogue;

    /// Returns the releases between two names, as `VERSION NAME MISSING`, in lists of this text.
    fn releases(text: &str, names: [&str; 2]) -> Vec<String> {
        let stanzas = Stanzas {
            archive: "http://archive".to_owned(),
            text: text.to_owned(),
        };
        let lists = Catalogue::read(Distribution::Debian, "bookworm", &[stanzas]);
        let queries = names.map(|name| match name.parse() {
            Ok(KernelName::Package(query)) => query,
            other => panic!("{other:?}"),
        });
        let named = queries.each_ref().map(|query: &PackageQuery| {
            let mut found = lists.find(query).unwrap();
            found.swap_remove(0)
        });
        let found = between(&queries, &named, std::slice::from_ref(&lists));
        let line = |release: super::ReleaseBetween| {
            let missing = release.missing.unwrap_or_default();
            format!("{} {} {missing}", release.version, release.name)
                .trim_end()
                .to_owned()
        };
        found.into_iter().map(line).collect()
    }

    #[test]
    fn releases_of_the_flavour_are_in_order() {
        let records = include_str!("../testdata/apt-cache-search.txt");
        insta::assert_snapshot!(
            releases(
                records,
                ["deb:linux-image-6.1.0-47-cloud-amd64", "deb:6.12"]
            )
            .join("\n")
        );
    }

    #[test]
    fn release_without_image_is_named_with_its_part() {
        let records = include_str!("../testdata/apt-cache-search.txt");
        let split = include_str!("../testdata/apt-cache-search-split.txt");
        let split = split
            .replace("Package: linux-binary-7", "Package: linux-elsewhere-7")
            .replace("7.2.13", "6.12.101");
        let found = releases(
            &format!("{records}\n{split}"),
            ["deb:6.12.100", "deb:6.12.113"],
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[1].starts_with("6.12.101 ")
                && found[1].contains("no list has linux-binary-6.12.101"),
            "{found:?}"
        );
    }
}

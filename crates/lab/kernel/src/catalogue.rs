//! The kernels that a suite of Debian's or Ubuntu's archive offers: parses stanzas of its lists, and
//! selects the offers for a query.
//!
//! Pure except for [`offers`]; `archives` has the lists, `suggestions` words alternatives.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use archives::{Archives, Key, Package, Stanzas, debian_version, field, key, numbers, upstream};
use model::{Distribution, KernelName, Origin, PackageQuery, PackageSelection};

use crate::{KernelError, PackageError, suggestions};

/// The prefix of kernel packages.
pub(crate) const PREFIX: &str = "linux-image-";

/// The prefix of the package with the image, which Debian splits off from 6.19 on.
const IMAGE_PART: &str = "linux-binary-";

/// The prefixes of packages with parts of a kernel: the image; from 6.18 on kernel config and lists
/// of modules; from 6.19 on the modules. Archives that keep the images of old versions, as
/// backports do, lack their other parts.
const PARTS: [&str; 3] = [IMAGE_PART, "linux-base-", "linux-modules-"];

/// The prefix of Ubuntu's packages with the modules that few guests need, which no image depends on.
const EXTRA: &str = "linux-modules-extra-";

/// Longest chain of metapackages; more of them are a circle.
const DEPTH: usize = 4;

/// One kernel package on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub distribution: Distribution,
    pub package: String,
    /// Its Debian version: `6.12.117-1~deb12u1`.
    pub version: String,
    /// The upstream version within that: `6.12.117`.
    pub upstream: String,
    /// The flavour at the end of its name: `cloud-amd64`.
    pub flavour: String,
    /// The packages to download: this one, unless another has the image, and those with the
    /// kernel's other parts.
    pub files: Vec<Package>,
    /// Parts that no list has: the kernel boots without its config, lists of modules or modules.
    pub missing: Vec<String>,
}

impl Offer {
    /// Returns the number of bytes to download.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the name that selects it in a suite, or in that of the settings.
    #[must_use]
    pub fn name(&self, suite: Option<&str>) -> KernelName {
        KernelName::Package(PackageQuery {
            distribution: self.distribution,
            suite: suite.map(str::to_owned),
            selection: PackageSelection::Package(match self.distribution {
                Distribution::Debian | Distribution::Ubuntu => self.package.clone(),
                // All builds of a version have the same package: their versions tell them apart.
                Distribution::Fedora | Distribution::Arch => {
                    format!("{}-{}", self.package, self.version)
                }
            }),
        })
    }

    /// Returns the version that tells builds apart: of Fedora and Arch with the number of the build.
    #[must_use]
    pub fn shown_version(&self) -> &str {
        match self.distribution {
            Distribution::Debian | Distribution::Ubuntu => &self.upstream,
            Distribution::Fedora | Distribution::Arch => &self.version,
        }
    }

    /// Returns a text that identifies its content among all offers.
    pub(crate) fn content(&self) -> String {
        self.files
            .iter()
            .map(|file| file.sha256.as_str())
            .collect::<Vec<_>>()
            .join("+")
    }

    /// Returns package and version, which identify it.
    pub(crate) fn origin(&self) -> Origin {
        Origin::Package {
            name: self.package.clone(),
            version: self.version.clone(),
        }
    }

    /// Returns whether a package of this name is meant: of an unsigned image also the signed one, and
    /// of Fedora and Arch a name with its version, or Fedora's empty package beside the image.
    fn is_called(&self, package: &str) -> bool {
        if self.package == package {
            return true;
        }
        match self.distribution {
            Distribution::Debian | Distribution::Ubuntu => {
                signed_name(&self.package).as_deref() == Some(package)
            }
            Distribution::Fedora | Distribution::Arch => {
                self.package.strip_suffix("-core") == Some(package)
                    || format!("{}-{}", self.package, self.version) == package
            }
        }
    }

    /// The sort key for age: upstream version, Debian version, name.
    pub(crate) fn age(&self) -> (Key, [Key; 3], Key) {
        (
            key(&self.upstream),
            debian_version(&self.version),
            key(&self.package),
        )
    }

    /// Returns whether its upstream version begins with the numbers of `version`: 6.1 does not
    /// begin 6.12.
    pub(crate) fn is_version(&self, version: &str) -> bool {
        // An ABI number behind it is that of one kernel: `6.8.0-31`.
        if version.contains('-') {
            return self.upstream == version;
        }
        numbers(&self.upstream).starts_with(&numbers(version))
    }
}

/// A package that only depends on the newest one of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Meta {
    package: String,
    version: String,
    depends_on: String,
}

/// All that a suite says of kernels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub(crate) distribution: Distribution,
    pub(crate) suite: String,
    pub(crate) images: Vec<Offer>,
    metas: Vec<Meta>,
    /// Kernels without their image in any list.
    pub(crate) without_image: Vec<WithoutImage>,
}

/// A kernel that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithoutImage {
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) flavour: String,
    /// The package with its image.
    pub(crate) missing: String,
}

/// Returns the offers for a name, newest first.
///
/// # Errors
/// If the lists cannot be had, or have no package with that name.
pub fn offers(archives: &Archives, query: &PackageQuery) -> Result<Vec<Offer>, KernelError> {
    let catalogue = Catalogue::open(archives, query.distribution, query.suite.as_deref())?;
    let found = catalogue.find(query);
    found.map_err(|error| suggestions::name_left_out(error, archives, query.distribution))
}

/// Returns all offers of a suite, or of that of the settings, newest first.
///
/// # Errors
/// If the lists cannot be had.
pub fn all_offers(
    archives: &Archives,
    distribution: Distribution,
    suite: Option<&str>,
) -> Result<Vec<Offer>, KernelError> {
    Ok(Catalogue::open(archives, distribution, suite)?.images)
}

impl Catalogue {
    /// Reads what a suite, or that of the settings, says of kernels.
    pub(crate) fn open(
        archives: &Archives,
        distribution: Distribution,
        suite: Option<&str>,
    ) -> Result<Self, KernelError> {
        let archive = match distribution {
            Distribution::Debian => &archives.debian,
            Distribution::Ubuntu => &archives.ubuntu,
            Distribution::Fedora => return Self::open_fedora(archives, suite),
            Distribution::Arch => return Self::open_arch(archives),
        };
        let suite = archive.suite(suite);
        let starts = [&[PREFIX], PARTS.as_slice()].concat();
        let stanzas = archive.extract(suite, "kernels", &starts)?;
        Ok(Self::read(distribution, suite, &stanzas))
    }

    /// Returns the catalogue of these images.
    pub(crate) fn with_images(
        distribution: Distribution,
        suite: &str,
        mut images: Vec<Offer>,
    ) -> Self {
        images.sort_by_key(|offer| Reverse(offer.age()));
        Self {
            distribution,
            suite: suite.to_owned(),
            images,
            metas: Vec::new(),
            without_image: Vec::new(),
        }
    }

    /// Parses stanzas; skips packages that are no bootable kernel for amd64.
    pub(crate) fn read(distribution: Distribution, suite: &str, stanzas: &[Stanzas]) -> Self {
        let mut catalogue = Self::with_images(distribution, suite, Vec::new());
        let records: Vec<Record<'_>> = stanzas
            .iter()
            .flat_map(|list| {
                list.text.split("\n\n").map(|text| Record {
                    archive: &list.archive,
                    text,
                })
            })
            .collect();
        let parts: HashMap<(&str, &str), Package> = records.iter().filter_map(part).collect();
        // A point release takes packages over from updates: they are in two lists then.
        let mut seen = HashSet::new();
        for record in &records {
            let named = (field(record.text, "Package"), field(record.text, "Version"));
            if !seen.insert(named) {
                continue;
            }
            if named
                .0
                .is_none_or(|name| !name.starts_with(PREFIX) || is_side_product(name))
                || named.0.is_some_and(|name| signed_name(name).is_some())
            {
                continue;
            }
            if let Some(meta) = meta(record.text) {
                catalogue.metas.push(meta);
            } else {
                match offer(record, distribution, &parts) {
                    Some(Ok(offer)) => catalogue.images.push(offer),
                    Some(Err(without)) => catalogue.without_image.push(without),
                    None => {}
                }
            }
        }
        catalogue.add_unsigned(&records, &parts);
        catalogue.images.sort_by_key(|offer| Reverse(offer.age()));
        catalogue
            .metas
            .sort_by_key(|meta| debian_version(&meta.version));
        catalogue
    }

    /// Adds images that the lists have without their signature only: they are the same but for it.
    fn add_unsigned(&mut self, records: &[Record<'_>], parts: &HashMap<(&str, &str), Package>) {
        let signed: HashSet<String> = self
            .images
            .iter()
            .map(|offer| offer.package.clone())
            .collect();
        let mut seen = HashSet::new();
        for record in records {
            let named = (field(record.text, "Package"), field(record.text, "Version"));
            let Some(package) = named.0.filter(|name| signed_name(name).is_some()) else {
                continue;
            };
            let is_missing = signed_name(package).is_some_and(|name| !signed.contains(&name));
            if is_missing
                && seen.insert(named)
                && let Some(Ok(offer)) = offer(record, self.distribution, parts)
            {
                self.images.push(offer);
            }
        }
    }

    /// Returns the offers for a query, newest first; at least one.
    pub(crate) fn find(&self, query: &PackageQuery) -> Result<Vec<Offer>, KernelError> {
        let found: Vec<Offer> = match &query.selection {
            PackageSelection::Version { version, flavour } => self
                .images
                .iter()
                .filter(|offer| offer.flavour == *flavour && offer.is_version(version))
                .cloned()
                .collect(),
            PackageSelection::Package(package) => {
                let package = self.follow_metapackages(package);
                self.images
                    .iter()
                    .filter(|offer| offer.is_called(package))
                    .cloned()
                    .collect()
            }
        };
        if self.images.is_empty() && self.without_image.is_empty() {
            return Err(KernelError::Package(PackageError::NoKernels {
                suite: format!("{}'s {}", self.distribution, self.suite),
                scheme: self.distribution.scheme(),
            }));
        }
        if found.is_empty() {
            if let Some(without) = self
                .without_image
                .iter()
                .find(|without| without.is_asked_for(query))
            {
                return Err(KernelError::Package(PackageError::NoImagePart {
                    package: format!("{} {}", without.package, without.version),
                    missing: without.missing.clone(),
                    scheme: self.distribution.scheme(),
                }));
            }
            return Err(KernelError::Unknown {
                suite: format!("{}'s {}", self.distribution, self.suite),
                requested: KernelName::Package(query.clone()).to_string(),
                instead: suggestions::instead(query, &self.images),
            });
        }
        Ok(found)
    }

    /// Follows metapackages from a package to its image; other packages are returned unchanged.
    fn follow_metapackages<'a>(&'a self, mut package: &'a str) -> &'a str {
        for _ in 0..DEPTH {
            match self.metas.iter().rfind(|meta| meta.package == package) {
                Some(meta) => package = &meta.depends_on,
                None => break,
            }
        }
        package
    }
}

impl WithoutImage {
    fn is_asked_for(&self, query: &PackageQuery) -> bool {
        match &query.selection {
            PackageSelection::Version { version, flavour } => {
                self.flavour == *flavour
                    && numbers(upstream(&self.version)).starts_with(&numbers(version))
            }
            PackageSelection::Package(package) => self.package == *package,
        }
    }
}

/// Returns the signed package of an unsigned image: Debian's and Ubuntu's names differ.
fn signed_name(package: &str) -> Option<String> {
    if let Some(signed) = package.strip_suffix("-unsigned") {
        return flavour_of(signed).map(|_| signed.to_owned());
    }
    let signed = format!("{PREFIX}{}", package.strip_prefix("linux-image-unsigned-")?);
    flavour_of(&signed)?;
    Some(signed)
}

/// Returns whether a package only accompanies a kernel's: its symbols, its unsigned twin, its
/// unsigned template.
fn is_side_product(package: &str) -> bool {
    ["-dbg", "-unsigned", "-template"]
        .iter()
        .any(|tail| package.ends_with(tail))
}

/// Parses the record of a metapackage.
fn meta(record: &str) -> Option<Meta> {
    let depends_on = field(record, "Depends")?
        .split(',')
        .filter_map(|one| one.split_whitespace().next())
        .find(|package| package.starts_with(PREFIX))?;
    Some(Meta {
        package: field(record, "Package")?.to_owned(),
        version: field(record, "Version")?.to_owned(),
        depends_on: depends_on.to_owned(),
    })
}

/// A stanza of an archive's list.
struct Record<'a> {
    /// The archive's address.
    archive: &'a str,
    text: &'a str,
}

/// Parses the record of a part of a kernel.
fn part<'a>(record: &Record<'a>) -> Option<((&'a str, &'a str), Package)> {
    let package = field(record.text, "Package")
        .filter(|package| PARTS.iter().any(|start| package.starts_with(start)))?;
    Some((
        (package, field(record.text, "Version")?),
        file(record, "amd64")?,
    ))
}

/// Parses where the package of an architecture is, its size and its hash.
fn file(record: &Record<'_>, architecture: &str) -> Option<Package> {
    if field(record.text, "Architecture")? != architecture {
        return None;
    }
    Package::parse(record.archive, record.text)
}

/// Returns the offers of a package without a flavour for all architectures, such as a source.
pub(crate) fn sources(stanzas: &[Stanzas], package: &str) -> Vec<Offer> {
    let mut offers = Vec::new();
    for list in stanzas {
        for text in list.text.split("\n\n") {
            let record = Record {
                archive: &list.archive,
                text,
            };
            let Some(version) = field(text, "Version") else {
                continue;
            };
            let file = file(&record, "all").filter(|file| file.package == package);
            offers.extend(file.map(|file| Offer {
                distribution: Distribution::Debian,
                package: package.to_owned(),
                version: version.to_owned(),
                upstream: upstream(version).to_owned(),
                flavour: String::new(),
                files: vec![file],
                missing: Vec::new(),
            }));
        }
    }
    offers
}

/// Parses the record of a kernel; `None` if it is none that can be downloaded.
fn offer(
    record: &Record<'_>,
    distribution: Distribution,
    parts: &HashMap<(&str, &str), Package>,
) -> Option<Result<Offer, WithoutImage>> {
    let package = field(record.text, "Package")?;
    let version = field(record.text, "Version")?;
    let signed = signed_name(package).unwrap_or_else(|| package.to_owned());
    let flavour = flavour_of(&signed)?;
    let depends = field(record.text, "Depends").unwrap_or_default();
    let names = depends
        .split(',')
        .filter_map(|one| one.split_whitespace().next());
    let of_kernel = names.filter(|name| PARTS.iter().any(|start| name.starts_with(start)));
    let of_kernel: Vec<&str> = of_kernel.filter(|name| name.ends_with(flavour)).collect();
    let mut files = Vec::new();
    let mut missing = Vec::new();
    if !of_kernel.iter().any(|name| name.starts_with(IMAGE_PART)) {
        files.push(file(record, "amd64")?);
    }
    // Ubuntu signs an image again with a `+1` behind the version of its modules.
    let unmarked = version.rsplit_once('+').map_or(version, |(rest, _)| rest);
    let extra = signed
        .strip_prefix(PREFIX)
        .map(|release| format!("{EXTRA}{release}"));
    let extra = extra
        .as_deref()
        .and_then(|name| parts.get(&(name, unmarked)));
    for name in of_kernel {
        let part = parts.get(&(name, version));
        match part.or_else(|| parts.get(&(name, unmarked))) {
            Some(part) => files.push(part.clone()),
            None if name.starts_with(IMAGE_PART) => {
                return Some(Err(WithoutImage {
                    package: package.to_owned(),
                    version: version.to_owned(),
                    flavour: flavour.to_owned(),
                    missing: name.to_owned(),
                }));
            }
            None => missing.push(name.to_owned()),
        }
    }
    files.extend(extra.cloned());
    // All kernels of an Ubuntu have the same upstream version: their ABI numbers tell them apart.
    let release = signed
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(flavour)?.strip_suffix('-'));
    let upstream = match distribution {
        Distribution::Ubuntu => release.unwrap_or_else(|| upstream(version)),
        _ => upstream(version),
    };
    Some(Ok(Offer {
        distribution,
        package: package.to_owned(),
        version: version.to_owned(),
        upstream: upstream.to_owned(),
        flavour: flavour.to_owned(),
        files,
        missing,
    }))
}

/// Returns the flavour in a package's name, which follows the version and the ABI number.
pub(crate) fn flavour_of(package: &str) -> Option<&str> {
    let rest = package.strip_prefix(PREFIX)?;
    let skipped: usize = rest
        .split('-')
        .take_while(|part: &&str| part.starts_with(|c: char| c.is_ascii_digit()))
        .map(|part| part.len() + 1)
        .sum();
    let flavour = rest.get(skipped..)?;
    (skipped > 0 && !flavour.is_empty()).then_some(flavour)
}

#[cfg(test)]
mod tests {
    use archives::Stanzas;
    use model::{Distribution, Fault, KernelName, PackageQuery, PackageSelection};
    use proptest::prelude::*;

    use super::{Catalogue, flavour_of};
    use crate::KernelError;

    /// Some records that the real `apt-cache search --names-only --full ^linux-image-` of Debian 12
    /// printed.
    const RECORDS: &str = include_str!("../testdata/apt-cache-search.txt");

    fn read(text: &str) -> Catalogue {
        let stanzas = Stanzas {
            archive: "http://archive".to_owned(),
            text: text.to_owned(),
        };
        Catalogue::read(Distribution::Debian, "bookworm", &[stanzas])
    }

    fn version(version: &str) -> PackageQuery {
        PackageQuery {
            distribution: Distribution::Debian,
            suite: None,
            selection: PackageSelection::Version {
                version: version.to_owned(),
                flavour: "cloud-amd64".to_owned(),
            },
        }
    }

    fn package(package: &str) -> PackageQuery {
        PackageQuery {
            distribution: Distribution::Debian,
            suite: None,
            selection: PackageSelection::Package(package.to_owned()),
        }
    }

    fn find(name: &str) -> Result<Vec<String>, KernelError> {
        let Ok(KernelName::Package(query)) = name.parse() else {
            panic!("{name}");
        };
        let offers = read(RECORDS).find(&query)?;
        Ok(offers
            .iter()
            .map(|offer| offer.origin().to_string())
            .collect())
    }

    fn refusal(name: &str) -> String {
        let error = find(name).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        error.to_string()
    }

    #[test]
    fn the_records_are_read() {
        let catalogue = read(RECORDS);
        insta::assert_debug_snapshot!(catalogue.images[0], @r#"
        Offer {
            distribution: Debian,
            package: "linux-image-6.12.117+deb12-cloud-amd64",
            version: "6.12.117-1~deb12u1",
            upstream: "6.12.117",
            flavour: "cloud-amd64",
            files: [
                Package {
                    package: "linux-image-6.12.117+deb12-cloud-amd64",
                    url: "http://archive/pool/updates/main/l/linux-signed-6.12-amd64/linux-image-6.12.117+deb12-cloud-amd64_6.12.117-1~deb12u1_amd64.deb",
                    bytes: 34307256,
                    sha256: "5195b288dec79e2981d6b84457f38b7ce7310a2d702930ec7d07209c7f78ce37",
                },
            ],
            missing: [],
        }
        "#);
        let packages: Vec<_> = catalogue.images.iter().map(|o| &*o.package).collect();
        insta::assert_snapshot!(packages.join("\n"), @"
        linux-image-6.12.117+deb12-cloud-amd64
        linux-image-6.12.117+deb12-amd64
        linux-image-6.12.113+deb12-cloud-amd64
        linux-image-6.12.100+deb12-cloud-amd64
        linux-image-6.1.0-56-rt-amd64
        linux-image-6.1.0-56-cloud-amd64
        linux-image-6.1.0-56-amd64
        linux-image-6.1.0-54-cloud-amd64
        linux-image-6.1.0-47-cloud-amd64
        ");
        assert_eq!(catalogue.metas.len(), 3);
    }

    /// The output of the same command on Debian sid with 7.2, whose kernels come in parts.
    const SPLIT: &str = include_str!("../testdata/apt-cache-search-split.txt");

    #[test]
    fn kernel_in_parts_is_offered_whole() {
        let query = version("7.2");
        let offer = read(SPLIT).find(&query).unwrap().swap_remove(0);
        let files: Vec<&str> = offer.files.iter().map(|file| &*file.package).collect();
        insta::assert_snapshot!(files.join("\n"), @"
        linux-base-7.2.13+deb14-cloud-amd64
        linux-binary-7.2.13+deb14-cloud-amd64
        linux-modules-7.2.13+deb14-cloud-amd64
        ");
        assert!(offer.bytes() > 30_000_000, "{}", offer.bytes());
        assert_eq!(
            offer.origin().to_string(),
            "linux-image-7.2.13+deb14-cloud-amd64 7.2.13-1"
        );
    }

    #[test]
    fn kernel_without_its_image_part_is_no_offer() {
        let text = SPLIT.replace("Package: linux-binary-7", "Package: linux-elsewhere-7");
        let query = package("linux-image-7.2.13+deb14-cloud-amd64");
        let error = read(&text).find(&query).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        insta::assert_snapshot!(error, @"
        cannot get linux-image-7.2.13+deb14-cloud-amd64 7.2.13-1: the lists of the archive lack linux-binary-7.2.13+deb14-cloud-amd64, which has its image
        hint: name a day when it was there (deb:SUITE@DATE/PACKAGE), or an image file with path:FILE
        ");
    }

    /// Records of Debian 13's backports: images of old versions without their other parts.
    const BACKPORTS: &str = include_str!("../testdata/apt-cache-search-backports.txt");

    #[test]
    fn kernel_without_modules_is_offered() {
        let catalogue = read(BACKPORTS);
        let files_of = |of: &str| {
            let query = version(of);
            let offer = catalogue.find(&query).unwrap().swap_remove(0);
            let files = offer
                .files
                .iter()
                .map(|file| file.package.clone())
                .collect::<Vec<_>>()
                .join(" ");
            format!("{files}, without {}", offer.missing.join(" "))
        };
        insta::assert_snapshot!(files_of("6.18.12"), @"linux-image-6.18.12+deb13-cloud-amd64, without linux-base-6.18.12+deb13-cloud-amd64");
        insta::assert_snapshot!(files_of("6.19.10"), @"linux-binary-6.19.10+deb13-cloud-amd64, without linux-base-6.19.10+deb13-cloud-amd64 linux-modules-6.19.10+deb13-cloud-amd64");
    }

    #[test]
    fn version_prefix_selects_the_newest_package() {
        insta::assert_snapshot!(find("deb:6.1").unwrap().join("\n"), @"
        linux-image-6.1.0-56-cloud-amd64 6.1.192-2
        linux-image-6.1.0-54-cloud-amd64 6.1.190-1
        linux-image-6.1.0-47-cloud-amd64 6.1.170-3
        ");
        insta::assert_snapshot!(find("deb:6").unwrap()[0], @"linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1~deb12u1");
        insta::assert_snapshot!(find("deb:6.12+amd64").unwrap().join("\n"), @"linux-image-6.12.117+deb12-amd64 6.12.117-1~deb12u1");
        assert_eq!(find("deb:6.12.113").unwrap().len(), 1);
        assert_eq!(find("deb:06.012.113").unwrap().len(), 1);
    }

    #[test]
    fn package_selects_itself_and_metapackage_its_dependency() {
        insta::assert_snapshot!(find("deb:linux-image-6.12.113+deb12-cloud-amd64").unwrap().join("\n"), @"linux-image-6.12.113+deb12-cloud-amd64 6.12.113-1~deb12u1");
        insta::assert_snapshot!(find("deb:linux-image-cloud-amd64").unwrap().join("\n"), @"linux-image-6.1.0-56-cloud-amd64 6.1.192-2");
        insta::assert_snapshot!(find("deb:linux-image-6.12-cloud-amd64").unwrap().join("\n"), @"linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1~deb12u1");
    }

    #[test]
    fn unknown_package_is_refused_with_nearest_names() {
        insta::assert_snapshot!(refusal("deb:6.13"), @"Debian's bookworm has no kernel `deb:6.13`; nearest: deb:6.12.117, deb:6.12.113; newest of each series: deb:6.12.117, deb:6.1.192");
        insta::assert_snapshot!(refusal("deb:6.1.180"), @"Debian's bookworm has no kernel `deb:6.1.180`; nearest: deb:6.1.192, deb:6.1.190, deb:6.1.170; newest of each series: deb:6.12.117, deb:6.1.192; the archive of a day that had it: deb:SUITE@YYYYMMDD/6.1.180");
        insta::assert_snapshot!(refusal("deb:5.10+rt-amd64"), @"Debian's bookworm has no kernel `deb:5.10+rt-amd64`; nearest: deb:6.1.192+rt-amd64; newest of each series: deb:6.1.192+rt-amd64");
        insta::assert_snapshot!(refusal("deb:6.12+rt-amd64"), @"Debian's bookworm has no kernel `deb:6.12+rt-amd64`; it comes as deb:6.12+amd64, deb:6.12");
        insta::assert_snapshot!(refusal("deb:6.1+cloud"), @"Debian's bookworm has no kernel `deb:6.1+cloud`; it comes as deb:6.1+amd64, deb:6.1, deb:6.1+rt-amd64");
        insta::assert_snapshot!(refusal("deb:99999999999999999999+cloud"), @"Debian's bookworm has no kernel `deb:99999999999999999999+cloud`; the flavours are amd64, cloud-amd64, rt-amd64");
        insta::assert_snapshot!(refusal("deb:linux-image-6.1.0-55-cloud-amd64"), @"Debian's bookworm has no kernel `deb:linux-image-6.1.0-55-cloud-amd64`; nearest: deb:linux-image-6.1.0-56-cloud-amd64, deb:linux-image-6.1.0-54-cloud-amd64, deb:linux-image-6.1.0-47-cloud-amd64, deb:linux-image-6.12.117+deb12-cloud-amd64");
        insta::assert_snapshot!(refusal("deb:linux-image-6.1.0-56-cloud-amd64-unsigned"), @"Debian's bookworm has no kernel `deb:linux-image-6.1.0-56-cloud-amd64-unsigned`; nearest: deb:linux-image-6.1.0-56-cloud-amd64, deb:linux-image-6.1.0-54-cloud-amd64, deb:linux-image-6.1.0-47-cloud-amd64, deb:linux-image-6.12.117+deb12-cloud-amd64");
        insta::assert_snapshot!(refusal("deb:linux-image-nonesuch"), @"Debian's bookworm has no kernel `deb:linux-image-nonesuch`; nearest: deb:linux-image-6.12.117+deb12-cloud-amd64, deb:linux-image-6.12.117+deb12-amd64, deb:linux-image-6.12.113+deb12-cloud-amd64, deb:linux-image-6.12.100+deb12-cloud-amd64");
    }

    #[test]
    fn unsigned_image_stands_in() {
        let hash = "a".repeat(64);
        let record = |package: &str, more: &str| {
            format!(
                "Package: {package}\nVersion: 4.19.67-2\nArchitecture: amd64\nFilename: pool/{package}\nSize: 1\nSHA256: {hash}\n{more}\n"
            )
        };
        let unsigned = "linux-image-4.19.0-8-cloud-amd64-unsigned";
        let meta = record(
            "linux-image-cloud-amd64",
            "Depends: linux-image-4.19.0-8-cloud-amd64\n",
        );
        let lists = meta + &record(unsigned, "");
        for query in [version("4.19"), package("linux-image-cloud-amd64")] {
            let offer = read(&lists).find(&query).unwrap().swap_remove(0);
            assert_eq!(offer.package, unsigned);
            assert_eq!(offer.flavour, "cloud-amd64");
        }
    }

    #[test]
    fn extra_modules_of_ubuntu_are_optional() {
        let hash = "a".repeat(64);
        let record = |package: &str, version: &str, more: &str| {
            format!(
                "Package: {package}\nVersion: {version}\nArchitecture: amd64\nFilename: pool/{package}\nSize: 1\nSHA256: {hash}\n{more}\n"
            )
        };
        let depends = "Depends: kmod, linux-base (>= 4.5), linux-modules-6.8.0-31-generic\n";
        let mut text = record("linux-image-6.8.0-31-generic", "6.8.0-31.31+1", depends)
            + &record("linux-modules-6.8.0-31-generic", "6.8.0-31.31", "");
        let files = |text: &str| {
            let stanzas = Stanzas {
                archive: "http://archive".to_owned(),
                text: text.to_owned(),
            };
            let catalogue = Catalogue::read(Distribution::Ubuntu, "noble", &[stanzas]);
            let Ok(KernelName::Package(query)) = "ubuntu:6.8".parse() else {
                panic!("it is a name");
            };
            let offer = catalogue.find(&query).unwrap().swap_remove(0);
            assert!(offer.missing.is_empty(), "{offer:?}");
            assert_eq!(offer.package, "linux-image-6.8.0-31-generic");
            assert_eq!(offer.upstream, "6.8.0-31");
            assert!(offer.is_version("6.8.0-31") && !offer.is_version("6.8.0-3"));
            offer.files.len()
        };
        assert_eq!(files(&text), 2);
        // Its unsigned twin, which comes later, is not taken.
        text += &record(
            "linux-image-unsigned-6.8.0-31-generic",
            "6.8.0-31.31",
            depends,
        );
        assert_eq!(files(&text), 2);
        text += &record("linux-modules-extra-6.8.0-31-generic", "6.8.0-31.31", "");
        assert_eq!(files(&text), 3);
    }

    #[test]
    fn suite_without_kernels_is_named() {
        let query = package("linux-image-cloud-amd64");
        let error = read("").find(&query).unwrap_err();
        insta::assert_snapshot!(error, @"Debian's bookworm has no kernel package for amd64: name another suite (deb:SUITE/VERSION)");
    }

    #[test]
    fn metapackages_in_a_circle_come_to_an_end() {
        let circle = "Package: linux-image-a\nVersion: 1\nDepends: linux-image-b (= 1)\n\n\
                      Package: linux-image-b\nVersion: 1\nDepends: x | y, linux-image-a\n";
        let query = package("linux-image-a");
        assert!(read(circle).find(&query).is_err());
    }

    #[test]
    fn flavours_stand_behind_the_numbers() {
        for (package, flavour) in [
            ("linux-image-6.1.0-56-cloud-amd64", Some("cloud-amd64")),
            ("linux-image-6.12.117+deb12-rt-amd64", Some("rt-amd64")),
            ("linux-image-6.1.0-0.deb11.5-amd64", Some("amd64")),
            ("linux-image-cloud-amd64", None),
            ("linux-image-6.1", None),
            ("linux-headers-6.1-amd64", None),
        ] {
            assert_eq!(flavour_of(package), flavour, "{package}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(
            text in any::<String>(),
            at in 0..RECORDS.len(),
            length in 0_usize..200,
        ) {
            prop_assert!(read(&text).images.is_empty());
            let mut records = RECORDS.to_owned();
            records.replace_range(at..(at + length).min(RECORDS.len()), &text);
            read(&records);
            let _ = flavour_of(&format!("linux-image-{text}"));
        }
    }
}

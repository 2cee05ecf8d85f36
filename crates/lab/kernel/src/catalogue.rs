//! apt's offers: parses its records, and selects the offers for a query.
//!
//! Pure except for [`offers`]; `apt` runs apt, `nearest` words alternatives.

use std::cmp::Reverse;
use std::collections::HashMap;

use model::{DebQuery, KernelName, Origin};

use crate::version::{Key, debian, key, numbers, upstream};
use crate::{AptError, KernelError, apt, suggestions};

/// The prefix of kernel packages.
pub(crate) const PREFIX: &str = "linux-image-";

/// The prefix of the package with the image, which Debian splits off from 6.19 on.
const IMAGE_PART: &str = "linux-binary-";

/// The prefixes of packages with parts of a kernel: the image; from 6.18 on kernel config and lists
/// of modules; from 6.19 on the modules. Archives that keep the images of old versions, as
/// backports do, lack their other parts.
const PARTS: [&str; 3] = [IMAGE_PART, "linux-base-", "linux-modules-"];

/// Longest chain of metapackages; more of them are a circle.
const DEPTH: usize = 4;

/// One kernel package on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub package: String,
    /// Its Debian version: `6.12.117-1~deb12u1`.
    pub version: String,
    /// The upstream version within that: `6.12.117`.
    pub upstream: String,
    /// The flavour at the end of its name: `cloud-amd64`.
    pub flavour: String,
    /// The packages to download: this one, unless another has the image, and those with the
    /// kernel's other parts.
    pub files: Vec<DebFile>,
    /// Parts that no list has: the kernel boots without its config, lists of modules or modules.
    pub missing: Vec<String>,
}

/// One package to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebFile {
    pub package: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of it, hexadecimal.
    pub sha256: String,
}

impl Offer {
    /// Returns the number of bytes to download.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
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

    /// The sort key for age: upstream version, Debian version, name.
    pub(crate) fn age(&self) -> (Key, [Key; 3], Key) {
        (
            key(&self.upstream),
            debian(&self.version),
            key(&self.package),
        )
    }

    /// Returns whether its upstream version begins with the numbers of `version`: 6.1 does not
    /// begin 6.12.
    pub(crate) fn is_version(&self, version: &str) -> bool {
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

/// All of apt's records about kernels.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub(crate) images: Vec<Offer>,
    metas: Vec<Meta>,
    /// Kernels without their image in any list.
    without_image: Vec<WithoutImage>,
}

/// A kernel that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WithoutImage {
    package: String,
    version: String,
    flavour: String,
    /// The package with its image.
    missing: String,
}

/// Returns apt's offers for a name, newest first.
///
/// # Errors
/// If apt fails, or offers no package with that name.
pub fn offers(query: &DebQuery) -> Result<Vec<Offer>, KernelError> {
    Catalogue::read(&apt::records()?).find(query)
}

/// Returns all of apt's offers, newest first.
///
/// # Errors
/// If apt fails.
pub fn all_offers() -> Result<Vec<Offer>, KernelError> {
    Ok(Catalogue::read(&apt::records()?).images)
}

impl Catalogue {
    /// Parses records as `apt-cache` prints them; skips packages that are no bootable kernel for
    /// amd64.
    pub(crate) fn read(text: &str) -> Self {
        let mut catalogue = Self::default();
        let parts: HashMap<(&str, &str), DebFile> = text.split("\n\n").filter_map(part).collect();
        for record in text.split("\n\n") {
            if field(record, "Package")
                .is_none_or(|name| !name.starts_with(PREFIX) || is_side_product(name))
            {
                continue;
            }
            if let Some(meta) = meta(record) {
                catalogue.metas.push(meta);
            } else {
                match offer(record, &parts) {
                    Some(Ok(offer)) => catalogue.images.push(offer),
                    Some(Err(without)) => catalogue.without_image.push(without),
                    None => {}
                }
            }
        }
        catalogue.images.sort_by_key(|offer| Reverse(offer.age()));
        catalogue.metas.sort_by_key(|meta| debian(&meta.version));
        catalogue
    }

    /// Returns the offers for a query, newest first; at least one.
    pub(crate) fn find(&self, query: &DebQuery) -> Result<Vec<Offer>, KernelError> {
        let found: Vec<Offer> = match query {
            DebQuery::Version { version, flavour } => self
                .images
                .iter()
                .filter(|offer| offer.flavour == *flavour && offer.is_version(version))
                .cloned()
                .collect(),
            DebQuery::Package(package) => {
                let package = self.follow_metapackages(package);
                self.images
                    .iter()
                    .filter(|offer| offer.package == package)
                    .cloned()
                    .collect()
            }
        };
        if self.images.is_empty() && self.without_image.is_empty() {
            return Err(KernelError::Apt(AptError::NoKernels));
        }
        if found.is_empty() {
            if let Some(without) = self
                .without_image
                .iter()
                .find(|without| without.is_asked_for(query))
            {
                return Err(KernelError::Apt(AptError::NoImagePart {
                    package: format!("{} {}", without.package, without.version),
                    missing: without.missing.clone(),
                }));
            }
            return Err(KernelError::Unknown {
                requested: KernelName::Deb(query.clone()).to_string(),
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
    fn is_asked_for(&self, query: &DebQuery) -> bool {
        match query {
            DebQuery::Version { version, flavour } => {
                self.flavour == *flavour
                    && numbers(upstream(&self.version)).starts_with(&numbers(version))
            }
            DebQuery::Package(package) => self.package == *package,
        }
    }
}

/// Returns the content of a one-line field.
pub(crate) fn field<'a>(record: &'a str, name: &str) -> Option<&'a str> {
    record
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
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

/// Parses the record of a part of a kernel.
fn part(record: &str) -> Option<((&str, &str), DebFile)> {
    let package = field(record, "Package")
        .filter(|package| PARTS.iter().any(|start| package.starts_with(start)))?;
    Some(((package, field(record, "Version")?), file(record)?))
}

/// Parses size and hash. A package that is installed but in no archive has no hash.
fn file(record: &str) -> Option<DebFile> {
    let sha256 = field(record, "SHA256")?.to_ascii_lowercase();
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
    let is_ours = is_hash && field(record, "Architecture")? == "amd64";
    let bytes = field(record, "Size")?.parse().ok()?;
    is_ours.then(|| DebFile {
        package: field(record, "Package").unwrap_or_default().to_owned(),
        bytes,
        sha256,
    })
}

/// Parses the record of a kernel; `None` if it is none that can be downloaded.
fn offer(
    record: &str,
    parts: &HashMap<(&str, &str), DebFile>,
) -> Option<Result<Offer, WithoutImage>> {
    let package = field(record, "Package")?;
    let version = field(record, "Version")?;
    let flavour = flavour_of(package)?;
    let depends = field(record, "Depends").unwrap_or_default();
    let names = depends
        .split(',')
        .filter_map(|one| one.split_whitespace().next());
    let of_kernel = names.filter(|name| PARTS.iter().any(|start| name.starts_with(start)));
    let of_kernel: Vec<&str> = of_kernel.filter(|name| name.ends_with(flavour)).collect();
    let mut files = Vec::new();
    let mut missing = Vec::new();
    if !of_kernel.iter().any(|name| name.starts_with(IMAGE_PART)) {
        files.push(file(record)?);
    }
    for name in of_kernel {
        match parts.get(&(name, version)) {
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
    Some(Ok(Offer {
        package: package.to_owned(),
        version: version.to_owned(),
        upstream: upstream(version).to_owned(),
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
    use model::{DebQuery, Fault, KernelName};
    use proptest::prelude::*;

    use super::{Catalogue, flavour_of};
    use crate::KernelError;

    /// Some records that the real `apt-cache search --names-only --full ^linux-image-` of Debian 12
    /// printed.
    const RECORDS: &str = include_str!("../testdata/apt-cache-search.txt");

    fn find(name: &str) -> Result<Vec<String>, KernelError> {
        let Ok(KernelName::Deb(query)) = name.parse() else {
            panic!("{name}");
        };
        let offers = Catalogue::read(RECORDS).find(&query)?;
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
        let catalogue = Catalogue::read(RECORDS);
        insta::assert_debug_snapshot!(catalogue.images[0], @r#"
        Offer {
            package: "linux-image-6.12.117+deb12-cloud-amd64",
            version: "6.12.117-1~deb12u1",
            upstream: "6.12.117",
            flavour: "cloud-amd64",
            files: [
                DebFile {
                    package: "linux-image-6.12.117+deb12-cloud-amd64",
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
        let query = DebQuery::Version {
            version: "7.2".to_owned(),
            flavour: "cloud-amd64".to_owned(),
        };
        let offer = Catalogue::read(SPLIT).find(&query).unwrap().swap_remove(0);
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
        let query = DebQuery::Package("linux-image-7.2.13+deb14-cloud-amd64".to_owned());
        let error = Catalogue::read(&text).find(&query).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        insta::assert_snapshot!(error, @"
        cannot get linux-image-7.2.13+deb14-cloud-amd64 7.2.13-1: apt's lists lack linux-binary-7.2.13+deb14-cloud-amd64, which has its image
        hint: run `sudo apt-get update`, or name an image file with path:FILE
        ");
    }

    /// Records of Debian 13's backports: images of old versions without their other parts.
    const BACKPORTS: &str = include_str!("../testdata/apt-cache-search-backports.txt");

    #[test]
    fn kernel_without_modules_is_offered() {
        let catalogue = Catalogue::read(BACKPORTS);
        let files_of = |version: &str| {
            let query = DebQuery::Version {
                version: version.to_owned(),
                flavour: "cloud-amd64".to_owned(),
            };
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
        insta::assert_snapshot!(refusal("deb:6.13"), @"apt offers no kernel `deb:6.13`; nearest: deb:6.12.117, deb:6.12.113; newest of each series: deb:6.12.117, deb:6.1.192");
        insta::assert_snapshot!(refusal("deb:6.1.180"), @"apt offers no kernel `deb:6.1.180`; nearest: deb:6.1.192, deb:6.1.190, deb:6.1.170; newest of each series: deb:6.12.117, deb:6.1.192");
        insta::assert_snapshot!(refusal("deb:5.10+rt-amd64"), @"apt offers no kernel `deb:5.10+rt-amd64`; nearest: deb:6.1.192+rt-amd64; newest of each series: deb:6.1.192+rt-amd64");
        insta::assert_snapshot!(refusal("deb:6.12+rt-amd64"), @"apt offers no kernel `deb:6.12+rt-amd64`; it comes as deb:6.12+amd64, deb:6.12");
        insta::assert_snapshot!(refusal("deb:6.1+cloud"), @"apt offers no kernel `deb:6.1+cloud`; it comes as deb:6.1+amd64, deb:6.1, deb:6.1+rt-amd64");
        insta::assert_snapshot!(refusal("deb:99999999999999999999+cloud"), @"apt offers no kernel `deb:99999999999999999999+cloud`; the flavours are amd64, cloud-amd64, rt-amd64");
        insta::assert_snapshot!(refusal("deb:linux-image-6.1.0-55-cloud-amd64"), @"apt offers no kernel `deb:linux-image-6.1.0-55-cloud-amd64`; nearest: deb:linux-image-6.1.0-56-cloud-amd64, deb:linux-image-6.1.0-54-cloud-amd64, deb:linux-image-6.1.0-47-cloud-amd64, deb:linux-image-6.12.117+deb12-cloud-amd64");
        insta::assert_snapshot!(refusal("deb:linux-image-6.1.0-56-cloud-amd64-unsigned"), @"apt offers no kernel `deb:linux-image-6.1.0-56-cloud-amd64-unsigned`; nearest: deb:linux-image-6.1.0-56-cloud-amd64, deb:linux-image-6.1.0-54-cloud-amd64, deb:linux-image-6.1.0-47-cloud-amd64, deb:linux-image-6.12.117+deb12-cloud-amd64");
        insta::assert_snapshot!(refusal("deb:linux-image-nonesuch"), @"apt offers no kernel `deb:linux-image-nonesuch`; nearest: deb:linux-image-6.12.117+deb12-cloud-amd64, deb:linux-image-6.12.117+deb12-amd64, deb:linux-image-6.12.113+deb12-cloud-amd64, deb:linux-image-6.12.100+deb12-cloud-amd64");
    }

    #[test]
    fn without_lists_apt_has_to_be_updated() {
        let query = DebQuery::Package("linux-image-cloud-amd64".to_owned());
        let error = Catalogue::read("").find(&query).unwrap_err();
        insta::assert_snapshot!(error, @"apt knows no kernel package: run `sudo apt-get update`");
    }

    #[test]
    fn metapackages_in_a_circle_come_to_an_end() {
        let circle = "Package: linux-image-a\nVersion: 1\nDepends: linux-image-b (= 1)\n\n\
                      Package: linux-image-b\nVersion: 1\nDepends: x | y, linux-image-a\n";
        let query = DebQuery::Package("linux-image-a".to_owned());
        assert!(Catalogue::read(circle).find(&query).is_err());
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
            prop_assert_eq!(&Catalogue::read(&text), &Catalogue::default());
            let mut records = RECORDS.to_owned();
            records.replace_range(at..(at + length).min(RECORDS.len()), &text);
            Catalogue::read(&records);
            flavour_of(&format!("linux-image-{text}"));
        }
    }
}

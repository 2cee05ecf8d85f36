//! What apt offers: its records read into offers, and the offers that a query means.
//!
//! Pure but for [`offers`]; running apt is `apt`'s work, wording what there is instead is `nearest`'s.

use std::cmp::Reverse;

use model::{DebQuery, KernelName};

use crate::version::{Key, debian, key, numbers, upstream};
use crate::{KernelError, apt, nearest};

/// What every package of a kernel begins with.
pub(crate) const PREFIX: &str = "linux-image-";

/// Metapackages may depend on metapackages; more of them in a row than this is a circle.
const DEPTH: usize = 4;

/// One kernel package as apt offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name: `linux-image-6.12.117+deb12-cloud-amd64`.
    pub package: String,
    /// Its Debian version: `6.12.117-1~deb12u1`.
    pub version: String,
    /// The upstream version within that: `6.12.117`.
    pub upstream: String,
    /// The flavour at the end of its name: `cloud-amd64`.
    pub flavour: String,
    /// How much there is to download.
    pub bytes: u64,
    /// SHA-256 of the package, hexadecimal.
    pub sha256: String,
}

impl Offer {
    /// Returns package and version, which together name it exactly.
    pub(crate) fn origin(&self) -> String {
        format!("{} {}", self.package, self.version)
    }

    /// The order of age: upstream version, Debian version, name.
    pub(crate) fn age(&self) -> (Key, [Key; 3], Key) {
        (key(&self.upstream), debian(&self.version), key(&self.package))
    }

    /// Whether its upstream version begins with the numbers of `version`: 6.1 does not begin 6.12.
    pub(crate) fn is_version(&self, version: &str) -> bool {
        numbers(&self.upstream).starts_with(&numbers(version))
    }
}

/// A package that only depends on the newest of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Meta {
    package: String,
    version: String,
    depends_on: String,
}

/// Everything that apt has to say about kernels.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalogue {
    /// Newest first.
    images: Vec<Offer>,
    metas: Vec<Meta>,
}

/// Returns what apt offers under that name, newest first.
///
/// # Errors
/// When apt cannot be asked, or offers nothing of that name.
pub fn offers(query: &DebQuery) -> Result<Vec<Offer>, KernelError> {
    Catalogue::read(&apt::records()?).find(query)
}

impl Catalogue {
    /// Reads records as `apt-cache` prints them; what is no bootable kernel for amd64 is passed over.
    pub(crate) fn read(text: &str) -> Self {
        let mut catalogue = Self::default();
        for record in text.split("\n\n") {
            if field(record, "Package").is_none_or(is_side_product) {
                continue;
            }
            if let Some(meta) = meta(record) {
                catalogue.metas.push(meta);
            } else {
                catalogue.images.extend(offer(record));
            }
        }
        catalogue.images.sort_by_key(|offer| Reverse(offer.age()));
        catalogue.metas.sort_by_key(|meta| debian(&meta.version));
        catalogue
    }

    /// Returns the offers that a query means, newest first and never none.
    pub(crate) fn find(&self, query: &DebQuery) -> Result<Vec<Offer>, KernelError> {
        let found: Vec<Offer> = match query {
            DebQuery::Version { version, flavour } => self
                .images
                .iter()
                .filter(|offer| offer.flavour == *flavour && offer.is_version(version))
                .cloned()
                .collect(),
            DebQuery::Package(package) => {
                let package = self.followed(package);
                self.images.iter().filter(|offer| offer.package == package).cloned().collect()
            }
        };
        if self.images.is_empty() {
            return Err(KernelError::NoKernels);
        }
        if found.is_empty() {
            return Err(KernelError::Unknown {
                asked: KernelName::Deb(query.clone()).to_string(),
                instead: nearest::instead(query, &self.images),
            });
        }
        Ok(found)
    }

    /// Follows metapackages from a package to the image it stands for; other packages stand for themselves.
    fn followed<'a>(&'a self, mut package: &'a str) -> &'a str {
        for _ in 0..DEPTH {
            match self.metas.iter().rfind(|meta| meta.package == package) {
                Some(meta) => package = &meta.depends_on,
                None => break,
            }
        }
        package
    }
}

/// Returns the content of a one-line field.
pub(crate) fn field<'a>(record: &'a str, name: &str) -> Option<&'a str> {
    record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Whether a package only goes with a kernel's: its symbols, its unsigned twin, what it is signed from.
fn is_side_product(package: &str) -> bool {
    ["-dbg", "-unsigned", "-template"].iter().any(|tail| package.ends_with(tail))
}

/// Reads a record whose only point is that it depends on a kernel.
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

/// Reads the record of a kernel. What is only installed, and in no archive, has no hash and cannot be downloaded.
fn offer(record: &str) -> Option<Offer> {
    let package = field(record, "Package")?;
    let version = field(record, "Version")?;
    let flavour = flavour_of(package)?;
    let sha256 = field(record, "SHA256")?.to_ascii_lowercase();
    let hash = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
    if !hash || field(record, "Architecture")? != "amd64" {
        return None;
    }
    Some(Offer {
        package: package.to_owned(),
        version: version.to_owned(),
        upstream: upstream(version).to_owned(),
        flavour: flavour.to_owned(),
        bytes: field(record, "Size")?.parse().ok()?,
        sha256,
    })
}

/// Returns the flavour in a package's name: what follows the version and the number of the ABI, which begin with digits.
pub(crate) fn flavour_of(package: &str) -> Option<&str> {
    let rest = package.strip_prefix(PREFIX)?;
    let numbered = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let skipped: usize = rest.split('-').take_while(numbered).map(|part| part.len() + 1).sum();
    let flavour = rest.get(skipped..)?;
    (skipped > 0 && !flavour.is_empty()).then_some(flavour)
}

#[cfg(test)]
mod tests {
    use model::{DebQuery, KernelName};
    use proptest::prelude::*;

    use super::{Catalogue, flavour_of};
    use crate::{Guilt, KernelError};

    /// As the real `apt-cache search --names-only --full ^linux-image-` of Debian 12 printed it, a few records of it.
    const RECORDS: &str = include_str!("../testdata/apt-cache-search.txt");

    fn find(name: &str) -> Result<Vec<String>, KernelError> {
        let Ok(KernelName::Deb(query)) = name.parse() else {
            panic!("{name}");
        };
        let offers = Catalogue::read(RECORDS).find(&query)?;
        Ok(offers.iter().map(super::Offer::origin).collect())
    }

    fn refusal(name: &str) -> String {
        let error = find(name).unwrap_err();
        assert_eq!(error.guilt(), Guilt::User);
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
            bytes: 34307256,
            sha256: "5195b288dec79e2981d6b84457f38b7ce7310a2d702930ec7d07209c7f78ce37",
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

    #[test]
    fn a_version_means_the_newest_that_begins_with_it() {
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
    fn a_package_means_itself_and_a_metapackage_what_it_depends_on() {
        insta::assert_snapshot!(find("deb:linux-image-6.12.113+deb12-cloud-amd64").unwrap().join("\n"), @"linux-image-6.12.113+deb12-cloud-amd64 6.12.113-1~deb12u1");
        insta::assert_snapshot!(find("deb:linux-image-cloud-amd64").unwrap().join("\n"), @"linux-image-6.1.0-56-cloud-amd64 6.1.192-2");
        insta::assert_snapshot!(find("deb:linux-image-6.12-cloud-amd64").unwrap().join("\n"), @"linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1~deb12u1");
    }

    #[test]
    fn what_is_not_offered_is_refused_with_the_nearest() {
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
        fn any_text_can_be_read(text in any::<String>(), at in 0..RECORDS.len(), length in 0_usize..200) {
            prop_assert_eq!(&Catalogue::read(&text), &Catalogue::default());
            let mut records = RECORDS.to_owned();
            records.replace_range(at..(at + length).min(RECORDS.len()), &text);
            Catalogue::read(&records);
            flavour_of(&format!("linux-image-{text}"));
        }
    }
}

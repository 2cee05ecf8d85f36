//! The kernels that the archives of Fedora and Arch Linux offer: which packages are kernels, and which
//! others have their modules.
//!
//! `catalogue` selects the offers for a query. The lists are not signed, so what they say is checked
//! before it becomes a file's name.

use std::cmp::Reverse;
use std::collections::HashMap;

use archives::{Archives, Package, Stanzas, field};
use model::Distribution;

use crate::KernelError;
use crate::catalogue::{Catalogue, Offer};

/// Arch's packages with kernels; others whose names begin so have headers, documentation or tools.
const ARCH: [&str; 6] = [
    "linux",
    "linux-lts",
    "linux-zen",
    "linux-hardened",
    "linux-rt",
    "linux-rt-lts",
];
/// The packages of Fedora beside that with the image; releases before 38 have no `modules-core`.
const FEDORA_MODULES: [&str; 2] = ["modules-core", "modules"];

impl Catalogue {
    /// Reads what a release of Fedora, or that of the settings, says of kernels.
    pub(crate) fn open_fedora(
        archives: &Archives,
        release: Option<&str>,
    ) -> Result<Self, KernelError> {
        let release = archives.fedora.release(release);
        let stanzas = archives.fedora.kernels(release)?;
        let offers = fedora(&stanzas);
        Ok(Self::with_all(Distribution::Fedora, release, offers))
    }

    /// Reads what Arch's databases say of kernels.
    pub(crate) fn open_arch(archives: &Archives) -> Result<Self, KernelError> {
        let offers = arch(&archives.arch.kernels()?);
        Ok(Self::with_all(Distribution::Arch, "archive", offers))
    }

    fn with_all(distribution: Distribution, suite: &str, mut offers: Vec<Offer>) -> Self {
        // An update may be in the list of the release too.
        offers.sort_by_key(|offer| Reverse(offer.age()));
        offers.dedup_by(|later, earlier| later.content() == earlier.content());
        Self::with_images(distribution, suite, offers)
    }
}

/// A package of an unsigned list.
struct Listed {
    version: String,
    file: Package,
}

fn listed(stanzas: &[Stanzas]) -> Vec<Listed> {
    let mut found = Vec::new();
    for list in stanzas {
        for text in list.text.split("\n\n") {
            let file = Package::parse(&list.archive, text);
            let version = field(text, "Version").filter(|version| is_plain(version));
            let Some((file, version)) = file.zip(version) else {
                continue;
            };
            if is_plain(&file.package) {
                found.push(Listed {
                    version: version.to_owned(),
                    file,
                });
            }
        }
    }
    found
}

/// Returns whether a word of a list may be a part of a file's name.
fn is_plain(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-._~^".contains(c))
}

fn fedora(stanzas: &[Stanzas]) -> Vec<Offer> {
    let listed = listed(stanzas);
    let parts: HashMap<(&str, &str), &Package> = listed
        .iter()
        .map(|one| ((&*one.file.package, &*one.version), &one.file))
        .collect();
    let mut offers = Vec::new();
    for one in &listed {
        let Some(kernel) = one.file.package.strip_suffix("-core") else {
            continue;
        };
        if kernel.ends_with("-modules") {
            continue;
        }
        let mut files = vec![one.file.clone()];
        let mut missing = Vec::new();
        for modules in FEDORA_MODULES {
            let name = format!("{kernel}-{modules}");
            match parts.get(&(&*name, &*one.version)) {
                Some(part) => files.push((*part).clone()),
                None if modules == "modules" => missing.push(name),
                None => {}
            }
        }
        let flavour = match kernel.strip_prefix("kernel-") {
            Some(flavour) => flavour,
            None => Distribution::Fedora.default_flavour(),
        };
        offers.push(offer(Distribution::Fedora, one, flavour, files, missing));
    }
    offers
}

fn arch(stanzas: &[Stanzas]) -> Vec<Offer> {
    let listed = listed(stanzas);
    let kernels = listed
        .iter()
        .filter(|one| ARCH.contains(&&*one.file.package));
    kernels
        .map(|one| {
            let flavour = match one.file.package.strip_prefix("linux-") {
                Some(flavour) => flavour,
                None => Distribution::Arch.default_flavour(),
            };
            let files = vec![one.file.clone()];
            offer(Distribution::Arch, one, flavour, files, Vec::new())
        })
        .collect()
}

fn offer(
    distribution: Distribution,
    listed: &Listed,
    flavour: &str,
    files: Vec<Package>,
    missing: Vec<String>,
) -> Offer {
    // `6.18.1.arch1-1` and `6.11.4-301.fc41`.
    let end = listed
        .version
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(listed.version.len());
    Offer {
        distribution,
        package: listed.file.package.clone(),
        version: listed.version.clone(),
        upstream: listed.version[..end].trim_end_matches('.').to_owned(),
        flavour: flavour.to_owned(),
        files,
        missing,
    }
}

#[cfg(test)]
mod tests {
    use archives::Stanzas;
    use model::{Distribution, KernelName};

    use super::{arch, fedora};
    use crate::KernelError;
    use crate::catalogue::{Catalogue, Offer};

    fn stanzas(packages: &[(&str, &str)]) -> Vec<Stanzas> {
        let hash = "a".repeat(64);
        let text = packages
            .iter()
            .map(|(name, version)| {
                format!(
                    "Package: {name}\nVersion: {version}\nFilename: {name}-{version}\nSize: 5\nSHA256: {hash}\n\n"
                )
            })
            .collect();
        vec![Stanzas {
            archive: "http://archive".to_owned(),
            text,
        }]
    }

    fn find(offers: Vec<Offer>, name: &str) -> Result<String, KernelError> {
        let KernelName::Package(query) = name.parse().unwrap() else {
            panic!("{name}");
        };
        let catalogue = Catalogue::with_images(query.distribution, "43", offers);
        let offer = catalogue.find(&query)?.swap_remove(0);
        let files: Vec<String> = offer.files.into_iter().map(|file| file.package).collect();
        Ok(format!(
            "{} {}: {}",
            offer.package,
            offer.version,
            files.join(" ")
        ))
    }

    fn of_fedora() -> Vec<Offer> {
        fedora(&stanzas(&[
            ("kernel", "6.17.1-300.fc43"),
            ("kernel-core", "6.17.1-300.fc43"),
            ("kernel-modules-core", "6.17.1-300.fc43"),
            ("kernel-modules", "6.17.1-300.fc43"),
            ("kernel-modules-extra", "6.17.1-300.fc43"),
            ("kernel-rt-core", "6.17.1-300.fc43"),
            ("kernel-rt-modules-core", "6.17.1-300.fc43"),
            ("kernel-core", "../6.18"),
            ("kernel-core", "6.17.9-300.fc43"),
        ]))
    }

    #[test]
    fn kernel_of_fedora_comes_with_its_modules() {
        let whole = "kernel-core 6.17.1-300.fc43: kernel-core kernel-modules-core kernel-modules";
        assert_eq!(find(of_fedora(), "fedora:6.17.1").unwrap(), whole);
        let newest = find(of_fedora(), "fedora:6.17").unwrap();
        assert_eq!(newest, "kernel-core 6.17.9-300.fc43: kernel-core");
        assert_eq!(find(of_fedora(), "fedora:kernel").unwrap(), newest);
        let exact = "fedora:kernel-core-6.17.1-300.fc43";
        assert_eq!(find(of_fedora(), exact).unwrap(), whole);
        let rt = "kernel-rt-core 6.17.1-300.fc43: kernel-rt-core kernel-rt-modules-core";
        assert_eq!(find(of_fedora(), "fedora:43/6.17+rt").unwrap(), rt);
        let offers = of_fedora();
        assert_eq!(
            offers.len(),
            3,
            "what leads elsewhere is no package: {offers:?}"
        );
        insta::assert_snapshot!(find(of_fedora(), "fedora:6.1").unwrap_err(), @"Fedora's 43 has no kernel `fedora:6.1`; nearest: fedora:6.17.9, fedora:6.17.1; newest of each series: fedora:6.17.9");
    }

    #[test]
    fn builds_of_one_version_are_told_apart() {
        let offers = || {
            arch(&stanzas(&[
                ("linux-lts", "6.12.63-1"),
                ("linux-lts", "6.12.63-2"),
            ]))
        };
        assert_eq!(
            find(offers(), "arch:6.12.63+lts").unwrap(),
            "linux-lts 6.12.63-2: linux-lts"
        );
        for offer in offers() {
            let name = offer.name(None).to_string();
            assert_eq!(name, format!("arch:linux-lts-{}", offer.version));
            let found = find(offers(), &name).unwrap();
            assert_eq!(found, format!("{}: linux-lts", offer.origin()));
            assert_eq!(offer.shown_version(), offer.version);
        }
        let fedora = of_fedora().swap_remove(0);
        let name = fedora.name(Some("43")).to_string();
        assert_eq!(name, "fedora:43/kernel-core-6.17.1-300.fc43");
        assert!(
            find(of_fedora(), &name)
                .unwrap()
                .starts_with("kernel-core 6.17.1-300.fc43")
        );
    }

    #[test]
    fn kernels_of_arch_have_flavours() {
        let offers = || {
            arch(&stanzas(&[
                ("linux", "6.18.1.arch1-1"),
                ("linux-headers", "6.18.1.arch1-1"),
                ("linux-lts", "6.12.63-1"),
                ("linux-zen", "6.18.1.zen1-1"),
                ("linux-firmware", "20260101-1"),
            ]))
        };
        let found = |name: &str| find(offers(), name).unwrap();
        assert_eq!(found("arch:6.18"), "linux 6.18.1.arch1-1: linux");
        assert_eq!(found("arch:6.12+lts"), "linux-lts 6.12.63-1: linux-lts");
        assert_eq!(
            found("arch:linux-zen"),
            "linux-zen 6.18.1.zen1-1: linux-zen"
        );
        assert_eq!(offers()[0].upstream, "6.18.1");
        assert_eq!(offers()[0].shown_version(), "6.18.1.arch1-1");
        assert_eq!(offers()[0].distribution, Distribution::Arch);
        insta::assert_snapshot!(find(offers(), "arch:6.12").unwrap_err(), @"Arch Linux's 43 has no kernel `arch:6.12`; it comes as arch:6.12+lts");
    }
}

//! Resolves and downloads real kernels from Debian's archive, and compares lists and dependencies
//! with apt's, which these tests need.

#![expect(clippy::unwrap_used, reason = "a test: what fails here is to fail")]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use archives::Archives;
use kernel::{BuildCache, BuildEvent, Wanted, all_offers, offers};
use model::{
    ArchiveSettings, Build, Distribution, Fault, KernelName, PackageQuery, PackageSelection,
    UnixTime,
};

/// The lists of these tests, fetched once.
fn archives() -> Archives {
    fn now() -> UnixTime {
        UnixTime::from(std::time::SystemTime::now())
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian");
    Archives::new(&home, ArchiveSettings::default(), now)
}

fn resolve(home: &Path, name: &str) -> (Build, Vec<BuildEvent>) {
    let steps = RefCell::new(vec![]);
    let build = BuildCache::open(home, archives())
        .unwrap()
        .resolve(&name.parse().unwrap(), &|step| {
            steps.borrow_mut().push(step);
        })
        .unwrap();
    (build, steps.into_inner())
}

fn check(build: &Build, series: &str) {
    assert!(
        build.version.starts_with(&format!("{series}.")),
        "{build:?}"
    );
    assert!(
        build.origin.to_string().starts_with("linux-image-"),
        "{build:?}"
    );
    assert_eq!(build.id.hex(), build.image.sha256);
    assert!(
        build.vmlinux.is_some(),
        "Debian's kernels have the PVH entry"
    );
    assert!(build.config.is_some());
    assert!(build.symbols.is_none(), "Debian's System.map is a stub");
    let modules = build.modules.as_ref().unwrap();
    assert!(modules.join("kernel").is_dir(), "{modules:?}");
}

#[test]
fn newest_kernel_of_series_is_downloaded_once() {
    let home = tempfile::tempdir().unwrap();
    for series in ["6.12", "6.1"] {
        let name = format!("deb:{series}");
        let (first, steps) = resolve(home.path(), &name);
        check(&first, series);
        assert!(matches!(
            steps[..],
            [
                BuildEvent::Resolving,
                BuildEvent::Downloading { .. },
                BuildEvent::Unpacking { .. }
            ]
        ));
        let (second, steps) = resolve(home.path(), &name);
        assert_eq!(first, second);
        assert!(matches!(
            steps[..],
            [BuildEvent::Resolving, BuildEvent::Cached { .. }]
        ));

        // The same image, named as a file, is the same build.
        let file = format!("path:{}", first.image.path.display());
        let (file, _) = resolve(home.path(), &file);
        assert_eq!((&file.id, &file.vmlinux), (&first.id, &first.vmlinux));
        assert!(
            file.version.starts_with(&format!("{series}.")),
            "{}",
            file.version
        );
    }
    let left = std::fs::read_dir(home.path().join("downloads")).unwrap();
    assert_eq!(left.count(), 1, "nothing but the lock");
}

#[test]
fn offers_are_sorted_and_of_one_flavour() {
    let query = |version: &str| PackageQuery {
        distribution: Distribution::Debian,
        suite: None,
        selection: PackageSelection::Version {
            version: version.to_owned(),
            flavour: "amd64".to_owned(),
        },
    };
    let found = offers(&archives(), &query("6")).unwrap();
    assert!(found.len() > 1);
    assert!(
        found
            .iter()
            .all(|offer| offer.flavour == "amd64" && offer.bytes() > 1_000_000)
    );
    assert!(found[0].upstream.starts_with("6.12."), "{:?}", found[0]);
    assert_eq!(
        offers(&archives(), &query("99")).unwrap_err().fault(),
        Fault::User
    );
}

#[test]
fn a_metapackage_is_followed() {
    let KernelName::Package(query) = "deb:linux-image-cloud-amd64".parse().unwrap() else {
        panic!("a deb: name");
    };
    let found = offers(&archives(), &query).unwrap();
    assert_eq!(found[0].flavour, "cloud-amd64");
    assert!(found[0].bytes() > 1_000_000);
}

#[test]
fn a_userland_made_twice_is_the_same() {
    let wanted = Wanted {
        packages: vec!["dbench".to_owned()],
        paths: ["/usr/bin/tbench", "/usr/share/dbench", "/usr/bin/nonesuch"]
            .map(str::to_owned)
            .to_vec(),
    };
    let home = tempfile::tempdir().unwrap();
    let cache = BuildCache::open(home.path(), archives()).unwrap();
    let downloads = Cell::new(0);
    let notify = |step| {
        let is_download = matches!(step, BuildEvent::Downloading { .. });
        downloads.set(downloads.get() + u32::from(is_download));
    };
    let make = || {
        let resolved = cache.resolve_userland(&wanted).unwrap();
        assert!(
            resolved
                .version("dbench")
                .unwrap()
                .starts_with(|c: char| c.is_ascii_digit())
        );
        (resolved.key(), cache.userland(&resolved, &notify).unwrap())
    };
    let (key, userland) = make();
    assert_eq!(downloads.get(), 1);
    assert_eq!(make(), (key, userland.clone()));
    assert_eq!(downloads.get(), 1, "packages are kept");
    assert_eq!(userland.missing, ["/usr/bin/nonesuch"]);
    let has = |path: &str| userland.files.iter().any(|file| file.path == path);
    assert!(
        has("/lib64/ld-linux-x86-64.so.2")
            && has("/usr/bin/tbench")
            && has("/usr/share/dbench/client.txt")
    );
    assert!(
        userland
            .files
            .iter()
            .any(|file| file.path.ends_with("/libc.so.6"))
    );
    assert!(!has("/usr/bin/dbench"), "only what is asked for");
}

/// Returns what a program of apt prints.
fn apt(program: &str, arguments: &[&str]) -> String {
    let ended = Command::new(program).args(arguments).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn offers_are_those_of_apt() {
    let text = apt(
        "apt-cache",
        &["search", "--names-only", "--full", "^linux-image-[0-9]"],
    );
    let is_kernel = |package: &str| {
        package.ends_with("amd64") && !package.ends_with("-dbg") && !package.contains("unsigned")
    };
    let theirs: BTreeSet<(&str, &str)> = text
        .split("\n\n")
        .filter_map(|stanza| {
            let package = archives::field(stanza, "Package").filter(|name| is_kernel(name))?;
            // A metapackage is no kernel.
            let depends = archives::field(stanza, "Depends").unwrap_or_default();
            if depends.contains("linux-image-") {
                return None;
            }
            archives::field(stanza, "Filename")?;
            Some((package, archives::field(stanza, "SHA256")?))
        })
        .collect();
    let offers = all_offers(&archives(), Distribution::Debian, None).unwrap();
    let ours: BTreeMap<&str, &str> = offers
        .iter()
        .flat_map(|offer| &offer.files)
        .map(|file| (file.package.as_str(), file.sha256.as_str()))
        .collect();
    // apt's lists may be some days older: what came or went since then is in one of them only.
    let common: Vec<(&str, &str)> = theirs
        .into_iter()
        .filter(|(package, _)| ours.contains_key(package))
        .collect();
    assert!(common.len() > 20, "{common:?}");
    for (package, sha256) in common {
        assert_eq!(ours[package], sha256, "{package}");
    }
}

#[test]
fn dependencies_are_those_of_apt() {
    let scratch = tempfile::tempdir().unwrap();
    let status = scratch.path().join("status");
    std::fs::write(&status, "").unwrap();
    let nothing_installed = format!("Dir::State::status={}", status.display());
    for package in ["dbench", "rt-tests", "postgresql"] {
        let mut arguments = vec!["-qq", "--print-uris", "--no-install-recommends"];
        arguments.extend(["-o", &nothing_installed, "-o", "Debug::NoLocking=1"]);
        arguments.extend(["-o", "Acquire::ForceHash=SHA256", "install", "--", package]);
        let text = apt("apt-get", &arguments);
        let theirs: BTreeSet<String> = text
            .lines()
            .filter_map(|line| line.split(' ').nth(1)?.split('_').next())
            .map(str::to_owned)
            .collect();
        let debian = archives().debian;
        let needed = debian
            .closure(debian.suite(None), &[package.to_owned()])
            .unwrap();
        // Of which version, the older lists of apt may say otherwise.
        let ours: BTreeSet<String> = needed.into_iter().map(|one| one.package.package).collect();
        assert!(theirs.len() > 3, "{text}");
        assert_eq!(ours, theirs, "{package}");
    }
}

#[test]
fn kernels_of_ubuntu_are_listed_with_their_modules() {
    let KernelName::Package(query) = "ubuntu:noble/6.8".parse().unwrap() else {
        panic!("it names a package");
    };
    let found = offers(&archives(), &query).unwrap();
    for offer in &found {
        assert!(offer.upstream.starts_with("6.8."), "{offer:?}");
        assert_eq!(offer.flavour, "generic");
        assert!(offer.missing.is_empty(), "{offer:?}");
        let has = |start: &str| {
            offer
                .files
                .iter()
                .any(|file| file.package.starts_with(start))
        };
        assert!(
            has("linux-image-") && has("linux-modules-6.8."),
            "{offer:?}"
        );
        assert!(has("linux-modules-extra-6.8."), "{offer:?}");
    }
    assert!(found.len() > 1, "{found:?}");
    // Later series have all modules in one package.
    let all = all_offers(&archives(), Distribution::Ubuntu, None).unwrap();
    let whole = all
        .iter()
        .filter(|offer| offer.flavour == "generic" && offer.missing.is_empty())
        .find(|offer| offer.files.len() == 2);
    assert!(whole.is_some(), "{:?}", all.first());
}

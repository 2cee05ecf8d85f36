//! Resolves and downloads real kernels with the real apt. Fails, rather than skips, if apt has no
//! lists.

#![expect(clippy::unwrap_used, reason = "a test: what fails here is to fail")]

use std::cell::{Cell, RefCell};
use std::path::Path;

use kernel::{BuildCache, BuildEvent, Wanted, offers};
use model::{Build, DebQuery, Fault, KernelName};

fn resolve(home: &Path, name: &str) -> (Build, Vec<BuildEvent>) {
    let steps = RefCell::new(vec![]);
    let build = BuildCache::open(home)
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
    let query = |version: &str| DebQuery::Version {
        version: version.to_owned(),
        flavour: "amd64".to_owned(),
    };
    let found = offers(&query("6")).unwrap();
    assert!(found.len() > 1);
    assert!(
        found
            .iter()
            .all(|offer| offer.flavour == "amd64" && offer.bytes() > 1_000_000)
    );
    assert!(found[0].upstream.starts_with("6.12."), "{:?}", found[0]);
    assert_eq!(offers(&query("99")).unwrap_err().fault(), Fault::User);
}

#[test]
fn a_metapackage_is_followed() {
    let KernelName::Deb(query) = "deb:linux-image-cloud-amd64".parse().unwrap() else {
        panic!("a deb: name");
    };
    let found = offers(&query).unwrap();
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
    let cache = BuildCache::open(home.path()).unwrap();
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

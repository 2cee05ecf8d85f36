//! An archive in Debian's layout: mirrors that work, lie, lag and are away.

use std::fs;
use std::sync::atomic::Ordering;

use archives::{ArchiveError, Debian, Package, sha256};
use model::DebianSettings;

use crate::mirror::{Mirror, much_later, now};

pub(crate) const PACKAGES: &str =
    "Package: linux-image-1\nVersion: 1\n\nPackage: other\nVersion: 2\n\n";

pub(crate) fn extract(debian: &Debian, suite: &str) -> Result<String, ArchiveError> {
    let stanzas = debian.extract(suite, "kernels", &["linux-image-"])?;
    Ok(stanzas.into_iter().map(|one| one.text).collect())
}

#[test]
fn lists_are_fetched_once_and_then_kept() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    let expected = "Package: linux-image-1\nVersion: 1\n\n";
    assert_eq!(extract(&debian, "bookworm").unwrap(), expected);
    // The lists of updates and of security updates are one file: both are empty.
    assert_eq!(mirror.take_asked().len(), 5);
    assert_eq!(extract(&debian, "bookworm").unwrap(), expected);
    assert!(mirror.take_asked().is_empty());
    debian.forget_lists().unwrap();
    let offline = debian.clone().offline();
    assert_eq!(extract(&offline, "bookworm").unwrap(), expected);
    extract(&offline, "sid").unwrap_err();
    assert!(mirror.take_asked().is_empty());
    assert_eq!(extract(&debian, "bookworm").unwrap(), expected);
    assert_eq!(mirror.take_asked().len(), 3, "the lists have not changed");
}

#[test]
fn old_lists_serve_while_the_mirror_is_away() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    extract(&mirror.debian(home.path()), "bookworm").unwrap();
    mirror.is_away.store(true, Ordering::SeqCst);
    let debian = mirror.debian(home.path());
    debian.forget_lists().unwrap();
    assert!(
        extract(&debian, "bookworm")
            .unwrap()
            .contains("linux-image-1")
    );
    // Two thousand seconds later they are valid no more.
    let settings = DebianSettings {
        mirror: format!("{}/debian", mirror.url),
        security: format!("{}/security", mirror.url),
        keyring: Some(mirror.path("keyring.gpg")),
        ..DebianSettings::default()
    };
    let later = Debian::new(home.path(), settings, much_later).pausing(|_| {});
    let error = extract(&later, "bookworm").unwrap_err();
    assert!(matches!(error, ArchiveError::Stale { .. }), "{error}");
    let error = extract(&debian, "sid").unwrap_err().to_string();
    assert!(error.contains("cannot fetch http://127.0.0.1:"), "{error}");
}

#[test]
fn lists_without_a_trusted_signature_are_refused() {
    let (mirror, other) = (Mirror::start(), Mirror::start());
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let settings = DebianSettings {
        mirror: format!("{}/debian", mirror.url),
        keyring: Some(other.path("keyring.gpg")),
        ..DebianSettings::default()
    };
    let error = extract(&Debian::new(home.path(), settings, now), "bookworm").unwrap_err();
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");
    let kept: Vec<_> = fs::read_dir(home.path().join("archives"))
        .unwrap()
        .collect();
    assert_eq!(kept.len(), 1, "nothing but the lock: {kept:?}");
    let release = mirror.path("debian/dists/bookworm/InRelease");
    let text = fs::read_to_string(&release).unwrap();
    fs::write(&release, text.replace("Suite: bookworm", "Suite: bookwurm")).unwrap();
    let error = extract(&mirror.debian(home.path()), "bookworm").unwrap_err();
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");
}

#[test]
fn stale_and_replayed_lists_are_refused() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    extract(&debian, "bookworm").unwrap();
    mirror.publish("debian", "bookworm", PACKAGES, 5000, 1000);
    debian.forget_lists().unwrap();
    let error = extract(&debian, "bookworm").unwrap_err().to_string();
    assert!(error.contains("is out of date: it was made on"), "{error}");
    mirror.publish("debian", "sid", PACKAGES, 5000, -10);
    let error = extract(&debian, "sid").unwrap_err().to_string();
    assert!(
        error.contains("is out of date: it was valid until"),
        "{error}"
    );
}

#[test]
fn past_days_come_from_the_snapshot_service() {
    let mirror = Mirror::start();
    let day = "snapshot/archive/debian/20260101T000000Z";
    mirror.publish(day, "sid", PACKAGES, 100_000, -90_000);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    let found = debian
        .extract("sid@20260101", "kernels", &["linux-image-"])
        .unwrap();
    assert_eq!(found[0].archive, format!("{}/{day}", mirror.url));
    for suite in [
        "bullseye",
        "../x",
        "sid@today",
        "sid@2026/01/01",
        "",
        "Sid",
        "-x",
    ] {
        let error = debian.extract(suite, "kernels", &[""]).unwrap_err();
        assert!(
            matches!(error, ArchiveError::Suite { .. }),
            "{suite}: {error}"
        );
    }
}

#[test]
fn packages_other_than_listed_leave_nothing() {
    let mirror = Mirror::start();
    fs::create_dir_all(mirror.path("debian/pool")).unwrap();
    fs::write(mirror.path("debian/pool/x_1_amd64.deb"), "deb").unwrap();
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    let package = |sha256: String| Package {
        package: "x".to_owned(),
        url: format!("{}/debian/pool/x_1_amd64.deb", mirror.url),
        bytes: 3,
        sha256,
    };
    let file = debian
        .download(&package(sha256(b"deb")), home.path())
        .unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"deb");
    fs::remove_file(file).unwrap();
    let error = debian
        .download(&package(sha256(b"dec")), home.path())
        .unwrap_err();
    assert!(
        error.to_string().contains("the mirror is broken or lies"),
        "{error}"
    );
    let mut gone = package(sha256(b"deb"));
    gone.url += "x";
    let error = debian.download(&gone, home.path()).unwrap_err().to_string();
    assert!(error.contains("it was removed or never there"), "{error}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn dependencies_are_followed() {
    let hash = "a".repeat(64);
    let stanza = |name: &str, version: &str, more: &str| {
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\n{more}Filename: pool/{name}_{version}_amd64.deb\nSize: 1\nSHA256: {hash}\n\n"
        )
    };
    let list = [
        stanza(
            "tool",
            "1",
            "Depends: libc6 (>= 2.36), awk, gone | second, python3:any\nPre-Depends: first\n",
        ),
        stanza("libc6", "2.36", "Depends: libgcc\n"),
        stanza("libc6", "2.9", ""),
        stanza("libgcc", "1", "Depends: libc6\n"),
        stanza("mawk", "1", "Provides: awk\n"),
        stanza("second", "1", ""),
        stanza("first", "1", ""),
        stanza("python3", "3", "Recommends: unwanted\n"),
        stanza("unwanted", "1", ""),
        stanza("broken", "1", "Depends: libc6 (>> 2.36)\n"),
    ];
    let mirror = Mirror::start();
    mirror.publish_all(&list.concat());
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    let names = |packages: &[&str]| -> Result<Vec<String>, String> {
        let packages: Vec<String> = packages.iter().map(|name| (*name).to_owned()).collect();
        let needed = debian
            .closure("bookworm", &packages)
            .map_err(|error| error.to_string())?;
        Ok(needed.into_iter().map(|one| one.file).collect())
    };
    assert_eq!(
        names(&["tool"]).unwrap(),
        [
            "first_1_amd64.deb",
            "libc6_2.36_amd64.deb",
            "libgcc_1_amd64.deb",
            "mawk_1_amd64.deb",
            "python3_3_amd64.deb",
            "second_1_amd64.deb",
            "tool_1_amd64.deb"
        ]
    );
    let error = names(&["broken"]).unwrap_err();
    assert!(
        error.contains("no package libc6 (>> 2.36) in Debian's bookworm"),
        "{error}"
    );
}

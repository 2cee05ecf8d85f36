//! Lists that a network, a mirror or a date withholds: web pages in their place, refused names, other
//! layouts, names that stand for another release, and suites that have ended.

use std::fs;
use std::process::Command;

use archives::{ArchiveError, Debian, ListNotice};
use model::{DebianSettings, Distribution, Fault};

use crate::debian::{PACKAGES, extract};
use crate::mirror::{FORBIDDEN, Mirror, PORTAL, gpg, now};
use crate::outside::{BOOKWORM, edit, list_forms};

/// Signs a suite's list in a file beside it.
fn sign_beside(mirror: &Mirror) {
    let path = |name: &str| {
        let file = mirror.path(&format!("{BOOKWORM}/{name}"));
        file.display().to_string()
    };
    let (output, input) = (path("Release.gpg"), path("Release"));
    let sign = ["--output", &output, "--detach-sign", &input];
    gpg(mirror.folder.path(), &sign);
}

#[test]
fn refused_list_has_its_signature_beside() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    sign_beside(&mirror);
    for answer in [FORBIDDEN, PORTAL] {
        mirror.answer("bookworm/InRelease", answer);
        let home = tempfile::tempdir().unwrap();
        let found = extract(&mirror.debian(home.path()), "bookworm").unwrap();
        assert!(found.contains("linux-image-1"));
    }
}

#[test]
fn web_page_is_no_list() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    sign_beside(&mirror);
    let home = tempfile::tempdir().unwrap();
    let message = |suite: &str| {
        let error = extract(&mirror.debian(home.path()), suite).unwrap_err();
        let left = fs::read_dir(home.path().join("archives")).unwrap();
        let names = left.map(|entry| entry.unwrap().file_name());
        let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(names, ["lock"], "{error}");
        error.to_string()
    };
    for end in ["", "bookworm/Release.gpg", "xz"] {
        mirror.answer_with_files();
        if end == "bookworm/Release.gpg" {
            mirror.answer("bookworm/InRelease", FORBIDDEN);
        }
        mirror.answer(end, PORTAL);
        if end == "xz" {
            mirror.answer(&hash_of_list(&mirror), PORTAL);
        }
        let error = message("bookworm");
        assert!(
            error.contains("is a web page (of a portal of the network, or of a proxy)"),
            "{end}: {error}"
        );
    }
    // The page hides the suite's name only.
    mirror.answer_with_files();
    mirror.answer("bookworm/InRelease", PORTAL);
    fs::remove_file(mirror.path(&format!("{BOOKWORM}/Release"))).unwrap();
    assert!(message("bookworm").contains("InRelease is a web page"));
    mirror.answer("bookworm/InRelease", FORBIDDEN);
    assert!(message("bookworm").contains("InRelease: the server answers with status 403"));
    fs::write(mirror.path(&format!("{BOOKWORM}/Release")), "unsigned").unwrap();
    fs::remove_file(mirror.path(&format!("{BOOKWORM}/Release.gpg"))).unwrap();
    assert!(message("bookworm").contains("InRelease: the server answers with status 403"));
    // Who was in this network before has lists that are valid.
    mirror.answer_with_files();
    mirror.publish_all(PACKAGES);
    let debian = mirror.debian(home.path());
    extract(&debian, "bookworm").unwrap();
    debian.forget_lists().unwrap();
    mirror.answer("", PORTAL);
    assert!(
        extract(&debian, "bookworm")
            .unwrap()
            .contains("linux-image-1")
    );
}

fn hash_of_list(mirror: &Mirror) -> String {
    let list = mirror.path(&format!("{BOOKWORM}/main/binary-amd64/Packages.xz"));
    archives::sha256_of_file(&list).unwrap()
}

#[test]
fn next_form_of_a_list_is_read() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let binary = mirror.path(&format!("{BOOKWORM}/main/binary-amd64"));
    let packed = Command::new("gzip")
        .arg("-kf")
        .arg(binary.join("Packages"))
        .status();
    assert!(packed.unwrap().success());
    let found = || {
        let home = tempfile::tempdir().unwrap();
        extract(&mirror.debian(home.path()), "bookworm")
    };
    fs::remove_dir_all(binary.join("by-hash")).unwrap();
    list_forms(&mirror, &["Packages.xz", "Packages.gz"]);
    let list = fs::read(binary.join("Packages.xz")).unwrap();
    // Gone, refused, of another day, and a page instead.
    fs::remove_file(binary.join("Packages.xz")).unwrap();
    assert!(found().unwrap().contains("linux-image-1"));
    for answer in [
        FORBIDDEN,
        PORTAL,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold",
    ] {
        mirror.answer("Packages.xz", answer);
        assert!(found().unwrap().contains("linux-image-1"));
        // None of the forms: the message is of the one that says most.
        mirror.answer(
            "Packages.gz",
            "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        );
        let error = found().unwrap_err();
        assert!(!matches!(error, ArchiveError::Absent { .. }), "{error}");
        mirror.answer_with_files();
    }
    fs::write(binary.join("Packages.xz"), list).unwrap();
    found().unwrap();
}

#[test]
fn other_layouts_are_named_with_what_to_do() {
    for (file, expected) in [
        ("debian/Packages.gz", "a flat repository"),
        ("debian/InRelease", "a flat repository"),
        ("", "a folder of packages without a list"),
        ("version", "a folder for each version"),
    ] {
        let mirror = Mirror::start();
        fs::create_dir(mirror.path("debian")).unwrap();
        let home = tempfile::tempdir().unwrap();
        let index = |link: &str| {
            let page = format!("<!DOCTYPE html><a href=\"../\">up</a> <a href=\"{link}\">x</a>");
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}",
                page.len()
            )
        };
        match file {
            "" => mirror.answer("/debian/", &index("linux-image-6.8_amd64.deb")),
            "version" => mirror.answer("/debian/", &index("v6.8/")),
            file => fs::write(mirror.path(file), "x").unwrap(),
        }
        let error = extract(&mirror.debian(home.path()), "bookworm").unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        let error = error.to_string();
        assert!(
            error.contains(expected) && error.contains("path:FOLDER/"),
            "{error}"
        );
    }
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let error = extract(&mirror.debian(home.path()), "bokworm").unwrap_err();
    assert!(matches!(error, ArchiveError::Suite { .. }), "{error}");
}

#[test]
fn suite_that_became_another_release_is_noticed_once() {
    let mirror = Mirror::start();
    let home = tempfile::tempdir().unwrap();
    let release = |codename: &str, age_s: u64| {
        mirror.publish("debian", "stable", PACKAGES, age_s, 1000);
        for suite in ["stable-updates", "stable-security"] {
            let archive = if suite.ends_with("updates") {
                "debian"
            } else {
                "security"
            };
            mirror.publish(archive, suite, "", age_s, 1000);
        }
        edit(&mirror.path("debian/dists/stable/Release"), |text| {
            format!("Codename: {codename}\n{text}")
        });
        mirror.sign("debian/dists/stable", &[]);
    };
    let notices = |debian: &Debian| {
        debian.forget_lists().unwrap();
        extract(debian, "stable").unwrap();
        let notices = debian.take_notices();
        let texts: Vec<String> = notices.iter().map(ListNotice::to_string).collect();
        texts
    };
    release("bookworm", 300);
    assert!(notices(&mirror.debian(home.path())).is_empty());
    release("trixie", 200);
    assert_eq!(
        notices(&mirror.debian(home.path())),
        ["Debian's stable is trixie now; at the last list it was bookworm"]
    );
    assert!(notices(&mirror.debian(home.path())).is_empty());
    release("trixie", 100);
    assert!(notices(&mirror.debian(home.path())).is_empty());
}

#[test]
fn ended_updates_are_left_out_with_notice() {
    for (archive, suite, setting) in [
        ("debian", "bookworm-updates", "`mirror` below [debian]"),
        ("security", "bookworm-security", "`security` below [debian]"),
    ] {
        let mirror = Mirror::start();
        mirror.publish_all(PACKAGES);
        let newer = "Package: linux-image-2\nVersion: 2\n\n";
        mirror.publish(archive, suite, newer, 5000, -10);
        let home = tempfile::tempdir().unwrap();
        let debian = mirror.debian(home.path());
        let found = extract(&debian, "bookworm").unwrap();
        assert!(found.contains("linux-image-1") && !found.contains("linux-image-2"));
        let notices = debian.take_notices();
        let [notice] = notices.as_slice() else {
            panic!("{notices:?}");
        };
        let text = notice.to_string();
        for part in [
            &*format!("Debian's {suite} is left out, and newer packages may exist"),
            "was valid until 20",
            setting,
        ] {
            assert!(text.contains(part), "{text}");
        }
        // Once, and until the mirror has a valid one.
        extract(&debian, "bookworm").unwrap();
        assert!(debian.take_notices().is_empty());
        assert_eq!(debian.left_out().len(), 1);
        // What was requested itself is an error.
        let error = extract(&debian, suite).unwrap_err();
        assert!(matches!(error, ArchiveError::Stale { .. }), "{error}");
        mirror.publish(archive, suite, newer, 100, 1000);
        assert!(
            extract(&debian, "bookworm")
                .unwrap()
                .contains("linux-image-2")
        );
        assert!(debian.left_out().is_empty());
    }
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    mirror.publish("debian", "bookworm", PACKAGES, 5000, -10);
    let home = tempfile::tempdir().unwrap();
    let error = extract(&mirror.debian(home.path()), "bookworm").unwrap_err();
    assert!(matches!(error, ArchiveError::Stale { .. }), "{error}");
    // An older list than the one that was seen is no list that has ended.
    mirror.publish_all(PACKAGES);
    let debian = mirror.debian(home.path());
    extract(&debian, "bookworm").unwrap();
    debian.forget_lists().unwrap();
    for valid_s in [1000, -10] {
        mirror.publish("debian", "bookworm-updates", "", 5000, valid_s);
        let error = extract(&debian, "bookworm").unwrap_err();
        assert!(error.to_string().contains("was seen"), "{error}");
        assert!(debian.take_notices().is_empty());
    }
}

#[test]
fn kept_list_that_is_refused_is_fetched_again() {
    let (mirror, other) = (Mirror::start(), Mirror::start());
    mirror.publish("debian", "sid", PACKAGES, 100, 1000);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    extract(&debian, "sid").unwrap();
    // It has ended, and the mirror has a new one.
    let settings = |keyring: &Mirror| DebianSettings {
        mirror: format!("{}/debian", mirror.url),
        keyring: Some(keyring.path("keyring.gpg")),
        ..DebianSettings::default()
    };
    mirror.publish("debian", "sid", &PACKAGES.replace('1', "2"), 50, 5000);
    let later = || now().plus_seconds(2000);
    let debian = Debian::new(home.path(), settings(&mirror), later);
    assert!(extract(&debian, "sid").unwrap().contains("linux-image-2"));
    // Another keyring, whose key signs the next one.
    mirror.publish("debian", "sid", &PACKAGES.replace('1', "3"), 40, 5000);
    let release = fs::read(mirror.path("debian/dists/sid/Release")).unwrap();
    fs::create_dir_all(other.path("sid")).unwrap();
    fs::write(other.path("sid/Release"), release).unwrap();
    other.sign("sid", &[]);
    fs::copy(
        other.path("sid/InRelease"),
        mirror.path("debian/dists/sid/InRelease"),
    )
    .unwrap();
    let debian = Debian::new(home.path(), settings(&other), now);
    assert_eq!(debian.distribution(), Distribution::Debian);
    assert!(extract(&debian, "sid").unwrap().contains("linux-image-3"));
}

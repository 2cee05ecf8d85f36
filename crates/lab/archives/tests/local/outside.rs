//! Archives as others have met them: cases from public reports on mirrors, keys and clocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use archives::{Debian, Package, sha256};
use model::{DebianSettings, UnixTime};

use crate::debian::{PACKAGES, extract};
use crate::mirror::{Mirror, gpg, now};

pub(crate) const BOOKWORM: &str = "debian/dists/bookworm";

pub(crate) fn edit(file: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, change(text)).unwrap();
}

#[test]
fn archive_without_in_release_has_a_signature_beside() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let release = mirror.path(&format!("{BOOKWORM}/Release"));
    let signature = mirror.path(&format!("{BOOKWORM}/Release.gpg"));
    let in_release = mirror.path(&format!("{BOOKWORM}/InRelease"));
    let whole = fs::read(&in_release).unwrap();
    fs::remove_file(&in_release).unwrap();
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    let error = extract(&debian, "bookworm").unwrap_err().to_string();
    assert!(error.contains("Release.gpg"), "{error}");
    for armour in ["--armor", "--no-armor"] {
        let output = signature.display().to_string();
        let input = release.display().to_string();
        let sign = [armour, "--output", &output, "--detach-sign", &input];
        gpg(mirror.folder.path(), &sign);
        let home = tempfile::tempdir().unwrap();
        let debian = mirror.debian(home.path());
        for _ in 0..2 {
            let found = extract(&debian, "bookworm").unwrap();
            assert!(found.contains("linux-image-1"));
            debian.forget_lists().unwrap();
        }
        // Back to the usual form.
        fs::write(&in_release, &whole).unwrap();
        extract(&debian, "bookworm").unwrap();
        fs::remove_file(&in_release).unwrap();
    }
    edit(&release, |text| text.replace("Suite", "Suites"));
    let error = extract(&debian, "bookworm").unwrap_err().to_string();
    assert!(error.contains("is not signed by a key of"), "{error}");
}

#[test]
fn mirror_without_files_by_hash_serves_plain_names() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let binary = mirror.path(&format!("{BOOKWORM}/main/binary-amd64"));
    fs::remove_dir_all(binary.join("by-hash")).unwrap();
    // A newer list without a signature.
    fs::write(binary.join("Packages"), "Package: linux-image-2\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let found = extract(&mirror.debian(home.path()), "bookworm").unwrap();
    assert!(found.contains("linux-image-1"));
    fs::write(binary.join("Packages.xz"), "another").unwrap();
    let home = tempfile::tempdir().unwrap();
    let error = extract(&mirror.debian(home.path()), "bookworm").unwrap_err();
    assert!(error.to_string().contains("the mirror is broken or lies"));
}

#[test]
fn list_packed_by_gzip_is_read() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let binary = mirror.path(&format!("{BOOKWORM}/main/binary-amd64"));
    let packed = Command::new("gzip")
        .arg("-kf")
        .arg(binary.join("Packages"))
        .status();
    assert!(packed.unwrap().success());
    let list = fs::read(binary.join("Packages.gz")).unwrap();
    let release = mirror.path(&format!("{BOOKWORM}/Release"));
    edit(&release, |text| {
        let (head, _) = text.split_once("SHA256:").unwrap();
        let hash = sha256(&list);
        format!(
            "{head}SHA256:\n {hash} {} main/binary-amd64/Packages.gz\n",
            list.len()
        )
        .replace("Acquire-By-Hash: yes", "Acquire-By-Hash: no")
    });
    mirror.sign(BOOKWORM, &[]);
    let home = tempfile::tempdir().unwrap();
    let found = extract(&mirror.debian(home.path()), "bookworm").unwrap();
    assert!(found.contains("linux-image-1"));
}

/// Signs a list that names these forms of the list of packages.
pub(crate) fn list_forms(mirror: &Mirror, names: &[&str]) {
    let lines: Vec<String> = names
        .iter()
        .map(|name| {
            let file = mirror.path(&format!("{BOOKWORM}/main/binary-amd64/{name}"));
            let list = fs::read(file).unwrap();
            let hash = sha256(&list);
            format!(" {hash} {} main/binary-amd64/{name}\n", list.len())
        })
        .collect();
    // A blank behind the colon, as Nexus writes it.
    edit(&mirror.path(&format!("{BOOKWORM}/Release")), |text| {
        let (head, _) = text.split_once("SHA256:").unwrap();
        format!("{head}SHA256: \n{}", lines.concat())
    });
    mirror.sign(BOOKWORM, &[]);
}

#[test]
fn any_form_of_the_list_is_read() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let binary = mirror.path(&format!("{BOOKWORM}/main/binary-amd64"));
    let found = || {
        let home = tempfile::tempdir().unwrap();
        extract(&mirror.debian(home.path()), "bookworm")
    };
    list_forms(&mirror, &["Packages"]);
    assert!(found().unwrap().contains("linux-image-1"));
    // The smallest is listed, and the mirror does not have it.
    list_forms(&mirror, &["Packages.xz", "Packages"]);
    fs::remove_dir_all(binary.join("by-hash")).unwrap();
    fs::remove_file(binary.join("Packages.xz")).unwrap();
    assert!(found().unwrap().contains("linux-image-1"));
    list_forms(&mirror, &[]);
    let error = found().unwrap_err().to_string();
    assert!(error.contains("no Packages of main for amd64"), "{error}");
}

#[test]
fn mirror_in_change_leaves_the_old_list() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    extract(&debian, "bookworm").unwrap();
    // The new list is there before its packages.
    let newer = PACKAGES.replace("linux-image-1", "linux-image-2");
    mirror.publish("debian", "bookworm", &newer, 0, 1000);
    let binary = mirror.path(&format!("{BOOKWORM}/main/binary-amd64"));
    let list = fs::read(binary.join("Packages.xz")).unwrap();
    fs::remove_dir_all(binary.join("by-hash")).unwrap();
    fs::write(binary.join("Packages.xz"), "old").unwrap();
    debian.forget_lists().unwrap();
    for _ in 0..2 {
        let found = extract(&debian, "bookworm").unwrap();
        assert!(found.contains("linux-image-1"), "{found}");
    }
    fs::write(binary.join("Packages.xz"), list).unwrap();
    let found = extract(&debian, "bookworm").unwrap();
    assert!(found.contains("linux-image-2"), "{found}");
}

#[test]
fn list_of_another_suite_is_refused() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let release = mirror.path(&format!("{BOOKWORM}/Release"));
    edit(&release, |text| {
        text.replace("Suite: bookworm", "Suite: unstable\nCodename: sid")
    });
    mirror.sign(BOOKWORM, &[]);
    let home = tempfile::tempdir().unwrap();
    let error = extract(&mirror.debian(home.path()), "bookworm").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("`bookworm` was requested, and it says Suite: unstable, Codename: sid"),
        "{error}"
    );
    edit(&release, |text| {
        text.replace("Codename: sid", "Codename: bookworm")
    });
    mirror.sign(BOOKWORM, &[]);
    extract(&mirror.debian(home.path()), "bookworm").unwrap();
}

fn debian_at(mirror: &Mirror, home: &Path, clock: fn() -> UnixTime) -> Debian {
    let settings = DebianSettings {
        mirror: format!("{}/debian", mirror.url),
        security: format!("{}/security", mirror.url),
        keyring: Some(mirror.path("keyring.gpg")),
        ..DebianSettings::default()
    };
    Debian::new(home, settings, clock)
}

#[test]
fn clock_behind_the_archive_is_named() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let behind = debian_at(&mirror, home.path(), || now().minus_seconds(5 * 86_400));
    let error = extract(&behind, "bookworm").unwrap_err().to_string();
    assert!(error.contains("was signed at 20"), "{error}");
    assert!(error.contains("this host's clock shows 20"), "{error}");
    assert!(error.contains("set this host's clock"), "{error}");
    let skewed = debian_at(&mirror, home.path(), || now().minus_seconds(300));
    extract(&skewed, "bookworm").unwrap();
    let ahead = debian_at(&mirror, home.path(), || now().plus_seconds(400 * 86_400));
    let error = extract(&ahead, "bookworm").unwrap_err().to_string();
    assert!(error.contains("this host's clock shows 20"), "{error}");
}

/// Adds a key and exports it alone; returns its fingerprint.
fn add_key(mirror: &Mirror, name: &str, options: &[&str], expires: &str) -> String {
    let user = format!("{name} <{name}@localhost>");
    let generate = ["--quick-generate-key", &user, "ed25519", "sign", expires];
    gpg(mirror.folder.path(), &[options, &generate].concat());
    let file = format!("{name}.gpg");
    gpg(mirror.folder.path(), &["--output", &file, "--export", name]);
    let listed = Command::new("gpg")
        .env("GNUPGHOME", mirror.path("gnupg"))
        .args(["--with-colons", "--list-keys", name])
        .output()
        .unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("fpr:")).unwrap();
    line.split(':').nth(9).unwrap().to_owned()
}

fn with_keyring(mirror: &Mirror, keyring: &str) -> Result<String, String> {
    let home = tempfile::tempdir().unwrap();
    let settings = DebianSettings {
        mirror: format!("{}/debian", mirror.url),
        security: format!("{}/security", mirror.url),
        keyring: Some(mirror.path(keyring)),
        ..DebianSettings::default()
    };
    // Updates are signed by the archive's first key only.
    let debian = Debian::new(home.path(), settings, now);
    extract(&debian, "trixie-backports").map_err(|error| error.to_string())
}

#[test]
fn one_known_signature_of_several_is_enough() {
    const SUITE: &str = "debian/dists/trixie-backports";
    let mirror = Mirror::start();
    mirror.publish("debian", "trixie-backports", PACKAGES, 100, 1000);
    let first = add_key(&mirror, "first", &[], "never");
    add_key(&mirror, "second", &[], "never");
    add_key(&mirror, "third", &[], "never");
    mirror.sign(SUITE, &["-u", "first", "-u", "second"]);
    with_keyring(&mirror, "first.gpg").unwrap();
    with_keyring(&mirror, "second.gpg").unwrap();
    let error = with_keyring(&mirror, "third.gpg").unwrap_err();
    assert!(error.contains("is not signed by a key of"), "{error}");
    // The first one of a changed text, the second one good.
    let in_release = mirror.path(SUITE).join("InRelease");
    let release = mirror.path(SUITE).join("Release");
    let good = fs::read_to_string(&release).unwrap();
    let detached = |text: &str, key: &str| -> Vec<u8> {
        fs::write(mirror.path("text"), text).unwrap();
        let sign = [
            "--output",
            "text.sig",
            "-u",
            key,
            "--digest-algo",
            "SHA512",
            "--textmode",
            "--detach-sign",
            "text",
        ];
        gpg(mirror.folder.path(), &sign);
        fs::read(mirror.path("text.sig")).unwrap()
    };
    let text = good.trim_end_matches('\n');
    let bad = detached(&text.replace("Suite", "Suits"), "first");
    let signatures = [bad, detached(text, "second")].concat();
    fs::write(mirror.path("both.sig"), signatures).unwrap();
    gpg(
        mirror.folder.path(),
        &["--output", "both.asc", "--enarmor", "both.sig"],
    );
    let armour = fs::read_to_string(mirror.path("both.asc")).unwrap();
    let armour = armour.replace("ARMORED FILE", "SIGNATURE");
    fs::write(
        &in_release,
        format!("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{text}\n{armour}"),
    )
    .unwrap();
    with_keyring(&mirror, "second.gpg").unwrap();
    let both = [
        fs::read(mirror.path("first.gpg")).unwrap(),
        fs::read(mirror.path("second.gpg")).unwrap(),
    ];
    fs::write(mirror.path("both.gpg"), both.concat()).unwrap();
    let error = with_keyring(&mirror, "both.gpg").unwrap_err();
    assert!(error.contains("is not signed by a key of"), "{error}");
    assert_eq!(first.len(), 40);
}

#[test]
fn expired_key_is_named_with_its_date() {
    let mirror = Mirror::start();
    let past = ["--faked-system-time", "20200101T000000!"];
    let key = add_key(&mirror, "old", &past, "2020-02-01");
    mirror.publish_all(PACKAGES);
    let signed = [&past[..], &["-u", "old"]].concat();
    mirror.sign(BOOKWORM, &signed);
    let home = tempfile::tempdir().unwrap();
    let mut settings = DebianSettings {
        mirror: format!("{}/debian", mirror.url),
        security: format!("{}/security", mirror.url),
        snapshot: format!("{}/snapshot", mirror.url),
        keyring: Some(mirror.path("old.gpg")),
        ..DebianSettings::default()
    };
    let debian = Debian::new(home.path(), settings.clone(), now);
    let error = extract(&debian, "bookworm").unwrap_err().to_string();
    assert!(
        error.contains(&format!("the key {}, which expired on 2020-0", &key[24..])),
        "{error}"
    );
    assert!(error.contains("old.gpg is old"), "{error}");
    // Of a day in the past, the key has to have been valid when it signed.
    let day = "snapshot/archive/debian/20200115T000000Z";
    mirror.publish(day, "sid", PACKAGES, 100_000, -90_000);
    mirror.sign(&format!("{day}/dists/sid"), &signed);
    settings.suite = "sid@20200115".to_owned();
    let debian = Debian::new(home.path(), settings, now);
    let found = debian.extract("sid@20200115", "kernels", &["linux-image-"]);
    assert!(found.unwrap()[0].text.contains("linux-image-1"));
}

#[test]
fn security_suites_have_old_and_new_names() {
    let mirror = Mirror::start();
    for suite in ["bullseye", "bullseye-updates", "buster", "buster-updates"] {
        mirror.publish("debian", suite, "", 100, 1000);
    }
    let new = "Package: linux-image-1\nVersion: 11\n\n";
    mirror.publish("security", "bullseye-security", new, 100, 1000);
    let old = "Package: linux-image-1\nVersion: 10\n\n";
    mirror.publish("security", "buster/updates", old, 100, 1000);
    let release = mirror.path("security/dists/buster/updates/Release");
    edit(&release, |text| {
        text.replace(
            "Suite: buster/updates",
            "Suite: oldoldstable\nCodename: buster",
        )
        .replace(" main/", " updates/main/")
    });
    mirror.sign("security/dists/buster/updates", &[]);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    for suite in ["bullseye", "bullseye-security"] {
        assert_eq!(extract(&debian, suite).unwrap(), new, "{suite}");
    }
    for suite in ["buster", "buster-security"] {
        assert_eq!(extract(&debian, suite).unwrap(), old, "{suite}");
    }
}

#[test]
fn removed_package_comes_from_its_lists_day() {
    let mirror = Mirror::start();
    mirror.publish_all(PACKAGES);
    let home = tempfile::tempdir().unwrap();
    let debian = mirror.debian(home.path());
    extract(&debian, "bookworm").unwrap();
    let package = Package {
        package: "x".to_owned(),
        url: format!("{}/debian/pool/x_1_amd64.deb", mirror.url),
        bytes: 3,
        sha256: sha256(b"deb"),
    };
    let into = tempfile::tempdir().unwrap();
    mirror.take_asked();
    let error = debian.download(&package, into.path()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("it was removed or never there"), "{error}");
    let asked = mirror.take_asked();
    assert!(asked.len() <= 4, "no endless retries: {asked:?}");
    let past = asked
        .iter()
        .find(|path| path.starts_with("/snapshot/archive/debian/20"))
        .unwrap();
    let place: PathBuf = mirror.path(past.trim_start_matches('/'));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, "deb").unwrap();
    let file = debian.download(&package, into.path()).unwrap();
    assert_eq!(fs::read(file).unwrap(), b"deb");
}

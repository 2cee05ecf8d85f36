//! An archive in Debian's layout, made and signed here and served on the loopback interface:
//! mirrors that work, lie, lag and are away.

#![expect(clippy::unwrap_used, reason = "a test: what fails here is to fail")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archives::{ArchiveError, Debian, Package, sha256};
use model::{DebianSettings, UnixTime};

/// An archive that is served, with the paths that were asked for.
struct Mirror {
    folder: tempfile::TempDir,
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    /// Ends each connection without an answer.
    is_away: Arc<AtomicBool>,
}

fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}

fn much_later() -> UnixTime {
    now().plus_seconds(2000)
}

/// Runs gpg with a home of this test's own.
fn gpg(folder: &Path, arguments: &[&str]) {
    let ended = Command::new("gpg")
        .env("GNUPGHOME", folder.join("gnupg"))
        .args([
            "--batch",
            "--quiet",
            "--yes",
            "--passphrase",
            "",
            "--pinentry-mode",
            "loopback",
        ])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

impl Mirror {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("gnupg")).unwrap();
        gpg(
            folder.path(),
            &[
                "--quick-generate-key",
                "archive <archive@localhost>",
                "ed25519",
                "sign",
                "never",
            ],
        );
        gpg(folder.path(), &["--output", "keyring.gpg", "--export"]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_away = Arc::new(AtomicBool::new(false));
        let root = folder.path().to_owned();
        let seen = Arc::clone(&asked);
        let away = Arc::clone(&is_away);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if away.load(Ordering::SeqCst) {
                    continue;
                }
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap().to_owned();
                let answer = match fs::read(root.join(path.trim_start_matches('/'))) {
                    Ok(content) => {
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                            content.len()
                        );
                        [head.into_bytes(), content].concat()
                    }
                    Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
                };
                seen.lock().unwrap().push(path);
                drop(stream.write_all(&answer));
            }
        });
        Self {
            folder,
            url,
            asked,
            is_away,
        }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    /// Puts a suite with this list of packages into an archive, made so many seconds ago and valid
    /// for so many more.
    fn publish(&self, archive: &str, suite: &str, packages: &str, age_s: u64, valid_s: i64) {
        let dists = self.path(&format!("{archive}/dists/{suite}"));
        let binary = dists.join("main/binary-amd64");
        fs::create_dir_all(binary.join("by-hash/SHA256")).unwrap();
        fs::write(binary.join("Packages"), packages).unwrap();
        let packed = Command::new("xz")
            .args(["-kf", "Packages"])
            .current_dir(&binary)
            .status();
        assert!(packed.unwrap().success());
        let list = fs::read(binary.join("Packages.xz")).unwrap();
        let hash = sha256(&list);
        fs::write(binary.join("by-hash/SHA256").join(&hash), &list).unwrap();
        let date = |time| httpdate::fmt_http_date(time).replace("GMT", "UTC");
        let made = SystemTime::now() - Duration::from_secs(age_s);
        let until = u64::try_from(now().seconds() + valid_s).unwrap();
        let until = UNIX_EPOCH + Duration::from_secs(until);
        let release = format!(
            "Suite: {suite}\nDate: {}\nValid-Until: {}\nAcquire-By-Hash: yes\nSHA256:\n {hash} {} main/binary-amd64/Packages.xz\n",
            date(made),
            date(until),
            list.len()
        );
        fs::write(self.path("Release"), release).unwrap();
        let signed = dists.join("InRelease").display().to_string();
        gpg(
            self.folder.path(),
            &["--output", &signed, "--clearsign", "Release"],
        );
    }

    /// Publishes a suite with its updates.
    fn publish_all(&self, packages: &str) {
        self.publish("debian", "bookworm", packages, 100, 1000);
        self.publish("debian", "bookworm-updates", "", 100, 1000);
        self.publish("security", "bookworm-security", "", 100, 1000);
    }

    fn debian(&self, home: &Path) -> Debian {
        let settings = DebianSettings {
            mirror: format!("{}/debian", self.url),
            security: format!("{}/security", self.url),
            snapshot: format!("{}/snapshot", self.url),
            keyring: Some(self.path("keyring.gpg")),
            ..DebianSettings::default()
        };
        Debian::new(home, settings, now)
    }

    fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

const PACKAGES: &str = "Package: linux-image-1\nVersion: 1\n\nPackage: other\nVersion: 2\n\n";

fn extract(debian: &Debian, suite: &str) -> Result<String, ArchiveError> {
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
    let later = Debian::new(home.path(), settings, much_later);
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
        assert!(matches!(error, ArchiveError::Suite(_)), "{suite}: {error}");
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

//! A server on the loopback interface with archives that tests make and sign.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archives::{Debian, sha256};
use model::{DebianSettings, UnixTime};

/// An archive that is served, with the paths that were asked for.
pub(crate) struct Mirror {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    /// Ends each connection without an answer.
    pub(crate) is_away: Arc<AtomicBool>,
    /// Whole answers to paths that end so, instead of files.
    answers: Arc<Mutex<Vec<(String, String)>>>,
}

/// A page of a portal, as a whole answer.
pub(crate) const PORTAL: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n<!DOCTYPE html><title>Hotel</title>Log in!!!\n";
pub(crate) const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";

pub(crate) fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}

pub(crate) fn much_later() -> UnixTime {
    now().plus_seconds(2000)
}

/// Runs gpg with a home of this test's own.
pub(crate) fn gpg(folder: &Path, arguments: &[&str]) {
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
    pub(crate) fn start() -> Self {
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
        let answers: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let instead = Arc::clone(&answers);
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
                let other = instead
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|(end, _)| path.ends_with(end))
                    .map(|(_, answer)| answer.clone());
                let file = match other {
                    Some(answer) => {
                        seen.lock().unwrap().push(path);
                        drop(stream.write_all(answer.as_bytes()));
                        continue;
                    }
                    None => fs::read(root.join(path.trim_start_matches('/'))),
                };
                let answer = match file {
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
            answers,
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Puts a suite with this list of packages into an archive, made so many seconds ago and valid
    /// for so many more.
    pub(crate) fn publish(
        &self,
        archive: &str,
        suite: &str,
        packages: &str,
        age_s: u64,
        valid_s: i64,
    ) {
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
        fs::write(dists.join("Release"), release).unwrap();
        self.sign(&format!("{archive}/dists/{suite}"), &[]);
    }

    /// Signs a suite's Release as InRelease again.
    pub(crate) fn sign(&self, dists: &str, arguments: &[&str]) {
        let path = |name: &str| self.path(dists).join(name).display().to_string();
        let output = path("InRelease");
        let release = path("Release");
        let sign = ["--output", &output, "--clearsign", &release];
        gpg(self.folder.path(), &[arguments, &sign].concat());
    }

    /// Returns the signature of bytes.
    pub(crate) fn sign_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        fs::write(self.path("bytes"), bytes).unwrap();
        let sign = ["--output", "bytes.sig", "--detach-sign", "bytes"];
        gpg(self.folder.path(), &sign);
        fs::read(self.path("bytes.sig")).unwrap()
    }

    /// Publishes a suite with its updates.
    pub(crate) fn publish_all(&self, packages: &str) {
        self.publish("debian", "bookworm", packages, 100, 1000);
        self.publish("debian", "bookworm-updates", "", 100, 1000);
        self.publish("security", "bookworm-security", "", 100, 1000);
    }

    pub(crate) fn debian(&self, home: &Path) -> Debian {
        let settings = DebianSettings {
            mirror: format!("{}/debian", self.url),
            security: format!("{}/security", self.url),
            snapshot: format!("{}/snapshot", self.url),
            keyring: Some(self.path("keyring.gpg")),
            ..DebianSettings::default()
        };
        Debian::new(home, settings, now).pausing(|_| {})
    }

    /// Answers so to paths with this end.
    pub(crate) fn answer(&self, end: &str, answer: &str) {
        let answer = (end.to_owned(), answer.to_owned());
        self.answers.lock().unwrap().insert(0, answer);
    }

    /// Answers to all paths with files again.
    pub(crate) fn answer_with_files(&self) {
        self.answers.lock().unwrap().clear();
    }

    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

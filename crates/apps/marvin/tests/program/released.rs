//! The machine of a release: taken from a folder or a server, and every release that is not whole.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use archives::PackedFile;
use subprocess::Shared;

use crate::{folder, format_output, is_left_to_full, marvin, output_of};

/// The file of a release that has the machine.
const MACHINE: &str = "machine-debian-7.2.22.tar.xz";

/// Returns a folder with the packed machine; `None` if its packages are not to be had.
fn release() -> Option<PathBuf> {
    let home = folder("setup-home");
    let release = folder("setup-release");
    // Packing takes long. One at a time.
    static ONE: Shared<()> = Shared::new(());
    let _one = ONE.lock();
    if release.join(MACHINE).is_file() {
        return Some(release);
    }
    let pack = ["setup", "--force", "-q", "--pack"];
    let output = marvin(&home).args(pack).arg(&release).output().unwrap();
    let text = format_output(&output, &home);
    if text.starts_with("exit 5") && text.contains("cannot fetch http://snapshot.debian.org/") {
        println!("skipped: the archive has newer packages, and no snapshot service is reachable");
        return None;
    }
    assert!(text.starts_with("exit 0"), "{text}");
    Some(release)
}

#[test]
fn make_install_fills_a_root() {
    let bin = Path::new(env!("CARGO_BIN_EXE_marvin")).parent().unwrap();
    if !bin.join("marvin-dump").is_file() {
        println!("skipped: marvin-dump is not built: cargo build --workspace");
        return;
    }
    let root = crate::fresh::fresh("install-root");
    let output = Command::new("make")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."))
        .args(["-o", "build", "-o", "dump", "install", "PREFIX=/usr"])
        .arg(format!("BIN={}", bin.display()))
        .arg(format!("DESTDIR={}", root.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    for file in [
        "bin/marvin",
        "bin/marvin-dump",
        "share/man/man1/marvin.1",
        "share/man/man1/marvin-dump.1",
        "share/bash-completion/completions/marvin",
        "share/doc/marvin/dump.md",
        "share/doc/marvin/samples/full.toml",
        "share/doc/marvin/marvin.schema.json",
        "share/doc/marvin/CHANGELOG.md",
    ] {
        assert!(root.join("usr").join(file).is_file(), "{file}");
    }
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
}

/// Serves a folder on the loopback interface, of each file so many percent, and returns its
/// address.
pub(crate) fn serve(root: PathBuf, percent: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                request.push(byte[0]);
            }
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap().trim_start_matches('/');
            let Ok(content) = fs::read(root.join(path)) else {
                drop(stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
                continue;
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                content.len()
            );
            let sent = &content[..content.len() * percent / 100];
            drop(stream.write_all(&[head.as_bytes(), sent].concat()));
        }
    });
    url
}

/// A proxy that asks everybody for a login; returns its address without scheme.
fn refusing_proxy() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                request.push(byte[0]);
            }
            drop(stream.write_all(b"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic\r\n\r\n"));
        }
    });
    address
}

#[test]
fn password_of_a_proxy_is_never_shown() {
    let home = tempfile::tempdir().unwrap();
    let proxy = refusing_proxy();
    let with_proxy = |variable: &str, value: &str, arguments: &[&str]| {
        let mut command = marvin(home.path());
        let output = command.env(variable, value).args(arguments).output();
        let text = format_output(&output.unwrap(), home.path());
        assert!(!text.contains("s3cret"), "{text}");
        text
    };
    let secure = ["setup", "--from", "https://release.invalid/"];
    let plain = ["setup", "--from", "http://release.invalid/"];
    for (variable, arguments) in [("https_proxy", &secure), ("http_proxy", &plain)] {
        let text = with_proxy(variable, &format!("http://{proxy}"), arguments);
        assert!(text.contains("asks for a login (407)"), "{text}");
        assert!(text.contains("http_proxy=http://USER:PASSWORD@"), "{text}");
        let text = with_proxy(variable, &format!("http://me:s3cret@{proxy}"), arguments);
        assert!(text.contains("refuses the login in its address"), "{text}");
        let text = with_proxy(variable, &format!("socks5://me:s3cret@{proxy}"), arguments);
        assert!(text.contains("cannot be used"), "{text}");
    }
    let text = with_proxy(
        "http_proxy",
        &format!("http://me:s3cret@{proxy}"),
        &["kernels"],
    );
    assert!(text.contains("refuses the login in its address"), "{text}");
    // A web server's CGI program has its client's header there.
    let text = with_proxy(
        "HTTP_PROXY",
        &format!("http://{proxy}"),
        &["setup", "--from", "http://127.0.0.1:1/"],
    );
    assert!(text.contains("refused"), "{text}");
}

/// Returns what a data directory has of QEMU.
fn installed(home: &Path) -> Vec<String> {
    let entries = fs::read_dir(home.join("qemu"))
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != "lock").collect();
    names.sort();
    names
}

/// Sets up from a release in a new data directory, which must have nothing of QEMU afterwards, and
/// returns what is printed.
fn refused(release: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let text = output_of(home.path(), &["setup", "-q", "--from", release]);
    assert_eq!(installed(home.path()), [""; 0], "{text}");
    let messages = text.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(messages.count(), 1, "{text}");
    text
}

#[test]
fn machine_comes_from_a_folder_or_a_server() {
    let Some(release) = release() else {
        return;
    };
    for from in [release.display().to_string(), serve(release.clone(), 100)] {
        let home = tempfile::tempdir().unwrap();
        let setup = ["setup", "--from", &from];
        let text = output_of(home.path(), &setup);
        assert!(
            text.starts_with("exit 0") && text.contains("gives the reference numbers: QEMU 7.2"),
            "{text}"
        );
        assert_eq!(installed(home.path()), ["debian-7.2.22"]);
        assert!(output_of(home.path(), &setup).contains("it is there"));
        // Half of it is gone, as after a crash of the host.
        let bundle = home.path().join("qemu/debian-7.2.22");
        fs::remove_file(bundle.join("lib/libz.so.1")).unwrap();
        let text = output_of(home.path(), &setup);
        assert!(
            text.starts_with("exit 0")
                && text.contains("making it again: lib/libz.so.1 is missing"),
            "{text}"
        );
    }
}

#[test]
fn packed_machine_has_the_same_bytes_each_time() {
    if is_left_to_full("releases are built") {
        return;
    }
    let Some(release) = release() else {
        return;
    };
    let before = fs::read(release.join(MACHINE)).unwrap();
    fs::remove_file(release.join(MACHINE)).unwrap();
    let again = fs::read(self::release().unwrap().join(MACHINE)).unwrap();
    assert!(before == again);
}

#[test]
fn release_that_is_not_whole_installs_nothing() {
    let Some(release) = release() else {
        return;
    };
    let nothing = tempfile::tempdir().unwrap();
    let empty = nothing.path().display().to_string();
    let text = refused(&empty);
    assert!(
        text.starts_with("exit 2") && text.contains("there is no "),
        "{text}"
    );
    let text = refused(&serve(nothing.path().to_owned(), 100));
    assert!(
        text.starts_with("exit 2") && text.contains("there is no http://"),
        "{text}"
    );
    let text = refused("http://127.0.0.1:1/");
    assert!(
        text.starts_with("exit 5") && text.contains("cannot fetch http://127.0.0.1:1/"),
        "{text}"
    );
    let text = refused(&serve(release.clone(), 50));
    assert!(
        text.starts_with("exit 5") && text.contains("cannot fetch http"),
        "{text}"
    );

    let bad = tempfile::tempdir().unwrap();
    let place = bad.path().display().to_string();
    let mut bytes = fs::read(release.join(MACHINE)).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(bad.path().join(MACHINE), bytes).unwrap();
    let text = refused(&place);
    assert!(
        text.contains("is damaged: it is cut short; nothing of it was kept"),
        "{text}"
    );
    let other = PackedFile {
        path: "bin/qemu-system-x86_64",
        is_program: true,
        content: b"another program",
    };
    archives::pack(&bad.path().join(MACHINE), [other]).unwrap();
    let text = refused(&place);
    assert!(
        text.starts_with("exit 5") && text.contains("has another machine than"),
        "{text}"
    );
}

#[test]
fn small_or_noexec_data_directory_gets_no_machine() {
    let Some(release) = release() else {
        return;
    };
    for (options, message) in [
        ("size=5m", "MiB needed"),
        ("size=200m,noexec", "mounted noexec"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o {options},mode=700 none \"$1\" || exit 77; shift; \"$@\"; code=$?; ls \"$MARVIN_HOME/qemu\" >&2; exit $code"
        );
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", &script, "sh"])
            .arg(home.path())
            .arg(env!("CARGO_BIN_EXE_marvin"))
            .args(["setup", "-q", "--from"])
            .arg(&release)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("MARVIN_HOME", home.path())
            .output()
            .unwrap();
        let text = format_output(&output, home.path());
        if [Some(77), Some(1)].contains(&output.status.code()) {
            println!("skipped: this host gives no namespace for mounts: {text}");
            return;
        }
        assert!(
            text.starts_with("exit 5") && text.contains(message),
            "{text}"
        );
        assert!(text.ends_with("lock\n"), "{text}");
        assert!(!text.contains("debian-7.2.22\n"), "{text}");
    }
}

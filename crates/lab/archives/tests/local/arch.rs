//! An archive in Arch Linux's layout, with packages made and signed here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use archives::{Arch, ArchiveError, Package, sha256, unpack};
use model::MirrorSettings;

use crate::mirror::{Mirror, now};

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let ended = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

fn write(root: &Path, file: &str, content: &str) {
    let file = root.join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

/// The name of a file in a folder of modules, longer than a header of tar has room for.
fn long_path() -> String {
    format!("usr/lib/modules/6.18.1-arch1-1/{}/x.ko", "extra".repeat(30))
}

/// Publishes the package `linux` as a file, and a database that names it.
fn publish(mirror: &Mirror, version: &str) {
    let content = tempfile::tempdir().unwrap();
    let info = format!("# made by a test\npkgname = linux\npkgver = {version}\n");
    write(content.path(), ".PKGINFO", &info);
    write(
        content.path(),
        "usr/lib/modules/6.18.1-arch1-1/vmlinuz",
        "image",
    );
    write(content.path(), &long_path(), "module");
    let core = mirror.path("arch/core/os/x86_64");
    let extra = mirror.path("arch/extra/os/x86_64");
    fs::create_dir_all(&core).unwrap();
    fs::create_dir_all(&extra).unwrap();
    let file = format!("linux-{version}-x86_64.pkg.tar.zst");
    let place = core.join(&file).display().to_string();
    let pack = ["--format=pax", "--zstd", "-cf", &place, ".PKGINFO", "usr"];
    run(content.path(), "tar", &pack);
    let package = fs::read(core.join(&file)).unwrap();
    let signature = mirror.sign_bytes(&package);
    fs::write(core.join(format!("{file}.sig")), signature).unwrap();
    let database = tempfile::tempdir().unwrap();
    let description = format!(
        "%FILENAME%\n{file}\n\n%NAME%\nlinux\n\n%VERSION%\n{version}\n\n%CSIZE%\n{}\n\n%SHA256SUM%\n{}\n\n%ARCH%\nx86_64\n\n",
        package.len(),
        sha256(&package)
    );
    write(
        database.path(),
        &format!("linux-{version}/desc"),
        &description,
    );
    write(database.path(), "bash-5-1/desc", "%NAME%\nbash\n");
    let place = core.join("core.db").display().to_string();
    run(database.path(), "tar", &["-czf", &place, "."]);
    let place = extra.join("extra.db").display().to_string();
    run(database.path(), "tar", &["-czf", &place, "bash-5-1"]);
}

fn arch(mirror: &Mirror, home: &Path, keyring: Option<PathBuf>) -> Arch {
    let settings = MirrorSettings {
        mirror: format!("{}/arch", mirror.url),
        keyring,
    };
    Arch::new(home, settings, now)
}

fn listed(arch: &Arch) -> Package {
    let stanzas = arch.kernels().unwrap().swap_remove(0);
    assert_eq!(stanzas.text.matches("Package: ").count(), 1);
    Package::parse(&stanzas.archive, stanzas.text.trim()).unwrap()
}

#[test]
fn package_is_verified_and_unpacked() {
    let mirror = Mirror::start();
    publish(&mirror, "6.18.1.arch1-1");
    let home = tempfile::tempdir().unwrap();
    let arch = arch(&mirror, home.path(), Some(mirror.path("keyring.gpg")));
    let file = arch.download(&listed(&arch), home.path()).unwrap();
    let root = home.path().join("root");
    unpack(&file, &root).unwrap();
    assert_eq!(fs::read(root.join(long_path())).unwrap(), b"module");
    let left = fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 3, "lists, package and root");
}

#[test]
fn package_that_no_trusted_key_signed_leaves_nothing() {
    let (mirror, other) = (Mirror::start(), Mirror::start());
    publish(&mirror, "6.18.1.arch1-1");
    let home = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    let refusal = |keyring: Option<PathBuf>, change: fn(&mut Package)| {
        let arch = arch(&mirror, home.path(), keyring);
        let mut package = listed(&arch);
        change(&mut package);
        let error = arch.download(&package, into.path()).unwrap_err();
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
        error
    };
    let error = refusal(None, |_| {}).to_string();
    assert!(error.contains("set `keyring` below [arch]"), "{error}");
    let error = refusal(Some(other.path("keyring.gpg")), |_| {});
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");
    // The old package under the name of a new one.
    let core = mirror.path("arch/core/os/x86_64");
    for ending in ["", ".sig"] {
        let name = |version: &str| core.join(format!("linux-{version}-x86_64.pkg.tar.zst{ending}"));
        fs::copy(name("6.18.1.arch1-1"), name("6.18.2.arch1-1")).unwrap();
    }
    let error = refusal(Some(mirror.path("keyring.gpg")), |package| {
        package.url = package.url.replace("6.18.1", "6.18.2");
    });
    assert!(
        matches!(error, ArchiveError::OtherPackage { .. }),
        "{error}"
    );
    fs::remove_file(core.join("linux-6.18.1.arch1-1-x86_64.pkg.tar.zst.sig")).unwrap();
    let error = refusal(Some(mirror.path("keyring.gpg")), |_| {}).to_string();
    assert!(error.contains("Arch signs every package"), "{error}");
}

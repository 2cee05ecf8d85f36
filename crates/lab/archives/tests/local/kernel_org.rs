//! Tarballs in kernel.org's layout, made and signed here.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use archives::{ArchiveError, KernelOrg, sha256_of_file};
use model::MirrorSettings;

use crate::mirror::{Mirror, gpg, now};

/// Publishes tarballs with their signatures, and a signed list of those in `listed`.
fn publish(mirror: &Mirror, versions: &[&str], listed: &[&str]) {
    let folder = mirror.path("kernel/v6.x");
    fs::create_dir_all(&folder).unwrap();
    let mut list = String::new();
    for version in versions {
        let top = format!("linux-{version}");
        fs::create_dir_all(folder.join(&top)).unwrap();
        fs::write(folder.join(&top).join("Kbuild"), version).unwrap();
        let tar = format!("{top}.tar");
        let pack = format!("tar -cf {tar} {top} && rm -r {top} && xz -k {tar}");
        let packed = Command::new("sh")
            .args(["-c", &pack])
            .current_dir(&folder)
            .status();
        assert!(packed.unwrap().success());
        // The unpacked tarball is signed.
        let path = |ending: &str| folder.join(format!("{top}.{ending}")).display().to_string();
        let sign = path("tar.sign");
        gpg(
            mirror.folder.path(),
            &["--armor", "--output", &sign, "--detach-sign", &path("tar")],
        );
        if listed.contains(version) {
            let hash = sha256_of_file(&folder.join(format!("{tar}.xz"))).unwrap();
            writeln!(list, "{hash}  {tar}.xz\n{hash}  {tar}.gz").unwrap();
        }
    }
    fs::write(mirror.path("sha256sums"), list).unwrap();
    let output = folder.join("sha256sums.asc").display().to_string();
    gpg(
        mirror.folder.path(),
        &["--output", &output, "--clearsign", "sha256sums"],
    );
}

fn kernel_org(mirror: &Mirror, keyring: &Mirror, home: &Path) -> KernelOrg {
    let settings = MirrorSettings {
        mirror: format!("{}/kernel", mirror.url),
        keyring: Some(keyring.path("keyring.gpg")),
    };
    KernelOrg::new(home, settings, now)
}

#[test]
fn newest_listed_version_is_verified_by_the_list() {
    let mirror = Mirror::start();
    let versions = ["6.1.9", "6.12.3", "6.12.10"];
    publish(&mirror, &versions, &versions);
    let home = tempfile::tempdir().unwrap();
    let kernel_org = kernel_org(&mirror, &mirror, home.path());
    for (name, version) in [("6.12", "6.12.10"), ("6.1", "6.1.9"), ("6.12.3", "6.12.3")] {
        let found = kernel_org.find(name).unwrap();
        assert_eq!(found.version, version);
        let tarball = kernel_org.download(&found, home.path()).unwrap();
        assert_eq!(tarball.proof, "sha256sums.asc");
        assert!(tarball.file.is_file());
    }
    let gone = kernel_org.find("6.13").unwrap();
    let error = kernel_org.download(&gone, home.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel.org has no linux-6.13.tar.xz; its newest: 6.12.10, 6.12.3, 6.1.9"
    );
}

#[test]
fn version_without_a_sum_has_its_signature() {
    let mirror = Mirror::start();
    publish(&mirror, &["6.18.29", "6.18.30"], &["6.18.29"]);
    let home = tempfile::tempdir().unwrap();
    let kernel_org = kernel_org(&mirror, &mirror, home.path());
    let found = kernel_org.find("6.18.30").unwrap();
    let tarball = kernel_org.download(&found, home.path()).unwrap();
    assert_eq!(tarball.proof, "its signature");
    fs::remove_file(tarball.file).unwrap();
    let folder = mirror.path("kernel/v6.x");
    // Another tarball with this signature, and none.
    fs::copy(
        folder.join("linux-6.18.29.tar.xz"),
        folder.join("linux-6.18.30.tar.xz"),
    )
    .unwrap();
    let error = kernel_org.download(&found, home.path()).unwrap_err();
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");
    fs::remove_file(folder.join("linux-6.18.30.tar.sign")).unwrap();
    let error = kernel_org.download(&found, home.path()).unwrap_err();
    assert!(matches!(error, ArchiveError::Absent { .. }), "{error}");
    assert!(!home.path().join("linux-6.18.30.tar.xz").exists());
}

#[test]
fn lists_and_tarballs_that_lie_are_refused() {
    let (mirror, other) = (Mirror::start(), Mirror::start());
    publish(&mirror, &["6.12.3"], &["6.12.3"]);
    let home = tempfile::tempdir().unwrap();
    let strange = kernel_org(&mirror, &other, home.path());
    let error = strange.find("6.12").unwrap_err();
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");
    let known = kernel_org(&mirror, &mirror, home.path());
    let found = known.find("6.12").unwrap();
    fs::write(mirror.path("kernel/v6.x/linux-6.12.3.tar.xz"), "other").unwrap();
    let error = known.download(&found, home.path()).unwrap_err();
    assert!(matches!(error, ArchiveError::Checksum { .. }), "{error}");
    let settings = MirrorSettings {
        mirror: format!("{}/kernel", mirror.url),
        keyring: None,
    };
    let error = KernelOrg::new(home.path(), settings, now).find("6.12");
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("set `keyring` below [kernel_org]"),
        "{error}"
    );
}

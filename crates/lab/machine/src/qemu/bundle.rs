//! The reference QEMU in the data directory, for hosts that have another one or none: made of
//! Debian's packages, which are known by their hashes, without root and without an installation.
//!
//! `HOME/qemu/NAME` has the program, its module, the libraries of both with their dynamic linker,
//! the firmware, and the copyright files of all. Nothing in it is changed, so its hashes are those
//! of a Debian host, and so is the machine. QEMU finds its module and its firmware relative to the
//! program; Marvin starts it by its own dynamic linker.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archives::{Debian, KnownPackage, Root, collect, unpack_deb};

use super::Qemu;
use crate::MachineError;

/// What the bundle is made of: `NAME VERSION PATH SHA256 BYTES`.
const PACKAGES: &str = include_str!("debian-7.2.22.packages");
/// The name of its directory: that of the build in `model::KnownQemu`.
const NAME: &str = "debian-7.2.22";
/// A day when Debian's archive had all of these packages.
const DAY: &str = "20261126T000000Z";
/// Most bytes of its files: more than twice what they have.
const BYTES_MAX: u64 = 128 << 20;
/// The program, and the module that it loads beside it.
const PROGRAMS: [(&str, &str); 2] = [
    ("/usr/bin/qemu-system-x86_64", "bin/qemu-system-x86_64"),
    (
        "/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
        "lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
    ),
];
/// What microvm, pc and q35 run at power-on without other devices (hw/i386/x86.c, hw/i386/pc.c).
const FIRMWARE: [&str; 8] = [
    "/usr/share/qemu/bios-microvm.bin",
    "/usr/share/qemu/kvmvapic.bin",
    "/usr/share/qemu/linuxboot.bin",
    "/usr/share/qemu/linuxboot_dma.bin",
    "/usr/share/qemu/multiboot_dma.bin",
    "/usr/share/qemu/pvh.bin",
    "/usr/share/qemu/qboot.rom",
    "/usr/share/seabios/bios-256k.bin",
];
/// The dynamic linker, beside its libraries.
const LOADER: &str = "lib/ld-linux-x86-64.so.2";

/// The progress of [`set_up`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupEvent {
    /// It is there already.
    Present,
    /// A package is fetched, of so many.
    Fetching { number: usize, of: usize },
    /// All packages are there; the files are taken from them.
    Unpacking,
}

/// Returns the bundle's directory in a data directory.
pub(super) fn folder(home: &Path) -> PathBuf {
    home.join("qemu").join(NAME)
}

/// Returns the program and the dynamic linker of a bundle, if it is there.
pub(super) fn find(home: &Path) -> Option<(PathBuf, PathBuf)> {
    let folder = folder(home);
    let program = folder.join(PROGRAMS[0].1);
    let loader = folder.join(LOADER);
    (program.is_file() && loader.is_file()).then_some((program, loader))
}

/// Returns the number of packages of the bundle and their bytes.
#[must_use]
pub fn packages() -> (usize, u64) {
    let known: Vec<KnownPackage<'_>> = known().collect();
    (known.len(), known.iter().map(|one| one.bytes).sum())
}

fn known() -> impl Iterator<Item = KnownPackage<'static>> {
    PACKAGES
        .lines()
        .filter_map(|line| KnownPackage::parse(line, DAY))
}

/// Puts the reference QEMU into a data directory, unless it is there, and starts it once.
///
/// # Errors
/// If a package cannot be fetched, the disk is full, or the host does not let QEMU start there.
pub fn set_up(
    home: &Path,
    debian: &Debian,
    notify: &dyn Fn(SetupEvent),
) -> Result<Qemu, MachineError> {
    let place = folder(home);
    if find(home).is_some() {
        notify(SetupEvent::Present);
        return Qemu::bundled(home);
    }
    let parent = home.join("qemu");
    fs::create_dir_all(&parent).map_err(MachineError::io("create", &parent))?;
    let lock = parent.join("lock");
    let _alone = subprocess::lock_file(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(MachineError::io("lock", &lock))?;
    if find(home).is_none() {
        // Packages stay from one try to the next; what was unpacked of them does not.
        let downloads = parent.join("packages");
        fs::create_dir_all(&downloads).map_err(MachineError::io("create", &downloads))?;
        let new = parent.join("new");
        let made = make(&downloads, &new, debian, notify);
        if made.is_err() {
            drop(fs::remove_dir_all(&new));
        }
        made?;
        fs::rename(new.join("bundle"), &place).map_err(MachineError::io("rename", &place))?;
        for done in [&new, &downloads] {
            fs::remove_dir_all(done).map_err(MachineError::io("remove", done))?;
        }
    }
    Qemu::bundled(home)
}

fn make(
    downloads: &Path,
    new: &Path,
    debian: &Debian,
    notify: &dyn Fn(SetupEvent),
) -> Result<(), MachineError> {
    if new.exists() {
        fs::remove_dir_all(new).map_err(MachineError::io("remove", new))?;
    }
    let root = new.join("root");
    let of = known().count();
    let mut debs = Vec::new();
    for (number, package) in (1..).zip(known()) {
        notify(SetupEvent::Fetching { number, of });
        let kept = downloads.join(package.sha256);
        if archives::sha256_of_file(&kept).ok().as_deref() != Some(package.sha256) {
            let deb = debian.download_known(&package, downloads)?;
            fs::rename(&deb, &kept).map_err(MachineError::io("rename", &kept))?;
        }
        debs.push(kept);
    }
    notify(SetupEvent::Unpacking);
    for deb in debs {
        unpack_deb(&deb, &root)?;
    }
    let copyright = known().map(|one| format!("/usr/share/doc/{}/copyright", one.package));
    let wanted: Vec<String> = PROGRAMS
        .iter()
        .map(|(path, _)| (*path).to_owned())
        .chain(FIRMWARE.map(str::to_owned))
        .chain(copyright)
        .collect();
    let collected = collect(&Root(&root), &wanted, BYTES_MAX)?;
    if !collected.missing.is_empty() {
        return Err(MachineError::Bundle {
            missing: collected.missing.join(", "),
        });
    }
    let bundle = new.join("bundle");
    for (path, bytes) in collected.files {
        let target = place_of(&path);
        let file = bundle.join(&target);
        let parent = file.parent().unwrap_or(&bundle);
        fs::create_dir_all(parent).map_err(MachineError::io("create", parent))?;
        fs::write(&file, bytes).map_err(MachineError::io("write", &file))?;
        if target == PROGRAMS[0].1 || target == LOADER {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&file, mode).map_err(MachineError::io("change", &file))?;
        }
    }
    Ok(())
}

/// Returns where a file of the packages is in the bundle.
fn place_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some((_, place)) = PROGRAMS.iter().find(|(from, _)| *from == path) {
        return (*place).to_owned();
    }
    if FIRMWARE.contains(&path) {
        return format!("share/qemu/{name}");
    }
    match path.strip_prefix("/usr/share/doc/") {
        Some(rest) => format!("share/doc/{rest}"),
        // Libraries and their dynamic linker.
        None => format!("lib/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use model::KnownQemu;

    use super::{FIRMWARE, NAME, known, packages, place_of};

    #[test]
    fn list_has_packages_of_a_known_build() {
        assert!(KnownQemu::ALL.iter().any(|known| known.name == NAME));
        let (count, bytes) = packages();
        assert_eq!(count, super::PACKAGES.lines().count());
        assert!((20_000_000..40_000_000).contains(&bytes), "{bytes}");
        assert!(known().all(|one| one.path.starts_with("debian")));
    }

    #[test]
    fn files_have_the_places_where_qemu_looks() {
        for (path, place) in [
            ("/usr/bin/qemu-system-x86_64", "bin/qemu-system-x86_64"),
            (FIRMWARE[0], "share/qemu/bios-microvm.bin"),
            (FIRMWARE[7], "share/qemu/bios-256k.bin"),
            ("/lib64/ld-linux-x86-64.so.2", "lib/ld-linux-x86-64.so.2"),
            (
                "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0",
                "lib/libglib-2.0.so.0",
            ),
            (
                "/usr/share/doc/seabios/copyright",
                "share/doc/seabios/copyright",
            ),
        ] {
            assert_eq!(place_of(path), place);
        }
    }
}

//! The reference QEMU in the data directory, for hosts that have another one or none: made of
//! Debian's packages, or taken from a release, without root and without an installation. Packages
//! and files are known by their hashes.
//!
//! `HOME/qemu/NAME` has the program, its module, the libraries of both with their dynamic linker,
//! the firmware, and the copyright files of all. Nothing in it is changed, so its hashes are those
//! of a Debian host, and so is the machine. QEMU finds its module and its firmware relative to the
//! program; Marvin starts it by its own dynamic linker.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archives::{Debian, KnownPackage, Root, collect, unpack_deb};

use super::{Qemu, QemuProblem, packed};
use crate::MachineError;
use crate::settings::{free_mib, is_noexec};

/// What the bundle is made of: `NAME VERSION PATH SHA256 BYTES`.
const PACKAGES: &str = include_str!("debian-7.2.22.packages");
/// The files of the bundle: `SHA256 BYTES PATH`.
const FILES: &str = include_str!("debian-7.2.22.files");
/// The name of its directory: that of the build in `model::KnownQemu`.
pub(super) const NAME: &str = "debian-7.2.22";
/// A day when Debian's archive had all of these packages.
const DAY: &str = "20261126T000000Z";
/// Room for packages, what they unpack to, and the bundle (MiB).
const PACKAGES_MIB: u64 = 200;
/// Room for a release's file and the bundle (MiB).
const RELEASE_MIB: u64 = 70;
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

/// Where the reference QEMU comes from.
#[derive(Debug)]
pub enum Origin<'a> {
    /// Debian's archive.
    Debian(&'a Debian),
    /// The directory or the address of a release.
    Release(&'a str),
}

/// A file of the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownFile<'a> {
    /// Its path in the bundle.
    pub(super) path: &'a str,
    /// SHA-256 of it, hexadecimal.
    pub(super) sha256: &'a str,
    pub(super) bytes: u64,
}

impl KnownFile<'_> {
    pub(super) fn is_program(&self) -> bool {
        self.path == PROGRAMS[0].1 || self.path == LOADER
    }
}

/// Returns the files of the bundle.
pub(super) fn files() -> impl Iterator<Item = KnownFile<'static>> + Clone {
    FILES.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        Some(KnownFile {
            sha256: words.next()?,
            bytes: words.next()?.parse().ok()?,
            path: words.next()?,
        })
    })
}

/// Returns the first file of a directory that is not the known one; `None` if all are.
pub(super) fn damage<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = KnownFile<'a>>,
) -> Option<String> {
    for known in files {
        let file = folder.join(known.path);
        let Ok(found) = fs::metadata(&file) else {
            return Some(format!("{} is missing", known.path));
        };
        if found.len() != known.bytes {
            return Some(format!(
                "{} has {} of {} bytes",
                known.path,
                found.len(),
                known.bytes
            ));
        }
        match archives::sha256_of_file(&file) {
            Ok(hash) if hash == known.sha256 => {}
            Ok(hash) => {
                return Some(format!(
                    "{} has SHA-256 {hash}, not {}",
                    known.path, known.sha256
                ));
            }
            Err(error) => return Some(format!("{}: {error}", known.path)),
        }
    }
    None
}

/// Writes a file of the bundle into a directory.
pub(super) fn write_file(
    folder: &Path,
    known: &KnownFile<'_>,
    content: &[u8],
) -> Result<(), MachineError> {
    let file = folder.join(known.path);
    let parent = file.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(MachineError::io("create", parent))?;
    fs::write(&file, content).map_err(MachineError::io("write", &file))?;
    if known.is_program() {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&file, mode).map_err(MachineError::io("change", &file))?;
    }
    Ok(())
}

/// The progress of [`set_up`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupEvent {
    /// It is there already.
    Present,
    /// It is there, but one file is missing or another: it is made again.
    Damaged { detail: String },
    /// It is taken from a release.
    Taking,
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
    let (program, loader) = programs(&folder(home));
    (program.is_file() && loader.is_file()).then_some((program, loader))
}

/// Returns the program and the dynamic linker of a bundle in a directory.
pub(super) fn programs(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join(PROGRAMS[0].1), folder.join(LOADER))
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

/// Puts the reference QEMU into a data directory, unless it is there. It is there only when all of
/// its files are the known ones and it has been started once.
///
/// # Errors
/// If it cannot be fetched, the disk is full, or the host does not let QEMU start there.
pub fn set_up(
    home: &Path,
    origin: &Origin<'_>,
    notify: &dyn Fn(SetupEvent),
) -> Result<Qemu, MachineError> {
    let place = folder(home);
    let parent = home.join("qemu");
    fs::create_dir_all(&parent).map_err(MachineError::io("create", &parent))?;
    let lock = parent.join("lock");
    let _alone = subprocess::wait_for_lock(&lock).map_err(MachineError::io("lock", &lock))?;
    match damage(&place, files()) {
        None => {
            notify(SetupEvent::Present);
            return Qemu::bundled(home);
        }
        Some(detail) if place.exists() => notify(SetupEvent::Damaged { detail }),
        Some(_) => {}
    }
    // Packages stay from one try to the next; what was unpacked of them does not.
    let downloads = parent.join("packages");
    let new = parent.join("new");
    remove_folder(&new)?;
    check_room(&parent, origin)?;
    if is_noexec(&parent) {
        return Err(QemuProblem::NotStartable {
            program: format!("a program from {}", parent.display()),
            why: "the file system is mounted noexec".to_owned(),
        }
        .into());
    }
    let installed = make(&downloads, &new, origin, notify).and_then(|bundle| {
        // A host that does not let it start gets none.
        Qemu::identify_bundle(&bundle)?;
        remove_folder(&place)?;
        sync(&bundle)?;
        fs::rename(&bundle, &place).map_err(MachineError::io("rename", &place))
    });
    if installed.is_err() {
        drop(fs::remove_dir_all(&new));
    }
    installed?;
    remove_folder(&new)?;
    remove_folder(&downloads)?;
    Qemu::bundled(home)
}

fn remove_folder(folder: &Path) -> Result<(), MachineError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(MachineError::io("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Errors if the disk has not room enough, before anything is fetched.
fn check_room(folder: &Path, origin: &Origin<'_>) -> Result<(), MachineError> {
    let needed_mib = match origin {
        Origin::Debian(_) => PACKAGES_MIB,
        Origin::Release(_) => RELEASE_MIB,
    };
    match free_mib(folder) {
        Some(free) if free < needed_mib => Err(MachineError::NoSpace {
            folder: folder.to_owned(),
            needed_mib,
        }),
        _ => Ok(()),
    }
}

/// Writes a directory to the disk: after a loss of power, it is there as a whole or not at all.
fn sync(folder: &Path) -> Result<(), MachineError> {
    let written = fs::File::open(folder).and_then(|open| Ok(rustix::fs::syncfs(open)?));
    written.map_err(MachineError::io("write", folder))
}

/// Makes the bundle in a new directory, and returns its place there.
fn make(
    downloads: &Path,
    new: &Path,
    origin: &Origin<'_>,
    notify: &dyn Fn(SetupEvent),
) -> Result<PathBuf, MachineError> {
    let bundle = new.join("bundle");
    fs::create_dir_all(&bundle).map_err(MachineError::io("create", &bundle))?;
    match origin {
        Origin::Debian(debian) => {
            collect_files(downloads, new, debian, notify)?;
            if let Some(detail) = damage(&bundle, files()) {
                return Err(MachineError::Bundle { detail });
            }
        }
        Origin::Release(release) => {
            notify(SetupEvent::Taking);
            packed::take(release, new, &bundle)?;
        }
    }
    Ok(bundle)
}

/// Fetches the packages, and copies the bundle's files from them to `new/bundle`.
fn collect_files(
    downloads: &Path,
    new: &Path,
    debian: &Debian,
    notify: &dyn Fn(SetupEvent),
) -> Result<(), MachineError> {
    fs::create_dir_all(downloads).map_err(MachineError::io("create", downloads))?;
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
    let collected = collect(&Root(&root), &wanted, &[], BYTES_MAX)?;
    if !collected.missing.is_empty() {
        return Err(MachineError::Bundle {
            detail: format!("{} is missing", collected.missing.join(", ")),
        });
    }
    let bundle = new.join("bundle");
    for (path, bytes) in collected.files {
        let known = KnownFile {
            path: &place_of(&path),
            sha256: "",
            bytes: bytes.len() as u64,
        };
        write_file(&bundle, &known, &bytes)?;
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

    use super::{FIRMWARE, NAME, damage, files, known, packages, place_of};

    #[test]
    fn list_has_packages_of_a_known_build() {
        assert!(KnownQemu::ALL.iter().any(|known| known.name == NAME));
        let (count, bytes) = packages();
        assert_eq!(count, super::PACKAGES.lines().count());
        assert!((20_000_000..40_000_000).contains(&bytes), "{bytes}");
        assert!(known().all(|one| one.path.starts_with("debian")));
    }

    #[test]
    fn every_file_is_known_by_its_hash() {
        assert_eq!(files().count(), super::FILES.lines().count());
        assert!(files().all(|file| file.sha256.len() == 64));
        assert_eq!(files().filter(|file| file.is_program()).count(), 2);
        let named = |file: super::KnownFile<'_>| {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            (name.to_owned(), file.sha256.to_owned())
        };
        let hashes: Vec<(String, String)> = files().map(named).collect();
        assert_eq!(KnownQemu::find(&hashes).map(|known| known.name), Some(NAME));
    }

    #[test]
    fn damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let all = || files().take(1);
        let named = |folder: &std::path::Path| damage(folder, all()).unwrap_or_default();
        assert_eq!(named(folder.path()), "bin/qemu-system-x86_64 is missing");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/qemu-system-x86_64"), "x").unwrap();
        assert_eq!(
            named(folder.path()),
            "bin/qemu-system-x86_64 has 1 of 18397984 bytes"
        );
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

//! The kernels that this host has installed: where distributions put them, and which of them a name
//! selects.
//!
//! Marvin only reads them. An image that its user may not read is listed, and refused with what to
//! do.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use archives::{key, numbers};
use model::{Build, InstalledQuery, KernelName, Origin};

use crate::cache::LocatedImage;
use crate::image::{self, Image};
use crate::{BuildCache, BuildEvent, KernelError};

/// Where images lie: directories below the root, and how their files begin and end. A `*` is any
/// directory.
const PLACES: [(&str, &str, &str); 13] = [
    ("boot", "vmlinuz-", ""),
    ("boot", "bzImage-", ""),
    ("boot", "kernel-", ""),
    // Of kernel-install: /boot/MACHINE/RELEASE/linux.
    ("boot/*/*", "linux", ""),
    // Of NixOS, with a hash in front and the version in the middle.
    ("boot/kernels", "", "-bzImage"),
    ("boot/EFI/nixos", "", "-bzImage.efi"),
    ("run/booted-system", "kernel", ""),
    ("run/current-system", "kernel", ""),
    ("usr/lib/modules/*", "vmlinuz", ""),
    // Unified kernel images.
    ("usr/lib/modules/*", "", ".efi"),
    ("boot/EFI/Linux", "", ".efi"),
    ("boot/efi/EFI/Linux", "", ".efi"),
    ("efi/EFI/Linux", "", ".efi"),
];
/// Where the modules of a release lie.
const MODULES: [&str; 3] = [
    "usr/lib/modules",
    "lib/modules",
    "run/current-system/kernel-modules/lib/modules",
];
/// The file of Arch Linux beside the modules that names their package.
const PKGBASE: &str = "pkgbase";
/// Most images that are looked at.
const IMAGES_MAX: usize = 200;

/// An image of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledImage {
    /// Its release, `6.1.0-42-amd64`: of the image, or of its name if it is not readable.
    pub release: String,
    pub file: PathBuf,
    pub bytes: u64,
    /// Why it cannot be read; `None` if it can.
    pub trouble: Option<String>,
    /// Arch Linux's package that it is of, `linux-lts`, as the file beside its modules says.
    pub pkgbase: Option<String>,
}

impl InstalledImage {
    /// Returns whether it has this release, or is of this package of Arch Linux.
    fn is_called(&self, wanted: &str) -> bool {
        self.release == wanted || self.pkgbase.as_deref() == Some(wanted)
    }
}

/// Returns the images below a root, the newest first, one for each release.
fn installed_images(root: &Path) -> Vec<InstalledImage> {
    let mut images: Vec<InstalledImage> = PLACES
        .iter()
        .flat_map(|(folder, start, end)| files(root, folder, start, end))
        .take(IMAGES_MAX)
        .filter_map(|file| look_at(&file))
        .collect();
    // Of one release, an image that can be read.
    images.sort_by_key(|image| (Reverse(key(&image.release)), image.trouble.is_some()));
    images.dedup_by(|later, earlier| later.release == earlier.release);
    for image in &mut images {
        image.pkgbase = find_modules(root, image).and_then(|modules| {
            let pkgbase = fs::read_to_string(modules.join(PKGBASE)).ok()?;
            Some(model::sanitize_line(pkgbase.trim()))
        });
    }
    images
}

/// Returns the folder with the modules of an image.
fn find_modules(root: &Path, image: &InstalledImage) -> Option<PathBuf> {
    let beside = image.file.parent().filter(|folder| {
        let above = folder.parent().unwrap_or(root);
        MODULES.iter().any(|place| above == root.join(place))
    });
    let places = MODULES
        .iter()
        .map(|place| root.join(place).join(&image.release));
    beside
        .map(Path::to_owned)
        .into_iter()
        .chain(places)
        .find(|modules| modules.is_dir())
}

/// Returns the images below a root that a name may mean, the newest first; at least one.
///
/// # Errors
/// If there is none.
pub fn find_installed(
    root: &Path,
    query: &InstalledQuery,
) -> Result<Vec<InstalledImage>, KernelError> {
    let images = installed_images(root);
    let wanted = match query {
        InstalledQuery::All => String::new(),
        InstalledQuery::Running => running_release(root)?,
        InstalledQuery::Release(release) => release.clone(),
    };
    let fitting = images
        .iter()
        .filter(|image| image.release.starts_with(&wanted) || image.is_called(&wanted));
    let fitting: Vec<InstalledImage> = fitting.cloned().collect();
    if fitting.is_empty() {
        let name = KernelName::Installed(query.clone());
        return Err(KernelError::NotInstalled {
            requested: format!("`{name}`"),
            instead: instead(root, &images),
        });
    }
    Ok(fitting)
}

/// Returns the files of a place.
fn files(root: &Path, folder: &str, start: &str, end: &str) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    for part in folder.split('/') {
        folders = folders
            .iter()
            .flat_map(|folder| match part {
                "*" => paths_in(folder),
                part => vec![folder.join(part)],
            })
            .collect();
    }
    let files = folders.iter().flat_map(|folder| paths_in(folder));
    files
        .filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end) && file.is_file()
        })
        // `vmlinuz` and `linux` are whole names.
        .filter(|file| start.ends_with('-') || start.is_empty() || file.ends_with(start))
        .collect()
}

fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads which release an image is; `None` if it is no kernel for this machine.
fn look_at(file: &Path) -> Option<InstalledImage> {
    let bytes = fs::metadata(file).ok()?.len();
    let image = |release: String, trouble: Option<String>| InstalledImage {
        release,
        file: file.to_owned(),
        bytes,
        trouble,
        pkgbase: None,
    };
    // What is readable is a kernel or none; of the rest, the name says which.
    if let Err(error) = fs::File::open(file) {
        return Some(image(release_in_name(file), Some(error.to_string())));
    }
    let content = image::load(file).ok()?;
    let read = Image::read(&content).ok()?;
    let release = read.release.map(model::sanitize_line);
    Some(image(
        release.unwrap_or_else(|| release_in_name(file)),
        None,
    ))
}

/// Returns the release that a path says: of the file, or of the directory that it lies in.
fn release_in_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".efi").trim_end_matches("-bzImage");
    let release = name
        .find(|c: char| c.is_ascii_digit())
        .filter(|_| !matches!(name, "vmlinuz" | "linux"))
        .map(|at| &name[at..]);
    // A hash in front begins with a digit too.
    let release = match name.split_once("-linux-") {
        Some((_, release)) => Some(release),
        None => release,
    };
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    release.map_or_else(|| folder.to_string_lossy().into_owned(), str::to_owned)
}

impl BuildCache {
    /// Returns the build of an installed image.
    pub(crate) fn installed(
        &self,
        name: &KernelName,
        query: &InstalledQuery,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        self.installed_below(Path::new("/"), name, query, notify)
    }

    /// Checks that this host has an image.
    pub(crate) fn check_installed(&self, query: &InstalledQuery) -> Result<(), KernelError> {
        find(Path::new("/"), query).map(drop)
    }

    fn installed_below(
        &self,
        root: &Path,
        name: &KernelName,
        query: &InstalledQuery,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let image = find(root, query)?;
        let located = LocatedImage {
            name,
            file: &image.file,
            origin: Origin::Described(format!("installed {}", image.file.display())),
            version: Some(image.release.clone()),
            ours: false,
        };
        let mut build = self.keep(located, notify)?;
        // Of the cache or of another copy, they may be those of another build of this release.
        build.modules = find_modules(root, &image).or(build.modules);
        if build.modules.is_none() {
            notify(BuildEvent::NoModules {
                kernel: image.release,
            });
        }
        Ok(build)
    }
}

/// Returns the image that a name selects.
fn find(root: &Path, query: &InstalledQuery) -> Result<InstalledImage, KernelError> {
    let images = installed_images(root);
    let wanted = match query {
        InstalledQuery::Release(release) => release.clone(),
        InstalledQuery::Running => running_release(root)?,
        InstalledQuery::All => String::new(),
    };
    let found = images
        .iter()
        .find(|image| image.is_called(&wanted))
        .or_else(|| {
            let is_version = wanted.starts_with(|c: char| c.is_ascii_digit())
                && wanted
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.');
            images
                .iter()
                .find(|image| is_version && numbers(&image.release).starts_with(&numbers(&wanted)))
        });
    let Some(image) = found else {
        let instead = instead(root, &images);
        let requested = KernelName::Installed(query.clone());
        return Err(match query {
            InstalledQuery::All => KernelError::AllInstalled { instead },
            InstalledQuery::Running => KernelError::NotInstalled {
                requested: format!("`{requested}` (`{wanted}`)"),
                instead,
            },
            InstalledQuery::Release(_) => KernelError::NotInstalled {
                requested: format!("`{requested}`"),
                instead,
            },
        });
    };
    match &image.trouble {
        None => Ok(image.clone()),
        Some(trouble) => Err(KernelError::InstalledUnreadable {
            file: image.file.clone(),
            detail: trouble.clone(),
            release: image.release.clone(),
        }),
    }
}

/// Describes what this host has instead, or where Marvin looked.
fn instead(root: &Path, images: &[InstalledImage]) -> String {
    if !images.is_empty() {
        let names: Vec<String> = images
            .iter()
            .map(|image| format!("installed:{}", image.release))
            .collect();
        return format!("it has {}", names.join(", "));
    }
    let places: Vec<String> = PLACES
        .iter()
        .map(|(folder, start, end)| match (*start, *end) {
            (whole @ ("vmlinuz" | "linux" | "kernel"), _) => format!("{folder}/{whole}"),
            (start, end) => format!("{folder}/{start}*{end}"),
        })
        .map(|place| root.join(place).display().to_string())
        .collect();
    format!(
        "it has none that Marvin finds; Marvin looked for {}; a partition that is not mounted, such as that of EFI, is not searched",
        places.join(", ")
    )
}

fn running_release(root: &Path) -> Result<String, KernelError> {
    let file = root.join("proc/sys/kernel/osrelease");
    let release = fs::read_to_string(&file).map_err(KernelError::io(&file))?;
    Ok(model::sanitize_line(release.trim()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use model::KernelName;

    use super::{installed_images, release_in_name};
    use crate::cache::without_network;
    use crate::companion_files::tests::write;
    use crate::payload::tests::pack;
    use crate::{BuildCache, KernelError, bzimage, elf, unified};

    fn kernel() -> Vec<u8> {
        bzimage::tests::write(&pack("zstd", &elf::tests::write(18, "")))
    }

    fn put(root: &Path, file: &str, content: &[u8]) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn resolve(root: &Path, name: &str) -> Result<model::Build, KernelError> {
        let home = tempfile::tempdir().unwrap();
        let cache = BuildCache::open(home.path(), without_network(home.path())).unwrap();
        let name: KernelName = name.parse().unwrap();
        let KernelName::Installed(query) = &name else {
            panic!("{name}");
        };
        cache.installed_below(root, &name, query, &|_| {})
    }

    #[test]
    fn images_are_found_where_distributions_put_them() {
        for file in [
            "boot/vmlinuz-6.9.1-test",
            "boot/vmlinuz-linux",
            "boot/kernels/8x7yzz-linux-6.9.1-bzImage",
            "boot/EFI/nixos/8x7yzz-linux-6.9.1-bzImage.efi",
            "boot/0123456789abcdef/6.9.1-test/linux",
            "usr/lib/modules/6.9.1-test/vmlinuz",
        ] {
            let root = tempfile::tempdir().unwrap();
            put(root.path(), file, &kernel());
            write(root.path(), "usr/lib/modules/6.9.1-test/modules.order", "");
            let found = installed_images(root.path());
            assert_eq!(found.len(), 1, "{file}");
            assert_eq!(found[0].release, "6.9.1-test", "{file}");
            for name in ["installed:6.9.1-test", "installed:6.9"] {
                let build = resolve(root.path(), name).unwrap();
                assert_eq!(build.version, "6.9.1-test");
                assert!(build.modules.is_some(), "{file}");
            }
        }
    }

    #[test]
    fn package_of_arch_names_its_image() {
        let root = tempfile::tempdir().unwrap();
        // Two packages; the one has an image of the other's version in /boot too.
        for (folder, package) in [("6.9.1-test", "linux"), ("6.6.63-1-lts", "linux-lts")] {
            let modules = format!("usr/lib/modules/{folder}");
            write(
                root.path(),
                &format!("{modules}/pkgbase"),
                &format!("{package}\n"),
            );
            write(root.path(), &format!("{modules}/modules.order"), "");
        }
        put(root.path(), "boot/vmlinuz-linux", &kernel());
        for name in ["installed:linux", "installed:6.9.1-test"] {
            let build = resolve(root.path(), name).unwrap();
            assert_eq!(build.version, "6.9.1-test");
            assert!(build.modules.unwrap().ends_with("modules/6.9.1-test"));
        }
        let linux = model::InstalledQuery::Release("linux".to_owned());
        let listed = super::find_installed(root.path(), &linux).unwrap();
        assert_eq!(listed[0].pkgbase.as_deref(), Some("linux"));
        // Its modules are there and its image is not.
        let error = resolve(root.path(), "installed:linux-lts").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no image for `installed:linux-lts`")
        );
    }

    #[test]
    fn image_without_modules_says_so() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "boot/vmlinuz-6.9.1-test", &kernel());
        let home = tempfile::tempdir().unwrap();
        let cache = BuildCache::open(home.path(), without_network(home.path())).unwrap();
        let name: KernelName = "installed:6.9".parse().unwrap();
        let query = model::InstalledQuery::Release("6.9".to_owned());
        let events = std::cell::RefCell::new(Vec::new());
        let resolve = || {
            let notify = |event| events.borrow_mut().push(event);
            let build = cache.installed_below(root.path(), &name, &query, &notify);
            (build.unwrap().modules, events.take())
        };
        let said = crate::BuildEvent::NoModules {
            kernel: "6.9.1-test".to_owned(),
        };
        let (modules, events) = resolve();
        assert!(modules.is_none() && events.contains(&said), "{events:?}");
        write(root.path(), "lib/modules/6.9.1-test/modules.order", "");
        let (modules, events) = resolve();
        assert!(modules.is_some() && !events.contains(&said), "{events:?}");
    }

    #[test]
    fn kernel_of_a_unified_image_is_taken_out() {
        for file in [
            "usr/lib/modules/6.9.1-test/6.9.1-test.efi",
            "boot/EFI/Linux/x.efi",
            "efi/EFI/Linux/x.efi",
        ] {
            let root = tempfile::tempdir().unwrap();
            let image = unified::tests::write(&[(".cmdline", b"quiet"), (".linux", &kernel())]);
            put(root.path(), file, &image);
            put(root.path(), "boot/EFI/Linux/memtest.efi", b"MZ no kernel");
            let build = resolve(root.path(), "installed:6.9.1-test").unwrap();
            assert_eq!(build.image.sha256, archives::sha256(&kernel()), "{file}");
        }
    }

    #[test]
    fn running_kernel_is_found_by_its_release() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "boot/vmlinuz-6.9.1-test", &kernel());
        write(root.path(), "proc/sys/kernel/osrelease", "6.9.1-test\n");
        resolve(root.path(), "installed:running").unwrap();
        write(root.path(), "proc/sys/kernel/osrelease", "6.12-own\n");
        let error = resolve(root.path(), "installed:running").unwrap_err();
        insta::assert_snapshot!(error, @"this host has no image for `installed:running` (`6.12-own`): it has installed:6.9.1-test");
    }

    #[test]
    fn missing_images_are_named_with_where_marvin_looked() {
        let root = tempfile::tempdir().unwrap();
        let message = |name: &str| {
            let error = resolve(root.path(), name).unwrap_err().to_string();
            error.replace(root.path().to_str().unwrap(), "")
        };
        let none = super::find_installed(root.path(), &model::InstalledQuery::All);
        assert!(
            none.unwrap_err()
                .to_string()
                .contains("none that Marvin finds")
        );
        let nowhere = message("installed:6.1");
        assert!(
            nowhere.contains("it has none that Marvin finds"),
            "{nowhere}"
        );
        for place in [
            "/boot/vmlinuz-*",
            "/boot/kernels/*-bzImage",
            "/efi/EFI/Linux/*.efi",
        ] {
            assert!(nowhere.contains(place), "{nowhere}");
        }
        put(root.path(), "boot/vmlinuz-6.9.1-test", &kernel());
        insta::assert_snapshot!(message("installed:"), @"`installed:` names all images of this host, and one is needed: it has installed:6.9.1-test");
        insta::assert_snapshot!(message("installed:6.1"), @"this host has no image for `installed:6.1`: it has installed:6.9.1-test");
    }

    #[test]
    fn unreadable_image_is_listed_and_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("boot/vmlinuz-6.8.0-31-generic");
        put(root.path(), "boot/vmlinuz-6.8.0-31-generic", &kernel());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        if fs::File::open(&file).is_ok() {
            // Root may read it: a file that cannot be opened stands for it.
            fs::remove_file(&file).unwrap();
            symlink("/proc/self/mem/none", &file).unwrap();
            assert!(installed_images(root.path()).is_empty());
            return;
        }
        let found = installed_images(root.path());
        assert_eq!(found[0].release, "6.8.0-31-generic");
        let error = resolve(root.path(), "installed:6.8")
            .unwrap_err()
            .to_string();
        assert!(error.contains("chmod 0644"), "{error}");
    }

    #[test]
    fn release_is_in_the_path() {
        for (file, release) in [
            ("/boot/vmlinuz-6.8.0-31-generic", "6.8.0-31-generic"),
            ("/boot/kernels/3x1-linux-5.4.8-bzImage", "5.4.8"),
            ("/usr/lib/modules/6.12.1-arch1/vmlinuz", "6.12.1-arch1"),
            ("/usr/lib/modules/6.12.1/6.12.1.efi", "6.12.1"),
        ] {
            assert_eq!(release_in_name(Path::new(file)), release);
        }
    }
}

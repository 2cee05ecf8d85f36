//! The build cache: resolves a kernel's name to a directory with its build.
//!
//! `home/builds/ID` is a build (`folder`), `home/builds/by-name/PACKAGE_VERSION` records the build
//! of a package, `home/downloads` is for temporary files (`scratch`). Everything is made in scratch
//! directories and renamed into place, so that an interruption only costs repeated work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archives::{Archives, ListNotice};
use model::{Build, BuildId, KernelName, Origin};
use subprocess::Shared;

use crate::build_dir;
use crate::catalogue::Catalogue;
use crate::companion_files::{self, Beside};
use crate::elf;
use crate::folder::{self, Folder, sha256};
use crate::image::{self, Image, Vmlinux};
use crate::running::running;
use crate::scratch::{self, Scratch};
use crate::source::{BuildProgress, MissingNeeds, module_folder};
use crate::{KernelError, SourceSettings};

/// A build cache in a data directory.
#[derive(Debug, Clone)]
pub struct BuildCache {
    pub(crate) home: PathBuf,
    pub(crate) builds: PathBuf,
    pub(crate) downloads: PathBuf,
    pub(crate) settings: SourceSettings,
    pub(crate) archives: Archives,
    /// Each suite's offers, read once.
    pub(crate) catalogues: Arc<Shared<BTreeMap<String, Arc<Catalogue>>>>,
    /// Whether it only finds what is there, and neither fetches, builds nor writes.
    pub(crate) is_reading: bool,
}

/// The progress of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    Resolving,
    Downloading {
        package: String,
        bytes: u64,
    },
    /// The archive lacks parts of a kernel that boots without them.
    Incomplete {
        package: String,
        missing: Vec<String>,
    },
    /// What to know of an archive's lists.
    Lists(ListNotice),
    /// The kernel has no folder of modules.
    NoModules {
        /// The kernel's release, or its package.
        kernel: String,
    },
    Unpacking {
        /// The package or the file.
        what: String,
    },
    /// Another process builds in the same data directory, and is waited for.
    Waiting,
    /// Building a kernel from its source.
    Building {
        /// The commit or the directory, and the kernel config.
        what: String,
        /// Duration of the last build of this configuration, in seconds.
        estimate_s: Option<u64>,
    },
    /// make compiles; about once a second.
    Compiling(BuildProgress),
    /// make will run without walls: as the user, with the user's files and network.
    NoWalls {
        why: &'static str,
    },
    /// Requested options that the source changed, each as `CONFIG_X=y`.
    NotKept {
        /// The commit or the directory.
        what: String,
        options: Vec<String>,
        /// What this host lacks for one of them.
        lacks: Option<MissingNeeds>,
    },
    /// No work: the build was cached.
    Cached {
        /// The package or the file.
        what: String,
    },
}

/// A local image that is to become a build.
pub(crate) struct LocatedImage<'a> {
    pub(crate) name: &'a KernelName,
    pub(crate) file: &'a Path,
    pub(crate) origin: Origin,
    /// The version, if known from another source than the image.
    pub(crate) version: Option<String>,
    /// Whether the directories around the image may be moved into the cache.
    pub(crate) ours: bool,
}

impl BuildCache {
    /// Opens the cache below `home`, which need not be writable, to find builds that are there.
    #[must_use]
    pub fn open_to_read(home: &Path, archives: Archives) -> Self {
        Self {
            home: home.to_owned(),
            builds: home.join("builds"),
            downloads: home.join("downloads"),
            settings: SourceSettings::default(),
            archives,
            catalogues: Arc::default(),
            is_reading: false,
        }
    }

    /// Opens the cache below `home`, and makes its directories; packages come from `archives`.
    ///
    /// # Errors
    /// If `home` cannot be used.
    pub fn open(home: &Path, archives: Archives) -> Result<Self, KernelError> {
        let cache = Self::open_to_read(home, archives);
        fs::create_dir_all(cache.builds.join("by-name"))
            .and_then(|()| fs::create_dir_all(cache.builds.join("by-recipe")))
            .and_then(|()| fs::create_dir_all(&cache.downloads))
            .and_then(|()| fs::read_dir(&cache.builds).map(drop))
            .map_err(|source| match KernelError::io(home)(source) {
                KernelError::Io { source, .. } => KernelError::Home {
                    folder: home.to_owned(),
                    source,
                },
                full => full,
            })?;
        Ok(cache)
    }

    /// Sets how to build sources from now on.
    pub fn set_sources(&mut self, settings: SourceSettings) {
        self.settings = settings;
    }

    /// Returns the build of a name; makes it if it is not cached.
    ///
    /// # Errors
    /// If the name selects no bootable kernel, or it cannot be fetched or built.
    pub fn resolve(
        &self,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        notify(BuildEvent::Resolving);
        let resolved = self.resolve_name(name, notify);
        self.notify_of_lists(notify);
        resolved
    }

    /// Returns the build of a name if the cache has it. Neither fetches nor builds, and waits for no
    /// process that does.
    ///
    /// # Errors
    /// If the name selects no bootable kernel, or the cache is damaged.
    pub fn find_made(
        &self,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Option<Build>, KernelError> {
        let reading = Self {
            is_reading: true,
            ..self.clone()
        };
        let events = Shared::new(Vec::new());
        let found = reading.resolve(name, &|event| events.lock().push(event));
        match found {
            // The caller that makes it gets all of these events again.
            Err(KernelError::NotMade(_)) => Ok(None),
            found => {
                events.into_inner().into_iter().for_each(notify);
                found.map(Some)
            }
        }
    }

    /// Errors if what is needed now would have to be made.
    pub(crate) fn check_makes(&self, what: &dyn std::fmt::Display) -> Result<(), KernelError> {
        if self.is_reading {
            Err(KernelError::NotMade(what.to_string()))
        } else {
            Ok(())
        }
    }

    /// Passes on what came up about lists.
    pub(crate) fn notify_of_lists(&self, notify: &dyn Fn(BuildEvent)) {
        for notice in self.archives.take_notices() {
            notify(BuildEvent::Lists(notice));
        }
    }

    fn resolve_name(
        &self,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let boot = name.boot_parameters();
        if !boot.is_empty() {
            let built = self.resolve_name(&name.as_built(), notify)?;
            return booted_with(built, name, &boot);
        }
        match name {
            KernelName::Package(query) => self.package(name, query, notify),
            KernelName::Imported(_) => return Err(KernelError::Imported(name.to_string())),
            KernelName::Installed(query) => self.installed(name, query, notify),
            KernelName::Running => running(Path::new("/")),
            KernelName::Path(file) => self.file(name, file, notify),
            KernelName::Git(_)
            | KernelName::Patch { .. }
            | KernelName::Tree(_)
            | KernelName::DebSrc(_)
            | KernelName::Changed { .. }
            | KernelName::KernelOrg(_) => self.built(name, notify),
        }
        .map_err(|error| match error {
            // The scratch directory of this path is gone when the message is read.
            KernelError::NoSpace { .. } => KernelError::NoSpace {
                folder: self.home.clone(),
            },
            other => other,
        })
    }

    /// Checks that a name selects a kernel, without fetching or building it.
    ///
    /// # Errors
    /// If it selects none, or that cannot be determined.
    pub fn check(&self, name: &KernelName) -> Result<(), KernelError> {
        match name {
            KernelName::Package(query) => self.offers(query).map(drop),
            KernelName::Path(file) => match fs::metadata(file) {
                Ok(_) => Ok(()),
                Err(_) => image::load(file)
                    .map(drop)
                    .map_err(|fault| KernelError::Image {
                        what: file.display().to_string(),
                        fault,
                    }),
            },
            KernelName::Git(revision) | KernelName::Patch { revision, .. } => {
                self.check_revision(revision)
            }
            KernelName::Installed(query) => self.check_installed(query),
            KernelName::Changed { kernel, changes } => {
                if !changes.is_boot_only() {
                    self.for_kernel(name)?.toolchain()?;
                }
                self.check(kernel)
            }
            KernelName::Tree(_)
            | KernelName::DebSrc(_)
            | KernelName::KernelOrg(_)
            | KernelName::Running => Ok(()),
            KernelName::Imported(_) => Err(KernelError::Imported(name.to_string())),
        }
    }

    /// Returns the build of an image file, or of a build directory of make.
    fn file(
        &self,
        name: &KernelName,
        path: &Path,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let built = build_dir::find(path)?;
        let origin = match &built {
            None => Origin::Described(path.display().to_string()),
            Some(built) => built.origin(),
        };
        let found = LocatedImage {
            name,
            file: built.as_ref().map_or(path, |built| &built.image),
            origin,
            version: None,
            ours: false,
        };
        let Some(built) = &built else {
            return self.keep(found, notify);
        };
        self.check_makes(name)?;
        let scratch = Scratch::new(&self.downloads)?;
        let modules = built.copy_modules(scratch.path())?;
        self.keep_with(found, modules.as_deref(), notify)
    }

    /// Returns the directory for temporary files.
    pub(crate) fn downloads(&self) -> &Path {
        &self.downloads
    }

    /// Makes a build of an image, or completes the existing one.
    pub(crate) fn keep(
        &self,
        found: LocatedImage<'_>,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        self.keep_with(found, None, notify)
    }

    /// Makes a build of an image that Marvin built, and moves its modules into the cache.
    pub(crate) fn keep_built(
        &self,
        found: LocatedImage<'_>,
        modules: Option<&Path>,
    ) -> Result<Build, KernelError> {
        self.keep_with(found, modules, &|_| {})
    }

    /// Makes a build of an image for another architecture, which no machine boots.
    pub(crate) fn keep_foreign(
        &self,
        name: &KernelName,
        file: &Path,
        origin: Origin,
    ) -> Result<Build, KernelError> {
        let bytes = image::load(file).map_err(|fault| KernelError::Image {
            what: origin.to_string(),
            fault,
        })?;
        let version = elf::release(&bytes).unwrap_or("vmlinux");
        let version = model::sanitize_line(version);
        let id = BuildId::from_hex(&sha256(&bytes))?;
        let place = self.builds.join(id.hex());
        let folder = match Folder::open(place.clone())? {
            Some(folder) => folder,
            None => self.make(&place, |folder| {
                folder.note("version", &version);
                folder.note("origin", &origin.to_string());
                folder.put("image", "image", &bytes)
            })?,
        };
        let beside = companion_files::find(file, None);
        let folder = self.add(folder, &beside, false)?;
        build(id, name, version, origin, &folder)
    }

    fn keep_with(
        &self,
        found: LocatedImage<'_>,
        modules: Option<&Path>,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let refuse = |fault| KernelError::Image {
            what: found.origin.to_string(),
            fault,
        };
        let bytes = image::load(found.file).map_err(refuse)?;
        let image = Image::read(&bytes).map_err(refuse)?;
        let version = found
            .version
            .clone()
            .or_else(|| image.release.map(model::sanitize_line))
            .unwrap_or_else(|| {
                found
                    .file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
            });
        let mut beside = companion_files::find(found.file, image.release);
        let mut hash = sha256(&bytes);
        let mut ours = found.ours;
        let mut modules_hash = None;
        if let Some(modules) = modules {
            // A change that is only in a module is another build, too.
            let digest = module_folder::digest(modules)?;
            hash = folder::id_with_modules(&hash, &digest);
            modules_hash = Some(digest);
            beside.modules = Some(modules.to_owned());
            ours = true;
        }
        let id = BuildId::from_hex(&hash)?;
        let place = self.builds.join(id.hex());
        let what = found.origin.to_string();
        let folder = if let Some(folder) = Folder::open(place.clone())? {
            notify(BuildEvent::Cached { what });
            folder
        } else {
            notify(BuildEvent::Unpacking { what });
            let vmlinux = image.vmlinux().map_err(refuse)?;
            self.make(&place, |folder| {
                folder.note("version", &version);
                folder.note("origin", &found.origin.to_string());
                if let Some(hash) = &modules_hash {
                    folder.note(folder::MODULES_HASH, hash);
                }
                fill(folder, &bytes, &vmlinux)
            })?
        };
        let folder = self.add(folder, &beside, ours)?;
        let mut build = build(id, found.name, version, found.origin, &folder)?;
        // Modules outside the cache stay there: they may be large, and booting does not need them.
        build.modules = build.modules.or(beside.modules.filter(|_| !ours));
        Ok(build)
    }

    /// Fills a scratch directory and moves it into place.
    fn make(
        &self,
        place: &Path,
        fill: impl FnOnce(&mut Folder) -> Result<(), KernelError>,
    ) -> Result<Folder, KernelError> {
        self.check_makes(&place.display())?;
        let scratch = Scratch::new(&self.downloads)?;
        let mut folder = Folder::create(scratch.path().join("build"))?;
        fill(&mut folder)?;
        folder.save()?;
        let _writing = scratch::lock(&self.downloads)?;
        match Folder::open(place.to_owned())? {
            // Another process was faster.
            Some(there) => Ok(there),
            None => folder.move_to(place.to_owned()),
        }
    }

    /// Adds files beside the image that the build lacks: an equal image was built in the same way.
    fn add(&self, folder: Folder, beside: &Beside, ours: bool) -> Result<Folder, KernelError> {
        let files = [
            ("config", "config", &beside.config),
            ("symbols", "System.map", &beside.symbols),
        ];
        if self.is_reading {
            return Ok(folder);
        }
        let _writing = scratch::lock(&self.downloads)?;
        // Another process may have added files in the meantime.
        let mut folder = folder.reopen()?;
        for (role, name, content) in files {
            if let Some(content) = content.as_ref().filter(|_| !folder.has(role)) {
                folder.put(role, name, content)?;
            }
        }
        if let Some(modules) = beside.modules.as_ref().filter(|_| ours)
            && !folder.has("modules")
        {
            folder.take_modules(modules)?;
        }
        folder.save()?;
        Ok(folder)
    }
}

fn fill(folder: &mut Folder, image: &[u8], vmlinux: &Vmlinux) -> Result<(), KernelError> {
    folder.put("image", "image", image)?;
    match vmlinux {
        Vmlinux::Absent => {}
        Vmlinux::Itself => folder.same("vmlinux", "image"),
        Vmlinux::Unpacked(unpacked) => folder.put("vmlinux", "vmlinux", unpacked)?,
    }
    Ok(())
}

pub(crate) fn build(
    id: BuildId,
    name: &KernelName,
    version: String,
    origin: Origin,
    folder: &Folder,
) -> Result<Build, KernelError> {
    Ok(Build {
        id,
        name: name.clone(),
        version,
        origin,
        image: folder.image()?,
        vmlinux: folder.file("vmlinux"),
        config: folder.file("config"),
        symbols: folder.file("symbols"),
        modules: folder.modules(),
    })
}

/// Archives at addresses where nothing listens.
/// Returns a build that is booted with parameters: another build, with the same files.
fn booted_with(built: Build, name: &KernelName, boot: &str) -> Result<Build, KernelError> {
    let text = format!("{}\nboot parameters {boot}\n", built.id.hex());
    Ok(Build {
        id: BuildId::from_hex(&sha256(text.as_bytes()))?,
        name: name.clone(),
        ..built
    })
}

#[cfg(test)]
pub(crate) fn without_network(home: &Path) -> Archives {
    let nowhere = "http://127.0.0.1:1".to_owned();
    let mut settings = model::ArchiveSettings::default();
    for archive in [&mut settings.debian, &mut settings.ubuntu] {
        archive.mirror.clone_from(&nowhere);
        archive.security.clone_from(&nowhere);
        archive.snapshot.clone_from(&nowhere);
    }
    settings.fedora.mirror.clone_from(&nowhere);
    settings.arch.mirror.clone_from(&nowhere);
    settings.kernel_org.mirror = nowhere;
    Archives::new(home, settings, model::UnixTime::default)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::path::Path;

    use model::{Build, Fault, KernelName};

    use super::{BuildCache, BuildEvent, without_network};
    use crate::companion_files::tests::{symbols, write};
    use crate::payload::tests::pack;
    use crate::{KernelError, bzimage, elf};

    fn resolve(home: &Path, file: &Path) -> (Result<Build, KernelError>, Vec<BuildEvent>) {
        let steps = RefCell::new(vec![]);
        let cache = BuildCache::open(&home.join("home"), without_network(home)).unwrap();
        let build = cache.resolve(&KernelName::Path(file.to_owned()), &|step| {
            steps.borrow_mut().push(step);
        });
        (build, steps.into_inner())
    }

    fn bzimage() -> Vec<u8> {
        bzimage::tests::write(&pack("zstd", &elf::tests::write(18, "")))
    }

    #[test]
    fn a_file_becomes_a_build_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bzImage");
        fs::write(&file, bzimage()).unwrap();
        let (first, steps) = resolve(home.path(), &file);
        let first = first.unwrap();
        let what = file.display().to_string();
        assert_eq!(
            steps,
            [
                BuildEvent::Resolving,
                BuildEvent::Unpacking { what: what.clone() }
            ]
        );
        assert_eq!(
            (&*first.version, first.origin.to_string()),
            ("6.9.1-test", what.clone())
        );
        assert_eq!(first.id.hex(), first.image.sha256);
        let vmlinux = first.vmlinux.clone().unwrap();
        assert_eq!(fs::read(vmlinux.path).unwrap(), elf::tests::write(18, ""));
        let (second, steps) = resolve(home.path(), &file);
        assert_eq!(second.unwrap(), first);
        assert_eq!(steps[1], BuildEvent::Cached { what });
    }

    #[test]
    fn same_image_elsewhere_completes_the_same_build() {
        let home = tempfile::tempdir().unwrap();
        let lone = home.path().join("bzImage");
        fs::write(&lone, bzimage()).unwrap();
        let (first, _) = resolve(home.path(), &lone);
        let first = first.unwrap();
        assert_eq!(
            (&first.config, &first.symbols, &first.modules),
            (&None, &None, &None)
        );
        let boot = home.path().join("boot");
        write(&boot, "config-6.9", "CONFIG_A=y\n");
        write(&boot, "System.map-6.9", &symbols());
        write(&boot, "lib/modules/6.9/modules.order", "");
        fs::write(boot.join("vmlinuz-6.9"), bzimage()).unwrap();
        let (second, _) = resolve(home.path(), &boot.join("vmlinuz-6.9"));
        let second = second.unwrap();
        assert_eq!(second.id, first.id);
        assert!(second.modules.unwrap().ends_with("boot/lib/modules/6.9"));
        let (again, _) = resolve(home.path(), &lone);
        let again = again.unwrap();
        assert_eq!(
            (&again.config, &again.symbols),
            (&second.config, &second.symbols)
        );
        assert_eq!(
            fs::read(again.config.unwrap().path).unwrap(),
            b"CONFIG_A=y\n"
        );
        assert!(again.symbols.is_some());
    }

    #[test]
    fn a_vmlinux_is_kept_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("vmlinux");
        fs::write(&file, elf::tests::write(18, "no banner")).unwrap();
        let build = resolve(home.path(), &file).0.unwrap();
        assert_eq!(build.vmlinux, Some(build.image.clone()));
        assert_eq!(build.version, "vmlinux");
    }

    #[test]
    fn interrupted_build_is_repeated() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bzImage");
        fs::write(&file, bzimage()).unwrap();
        let whole = resolve(home.path(), &file).0.unwrap();
        let folder = whole.image.path.parent().unwrap().to_owned();
        for damaged in ["origin", "image", "vmlinux"] {
            for damage in [fs::remove_file, |path| fs::write(path, "")] {
                damage(folder.join(damaged)).unwrap();
                assert_eq!(resolve(home.path(), &file).0.unwrap(), whole);
                assert_eq!(fs::read(&whole.image.path).unwrap(), bzimage());
            }
        }
        let left: Vec<_> = fs::read_dir(home.path().join("home/downloads"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["lock"]);
    }

    #[test]
    fn unbootable_image_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bzImage");
        fs::write(&file, bzimage::tests::write(&pack("xz", b"x"))).unwrap();
        let error = resolve(home.path(), &file).0.unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        let error = error
            .to_string()
            .replace(home.path().to_str().unwrap(), "HOME");
        insta::assert_snapshot!(error, @"HOME/bzImage: the compressed kernel in it is damaged: it is not an ELF file; copy or build it again");
        let builds = fs::read_dir(home.path().join("home/builds")).unwrap();
        assert_eq!(builds.count(), 2, "by-name and by-recipe");
    }

    #[test]
    fn impossible_data_directory_is_a_user_error() {
        let error = BuildCache::open(
            Path::new("/dev/null/marvin"),
            without_network(Path::new("/")),
        )
        .unwrap_err();
        insta::assert_snapshot!(error, @"cannot use the data directory /dev/null/marvin: Not a directory (os error 20)");
        assert_eq!(error.fault(), Fault::User);
    }
}

//! From a distribution's package to a build: downloads and unpacks the packages of an offer, unless
//! the cache has its build.
//!
//! `builds/by-name/PACKAGE_VERSION` records the build of a package. `catalogue` selects the offer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archives::{Root, unpack};
use model::{Build, BuildId, Distribution, KernelName, PackageQuery};

use crate::cache::{LocatedImage, build};
use crate::catalogue::{Catalogue, Offer};
use crate::folder::{self, Folder};
use crate::scratch::{self, Scratch};
use crate::suggestions;
use crate::{BuildCache, BuildEvent, KernelError, PackageError};

impl BuildCache {
    /// Returns the offers for a name, newest first; at least one.
    pub(crate) fn offers(&self, query: &PackageQuery) -> Result<Vec<Offer>, KernelError> {
        let suite = query.suite.as_deref();
        let key = format!(
            "{}:{}",
            query.distribution.scheme(),
            suite.unwrap_or_default()
        );
        let known = self.catalogues.lock().get(&key).cloned();
        if let Some(known) = known {
            return self.find(&known, query);
        }
        let read = Arc::new(Catalogue::open(&self.archives, query.distribution, suite)?);
        self.catalogues.lock().insert(key, Arc::clone(&read));
        self.find(&read, query)
    }

    fn find(&self, catalogue: &Catalogue, query: &PackageQuery) -> Result<Vec<Offer>, KernelError> {
        let found = catalogue.find(query);
        found.map_err(|error| suggestions::name_left_out(error, &self.archives, query.distribution))
    }

    pub(crate) fn package(
        &self,
        name: &KernelName,
        query: &PackageQuery,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let offer = self.offers(query)?.swap_remove(0);
        if let Some((id, folder)) = self.find_cached(&offer)? {
            notify(BuildEvent::Cached {
                what: offer.origin().to_string(),
            });
            return build(id, name, offer.upstream.clone(), offer.origin(), &folder);
        }
        self.check_makes(name)?;
        let scratch = Scratch::new(&self.downloads)?;
        notify(BuildEvent::Downloading {
            package: offer.package.clone(),
            bytes: offer.bytes(),
        });
        if !offer.missing.is_empty() {
            notify(BuildEvent::Incomplete {
                package: offer.package.clone(),
                missing: offer.missing.clone(),
            });
        }
        let mut packages = Vec::new();
        for file in &offer.files {
            let archives = &self.archives;
            packages.push(archives.download(offer.distribution, file, scratch.path())?);
        }
        notify(BuildEvent::Unpacking {
            what: offer.origin().to_string(),
        });
        let root = scratch.path().join("root");
        make_root(&root)?;
        for package in &packages {
            unpack(package, &root)?;
            // The download is not needed any more, but its disk space may be.
            fs::remove_file(package).map_err(KernelError::io(package))?;
        }
        Root(&root)
            .remove_links_out()
            .map_err(KernelError::io(&root))?;
        let file = vmlinuz(&root, &offer).ok_or_else(|| {
            KernelError::Package(PackageError::NoImage(offer.origin().to_string()))
        })?;
        let found = LocatedImage {
            name,
            file: &file,
            origin: offer.origin(),
            version: Some(offer.upstream.clone()),
            ours: true,
        };
        let build = self.keep(found, &|_| {})?;
        self.remember(&offer, &build.id)?;
        if build.modules.is_none() && offer.missing.is_empty() {
            notify(BuildEvent::NoModules {
                kernel: offer.origin().to_string(),
            });
        }
        Ok(build)
    }

    fn by_name(&self, offer: &Offer) -> PathBuf {
        let name = format!("{}_{}", offer.package, offer.version);
        let name = match offer.distribution {
            Distribution::Debian => name,
            other => format!("{}:{name}", other.scheme()),
        };
        self.builds.join("by-name").join(name)
    }

    /// Returns the cached build of a package, if it is still there and the package unchanged.
    fn find_cached(&self, offer: &Offer) -> Result<Option<(BuildId, Folder)>, KernelError> {
        let facts = folder::read_facts(&self.by_name(offer))?.unwrap_or_default();
        if facts.get("deb") != Some(&offer.content()) {
            return Ok(None);
        }
        let Some(Ok(id)) = facts.get("build").map(|hex| BuildId::from_hex(hex)) else {
            return Ok(None);
        };
        let folder = Folder::open(self.builds.join(id.hex()))?;
        Ok(folder.map(|folder| (id, folder)))
    }

    fn remember(&self, offer: &Offer, id: &BuildId) -> Result<(), KernelError> {
        let _writing = scratch::lock(&self.downloads)?;
        let facts = BTreeMap::from([
            ("build".to_owned(), id.hex().to_owned()),
            ("deb".to_owned(), offer.content()),
        ]);
        folder::write_facts(&self.by_name(offer), &facts)
    }
}

/// Makes an empty root where `/lib` is `/usr/lib`: packages of one kernel name its modules by either
/// path.
fn make_root(root: &Path) -> Result<(), KernelError> {
    let lib = root.join("lib");
    fs::create_dir_all(root.join("usr/lib"))
        .and_then(|()| std::os::unix::fs::symlink("usr/lib", &lib))
        .map_err(KernelError::io(&lib))
}

/// Finds the image in packages: below /boot or beside the modules. Of several it takes that of the
/// package's own release: one package may have an image for another page size too.
fn vmlinuz(root: &Path, offer: &Offer) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = paths_in(&root.join("boot"))
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("vmlinuz-")
        })
        .collect();
    if found.is_empty() {
        found = paths_in(&root.join("usr/lib/modules"))
            .into_iter()
            .map(|folder| folder.join("vmlinuz"))
            .filter(|path| path.is_file())
            .collect();
    }
    let own = found.iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("vmlinuz-")
            .is_some_and(|release| offer.package.ends_with(release))
    });
    own.or(found.first()).cloned()
}

/// Returns the paths of a directory, in order.
fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use std::fs;

    use archives::Package;
    use model::{Distribution, KernelName};

    use super::{LocatedImage, make_root, vmlinuz};
    use crate::BuildCache;
    use crate::cache::without_network;
    use crate::catalogue::Offer;
    use crate::companion_files::tests::write;
    use crate::payload::tests::pack;
    use crate::{bzimage, elf};

    /// Two packages of one version, `6.9.1-1` and `6.9.1-2`, each with its modules.
    #[test]
    fn build_has_the_modules_of_its_package() {
        let home = tempfile::tempdir().unwrap();
        let cache = BuildCache::open(home.path(), without_network(home.path())).unwrap();
        let mut builds = Vec::new();
        for number in ["1", "2"] {
            let root = home.path().join(number);
            make_root(&root).unwrap();
            let modules = format!("usr/lib/modules/6.9.1-{number}-lts");
            write(&root, &format!("{modules}/modules.order"), number);
            let image = bzimage::tests::write(&pack("zstd", &elf::tests::write(18, number)));
            fs::write(root.join(&modules).join("vmlinuz"), image).unwrap();
            let offer = Offer {
                distribution: Distribution::Arch,
                package: "linux-lts".to_owned(),
                version: format!("6.9.1-{number}"),
                upstream: "6.9.1".to_owned(),
                flavour: "lts".to_owned(),
                files: Vec::<Package>::new(),
                missing: Vec::new(),
            };
            let name: KernelName = offer.name(None);
            let found = LocatedImage {
                name: &name,
                file: &vmlinuz(&root, &offer).unwrap(),
                origin: offer.origin(),
                version: Some(offer.upstream.clone()),
                ours: true,
            };
            let build = cache.keep(found, &|_| {}).unwrap();
            assert_eq!(
                build.origin.to_string(),
                format!("linux-lts 6.9.1-{number}")
            );
            let order = build.modules.as_ref().unwrap().join("modules.order");
            assert_eq!(fs::read_to_string(order).unwrap(), number);
            builds.push(build);
        }
        assert_ne!(builds[0].id, builds[1].id);
        assert_ne!(builds[0].name, builds[1].name);
    }
}

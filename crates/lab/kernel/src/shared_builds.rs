//! Builds that several hosts share: a directory that all of them see, with builds by content hash
//! (`ID`, as in the cache), what they were called (`ID.build`), and builds by recipe
//! (`by-recipe/KEY`).
//!
//! A host copies a build into its own cache and verifies each file there by its hash before it uses
//! one.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Build, BuildId, KernelName, Origin};
use subprocess::Program;

use crate::cache::{BuildCache, build};
use crate::folder::{self, Folder};
use crate::scratch::{self, Scratch};
use crate::{BuildEvent, KernelError};

/// The directory of builds by recipe, here and in the cache.
const RECIPES: &str = "by-recipe";
/// What comes is here until it is complete.
const INCOMING: &str = "incoming";
/// How long the copy of one build may take (s): modules of a distribution on a slow network.
const COPY_S: u64 = 600;

impl BuildCache {
    /// Puts a build into the shared directory, if the settings name one and it is not there.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn share(&self, build: &Build) -> Result<(), KernelError> {
        let Some(shared) = &self.settings.shared else {
            return Ok(());
        };
        self.put(shared, &build.id)?;
        let called = [
            ("version", build.version.clone()),
            ("origin", build.origin.to_string()),
        ];
        let called = called
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let _writing = scratch::lock(&shared.join(INCOMING))?;
        folder::write_facts(
            &shared.join(build.id.hex()).with_extension("build"),
            &called,
        )
    }

    /// Returns the build with this content hash, from the cache or from the shared directory, under
    /// the name that another host had for it.
    ///
    /// # Errors
    /// If neither has it whole, or the disk fails.
    pub fn fetch(
        &self,
        id: &BuildId,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let missing = || KernelError::NotShared {
            id: id.hex().to_owned(),
        };
        let shared = self.settings.shared.as_ref().ok_or_else(missing)?;
        let called =
            folder::read_facts(&shared.join(id.hex()).with_extension("build"))?.unwrap_or_default();
        let (Some(version), Some(origin)) = (called.get("version"), called.get("origin")) else {
            return Err(missing());
        };
        let folder = self.take(shared, id, notify)?.ok_or_else(missing)?;
        build(
            id.clone(),
            name,
            version.clone(),
            Origin::of_line(origin, name),
            &folder,
        )
    }

    /// Looks for the build of a recipe in the shared directory, and copies it with its recipe into
    /// the cache.
    pub(crate) fn take_recipe(
        &self,
        recipe: &Path,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<(), KernelError> {
        let Some((shared, theirs)) = self.their_recipe(recipe) else {
            return Ok(());
        };
        let Some(facts) = folder::read_facts(&theirs)? else {
            return Ok(());
        };
        let Some(Ok(id)) = facts.get("build").map(|hex| BuildId::from_hex(hex)) else {
            return Ok(());
        };
        if self.take(shared, &id, notify)?.is_none() {
            return Ok(());
        }
        if let Ok(compiled) = fs::read(theirs.with_extension("compiled")) {
            folder::write(&recipe.with_extension("compiled"), &compiled)?;
        }
        folder::write_facts(recipe, &facts)
    }

    /// Puts the build of a recipe into the shared directory.
    pub(crate) fn share_recipe(&self, recipe: &Path, build: &Build) -> Result<(), KernelError> {
        let Some((shared, theirs)) = self.their_recipe(recipe) else {
            return Ok(());
        };
        self.share(build)?;
        fs::create_dir_all(shared.join(RECIPES)).map_err(KernelError::io(shared))?;
        let _writing = scratch::lock(&shared.join(INCOMING))?;
        for file in [recipe.with_extension("compiled"), recipe.to_owned()] {
            let to = theirs.with_file_name(file.file_name().unwrap_or_default());
            let bytes = fs::read(&file).map_err(KernelError::io(&file))?;
            folder::write(&to, &bytes)?;
        }
        Ok(())
    }

    /// Returns the shared directory, and a recipe's file there.
    fn their_recipe(&self, recipe: &Path) -> Option<(&PathBuf, PathBuf)> {
        let shared = self.settings.shared.as_ref()?;
        Some((shared, shared.join(RECIPES).join(recipe.file_name()?)))
    }

    /// Copies a build into the shared directory; another host may do so at the same time.
    fn put(&self, shared: &Path, id: &BuildId) -> Result<(), KernelError> {
        let place = shared.join(id.hex());
        if Folder::open(place.clone())?.is_some() {
            return Ok(());
        }
        let incoming = shared.join(INCOMING);
        fs::create_dir_all(&incoming).map_err(KernelError::io(&incoming))?;
        let scratch = Scratch::new(&incoming)?;
        let copy = scratch.path().join(id.hex());
        copy_tree(&self.builds.join(id.hex()), &copy)?;
        let _writing = scratch::lock(&incoming)?;
        match (Folder::open(place.clone())?, Folder::open(copy)?) {
            (None, Some(whole)) => whole.move_to(place).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns a build of the cache, copied from the shared directory if it is only there; `None`
    /// if it is in neither, or not whole.
    fn take(
        &self,
        shared: &Path,
        id: &BuildId,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Option<Folder>, KernelError> {
        let place = self.builds.join(id.hex());
        if let Some(folder) = Folder::open(place.clone())? {
            return Ok(Some(folder));
        }
        let theirs = shared.join(id.hex());
        if !theirs.is_dir() {
            return Ok(None);
        }
        notify(BuildEvent::Unpacking {
            what: theirs.display().to_string(),
        });
        let scratch = Scratch::new(&self.downloads)?;
        let copy = scratch.path().join(id.hex());
        copy_tree(&theirs, &copy)?;
        let Some(whole) = Folder::open(copy)?.filter(|folder| folder.is_of_id(id.hex())) else {
            return Ok(None);
        };
        let _writing = scratch::lock(&self.downloads)?;
        match Folder::open(place.clone())? {
            // Another process was faster.
            Some(there) => Ok(Some(there)),
            None => whole.move_to(place).map(Some),
        }
    }
}

/// Copies a directory with its files and links.
fn copy_tree(from: &Path, to: &Path) -> Result<(), KernelError> {
    let program = Program::new("cp")
        .args(["-r", "--preserve=mode,links", "--"])
        .args([from, to])
        .deadline_s(COPY_S);
    let detail = match program.run() {
        Ok(ended) if ended.code == Some(0) => return Ok(()),
        Ok(ended) => ended.reason(),
        Err(error) => error.to_string(),
    };
    let command = program.command();
    Err(KernelError::Program { command, detail })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use model::{Build, KernelName};

    use crate::payload::tests::pack;
    use crate::{BuildCache, KernelError, SourceSettings, bzimage, elf};

    fn cache(home: &Path, shared: Option<&Path>) -> BuildCache {
        let mut cache = BuildCache::open(home, crate::cache::without_network(home)).unwrap();
        cache.set_sources(SourceSettings {
            shared: shared.map(Path::to_path_buf),
            ..SourceSettings::default()
        });
        cache
    }

    /// Makes a build of an image.
    fn built(home: &Path, cache: &BuildCache) -> Build {
        let file = home.join("bzImage");
        fs::write(
            &file,
            bzimage::tests::write(&pack("zstd", &elf::tests::write(18, ""))),
        )
        .unwrap();
        cache.resolve(&KernelName::Path(file), &|_| {}).unwrap()
    }

    #[test]
    fn build_travels_by_its_hash() {
        let home = tempfile::tempdir().unwrap();
        let [shared, anna, ben] = ["shared", "anna", "ben"].map(|name| home.path().join(name));
        let anna = cache(&anna, Some(&shared));
        let built = built(home.path(), &anna);
        let ben = cache(&ben, Some(&shared));
        let error = ben.fetch(&built.id, &built.name, &|_| {}).unwrap_err();
        assert!(matches!(error, KernelError::NotShared { .. }), "{error}");
        for _ in 0..2 {
            anna.share(&built).unwrap();
        }
        let fetched = ben.fetch(&built.id, &built.name, &|_| {}).unwrap();
        assert_eq!(
            (&fetched.id, &fetched.version, &fetched.origin),
            (&built.id, &built.version, &built.origin)
        );
        assert_eq!(fetched.boot_file().sha256, built.boot_file().sha256);
        assert!(fetched.image.path.starts_with(home.path().join("ben")));
    }

    #[test]
    fn damaged_shared_build_is_refused_and_replaced() {
        let home = tempfile::tempdir().unwrap();
        let [shared, anna, ben] = ["shared", "anna", "ben"].map(|name| home.path().join(name));
        let anna = cache(&anna, Some(&shared));
        let built = built(home.path(), &anna);
        anna.share(&built).unwrap();
        fs::write(shared.join(built.id.hex()).join("image"), "damaged").unwrap();
        let ben = cache(&ben, Some(&shared));
        let error = ben.fetch(&built.id, &built.name, &|_| {}).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot fetch the build "),
            "{error}"
        );
        anna.share(&built).unwrap();
        assert!(ben.fetch(&built.id, &built.name, &|_| {}).is_ok());
        let alone = cache(&home.path().join("carl"), None);
        assert!(alone.fetch(&built.id, &built.name, &|_| {}).is_err());
    }
}
